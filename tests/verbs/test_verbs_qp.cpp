#include <cstring>

#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;
using test::qp_step;
using test::VerbsFixture;

namespace {

int modify(ibv_qp* qp, const test::QpStep& step) {
  auto attributes = step.attributes;
  return ibv_modify_qp(qp, &attributes, step.mask);
}

}  // namespace

TEST_CASE_METHOD(VerbsFixture, "a queue pair is granted at least what was asked for, or refused") {
  ibv_cq* const cq = make_cq();
  auto attributes = qp_attributes(cq);
  attributes.qp_context = this;
  ibv_qp* const qp = ibv_create_qp(pd, &attributes);
  REQUIRE(qp != nullptr);
  CHECK(qp->qp_context == this);
  CHECK(qp->state == IBV_QPS_RESET);
  CHECK(attributes.cap.max_send_wr >= 8);
  CHECK(attributes.cap.max_inline_data >= 64);
  CHECK(ibv_qp_to_qp_ex(qp) == nullptr);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  const auto refused = [&](auto&& change) {
    auto wrong = qp_attributes(cq);
    change(wrong);
    errno = 0;
    CHECK(ibv_create_qp(pd, &wrong) == nullptr);
    return errno;
  };
  CHECK(refused([](auto& a) { a.cap.max_send_wr = 1U << 30; }) == EINVAL);
  CHECK(refused([](auto& a) { a.cap.max_recv_wr = ~0U; }) == EINVAL);
  CHECK(refused([](auto& a) { a.cap.max_send_sge = 1000; }) == EINVAL);
  CHECK(refused([](auto& a) { a.cap.max_inline_data = 1U << 20; }) == EINVAL);
  CHECK(refused([](auto& a) { a.recv_cq = nullptr; }) == EINVAL);
  CHECK(refused([](auto& a) { a.qp_type = IBV_QPT_RAW_PACKET; }) == EOPNOTSUPP);
  CHECK(refused([](auto& a) { a.qp_type = static_cast<ibv_qp_type>(77); }) == EINVAL);

  ibv_qp_init_attr_ex extended{};
  std::memcpy(static_cast<void*>(&extended), &attributes, sizeof attributes);
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
  extended.pd = pd;
  extended.qp_type = IBV_QPT_UD;
  extended.send_ops_flags = IBV_QP_EX_WITH_RDMA_WRITE;  // a datagram service has no RDMA
  CHECK(ibv_create_qp_ex(context, &extended) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  extended.comp_mask |= IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  CHECK(ibv_create_qp_ex(context, &extended) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a shared receive queue is for RC and UD (ibv_create_qp, Notes)") {
  ibv_cq* const cq = make_cq();
  ibv_srq_init_attr shared{};
  shared.attr = {.max_wr = 9, .max_sge = 2, .srq_limit = 0};
  ibv_srq* const srq = ibv_create_srq(pd, &shared);
  REQUIRE(srq != nullptr);
  CHECK(shared.attr.max_wr >= 9);
  ibv_srq_attr granted{};
  REQUIRE(ibv_query_srq(srq, &granted) == 0);
  CHECK(shared.attr.max_wr == granted.max_wr);
  CHECK(shared.attr.max_sge == granted.max_sge);
  CHECK(granted.srq_limit == 0);
  ibv_srq_attr limit{};
  limit.srq_limit = 3;
  REQUIRE(ibv_modify_srq(srq, &limit, IBV_SRQ_LIMIT) == 0);
  REQUIRE(ibv_query_srq(srq, &granted) == 0);
  CHECK(granted.srq_limit == 3);
  const auto create = [&](ibv_qp_type type, bool extended) {
    ibv_qp_init_attr_ex attributes{};
    const auto plain = qp_attributes(cq, type);
    attributes.send_cq = attributes.recv_cq = cq;
    attributes.cap = plain.cap;
    attributes.qp_type = type;
    attributes.srq = srq;
    attributes.pd = pd;
    attributes.comp_mask = IBV_QP_INIT_ATTR_PD;
    errno = 0;
    if (extended) return ibv_create_qp_ex(context, &attributes);
    auto old = plain;
    old.srq = srq;
    return ibv_create_qp(pd, &old);
  };
  for (const bool extended : {false, true}) {
    CAPTURE(extended);
    CHECK(create(IBV_QPT_UC, extended) == nullptr);
    CHECK(errno == EOPNOTSUPP);
    for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UD}) {
      ibv_qp* const qp = create(type, extended);
      REQUIRE(qp != nullptr);
      ibv_qp_attr is{};
      ibv_qp_init_attr initial{};
      REQUIRE(ibv_query_qp(qp, &is, IBV_QP_CAP, &initial) == 0);
      CHECK(is.cap.max_recv_wr == 0);
      CHECK(is.cap.max_recv_sge == 0);
      CHECK(ibv_destroy_qp(qp) == 0);
    }
  }
  // What was refused has left nothing behind.
  CHECK(ibv_destroy_srq(srq) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "each service takes its own attributes with each step (ibv_modify_qp)") {
  ibv_cq* const cq = make_cq();
  for (const ibv_qp_type type : {IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD}) {
    CAPTURE(type);
    ibv_qp* const qp = make_qp(cq, type);
    for (const ibv_qp_state next : {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS}) {
      CAPTURE(next);
      const auto step = qp_step(type, next);
      // Without any one of them, or with one that it does not take, nothing happens.
      for (int bit = 1; bit < 25; ++bit) {
        auto wrong = step;
        wrong.mask ^= 1 << bit;
        const bool missing = (step.mask & 1 << bit) != 0;
        const bool may = (1 << bit & (IBV_QP_CUR_STATE | IBV_QP_ACCESS_FLAGS | IBV_QP_PKEY_INDEX | IBV_QP_QKEY |
                                      IBV_QP_MIN_RNR_TIMER)) != 0;
        if (!missing && may) continue;
        CAPTURE(bit);
        CHECK(modify(qp, wrong) == EINVAL);
      }
      REQUIRE(modify(qp, step) == 0);
      CHECK(qp->state == next);
    }
    // Back to the beginning; from there not to RTS.
    CHECK(modify(qp, qp_step(type, IBV_QPS_RESET)) == 0);
    CHECK(modify(qp, qp_step(type, IBV_QPS_RTS)) == EINVAL);
    CHECK(ibv_destroy_qp(qp) == 0);
  }
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a value that is none is refused, one that is not named is not looked at") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  const auto refused = [&](ibv_qp_state next, auto&& change) {
    auto step = qp_step(IBV_QPT_RC, next);
    change(step);
    return modify(qp, step);
  };
  CHECK(refused(IBV_QPS_INIT, [](auto& s) { s.attributes.qp_state = static_cast<ibv_qp_state>(77); }) == EINVAL);
  CHECK(refused(IBV_QPS_INIT, [](auto& s) { s.attributes.port_num = 2; }) == EINVAL);
  CHECK(refused(IBV_QPS_INIT, [](auto& s) { s.attributes.qp_access_flags |= 1U << 12; }) == EINVAL);
  CHECK(refused(IBV_QPS_INIT, [](auto& s) {
          s.mask |= IBV_QP_CUR_STATE;
          s.attributes.cur_qp_state = static_cast<ibv_qp_state>(256);  // not 0 of 8 bits
        }) == EINVAL);
  auto step = qp_step(IBV_QPT_RC, IBV_QPS_INIT);
  step.attributes.timeout = step.attributes.retry_cnt = step.attributes.rnr_retry = 255;
  step.attributes.path_mtu = static_cast<ibv_mtu>(77);
  step.attributes.cur_qp_state = static_cast<ibv_qp_state>(77);
  step.attributes.dest_qp_num = ~0U;
  CHECK(modify(qp, step) == 0);
  const auto mtu = [](ibv_mtu to) { return [to](auto& s) { s.attributes.path_mtu = to; }; };
  CHECK(refused(IBV_QPS_RTR, mtu(static_cast<ibv_mtu>(6))) == EINVAL);
  CHECK(refused(IBV_QPS_RTR, mtu(static_cast<ibv_mtu>(0))) == EINVAL);
  CHECK(refused(IBV_QPS_RTR, mtu(static_cast<ibv_mtu>(256 + IBV_MTU_1024))) == EINVAL);
  // A hop limit of 0 would lead nowhere.
  auto path = qp_step(IBV_QPT_RC, IBV_QPS_RTR);
  path.attributes.ah_attr.grh.hop_limit = 0;
  CHECK(modify(qp, path) == 0);
  CHECK(device.pairs.at(qp->qp_num).last_modify.hop_limit == 64);
  CHECK(modify(qp, qp_step(IBV_QPT_RC, IBV_QPS_RTS)) == 0);
  // Without a state it is that which the queue pair has.
  test::QpStep rights;
  rights.attributes.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC;
  rights.mask = IBV_QP_ACCESS_FLAGS;
  CHECK(modify(qp, rights) == 0);
  CHECK(qp->state == IBV_QPS_RTS);
  CHECK(device.pairs.at(qp->qp_num).state == hw::QpState::kRts);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a queue pair has two completion queues, and a protection domain that waits for it") {
  ibv_cq* const cq = make_cq();
  ibv_pd* const own = ibv_alloc_pd(context);
  auto attributes = qp_attributes(cq);
  attributes.send_cq = nullptr;
  CHECK(ibv_create_qp(own, &attributes) == nullptr);
  CHECK(errno == EINVAL);
  CHECK(ibv_dealloc_pd(own) == 0);  // what was refused has left nothing behind
  ibv_pd* const other = ibv_alloc_pd(context);
  attributes.send_cq = cq;
  ibv_qp* const qp = ibv_create_qp(other, &attributes);
  REQUIRE(qp != nullptr);
  CHECK(ibv_dealloc_pd(other) == EBUSY);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_dealloc_pd(other) == 0);

  ibv_qp_init_attr_ex extended{};
  extended.send_cq = extended.recv_cq = cq;
  extended.cap = attributes.cap;
  extended.qp_type = IBV_QPT_RC;
  extended.pd = pd;
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
  extended.create_flags = 1U << 8;
  CHECK(ibv_create_qp_ex(context, &extended) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
  CHECK(ibv_create_qp_ex(context, &extended) == nullptr);
  CHECK(errno == EOPNOTSUPP);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a queue pair in SQD says whether its send queue drains") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_connected_qp(cq);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  REQUIRE(ibv_post_send(qp, &request, &bad) == 0);
  REQUIRE(modify(qp, qp_step(IBV_QPT_RC, IBV_QPS_SQD)) == 0);
  const auto draining = [&] {
    ibv_qp_attr attributes{};
    ibv_qp_init_attr initial{};
    REQUIRE(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial) == 0);
    CHECK(attributes.qp_state == IBV_QPS_SQD);
    return attributes.sq_draining != 0;
  };
  CHECK(draining());
  device.finish_send(qp->qp_num);
  CHECK_FALSE(draining());
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "the state of a queue pair is what the device says when it is asked") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_connected_qp(cq);
  device.pairs.at(qp->qp_num).state = hw::QpState::kErr;
  CHECK(qp->state == IBV_QPS_RTS);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  REQUIRE(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial) == 0);
  CHECK(attributes.qp_state == IBV_QPS_ERR);
  CHECK(qp->state == IBV_QPS_ERR);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a queue pair that begins anew has no completions, its neighbours keep theirs") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_connected_qp(cq);
  ibv_qp* const other = make_connected_qp(cq);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  for (ibv_qp* const of : {qp, other, qp}) {
    request.wr_id = of->qp_num;
    REQUIRE(ibv_post_send(of, &request, &bad) == 0);
  }
  device.finish_send(qp->qp_num);
  device.finish_send(other->qp_num);
  REQUIRE(modify(qp, qp_step(IBV_QPT_RC, IBV_QPS_RESET)) == 0);  // flushes the last one
  const auto done = poll(cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == other->qp_num);
  REQUIRE(connect(qp) == 0);
  request.wr_id = 5;
  REQUIRE(ibv_post_send(qp, &request, &bad) == 0);
  device.finish_send(qp->qp_num);
  const auto again = poll(cq);
  REQUIRE(again.size() == 1);
  CHECK(again[0].wr_id == 5);
  CHECK(again[0].status == IBV_WC_SUCCESS);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_qp(other) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture,
                 "a queue pair that is destroyed takes its completions along, its neighbours keep theirs") {
  ibv_cq* const cq = make_cq(8);
  ibv_cq* const receives = make_cq();
  auto attributes = qp_attributes(cq);
  attributes.recv_cq = receives;
  ibv_qp* const qp = ibv_create_qp(pd, &attributes);
  REQUIRE(qp != nullptr);
  REQUIRE(connect(qp) == 0);
  ibv_qp* const other = make_connected_qp(cq);
  ibv_send_wr request{};
  request.opcode = IBV_WR_SEND;
  request.send_flags = IBV_SEND_SIGNALED;
  ibv_send_wr* bad = nullptr;
  for (ibv_qp* const of : {qp, other, qp, other, qp}) {
    request.wr_id = of->qp_num;
    REQUIRE(ibv_post_send(of, &request, &bad) == 0);
    device.finish_send(of->qp_num);
  }
  REQUIRE(ibv_post_send(qp, &request, &bad) == 0);  // is flushed
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  for (int i = 0; i < 2; ++i) REQUIRE(ibv_post_recv(qp, &receive, &bad_receive) == 0);
  device.finish_receive(qp->qp_num, 1);
  ibv_wc first{};
  REQUIRE(ibv_poll_cq(cq, 1, &first) == 1);
  CHECK(first.wr_id == qp->qp_num);
  const auto number = other->qp_num;
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(poll(receives).empty());
  // The places of removed entries are free, for the device too.
  CHECK(device.completion_queues.at(device.pairs.at(number).create.send_cqn).consumed == 4);
  const auto done = poll(cq);
  REQUIRE(done.size() == 2);
  for (const auto& one : done) CHECK(one.wr_id == number);
  CHECK(ibv_destroy_qp(other) == 0);
  CHECK(ibv_destroy_cq(receives) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a path leads to a station that the machine knows, from an address of the port") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  REQUIRE(connect(qp, IBV_QPS_INIT) == 0);
  const auto right = qp_step(IBV_QPT_RC, IBV_QPS_RTR);
  const auto with = [&](auto&& change) {
    auto step = right;
    change(step.attributes.ah_attr);
    return modify(qp, step);
  };
  CHECK(with([](auto& ah) { ah.grh.dgid.raw[15] = 200; }) == EHOSTUNREACH);
  CHECK(with([](auto& ah) { ah.is_global = 0; }) == EINVAL);
  CHECK(with([](auto& ah) { ah.port_num = 2; }) == EINVAL);
  CHECK(with([](auto& ah) { ah.grh.sgid_index = 9; }) == EINVAL);
  CHECK(with([](auto& ah) { ah.grh.sgid_index = 0; }) == EINVAL);  // IPv6 to IPv4
  CHECK(with([](auto& ah) { ah.grh.flow_label = 1U << 20; }) == EINVAL);
  REQUIRE(modify(qp, right) == 0);
  const auto& made = device.pairs.at(qp->qp_num).last_modify;
  CHECK(made.dest_mac == test::kPeerMac);
  CHECK(made.hop_limit == 9);
  REQUIRE(modify(qp, qp_step(IBV_QPT_RC, IBV_QPS_RTS)) == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "address handles lead where datagrams can go, and answer who sent one") {
  ibv_ah_attr attributes{};
  attributes.port_num = 1;
  attributes.is_global = 1;
  attributes.grh.sgid_index = 1;
  std::memcpy(attributes.grh.dgid.raw, test::kPeerIpv4.data(), test::kPeerIpv4.size());
  ibv_ah* const ah = ibv_create_ah(pd, &attributes);
  REQUIRE(ah != nullptr);
  CHECK(ibv_dealloc_pd(pd) == EBUSY);
  CHECK(ibv_destroy_ah(ah) == 0);
  const auto refused = [&](auto&& change) {
    auto wrong = attributes;
    change(wrong);
    CHECK(ibv_create_ah(pd, &wrong) == nullptr);
    return errno;
  };
  CHECK(refused([](auto& a) { a.is_global = 0; }) == EINVAL);
  CHECK(refused([](auto& a) { a.port_num = 2; }) == EINVAL);
  CHECK(refused([](auto& a) { a.grh.sgid_index = 0; }) == EINVAL);
  CHECK(refused([](auto& a) { a.grh.dgid.raw[15] = 200; }) == EHOSTUNREACH);
  CHECK(refused([](auto& a) { a.grh.flow_label = 1U << 20; }) == EINVAL);

  // A datagram over IPv4 has its header behind 20 bytes (annex A17.4.5.1); the checksum is that of RFC 1071.
  std::array<std::uint8_t, 40> front{};
  const std::uint8_t header[20] = {0x45, 0x28, 0, 0x44, 0, 0, 0x40, 0, 64, 17, 0x25, 0x7F, 10, 0, 0, 2, 10, 0, 0, 1};
  std::memcpy(front.data() + 20, header, sizeof header);
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < 20; i += 2) sum += i == 10 ? 0 : std::uint32_t{header[i]} << 8 | header[i + 1];
  sum = (sum & 0xFFFF) + (sum >> 16);
  front[30] = static_cast<std::uint8_t>(~sum >> 8);
  front[31] = static_cast<std::uint8_t>(~sum);
  ibv_wc wc{};
  wc.wc_flags = IBV_WC_GRH;
  auto* const grh = reinterpret_cast<ibv_grh*>(front.data());
  ibv_ah_attr back{};
  REQUIRE(ibv_init_ah_from_wc(context, 1, &wc, grh, &back) == 0);
  CHECK(back.is_global == 1);
  CHECK(back.grh.sgid_index == 1);
  CHECK(back.grh.traffic_class == 0x28);
  CHECK(std::memcmp(back.grh.dgid.raw, test::kPeerIpv4.data(), 16) == 0);
  ibv_ah* const reply = ibv_create_ah_from_wc(pd, &wc, grh, 1);
  REQUIRE(reply != nullptr);
  CHECK(ibv_destroy_ah(reply) == 0);
  // To a group: the own address of its kind.
  const auto to_group = [](std::array<std::uint8_t, 40> of) {
    of[36] = 224;
    const unsigned more = (224 - 10) << 8;
    std::uint32_t checksum = (of[30] << 8 | of[31]) ^ 0xFFFFU;
    checksum += more;
    checksum = (checksum & 0xFFFF) + (checksum >> 16);
    of[30] = static_cast<std::uint8_t>(~checksum >> 8);
    of[31] = static_cast<std::uint8_t>(~checksum);
    return of;
  };
  auto group = to_group(front);
  REQUIRE(ibv_init_ah_from_wc(context, 1, &wc, reinterpret_cast<ibv_grh*>(group.data()), &back) == 0);
  CHECK(back.grh.sgid_index == 1);
  // Without its checksum it is no IPv4 header, and what stands there no address of ours.
  auto broken = front;
  broken[31] ^= 1;
  CHECK(ibv_init_ah_from_wc(context, 1, &wc, reinterpret_cast<ibv_grh*>(broken.data()), &back) == -1);
  // Over IPv6 all 40 bytes are the header: version, traffic class, flow label.
  front.fill(0);
  front[0] = 0x62;
  front[1] = 0x81;
  front[3] = 0x23;
  const auto from = kmd::link_local_gid(test::kPeerMac);
  const auto to = kmd::link_local_gid(0x0200'0000'0001);
  std::memcpy(front.data() + 8, from.data(), 16);
  std::memcpy(front.data() + 24, to.data(), 16);
  REQUIRE(ibv_init_ah_from_wc(context, 1, &wc, grh, &back) == 0);
  CHECK(back.grh.sgid_index == 0);
  CHECK(back.grh.flow_label == 0x10023);
  CHECK(back.grh.traffic_class == 0x28);
  CHECK(std::memcmp(back.grh.dgid.raw, from.data(), 16) == 0);
}

TEST_CASE_METHOD(VerbsFixture,
                 "a connection from an address of a VLAN has its tag, and the service level is its priority") {
  const auto index = static_cast<std::uint8_t>(kernel->port_tables().add_gid(test::kOwnIpv4, 5).take());
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_qp(cq);
  REQUIRE(connect(qp, IBV_QPS_INIT) == 0);
  auto step = test::qp_step(IBV_QPT_RC, IBV_QPS_RTR);
  step.attributes.ah_attr.grh.sgid_index = index;
  step.attributes.ah_attr.sl = 3;
  REQUIRE(ibv_modify_qp(qp, &step.attributes, step.mask) == 0);
  const auto& modify = device.pairs.at(qp->qp_num).last_modify;
  CHECK(modify.vlan == 1);
  CHECK(modify.vlan_id == 5);
  CHECK(modify.pcp == 3);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  REQUIRE(ibv_query_qp(qp, &attributes, IBV_QP_AV, &initial) == 0);
  CHECK(attributes.ah_attr.sl == 3);
  CHECK(attributes.ah_attr.grh.sgid_index == index);
  std::uint8_t mac[6];
  std::uint16_t vid = 0;
  REQUIRE(ibv_resolve_eth_l2_from_gid(context, &attributes.ah_attr, mac, &vid) == 0);
  CHECK(vid == 5);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}

TEST_CASE_METHOD(VerbsFixture, "a queue pair says how it is") {
  ibv_cq* const cq = make_cq();
  ibv_qp* const qp = make_connected_qp(cq);
  ibv_qp_attr attributes{};
  ibv_qp_init_attr initial{};
  REQUIRE(ibv_query_qp(qp, &attributes, IBV_QP_STATE, &initial) == 0);
  CHECK(attributes.dest_qp_num == 0x123);
  CHECK(attributes.timeout == 14);
  CHECK(attributes.ah_attr.grh.sgid_index == 1);
  CHECK(std::memcmp(attributes.ah_attr.grh.dgid.raw, test::kPeerIpv4.data(), 16) == 0);
  CHECK(attributes.qp_access_flags == (IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE));
  CHECK(attributes.cap.max_send_wr >= 8);
  CHECK(initial.send_cq == cq);
  CHECK(initial.qp_type == IBV_QPT_RC);
  CHECK(ibv_query_qp_data_in_order(qp, IBV_WR_RDMA_WRITE, 0) == 0);
  ibv_ece ece{};
  CHECK(ibv_query_ece(qp, &ece) == EOPNOTSUPP);
  CHECK(ibv_set_ece(qp, &ece) == EOPNOTSUPP);
  CHECK(ibv_destroy_qp(qp) == 0);
  CHECK(ibv_destroy_cq(cq) == 0);
}
