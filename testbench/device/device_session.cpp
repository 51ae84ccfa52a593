// The objects of a DeviceSession: how they are made and connected, and the steps about their life.
#include "testbench/device/device_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

#include "driver/nd2/ndspi.h"
#include "testbench/device/device_names.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint8_t kPort = 1;
constexpr int kMostGids = 64;
constexpr std::size_t kPageBytes = 4096;
/// 67 ms. A vector of this grade spoils no frame: its time-outs are for a peer that is gone, and one that is over
/// before an answer can come says nothing of the device.
constexpr std::uint8_t kLeastAckTimeout = 14;
/// 41 ms (code 0 is longer than all others): a Receive that a vector posts in time is so by the clock on the wall, too.
constexpr std::uint8_t kLeastRnrTimer = 24;

/// What a function of libibverbs made.
template <typename T>
std::unique_ptr<T, int (*)(T*)> made(T* object, int (*destroy)(T*), const char* function) {
  const int error = errno;
  if (object != nullptr) return {object, destroy};
  if (error == EOPNOTSUPP || error == ENOSYS) throw DeviceLacks(fmt::format("{} is not supported", function));
  throw DeviceDisagrees(fmt::format("{}: {}", function, std::strerror(error)));
}

ibv_mtu mtu_code(std::uint32_t bytes) {
  switch (bytes) {
    case 256: return IBV_MTU_256;
    case 512: return IBV_MTU_512;
    case 1024: return IBV_MTU_1024;
    case 2048: return IBV_MTU_2048;
    default: return IBV_MTU_4096;
  }
}

ibv_qp_type qp_type(hw::QpType type) {
  return type == hw::QpType::kRc ? IBV_QPT_RC : type == hw::QpType::kUc ? IBV_QPT_UC : IBV_QPT_UD;
}

bool is_ipv4(const ibv_gid& gid) {
  constexpr std::uint8_t kMapped[] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(std::begin(kMapped), std::end(kMapped), gid.raw);
}

bool is_link_local(const ibv_gid& gid) { return gid.raw[0] == 0xfe && gid.raw[1] == 0x80; }

/// What the kernel calls the kind of a GID; empty where it has no such file (a device that is not the kernel's).
std::string gid_kind(const std::string& device, int index) {
  std::string kind;
  const auto file = fmt::format("/sys/class/infiniband/{}/ports/{}/gid_attrs/types/{}", device, kPort, index);
  if (std::FILE* const from = std::fopen(file.c_str(), "r")) {
    std::array<char, 64> line{};
    if (std::fgets(line.data(), static_cast<int>(line.size()), from) != nullptr) kind = line.data();
    std::fclose(from);
  }
  return kind;
}

}  // namespace

DeviceSession::DeviceSession(const std::array<std::string, 2>& devices, const Vector& vector, DeviceTimes times)
    : verbs_(VerbsLibrary::get()), vector_(vector), setup_(vector.setup), times_(times) {
  with_windows_ = std::any_of(vector.steps.begin(), vector.steps.end(),
                              [](const VectorStep& step) { return step.kind == StepKind::kBind; });
  for (std::size_t host = 0; host < sides_.size(); ++host) add_side(host, devices.at(host));
  for (const auto& spec : setup_.regions) add_region(spec);
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    for (std::size_t i = 0; i < setup_.queue_pairs; ++i) {
      const auto& first = setup_.hosts.at(host).first_psn;
      first_psn_.at(host).push_back(first ? *first : static_cast<std::uint32_t>(random_() & 0xffffff));
      make_pair(host, i);
    }
  }
  connect();
}

DeviceSession::~DeviceSession() {
  for (auto& side : sides_) side.pairs.clear();
}

void DeviceSession::add_side(std::size_t host, const std::string& device) {
  auto& side = sides_.at(host);
  const auto& own = setup_.hosts.at(host);
  side.context = {verbs_.open(device), verbs_.close_device};
  if (verbs_.query_device(side.context.get(), &side.limits) != 0)
    throw DeviceError(fmt::format("{}: ibv_query_device fails", device));
  ibv_port_attr port{};
  if (verbs_.query_port(side.context.get(), kPort, reinterpret_cast<_compat_ibv_port_attr*>(&port)) != 0 ||
      port.state != IBV_PORT_ACTIVE)
    throw DeviceError(fmt::format("{}: port {} is not active", device, kPort));
  side.active_mtu = port.active_mtu;
  find_gids(side, device);
  if (side.gid_index.at(setup_.ipv6 ? 1 : 0) < 0)
    throw DeviceLacks(fmt::format("no RoCE v2 GID of {}", setup_.ipv6 ? "an IPv6 link-local address" : "IPv4"));
  auto* const context = side.context.get();
  side.pd = made(verbs_.alloc_pd(context), verbs_.dealloc_pd, "ibv_alloc_pd");
  const auto queue = [&] {
    return made(verbs_.create_cq(context, static_cast<int>(own.cq_depth), nullptr, nullptr, 0), verbs_.destroy_cq,
                "ibv_create_cq");
  };
  side.initiator_cq = queue();
  if (!setup_.one_cq) side.receive_cq = queue();
  // Events are asked for, not waited for.
  if (!set_nonblocking(context->async_fd)) throw DeviceError(fmt::format("{}: no asynchronous events", device));
  if (!setup_.srq) return;
  if (side.limits.max_srq == 0) throw DeviceLacks("no shared receive queues");
  ibv_srq_init_attr srq{};
  srq.attr = {.max_wr = setup_.srq->depth, .max_sge = setup_.srq->sge, .srq_limit = 0};
  side.srq = made(verbs_.create_srq(side.pd.get(), &srq), verbs_.destroy_srq, "ibv_create_srq");
  ibv_srq_attr limit{.max_wr = 0, .max_sge = 0, .srq_limit = setup_.srq->threshold};
  if (limit.srq_limit != 0 && verbs_.modify_srq(side.srq.get(), &limit, IBV_SRQ_LIMIT) != 0)
    throw DeviceDisagrees("ibv_modify_srq refuses the limit of the setup");
}

void DeviceSession::find_gids(Side& side, const std::string& device) {
  for (int i = 0; i < kMostGids; ++i) {
    ibv_gid gid{};
    if (verbs_.query_gid(side.context.get(), kPort, i, &gid) != 0) return;
    const std::string kind = gid_kind(device, i);
    if (!kind.empty() && kind.find("RoCE v2") == std::string::npos) continue;
    const std::size_t which = is_ipv4(gid) ? 0 : 1;
    if ((which == 1 && !is_link_local(gid)) || side.gid_index.at(which) >= 0) continue;
    side.gid.at(which) = gid;
    side.gid_index.at(which) = i;
  }
}

void DeviceSession::add_region(const VectorRegion& spec) {
  auto& side = sides_.at(spec.host);
  Region region;
  region.host = spec.host;
  region.size = spec.size;
  region.pattern = region_pattern(spec.host, spec.name);
  if (spec.memory_of.empty()) {
    const std::size_t bytes = (spec.size + kPageBytes) / kPageBytes * kPageBytes;
    region.memory = {static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, bytes)), std::free};
    for (std::uint64_t i = 0; i < spec.size; ++i)
      region.memory.get()[i] = spec.pattern ? pattern_byte(region.pattern, i) : 0;
  } else {
    region.memory = regions_.at(spec.memory_of).memory;
    region.pattern = regions_.at(spec.memory_of).pattern;
  }
  if (spec.remote_atomic && side.limits.atomic_cap == IBV_ATOMIC_NONE) throw DeviceLacks("no atomics");
  if (spec.other_domain && !side.other_pd)
    side.other_pd = made(verbs_.alloc_pd(side.context.get()), verbs_.dealloc_pd, "ibv_alloc_pd");
  register_memory(region, spec.flags, spec.remote_atomic, spec.other_domain ? side.other_pd.get() : side.pd.get());
  regions_.emplace(spec.name, std::move(region));
}

void DeviceSession::register_memory(Region& region, std::uint32_t flags, bool atomic, ibv_pd* pd) {
  int access = 0;
  if ((flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0 || atomic) access |= IBV_ACCESS_LOCAL_WRITE;
  if ((flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0) access |= IBV_ACCESS_REMOTE_READ;
  if ((flags & ND_MR_FLAG_ALLOW_REMOTE_WRITE & ~ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0) access |= IBV_ACCESS_REMOTE_WRITE;
  if (atomic) access |= IBV_ACCESS_REMOTE_ATOMIC;
  if (with_windows_) access |= IBV_ACCESS_MW_BIND;
  region.mr = made(verbs_.reg_mr(pd, region.memory.get(), region.size, access), verbs_.dereg_mr, "ibv_reg_mr");
  region.local_key = region.mr->lkey;
  region.remote_key = region.mr->rkey;
}

DeviceSession::Attributes DeviceSession::attributes_of(std::size_t host, std::size_t index) const {
  const auto& own = setup_.hosts.at(host);
  const std::uint8_t ack_timeout = own.ack_timeout == 0 ? std::uint8_t{0} : std::max(own.ack_timeout, kLeastAckTimeout);
  const std::uint8_t rnr_timer = own.min_rnr_timer == 0 ? std::uint8_t{0} : std::max(own.min_rnr_timer, kLeastRnrTimer);
  return {.ack_timeout = ack_timeout,
          .retry_count = own.retry_count,
          .rnr_retry = own.rnr_retry,
          .min_rnr_timer = rnr_timer,
          .traffic_class = own.traffic_class,
          .hop_limit = own.hop_limit,
          .flow_label = own.flow_label,
          .qkey = own.qkey,
          .send_psn = first_psn_.at(host).at(index),
          .receive_psn = first_psn_.at(1 - host).size() > index ? first_psn_.at(1 - host).at(index) : 0,
          .remote_read = own.remote_read,
          .remote_write = own.remote_write,
          .remote_atomic = own.remote_atomic};
}

/// In INIT.
void DeviceSession::make_pair(std::size_t host, std::size_t index) {
  auto& side = sides_.at(host);
  const auto& own = setup_.hosts.at(host);
  ibv_qp_init_attr init{};
  init.send_cq = side.initiator_cq.get();
  init.recv_cq = side.receive_cq ? side.receive_cq.get() : side.initiator_cq.get();
  init.srq = side.srq.get();
  init.qp_type = qp_type(setup_.type);
  init.cap.max_send_wr = own.initiator_depth;
  init.cap.max_send_sge = own.initiator_sge;
  init.cap.max_inline_data = own.inline_size;
  if (!side.srq) {
    init.cap.max_recv_wr = own.receive_depth;
    init.cap.max_recv_sge = own.receive_sge;
  }
  Pair pair;
  pair.qp = made(verbs_.create_qp(side.pd.get(), &init), verbs_.destroy_qp, "ibv_create_qp");
  pair.qpn = pair.qp->qp_num;
  if (side.pairs.size() <= index) side.pairs.resize(index + 1);
  side.pairs.at(index) = std::move(pair);
  side.pairs.at(index).now = attributes_of(host, index);
  if (const int error = change_state(host, index, IBV_QPS_INIT); error != 0)
    throw DeviceDisagrees(fmt::format("ibv_modify_qp to INIT: {}", std::strerror(error)));
}

void DeviceSession::connect() {
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    for (std::size_t i = 0; i < setup_.queue_pairs; ++i) sides_.at(host).pairs.at(i).now = attributes_of(host, i);
  }
  if (!setup_.connected) return;
  for (const auto& [next, name] : {std::pair{IBV_QPS_RTR, "RTR"}, std::pair{IBV_QPS_RTS, "RTS"}}) {
    for (std::size_t host = 0; host < sides_.size(); ++host) {
      for (std::size_t i = 0; i < setup_.queue_pairs; ++i) {
        if (const int error = change_state(host, i, next); error != 0)
          throw DeviceDisagrees(fmt::format("ibv_modify_qp to {}: {}", name, std::strerror(error)));
      }
    }
  }
}

/// `more`: what is named besides what the transition needs (the manual's table); then nothing else goes with the state.
int DeviceSession::change_state(std::size_t host, std::size_t index, ibv_qp_state next, int more, bool notify) {
  auto& side = sides_.at(host);
  auto& pair = side.pairs.at(index);
  const auto& own = setup_.hosts.at(host);
  const bool rc = setup_.type == hw::QpType::kRc, ud = setup_.type == hw::QpType::kUd;
  const auto& now = pair.now;
  ibv_qp_attr attr{};
  attr.qp_state = next;
  attr.port_num = kPort;
  attr.qkey = now.qkey;
  if (now.remote_read) attr.qp_access_flags |= IBV_ACCESS_REMOTE_READ;
  if (now.remote_write) attr.qp_access_flags |= IBV_ACCESS_REMOTE_WRITE;
  if (now.remote_atomic && rc) attr.qp_access_flags |= IBV_ACCESS_REMOTE_ATOMIC;
  const std::size_t which = setup_.ipv6 ? 1 : 0;
  const auto& peer = sides_.at(1 - host);
  attr.ah_attr.grh = {.dgid = peer.gid.at(which),
                      .flow_label = now.flow_label,
                      .sgid_index = static_cast<std::uint8_t>(side.gid_index.at(which)),
                      .hop_limit = now.hop_limit,
                      .traffic_class = now.traffic_class};
  attr.ah_attr.is_global = 1;
  attr.ah_attr.port_num = kPort;
  attr.path_mtu = std::min(mtu_code(own.mtu), side.active_mtu);
  attr.dest_qp_num = peer.pairs.size() > index ? peer.pairs.at(index).qpn : 0;
  attr.rq_psn = now.receive_psn;
  attr.sq_psn = now.send_psn;
  attr.max_dest_rd_atomic = static_cast<std::uint8_t>(own.responder_reads);
  attr.max_rd_atomic = static_cast<std::uint8_t>(own.initiator_reads);
  attr.min_rnr_timer = now.min_rnr_timer;
  attr.timeout = now.ack_timeout;
  attr.retry_cnt = now.retry_count;
  attr.rnr_retry = now.rnr_retry;
  attr.en_sqd_async_notify = notify;
  int mask = IBV_QP_STATE | more;
  if (more == 0 && next == IBV_QPS_INIT) {
    mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT | (ud ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS);
  } else if (more == 0 && next == IBV_QPS_RTR && !ud) {
    mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
    if (rc) mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
  } else if (more == 0 && next == IBV_QPS_RTS && verbs_attributes(verbs_, pair.qp.get()).qp_state == IBV_QPS_RTR) {
    mask |= IBV_QP_SQ_PSN;
    if (rc) mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
  } else if (next == IBV_QPS_SQD && notify) {
    mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
  }
  return verbs_.modify_qp(pair.qp.get(), &attr, mask);
}

void DeviceSession::modify(const VectorStep& step) {
  auto& now = pair(step).now;
  const auto before = now;
  int mask = 0;
  const auto set = [&](const char* name, int bit, auto& field) {
    const auto it = step.attributes.find(name);
    if (it == step.attributes.end()) return;
    field = static_cast<std::remove_reference_t<decltype(field)>>(it->second);
    mask |= bit;
  };
  set("ack_timeout", IBV_QP_TIMEOUT, now.ack_timeout);
  set("retry_count", IBV_QP_RETRY_CNT, now.retry_count);
  set("rnr_retry", IBV_QP_RNR_RETRY, now.rnr_retry);
  set("min_rnr_timer", IBV_QP_MIN_RNR_TIMER, now.min_rnr_timer);
  set("traffic_class", IBV_QP_AV, now.traffic_class);
  set("hop_limit", IBV_QP_AV, now.hop_limit);
  set("flow_label", IBV_QP_AV, now.flow_label);
  set("qkey", IBV_QP_QKEY, now.qkey);
  set("send_psn", IBV_QP_SQ_PSN, now.send_psn);
  set("remote_read", IBV_QP_ACCESS_FLAGS, now.remote_read);
  set("remote_write", IBV_QP_ACCESS_FLAGS, now.remote_write);
  set("remote_atomic", IBV_QP_ACCESS_FLAGS, now.remote_atomic);
  const auto next = verbs_state(static_cast<hw::QpState>(*step.value));
  const int error = change_state(step.host, step.qp, next, mask, step.notify);
  if (error != 0) now = before;
  expect_call(step, "ibv_modify_qp", error);
}

void DeviceSession::run(const VectorStep& step) {
  switch (step.kind) {
    case StepKind::kSend:
    case StepKind::kReceive:
    case StepKind::kWrite:
    case StepKind::kRead:
    case StepKind::kCompareSwap:
    case StepKind::kFetchAdd: return post(step);
    case StepKind::kComplete: return complete(step);
    case StepKind::kNoCompletion: return no_completion(step);
    case StepKind::kMemory: return memory(step);
    case StepKind::kStore: return store(step);
    case StepKind::kWait:  // a device may be slower than the clock on the wall
      return std::this_thread::sleep_for(
          std::max<std::chrono::nanoseconds>(std::chrono::nanoseconds(step.within_ns), times_.settle));
    case StepKind::kState: return state(step);
    case StepKind::kBind: return bind(step);
    case StepKind::kInvalidate: return invalidate(step);
    case StepKind::kEvent: return event(step);
    case StepKind::kNoEvent: return no_event(step);
    case StepKind::kModify: return modify(step);
    case StepKind::kRegister: return register_region(step);
    case StepKind::kDeregister: {
      auto& region = regions_.at(step.name);
      return expect_call(step, "ibv_dereg_mr", verbs_.dereg_mr(region.mr.release()));
    }
    case StepKind::kReset:
      expect_call(step, "ibv_modify_qp to RESET", change_state(step.host, step.qp, IBV_QPS_RESET));
      pair(step).now = attributes_of(step.host, step.qp);
      return expect_call(step, "ibv_modify_qp to INIT", change_state(step.host, step.qp, IBV_QPS_INIT));
    case StepKind::kAttach:
    case StepKind::kDetach: return change_group(step);
    case StepKind::kResizeCq: return resize_cq(step);
    case StepKind::kModifySrq: return modify_srq(step);
    case StepKind::kCounter: return;  // of this NIC; a device has none of that name
    default: throw DeviceDisagrees(fmt::format("{}: no step of the grade verbs", step.text));
  }
}

void DeviceSession::register_region(const VectorStep& step) {
  constexpr std::uint64_t kMost = 1 << 20;
  auto& region = regions_[step.name];
  region.host = step.host;
  region.pattern = region_pattern(step.host, step.name);
  if (!region.memory) {
    region.size = std::clamp<std::uint64_t>(step.size, 1, kMost);
    const std::size_t bytes = (region.size + kPageBytes) / kPageBytes * kPageBytes;
    region.memory = {static_cast<std::uint8_t*>(std::aligned_alloc(kPageBytes, bytes)), std::free};
    std::memset(region.memory.get(), 0, bytes);
  }
  register_memory(region, step.flags, false, side(step).pd.get());
}

void DeviceSession::change_group(const VectorStep& step) {
  if (side(step).limits.max_mcast_grp == 0) throw DeviceLacks("no multicast");
  ibv_gid gid{};
  std::copy(step.to.group->gid.begin(), step.to.group->gid.end(), gid.raw);
  const bool attach = step.kind == StepKind::kAttach;
  const int error = (attach ? verbs_.attach_mcast : verbs_.detach_mcast)(pair(step).qp.get(), &gid, 0);
  expect_call(step, attach ? "ibv_attach_mcast" : "ibv_detach_mcast", error < 0 ? errno : error);
}

void DeviceSession::resize_cq(const VectorStep& step) {
  const int error = verbs_.resize_cq(cq(step), static_cast<int>(step.size));
  if (error == EOPNOTSUPP || error == ENOSYS) throw DeviceLacks("no ibv_resize_cq");
  expect_call(step, "ibv_resize_cq", error);
}

void DeviceSession::modify_srq(const VectorStep& step) {
  const auto limit = static_cast<std::uint32_t>(*step.value), depth = static_cast<std::uint32_t>(step.size);
  ibv_srq_attr attr{.max_wr = depth, .max_sge = setup_.srq->sge, .srq_limit = limit};
  int mask = 0;
  if (depth != 0) mask |= IBV_SRQ_MAX_WR;
  if (limit != 0) mask |= IBV_SRQ_LIMIT;
  if (depth != 0 && (side(step).limits.device_cap_flags & IBV_DEVICE_SRQ_RESIZE) == 0)
    throw DeviceLacks("shared receive queues of one size");
  expect_call(step, "ibv_modify_srq", verbs_.modify_srq(side(step).srq.get(), &attr, mask));
}

void DeviceSession::state(const VectorStep& step) {
  const auto wanted = verbs_state(static_cast<hw::QpState>(*step.value));
  ibv_qp_attr seen{};
  // It follows what happens on the wire, not the call.
  const auto as_wanted = [&] {
    seen = verbs_attributes(verbs_, pair(step).qp.get());
    return seen.qp_state == wanted && (!step.draining || (seen.sq_draining != 0) == *step.draining);
  };
  if (wait_until(as_wanted, times_.patience / 10)) return;
  throw DeviceDisagrees(fmt::format("{}: the state is {}{}, expected {}{}", step.text, verbs_state_name(seen.qp_state),
                                    seen.sq_draining != 0 ? ", draining" : "", verbs_state_name(wanted),
                                    step.draining.value_or(false) ? ", draining" : ""));
}

void DeviceSession::expect_call(const VectorStep& step, const char* function, int error) const {
  const bool refused = step.status != ND_SUCCESS;
  if ((error != 0) == refused) return;
  throw DeviceDisagrees(fmt::format("{}: {} {}, expected {}", step.text, function,
                                    error != 0 ? fmt::format("fails: {}", std::strerror(error)) : "succeeds",
                                    refused ? "a refusal" : "success"));
}

bool DeviceSession::wait_until(const std::function<bool()>& done, std::chrono::nanoseconds limit) const {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + limit;
  while (!done()) {
    if (Clock::now() >= end) return done();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
  return true;
}

ibv_cq* DeviceSession::cq(const VectorStep& step) {
  auto& of = side(step);
  return step.queue == VectorQueue::kReceive && of.receive_cq ? of.receive_cq.get() : of.initiator_cq.get();
}

}  // namespace rnic::testbench
