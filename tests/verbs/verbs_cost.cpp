// Calls of the verbs whose instructions scripts/driver_cost.py --verbs counts: a test case a path, RNIC_COST_CALLS
// calls of it, each from the same state.
#include <cstdlib>
#include <string>

#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;

namespace rnic::verbs {

/// A Write by the calls of ibv_wr_post(3), in one function, so that it can be counted. Returns what ibv_wr_complete
/// does.
__attribute__((noinline)) int batch_write(ibv_qp_ex* qp, const ibv_sge* segment) {
  ibv_wr_start(qp);
  qp->wr_id = 1;
  qp->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(qp, 9, 0x2000);
  ibv_wr_set_sge(qp, segment->lkey, segment->addr, segment->length);
  return ibv_wr_complete(qp);
}

}  // namespace rnic::verbs

namespace {

constexpr unsigned kCostBatch = 16;
/// More than go through the window (docs/driver.md).
constexpr unsigned kCostOutstanding = 16;

struct CostFixture : test::VerbsFixture {
  CostFixture() {
    const char* const asked = std::getenv("RNIC_COST_CALLS");
    calls = asked != nullptr ? std::strtoul(asked, nullptr, 10) : 1;
    cq = make_cq(200);
    auto attributes = qp_attributes(cq);
    attributes.cap.max_send_wr = attributes.cap.max_recv_wr = 64;
    qp = ibv_create_qp(pd, &attributes);
    REQUIRE(qp != nullptr);
    REQUIRE(connect(qp) == 0);
    segment = {.addr = reinterpret_cast<std::uintptr_t>(buffer.data()), .length = 64, .lkey = 7};
    request.sg_list = &segment;
    request.num_sge = 1;
    request.send_flags = IBV_SEND_SIGNALED;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.wr.rdma = {.remote_addr = 0x2000, .rkey = 9};
    receive.sg_list = &segment;
    receive.num_sge = 1;
  }

  void post() {
    ibv_send_wr* bad = nullptr;
    REQUIRE(ibv_post_send(qp, &request, &bad) == 0);
  }
  void post_receive() {
    ibv_recv_wr* bad = nullptr;
    REQUIRE(ibv_post_recv(qp, &receive, &bad) == 0);
  }
  void finish(unsigned count) {
    for (unsigned i = 0; i < count; ++i) device.finish_send(qp->qp_num);
  }
  void take(unsigned count) {
    std::array<ibv_wc, kCostBatch> completions;
    REQUIRE(ibv_poll_cq(cq, static_cast<int>(count), completions.data()) == static_cast<int>(count));
  }
  template <typename Round>
  void repeat(Round&& round) {
    for (unsigned long i = 0; i < calls; ++i) {
      device.doorbells.clear();
      device.window.clear();
      round();
    }
  }

  unsigned long calls{};
  ibv_cq* cq{};
  ibv_qp* qp{};
  ibv_sge segment{};
  ibv_send_wr request{};
  ibv_recv_wr receive{};
};

}  // namespace

TEST_CASE_METHOD(CostFixture, "write") {
  repeat([&] {
    post();
    REQUIRE(device.window.size() == 1);
    finish(1);
    take(1);
  });
}

TEST_CASE_METHOD(CostFixture, "write_doorbell") {
  for (unsigned i = 0; i < kCostOutstanding; ++i) post();
  repeat([&] {
    post();
    REQUIRE(device.doorbells.size() == 1);
    finish(1);
    take(1);
  });
}

TEST_CASE_METHOD(CostFixture, "send_inline") {
  request.opcode = IBV_WR_SEND;
  request.send_flags |= IBV_SEND_INLINE;
  segment.length = 32;
  repeat([&] {
    post();
    finish(1);
    take(1);
  });
}

TEST_CASE_METHOD(CostFixture, "batch_write") {
  ibv_qp_init_attr_ex attributes{};
  attributes.qp_type = IBV_QPT_RC;
  attributes.send_cq = attributes.recv_cq = cq;
  attributes.cap = {.max_send_wr = 64, .max_recv_wr = 64, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  attributes.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  attributes.pd = pd;
  attributes.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;
  ibv_qp* const batched = ibv_create_qp_ex(context, &attributes);
  REQUIRE(batched != nullptr);
  REQUIRE(connect(batched) == 0);
  ibv_qp_ex* const extended = ibv_qp_to_qp_ex(batched);
  repeat([&] {
    REQUIRE(verbs::batch_write(extended, &segment) == 0);
    REQUIRE(device.window.size() == 1);
    device.finish_send(batched->qp_num);
    take(1);
  });
}

TEST_CASE_METHOD(CostFixture, "receive") {
  repeat([&] {
    post_receive();
    device.finish_receive(qp->qp_num, 64);
    take(1);
  });
}

TEST_CASE_METHOD(CostFixture, "poll_batch") {
  repeat([&] {
    for (unsigned i = 0; i < kCostBatch; ++i) post();
    finish(kCostBatch);
    take(kCostBatch);
  });
}
