// What `rnic compare` takes for a difference of two outcomes, and what for a freedom (docs/compare.md).
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "testbench/compare/differences.hpp"
#include "testbench/compare/outcome.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;
using Requests = std::vector<std::pair<std::string, std::string>>;  ///< Type, status

/// Requests of host B, which end as said; host A has refused one of them, if `refused`.
json outcome(const Requests& requests, bool refused = true) {
  json batch;
  batch["completions"]["B initiator 1"] = json::array();
  std::size_t context = 0;
  for (const auto& [type, status] : requests)
    batch["completions"]["B initiator 1"].push_back({{"context", ++context}, {"status", status}, {"type", type}});
  batch["completions"]["A receive 2"] = json::array({{{"context", 9}, {"status", "Success"}, {"type", "Receive"}}});
  batch["events"] = json::object();
  batch["states"] = {{"A 1", refused ? "ERR" : "RTS"}, {"B 1", "ERR"}};
  batch["psns"] = batch["memory"] = batch["packets"] = json::object();
  return {{"failures", json::array()}, {"batches", json::array({batch})}, {"counters", json::object()}};
}

RandomProgram program(bool faults, bool binds = false) {
  RandomProgram made;
  made.setup = {{"type", "RC"}};
  made.faults = faults;
  if (binds) made.steps.push_back({0, {{"do", "bind"}, {"host", "A"}, {"qp", 1}}});
  return made;
}

const Requests kWriteLost = {{"Write", "RetryExcErr"}, {"FetchAdd", "WrFlushErr"}};
const Requests kWriteAnswered = {{"Write", "Success"}, {"FetchAdd", "RemAccessErr"}};

}  // namespace

TEST_CASE("compare: an answer that was lost in front of a refused request may come again or not") {
  CHECK_FALSE(find_difference(program(true), outcome(kWriteLost), outcome(kWriteAnswered)));
  CHECK_FALSE(find_difference(program(true), outcome(kWriteAnswered), outcome(kWriteLost)));
  SECTION("not where nothing is lost") {
    CHECK(find_difference(program(false), outcome(kWriteLost), outcome(kWriteAnswered))->kind == "completions");
  }
  SECTION("not where nothing was refused") {
    CHECK(find_difference(program(true), outcome(kWriteLost, false), outcome(kWriteAnswered, false)));
    CHECK(find_difference(program(true), outcome(kWriteLost), outcome(kWriteAnswered, false)));
  }
  SECTION("not for another status") {
    const Requests other = {{"Write", "RemOpErr"}, {"FetchAdd", "WrFlushErr"}};
    CHECK(find_difference(program(true), outcome(other), outcome(kWriteAnswered)));
  }
  SECTION("what is of other queue pairs is compared to the end of the batch") {
    json second = outcome(kWriteAnswered);
    second["batches"][0]["completions"]["A receive 2"][0]["status"] = "LocLenErr";
    CHECK(find_difference(program(true), outcome(kWriteLost), second)->place == "A receive 2");
  }
}

TEST_CASE("compare: a Read through a window in front of a refused request may be cut") {
  const Requests cut = {{"Read", "RemAccessErr"}, {"FetchAdd", "WrFlushErr"}};
  const Requests whole = {{"Read", "Success"}, {"FetchAdd", "RemAccessErr"}};
  const Requests lost = {{"Read", "RetryExcErr"}, {"FetchAdd", "WrFlushErr"}};
  CHECK_FALSE(find_difference(program(false, true), outcome(cut), outcome(whole)));
  CHECK(find_difference(program(false), outcome(cut), outcome(whole)));
  CHECK(find_difference(program(false, true), outcome(lost), outcome(whole)));  // but it is answered
}

TEST_CASE("compare: datagrams of two queue pairs to numbers that nobody has may come in either order") {
  const auto with = [](const std::vector<std::string>& packets) {
    json made = outcome({}, false);
    made["batches"][0]["packets"]["B 0"]["requests"] = packets;
    return made;
  };
  const std::string one = "0x64 bytes=3 source_qp=1 data=0x1", two = "0x64 bytes=9 source_qp=2 data=0x2",
                    three = "0x64 bytes=4 source_qp=2 data=0x3";
  CHECK_FALSE(find_difference(program(false), with({one, two, three}), with({two, one, three})));
  CHECK(find_difference(program(false), with({one, two, three}), with({one, three, two})));
  CHECK(find_difference(program(false), with({one, two}), with({one})));
}

TEST_CASE("compare: the newest ACK of a PSN has the same MSN, unless a repeated frame may have one or not") {
  const auto with = [](const std::vector<int>& msns) {
    json made = outcome({}, false);
    made["batches"][0]["packets"]["B 1"]["msns"]["7"] = msns;
    return made;
  };
  const auto frame = [](unsigned byte_8) {
    RandomProgram made = program(false);
    json step = {{"do", "frame"}, {"host", "B"}, {"qp", 1}};
    step["set"] = json::array({{{"part", "bth"}, {"byte", 8}, {"value", byte_8}}});
    made.steps.push_back({0, step});
    return made;
  };
  const RandomProgram asks = frame(0x80), does_not = frame(0x7f);
  CHECK_FALSE(find_difference(asks, with({1, 2}), with({2})));
  CHECK(find_difference(asks, with({1, 2}), with({1}))->sort == "MSN");
  CHECK_FALSE(find_difference(does_not, with({1, 2}), with({1})));
  CHECK_FALSE(find_difference(does_not, with({1}), with({1, 2})));
  CHECK(find_difference(does_not, with({1, 2}), with({3})));
}

TEST_CASE("compare: counters are those of both NICs, as far as what they count is no freedom") {
  json sound = outcome({}, false);
  sound["batches"][0]["states"] = json::object();
  const auto added = [](json to, const std::string& name, int count) {
    to["counters"]["B"][name] = count;
    return to;
  };
  const auto with = [&](const std::string& name, int count) { return added(sound, name, count); };
  const auto of_pair = [&](int count) {
    json made = sound;
    made["qp_counters"]["A 1"]["Gaps"] = count;
    return made;
  };
  const json failed = outcome({{"Read", "RemAccessErr"}});
  const auto found = find_difference(program(false), with("RxNaks", 1), with("RxNaks", 2));
  REQUIRE(found);
  CHECK(found->kind == "counters");
  CHECK(found->place == "RxNaks of host B");
  CHECK(found->text == "1 and 2");
  CHECK_FALSE(find_difference(program(false), with("TxAcks", 1), with("TxAcks", 2)));
  CHECK(find_difference(program(false), of_pair(0), of_pair(1))->place == "Gaps of queue pair A 1");
  SECTION("repairs and refusals are not compared where frames are lost or a request has failed") {
    CHECK_FALSE(find_difference(program(true), with("RxNaks", 1), with("RxNaks", 2)));
    CHECK_FALSE(find_difference(program(false), added(failed, "RxNaks", 1), added(failed, "RxNaks", 2)));
    CHECK_FALSE(find_difference(program(true), of_pair(0), of_pair(1)));
  }
  SECTION("completions are, whatever fails") {
    CHECK(find_difference(program(true), with("Cqes", 1), with("Cqes", 2))->sort == "Cqes");
    CHECK(find_difference(program(false), added(failed, "Cqes", 1), added(failed, "Cqes", 2)));
  }
  SECTION("a dropped frame counts once, wherever it is counted") {
    const json malformed = added(with("RxMalformed", 1), "RxBadIcrc", 0),
               bad_icrc = added(with("RxMalformed", 0), "RxBadIcrc", 1);
    CHECK_FALSE(find_difference(program(false), malformed, bad_icrc));
    CHECK(find_difference(program(false), malformed, added(with("RxMalformed", 0), "RxBadIcrc", 0))->sort ==
          "frames dropped");
  }
}

TEST_CASE("compare: runs that end are alike when they end for the same reason") {
  const auto ended = [](const std::string& sort, const std::string& text) {
    return json{{"failures", json::array({failure_entry(std::string(kRunEnded) + sort, text)})},
                {"batches", json::array()}};
  };
  CHECK_FALSE(find_difference(program(false), ended("nothing moves", "20 reads"), ended("nothing moves", "21 reads")));
  const auto found = find_difference(program(false), ended("nothing moves", "20 reads"), ended("a rule", "20 reads"));
  REQUIRE(found);
  CHECK(found->kind == "failures");
  CHECK(find_difference(program(false), ended("nothing moves", "20 reads"), outcome(kWriteLost)));
  SECTION("what a step was refused for is compared in full") {
    const auto refused = [](const std::string& text) {
      return json{{"failures", json::array({failure_entry("refused (send)", text)})}, {"batches", json::array()}};
    };
    CHECK(find_difference(program(false), refused("ND_CANCELED"), refused("ND_ACCESS_VIOLATION")));
  }
}

}  // namespace rnic::testbench
