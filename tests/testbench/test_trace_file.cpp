// The file of a timeline: Chrome trace events as their viewers want them. What is in it of a real run is held by
// tests/system/test_timeline.py.
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "testbench/timeline/lanes.hpp"
#include "testbench/timeline/life.hpp"
#include "testbench/timeline/trace_file.hpp"

using namespace rnic::testbench;
using nlohmann::json;

namespace {

constexpr std::uint64_t kNs = 1000;

class Scratch {
 public:
  ~Scratch() { std::filesystem::remove(path_); }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] json read() const { return json::parse(std::ifstream(path_)); }

 private:
  std::string path_ = "trace_file_test.json";
};

std::vector<json> of(const json& events, const std::string& ph) {
  std::vector<json> some;
  for (const auto& event : events) {
    if (event.at("ph") == ph) some.push_back(event);
  }
  return some;
}

}  // namespace

TEST_CASE("a file without events is an empty list") {
  Scratch scratch;
  TraceFile file(scratch.path(), {}, 0);
  file.close();
  CHECK(scratch.read() == json::array());
}

TEST_CASE("times are microseconds since the epoch, to the nanosecond") {
  Scratch scratch;
  TraceFile file(scratch.path(), {}, 5'000 * kNs);
  const auto track = file.track(3, "a track", 7);
  file.slice(track, 6'234 * kNs, 7'300 * kNs + 999, "slice", R"("bytes":5)");
  file.instant(track, 5'001 * kNs, "mark", "");
  file.close();
  const json events = scratch.read();
  REQUIRE(of(events, "X").size() == 1);
  const json slice = of(events, "X")[0];
  CHECK(slice.at("ts").get<double>() == Approx(1.234));
  CHECK(slice.at("dur").get<double>() == Approx(1.066));
  CHECK(slice.at("args").at("bytes") == 5);
  CHECK(of(events, "i")[0].at("ts").get<double>() == Approx(0.001));
}

TEST_CASE("a track has one name and one number") {
  Scratch scratch;
  TraceFile file(scratch.path(), {}, 0);
  const auto first = file.track(0, "a", 1), other = file.track(1, "a", 1), again = file.track(0, "a", 1);
  file.close();
  CHECK(first.thread == again.thread);
  CHECK(first.thread != other.thread);
  CHECK(of(scratch.read(), "M").size() == 4);  // a name and a place of each
}

TEST_CASE("a window keeps what touches it") {
  Scratch scratch;
  TraceFile file(scratch.path(), {100, 200}, 0);
  const auto track = file.track(0, "a", 1);
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> spans = {{0, 99},  {0, 100},   {120, 130},
                                                                      {0, 900}, {200, 900}, {201, 900}};
  for (const auto& [from, to] : spans)
    file.slice(track, from * kNs, to * kNs, std::to_string(from) + "-" + std::to_string(to), "");
  for (const std::uint64_t at : {99, 100, 200, 201}) file.flow(TraceFile::Flow::kStart, track, at * kNs, at);
  file.close();
  std::vector<std::string> kept;
  for (const auto& slice : of(scratch.read(), "X")) kept.push_back(slice.at("name"));
  CHECK(kept == std::vector<std::string>{"0-100", "120-130", "0-900", "200-900"});
  CHECK(of(scratch.read(), "s").size() == 2);
}

TEST_CASE("a file that cannot be written is an error") {
  CHECK_THROWS_AS(TraceFile("/nonexistent/t.json", {}, 0), std::runtime_error);
}

TEST_CASE("what overlaps gets lanes of its own, and they are used again") {
  Lanes lanes;
  CHECK(lanes.take() == 0);
  CHECK(lanes.take() == 1);
  lanes.give(0);
  CHECK(lanes.take() == 0);
  CHECK(lanes.take() == 2);
}

TEST_CASE("PSNs compare round the wrap") {
  CHECK(reaches(5, 5));
  CHECK(reaches(0, 0xffffff));
  CHECK_FALSE(reaches(0xffffff, 0));
  CHECK_FALSE(reaches(4, 5));
}

TEST_CASE("the first time of a stage counts") {
  Request request;
  request.mark(Stage::kSent, 7);
  request.mark(Stage::kSent, 9);
  CHECK(request.when(Stage::kSent) == 7);
}

TEST_CASE("a WQE that starts before its window is written to the end was posted by the last piece before") {
  Request request;
  request.piece = 12;
  request.mark(Stage::kTurn, 20);
  CHECK(request.when(Stage::kDoorbell) == 12);
}
