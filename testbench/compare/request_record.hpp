#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "testbench/compare/memory_record.hpp"
#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {

/// What a program has posted and what became of it. A request or Receive that fails may have left anything in its
/// memory: the memory record is told so.
class RequestRecord {
 public:
  /// All must outlive it. `failures`: those of the outcome, to which a completion of no request is added.
  RequestRecord(VectorSession& session, const VectorSetup& setup, MemoryRecord& memory, nlohmann::json& failures)
      : session_(session), setup_(setup), memory_(memory), failures_(failures) {}

  /// A step has been performed; what is no request and no Receive does not count.
  void add(const VectorStep& step);
  /// Queue pair `qp` of a host goes on as new; its reset has flushed what was posted.
  void restart(std::size_t host, std::size_t qp);
  /// Queue pair `qp` has failed, on either host.
  void failed(std::size_t qp) { failed_.insert(qp); }

  /// Takes the completions of both hosts, and adds them to "completions" of a batch (ProgramRunner).
  void take_completions(nlohmann::json& to);
  /// Requests that have not completed, without those whose success is silent.
  [[nodiscard]] std::int64_t outstanding() const { return outstanding_; }
  /// Receives of the queue pair itself, not of a shared queue, have not ended.
  [[nodiscard]] bool has_receives(std::size_t host, std::size_t qp) const;

  /// A batch is over. Of the Receives that no message has ended on a queue pair that has failed, parts of one are open.
  void leave_receives_open();

 private:
  struct Posted {
    const VectorStep* step;
    bool completed;
  };

  void take(std::size_t host, VectorQueue queue, const umd::Completion& result, nlohmann::json& to);
  void note_failure(std::size_t host, const VectorStep* step, std::size_t qp, hw::CqeStatus status);
  void leave_open(const VectorStep& step);
  [[nodiscard]] std::size_t source_of(std::size_t host, std::uint32_t qpn) const;
  [[nodiscard]] bool is_ethernet() const { return setup_.type == hw::QpType::kRawPacket; }

  VectorSession& session_;
  const VectorSetup& setup_;
  MemoryRecord& memory_;
  nlohmann::json& failures_;
  std::array<std::map<std::uint64_t, Posted>, 2> posted_;                            ///< By context
  std::map<std::pair<std::size_t, std::size_t>, std::set<std::uint64_t>> receives_;  ///< That have not ended
  std::int64_t outstanding_ = 0;
  std::set<std::size_t> failed_;
  std::map<std::pair<std::size_t, std::size_t>, hw::CqeStatus> first_error_;
};

}  // namespace rnic::testbench
