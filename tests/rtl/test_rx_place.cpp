#include <Vrx_place.h>

#include "tests/rtl/rx_models.hpp"

// rtl/rx/rx_place.sv: payload of interleaved messages lands where the scatter lists and keys say, byte for byte; a
// packet that faults leaves nothing in memory; what is done is reported in order and not before its writes;
// translations are handed back.
using namespace rnic;
using namespace rnic::test;

namespace {
/// Counts the packets that have left.
struct LeftCounter : Agent {
  explicit LeftCounter(Bench<Vrx_place>& b) : bench(b) { bench.add(*this); }
  void drive() override {}
  void sample() override { count += bench.dut->left_o; }
  Bench<Vrx_place>& bench;
  std::uint64_t count = 0;
};

struct Bed {
  explicit Bed(std::uint64_t value)
      : bench(value),
        world(bench.rng),
        xlate(bench, world.regions),
        writes(bench),
        reads(bench),
        left(bench),
        model(world.regions) {
    bench.add(plans);
    bench.add(payload);
    bench.add(done);
    done.on_item = [this](const rtl::RxDone& item) { check(item); };
    bench.dut->clear_valid_i = 0;
    bench.reset();
  }

  // ---- Messages ----
  struct Message {
    rtl::PlaceTarget target;
    std::uint64_t length = 0, at = 0;
    std::uint32_t key = 0;
    std::uint64_t va = 0;
    ScatterList list;
    std::uint16_t wqe_idx = 0;
  };

  /// The WQE of a message, in a slot of random size.
  void fetch(Message& m, std::uint8_t qp, std::uint32_t qpn) {
    const bool send = m.target == rtl::PlaceTarget::kResponse;
    const std::size_t slot = wide ? 512 : (send ? 64u : 32u) << bench.uniform(0, send ? 3 : 4);
    const auto made = world.wqe(send, m.length, slot, m.wqe_idx, qpn, fault_rate);
    m.list = made.list;
    reads.push((bench.uniform(0, 1000) * 512 + qp * 0x100000ULL) / slot * slot, made.bytes, made.err);
  }

  /// One packet of some message, or one without payload.
  void step() {
    const std::uint8_t qp = static_cast<std::uint8_t>(bench.uniform(0, 2) * 100);
    const bool requester = bench.chance(0.5);
    rtl::RxPlan plan;
    plan.qp = qp;
    plan.qpn = 0xabc00u + qp;
    plan.pd = MemoryWorld::kPd;
    plan.psn = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
    plan.solicited = bench.chance(0.5);
    plan.ack_req = bench.chance(0.5);
    plan.byte_count = static_cast<std::uint32_t>(bench.rng());
    plan.syndrome = static_cast<std::uint8_t>(bench.rng());
    plan.va = bench.rng();
    plan.key = static_cast<std::uint32_t>(bench.rng());
    Bytes data;
    if (bench.chance(0.2)) {
      const std::array responder{rtl::RxAction::kNak, rtl::RxAction::kExecuted, rtl::RxAction::kNone,
                                 rtl::RxAction::kReadRequest};
      const std::array initiator{rtl::RxAction::kAck, rtl::RxAction::kNakReceived, rtl::RxAction::kReadDone,
                                 rtl::RxAction::kBadResponse};
      plan.action = static_cast<std::uint8_t>((requester ? initiator : responder)[bench.uniform(0, 3)]);
      plan.wqe_idx = static_cast<std::uint16_t>(bench.rng());
      if (plan.action == static_cast<std::uint8_t>(rtl::RxAction::kReadRequest) && bench.chance(0.8)) {
        plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kCheckRead);
        plan.check_length = static_cast<std::uint32_t>(bench.uniform(1, 100000));
        std::tie(plan.key, plan.va) = world.range(plan.check_length, bench.chance(fault_rate));
      } else if (bench.chance(0.4)) {
        data = random_bytes(bench.rng, bench.uniform(1, 300));
        plan.drop_payload = 1;
      }
      submit(plan, data, nullptr);
      return;
    }
    auto& slot = active[{requester, qp}];
    const bool starts = !slot;
    if (starts) {
      Message m;
      m.target = requester           ? rtl::PlaceTarget::kResponse
                 : bench.chance(0.5) ? rtl::PlaceTarget::kReceive
                                     : rtl::PlaceTarget::kWrite;
      m.length = bench.chance(0.1) ? 8 : bench.chance(0.5) ? bench.uniform(1, 300) : bench.uniform(1, 12000);
      m.wqe_idx = static_cast<std::uint16_t>(bench.rng());
      if (m.target == rtl::PlaceTarget::kWrite)
        std::tie(m.key, m.va) = world.range(m.length, bench.chance(fault_rate));
      else
        fetch(m, qp, plan.qpn);
      slot = m;
    }
    auto& m = *slot;
    const std::uint64_t mtu = 4096;
    const std::uint64_t length = std::min(m.length - m.at, mtu);
    const bool last = m.at + length == m.length;
    data = random_bytes(bench.rng, length);
    plan.target = static_cast<std::uint8_t>(m.target);
    plan.first_byte = static_cast<std::uint32_t>(m.at);
    plan.wqe_idx = m.wqe_idx;
    plan.msg_last = last;
    if (m.target == rtl::PlaceTarget::kWrite) {
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kExecuted);
      plan.key = m.key;
      plan.va = m.va + m.at;
      plan.check_length = static_cast<std::uint32_t>(starts ? m.length : length);
    } else {
      plan.sgl_fetch = starts;
      plan.action =
          static_cast<std::uint8_t>(requester ? (last ? rtl::RxAction::kReadDone : rtl::RxAction::kReadData)
                                              : (last ? rtl::RxAction::kReceiveDone : rtl::RxAction::kExecuted));
    }
    // The answer of an atomic: 8 bytes, the most significant first.
    plan.atomic = m.target == rtl::PlaceTarget::kResponse && m.length == 8 && bench.chance(0.5);
    m.at += length;
    submit(plan, data, plan.sgl_fetch ? &m.list : nullptr);
    if (last) slot.reset();
  }

  void submit(rtl::RxPlan plan, const Bytes& data, const ScatterList* list) {
    plan.payload_length = static_cast<std::uint16_t>(data.size());
    plans.push(plan);
    for (const auto& beat : payload_beats(data, bench.rng)) payload.push(beat);
    ++submitted;
    if (auto result = model.place(plan, data, list)) expected.push_back({*result, model.placed_bytes});
  }
  void check(const rtl::RxDone& item) {
    REQUIRE(!expected.empty());
    const auto& [want, bytes] = expected.front();
    const auto shape = [](const rtl::RxDone& d) {
      return std::vector<std::uint64_t>{d.qp,       d.qpn,     d.action, d.fault,   d.status,
                                        d.overflow, d.bad_wqe, d.psn,    d.syndrome};
    };
    REQUIRE(shape(item) == shape(want));
    REQUIRE(item == want);
    REQUIRE(writes.done_bytes >= bytes);
    expected.pop_front();
  }
  bool idle() const {
    return plans.idle() && payload.idle() && expected.empty() && left.count == submitted && xlate.idle() &&
           writes.idle() && reads.idle();
  }
  void settle(std::uint64_t limit) {
    const std::uint64_t end = bench.cycle + limit;
    while (!idle()) {
      REQUIRE(bench.cycle < end);
      bench.tick();
    }
    for (int i = 0; i < 5; ++i) bench.tick();
    REQUIRE(writes.memory.bytes == model.memory.bytes);
  }
  void clear(std::uint8_t qp) {
    bench.dut->clear_valid_i = 1;
    bench.dut->clear_qp_i = qp;
    bench.tick();
    bench.dut->clear_valid_i = 0;
    model.reset(qp);
    active.erase({false, qp});
    active.erase({true, qp});
  }

  Bench<Vrx_place> bench;
  MemoryWorld world;
  XlatePort<Vrx_place> xlate;
  WritePort<Vrx_place> writes;
  ReadPort<Vrx_place> reads;
  LeftCounter left;
  PlaceModel model;
  Source<rtl::RxPlan> plans{[this](bool v) { bench.dut->plan_valid_i = v; },
                            [this] { return bench.dut->plan_ready_o != 0; },
                            [this](const rtl::RxPlan& item) { put(bench.dut->plan_data_i, item); }, bench.rng};
  Source<rtl::PayloadBeat> payload{
      [this](bool v) { bench.dut->payload_valid_i = v; }, [this] { return bench.dut->payload_ready_o != 0; },
      [this](const rtl::PayloadBeat& item) { put(bench.dut->payload_data_i, item); }, bench.rng};
  Sink<rtl::RxDone> done{[this] { return bench.dut->done_valid_o != 0; },
                         [this](bool r) { bench.dut->done_ready_i = r; },
                         [this] { return get<rtl::RxDone>(bench.dut->done_data_o); }, bench.rng};
  std::map<std::pair<bool, std::uint8_t>, std::optional<Message>> active;
  std::deque<std::pair<rtl::RxDone, std::uint64_t>> expected;
  double fault_rate = 0;
  bool wide = false;  ///< WQEs in the largest slots
  std::uint64_t submitted = 0;
};
}  // namespace

TEST_CASE("rx_place: random messages of both sides, random faults, random stalls", "[rtl]") {
  Bed bed(seed());
  for (int round = 0; round < 60; ++round) {
    bed.fault_rate = round % 3 == 0 ? 0 : 0.02;
    for (double* rate :
         {&bed.plans.rate, &bed.payload.rate, &bed.done.rate, &bed.xlate.rate, &bed.writes.rate, &bed.reads.rate})
      *rate = bed.bench.chance(0.5) ? 1.0 : bed.bench.uniform(1, 10) / 10.0;
    bed.xlate.slow = bed.bench.chance(0.3);
    bed.writes.slow = bed.bench.chance(0.3);
    bed.reads.latency = bed.bench.chance(0.3) ? 400 : 10;
    for (int i = 0; i < 60; ++i) bed.step();
    bed.settle(200000);
    for (const int qp : {0, 100, 200})
      if (bed.model.dead(false, static_cast<std::uint8_t>(qp)) || bed.model.dead(true, static_cast<std::uint8_t>(qp)))
        bed.clear(static_cast<std::uint8_t>(qp));
  }
  std::printf("rx_place: %llu packets, %llu bytes, %llu faults\n", static_cast<unsigned long long>(bed.submitted),
              static_cast<unsigned long long>(bed.model.placed_bytes),
              static_cast<unsigned long long>(bed.model.faults));
  CHECK(bed.model.faults > 30);
}

// Whoever takes the packets may wait for a drain of the translation block: an invalidation for a SEND. The drain must
// not wait for him.
TEST_CASE("rx_place: all translations are handed back although nobody takes the packets", "[rtl]") {
  Bed bed(seed(7));
  for (int round = 0; round < 12; ++round) {
    bed.fault_rate = round % 3 == 0 ? 0.02 : 0;
    bed.writes.slow = round % 2 != 0;
    bed.xlate.slow = round % 4 == 1;
    const int burst = round % 2 ? 300 : 30;
    for (int i = 0; i < burst; ++i) bed.step();
    bed.bench.run(bed.bench.uniform(0, 300));
    bed.done.rate = 0;
    const auto before = bed.expected.size();
    bed.bench.run(40'000);
    CHECK(bed.expected.size() == before);
    CHECK(bed.xlate.idle());
    bed.done.rate = 1;
    bed.settle(400'000);
    for (const int qp : {0, 100, 200}) bed.clear(static_cast<std::uint8_t>(qp));
  }
}

// Pieces, runs and packets wait until every queue is full: of the memory writes none is taken, or none is done.
TEST_CASE("rx_place: while writes stand still nothing leaves and nothing is lost", "[rtl]") {
  Bed bed(seed(8));
  bed.wide = true;
  bed.world.long_lists = 0.8;
  for (int round = 0; round < 8; ++round) {
    bed.fault_rate = round % 4 == 3 ? 0.02 : 0;
    if (round % 2)
      bed.writes.silent = true;
    else
      bed.writes.rate = 0;
    bed.xlate.slow = round % 3 == 0;
    for (int i = 0; i < 120; ++i) bed.step();
    bed.bench.run(3000);
    const auto left = bed.left.count, done = bed.writes.done_bytes, requests = bed.xlate.requests;
    CHECK(!bed.expected.empty());
    CHECK(!bed.xlate.idle());
    bed.bench.run(500);
    CHECK(bed.left.count == left);
    CHECK(bed.writes.done_bytes == done);
    CHECK(bed.xlate.requests == requests);
    bed.writes.rate = 1;
    bed.writes.silent = false;
    bed.settle(200'000);
    for (const int qp : {0, 100, 200}) bed.clear(static_cast<std::uint8_t>(qp));
  }
}

TEST_CASE("rx_place: rate of small and of large packets", "[rtl]") {
  Bed bed(seed());
  const auto measure = [&](const char* what, int packets, std::uint64_t bytes, bool receive) {
    std::uint64_t start = bed.bench.cycle;
    for (int i = 0; i < packets; ++i) {
      rtl::RxPlan plan;
      plan.qp = 1;
      plan.qpn = 0xabc01;
      plan.pd = MemoryWorld::kPd;
      plan.check_length = static_cast<std::uint32_t>(bytes);
      Bed::Message m;
      m.target = receive ? rtl::PlaceTarget::kReceive : rtl::PlaceTarget::kWrite;
      m.length = bytes;
      plan.target = static_cast<std::uint8_t>(m.target);
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kExecuted);
      plan.sgl_fetch = receive;
      plan.key = bed.world.good[3].key;
      plan.va = bed.world.good[3].va / 4096 * 4096 + 8192 + 24;
      if (receive) {
        m.list.entries.push_back({.va = plan.va, .length = static_cast<std::uint32_t>(bytes), .lkey = plan.key});
        Bytes wqe(64);
        hw::WqeReceive head{.sge_count = 1};
        head.encode(std::span<std::uint8_t, 16>(wqe.data(), 16));
        m.list.entries[0].encode(std::span<std::uint8_t, 16>(wqe.data() + 16, 16));
        bed.reads.push(0x1000, wqe, false);
      }
      bed.submit(plan, random_bytes(bed.bench.rng, bytes), receive ? &m.list : nullptr);
    }
    bed.settle(100000);
    const double cycles = static_cast<double>(bed.bench.cycle - start) / packets;
    std::printf("rx_place: %s: %.1f cycles a packet\n", what, cycles);
    return cycles;
  };
  CHECK(measure("8-byte WRITE", 200, 8, false) < 6);
  CHECK(measure("8-byte SEND", 200, 8, true) < 10.5);
  CHECK(measure("4096-byte WRITE, unaligned", 100, 4096, false) < 69);
  CHECK(measure("one 8-byte WRITE, plan to done", 1, 8, false) < 40);
}
