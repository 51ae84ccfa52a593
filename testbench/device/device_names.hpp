#pragma once

#include <string>

#include "driver/generated/host_interface.hpp"
#include "driver/umd/request.hpp"
#include "testbench/device/verbs_library.hpp"

/// What libibverbs calls what vectors name.
namespace rnic::testbench {

[[nodiscard]] ibv_qp_state verbs_state(hw::QpState state);
[[nodiscard]] std::string verbs_state_name(ibv_qp_state state);
/// The state, and what ibv_query_qp gives with it; IBV_QPS_UNKNOWN: it fails.
[[nodiscard]] ibv_qp_attr verbs_attributes(const VerbsLibrary& verbs, ibv_qp* qp);
[[nodiscard]] ibv_wc_opcode verbs_opcode(umd::RequestKind kind);
[[nodiscard]] ibv_event_type verbs_event(hw::EqeType type);
/// False: the descriptor is none.
[[nodiscard]] bool set_nonblocking(int descriptor);

}  // namespace rnic::testbench
