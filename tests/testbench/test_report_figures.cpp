// What a report keeps of a run: bounded, and right. The page itself, and its numbers of real runs, are held by
// tests/report/test_report.py.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <vector>

#include "model/random.hpp"
#include "testbench/report/host_report.hpp"
#include "testbench/report/payload_figures.hpp"
#include "testbench/report/report_page.hpp"
#include "testbench/report/request_figures.hpp"
#include "testbench/report/shared_figures.hpp"
#include "testbench/report/sketch.hpp"
#include "testbench/report/time_series.hpp"
#include "testbench/timeline/host_timeline.hpp"

using namespace rnic;
using namespace rnic::testbench;

namespace {

std::uint64_t sum(const TimeSeries::Bins& bins) { return std::accumulate(bins.begin(), bins.end(), std::uint64_t{0}); }

/// A Write posted at `posted_ns` and polled `latency_ns` later.
Request write_of(std::uint64_t posted_ns, std::uint64_t latency_ns) {
  Request request;
  request.started = true;
  request.opcode = 1;
  request.mark(Stage::kPosted, posted_ns * 1000);
  request.mark(Stage::kDoorbell, posted_ns * 1000 + 250'000);
  request.mark(Stage::kPolled, (posted_ns + latency_ns) * 1000);
  return request;
}

}  // namespace

TEST_CASE("A sketch is exact for small numbers and within 1.6 % for large ones") {
  model::Random random(7);
  for (const std::uint64_t most : {std::uint64_t{60}, std::uint64_t{5'000}, std::uint64_t{1} << 40}) {
    Sketch sketch;
    std::vector<std::uint64_t> all;
    for (int i = 0; i < 5000; ++i) {
      all.push_back(random.below(most) + 1);
      sketch.add(all.back());
    }
    std::sort(all.begin(), all.end());
    CHECK(sketch.count() == all.size());
    CHECK(sketch.least() == all.front());
    CHECK(sketch.most() == all.back());
    CHECK(sketch.sum() == std::accumulate(all.begin(), all.end(), std::uint64_t{0}));
    for (const std::uint64_t permille : {1u, 100u, 500u, 990u, 999u, 1000u}) {
      const std::uint64_t exact = all[(all.size() * permille + 999) / 1000 - 1];
      const std::uint64_t margin = most <= 63 ? 0 : exact * 16 / 1000 + 1;
      CAPTURE(most, permille, exact);
      CHECK(sketch.quantile(permille) >= exact - std::min(exact, margin));
      CHECK(sketch.quantile(permille) <= exact + margin);
    }
    std::uint64_t counted = 0, before = 0;
    for (const auto& bucket : sketch.buckets()) {
      CHECK(bucket.from >= before);
      CHECK(bucket.to > bucket.from);
      const auto inside =
          std::count_if(all.begin(), all.end(), [&](std::uint64_t v) { return v >= bucket.from && v < bucket.to; });
      CHECK(static_cast<std::uint64_t>(inside) == bucket.count);
      counted += bucket.count;
      before = bucket.to;
    }
    CHECK(counted == all.size());
  }
}

TEST_CASE("An empty sketch has nothing, and the largest number fits") {
  Sketch sketch;
  CHECK(sketch.quantile(500) == 0);
  CHECK(sketch.least() == 0);
  CHECK(sketch.buckets().empty());
  sketch.add(~std::uint64_t{0});
  CHECK(sketch.quantile(500) == ~std::uint64_t{0});
}

TEST_CASE("A series keeps its sum, whatever its time, in the same number of bins") {
  TimeSeries series;
  model::Random random(3);
  std::uint64_t all = 0, now = 5'000'000;
  for (int i = 0; i < 20'000; ++i) {
    const std::uint64_t amount = random.below(5000), length = random.below(400'000);
    series.add(1, now, now + length, amount);
    series.add(2, now, now, 1);
    all += amount;
    now += random.below(2'000'000);
  }
  CHECK(sum(series.all().at(1)) == all);
  CHECK(sum(series.all().at(2)) == 20'000);
  CHECK(series.origin_ps() == 5'000'000);
  CHECK(series.used() <= TimeSeries::kBins);
  CHECK(series.used() > TimeSeries::kBins / 2);
  CHECK(series.width_ps() * TimeSeries::kBins > now - series.origin_ps());
}

TEST_CASE("An amount is spread evenly over its time") {
  TimeSeries series;
  constexpr std::uint64_t kWidth = TimeSeries::kFirstWidthPs;
  series.add(0, 0, 0, 0);
  series.add(0, kWidth / 2, 3 * kWidth + kWidth / 2, 300);
  const auto& bins = series.all().at(0);
  CHECK(std::vector<std::uint64_t>(bins.begin(), bins.begin() + 5) == std::vector<std::uint64_t>{50, 100, 100, 50, 0});
  series.add(0, 256 * kWidth, 256 * kWidth, 1);  // two bins become one
  CHECK(series.width_ps() == 2 * kWidth);
  CHECK(std::vector<std::uint64_t>(bins.begin(), bins.begin() + 3) == std::vector<std::uint64_t>{150, 150, 0});
  CHECK(bins[128] == 1);
}

TEST_CASE("What came before the first of a series counts in its first bin") {
  TimeSeries series;
  series.add(0, 1'000'000, 1'000'000, 1);
  series.add(0, 900'000, 950'000, 5);
  CHECK(series.all().at(0)[0] == 6);
}

TEST_CASE("Of any number of requests a bounded sample is kept, and its middle is near that of all") {
  RequestFigures figures;
  constexpr std::uint64_t kRequests = 50'000;
  for (std::uint64_t i = 0; i < kRequests; ++i) figures.add(write_of(1000 + i, 1000 + i % 1000), {});
  const auto json = figures.json(0);
  REQUIRE(json.size() == 1);
  CHECK(json[0].at("kind") == "Write");
  CHECK(json[0].at("count") == kRequests);
  CHECK(json[0].at("latency").at("count") == kRequests);
  CHECK(json[0].at("latency").at("min_ns") == 1000);
  CHECK(json[0].at("latency").at("max_ns") == 1999);
  const auto& median = json[0].at("median");
  CHECK(median.at("of") == RequestFigures::kKept);
  CHECK(median.at("latency_ns") > 1490);
  CHECK(median.at("latency_ns") < 1510);
  CHECK(json[0].at("latency").at("median_ns") == median.at("latency_ns"));
  // A sample of all, not of the first ones.
  CHECK(median.at("posted_ns") > RequestFigures::kKept);
}

TEST_CASE("A run has one median: that of the request in the middle") {
  RequestFigures figures;
  for (const std::uint64_t latency : {47'055, 46'100, 47'900}) figures.add(write_of(1000, latency), {});
  const auto json = figures.json(0);
  CHECK(json[0].at("latency").at("median_ns") == 47'055);
  CHECK(json[0].at("median").at("latency_ns") == 47'055);
}

TEST_CASE("Payload of a request that fails is not counted, also when packets of it were accepted") {
  TimeSeries series;
  PayloadFigures payload(series);
  const auto packet = [](std::uint32_t psn) { return PayloadFigures::Part{7, psn, 1'000, 2'000, 100}; };
  const auto counted = [&] { return series.all().contains(7) ? sum(series.all().at(7)) : 0; };
  // Three requests of queue pair 5 of host 1; the PSNs of the second pass the wrap.
  for (const std::uint32_t psn : {0xfffffdu, 0xfffffeu, 0xffffffu, 0u, 1u}) payload.hold(1, 5, packet(psn));
  CHECK(counted() == 0);
  payload.settle(0, 5, 0xfffffd, 0xfffffe, false);  // of another host
  payload.settle(1, 5, 0xfffffd, 0xfffffe, true);
  CHECK(counted() == 200);
  payload.settle(1, 5, 0xffffff, 0, false);
  payload.settle(1, 5, 1, 1, true);
  CHECK(counted() == 300);
  // A request whose end nothing told counts with the next one.
  payload.hold(1, 5, packet(2));
  payload.settle(1, 5, 3, 3, false);
  CHECK(counted() == 400);
}

TEST_CASE("A packet that a NIC sends to itself belongs to its queue pair, and not to the wire") {
  SharedFigures shared;
  HostTimeline timeline(1);
  HostReport report(shared, 1, {}, 16);
  timeline.sinks().add(report);
  constexpr std::uint8_t kWriteOnly = 0x0a;
  const auto send = [&](std::uint32_t psn, std::uint8_t last_byte_of_source) {
    timeline.cycle(1'000'000);
    rtl::TxDesc made;
    made.qp = 5;
    made.opcode = kWriteOnly;
    made.psn = psn;
    made.payload_length = 256;
    timeline.packet_taken(made);
    timeline.packet_gathered();
    rtl::RxDesc arrived;
    arrived.opcode = kWriteOnly;
    arrived.psn = psn;
    arrived.dest_qpn = 0x106;
    arrived.payload_length = 256;
    arrived.source_ip[15] = last_byte_of_source;
    arrived.dest_ip[15] = 2;
    timeline.packet_judged(arrived, RxReason::kNone);
    timeline.packet_planned();
    timeline.cycle(1'100'000);
    timeline.packet_left(nullptr);
  };
  send(100, 2);
  const auto loopback = SeriesName{SeriesKind::kLoopback, 1, 1, 5}.key();
  REQUIRE(shared.series.all().size() == 1);
  CHECK(sum(shared.series.all().at(loopback)) == 256);
  // The same packet from another address is another sender's.
  send(101, 7);
  CHECK(sum(shared.series.all().at(loopback)) == 256);
  CHECK(sum(shared.series.all().at(SeriesName{SeriesKind::kPayload, 1, SeriesName::kOutside, 0}.key())) == 256);
}

TEST_CASE("A queue pair without requests does not stall") {
  SharedFigures shared;
  HostTimeline timeline(0);
  HostReport report(shared, 0, {}, 16);
  timeline.sinks().add(report);
  timeline.cycle(1'000'000);
  timeline.went_back(5, StallReason::kRefused);
  timeline.cycle(9'000'000);
  timeline.finish();
  CHECK(report.json().at("stalls").empty());
}

TEST_CASE("Of a wait counts what belongs to work") {
  WorkTime work;
  work.begin(1'000);
  CHECK(work.since_ps(500, 1'500) == 500);
  work.end(3'000);
  CHECK(work.since_ps(2'500, 9'000) == 500);
  CHECK(work.since_ps(4'000, 9'000) == 0);
  work.begin(10'000);
  CHECK(work.since_ps(2'500, 10'400) == 400);
}

TEST_CASE("Requests that failed, or were never over, have no latency") {
  RequestFigures figures;
  Request failed = write_of(10, 100);
  failed.status = 5;
  figures.add(failed, {});
  Request open = write_of(10, 100);
  open.at[static_cast<std::size_t>(Stage::kPolled)] = 0;
  figures.add(open, {});
  const auto json = figures.json(0);
  CHECK(json[0].at("failed") == 1);
  CHECK(json[0].at("unfinished") == 1);
  CHECK(!json[0].contains("latency"));
}

TEST_CASE("Steps are those that took time, one behind the other, up to the end") {
  Request request = write_of(1, 1000);
  request.mark(Stage::kTurn, 300'000);
  request.mark(Stage::kSent, 500'000);
  request.last_sent = {310'000, 0, 320'000, 400'000, 500'000};
  request.mark(Stage::kChecked, 620'000);
  request.mark(Stage::kCqeWritten, 900'000);
  const auto steps = waterfall(request, {100'000, 250'000});
  std::uint64_t at = 1'000;
  for (const auto& step : steps) {
    CHECK(step.from == at);
    CHECK(step.to > step.from);
    at = step.to;
  }
  CHECK(at == 1'001'000);
  const auto has = [&](std::string_view name) {
    return std::any_of(steps.begin(), steps.end(),
                       [&](const auto& s) { return steps_of(request)[s.step].name == name; });
  };
  CHECK(has("last payload is gathered"));
  CHECK(!has("last payload is read"));  // it was not translated: it stood in the WQE
  CHECK(has("last packet flies"));
  CHECK(!has("CQE crosses PCI Express"));  // it was polled before that
  CHECK(waterfall(Request{}, {}).empty());
}

TEST_CASE("Data in a page cannot end their element") {
  const nlohmann::ordered_json value = {{"name", "</script><!-- <script> \" \xff \u00e9"}};
  const std::string text = json_for_html(value);
  CHECK(text.find('<') == std::string::npos);
  CHECK(nlohmann::json::parse(text).at("name").get<std::string>().starts_with("</script><!-- <script> \" "));
  const std::string page = report_page(value);
  CHECK(page.find(text) != std::string::npos);
}
