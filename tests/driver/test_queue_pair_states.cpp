#include <catch2/catch.hpp>

#include "tests/driver/driver_fixture.hpp"
#include "tests/support/qp_attributes.hpp"

// States and attributes of queue pairs, and their asynchronous events.
using namespace rnic;
using test::DriverFixture;

namespace {

struct StateFixture : DriverFixture {
  StateFixture() {
    cq = make_cq();
    auto created = umd::QueuePair::create_idle(process, {.send_cq = cq,
                                                         .receive_cq = cq,
                                                         .capacity = {8, 8, 4, 4, 64},
                                                         .context = nullptr,
                                                         .on_event = [this](const hw::Eqe& eqe) {
                                                           seen.push_back(static_cast<hw::EqeType>(eqe.event_type));
                                                         }});
    qp = created.take();
  }
  [[nodiscard]] test::FakeDevice::Pair& hardware() { return device.pairs.at(qp->qpn()); }
  /// What the device says to the driver.
  void event(hw::EqeType type, std::uint32_t number) {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = number});
    kernel->node().takers().take_events();
  }

  std::shared_ptr<umd::CompletionQueue> cq;
  std::shared_ptr<umd::QueuePair> qp;
  std::vector<hw::EqeType> seen;
};

struct DeviceSink final : EventSink {
  void on_event(const hw::Eqe& eqe) override { seen.push_back(static_cast<hw::EqeType>(eqe.event_type)); }
  std::vector<hw::EqeType> seen;
};

}  // namespace

TEST_CASE("every pair of states and every attribute, as the specification has them (InfiniBand 11.2.5.2)") {
  const auto type = GENERATE(hw::QpType::kRc, hw::QpType::kUc, hw::QpType::kRawPacket, hw::QpType::kUd);
  unsigned legal = 0;
  for (unsigned from = 0; from <= 6; ++from) {
    for (unsigned to = 0; to <= 7; ++to) {
      INFO("from " << from << " to " << to);
      const auto* row = test::transition_row(from, to, type);
      const auto transition = qp_transition(static_cast<hw::QpState>(from), static_cast<hw::QpState>(to), type);
      REQUIRE(transition.legal == (row != nullptr));
      if (row == nullptr) continue;
      ++legal;
      CHECK(transition.required == row->required);
      CHECK(transition.optional == row->optional);
      CHECK(transition.takes(row->required));
      CHECK(transition.takes(row->required | row->optional | 1));
      for (unsigned bit = 1; bit < 32; ++bit) {
        INFO("attribute " << bit);
        CHECK(transition.takes(row->required ^ 1U << bit) == ((row->optional >> bit & 1) != 0));
      }
    }
  }
  CHECK(legal == 14 + test::transition_rows(type).size());
}

TEST_CASE_METHOD(StateFixture, "the driver asks the device for what is legal only") {
  auto& kernel_qp = qp->kernel_qp();
  const auto commands = device.commands.size();
  CHECK(kernel_qp.modify(hw::QpState::kRts, 0, {}).error() == Error::kInvalidState);
  CHECK(kernel_qp.modify(hw::QpState::kRtr, 0, {}).error() == Error::kInvalidParameter);
  CHECK(kernel_qp.modify(hw::QpState::kInit, attribute(hw::QpAttr::kPathMtu), {}).error() == Error::kInvalidParameter);
  CHECK(kernel_qp.resume().error() == Error::kInvalidState);
  CHECK(kernel_qp.to_sqd(true).error() == Error::kInvalidState);
  CHECK(device.commands.size() == commands);
  // The device knows better: it may have moved the queue pair.
  REQUIRE(qp->connect({}).ok());
  device.next_status.push_back(hw::AdminStatus::kBadState);
  CHECK(kernel_qp.to_sqd(false).error() == Error::kInvalidState);
  REQUIRE(kernel_qp.to_sqd(false).ok());
}

TEST_CASE_METHOD(StateFixture, "attributes that are not named keep their values") {
  umd::QpConnection connection;
  connection.dest_qpn = 0x123456;
  connection.path.dest_mac = 0x0200'0000'0099;
  connection.path.pkey_index = kernel->port_tables().add_pkey(0x8001).take();
  connection.min_rnr_timer = 9;
  REQUIRE(qp->connect(connection).ok());
  REQUIRE(qp->drain(true).ok());
  CHECK(hardware().state == hw::QpState::kSqd);
  CHECK(hardware().last_modify.sqd_notify == 1);
  CHECK(hardware().last_modify.attr_mask == attribute(hw::QpAttr::kSqdNotify));

  umd::QpConnection changed;
  changed.min_rnr_timer = 17;
  changed.path.traffic_class = 0x55;
  changed.path.pkey_index = kernel->port_tables().add_pkey(0x1234).take();
  auto& kernel_qp = qp->kernel_qp();
  const auto given = attributes(hw::QpAttr::kMinRnrTimer, hw::QpAttr::kAv);
  REQUIRE(kernel_qp.modify(hw::QpState::kSqd, given, changed).ok());
  CHECK(hardware().last_modify.attr_mask == given);
  CHECK(hardware().last_modify.min_rnr_timer == 17);
  CHECK(hardware().last_modify.traffic_class == 0x55);
  // Written together with the address vector, so they come with it, unchanged.
  CHECK(hardware().last_modify.pkey == 0x8001);
  CHECK(hardware().last_modify.dest_qpn == 0x123456);
  CHECK(hardware().last_modify.sqd_notify == 0);
  REQUIRE(qp->resume().ok());
  CHECK(hardware().state == hw::QpState::kRts);

  changed.cur_state = hw::QpState::kRts;
  CHECK(kernel_qp.modify(hw::QpState::kRts, attributes(hw::QpAttr::kCurState, hw::QpAttr::kAccessFlags), changed).ok());
  CHECK(hardware().last_modify.cur_state == static_cast<std::uint8_t>(hw::QpState::kRts));
  // A wrong cur_state is what the transition is judged by.
  changed.cur_state = hw::QpState::kInit;
  CHECK(kernel_qp.modify(hw::QpState::kRts, attribute(hw::QpAttr::kCurState), changed).error() == Error::kInvalidState);
}

TEST_CASE_METHOD(StateFixture, "a queue pair begins in RESET, where nothing may be posted (10.3.1)") {
  auto fresh = umd::QueuePair::create(process, {.send_cq = cq, .receive_cq = cq, .capacity = {8, 8, 4, 4, 64}}).take();
  using State = umd::QueuePair::State;
  const auto on_device = [&] { return device.pairs.at(fresh->qpn()).state; };
  CHECK(fresh->state() == State::kNew);
  CHECK(on_device() == hw::QpState::kReset);
  CHECK(fresh->post_receive({.id = 1}).error() == Error::kInvalidState);
  CHECK(fresh->post_send(write_request(1)).error() == Error::kInvalidState);
  CHECK(fresh->to_ready({}).error() == Error::kInvalidState);
  // By mask, as ibv_modify_qp does it: the state of the process's queue pair follows.
  const auto mask = [](hw::QpState from, hw::QpState to) { return qp_transition(from, to).required; };
  REQUIRE(fresh->modify(hw::QpState::kInit, mask(hw::QpState::kReset, hw::QpState::kInit), {}).ok());
  CHECK(fresh->state() == State::kIdle);
  CHECK(fresh->to_idle({}).error() == Error::kInvalidState);
  REQUIRE(fresh->post_receive({.id = 7}).ok());
  CHECK(fresh->modify(hw::QpState::kRts, 0, {}).error() == Error::kInvalidState);
  CHECK(fresh->state() == State::kIdle);
  REQUIRE(fresh->modify(hw::QpState::kRtr, mask(hw::QpState::kInit, hw::QpState::kRtr), {}).ok());
  CHECK(fresh->state() == State::kReady);
  REQUIRE(fresh->modify(hw::QpState::kRts, mask(hw::QpState::kRtr, hw::QpState::kRts), {}).ok());
  CHECK(fresh->post_send(write_request(2)).ok());
  REQUIRE(fresh->modify(hw::QpState::kReset, 0, {}).ok());
  CHECK(fresh->state() == State::kNew);
  CHECK(fresh->post_receive({.id = 8}).error() == Error::kInvalidState);
  CHECK(drain(*cq).size() == 2);  // flushed
  // And it begins anew.
  REQUIRE(fresh->to_idle({}).ok());
  REQUIRE(fresh->connect({}).ok());
  REQUIRE(fresh->post_send(write_request(3)).ok());
  device.finish_send(fresh->qpn());
  const auto done = drain(*cq);
  REQUIRE(done.size() == 1);
  CHECK(done[0].id == 3);
}

TEST_CASE_METHOD(StateFixture, "a queue pair that is not connected is not drained") {
  CHECK(qp->drain(false).error() == Error::kInvalidState);
  CHECK(qp->resume().error() == Error::kInvalidState);
  REQUIRE(qp->close().ok());
  CHECK(qp->drain(false).error() == Error::kInvalidState);
  CHECK(qp->resume().error() == Error::kInvalidState);
}

TEST_CASE_METHOD(StateFixture, "events of a queue pair reach its handler; those that mean its end are remembered") {
  event(hw::EqeType::kCommEstablished, qp->qpn());
  event(hw::EqeType::kSqDrained, qp->qpn());
  CHECK_FALSE(qp->failed());
  event(hw::EqeType::kSqDrained, qp->qpn() ^ 1);  // of another
  const auto type = GENERATE(hw::EqeType::kQpFatal, hw::EqeType::kQpRequestError, hw::EqeType::kQpAccessError);
  event(type, qp->qpn());
  CHECK(qp->failed());
  CHECK(seen == std::vector{hw::EqeType::kCommEstablished, hw::EqeType::kSqDrained, type});
}

TEST_CASE_METHOD(StateFixture, "a queue pair that was reset has not failed") {
  event(hw::EqeType::kQpFatal, qp->qpn());
  REQUIRE(qp->failed());
  REQUIRE(qp->modify(hw::QpState::kReset, 0, {}).ok());
  CHECK_FALSE(qp->failed());
}

TEST_CASE_METHOD(StateFixture, "what was posted without a doorbell is flushed with the rest at the end") {
  const auto connected = make_connected_qp(cq);
  REQUIRE(connected != nullptr);
  auto deferred = write_request(5);
  deferred.defer = true;
  REQUIRE(connected->post_send(deferred).ok());
  REQUIRE(connected->post_receive({.id = 6, .defer = true}).ok());
  REQUIRE(connected->end().ok());
  const auto done = drain(*cq);
  REQUIRE(done.size() == 2);
  for (const auto& one : done) CHECK(one.status == hw::CqeStatus::kWrFlushErr);
}

TEST_CASE_METHOD(StateFixture, "events of the device and its port reach everybody who asked") {
  auto one = std::make_shared<DeviceSink>();
  auto two = std::make_shared<DeviceSink>();
  process->events().subscribe_device(one);
  process->events().subscribe_device(two);
  event(hw::EqeType::kPortError, 1);
  two.reset();
  event(hw::EqeType::kPortActive, 1);
  event(hw::EqeType::kDeviceFatal, 0);
  CHECK(one->seen == std::vector{hw::EqeType::kPortError, hw::EqeType::kPortActive, hw::EqeType::kDeviceFatal});
  CHECK(seen == std::vector{hw::EqeType::kDeviceFatal});  // the end of the device is that of the queue pair
  CHECK(qp->failed());
  device.registers[hw::reg::kPortStatus] = hw::RegPortStatus{.link_up = 1}.word();
  CHECK(kernel->link_up());
  device.registers[hw::reg::kPortStatus] = 0;
  CHECK_FALSE(kernel->link_up());
}
