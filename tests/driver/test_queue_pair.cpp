#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <thread>

#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;

namespace {

struct PairFixture : DriverFixture {
  PairFixture() : cq(make_cq(100)), qp(make_qp(cq)) {}
  test::FakeDevice::Pair& hardware() { return device.pairs.at(qp->qpn()); }
  std::shared_ptr<umd::CompletionQueue> cq;
  std::shared_ptr<umd::QueuePair> qp;
};

}  // namespace

TEST_CASE_METHOD(PairFixture, "creation tells the device the layout") {
  const auto& create = hardware().create;
  CHECK(create.pd == process->pd_number());
  CHECK(create.uar == process->uar());
  CHECK(create.send_cqn == cq->cqn());
  CHECK(create.receive_cqn == cq->cqn());
  CHECK(create.sq_log_depth == 3);
  CHECK(create.rq_log_depth == 3);
  CHECK(create.sq_log_stride == 7);
  CHECK(create.rq_log_stride == 7);
  CHECK(create.sq_base % 4096 == 0);
  CHECK(create.rq_base % 4096 == 0);
  CHECK(create.retired_address % 8 == 0);
  CHECK(hardware().state == hw::QpState::kInit);
}

TEST_CASE_METHOD(PairFixture, "connecting sends path and attributes in every step") {
  umd::QpConnection connection;
  connection.path.sgid_index =
      kernel->port_tables().add_gid({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1}).take();
  connection.path.dest_gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 2};
  connection.path.dest_mac = 0x0200'0000'0002;
  connection.path.udp_source_port = 0xC123;
  connection.dest_qpn = 0xABCDEF;
  connection.send_psn = 0x111111;
  connection.receive_psn = 0x222222;
  connection.path_mtu = 3;
  connection.inbound_reads = 4;
  connection.outbound_reads = 5;
  connection.rnr_retry = 7;
  CHECK(qp->post_send(write_request(1)).error() == Error::kInvalidState);
  REQUIRE(qp->to_ready(connection).ok());
  CHECK(qp->state() == umd::QueuePair::State::kReady);
  CHECK(qp->post_send(write_request(1)).error() == Error::kInvalidState);
  REQUIRE(qp->to_connected(connection).ok());
  CHECK(qp->state() == umd::QueuePair::State::kConnected);
  const auto& body = hardware().last_modify;
  CHECK(hardware().state == hw::QpState::kRts);
  CHECK(body.dest_qpn == 0xABCDEF);
  CHECK(body.sq_psn == 0x111111);
  CHECK(body.rq_psn == 0x222222);
  CHECK(body.path_mtu == 3);
  CHECK(body.max_dest_rd_atomic == 4);
  CHECK(body.max_rd_atomic == 5);
  CHECK(body.rnr_retry == 7);
  CHECK(body.dest_mac == 0x0200'0000'0002);
  CHECK(body.source_ip[15] == 1);
  CHECK(body.dest_ip == connection.path.dest_gid);
  CHECK(body.udp_source_port == 0xC123);
  CHECK(body.pkey == 0xFFFF);
  CHECK(body.remote_write == 1);
  CHECK(body.remote_read == 1);
  CHECK(qp->post_send(write_request(1)).ok());
  CHECK(qp->to_ready(connection).error() == Error::kInvalidState);
  CHECK(qp->to_connected(connection).error() == Error::kInvalidState);
}

TEST_CASE_METHOD(PairFixture, "a step that the device refuses changes nothing") {
  device.next_status.push_back(hw::AdminStatus::kBadParameter);
  CHECK(qp->connect({}).error() == Error::kInvalidParameter);
  CHECK(qp->state() == umd::QueuePair::State::kIdle);
  CHECK(qp->connect({}).ok());
}

TEST_CASE_METHOD(PairFixture, "flushing an idle queue pair cancels its receives and keeps it usable") {
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t id = 0; id < 5; ++id) REQUIRE(qp->post_receive({.id = id}).ok());
    REQUIRE(qp->flush().ok());
    CHECK(hardware().state == hw::QpState::kInit);
    const auto got = drain(*cq);
    REQUIRE(got.size() == 5);
    for (std::uint64_t id = 0; id < 5; ++id) {
      CHECK(got[id].id == id);
      CHECK(got[id].status == hw::CqeStatus::kWrFlushErr);
    }
  }
  REQUIRE(qp->post_receive({.id = 77}).ok());
  CHECK(hardware().rq_producer == 1);  // the device's indexes began anew
  REQUIRE(qp->connect({}).ok());
  device.finish_receive(qp->qpn(), 12);
  const auto got = drain(*cq);
  REQUIRE(got.size() == 1);
  CHECK(got[0].id == 77);
}

TEST_CASE_METHOD(PairFixture, "a receive posted in the middle of a flush waits for nobody, and stands behind it") {
  // Places of the ring that the next ones follow are anywhere.
  for (const std::uint64_t flushed : {1, 3, 8}) {
    for (std::uint64_t id = 0; id < flushed; ++id) REQUIRE(qp->post_receive({.id = id}).ok());
    std::uint64_t posted = 0;
    bool begun = false;
    device.on_time = [&] {
      if (begun || hardware().state != hw::QpState::kReset) return;
      begun = true;  // posting takes time, too
      while (qp->post_receive({.id = 100 + posted}).ok()) ++posted;
      CHECK(hardware().rq_producer == 0);  // the device is not told
    };
    REQUIRE(qp->flush().ok());
    device.on_time = nullptr;
    REQUIRE(posted > 0);
    CHECK(hardware().rq_producer == posted);
    for (std::uint64_t i = 0; i < posted; ++i) device.finish_receive(qp->qpn(), 5);
    const auto got = drain(*cq);
    REQUIRE(got.size() == flushed + posted);
    for (std::uint64_t i = 0; i < got.size(); ++i) CHECK(got[i].id == (i < flushed ? i : 100 + i - flushed));
  }
}

TEST_CASE_METHOD(PairFixture, "a flush that fails leaves the receives in place") {
  REQUIRE(qp->post_receive({.id = 1}).ok());
  device.next_status.push_back(hw::AdminStatus::kBadState);
  CHECK(qp->flush().error() == Error::kInvalidState);
  REQUIRE(qp->post_receive({.id = 2}).ok());
  CHECK(hardware().rq_producer == 2);
}

TEST_CASE_METHOD(PairFixture,
                 "flushing a connected queue pair moves it to the error state; later requests are flushed") {
  REQUIRE(qp->connect({}).ok());
  REQUIRE(qp->post_receive({.id = 1}).ok());
  REQUIRE(qp->post_send(write_request(2)).ok());
  REQUIRE(qp->flush().ok());
  CHECK(hardware().state == hw::QpState::kErr);
  CHECK(drain(*cq).size() == 2);
  CHECK(qp->post_send(write_request(3)).ok());
  CHECK(qp->post_receive({.id = 4}).ok());
  const auto got = drain(*cq);
  REQUIRE(got.size() == 2);
  CHECK(got[0].status == hw::CqeStatus::kWrFlushErr);
  CHECK(got[1].status == hw::CqeStatus::kWrFlushErr);
}

TEST_CASE_METHOD(PairFixture, "nothing is posted to a closed queue pair") {
  REQUIRE(qp->connect({}).ok());
  REQUIRE(qp->close().ok());
  CHECK(qp->post_send(write_request(1)).error() == Error::kInvalidState);
  CHECK(qp->post_receive({.id = 1}).error() == Error::kInvalidState);
  CHECK(qp->flush().error() == Error::kInvalidState);
  CHECK(qp->close().ok());
  CHECK(device.pairs.empty());
}

TEST_CASE_METHOD(PairFixture, "a fatal event is remembered") {
  CHECK_FALSE(qp->failed());
  device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kQpFatal), .number = qp->qpn()});
  kernel->node().takers().take_events();
  CHECK(qp->failed());
}

TEST_CASE_METHOD(PairFixture, "receive WQEs") {
  const std::array<umd::Segment, 2> segments{{{0x1111, 10, 1}, {0x2222, 20, 2}}};
  REQUIRE(qp->post_receive({.id = 1}).ok());
  REQUIRE(qp->post_receive({.id = 2, .segments = segments, .defer = true}).ok());
  CHECK(hardware().rq_producer == 1);
  qp->ring_deferred();
  CHECK(hardware().rq_producer == 2);
  const auto wqe = device.receive_wqe(qp->qpn(), 1);
  const auto head = hw::WqeReceive::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16));
  CHECK(head.sge_count == 2);
  CHECK(head.wqe_index == 1);
  const auto data = hw::WqeData::decode(std::span<const std::uint8_t, 16>(wqe.data() + 32, 16));
  CHECK(data.va == 0x2222);
  CHECK(data.length == 20);
  CHECK(data.lkey == 2);
  const std::vector<umd::Segment> many(5, umd::Segment{1, 1, 1});
  CHECK(qp->post_receive({.id = 3, .segments = many}).error() == Error::kTooManySegments);
  const std::array<umd::Segment, 2> huge{{{0, 0xFFFFFFFF, 1}, {0, 1, 1}}};
  CHECK(qp->post_receive({.id = 3, .segments = huge}).error() == Error::kMessageTooLong);
}

TEST_CASE_METHOD(PairFixture, "everything is given back") {
  qp.reset();
  cq.reset();
  CHECK(device.pairs.empty());
  CHECK(device.completion_queues.empty());
  process.reset();
  kernel.reset();
  CHECK(device.live_allocations() == 0);
}

TEST_CASE("capacities beyond the limits are refused") {
  DriverFixture fixture;
  auto cq = fixture.make_cq();
  const auto create = [&](umd::QueueCapacity capacity) {
    return umd::QueuePair::create_idle(fixture.process, {.send_cq = cq, .receive_cq = cq, .capacity = capacity}).ok();
  };
  CHECK(create({32768, 32768, 16, 16, 224}));
  CHECK_FALSE(create({32769, 1, 1, 1, 0}));
  CHECK_FALSE(create({1, 32769, 1, 1, 0}));
  CHECK_FALSE(create({1, 1, 17, 1, 0}));
  CHECK_FALSE(create({1, 1, 1, 17, 0}));
  CHECK_FALSE(create({1, 1, 1, 1, 225}));
}
