#include "driver/umd/completion_queue.hpp"

#include <bit>

namespace rnic::umd {
namespace {

constexpr std::uint32_t kSpareEntries = 8;  // decisions 37
// The entries in front of a change of rings are on their way when the device answers: posted writes.
constexpr std::uint64_t kRingTimeoutNs = 10'000'000;

}  // namespace

std::uint32_t CompletionQueue::max_entries(const Limits& limits) { return limits.max_cq_depth - kSpareEntries; }

Result<std::shared_ptr<CompletionQueue>> CompletionQueue::create(std::shared_ptr<ProcessContext> process,
                                                                 std::uint32_t entries, calls::Handle channel,
                                                                 std::uint64_t affinity) {
  if (entries == 0 || entries > max_entries(process->limits())) return Error::kInvalidParameter;
  if (!process->usable()) return Error::kDeviceFailed;
  return or_out_of_memory([&]() -> Result<std::shared_ptr<CompletionQueue>> {
    auto kernel_cq = process->create_cq(std::bit_ceil(entries + kSpareEntries), channel, affinity);
    if (!kernel_cq) return kernel_cq.error();
    return std::make_shared<CompletionQueue>(std::move(process), kernel_cq.take());
  });
}

CompletionQueue::CompletionQueue(std::shared_ptr<ProcessContext> process, std::unique_ptr<KernelCq> kernel_cq)
    : process_(std::move(process)),
      kernel_cq_(std::move(kernel_cq)),
      resize_lock_(process_->machine()),
      backlog_(1U << kernel_cq_->ring().log_depth) {}

std::uint32_t CompletionQueue::depth() const {
  const std::lock_guard lock(lock_);
  return 1U << kernel_cq_->ring().log_depth;
}

Result<void> CompletionQueue::resize(std::uint32_t entries) {
  if (entries == 0 || entries > max_entries(process_->limits())) return Error::kInvalidParameter;
  const SleepLock::Guard guard(resize_lock_);
  if (!guard) return Error::kDeviceFailed;
  return or_out_of_memory([&] { return replace_ring(entries); });
}

Result<void> CompletionQueue::replace_ring(std::uint32_t entries) {
  {
    const std::lock_guard lock(lock_);
    decode_locked();
    if (backlog_.size() > entries) return Error::kTooSmall;
  }
  const std::uint32_t depth = std::bit_ceil(entries + kSpareEntries);
  Backlog larger(depth);
  auto origin = kernel_cq_->resize(depth);
  if (!origin) return origin.error();
  // Entries before the origin come in the old ring, if they are not there yet.
  const std::uint64_t start = process_->machine().now_ns();
  while (!adopt(*origin, larger)) {
    if (process_->machine().now_ns() - start > kRingTimeoutNs || !process_->usable()) {
      process_->give_up();
      return Error::kTimeout;
    }
    process_->machine().elapse(cost::kAdminPollNs);
  }
  kernel_cq_->give_back();
  return {};
}

bool CompletionQueue::adopt(std::uint32_t origin, Backlog& larger) {
  const std::lock_guard lock(lock_);
  decode_locked();
  if ((decoded_ & kIndexMask) != origin) return false;
  kernel_cq_->adopt();
  if (larger.room() <= backlog_.room()) return true;
  for (; backlog_.size() != 0; backlog_.pop()) larger.push(backlog_[0]);
  backlog_ = std::move(larger);
  return true;
}

void CompletionQueue::decode() {
  const std::lock_guard lock(lock_);
  decode_locked();
}

void CompletionQueue::decode_locked() {
  // No sound device writes more than the ring holds.
  while (backlog_.size() != backlog_.room()) {
    Decoded entry;
    const Decoding decoding = decode_next(entry.completion);
    if (decoding == Decoding::kNothingThere) return;
    entry.known = decoding == Decoding::kDone;
    if (!entry.known) report_unknown(entry.completion.qpn);
    backlog_.push(entry);
  }
}

void CompletionQueue::forget(std::uint32_t qpn) {
  const std::lock_guard lock(lock_);
  decode_locked();
  const std::uint32_t removed = backlog_.remove([qpn](const Decoded& entry) { return entry.completion.qpn == qpn; });
  if (removed == 0) return;
  consumer_ += removed;
  ring(hw::CqArm::kNone);
}

void CompletionQueue::report_unknown(std::uint32_t qpn) {
  process_->machine().report(DeviceOddity::kUnknownCompletion, qpn);
}

std::uint32_t CompletionQueue::waiting() {
  const std::lock_guard lock(lock_);
  decode_locked();
  return backlog_.size();
}

std::uint64_t CompletionQueue::solicited(const std::uint64_t& polled) {
  const std::lock_guard lock(lock_);
  decode_locked();
  std::uint64_t count = polled;
  for (std::uint32_t i = 0; i < backlog_.size(); ++i) count += is_solicited(backlog_[i].completion) ? 1 : 0;
  return count;
}

void CompletionQueue::arm(hw::CqArm kind) {
  process_->machine().elapse(cost::kArmNs);
  renew_arm(kind);
}

void CompletionQueue::renew_arm(hw::CqArm kind) {
  const std::lock_guard lock(lock_);
  ring(kind);
}

void CompletionQueue::attach(std::uint32_t qpn, SendQueue* send, ReceiveSource* receive, void* qp_context) {
  const std::lock_guard lock(lock_);
  auto& client = clients_[qpn];
  if (send != nullptr) client.send = send;
  if (receive != nullptr) client.receive = receive;
  client.qp_context = qp_context;
}

void CompletionQueue::detach(std::uint32_t qpn, const SendQueue* send, const ReceiveSource* receive) {
  const std::lock_guard lock(lock_);
  decode_locked();
  const auto client = clients_.find(qpn);
  if (client == clients_.end()) return;
  if (client->second.send == send) client->second.send = nullptr;
  if (client->second.receive == receive) client->second.receive = nullptr;
  if (client->second.send != nullptr || client->second.receive != nullptr) return;
  last_client_ = nullptr;
  clients_.erase(client);
}

}  // namespace rnic::umd
