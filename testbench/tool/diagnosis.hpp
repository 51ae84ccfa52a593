#pragma once

#include <string>

#include "testbench/report/queue_pair_figures.hpp"
#include "testbench/server/machine_server.hpp"

namespace rnic::testbench {

/// Why a work request failed, in a few sentences: which request of which program, who refused it, the NAK or the
/// status, the counter, what was wrong with its R_Key, the clause of the InfiniBand specification, and the frames of
/// the capture. `name`: of the program; `host`, `qpn`: whose request it was.
[[nodiscard]] std::string diagnose(const FailedRequest& request, const std::string& name, unsigned host,
                                   std::uint32_t qpn, const MachineServer& server);

/// The name that libibverbs has for a completion status (enum ibv_wc_status), in words.
[[nodiscard]] std::string_view status_name(std::uint8_t status);

}  // namespace rnic::testbench
