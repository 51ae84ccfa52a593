#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "driver/device.hpp"
#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/register_map.hpp"

namespace rnic::kmd {

/// The command ring and the completion ring of the device. Several threads may have a command each under way;
/// commands execute in the order in which they were posted.
///
/// A command that is not answered in time, an answer that fits no command, DeviceStatus.fatal or a device that is gone
/// makes the queue fail for good: what the device did is then unknown, and every later command returns kDeviceFailed.
/// A device that is brought up again (KernelDevice::recover) gets a queue anew.
class AdminQueue {
 public:
  using Body = std::array<std::uint8_t, hw::AdminCreateQp::kBytes>;
  using Reply = std::array<std::uint8_t, hw::AdminCapabilities::kBytes>;

  /// The interrupt vector of an admin queue: the last.
  static constexpr std::uint32_t kVector = hw::kMsixVectors - 1;

  /// `timeout_ns`: how long the device may take for the oldest command, see timeout_for. `has_vector`: no event queue
  /// has kVector.
  AdminQueue(Device& device, const RegisterMap& registers, std::uint64_t timeout_ns, bool has_vector)
      : device_(device), registers_(registers), timeout_ns_(timeout_ns), has_vector_(has_vector) {}
  AdminQueue(const AdminQueue&) = delete;
  AdminQueue& operator=(const AdminQueue&) = delete;

  /// The longest that a sound device takes for a command, in which each DMA read that is made for it may end by the
  /// completion time-out.
  [[nodiscard]] static std::uint64_t timeout_for(hw::CompletionTimeoutRange range);

  /// Allocates the rings and tells the device. Errors: kOutOfMemory.
  [[nodiscard]] Result<void> start();

  /// One of several in a call; the body is encoded as its opcode says (host interface, "Admin commands").
  struct Command {
    hw::AdminOpcode opcode{};
    std::uint32_t number = 0;
    Body body{};
  };

  /// Posts a command and waits for its completion. What was stored to DMA memory before, the device sees first. Lets
  /// time pass; call it without locks.
  /// Errors: kTimeout, kDeviceFailed, and what `map_status` says of the device's answer.
  [[nodiscard]] Result<Reply> execute(hw::AdminOpcode opcode, std::uint32_t number, const Body& body);
  /// The same for several: all are posted before the first is waited for, as far as the ring has room, so that the
  /// device works on one while the next are on their way. Each is executed whatever becomes of those before. Gives the
  /// answer to each in `answers`, which has their number.
  void execute(std::span<const Command> commands, std::span<Result<Reply>> answers);

  /// Who is told the answer to a command for which nobody waits.
  class Later {
   public:
    Later() = default;
    Later(const Later&) = delete;
    Later& operator=(const Later&) = delete;
    /// Without locks; lets no time pass and needs no memory. Errors: those of execute.
    virtual void on_answer(const Result<Reply>& answer) = 0;

   protected:
    ~Later() = default;
  };
  /// Posts a command and does not wait for it: `later` is told, once, by whoever calls tell() when the answer is there,
  /// which an interrupt announces. Lets time pass while the ring is full, and, without a vector, until the answer is
  /// there. Errors: kDeviceFailed; `later` is not told.
  [[nodiscard]] Result<void> execute_later(const Command& command, std::shared_ptr<Later> later);
  /// Tells the answers that have come, in the order of their commands, and after a failure all that are missing. An
  /// answer that is late is a failure. Lets no time pass.
  void tell();

  /// The same with a typed body and reply.
  template <typename Request>
  [[nodiscard]] Result<Reply> execute(hw::AdminOpcode opcode, std::uint32_t number, const Request& request) {
    Body body{};
    static_assert(Request::kBytes == body.size());
    request.encode(body);
    return execute(opcode, number, body);
  }

  /// The driver's error for each AdminStatus other than success.
  [[nodiscard]] static Error map_status(hw::AdminStatus status);

  [[nodiscard]] bool failed();
  /// Ends every command that is under way with kDeviceFailed, and refuses all later ones. Lets no time pass.
  void fail();

 private:
  static constexpr unsigned kLogDepth = 5;
  static constexpr std::uint16_t kDepth = 1U << kLogDepth;
  // A command takes some microseconds, so its thread looks often at first; one that takes longer may wait for DMA that
  // was lost.
  static constexpr unsigned kPollsBeforeSleep = 400;
  static constexpr unsigned kPollsPerStatusRead = 256;
  static constexpr unsigned kSleepsPerStatusRead = 16;

  /// One for each command under way, at its ring slot.
  struct Slot {
    bool busy{};
    bool done{};
    std::uint16_t command_id{};
    hw::AdminOpcode opcode{};
    hw::AdminStatus status{};
    Reply reply{};
    std::shared_ptr<Later> later;  ///< Null: its thread waits
  };

  /// The interrupt of the queue, masked but while somebody is to be told.
  void mask_interrupt(bool masked);
  void pause(unsigned looks, std::uint64_t seen);
  [[nodiscard]] bool is_late(std::uint64_t now) const;
  [[nodiscard]] static Result<Reply> answer_of(const Slot& slot);
  std::shared_ptr<Later> next_to_tell(Result<Reply>& answer);
  bool post(const Command& command, std::uint16_t& command_id);
  void ring();
  bool take(std::uint16_t command_id, Result<Reply>& answer);
  void collect(std::uint64_t now);
  bool looks_dead(unsigned looks);
  bool device_is_dead();

  Device& device_;
  const RegisterMap& registers_;
  const std::uint64_t timeout_ns_;
  const bool has_vector_;
  std::mutex mutex_;  ///< Guards all below; never held while time passes
  DmaMemory commands_;
  DmaMemory completions_;
  std::array<Slot, kDepth> slots_{};
  std::uint16_t producer_{};
  std::uint16_t consumer_{};
  std::uint64_t oldest_since_{};     ///< When the oldest command under way became the oldest
  std::atomic<unsigned> to_tell_{};  ///< Slots with a `later`
  bool failed_{};
};

}  // namespace rnic::kmd
