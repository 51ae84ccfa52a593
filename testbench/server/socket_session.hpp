#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "driver/remote/connection_memory.hpp"
#include "testbench/server/frame_reader.hpp"
#include "testbench/server/helped_memory.hpp"
#include "testbench/server/listener.hpp"
#include "testbench/server/poller.hpp"
#include "testbench/server/session.hpp"

namespace rnic::testbench {

class EventLogWriter;

/// A process that has come to the socket of a host: its connection, and its doorbells.
class SocketSession : public Session {
 public:
  /// `log`, if there is one, hears what the process says before the host does. Throws std::system_error when the system
  /// has no memory or descriptors for it.
  static std::shared_ptr<SocketSession> open(HostServer& host, Listener::Peer peer, EventLogWriter* log);
  ~SocketSession() override;

  bool take() override;
  void written() override { written_ = true; }
  void hold_clock() override {
    memory_->clock.hold();
    memory_->simulated.hold();
  }
  [[nodiscard]] std::uint64_t awaited_ns() const override { return ended() ? 0 : memory_->awaited_ns.load(); }
  void show_simulated(const SimulatedInstant& now) override {
    memory_->simulated.set(now.now_ns, now.still_since, now.most_ns);
  }
  [[nodiscard]] bool only_reads_time() const override { return purpose_ == remote::Purpose::kClock; }
  void show(std::uint64_t now_ns, std::uint64_t still_since) override;
  [[nodiscard]] bool fall_asleep() override;
  void wake_up() override { memory_->asleep.store(0); }
  void say_goodbye() override;

 private:
  SocketSession(HostServer& host, Listener::Peer peer);
  [[nodiscard]] bool send(const Answer& answer) override;
  [[nodiscard]] std::shared_ptr<model::ProcessMemory> reach_memory() override;
  void disconnect() override;
  void show_status(std::uint32_t client, std::uint32_t word) override { memory_->status[client].store(word); }
  void rouse() override { memory_->wakes.advance(); }

  bool take_doorbells();
  bool take_requests();
  void greet(const RequestFrame& frame);
  void hang_up(const std::string& why);

  remote::Descriptor socket_;
  remote::Descriptor process_end_;
  remote::Descriptor bell_;
  remote::Descriptor memory_descriptor_;
  remote::ConnectionMemory* memory_{};
  remote::Purpose purpose_{};
  Poller::Watch socket_watch_{}, process_watch_{}, bell_watch_{};
  EventLogWriter* log_{};
  std::uint64_t number_{};                ///< In the log
  std::shared_ptr<HelpedMemory> helped_;  ///< Null: its memory is out of reach, or nothing has asked for it
  FrameReader frames_;
  bool greeted_ = false;
  bool socket_readable_ = false;
  bool more_ = false;  ///< Requests may be left
  bool written_ = false;
  std::uint32_t next_ticket_{};  ///< Of its doorbells
};

}  // namespace rnic::testbench
