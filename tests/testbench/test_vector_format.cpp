#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <vector>

#include "driver/nd2/ndspi.h"
#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_frame.hpp"
#include "testbench/verify/vector_packets.hpp"

// What docs/vectors.md promises of files, packets and hand-made frames; no NIC is simulated.
using namespace rnic;
using namespace rnic::testbench;

namespace {

/// A vector whose keys, beside the three that every one has, are those of `keys`.
Vector load(const std::string& keys) {
  const auto file = std::filesystem::temp_directory_path() / "rnic_test_vector_format.json";
  std::ofstream(file) << R"({"document": "d", "clause": "c", "rule": "r", )" << keys << "}";
  return load_vector(file);
}

std::string refused(const std::string& keys) {
  try {
    (void)load(keys);
  } catch (const VectorError& error) {
    return error.what();
  }
  return {};
}

constexpr const char* kWait = R"("steps": [{"host": "A", "do": "wait", "us": 1}])";

std::vector<VectorPacket> packets(const std::vector<std::string>& texts) {
  std::vector<VectorPacket> all;
  for (const auto& text : texts) all.push_back(parse_packet(text));
  return all;
}

/// Whether packets are what a list of a vector, in JSON, expects.
bool fits(const std::string& list, const std::vector<std::string>& seen) {
  const auto vector = load(std::string(kWait) + R"(, "packets": )" + list);
  return compare_packets(*vector.packets, packets(seen)).empty();
}

}  // namespace

TEST_CASE("vector format: a list of packets is met by these packets in this order") {
  const std::string list = R"(["A>B WriteOnly psn=0", "B>A Acknowledge psn=0"])";
  CHECK(fits(list, {"A>B WriteOnly psn=0 bytes=8", "B>A Acknowledge psn=0"}));
  CHECK_FALSE(fits(list, {"A>B WriteOnly psn=0"}));
  CHECK_FALSE(fits(list, {"B>A Acknowledge psn=0", "A>B WriteOnly psn=0"}));
  CHECK_FALSE(fits(list, {"A>B WriteOnly psn=0", "B>A Acknowledge psn=1"}));
  CHECK_FALSE(fits(list, {"A>B WriteOnly psn=0", "B>A Acknowledge psn=0", "B>A Acknowledge psn=0"}));
  CHECK(fits("[]", {}));
  CHECK_FALSE(fits("[]", {"A>B WriteOnly psn=0"}));
}

TEST_CASE("vector format: either of several lists") {
  const std::string list =
      R"(["A>B ReadRequest psn=0", {"either": ["A>B ReadRequest psn=2", ["A>B ReadRequest psn=0", "A>B ReadRequest psn=1"], []], "clause": "c"}, "A>B SendOnly"])";
  CHECK(fits(list, {"A>B ReadRequest psn=0", "A>B ReadRequest psn=2", "A>B SendOnly"}));
  CHECK(fits(list, {"A>B ReadRequest psn=0", "A>B ReadRequest psn=0", "A>B ReadRequest psn=1", "A>B SendOnly"}));
  CHECK(fits(list, {"A>B ReadRequest psn=0", "A>B SendOnly"}));
  CHECK_FALSE(fits(list, {"A>B ReadRequest psn=0", "A>B ReadRequest psn=0", "A>B SendOnly"}));
  CHECK_FALSE(fits(list, {"A>B ReadRequest psn=0", "A>B ReadRequest psn=2", "A>B ReadRequest psn=0",
                          "A>B ReadRequest psn=1", "A>B SendOnly"}));
  CHECK_FALSE(fits(list, {"A>B ReadRequest psn=0", "A>B ReadRequest psn=2"}));
  // The longer alternative is found although the shorter begins alike.
  CHECK(fits(R"([{"either": ["A>B SendOnly", ["A>B SendOnly", "A>B WriteOnly"]], "clause": "c"}])",
             {"A>B SendOnly", "A>B WriteOnly"}));
}

TEST_CASE("vector format: several lists mixed") {
  const std::string list =
      R"([{"mixed": [["B>A ReadResponseFirst", "B>A ReadResponseLast"], ["B>A Acknowledge psn=5"]]}, "B>A Acknowledge psn=6"])";
  CHECK(
      fits(list, {"B>A ReadResponseFirst", "B>A Acknowledge psn=5", "B>A ReadResponseLast", "B>A Acknowledge psn=6"}));
  CHECK(
      fits(list, {"B>A Acknowledge psn=5", "B>A ReadResponseFirst", "B>A ReadResponseLast", "B>A Acknowledge psn=6"}));
  CHECK_FALSE(
      fits(list, {"B>A ReadResponseLast", "B>A ReadResponseFirst", "B>A Acknowledge psn=5", "B>A Acknowledge psn=6"}));
  CHECK_FALSE(fits(list, {"B>A ReadResponseFirst", "B>A ReadResponseLast", "B>A Acknowledge psn=6"}));
  CHECK_FALSE(
      fits(list, {"B>A ReadResponseFirst", "B>A ReadResponseLast", "B>A Acknowledge psn=6", "B>A Acknowledge psn=5"}));
  // One that may be absent, anywhere among the others.
  const std::string notice =
      R"([{"mixed": [["B>A Acknowledge psn=0", "B>A Acknowledge psn=1"], [{"either": [[], ["B>A opcode=0x81"]], "clause": "c"}]]}])";
  CHECK(fits(notice, {"B>A Acknowledge psn=0", "B>A Acknowledge psn=1"}));
  CHECK(fits(notice, {"B>A Acknowledge psn=0", "B>A opcode=0x81", "B>A Acknowledge psn=1"}));
  CHECK_FALSE(fits(notice, {"B>A opcode=0x81", "B>A Acknowledge psn=0", "B>A opcode=0x81", "B>A Acknowledge psn=1"}));
}

TEST_CASE("vector format: a packet that must not appear") {
  const auto vector = load(std::string(kWait) + R"(, "no_packets": ["B>A Acknowledge psn=3"])");
  CHECK(find_forbidden(vector.no_packets, packets({"B>A Acknowledge psn=2", "A>B SendOnly psn=3"})).empty());
  CHECK_FALSE(
      find_forbidden(vector.no_packets, packets({"A>B SendOnly psn=3", "B>A Acknowledge psn=3 msn=1"})).empty());
}

TEST_CASE("vector format: both sides, and each its own") {
  const auto setup =
      load(
          std::string(kWait) +
          R"(, "setup": {"mtu": 512, "retry_count": 3, "initiator_reads": 2, "A": {"mtu": 4096, "responder_reads": 7}, "B": {"read_limit": 1}, "link_gbps": 2.5})")
          .setup;
  CHECK(setup.hosts[0].mtu == 4096);
  CHECK(setup.hosts[1].mtu == 512);
  CHECK(setup.hosts[0].retry_count == 3);
  CHECK(setup.hosts[0].initiator_reads == 2);
  CHECK(setup.hosts[0].responder_reads == 7);
  CHECK(setup.hosts[1].initiator_reads == 1);
  CHECK(setup.hosts[1].responder_reads == 1);
  CHECK(*setup.link_gbps == 2.5);
}

TEST_CASE("vector format: what is wrong is refused") {
  const auto with = [](const std::string& more) { return refused(std::string(kWait) + ", " + more); };
  const auto step = [](const std::string& one) { return refused(R"("steps": [{"host": "A", )" + one + "}]"); };
  CHECK(refused(kWait).empty());
  CHECK(step(R"("do": "wait", "us": 4294967295)").empty());
  CHECK(step(R"("do": "wait", "us": 4294967296)").find("\"us\" is too large") != std::string::npos);
  CHECK(with(R"("setup": {"A": {"type": "UD"}})").find("unknown key \"type\"") != std::string::npos);
  CHECK(with(R"("setup": {"B": {"mtu": 300}})").find("mtu") != std::string::npos);
  CHECK(with(R"("setup": {"link_gbps": 0})").find("link_gbps") != std::string::npos);
  CHECK(with(R"("setup": {"regions": [{"host": "A", "name": "a", "size": 8, "memory_of": "b"}]})")
            .find("no region \"b\"") != std::string::npos);
  CHECK(with(R"("packets": [{"either": [[]], "clause": "c"}])").find("needs two") != std::string::npos);
  CHECK(with(R"("packets": [{"either": [[], []]}])").find("\"clause\" is missing") != std::string::npos);
  CHECK(with(R"("packets": [{"mixed": [[]]}])").find("two lists") != std::string::npos);
  CHECK(with(R"("packets": [{"any": [[], []]}])").find("mixed") != std::string::npos);
  CHECK(with(R"("packets": {"A": [{"either": ["B>A SendOnly", []], "clause": "c"}]})").find("not a packet of host A") !=
        std::string::npos);
  CHECK(with(R"("no_packets": ["A>B Send"])").find("no opcode") != std::string::npos);
  CHECK(with(R"("no_packets": ["A>B WriteOnly rkey=x"])").find("no region or window \"x\"") != std::string::npos);
  CHECK(
      step(
          R"("do": "complete", "results": [{"type": "Send", "context": 1, "status": {"either": ["Success", "ND_SUCCESS"], "clause": "c"}}])")
          .find("mixes") != std::string::npos);
  CHECK(
      step(
          R"("do": "complete", "results": [{"type": "Send", "context": 1, "status": {"either": ["Success"], "clause": "c"}}])")
          .find("needs two") != std::string::npos);
  CHECK(step(R"("do": "complete", "results": [{"type": "Send", "context": 1, "status": ["Success", "LocLenErr"]}])")
            .find("\"status\" is") != std::string::npos);
  CHECK(step(R"("do": "counter", "name": "TxNaks", "equals": 1, "at_most": 2)").find("equals") != std::string::npos);
  CHECK(step(R"("do": "counter", "name": "TxNaks")").find("equals") != std::string::npos);
  CHECK(step(R"("do": "memory", "region": "a", "offset": 0, "length": 8, "payload_of": {"psn": 0}, "fill": "zero")")
            .find("exclude") != std::string::npos);
  CHECK(
      step(
          R"("do": "memory", "region": "a", "offset": 0, "length": 8, "either": [{"fill": "zero"}, {"fill": "pattern"}])")
          .find("\"clause\" is missing") != std::string::npos);
  CHECK(
      step(
          R"("do": "memory", "region": "a", "offset": 0, "length": 8, "either": [{"equals": {"region": "a", "offset": 0}}, {"equals": {"region": "a", "offset": 8}}], "clause": "c")")
          .find("second") != std::string::npos);
  CHECK(step(R"("do": "frame", "opcode": "SendOnly", "psn": 0, "insert": [{"part": "ip", "byte": 20, "bytes": "??"}])")
            .find("all known") != std::string::npos);
  CHECK(step(R"("do": "send", "context": 1, "sge": [], "invalidate": "x")").find("no region \"x\"") !=
        std::string::npos);
}

TEST_CASE("vector format: statuses, one or several") {
  const auto statuses = [](const std::string& status) {
    return load(R"("steps": [{"host": "A", "do": "complete", "results": [{"type": "Send", "context": 1, "status": )" +
                status + "}]}]")
        .steps[0]
        .results[0];
  };
  CHECK(statuses(R"("ND_SUCCESS")").statuses == std::vector<std::int32_t>{ND_SUCCESS});
  CHECK(statuses(R"({"either": ["ND_SUCCESS", "ND_CANCELED"], "clause": "c"})").statuses.size() == 2);
  const auto any = statuses(R"("AnyError")").cqe_statuses;
  CHECK(any.size() == 10);
  CHECK(std::count(any.begin(), any.end(), hw::CqeStatus::kSuccess) +
            std::count(any.begin(), any.end(), hw::CqeStatus::kWrFlushErr) ==
        0);
  CHECK(statuses(R"({"either": ["WrFlushErr", "AnyError"], "clause": "c"})").cqe_statuses.size() == 11);
}

// A pattern with a period lets data pass that was fetched a page, a packet or a TLP too early.
TEST_CASE("vector format: patterns depend on host, region and the whole offset") {
  const auto same = [](std::uint64_t one, std::uint64_t at, std::uint64_t other, std::uint64_t from) {
    int equal = 0;
    for (std::uint64_t i = 0; i < 64; ++i) equal += pattern_byte(one, at + i) == pattern_byte(other, from + i);
    return equal;
  };
  const auto a = region_pattern(0, "a");
  CHECK(same(a, 5, a, 5) == 64);
  for (std::uint64_t distance = 1; distance <= 1 << 20; distance *= 2) CHECK(same(a, 0, a, distance) < 8);
  CHECK(same(a, 0, region_pattern(1, "a"), 0) < 8);
  CHECK(same(a, 0, region_pattern(0, "b"), 0) < 8);
  CHECK(same(payload_pattern(0, 0, 1), 0, payload_pattern(0, 0, 2), 0) < 8);
  CHECK(same(payload_pattern(0, 0, 1), 0, payload_pattern(0, 1, 1), 0) < 8);
  CHECK(same(payload_pattern(0, 0, 1), 0, payload_pattern(1, 0, 1), 0) < 8);
  for (std::uint64_t i = 0; i < 4096; ++i)
    REQUIRE(pattern_byte(a, i) != 0);  // memory that was filled with zeros shows every byte that lands there
}

TEST_CASE(
    "vector format: bytes put into a hand-made frame move what is behind them, and ICRC and checksum are right again") {
  VectorFrame frame;
  frame.opcode = 0x0a;
  frame.payload = 8;
  FrameTarget target;
  target.path.dest_qpn = 5;
  const auto plain = build_frame(frame, target);
  frame.insert.push_back({VectorFrame::Part::kIp, 20, {1, 1, 1, 1}});
  frame.set.push_back({VectorFrame::Part::kIp, 0, 0x46});
  frame.set.push_back({VectorFrame::Part::kIp, 3, static_cast<std::uint8_t>(plain[17] + 4)});
  const auto bytes = build_frame(frame, target);
  REQUIRE(bytes.size() == plain.size() + 4);
  CHECK(bytes[14] == 0x46);
  CHECK(std::vector<std::uint8_t>(bytes.begin() + 34, bytes.begin() + 38) == std::vector<std::uint8_t>(4, 1));
  CHECK(std::equal(plain.begin() + 34, plain.end() - 4, bytes.begin() + 38));
  std::uint32_t sum = 0;  // RFC 791: the sum of all words of the header, options included, is all ones
  for (std::size_t i = 14; i < 38; i += 2) sum += bytes[i] * 256u + bytes[i + 1];
  CHECK((sum & 0xffff) + (sum >> 16) == 0xffff);
  auto icrc = roce::icrc(std::span(bytes).subspan(14, bytes.size() - 18));
  for (std::size_t i = 0; i < 4; ++i) CHECK(bytes[bytes.size() - 4 + i] == static_cast<std::uint8_t>(icrc >> (8 * i)));
  // The ICRC of a packet with options leaves out the same fields as without: time to live, UDP checksum, the reserved
  // byte of the BTH.
  auto varied = bytes;
  for (const std::size_t at : {22u, 44u, 45u, 50u}) varied[at] ^= 0xff;
  CHECK(roce::icrc(std::span(varied).subspan(14, varied.size() - 18)) == icrc);
}
