#include "testbench/timeline/life_names.hpp"

#include <fmt/format.h>

#include <array>

#include "driver/generated/host_interface.hpp"
#include "model/bth.hpp"

namespace rnic::testbench {
namespace {

constexpr std::array<std::string_view, kStages> kStageNames = {
    "posted",  "doorbell", "fetch asked", "fetch issued", "fetch answered", "turn",     "judged",      "sent",
    "checked", "placed",   "ACK made",    "ACK back",     "retired",        "CQE made", "CQE written", "polled"};
constexpr std::array<std::string_view, static_cast<std::size_t>(StallReason::kCount)> kStallNames = {
    "fence", "Read limit", "window", "credits", "NAK", "RNR", "retry: no answer", "retry: fault", "refused"};
constexpr std::array<std::string_view, static_cast<std::size_t>(RxReason::kCount)> kReasonNames = {
    "",          "no queue pair", "bad state", "bad peer",    "bad Q_Key",  "broken message",
    "duplicate", "PSN error",     "invalid",   "forbidden",   "no Receive", "waits for an atomic",
    "NAK",       "gap in front",  "stray",     "bad response"};

}  // namespace

std::string_view name(Stage stage) { return kStageNames[static_cast<std::size_t>(stage)]; }
std::string_view name(StallReason reason) { return kStallNames[static_cast<std::size_t>(reason)]; }
std::string_view name(RxReason reason) { return kReasonNames[static_cast<std::size_t>(reason)]; }

const std::string& opcode_name(std::uint8_t opcode) {
  static const auto names = [] {
    std::array<std::string, 256> all;
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = fmt::format("opcode {:#04x}", i);
    for (const auto& known : model::opcode_names()) all[*model::opcode_by_name(known)] = known;
    return all;
  }();
  return names[opcode];
}

std::string_view request_name(const Request& request) {
  if (request.receive) return "Receive";
  if (!request.started) return "request";
  switch (static_cast<hw::CqeOpcode>(request.opcode)) {
    case hw::CqeOpcode::kSend: return "Send";
    case hw::CqeOpcode::kWrite: return "Write";
    case hw::CqeOpcode::kRead: return "Read";
    case hw::CqeOpcode::kCompareSwap: return "Compare and swap";
    case hw::CqeOpcode::kFetchAdd: return "Fetch and add";
    case hw::CqeOpcode::kBindWindow: return "Bind";
    case hw::CqeOpcode::kLocalInvalidate: return "Invalidate";
    case hw::CqeOpcode::kFastRegister: return "Fast register";
    default: return "request";
  }
}

std::string host_letter(unsigned host) {
  return host < 26 ? std::string(1, static_cast<char>('A' + host)) : std::to_string(host);
}

}  // namespace rnic::testbench
