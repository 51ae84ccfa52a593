#include <arpa/inet.h>

#include <atomic>
#include <climits>
#include <cstring>
#include <thread>
#include <utility>

#include "tests/verbs/verbs_fixture.hpp"

using namespace rnic;
using test::VerbsFixture;

namespace {

struct PostFixture : VerbsFixture {
  PostFixture() {
    cq = make_cq();
    segment = {.addr = reinterpret_cast<std::uintptr_t>(buffer.data()), .length = 64, .lkey = 7};
  }
  ~PostFixture() { CHECK(ibv_destroy_cq(cq) == 0); }

  ibv_send_wr request(ibv_wr_opcode opcode, unsigned flags = IBV_SEND_SIGNALED) {
    ibv_send_wr of{};
    of.wr_id = 99;
    of.sg_list = &segment;
    of.num_sge = 1;
    of.opcode = opcode;
    of.send_flags = flags;
    of.wr.rdma = {.remote_addr = 0x2000, .rkey = 9};
    return of;
  }
  static int post(ibv_qp* qp, ibv_send_wr& first, ibv_send_wr** bad = nullptr) {
    ibv_send_wr* unused = nullptr;
    return ibv_post_send(qp, &first, bad != nullptr ? bad : &unused);
  }

  ibv_cq* cq{};
  ibv_sge segment{};
};

}  // namespace

TEST_CASE_METHOD(PostFixture, "each operation becomes that of the device") {
  ibv_qp* const qp = make_connected_qp(cq);
  const struct {
    ibv_wr_opcode opcode;
    hw::WqeOpcode is;
    ibv_wc_opcode completes_as;
  } all[] = {{IBV_WR_RDMA_WRITE, hw::WqeOpcode::kWrite, IBV_WC_RDMA_WRITE},
             {IBV_WR_RDMA_WRITE_WITH_IMM, hw::WqeOpcode::kWriteImmediate, IBV_WC_RDMA_WRITE},
             {IBV_WR_SEND, hw::WqeOpcode::kSend, IBV_WC_SEND},
             {IBV_WR_SEND_WITH_IMM, hw::WqeOpcode::kSendImmediate, IBV_WC_SEND},
             {IBV_WR_RDMA_READ, hw::WqeOpcode::kRead, IBV_WC_RDMA_READ},
             {IBV_WR_LOCAL_INV, hw::WqeOpcode::kLocalInvalidate, IBV_WC_LOCAL_INV},
             {IBV_WR_SEND_WITH_INV, hw::WqeOpcode::kSendInvalidate, IBV_WC_SEND}};
  std::uint16_t index = 0;
  for (const auto& [opcode, is, completes_as] : all) {
    CAPTURE(opcode);
    auto of = request(opcode, IBV_SEND_SIGNALED | IBV_SEND_FENCE);
    of.imm_data = htonl(0x01020304);
    if (opcode == IBV_WR_LOCAL_INV || opcode == IBV_WR_SEND_WITH_INV) of.invalidate_rkey = 0x01020304;
    REQUIRE(post(qp, of) == 0);
    const auto head = send_head(qp, index++);
    CHECK(head.opcode == static_cast<std::uint8_t>(is));
    CHECK(head.fence == 1);
    CHECK(head.silent == 0);
    CHECK(head.solicited == 0);
    const bool with_word = opcode != IBV_WR_RDMA_WRITE && opcode != IBV_WR_SEND && opcode != IBV_WR_RDMA_READ;
    if (with_word) CHECK(head.immediate == 0x01020304);
    device.finish_send(qp->qp_num);
    const auto done = poll(cq);
    REQUIRE(done.size() == 1);
    CHECK(done[0].wr_id == 99);
    CHECK(done[0].opcode == completes_as);
  }
  auto quiet = request(IBV_WR_SEND, IBV_SEND_SOLICITED);
  REQUIRE(post(qp, quiet) == 0);
  CHECK(send_head(qp, index).silent == 1);
  CHECK(send_head(qp, index).solicited == 1);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "atomics have their operands, inline data its bytes, datagrams their addresses") {
  ibv_qp* const qp = make_connected_qp(cq);
  segment.length = 8;
  auto swap = request(IBV_WR_ATOMIC_CMP_AND_SWP);
  swap.wr.atomic = {.remote_addr = 0x3000, .compare_add = 5, .swap = 6, .rkey = 9};
  REQUIRE(post(qp, swap) == 0);
  const auto wqe = device.send_wqe(qp->qp_num, 0);
  const auto atomic = hw::WqeAtomic::decode(std::span(wqe).subspan<32, hw::WqeAtomic::kBytes>());
  CHECK(atomic.swap_add == 6);
  CHECK(atomic.compare == 5);
  auto add = request(IBV_WR_ATOMIC_FETCH_AND_ADD);
  add.wr.atomic = {.remote_addr = 0x3000, .compare_add = 5, .swap = 6, .rkey = 9};
  REQUIRE(post(qp, add) == 0);
  const auto second = device.send_wqe(qp->qp_num, 1);
  CHECK(hw::WqeAtomic::decode(std::span(second).subspan<32, hw::WqeAtomic::kBytes>()).swap_add == 5);

  std::memset(buffer.data(), 0x5A, 16);
  segment.length = 16;
  auto small = request(IBV_WR_SEND, IBV_SEND_INLINE);
  REQUIRE(post(qp, small) == 0);
  const auto third = device.send_wqe(qp->qp_num, 2);
  CHECK(send_head(qp, 2).inline_data == 1);
  CHECK(third[16] == 0x5A);
  CHECK(third[31] == 0x5A);
  CHECK(ibv_destroy_qp(qp) == 0);

  ibv_qp* const datagrams = make_connected_qp(cq, IBV_QPT_UD);
  ibv_ah_attr attributes{};
  attributes.port_num = attributes.is_global = attributes.grh.sgid_index = 1;
  std::memcpy(attributes.grh.dgid.raw, test::kPeerIpv4.data(), test::kPeerIpv4.size());
  ibv_ah* const ah = ibv_create_ah(pd, &attributes);
  auto datagram = request(IBV_WR_SEND);
  datagram.wr.ud = {.ah = ah, .remote_qpn = 0x321, .remote_qkey = 0x1111};
  REQUIRE(post(datagrams, datagram) == 0);
  const auto fourth = device.send_wqe(datagrams->qp_num, 0);
  const auto address = hw::WqeAddress::decode(std::span(fourth).subspan<16, hw::WqeAddress::kBytes>());
  CHECK(address.dest_qpn == 0x321);
  CHECK(address.qkey == 0x1111);
  CHECK(address.dest_mac == test::kPeerMac);
  CHECK(address.second_source == 1);
  CHECK(address.vlan == 0);
  // The same address on the interface of a VLAN: its tag, with the low bits of the service level as priority.
  attributes.grh.sgid_index = static_cast<std::uint8_t>(kernel->port_tables().add_gid(test::kOwnIpv4, 5).take());
  attributes.sl = 0xB;
  ibv_ah* const of_vlan = ibv_create_ah(pd, &attributes);
  REQUIRE(of_vlan != nullptr);
  datagram.wr.ud.ah = of_vlan;
  REQUIRE(post(datagrams, datagram) == 0);
  const auto fifth = device.send_wqe(datagrams->qp_num, 1);
  const auto tagged = hw::WqeAddress::decode(std::span(fifth).subspan<16, hw::WqeAddress::kBytes>());
  CHECK(tagged.second_source == 1);
  CHECK(tagged.vlan == 1);
  CHECK(tagged.vlan_id == 5);
  CHECK(tagged.pcp == 3);
  CHECK(ibv_destroy_ah(of_vlan) == 0);
  // Another address of that VLAN is none of a queue pair for datagrams.
  const kmd::Gid other{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 5, 0, 1};
  attributes.grh.sgid_index = static_cast<std::uint8_t>(kernel->port_tables().add_gid(other, 5).take());
  CHECK(ibv_create_ah(pd, &attributes) == nullptr);
  CHECK(errno == EINVAL);
  datagram.wr.ud.ah = nullptr;
  CHECK(post(datagrams, datagram) == EINVAL);
  auto write = request(IBV_WR_RDMA_WRITE);
  CHECK(post(datagrams, write) == EINVAL);
  CHECK(ibv_destroy_ah(ah) == 0);
  CHECK(ibv_destroy_qp(datagrams) == 0);
}

TEST_CASE_METHOD(PostFixture, "a list ends at the first request that is refused, and bad_wr names it") {
  ibv_qp* const qp = make_connected_qp(cq);
  std::array<ibv_send_wr, 3> list;
  list.fill(request(IBV_WR_RDMA_WRITE));
  list[0].next = &list[1];
  list[1].next = &list[2];
  ibv_send_wr* bad = nullptr;
  REQUIRE(post(qp, list[0], &bad) == 0);
  CHECK(device.doorbells.size() == 1);  // one for all
  CHECK(device.pairs.at(qp->qp_num).sq_producer == 3);
  const auto refused_at_1 = [&](auto&& change, int error) {
    auto before = list[1];
    change(list[1]);
    const auto producer = device.pairs.at(qp->qp_num).sq_producer;
    CHECK(post(qp, list[0], &bad) == error);
    CHECK(bad == &list[1]);
    CHECK(device.pairs.at(qp->qp_num).sq_producer == producer + 1);  // the first has been rung
    list[1] = before;
    device.finish_silently(qp->qp_num, 0);
    while (device.pairs.at(qp->qp_num).sq_done != device.pairs.at(qp->qp_num).sq_producer)
      device.finish_send(qp->qp_num);
    poll(cq);
  };
  refused_at_1([](auto& of) { of.opcode = static_cast<ibv_wr_opcode>(60); }, EINVAL);
  refused_at_1([](auto& of) { of.opcode = IBV_WR_TSO; }, EINVAL);
  refused_at_1([](auto& of) { of.send_flags = 1U << 20; }, EINVAL);
  refused_at_1([](auto& of) { of.num_sge = -1; }, EINVAL);
  refused_at_1([](auto& of) { of.num_sge = 5; }, EINVAL);
  std::array<ibv_sge, 1> large{{{.addr = segment.addr, .length = 65, .lkey = 0}}};
  refused_at_1(
      [&](auto& of) {
        of.sg_list = large.data();
        of.send_flags = IBV_SEND_INLINE;
      },
      EINVAL);
  refused_at_1([&](auto& of) { of.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD; }, EINVAL);  // of 64 bytes
  refused_at_1([&](auto& of) { of.opcode = IBV_WR_RDMA_READ, of.send_flags = IBV_SEND_INLINE; }, EINVAL);

  // Full: ENOMEM (ibv_post_send).
  std::array<ibv_send_wr, 9> many;
  many.fill(request(IBV_WR_RDMA_WRITE));
  for (std::size_t i = 0; i + 1 < many.size(); ++i) many[i].next = &many[i + 1];
  CHECK(post(qp, many[0], &bad) == ENOMEM);
  CHECK(bad == &many[8]);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "a list of Receives ends at the first that is refused, and bad_wr names it") {
  ibv_qp* const qp = make_connected_qp(cq);
  std::array<ibv_recv_wr, 9> list{};
  for (std::size_t i = 0; i < list.size(); ++i)
    list[i] = {.wr_id = i, .next = i + 1 < list.size() ? &list[i + 1] : nullptr, .sg_list = &segment, .num_sge = 1};
  ibv_recv_wr* bad = nullptr;
  const auto posted = [&] { return device.pairs.at(qp->qp_num).rq_producer; };
  for (const int sges : {-1, 5}) {
    const auto before = posted();
    list[1].num_sge = sges;
    CHECK(ibv_post_recv(qp, list.data(), &bad) == EINVAL);
    CHECK(bad == &list[1]);
    CHECK(posted() == before + 1);  // the first has been rung
  }
  list[1].num_sge = 1;
  // Eight fit, two are there.
  bad = nullptr;
  CHECK(ibv_post_recv(qp, list.data(), &bad) == ENOMEM);
  CHECK(bad == &list[6]);
  CHECK(posted() == 8);
  CHECK(ibv_post_recv(qp, &list[8], &bad) == ENOMEM);
  CHECK(bad == &list[8]);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "requests about keys have no data, and datagram queue pairs have none of them") {
  ibv_qp* const qp = make_connected_qp(cq);
  ibv_qp* const datagrams = make_connected_qp(cq, IBV_QPT_UD);
  auto invalidate = request(IBV_WR_LOCAL_INV);
  CHECK(post(datagrams, invalidate) == EINVAL);
  invalidate.send_flags = IBV_SEND_INLINE;
  CHECK(post(qp, invalidate) == EINVAL);
  CHECK(device.pairs.at(qp->qp_num).sq_producer == 0);
  CHECK(device.pairs.at(datagrams->qp_num).sq_producer == 0);
  CHECK(ibv_destroy_qp(datagrams) == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "with sq_sig_all each request has its completion, and the queue pair says so") {
  auto attributes = qp_attributes(cq);
  attributes.sq_sig_all = 1;
  ibv_qp* const qp = ibv_create_qp(pd, &attributes);
  REQUIRE(qp != nullptr);
  REQUIRE(connect(qp) == 0);
  auto write = request(IBV_WR_RDMA_WRITE, 0);
  REQUIRE(post(qp, write) == 0);
  CHECK(send_head(qp, 0).silent == 0);
  auto invalidate = request(IBV_WR_LOCAL_INV, 0);
  REQUIRE(post(qp, invalidate) == 0);
  CHECK(send_head(qp, 1).silent == 0);
  ibv_qp_attr is{};
  ibv_qp_init_attr initial{};
  REQUIRE(ibv_query_qp(qp, &is, IBV_QP_STATE, &initial) == 0);
  CHECK(initial.sq_sig_all == 1);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "what may be posted depends on the state") {
  ibv_qp* const qp = make_qp(cq);
  auto send = request(IBV_WR_SEND);
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  CHECK(post(qp, send) == EINVAL);
  CHECK(ibv_post_recv(qp, &receive, &bad) == EINVAL);
  CHECK(bad == &receive);
  REQUIRE(connect(qp, IBV_QPS_INIT) == 0);
  CHECK(post(qp, send) == EINVAL);
  CHECK(ibv_post_recv(qp, &receive, &bad) == 0);
  receive.num_sge = 9;
  CHECK(ibv_post_recv(qp, &receive, &bad) == EINVAL);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "a queue pair in which the program has written is refused (EFAULT)") {
  ibv_qp_ex* const ex = make_connected_qp_ex(cq, IBV_QP_EX_WITH_SEND);
  ibv_qp* const qp = &ex->qp_base;
  auto send = request(IBV_WR_SEND);
  ibv_send_wr* bad_send = nullptr;
  ibv_recv_wr receive{};
  ibv_recv_wr* bad_receive = nullptr;
  const std::uint32_t number = std::exchange(qp->qp_num, qp->qp_num ^ 1);
  CHECK(post(qp, send, &bad_send) == EFAULT);
  CHECK(bad_send == &send);
  CHECK(ibv_post_recv(qp, &receive, &bad_receive) == EFAULT);
  CHECK(bad_receive == &receive);
  ibv_wr_start(ex);
  ibv_wr_send(ex);
  ibv_wr_set_sge(ex, 7, segment.addr, 64);
  CHECK(ibv_wr_complete(ex) == EFAULT);
  qp->qp_num = number;
  CHECK(device.pairs.at(number).sq_producer == 0);
  CHECK(device.pairs.at(number).rq_producer == 0);
  CHECK(post(qp, send) == 0);
  CHECK(ibv_post_recv(qp, &receive, &bad_receive) == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "of more segments than may be none is read") {
  ibv_qp_ex* const ex = make_connected_qp_ex(cq, IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_WRITE);
  ibv_qp* const qp = &ex->qp_base;
  // Where nothing is.
  auto* const nothing = reinterpret_cast<ibv_sge*>(16);
  for (const ibv_wr_opcode opcode : {IBV_WR_SEND, IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_ATOMIC_FETCH_AND_ADD}) {
    for (const int count : {INT_MAX, -1, 5}) {
      for (const unsigned flags : {0U, unsigned{IBV_SEND_INLINE}}) {
        if (flags != 0 && count == 5) continue;  // of inline segments there may be so many
        auto send = request(opcode, flags);
        send.sg_list = nothing;
        send.num_sge = count;
        CAPTURE(opcode, count, flags);
        CHECK(post(qp, send) == EINVAL);
      }
    }
  }
  ibv_recv_wr receive{};
  ibv_recv_wr* bad = nullptr;
  receive.sg_list = nothing;
  for (const int count : {INT_MAX, -1, 5}) {
    receive.num_sge = count;
    CHECK(ibv_post_recv(qp, &receive, &bad) == EINVAL);
  }
  const auto refused = [&](auto&& set) {
    ibv_wr_start(ex);
    ibv_wr_send(ex);
    set();
    CHECK(ibv_wr_complete(ex) == EINVAL);
  };
  refused([&] { ibv_wr_set_sge_list(ex, SIZE_MAX, nothing); });
  refused([&] { ibv_wr_set_inline_data(ex, nothing, SIZE_MAX); });
  refused([&] { ibv_wr_set_inline_data_list(ex, SIZE_MAX, reinterpret_cast<ibv_data_buf*>(nothing)); });
  const std::array<ibv_data_buf, 2> parts{{{buffer.data(), 40}, {nothing, 25}}};
  refused([&] { ibv_wr_set_inline_data_list(ex, parts.size(), parts.data()); });
  CHECK(device.pairs.at(qp->qp_num).sq_producer == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "two threads post, another polls, and nothing is lost") {
  constexpr unsigned kEach = 1000;
  device.threads = true;
  ibv_qp* const qp = make_connected_qp(cq);
  std::atomic<unsigned> posted = 0;
  const auto post_all = [&](std::uint64_t first) {
    for (unsigned i = 0; i < kEach; ++i) {
      auto of = request(IBV_WR_RDMA_WRITE);
      of.wr_id = first + i;
      while (post(qp, of) == ENOMEM) std::this_thread::yield();
      ++posted;
    }
  };
  std::thread one([&] { post_all(0); });
  std::thread other([&] { post_all(kEach); });
  std::array<std::uint64_t, 2> next{0, kEach};
  unsigned in_order = 0;
  for (unsigned finished = 0, taken = 0; taken < 2 * kEach;) {
    for (; finished < posted; ++finished) device.finish_send(qp->qp_num);
    std::array<ibv_wc, 8> done;
    const int count = ibv_poll_cq(cq, static_cast<int>(done.size()), done.data());
    for (int i = 0; i < count; ++i, ++taken) in_order += next[done[i].wr_id / kEach]++ == done[i].wr_id;
  }
  one.join();
  other.join();
  CHECK(in_order == 2 * kEach);  // of each thread
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "requests that are built are posted together, or not at all") {
  constexpr std::uint64_t kOperations =
      IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_SEND_WITH_IMM | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD;
  ibv_qp_ex* const ex = make_connected_qp_ex(cq, kOperations);
  ibv_qp* const qp = &ex->qp_base;
  const auto produced = [&] { return device.pairs.at(qp->qp_num).sq_producer; };
  char text[] = "inline";
  ibv_wr_start(ex);
  ex->wr_id = 1;
  ex->wr_flags = IBV_SEND_SIGNALED;
  ibv_wr_rdma_write(ex, 9, 0x2000);
  ibv_wr_set_sge(ex, 7, segment.addr, 64);
  ex->wr_id = 2;
  ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_SOLICITED;
  ibv_wr_send_imm(ex, htonl(0x0A0B0C0D));
  ibv_wr_set_inline_data(ex, text, 6);
  text[0] = '#';
  ex->wr_id = 3;
  ibv_wr_atomic_fetch_add(ex, 9, 0x3000, 77);
  ibv_wr_set_sge(ex, 7, segment.addr, 8);
  CHECK(produced() == 0);
  REQUIRE(ibv_wr_complete(ex) == 0);
  REQUIRE(produced() == 3);
  CHECK(device.doorbells.size() == 1);
  CHECK(send_head(qp, 0).opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kWrite));
  const auto second = send_head(qp, 1);
  CHECK(second.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kSendImmediate));
  CHECK(second.immediate == 0x0A0B0C0D);
  CHECK(second.inline_data == 1);
  CHECK(second.solicited == 1);
  CHECK(device.send_wqe(qp->qp_num, 1)[16] == 'i');
  for (int i = 0; i < 3; ++i) device.finish_send(qp->qp_num);
  const auto done = poll(cq);
  REQUIRE(done.size() == 3);
  CHECK(done[2].wr_id == 3);
  CHECK(done[2].opcode == IBV_WC_FETCH_ADD);

  const auto build = [&](unsigned count) {
    ibv_wr_start(ex);
    for (unsigned i = 0; i < count; ++i) {
      ibv_wr_rdma_write(ex, 9, 0x2000);
      ibv_wr_set_sge(ex, 7, segment.addr, 64);
    }
  };
  build(2);
  ibv_wr_abort(ex);
  CHECK(produced() == 3);
  build(9);
  CHECK(ibv_wr_complete(ex) == ENOMEM);
  CHECK(produced() == 3);
  build(1);
  ibv_wr_rdma_read(ex, 9, 0x2000);  // the queue pair was not made for it
  CHECK(ibv_wr_complete(ex) == EOPNOTSUPP);
  build(1);
  const std::array<ibv_sge, 9> nine{};
  ibv_wr_set_sge_list(ex, nine.size(), nine.data());
  CHECK(ibv_wr_complete(ex) == EINVAL);
  build(1);
  ibv_wr_set_inline_data(ex, buffer.data(), 65);
  CHECK(ibv_wr_complete(ex) == EINVAL);
  // Nor the requests in front of one that is too large.
  build(2);
  ibv_wr_set_inline_data(ex, buffer.data(), 65);
  CHECK(ibv_wr_complete(ex) == EINVAL);
  build(2);
  ibv_wr_set_sge_list(ex, nine.size(), nine.data());
  CHECK(ibv_wr_complete(ex) == EINVAL);
  // Of several reasons the first is said.
  build(1);
  ibv_wr_rdma_read(ex, 9, 0x2000);
  ibv_wr_set_sge(ex, 7, segment.addr, 8);
  CHECK(ibv_wr_complete(ex) == EOPNOTSUPP);
  ibv_wr_start(ex);
  ibv_wr_set_sge(ex, 7, segment.addr, 8);  // of no request
  CHECK(ibv_wr_complete(ex) == EINVAL);
  CHECK(produced() == 3);
  build(8);
  CHECK(ibv_wr_complete(ex) == 0);
  CHECK(ibv_destroy_qp(qp) == 0);
}

TEST_CASE_METHOD(PostFixture, "a request that is built has its own data, and nothing of one before it") {
  ibv_qp_ex* const ex = make_connected_qp_ex(cq, IBV_QP_EX_WITH_SEND);
  ibv_qp* const qp = &ex->qp_base;
  std::memset(buffer.data(), 0x11, 64);
  const auto built = [&](auto&& give) {
    ibv_wr_start(ex);
    ex->wr_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;  // what is inline wr_set_inline_data says
    ibv_wr_send(ex);
    give();
    REQUIRE(ibv_wr_complete(ex) == 0);
    return send_head(qp, static_cast<std::uint16_t>(device.pairs.at(qp->qp_num).sq_producer - 1));
  };
  const auto first = built([&] { ibv_wr_set_inline_data(ex, buffer.data(), 20); });
  CHECK(first.inline_data == 1);
  CHECK(first.length == 20);
  CHECK(built([&] { ibv_wr_set_inline_data(ex, buffer.data(), 4); }).length == 4);
  const auto by_segment = built([&] { ibv_wr_set_sge(ex, 7, segment.addr, 33); });
  CHECK(by_segment.inline_data == 0);
  CHECK(by_segment.length == 33);
  const ibv_sge one{.addr = segment.addr + 8, .length = 34, .lkey = 8};
  CHECK(built([&] { ibv_wr_set_sge_list(ex, 1, &one); }).length == 34);
  const auto wqe = device.send_wqe(qp->qp_num, 3);
  const auto data = hw::WqeData::decode(std::span(wqe).subspan<16, hw::WqeData::kBytes>());
  CHECK(data.va == one.addr);
  CHECK(data.lkey == 8);
  CHECK(ibv_destroy_qp(qp) == 0);
}
