#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "model/pcie.hpp"
#include "model/random.hpp"
#include "testbench/fuzz/fuzz_process.hpp"
#include "testbench/fuzz/wqe_verdict.hpp"

namespace rnic::testbench {

/// What an attacker does through its own access region and rings: malformed WQEs, doorbells for what is not its own,
/// writes to the WQE window that make no sense, and transaction layer packets of every size.
class WqeFuzzer {
 public:
  /// `here` attacks; `there` is the process of its peers. `others`: queue pairs and completion queues of others.
  WqeFuzzer(std::uint64_t seed, std::string_view part, FuzzProcess& here, FuzzProcess& there,
            std::vector<std::uint32_t> others)
      : random_(seed, part), here_(here), there_(there), verdict_(here, there), others_(std::move(others)) {}

  /// Writes one WQE, well formed or not, and mostly rings for it. False: no queue pair can take one now.
  bool post();
  /// One access to the page of the process. Lets time pass when it is a read. False: a read was never answered.
  bool access();

  /// What was done, newest last, a line each; at most kHistory.
  [[nodiscard]] const std::deque<std::string>& history() const { return history_; }

 private:
  static constexpr std::size_t kHistory = 64;
  static constexpr std::size_t kUnit = 16;  ///< Of WqeControl::size
  using Wqe = std::array<std::uint8_t, 1u << FuzzProcess::kLogStride>;

  /// True with `probability`, while the request at hand is one that lies.
  [[nodiscard]] bool lies(double probability) { return lying_ && random_.chance(probability); }
  Wqe send_wqe(FuzzProcess::Qp& qp, std::uint16_t index);
  Wqe memory_wqe(FuzzProcess::Qp& qp, std::uint16_t index);
  void bind(FuzzProcess::Qp& qp, hw::WqeControl& control, Wqe& wqe);
  void fast_register(FuzzProcess::Qp& qp, hw::WqeControl& control, Wqe& wqe);
  std::size_t inline_list(hw::WqeFastRegister& fast, hw::WqeControl& control, Wqe& wqe);
  [[nodiscard]] hw::WqeRemote remote();
  [[nodiscard]] hw::WqeAddress address(const FuzzProcess::Qp& qp);
  /// Random bytes may stand for anything. On a queue pair that may name DMA addresses they could name any.
  [[nodiscard]] bool scribbles(const FuzzProcess::Qp& qp, double probability) {
    return qp.kind != FuzzProcess::Kind::kFast && lies(probability);
  }
  /// The taint (FuzzProcess): what the request itself carries to the peer gets no secret bytes.
  static void make_plain(const FuzzProcess::Qp& qp, std::span<std::uint8_t> wqe);
  Wqe receive_wqe(const FuzzProcess::Qp& qp, std::uint16_t index);
  std::size_t segments(std::span<std::uint8_t> to, std::size_t count, std::uint32_t& total, bool datagrams = false);
  void ring_send(FuzzProcess::Qp& qp, const Wqe& wqe, bool truthful);
  void push_window(std::span<const std::uint8_t> wqe, bool disorderly);
  void doorbell();
  void note(std::string_view what, std::span<const std::uint8_t> bytes);

  model::Random random_;
  FuzzProcess& here_;
  FuzzProcess& there_;
  const WqeVerdict verdict_;
  std::vector<std::uint32_t> others_;
  std::deque<std::string> history_;
  std::uint8_t fast_tag_ = 0;
  bool lying_ = false;
  bool pushed_part_ = false;                ///< Not all of it
  FuzzProcess::Qp* last_pushed_ = nullptr;  ///< Whose request is in the WQE window, as far as it is known
};

}  // namespace rnic::testbench
