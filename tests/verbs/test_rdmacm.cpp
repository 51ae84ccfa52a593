// librdmacm on one host of a machine, which connects to itself: what the manual pages promise, and what is refused.
// Runs under `rnic exec`.
#include <catch2/catch.hpp>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>
#include <rdma/rsocket.h>

#include <arpa/inet.h>
#include <array>
#include <atomic>
#include <cstring>
#include <memory>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

namespace {

sockaddr_in address(const char* text, std::uint16_t port) {
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  REQUIRE(inet_pton(AF_INET, text, &to.sin_addr) == 1);
  return to;
}
sockaddr* generic(sockaddr_in& to) { return reinterpret_cast<sockaddr*>(&to); }

/// A port of its own for each test: TimeWait of one is not another's.
std::uint16_t next_port() {
  static std::uint16_t port = 9000;
  return port++;
}

struct Channel {
  Channel() { REQUIRE(channel != nullptr); }
  ~Channel() { rdma_destroy_event_channel(channel); }
  /// The next event, which is of that type; acknowledged by the caller.
  rdma_cm_event* expect(rdma_cm_event_type type) {
    rdma_cm_event* event = nullptr;
    REQUIRE(rdma_get_cm_event(channel, &event) == 0);
    INFO(rdma_event_str(event->event) << ", status " << event->status);
    REQUIRE(event->event == type);
    return event;
  }
  void pass(rdma_cm_event_type type) { REQUIRE(rdma_ack_cm_event(expect(type)) == 0); }
  rdma_cm_id* make(rdma_port_space space = RDMA_PS_TCP) {
    rdma_cm_id* id = nullptr;
    REQUIRE(rdma_create_id(channel, &id, this, space) == 0);
    return id;
  }
  rdma_cm_id* listen(std::uint16_t port, rdma_port_space space = RDMA_PS_TCP) {
    auto* const id = make(space);
    auto at = address("10.0.0.1", port);
    REQUIRE(rdma_bind_addr(id, generic(at)) == 0);
    REQUIRE(rdma_listen(id, 4) == 0);
    return id;
  }
  rdma_cm_id* resolve(std::uint16_t port, rdma_port_space space = RDMA_PS_TCP, const char* host = "10.0.0.1") {
    auto* const id = make(space);
    auto to = address(host, port);
    REQUIRE(rdma_resolve_addr(id, nullptr, generic(to), 1000) == 0);
    pass(RDMA_CM_EVENT_ADDR_RESOLVED);
    REQUIRE(rdma_resolve_route(id, 1000) == 0);
    pass(RDMA_CM_EVENT_ROUTE_RESOLVED);
    return id;
  }

  rdma_event_channel* channel = rdma_create_event_channel();
};

void make_qp(rdma_cm_id* id, ibv_qp_type type = IBV_QPT_RC) {
  ibv_qp_init_attr attr{};
  attr.cap = {4, 4, 1, 1, 0};
  attr.qp_type = type;
  attr.sq_sig_all = 1;
  REQUIRE(rdma_create_qp(id, nullptr, &attr) == 0);
}

void end(rdma_cm_id* id) {
  rdma_destroy_qp(id);
  REQUIRE(rdma_destroy_id(id) == 0);
}

std::string text_of(const rdma_cm_event& event) { return static_cast<const char*>(event.param.conn.private_data); }

rdma_conn_param with(const char* text) {
  rdma_conn_param param{};
  param.private_data = text;
  param.private_data_len = static_cast<std::uint8_t>(std::strlen(text) + 1);
  param.responder_resources = param.initiator_depth = 3;
  param.retry_count = param.rnr_retry_count = 5;
  return param;
}

}  // namespace

// rdma_destroy_id: events of an id that goes are not told, and who waits for those of others hears nothing of it.
TEST_CASE("an id that is destroyed while its event is taken is no error of the channel") {
  Channel events;
  std::atomic<bool> over{false};
  std::atomic<int> errors{0};
  REQUIRE(fcntl(events.channel->fd, F_SETFL, fcntl(events.channel->fd, F_GETFL) | O_NONBLOCK) == 0);
  std::thread taker([&] {
    while (!over) {
      rdma_cm_event* event = nullptr;
      if (rdma_get_cm_event(events.channel, &event) == 0)
        rdma_ack_cm_event(event);
      else if (errno != EAGAIN)
        ++errors;
    }
  });
  for (int i = 0; i < 3000; ++i) {
    rdma_cm_id* const id = events.make();
    auto to = address("10.0.0.1", 7);
    REQUIRE(rdma_resolve_addr(id, nullptr, generic(to), 1000) == 0);
    std::this_thread::sleep_for(std::chrono::microseconds(i % 100));
    REQUIRE(rdma_destroy_id(id) == 0);
  }
  over = true;
  taker.join();
  CHECK(errors == 0);
}

TEST_CASE("a connection from its request to its end, with private data and limits of Reads") {
  Channel of_server, of_client;
  const auto port = next_port();
  auto* const listener = of_server.listen(port);
  auto* const client = of_client.resolve(port);
  CHECK(client->verbs != nullptr);
  CHECK(client->port_num == 1);
  CHECK(ntohs(rdma_get_dst_port(client)) == port);
  make_qp(client);
  auto ask = with("may I?");
  REQUIRE(rdma_connect(client, &ask) == 0);
  rdma_cm_event* event = of_server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  auto* const server = event->id;
  CHECK(event->listen_id == listener);
  CHECK(server->context == listener->context);
  CHECK(text_of(*event) == "may I?");
  CHECK(event->param.conn.private_data_len == 56);
  CHECK(event->param.conn.responder_resources == 3);
  CHECK(event->param.conn.initiator_depth == 3);
  CHECK(event->param.conn.retry_count == 5);
  CHECK(event->param.conn.qp_num == client->qp->qp_num);
  CHECK(ntohs(rdma_get_src_port(server)) == port);
  CHECK(rdma_get_dst_port(server) == rdma_get_src_port(client));
  CHECK(rdma_ack_cm_event(event) == 0);
  make_qp(server);
  std::array<char, 64> from{"through the NIC"}, to{};
  ibv_mr* const region = rdma_reg_msgs(server, to.data(), to.size());
  REQUIRE(region != nullptr);
  REQUIRE(rdma_post_recv(server, nullptr, to.data(), to.size(), region) == 0);
  auto answer = with("you may");
  answer.responder_resources = 2;
  answer.initiator_depth = 1;
  REQUIRE(rdma_accept(server, &answer) == 0);
  event = of_client.expect(RDMA_CM_EVENT_ESTABLISHED);
  CHECK(text_of(*event) == "you may");
  CHECK(rdma_ack_cm_event(event) == 0);
  of_server.pass(RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr attr{};
  ibv_qp_init_attr init{};
  REQUIRE(ibv_query_qp(client->qp, &attr, IBV_QP_MAX_QP_RD_ATOMIC | IBV_QP_MAX_DEST_RD_ATOMIC, &init) == 0);
  CHECK(attr.max_rd_atomic == 2);
  CHECK(attr.max_dest_rd_atomic == 1);
  CHECK(attr.qp_state == IBV_QPS_RTS);
  REQUIRE(rdma_post_send(client, nullptr, from.data(), 16, nullptr, IBV_SEND_INLINE) == 0);
  ibv_wc done{};
  REQUIRE(rdma_get_send_comp(client, &done) == 1);
  CHECK(done.status == IBV_WC_SUCCESS);
  REQUIRE(rdma_get_recv_comp(server, &done) == 1);
  CHECK(done.byte_len == 16);
  CHECK(std::string(to.data()) == "through the NIC");
  REQUIRE(rdma_disconnect(server) == 0);
  of_client.pass(RDMA_CM_EVENT_DISCONNECTED);
  of_server.pass(RDMA_CM_EVENT_DISCONNECTED);
  CHECK(rdma_disconnect(client) == 0);  // the peer was first
  of_client.pass(RDMA_CM_EVENT_TIMEWAIT_EXIT);
  CHECK(rdma_dereg_mr(region) == 0);
  end(client);
  end(server);
  end(listener);
}

TEST_CASE("refusals: by the peer, by nobody, by the active side") {
  Channel of_server, of_client;
  const auto port = next_port();
  auto* const listener = of_server.listen(port);
  SECTION("the peer, with its words") {
    auto* const client = of_client.resolve(port);
    make_qp(client);
    REQUIRE(rdma_connect(client, nullptr) == 0);
    rdma_cm_event* event = of_server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    auto* const server = event->id;
    REQUIRE(rdma_ack_cm_event(event) == 0);
    REQUIRE(rdma_reject(server, "no", 3) == 0);
    event = of_client.expect(RDMA_CM_EVENT_REJECTED);
    CHECK(event->status == 28);
    CHECK(text_of(*event) == "no");
    REQUIRE(rdma_ack_cm_event(event) == 0);
    end(server);
    end(client);
  }
  SECTION("nobody listens") {
    auto* const client = of_client.resolve(next_port());
    make_qp(client);
    REQUIRE(rdma_connect(client, nullptr) == 0);
    rdma_cm_event* const event = of_client.expect(RDMA_CM_EVENT_REJECTED);
    CHECK(event->status == 8);
    REQUIRE(rdma_ack_cm_event(event) == 0);
    end(client);
  }
  SECTION("a server that destroys its request") {
    auto* const client = of_client.resolve(port);
    make_qp(client);
    REQUIRE(rdma_connect(client, nullptr) == 0);
    rdma_cm_event* const event = of_server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
    auto* const server = event->id;
    REQUIRE(rdma_ack_cm_event(event) == 0);
    end(server);
    of_client.pass(RDMA_CM_EVENT_REJECTED);
    end(client);
  }
  end(listener);
}

TEST_CASE("addresses") {
  Channel channel;
  const auto port = next_port();
  auto* const first = channel.listen(port);
  auto* const second = channel.make();
  auto same = address("10.0.0.1", port);
  CHECK(rdma_bind_addr(second, generic(same)) == -1);
  CHECK(errno == EADDRINUSE);
  auto all = address("0.0.0.0", port);
  CHECK(rdma_bind_addr(second, generic(all)) == -1);
  CHECK(errno == EADDRINUSE);
  auto foreign = address("10.0.0.2", port);
  CHECK(rdma_bind_addr(second, generic(foreign)) == -1);
  CHECK(errno == EADDRNOTAVAIL);
  auto any = address("0.0.0.0", 0);
  CHECK(rdma_bind_addr(second, generic(any)) == 0);
  CHECK(ntohs(rdma_get_src_port(second)) >= 0xC000);
  auto unknown = address("10.9.9.9", 1);
  CHECK(rdma_resolve_addr(second, nullptr, generic(unknown), 100) == 0);
  rdma_cm_event* const event = channel.expect(RDMA_CM_EVENT_ADDR_ERROR);
  CHECK(event->status == -EHOSTUNREACH);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  auto group = address("224.0.0.9", 1);
  CHECK(rdma_resolve_addr(second, nullptr, generic(group), 100) == -1);
  CHECK(errno == EINVAL);
  CHECK(rdma_resolve_route(second, 100) == -1);
  end(first);
  // The port is free as soon as its id has gone.
  auto* const third = channel.listen(port);
  auto* const itself = channel.resolve(port, RDMA_PS_TCP, "127.0.0.1");  // this host, by its own address
  CHECK(itself->route.addr.dst_sin.sin_addr.s_addr == inet_addr("10.0.0.1"));
  for (auto* id : {second, third, itself}) end(id);
}

TEST_CASE("a channel can be polled, and asked without waiting") {
  Channel channel;
  rdma_cm_event* event = nullptr;
  REQUIRE(fcntl(channel.channel->fd, F_SETFL, O_NONBLOCK) == 0);
  CHECK(rdma_get_cm_event(channel.channel, &event) == -1);
  CHECK(errno == EAGAIN);
  pollfd what{.fd = channel.channel->fd, .events = POLLIN, .revents = 0};
  CHECK(poll(&what, 1, 0) == 0);
  auto* const id = channel.make();
  auto to = address("10.0.0.2", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, generic(to), 100) == 0);
  CHECK(poll(&what, 1, 5000) == 1);
  REQUIRE(rdma_resolve_route(id, 100) == 0);
  channel.pass(RDMA_CM_EVENT_ADDR_RESOLVED);
  CHECK(poll(&what, 1, 5000) == 1);  // there is another one
  channel.pass(RDMA_CM_EVENT_ROUTE_RESOLVED);
  CHECK(rdma_get_cm_event(channel.channel, &event) == -1);
  end(id);
}

TEST_CASE("an id waits for its events to be acknowledged before it goes") {
  Channel channel;
  auto* const id = channel.make();
  auto to = address("10.0.0.2", 1);
  REQUIRE(rdma_resolve_addr(id, nullptr, generic(to), 100) == 0);
  rdma_cm_event* const event = channel.expect(RDMA_CM_EVENT_ADDR_RESOLVED);
  std::atomic<bool> gone = false;
  std::thread other([&] {
    static_cast<void>(rdma_destroy_id(id));
    gone = true;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  CHECK_FALSE(gone);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  other.join();
}

TEST_CASE("ids whose calls wait: rdma_create_ep on both sides") {
  const auto port = std::to_string(next_port());
  rdma_addrinfo hints{}, *found = nullptr;
  hints.ai_flags = RAI_PASSIVE;
  hints.ai_port_space = RDMA_PS_TCP;
  REQUIRE(rdma_getaddrinfo("10.0.0.1", port.c_str(), &hints, &found) == 0);
  ibv_qp_init_attr attr{};
  attr.cap = {2, 2, 1, 1, 16};
  attr.sq_sig_all = 1;
  rdma_cm_id* listener = nullptr;
  REQUIRE(rdma_create_ep(&listener, found, nullptr, &attr) == 0);
  rdma_freeaddrinfo(found);
  REQUIRE(rdma_listen(listener, 1) == 0);
  std::string got;
  std::thread server([&] {
    rdma_cm_id* id = nullptr;
    std::array<char, 32> message{};
    ibv_wc done{};
    if (rdma_get_request(listener, &id) != 0) return;
    ibv_mr* const region = rdma_reg_msgs(id, message.data(), message.size());
    if (rdma_post_recv(id, nullptr, message.data(), message.size(), region) == 0 && rdma_accept(id, nullptr) == 0 &&
        rdma_get_recv_comp(id, &done) == 1)
      got = message.data();
    rdma_disconnect(id);
    rdma_dereg_mr(region);
    rdma_destroy_ep(id);
  });
  hints.ai_flags = 0;
  REQUIRE(rdma_getaddrinfo("10.0.0.1", port.c_str(), &hints, &found) == 0);
  rdma_cm_id* id = nullptr;
  REQUIRE(rdma_create_ep(&id, found, nullptr, &attr) == 0);
  rdma_freeaddrinfo(found);
  CHECK(rdma_connect(id, nullptr) == 0);
  std::array<char, 16> message{"synchronous"};
  ibv_wc done{};
  CHECK(rdma_post_send(id, nullptr, message.data(), message.size(), nullptr, IBV_SEND_INLINE) == 0);
  CHECK(rdma_get_send_comp(id, &done) == 1);
  server.join();
  CHECK(got == "synchronous");
  // A second time nobody takes the request: the listener goes, and the client is refused.
  rdma_destroy_ep(id);
  rdma_destroy_ep(listener);
}

TEST_CASE("datagrams: who serves, and with which Q_Key") {
  Channel of_server, of_client;
  const auto port = next_port();
  auto* const listener = of_server.listen(port, RDMA_PS_UDP);
  auto* const client = of_client.resolve(port, RDMA_PS_UDP);
  make_qp(client, IBV_QPT_UD);
  auto ask = with("who?");
  REQUIRE(rdma_connect(client, &ask) == 0);
  rdma_cm_event* event = of_server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  auto* const server = event->id;
  CHECK(std::string(static_cast<const char*>(event->param.ud.private_data)) == "who?");
  CHECK(event->param.ud.private_data_len == 180);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  make_qp(server, IBV_QPT_UD);
  REQUIRE(rdma_accept(server, nullptr) == 0);
  event = of_client.expect(RDMA_CM_EVENT_ESTABLISHED);
  CHECK(event->param.ud.qp_num == server->qp->qp_num);
  CHECK(event->param.ud.qkey == RDMA_UDP_QKEY);
  ibv_ah* const handle = ibv_create_ah(client->pd, &event->param.ud.ah_attr);
  CHECK(handle != nullptr);
  ibv_destroy_ah(handle);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  for (auto* id : {client, server, listener}) end(id);
}

namespace {

/// A queue pair that the program makes itself, with a completion queue of its own.
struct OwnQp {
  explicit OwnQp(rdma_cm_id* id) {
    REQUIRE(id->verbs != nullptr);
    pd = ibv_alloc_pd(id->verbs);
    cq = ibv_create_cq(id->verbs, 8, nullptr, nullptr, 0);
    REQUIRE(pd != nullptr);
    REQUIRE(cq != nullptr);
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = cq;
    attr.cap = {4, 4, 1, 1, 32};
    attr.qp_type = IBV_QPT_RC;
    attr.sq_sig_all = 1;
    qp = ibv_create_qp(pd, &attr);
    REQUIRE(qp != nullptr);
  }
  OwnQp(const OwnQp&) = delete;
  OwnQp& operator=(const OwnQp&) = delete;
  ~OwnQp() {
    ibv_destroy_qp(qp);
    ibv_destroy_cq(cq);
    ibv_dealloc_pd(pd);
  }
  void go(rdma_cm_id* id, ibv_qp_state state) {
    ibv_qp_attr attr{};
    attr.qp_state = state;
    int mask = 0;
    REQUIRE(rdma_init_qp_attr(id, &attr, &mask) == 0);
    REQUIRE(ibv_modify_qp(qp, &attr, mask) == 0);
  }
  ibv_wc completion() {
    ibv_wc done{};
    while (ibv_poll_cq(cq, 1, &done) == 0) std::this_thread::yield();
    CHECK(done.status == IBV_WC_SUCCESS);
    return done;
  }

  ibv_pd* pd{};
  ibv_cq* cq{};
  ibv_qp* qp{};
};

}  // namespace

TEST_CASE(
    "queue pairs that are none of the ids: their numbers are said, and the program takes them through their states") {
  Channel of_server, of_client;
  const auto port = next_port();
  auto* const listener = of_server.listen(port);
  auto* const client = of_client.resolve(port);
  OwnQp own(client);
  auto ask = with("mine");
  ask.qp_num = own.qp->qp_num + 1;  // of nobody
  CHECK(rdma_connect(client, &ask) == -1);
  CHECK(errno == EINVAL);
  ask.qp_num = own.qp->qp_num;
  own.go(client, IBV_QPS_INIT);
  REQUIRE(rdma_connect(client, &ask) == 0);
  rdma_cm_event* event = of_server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
  auto* const server = event->id;
  CHECK(event->param.conn.qp_num == own.qp->qp_num);
  REQUIRE(rdma_ack_cm_event(event) == 0);
  OwnQp peer(server);
  peer.go(server, IBV_QPS_INIT);
  peer.go(server, IBV_QPS_RTR);
  peer.go(server, IBV_QPS_RTS);
  std::array<char, 32> to{};
  ibv_mr* const region = ibv_reg_mr(peer.pd, to.data(), to.size(), IBV_ACCESS_LOCAL_WRITE);
  REQUIRE(region != nullptr);
  ibv_sge place{reinterpret_cast<std::uintptr_t>(to.data()), static_cast<std::uint32_t>(to.size()), region->lkey};
  ibv_recv_wr receive{}, *bad_receive = nullptr;
  receive.sg_list = &place;
  receive.num_sge = 1;
  REQUIRE(ibv_post_recv(peer.qp, &receive, &bad_receive) == 0);
  CHECK(rdma_accept(server, nullptr) == -1);  // with which?
  CHECK(errno == EINVAL);
  auto answer = with("and mine");
  answer.qp_num = peer.qp->qp_num;
  REQUIRE(rdma_accept(server, &answer) == 0);
  event = of_client.expect(RDMA_CM_EVENT_CONNECT_RESPONSE);
  CHECK(event->param.conn.qp_num == peer.qp->qp_num);
  CHECK(text_of(*event) == "and mine");
  REQUIRE(rdma_ack_cm_event(event) == 0);
  own.go(client, IBV_QPS_RTR);
  own.go(client, IBV_QPS_RTS);
  REQUIRE(rdma_establish(client) == 0);
  of_server.pass(RDMA_CM_EVENT_ESTABLISHED);
  std::array<char, 32> from{"of my own"};
  ibv_sge what{reinterpret_cast<std::uintptr_t>(from.data()), static_cast<std::uint32_t>(from.size()), 0};
  ibv_send_wr send{}, *bad_send = nullptr;
  send.sg_list = &what;
  send.num_sge = 1;
  send.opcode = IBV_WR_SEND;
  send.send_flags = IBV_SEND_INLINE;
  REQUIRE(ibv_post_send(own.qp, &send, &bad_send) == 0);
  CHECK(own.completion().opcode == IBV_WC_SEND);
  CHECK(peer.completion().byte_len == from.size());
  CHECK(to == from);
  CHECK(ibv_dereg_mr(region) == 0);
  REQUIRE(rdma_disconnect(client) == 0);
  of_client.pass(RDMA_CM_EVENT_DISCONNECTED);
  of_server.pass(RDMA_CM_EVENT_DISCONNECTED);
  for (auto* id : {client, server, listener}) REQUIRE(rdma_destroy_id(id) == 0);
}

namespace {

sockaddr_storage group_of(const char* text) {
  sockaddr_storage to{};
  auto& in = reinterpret_cast<sockaddr_in&>(to);
  auto& in6 = reinterpret_cast<sockaddr_in6&>(to);
  if (inet_pton(AF_INET, text, &in.sin_addr) == 1) {
    in.sin_family = AF_INET;
  } else {
    REQUIRE(inet_pton(AF_INET6, text, &in6.sin6_addr) == 1);
    in6.sin6_family = AF_INET6;
  }
  return to;
}

/// An id that has a queue pair for datagrams, and a place for one that comes, with its GRH.
struct Member {
  explicit Member(Channel& on, sockaddr_storage group) : channel(on), id(on.make(RDMA_PS_UDP)) {
    REQUIRE(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&group), 1000) == 0);
    channel.pass(RDMA_CM_EVENT_ADDR_RESOLVED);
    make_qp(id, IBV_QPT_UD);
    region = rdma_reg_msgs(id, memory.data(), memory.size());
    REQUIRE(region != nullptr);
    REQUIRE(rdma_post_recv(id, this, memory.data(), memory.size(), region) == 0);
  }
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member() {
    rdma_dereg_mr(region);
    end(id);
  }
  /// Where the group is, as its event says.
  ibv_ah_attr joined() {
    rdma_cm_event* const event = channel.expect(RDMA_CM_EVENT_MULTICAST_JOIN);
    CHECK(event->id == id);
    CHECK(event->param.ud.private_data == this);
    CHECK(event->param.ud.qp_num == 0xFFFFFF);
    CHECK(event->param.ud.qkey == RDMA_UDP_QKEY);
    const ibv_ah_attr where = event->param.ud.ah_attr;
    REQUIRE(rdma_ack_cm_event(event) == 0);
    return where;
  }
  /// The text that has come; none: nothing has.
  std::string received() {
    ibv_wc done{};
    if (ibv_poll_cq(id->recv_cq, 1, &done) == 0) return {};
    CHECK(done.status == IBV_WC_SUCCESS);
    REQUIRE(rdma_post_recv(id, this, memory.data(), memory.size(), region) == 0);
    return memory.data() + sizeof(ibv_grh);
  }
  std::string wait() {
    for (;;) {
      if (auto text = received(); !text.empty()) return text;
      std::this_thread::yield();
    }
  }

  Channel& channel;
  rdma_cm_id* id;
  std::array<char, sizeof(ibv_grh) + 64> memory{};
  ibv_mr* region{};
};

}  // namespace

TEST_CASE("multicast groups: members get what is sent there until they leave, who only sends gets nothing") {
  auto group = group_of(GENERATE("224.0.0.9", "ff02::9"));
  auto* const to = reinterpret_cast<sockaddr*>(&group);
  Channel channel;
  Member stays(channel, group), leaves(channel, group), sends(channel, group);
  for (auto* member : {&stays, &leaves}) {
    REQUIRE(rdma_join_multicast(member->id, to, member) == 0);
    member->joined();
  }
  CHECK(rdma_join_multicast(stays.id, to, nullptr) == -1);
  CHECK(errno == EADDRINUSE);
  rdma_cm_join_mc_attr_ex attr{};
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attr.join_flags = RDMA_MC_JOIN_FLAG_SENDONLY_FULLMEMBER;
  attr.addr = to;
  REQUIRE(rdma_join_multicast_ex(sends.id, &attr, &sends) == 0);
  auto where = sends.joined();
  ibv_ah* const handle = ibv_create_ah(sends.id->pd, &where);
  REQUIRE(handle != nullptr);
  const auto send = [&](std::array<char, 16> text) {
    REQUIRE(rdma_post_ud_send(sends.id, nullptr, text.data(), text.size(), nullptr, IBV_SEND_INLINE, handle,
                              0xFFFFFF) == 0);
    ibv_wc done{};
    REQUIRE(rdma_get_send_comp(sends.id, &done) == 1);
    CHECK(done.status == IBV_WC_SUCCESS);
  };
  send({"to both"});
  CHECK(stays.wait() == "to both");
  CHECK(leaves.wait() == "to both");
  REQUIRE(rdma_leave_multicast(leaves.id, to) == 0);
  send({"to one"});
  CHECK(stays.wait() == "to one");
  REQUIRE(rdma_join_multicast(leaves.id, to, &leaves) == 0);
  leaves.joined();
  send({"to both again"});
  CHECK(stays.wait() == "to both again");
  CHECK(leaves.wait() == "to both again");
  CHECK(sends.received().empty());
  CHECK(ibv_destroy_ah(handle) == 0);
}

TEST_CASE("multicast: what is no group, no member, or no datagram is refused") {
  Channel channel;
  auto group = group_of("224.0.0.9"), host = group_of("10.0.0.2"), other = group_of("224.0.0.10");
  const auto generic_of = [](sockaddr_storage& address) { return reinterpret_cast<sockaddr*>(&address); };
  Member member(channel, group);
  CHECK(rdma_join_multicast(member.id, generic_of(host), nullptr) == -1);
  CHECK(errno == EINVAL);
  CHECK(rdma_join_multicast(member.id, nullptr, nullptr) == -1);
  CHECK(rdma_leave_multicast(member.id, generic_of(other)) == -1);
  CHECK(errno == EADDRNOTAVAIL);
  rdma_cm_join_mc_attr_ex attr{};
  attr.addr = generic_of(group);
  CHECK(rdma_join_multicast_ex(member.id, &attr, nullptr) == -1);
  CHECK(errno == EINVAL);
  attr.comp_mask = RDMA_CM_JOIN_MC_ATTR_ADDRESS | RDMA_CM_JOIN_MC_ATTR_JOIN_FLAGS;
  attr.join_flags = RDMA_MC_JOIN_FLAG_RESERVED;
  CHECK(rdma_join_multicast_ex(member.id, &attr, nullptr) == -1);
  CHECK(errno == EINVAL);
  // Nothing of what was refused is left: the same is granted when it is asked for rightly.
  REQUIRE(rdma_join_multicast(member.id, generic_of(group), &member) == 0);
  member.joined();
  auto* const connected = channel.make(RDMA_PS_TCP);
  CHECK(rdma_join_multicast(connected, generic_of(group), nullptr) == -1);
  CHECK(errno == EINVAL);
  end(connected);
  // A group that was left before its event was taken: the event says so.
  REQUIRE(rdma_join_multicast(member.id, generic_of(other), &member) == 0);
  REQUIRE(rdma_leave_multicast(member.id, generic_of(other)) == 0);
  channel.pass(RDMA_CM_EVENT_MULTICAST_ERROR);
}

TEST_CASE("what is not there says so, and what is wrong is refused") {
  Channel channel;
  auto* const id = channel.make();
  CHECK(rsocket(AF_INET, SOCK_STREAM, 0) == -1);
  CHECK(errno == EOPNOTSUPP);
  rdma_cm_id* other = nullptr;
  CHECK(rdma_create_id(channel.channel, &other, nullptr, RDMA_PS_IB) == -1);
  CHECK(errno == EOPNOTSUPP);
  CHECK(rdma_connect(id, nullptr) == -1);  // without a queue pair
  CHECK(errno == EINVAL);
  CHECK(rdma_accept(id, nullptr) == -1);
  CHECK(rdma_disconnect(id) == -1);
  CHECK(rdma_reject(id, nullptr, 0) == -1);
  CHECK(rdma_get_request(id, &other) == -1);  // it is not synchronous
  std::uint8_t tos = 0x20;
  CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, sizeof tos) == 0);
  CHECK(rdma_set_option(id, RDMA_OPTION_ID, RDMA_OPTION_ID_TOS, &tos, 2) == -1);
  CHECK(rdma_set_option(id, RDMA_OPTION_IB, RDMA_OPTION_IB_PATH, &tos, 1) == -1);
  rdma_addrinfo* found = nullptr;
  CHECK(rdma_getaddrinfo("no such host at all", "1", nullptr, &found) != 0);
  CHECK(rdma_getaddrinfo(nullptr, nullptr, nullptr, &found) == -1);
  int count = 0;
  ibv_context** const devices = rdma_get_devices(&count);
  CHECK(count == 1);
  CHECK(devices[1] == nullptr);
  rdma_free_devices(devices);
  end(id);
}

TEST_CASE("many connections one after the other, and at the same time") {
  Channel of_server, of_client;
  const auto port = next_port();
  auto* const listener = of_server.listen(port);
  std::vector<rdma_cm_id*> clients, servers;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) {
      clients.push_back(of_client.resolve(port));
      make_qp(clients.back());
    }
    for (auto* client : clients) REQUIRE(rdma_connect(client, nullptr) == 0);
    for (std::size_t i = 0; i < clients.size(); ++i) {
      rdma_cm_event* const event = of_server.expect(RDMA_CM_EVENT_CONNECT_REQUEST);
      servers.push_back(event->id);
      REQUIRE(rdma_ack_cm_event(event) == 0);
    }
    for (auto* server : servers) {
      make_qp(server);
      REQUIRE(rdma_accept(server, nullptr) == 0);
      of_client.pass(RDMA_CM_EVENT_ESTABLISHED);
      of_server.pass(RDMA_CM_EVENT_ESTABLISHED);
    }
    for (auto* client : clients) {
      REQUIRE(rdma_disconnect(client) == 0);
      of_client.pass(RDMA_CM_EVENT_DISCONNECTED);
      of_server.pass(RDMA_CM_EVENT_DISCONNECTED);
    }
    for (auto* id : clients) end(id);
    for (auto* id : servers) end(id);
    clients.clear();
    servers.clear();
  }
  end(listener);
}
