#include "testbench/nic_state.hpp"

#include <cstdint>
#include <sstream>
#include <string_view>

#include "testbench/nic_signal.hpp"

namespace rnic::testbench {
namespace {

std::uint64_t value_of(const VerilatedVar& variable) { return signal_value(variable.datap(), variable.vltype()); }

std::string hex(std::uint64_t value) {
  std::ostringstream text;
  text << "0x" << std::hex << value;
  return text.str();
}

void append_scope(const std::string& name, const VerilatedVarNameMap& variables, std::vector<std::string>& lines) {
  for (const auto& [text, variable] : variables) {
    const std::string_view signal(text);
    const std::uint64_t value = value_of(variable);
    if (is_state(signal, variable) && value != rest_of(name))
      lines.push_back(name + "." + text + " = " + std::to_string(value));
    if (!signal.ends_with(kValidSuffix)) continue;
    const std::string stream(signal.substr(0, signal.size() - kValidSuffix.size()));
    const auto ready = variables.find((stream + std::string(kReadySuffix)).c_str());
    const std::uint64_t waiting = ready == variables.end() ? 0 : value & ~value_of(ready->second);
    if (waiting == 0) continue;
    const bool one = variable.udims() == 0 && variable.packed().elements() <= 1;
    lines.push_back(name + "." + stream + ": valid, not ready" + (one ? "" : ", clients " + hex(waiting)));
  }
}

}  // namespace

std::vector<std::string> busy_signals(VerilatedContext& context) {
  std::vector<std::string> lines;
  for (const auto& [name, scope] : *context.scopeNameMap()) {
    if (const auto* variables = scope->varsp()) append_scope(std::string(from_top(name)), *variables, lines);
  }
  return lines;
}

}  // namespace rnic::testbench
