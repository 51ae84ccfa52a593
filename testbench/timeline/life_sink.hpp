#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "model/root_complex.hpp"
#include "testbench/timeline/block_usage.hpp"
#include "testbench/timeline/life.hpp"

namespace rnic::testbench {

/// A frame on the wire. Times are picoseconds.
struct Frame {
  std::uint64_t from{}, to{};  ///< First bit of the preamble, last bit
  std::size_t bytes{};         ///< Without frame check sequence
  bool roce{};                 ///< What follows is known
  std::uint8_t opcode{};
  std::uint32_t psn{}, dest_qpn{};
  bool injected{};        ///< By the testbench, not by the NIC
  std::uint8_t faults{};  ///< Bit i: WireFault i hits it on its way
};

/// For what a part of a NIC waits.
enum class WaitKind : std::uint8_t { kTag, kLink, kCount };

/// Hears what becomes of the work requests and the packets of one host: those that its NIC makes and those that come to
/// it. Each is told once, and what is over is forgotten by who tells it.
class LifeSink {
 public:
  virtual ~LifeSink() = default;

  virtual void request_begins(Request& request) = 0;
  /// Its CQE is made: `status` is known. It ends when the CQE is polled, or later.
  virtual void request_completes(Request&) {}
  /// It is over, with all that is known of it.
  virtual void request_ends(Request& request) = 0;

  // The send path works on a packet, and the receive side.
  virtual void send_begins(Packet& packet) = 0;
  virtual void send_ends(Packet& packet) = 0;
  virtual void receive_begins(Packet& packet) = 0;
  virtual void receive_ends(Packet& packet) = 0;
  /// Nothing more can come of a packet that a NIC has made, that of `packet.host`.
  virtual void packet_over(Packet& packet) = 0;
  /// One that has come is judged and, if it was good, placed. `packet.id` is 0 when nobody has seen how it was made.
  virtual void packet_received(Packet& packet) = 0;

  /// This host has sent it. `packet` may be null: nothing is known of it inside the NIC.
  virtual void frame(const Frame& frame, Packet* packet) = 0;
  /// A queue pair did not go on. `request`, if not null, is the one that it worked on.
  virtual void stall_over(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to,
                          const Request* request) = 0;
  virtual void wait_over(WaitKind what, std::uint64_t from, std::uint64_t to) = 0;
  virtual void tlb_missed(std::uint64_t at) = 0;

  /// A TLP passes the ports of the NIC.
  virtual void tlp(const model::TlpSeen& tlp, std::uint64_t at) = 0;
  /// The NIC counts an event.
  virtual void counted(hw::Counter counter) = 0;
  /// Where to count what the blocks of the NIC do in each cycle; null: nobody wants to know.
  [[nodiscard]] virtual BlockUsage* usage() { return nullptr; }
};

/// Tells several what one is told.
class LifeSinks final : public LifeSink {
 public:
  void add(LifeSink& sink) { sinks_.push_back(&sink); }

  void request_begins(Request& request) override {
    for (auto* sink : sinks_) sink->request_begins(request);
  }
  void request_completes(Request& request) override {
    for (auto* sink : sinks_) sink->request_completes(request);
  }
  void request_ends(Request& request) override {
    if (std::exchange(request.over, true)) return;
    for (auto* sink : sinks_) sink->request_ends(request);
  }
  void send_begins(Packet& packet) override {
    for (auto* sink : sinks_) sink->send_begins(packet);
  }
  void send_ends(Packet& packet) override {
    for (auto* sink : sinks_) sink->send_ends(packet);
  }
  void receive_begins(Packet& packet) override {
    for (auto* sink : sinks_) sink->receive_begins(packet);
  }
  void receive_ends(Packet& packet) override {
    for (auto* sink : sinks_) sink->receive_ends(packet);
  }
  void packet_over(Packet& packet) override {
    for (auto* sink : sinks_) sink->packet_over(packet);
  }
  void packet_received(Packet& packet) override {
    for (auto* sink : sinks_) sink->packet_received(packet);
  }
  void frame(const Frame& frame, Packet* packet) override {
    for (auto* sink : sinks_) sink->frame(frame, packet);
  }
  void stall_over(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to,
                  const Request* request) override {
    for (auto* sink : sinks_) sink->stall_over(qp, reason, from, to, request);
  }
  void wait_over(WaitKind what, std::uint64_t from, std::uint64_t to) override {
    for (auto* sink : sinks_) sink->wait_over(what, from, to);
  }
  void tlb_missed(std::uint64_t at) override {
    for (auto* sink : sinks_) sink->tlb_missed(at);
  }
  void tlp(const model::TlpSeen& tlp, std::uint64_t at) override {
    for (auto* sink : sinks_) sink->tlp(tlp, at);
  }
  void counted(hw::Counter counter) override {
    for (auto* sink : sinks_) sink->counted(counter);
  }
  /// Of the first who wants it.
  [[nodiscard]] BlockUsage* usage() override {
    for (auto* sink : sinks_) {
      if (auto* usage = sink->usage()) return usage;
    }
    return nullptr;
  }

 private:
  std::vector<LifeSink*> sinks_;
};

}  // namespace rnic::testbench
