#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "model/downstream.hpp"

using namespace rnic::model;

namespace {

ReadJob job_of(std::uint16_t tag) {
  return {CompletionStatus::kSuccess, tag, 0, 512, std::vector<std::uint8_t>(512), 0};
}

struct Arrival {
  Picoseconds time;
  unsigned tag;
  unsigned byte_count;
  bool operator==(const Arrival&) const = default;
};

void drain(Downstream& link, Picoseconds now, std::vector<Arrival>& arrivals) {
  DmaCompletion completion;
  while (link.take_completion(completion, now)) arrivals.push_back({now, completion.tag, completion.byte_count});
}

}  // namespace

TEST_CASE("looking at the link changes nothing, even at the very time of a push") {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    RootComplexOptions options;
    options.seed = seed;
    options.reorder_probability = 0.5;
    options.reorder_window_ns = 20;
    std::vector<Arrival> results[2];
    for (const bool looks : {false, true}) {
      Downstream link(options);
      auto& arrivals = results[looks];
      Picoseconds now = 1000;
      for (std::uint16_t tag = 0; tag < 20; ++tag) {
        link.push_read(job_of(tag), now);
        if (looks) drain(link, now, arrivals);
        if (tag % 4 == 3) now += 10'000;
        if (looks) drain(link, now, arrivals);
      }
      for (; now < 2'000'000; now += 1000) drain(link, now, arrivals);
    }
    REQUIRE(results[0].size() == 40);
    REQUIRE(results[0] == results[1]);
  }
}

TEST_CASE("a late memory delays a read by up to the window") {
  RootComplexOptions options;
  options.reorder_probability = 1;
  options.reorder_window_ns = 100;
  options.config.max_payload = 512;
  Picoseconds least = ~Picoseconds{0}, most = 0;
  for (options.seed = 0; options.seed < 200; ++options.seed) {
    Downstream link(options);
    link.push_read(job_of(0), 0);
    Picoseconds now = 0;
    DmaCompletion completion;
    while (!link.take_completion(completion, now)) now += 100;
    least = std::min(least, now);
    most = std::max(most, now);
  }
  const Picoseconds soonest = 250'000 + 17'016;  // half the latency and 536 bytes on the link
  CHECK(least >= soonest);
  CHECK(least < soonest + 5'000);
  CHECK(most > soonest + 95'000);
  CHECK(most <= soonest + 100'100);
}

TEST_CASE("with jitter requests keep their order, and no completion passes an earlier request") {
  RootComplexOptions options;
  options.jitter_ns = 300;
  Picoseconds most = 0;
  for (options.seed = 0; options.seed < 50; ++options.seed) {
    Downstream link(options);
    for (std::uint16_t i = 0; i < 10; ++i) {
      link.push_request({TlpKind::kMemoryWrite, false, 8U * i, 2, 0xF, 0xF, 0, 0, std::vector<std::uint8_t>(8)}, 1000);
      link.push_read(job_of(i), 1000);
    }
    Picoseconds now = 1000;
    std::uint64_t requests = 0;
    for (std::uint64_t completions = 0; completions < 20; now += 1000) {
      HostRequest request;
      while (link.take_request(request, now)) CHECK(request.address == 8 * requests++);
      DmaCompletion completion;
      while (link.take_completion(completion, now)) {
        CHECK(requests == 10);  // they were there when it started
        ++completions;
      }
    }
    most = std::max(most, now);
  }
  CHECK(most > 1000 + 250'000 + 250'000);
  CHECK(most < 1000 + 250'000 + 300'000 + 200'000);
}

TEST_CASE("a host request goes before completions that could start at the same time") {
  Downstream link(RootComplexOptions{});
  link.push_read(job_of(0), 1000);
  link.push_request({TlpKind::kMemoryWrite, false, 0x40, 2, 0xF, 0xF, 0, 0, std::vector<std::uint8_t>(8)}, 1000);
  Picoseconds now = 1000;
  HostRequest request;
  DmaCompletion completion;
  while (!link.take_request(request, now)) now += 100;
  CHECK_FALSE(link.take_completion(completion, now));
  CHECK(now < 1000 + 250'000 + 1'200);  // 32 bytes on an idle link
}
