#include "tests/server/remote_peer.hpp"

#include <stdexcept>

#include "driver/remote/attach.hpp"
#include "driver/umd/waiting.hpp"

namespace rnic::test {
namespace {

template <typename T>
T must(Result<T> result, const char* what) {
  if (!result) throw std::runtime_error(std::string(what) + ": " + std::string(describe(result.error())));
  return result.take();
}

void must(const Result<void>& result, const char* what) {
  if (!result) throw std::runtime_error(std::string(what) + ": " + std::string(describe(result.error())));
}

std::array<std::uint8_t, 16> ipv4_of(unsigned host) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, static_cast<std::uint8_t>(host + 1)};
}

}  // namespace

RemotePeer::RemotePeer(const std::string& socket, unsigned host)
    : host_(host),
      node_(must(remote::attach(socket), "attach")),
      context_(must(umd::ProcessContext::open(*node_), "open")),
      memory_(std::make_unique<std::uint8_t[]>(kBytes)) {
  region_ = must(context_->create_mr({.address = memory_.get(),
                                      .length = kBytes,
                                      .local_write = true,
                                      .remote_read = true,
                                      .remote_write = true,
                                      .remote_atomic = true}),
                 "memory region");
  cq_ = must(umd::CompletionQueue::create(context_, 2 * kDepth), "completion queue");
  umd::QueuePair::Spec spec;
  spec.send_cq = spec.receive_cq = cq_;
  spec.capacity = {.send_depth = kDepth, .receive_depth = kDepth, .send_segments = 1, .receive_segments = 1};
  qp_ = must(umd::QueuePair::create_idle(context_, spec), "queue pair");
}

RemotePeer::Address RemotePeer::address() const {
  return {.host = host_,
          .qpn = qp_->qpn(),
          .key = region_->key(),
          .memory = reinterpret_cast<std::uint64_t>(memory_.get())};
}

void RemotePeer::connect(const Address& peer) {
  umd::QpConnection c;
  c.path.sgid_index = 1;
  c.path.dest_gid = ipv4_of(peer.host);
  c.path.dest_mac = 0x0200'0000'0001 + peer.host;
  c.dest_qpn = peer.qpn;
  c.send_psn = c.receive_psn = 0x1000;
  c.inbound_reads = c.outbound_reads = 4;
  must(qp_->connect(c), "connect");
}

umd::Segment RemotePeer::segment(std::uint32_t offset, std::uint32_t length) const {
  return {.address = reinterpret_cast<std::uint64_t>(memory_.get()) + offset, .length = length, .key = region_->key()};
}

void RemotePeer::post(const umd::SendRequest& request) { must(qp_->post_send(request), "post"); }

void RemotePeer::post_receive(std::uint64_t id, std::uint32_t offset, std::uint32_t length) {
  const std::array segments{segment(offset, length)};
  must(qp_->post_receive({.id = id, .segments = segments}), "post a receive");
}

umd::Completion RemotePeer::poll() {
  std::array<umd::Completion, 1> completion;
  while (cq_->poll(completion) == 0) {
    if (!context_->usable()) throw std::runtime_error("the device has failed");
  }
  return completion[0];
}

umd::Completion RemotePeer::wait() {
  std::array<umd::Completion, 1> completion;
  const auto taken = [&] {
    if (cq_->poll(completion) != 0) return true;
    // One that comes between the look and the arm makes no event of its own.
    cq_->arm(hw::CqArm::kAny);
    return cq_->poll(completion) != 0;
  };
  if (!umd::wait_until(*node_, taken)) throw std::runtime_error("the device has failed");
  return completion[0];
}

}  // namespace rnic::test
