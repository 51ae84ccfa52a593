#include <Vrx_merge.h>

#include <deque>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/rtl/rx_models.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/rx/rx_merge.sv between two sources and a park that take their time: every packet leaves once, those of a source
// in their order, the payload in the order of the descriptors; and neither source waits for more than one packet of
// the other.
using namespace rnic;
using namespace rnic::test;

namespace {
struct World : Agent {
  explicit World(std::uint64_t value) : bench(value) {
    for (Agent* agent : std::initializer_list<Agent*>{&desc0, &desc1, &payload0, &payload1, &descs, &beats, this})
      bench.add(*agent);
    descs.on_item = [this](const rtl::RxDesc& d) {
      const std::size_t source = d.dest_qpn;
      REQUIRE(source < 2);
      REQUIRE(!sent[source].empty());
      REQUIRE(d == sent[source].front().desc);
      for (const auto& beat : sent[source].front().beats) expected.push_back(beat);
      sent[source].pop_front();
      if (both) REQUIRE(source != last_source);
      last_source = source;
    };
    beats.on_item = [this](const rtl::PayloadBeat& beat) {
      REQUIRE(!expected.empty());
      REQUIRE(beat == expected.front());
      expected.pop_front();
    };
    bench.reset();
  }
  void send(std::size_t source, std::size_t size) {
    rtl::RxDesc d;
    d.dest_qpn = static_cast<std::uint32_t>(source);
    d.psn = next++;
    d.payload_length = static_cast<std::uint16_t>(size);
    Packet packet{d, payload_beats(random_bytes(bench.rng, size), bench.rng)};
    (source ? desc1 : desc0).push(d);
    for (const auto& beat : packet.beats) (source ? payload1 : payload0).push(beat);
    sent[source].push_back(std::move(packet));
  }
  void drive() override {}
  void sample() override {
    // Seen from the next descriptor on: both had one to offer since the last left.
    both = desc0.items.size() > 1 && desc1.items.size() > 1 && desc0.rate == 1.0 && desc1.rate == 1.0 && !warm;
    warm = false;
  }
  void drain() {
    bench.run_until([&] { return sent[0].empty() && sent[1].empty() && expected.empty() && !bench.dut->busy_o; },
                    1000000, "all packets");
  }

  template <typename T>
  static void set_bit(T& port, unsigned bit, bool value) {
    port = static_cast<T>(value ? port | 1u << bit : port & ~(1u << bit));
  }
  template <typename T>
  Source<T> source(unsigned index, bool is_desc) {
    return Source<T>([this, index, is_desc](
                         bool v) { set_bit(is_desc ? bench.dut->desc_valid_i : bench.dut->payload_valid_i, index, v); },
                     [this, index, is_desc] {
                       return ((is_desc ? bench.dut->desc_ready_o : bench.dut->payload_ready_o) >> index & 1) != 0;
                     },
                     [this, index, is_desc](const T& item) {
                       if (is_desc)
                         put_slice(bench.dut->desc_data_i, index, item);
                       else
                         put_slice(bench.dut->payload_data_i, index, item);
                     },
                     bench.rng);
  }
  struct Packet {
    rtl::RxDesc desc;
    std::vector<rtl::PayloadBeat> beats;
  };
  Bench<Vrx_merge> bench;
  Source<rtl::RxDesc> desc0 = source<rtl::RxDesc>(0, true), desc1 = source<rtl::RxDesc>(1, true);
  Source<rtl::PayloadBeat> payload0 = source<rtl::PayloadBeat>(0, false), payload1 = source<rtl::PayloadBeat>(1, false);
  Sink<rtl::RxDesc> descs{[this] { return bench.dut->desc_valid_o != 0; },
                          [this](bool r) { bench.dut->desc_ready_i = r; },
                          [this] { return get<rtl::RxDesc>(bench.dut->desc_data_o); }, bench.rng};
  Sink<rtl::PayloadBeat> beats{[this] { return bench.dut->payload_valid_o != 0; },
                               [this](bool r) { bench.dut->payload_ready_i = r; },
                               [this] { return get<rtl::PayloadBeat>(bench.dut->payload_data_o); }, bench.rng};
  std::array<std::deque<Packet>, 2> sent;
  std::deque<rtl::PayloadBeat> expected;
  std::uint32_t next = 0;
  std::size_t last_source = 2;
  bool both = false, warm = true;
};
}  // namespace

TEST_CASE("rx_merge: all packets of both sources leave once, in order, with their payload", "[rtl]") {
  World w(seed(1));
  w.desc0.rate = w.payload0.rate = GENERATE(1.0, 0.3);
  w.desc1.rate = w.payload1.rate = GENERATE(0.9, 0.1);
  w.descs.rate = GENERATE(1.0, 0.3);
  w.beats.rate = GENERATE(1.0, 0.4);
  for (int i = 0; i < 600; ++i) {
    w.send(w.bench.uniform(0, 1), w.bench.chance(0.3)   ? 0
                                  : w.bench.chance(0.1) ? w.bench.uniform(1, 4096)
                                                        : w.bench.uniform(1, 200));
  }
  w.drain();
}

TEST_CASE("rx_merge: two sources that always have something take turns", "[rtl]") {
  World w(seed(2));
  w.beats.rate = GENERATE(1.0, 0.5);
  for (int i = 0; i < 300; ++i) w.send(0, 64), w.send(1, 1500);
  w.drain();
}

TEST_CASE("rx_merge: descriptors go up to 64 packets ahead of their payload, no further", "[rtl]") {
  World w(seed(3));
  w.beats.rate = 0;
  for (int i = 0; i < 200; ++i) w.send(i % 2, 100);
  w.bench.run(500);
  REQUIRE(w.descs.items.size() >= 64);
  REQUIRE(w.descs.items.size() <= 65);  // one in the output register of the FIFO
  w.beats.rate = 1;
  w.drain();
}
