#include "driver/costs.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::umd {

/// Waits for its turn to change the state. False if the queue pair is closed.
bool QueuePair::begin_change() {
  while (changing_.exchange(true)) process_->device().elapse(cost::kAdminPollNs);
  if (state() != State::kClosed) return true;
  end_change();
  return false;
}

void QueuePair::end_change() { changing_.store(false); }

Result<void> QueuePair::to_ready(const kmd::QpConnection& connection) {
  if (!begin_change()) return Error::kInvalidState;
  Result<void> done = Error::kInvalidState;
  if (state() == State::kIdle) {
    done = kernel_qp_->to_rtr(connection);
    if (done) state_ = State::kReady;
  }
  end_change();
  return done;
}

Result<void> QueuePair::to_connected(const kmd::QpConnection& connection) {
  if (!begin_change()) return Error::kInvalidState;
  Result<void> done = Error::kInvalidState;
  if (state() == State::kReady) {
    done = kernel_qp_->to_rts(connection);
    if (done) state_ = State::kConnected;
  }
  end_change();
  return done;
}

Result<void> QueuePair::connect(const kmd::QpConnection& connection) {
  if (auto ready = to_ready(connection); !ready) return ready;
  return to_connected(connection);
}

Result<void> QueuePair::drain(bool notify) {
  if (!begin_change()) return Error::kInvalidState;
  Result<void> done = Error::kInvalidState;
  if (state() == State::kConnected) done = kernel_qp_->to_sqd(notify);
  end_change();
  return done;
}

Result<void> QueuePair::resume() {
  if (!begin_change()) return Error::kInvalidState;
  Result<void> done = Error::kInvalidState;
  if (state() == State::kConnected) done = kernel_qp_->resume();
  end_change();
  return done;
}

Result<void> QueuePair::flush() {
  if (!begin_change()) return Error::kInvalidState;
  send_->ring_deferred();
  ring_receives();
  auto done = state() == State::kIdle ? flush_idle() : kernel_qp_->to_error();
  end_change();
  return done;
}

/// RESET flushes and starts the device's indexes anew, so the rings start anew too; receives that are posted meanwhile
/// wait for that.
Result<void> QueuePair::flush_idle() {
  if (receive_ != nullptr) receive_->pause();
  if (auto done = kernel_qp_->to_reset(); !done) {
    if (receive_ != nullptr) receive_->resume();
    return done;
  }
  decode();
  send_->reset();
  auto done = kernel_qp_->to_init({});
  if (receive_ != nullptr) receive_->reset();
  return done;
}

Result<void> QueuePair::reset() {
  if (!begin_change()) return Error::kInvalidState;
  send_->ring_deferred();
  ring_receives();
  auto done = flush_idle();
  if (done) {
    state_ = State::kIdle;
    failed_ = false;
    last_wqe_reached_ = false;
  }
  end_change();
  return done;
}

Result<void> QueuePair::close() {
  if (!begin_change()) return {};
  send_->ring_deferred();
  ring_receives();
  auto done = kernel_qp_->destroy();
  state_ = State::kClosed;
  kernel().unsubscribe_qp(qpn());
  send_cq_->detach(qpn(), send_.get(), nullptr);
  receive_cq_->detach(qpn(), nullptr, receive_source());
  if (shared_receives_) shared_receives_->detach(receive_cq_);
  end_change();
  return done;
}

}  // namespace rnic::umd
