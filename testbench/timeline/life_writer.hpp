#pragma once

#include <array>
#include <cstdint>

#include "testbench/timeline/lanes.hpp"
#include "testbench/timeline/life_sink.hpp"
#include "testbench/timeline/trace_file.hpp"

namespace rnic::testbench {

/// How the lives of requests and packets of one host look in the file. A request has a track from its beginning to its
/// end; what is said of it and of packets is written when they are over, with arrows.
class LifeWriter final : public LifeSink {
 public:
  LifeWriter(TraceFile& file, unsigned host);

  void request_begins(Request& request) override;
  void request_ends(Request& request) override;
  void send_begins(Packet& packet) override;
  void send_ends(Packet& packet) override;
  void receive_begins(Packet& packet) override;
  void receive_ends(Packet& packet) override;
  void packet_over(Packet& packet) override;
  void packet_received(Packet& packet) override;
  void frame(const Frame& frame, Packet* packet) override;
  void stall_over(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to,
                  const Request* request) override;
  void wait_over(WaitKind what, std::uint64_t from, std::uint64_t to) override;
  void tlb_missed(std::uint64_t at) override;
  void tlp(const model::TlpSeen&, std::uint64_t) override {}
  void counted(hw::Counter) override {}

 private:
  void write_cqe(const Request& request);

  TraceFile& file_;
  unsigned host_;
  std::uint64_t arrows_ = 0;
  Lanes tx_, rx_;
  std::array<Lanes, 256> requests_, receives_;
};

}  // namespace rnic::testbench
