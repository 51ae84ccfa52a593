#pragma once

#include <optional>
#include <vector>

#include "testbench/compare/program_plan.hpp"

namespace rnic::testbench {

/// Steps of one direction of a queue pair in a batch: the Receives of its peer, and its requests in their order.
struct PlannedRequests {
  std::vector<nlohmann::json> receives, requests;
  std::uint32_t first_psn = 0, end_psn = 0;  ///< Of the requests, as vectors count
};

/// Draws requests of host `host` on queue pair `qp` that succeed, `count` of them.
[[nodiscard]] PlannedRequests draw_requests(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count);
/// The same with one among them that cannot succeed; the queue pair is dead afterwards, where its service dies of that.
[[nodiscard]] PlannedRequests draw_failure(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count);
/// The same in a batch of its own, in which the host gives nothing of a ring: the send ring of `host`, or its peer's
/// Receives, which must not be waiting (PCI Express 2.2.9, 2.7.2, 2.8). The queue pair is dead afterwards.
[[nodiscard]] PlannedRequests draw_unread(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count);
/// Requests on a queue pair of which nobody knows in which state it is.
[[nodiscard]] PlannedRequests draw_blind(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count);
/// Queue pairs join the multicast groups of the plan, or leave them. UD.
[[nodiscard]] std::vector<nlohmann::json> draw_members(ProgramPlan& plan);
/// Datagrams to these groups, in a batch of their own: who is a member takes them in the order of one sender.
[[nodiscard]] PlannedRequests draw_group_sends(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count);
/// Hand-made frames to host B in the name of A.
[[nodiscard]] std::vector<nlohmann::json> draw_frames(ProgramPlan& plan, std::size_t qp, std::size_t count);
/// All steps of a batch of Ethernet frames, and the bytes of the region that they need on each host.
[[nodiscard]] std::vector<nlohmann::json> draw_ethernet(ProgramPlan& plan);
[[nodiscard]] std::uint64_t ethernet_bytes(const ProgramPlan& plan);

}  // namespace rnic::testbench
