#include <catch2/catch.hpp>

#include <cstring>

#include "driver/umd/send_queue.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;

namespace {

struct SendFixture : DriverFixture {
  void open(umd::QueueCapacity capacity) {
    cq = make_cq(1000);
    qp = make_connected_qp(cq, capacity);
    device.doorbells.clear();
    device.window.clear();
  }
  std::size_t bells(std::uint32_t which) {
    std::size_t count = 0;
    for (const auto& write : device.doorbells) count += write.offset % 4096 == which;
    return count;
  }
  hw::WqeControl control(std::uint16_t index) {
    const auto wqe = device.send_wqe(qp->qpn(), index);
    return hw::WqeControl::decode(std::span<const std::uint8_t, 16>(wqe.data(), 16));
  }
  std::shared_ptr<umd::CompletionQueue> cq;
  std::shared_ptr<umd::QueuePair> qp;
};

umd::SendRequest silent(umd::SendRequest request) {
  request.silent = true;
  return request;
}
umd::SendRequest deferred(umd::SendRequest request) {
  request.defer = true;
  return request;
}

}  // namespace

TEST_CASE("strides hold the largest request that was granted") {
  using Q = umd::SendQueue;
  CHECK(Q::log_stride_for(1, 0) == 6);
  CHECK(Q::log_stride_for(2, 32) == 6);
  CHECK(Q::log_stride_for(3, 0) == 7);
  CHECK(Q::log_stride_for(4, 96) == 7);
  CHECK(Q::log_stride_for(4, 97) == 8);
  CHECK(Q::log_stride_for(4, 224) == 8);
  CHECK(Q::log_stride_for(16, 224) == 9);
  CHECK(umd::ReceiveQueue::log_stride_for(1) == 5);
  CHECK(umd::ReceiveQueue::log_stride_for(4) == 7);
  CHECK(umd::ReceiveQueue::log_stride_for(16) == 9);
}

TEST_CASE_METHOD(SendFixture, "a Write with segments") {
  open({8, 8, 4, 4, 64});
  const std::array<umd::Segment, 3> segments{{{0x1111, 10, 1}, {0x2222, 0, 2}, {0x3333, 30, 3}}};
  umd::SendRequest request{.opcode = hw::WqeOpcode::kWrite,
                           .id = 42,
                           .segments = segments,
                           .remote_address = 0xABCD'0000,
                           .remote_key = 0x55,
                           .silent = true,
                           .fence = true};
  REQUIRE(qp->post_send(request).ok());
  const auto wqe = device.send_wqe(qp->qpn(), 0);
  const std::span<const std::uint8_t> bytes(wqe);
  const auto head = hw::WqeControl::decode(bytes.first<16>());
  CHECK(head.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kWrite));
  CHECK(head.silent == 1);
  CHECK(head.fence == 1);
  CHECK(head.solicited == 0);
  CHECK(head.inline_data == 0);
  CHECK(head.wqe_index == 0);
  CHECK(head.qpn == qp->qpn());
  CHECK(head.size == 5);
  CHECK(head.length == 40);
  const auto remote = hw::WqeRemote::decode(bytes.subspan<16, 16>());
  CHECK(remote.va == 0xABCD'0000);
  CHECK(remote.rkey == 0x55);
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const auto data = hw::WqeData::decode(std::span<const std::uint8_t, 16>(wqe.data() + 32 + 16 * i, 16));
    CHECK(data.va == segments[i].address);
    CHECK(data.length == segments[i].length);
    CHECK(data.lkey == segments[i].key);
  }
}

TEST_CASE_METHOD(SendFixture, "a Send with inline data has no remote segment") {
  open({8, 8, 4, 4, 64});
  const char text[] = "seventeen bytes..";
  const umd::Segment segment{reinterpret_cast<std::uintptr_t>(text), 17, 0};
  REQUIRE(qp->post_send({.opcode = hw::WqeOpcode::kSend,
                         .segments = std::span(&segment, 1),
                         .solicited = true,
                         .inline_data = true})
              .ok());
  const auto wqe = device.send_wqe(qp->qpn(), 0);
  const auto head = control(0);
  CHECK(head.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kSend));
  CHECK(head.solicited == 1);
  CHECK(head.inline_data == 1);
  CHECK(head.size == 3);
  CHECK(head.length == 17);
  CHECK(std::memcmp(wqe.data() + 16, text, 17) == 0);
}

TEST_CASE_METHOD(SendFixture, "no segment at all is legal") {
  open({8, 8, 4, 4, 64});
  REQUIRE(qp->post_send({.opcode = hw::WqeOpcode::kRead}).ok());
  CHECK(control(0).size == 2);
  CHECK(control(0).length == 0);
}

TEST_CASE_METHOD(SendFixture, "an idle queue uses the window, whole and in order") {
  open({8, 8, 16, 4, 224});
  std::array<std::uint8_t, 224> payload;
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::uint8_t>(i + 1);
  const auto length = static_cast<std::uint32_t>(GENERATE(8, 32, 33, 224));
  const umd::Segment segment{reinterpret_cast<std::uintptr_t>(payload.data()), length, 0};
  REQUIRE(
      qp->post_send({.opcode = hw::WqeOpcode::kWrite, .segments = std::span(&segment, 1), .inline_data = true}).ok());
  const std::size_t bursts = (32 + length + 63) / 64;
  REQUIRE(device.window.size() == bursts);
  CHECK(bells(hw::uar::kSendDoorbell) == 0);
  const auto ring = device.send_wqe(qp->qpn(), 0);
  for (std::size_t i = 0; i < bursts; ++i) CHECK(std::memcmp(device.window[i].data(), ring.data() + 64 * i, 64) == 0);
}

TEST_CASE_METHOD(SendFixture, "a WQE beyond the window, or behind many others, takes the doorbell") {
  open({64, 8, 16, 4, 224});
  SECTION("too large") {
    const std::vector<umd::Segment> segments(15, umd::Segment{1, 1, 1});
    REQUIRE(qp->post_send({.opcode = hw::WqeOpcode::kWrite, .segments = segments}).ok());
    CHECK(device.window.empty());
    CHECK(bells(hw::uar::kSendDoorbell) == 1);
  }
  SECTION("busy queue") {
    for (int i = 0; i < 30; ++i) REQUIRE(qp->post_send(write_request(0)).ok());
    CHECK(device.window.size() == 8);
    CHECK(bells(hw::uar::kSendDoorbell) == 22);
    CHECK(device.pairs.at(qp->qpn()).sq_producer == 30);
    // Retired silently or reaped: idle again.
    for (int i = 0; i < 30; ++i) device.finish_send(qp->qpn());
    CHECK(drain(*cq).size() == 30);
    REQUIRE(qp->post_send(write_request(0)).ok());
    CHECK(device.window.size() == 9);
  }
}

TEST_CASE_METHOD(SendFixture, "deferred requests wait for one doorbell") {
  open({8, 8, 4, 4, 64});
  REQUIRE(qp->post_send(deferred(write_request(1))).ok());
  REQUIRE(qp->post_send(deferred(write_request(2))).ok());
  CHECK(device.doorbells.empty());
  CHECK(device.window.empty());
  SECTION("of a later request") {
    REQUIRE(qp->post_send(write_request(3)).ok());
    CHECK(device.window.empty());  // the window is for the next WQE to execute only
    CHECK(bells(hw::uar::kSendDoorbell) == 1);
    CHECK(device.pairs.at(qp->qpn()).sq_producer == 3);
  }
  SECTION("asked for") {
    qp->ring_deferred();
    qp->ring_deferred();
    CHECK(bells(hw::uar::kSendDoorbell) == 1);
    CHECK(device.pairs.at(qp->qpn()).sq_producer == 2);
  }
  SECTION("an inline failure rings it") {
    const std::vector<umd::Segment> segments(5, umd::Segment{1, 1, 1});
    CHECK(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = segments}).error() == Error::kTooManySegments);
    CHECK(device.pairs.at(qp->qpn()).sq_producer == 2);
  }
  SECTION("a flush rings it") {
    REQUIRE(qp->flush().ok());
    CHECK(drain(*cq).size() == 2);
  }
  SECTION("closing rings it") {
    REQUIRE(qp->close().ok());
    CHECK(drain(*cq).size() == 2);
  }
}

TEST_CASE_METHOD(SendFixture, "an atomic has one segment of 8 bytes, which is no inline data") {
  open({8, 8, 4, 4, 64});
  std::uint64_t value = 0;
  const std::uint64_t at = reinterpret_cast<std::uintptr_t>(&value);
  const std::array<umd::Segment, 2> halves{{{at, 4, 1}, {at + 4, 4, 1}}};
  const umd::Segment whole{at, 8, 1}, short_one{at, 4, 1};
  for (const auto opcode : {hw::WqeOpcode::kFetchAdd, hw::WqeOpcode::kCompareSwap}) {
    CHECK(qp->post_send({.opcode = opcode, .segments = halves}).error() == Error::kInvalidParameter);
    CHECK(qp->post_send({.opcode = opcode, .segments = std::span(&short_one, 1)}).error() == Error::kInvalidParameter);
    CHECK(qp->post_send({.opcode = opcode, .segments = std::span(&whole, 1), .inline_data = true}).error() ==
          Error::kInvalidParameter);
    CHECK(qp->post_send({.opcode = opcode, .segments = std::span(&whole, 1)}).ok());
  }
}

TEST_CASE_METHOD(SendFixture, "what a WQE does not use of its last line is zero, whatever was there before") {
  open({4, 4, 4, 4, 64});
  const std::vector<std::uint8_t> data(64, 0xEE);
  const umd::Segment segment{reinterpret_cast<std::uintptr_t>(data.data()), 40, 0};
  const auto post_inline = [&](std::uint32_t bytes) {
    umd::Segment part = segment;
    part.length = bytes;
    REQUIRE(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = std::span(&part, 1), .inline_data = true}).ok());
    device.finish_send(qp->qpn());
    std::array<umd::Completion, 1> completion;
    REQUIRE(cq->poll(completion) == 1);
  };
  std::uint16_t index = 0;
  // Every slot has been full once.
  for (; index < 64; ++index) post_inline(40);
  post_inline(1);
  const auto wqe = device.send_wqe(qp->qpn(), index);
  REQUIRE(wqe.size() >= 64);
  CHECK(wqe[16] == 0xEE);
  for (std::size_t i = 17; i < 64; ++i) CHECK(wqe[i] == 0);
}

TEST_CASE_METHOD(SendFixture, "limits are those granted, and a refusal changes nothing") {
  open({3, 8, 2, 4, 20});
  CHECK(qp->granted().send_segments == 4);
  const std::vector<umd::Segment> segments(5, umd::Segment{1, 1, 1});
  CHECK(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = segments}).error() == Error::kTooManySegments);
  const std::array<umd::Segment, 4> huge{{{0, 0x7FFFFFFF, 1}, {0, 0xFFFFFFFF, 1}, {0, 0xFFFFFFFF, 1}, {0, 2, 1}}};
  CHECK(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = huge}).error() == Error::kMessageTooLong);
  const std::array<umd::Segment, 2> exact{{{0, 0x7FFFFFFE, 1}, {0, 1, 1}}};
  CHECK(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = exact}).ok());
  std::array<std::uint8_t, 21> data{};
  umd::Segment segment{reinterpret_cast<std::uintptr_t>(data.data()), 21, 0};
  CHECK(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = std::span(&segment, 1), .inline_data = true})
            .error() == Error::kMessageTooLong);
  segment.length = 20;
  CHECK(qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = std::span(&segment, 1), .inline_data = true}).ok());
  CHECK(qp->post_send(write_request(1)).ok());
  CHECK(qp->post_send(write_request(1)).error() == Error::kQueueFull);
  CHECK(device.pairs.at(qp->qpn()).sq_producer == 3);
}

TEST_CASE_METHOD(SendFixture, "ids and kinds survive many wraps of ring and index") {
  open({5, 8, 4, 4, 64});
  std::mt19937 random(7);
  std::uint64_t posted = 0;
  std::uint64_t finished = 0;
  std::uint64_t reaped = 0;
  const std::array opcodes{hw::WqeOpcode::kSend, hw::WqeOpcode::kWrite, hw::WqeOpcode::kRead};
  const std::array kinds{umd::RequestKind::kSend, umd::RequestKind::kWrite, umd::RequestKind::kRead};
  while (reaped < 200'000) {
    if (random() % 2 != 0) {
      auto request = write_request(posted);
      request.opcode = opcodes[posted % 3];
      auto done = qp->post_send(request);
      REQUIRE(done.ok() == (posted - finished < 5));
      posted += done.ok();
    }
    if (random() % 2 != 0 && finished < posted && finished - reaped < 500) {
      device.finish_send(qp->qpn());
      ++finished;
    }
    if (random() % 16 == 0) {
      for (const auto& completion : drain(*cq)) {
        REQUIRE(completion.id == reaped);
        REQUIRE(completion.kind == kinds[reaped % 3]);
        REQUIRE(completion.qp_context == static_cast<DriverFixture*>(this));
        ++reaped;
      }
      REQUIRE(reaped == finished);
    }
  }
}

TEST_CASE_METHOD(SendFixture, "a slot is free when its request has retired, reaped or not") {
  open({4, 8, 4, 4, 64});
  for (std::uint64_t id = 0; id < 400; ++id) {
    REQUIRE(qp->post_send(write_request(id)).ok());
    device.finish_send(qp->qpn());
  }
  const auto all = drain(*cq);
  REQUIRE(all.size() == 400);
  for (std::uint64_t id = 0; id < 400; ++id) CHECK(all[id].id == id);
}

TEST_CASE_METHOD(SendFixture, "silent requests free their slots by the retired index of a later CQE") {
  open({4, 8, 4, 4, 64});
  for (std::uint64_t round = 0; round < 40'000; ++round) {
    for (int i = 0; i < 3; ++i) REQUIRE(qp->post_send(silent(write_request(0))).ok());
    REQUIRE(qp->post_send(write_request(round)).ok());
    REQUIRE(qp->post_send(write_request(0)).error() == Error::kQueueFull);
    device.finish_silently(qp->qpn(), 3);
    device.finish_send(qp->qpn());
    const auto got = drain(*cq);
    REQUIRE(got.size() == 1);
    REQUIRE(got[0].id == round);
  }
}

TEST_CASE_METHOD(SendFixture, "silent requests free their slots by the retired record") {
  open({4, 8, 4, 4, 64});
  for (int round = 0; round < 40'000; ++round) {
    for (int i = 0; i < 4; ++i) REQUIRE(qp->post_send(silent(write_request(0))).ok());
    REQUIRE(qp->post_send(silent(write_request(0))).error() == Error::kQueueFull);
    device.finish_silently(qp->qpn(), 4);
    device.write_retired_record(qp->qpn());
    REQUIRE(qp->post_send(silent(write_request(0))).ok());
    device.finish_silently(qp->qpn(), 1);
    device.write_retired_record(qp->qpn());
  }
  CHECK(drain(*cq).empty());
}

TEST_CASE_METHOD(SendFixture, "the retired record frees no slot whose CQE has not been seen") {
  open({2, 8, 4, 4, 64});
  REQUIRE(qp->post_send(write_request(1)).ok());
  REQUIRE(qp->post_send(silent(write_request(2))).ok());
  // The record overtakes the CQE of request 1.
  device.finish_silently(qp->qpn(), 2);
  device.write_retired_record(qp->qpn());
  CHECK(qp->post_send(write_request(3)).error() == Error::kQueueFull);
  hw::Cqe cqe;
  cqe.qpn = qp->qpn();
  cqe.wqe_index = 0;
  cqe.retired_index = 1;
  device.write_cqe(cq->cqn(), cqe);
  CHECK(qp->post_send(write_request(3)).ok());
  CHECK(qp->post_send(write_request(4)).ok());
  const auto got = drain(*cq);
  REQUIRE(got.size() == 1);
  CHECK(got[0].id == 1);
}

TEST_CASE_METHOD(SendFixture, "an old retired record is not taken for a new one when the index has wrapped") {
  open({16, 8, 4, 4, 64});
  // The record says 6; then CQEs alone report progress until the index is just short of 6 again.
  for (int i = 0; i < 6; ++i) REQUIRE(qp->post_send(silent(write_request(0))).ok());
  device.finish_silently(qp->qpn(), 6);
  device.write_retired_record(qp->qpn());
  for (int i = 6; i < 65536; ++i) {
    REQUIRE(qp->post_send(write_request(0)).ok());
    device.finish_send(qp->qpn());
    if (i % 100 == 0) drain(*cq);
  }
  drain(*cq);
  for (int i = 0; i < 16; ++i) REQUIRE(qp->post_send(silent(write_request(0))).ok());
  CHECK(qp->post_send(silent(write_request(0))).error() == Error::kQueueFull);
}

TEST_CASE_METHOD(SendFixture, "a silent request that fails makes a completion") {
  open({4, 8, 4, 4, 64});
  REQUIRE(qp->post_send(silent(write_request(1))).ok());
  REQUIRE(qp->post_send(silent(write_request(2))).ok());
  device.finish_silently(qp->qpn(), 1);
  device.finish_send(qp->qpn(), hw::CqeStatus::kRemAccessErr);
  const auto got = drain(*cq);
  REQUIRE(got.size() == 1);
  CHECK(got[0].id == 2);
  CHECK(got[0].status == hw::CqeStatus::kRemAccessErr);
}

TEST_CASE_METHOD(SendFixture, "the deepest queue holds its depth") {
  open({32768, 8, 4, 4, 0});
  for (int i = 0; i < 32768; ++i) REQUIRE(qp->post_send(silent(write_request(0))).ok());
  CHECK(qp->post_send(silent(write_request(0))).error() == Error::kQueueFull);
  device.finish_silently(qp->qpn(), 32768);
  device.write_retired_record(qp->qpn());
  for (int i = 0; i < 32768; ++i) REQUIRE(qp->post_send(silent(write_request(0))).ok());
  CHECK(qp->post_send(silent(write_request(0))).error() == Error::kQueueFull);
}

TEST_CASE("lists are posted under one lock with one doorbell, up to the first that is refused") {
  DriverFixture fixture;
  auto cq = fixture.make_cq();
  auto qp = fixture.make_connected_qp(cq);
  const auto list = [](std::uint64_t first, std::size_t count) {
    std::vector<umd::SendRequest> requests;
    for (std::size_t i = 0; i < count; ++i) requests.push_back(DriverFixture::write_request(first + i));
    return requests;
  };
  std::size_t posted = 99;
  fixture.device.doorbells.clear();
  REQUIRE(qp->post_sends(list(0, 5), posted).ok());
  CHECK(posted == 5);
  REQUIRE(fixture.device.doorbells.size() == 1);
  CHECK(fixture.device.pairs.at(qp->qpn()).sq_producer == 5);
  // A bad one in the middle: those before it are on their way.
  auto bad = list(5, 3);
  bad[1].inline_data = true;
  const std::vector<umd::Segment> long_one(1, {.address = 0, .length = 1000, .key = 1});
  bad[1].segments = long_one;
  CHECK(qp->post_sends(bad, posted).error() == Error::kMessageTooLong);
  CHECK(posted == 1);
  CHECK(fixture.device.pairs.at(qp->qpn()).sq_producer == 6);
  CHECK(qp->post_sends(list(6, 4), posted).error() == Error::kQueueFull);
  CHECK(posted == 2);
  CHECK(fixture.device.pairs.at(qp->qpn()).sq_producer == 8);
  // Completions that nobody has polled make room in the middle of a list.
  for (int i = 0; i < 3; ++i) fixture.device.finish_send(qp->qpn());
  CHECK(qp->post_sends(list(8, 3), posted).ok());
  CHECK(posted == 3);
  for (int i = 0; i < 8; ++i) fixture.device.finish_send(qp->qpn());
  const auto done = fixture.drain(*cq);
  REQUIRE(done.size() == 11);
  for (std::uint64_t i = 0; i < done.size(); ++i) CHECK(done[i].id == i);

  fixture.device.doorbells.clear();
  const std::vector<umd::ReceiveRequest> receives(9, {.id = 4});
  CHECK(qp->post_receives(receives, posted).error() == Error::kQueueFull);
  CHECK(posted == 8);
  CHECK(fixture.device.doorbells.size() == 1);
  CHECK(fixture.device.pairs.at(qp->qpn()).rq_producer == 8);
}

TEST_CASE("behind a reset the retired record counts from the beginning") {
  DriverFixture fixture;
  const auto cq = fixture.make_cq();
  const auto qp = fixture.make_connected_qp(cq);
  REQUIRE(qp != nullptr);
  const auto post = [&](std::uint64_t id) {
    auto request = DriverFixture::write_request(id);
    request.silent = true;
    return qp->post_send(request);
  };
  for (const bool again : {false, true}) {
    CAPTURE(again);
    if (again) {
      REQUIRE(qp->modify(hw::QpState::kReset, 0, {}).ok());
      REQUIRE(qp->to_idle({}).ok());
      REQUIRE(qp->connect({}).ok());
    }
    for (std::uint64_t id = 0; id < 8; ++id) REQUIRE(post(id).ok());
    CHECK(post(8).error() == Error::kQueueFull);
    fixture.device.finish_silently(qp->qpn(), 8);
    fixture.device.write_retired_record(qp->qpn());  // the same number in both lives
    CHECK(post(8).ok());
  }
}
