// The objects of a VectorSession: how they are made and connected, and the steps about their life.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <utility>

#include "driver/nd2/completion_queue.hpp"
#include "driver/nd2/shared_receive_queue.hpp"
#include "testbench/side_by_side.hpp"

namespace rnic::testbench {
namespace {

/// Changes `connection` as `attributes` say (docs/vectors.md, `modify`); gives the mask of what was named.
QpAttributes apply(const std::map<std::string, std::uint64_t>& attributes, Endpoint& endpoint, bool ipv6,
                   umd::QpConnection& connection) {
  QpAttributes mask = 0;
  const auto set = [&](const char* name, hw::QpAttr attr, auto& field) {
    const auto it = attributes.find(name);
    if (it == attributes.end()) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(it->second);
    mask |= attribute(attr);
  };
  set("ack_timeout", hw::QpAttr::kTimeout, connection.ack_timeout);
  set("retry_count", hw::QpAttr::kRetryCnt, connection.retry_count);
  set("rnr_retry", hw::QpAttr::kRnrRetry, connection.rnr_retry);
  set("min_rnr_timer", hw::QpAttr::kMinRnrTimer, connection.min_rnr_timer);
  set("traffic_class", hw::QpAttr::kAv, connection.path.traffic_class);
  set("hop_limit", hw::QpAttr::kAv, connection.path.hop_limit);
  set("flow_label", hw::QpAttr::kAv, connection.path.flow_label);
  set("sl", hw::QpAttr::kAv, connection.path.sl);
  std::uint16_t vlan{};
  set("vlan", hw::QpAttr::kAv, vlan);
  if (attributes.contains("vlan")) connection.path.sgid_index = endpoint.gid_index(ipv6, 0, vlan);
  std::uint16_t pkey{};
  set("pkey", hw::QpAttr::kPkeyIndex, pkey);
  if ((mask & attribute(hw::QpAttr::kPkeyIndex)) != 0) connection.path.pkey_index = endpoint.pkey_index(pkey);
  set("qkey", hw::QpAttr::kQkey, connection.qkey);
  set("send_psn", hw::QpAttr::kSqPsn, connection.send_psn);
  set("remote_read", hw::QpAttr::kAccessFlags, connection.remote_read);
  set("remote_write", hw::QpAttr::kAccessFlags, connection.remote_write);
  set("remote_atomic", hw::QpAttr::kAccessFlags, connection.remote_atomic);
  return mask;
}

}  // namespace

VectorSession::VectorSession(World& world, const Vector& vector)
    : world_(world), setup_(vector.setup), ipv6_(vector.setup.ipv6) {
  for_each_host([this](std::size_t host) {
    add_side(host);
    sides_[host].pairs.resize(setup_.queue_pairs);
  });
  if (setup_.connections) add_management();
  make_memory();
  std::vector<std::function<void()>> tasks;
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    for (std::size_t i = 0; i < setup_.queue_pairs; ++i)
      tasks.emplace_back([this, host, i] { sides_[host].pairs[i] = make_pair(host, i); });
  }
  for (const auto& spec : setup_.regions) tasks.emplace_back([this, &spec] { add_region(spec); });
  side_by_side(tasks);
  for (std::size_t host = 0; host < sides_.size(); ++host) watch_events(host);
  connect();
  for_each_host([&](std::size_t host) { read_counters(vector.steps, host); });
}

void VectorSession::for_each_host(const std::function<void(std::size_t)>& task) {
  std::vector<std::function<void()>> tasks;
  for (std::size_t host = 0; host < sides_.size(); ++host) tasks.emplace_back([&task, host] { task(host); });
  side_by_side(tasks);
}

void VectorSession::add_side(std::size_t host) {
  auto& side = sides_[host];
  kmd::KernelOptions options;
  options.quota.pinned_bytes = setup_.hosts.at(host).pinned_quota.value_or(options.quota.pinned_bytes);
  options.quota.ring_bytes = setup_.hosts.at(host).ring_quota.value_or(options.quota.ring_bytes);
  options.completion_timeout = setup_.completion_timeout;
  side.endpoint = std::make_unique<Endpoint>(world_.host(host), options, setup_.fast_register);
  if (setup_.is_kernels()) {
    side.process = take_or_fail(umd::ProcessContext::open_for_management(side.endpoint->kernel().kernel_node()),
                                "a context for management");
    side.initiator_core =
        take_or_fail(umd::CompletionQueue::create(side.process, setup_.hosts[host].cq_depth), "completion queue");
    side.receive_core =
        take_or_fail(umd::CompletionQueue::create(side.process, setup_.hosts[host].cq_depth), "completion queue");
    return;
  }
  std::vector<std::function<void()>> queues{
      [&] { side.initiator_cq = side.endpoint->create_cq(setup_.hosts[host].cq_depth); }};
  if (!setup_.one_cq)
    queues.emplace_back([&] { side.receive_cq = side.endpoint->create_cq(setup_.hosts[host].cq_depth); });
  side_by_side(queues);
  if (setup_.one_cq)
    require_success(side.initiator_cq->QueryInterface(IID_IND2CompletionQueue, side.receive_cq.put()),
                    "the other name of the queue");
  side.initiator_core = static_cast<nd2::CompletionQueue&>(*side.initiator_cq).core();
  side.receive_core = static_cast<nd2::CompletionQueue&>(*side.receive_cq).core();
  side.process = static_cast<nd2::CompletionQueue&>(*side.initiator_cq).process();
  if (setup_.srq) {
    require_success(side.endpoint->adapter().CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, side.endpoint->file(),
                                                                      setup_.srq->depth, setup_.srq->sge,
                                                                      setup_.srq->threshold, 0, 0, side.srq.put()),
                    "CreateSharedReceiveQueue");
  }
}

/// The context of a queue pair is its number.
VectorSession::Pair VectorSession::make_pair(std::size_t host, std::size_t index) {
  auto& side = sides_[host];
  const auto& own = setup_.hosts.at(host);
  Pair pair;
  void* const context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(index + 1));
  const bool other_domain = setup_.srq && setup_.srq->other_domain;
  if (setup_.type != hw::QpType::kRc || setup_.fast_register || other_domain) {
    calls::Handle pd = side.process->pd();
    if (other_domain)
      pd = side.domains.emplace_back(take_or_fail(side.process->alloc_pd(), "another protection domain"))->handle();
    std::shared_ptr<umd::SharedReceiveQueue> shared_receives;
    if (side.srq) shared_receives = static_cast<nd2::SharedReceiveQueue&>(*side.srq).core();
    pair.below =
        take_or_fail(umd::QueuePair::create_idle(side.process, {.send_cq = side.initiator_core,
                                                                .receive_cq = side.receive_core,
                                                                .pd = pd,
                                                                .shared_receives = std::move(shared_receives),
                                                                .type = setup_.type,
                                                                .general_service = setup_.general_service,
                                                                .capacity = {.send_depth = own.initiator_depth,
                                                                             .receive_depth = own.receive_depth,
                                                                             .send_segments = own.initiator_sge,
                                                                             .receive_segments = own.receive_sge,
                                                                             .inline_bytes = own.inline_size},
                                                                .context = context,
                                                                .fast_register = setup_.fast_register}),
                     "queue pair");
  } else if (side.srq) {
    require_success(side.endpoint->adapter().CreateQueuePairWithSrq(
                        IID_IND2QueuePair, side.receive_cq.get(), side.initiator_cq.get(), side.srq.get(), context,
                        own.initiator_depth, own.initiator_sge, own.inline_size, pair.face.put()),
                    "CreateQueuePairWithSrq");
  } else {
    pair.face = side.endpoint->create_qp(
        *side.receive_cq, *side.initiator_cq,
        {own.receive_depth, own.initiator_depth, own.receive_sge, own.initiator_sge, own.inline_size, context});
  }
  return pair;
}

void VectorSession::watch_events(std::size_t host) {
  auto& side = sides_[host];
  auto& events = side.process->events();
  const auto recorder = [&](std::function<void(const hw::Eqe&)> pass_on) {
    return recorders_.emplace_back(std::make_shared<Recorder>(side.events, std::move(pass_on)));
  };
  for (auto& pair : side.pairs) watch_pair(host, pair);
  for (auto* cq : std::set{side.initiator_cq.get(), side.receive_cq.get()}) {
    if (cq == nullptr) continue;
    auto& object = static_cast<nd2::CompletionQueue&>(*cq);
    events.subscribe(EventTable::Of::kCq, object.core()->cqn(),
                     recorder([&object](const hw::Eqe& eqe) { object.on_event(eqe); }));
  }
  if (side.srq) {
    auto& object = static_cast<nd2::SharedReceiveQueue&>(*side.srq);
    events.subscribe(EventTable::Of::kSrq, object.core()->srqn(),
                     recorder([&object](const hw::Eqe& eqe) { object.on_event(eqe); }));
  }
  events.subscribe_device(recorder({}));
}

void VectorSession::watch_pair(std::size_t host, Pair& pair) {
  auto& side = sides_[host];
  auto& core = pair.core();
  auto recorder = std::make_shared<Recorder>(side.events, [&core](const hw::Eqe& eqe) { core.on_event(eqe); });
  side.process->events().subscribe(EventTable::Of::kQp, core.qpn(), recorders_.emplace_back(std::move(recorder)));
}

/// What each queue pair needs is known in advance, so that `modify` can do it, too.
void VectorSession::connect() {
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    const auto& first_psn = setup_.hosts.at(host).first_psn;
    for (auto& pair : sides_[host].pairs) {
      const auto psn = first_psn ? *first_psn : sides_[host].endpoint->first_psn();
      numbers_.hosts[host].push_back({.qpn = pair.core().qpn(), .first_psn = psn, .earlier_qpns = {}});
    }
  }
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    for (std::size_t i = 0; i < setup_.queue_pairs; ++i) sides_[host].pairs[i].connection = connection_of(host, i);
  }
  if (!setup_.connected) return;
  const auto all = [&](const char* what, const std::function<Result<void>(Pair&)>& change) {
    std::vector<std::function<void()>> tasks;
    for (auto& side : sides_) {
      for (auto& pair : side.pairs) {
        tasks.emplace_back([what, &change, &pair] {
          if (const auto done = change(pair); !done)
            throw VectorFailure(fmt::format("{} of a queue pair: {}", what, describe(done.error())));
        });
      }
    }
    side_by_side(tasks);
  };
  all("RTR", [](Pair& pair) { return pair.core().to_ready(pair.connection); });
  all("RTS", [](Pair& pair) { return pair.core().to_connected(pair.connection); });
}

/// Of queue pair `index` of a host, as the setup says.
umd::QpConnection VectorSession::connection_of(std::size_t host, std::size_t index) {
  const auto& own = setup_.hosts.at(host);
  auto& endpoint = *sides_[host].endpoint;
  umd::QpConnection connection;
  if (setup_.type == hw::QpType::kRawPacket) return connection;
  if (setup_.type == hw::QpType::kUd) {
    connection = datagram_attributes(endpoint, own.qkey, own.mtu);
  } else {
    const ConnectParameters parameters{.mtu = own.mtu,
                                       .ipv6 = ipv6_,
                                       .read_limit = own.initiator_reads,
                                       .remote_read = own.remote_read,
                                       .remote_write = own.remote_write,
                                       .remote_atomic = own.remote_atomic,
                                       .ack_timeout = own.ack_timeout,
                                       .retry_count = own.retry_count,
                                       .rnr_retry = own.rnr_retry,
                                       .min_rnr_timer = own.min_rnr_timer,
                                       .first_psn = std::nullopt};
    connection =
        connection_to(endpoint, *sides_[1 - host].endpoint, sides_[1 - host].pairs.at(index).core().qpn(), parameters);
    connection.inbound_reads = static_cast<std::uint8_t>(own.responder_reads);
    connection.path.sgid_index = endpoint.gid_index(ipv6_, 0, own.vlan);
    connection.path.sl = own.sl;
  }
  connection.path.pkey_index = endpoint.pkey_index(own.pkey);
  connection.path.traffic_class = own.traffic_class;
  connection.path.hop_limit = own.hop_limit;
  connection.path.flow_label = own.flow_label;
  if (own.flow_label != 0) connection.path.udp_source_port = 0;  // from the flow label
  connection.send_psn = numbers_.hosts[host].at(index).first_psn;
  connection.receive_psn = numbers_.hosts[1 - host].at(index).first_psn;
  return connection;
}

/// As new, in INIT: what was posted is flushed, and RTR and RTS connect it as at the start.
void VectorSession::reset(const VectorStep& step) {
  auto& own = pair(step);
  auto done = own.core().modify(hw::QpState::kReset, 0, {});
  // What was posted in the life that is over is not the newest WQE of the next.
  std::fill_n(own.core().kernel_qp().send_ring(), own.core().kernel_qp().send_ring_bytes(), std::uint8_t{});
  if (done) done = own.core().to_idle({});
  expect_status(step, control_status(done));
  own.connection = connection_of(step.host, step.qp);
}

/// In the place of one that was closed, with another QPN, which its peer must be told: by RTR and RTS of both.
void VectorSession::make(const VectorStep& step) {
  auto& place = pair(step);
  if (place.core().state() != umd::QueuePair::State::kClosed)
    throw VectorFailure(fmt::format("{}: queue pair {} is not closed", step.text, step.qp + 1));
  gone_.push_back(std::move(place));
  place = make_pair(step.host, step.qp);
  watch_pair(step.host, place);
  auto& numbers = numbers_.hosts[step.host].at(step.qp);
  numbers.earlier_qpns.insert(std::exchange(numbers.qpn, place.core().qpn()));
  for (std::size_t host = 0; host < sides_.size(); ++host)
    sides_[host].pairs.at(step.qp).connection = connection_of(host, step.qp);
}

void VectorSession::modify(const VectorStep& step) {
  auto& own = pair(step);
  const auto next = static_cast<hw::QpState>(*step.value);
  if (step.attributes.empty()) return expect_status(step, change_state(own, next, step.notify));
  auto wanted = own.connection;
  const auto mask = apply(step.attributes, *side(step).endpoint, ipv6_, wanted);
  const auto done = own.core().modify(next, mask, wanted);
  if (done) own.connection = wanted;
  expect_status(step, control_status(done));
}

HRESULT VectorSession::change_state(Pair& pair, hw::QpState next, bool notify) {
  auto& core = pair.core();
  switch (next) {
    case hw::QpState::kRtr: return control_status(core.to_ready(pair.connection));
    case hw::QpState::kRts:
      return control_status(core.state() == umd::QueuePair::State::kReady ? core.to_connected(pair.connection)
                                                                          : core.resume());
    case hw::QpState::kSqd: return control_status(core.drain(notify));
    default: return control_status(core.modify(next, 0, pair.connection));
  }
}

void VectorSession::state(const VectorStep& step) {
  const auto now = take_or_fail(pair(step).core().kernel_qp().query(), step.text);
  if (now.state != *step.value)
    throw VectorFailure(
        fmt::format("{}: the state is {}, expected {} ({})", step.text, now.state, step.name, *step.value));
  if (step.draining && (now.sq_draining != 0) != *step.draining)
    throw VectorFailure(fmt::format("{}: the send queue {}", step.text,
                                    *step.draining ? "has drained, or was not to" : "is still draining"));
}

void VectorSession::resize_cq(const VectorStep& step) {
  expect_status(step, cq(step).Resize(static_cast<ULONG>(step.size)));
}

}  // namespace rnic::testbench
