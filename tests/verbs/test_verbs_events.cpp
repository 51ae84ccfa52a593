#include <fcntl.h>
#include <poll.h>

#include <thread>

#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;
using test::VerbsFixture;

namespace {

struct EventFixture : VerbsFixture {
  EventFixture() { REQUIRE(fcntl(context->async_fd, F_SETFL, O_NONBLOCK) == 0); }

  void happen(hw::EqeType type, std::uint32_t number) {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = number});
    kernel->dispatch_events();
  }
  [[nodiscard]] bool waits() const {
    pollfd what{.fd = context->async_fd, .events = POLLIN, .revents = 0};
    return ::poll(&what, 1, 0) == 1;
  }
  ibv_async_event next() {
    ibv_async_event event{};
    REQUIRE(ibv_get_async_event(context, &event) == 0);
    return event;
  }
};

}  // namespace

TEST_CASE_METHOD(EventFixture, "a datagram queue pair is in a multicast group until it leaves it") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq, IBV_QPT_UD);
  ibv_qp* const other = make_qp(cq);
  ibv_gid group{};
  group.raw[0] = 0xFF;
  group.raw[1] = 0x0E;
  group.raw[15] = 7;
  CHECK(ibv_attach_mcast(qp, &group, 0) == 0);
  CHECK(ibv_attach_mcast(qp, &group, 0) == 0);
  CHECK(ibv_attach_mcast(other, &group, 0) == EINVAL);  // not UD
  CHECK(ibv_destroy_qp(qp) == EBUSY);
  CHECK(ibv_detach_mcast(qp, &group, 0) == 0);
  CHECK(ibv_detach_mcast(qp, &group, 0) == EINVAL);
  group.raw[0] = 0xFE;
  CHECK(ibv_attach_mcast(qp, &group, 0) == EINVAL);  // no group
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_qp(other) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(EventFixture, "an event of an object comes to the program once, and the object waits for its end") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  ibv_async_event none{};
  CHECK_FALSE(waits());
  CHECK(ibv_get_async_event(context, &none) == -1);
  CHECK(errno == EAGAIN);
  happen(hw::EqeType::kQpAccessError, qp->qp_num);
  happen(hw::EqeType::kCommEstablished, qp->qp_num);
  CHECK(waits());
  auto event = next();
  CHECK(event.event_type == IBV_EVENT_QP_ACCESS_ERR);
  CHECK(event.element.qp == qp);
  // The other one is no longer the kernel driver's, and the descriptor says that it is there all the same.
  CHECK(waits());
  auto second = next();
  CHECK(second.event_type == IBV_EVENT_COMM_EST);
  CHECK_FALSE(waits());
  ibv_ack_async_event(&second);

  // Of two the library has taken both from the kernel driver when the program has one: the other goes with the queue
  // pair.
  happen(hw::EqeType::kQpRequestError, qp->qp_num);
  happen(hw::EqeType::kSqDrained, qp->qp_num);
  auto third = next();
  CHECK(third.event_type == IBV_EVENT_QP_REQ_ERR);
  CHECK(waits());
  ibv_ack_async_event(&third);
  std::atomic<bool> gone = false;
  int refused = -1;
  std::thread destroyer([&] {
    refused = ibv_destroy_qp(qp);
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  CHECK_FALSE(gone);
  ibv_ack_async_event(&event);
  destroyer.join();
  CHECK(refused == 0);
  CHECK_FALSE(waits());
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(EventFixture, "events of queues, of the port and of the device have their types") {
  ibv_cq* const cq = make_cq();
  ibv_srq_init_attr attributes{};
  attributes.attr = {.max_wr = 10, .max_sge = 2, .srq_limit = 0};
  ibv_srq* const srq = ibv_create_srq(pd, &attributes);
  REQUIRE(srq != nullptr);
  std::uint32_t srqn = 0;
  REQUIRE(ibv_get_srq_num(srq, &srqn) == 0);
  happen(hw::EqeType::kCqError, device.completion_queues.begin()->first);
  auto event = next();
  CHECK(event.event_type == IBV_EVENT_CQ_ERR);
  CHECK(event.element.cq == cq);
  ibv_ack_async_event(&event);
  happen(hw::EqeType::kSrqLimit, srqn);
  event = next();
  CHECK(event.event_type == IBV_EVENT_SRQ_LIMIT_REACHED);
  CHECK(event.element.srq == srq);
  ibv_ack_async_event(&event);
  happen(hw::EqeType::kPortError, 1);
  event = next();
  CHECK(event.event_type == IBV_EVENT_PORT_ERR);
  CHECK(event.element.port_num == 1);
  ibv_ack_async_event(&event);
  CHECK(ibv_destroy_srq(srq) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);

  ibv_cq* const left = make_cq();
  device.take_away();
  event = next();
  CHECK(event.event_type == IBV_EVENT_DEVICE_FATAL);
  ibv_ack_async_event(&event);
  CHECK(ibv_get_async_event(context, &event) == -1);
  CHECK(errno == EIO);
  // Nothing new is made; what is there goes (decisions 58).
  CHECK(make_cq() == nullptr);
  CHECK(errno == EIO);
  CHECK(ibv_destroy_cq(left) == 0);
}

TEST_CASE_METHOD(EventFixture, "a shared receive queue takes requests, other depths and a limit") {
  ibv_srq_init_attr attributes{};
  attributes.srq_context = this;
  attributes.attr = {.max_wr = 4, .max_sge = 2, .srq_limit = 0};
  ibv_srq* const srq = ibv_create_srq(pd, &attributes);
  REQUIRE(srq != nullptr);
  CHECK(srq->srq_context == this);
  CHECK(attributes.attr.max_sge >= 2);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  std::array<ibv_recv_wr, 5> requests{};
  for (std::size_t i = 0; i + 1 < requests.size(); ++i) requests[i].next = &requests[i + 1];
  ibv_recv_wr* bad = nullptr;
  CHECK(ibv_post_srq_recv(srq, requests.data(), &bad) == ENOMEM);
  CHECK(bad == &requests[4]);
  ibv_srq_attr change{.max_wr = 100, .max_sge = 0, .srq_limit = 3};
  REQUIRE(ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT) == 0);
  ibv_srq_attr is{};
  REQUIRE(ibv_query_srq(srq, &is) == 0);
  CHECK(is.max_wr >= 100);
  change = {.max_wr = 0, .max_sge = 0, .srq_limit = 101};
  CHECK(ibv_modify_srq(srq, &change, IBV_SRQ_LIMIT) == EINVAL);
  change.max_wr = 2;  // four wait
  CHECK(ibv_modify_srq(srq, &change, IBV_SRQ_MAX_WR) == EINVAL);
  CHECK(ibv_modify_srq(srq, &change, 4) == EINVAL);
  requests[0].num_sge = 100;
  requests[0].next = nullptr;
  CHECK(ibv_post_srq_recv(srq, requests.data(), &bad) == EINVAL);

  ibv_cq* const cq = make_cq();
  auto of_qp = qp_attributes(cq);
  of_qp.srq = srq;
  ibv_qp* const qp = ibv_create_qp(pd, &of_qp);
  REQUIRE(qp != nullptr);
  CHECK(of_qp.cap.max_recv_wr == 0);
  CHECK(ibv_destroy_srq(srq) == EBUSY);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_srq(srq) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
  attributes.attr = {.max_wr = 0, .max_sge = 1, .srq_limit = 0};
  CHECK(ibv_create_srq(pd, &attributes) == nullptr);
  CHECK(errno == EINVAL);
}
