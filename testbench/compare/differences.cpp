#include "testbench/compare/differences.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <set>
#include <sstream>
#include <string_view>

#include "testbench/compare/counter_differences.hpp"
#include "testbench/compare/memory_record.hpp"
#include "testbench/compare/outcome.hpp"
#include "testbench/compare/program_runner.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

/// The first key, of either, whose values differ.
std::optional<std::string> different_key(const json& first, const json& second) {
  for (const auto& [key, value] : first.items()) {
    if (member(second, key) != value) return key;
  }
  for (const auto& [key, value] : second.items()) {
    if (!first.contains(key)) return key;
  }
  return std::nullopt;
}

/// What differs, in words; and what of it is alike wherever it shows (Difference::sort).
struct Described {
  std::string text, sort;
};

/// Of two entries of a list: which of them is missing, or what differs first. A status or a type has its name there.
std::string entry_sort(const json& one, const json& other) {
  const json& either = one.is_null() ? other : one;
  if (either.contains("sort")) return either.at("sort").get<std::string>();  // a failure
  if (one.is_null() || other.is_null()) return one.is_null() ? "more in the second" : "more in the first";
  if (one.is_object() && other.is_object()) {
    const std::string key = different_key(one, other).value_or("nothing");
    if (key != "status" && key != "type") return key;
    return fmt::format("{} {} and {}", key, shown(member(one, key)), shown(member(other, key)));
  }
  if (!one.is_string() || !other.is_string()) return {};  // numbers
  // Packets: words of a name and a value.
  const auto word = [](const json& packet, std::size_t number) {
    std::istringstream words(packet.get<std::string>());
    std::string text;
    for (std::size_t i = 0; i <= number && !words.fail(); ++i) words >> text;
    return words.fail() ? std::string() : text;
  };
  for (std::size_t i = 0;; ++i) {
    const std::string mine = word(one, i), theirs = word(other, i);
    if (mine != theirs || mine.empty())
      return i == 0 ? fmt::format("{} and {}", mine, theirs) : mine.substr(0, mine.find('='));
  }
}

/// Where two lists differ: the first entry of each, and its number.
template <typename Same = std::equal_to<>>
std::optional<Described> find_in_lists(const json& first, const json& second, const Same& same = {}) {
  const std::size_t a = first.is_array() ? first.size() : 0, b = second.is_array() ? second.size() : 0;
  for (std::size_t i = 0; i < std::max(a, b); ++i) {
    const json one = i < a ? first[i] : json(), other = i < b ? second[i] : json();
    if (!same(one, other))
      return Described{fmt::format("number {}: {} and {}", i + 1, shown(one), shown(other)), entry_sort(one, other)};
  }
  return std::nullopt;
}

Described list_difference(const json& first, const json& second) {
  return find_in_lists(first, second).value_or(Described{"nothing", "nothing"});
}

/// Two failures (failure_entry) are one. How a run ended is told with times and counts, which are free.
bool same_failure(const json& one, const json& other) {
  if (one.is_null() || other.is_null()) return false;
  return one.at("sort").get_ref<const std::string&>().starts_with(kRunEnded) ? one.at("sort") == other.at("sort")
                                                                             : one == other;
}

/// Of two values, or lists of them.
Described value_difference(const json& one, const json& other) {
  if (one.is_array() || other.is_array()) return list_difference(one, other);
  return {fmt::format("{} and {}", shown(one), shown(other)), {}};
}

/// A place without host and number: "A initiator 1" is "initiator", "a_win" is "_win".
std::string place_sort(const std::string& place) {
  const std::size_t from = std::min(place.size(), place.find_first_of("_ ")),
                    to = place.find_last_not_of("0123456789 ");
  return to == std::string::npos || to < from ? std::string() : place.substr(from, to - from + 1);
}

bool begins_alike(const json& first, const json& second) {
  if (!first.is_array() || !second.is_array()) return true;
  const std::size_t common = std::min(first.size(), second.size());
  return std::equal(first.begin(), first.begin() + static_cast<std::ptrdiff_t>(common), second.begin());
}

/// Queue pairs of which a request has failed in a batch, or that have left the states in which they work ("1").
std::set<std::string> failing_pairs(const json& batch) {
  std::set<std::string> pairs;
  const auto number = [](const std::string& name) { return name.substr(name.rfind(' ') + 1); };
  for (const auto& [name, list] : batch.at("completions").items()) {
    for (const auto& one : list) {
      if (one.at("status") != "Success") pairs.insert(number(name));
    }
  }
  for (const auto& [name, state] : batch.at("states").items()) {
    if (state != "RTS") pairs.insert(number(name));
  }
  return pairs;
}

/// A hand-made frame of which a byte is set, so that its AckReq bit is not (BTH, byte 8).
bool asks_for_no_ack(const ProgramStep& step) {
  const json& bytes = member(step.step, "set");
  return std::any_of(bytes.begin(), bytes.end(), [](const json& one) {
    return one.at("part") == "bth" && one.at("byte") == 8 && one.at("value").get<std::uint64_t>() < 0x80;
  });
}

/// Receives that were given back flushed, of any queue pair, by host: "A", contexts.
std::set<std::pair<std::string, std::uint64_t>> flushed_receives(const json& batch) {
  std::set<std::pair<std::string, std::uint64_t>> flushed;
  for (const auto& [name, list] : batch.at("completions").items()) {
    for (const auto& one : list) {
      if (one.at("type").get_ref<const std::string&>().starts_with("Receive") && one.at("status") == "WrFlushErr")
        flushed.emplace(name.substr(0, 1), one.at("context").get<std::uint64_t>());
    }
  }
  return flushed;
}

class Comparison {
 public:
  Comparison(const RandomProgram& program, const json& first, const json& second)
      : program_(program), first_(first), second_(second) {}

  std::optional<Difference> run() {
    if (const auto found = find_in_lists(member(first_, "failures"), member(second_, "failures"), same_failure))
      return Difference{"failures", 0, "failures", found->sort, found->text};
    if (const json& one = member(first_, "stopped"), &other = member(second_, "stopped"); one != other)
      return Difference{"failures", 0, "stopped", "stopped", value_difference(one, other).text};
    const json &a = first_.at("batches"), &b = second_.at("batches");
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      // Freedom::kSharedReceives: the next messages find other Receives, and other memory under them.
      races_ = refusal_races(a[i], b[i]);
      apart_ = !races_.empty() || (program_.setup.contains("srq") && flushed_receives(a[i]) != flushed_receives(b[i]));
      if (auto found = batch(i, a[i], b[i])) return found;
      if (apart_) return std::nullopt;
    }
    const bool clean = !program_.faults && all_failing_.empty() && !rnr_;
    return find_counter_difference(first_, second_, clean);
  }

 private:
  std::optional<Difference> batch(std::size_t number, const json& a, const json& b) {
    const bool reliable = program_.setup.value("type", "RC") == "RC";
    for (const auto* const of : {&a, &b}) all_failing_.merge(failing_pairs(*of));
    for (const char* const kind : {"completions", "events", "states", "psns"}) {
      const json one = comparable(kind, a.at(kind)), other = comparable(kind, b.at(kind));
      if (const auto key = different_key(one, other)) {
        const auto [text, sort] = value_difference(member(one, *key), member(other, *key));
        return Difference{kind, number, *key, kind == std::string("states") ? text : place_sort(*key) + ' ' + sort,
                          text};
      }
    }
    if (apart_) return std::nullopt;
    if (auto found = memory(number, a.at("memory"), b.at("memory"))) return found;
    return packets(number, a, b, reliable);
  }

  /// Lists of requests that are alike up to one whose end hangs on whether its responder was in the error state
  /// already: Freedom::kLostAnswer, Freedom::kWindowEnds. "A initiator 1".
  [[nodiscard]] std::set<std::string> refusal_races(const json& a, const json& b) const {
    const bool windows = std::any_of(program_.steps.begin(), program_.steps.end(),
                                     [](const ProgramStep& step) { return step.step.at("do") == "bind"; });
    const auto hangs = [&](const json& entry) {
      const bool lost = entry.at("status") == "RetryExcErr", cut = entry.at("status") == "RemAccessErr";
      return (lost && program_.faults) || (cut && windows && entry.at("type") == "Read");
    };
    std::set<std::string> names;
    for (const auto& [name, mine] : a.at("completions").items()) {
      const json& theirs = member(b.at("completions"), name);
      if (name.find("initiator") == std::string::npos || !theirs.is_array()) continue;
      const std::string peer = (name.front() == 'A' ? "B" : "A") + name.substr(name.rfind(' '));
      if (member(a.at("states"), peer) != "ERR" || member(b.at("states"), peer) != "ERR") continue;
      const auto [one, other] = std::mismatch(mine.begin(), mine.end(), theirs.begin(), theirs.end());
      if (one != mine.end() && other != theirs.end() && (hangs(*one) || hangs(*other))) names.insert(name);
    }
    return names;
  }

  /// What of it no freedom concerns.
  [[nodiscard]] json comparable(const std::string& kind, const json& value) const {
    json to = json::object();
    if (kind == "psns") {  // Freedom::kBehindError
      for (const auto& [name, psns] : value.items()) {
        if (!all_failing_.contains(name.substr(2))) to[name] = psns;
      }
      return to;
    }
    if (kind == "completions" && !races_.empty()) {
      for (const auto& [name, list] : value.items()) {
        if (!races_.contains(name)) to[name] = list;
      }
      return to;
    }
    if (kind == "completions" && program_.setup.contains("srq")) {  // Freedom::kSharedReceives
      for (const auto& [name, list] : value.items()) {
        for (const auto& one : list) {
          const bool receives = one.at("type").get_ref<const std::string&>().starts_with("Receive");
          if (receives && one.at("status") == "WrFlushErr") continue;
          to[name].push_back(one);
          if (receives && apart_) to[name].back().erase("context");
        }
      }
      return to;
    }
    if (kind != "events") return value;
    // Freedom::kCompletionOrder: those of each object by themselves.
    for (const auto& [host, list] : value.items()) {
      for (const auto& event : list) to[fmt::format("{} {}", host, event.value("qp", 0))].push_back(event);
    }
    return to;
  }

  static std::optional<Difference> memory(std::size_t number, const json& a, const json& b) {
    const auto region = different_key(a, b);
    if (!region) return std::nullopt;
    const json &mine = member(a, *region), &theirs = member(b, *region);
    std::optional<std::uint64_t> block;
    for (const auto* const list : {&mine, &theirs}) {
      for (const auto& [key, hash] : list->items()) {
        if (member(mine, key) != member(theirs, key))
          block = std::min(block.value_or(~0ull), std::uint64_t{std::stoull(key)});
      }
    }
    const std::uint64_t offset = block.value_or(0) * kHashedBytes;
    return Difference{"memory", number, *region, place_sort(*region), fmt::format("bytes from {} on differ", offset),
                      *region,  offset};
  }

  /// Freedom::kRefusedPsn.
  static json without_psns(const json& list) {
    json to = json::array();
    for (const auto& one : list) {
      std::string text = one.get<std::string>();
      const auto at = text.find(" psn=");
      if (at != std::string::npos) text.erase(at, text.find(' ', at + 1) - at);
      to.push_back(std::move(text));
    }
    return to;
  }

  /// Datagrams to numbers that nobody has come from any queue pair: Freedom::kCompletionOrder.
  static json by_source(json list) {
    if (!list.is_array()) return list;
    const auto source = [](const json& one) {
      const auto& text = one.get_ref<const std::string&>();
      const auto at = text.find(" source_qp=");
      return at == std::string::npos ? std::string() : text.substr(at, text.find(' ', at + 1) - at);
    };
    std::stable_sort(list.begin(), list.end(),
                     [&](const json& one, const json& other) { return source(one) < source(other); });
    return list;
  }

  std::optional<Difference> packets(std::size_t number, const json& a, const json& b, bool reliable) {
    auto failing = failing_pairs(a);
    failing.merge(failing_pairs(b));
    const json &one = a.at("packets"), &other = b.at("packets");
    std::set<std::string> ways;
    for (const auto* const of : {&one, &other}) {
      for (const auto& [way, lists] : of->items()) ways.insert(way);
    }
    for (const auto& way : ways) {
      const json &mine = member(one, way), &theirs = member(other, way);
      const bool fails = failing.contains(way.substr(way.rfind(' ') + 1));
      if (mine.contains("rnr") || theirs.contains("rnr")) rnr_ = true;
      for (const char* const kind : {"requests", "answers"}) {
        const bool responses = kind[0] == 'a';
        if (responses && program_.faults) continue;  // Freedom::kRepeats
        // A datagram to a number that nobody has says not of which queue pair it is.
        const bool unnamed = way.ends_with(" 0") && !all_failing_.empty();
        const bool renumbered = !reliable && (unnamed || all_failing_.contains(way.substr(way.rfind(' ') + 1)));
        json p = renumbered ? without_psns(member(mine, kind)) : member(mine, kind);
        json q = renumbered ? without_psns(member(theirs, kind)) : member(theirs, kind);
        if (way.ends_with(" 0")) p = by_source(std::move(p)), q = by_source(std::move(q));
        if (p == q || (fails && begins_alike(p, q) && !only_naks(p, q))) continue;  // Freedom::kBehindError
        const auto [text, sort] = list_difference(p, q);
        return Difference{"packets", number, way, fmt::format("{}: {}", kind, sort), fmt::format("{}: {}", kind, text)};
      }
      if (program_.faults) continue;
      if (const auto psn = different_msn(member(mine, "msns"), member(theirs, "msns")))
        return Difference{
            "packets", number, way, "MSN",
            fmt::format("MSN of PSN {}: {} and {}", *psn, shown(mine["msns"][*psn]), shown(theirs["msns"][*psn]))};
    }
    return std::nullopt;
  }

  /// The PSN of ACKs whose MSNs differ: the newest, or all of them, if a frame was repeated that asks for no ACK
  /// (Freedom::kAcknowledges).
  [[nodiscard]] std::optional<std::string> different_msn(const json& first, const json& second) const {
    const bool unasked = std::any_of(program_.steps.begin(), program_.steps.end(), asks_for_no_ack);
    for (const auto& [psn, mine] : first.items()) {
      const json& theirs = member(second, psn);
      if (theirs == kNoMember || mine.back() == theirs.back()) continue;
      const auto is_theirs = [&](const json& msn) {
        return std::find(theirs.begin(), theirs.end(), msn) != theirs.end();
      };
      if (!unasked || std::none_of(mine.begin(), mine.end(), is_theirs)) return psn;
    }
    return std::nullopt;
  }

  /// What one has more than the other is a NAK: it does not depend on when anybody learns of anything.
  static bool only_naks(const json& p, const json& q) {
    const json& longer = p.size() > q.size() ? p : q;
    for (std::size_t i = std::min(p.size(), q.size()); i < longer.size(); ++i) {
      const auto& text = longer[i].get_ref<const std::string&>();
      if (text.find("syndrome=") != std::string::npos) return true;
    }
    return false;
  }

  const RandomProgram& program_;
  const json& first_;
  const json& second_;
  std::set<std::string> all_failing_;
  bool rnr_ = false;
  std::set<std::string> races_;  ///< Of this batch: refusal_races
  bool apart_ = false;           ///< In this batch a freedom has made them so different that nothing behind it compares
};

}  // namespace

std::optional<Difference> find_difference(const RandomProgram& program, const json& first, const json& second) {
  return Comparison(program, first, second).run();
}

}  // namespace rnic::testbench
