#include "testbench/timeline/usage_sampler.hpp"

#include <bit>
#include <stdexcept>
#include <string_view>

namespace rnic::testbench {

UsageSampler::UsageSampler(VerilatedContext& context, BlockUsage& usage) : usage_(usage) {
  for (const auto& [name, scope] : *context.scopeNameMap()) {
    if (const auto* variables = scope->varsp()) add_scope(std::string(from_top(name)), *variables);
  }
  if (events_ == nullptr) throw std::runtime_error("the model of the NIC does not show counter_bank.event_i");
}

void UsageSampler::add_scope(const std::string& scope, const VerilatedVarNameMap& variables) {
  constexpr std::string_view kCounters = ".u_counter_bank";
  for (const auto& [text, variable] : variables) {
    const std::string_view signal(text);
    if (scope.ends_with(kCounters) && signal == "event_i") events_ = static_cast<const EData*>(variable.datap());
    const Value value{variable.datap(), variable.vltype()};
    if (is_state(signal, variable)) engines_.push_back({value, rest_of(scope), &usage_.engines[scope]});
    if (!signal.ends_with(kValidSuffix)) continue;
    const std::string stream(signal.substr(0, signal.size() - kValidSuffix.size()));
    const auto ready = variables.find((stream + std::string(kReadySuffix)).c_str());
    if (ready == variables.end()) continue;
    const Value taken{ready->second.datap(), ready->second.vltype()};
    streams_.push_back({value, taken, &usage_.streams[scope + "." + stream]});
  }
}

void UsageSampler::sample(NicListener& listener) {
  constexpr std::size_t kBits = 32;
  for (std::size_t word = 0; word * kBits < hw::kCounterNames.size(); ++word) {
    for (EData left = events_[word]; left != 0; left &= left - 1)
      listener.counted(static_cast<hw::Counter>(word * kBits + static_cast<std::size_t>(std::countr_zero(left))));
  }
  if (!usage_.on) return;
  for (const auto& engine : engines_) *engine.busy += engine.state.get() != engine.rest;
  for (const auto& stream : streams_) {
    const std::uint64_t valid = stream.valid.get();
    if (valid == 0) continue;
    ++((valid & stream.ready.get()) != 0 ? stream.count->moves : stream.count->waits);
  }
}

}  // namespace rnic::testbench
