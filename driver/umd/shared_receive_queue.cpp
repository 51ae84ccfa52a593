#include "driver/umd/shared_receive_queue.hpp"

#include <algorithm>
#include <cstring>

#include "driver/costs.hpp"
#include "driver/mmio.hpp"
#include "driver/ring_size.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/receive_queue.hpp"

namespace rnic::umd {

Result<std::shared_ptr<SharedReceiveQueue>> SharedReceiveQueue::create(std::shared_ptr<ProcessContext> process,
                                                                       std::uint32_t depth, std::uint32_t segments,
                                                                       calls::Handle pd, std::uint64_t affinity) {
  const Limits& limits = process->limits();
  if (limits.max_srq == 0) return Error::kNotSupported;
  if (depth == 0 || depth > limits.max_srq_depth || segments > limits.max_sge) {
    return Error::kInvalidParameter;
  }
  if (!process->usable()) return Error::kDeviceFailed;
  const std::uint32_t granted = std::max(segments, kMinSegments);
  return or_out_of_memory([&]() -> Result<std::shared_ptr<SharedReceiveQueue>> {
    auto kernel_srq = process->create_srq({.pd = pd,
                                           .log_depth = ring_log_depth(depth),
                                           .log_stride = ReceiveQueue::log_stride_for(granted),
                                           .affinity = affinity});
    if (!kernel_srq) return kernel_srq.error();
    return std::shared_ptr<SharedReceiveQueue>(
        new SharedReceiveQueue(std::move(process), kernel_srq.take(), depth, granted));
  });
}

SharedReceiveQueue::SharedReceiveQueue(std::shared_ptr<ProcessContext> process, std::unique_ptr<KernelSrq> kernel_srq,
                                       std::uint32_t depth, std::uint32_t segments)
    : process_(std::move(process)),
      kernel_srq_(std::move(kernel_srq)),
      max_segments_(segments),
      resize_lock_(process_->machine()),
      depth_(depth) {
  reserve_tags(depth);
  grow_tags();
}

void SharedReceiveQueue::reserve_tags(std::uint32_t depth) {
  free_tags_.reserve(depth);
  posted_.reserve(depth);
}

/// A tag for every request that may be outstanding. Tags of a queue that was made smaller stay: the depth counts.
/// Precondition: reserve_tags.
void SharedReceiveQueue::grow_tags() {
  for (auto tag = posted_.size(); tag < depth_; ++tag) free_tags_.push_back(static_cast<std::uint16_t>(tag));
  posted_.resize(std::max<std::size_t>(posted_.size(), depth_));
}

std::uint32_t SharedReceiveQueue::depth() {
  const std::lock_guard lock(lock_);
  return depth_;
}

std::uint32_t SharedReceiveQueue::outstanding() {
  const std::lock_guard lock(lock_);
  return outstanding_;
}

Result<void> SharedReceiveQueue::post(const ReceiveRequest& request) {
  process_->machine().elapse(cost::kPostReceiveNs);
  if (!process_->alive()) return Error::kDeviceFailed;
  const auto posted = try_post(request);
  if (posted.ok() || posted.error() != Error::kQueueFull) return posted;
  decode();
  return try_post(request);
}

Result<void> SharedReceiveQueue::try_post(const ReceiveRequest& request) {
  const std::lock_guard lock(lock_);
  if (auto checked = check(request); !checked) {
    ring();
    return checked;
  }
  const std::uint16_t tag = free_tags_.back();
  free_tags_.pop_back();
  build(request, tag, kernel_srq_->ring(), kernel_srq_->log_depth());
  if (next_ring_ != nullptr) build(request, tag, next_ring_, next_log_depth_);
  posted_[tag] = {.id = request.id, .live = true};
  ++outstanding_;
  ++producer_;
  if (!request.defer) ring();
  return {};
}

Result<void> SharedReceiveQueue::check(const ReceiveRequest& request) const {
  if (request.segments.size() > max_segments_) return Error::kTooManySegments;
  if (request.segments.bytes() > process_->limits().max_message) return Error::kMessageTooLong;
  if (outstanding_ >= depth_) return Error::kQueueFull;
  return {};
}

void SharedReceiveQueue::build(const ReceiveRequest& request, std::uint16_t tag, std::uint8_t* ring,
                               unsigned log_depth) const {
  const std::uint32_t slot = producer_ & ((1U << log_depth) - 1);
  std::uint8_t* wqe = ring + (static_cast<std::size_t>(slot) << kernel_srq_->log_stride());
  const hw::WqeReceive head{
      .sge_count = static_cast<std::uint8_t>(request.segments.size()), .wqe_index = producer_, .tag = tag};
  head.encode(std::span<std::uint8_t, 16>(wqe, 16));
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    wqe += 16;
    const Segment segment = request.segments[i];
    const hw::WqeData data{.va = segment.address, .length = segment.length, .lkey = segment.key};
    data.encode(std::span<std::uint8_t, 16>(wqe, 16));
  }
}

void SharedReceiveQueue::ring_deferred() {
  process_->machine().elapse(cost::kDoorbellNs);
  const std::lock_guard lock(lock_);
  ring();
}

void SharedReceiveQueue::ring() {
  if (rung_ == producer_ || next_ring_ != nullptr) return;
  dma_write_barrier();
  process_->ring(hw::uar::kSrqDoorbell, hw::SrqDoorbell{.srqn = srqn(), .producer_index = producer_}.word());
  rung_ = producer_;
}

std::optional<std::uint64_t> SharedReceiveQueue::complete(std::uint16_t index) {
  const std::lock_guard lock(lock_);
  if (index >= posted_.size() || !posted_[index].live) return std::nullopt;
  posted_[index].live = false;
  free_tags_.push_back(index);
  --outstanding_;
  return posted_[index].id;
}

void SharedReceiveQueue::attach(const std::shared_ptr<CompletionQueue>& cq) {
  const std::lock_guard lock(lock_);
  completion_queues_.push_back(cq);
}

void SharedReceiveQueue::detach(const std::shared_ptr<CompletionQueue>& cq) {
  const std::lock_guard lock(lock_);
  const auto found = std::find(completion_queues_.begin(), completion_queues_.end(), cq);
  if (found != completion_queues_.end()) completion_queues_.erase(found);
}

/// Without the lock while a completion queue decodes, because decoding takes it. From the last to the first: when one
/// goes meanwhile those behind it move up, and none is left out.
void SharedReceiveQueue::decode() {
  for (std::size_t next = ~std::size_t{0}; next != 0;) {
    std::shared_ptr<CompletionQueue> queue;
    {
      const std::lock_guard lock(lock_);
      next = std::min(next, completion_queues_.size());
      if (next == 0) return;
      queue = completion_queues_[--next];
    }
    queue->decode();
  }
}

Result<void> SharedReceiveQueue::resize(std::uint32_t depth) {
  if (depth == 0 || depth > process_->limits().max_srq_depth) return Error::kInvalidParameter;
  const SleepLock::Guard guard(resize_lock_);
  if (!guard) return Error::kDeviceFailed;
  decode();
  return or_out_of_memory([&] { return change_depth(depth); });
}

Result<void> SharedReceiveQueue::change_depth(std::uint32_t depth) {
  {
    const std::lock_guard lock(lock_);
    if (depth < outstanding_) return Error::kMessageTooLong;
    reserve_tags(depth);
    if (depth <= 1U << kernel_srq_->log_depth()) {
      depth_ = depth;
      grow_tags();
      return {};
    }
  }
  return change_ring(depth, ring_log_depth(depth));
}

/// What is posted meanwhile is in both rings, and the device is told of it when it has one of them for good.
Result<void> SharedReceiveQueue::change_ring(std::uint32_t depth, unsigned log_depth) {
  auto ring = kernel_srq_->prepare(log_depth);
  if (!ring) return ring.error();
  {
    const std::lock_guard lock(lock_);
    this->ring();
    copy_to(ring->get(), log_depth);  // the device sees it first, as before any command
    next_ring_ = ring->get();
    next_log_depth_ = log_depth;
  }
  auto used = kernel_srq_->use();
  std::shared_ptr<std::uint8_t> before;
  const std::lock_guard lock(lock_);
  if (used) {
    before = kernel_srq_->adopt(*ring, log_depth);
    depth_ = depth;
    grow_tags();
  }
  next_ring_ = nullptr;
  this->ring();
  return used;
}

/// The newest requests, as many as the present ring holds: those that wait are among them.
void SharedReceiveQueue::copy_to(std::uint8_t* ring, unsigned log_depth) const {
  const unsigned log_stride = kernel_srq_->log_stride();
  const std::uint32_t slots = 1U << kernel_srq_->log_depth();
  const std::size_t stride = std::size_t{1} << log_stride;
  for (std::uint32_t back = 1; back <= slots; ++back) {
    const auto index = static_cast<std::uint16_t>(producer_ - back);
    std::memcpy(ring + (static_cast<std::size_t>(index & ((1U << log_depth) - 1)) << log_stride),
                kernel_srq_->ring() + (static_cast<std::size_t>(index & (slots - 1)) << log_stride), stride);
  }
}

}  // namespace rnic::umd
