#include "driver/umd/completion_queue.hpp"

#include <array>
#include <bit>

#include "driver/bits.hpp"
#include "driver/costs.hpp"
#include "driver/mmio.hpp"

namespace rnic::umd {
namespace {

constexpr std::uint32_t kSpareEntries = 8;  // decisions 37
constexpr std::uint32_t kIndexMask = 0xFFFFFF;
// The entries in front of a change of rings are on their way when the device answers: posted writes.
constexpr std::uint64_t kRingTimeoutNs = 10'000'000;

}  // namespace

std::uint32_t CompletionQueue::max_entries(const kmd::Limits& limits) { return limits.max_cq_depth - kSpareEntries; }

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(std::shared_ptr<ProcessContext> process,
                                                                 std::uint32_t entries) {
  auto& kernel = process->kernel();
  if (entries == 0 || entries > max_entries(kernel.limits())) return Error::kInvalidParameter;
  if (!process->usable()) return Error::kDeviceFailed;
  return or_out_of_memory([&]() -> Result<std::shared_ptr<CompletionQueue>> {
    auto kernel_cq = kernel.create_cq({.entries = std::bit_ceil(entries + kSpareEntries), .uar = process->uar()});
    if (!kernel_cq) return kernel_cq.error();
    return std::make_shared<CompletionQueue>(std::move(process), kernel_cq.take());
  });
}

CompletionQueue::CompletionQueue(std::shared_ptr<ProcessContext> process, std::unique_ptr<kmd::KernelCq> kernel_cq)
    : process_(std::move(process)),
      kernel_cq_(std::move(kernel_cq)),
      resize_lock_(process_->device()),
      backlog_(1U << kernel_cq_->ring().log_depth) {}

std::size_t CompletionQueue::poll(std::span<Completion> completions) {
  process_->device().elapse(cost::kPollNs);
  std::size_t filled = 0;
  std::uint32_t consumed = 0;
  {
    const std::lock_guard lock(mutex_);
    decode_locked();
    for (; filled < completions.size() && backlog_.size() != 0; backlog_.pop(), ++consumed) {
      if (backlog_[0].known) completions[filled++] = backlog_[0].completion;
    }
    consumer_ += consumed;
    if (consumed != 0) ring(hw::CqArm::kNone);
  }
  if (consumed != 0) process_->device().elapse(consumed * cost::kPollEntryNs);
  return filled;
}

std::uint32_t CompletionQueue::depth() const {
  const std::lock_guard lock(mutex_);
  return 1U << kernel_cq_->ring().log_depth;
}

Result<void> CompletionQueue::resize(std::uint32_t entries) {
  if (entries == 0 || entries > max_entries(process_->kernel().limits())) return Error::kInvalidParameter;
  const SleepLock::Guard guard(resize_lock_);
  if (!guard) return Error::kDeviceFailed;
  return or_out_of_memory([&] { return replace_ring(entries); });
}

Result<void> CompletionQueue::replace_ring(std::uint32_t entries) {
  {
    const std::lock_guard lock(mutex_);
    decode_locked();
    if (backlog_.size() > entries) return Error::kTooSmall;
  }
  const std::uint32_t depth = std::bit_ceil(entries + kSpareEntries);
  Backlog larger(depth);
  auto origin = kernel_cq_->resize(depth);
  if (!origin) return origin.error();
  // Entries before the origin come in the old ring, if they are not there yet.
  const std::uint64_t start = process_->device().now_ns();
  while (!adopt(*origin, larger)) {
    if (process_->device().now_ns() - start > kRingTimeoutNs || !process_->usable()) {
      process_->fail();
      return Error::kTimeout;
    }
    process_->device().elapse(cost::kAdminPollNs);
  }
  return {};
}

bool CompletionQueue::adopt(std::uint32_t origin, Backlog& larger) {
  const std::lock_guard lock(mutex_);
  decode_locked();
  if ((decoded_ & kIndexMask) != origin) return false;
  kernel_cq_->adopt();
  if (larger.room() <= backlog_.room()) return true;
  for (; backlog_.size() != 0; backlog_.pop()) larger.push(backlog_[0]);
  backlog_ = std::move(larger);
  return true;
}

void CompletionQueue::decode() {
  const std::lock_guard lock(mutex_);
  decode_locked();
}

void CompletionQueue::decode_locked() {
  // No sound device writes more than the ring holds.
  for (hw::Cqe cqe; backlog_.size() != backlog_.room() && next_cqe(cqe);) backlog_.push(resolve(cqe));
}

bool CompletionQueue::solicited_waits() {
  const std::lock_guard lock(mutex_);
  decode_locked();
  for (std::uint32_t i = 0; i < backlog_.size(); ++i) {
    const Completion& completion = backlog_[i].completion;
    if (completion.solicited || completion.status != hw::CqeStatus::kSuccess) return true;
  }
  return false;
}

bool CompletionQueue::next_cqe(hw::Cqe& cqe) {
  constexpr auto kBytes = hw::Cqe::kBytes;
  const auto& ring = kernel_cq_->ring();
  const std::uint32_t place = (decoded_ - ring.origin) & kIndexMask;
  const auto slot = static_cast<std::size_t>(place & bits::mask(ring.log_depth));
  const std::uint8_t* entry = ring.memory.data() + slot * kBytes;
  const std::uint8_t expected = (place >> ring.log_depth) % 2 == 0 ? 1 : 0;
  if (load_phase({entry, kBytes}) != expected) return false;
  dma_read_barrier();
  std::array<std::uint8_t, kBytes> raw;
  copy_entry(std::span(raw), entry);
  cqe = hw::Cqe::decode(raw);
  ++decoded_;
  return true;
}

CompletionQueue::Decoded CompletionQueue::resolve(const hw::Cqe& cqe) {
  Decoded decoded;
  decoded.completion.status = static_cast<hw::CqeStatus>(cqe.status);
  decoded.completion.byte_count = cqe.byte_count;
  decoded.completion.qpn = cqe.qpn;
  decoded.completion.syndrome = cqe.syndrome;
  decoded.completion.solicited = cqe.solicited != 0;
  decoded.completion.with_immediate = cqe.with_imm != 0;
  decoded.completion.with_invalidate = cqe.with_invalidate != 0;
  decoded.completion.immediate = cqe.immediate;
  decoded.completion.grh = cqe.grh != 0;
  decoded.completion.source_qpn = cqe.source_qpn;
  decoded.completion.timestamp = cqe.timestamp;
  const auto client = clients_.find(cqe.qpn);
  if (client == clients_.end()) return decoded;
  decoded.completion.qp_context = client->second.qp_context;
  if (cqe.is_receive != 0 && client->second.receive != nullptr) {
    if (const auto id = client->second.receive->complete(cqe)) {
      decoded.completion.id = *id;
      const bool write = cqe.opcode == static_cast<std::uint8_t>(hw::CqeOpcode::kReceiveWrite);
      decoded.completion.kind = write ? RequestKind::kReceiveWrite : RequestKind::kReceive;
      decoded.known = true;
    }
  } else if (cqe.is_receive == 0 && client->second.send != nullptr) {
    if (const auto posted = client->second.send->complete(cqe)) {
      decoded.completion.id = posted->id;
      decoded.completion.kind = posted->kind;
      decoded.known = true;
    }
  }
  return decoded;
}

void CompletionQueue::arm(hw::CqArm kind) {
  process_->device().elapse(cost::kArmNs);
  const std::lock_guard lock(mutex_);
  ring(kind);
}

void CompletionQueue::ring(hw::CqArm kind) {
  dma_release_barrier();
  process_->ring(
      hw::uar::kCqDoorbell,
      hw::CqDoorbell{.cqn = cqn(), .arm = static_cast<std::uint8_t>(kind), .consumer_index = consumer_}.word());
}

void CompletionQueue::attach(std::uint32_t qpn, SendQueue* send, ReceiveSource* receive, void* qp_context) {
  const std::lock_guard lock(mutex_);
  auto& client = clients_[qpn];
  if (send != nullptr) client.send = send;
  if (receive != nullptr) client.receive = receive;
  client.qp_context = qp_context;
}

void CompletionQueue::detach(std::uint32_t qpn, const SendQueue* send, const ReceiveSource* receive) {
  const std::lock_guard lock(mutex_);
  decode_locked();
  const auto client = clients_.find(qpn);
  if (client == clients_.end()) return;
  if (client->second.send == send) client->second.send = nullptr;
  if (client->second.receive == receive) client->second.receive = nullptr;
  if (client->second.send == nullptr && client->second.receive == nullptr) clients_.erase(client);
}

}  // namespace rnic::umd
