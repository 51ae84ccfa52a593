#pragma once

#include <verilated.h>
#include <verilated_syms.h>

#include <cstdint>
#include <string_view>

/// Signals of the Verilated NIC that rtl/rnic_observe.vlt opens, for files that know Verilator.
namespace rnic::testbench {

inline constexpr std::string_view kNicTop = "rnic_top";

/// "world.host0.nic.rnic_top.u_x" without what is before rnic_top; without that, as it is.
inline std::string_view from_top(std::string_view scope) {
  const std::size_t at = scope.find(kNicTop);
  return at == std::string_view::npos ? scope : scope.substr(at);
}

/// A stream has a signal of each suffix.
inline constexpr std::string_view kValidSuffix = "_valid", kReadySuffix = "_ready";

/// The state of a machine. A wider state_q is data: the remainder of a CRC.
inline bool is_state(std::string_view signal, const VerilatedVar& variable) {
  constexpr int kStateBits = 8;
  return signal == "state_q" && variable.packed().elements() <= kStateBits;
}
/// State in which the machine of an instance rests. These two clear their memory first, and rest in the state after
/// that.
inline std::uint64_t rest_of(std::string_view scope) {
  return scope.ends_with(".u_refs") || scope.ends_with(".u_queues.u_gate") ? 1 : 0;
}

/// The value of a signal, of a wide one its lower 64 bits.
inline std::uint64_t signal_value(const void* at, VerilatedVarType type) {
  switch (type) {
    case VLVT_UINT8: return *static_cast<const CData*>(at);
    case VLVT_UINT16: return *static_cast<const SData*>(at);
    case VLVT_UINT32: return *static_cast<const IData*>(at);
    case VLVT_UINT64: return *static_cast<const QData*>(at);
    default: return *static_cast<const EData*>(at) | std::uint64_t{static_cast<const EData*>(at)[1]} << 32;
  }
}

}  // namespace rnic::testbench
