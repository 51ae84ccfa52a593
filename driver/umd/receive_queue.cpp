#include "driver/umd/receive_queue.hpp"

#include <algorithm>
#include <bit>

#include "driver/mmio.hpp"

namespace rnic::umd {

unsigned ReceiveQueue::log_stride_for(std::uint32_t segments) {
  const auto bytes = std::bit_ceil(hw::WqeReceive::kBytes + segments * hw::WqeData::kBytes);
  return std::max<unsigned>(std::bit_width(bytes) - 1, hw::kMinLogReceiveStride);
}

ReceiveQueue::ReceiveQueue(ProcessContext& process, const Layout& layout)
    : process_(process),
      layout_(layout),
      mask_(static_cast<std::uint16_t>((1U << layout.log_depth) - 1)),
      ids_(std::size_t{1} << layout.log_depth) {}

Result<void> ReceiveQueue::post(const ReceiveRequest& request) {
  const std::lock_guard lock(lock_);
  if (auto checked = check(request); !checked) {
    ring();
    return checked;
  }
  build(request);
  ids_[producer_ & mask_] = request.id;
  ++producer_;
  if (!request.defer) ring();
  return {};
}

Result<void> ReceiveQueue::check(const ReceiveRequest& request) const {
  if (request.segments.size() > layout_.max_segments) return Error::kTooManySegments;
  if (request.segments.bytes() > layout_.max_message) return Error::kMessageTooLong;
  if (static_cast<std::uint16_t>(producer_ - oldest_) >= layout_.depth) return Error::kQueueFull;
  return {};
}

void ReceiveQueue::build(const ReceiveRequest& request) {
  std::uint8_t* wqe = layout_.ring + (static_cast<std::size_t>(producer_ & mask_) << layout_.log_stride);
  const hw::WqeReceive head{.sge_count = static_cast<std::uint8_t>(request.segments.size()), .wqe_index = producer_};
  head.encode(std::span<std::uint8_t, 16>(wqe, 16));
  for (std::size_t i = 0; i < request.segments.size(); ++i) {
    wqe += 16;
    const Segment segment = request.segments[i];
    const hw::WqeData data{.va = segment.address, .length = segment.length, .lkey = segment.key};
    data.encode(std::span<std::uint8_t, 16>(wqe, 16));
  }
}

void ReceiveQueue::ring_deferred() {
  const std::lock_guard lock(lock_);
  ring();
}

void ReceiveQueue::ring() {
  if (rung_ == producer_ || paused_) return;
  dma_write_barrier();
  process_.ring(hw::uar::kReceiveDoorbell, hw::ReceiveDoorbell{.qpn = layout_.qpn, .producer_index = producer_}.word());
  rung_ = producer_;
}

std::optional<std::uint64_t> ReceiveQueue::complete(std::uint16_t index) {
  const std::lock_guard lock(lock_);
  // Receive CQEs come in posting order (decisions 1), one each.
  if (oldest_ == producer_ || index != oldest_) return std::nullopt;
  ++oldest_;
  return ids_[index & mask_];
}

ReceiveQueue::Pause::Pause(ReceiveQueue* queue) : queue_(queue) {
  if (queue_ == nullptr) return;
  const std::lock_guard lock(queue_->lock_);
  queue_->ring();
  queue_->paused_at_ = queue_->producer_;
  queue_->paused_ = true;
}

ReceiveQueue::Pause::~Pause() {
  if (queue_ == nullptr) return;
  const std::lock_guard lock(queue_->lock_);
  queue_->paused_ = false;
  queue_->ring();
}

void ReceiveQueue::reset() {
  const std::lock_guard lock(lock_);
  producer_ = rung_ = oldest_ = paused_at_ = 0;
}

void ReceiveQueue::restart() {
  const std::lock_guard lock(lock_);
  const auto kept = static_cast<std::uint16_t>(producer_ - paused_at_);
  const std::size_t first = paused_at_ & mask_;
  if (kept != 0) {
    const std::size_t stride = std::size_t{1} << layout_.log_stride;
    std::rotate(layout_.ring, layout_.ring + first * stride, layout_.ring + ids_.size() * stride);
    std::rotate(ids_.begin(), ids_.begin() + static_cast<std::ptrdiff_t>(first), ids_.end());
  }
  for (std::uint16_t index = 0; index < kept; ++index) {
    const std::span<std::uint8_t, hw::WqeReceive::kBytes> wqe(
        layout_.ring + (static_cast<std::size_t>(index) << layout_.log_stride), hw::WqeReceive::kBytes);
    auto head = hw::WqeReceive::decode(wqe);
    head.wqe_index = index;
    head.encode(wqe);
  }
  producer_ = kept;
  rung_ = oldest_ = paused_at_ = 0;
}

std::uint32_t ReceiveQueue::outstanding() {
  const std::lock_guard lock(lock_);
  return static_cast<std::uint16_t>(producer_ - oldest_);
}

}  // namespace rnic::umd
