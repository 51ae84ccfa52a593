#include <Vqp_event_taps.h>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/top/qp_event_taps.sv: which counter of which queue pair goes up, for every packet of the responder and every
// fault (host interface, QpCounter).
using namespace rnic;
using namespace rnic::test;

namespace {
constexpr std::size_t kSources = 5;
enum Source : std::size_t { kChecks, kPlacing, kResponder, kFaults, kRecovery };

struct World {
  World() {
    std::bitset<hw::kQpCounters> none;
    set_port_bits(dut.rx_event_i, none);
    set_port_bits(dut.event_i, global);
    packet({}, false);
    fault({}, false);
  }
  void packet(const rtl::TxDesc& desc, bool handed_over = true) {
    std::array<std::uint8_t, rtl::TxDesc::kBytes> bytes{};
    desc.encode(bytes);
    port_from_bytes(dut.rsp_desc_data_i, bytes);
    dut.rsp_desc_i = handed_over;
  }
  void fault(const rtl::TxFault& fault, bool handed_over = true) {
    std::array<std::uint8_t, rtl::TxFault::kBytes> bytes{};
    fault.encode(bytes);
    port_from_bytes(dut.tx_fault_data_i, bytes);
    dut.tx_fault_i = handed_over;
  }
  void count(hw::Counter counter) {
    global[raw(counter)] = true;
    set_port_bits(dut.event_i, global);
  }
  /// What a source says: counters by their bits, all other sources nothing.
  std::uint32_t events_of(Source source) {
    dut.eval();
    std::uint32_t events = 0;
    for (std::size_t s = 0; s < kSources; ++s) {
      for (std::size_t i = 0; i < hw::kQpCounters; ++i) {
        if (!port_bit(dut.qp_event_o, s * hw::kQpCounters + i)) continue;
        REQUIRE(s == source);
        events |= 1u << i;
      }
    }
    return events;
  }
  std::uint8_t qp_of(Source source) {
    dut.eval();
    unsigned qp = 0;
    for (std::size_t i = 0; i < 8; ++i) qp |= unsigned{port_bit(dut.qp_event_qp_o, source * 8 + i)} << i;
    return static_cast<std::uint8_t>(qp);
  }

  Vqp_event_taps dut;
  std::bitset<hw::kCounterNames.size()> global;
};

constexpr std::uint32_t bit(hw::QpCounter counter) { return 1u << raw(counter); }
}  // namespace

TEST_CASE("qp_event_taps: a NAK and an RNR NAK of the responder count, an ACK and a Read response do not", "[rtl]") {
  World w;
  for (unsigned syndrome = 0; syndrome < 256; ++syndrome) {
    CAPTURE(syndrome);
    const bool rnr = syndrome >> 5 == 1, nak = syndrome >> 5 == 3;  // 9.7.5.1, table 45: bits 6:5 of the AETH
    rtl::TxDesc desc{.qp = 7, .responder = 1, .opcode = raw(hw::RcOpcode::kAcknowledge)};
    desc.syndrome = static_cast<std::uint8_t>(syndrome);
    w.packet(desc);
    CHECK(w.events_of(kResponder) == (nak   ? bit(hw::QpCounter::kNaksSent)
                                      : rnr ? bit(hw::QpCounter::kRnrNaksSent)
                                            : 0));
    CHECK(w.qp_of(kResponder) == 7);
    w.packet(desc, false);
    CHECK(w.events_of(kResponder) == 0);
    desc.opcode = raw(hw::RcOpcode::kReadResponseOnly);
    w.packet(desc);
    CHECK(w.events_of(kResponder) == 0);
  }
}

TEST_CASE("qp_event_taps: a NAK that does not leave does not count", "[rtl]") {
  World w;
  rtl::TxDesc desc{.qp = 200, .responder = 1, .opcode = raw(hw::RcOpcode::kAcknowledge)};
  desc.syndrome = 0x60;
  desc.quiet = 1;
  w.packet(desc);
  CHECK(w.events_of(kResponder) == 0);
  desc.quiet = 0;
  w.packet(desc);
  CHECK(w.events_of(kResponder) == bit(hw::QpCounter::kNaksSent));
}

TEST_CASE("qp_event_taps: a fault of the send path counts, what has been sent does not", "[rtl]") {
  World w;
  w.fault({.qp = 33, .sent = 1});
  CHECK(w.events_of(kFaults) == 0);
  w.fault({.qp = 33});
  CHECK(w.events_of(kFaults) == bit(hw::QpCounter::kSendFaults));
  CHECK(w.qp_of(kFaults) == 33);
  w.fault({.qp = 33}, false);
  CHECK(w.events_of(kFaults) == 0);
}

TEST_CASE("qp_event_taps: checks, placing and recovery count for the queue pairs beside them", "[rtl]") {
  World w;
  std::bitset<hw::kQpCounters> checks;
  checks[raw(hw::QpCounter::kDuplicates)] = true;
  set_port_bits(w.dut.rx_event_i, checks);
  w.dut.rx_qp_i = 1;
  CHECK(w.events_of(kChecks) == bit(hw::QpCounter::kDuplicates));
  CHECK(w.qp_of(kChecks) == 1);
  set_port_bits(w.dut.rx_event_i, std::bitset<hw::kQpCounters>());
  w.dut.place_fault_i = 1;
  w.dut.place_qp_i = 255;
  CHECK(w.events_of(kPlacing) == bit(hw::QpCounter::kPlaceFaults));
  CHECK(w.qp_of(kPlacing) == 255);
  w.dut.place_fault_i = 0;
  w.dut.recovery_qp_i = 128;
  const std::pair<hw::Counter, hw::QpCounter> counters[] = {
      {hw::Counter::kSequenceRetries, hw::QpCounter::kSequenceRetries},
      {hw::Counter::kAckTimeouts, hw::QpCounter::kAckTimeouts},
      {hw::Counter::kRetriesExhausted, hw::QpCounter::kRetriesExhausted}};
  std::uint32_t all = 0;
  for (const auto& [global, of_qp] : counters) {
    w.count(global);
    all |= bit(of_qp);
    CHECK(w.events_of(kRecovery) == all);
    CHECK(w.qp_of(kRecovery) == 128);
  }
}
