#include "driver/kmd/admin_queue.hpp"

#include <algorithm>

#include "driver/costs.hpp"
#include "driver/mmio.hpp"

namespace rnic::kmd {

namespace {

// What the device itself needs for the slowest command, with a full send queue to flush and both ports busy.
constexpr std::uint64_t kOwnWorkNs = 10'000'000;
// DMA reads one after the other for one command: the command itself, then at most a page list, a request and its list
// of a queue pair that must fall silent before it is answered.
constexpr std::uint64_t kReadsInARow = 4;

/// The longest that a device may wait in each range (PCI Express base specification 7.5.3.16; host interface,
/// CompletionTimeoutRange): where in the range it gives up is its own affair.
std::uint64_t completion_timeout_ns(hw::CompletionTimeoutRange range) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  switch (range) {
    case hw::CompletionTimeoutRange::kDefault: return 50 * kMillisecond;
    case hw::CompletionTimeoutRange::kA1: return kMillisecond / 10;
    case hw::CompletionTimeoutRange::kA2: return 10 * kMillisecond;
    case hw::CompletionTimeoutRange::kB1: return 55 * kMillisecond;
    case hw::CompletionTimeoutRange::kB2: return 210 * kMillisecond;
    case hw::CompletionTimeoutRange::kC1: return 900 * kMillisecond;
    case hw::CompletionTimeoutRange::kC2: return 3500 * kMillisecond;
  }
  return 3500 * kMillisecond;
}

}  // namespace

std::uint64_t AdminQueue::timeout_for(hw::CompletionTimeoutRange range) {
  return kOwnWorkNs + kReadsInARow * completion_timeout_ns(range);
}

Result<void> AdminQueue::start() {
  auto commands = DmaMemory::allocate(device_, kDepth * hw::AdminCommand::kBytes);
  if (!commands) return commands.error();
  auto completions = DmaMemory::allocate(device_, kDepth * hw::AdminCompletion::kBytes);
  if (!completions) return completions.error();
  commands_ = commands.take();
  completions_ = completions.take();
  device_.write64(registers_.admin(hw::reg::kAdminCommandBase), commands_.iova());
  device_.write64(registers_.admin(hw::reg::kAdminCompletionBase), completions_.iova());
  if (has_vector_) {
    device_.write64(hw::reg::kMsixTable + 16ULL * kVector, device_.msix_message(kVector).address);
    mask_interrupt(true);
  }
  const hw::RegAdminConfig config{.log_depth = kLogDepth, .interrupt_vector = kVector, .interrupt_enable = has_vector_};
  device_.write64(registers_.admin(hw::reg::kAdminConfig), config.word());
  return {};
}

/// Threads that wait for their commands look at the ring, and want no interrupts.
void AdminQueue::mask_interrupt(bool masked) {
  constexpr std::uint64_t kMasked = 1ULL << 32;
  if (!has_vector_) return;
  const std::uint64_t data = device_.msix_message(kVector).data;
  device_.write64(hw::reg::kMsixTable + 16ULL * kVector + 8, data | (masked ? kMasked : 0));
}

Result<AdminQueue::Reply> AdminQueue::execute(hw::AdminOpcode opcode, std::uint32_t number, const Body& body) {
  Result<Reply> answer = Error::kDeviceFailed;
  const Command command{opcode, number, body};
  execute(std::span(&command, 1), std::span(&answer, 1));
  return answer;
}

void AdminQueue::execute(std::span<const Command> commands, std::span<Result<Reply>> answers) {
  // Commands are answered in their order, so of those that are posted the oldest is looked for.
  std::array<std::uint16_t, kDepth> ids{};
  std::size_t posted = 0, taken = 0;
  for (unsigned looks = 1;; ++looks) {
    const std::uint64_t seen = device_.wake_count();
    const bool dead = looks_dead(looks);
    // Taken before the look at the ring: a thread that slept for too long still finds its answer.
    const std::uint64_t now = device_.now_ns();
    {
      const std::lock_guard lock(mutex_);
      collect(now);
      failed_ = failed_ || dead;
      while (!failed_ && taken < posted && take(ids[taken % kDepth], answers[taken])) {
        ++taken;
        looks = 0;
      }
      if (taken == commands.size()) return;
      if (is_late(now)) {
        failed_ = true;
        answers[taken++] = Error::kTimeout;
      }
      if (failed_) {
        std::fill(answers.begin() + static_cast<std::ptrdiff_t>(taken), answers.end(), Error::kDeviceFailed);
        return;
      }
      const std::size_t before = posted;
      while (posted < commands.size() && posted - taken < kDepth) {
        if (consumer_ == producer_) oldest_since_ = now;
        if (!post(commands[posted], ids[posted % kDepth])) break;
        ++posted;
      }
      if (posted != before) ring();
    }
    tell();
    pause(looks, seen);
  }
}

void AdminQueue::pause(unsigned looks, std::uint64_t seen) {
  if (looks < kPollsBeforeSleep) {
    device_.elapse(cost::kAdminPollNs);
  } else {
    static_cast<void>(device_.wait(seen, cost::kAdminSleepNs));
  }
}

/// Commands are done one after the other, so the time of the oldest counts.
bool AdminQueue::is_late(std::uint64_t now) const {
  return !failed_ && consumer_ != producer_ && now > oldest_since_ && now - oldest_since_ >= timeout_ns_;
}

Result<void> AdminQueue::execute_later(const Command& command, std::shared_ptr<Later> later) {
  if (!has_vector_) {
    Result<Reply> answer = Error::kDeviceFailed;
    execute(std::span(&command, 1), std::span(&answer, 1));
    if (failed()) return Error::kDeviceFailed;
    later->on_answer(answer);
    return {};
  }
  for (unsigned looks = 1;; ++looks) {
    const std::uint64_t seen = device_.wake_count();
    const bool dead = looks_dead(looks);
    const std::uint64_t now = device_.now_ns();
    {
      const std::lock_guard lock(mutex_);
      failed_ = failed_ || dead;
      if (failed_) return Error::kDeviceFailed;
      if (consumer_ == producer_) oldest_since_ = now;
      if (std::uint16_t id{}; post(command, id)) {
        slots_[id % kDepth].later = std::move(later);
        if (to_tell_++ == 0) mask_interrupt(false);
        ring();
        return {};
      }
    }
    tell();
    pause(looks, seen);
  }
}

void AdminQueue::tell() {
  if (to_tell_ == 0) return;
  const std::uint64_t now = device_.now_ns();
  {
    const std::lock_guard lock(mutex_);
    collect(now);
    failed_ = failed_ || is_late(now);
  }
  Result<Reply> answer = Error::kDeviceFailed;
  while (const auto later = next_to_tell(answer)) later->on_answer(answer);
}

/// The oldest of those whose answer is known, whose slot is free then.
std::shared_ptr<AdminQueue::Later> AdminQueue::next_to_tell(Result<Reply>& answer) {
  const std::lock_guard lock(mutex_);
  for (std::uint16_t back = kDepth; back != 0; --back) {
    auto& slot = slots_[static_cast<std::uint16_t>(producer_ - back) % kDepth];
    if (slot.later == nullptr || !(slot.done || failed_)) continue;
    answer = slot.done ? answer_of(slot) : Result<Reply>(Error::kDeviceFailed);
    slot.busy = false;
    if (--to_tell_ == 0 && !failed_) mask_interrupt(true);
    return std::move(slot.later);
  }
  return nullptr;
}

Result<AdminQueue::Reply> AdminQueue::answer_of(const Slot& slot) {
  if (slot.status == hw::AdminStatus::kSuccess) return slot.reply;
  return map_status(slot.status);
}

bool AdminQueue::post(const Command& command, std::uint16_t& command_id) {
  auto& slot = slots_[producer_ % kDepth];
  if (slot.busy) return false;
  command_id = producer_;
  slot = {.busy = true,
          .done = false,
          .command_id = command_id,
          .opcode = command.opcode,
          .status = {},
          .reply = {},
          .later = {}};

  hw::AdminCommand entry;
  entry.opcode = static_cast<std::uint8_t>(command.opcode);
  entry.command_id = command_id;
  entry.number = command.number;
  entry.body = command.body;
  constexpr auto kBytes = hw::AdminCommand::kBytes;
  entry.encode(std::span<std::uint8_t, kBytes>(commands_.data() + (producer_ % kDepth) * kBytes, kBytes));

  ++producer_;
  return true;
}

void AdminQueue::ring() {
  dma_write_barrier();
  // The answers of the commands before in these slots have been read; the device may overwrite them.
  dma_release_barrier();
  device_.write64(registers_.admin(hw::reg::kAdminDoorbell), hw::RegAdminDoorbell{.producer_index = producer_}.word());
}

bool AdminQueue::take(std::uint16_t command_id, Result<Reply>& answer) {
  auto& slot = slots_[command_id % kDepth];
  if (!slot.done) return false;
  slot.busy = false;
  answer = answer_of(slot);
  return true;
}

void AdminQueue::collect(std::uint64_t now) {
  constexpr auto kBytes = hw::AdminCompletion::kBytes;
  while (!failed_ && consumer_ != producer_) {
    const std::span<const std::uint8_t, kBytes> entry(completions_.data() + (consumer_ % kDepth) * kBytes, kBytes);
    const std::uint8_t expected = (consumer_ / kDepth) % 2 == 0 ? 1 : 0;
    if (load_phase(entry) != expected) return;
    dma_read_barrier();
    const auto completion = hw::AdminCompletion::decode(entry);
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
    oldest_since_ = now;
  }
}

/// Now and then, for a caller that has looked `looks` times without an answer.
bool AdminQueue::looks_dead(unsigned looks) {
  if (device_.removed()) return true;
  return looks % (looks < kPollsBeforeSleep ? kPollsPerStatusRead : kSleepsPerStatusRead) == 0 && device_is_dead();
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
    case hw::AdminStatus::kNoGroup: return Error::kOutOfResources;
    case hw::AdminStatus::kNotAttached: return Error::kNotFound;
  }
  return Error::kDeviceFailed;
}

bool AdminQueue::failed() {
  const std::lock_guard lock(mutex_);
  return failed_;
}

void AdminQueue::fail() {
  const std::lock_guard lock(mutex_);
  failed_ = true;
}

}  // namespace rnic::kmd
