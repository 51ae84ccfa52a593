#include <catch2/catch.hpp>
#include <numeric>
#include <set>

#include "model/completion_splitter.hpp"

using namespace rnic::model;

namespace {

/// A job of `length` bytes at `address`, whose bytes say where they are.
ReadJob job_of(std::uint64_t address, std::uint32_t length) {
  ReadJob job{CompletionStatus::kSuccess, 9, address, length, {}, 0};
  for (std::uint64_t at = address & ~3ULL; at < ((address + length + 3) & ~3ULL); ++at)
    job.data.push_back(static_cast<std::uint8_t>(at * 7));
  return job;
}

/// Checks every rule on the completions of a job and returns their number.
std::size_t check_all(CompletionSplitter& splitter, std::uint64_t address, std::uint32_t length, std::size_t boundary,
                      std::size_t max_payload) {
  ReadJob job = job_of(address, length);
  std::uint64_t at = address;
  std::uint32_t left = length;
  std::size_t count = 0;
  while (job.left != 0) {
    const DmaCompletion completion = splitter.next(job).value();
    ++count;
    REQUIRE(completion.tag == 9);
    REQUIRE(completion.byte_count == left);
    REQUIRE(completion.lower_address == (at & 0xFFF));
    REQUIRE(completion.data.size() <= max_payload);
    REQUIRE(completion.data.size() % 4 == 0);
    const std::size_t skip = at % 4;
    const auto bytes = std::min<std::size_t>(left, completion.data.size() - skip);
    for (std::size_t i = 0; i < bytes; ++i)
      REQUIRE(completion.data[skip + i] == static_cast<std::uint8_t>((at + i) * 7));
    at += bytes;
    left -= static_cast<std::uint32_t>(bytes);
    if (left != 0) REQUIRE(at % boundary == 0);
  }
  REQUIRE(left == 0);
  return count;
}

}  // namespace

TEST_CASE("without random splits completions are as long as the rules allow") {
  RootComplexOptions options;
  CompletionSplitter splitter(options);
  CHECK(check_all(splitter, 0x1000, 64, 64, 256) == 1);
  CHECK(check_all(splitter, 0x1000, 512, 64, 256) == 2);
  CHECK(check_all(splitter, 0x1004, 512, 64, 256) == 3);  // 252, 256, 4
  CHECK(check_all(splitter, 0x1FFF, 1, 64, 256) == 1);
}

TEST_CASE("random splits keep the rules and reach every boundary") {
  const std::size_t boundary = GENERATE(64, 128);
  RootComplexOptions options;
  options.read_completion_boundary = boundary;
  options.split_probability = 0.7;
  options.config.max_payload = GENERATE(256, 512);
  CompletionSplitter splitter(options);
  Random random(11);
  std::set<std::size_t> counts;
  for (int i = 0; i < 300; ++i) {
    const std::uint64_t address = random.below(4096);
    const auto length = static_cast<std::uint32_t>(1 + random.below(std::min<std::uint64_t>(1024, 4096 - address)));
    check_all(splitter, address, length, boundary, options.config.max_payload);
    counts.insert(check_all(splitter, 0, 512, boundary, options.config.max_payload));
  }
  CHECK(counts.size() > 2);
}

TEST_CASE("an error status takes one completion without data") {
  CompletionSplitter splitter(RootComplexOptions{});
  ReadJob job = job_of(0x40, 500);
  job.status = CompletionStatus::kUnsupportedRequest;
  const auto completion = splitter.next(job).value();
  CHECK(job.left == 0);
  CHECK(completion.status == CompletionStatus::kUnsupportedRequest);
  CHECK(completion.data.empty());
  CHECK(completion.byte_count == 500);
}
