// Hand-made frames of a program: what a responder must answer, and what it must not.
#include <utility>

#include "testbench/compare/program_requests.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// Draws frames one after the other, with the PSN that the responder expects as far as it is known.
class FrameMaker {
 public:
  FrameMaker(ProgramPlan& plan, std::size_t qp) : plan_(plan), qp_(qp), pair_(plan.pairs[qp]) {}

  json draw() {
    json frame = {{"host", "B"}, {"do", "frame"}, {"qp", qp_ + 1}, {"then_us", 6}};
    std::uint32_t packets = draw_packet(frame);
    const std::uint32_t expected = pair_.psn[0];
    frame["psn"] = expected;
    if (plan_.chance(0.15)) {
      static const std::vector<int> kOff = {-1, -2, 1, 2, -5, 7, 0x7fffff};
      frame["psn"] = (expected + static_cast<std::uint32_t>(plan_.one_of(kOff))) & 0xffffff;
      packets = 0;
    }
    if (plan_.chance(0.25)) {
      spoil(frame);
      packets = 0;
    }
    pair_.psn[0] = (expected + packets) & 0xffffff;
    return frame;
  }

 private:
  /// Gives the PSNs that it takes.
  std::uint32_t draw_packet(json& frame) {
    if (plan_.service == ProgramService::kUd) {
      frame["opcode"] = plan_.chance(0.7) ? "UdSendOnly" : "UdSendOnlyImmediate";
      if (plan_.chance(0.5)) frame["immediate"] = plan_.below(1ull << 32);
      frame["payload"] = plan_.below(plan_.mtu + 1);
      return 1;
    }
    const bool reliable = plan_.service == ProgramService::kRc;
    const std::string before = reliable ? "" : "Uc";
    frame["ack_req"] = true;
    frame["solicited"] = plan_.chance(0.2);
    switch (plan_.below(reliable ? 9 : 4)) {
      case 0:
        frame["opcode"] = before + (plan_.chance(0.7) ? "SendOnly" : "SendOnlyImmediate");
        frame["payload"] = plan_.below(plan_.mtu + 1);
        return 1;
      case 1:
        frame["opcode"] = before + (plan_.chance(0.7) ? "WriteOnly" : "WriteOnlyImmediate");
        frame["payload"] = plan_.below(plan_.mtu + 1);
        aim(frame, Zone::kWriteTarget);
        return 1;
      case 2: return continue_message(frame, before);
      case 3:
        frame["opcode"] = plan_.below(256);
        frame["payload"] = plan_.chance(0.5) ? 0 : plan_.below(plan_.mtu + 1);
        return 0;
      case 4: {
        frame["opcode"] = "ReadRequest";
        aim(frame, Zone::kReadSource);
        const std::uint64_t length = plan_.chance(0.2) ? 0 : plan_.between(1, plan_.zone_bytes / 2);
        frame["length"] = length;
        return plan_.packets(length);
      }
      case 5:
        frame["opcode"] = plan_.chance(0.5) ? "FetchAdd" : "CompareSwap";
        aim(frame, Zone::kAtomics);
        frame["swap_add"] = plan_.random.next();
        frame["compare"] = plan_.chance(0.5) ? 0 : plan_.random.next();
        return 1;
      case 6:
        frame["opcode"] = plan_.chance(0.5) ? "SendOnlyInvalidate" : "SendLastInvalidate";
        frame["payload"] = plan_.below(plan_.mtu + 1);
        return 1;
      case 7:
        frame["opcode"] = plan_.chance(0.5) ? "Acknowledge" : "ReadResponseOnly";
        frame["syndrome"] = plan_.below(256);
        frame["msn"] = plan_.below(1 << 24);
        return 0;
      default:
        frame["opcode"] = "WriteOnly";
        frame["payload"] = plan_.below(plan_.mtu + 1);
        aim(frame, Zone::kWriteTarget);
        frame["length"] = plan_.below(3 * plan_.mtu);
        return 1;
    }
  }

  /// First, Middle and Last, mostly in this order.
  std::uint32_t continue_message(json& frame, const std::string& before) {
    static const std::vector<const char*> kParts = {"First", "Middle", "Last", "LastImmediate"};
    const bool begins = !inside_ || plan_.chance(0.1);
    if (begins) writes_ = plan_.chance(0.5);
    const std::string part = begins ? "First" : plan_.one_of(kParts);
    frame["opcode"] = before + (writes_ ? "Write" : "Send") + part;
    const bool last = part.starts_with("Last");
    frame["payload"] = last                 ? plan_.between(plan_.chance(0.1) ? 0 : 1, plan_.mtu)
                       : plan_.chance(0.05) ? plan_.below(plan_.mtu + 200)
                                            : plan_.mtu;
    if (writes_ && part == "First") {
      aim(frame, Zone::kWriteTarget);
      frame["length"] = plan_.mtu + plan_.between(1, 2 * plan_.mtu);
    }
    inside_ = !last;
    return 1;
  }

  void aim(json& frame, Zone zone) {
    json& to = frame["remote"] = {{"region", "b"}, {"offset", plan_.zone(qp_, zone) + 8 * plan_.below(64)}};
    switch (plan_.below(12)) {
      case 0: to["token"] = {{"corrupt", plan_.chance(0.5) ? "tag" : "index"}}; break;
      case 1:
        to["token"] = "other";
        to["of"] = "b_other";
        break;
      case 2: to["offset"] = plan_.main_bytes() - plan_.below(64); break;
      case 3: to["offset"] = to["offset"].get<std::uint64_t>() + plan_.between(1, 7); break;
      case 4: to = {{"region", plan_.chance(0.5) ? "b_read" : "b_write"}, {"offset", plan_.below(64)}}; break;
      default: break;
    }
  }

  void spoil(json& frame) {
    const auto set = [&frame](const char* part, std::uint64_t byte, std::uint64_t value) {
      frame["set"] = json::array({{{"part", part}, {"byte", byte}, {"value", value}}});
    };
    switch (plan_.below(13)) {
      case 0: frame["icrc"] = "wrong"; break;
      case 1: frame["checksum"] = "wrong"; break;
      case 2: frame["fcs"] = "wrong"; break;
      case 3: frame["from"] = "stranger"; break;
      case 4: frame["pkey"] = plan_.chance(0.5) ? 0x7fff : plan_.below(1 << 16); break;
      case 5: frame["qpn_xor"] = 1u << plan_.between(16, 23); break;
      case 6: frame["cut"] = plan_.between(1, 40); break;
      case 7: frame["append"] = plan_.between(1, 60); break;
      case 8: set("bth", 1, plan_.below(256)); break;
      case 9: set("ip", plan_.between(0, 9), plan_.below(256)); break;
      case 10: set("udp", plan_.below(6), plan_.below(256)); break;
      case 11: draw_tag(frame); break;
      default:
        if (plan_.service == ProgramService::kUd)
          frame["qkey"] = plan_.below(1u << 31);
        else
          set("bth", plan_.chance(0.5) ? 4 : 8, plan_.below(256));
        break;
    }
  }

  void draw_tag(json& frame) {
    if (plan_.chance(0.3)) {
      frame["tag"] = "none";
      return;
    }
    json& tag = frame["tag"] = {{"pcp", plan_.below(8)}, {"dei", plan_.chance(0.3)}};
    static const std::vector<unsigned> kVids = {0, 1, 5, 4094, 4095};
    if (plan_.chance(0.7)) tag["vlan"] = plan_.one_of(kVids);
  }

  ProgramPlan& plan_;
  const std::size_t qp_;
  PlannedPair& pair_;
  bool inside_ = false, writes_ = false;
};

}  // namespace

std::vector<json> draw_frames(ProgramPlan& plan, std::size_t qp, std::size_t count) {
  FrameMaker maker(plan, qp);
  std::vector<json> steps;
  const std::size_t receives = plan.below(count);
  for (std::size_t i = 0; i < receives; ++i) {
    const std::uint64_t bytes = plan.below(2 * plan.mtu);
    const std::uint64_t at = plan.zone(qp, Zone::kReceives) + plan.below(plan.zone_bytes - 2 * plan.mtu);
    steps.push_back({{"host", "B"},
                     {"do", "receive"},
                     {"qp", qp + 1},
                     {"context", plan.next_context++},
                     {"sge", json::array({{{"region", "b"}, {"offset", at}, {"length", bytes}}})}});
  }
  steps.push_back({{"host", "B"}, {"do", "wait"}, {"us", 4}});
  for (std::size_t i = 0; i < count; ++i) steps.push_back(maker.draw());
  return steps;
}

}  // namespace rnic::testbench
