#pragma once

#include <cstdint>
#include <span>

#include "testbench/fuzz/fuzz_process.hpp"
#include "testbench/fuzz/status_set.hpp"

namespace rnic::testbench {

/// What may become of an attacker's send WQE, judged from its bytes, by what the host interface says of them
/// (docs/host_interface.md, What each fault gives).
class WqeVerdict {
 public:
  /// `here` posts; the peers of its queue pairs are those of `there`.
  WqeVerdict(const FuzzProcess& here, const FuzzProcess& there) : here_(here), there_(there) {}

  /// The request at place `index` of the send queue. `well_formed`: made without a lie, so that it has no fault of its
  /// own but those that are found here. Empty: anything.
  [[nodiscard]] StatusSet judge(const FuzzProcess::Qp& qp, std::span<const std::uint8_t> wqe, std::uint16_t index,
                                bool well_formed) const;

 private:
  using Bytes = std::span<const std::uint8_t>;

  [[nodiscard]] bool may_use(const hw::WqeData& data, std::uint64_t length, bool read) const;
  [[nodiscard]] bool memory_must_fail(const FuzzProcess::Qp& qp, const hw::WqeControl& control, Bytes wqe) const;
  [[nodiscard]] bool list_must_fail(const hw::WqeFastRegister& fast, const hw::WqeControl& control, Bytes wqe) const;
  [[nodiscard]] StatusSet judge_remote(const FuzzProcess::Qp& qp, const hw::WqeControl& control, Bytes wqe) const;

  const FuzzProcess& here_;
  const FuzzProcess& there_;
};

}  // namespace rnic::testbench
