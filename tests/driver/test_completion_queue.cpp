#include <catch2/catch.hpp>

#include "driver/costs.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;

namespace {

struct CqFixture : DriverFixture {
  CqFixture() : cq(make_cq(10)), qp(make_connected_qp(cq, {16, 16, 4, 4, 0})) { device.doorbells.clear(); }
  std::vector<hw::CqDoorbell> cq_bells() {
    std::vector<hw::CqDoorbell> bells;
    for (const auto& write : device.doorbells) {
      if (write.offset % 4096 == hw::uar::kCqDoorbell) bells.push_back(hw::CqDoorbell::from_word(write.value));
    }
    return bells;
  }
  Result<void> receive(std::uint64_t id) { return qp->post_receive({.id = id}); }
  std::shared_ptr<umd::CompletionQueue> cq;
  std::shared_ptr<umd::QueuePair> qp;
};

}  // namespace

TEST_CASE_METHOD(CqFixture, "a queue gets at least eight entries more than asked") {
  CHECK(cq->depth() == 32);
  CHECK(make_cq(8)->depth() == 16);
  CHECK(make_cq(1)->depth() == 16);
  CHECK(make_cq(9)->depth() == 32);
  CHECK(umd::CompletionQueue::max_entries(kernel->limits()) == (1U << 20) - 8);
  CHECK(umd::CompletionQueue::create(process, (1U << 20) - 7).error() == Error::kInvalidParameter);
  CHECK(umd::CompletionQueue::create(process, 0).error() == Error::kInvalidParameter);
  CHECK(make_cq((1U << 20) - 8)->depth() == 1U << 20);
}

TEST_CASE_METHOD(CqFixture, "entries come out in order across wraps; the consumer index follows") {
  std::mt19937 random(3);
  std::uint64_t posted = 0;
  std::uint64_t finished = 0;
  std::uint64_t reaped = 0;
  std::array<umd::Completion, 5> batch;
  while (reaped < 100'000) {
    if (random() % 2 != 0 && receive(posted).ok()) ++posted;
    if (random() % 2 != 0 && finished < posted && finished - reaped < 32) {
      device.finish_receive(qp->qpn(), static_cast<std::uint32_t>(finished));
      ++finished;
    }
    if (random() % 8 == 0) {
      const std::size_t wanted = random() % 6;
      const std::size_t got = cq->poll(std::span(batch).first(wanted));
      REQUIRE(got == std::min<std::uint64_t>(wanted, finished - reaped));
      for (std::size_t i = 0; i < got; ++i, ++reaped) {
        REQUIRE(batch[i].id == reaped);
        REQUIRE(batch[i].byte_count == static_cast<std::uint32_t>(reaped));
        REQUIRE(batch[i].kind == umd::RequestKind::kReceive);
      }
      REQUIRE(device.completion_queues.at(cq->cqn()).consumed == (reaped & 0xFFFFFF));
    }
  }
}

TEST_CASE_METHOD(CqFixture, "only a poll that took something rings, once") {
  std::array<umd::Completion, 8> batch;
  CHECK(cq->poll(batch) == 0);
  CHECK(cq_bells().empty());
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(receive(i).ok());
    device.finish_receive(qp->qpn(), 0);
  }
  CHECK(cq->poll(batch) == 3);
  REQUIRE(cq_bells().size() == 1);
  CHECK(cq_bells()[0].consumer_index == 3);
  CHECK(cq_bells()[0].arm == static_cast<std::uint8_t>(hw::CqArm::kNone));
}

TEST_CASE_METHOD(CqFixture, "decoding for a full queue keeps the consumer index") {
  for (std::uint64_t i = 0; i < 16; ++i) REQUIRE(receive(i).ok());
  CHECK(receive(99).error() == Error::kQueueFull);
  for (int i = 0; i < 4; ++i) device.finish_receive(qp->qpn(), 0);
  for (std::uint64_t i = 16; i < 20; ++i) REQUIRE(receive(i).ok());
  CHECK(receive(99).error() == Error::kQueueFull);
  CHECK(cq_bells().empty());
  CHECK(device.completion_queues.at(cq->cqn()).consumed == 0);
  const auto got = drain(*cq);
  REQUIRE(got.size() == 4);
  CHECK(got[3].id == 3);
  CHECK(device.completion_queues.at(cq->cqn()).consumed == 4);
}

TEST_CASE_METHOD(CqFixture, "an exactly full ring is read once, not twice") {
  for (std::uint64_t i = 0; i < 16; ++i) {
    REQUIRE(receive(i).ok());
    REQUIRE(qp->post_send(write_request(100 + i)).ok());
  }
  for (int i = 0; i < 16; ++i) {
    device.finish_receive(qp->qpn(), 0);
    device.finish_send(qp->qpn());
  }
  cq->decode();
  cq->decode();
  CHECK(drain(*cq).size() == 32);
  CHECK(drain(*cq).empty());
}

TEST_CASE_METHOD(CqFixture, "arming tells kind and consumer index") {
  REQUIRE(receive(1).ok());
  device.finish_receive(qp->qpn(), 0);
  CHECK(drain(*cq).size() == 1);
  cq->arm(hw::CqArm::kSolicited);
  REQUIRE(cq_bells().size() == 2);
  CHECK(cq_bells()[1].arm == static_cast<std::uint8_t>(hw::CqArm::kSolicited));
  CHECK(cq_bells()[1].consumer_index == 1);
  CHECK(cq_bells()[1].cqn == cq->cqn());
}

TEST_CASE_METHOD(CqFixture, "entries that fit no request are dropped, and their place is given back") {
  hw::Cqe stray;
  stray.qpn = 0x123456;
  device.write_cqe(cq->cqn(), stray);
  stray.qpn = qp->qpn();
  stray.wqe_index = 9;  // nothing posted there
  device.write_cqe(cq->cqn(), stray);
  stray.is_receive = 1;
  device.write_cqe(cq->cqn(), stray);
  REQUIRE(receive(5).ok());
  device.finish_receive(qp->qpn(), 1);
  const auto got = drain(*cq);
  REQUIRE(got.size() == 1);
  CHECK(got[0].id == 5);
  CHECK(device.completion_queues.at(cq->cqn()).consumed == 4);
  // And the device is told on.
  using enum DeviceOddity;
  const std::vector<std::pair<DeviceOddity, std::uint32_t>> told{
      {kUnknownCompletion, 0x123456}, {kUnknownCompletion, qp->qpn()}, {kUnknownCompletion, qp->qpn()}};
  CHECK(device.oddities == told);
}

TEST_CASE_METHOD(CqFixture, "completions of a queue pair that is gone still come out") {
  REQUIRE(receive(1).ok());
  REQUIRE(qp->post_send(write_request(2)).ok());
  const std::uint32_t qpn = qp->qpn();
  qp.reset();
  const auto got = drain(*cq);
  REQUIRE(got.size() == 2);
  for (const auto& completion : got) {
    CHECK(completion.status == hw::CqeStatus::kWrFlushErr);
    CHECK(completion.qpn == qpn);
    CHECK(completion.qp_context == static_cast<DriverFixture*>(this));
  }
}

TEST_CASE_METHOD(CqFixture, "calls cost their stated time") {
  const auto start = device.now_ns();
  std::array<umd::Completion, 1> one;
  CHECK(cq->poll(one) == 0);
  CHECK(device.now_ns() - start == cost::kPollNs);
  REQUIRE(receive(1).ok());
  CHECK(device.now_ns() - start == cost::kPollNs + cost::kPostReceiveNs);
  device.finish_receive(qp->qpn(), 0);
  CHECK(cq->poll(one) == 1);
  CHECK(device.now_ns() - start == 2 * cost::kPollNs + cost::kPollEntryNs + cost::kPostReceiveNs);
}

TEST_CASE_METHOD(CqFixture,
                 "the ring is replaced among entries: none is lost, doubled or out of order (decisions 28)") {
  std::mt19937 random(7);
  std::uint64_t posted = 0, finished = 0, reaped = 0;
  unsigned resizes = 0, refused = 0;
  std::array<umd::Completion, 32> batch;
  const auto live = device.live_allocations();
  // Entries may still be on their way, to the old ring, when the device has answered.
  device.on_time = [&] {
    if (random() % 2 != 0) device.release_cqes();
  };
  device.cqes_late = true;
  while (reaped < 20'000) {
    if (random() % 2 != 0 && receive(posted).ok()) ++posted;
    if (random() % 2 != 0 && finished < posted && finished - reaped < 15) {
      device.finish_receive(qp->qpn(), static_cast<std::uint32_t>(finished++));
    }
    if (random() % 16 == 0) {
      const auto entries = static_cast<std::uint32_t>(1 + random() % 40);
      const auto done = cq->resize(entries);
      ++(done.ok() ? resizes : refused);
      if (done.ok())
        CHECK(cq->depth() == std::bit_ceil(entries + 8));
      else
        CHECK(done.error() == Error::kTooSmall);
    }
    if (random() % 6 == 0) {
      const std::size_t got = cq->poll(std::span(batch).first(random() % 33));
      for (std::size_t i = 0; i < got; ++i, ++reaped) {
        REQUIRE(batch[i].id == reaped);
        REQUIRE(batch[i].byte_count == static_cast<std::uint32_t>(reaped));
      }
    }
  }
  device.on_time = nullptr;
  CHECK(resizes > 500);
  CHECK(refused > 50);
  CHECK(device.live_allocations() == live + 1);  // the ring before, which the device might still write
}

TEST_CASE_METHOD(CqFixture, "a ring that cannot be replaced") {
  CHECK(cq->resize(0).error() == Error::kInvalidParameter);
  CHECK(cq->resize((1U << 20) - 7).error() == Error::kInvalidParameter);
  // An entry that never comes: the old ring stays, and the new one is not given back, for the device writes to it.
  device.cqes_late = true;
  REQUIRE(receive(1).ok());
  device.finish_receive(qp->qpn(), 1);
  const auto live = device.live_allocations();
  CHECK(cq->resize(50).error() == Error::kTimeout);
  CHECK(device.live_allocations() == live + 1);
  device.release_cqes();
  CHECK(drain(*cq).size() == 1);
}

TEST_CASE_METHOD(CqFixture, "moderation is the device's affair") {
  REQUIRE(cq->moderate(7, 50).ok());
  CHECK(device.completion_queues.at(cq->cqn()).moderation.count == 7);
  CHECK(device.completion_queues.at(cq->cqn()).moderation.period == 50);
  device.next_status.push_back(hw::AdminStatus::kBadParameter);
  CHECK(cq->moderate(1, 1).error() == Error::kInvalidParameter);
}
