#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <vector>

#include "driver/fast_registration.hpp"
#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/spin_lock.hpp"

namespace rnic::kmd {

struct FastMrSpec {
  std::uint32_t pd{};
  std::uint32_t max_pages{};  ///< Longest page list, 1 to Limits::max_fast_pages
  bool remote_access{};       ///< May be registered with remote rights
  bool window_bind{};         ///< Windows may be bound to it
  /// Registrations that may have their list at a time; their lists are there from the beginning, and `prepare` needs no
  /// memory. 0: as many as there is memory for, up to 128.
  std::uint32_t registrations{};
};

/// A fast-register memory region. Work requests register and invalidate it; what this class owns is its index, the
/// tags, its lines on chip, and the page lists, which the device reads for as long as a registration lasts. A short
/// list goes in the request, and then to the lines on chip. Thread safe.
class KernelFastMr {
 public:
  ~KernelFastMr();
  KernelFastMr(const KernelFastMr&) = delete;
  KernelFastMr& operator=(const KernelFastMr&) = delete;

  /// Key of the newest registration that was posted. Before the first: one that opens nothing. Never 0.
  [[nodiscard]] std::uint32_t key() const { return key_; }

  /// Makes everything ready for a FastRegister request: draws a key that no registration that still has its list uses,
  /// and copies the page list, unless it is short enough to go in the request, which has room for `inline_pages`, and
  /// on chip. Errors: kInvalidParameter (decisions 39: page count, page addresses, first offset, length
  /// or base, a remote write right without local write), kAccessViolation (decisions 21: a remote right, but no
  /// remote_access), kOutOfMemory, kOutOfResources (too many registrations have their list).
  [[nodiscard]] Result<FastRegistration> prepare(const FastRange& range, std::uint32_t inline_pages = 0);

  /// The request for that registration has been posted: its key is key() from now on.
  void register_posted(std::uint32_t key) { key_ = key; }

  /// The device no longer uses the page list of the registration with that key: the request was not posted, or has
  /// failed or been flushed, or the registration has been invalidated (the completion says so, of the owner's request
  /// or of the peer's). Errors: kNotFound.
  Result<void> release(std::uint32_t key) noexcept;

  /// What the device has of it. Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminMrState> query();

  /// Ends a registration and destroys the region now; the destructor then does nothing. When it returns success no DMA
  /// for its keys can start or is under way. Errors: kBusy (windows are bound to it; it stays), those of the admin
  /// queue. Succeeds when the device has failed, see KernelDevice.
  [[nodiscard]] Result<void> destroy();

 private:
  friend class KernelDevice;
  /// Page lists: a list with one node each, which moves between the two without memory.
  struct PageList {
    std::uint32_t key{};  ///< Of the registration that uses it
    PoolMemory memory;
  };
  using PageLists = std::list<PageList>;

  KernelFastMr(KernelDevice& kernel, const FastMrSpec& spec, OwnedNumber number, OwnedLines lines, PageLists first)
      : kernel_(kernel),
        life_(kernel.life()),
        spec_(spec),
        number_(std::move(number)),
        lines_(std::move(lines)),
        key_((number_.index() << 8) | number_.tag()),
        free_(std::move(first)) {}
  static Result<PageLists> make_lists(DmaPool& pool, std::uint32_t max_pages, std::uint32_t count);
  [[nodiscard]] PageLists::iterator find_used(std::uint32_t key);
  [[nodiscard]] Result<PageLists> take_list();
  [[nodiscard]] Result<void> check(const FastRange& range) const;

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  const FastMrSpec spec_;
  OwnedNumber number_;
  OwnedLines lines_;
  std::atomic<std::uint32_t> key_;
  SpinLock lock_;   ///< Guards the two below
  PageLists free_;  ///< Without a registration
  PageLists used_;
  bool live_ = false;  ///< The device has it
};

}  // namespace rnic::kmd
