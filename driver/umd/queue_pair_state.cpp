#include "driver/costs.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::umd {

template <typename Body>
Result<void> QueuePair::change(Body&& body) {
  const SleepLock::Guard guard(change_lock_);
  if (!guard) return Error::kDeviceFailed;
  if (state() == State::kClosed) return Error::kInvalidState;
  return body();
}

Result<void> QueuePair::modify(hw::QpState next, QpAttributes given, const QpConnection& attributes) {
  return change([&]() -> Result<void> {
    if (next == hw::QpState::kReset) return enter_reset(given);
    if (auto done = kernel_qp_->modify(next, given, attributes); !done) return done;
    switch (next) {
      case hw::QpState::kInit: state_ = State::kIdle; break;
      case hw::QpState::kRtr: state_ = State::kReady; break;
      default: state_ = State::kConnected; break;
    }
    return {};
  });
}

/// RESET flushes and starts the device's indexes anew, so the rings start anew too.
Result<void> QueuePair::enter_reset(QpAttributes given) {
  send_->ring_deferred();
  ring_receives();
  const ReceiveQueue::Pause pause(receive_.get());
  if (auto done = kernel_qp_->modify(hw::QpState::kReset, given, {}); !done) return done;
  state_ = State::kNew;
  decode();
  send_->reset();
  if (receive_ != nullptr) receive_->reset();
  failed_ = false;
  last_wqe_reached_ = false;
  return {};
}

Result<void> QueuePair::to_idle(const QpConnection& connection) {
  return change([&]() -> Result<void> {
    if (state() != State::kNew) return Error::kInvalidState;
    auto done = kernel_qp_->to_init(connection);
    if (done) state_ = State::kIdle;
    return done;
  });
}

Result<void> QueuePair::to_ready(const QpConnection& connection) {
  return change([&]() -> Result<void> {
    if (state() != State::kIdle) return Error::kInvalidState;
    auto done = kernel_qp_->to_rtr(connection);
    if (done) state_ = State::kReady;
    return done;
  });
}

Result<void> QueuePair::to_connected(const QpConnection& connection) {
  return change([&]() -> Result<void> {
    if (state() != State::kReady) return Error::kInvalidState;
    auto done = kernel_qp_->to_rts(connection);
    if (done) state_ = State::kConnected;
    return done;
  });
}

Result<void> QueuePair::connect(const QpConnection& connection) {
  if (auto ready = to_ready(connection); !ready) return ready;
  return to_connected(connection);
}

Result<void> QueuePair::drain(bool notify) {
  return change([&]() -> Result<void> {
    if (state() != State::kConnected) return Error::kInvalidState;
    return kernel_qp_->to_sqd(notify);
  });
}

Result<void> QueuePair::resume() {
  return change([&]() -> Result<void> {
    if (state() != State::kConnected) return Error::kInvalidState;
    return kernel_qp_->resume();
  });
}

Result<void> QueuePair::attach_multicast(const std::array<std::uint8_t, 16>& group) {
  return change([&] { return kernel_qp_->attach_multicast(group); });
}

Result<void> QueuePair::detach_multicast(const std::array<std::uint8_t, 16>& group) {
  return change([&] { return kernel_qp_->detach_multicast(group); });
}

Result<void> QueuePair::flush() {
  return change([&] {
    send_->ring_deferred();
    ring_receives();
    return state() == State::kIdle ? flush_idle() : kernel_qp_->to_error();
  });
}

Result<void> QueuePair::end() {
  return change([&]() -> Result<void> {
    if (state() < State::kReady) return Error::kInvalidState;
    send_->ring_deferred();
    ring_receives();
    auto done = kernel_qp_->to_error();
    if (done) state_ = State::kEnded;
    return done;
  });
}

/// RESET flushes and starts the device's indexes anew, so the rings start anew too, with the receives that have been
/// posted meanwhile.
Result<void> QueuePair::flush_idle() {
  const ReceiveQueue::Pause pause(receive_.get());
  if (auto done = kernel_qp_->to_reset(); !done) return done;
  decode();
  send_->reset();
  if (receive_ != nullptr) receive_->restart();
  return kernel_qp_->to_init({});
}

Result<void> QueuePair::close() { return leave({}); }

Result<void> QueuePair::close_and_forget() { return leave({.forgetting = true}); }

/// Also of a queue pair that was not built to the end.
Result<void> QueuePair::leave(Leaving how) {
  auto closed = change([&]() -> Result<void> {
    if (kernel_qp_ == nullptr) return {};
    if (send_ != nullptr && process_->alive()) send_->ring_deferred();
    if (process_->alive()) ring_receives();
    auto done = how.groups_too ? kernel_qp_->destroy_with_ties() : kernel_qp_->destroy();
    if (!done && done.error() == Error::kBusy) return done;
    state_ = State::kClosed;
    leave_queues(how);
    return done;
  });
  return state() == State::kClosed && !closed && closed.error() == Error::kInvalidState ? Result<void>() : closed;
}

void QueuePair::leave_queues(Leaving how) {
  process_->events().unsubscribe(EventTable::Of::kQp, qpn());
  send_cq_->detach(qpn(), send_.get(), nullptr);
  receive_cq_->detach(qpn(), nullptr, receive_source());
  if (how.forgetting) {
    send_cq_->forget(qpn());
    if (receive_cq_ != send_cq_) receive_cq_->forget(qpn());
  }
  if (on_shared_receives_) shared_receives_->detach(receive_cq_);
}

}  // namespace rnic::umd
