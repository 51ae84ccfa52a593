#include "tests/server/recording.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <csignal>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

namespace rnic::test {

std::string text_of(const std::filesystem::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

Recording::Recording(std::vector<std::string> arguments) {
  const std::vector<std::string> files{"--log",  log_.path(),        "--pcap",     at("wire.pcap"),
                                       "--json", at("figures.json"), "--timeline", at("timeline.json")};
  arguments.insert(arguments.end(), files.begin(), files.end());
  server_ = std::make_unique<ServerProcess>(arguments);
}

Outcome Recording::replay(const std::vector<std::string>& arguments) {
  std::vector<std::string> line{"replay", log_.path(),      "--pcap",     at("again.pcap"),
                                "--json", at("again.json"), "--timeline", at("again.timeline")};
  line.insert(line.end(), arguments.begin(), arguments.end());
  return tool_.run(line);
}

void Recording::check(const std::vector<std::string>& arguments) {
  CHECK(server_->end(SIGTERM) == 0);
  const auto outcome = replay(arguments);
  CAPTURE(outcome.output);
  CHECK(outcome.code == 0);
  CHECK(contains(outcome.output, "packets, completions and counters are those of the log"));
  const std::string wire = text_of(at("wire.pcap"));
  CHECK(wire.size() > 1'000);
  CHECK((wire == text_of(at("again.pcap"))));
  const auto results = [&](const std::string& file) { return nlohmann::json::parse(text_of(at(file)))["results"]; };
  CHECK(results("figures.json") == results("again.json"));
  CHECK((text_of(at("timeline.json")) == text_of(at("again.timeline"))));
}

Peers::Peers(const ServerProcess& server, unsigned from, unsigned to)
    : a(server.socket(from), from), b(server.socket(to), to) {
  const auto to_a = a.address(), to_b = b.address();
  a.connect(to_b);
  b.connect(to_a);
}

hw::CqeStatus Peers::move(hw::WqeOpcode opcode, std::span<const umd::Segment> segments, std::uint32_t offset) {
  const auto to = b.address();
  a.post({.opcode = opcode,
          .id = 1,
          .segments = segments,
          .remote_address = to.memory + offset,
          .remote_key = to.key,
          .swap_add = 7});
  return a.poll().status;
}

void Peers::work() {
  for (std::size_t i = 0; i < RemotePeer::kBytes; ++i) a.memory()[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  const std::array large{a.segment(3, 20'001)}, small{a.segment(64, 8)};
  CHECK(move(hw::WqeOpcode::kWrite, large, 5) == hw::CqeStatus::kSuccess);
  CHECK(move(hw::WqeOpcode::kRead, large, 30'000) == hw::CqeStatus::kSuccess);
  CHECK(move(hw::WqeOpcode::kFetchAdd, small, 8) == hw::CqeStatus::kSuccess);
  b.post_receive(5, 100, 4096);
  CHECK(move(hw::WqeOpcode::kSend, small) == hw::CqeStatus::kSuccess);
  CHECK(b.wait().kind == umd::RequestKind::kReceive);
}

}  // namespace rnic::test
