#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver/kmd/client.hpp"
#include "driver/remote/connection_memory.hpp"
#include "testbench/server/event_pipe.hpp"
#include "testbench/server/frame_reader.hpp"
#include "testbench/server/listener.hpp"
#include "testbench/server/poller.hpp"

namespace rnic::testbench {

class HostServer;

/// A process that has come to a host: its connection, its doorbells, and its clients of the kernel driver. What it says
/// is judged; a process that breaks the protocol loses its connection, and nothing else happens.
class Session : public std::enable_shared_from_this<Session> {
 public:
  /// Throws std::system_error when the system has no memory or descriptors for it.
  static std::shared_ptr<Session> open(HostServer& host, Listener::Peer peer);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  /// Of the process.
  [[nodiscard]] std::int32_t process() const { return process_; }
  /// The connection has ended, and nothing is left of it in the kernel driver.
  [[nodiscard]] bool over() const { return ended_ && calls_ == 0 && clients_.empty(); }
  [[nodiscard]] bool ended() const { return ended_; }

  /// Makes TLPs of the doorbells that wait. Returns whether there were any.
  bool take_doorbells();
  /// Answers what requests have come, as far as not too many calls are under way. Returns whether there were any.
  bool take_requests();

  /// Something that may end a wait has happened on the host.
  void wake();
  /// The device has written to memory of it.
  void written() { written_ = true; }
  /// Behind a while of simulated time: what the process looks at is as it is.
  void show(std::uint64_t now_ns, std::uint64_t still_since);
  /// Before the machine sleeps: from now on doorbells come with the bell. Returns whether some were left before.
  [[nodiscard]] bool fall_asleep();
  void wake_up() { memory_->asleep.store(0); }

  /// Ends the connection: its clients go, in simulated time. `why` is for the log; empty: it has just ended.
  void end(const std::string& why);
  /// The machine ends: says so to the process, before `end`.
  void say_goodbye();

  struct Figures {
    std::size_t clients{};
    std::uint64_t calls{}, doorbells{};
  };
  /// What it has together with the other connections of its process.
  [[nodiscard]] const kmd::Account& account() const { return *account_; }
  [[nodiscard]] Figures figures() const { return {clients_.size(), calls_made_, doorbells_made_}; }
  /// Its clients. Each stays as long as it is kept.
  [[nodiscard]] std::vector<std::shared_ptr<kmd::Client>> clients() const;

 private:
  struct OneClient {
    std::shared_ptr<kmd::Client> client;
    std::shared_ptr<std::uint8_t> status;  ///< The kernel driver's word, when the process has mapped it
    std::map<calls::Handle, std::unique_ptr<EventPipe>> pipes;  ///< By channel
  };

  Session(HostServer& host, Listener::Peer peer);
  void greet(const RequestFrame& frame);
  void perform(const RequestFrame& frame);
  void open_client(std::uint32_t number);
  void close_client(std::uint32_t number, std::uint32_t client);
  void call(RequestFrame frame);
  void map(const RequestFrame& frame);
  void give_descriptor(const RequestFrame& frame);
  void close_all();
  [[nodiscard]] std::shared_ptr<OneClient> client(std::uint32_t number);
  [[nodiscard]] bool own_page(std::uint64_t offset, std::uint32_t bytes) const;
  void answer(std::uint32_t number, calls::Status status, std::span<const std::byte> body = {},
              std::span<const int> beside = {}, std::uint32_t client = 0);
  void run(std::function<void()> job);

  HostServer& host_;
  const std::int32_t process_;
  const std::shared_ptr<kmd::Account> account_;
  remote::Descriptor socket_;
  remote::Descriptor process_end_;
  remote::Descriptor bell_;
  remote::Descriptor memory_descriptor_;
  remote::ConnectionMemory* memory_{};
  Poller::Watch socket_watch_{}, process_watch_{}, bell_watch_{};
  FrameReader frames_;
  bool greeted_ = false;
  bool ended_ = false;
  bool socket_readable_ = false;
  bool written_ = false;
  std::uint32_t next_ticket_{};  ///< Of its doorbells
  std::size_t calls_ = 0;        ///< Under way
  std::uint64_t calls_made_ = 0, doorbells_made_ = 0;
  std::map<std::uint32_t, std::shared_ptr<OneClient>> clients_;  ///< By number, below remote::kMostClients
};

}  // namespace rnic::testbench
