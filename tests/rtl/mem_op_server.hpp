#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

namespace rnic::test {

/// The translation block as one client of its memory operations sees it (mem_op_* ports of `Dut`): takes an operation,
/// and answers it with what `judge` says, some cycles later.
template <typename Dut>
class MemOpServer : public Agent {
 public:
  MemOpServer(Dut& dut, std::mt19937_64& rng) : dut_(dut), rng_(rng) {
    dut.mem_op_ready_i = dut.mem_op_rsp_valid_i = 0;
  }
  void drive() override {
    taking_ = !under_way_ && open && std::uniform_real_distribution<>(0, 1)(rng_) < rate;
    dut_.mem_op_ready_i = taking_;
    if (under_way_ && left_ > 0) --left_;
    answering_ = under_way_ && left_ == 0;
    dut_.mem_op_rsp_valid_i = answering_;
    put(dut_.mem_op_rsp_data_i, rtl::MemOpRsp{.status = answer_});
  }
  void sample() override {
    if (answering_ && dut_.mem_op_rsp_ready_o) under_way_ = false;
    if (taking_ && dut_.mem_op_valid_o) {
      taken.push_back(get<rtl::MemOp>(dut_.mem_op_data_o));
      answer_ = static_cast<std::uint8_t>(judge ? judge(taken.back()) : rtl::MemOpStatus::kOk);
      left_ = std::uniform_int_distribution<int>(1, max_delay)(rng_);
      under_way_ = true;
    }
  }
  bool idle() const { return !under_way_; }

  std::vector<rtl::MemOp> taken;
  std::function<rtl::MemOpStatus(const rtl::MemOp&)> judge;
  double rate = 0.3;
  int max_delay = 40;
  bool open = true;  ///< Takes operations

 private:
  Dut& dut_;
  std::mt19937_64& rng_;
  bool taking_ = false, answering_ = false, under_way_ = false;
  int left_ = 0;
  std::uint8_t answer_ = 0;
};

}  // namespace rnic::test
