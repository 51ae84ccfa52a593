#include <catch2/catch.hpp>

#include <set>

#include "driver/costs.hpp"
#include "driver/kmd/kernel_cq.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/kernel_srq.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;
using test::FakeDevice;

namespace {

Error open_error(FakeDevice& device) {
  auto kernel = kmd::KernelDevice::open(device);
  REQUIRE_FALSE(kernel.ok());
  return kernel.error();
}

struct KernelDeviceSink final : EventSink {
  void on_event(const hw::Eqe& eqe) override { events.push_back(eqe); }
  std::vector<hw::Eqe> events;
};

}  // namespace

TEST_CASE("bring-up finds blocks by their headers, not by their offsets") {
  FakeDevice device;
  // The port block moves; its registers move with it.
  constexpr std::uint64_t kMoved = 0x300;
  auto header = hw::RegAdminHeader::from_word(device.registers[hw::reg::kAdminHeader]);
  header.next_offset = kMoved;
  device.registers[hw::reg::kAdminHeader] = header.word();
  device.registers[kMoved] = device.registers[hw::reg::kPortHeader];
  auto kernel = kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0001, .event_queues = 1});
  REQUIRE(kernel.ok());
  CHECK(device.registers[kMoved + 8] == 0x0200'0000'0001);
  CHECK((*kernel)->mac() == 0x0200'0000'0001);
  CHECK((*kernel)->limits().max_qp == 254);
  CHECK((*kernel)->limits().max_inline == 224);
  CHECK(device.registers[hw::reg::kDeviceControl] == 1);
  kernel.take().reset();
  CHECK(device.registers[hw::reg::kDeviceControl] == 0);
  CHECK(device.live_allocations() == 0);
}

TEST_CASE("bring-up refuses what it does not know") {
  FakeDevice device;
  SECTION("nothing there") {
    device.gone = true;
    CHECK(open_error(device) == Error::kDeviceNotFound);
  }
  SECTION("other magic") {
    device.registers[hw::reg::kIdentity] ^= 1;
    CHECK(open_error(device) == Error::kDeviceNotFound);
  }
  SECTION("newer admin block") {
    auto header = hw::RegAdminHeader::from_word(device.registers[hw::reg::kAdminHeader]);
    header.version = 2;
    device.registers[hw::reg::kAdminHeader] = header.word();
    CHECK(open_error(device) == Error::kVersionMismatch);
  }
  SECTION("chain without a port block") {
    auto header = hw::RegAdminHeader::from_word(device.registers[hw::reg::kAdminHeader]);
    header.next_offset = hw::reg::kMsixHeader;
    device.registers[hw::reg::kAdminHeader] = header.word();
    CHECK(open_error(device) == Error::kDeviceNotFound);
  }
  SECTION("chain that loops") {
    auto header = hw::RegAdminHeader::from_word(device.registers[hw::reg::kAdminHeader]);
    header.next_offset = hw::reg::kAdminHeader;
    device.registers[hw::reg::kAdminHeader] = header.word();
    CHECK(open_error(device) == Error::kDeviceNotFound);
  }
  SECTION("block of an unknown type is stepped over") {
    auto header = hw::RegAdminHeader::from_word(device.registers[hw::reg::kAdminHeader]);
    const hw::RegAdminHeader strange{.block_type = 77, .version = 9, .next_offset = header.next_offset};
    device.registers[0x700] = strange.word();
    header.next_offset = 0x700;
    device.registers[hw::reg::kAdminHeader] = header.word();
    CHECK(kmd::KernelDevice::open(device).ok());
  }
  SECTION("never ready") {
    device.registers[hw::reg::kDeviceStatus] = 0;
    CHECK(open_error(device) == Error::kTimeout);
  }
  SECTION("fatal") {
    device.registers[hw::reg::kDeviceStatus] = hw::RegDeviceStatus{.ready = 1, .fatal = 1}.word();
    CHECK(open_error(device) == Error::kDeviceFailed);
  }
  SECTION("no memory") {
    device.dma_allocations_left = GENERATE(0U, 1U, 2U);
    CHECK(open_error(device) == Error::kOutOfMemory);
    CHECK(device.live_allocations() == 0);
  }
}

TEST_CASE("event queues have their MSI-X entries") {
  FakeDevice device;
  auto kernel = kmd::KernelDevice::open(device, {.mac = 0, .event_queues = 3});
  REQUIRE(kernel.ok());
  REQUIRE(device.event_queues.size() == 3);
  for (std::uint32_t vector = 0; vector < 3; ++vector) {
    CHECK(device.event_queues.at(vector).vector == vector);
    CHECK(device.registers[hw::reg::kMsixTable + 16 * vector] == 0xFEE0'0000);
    CHECK(device.registers[hw::reg::kMsixTable + 16 * vector + 8] == 0x40 + vector);  // not masked
  }
}

TEST_CASE("admin ring wraps and keeps its phase") {
  DriverFixture fixture;
  auto& admin = fixture.kernel->admin();
  for (int i = 0; i < 1000; ++i) {
    auto reply = admin.execute(hw::AdminOpcode::kQueryCapabilities, 0, kmd::AdminQueue::Body{});
    REQUIRE(reply.ok());
    REQUIRE(hw::AdminCapabilities::decode(*reply).max_sge == hw::kMaxSge);
  }
  CHECK(fixture.device.commands.size() == 1000);
}

TEST_CASE("many commands in one call: more than the ring holds, each with its own answer") {
  DriverFixture fixture;
  auto& admin = fixture.kernel->admin();
  constexpr std::size_t kCount = 100;
  std::vector<kmd::AdminQueue::Command> commands(kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    commands[i].opcode = i % 7 == 3 ? hw::AdminOpcode::kDestroyCq : hw::AdminOpcode::kQueryCapabilities;
    commands[i].number = static_cast<std::uint32_t>(i);
    fixture.device.next_status.push_back(i % 7 == 3 ? hw::AdminStatus::kBadNumber : hw::AdminStatus::kSuccess);
  }
  std::vector<Result<kmd::AdminQueue::Reply>> answers(kCount, Error::kTimeout);
  const auto start = fixture.device.now_ns();
  admin.execute(commands, answers);
  for (std::size_t i = 0; i < kCount; ++i) {
    INFO("command " << i);
    REQUIRE(answers[i].ok() == (i % 7 != 3));
    if (!answers[i].ok()) CHECK(answers[i].error() == Error::kNotFound);
  }
  CHECK(fixture.device.commands.size() == kCount);
  // One look at the ring for each time that it was full.
  CHECK(fixture.device.now_ns() - start < 10 * cost::kAdminPollNs);

  SECTION("a device that stops answering fails those that are left") {
    fixture.device.admin_hangs = true;
    admin.execute(commands, answers);
    CHECK(answers[0].error() == Error::kTimeout);
    for (std::size_t i = 1; i < kCount; ++i) CHECK(answers[i].error() == Error::kDeviceFailed);
  }
}

TEST_CASE("every admin status has its error") {
  using S = hw::AdminStatus;
  const std::vector<std::pair<S, Error>> table = {
      {S::kBadOpcode, Error::kNotSupported},      {S::kBadParameter, Error::kInvalidParameter},
      {S::kBadNumber, Error::kNotFound},          {S::kExists, Error::kExists},
      {S::kBadState, Error::kInvalidState},       {S::kInUse, Error::kBusy},
      {static_cast<S>(200), Error::kDeviceFailed}};
  DriverFixture fixture;
  for (const auto& [status, error] : table) {
    fixture.device.next_status.push_back(status);
    auto cq = fixture.kernel->create_cq({.entries = 16, .uar = 2});
    REQUIRE_FALSE(cq.ok());
    CHECK(cq.error() == error);
  }
  CHECK(fixture.kernel->create_cq({.entries = 16, .uar = 2}).ok());
}

TEST_CASE("a command without an answer ends the admin queue") {
  DriverFixture fixture;
  auto cq = fixture.kernel->create_cq({.entries = 16, .uar = 2});
  REQUIRE(cq.ok());
  const auto before = fixture.device.live_allocations();
  fixture.device.admin_hangs = true;
  SECTION("time-out") {
    auto late = fixture.kernel->create_cq({.entries = 16, .uar = 2});
    REQUIRE_FALSE(late.ok());
    CHECK(late.error() == Error::kTimeout);
    CHECK(fixture.device.now_ns() < 300'000'000);
  }
  SECTION("fatal device") {
    fixture.device.registers[hw::reg::kDeviceStatus] = hw::RegDeviceStatus{.ready = 1, .fatal = 1}.word();
    auto late = fixture.kernel->create_cq({.entries = 16, .uar = 2});
    REQUIRE_FALSE(late.ok());
    CHECK(late.error() == Error::kDeviceFailed);
    CHECK(fixture.device.now_ns() < 1'000'000);
  }
  fixture.device.admin_hangs = false;
  CHECK(fixture.kernel->create_cq({.entries = 16, .uar = 2}).error() == Error::kDeviceFailed);
  // The device could still write to those rings, so it has been reset before they are given back.
  CHECK(fixture.device.resets == 1);
  cq.take().reset();
  CHECK(fixture.device.live_allocations() == before - 1);
}

TEST_CASE("limits are checked before the device is asked") {
  DriverFixture fixture;
  CHECK(fixture.kernel->create_cq({.entries = 0, .uar = 2}).error() == Error::kInvalidParameter);
  CHECK(fixture.kernel->create_cq({.entries = (1U << 20) + 1, .uar = 2}).error() == Error::kInvalidParameter);
  CHECK(fixture.device.commands.empty());
}

TEST_CASE("a completion queue in use is not destroyed") {
  DriverFixture fixture;
  auto cq = fixture.make_cq();
  auto qp = fixture.make_qp(cq);
  CHECK(cq->kernel_cq().destroy().error() == Error::kBusy);
  qp.reset();
  CHECK(cq->kernel_cq().destroy().ok());
}

TEST_CASE("the counters of a queue pair come in two halves, and are cleared when that is asked for") {
  DriverFixture fixture;
  auto qp = fixture.make_qp(fixture.make_cq());
  auto& counters = fixture.device.pairs.at(qp->qpn()).counters;
  for (std::uint32_t i = 0; i < counters.size(); ++i) counters[i] = 0x01020300 * i + i;
  for (const bool clear : {false, true}) {
    const auto seen = qp->kernel_qp().counters(clear).take();
    for (std::uint32_t i = 0; i < seen.counts.size(); ++i) CHECK(seen.counts[i] == 0x01020300 * i + i);
    CHECK(seen[hw::QpCounter::kNaksSent] == seen.counts[12]);
  }
  for (const auto count : qp->kernel_qp().counters().take().counts) CHECK(count == 0);
  fixture.device.next_status = {hw::AdminStatus::kBadNumber};
  CHECK(!qp->kernel_qp().counters().ok());
}

TEST_CASE("events reach their sinks in order, across wraps of the ring") {
  DriverFixture fixture;
  auto sink = std::make_shared<KernelDeviceSink>();
  fixture.kernel->events().subscribe(EventTable::Of::kCq, 5, sink);
  std::uint32_t sent = 0;
  for (int round = 0; round < 300; ++round) {
    for (int i = 0; i < 10; ++i) {
      fixture.device.write_eqe(
          0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion), .number = 5, .detail = sent++});
    }
    CHECK(fixture.kernel->dispatch_events() == 10);
  }
  REQUIRE(sink->events.size() == sent);
  for (std::uint32_t i = 0; i < sent; ++i) REQUIRE(sink->events[i].detail == i);
  CHECK(fixture.device.event_queues.at(0).consumed == sent);

  SECTION("nobody is asked for objects that are gone") {
    fixture.kernel->events().unsubscribe(EventTable::Of::kCq, 5);
    fixture.device.write_eqe(0, {.event_type = 1, .number = 5});
    CHECK(fixture.kernel->dispatch_events() == 1);
    sink.reset();
  }
  SECTION("nor for sinks that are gone") {
    sink.reset();
    fixture.device.write_eqe(0, {.event_type = 1, .number = 5});
    CHECK(fixture.kernel->dispatch_events() == 1);
  }
}

TEST_CASE("an event queue that was full may have lost events: every completion queue is told") {
  DriverFixture fixture;
  auto sleeper = std::make_shared<KernelDeviceSink>(), loud = std::make_shared<KernelDeviceSink>();
  fixture.kernel->events().subscribe(EventTable::Of::kCq, 5, sleeper);
  fixture.kernel->events().subscribe(EventTable::Of::kCq, 6, loud);
  const unsigned depth = 1U << fixture.device.event_queues.at(0).log_depth;
  const auto write = [&](unsigned events) {
    for (unsigned i = 0; i < events; ++i)
      fixture.device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(hw::EqeType::kCompletion), .number = 6});
  };
  write(depth - 1);
  CHECK(fixture.kernel->dispatch_events() == depth - 1);
  CHECK(sleeper->events.empty());
  write(depth);
  CHECK(fixture.kernel->dispatch_events() == depth);
  CHECK(sleeper->events.size() == 1);
  CHECK(loud->events.size() == 2 * depth);
}

TEST_CASE("a late event of a queue that is gone does not reach the next one with its index") {
  FakeDevice device;
  device.capabilities.log_max_cq = 0;  // one of each: the next has the same index
  device.capabilities.log_max_srq = 0;
  auto kernel = kmd::KernelDevice::open(device).take();
  auto sink = std::make_shared<KernelDeviceSink>();
  std::uint32_t before = 0;
  hw::EqeType type{};
  for (int life = 0; life < 20; ++life) {
    const bool shared = life >= 10;
    if (life == 10) before = 0;
    type = shared ? hw::EqeType::kSrqError : hw::EqeType::kCqError;
    std::unique_ptr<kmd::KernelCq> cq;
    std::unique_ptr<kmd::KernelSrq> srq;
    if (shared)
      srq = kernel->create_srq({.pd = 1, .uar = 1, .log_depth = 4, .log_stride = 6}).take();
    else
      cq = kernel->create_cq({.entries = 16, .uar = 1}).take();
    const std::uint32_t number = shared ? srq->srqn() : cq->cqn();
    CHECK((number & 0xff) == 0);
    CHECK(number != before);
    shared ? kernel->events().subscribe(EventTable::Of::kSrq, number, sink)
           : kernel->events().subscribe(EventTable::Of::kCq, number, sink);
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = before});
    CHECK(kernel->dispatch_events() == 1);
    CHECK(sink->events.empty());
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = number});
    CHECK(kernel->dispatch_events() == 1);
    CHECK(sink->events.size() == 1);
    sink->events.clear();
    shared ? kernel->events().unsubscribe(EventTable::Of::kSrq, number)
           : kernel->events().unsubscribe(EventTable::Of::kCq, number);
    before = number;
  }
}

TEST_CASE("wait_until wakes by interrupt and gives up in time") {
  DriverFixture fixture;
  auto sink = std::make_shared<KernelDeviceSink>();
  fixture.kernel->events().subscribe(EventTable::Of::kCq, 5, sink);
  const auto done = [&] { return !sink->events.empty(); };
  const auto start = fixture.device.now_ns();
  CHECK_FALSE(umd::wait_until(fixture.kernel->node(), done, 50'000));
  CHECK(fixture.device.now_ns() - start == 50'000);
  fixture.device.on_time = [&, fired = false]() mutable {
    if (fired || fixture.device.now_ns() < start + 70'000) return;
    fired = true;
    fixture.device.write_eqe(0, {.event_type = 1, .number = 5});
  };
  CHECK(umd::wait_until(fixture.kernel->node(), done));
  CHECK(fixture.device.now_ns() < start + 100'000);
}

TEST_CASE("user access regions and protection domains are handed out once") {
  DriverFixture fixture;
  std::set<std::uint32_t> uars{fixture.process->uar()};
  for (;;) {
    auto uar = fixture.kernel->acquire_uar();
    if (!uar) {
      CHECK(uar.error() == Error::kOutOfResources);
      break;
    }
    CHECK(*uar > hw::kKernelUar);
    CHECK(*uar < (1U << hw::kUarIndexBits));
    CHECK(uars.insert(*uar).second);
  }
  CHECK(uars.size() == 126);
  fixture.kernel->release_uar(*uars.begin());
  CHECK(*fixture.kernel->acquire_uar() == *uars.begin());

  std::set<std::uint32_t> pds{fixture.process->pd_number()};
  for (int i = 0; i < 1000; ++i) {
    auto pd = fixture.kernel->acquire_pd();
    REQUIRE(pd.ok());
    CHECK(*pd < (1U << 24));
    CHECK(pds.insert(*pd).second);
  }
}
