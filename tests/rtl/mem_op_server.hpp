#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

namespace rnic::test {

/// The translation block as one client of its memory operations sees it (mem_op_* ports of `Dut`): takes an operation,
/// and answers it with what `judge` says, some cycles later. Of one with an inline page list that is not refused it
/// takes the lines before (mem_list_* ports, if the `Dut` has them).
template <typename Dut>
class MemOpServer : public Agent {
 public:
  MemOpServer(Dut& dut, std::mt19937_64& rng) : dut_(dut), rng_(rng) {
    dut.mem_op_ready_i = dut.mem_op_rsp_valid_i = 0;
    if constexpr (kHasList) dut.mem_list_ready_i = 0;
  }
  void drive() override {
    taking_ = !under_way_ && open && std::uniform_real_distribution<>(0, 1)(rng_) < rate;
    dut_.mem_op_ready_i = taking_;
    if constexpr (kHasList)
      dut_.mem_list_ready_i = lines_left_ > 0 && std::uniform_real_distribution<>(0, 1)(rng_) < rate;
    if (under_way_ && left_ > 0 && lines_left_ == 0) --left_;
    answering_ = under_way_ && left_ == 0;
    dut_.mem_op_rsp_valid_i = answering_;
    put(dut_.mem_op_rsp_data_i, rtl::MemOpRsp{.status = answer_});
  }
  void sample() override {
    if (answering_ && dut_.mem_op_rsp_ready_o) under_way_ = false;
    if constexpr (kHasList) {
      if (dut_.mem_list_ready_i && dut_.mem_list_valid_o) {
        lines.push_back(get<rtl::MemList>(dut_.mem_list_data_o));
        --lines_left_;
      }
    }
    if (taking_ && dut_.mem_op_valid_o) {
      taken.push_back(get<rtl::MemOp>(dut_.mem_op_data_o));
      answer_ = static_cast<std::uint8_t>(judge ? judge(taken.back()) : rtl::MemOpStatus::kOk);
      left_ = std::uniform_int_distribution<int>(1, max_delay)(rng_);
      under_way_ = true;
      const auto& op = taken.back();
      const bool listed = op.op == static_cast<std::uint8_t>(rtl::MemOpCode::kFastRegister) && op.inline_list;
      lines.clear();
      if (kHasList && listed && answer_ == 0) lines_left_ = (op.page_count + 13) / 8;
    }
  }
  bool idle() const { return !under_way_; }

  std::vector<rtl::MemOp> taken;
  std::vector<rtl::MemList> lines;  ///< Of the inline list of the last one
  std::function<rtl::MemOpStatus(const rtl::MemOp&)> judge;
  double rate = 0.3;
  int max_delay = 40;
  bool open = true;  ///< Takes operations

 private:
  static constexpr bool kHasList = requires(Dut & dut) { dut.mem_list_ready_i; };

  Dut& dut_;
  std::mt19937_64& rng_;
  bool taking_ = false, answering_ = false, under_way_ = false;
  int left_ = 0;
  std::uint32_t lines_left_ = 0;
  std::uint8_t answer_ = 0;
};

}  // namespace rnic::test
