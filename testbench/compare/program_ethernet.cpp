// Ethernet of a program: frames that go from one host to the other, and frames by hand (docs/host_interface.md).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "testbench/compare/program.hpp"
#include "testbench/compare/program_requests.hpp"
#include "testbench/compare/random_frame.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// Of what is sent in a batch, and of the Receives of each queue pair.
constexpr std::size_t kSlots = 16, kSlotBytes = 8192;
constexpr std::uint32_t kLongestFrame = 4096, kShortestFrame = 14;
constexpr std::array<std::uint64_t, 2> kMacs = {0x0200'0000'0001, 0x0200'0000'0002};

std::string hexadecimal(const std::vector<std::uint8_t>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// Draws a batch. One queue pair sends in it, or a stranger does: in which order frames of several come is open.
class EthernetMaker {
 public:
  explicit EthernetMaker(ProgramPlan& plan) : plan_(plan) {}

  std::vector<json> draw() {
    for (std::size_t host = 0; host < 2; ++host) {
      begin_anew(host);
      if (plan_.batch == 0 || plan_.chance(0.3)) choose(host);
    }
    const std::size_t sender = plan_.below(2), qp = plan_.below(plan_.pairs.size()), count = plan_.between(1, 8);
    for (std::size_t host = 0; host < 2; ++host) post_receives(host, count);
    steps_.push_back({{"host", "A"}, {"do", "wait"}, {"us", 4}});
    if (plan_.chance(0.4)) {
      for (std::size_t i = 0; i < count; ++i) add_by_hand(sender);
      return std::move(steps_);
    }
    const std::size_t fails = plan_.chance(0.1) ? plan_.below(count) : count;
    std::vector<json> sends;
    for (std::size_t i = 0; i < count; ++i) sends.push_back(make_send(sender, qp, i, i == fails));
    for (auto& send : sends) {
      steps_.push_back(std::move(send));
      // Freedom::kDroppedBehind
      if (plan_.one_at_a_time) steps_.push_back({{"host", "A"}, {"do", "wait"}, {"us", 5}});
    }
    return std::move(steps_);
  }

 private:
  json step(std::size_t host, const char* what) { return {{"host", host_letter(host)}, {"do", what}}; }

  /// A queue pair that a request of its own has stopped goes on, and some begin anew.
  void begin_anew(std::size_t host) {
    for (std::size_t qp = 0; qp < plan_.pairs.size(); ++qp) {
      const auto move = [&](const char* state) {
        json modify = step(host, "modify");
        modify["qp"] = qp + 1;
        modify["to"] = state;
        steps_.push_back(std::move(modify));
      };
      if (plan_.chance(0.05)) {
        json reset = step(host, "reset");
        reset["qp"] = qp + 1;
        steps_.push_back(std::move(reset));
        move("RTR");
        plan_.pairs[qp].stopped[host] = true;
      }
      if (std::exchange(plan_.pairs[qp].stopped[host], false)) move("RTS");
    }
  }

  void choose(std::size_t host) {
    json to = step(host, "receive_ethernet");
    to["qp"] = plan_.below(plan_.pairs.size()) + 1;
    if (plan_.chance(0.1)) to["enable"] = false;
    if (plan_.chance(0.2)) to["all_groups"] = true;
    if (plan_.chance(0.2)) to["promiscuous"] = true;
    if (plan_.chance(0.05)) to["qpn_xor"] = 1u << plan_.between(16, 23);
    if (plan_.chance(0.5)) {
      for (std::uint64_t bit = 0; bit < 64; ++bit) {
        if (plan_.chance(0.5)) to["groups"].push_back(bit);
      }
    }
    steps_.push_back(std::move(to));
  }

  void post_receives(std::size_t host, std::size_t frames) {
    for (std::size_t qp = 0; qp < plan_.pairs.size(); ++qp) {
      const std::size_t count = plan_.chance(0.8) ? frames : plan_.below(frames);
      for (std::size_t i = 0; i < count; ++i) {
        json receive = step(host, "receive");
        receive["qp"] = qp + 1;
        receive["context"] = plan_.next_context++;
        const bool is_short = plan_.chance(0.02);
        plan_.one_at_a_time = plan_.one_at_a_time || is_short;
        receive["sge"] =
            segments(host, (qp + 1) * kSlots + i, is_short ? plan_.between(20, 100) : kLongestFrame + plan_.below(100));
        steps_.push_back(std::move(receive));
      }
    }
  }

  /// One after the other, from somewhere at the begin of a slot on.
  json segments(std::size_t host, std::size_t slot, std::uint64_t length) {
    json list = json::array();
    std::uint64_t at = slot * kSlotBytes + plan_.below(64), left = length;
    const std::size_t count = plan_.between(1, 4);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bytes = i + 1 == count ? left : plan_.below(left + 1);
      list.push_back({{"region", region_name(host)}, {"offset", at}, {"length", bytes}});
      at += bytes;
      left -= bytes;
    }
    return list;
  }

  /// Stores the frame, and gives the request that sends it.
  json make_send(std::size_t host, std::size_t qp, std::size_t slot, bool fails) {
    RandomFrame limits;
    limits.macs = {kMacs[host], kMacs[1 - host]};
    const auto frame = limits.draw(plan_.random);
    json send = step(host, "send");
    send["qp"] = qp + 1;
    send["context"] = plan_.next_context++;
    const bool wrong_length = fails && plan_.chance(0.5);
    const std::uint64_t length = !wrong_length       ? frame.size()
                                 : plan_.chance(0.5) ? plan_.below(kShortestFrame)
                                                     : kLongestFrame + plan_.between(1, 1000);
    send["sge"] = segments(host, slot, length);
    json store = step(host, "store");
    store["region"] = region_name(host);
    store["offset"] = send["sge"][0]["offset"];
    store["bytes"] = hexadecimal(frame);
    steps_.push_back(std::move(store));
    if (plan_.chance(0.5)) send["ip_csum"] = true;
    json flags = json::array();
    if (plan_.chance(0.2)) flags.push_back("SILENT_SUCCESS");
    if (plan_.chance(0.1)) flags.push_back("SOLICIT");
    if (length <= plan_.inline_bytes && !fails && plan_.chance(0.5)) flags.push_back("INLINE");
    if (!flags.empty()) send["flags"] = flags;
    if (fails) {
      plan_.pairs[qp].stopped[host] = true;
      auto& list = send["sge"];
      const auto with_bytes =
          std::find_if(list.begin(), list.end(), [](const json& one) { return one["length"] != 0; });
      if (!wrong_length) (*with_bytes)["token"] = {{"corrupt", plan_.chance(0.5) ? "tag" : "index"}};
    }
    return send;
  }

  void add_by_hand(std::size_t host) {
    RandomFrame limits;
    limits.macs = {kMacs[1 - host], kMacs[host]};
    limits.roce = true;
    json frame = step(host, "frame");
    frame["bytes"] = hexadecimal(limits.draw(plan_.random));
    frame["then_us"] = 6;
    if (plan_.chance(0.05)) frame["fcs"] = "wrong";
    if (plan_.chance(0.05)) frame["append"] = plan_.between(1, 4500);
    steps_.push_back(std::move(frame));
  }

  ProgramPlan& plan_;
  std::vector<json> steps_;
};

}  // namespace

std::uint64_t ethernet_bytes(const ProgramPlan& plan) { return (plan.pairs.size() + 1) * kSlots * kSlotBytes; }

std::vector<json> draw_ethernet(ProgramPlan& plan) { return EthernetMaker(plan).draw(); }

}  // namespace rnic::testbench
