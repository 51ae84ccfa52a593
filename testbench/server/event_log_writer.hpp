#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "driver/remote/descriptor.hpp"
#include "driver/remote/doorbell_ring.hpp"
#include "driver/remote/protocol.hpp"
#include "model/pcie.hpp"
#include "model/process_memory.hpp"
#include "testbench/server/event_log.hpp"

namespace rnic::testbench {

/// Writes an event log (docs/event_log.md). What has happened is in the system's hands before the simulation goes on
/// (write_out), so that it is kept however this process ends. A disk that has no room ends the log, and the machine
/// goes on: `failure` says so.
class EventLogWriter {
 public:
  /// Throws EventLogError when the file cannot be written.
  EventLogWriter(const std::string& path, const EventLogHeader& header);
  EventLogWriter(const EventLogWriter&) = delete;
  EventLogWriter& operator=(const EventLogWriter&) = delete;

  // From outside, before the machine acts on it
  /// Returns the number of the connection.
  [[nodiscard]] std::uint64_t attach(std::size_t host, std::int32_t process);
  void detach(std::uint64_t session);
  void doorbell(std::uint64_t session, const remote::Doorbell& doorbell);
  void request(std::uint64_t session, const remote::FrameHeader& header, std::span<const std::byte> body);
  void look(bool counters);
  void rest(std::uint64_t ps);
  void frame(std::size_t socket, std::span<const std::uint8_t> data);
  void finish();
  void failed(const std::string& why);
  /// The last. `figures` is JSON.
  void end(const std::string& figures);

  // What the simulation has met
  void reach(std::size_t host, std::int32_t process, std::uint64_t address, std::uint64_t length, bool writable,
             model::ProcessMemory::Reach answer);
  /// `data` is what the memory had, if it was there.
  void dma_read(std::size_t host, const model::DmaRequest& request, LogPlace place, bool good,
                std::span<const std::uint8_t> data);
  void dma_write(std::size_t host, const model::DmaRequest& request, LogPlace place, bool good);
  void answer(std::uint64_t session, std::uint32_t number, std::uint32_t checksum, bool taken);

  /// What has been said so far is a piece of the file.
  void write_out();
  /// Why the log ends here; empty: it goes on.
  [[nodiscard]] const std::string& failure() const { return failure_; }

 private:
  void begin(LogKind kind);
  void number(std::uint64_t value);
  void bytes(std::span<const std::uint8_t> data);
  void write(std::span<const std::uint8_t> data);

  const std::string path_;
  remote::Descriptor file_;
  std::vector<std::uint8_t> piece_;
  std::uint64_t last_ps_ = 0;
  std::uint64_t sessions_ = 0;
  std::string failure_;
};

/// Answers of this kind come from the kernel driver alone; the others say what the system gave, too.
[[nodiscard]] constexpr bool of_kernel(remote::FrameKind kind) {
  using enum remote::FrameKind;
  return kind == kOpen || kind == kClose || kind == kCall;
}

/// What a record keeps of a request of the device.
[[nodiscard]] std::uint32_t checksum_of(const model::DmaRequest& request);
/// And of an answer.
[[nodiscard]] std::uint32_t checksum_of(calls::Status status, std::uint32_t client, std::span<const std::byte> body);

}  // namespace rnic::testbench
