// Queue pairs of the unreliable transport services: what the driver tells the device, and what it refuses.
#include <catch2/catch.hpp>

#include <cstring>
#include <tuple>
#include <vector>

#include "driver/path_entropy.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;
using umd::AddressHandle;

namespace {

constexpr std::array<std::uint8_t, 16> kPeerIp = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};

struct DatagramFixture : DriverFixture {
  std::shared_ptr<umd::QueuePair> open(hw::QpType type, umd::QueueCapacity capacity = {8, 8, 4, 4, 64}) {
    cq = make_cq();
    auto qp =
        umd::QueuePair::create_idle(process, {.send_cq = cq, .receive_cq = cq, .type = type, .capacity = capacity})
            .take();
    REQUIRE(qp->connect({.qkey = 0x1234}).ok());
    return qp;
  }
  umd::SendRequest datagram(std::uint64_t id) {
    return {.opcode = hw::WqeOpcode::kSendImmediate,
            .id = id,
            .segments = {&segment, 1},
            .immediate = 0xCAFE,
            .address = &peer,
            .dest_qpn = 0x654321,
            .qkey = 0x11111111};
  }
  const umd::Segment segment{.address = 0x1000, .length = 64, .key = 7};
  const AddressHandle peer =
      AddressHandle::create({.dest_ip = kPeerIp, .dest_mac = 0x0200'0000'0002, .traffic_class = 0x28, .hop_limit = 9})
          .take();
  std::shared_ptr<umd::CompletionQueue> cq;
};

}  // namespace

TEST_CASE_METHOD(DatagramFixture, "a UD queue pair has its type and its Q_Key on the device") {
  const auto qp = open(hw::QpType::kUd);
  const auto& hardware = device.pairs.at(qp->qpn());
  CHECK(hardware.create.qp_type == static_cast<std::uint8_t>(hw::QpType::kUd));
  CHECK(hardware.last_modify.qkey == 0x1234);
  CHECK(qp->type() == hw::QpType::kUd);
}

TEST_CASE_METHOD(DatagramFixture, "a datagram carries its address in the request") {
  const auto qp = open(hw::QpType::kUd);
  REQUIRE(qp->post_send(datagram(1)).ok());
  const auto wqe = device.send_wqe(qp->qpn(), 0);
  const auto control = hw::WqeControl::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16));
  CHECK(control.size == 5);  // control, three of address, one data segment
  CHECK(control.length == 64);
  CHECK(control.immediate == 0xCAFE);
  const auto address = hw::WqeAddress::decode(std::span<const std::uint8_t, 48>(wqe.data() + 16, 48));
  CHECK(address.dest_ip == kPeerIp);
  CHECK(address.dest_mac == 0x0200'0000'0002);
  CHECK(address.traffic_class == 0x28);
  CHECK(address.hop_limit == 9);
  CHECK(address.dest_qpn == 0x654321);
  CHECK(address.qkey == 0x11111111);
  CHECK(address.second_source == 0);
  CHECK(address.flow_label == flow_label_for(qp->qpn(), 0x654321));
  const auto data = hw::WqeData::decode(std::span<const std::uint8_t, 16>(wqe.data() + 64, 16));
  CHECK(data.va == 0x1000);
}

TEST_CASE_METHOD(DatagramFixture, "a UD queue pair joins multicast groups, leaves them, and is busy in between") {
  const auto qp = open(hw::QpType::kUd);
  constexpr std::array<std::uint8_t, 16> kIpv6 = {0xFF, 0x0E, 1},
                                         kIpv4 = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 239, 1, 2, 3};
  REQUIRE(qp->attach_multicast(kIpv6).ok());
  REQUIRE(qp->attach_multicast(kIpv4).ok());
  CHECK(device.multicast_groups.at(kIpv6).contains(qp->qpn()));
  CHECK(device.multicast_groups.at(kIpv4).contains(qp->qpn()));
  CHECK(qp->attach_multicast(kIpv4).error() == Error::kExists);
  REQUIRE(qp->detach_multicast(kIpv6).ok());
  CHECK(qp->detach_multicast(kIpv6).error() == Error::kNotFound);
  // ibv_destroy_qp: EBUSY as long as it is attached; it is as before then.
  CHECK(qp->close().error() == Error::kBusy);
  CHECK(qp->post_send(datagram(1)).ok());
  REQUIRE(qp->detach_multicast(kIpv4).ok());
  CHECK(device.multicast_groups.empty());
  CHECK(qp->close().ok());
  CHECK(qp->attach_multicast(kIpv6).error() == Error::kInvalidState);
}

TEST_CASE_METHOD(DatagramFixture, "only UD queue pairs join, only groups, and only as many as the device has") {
  constexpr std::array<std::uint8_t, 16> kGroup = {0xFF, 0x0E, 1};
  CHECK(open(hw::QpType::kRc)->attach_multicast(kGroup).error() == Error::kInvalidParameter);
  CHECK(open(hw::QpType::kUc)->attach_multicast(kGroup).error() == Error::kInvalidParameter);
  const auto qp = open(hw::QpType::kUd);
  // Not multicast: an IPv6 host, an IPv4 host, what is beside 224.0.0.0/4, and that network without ::ffff.
  for (const auto& [first, twelfth, mapped] : std::vector<std::tuple<std::uint8_t, std::uint8_t, bool>>{
           {0xFE, 0, false}, {0, 10, true}, {0, 223, true}, {0, 240, true}, {0, 224, false}}) {
    std::array<std::uint8_t, 16> gid{first};
    if (mapped) gid[10] = gid[11] = 0xFF;
    gid[12] = twelfth;
    CHECK(qp->attach_multicast(gid).error() == Error::kInvalidParameter);
  }
  auto group = kGroup;
  CHECK(process->limits().max_multicast_groups == hw::kMulticastGroups);
  for (std::uint32_t i = 0; i < hw::kMulticastGroups; ++i) {
    group[15] = static_cast<std::uint8_t>(i);
    CHECK(qp->attach_multicast(group).ok());
  }
  group[15] = 99;
  CHECK(qp->attach_multicast(group).error() == Error::kOutOfResources);
}

TEST_CASE_METHOD(DatagramFixture, "whoever goes leaves its multicast groups") {
  constexpr std::array<std::uint8_t, 16> kGroup = {0xFF, 0x0E, 1};
  auto qp = open(hw::QpType::kUd);
  REQUIRE(qp->attach_multicast(kGroup).ok());
  qp.reset();
  CHECK(device.multicast_groups.empty());
  CHECK(device.pairs.empty());
}

TEST_CASE_METHOD(DatagramFixture, "inline payload of a datagram starts behind its address") {
  const auto qp = open(hw::QpType::kUd);
  const char text[] = "datagram";
  const umd::Segment words{.address = reinterpret_cast<std::uint64_t>(text), .length = 8};
  auto request = datagram(1);
  request.segments = {&words, 1};
  request.inline_data = true;
  REQUIRE(qp->post_send(request).ok());
  const auto wqe = device.send_wqe(qp->qpn(), 0);
  CHECK(std::memcmp(wqe.data() + 64, "datagram", 8) == 0);
}

TEST_CASE("strides of a UD queue pair have room for the address") {
  using Q = umd::SendQueue;
  CHECK(Q::log_stride_for(0, 0, hw::QpType::kUd) == 6);
  CHECK(Q::log_stride_for(1, 0, hw::QpType::kUd) == 7);
  CHECK(Q::log_stride_for(4, 64, hw::QpType::kUd) == 7);
  CHECK(Q::log_stride_for(4, 65, hw::QpType::kUd) == 8);
  CHECK(Q::log_stride_for(16, 224, hw::QpType::kUd) == 9);
}

TEST_CASE("strides of a RawPacket queue pair hold the frame's segments and no other header") {
  using Q = umd::SendQueue;
  CHECK(Q::log_stride_for(3, 48, hw::QpType::kRawPacket) == 6);
  CHECK(Q::log_stride_for(4, 0, hw::QpType::kRawPacket) == 7);
  CHECK(Q::log_stride_for(1, 49, hw::QpType::kRawPacket) == 7);
}

TEST_CASE_METHOD(DatagramFixture,
                 "operations that a transport service does not have are refused when posted (9.4, table 37)") {
  using Op = hw::WqeOpcode;
  const umd::Segment word{.address = 0x1000, .length = 8, .key = 7};
  const auto tried = [&](umd::QueuePair& qp, Op opcode) {
    return qp.post_send({.opcode = opcode, .segments = {&word, 1}, .address = &peer});
  };
  const auto ud = open(hw::QpType::kUd);
  const auto uc = open(hw::QpType::kUc);
  for (const Op opcode : {Op::kSend, Op::kSendImmediate}) {
    CHECK(tried(*ud, opcode).ok());
    CHECK(tried(*uc, opcode).ok());
  }
  for (const Op opcode : {Op::kWrite, Op::kWriteImmediate}) {
    CHECK(tried(*ud, opcode).error() == Error::kInvalidParameter);
    CHECK(tried(*uc, opcode).ok());
  }
  for (const Op opcode : {Op::kRead, Op::kCompareSwap, Op::kFetchAdd, Op::kSendInvalidate}) {
    CHECK(tried(*ud, opcode).error() == Error::kInvalidParameter);
    CHECK(tried(*uc, opcode).error() == Error::kInvalidParameter);
  }
  auto nowhere = datagram(1);
  nowhere.address = nullptr;
  CHECK(ud->post_send(nowhere).error() == Error::kInvalidParameter);
}

TEST_CASE("an address handle is judged when it is made") {
  CHECK(AddressHandle::create({.flow_label = 0xFFFFF}).ok());
  CHECK(AddressHandle::create({.flow_label = 0x100000}).error() == Error::kInvalidParameter);
  CHECK(AddressHandle::create({.dest_mac = 1ULL << 48}).error() == Error::kInvalidParameter);
  CHECK(AddressHandle::create({.hop_limit = 0}).error() == Error::kInvalidParameter);
  CHECK(AddressHandle::create({.vlan = 4094, .sl = 7}).ok());
  CHECK(AddressHandle::create({.vlan = 0xFFF}).error() == Error::kInvalidParameter);
  CHECK(AddressHandle::create({.sl = 8}).error() == Error::kInvalidParameter);
}

TEST_CASE("the VLAN tag of a datagram is in its address") {
  const auto tagged = AddressHandle::create({.vlan = 5, .sl = 3}).take().segment(1, 2, 3);
  CHECK(tagged.vlan == 1);
  CHECK(tagged.vlan_id == 5);
  CHECK(tagged.pcp == 3);
  CHECK(AddressHandle::create({.sl = 3}).take().segment(1, 2, 3).vlan == 0);
}

TEST_CASE_METHOD(DatagramFixture, "a completion says who sent the datagram, and with which VLAN tag") {
  const auto qp = open(hw::QpType::kUd);
  REQUIRE(qp->post_receive({.id = 5, .segments = {&segment, 1}}).ok());
  REQUIRE(qp->post_receive({.id = 6, .segments = {&segment, 1}}).ok());
  device.finish_receive(qp->qpn(), 104, hw::CqeStatus::kSuccess, false, 0x00ABCD);
  device.finish_receive(qp->qpn(), 104, hw::CqeStatus::kSuccess, false, 0x00ABCD, 0x6005);
  const auto all = drain(*cq);
  REQUIRE(all.size() == 2);
  CHECK_FALSE(all[0].vlan);
  CHECK(all[1].vlan);
  CHECK(all[1].vlan_tci == 0x6005);
  CHECK(all[0].id == 5);
  CHECK(all[0].grh);
  CHECK(all[0].source_qpn == 0x00ABCD);
  CHECK(all[0].byte_count == 104);
}

TEST_CASE_METHOD(DatagramFixture, "QP1 belongs to the kernel driver (10.2.4.1, 10.2.5)") {
  const umd::QueuePair::Spec spec{.type = hw::QpType::kUd, .general_service = true, .capacity = {8, 8, 1, 1, 0}};
  auto of = [&](const std::shared_ptr<umd::ProcessContext>& owner, umd::QueuePair::Spec with) {
    with.send_cq = with.receive_cq = umd::CompletionQueue::create(owner, 16).take();
    return umd::QueuePair::create_idle(owner, with);
  };
  CHECK(of(process, spec).error() == Error::kNotSupported);
  const auto own = umd::ProcessContext::open_for_management(kernel->kernel_node()).take();
  CHECK(own->uar() == hw::kKernelUar);
  auto connected = spec;
  connected.type = hw::QpType::kRc;
  CHECK(of(own, connected).error() == Error::kInvalidParameter);
  {
    const auto qp = of(own, spec).take();
    CHECK(qp->qpn() == kGeneralServiceQpn);
    CHECK(qp->connect({.qkey = kGeneralServiceQkey}).ok());
    CHECK(device.pairs.at(1).last_modify.qkey == 0x80010000);
    CHECK(of(own, spec).error() == Error::kExists);
  }
  CHECK(of(own, spec).ok());  // it can be made again
  const auto qp =
      umd::QueuePair::create_idle(
          process,
          {.send_cq = make_cq(), .receive_cq = make_cq(), .type = hw::QpType::kUd, .capacity = {8, 8, 1, 1, 0}})
          .take();
  CHECK(qp->to_ready({.qkey = kPrivilegedQkey}).error() == Error::kInvalidParameter);
  CHECK(qp->to_ready({.qkey = 0x7FFFFFFF}).ok());
}

TEST_CASE("flow labels and source ports spread connections and stay in their range (A17.3.1.1)") {
  std::array<unsigned, 16> bins{};
  for (std::uint32_t qpn = 0x100; qpn < 0x100 + 1600; ++qpn) {
    const auto label = flow_label_for(qpn, 0x77AB00 + qpn * 3);
    CHECK(label == flow_label_for(0x77AB00 + qpn * 3, qpn));
    CHECK(label != 0);
    CHECK(label <= 0xFFFFF);
    const auto port = udp_source_port_for(label);
    CHECK(port >= 0xC000);
    ++bins[port >> 10 & 15];
  }
  for (const auto count : bins) CHECK(count > 50);
}

TEST_CASE_METHOD(DatagramFixture, "a connection without a source port gets one from its flow label or its QPNs") {
  const auto qp = open(hw::QpType::kUc);
  CHECK(device.pairs.at(qp->qpn()).last_modify.udp_source_port == udp_source_port_for(flow_label_for(qp->qpn(), 0)));
  const auto other = make_qp(cq);
  umd::QpConnection connection;
  connection.path.flow_label = 0x54321;
  REQUIRE(other->connect(connection).ok());
  CHECK(device.pairs.at(other->qpn()).last_modify.udp_source_port == udp_source_port_for(0x54321));
}
