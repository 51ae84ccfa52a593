#include "testbench/verify/vector_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <systemc>

#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kLimitNs = 3'000'000'000;

/// "A>B SendOnly" of a RoCEv2 frame: direction and BTH opcode.
std::string packet_name(const model::FrameRecord& frame) {
  static const std::map<std::uint8_t, const char*> kNames = {
      {0x00, "SendFirst"}, {0x01, "SendMiddle"}, {0x02, "SendLast"}, {0x04, "SendOnly"}, {0x06, "WriteFirst"}, {0x07, "WriteMiddle"},
      {0x08, "WriteLast"}, {0x0A, "WriteOnly"}, {0x0C, "ReadRequest"}, {0x0D, "ReadResponseFirst"}, {0x0E, "ReadResponseMiddle"},
      {0x0F, "ReadResponseLast"}, {0x10, "ReadResponseOnly"}, {0x11, "Acknowledge"}};
  const std::size_t bth = frame.bytes.at(12) == 0x86 ? 14 + 40 + 8 : 14 + 20 + 8;
  const auto it = kNames.find(frame.bytes.at(bth));
  return std::string(frame.from == 0 ? "A>B " : "B>A ") + (it == kNames.end() ? fmt::format("opcode {:#04x}", frame.bytes.at(bth)) : it->second);
}

std::string join(const std::vector<std::string>& list) { return list.empty() ? "none" : fmt::format("{}", fmt::join(list, ", ")); }

}  // namespace

VectorOutcome VectorRunner::run(const Vector& vector) {
  VectorOutcome outcome;
  std::vector<std::string> packets;
  world_.reset(options_);
  world_.observe_frames([&](const model::FrameRecord& frame) { packets.push_back(packet_name(frame)); });
  world_.add_app(0, "vector", [&](Host& a) {
    VectorSession session(a, world_.host(1), vector.setup);
    const std::uint64_t start = a.device().now_ns();
    for (const auto& step : vector.steps) session.run(step);
    outcome.simulated_ns = a.device().now_ns() - start;
    // What is under way reaches the wire before the packets are counted.
    a.device().elapse(10'000);
    if (vector.packets && packets != *vector.packets) throw VectorFailure(fmt::format("packets: {}; expected {}", join(packets), join(*vector.packets)));
  });
  try {
    world_.run(kLimitNs);
    outcome.passed = true;
  } catch (const std::exception& error) {
    outcome.message = error.what();
  }
  world_.observe_frames({});
  return outcome;
}

}  // namespace rnic::testbench
