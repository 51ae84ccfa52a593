#include <Vrx_place.h>

#include "tests/rtl/rx_models.hpp"

// rtl/rx/rx_place.sv: payload of interleaved messages lands where the scatter lists and keys say, byte for byte; a packet that
// faults leaves nothing in memory; what is done is reported in order and not before its writes; translations are handed back.
using namespace rnic;
using namespace rnic::test;
using Region = RegionTable::Region;

namespace {
/// Counts the packets that have left.
struct LeftCounter : Agent {
  explicit LeftCounter(Bench<Vrx_place>& b) : bench(b) { bench.add(*this); }
  void drive() override {}
  void sample() override { count += bench.dut->left_o; }
  Bench<Vrx_place>& bench;
  std::uint64_t count = 0;
};

constexpr std::uint32_t kPd = 7;
constexpr std::uint32_t kKeys = 12;  // good regions have index 1 to kKeys

struct Bed {
  explicit Bed(std::uint64_t value) : bench(value), xlate(bench, regions), writes(bench), reads(bench), left(bench), model(regions) {
    bench.add(plans);
    bench.add(payload);
    bench.add(done);
    done.on_item = [this](const rtl::RxDone& item) { check(item); };
    for (std::uint32_t i = 1; i <= kKeys; ++i) {
      Region r{.key = i << 8 | (0x50 + i), .pd = kPd, .va = bench.uniform(0, 1ULL << 40), .length = 1u << 20};
      r.log_page = static_cast<int>(std::array{12, 12, 14, 16}[i % 4]);
      if (i == 1) r.va = ~0ULL - r.length + 1;  // ends at the end of the address space
      regions.add(r);
      good.push_back(r);
    }
    regions.add({.key = 100 << 8, .pd = kPd + 1, .va = 0, .length = 1u << 20});
    regions.add({.key = 101 << 8, .pd = kPd, .va = 0, .length = 1u << 20, .local_write = false, .remote_read = false, .remote_write = false});
    regions.add({.key = 102 << 8, .pd = kPd, .va = 0, .length = 1u << 20, .page_list_error = true});
    bench.dut->clear_valid_i = 0;
    bench.reset();
  }

  /// A range of `length` bytes in a region; with `fault`, one that must be refused.
  std::pair<std::uint32_t, std::uint64_t> range(std::uint64_t length, bool fault) {
    const auto& r = good[bench.uniform(0, good.size() - 1)];
    std::uint64_t offset = bench.uniform(0, r.length - length);
    if (bench.chance(0.3)) offset = std::min<std::uint64_t>(r.length - length, (offset & ~0xfffULL) + 4096 - bench.uniform(0, std::min<std::uint64_t>(length, 4096)));
    if (!fault) return {r.key, r.va + offset};
    switch (bench.uniform(0, 4)) {
      case 0: return {r.key + 1, r.va};
      case 1: return {r.key, r.va + r.length - length + 1};
      case 2: return {200 << 8, 0};
      default: return {static_cast<std::uint32_t>(bench.uniform(100, 102)) << 8, offset};
    }
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

  /// The WQE of a message, with its list; some of them malformed.
  void fetch(Message& m, std::uint8_t qp, std::uint32_t qpn) {
    const bool send = m.target == rtl::PlaceTarget::kResponse;
    std::uint64_t left = bench.chance(fault_rate) ? m.length - std::min<std::uint64_t>(m.length, bench.uniform(1, 200)) : m.length + bench.uniform(0, 100);
    const auto count = bench.chance(0.1) ? 16 : bench.uniform(left ? 1 : 0, 6);
    for (std::uint64_t i = 0; i < count; ++i) {
      hw::WqeData entry;
      const std::uint64_t rest = left - (i + 1 == count ? 0 : bench.uniform(0, left));
      entry.length = static_cast<std::uint32_t>(bench.chance(0.1) && i + 1 < count ? 0 : rest);
      const auto [key, va] = range(entry.length, entry.length == 0 || bench.chance(fault_rate));
      entry.lkey = key;
      entry.va = va;
      left -= entry.length;
      m.list.entries.push_back(entry);
    }
    const std::size_t head = send ? 2 : 1;
    std::size_t segments = head + m.list.entries.size();
    std::size_t slot = send ? 64 : 32;
    while (slot < 16 * segments || (slot < 512 && bench.chance(0.2))) slot *= 2;
    bool err = false;
    std::uint8_t opcode = 2, inline_data = 0;
    std::uint16_t index = m.wqe_idx;
    std::uint32_t number = qpn;
    if (bench.chance(fault_rate)) {
      m.list.bad = true;
      switch (bench.uniform(0, 5)) {
        case 0: err = true; break;
        case 1: ++index; break;
        case 2: segments = slot / 16 + 1; break;
        case 3: segments = send ? bench.uniform(0, 1) : head + 17; break;
        case 4: send ? opcode = static_cast<std::uint8_t>(bench.uniform(0, 1)) : ++index; break;
        default: send ? (bench.chance(0.5) ? inline_data = 1 : ++number) : segments = head + 255; break;
      }
      m.list.entries.clear();
    }
    Bytes wqe = random_bytes(bench.rng, slot);
    if (send) {
      auto control = hw::WqeControl::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16));
      control.opcode = opcode;
      control.inline_data = inline_data;
      control.wqe_index = index;
      control.qpn = number;
      control.size = static_cast<std::uint8_t>(segments);
      control.encode(std::span<std::uint8_t, 16>(wqe.data(), 16));
    } else {
      auto receive = hw::WqeReceive::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16));
      receive.sge_count = static_cast<std::uint8_t>(segments - 1);
      receive.wqe_index = index;
      receive.encode(std::span<std::uint8_t, 16>(wqe.data(), 16));
    }
    for (std::size_t i = 0; i < m.list.entries.size(); ++i) m.list.entries[i].encode(std::span<std::uint8_t, 16>(wqe.data() + 16 * (head + i), 16));
    reads.push((bench.uniform(0, 1000) * 512 + qp * 0x100000ULL) / slot * slot, wqe, err);
  }

  /// One packet of some message, or one without payload.
  void step() {
    const std::uint8_t qp = static_cast<std::uint8_t>(bench.uniform(0, 2) * 100);
    const bool requester = bench.chance(0.5);
    rtl::RxPlan plan;
    plan.qp = qp;
    plan.qpn = 0xabc00u + qp;
    plan.pd = kPd;
    plan.psn = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
    plan.solicited = bench.chance(0.5);
    plan.ack_req = bench.chance(0.5);
    plan.cqn = static_cast<std::uint8_t>(bench.rng());
    plan.byte_count = static_cast<std::uint32_t>(bench.rng());
    plan.syndrome = static_cast<std::uint8_t>(bench.rng());
    plan.va = bench.rng();
    plan.key = static_cast<std::uint32_t>(bench.rng());
    Bytes data;
    if (bench.chance(0.2)) {
      const std::array responder{rtl::RxAction::kNak, rtl::RxAction::kExecuted, rtl::RxAction::kNone, rtl::RxAction::kReadRequest};
      const std::array initiator{rtl::RxAction::kAck, rtl::RxAction::kNakReceived, rtl::RxAction::kReadDone, rtl::RxAction::kBadResponse};
      plan.action = static_cast<std::uint8_t>((requester ? initiator : responder)[bench.uniform(0, 3)]);
      plan.wqe_idx = static_cast<std::uint16_t>(bench.rng());
      if (plan.action == static_cast<std::uint8_t>(rtl::RxAction::kReadRequest) && bench.chance(0.8)) {
        plan.target = static_cast<std::uint8_t>(rtl::PlaceTarget::kCheckRead);
        plan.check_length = static_cast<std::uint32_t>(bench.uniform(1, 100000));
        std::tie(plan.key, plan.va) = range(plan.check_length, bench.chance(fault_rate));
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
      m.target = requester ? rtl::PlaceTarget::kResponse : bench.chance(0.5) ? rtl::PlaceTarget::kReceive : rtl::PlaceTarget::kWrite;
      m.length = bench.chance(0.5) ? bench.uniform(1, 300) : bench.uniform(1, 12000);
      m.wqe_idx = static_cast<std::uint16_t>(bench.rng());
      if (m.target == rtl::PlaceTarget::kWrite) std::tie(m.key, m.va) = range(m.length, bench.chance(fault_rate));
      else fetch(m, qp, plan.qpn);
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
      plan.action = static_cast<std::uint8_t>(requester ? (last ? rtl::RxAction::kReadDone : rtl::RxAction::kReadData)
                                                        : (last ? rtl::RxAction::kReceiveDone : rtl::RxAction::kExecuted));
    }
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
      return std::tuple{d.qp, d.qpn, int{d.action}, int{d.fault}, int{d.status}, int{d.overflow}, int{d.bad_wqe}, d.psn, int{d.syndrome}};
    };
    REQUIRE(shape(item) == shape(want));
    REQUIRE(item == want);
    REQUIRE(writes.done_bytes >= bytes);
    expected.pop_front();
  }
  bool idle() const { return plans.idle() && payload.idle() && expected.empty() && left.count == submitted && xlate.idle() && writes.idle() && reads.idle(); }
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

  RegionTable regions;
  std::vector<Region> good;
  Bench<Vrx_place> bench;
  XlatePort<Vrx_place> xlate;
  WritePort<Vrx_place> writes;
  ReadPort<Vrx_place> reads;
  LeftCounter left;
  PlaceModel model;
  Source<rtl::RxPlan> plans{[this](bool v) { bench.dut->plan_valid_i = v; }, [this] { return bench.dut->plan_ready_o != 0; },
                            [this](const rtl::RxPlan& item) { put(bench.dut->plan_data_i, item); }, bench.rng};
  Source<rtl::PayloadBeat> payload{[this](bool v) { bench.dut->payload_valid_i = v; }, [this] { return bench.dut->payload_ready_o != 0; },
                                   [this](const rtl::PayloadBeat& item) { put(bench.dut->payload_data_i, item); }, bench.rng};
  Sink<rtl::RxDone> done{[this] { return bench.dut->done_valid_o != 0; }, [this](bool r) { bench.dut->done_ready_i = r; },
                         [this] { return get<rtl::RxDone>(bench.dut->done_data_o); }, bench.rng};
  std::map<std::pair<bool, std::uint8_t>, std::optional<Message>> active;
  std::deque<std::pair<rtl::RxDone, std::uint64_t>> expected;
  double fault_rate = 0;
  std::uint64_t submitted = 0;
};
}  // namespace

TEST_CASE("rx_place: random messages of both sides, random faults, random stalls", "[rtl]") {
  Bed bed(seed());
  for (int round = 0; round < 60; ++round) {
    bed.fault_rate = round % 3 == 0 ? 0 : 0.02;
    for (double* rate : {&bed.plans.rate, &bed.payload.rate, &bed.done.rate, &bed.xlate.rate, &bed.writes.rate, &bed.reads.rate})
      *rate = bed.bench.chance(0.5) ? 1.0 : bed.bench.uniform(1, 10) / 10.0;
    bed.xlate.slow = bed.bench.chance(0.3);
    bed.writes.slow = bed.bench.chance(0.3);
    bed.reads.latency = bed.bench.chance(0.3) ? 400 : 10;
    for (int i = 0; i < 60; ++i) bed.step();
    bed.settle(200000);
    for (const int qp : {0, 100, 200})
      if (bed.model.dead(false, static_cast<std::uint8_t>(qp)) || bed.model.dead(true, static_cast<std::uint8_t>(qp))) bed.clear(static_cast<std::uint8_t>(qp));
  }
  std::printf("rx_place: %llu packets, %llu bytes, %llu faults\n", static_cast<unsigned long long>(bed.submitted),
              static_cast<unsigned long long>(bed.model.placed_bytes), static_cast<unsigned long long>(bed.model.faults));
  CHECK(bed.model.faults > 30);
}

TEST_CASE("rx_place: rate of small and of large packets", "[rtl]") {
  Bed bed(seed());
  const auto measure = [&](const char* what, int packets, std::uint64_t bytes, bool receive) {
    std::uint64_t start = bed.bench.cycle;
    for (int i = 0; i < packets; ++i) {
      rtl::RxPlan plan;
      plan.qp = 1;
      plan.qpn = 0xabc01;
      plan.pd = kPd;
      plan.check_length = static_cast<std::uint32_t>(bytes);
      Bed::Message m;
      m.target = receive ? rtl::PlaceTarget::kReceive : rtl::PlaceTarget::kWrite;
      m.length = bytes;
      plan.target = static_cast<std::uint8_t>(m.target);
      plan.action = static_cast<std::uint8_t>(rtl::RxAction::kExecuted);
      plan.sgl_fetch = receive;
      plan.key = bed.good[3].key;
      plan.va = bed.good[3].va / 4096 * 4096 + 8192 + 24;
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
