// The objects of a VectorSession: how they are made and connected, and the steps about their life.
#include <algorithm>
#include <utility>

#include "driver/nd2/completion_queue.hpp"
#include "driver/nd2/shared_receive_queue.hpp"
#include "driver/umd/memory_request.hpp"
#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPageBytes = 4096;

/// Changes `connection` as `attributes` say (docs/vectors.md, `modify`); gives the mask of what was named.
kmd::QpAttributes apply(const std::map<std::string, std::uint64_t>& attributes, kmd::QpConnection& connection) {
  kmd::QpAttributes mask = 0;
  const auto set = [&](const char* name, hw::QpAttr attr, auto& field) {
    const auto it = attributes.find(name);
    if (it == attributes.end()) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(it->second);
    mask |= kmd::attribute(attr);
  };
  set("ack_timeout", hw::QpAttr::kTimeout, connection.ack_timeout);
  set("retry_count", hw::QpAttr::kRetryCnt, connection.retry_count);
  set("rnr_retry", hw::QpAttr::kRnrRetry, connection.rnr_retry);
  set("min_rnr_timer", hw::QpAttr::kMinRnrTimer, connection.min_rnr_timer);
  set("traffic_class", hw::QpAttr::kAv, connection.path.traffic_class);
  set("hop_limit", hw::QpAttr::kAv, connection.path.hop_limit);
  set("flow_label", hw::QpAttr::kAv, connection.path.flow_label);
  set("pkey", hw::QpAttr::kPkeyIndex, connection.path.pkey);
  set("qkey", hw::QpAttr::kQkey, connection.qkey);
  set("send_psn", hw::QpAttr::kSqPsn, connection.send_psn);
  set("remote_read", hw::QpAttr::kAccessFlags, connection.remote_read);
  set("remote_write", hw::QpAttr::kAccessFlags, connection.remote_write);
  set("remote_atomic", hw::QpAttr::kAccessFlags, connection.remote_atomic);
  return mask;
}

}  // namespace

void VectorSession::Recorder::on_event(const hw::Eqe& eqe) {
  if (static_cast<hw::EqeType>(eqe.event_type) != hw::EqeType::kCompletion) events.push_back(eqe);
  if (pass_on) pass_on(eqe);
}

VectorSession::VectorSession(World& world, const Vector& vector) : world_(world) {
  const auto& setup = vector.setup;
  parameters_ = {.mtu = setup.mtu, .ipv6 = setup.ipv6, .read_limit = setup.read_limit, .remote_read = setup.remote_read, .remote_write = setup.remote_write,
                 .remote_atomic = setup.remote_atomic, .ack_timeout = setup.ack_timeout, .retry_count = setup.retry_count, .rnr_retry = setup.rnr_retry,
                 .min_rnr_timer = setup.min_rnr_timer, .first_psn = setup.first_psn};
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    add_side(host, setup);
    for (std::size_t i = 0; i < setup.queue_pairs; ++i) add_pair(host, setup);
    watch_events(host);
  }
  connect(setup);
  for (const auto& spec : setup.regions) add_region(spec);
  read_counters(vector.steps);
}

/// Each takes a round trip of PCI Express, so no others.
void VectorSession::read_counters(const std::vector<VectorStep>& steps) {
  for (const auto& step : steps) {
    if (step.kind != StepKind::kCounter) continue;
    auto& of = side(step);
    if (of.counters.contains(step.offset)) continue;
    of.counters[step.offset] = take_or_fail(of.endpoint->kernel().counter(static_cast<hw::Counter>(step.offset)), "counter");
  }
}

void VectorSession::add_side(std::size_t host, const VectorSetup& setup) {
  auto& side = sides_[host];
  side.endpoint = std::make_unique<Endpoint>(world_.host(host));
  if (setup.general_service) {
    side.process = take_or_fail(umd::ProcessContext::open_kernel(side.endpoint->kernel()), "the kernel driver's context");
    side.initiator_core = take_or_fail(umd::CompletionQueue::create(side.process, setup.cq_depth), "completion queue");
    side.receive_core = take_or_fail(umd::CompletionQueue::create(side.process, setup.cq_depth), "completion queue");
    return;
  }
  side.initiator_cq = side.endpoint->create_cq(setup.cq_depth);
  side.receive_cq = side.endpoint->create_cq(setup.cq_depth);
  side.initiator_core = static_cast<nd2::CompletionQueue&>(*side.initiator_cq).core();
  side.receive_core = static_cast<nd2::CompletionQueue&>(*side.receive_cq).core();
  side.process = static_cast<nd2::CompletionQueue&>(*side.initiator_cq).process();
  if (setup.srq) {
    require_success(side.endpoint->adapter().CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, side.endpoint->file(), setup.srq->depth, setup.srq->sge,
                                                                      setup.srq->threshold, 0, 0, side.srq.put()),
                    "CreateSharedReceiveQueue");
  }
}

/// The context of a queue pair is its number.
void VectorSession::add_pair(std::size_t host, const VectorSetup& setup) {
  auto& side = sides_[host];
  auto& pair = side.pairs.emplace_back();
  void* const context = reinterpret_cast<void*>(static_cast<std::uintptr_t>(side.pairs.size()));
  if (setup.type != hw::QpType::kRc || setup.fast_register) {
    pair.below = take_or_fail(umd::QueuePair::create(side.process, {.send_cq = side.initiator_core, .receive_cq = side.receive_core, .type = setup.type,
                                                                    .general_service = setup.general_service,
                                                                    .capacity = {.send_depth = setup.initiator_depth, .receive_depth = setup.receive_depth,
                                                                                 .send_segments = setup.initiator_sge, .receive_segments = setup.receive_sge,
                                                                                 .inline_bytes = setup.inline_size},
                                                                    .context = context, .fast_register = setup.fast_register}), "queue pair");
  } else if (side.srq) {
    require_success(side.endpoint->adapter().CreateQueuePairWithSrq(IID_IND2QueuePair, side.receive_cq.get(), side.initiator_cq.get(), side.srq.get(), context,
                                                                    setup.initiator_depth, setup.initiator_sge, setup.inline_size, pair.face.put()),
                    "CreateQueuePairWithSrq");
  } else {
    pair.face = side.endpoint->create_qp(*side.receive_cq, *side.initiator_cq,
                                         {setup.receive_depth, setup.initiator_depth, setup.receive_sge, setup.initiator_sge, setup.inline_size, context});
  }
}

void VectorSession::watch_events(std::size_t host) {
  auto& side = sides_[host];
  auto& kernel = side.endpoint->kernel();
  const auto recorder = [&](std::function<void(const hw::Eqe&)> pass_on) { return recorders_.emplace_back(std::make_shared<Recorder>(side.events, std::move(pass_on))); };
  for (auto& pair : side.pairs) {
    auto& core = pair.core();
    kernel.subscribe_qp(core.qpn(), recorder([&core](const hw::Eqe& eqe) { core.on_event(eqe); }));
  }
  for (auto* cq : {side.initiator_cq.get(), side.receive_cq.get()}) {
    if (cq == nullptr) continue;
    auto& object = static_cast<nd2::CompletionQueue&>(*cq);
    kernel.subscribe_cq(object.core()->cqn(), recorder([&object](const hw::Eqe& eqe) { object.on_event(eqe); }));
  }
  if (side.srq) {
    auto& object = static_cast<nd2::SharedReceiveQueue&>(*side.srq);
    kernel.subscribe_srq(object.core()->srqn(), recorder([&object](const hw::Eqe& eqe) { object.on_event(eqe); }));
  }
  kernel.subscribe_device(recorder({}));
}

/// What each queue pair needs is known in advance, so that `modify` can do it, too.
void VectorSession::connect(const VectorSetup& setup) {
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    auto& side = sides_[host];
    auto& peer = sides_[1 - host];
    for (std::size_t i = 0; i < side.pairs.size(); ++i) {
      auto& connection = side.pairs[i].connection;
      connection = setup.type == hw::QpType::kUd ? datagram_attributes(*side.endpoint, setup.qkey, setup.mtu)
                                                 : connection_to(*side.endpoint, *peer.endpoint, peer.pairs[i].core().qpn(), parameters_);
      connection.path.pkey = setup.pkey;
      connection.path.traffic_class = setup.traffic_class;
      connection.path.hop_limit = setup.hop_limit;
      connection.path.flow_label = setup.flow_label;
      if (setup.flow_label != 0) connection.path.udp_source_port = 0;  // from the flow label
      connection.send_psn = setup.first_psn ? *setup.first_psn : side.endpoint->kernel().random_psn();
      numbers_.hosts[host].push_back({.qpn = side.pairs[i].core().qpn(), .first_psn = connection.send_psn});
    }
  }
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    for (std::size_t i = 0; i < setup.queue_pairs; ++i) sides_[host].pairs[i].connection.receive_psn = numbers_.hosts[1 - host][i].first_psn;
  }
  if (!setup.connected) return;
  const auto all = [&](const char* what, const std::function<Result<void>(Pair&)>& change) {
    for (auto& side : sides_) {
      for (auto& pair : side.pairs) {
        if (const auto done = change(pair); !done) throw VectorFailure(fmt::format("{} of a queue pair: {}", what, describe(done.error())));
      }
    }
  };
  all("RTR", [](Pair& pair) { return pair.core().to_ready(pair.connection); });
  all("RTS", [](Pair& pair) { return pair.core().to_connected(pair.connection); });
}

void VectorSession::modify(const VectorStep& step) {
  auto& own = pair(step);
  const auto next = static_cast<hw::QpState>(*step.value);
  if (step.attributes.empty()) return expect_status(step, change_state(own, next, step.notify));
  auto wanted = own.connection;
  const auto mask = apply(step.attributes, wanted);
  const auto done = own.core().kernel_qp().modify(next, mask, wanted);
  if (done) own.connection = wanted;
  expect_status(step, control_status(done));
}

HRESULT VectorSession::change_state(Pair& pair, hw::QpState next, bool notify) {
  auto& core = pair.core();
  switch (next) {
    case hw::QpState::kRtr: return control_status(core.to_ready(pair.connection));
    case hw::QpState::kRts: return control_status(core.state() == umd::QueuePair::State::kReady ? core.to_connected(pair.connection) : core.resume());
    case hw::QpState::kSqd: return control_status(core.drain(notify));
    default: return control_status(core.kernel_qp().modify(next, 0, pair.connection));
  }
}

std::string VectorSession::describe_event(std::size_t host, const hw::Eqe& eqe) const {
  const auto type = static_cast<hw::EqeType>(eqe.event_type);
  const auto& qps = numbers_.hosts[host];
  const auto qp = std::find_if(qps.begin(), qps.end(), [&](const auto& one) { return one.qpn == eqe.number; });
  std::string text = fmt::format("{} of {:#x}", event_name(type), eqe.number);
  if (qp != qps.end()) text += fmt::format(" (queue pair {})", qp - qps.begin() + 1);
  if (eqe.detail != 0) text += fmt::format(", cause {}", cqe_status_name(static_cast<hw::CqeStatus>(eqe.detail)));
  return text;
}

void VectorSession::event(const VectorStep& step) {
  auto& of = side(step);
  const auto type = static_cast<hw::EqeType>(*step.value);
  if (!of.endpoint->kernel().wait_until([&] { return !of.events.empty(); }, step.within_ns)) {
    throw VectorFailure(fmt::format("{}: no event, expected {}", step.text, event_name(type)));
  }
  const hw::Eqe eqe = of.events.front();
  of.events.pop_front();
  std::uint32_t number = 1;  // the port
  if (type == hw::EqeType::kCqError) number = core_cq(step).cqn();
  else if (type == hw::EqeType::kSrqLimit || type == hw::EqeType::kSrqError) number = of.srq ? static_cast<nd2::SharedReceiveQueue&>(*of.srq).core()->srqn() : 0;
  else if (type != hw::EqeType::kPortActive && type != hw::EqeType::kPortError && type != hw::EqeType::kDeviceFatal) number = pair(step).core().qpn();
  const bool right_cause = !step.cause || eqe.detail == static_cast<std::uint32_t>(*step.cause);
  if (eqe.event_type != static_cast<std::uint8_t>(type) || eqe.number != number || !right_cause) {
    throw VectorFailure(fmt::format("{}: the event is {}, expected {} of {:#x}{}", step.text, describe_event(step.host, eqe), event_name(type), number,
                                    step.cause ? ", cause " + cqe_status_name(*step.cause) : ""));
  }
}

void VectorSession::no_event(const VectorStep& step) {
  auto& of = side(step);
  of.endpoint->kernel().wait_until([&] { return !of.events.empty(); }, step.within_ns);
  if (!of.events.empty()) throw VectorFailure(fmt::format("{}: an event came: {}", step.text, describe_event(step.host, of.events.front())));
}

void VectorSession::resize_cq(const VectorStep& step) { expect_status(step, cq(step).Resize(static_cast<ULONG>(step.size))); }

/// For requests that are not there.
void VectorSession::srq_doorbell(const VectorStep& step) {
  auto& core = *static_cast<nd2::SharedReceiveQueue&>(*side(step).srq).core();
  core.process()->ring(hw::uar::kSrqDoorbell, hw::SrqDoorbell{.srqn = core.srqn(), .producer_index = static_cast<std::uint16_t>(step.size)}.word());
}

/// Maps the pages of a range of a region and registers them under a name of their own.
void VectorSession::fast_register(const VectorStep& step) {
  auto& endpoint = *side(step).endpoint;
  const auto& from = region(step.name);
  if (step.length == 0 || step.offset + step.length > from.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  auto& entry = regions_[step.fast_region];
  if (!entry.fast_region) {
    entry.host = step.host;
    entry.fast_region = take_or_fail(endpoint.kernel().create_fast_mr({.pd = side(step).process->pd(), .max_pages = static_cast<std::uint32_t>(step.size),
                                                                       .remote_access = step.remote_access, .window_bind = false}), step.text);
    entry.memory = from.memory + step.offset;
    entry.size = step.length;
    entry.pages = take_or_fail(endpoint.device().map_pages(entry.memory, entry.size, true), step.text);
  }
  if (entry.memory != from.memory + step.offset || entry.size != step.length) throw VectorFailure(fmt::format("{}: \"{}\" has another range", step.text, step.fast_region));
  const std::uint64_t address = reinterpret_cast<std::uint64_t>(entry.memory);
  const std::uint64_t base = step.value.value_or(address);
  const kmd::FastRange range{.pages = entry.pages, .first_offset = static_cast<std::uint32_t>(address % kPageBytes), .length = step.length, .base = base,
                             .local_write = (step.flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0, .remote_read = (step.flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                             .remote_write = (step.flags & kRemoteWriteBit) != 0};
  const auto posted = umd::post_fast_register(pair(step).core(), *entry.fast_region, range, {.id = step.context});
  if (posted) entry.base = base;
  entry.local_token = entry.fast_region->key();
  entry.remote_token = __builtin_bswap32(entry.local_token);
  expect_status(step, posting_status(posted));
}

void VectorSession::end_registration(const VectorStep& step) {
  const auto posted = umd::post_invalidate(pair(step).core(), region(step.fast_region).local_token, {.id = step.context});
  expect_status(step, posting_status(posted));
}

void VectorSession::query_adapter(const VectorStep& step) {
  ND2_ADAPTER_INFO info{};
  info.InfoVersion = static_cast<ULONG>(*step.value);
  ULONG size = sizeof info;
  expect_status(step, side(step).endpoint->adapter().Query(&info, &size));
  if (step.status == ND_SUCCESS && info.InfoVersion != *step.value) throw VectorFailure(fmt::format("{}: version {:#x} came back", step.text, info.InfoVersion));
}

std::vector<VectorPacket> VectorSession::resolved(std::vector<VectorPacket> packets) const {
  for (auto& packet : packets) {
    // Remote tokens are in network order (decisions 25): on the wire stands what stands in memory.
    if (packet.rkey_of.empty()) continue;
    const auto window = windows_.find(packet.rkey_of);
    packet.fields["rkey"] = __builtin_bswap32(window != windows_.end() ? window->second.token : region(packet.rkey_of).remote_token);
  }
  return packets;
}

}  // namespace rnic::testbench
