#include <Vxlate_share.h>

#include <array>
#include <deque>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/top/xlate_share.sv: two clients, one port. The model of the port answers in order, after random times.
using namespace rnic;
using namespace rnic::test;

TEST_CASE("xlate_share: each request reaches the port once, each answer its client, in order; hand-backs are not lost",
          "[rtl]") {
  Bench<Vxlate_share> bench(seed());
  auto& dut = *bench.dut;
  dut.req_valid_i = dut.retire_valid_i = dut.port_req_ready_i = dut.port_rsp_valid_i = 0;
  bench.reset();

  struct Client {
    bool offering = false;
    rtl::XlateReq request;
    std::uint64_t answered = 0, waits = 0;
  };
  std::array<Client, 2> clients;
  std::deque<std::pair<int, int>> port;  // client, and the cycle in which the port took its request
  bool answering = false;
  std::array<std::deque<bool>, 2> owed;  // epochs handed back and not seen at the port
  std::uint64_t next = 1;
  std::array<std::uint64_t, 2> handed_back{};  // at the port

  constexpr int kCycles = 40000, kLast = 20;
  for (int cycle = 0; cycle < kCycles; ++cycle) {
    const double rate = (cycle / 2000) % 2 ? 0.9 : 0.3;
    for (int i = 0; i < 2; ++i) {
      auto& c = clients[static_cast<std::size_t>(i)];
      if (!c.offering && bench.chance(rate)) {
        c.offering = true;
        c.request = {};
        c.request.va = next++;
        c.request.key = static_cast<std::uint32_t>(bench.rng());
        put_slice(dut.req_data_i, static_cast<std::size_t>(i), c.request);
      }
    }
    dut.req_valid_i = static_cast<CData>(clients[0].offering | clients[1].offering << 1);
    dut.port_req_ready_i = bench.chance(1.1 - rate);
    answering = answering || (!port.empty() && cycle - port.front().second >= 2 && bench.chance(0.6));
    dut.port_rsp_valid_i = answering;
    const bool taking = bench.chance(0.7);
    dut.rsp_ready_i = static_cast<CData>(taking | 2);  // client 1 takes its answers at once
    // At the end nothing more, so that what is owed shows.
    const bool retiring = cycle < kCycles - kLast;
    CData retire = retiring && bench.chance(rate);
    if (retiring && owed[1].empty() && bench.chance(0.2)) retire |= 2;
    dut.retire_valid_i = retire;
    dut.retire_epoch_i = static_cast<CData>(bench.uniform(0, 3));
    for (std::size_t i = 0; i < 2; ++i) {
      if (retire >> i & 1) owed[i].push_back(dut.retire_epoch_i >> i & 1);
    }
    dut.clk_i = 0;
    dut.eval();

    REQUIRE((dut.req_ready_o & ~dut.req_valid_i) == 0);
    REQUIRE(dut.req_ready_o != 3);
    if (dut.port_req_valid_o && dut.port_req_ready_i) {
      const int who = dut.req_ready_o >> 1;
      REQUIRE(dut.req_ready_o != 0);
      auto& c = clients[static_cast<std::size_t>(who)];
      auto& other = clients[static_cast<std::size_t>(1 - who)];
      REQUIRE(get<rtl::XlateReq>(dut.port_req_data_o) == c.request);
      port.emplace_back(who, cycle);
      c.offering = false;
      c.waits = 0;
      if (other.offering) REQUIRE(++other.waits < 3);
    }
    if (answering) {
      const int who = port.front().first;
      REQUIRE(dut.rsp_valid_o == 1 << who);
      if (dut.port_rsp_ready_o) {
        REQUIRE((who == 1 || taking));
        ++clients[static_cast<std::size_t>(who)].answered;
        port.pop_front();
        answering = false;
      }
    } else {
      REQUIRE(dut.rsp_valid_o == 0);
    }
    if (dut.port_retire_valid_o) {
      const std::size_t who = retire & 1 ? 0 : 1;
      auto& from = owed[who];
      REQUIRE(!from.empty());
      REQUIRE(dut.port_retire_epoch_o == from.front());
      from.pop_front();
      ++handed_back[who];
    }
    dut.clk_i = 1;
    dut.eval();
  }
  CHECK(clients[0].answered > 3000);
  CHECK(clients[1].answered > 3000);
  CHECK(handed_back[0] > 10000);
  CHECK(handed_back[1] > 2000);
  CHECK(owed[0].empty());
  CHECK(owed[1].empty());
}
