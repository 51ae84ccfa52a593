#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "driver/kmd/client.hpp"
#include "driver/remote/doorbell_ring.hpp"
#include "driver/remote/protocol.hpp"
#include "model/process_memory.hpp"
#include "testbench/server/event_pipe.hpp"
#include "testbench/server/frame_reader.hpp"
#include "testbench/server/process_book.hpp"

namespace rnic::testbench {

class HostServer;

/// Simulated time: it is `now_ns`, and goes on with the time outside from `still_since` on, for at most `most_ns`; or
/// stays, where `still_since` is 0.
struct SimulatedInstant {
  std::uint64_t now_ns{};
  std::uint64_t still_since{};
  std::uint64_t most_ns{};
};

/// A process on a host, as the host's kernel driver has it: its clients, and what they ask for. What a process says is
/// judged; one that breaks the protocol loses its connection, and nothing else happens.
///
/// What a session does to the host depends on nothing but what it is told, and when: how the process is reached is the
/// matter of what derives from it.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  virtual ~Session();

  /// Of the process.
  [[nodiscard]] std::int32_t process() const { return process_; }
  /// The number that the host has for the memory of the process; 0: none yet.
  [[nodiscard]] std::int32_t memory() const { return memory_; }
  /// The connection has ended, and nothing is left of it in the kernel driver.
  [[nodiscard]] bool over() const { return ended_ && calls_ == 0 && clients_.empty(); }
  [[nodiscard]] bool ended() const { return ended_; }

  /// Takes what the process has brought. Returns whether there was anything.
  virtual bool take() { return false; }
  /// Something that may end a wait has happened on the host.
  void wake();
  /// The device has written to memory of it.
  virtual void written() {}
  /// The process is told no time until the next `show`.
  virtual void hold_clock() {}
  /// The latest instant of simulated time that the process waits for; 0: none.
  [[nodiscard]] virtual std::uint64_t awaited_ns() const { return 0; }
  /// Before simulated time passes: what the process reads of it (remote::SimulatedTime).
  virtual void show_simulated(const SimulatedInstant& /*now*/) {}
  /// It has not come for the device.
  [[nodiscard]] virtual bool only_reads_time() const { return false; }
  /// Behind a while of simulated time: what the process looks at is as it is.
  virtual void show(std::uint64_t /*now_ns*/, std::uint64_t /*still_since*/) {}
  /// Before the machine sleeps: from now on doorbells come with the bell. Returns whether some were left before.
  [[nodiscard]] virtual bool fall_asleep() { return false; }
  virtual void wake_up() {}

  /// Ends the connection: its clients go, in simulated time. `why` is for the log; empty: it has just ended.
  void end(const std::string& why);
  /// The machine ends: says so to the process, before `end`.
  virtual void say_goodbye() {}

  struct Figures {
    std::size_t clients{};
    std::uint64_t calls{}, doorbells{};
  };
  /// What it has together with the other connections of its process.
  [[nodiscard]] const kmd::Account& account() const { return *account_; }
  [[nodiscard]] Figures figures() const { return {clients_.size(), calls_made_, doorbells_made_}; }
  /// What its process has done, as the host's book has it.
  [[nodiscard]] const ProcessRecord& record() const { return *record_; }
  /// Its clients. Each stays as long as it is kept.
  [[nodiscard]] std::vector<std::shared_ptr<kmd::Client>> clients() const;

 protected:
  /// Throws std::bad_alloc.
  Session(HostServer& host, std::int32_t process);

  /// Makes a TLP of it.
  void ring(const remote::Doorbell& doorbell);
  void perform(const RequestFrame& frame);
  [[nodiscard]] std::size_t calls_under_way() const { return calls_; }
  [[nodiscard]] HostServer& host() { return host_; }

  /// What goes back to the process for a request of it.
  struct Answer {
    remote::FrameHeader to;
    calls::Status status{};
    std::span<const std::byte> body;
    std::span<const int> beside;
    std::uint32_t client{};
  };
  /// False: the process does not take it.
  [[nodiscard]] virtual bool send(const Answer& answer) = 0;
  /// What memory its process has now. Null: it cannot be reached.
  [[nodiscard]] virtual std::shared_ptr<model::ProcessMemory> reach_memory() { return nullptr; }
  /// There is no connection any more.
  virtual void disconnect() {}
  /// The word of a client that says how the device is.
  virtual void show_status(std::uint32_t /*client*/, std::uint32_t /*word*/) {}
  /// Ends its waits.
  virtual void rouse() {}

 private:
  struct OneClient {
    std::shared_ptr<kmd::Client> client;
    std::shared_ptr<std::uint8_t> status;  ///< The kernel driver's word, when the process has mapped it
    std::map<calls::Handle, std::unique_ptr<EventPipe>> pipes;  ///< By channel
  };

  void open_client(const remote::FrameHeader& header);
  [[nodiscard]] AddressSpace find_memory();
  void close_client(const remote::FrameHeader& header);
  void call(RequestFrame frame);
  void map(const RequestFrame& frame);
  void give_descriptor(const RequestFrame& frame);
  void close_all();
  [[nodiscard]] std::shared_ptr<OneClient> client(std::uint32_t number);
  [[nodiscard]] bool own_page(std::uint64_t offset, std::uint32_t bytes) const;
  void answer(const remote::FrameHeader& to, calls::Status status, std::span<const std::byte> body = {},
              std::span<const int> beside = {}, std::uint32_t client = 0);
  void run(std::function<void()> job);

  HostServer& host_;
  const std::int32_t process_;
  const std::shared_ptr<kmd::Account> account_;
  const std::shared_ptr<ProcessRecord> record_;
  bool ended_ = false;
  std::size_t calls_ = 0;  ///< Under way
  std::uint64_t calls_made_ = 0, doorbells_made_ = 0;
  std::int32_t memory_ = 0;
  std::map<std::uint32_t, std::shared_ptr<OneClient>> clients_;  ///< By number, below remote::kMostClients
};

/// The body of a frame, if it has the size.
template <typename Structure>
[[nodiscard]] std::optional<Structure> read_body(const RequestFrame& frame) {
  Structure structure;
  if (frame.body.size() != sizeof structure) return {};
  std::memcpy(&structure, frame.body.data(), sizeof structure);
  return structure;
}

[[nodiscard]] std::span<const std::byte> bytes_of(const auto& structure) {
  return std::as_bytes(std::span(&structure, 1));
}

}  // namespace rnic::testbench
