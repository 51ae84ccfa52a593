#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "model/downstream.hpp"
#include "model/flow_control.hpp"
#include "model/random.hpp"
#include "model/tlp_checker.hpp"
#include "tests/model/root_complex_machine.hpp"

using namespace rnic::model;
using Catch::Matchers::Contains;

namespace {

/// Rows and columns of table 2-40 of the base specification.
enum class Tlp : std::uint8_t { kPosted, kRead, kWithData, kCompletion };
constexpr std::array kTlps{Tlp::kPosted, Tlp::kRead, Tlp::kWithData, Tlp::kCompletion};
constexpr std::array kNames{"a posted request", "a read", "a non-posted request with data", "a completion"};
const char* name_of(Tlp tlp) { return kNames[static_cast<std::size_t>(tlp)]; }

CreditKind kind_of(Tlp tlp) {
  if (tlp == Tlp::kPosted) return CreditKind::kPosted;
  return tlp == Tlp::kCompletion ? CreditKind::kCompletion : CreditKind::kNonPosted;
}

enum class Pass : std::uint8_t { kMust, kMay, kMustNot };
/// May the row pass the column? Without relaxed and ID-based ordering, of an endpoint.
Pass table(Tlp row, Tlp column) {
  if (column == Tlp::kPosted) return Pass::kMustNot;                                 // A2 to D2
  if (column == Tlp::kCompletion) return Pass::kMay;                                 // A5 to D5
  return row == Tlp::kPosted || row == Tlp::kCompletion ? Pass::kMust : Pass::kMay;  // A3, A4, D3, D4; B, C
}

/// The link to the NIC, with numbered TLPs on it.
struct Link {
  explicit Link(const RootComplexOptions& options) : downstream(options) {}
  void push(Tlp tlp, unsigned number) {
    if (tlp == Tlp::kCompletion) {
      downstream.push_read(
          {CompletionStatus::kSuccess, static_cast<std::uint16_t>(number), 0, 64, std::vector<std::uint8_t>(64), 0},
          now);
      return;
    }
    const TlpKind kind = tlp == Tlp::kPosted ? TlpKind::kMemoryWrite
                         : tlp == Tlp::kRead ? TlpKind::kMemoryRead
                                             : TlpKind::kOther;
    const std::size_t bytes = tlp == Tlp::kRead ? 0 : 8;
    downstream.push_request(
        {kind, false, 8 * std::uint64_t{number}, 2, 0xF, 0xF, 0, 0, std::vector<std::uint8_t>(bytes)}, now);
  }
  void go(Picoseconds time) {
    for (const Picoseconds end = now + time; now < end; now += 1000) {
      HostRequest request;
      while (downstream.take_request(request, now)) arrived.push_back(static_cast<unsigned>(request.address / 8));
      DmaCompletion completion;
      while (downstream.take_completion(completion, now)) arrived.push_back(completion.tag);
    }
  }
  [[nodiscard]] bool has(unsigned number) const {
    return std::find(arrived.begin(), arrived.end(), number) != arrived.end();
  }
  Downstream downstream;
  Picoseconds now = 1000;
  std::vector<unsigned> arrived;
};

constexpr Picoseconds kLong = 2'000'000;

}  // namespace

TEST_CASE("to the NIC: what must pass a TLP without credits passes it, what must not does not (table 2-40)") {
  for (const Tlp row : kTlps) {
    for (const Tlp column : kTlps) {
      INFO(name_of(row) << " behind " << name_of(column));
      Link link{RootComplexOptions{}};
      link.downstream.hold({kind_of(column)}, link.now);
      link.push(column, 0);
      link.push(row, 1);
      link.go(kLong);
      CHECK_FALSE(link.has(0));
      if (table(row, column) == Pass::kMust) CHECK(link.has(1));
      if (table(row, column) == Pass::kMustNot) CHECK_FALSE(link.has(1));
      link.downstream.hold({}, link.now);
      link.go(kLong);
      CHECK(link.arrived.size() == 2);
      if (table(row, column) == Pass::kMustNot) CHECK(link.arrived == std::vector<unsigned>{0, 1});
    }
  }
}

TEST_CASE("to the NIC: credits of any kinds come and go; nothing is lost, nothing passes a posted request") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    INFO("seed " << seed);
    Random random(seed, "credits");
    RootComplexOptions options;
    options.seed = seed;
    options.reorder_probability = seed % 2 ? 0.5 : 0;
    options.jitter_ns = seed % 3 ? 100 : 0;
    Link link(options);
    std::vector<Tlp> pushed;
    for (int step = 0; step < 100; ++step) {
      if (random.chance(0.3)) {
        CreditKinds kinds;
        for (const auto kind : {CreditKind::kPosted, CreditKind::kNonPosted, CreditKind::kCompletion})
          kinds.set(kind, random.chance(0.4));
        link.downstream.hold(kinds, link.now);
      }
      pushed.push_back(kTlps[random.below(kTlps.size())]);
      link.push(pushed.back(), static_cast<unsigned>(pushed.size() - 1));
      link.go(random.below(60'000));
    }
    link.downstream.hold({}, link.now);
    link.go(kLong);
    REQUIRE(link.arrived.size() == pushed.size());
    for (std::size_t i = 0; i < link.arrived.size(); ++i) {
      for (std::size_t later = i + 1; later < link.arrived.size(); ++later) {
        if (link.arrived[later] < link.arrived[i]) REQUIRE(pushed[link.arrived[later]] != Tlp::kPosted);
      }
    }
  }
}

TEST_CASE("credits are counted for each kind, headers and data, and come back after their time") {
  CreditOptions options;
  options.of(CreditKind::kPosted) = {3, 20};
  options.of(CreditKind::kNonPosted) = {1, {}};
  options.return_ns = 50;
  CreditCounter credits(options);
  CHECK(credits.limited());
  credits.spend(CreditKind::kPosted, 256, 1000, 10'000);  // 16 units
  CHECK(credits.enough(CreditKind::kPosted, 64, 1000));
  CHECK_FALSE(credits.enough(CreditKind::kPosted, 65, 1000));
  credits.spend(CreditKind::kPosted, 1, 1000, 12'000);
  credits.spend(CreditKind::kPosted, 0, 1000, 14'000);
  CHECK_FALSE(credits.enough(CreditKind::kPosted, 0, 1000));  // headers
  CHECK_THROWS_WITH(credits.spend(CreditKind::kPosted, 0, 1000, 15'000), Contains("no credits"));
  CHECK_FALSE(credits.enough(CreditKind::kPosted, 0, 59'999));
  CHECK(credits.enough(CreditKind::kPosted, 256, 60'000));
  CHECK(credits.enough(CreditKind::kNonPosted, 4096, 60'000));
  credits.spend(CreditKind::kNonPosted, 0, 60'000, 70'000);
  CHECK_FALSE(credits.enough(CreditKind::kNonPosted, 0, 119'999));
  CHECK(credits.enough(CreditKind::kCompletion, 128, 60'000));
  CHECK(credits.enough(CreditKind::kNonPosted, 0, 120'000));
  CHECK_FALSE(CreditCounter(CreditOptions{}).limited());
}

TEST_CASE("to the host: each kind of TLP waits for credits of its own") {
  RootComplexOptions options;
  options.credits.of(CreditKind::kPosted) = {2, 16};
  options.credits.of(CreditKind::kNonPosted) = {2, {}};
  options.credits.of(CreditKind::kCompletion) = {1, 8};
  options.credits.return_ns = 200;
  machine().reset(options);
  run([] {
    auto& rc = machine().rc;
    CHECK(rc.flow_limited());
    for (int round = 0; round < 3; ++round) {
      CHECK(rc.has_credits(TlpKind::kMemoryWrite, 256));
      CHECK_FALSE(rc.reads_held());
      CHECK(rc.can_complete());
      rc.dma_request(write_of(machine().iova, 128, 1));
      CHECK(rc.has_credits(TlpKind::kMemoryWrite, 128));
      CHECK_FALSE(rc.has_credits(TlpKind::kMemoryWrite, 132));
      read(machine().iova, 64, 1);
      CHECK_FALSE(rc.reads_held());
      read(machine().iova, 64, 2);
      CHECK(rc.reads_held());
      CHECK(rc.has_credits(TlpKind::kMemoryWrite, 128));
      rc.host_completion({CompletionStatus::kSuccess, 1000, 0, 8, 0, std::vector<std::uint8_t>(8)});
      CHECK_FALSE(rc.can_complete());
      rc.dma_request(write_of(machine().iova, 4, 1));
      CHECK_FALSE(rc.has_credits(TlpKind::kMemoryWrite, 4));
      CHECK_THROWS_AS(rc.dma_request(write_of(machine().iova, 4, 1)), PcieProtocolError);
      CHECK_THROWS_AS(read(machine().iova, 64, 3), PcieProtocolError);
      wait_ns(190);
      CHECK(rc.reads_held());
      wait_ns(100);
      for (int i = 0; i < 2; ++i) next_completion();
      rc.reset(rc.options());
    }
  });
  options.credits.of(CreditKind::kPosted).data = 15;
  CHECK_THROWS_WITH(machine().rc.reset(options), Contains("maximum payload"));
  options.credits = {};
  options.credits.of(CreditKind::kNonPosted).headers = 0;
  CHECK_THROWS_WITH(machine().rc.reset(options), Contains("header credits"));
}

TEST_CASE("to the host: kinds are held alone and together, and what the NIC had offered is taken") {
  machine().reset();
  run([] {
    auto& rc = machine().rc;
    using enum CreditKind;
    CHECK_FALSE(rc.flow_limited());
    rc.hold(PcieWay::kToHost, {kNonPosted});
    CHECK(rc.holds_back());
    CHECK(rc.reads_held());
    CHECK(rc.can_request());
    CHECK(rc.has_credits(TlpKind::kMemoryWrite, 256));
    CHECK(rc.can_complete());
    read(machine().iova, 64, 1);
    CHECK_THROWS_AS(read(machine().iova, 64, 2), PcieProtocolError);
    rc.dma_request(write_of(machine().iova, 64, 0xCC));
    wait_ns(300);
    CHECK(machine().buffer[0] == 0xCC);
    rc.hold(PcieWay::kToHost, {kPosted});
    CHECK_FALSE(rc.reads_held());
    CHECK(rc.can_request());
    CHECK_FALSE(rc.has_credits(TlpKind::kMemoryWrite, 4));
    CHECK(rc.has_credits(TlpKind::kMemoryRead, 0));
    rc.hold(PcieWay::kToHost, {kPosted, kNonPosted});
    CHECK_FALSE(rc.can_request());
    CHECK(rc.can_complete());
    rc.hold(PcieWay::kToHost, {kCompletion});
    CHECK_FALSE(rc.can_complete());
    CHECK(rc.can_request());
    CHECK_FALSE(rc.reads_held());
    rc.hold(PcieWay::kToHost, {});
    CHECK_FALSE(rc.holds_back());
    rc.hold(PcieWay::kToNic, {kCompletion});
    CHECK(rc.holds_back());
    CHECK_FALSE(rc.flow_limited());
  });
}

TEST_CASE("the tap sees every TLP at the ports of the NIC, with its kind") {
  machine().reset();
  std::vector<std::string> seen;
  machine().rc.set_tlp_tap([&](const TlpSeen& tlp) {
    seen.push_back(std::string(tlp.way == PcieWay::kToHost ? "up " : "down ") +
                   std::to_string(static_cast<unsigned>(tlp.kind)) + " " + std::to_string(tlp.tag));
  });
  machine().runner.add("nic", [] {
    const HostRequest tlp = next_request();
    machine().rc.host_completion(
        {CompletionStatus::kSuccess, tlp.tag, tlp.requester, 8, 0x20, std::vector<std::uint8_t>(8), tlp.handling});
  });
  run([] {
    static_cast<void>(machine().device.read64(0x20));
    machine().rc.dma_request(write_of(machine().iova, 64, 1));
    read(machine().iova, 64, 9);
    next_completion();
  });
  machine().rc.set_tlp_tap({});
  CHECK(seen == std::vector<std::string>{"down 1 0", "up 2 0", "up 0 0", "up 1 9", "down 2 9"});
}
