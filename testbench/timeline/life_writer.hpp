#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "testbench/timeline/lanes.hpp"
#include "testbench/timeline/life.hpp"
#include "testbench/timeline/trace_file.hpp"

namespace rnic::testbench {

/// How the lives of requests and packets of one host look in the file.
class LifeWriter {
 public:
  LifeWriter(TraceFile& file, unsigned host);

  [[nodiscard]] TraceFile& file() { return file_; }
  /// A track for `request`, from now until it is over.
  void begin(Request& request);
  /// Writes it, and frees its track. Once.
  void end(Request& request);

  void begin_send(Packet& packet);
  void end_send(Packet& packet);
  void begin_receive(Packet& packet);
  void end_receive(Packet& packet);
  /// What there is of it, with arrows, once nothing more can come.
  void write_send(Packet& packet);
  void write_receive(Packet& packet);

  /// `packet` may be null: a frame of which nothing is known inside the NIC.
  void write_frame(Packet* packet, std::uint64_t from, std::uint64_t to, std::uint8_t opcode, std::uint32_t psn,
                   std::uint32_t dest_qpn, std::size_t bytes, bool injected);
  void write_stall(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to, const Request* request);
  /// An interval in which a block waits.
  void write_wait(const std::string& what, std::uint64_t from, std::uint64_t to);
  void write_instant(const std::string& block, std::uint64_t at, std::string_view what);

 private:
  void write_cqe(const Request& request);

  TraceFile& file_;
  unsigned host_;
  std::uint64_t arrows_ = 0;
  Lanes tx_, rx_;
  std::array<Lanes, 256> requests_, receives_;
};

[[nodiscard]] std::string_view name(Stage stage);
[[nodiscard]] std::string_view name(StallReason reason);
[[nodiscard]] std::string_view name(RxReason reason);
/// A BTH opcode as in table 38 of the InfiniBand specification.
[[nodiscard]] const std::string& opcode_name(std::uint8_t opcode);
/// What a work request does.
[[nodiscard]] std::string_view request_name(const Request& request);

}  // namespace rnic::testbench
