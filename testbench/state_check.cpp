#include "testbench/state_check.hpp"

#include <verilated.h>

#include <cstddef>
#include <cstring>

#include "Vrnic_top.h"
#include "Vrnic_top___024root.h"

namespace rnic::testbench {
namespace {

using Root = Vrnic_top___024root;

struct Signal {
  const char* name;
  std::size_t offset, bytes;
};

// The class has a base, but no virtual one: its members are where offsetof says.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
constexpr Signal kSignals[] = {
#define STATE(name) {#name, offsetof(Root, name), sizeof(Root::name)},
#include "nic_state_table.inc"
#undef STATE
};
#pragma GCC diagnostic pop

/// Verilator's name of a signal as a reader knows it.
std::string in_hierarchy(std::string name) {
  static const std::string kDot = "__DOT__";
  for (std::size_t at = name.find(kDot); at != std::string::npos; at = name.find(kDot))
    name.replace(at, kDot.size(), ".");
  return name;
}

/// Registers and memories; what follows from them is named only where no register differs.
bool is_register(const std::string& name) { return name.ends_with("_q") || name.ends_with(".mem"); }

/// " 5" of a short signal; nothing of a long one.
std::string value(const Signal& signal, const std::vector<std::uint8_t>& state) {
  std::uint64_t number = 0;
  if (signal.bytes > sizeof number) return {};
  std::memcpy(&number, state.data() + signal.offset, signal.bytes);
  return ' ' + std::to_string(number);
}

std::vector<std::string> differing(const std::vector<std::uint8_t>& a, const std::vector<std::uint8_t>& b) {
  constexpr std::size_t kNamed = 20;
  std::vector<std::string> registers, others;
  for (const Signal& signal : kSignals) {
    if (std::memcmp(a.data() + signal.offset, b.data() + signal.offset, signal.bytes) == 0) continue;
    const std::string name = in_hierarchy(signal.name);
    auto& names = is_register(name) ? registers : others;
    if (names.size() < kNamed) names.push_back(name + value(signal, a) + "->" + value(signal, b));
  }
  return registers.empty() ? others : registers;
}

}  // namespace

void StateCheck::save(State& to) const {
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(top_.rootp);
  to.assign(bytes, bytes + sizeof(Root));
}

void StateCheck::restore(const State& state) {
  std::memcpy(static_cast<void*>(top_.rootp), state.data(), state.size());
}

void StateCheck::open_edge() {
  top_.clk_open_i = 1;
  top_.eval();
  top_.clk_i = 1;
  top_.eval();
}

std::vector<std::string> StateCheck::edge(const std::function<void()>& edge) {
  save(before_);
  open_edge();
  save(opened_);
  restore(before_);
  edge();
  save(after_);
  return differing(after_, opened_);
}

std::vector<std::string> StateCheck::next_edge() {
  save(before_);
  open_edge();
  top_.clk_i = 0;
  top_.clk_open_i = 0;
  top_.eval();
  save(after_);
  restore(before_);
  return differing(before_, after_);
}

}  // namespace rnic::testbench
