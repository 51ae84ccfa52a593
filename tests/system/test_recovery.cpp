// Loss recovery of the RC transport, packet by packet: exactly this frame is lost, and this must follow.
// InfiniBand specification volume 1: 9.7.5 (responder: duplicates, NAK, RNR NAK), 9.7.6 (requester: time-out, retries,
// implied NAK), 9.9.2 (errors after the last retry).
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <string>

#include "model/bth.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using model::WireFault;

namespace {

constexpr ULONG kRights = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
constexpr std::uint8_t kSendOnly = 4, kWriteMiddle = 7, kWriteLast = 8, kWriteOnly = 10, kReadRequest = 12,
                       kReadFirst = 13, kReadMiddle = 14, kReadLast = 15, kAck = 17;
constexpr std::size_t kBytes = 64 << 10;
constexpr double kDelayNs = 2'000;

/// A frame on the wire, in the order in which they were sent.
struct Seen {
  std::size_t from;
  std::uint8_t opcode;
  std::uint32_t psn;
  std::uint8_t syndrome;  ///< Of an ACK
  double end_ns;
  bool lost;
};

/// Two hosts, a connected pair, memory of both, and what was on the wire.
struct Lab {
  Lab(World& of, Endpoint& end_a, Endpoint& end_b, ConnectParameters connection = {1024}, ULONG depth = 8)
      : world(of), a(end_a), b(end_b), pair(a, b, {{depth, depth, 2, 2, 0, nullptr}, connection}) {
    Endpoint* hosts[] = {&a, &b};
    for (std::size_t i = 0; i < 2; ++i) {
      memory[i] = static_cast<std::uint8_t*>(hosts[i]->host().memory().allocate(kBytes));
      for (std::size_t k = 0; k < kBytes; ++k) memory[i][k] = static_cast<std::uint8_t>(k * 7 + k / 256 + 101 * i);
      region[i] = hosts[i]->register_memory(memory[i], kBytes, kRights);
    }
    world.observe_frames([this](const model::FrameRecord& record) {
      const auto packet = model::find_roce_packet(record.bytes);
      if (!packet) return;
      const bool lost = (record.faults & 1u << static_cast<unsigned>(WireFault::kDrop)) != 0;
      frames.push_back({record.from, packet->opcode, packet->psn,
                        record.bytes.size() > 54 ? record.bytes[54] : std::uint8_t{0},
                        static_cast<double>(record.end) / 1000, lost});
    });
  }
  ~Lab() { world.observe_frames({}); }

  void lose(std::size_t from, std::uint8_t opcode, std::uint64_t nth = 1, std::uint64_t count = 1) {
    model::WireRule rule;
    rule.fault = WireFault::kDrop;
    rule.match.opcode = opcode;
    rule.nth = nth;
    rule.count = count;
    world.wire().arm(from, rule);
  }
  void write(std::size_t bytes, std::size_t offset = 0, ULONG flags = 0) {
    const ND2_SGE sge{memory[0] + offset, static_cast<ULONG>(bytes), region[0]->GetLocalToken()};
    REQUIRE(pair.ends[0].qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(memory[1] + offset),
                                   region[1]->GetRemoteToken(), flags) == ND_SUCCESS);
  }
  void read(std::size_t bytes) {
    const ND2_SGE sge{memory[0], static_cast<ULONG>(bytes), region[0]->GetLocalToken()};
    REQUIRE(pair.ends[0].qp->Read(nullptr, &sge, 1, reinterpret_cast<UINT64>(memory[1]), region[1]->GetRemoteToken(),
                                  0) == ND_SUCCESS);
  }
  void send(std::size_t bytes) {
    const ND2_SGE sge{memory[0], static_cast<ULONG>(bytes), region[0]->GetLocalToken()};
    REQUIRE(pair.ends[0].qp->Send(nullptr, &sge, 1, 0) == ND_SUCCESS);
  }
  void receive() {
    const ND2_SGE sge{memory[1], kBytes, region[1]->GetLocalToken()};
    REQUIRE(pair.ends[1].qp->Receive(nullptr, &sge, 1) == ND_SUCCESS);
  }
  HRESULT result(std::uint64_t limit_ns = 3'000'000) {
    ND2_RESULT result{};
    REQUIRE(take_result(a, *pair.ends[0].initiator_cq, result, limit_ns));
    return result.Status;
  }
  /// Posts a Write at the queue pair itself; `defer`: the NIC is not told yet.
  void write_deferred(std::size_t bytes, std::uint32_t key, bool defer) {
    const umd::Segment segment{reinterpret_cast<std::uint64_t>(memory[0]), static_cast<std::uint32_t>(bytes), key};
    REQUIRE(testbench::core_of(*pair.ends[0].qp)
                .post_send({.opcode = hw::WqeOpcode::kWrite,
                            .segments = std::span(&segment, 1),
                            .remote_address = reinterpret_cast<std::uint64_t>(memory[1]),
                            .remote_key = __builtin_bswap32(region[1]->GetRemoteToken()),
                            .defer = defer})
                .ok());
  }
  std::size_t receives() {
    ND2_RESULT results[16];
    return pair.ends[1].receive_cq->GetResults(results, 16);
  }
  bool same(std::size_t bytes) const { return std::memcmp(memory[0], memory[1], bytes) == 0; }
  std::uint64_t count(Endpoint& endpoint, hw::Counter counter) { return endpoint.kernel().counter(counter).take(); }
  std::size_t sent(std::size_t from, std::uint8_t opcode) const {
    std::size_t n = 0;
    for (const auto& frame : frames) n += frame.from == from && frame.opcode == opcode;
    return n;
  }
  /// Acknowledgements of B with this syndrome; RNR NAKs by their kind alone.
  std::size_t naks(std::uint8_t syndrome) const {
    std::size_t n = 0;
    for (const auto& frame : frames)
      n += frame.from == 1 && frame.opcode == kAck &&
           (syndrome == 0x20 ? (frame.syndrome & 0xe0) == 0x20 : frame.syndrome == syndrome);
    return n;
  }

  World& world;
  Endpoint& a;
  Endpoint& b;
  Pair pair;
  std::uint8_t* memory[2];
  ComPtr<IND2MemoryRegion> region[2];
  std::vector<Seen> frames;
};

void experiment(const std::string& name, const std::function<void(World&, Endpoint&, Endpoint&)>& body,
                double delay_ns = kDelayNs) {
  auto options = WorldOptions::from_environment("recovery_" + name);
  options.wire.delay_ns = delay_ns;
  INFO(name << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) { body(world, a, b); });
}

}  // namespace

TEST_CASE("a lost packet of a Write: NAK, and all from there on again (9.7.5.2.2, 9.7.6.1.1)") {
  experiment("write", [](World& world, Endpoint& a, Endpoint& b) {
    for (const std::uint64_t nth : {1, 13, 61}) {
      Lab lab(world, a, b);
      const auto retries = lab.count(a, hw::Counter::kSequenceRetries);
      lab.lose(0, kWriteMiddle, nth);
      lab.write(kBytes);
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.same(kBytes));
      CHECK(lab.naks(0x60) == 1);
      CHECK(lab.count(a, hw::Counter::kSequenceRetries) == retries + 1);
      CHECK(lab.count(a, hw::Counter::kAckTimeouts) == 0);
      // The first frame sent a second time is the one that was lost, one round trip after it.
      std::map<std::uint32_t, double> first;
      const Seen* again = nullptr;
      const Seen* lost = nullptr;
      for (const auto& frame : lab.frames) {
        if (frame.lost) lost = &frame;
        if (frame.from == 0 && !first.emplace(frame.psn, frame.end_ns).second && !again) again = &frame;
      }
      REQUIRE((lost && again));
      CHECK(again->psn == lost->psn);
      // WQE and payload come from host memory again: two reads of 500 ns.
      CHECK(again->end_ns - lost->end_ns < 2 * kDelayNs + 2'700);
    }
  });
}

TEST_CASE(
    "the last packet of a request lost, or its ACK: time-out; a duplicate is not executed again (9.7.6.1.3, 9.7.5.1)") {
  experiment("last", [](World& world, Endpoint& a, Endpoint& b) {
    for (const bool ack : {false, true}) {
      Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 4});  // 65 us
      const auto timeouts = lab.count(a, hw::Counter::kAckTimeouts),
                 duplicates = lab.count(b, hw::Counter::kRxDuplicate);
      lab.receive();
      lab.receive();
      if (ack)
        lab.lose(1, kAck);
      else
        lab.lose(0, kSendOnly);
      lab.send(100);
      const auto start = a.device().now_ns();
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(a.device().now_ns() - start > 65'000);
      CHECK(a.device().now_ns() - start < 85'000);
      a.device().elapse(20'000);
      CHECK(lab.receives() == 1);
      CHECK(lab.count(a, hw::Counter::kAckTimeouts) == timeouts + 1);
      CHECK(lab.count(b, hw::Counter::kRxDuplicate) == duplicates + (ack ? 1 : 0));
      CHECK(lab.sent(0, kSendOnly) == 2);
    }
  });
}

TEST_CASE("a lost Read request or response: the rest is asked for again, by an implied NAK or a time-out (9.7.6.1.2)") {
  experiment("read", [](World& world, Endpoint& a, Endpoint& b) {
    struct Row {
      std::size_t from;
      std::uint8_t opcode;
      std::uint64_t nth;
      bool timeout;
      std::uint32_t arrived;  ///< Responses in front of what is lost
    };
    for (const Row row : {Row{0, kReadRequest, 1, false, 0}, Row{1, kReadFirst, 1, false, 0},
                          Row{1, kReadMiddle, 7, false, 7}, Row{1, kReadLast, 1, true, 31}}) {
      INFO("opcode " << int{row.opcode});
      Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 4});
      const auto timeouts = lab.count(a, hw::Counter::kAckTimeouts), gaps = lab.count(a, hw::Counter::kRxGaps);
      lab.lose(row.from, row.opcode, row.nth);
      lab.read(32 * 1024);
      // A request behind it: without its packet the loss of the Read's request would not be seen before the time-out.
      if (row.from == 0) lab.write(100, 40'000);
      CHECK(lab.result() == ND_SUCCESS);
      if (row.from == 0) CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.same(32 * 1024));
      CHECK((lab.count(a, hw::Counter::kAckTimeouts) > timeouts) == row.timeout);
      if (row.from == 1 && !row.timeout) CHECK(lab.count(a, hw::Counter::kRxGaps) > gaps);
      std::vector<Seen> requests;
      for (const auto& frame : lab.frames) {
        if (frame.opcode == kReadRequest) requests.push_back(frame);
      }
      REQUIRE(requests.size() == 2);
      CHECK(((requests[1].psn - requests[0].psn) & 0xffffff) == row.arrived);
    }
  });
}

TEST_CASE(
    "Reads one behind the other: a lost response costs a round trip of responses, and one going back (9.7.5.1.3, "
    "9.7.5.2.3)") {
  experiment("reads", [](World& world, Endpoint& a, Endpoint& b) {
    constexpr std::size_t kReads = 8, kResponses = kReads * kBytes / 1024;
    // What is on its way when the loss is seen and until the repeated requests arrive: 4 us of wire, as much in the
    // NICs.
    constexpr std::size_t kOnTheirWay = 200;
    for (const std::uint64_t nth : {20, 150}) {
      Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 8}, 16);
      const auto timeouts = lab.count(a, hw::Counter::kAckTimeouts),
                 retries = lab.count(a, hw::Counter::kSequenceRetries);
      lab.lose(1, kReadMiddle, nth);
      for (std::size_t i = 0; i < kReads; ++i) lab.read(kBytes);
      for (std::size_t i = 0; i < kReads; ++i) CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.same(kBytes));
      CHECK(lab.count(a, hw::Counter::kAckTimeouts) == timeouts);
      CHECK(lab.count(a, hw::Counter::kSequenceRetries) == retries + 1);
      std::size_t responses = 0;
      for (const auto& frame : lab.frames)
        responses += frame.from == 1 && frame.opcode >= kReadFirst && frame.opcode <= kReadLast + 1;
      INFO(responses << " responses");
      CHECK(responses <= kResponses + kOnTheirWay);
      CHECK(lab.sent(0, kReadRequest) <= 2 * kReads);
    }
  });
}

TEST_CASE("retries used up: IBV_WC_RETRY_EXC_ERR after retry_count + 1 attempts, and neighbours go on (9.9.2.1.1)") {
  experiment("exhausted", [](World& world, Endpoint& a, Endpoint& b) {
    Lab neighbour(world, a, b);
    for (const std::uint8_t retries : {0, 3, 7}) {
      Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 2, .retry_count = retries});
      lab.lose(0, kWriteOnly, 1, 1000);
      lab.write(8);
      CHECK(lab.result() == ND_IO_TIMEOUT);
      CHECK(lab.sent(0, kWriteOnly) == retries + 1u);
    }
    world.wire().reset(model::WireOptions{.delay_ns = kDelayNs});
    neighbour.write(5000);
    CHECK(neighbour.result() == ND_SUCCESS);
  });
}

TEST_CASE("no Receive: RNR NAK, the wait that it names, and again (9.7.5.2.8)") {
  experiment("rnr", [](World& world, Endpoint& a, Endpoint& b) {
    SECTION("until there is one") {
      Lab lab(world, a, b);
      lab.send(3000);
      a.device().elapse(100'000);
      lab.receive();
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.receives() == 1);
      CHECK(lab.same(3000));
      CHECK(lab.naks(0x20) >= 2);
      CHECK(lab.count(a, hw::Counter::kAckTimeouts) == 0);
    }
    SECTION("rnr_retry times, then IBV_WC_RNR_RETRY_EXC_ERR") {
      for (const std::uint8_t retries : {0, 4}) {
        Lab lab(world, a, b, {.mtu = 1024, .rnr_retry = retries, .min_rnr_timer = 1});
        lab.send(8);
        CHECK(lab.result() == ND_IO_TIMEOUT);
        CHECK(lab.sent(0, kSendOnly) == retries + 1u);
      }
    }
    SECTION("without end if rnr_retry is 7") {
      Lab lab(world, a, b, {.mtu = 1024, .rnr_retry = 7, .min_rnr_timer = 1});
      lab.send(8);
      a.device().elapse(600'000);
      lab.receive();
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.sent(0, kSendOnly) > 10);
    }
    SECTION("the RNR NAK is lost, then the packet that comes after the wait") {
      Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 3});
      lab.lose(1, kAck);
      lab.lose(0, kSendOnly, 3);
      lab.send(8);
      a.device().elapse(90'000);
      lab.receive();
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.receives() == 1);
      CHECK(lab.count(a, hw::Counter::kAckTimeouts) >= 1);
      CHECK(lab.count(a, hw::Counter::kRnrRetries) >= 1);
    }
    SECTION("a wait holds back nothing of its neighbours") {
      Lab lab(world, a, b, {.mtu = 1024, .rnr_retry = 7, .min_rnr_timer = 20});
      Lab neighbour(world, a, b);
      const auto time = [&] {
        const auto start = a.device().now_ns();
        for (int i = 0; i < 5; ++i) {
          neighbour.write(kBytes);
          CHECK(neighbour.result() == ND_SUCCESS);
        }
        return a.device().now_ns() - start;
      };
      const auto before = time();
      lab.send(8);
      a.device().elapse(20'000);
      CHECK(time() <= before + 500);
      lab.receive();
      CHECK(lab.result(30'000'000) == ND_SUCCESS);
    }
  });
}

TEST_CASE("loss round the end of the PSN space (9.2.1, A24)") {
  experiment("wrap", [](World& world, Endpoint& a, Endpoint& b) {
    for (const std::uint32_t first : {0xfffff0u, 0xffffffu, 0x7ffff8u}) {
      Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 4, .first_psn = first});
      lab.lose(0, kWriteMiddle, 14);
      lab.lose(1, kReadMiddle, 9);
      lab.lose(0, kWriteLast);
      lab.write(40 * 1024);
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.same(40 * 1024));
      std::memset(lab.memory[0], 0, 40 * 1024);
      lab.read(40 * 1024);
      CHECK(lab.result() == ND_SUCCESS);
      CHECK(lab.same(40 * 1024));
    }
  });
}

TEST_CASE("packets sent again for nothing: their memory may be gone, and the queue goes on") {
  // The time-out is shorter than the round trip, so every Write is sent again while its ACK is on the way.
  experiment(
      "stale",
      [](World& world, Endpoint& a, Endpoint& b) {
        Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 1, .retry_count = 7});
        for (int round = 0; round < 12; ++round) {
          auto* const source = static_cast<std::uint8_t*>(a.host().memory().allocate(kBytes));
          std::memset(source, round + 1, kBytes);
          auto region = a.register_memory(source, kBytes, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
          const ND2_SGE sge{source, static_cast<ULONG>(kBytes), region->GetLocalToken()};
          REQUIRE(lab.pair.ends[0].qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(lab.memory[1]),
                                             lab.region[1]->GetRemoteToken(), 0) == ND_SUCCESS);
          REQUIRE(lab.result() == ND_SUCCESS);
          region.reset();
          a.host().memory().release(source);
          for (std::size_t i = 0; i < kBytes; i += 997) REQUIRE(lab.memory[1][i] == round + 1);
          CHECK(a.host().iommu().fault_count() == 0);
        }
        CHECK(lab.count(a, hw::Counter::kAckTimeouts) > 5);
      },
      10'000);
}

// The request that fails here has been tried already when the NAK, the gap or the time-out makes the queue go back in
// front of it.
TEST_CASE(
    "a request that fails here behind a lost packet: those in front complete, it fails, the rest is flushed (9.9.2.3; "
    "decisions 1, 7)") {
  experiment("behind", [](World& world, Endpoint& a, Endpoint& b) {
    constexpr std::size_t kFront = 9000;
    for (const bool malformed : {false, true}) {
      for (const int loss : {0, 1, 2}) {
        INFO((malformed ? "malformed" : "bad key") << ", loss " << loss);
        Lab lab(world, a, b, {.mtu = 1024, .ack_timeout = 4});
        std::memset(lab.memory[1], 0, kFront);
        const std::uint32_t key = lab.region[0]->GetLocalToken();
        // A middle packet (NAK), the last one (time-out), a Read's response (time-out, nothing follows it).
        if (loss == 0)
          lab.lose(0, kWriteMiddle, 3);
        else if (loss == 1)
          lab.lose(0, kWriteLast);
        else
          lab.lose(1, kReadMiddle, 2, 6);
        if (loss == 2)
          std::memset(lab.memory[1], 0x3C, kFront), lab.read(kFront);
        else
          lab.write_deferred(kFront, key, true);
        lab.write_deferred(5000, malformed ? key : key ^ 0x40, true);
        if (malformed) {
          auto& core = testbench::core_of(*lab.pair.ends[0].qp);
          core.kernel_qp().send_ring()[std::size_t{1} << umd::SendQueue::log_stride_for(
                                           core.granted().send_segments, core.granted().inline_bytes)] = 0x7F;
        }
        lab.write_deferred(100, key, true);
        lab.write_deferred(100, key, false);
        CHECK(lab.result() == ND_SUCCESS);
        CHECK(lab.same(kFront));
        CHECK(lab.result() == (malformed ? ND_INVALID_DEVICE_REQUEST : ND_ACCESS_VIOLATION));
        CHECK(lab.result() == ND_CANCELED);
        CHECK(lab.result() == ND_CANCELED);
      }
    }
  });
}
