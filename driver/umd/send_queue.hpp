#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "driver/result.hpp"
#include "driver/spin_lock.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/request.hpp"

namespace rnic::umd {

/// The send ring of a queue pair: builds WQEs, rings doorbells, knows which slots are free.
///
/// A slot is taken from posting until its request has retired (decisions 2) and, if it makes a CQE, that CQE has
/// been decoded, for the decoding needs the context kept beside the slot. Silent requests make no CQE, so the device
/// reports the retired index in later CQEs and in the retired record.
///
/// Thread safe; lets no time pass. A completion queue calls in with its lock held, never the other way round.
class SendQueue {
 public:
  struct Layout {
    hw::QpType type = hw::QpType::kRc;
    std::uint32_t qpn{};
    std::uint8_t* ring{};
    unsigned log_depth{};
    unsigned log_stride{};
    const std::uint64_t* retired_record{};
    std::uint32_t depth{};  ///< Requests granted, at most 2^log_depth
    std::uint32_t max_segments{};
    std::uint32_t max_inline{};
    std::uint32_t max_message{};
  };

  /// log2 of the stride that holds requests of so many segments and inline bytes.
  [[nodiscard]] static unsigned log_stride_for(std::uint32_t segments, std::uint32_t inline_bytes,
                                               hw::QpType type = hw::QpType::kRc);

  SendQueue(ProcessContext& process, const Layout& layout);
  SendQueue(const SendQueue&) = delete;
  SendQueue& operator=(const SendQueue&) = delete;

  /// Errors: kTooManySegments, kMessageTooLong, kInvalidParameter (an atomic without exactly one segment of 8 bytes, an
  /// operation that the transport service does not have, a datagram without an address),
  /// kQueueFull. After an error the ring is as it was, and what was deferred
  /// has been rung (decisions 33).
  [[nodiscard]] Result<void> post(const SendRequest& request);

  /// Posts those from `posted` on under one lock, and counts them there. Errors: as the other, of the one that is not
  /// posted; those before it are, and have been rung.
  [[nodiscard]] Result<void> post(std::span<const SendRequest> requests, std::size_t& posted);

  /// Errors: kQueueFull; then as the other post. kInvalidParameter: more inline pages than there is room for.
  [[nodiscard]] Result<void> post(const MemoryRequest& request);

  /// Pages that a FastRegister request has room for: in its slot, and in the window, for one that has to be fetched
  /// costs what it saves.
  [[nodiscard]] std::uint32_t inline_pages() const;

  /// Rings for the requests that were posted with `defer`.
  void ring_deferred();

  /// Tells the KeyWatch of each request about a key that has executed by now.
  void settle();

  /// Takes note of a CQE with these fields (`failed`: another status than Success): returns what was posted at its
  /// index, or nothing if nothing is outstanding there.
  struct Posted {
    std::uint64_t id{};
    RequestKind kind{};
  };
  [[nodiscard]] std::optional<Posted> complete(std::uint16_t index, std::uint16_t retired_index, bool failed);

  /// Forgets everything: the device's indexes are 0 again.
  void reset();

  [[nodiscard]] std::uint32_t outstanding();

 private:
  /// Requests not retired up to which a WQE goes through the window. The device takes the copy only if it is about to
  /// execute it; with more requests ahead the copy would most likely be wasted PCIe bandwidth.
  static constexpr std::uint16_t kWindowOutstanding = 8;

  struct Slot {
    std::uint64_t id{};
    RequestKind kind{};
    bool silent{};
    bool decoded{};
  };

  /// A request about a key that has not been seen to end.
  struct Watched {
    std::uint16_t index{};
    std::uint32_t key{};
    std::shared_ptr<KeyWatch> watch;
  };

  [[nodiscard]] Result<void> post_locked(const SendRequest& request);
  [[nodiscard]] bool has_few_inline(const SendRequest& request) const;
  [[nodiscard]] Result<void> check(const SendRequest& request, RequestKind kind, std::uint64_t length);
  [[nodiscard]] std::size_t build(const SendRequest& request, RequestKind kind, std::uint32_t length,
                                  std::uint8_t* wqe) const;
  [[nodiscard]] std::size_t build(const MemoryRequest& request, RequestKind kind, std::uint8_t* wqe) const;
  [[nodiscard]] bool has_slot();
  [[nodiscard]] std::uint8_t* next_wqe() const {
    return layout_.ring + (static_cast<std::size_t>(producer_ & mask_) << layout_.log_stride);
  }
  template <typename Request>
  void publish(const Request& request, RequestKind kind, std::span<const std::uint8_t> wqe);
  [[nodiscard]] bool few_outstanding();
  void ring();
  void retire_to(std::uint16_t index);
  /// Those whose slots are free again, and that have not failed, have executed.
  void settle_watched();
  void refuse_watched(std::uint16_t index);
  void read_retired_record();
  [[nodiscard]] std::uint16_t taken() const { return static_cast<std::uint16_t>(producer_ - oldest_); }
  [[nodiscard]] Slot& slot(std::uint16_t index) { return slots_[index & mask_]; }

  ProcessContext& process_;
  const Layout layout_;
  const std::uint16_t mask_;
  SpinLock lock_;
  std::vector<Slot> slots_;
  std::vector<Watched> watched_;  ///< In the order of posting; room for all that may be outstanding
  std::uint16_t producer_{};      ///< Next index to post
  std::uint16_t rung_{};          ///< The device has been told of everything before
  std::uint16_t retired_{};       ///< Retired index as far as known
  std::uint16_t oldest_{};        ///< Oldest slot not free; at or behind retired_
  std::uint64_t last_record_{};
};

inline std::optional<SendQueue::Posted> SendQueue::complete(std::uint16_t index, std::uint16_t retired_index,
                                                            bool failed) {
  const std::lock_guard lock(lock_);
  if (static_cast<std::uint16_t>(index - oldest_) >= taken()) return std::nullopt;
  auto& entry = slot(index);
  if (entry.decoded) return std::nullopt;
  entry.decoded = true;
  const Posted posted{entry.id, entry.kind};
  if (failed) [[unlikely]]
    refuse_watched(index);
  read_retired_record();
  retire_to(retired_index);
  return posted;
}

inline void SendQueue::retire_to(std::uint16_t index) {
  const auto known = static_cast<std::uint16_t>(retired_ - oldest_);
  const auto offered = static_cast<std::uint16_t>(index - oldest_);
  if (offered > known && offered <= taken()) retired_ = index;
  while (oldest_ != retired_ && (slot(oldest_).silent || slot(oldest_).decoded)) ++oldest_;
}

/// The record stands still while CQEs report progress, so an old value could, 2^16 requests later, look like one that
/// is ahead. Only a value not seen before counts, and it is looked at with every CQE.
inline void SendQueue::read_retired_record() {
  const std::uint64_t record = load_word(layout_.retired_record);
  if (record == last_record_) return;
  last_record_ = record;
  dma_read_barrier();
  retire_to(hw::RetiredRecord::from_word(record).retired_index);
}

}  // namespace rnic::umd
