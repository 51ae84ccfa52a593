#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>

#include <thread>

#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;
using test::VerbsFixture;

namespace {

bool readable(int descriptor) {
  pollfd what{.fd = descriptor, .events = POLLIN, .revents = 0};
  return ::poll(&what, 1, 0) == 1;
}

void post_receive(ibv_qp* qp, std::uint64_t id) {
  ibv_recv_wr request{};
  request.wr_id = id;
  ibv_recv_wr* bad = nullptr;
  REQUIRE(ibv_post_recv(qp, &request, &bad) == 0);
}

}  // namespace

TEST_CASE_METHOD(VerbsFixture, "a completion queue has at least what was asked for") {
  ibv_cq* const cq = make_cq(10);
  REQUIRE(cq != nullptr);
  CHECK(cq->cqe >= 10);
  CHECK(cq->cq_context == this);
  CHECK(ibv_resize_cq(cq, 1000) == 0);
  CHECK(cq->cqe >= 1000);
  CHECK(ibv_resize_cq(cq, 0) == EINVAL);
  for (const int entries : {0, -1, 1 << 30}) {
    errno = 0;
    CHECK(make_cq(entries) == nullptr);
    CHECK(errno == EINVAL);
  }
  CHECK(ibv_create_cq(context, 10, nullptr, nullptr, 1) == nullptr);
  CHECK(errno == EINVAL);
  ibv_modify_cq_attr moderation{.attr_mask = IBV_CQ_ATTR_MODERATE, .moderate = {.cq_count = 5, .cq_period = 9}};
  CHECK(ibv_modify_cq(cq, &moderation) == 0);
  CHECK(device.completion_queues.begin()->second.moderation.count == 5);
  moderation.attr_mask = 2;
  CHECK(ibv_modify_cq(cq, &moderation) == EINVAL);
  ibv_qp* const qp = make_qp(cq);
  CHECK(ibv_destroy_cq(cq) == EBUSY);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a completion says what was done") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_connected_qp(cq);
  post_receive(qp, 41);
  post_receive(qp, 42);
  post_receive(qp, 43);
  const std::uint32_t cqn = device.pairs.at(qp->qp_num).create.receive_cqn;
  hw::Cqe cqe;
  cqe.opcode = static_cast<std::uint8_t>(hw::CqeOpcode::kReceive);
  cqe.qpn = qp->qp_num;
  cqe.is_receive = 1;
  cqe.byte_count = 100;
  cqe.with_imm = 1;
  cqe.immediate = 0x01020304;
  device.write_cqe(cqn, cqe);
  cqe.wqe_index = 1;
  cqe.with_imm = 0;
  cqe.with_invalidate = 1;
  device.write_cqe(cqn, cqe);
  cqe.wqe_index = 2;
  cqe.opcode = static_cast<std::uint8_t>(hw::CqeOpcode::kReceiveWrite);
  cqe.with_imm = 1;
  cqe.with_invalidate = 0;
  device.write_cqe(cqn, cqe);
  ibv_wc untouched{};
  CHECK(ibv_poll_cq(cq, 0, &untouched) == 0);
  CHECK(ibv_poll_cq(cq, -1, &untouched) == 0);
  CHECK(untouched.wr_id == 0);
  const auto done = poll(cq);
  REQUIRE(done.size() == 3);
  CHECK(done[0].wr_id == 41);
  CHECK(done[0].status == IBV_WC_SUCCESS);
  CHECK(done[0].opcode == IBV_WC_RECV);
  CHECK(done[0].byte_len == 100);
  CHECK(done[0].wc_flags == IBV_WC_WITH_IMM);
  CHECK(ntohl(done[0].imm_data) == 0x01020304);
  CHECK(done[0].qp_num == qp->qp_num);
  CHECK(done[1].wc_flags == IBV_WC_WITH_INV);
  CHECK(done[1].invalidated_rkey == 0x01020304);
  CHECK(done[2].opcode == IBV_WC_RECV_RDMA_WITH_IMM);
  CHECK(poll(cq).empty());
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "an extended queue gives completions one by one, with their times") {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = 16;
  attributes.wc_flags = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP;
  ibv_cq_ex* const cq = ibv_create_cq_ex(context, &attributes);
  REQUIRE(cq != nullptr);
  ibv_qp* const qp = make_connected_qp(ibv_cq_ex_to_cq(cq), IBV_QPT_UD);
  ibv_poll_cq_attr how{};
  CHECK(ibv_start_poll(cq, &how) == ENOENT);
  post_receive(qp, 51);
  post_receive(qp, 52);
  hw::Cqe cqe;
  cqe.opcode = static_cast<std::uint8_t>(hw::CqeOpcode::kReceive);
  cqe.qpn = qp->qp_num;
  cqe.is_receive = 1;
  cqe.byte_count = 140;
  cqe.grh = 1;
  cqe.source_qpn = 0x77;
  cqe.timestamp = 12345;
  cqe.vlan = 1;
  cqe.vlan_tci = 5 << 13 | 1 << 12 | 0x123;  // priority, DEI, VID
  const std::uint32_t cqn = device.pairs.at(qp->qp_num).create.receive_cqn;
  device.write_cqe(cqn, cqe);
  cqe.wqe_index = 1;
  cqe.status = static_cast<std::uint8_t>(hw::CqeStatus::kLocLenErr);
  cqe.syndrome = 9;
  device.write_cqe(cqn, cqe);
  REQUIRE(ibv_start_poll(cq, &how) == 0);
  CHECK(cq->wr_id == 51);
  CHECK(cq->status == IBV_WC_SUCCESS);
  CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RECV);
  CHECK(ibv_wc_read_byte_len(cq) == 140);
  CHECK(ibv_wc_read_src_qp(cq) == 0x77);
  CHECK(ibv_wc_read_qp_num(cq) == qp->qp_num);
  CHECK(ibv_wc_read_wc_flags(cq) == IBV_WC_GRH);
  CHECK(ibv_wc_read_completion_ts(cq) == 12345);
  CHECK(ibv_wc_read_completion_wallclock_ns(cq) == 12345 * 1000 / kernel->limits().clock_mhz);
  CHECK(ibv_wc_read_sl(cq) == 5);
  CHECK(ibv_wc_read_cvlan(cq) == 0x123);
  REQUIRE(ibv_next_poll(cq) == 0);
  CHECK(cq->wr_id == 52);
  CHECK(cq->status == IBV_WC_LOC_LEN_ERR);
  CHECK(ibv_wc_read_vendor_err(cq) == 9);
  CHECK(ibv_next_poll(cq) == ENOENT);
  ibv_end_poll(cq);
  how.comp_mask = 1;
  CHECK(ibv_start_poll(cq, &how) == EINVAL);

  attributes.wc_flags = IBV_WC_EX_WITH_TM_INFO;
  CHECK(ibv_create_cq_ex(context, &attributes) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  attributes.wc_flags = 0;
  attributes.comp_mask = 16;
  CHECK(ibv_create_cq_ex(context, &attributes) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a queue of one thread takes no lock between start and end") {
  ibv_cq_init_attr_ex attributes{};
  attributes.cqe = 16;
  attributes.comp_mask = IBV_CQ_INIT_ATTR_MASK_FLAGS;
  attributes.flags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  ibv_cq_ex* const cq = ibv_create_cq_ex(context, &attributes);
  REQUIRE(cq != nullptr);
  ibv_qp* const qp = make_connected_qp(ibv_cq_ex_to_cq(cq));
  post_receive(qp, 1);
  post_receive(qp, 2);
  device.finish_receive(qp->qp_num, 1);
  device.finish_receive(qp->qp_num, 1);
  ibv_poll_cq_attr how{};
  REQUIRE(ibv_start_poll(cq, &how) == 0);
  CHECK(cq->wr_id == 1);
  REQUIRE(ibv_start_poll(cq, &how) == 0);  // would wait for ever
  CHECK(cq->wr_id == 2);
  ibv_end_poll(cq);
  attributes.flags = 1U << 9;
  CHECK(ibv_create_cq_ex(context, &attributes) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(ibv_cq_ex_to_cq(cq)) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "an event of a queue comes through its channel, and is acknowledged before it goes") {
  ibv_comp_channel* const channel = ibv_create_comp_channel(context);
  REQUIRE(channel != nullptr);
  ibv_cq* const cq = make_cq(16, channel);
  ibv_cq* const silent = make_cq(16);
  CHECK(ibv_destroy_comp_channel(channel) == EBUSY);
  const std::size_t bells = device.doorbells.size();
  CHECK(ibv_req_notify_cq(silent, 0) == 0);
  CHECK(device.doorbells.size() == bells);  // its events would go nowhere
  CHECK(ibv_req_notify_cq(cq, 0) == 0);
  const std::uint32_t cqn = hw::CqDoorbell::from_word(device.doorbells.back().value).cqn;
  CHECK(hw::CqDoorbell::from_word(device.doorbells.back().value).arm == static_cast<std::uint8_t>(hw::CqArm::kAny));
  CHECK(ibv_req_notify_cq(cq, 1) == 0);
  CHECK(hw::CqDoorbell::from_word(device.doorbells.back().value).arm ==
        static_cast<std::uint8_t>(hw::CqArm::kSolicited));

  ibv_cq* of = nullptr;
  void* its_context = nullptr;
  REQUIRE(fcntl(channel->fd, F_SETFL, fcntl(channel->fd, F_GETFL) | O_NONBLOCK) == 0);
  CHECK(ibv_get_cq_event(channel, &of, &its_context) == -1);
  CHECK(errno == EAGAIN);
  CHECK_FALSE(readable(channel->fd));
  device.write_eqe(device.completion_queues.at(cqn).eqn,
                   {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion), .number = cqn});
  kernel->dispatch_events();
  CHECK(readable(channel->fd));
  REQUIRE(ibv_get_cq_event(channel, &of, &its_context) == 0);
  CHECK(of == cq);
  CHECK(its_context == this);
  CHECK_FALSE(readable(channel->fd));
  CHECK(ibv_get_cq_event(channel, &of, &its_context) == -1);

  std::atomic<bool> gone = false;
  int refused = -1;
  std::thread destroyer([&] {
    refused = ibv_destroy_cq(cq);
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(gone);
  ibv_ack_cq_events(cq, 1);
  destroyer.join();
  CHECK(refused == 0);
  CHECK(ibv_destroy_comp_channel(channel) == 0);
  CHECK(ibv_destroy_cq(silent) == 0);
}
