#include <Vdevice_events.h>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/device_events.sv: which events there are, in which order, and that the host ends up knowing what is.
using namespace rnic::test;
using rnic::hw::EqeType;
namespace rtl = rnic::rtl;

namespace {

struct World {
  explicit World(std::uint64_t s)
      : bench(s),
        eqes([this] { return dut().eqe_valid_o != 0; }, [this](bool r) { dut().eqe_ready_i = r; },
             [this] { return get<rtl::EqeReq>(dut().eqe_data_o); }, bench.rng) {
    dut().enable_i = dut().fatal_i = 0;
    dut().link_up_i = 1;
    bench.add(eqes);
    bench.reset();
    bench.run(3);
  }
  Vdevice_events& dut() { return *bench.dut; }
  std::vector<EqeType> take() {
    std::vector<EqeType> types;
    for (const auto& eqe : eqes.items) {
      types.push_back(static_cast<EqeType>(eqe.event_type));
      CHECK(eqe.eqn == 0);
      CHECK(eqe.number == (types.back() == EqeType::kDeviceFatal ? 0 : 1));
      CHECK(eqe.detail == 0);
    }
    eqes.items.clear();
    return types;
  }
  Bench<Vdevice_events> bench;
  Sink<rtl::EqeReq> eqes;
};

}  // namespace

TEST_CASE("device_events: changes of the link and the end of the admin queue, each once", "[rtl]") {
  World w(seed());
  using Types = std::vector<EqeType>;
  w.dut().link_up_i = 0;
  w.bench.run(5);
  w.dut().link_up_i = 1;
  w.bench.run(5);
  w.dut().enable_i = 1;
  w.bench.run(10);
  CHECK(w.take().empty());  // what was before the device was enabled is no news
  w.dut().link_up_i = 0;
  w.bench.run(10);
  CHECK(w.take() == Types{EqeType::kPortError});
  w.dut().link_up_i = 1;
  w.bench.run(10);
  CHECK(w.take() == Types{EqeType::kPortActive});
  w.dut().fatal_i = 1;
  w.dut().link_up_i = 0;
  w.bench.run(10);
  CHECK(w.take() == Types{EqeType::kDeviceFatal, EqeType::kPortError});
  w.bench.run(50);
  CHECK(w.take().empty());
}

TEST_CASE("device_events: a link that flaps faster than events are taken leaves the host with the truth", "[rtl]") {
  World w(seed());
  w.dut().enable_i = 1;
  w.bench.run(5);
  unsigned events = 0;
  bool told = true;
  for (int i = 0; i < 3000; ++i) {
    w.eqes.rate = i % 200 < 100 ? 0.02 : 0.9;
    if (w.bench.chance(0.1)) w.dut().link_up_i = !w.dut().link_up_i;
    w.bench.tick();
    for (const auto type : w.take()) {
      REQUIRE((type == EqeType::kPortActive) != told);  // never the same twice
      told = !told;
      ++events;
    }
  }
  w.eqes.rate = 1;
  w.bench.run(20);
  for (const auto type : w.take()) told = type == EqeType::kPortActive;
  CHECK(told == (w.dut().link_up_i != 0));
  CHECK(events > 50);
}
