#include "testbench/compare/counter_differences.hpp"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "testbench/compare/outcome.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 5> kAlways = {"Cqes", "CqOverruns", "EqOverruns", "MemoryOps",
                                                     "MemoryOpsRefused"};
constexpr std::array<std::string_view, 23> kClean = {
    "TxRequests",       "TxReadResponses", "TxNaks",           "RxBrokenMessages", "RxDuplicate",   "RxPsnError",
    "RxInvalidRequest", "RxForbidden",     "RxSrqErrors",      "RxNaks",           "RxGaps",        "RxReadResponses",
    "RxStrayResponses", "RxBadResponses",  "RxAtomics",        "RxAtomicRepeats",  "RxPlaceFaults", "WqeErrors",
    "SequenceRetries",  "AckTimeouts",     "RetriesExhausted", "RxEthernet",       "RxEthernetLost"};
// A frame may fail several checks, and nobody says which comes first.
constexpr std::array<std::string_view, 7> kDropped = {"RxNotRoce",  "RxMalformed", "RxBadIcrc", "RxNoQp",
                                                      "RxBadState", "RxBadPeer",   "RxBadQkey"};
constexpr std::array<std::string_view, 16> kOfPairs = {
    "Duplicates",  "PsnErrors",        "InvalidRequests", "Forbidden",   "NoReceive",      "BrokenMessages",
    "PlaceFaults", "NaksSent",         "NaksReceived",    "Gaps",        "StrayResponses", "SequenceRetries",
    "AckTimeouts", "RetriesExhausted", "SendFaults",      "BadResponses"};

/// `what` the owners are: "host", "queue pair".
template <typename Names>
std::optional<Difference> find_in(const json& all_a, const json& all_b, const std::string& what, const Names& names) {
  for (const auto& [owner, a] : all_a.items()) {
    const json& b = member(all_b, owner);
    for (const auto& name : names) {
      const std::string key(name);
      if (member(a, key) != member(b, key))
        return Difference{"counters", 0, fmt::format("{} of {} {}", key, what, owner), key,
                          fmt::format("{} and {}", shown(member(a, key)), shown(member(b, key)))};
    }
  }
  return std::nullopt;
}

std::optional<Difference> find_in_dropped(const json& all_a, const json& all_b) {
  const auto sum = [](const json& of) {
    std::uint64_t all = 0;
    for (const auto& name : kDropped) all += of.value(std::string(name), std::uint64_t{0});
    return all;
  };
  for (const auto& [host, counts] : all_a.items()) {
    const std::uint64_t mine = sum(counts), theirs = sum(member(all_b, host));
    if (mine != theirs)
      return Difference{"counters", 0, "frames dropped by host " + host, "frames dropped",
                        fmt::format("{} and {}", mine, theirs)};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Difference> find_counter_difference(const json& first, const json& second, bool clean) {
  const json &a = member(first, "counters"), &b = member(second, "counters");
  if (auto found = find_in(a, b, "host", kAlways)) return found;
  if (!clean) return std::nullopt;
  if (auto found = find_in(a, b, "host", kClean)) return found;
  if (auto found = find_in_dropped(a, b)) return found;
  return find_in(member(first, "qp_counters"), member(second, "qp_counters"), "queue pair", kOfPairs);
}

}  // namespace rnic::testbench
