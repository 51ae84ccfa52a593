#include "tests/driver/fake_device.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace rnic::test {
namespace {

constexpr std::uint64_t kPageBytes = hw::kUarPageBytes;

std::uint64_t header(std::uint16_t type, std::uint32_t next) {
  return hw::RegIdentityHeader{.block_type = type, .version = hw::kBlockVersion, .next_offset = next}.word();
}

thread_local unsigned g_inside = 0;

struct Inside {
  Inside() { ++g_inside; }
  ~Inside() { --g_inside; }
};

/// The byte with the phase last (rule 5 of Device).
void write_entry(std::uint8_t* entry, const std::array<std::uint8_t, 64>& raw) {
  std::memcpy(entry, raw.data(), 63);
  __atomic_store_n(entry + 63, raw[63], __ATOMIC_RELEASE);
}

template <typename T>
T body_of(const hw::AdminCommand& command) {
  return T::decode(std::span<const std::uint8_t, 120>(command.body));
}

}  // namespace

FakeDevice::FakeDevice(std::uint64_t seed) : random_(seed) {
  power_on();
  capabilities = {.log_max_qp = hw::kQpIndexBits,
                  .log_max_cq = hw::kCqIndexBits,
                  .log_max_eq = hw::kEqIndexBits,
                  .log_max_mr = hw::kMptIndexBits,
                  .log_max_queue_depth = hw::kMaxLogQueueDepth,
                  .log_max_cq_depth = hw::kMaxLogCqDepth,
                  .log_max_eq_depth = hw::kMaxLogEqDepth,
                  .max_sge = hw::kMaxSge,
                  .max_inline = hw::kMaxInlineBytes,
                  .max_rd_atomic = hw::kMaxReadsOutstanding,
                  .max_mtu = 5,
                  .uar_count = 127,
                  .msix_vectors = hw::kMsixVectors,
                  .max_message = hw::kMaxMessageBytes,
                  .clock_mhz = 250,
                  .max_fast_pages = hw::kMaxFastPages,
                  .log_max_mw = hw::kMptIndexBits,
                  .window_type1 = 1,
                  .window_type2 = 1,
                  .reserved0 = 0,
                  .log_max_srq = hw::kSrqIndexBits,
                  .log_max_srq_depth = hw::kMaxLogQueueDepth,
                  .max_multicast_groups = hw::kMulticastGroups,
                  .list_lines = hw::kListLines,
                  .reserved = {}};
}

void FakeDevice::power_on() {
  registers.clear();
  registers[hw::reg::kIdentityHeader] = header(hw::kBlockTypeIdentity, hw::reg::kAdminHeader);
  registers[hw::reg::kIdentity] =
      hw::RegIdentity{.magic = hw::kDeviceMagic, .vendor_id = 0x1AF4, .device_id = 0x0E1C}.word();
  registers[hw::reg::kDeviceStatus] = hw::RegDeviceStatus{.ready = 1, .quiet = 1}.word();
  registers[hw::reg::kAdminHeader] = header(hw::kBlockTypeAdmin, hw::reg::kPortHeader);
  registers[hw::reg::kPortHeader] = header(hw::kBlockTypePort, hw::reg::kMsixHeader);
  registers[hw::reg::kMsixHeader] = header(hw::kBlockTypeMsix, hw::reg::kCountersHeader);
  registers[hw::reg::kCountersHeader] = header(hw::kBlockTypeCounters, 0);
}

std::uint64_t FakeDevice::read64(std::uint64_t offset) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  return gone || taken_away ? ~0ULL : registers[offset];
}

void FakeDevice::write64(std::uint64_t offset, std::uint64_t value) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  if (offset >= kPageBytes) {
    doorbells.push_back({offset, value});
    doorbell(static_cast<std::uint32_t>(offset / kPageBytes), static_cast<std::uint32_t>(offset % kPageBytes), value);
    return;
  }
  registers[offset] = value;
  if (offset == hw::reg::kAdminConfig) admin_consumer_ = admin_producer_ = 0;
  if (offset == hw::reg::kAdminDoorbell) admin_producer_ = hw::RegAdminDoorbell::from_word(value).producer_index;
  const bool enabled = hw::RegDeviceControl::from_word(registers[hw::reg::kDeviceControl]).enable != 0;
  if (!admin_hangs && enabled && admin_consumer_ != admin_producer_) run_admin(admin_producer_);
}

void FakeDevice::write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  std::array<std::uint8_t, 64> copy{};
  std::copy(data.begin(), data.end(), copy.begin());
  window.push_back(copy);
  if (offset % kPageBytes != hw::uar::kWqeWindow) return;
  const auto control = hw::WqeControl::decode(data.first<16>());
  if (auto pair = pairs.find(control.qpn); pair != pairs.end()) {
    pair->second.sq_producer = static_cast<std::uint16_t>(control.wqe_index + 1);
    if (pair->second.state == hw::QpState::kErr) flush(control.qpn);
  }
}

void FakeDevice::doorbell(std::uint32_t uar, std::uint32_t offset, std::uint64_t value) {
  if (offset == hw::uar::kSendDoorbell) {
    const auto bell = hw::SendDoorbell::from_word(value);
    if (auto pair = pairs.find(bell.qpn); pair != pairs.end() && pair->second.create.uar == uar) {
      pair->second.sq_producer = bell.producer_index;
      if (pair->second.state == hw::QpState::kErr) flush(bell.qpn);
    }
  } else if (offset == hw::uar::kReceiveDoorbell) {
    const auto bell = hw::ReceiveDoorbell::from_word(value);
    if (auto pair = pairs.find(bell.qpn); pair != pairs.end() && pair->second.create.uar == uar) {
      pair->second.rq_producer = bell.producer_index;
      if (pair->second.state == hw::QpState::kErr) flush(bell.qpn);
    }
  } else if (offset == hw::uar::kSrqDoorbell) {
    const auto bell = hw::SrqDoorbell::from_word(value);
    if (auto srq = shared_queues.find(bell.srqn); srq != shared_queues.end() && srq->second.create.uar == uar) {
      srq->second.producer = bell.producer_index;
    }
  } else if (offset == hw::uar::kCqDoorbell) {
    const auto bell = hw::CqDoorbell::from_word(value);
    if (auto cq = completion_queues.find(bell.cqn); cq != completion_queues.end()) {
      cq->second.consumed = bell.consumer_index;
      cq->second.arm = std::max(cq->second.arm, static_cast<hw::CqArm>(bell.arm));
    }
  } else if (offset == hw::uar::kEqDoorbell && uar == hw::kKernelUar) {
    const auto bell = hw::EqDoorbell::from_word(value);
    event_queues[bell.eqn].consumed = bell.consumer_index;
  }
}

/// Vector control of the MSI-X table; entries are masked after a reset.
bool FakeDevice::masked(std::uint32_t vector) {
  const auto control = registers.find(hw::reg::kMsixTable + 16ULL * vector + 8);
  return control == registers.end() || (control->second >> 32 & 1) != 0;
}

void FakeDevice::run_admin(std::uint16_t producer) {
  const std::uint64_t commands_base = registers[hw::reg::kAdminCommandBase];
  const std::uint64_t completions_base = registers[hw::reg::kAdminCompletionBase];
  const unsigned log_depth = hw::RegAdminConfig::from_word(registers[hw::reg::kAdminConfig]).log_depth;
  for (; admin_consumer_ != producer;) {
    const unsigned slot = admin_consumer_ % (1U << log_depth);
    const auto command =
        hw::AdminCommand::decode(std::span<const std::uint8_t, 128>(pointer(commands_base) + slot * 128, 128));
    commands.push_back(command);
    hw::AdminCompletion completion;
    if (!next_status.empty()) {
      completion.status = static_cast<std::uint8_t>(next_status.front());
      next_status.pop_front();
    } else {
      completion.status = static_cast<std::uint8_t>(execute(command, completion.result));
    }
    completion.opcode = command.opcode;
    completion.command_id = command.command_id;
    completion.phase = (admin_consumer_ >> log_depth) % 2 == 0;
    ++admin_consumer_;
    completion.consumer_index = admin_consumer_;
    completion.encode(std::span<std::uint8_t, 64>(pointer(completions_base) + slot * 64, 64));
    const auto config = hw::RegAdminConfig::from_word(registers[hw::reg::kAdminConfig]);
    if (config.interrupt_enable != 0 && !masked(config.interrupt_vector)) raise(config.interrupt_vector);
  }
}

hw::AdminStatus FakeDevice::execute(const hw::AdminCommand& command, std::array<std::uint8_t, 48>& result) {
  const auto drop = [&](auto& objects) {
    return objects.erase(command.number) != 0 ? hw::AdminStatus::kSuccess : hw::AdminStatus::kBadNumber;
  };
  switch (static_cast<hw::AdminOpcode>(command.opcode)) {
    case hw::AdminOpcode::kQueryCapabilities: capabilities.encode(result); break;
    case hw::AdminOpcode::kCreateEq: {
      const auto body = body_of<hw::AdminCreateEq>(command);
      event_queues[command.number] = {.base = body.base, .log_depth = body.log_depth, .vector = body.msix_vector};
      break;
    }
    case hw::AdminOpcode::kDestroyEq: return drop(event_queues);
    case hw::AdminOpcode::kCreateCq: {
      const auto body = body_of<hw::AdminCreateCq>(command);
      if (completion_queues.contains(command.number)) return hw::AdminStatus::kExists;
      completion_queues[command.number] = {
          .base = body.base, .log_depth = body.log_depth, .eqn = body.eqn, .uar = body.uar};
      break;
    }
    case hw::AdminOpcode::kDestroyCq:
      for (const auto& [qpn, pair] : pairs) {
        if (pair.create.send_cqn == command.number || pair.create.receive_cqn == command.number) {
          return hw::AdminStatus::kInUse;
        }
      }
      return drop(completion_queues);
    case hw::AdminOpcode::kCreateSrq:
      if (shared_queues.contains(command.number)) return hw::AdminStatus::kExists;
      shared_queues[command.number].create = body_of<hw::AdminCreateSrq>(command);
      break;
    case hw::AdminOpcode::kModifySrq: {
      if (!shared_queues.contains(command.number)) return hw::AdminStatus::kBadNumber;
      auto& srq = shared_queues[command.number];
      srq.last_modify = body_of<hw::AdminModifySrq>(command);
      if (srq.last_modify.set_limit) srq.create.limit = srq.last_modify.limit;
      if (srq.last_modify.set_ring)
        srq.create.base = srq.last_modify.base, srq.create.log_depth = srq.last_modify.log_depth;
      break;
    }
    case hw::AdminOpcode::kDestroySrq:
      for (const auto& [qpn, pair] : pairs) {
        if (pair.create.use_srq && pair.create.srqn == command.number) return hw::AdminStatus::kInUse;
      }
      return drop(shared_queues);
    case hw::AdminOpcode::kModifyCq:
      if (!completion_queues.contains(command.number)) return hw::AdminStatus::kBadNumber;
      completion_queues.at(command.number).moderation = body_of<hw::AdminModifyCq>(command);
      break;
    case hw::AdminOpcode::kResizeCq: return resize(command.number, body_of<hw::AdminResizeCq>(command), result);
    case hw::AdminOpcode::kCreateMr:
    case hw::AdminOpcode::kCreateMw:
    case hw::AdminOpcode::kCreateFastMr: return create_key(command);
    case hw::AdminOpcode::kDestroyMr:
    case hw::AdminOpcode::kDestroyMw:
    case hw::AdminOpcode::kDestroyFastMr: return destroy_key(command);
    case hw::AdminOpcode::kQueryMr: return query_key(command.number, result);
    case hw::AdminOpcode::kCreateQp:
      if (pairs.contains(command.number)) return hw::AdminStatus::kExists;
      pairs[command.number].create = body_of<hw::AdminCreateQp>(command);
      break;
    case hw::AdminOpcode::kDestroyQp:
      if (!pairs.contains(command.number)) return hw::AdminStatus::kBadNumber;
      for (const auto& [group, members] : multicast_groups)
        if (members.contains(command.number)) return hw::AdminStatus::kInUse;
      flush(command.number);
      return drop(pairs);
    case hw::AdminOpcode::kAttachMulticast:
    case hw::AdminOpcode::kDetachMulticast: return change_group(command);
    case hw::AdminOpcode::kQueryQpCounters: {
      if (!pairs.contains(command.number)) return hw::AdminStatus::kBadNumber;
      const auto body = body_of<hw::AdminQueryQpCounters>(command);
      auto half = std::span(pairs.at(command.number).counters)
                      .subspan(body.upper ? hw::kQpCounters / 2 : 0, hw::kQpCounters / 2);
      for (std::size_t i = 0; i < half.size(); ++i) {
        for (std::size_t byte = 0; byte < 4; ++byte)
          result[4 * i + byte] = static_cast<std::uint8_t>(half[i] >> 8 * byte);
        if (body.clear) half[i] = 0;
      }
      break;
    }
    case hw::AdminOpcode::kQueryCq: {
      const auto found = completion_queues.find(command.number);
      if (found == completion_queues.end()) return hw::AdminStatus::kBadNumber;
      const Queue& queue = found->second;
      hw::AdminQueueState{.producer_index = queue.produced,
                          .log_depth = static_cast<std::uint8_t>(queue.log_depth),
                          .consumer_index = queue.consumed,
                          .arm = static_cast<std::uint8_t>(queue.arm)}
          .encode(result);
      break;
    }
    case hw::AdminOpcode::kQuerySrq: {
      const auto found = shared_queues.find(command.number);
      if (found == shared_queues.end()) return hw::AdminStatus::kBadNumber;
      hw::AdminSrqState{.producer_index = found->second.producer,
                        .head = found->second.head,
                        .limit = found->second.last_modify.limit}
          .encode(result);
      break;
    }
    case hw::AdminOpcode::kQueryQp: {
      const auto found = pairs.find(command.number);
      if (found == pairs.end()) return hw::AdminStatus::kBadNumber;
      const Pair& pair = found->second;
      const bool draining = pair.state == hw::QpState::kSqd && pair.sq_done != pair.sq_producer;
      hw::AdminQpState{.state = static_cast<std::uint8_t>(pair.state),
                       .sq_draining = draining,
                       .sq_producer = pair.sq_producer,
                       .sq_retired = pair.sq_done,
                       .rq_producer = pair.rq_producer,
                       .rq_head = pair.rq_done}
          .encode(result);
      break;
    }
    case hw::AdminOpcode::kModifyQp: return modify(command.number, body_of<hw::AdminModifyQp>(command));
    default: return hw::AdminStatus::kBadOpcode;
  }
  return hw::AdminStatus::kSuccess;
}

hw::AdminStatus FakeDevice::resize(std::uint32_t cqn, const hw::AdminResizeCq& body,
                                   std::array<std::uint8_t, 48>& result) {
  const auto found = completion_queues.find(cqn);
  if (found == completion_queues.end()) return hw::AdminStatus::kBadNumber;
  auto& cq = found->second;
  if (((cq.produced - cq.consumed) & 0xFFFFFF) > 1U << body.log_depth) return hw::AdminStatus::kTooSmall;
  cq.base = body.base;
  cq.log_depth = body.log_depth;
  cq.origin = cq.produced;
  hw::AdminQueueState state;
  state.producer_index = cq.produced & 0xFFFFFF;
  state.encode(result);
  return hw::AdminStatus::kSuccess;
}

hw::AdminStatus FakeDevice::change_group(const hw::AdminCommand& command) {
  const auto pair = pairs.find(command.number);
  if (pair == pairs.end()) return hw::AdminStatus::kBadNumber;
  if (pair->second.create.qp_type != static_cast<std::uint8_t>(hw::QpType::kUd)) return hw::AdminStatus::kBadParameter;
  const auto mgid = body_of<hw::AdminMulticast>(command).mgid;
  const auto group = multicast_groups.find(mgid);
  const bool attached = group != multicast_groups.end() && group->second.contains(command.number);
  if (static_cast<hw::AdminOpcode>(command.opcode) == hw::AdminOpcode::kAttachMulticast) {
    if (attached) return hw::AdminStatus::kExists;
    if (group == multicast_groups.end() && multicast_groups.size() == hw::kMulticastGroups)
      return hw::AdminStatus::kNoGroup;
    multicast_groups[mgid].insert(command.number);
    return hw::AdminStatus::kSuccess;
  }
  if (!attached) return hw::AdminStatus::kNotAttached;
  group->second.erase(command.number);
  if (group->second.empty()) multicast_groups.erase(group);
  return hw::AdminStatus::kSuccess;
}

hw::AdminStatus FakeDevice::create_key(const hw::AdminCommand& command) {
  const std::uint32_t index = command.number >> 8;
  if (windows.contains(index) || fast_regions.contains(index)) return hw::AdminStatus::kExists;
  const auto next = regions.lower_bound(index << 8);
  if (next != regions.end() && next->first >> 8 == index) return hw::AdminStatus::kExists;
  switch (static_cast<hw::AdminOpcode>(command.opcode)) {
    case hw::AdminOpcode::kCreateMw: windows[index] = body_of<hw::AdminCreateMw>(command); break;
    case hw::AdminOpcode::kCreateFastMr: fast_regions[index] = body_of<hw::AdminCreateFastMr>(command); break;
    default: regions[command.number] = body_of<hw::AdminCreateMr>(command);
  }
  return hw::AdminStatus::kSuccess;
}

hw::AdminStatus FakeDevice::destroy_key(const hw::AdminCommand& command) {
  const std::uint32_t index = command.number >> 8;
  const auto to_it = [&](const auto& entry) { return entry.second == index; };
  const bool in_use = std::any_of(bound.begin(), bound.end(), to_it);
  std::size_t erased = 0;
  switch (static_cast<hw::AdminOpcode>(command.opcode)) {
    case hw::AdminOpcode::kDestroyMw:
      erased = windows.erase(index);
      bound.erase(index);
      break;
    case hw::AdminOpcode::kDestroyFastMr:
      if (in_use) return hw::AdminStatus::kInUse;
      erased = fast_regions.erase(index);
      break;
    default:
      if (regions.contains(command.number) && in_use) return hw::AdminStatus::kInUse;
      erased = regions.erase(command.number);
  }
  return erased != 0 ? hw::AdminStatus::kSuccess : hw::AdminStatus::kBadNumber;
}

hw::AdminStatus FakeDevice::query_key(std::uint32_t key, std::array<std::uint8_t, 48>& result) {
  const std::uint32_t index = key >> 8;
  hw::AdminMrState state;
  state.tag = static_cast<std::uint8_t>(key);
  const auto windows_of = [&](const auto& entry) { return entry.second == index; };
  state.bound_windows = static_cast<std::uint16_t>(std::count_if(bound.begin(), bound.end(), windows_of));
  if (const auto region = regions.find(key); region != regions.end()) {
    state.mpt_type = static_cast<std::uint8_t>(hw::MptType::kRegion);
    state.va = region->second.va;
    state.length = region->second.length;
    state.pd = region->second.pd;
    state.window_bind = region->second.window_bind;
    state.valid = 1;
  } else if (const auto found = windows.find(index); found != windows.end()) {
    state.mpt_type = found->second.window_type;
    state.pd = found->second.pd;
    state.valid = bound.contains(index);
    if (bound.contains(index)) state.mr_index = bound.at(index);
  } else if (const auto fast = fast_regions.find(index); fast != fast_regions.end()) {
    state.mpt_type = static_cast<std::uint8_t>(hw::MptType::kFastRegion);
    state.pd = fast->second.pd;
    state.max_pages = static_cast<std::uint16_t>(fast->second.max_pages);
    state.remote_access = fast->second.remote_access;
    state.window_bind = fast->second.window_bind;
  } else {
    return hw::AdminStatus::kBadNumber;
  }
  state.encode(result);
  return hw::AdminStatus::kSuccess;
}

hw::AdminStatus FakeDevice::modify(std::uint32_t qpn, const hw::AdminModifyQp& body) {
  const auto found = pairs.find(qpn);
  if (found == pairs.end()) return hw::AdminStatus::kBadNumber;
  auto& pair = found->second;
  const auto next = static_cast<hw::QpState>(body.next_state);
  const bool any = next == hw::QpState::kErr || next == hw::QpState::kReset;
  // RTS to RTS and SQD; SQD to both; INIT to INIT; otherwise the next state of the life of a queue pair.
  const auto number = [](hw::QpState state) { return static_cast<int>(state); };
  const bool stays = next == pair.state && next != hw::QpState::kRtr;
  const bool resumes =
      next == hw::QpState::kRts && number(pair.state) > number(next) && pair.state != hw::QpState::kErr;
  if (!any && !stays && !resumes && (number(next) != number(pair.state) + 1 || next == hw::QpState::kSqe))
    return hw::AdminStatus::kBadState;
  pair.last_modify = body;
  pair.state = next;
  if (any) flush(qpn);
  if (next == hw::QpState::kReset) pair.sq_producer = pair.sq_done = pair.rq_producer = pair.rq_done = 0;
  return hw::AdminStatus::kSuccess;
}

void FakeDevice::flush(std::uint32_t qpn) {
  auto& pair = pairs.at(qpn);
  while (pair.sq_done != pair.sq_producer) finish_send(qpn, hw::CqeStatus::kWrFlushErr);
  while (pair.rq_done != pair.rq_producer) finish_receive(qpn, 0, hw::CqeStatus::kWrFlushErr);
}

void FakeDevice::write_cqe(std::uint32_t cqn, hw::Cqe cqe) {
  const std::lock_guard lock(mutex_);
  auto& cq = completion_queues.at(cqn);
  const std::uint32_t place = cq.produced++ - cq.origin;
  cqe.phase = (place >> cq.log_depth) % 2 == 0;
  const std::uint32_t slot = place & static_cast<std::uint32_t>(bits::mask(cq.log_depth));
  std::uint8_t* entry = pointer(cq.base) + slot * 64;
  std::array<std::uint8_t, 64> raw{};
  cqe.encode(raw);
  late_cqes_.emplace_back(entry, raw);
  if (!cqes_late) release_cqes();
}

void FakeDevice::release_cqes() {
  const std::lock_guard lock(mutex_);
  for (const auto& [entry, raw] : late_cqes_) write_entry(entry, raw);
  late_cqes_.clear();
}

void FakeDevice::write_eqe(std::uint32_t eqn, hw::Eqe eqe) {
  const std::lock_guard lock(mutex_);
  auto& eq = event_queues.at(eqn);
  eqe.phase = (eq.produced >> eq.log_depth) % 2 == 0;
  const std::uint32_t slot = eq.produced++ & static_cast<std::uint32_t>(bits::mask(eq.log_depth));
  std::array<std::uint8_t, 64> raw{};
  eqe.encode(raw);
  write_entry(pointer(eq.base) + slot * 64, raw);
  raise(eq.vector);
}

void FakeDevice::finish_send(std::uint32_t qpn, hw::CqeStatus status) {
  const std::lock_guard lock(mutex_);
  auto& pair = pairs.at(qpn);
  hw::Cqe cqe;
  cqe.status = static_cast<std::uint8_t>(status);
  cqe.opcode = static_cast<std::uint8_t>(hw::CqeOpcode::kFlush);
  const auto wqe = send_wqe(qpn, pair.sq_done);
  cqe.byte_count = hw::WqeControl::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16)).length;
  cqe.wqe_index = pair.sq_done++;
  cqe.qpn = qpn;
  cqe.retired_index = pair.sq_done;
  write_cqe(pair.create.send_cqn, cqe);
}

void FakeDevice::finish_silently(std::uint32_t qpn, unsigned count) {
  const std::lock_guard lock(mutex_);
  pairs.at(qpn).sq_done = static_cast<std::uint16_t>(pairs.at(qpn).sq_done + count);
}

void FakeDevice::write_retired_record(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  const auto& pair = pairs.at(qpn);
  const hw::RetiredRecord record{.retired_index = pair.sq_done, .reserved0 = 0};
  auto* const word = reinterpret_cast<std::uint64_t*>(pointer(pair.create.retired_address));
  __atomic_store_n(word, record.word(), __ATOMIC_RELEASE);
}

void FakeDevice::finish_receive(std::uint32_t qpn, std::uint32_t bytes, hw::CqeStatus status, bool solicited,
                                std::optional<std::uint32_t> datagram_from, std::optional<std::uint16_t> tag) {
  const std::lock_guard lock(mutex_);
  auto& pair = pairs.at(qpn);
  hw::Cqe cqe;
  cqe.status = static_cast<std::uint8_t>(status);
  cqe.opcode = static_cast<std::uint8_t>(hw::CqeOpcode::kReceive);
  cqe.wqe_index = pair.rq_done++;
  cqe.qpn = qpn;
  cqe.is_receive = 1;
  cqe.solicited = solicited;
  cqe.byte_count = bytes;
  cqe.grh = datagram_from.has_value();
  cqe.source_qpn = datagram_from.value_or(0);
  cqe.vlan = tag.has_value();
  cqe.vlan_tci = tag.value_or(0);
  write_cqe(pair.create.receive_cqn, cqe);
}

std::uint16_t FakeDevice::take_shared(std::uint32_t qpn) {
  const std::lock_guard lock(mutex_);
  auto& srq = shared_queues.at(pairs.at(qpn).create.srqn);
  if (srq.head == srq.producer) return 0xFFFF;
  const std::size_t slot = srq.head & bits::mask(srq.create.log_depth);
  const auto* wqe = pointer(srq.create.base) + (slot << srq.create.log_stride);
  const auto head = hw::WqeReceive::decode(std::span<const std::uint8_t, 16>(wqe, 16));
  return head.wqe_index == srq.head++ ? head.tag : std::uint16_t{0xFFFF};
}

void FakeDevice::finish_shared(std::uint32_t qpn, std::uint16_t tag, std::uint32_t bytes, hw::CqeStatus status) {
  const std::lock_guard lock(mutex_);
  hw::Cqe cqe;
  cqe.status = static_cast<std::uint8_t>(status);
  cqe.opcode = static_cast<std::uint8_t>(hw::CqeOpcode::kReceive);
  cqe.wqe_index = tag;
  cqe.qpn = qpn;
  cqe.is_receive = 1;
  cqe.byte_count = bytes;
  write_cqe(pairs.at(qpn).create.receive_cqn, cqe);
}

Result<DmaBuffer> FakeDevice::dma_alloc(std::size_t bytes) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  if (dma_allocations_left == 0) return Error::kOutOfMemory;
  --dma_allocations_left;
  const std::size_t size = (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  Allocation allocation{std::make_unique<std::uint8_t[]>(size + kPageBytes), nullptr, size};
  const auto start = reinterpret_cast<std::uintptr_t>(allocation.storage.get());
  allocation.aligned = allocation.storage.get() + (kPageBytes - start % kPageBytes) % kPageBytes;
  const DmaBuffer buffer{allocation.aligned, next_iova_, size};
  next_iova_ += size + kPageBytes;
  memory_.emplace(buffer.iova, std::move(allocation));
  return buffer;
}

void FakeDevice::dma_free(const DmaBuffer& buffer) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  memory_.erase(buffer.iova);
}

std::uint8_t* FakeDevice::pointer(std::uint64_t iova) {
  const std::lock_guard lock(mutex_);
  auto found = memory_.upper_bound(iova);
  --found;
  return found->second.aligned + (iova - found->first);
}

std::size_t FakeDevice::live_allocations() {
  const std::lock_guard lock(mutex_);
  return memory_.size();
}

Result<std::vector<std::uint64_t>> FakeDevice::map_pages(const void* p, std::size_t length, bool writable) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  if (p == unmapped || (writable && p == read_only)) return Error::kAccessViolation;
  const auto first = reinterpret_cast<std::uintptr_t>(p) / kPageBytes;
  const auto last = (reinterpret_cast<std::uintptr_t>(p) + length - 1) / kPageBytes;
  std::vector<std::uint64_t> iovas;
  for (auto page = first; page <= last; ++page) iovas.push_back(0x7'0000'0000'0000 + page * kPageBytes);
  mapped_pages += iovas.size();
  return iovas;
}

void FakeDevice::unmap_pages(const void*, std::size_t, std::span<const std::uint64_t> iovas) {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  mapped_pages -= iovas.size();
}

Result<std::vector<std::uint64_t>> FakeDevice::map_process_pages(std::int32_t process, std::uint64_t address,
                                                                 std::size_t length, bool) {
  if (!has_processes) return Error::kNotSupported;
  process_pages[process].insert(address);
  return std::vector<std::uint64_t>((address % kDevicePageBytes + length + kDevicePageBytes - 1) / kDevicePageBytes);
}

void FakeDevice::unmap_process_pages(std::int32_t process, std::uint64_t address, std::size_t,
                                     std::span<const std::uint64_t>) {
  process_pages[process].erase(address);
}

std::uint64_t FakeDevice::wake_count() {
  const std::lock_guard lock(mutex_);
  return wake_count_;
}

void FakeDevice::wake() {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  ++wake_count_;
  woken_.notify_all();
}

/// Without threads nobody can call wake but on_time, so time is made to pass, in small steps.
bool FakeDevice::wait(std::uint64_t seen, std::uint64_t timeout_ns) {
  const Inside inside_device;
  if (threads || (timeout_ns == kForever && !on_time)) {
    std::unique_lock lock(mutex_);
    const auto woken = [&] { return wake_count_ != seen; };
    if (timeout_ns == kForever) return woken_.wait(lock, woken), true;
    return woken_.wait_for(lock, std::chrono::nanoseconds(timeout_ns), woken);
  }
  constexpr std::uint64_t kStepNs = 10'000;
  for (std::uint64_t left = timeout_ns; wake_count() == seen; left -= std::min(left, kStepNs)) {
    if (left == 0) return false;
    elapse(std::min(left, kStepNs));
  }
  return true;
}

void FakeDevice::answer_one_command() {
  const std::lock_guard lock(mutex_);
  if (admin_consumer_ != admin_producer_) run_admin(static_cast<std::uint16_t>(admin_consumer_ + 1));
}

bool FakeDevice::inside() { return g_inside != 0; }

bool FakeDevice::removed() { return taken_away; }

void FakeDevice::take_away() {
  taken_away = true;
  wake();
}

void FakeDevice::report(DeviceOddity oddity, std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  oddities.emplace_back(oddity, number);
}

void FakeDevice::reset_function() {
  const Inside inside_device;
  const std::lock_guard lock(mutex_);
  ++resets;
  power_on();
  admin_consumer_ = admin_producer_ = 0;
  event_queues.clear();
  completion_queues.clear();
  pairs.clear();
  multicast_groups.clear();
  shared_queues.clear();
  regions.clear();
  windows.clear();
  fast_regions.clear();
  bound.clear();
  late_cqes_.clear();
  admin_hangs = false;
}

void FakeDevice::raise(std::uint32_t) { wake(); }

Device::MsixMessage FakeDevice::msix_message(std::uint32_t vector) { return {0xFEE0'0000, 0x40 + vector}; }

void FakeDevice::elapse(std::uint64_t ns) {
  const Inside inside_device;
  if (!threads) {
    const std::lock_guard lock(mutex_);
    now_ += ns;
  }
  if (on_time) on_time();
}

std::uint64_t FakeDevice::now_ns() {
  if (threads) {
    return static_cast<std::uint64_t>(
        std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count());
  }
  const std::lock_guard lock(mutex_);
  return now_;
}

std::uint64_t FakeDevice::random64() {
  const std::lock_guard lock(mutex_);
  return random_();
}

std::vector<std::uint8_t> FakeDevice::send_wqe(std::uint32_t qpn, std::uint16_t index) {
  const auto& create = pairs.at(qpn).create;
  const std::size_t stride = std::size_t{1} << create.sq_log_stride;
  const auto* slot = pointer(create.sq_base) + (index & bits::mask(create.sq_log_depth)) * stride;
  return {slot, slot + stride};
}

std::vector<std::uint8_t> FakeDevice::receive_wqe(std::uint32_t qpn, std::uint16_t index) {
  const auto& create = pairs.at(qpn).create;
  const std::size_t stride = std::size_t{1} << create.rq_log_stride;
  const auto* slot = pointer(create.rq_base) + (index & bits::mask(create.rq_log_depth)) * stride;
  return {slot, slot + stride};
}

}  // namespace rnic::test
