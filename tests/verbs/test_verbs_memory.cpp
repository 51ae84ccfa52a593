#include <cstring>

#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;
using test::VerbsFixture;

TEST_CASE_METHOD(VerbsFixture, "a protection domain in use stays") {
  ibv_mr* const mr = make_mr();
  REQUIRE(mr != nullptr);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  ibv_td_init_attr of_thread{};
  ibv_td* const td = ibv_alloc_td(context, &of_thread);
  ibv_parent_domain_init_attr attributes{};
  attributes.pd = pd;
  attributes.td = td;
  ibv_pd* const parent = ibv_alloc_parent_domain(context, &attributes);
  REQUIRE(parent != nullptr);
  REQUIRE(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  // What is made in the parent domain belongs to the domain behind it.
  ibv_mr* const inside = ibv_reg_mr(parent, buffer.data(), 100, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(inside != nullptr);
  CHECK(ibv_dealloc_pd(parent) == EBUSY);
  CHECK(ibv_dereg_mr(inside) == 0);
  CHECK(ibv_dealloc_pd(parent) == 0);
  CHECK(ibv_dealloc_td(td) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a region has a key, and its rights are judged") {
  ibv_mr* const mr = make_mr(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_RELAXED_ORDERING);
  REQUIRE(mr != nullptr);
  CHECK(mr->lkey == mr->rkey);
  CHECK(mr->length == buffer.size());
  const auto& region = device.regions.at(mr->lkey);
  CHECK(region.va == reinterpret_cast<std::uintptr_t>(buffer.data()));
  CHECK(region.local_write == 1);
  CHECK(region.remote_read == 1);
  CHECK(region.remote_write == 0);
  CHECK(ibv_dereg_mr(mr) == 0);

  const auto refused = [&](unsigned access) {
    errno = 0;
    CHECK(make_mr(access) == nullptr);
    return errno;
  };
  // Who lets a peer write must let the device write (ibv_reg_mr).
  CHECK(refused(IBV_ACCESS_REMOTE_WRITE) == EINVAL);
  CHECK(refused(IBV_ACCESS_REMOTE_ATOMIC) == EINVAL);
  CHECK(refused(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND) == EOPNOTSUPP);
  CHECK(refused(1U << 12) == EINVAL);
  device.unmapped = buffer.data();
  CHECK(refused(IBV_ACCESS_LOCAL_WRITE) == EFAULT);
  device.unmapped = nullptr;
  CHECK(ibv_reg_mr(pd, buffer.data(), 0, 0) == nullptr);
  CHECK(errno == EINVAL);
}

TEST_CASE_METHOD(VerbsFixture, "a region has addresses of its own, and others later") {
  ibv_mr* const mr = ibv_reg_mr_iova(pd, buffer.data() + 16, 100, 0x7000'0010, IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(mr != nullptr);
  CHECK(device.regions.at(mr->lkey).va == 0x7000'0010);
  CHECK(ibv_reg_mr_iova(pd, buffer.data() + 16, 100, 0x7000'0000, 0) == nullptr);  // another place in its page
  CHECK(errno == EINVAL);

  const auto old = mr->lkey;
  REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0,
                       IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE) == 0);
  CHECK(mr->lkey != old);
  CHECK(device.regions.at(mr->lkey).remote_write == 1);
  CHECK(device.regions.at(mr->lkey).va == 0x7000'0010);
  REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, buffer.data(), 200, 0) == 0);
  CHECK(mr->addr == buffer.data());
  CHECK(mr->length == 200);
  CHECK(device.regions.at(mr->lkey).remote_write == 1);
  ibv_pd* const other = ibv_alloc_pd(context);
  REQUIRE(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, other, nullptr, 0, 0) == 0);
  CHECK(mr->pd == other);
  CHECK(ibv_dealloc_pd(other) == EBUSY);

  // Refused: as it was.
  const auto key = mr->lkey;
  CHECK(ibv_rereg_mr(mr, 0, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_PD, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, IBV_ACCESS_REMOTE_WRITE) ==
        IBV_REREG_MR_ERR_INPUT);
  CHECK(errno == EINVAL);
  CHECK(ibv_rereg_mr(mr, 8, nullptr, nullptr, 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_ACCESS, nullptr, nullptr, 0, 1 << 12) == IBV_REREG_MR_ERR_INPUT);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 100, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(ibv_rereg_mr(mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, buffer.data(), 0, 0) == IBV_REREG_MR_ERR_INPUT);
  CHECK(mr->lkey == key);
  CHECK(device.regions.contains(key));
  CHECK(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_dealloc_pd(other) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a window of type 1 is bound by a call, one of type 2 by a request") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_connected_qp(cq);
  ibv_mr* const mr = make_mr(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  ibv_mw* const first = ibv_alloc_mw(pd, IBV_MW_TYPE_1);
  REQUIRE(first != nullptr);
  CHECK(ibv_alloc_mw(pd, static_cast<ibv_mw_type>(3)) == nullptr);
  CHECK(errno == EINVAL);
  const auto address = reinterpret_cast<std::uintptr_t>(buffer.data());
  ibv_mw_bind bind{};
  bind.wr_id = 7;
  bind.send_flags = IBV_SEND_SIGNALED;
  bind.bind_info = {.mr = mr, .addr = address, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_WRITE};
  const auto before = first->rkey;
  REQUIRE(ibv_bind_mw(qp, first, &bind) == 0);
  CHECK(first->rkey != before);
  CHECK(first->rkey >> 8 == before >> 8);
  const auto head = send_head(qp, 0);
  CHECK(head.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kBindWindow1));
  CHECK(head.immediate == first->rkey);
  bind.bind_info.mw_access_flags = IBV_ACCESS_ZERO_BASED;
  CHECK(ibv_bind_mw(qp, first, &bind) == EINVAL);
  bind.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_WRITE;
  // Without a region there is nothing to open; a region of another protection domain is none.
  bind.bind_info.mr = nullptr;
  CHECK(ibv_bind_mw(qp, first, &bind) == EINVAL);
  ibv_pd* const other = ibv_alloc_pd(context);
  ibv_mr* const of_other = ibv_reg_mr(other, buffer.data(), buffer.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND);
  REQUIRE(of_other != nullptr);
  bind.bind_info.mr = of_other;
  CHECK(ibv_bind_mw(qp, first, &bind) == EPERM);  // verbs.h says so itself
  CHECK(context->ops.bind_mw(qp, first, &bind) == EINVAL);
  CHECK(device.pairs.at(qp->qp_num).sq_producer == 1);
  CHECK(ibv_dereg_mr(of_other) == 0);
  CHECK(ibv_dealloc_pd(other) == 0);

  ibv_mw* const second = ibv_alloc_mw(pd, IBV_MW_TYPE_2);
  ibv_send_wr request{};
  ibv_send_wr* bad = nullptr;
  request.opcode = IBV_WR_BIND_MW;
  request.send_flags = IBV_SEND_SIGNALED;
  request.bind_mw.mw = second;
  request.bind_mw.rkey = ibv_inc_rkey(second->rkey);
  request.bind_mw.bind_info = {.mr = mr, .addr = address, .length = 64, .mw_access_flags = IBV_ACCESS_REMOTE_READ};
  REQUIRE(ibv_post_send(qp, &request, &bad) == 0);
  const auto posted = send_head(qp, 1);
  CHECK(posted.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kBindWindow2));
  CHECK(posted.immediate == request.bind_mw.rkey);
  // Of another index, of type 1, or without a region.
  request.bind_mw.rkey += 256;
  CHECK(ibv_post_send(qp, &request, &bad) == EINVAL);
  CHECK(bad == &request);
  request.bind_mw.rkey -= 256;
  request.bind_mw.mw = first;
  CHECK(ibv_post_send(qp, &request, &bad) == EINVAL);
  request.bind_mw.rkey = ibv_inc_rkey(first->rkey);
  CHECK(ibv_post_send(qp, &request, &bad) == EINVAL);
  request.bind_mw.rkey = ibv_inc_rkey(second->rkey);
  request.bind_mw.mw = second;
  request.bind_mw.bind_info.mr = nullptr;
  CHECK(ibv_post_send(qp, &request, &bad) == EINVAL);
  request.bind_mw.bind_info.addr = request.bind_mw.bind_info.length = 0;
  CHECK(ibv_post_send(qp, &request, &bad) == EINVAL);

  device.finish_send(qp->qp_num);
  device.finish_send(qp->qp_num, hw::CqeStatus::kLocProtErr);
  const auto done = poll(cq);
  REQUIRE(done.size() == 2);
  CHECK(done[0].opcode == IBV_WC_BIND_MW);
  CHECK(done[0].wr_id == 7);
  CHECK(done[1].status == IBV_WC_MW_BIND_ERR);
  CHECK(ibv_dealloc_mw(first) == 0);
  CHECK(ibv_dealloc_mw(second) == 0);
  CHECK(ibv_dereg_mr(mr) == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}
