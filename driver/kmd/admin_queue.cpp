#include "driver/kmd/admin_queue.hpp"

#include <algorithm>
#include <cstring>

#include "driver/costs.hpp"
#include "driver/mmio.hpp"

namespace rnic::kmd {

AdminQueue::~AdminQueue() {
  if (failed_) {
    commands_.abandon();
    completions_.abandon();
  }
}

Result<void> AdminQueue::start() {
  auto commands = DmaMemory::allocate(device_, kDepth * hw::AdminCommand::kBytes);
  if (!commands) return commands.error();
  auto completions = DmaMemory::allocate(device_, kDepth * hw::AdminCompletion::kBytes);
  if (!completions) return completions.error();
  commands_ = commands.take();
  completions_ = completions.take();
  dma_write_barrier();
  device_.write64(registers_.admin(hw::reg::kAdminCommandBase), commands_.iova());
  device_.write64(registers_.admin(hw::reg::kAdminCompletionBase), completions_.iova());
  device_.write64(registers_.admin(hw::reg::kAdminConfig), hw::RegAdminConfig{.log_depth = kLogDepth}.word());
  return {};
}

Result<AdminQueue::Reply> AdminQueue::execute(hw::AdminOpcode opcode, std::uint32_t number, const Body& body) {
  device_.elapse(cost::kControlCallNs);
  std::uint64_t deadline = 0;
  bool posted = false;
  std::uint16_t command_id = 0;
  for (unsigned polls = 1;; ++polls) {
    const bool dead = polls % kPollsPerStatusRead == 0 && device_is_dead();
    // Taken before the look at the ring: a thread that slept past the deadline still finds its answer.
    // While the ring is full it is for the owners of the commands in it to notice a stuck device.
    const bool late = posted && device_.now_ns() >= deadline;
    {
      const std::lock_guard lock(mutex_);
      collect();
      failed_ = failed_ || dead;
      if (failed_) return Error::kDeviceFailed;
      auto& slot = slots_[command_id % kDepth];
      if (posted && slot.done) {
        slot.busy = false;
        if (slot.status != hw::AdminStatus::kSuccess) return map_status(slot.status);
        return slot.reply;
      }
      if (late) {
        failed_ = true;
        return Error::kTimeout;
      }
      if (!posted) {
        posted = post(opcode, number, body, command_id);
        deadline = device_.now_ns() + kTimeoutNs;
      }
    }
    device_.elapse(cost::kAdminPollNs);
  }
}

bool AdminQueue::post(hw::AdminOpcode opcode, std::uint32_t number, const Body& body, std::uint16_t& command_id) {
  auto& slot = slots_[producer_ % kDepth];
  if (slot.busy) return false;
  command_id = producer_;
  slot = {.busy = true, .done = false, .command_id = command_id, .opcode = opcode, .status = {}, .reply = {}};

  hw::AdminCommand command;
  command.opcode = static_cast<std::uint8_t>(opcode);
  command.command_id = command_id;
  command.number = number;
  std::array<std::uint8_t, hw::AdminCommand::kBytes> raw{};
  command.encode(raw);
  std::copy(body.begin(), body.end(), raw.begin() + (raw.size() - body.size()));
  std::memcpy(commands_.data() + (producer_ % kDepth) * raw.size(), raw.data(), raw.size());

  ++producer_;
  dma_write_barrier();
  device_.write64(registers_.admin(hw::reg::kAdminDoorbell),
                  hw::RegAdminDoorbell{.producer_index = producer_}.word());
  return true;
}

void AdminQueue::collect() {
  constexpr auto kBytes = hw::AdminCompletion::kBytes;
  while (!failed_ && consumer_ != producer_) {
    const std::uint8_t* entry = completions_.data() + (consumer_ % kDepth) * kBytes;
    const std::uint8_t expected = (consumer_ / kDepth) % 2 == 0 ? 1 : 0;
    if (load_phase({entry, kBytes}) != expected) return;
    dma_read_barrier();
    std::array<std::uint8_t, kBytes> raw{};
    copy_entry(std::span(raw), entry);
    const auto completion = hw::AdminCompletion::decode(raw);
    auto& slot = slots_[consumer_ % kDepth];
    // Commands complete in order, so this must be the oldest; anything else is a device that lost its mind.
    if (slot.command_id != completion.command_id || slot.done ||
        static_cast<std::uint8_t>(slot.opcode) != completion.opcode) {
      failed_ = true;
      return;
    }
    slot.status = static_cast<hw::AdminStatus>(completion.status);
    slot.reply = completion.result;
    slot.done = true;
    ++consumer_;
  }
}

bool AdminQueue::device_is_dead() {
  const std::uint64_t status = device_.read64(registers_.identity(hw::reg::kDeviceStatus));
  return status == ~0ULL || hw::RegDeviceStatus::from_word(status).fatal != 0;
}

Error AdminQueue::map_status(hw::AdminStatus status) {
  switch (status) {
    case hw::AdminStatus::kSuccess: break;
    case hw::AdminStatus::kBadOpcode: return Error::kNotSupported;
    case hw::AdminStatus::kBadParameter: return Error::kInvalidParameter;
    case hw::AdminStatus::kBadNumber: return Error::kNotFound;
    case hw::AdminStatus::kExists: return Error::kExists;
    case hw::AdminStatus::kBadState: return Error::kInvalidState;
    case hw::AdminStatus::kInUse: return Error::kBusy;
    case hw::AdminStatus::kTooSmall: return Error::kTooSmall;
  }
  return Error::kDeviceFailed;
}

bool AdminQueue::failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

}  // namespace rnic::kmd
