#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/kmd/dma_memory.hpp"
#include "driver/kmd/kernel_device.hpp"

namespace rnic::kmd {

struct MrSpec {
  const void* address{};  ///< First byte; need not be aligned
  std::size_t length{};   ///< 1 to Limits::max_region
  std::uint32_t pd{};
  bool local_write{};
  bool read_sink{};  ///< Reads may write to it though local_write is false; nothing else may (decisions 57)
  bool remote_read{};
  bool remote_write{};   ///< Needs local_write
  bool remote_atomic{};  ///< Needs local_write
  bool window_bind{};    ///< Windows may be bound to it
  bool management{};     ///< Of the host's own agent: it has a key also when all others are in use
  /// Under which requests name its first byte; the same place in a page as `address`. None: its address.
  std::optional<std::uint64_t> iova{};
  AddressSpace space{};                ///< Whose memory it is
  std::shared_ptr<void> keeps{};       ///< Something that must not go before the region
  std::shared_ptr<Account> account{};  ///< Counts its pages, if there is one
};

/// Memory of an application, pinned and mapped for the device.
class PinnedPages {
 public:
  /// Errors: kOutOfMemory (also of the account), those of Device::map_pages. `device` outlives it.
  static Result<PinnedPages> pin(Device& device, const MrSpec& spec);
  PinnedPages(PinnedPages&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)),
        space_(other.space_),
        address_(other.address_),
        length_(other.length_),
        iovas_(std::move(other.iovas_)),
        charge_(std::move(other.charge_)) {}
  PinnedPages& operator=(PinnedPages&&) = delete;
  ~PinnedPages() { unpin(); }

  void unpin();
  /// As DmaMemory::abandon.
  void abandon() { device_ = nullptr; }
  [[nodiscard]] const std::vector<std::uint64_t>& iovas() const { return iovas_; }

 private:
  PinnedPages(Device& device, const AddressSpace& space, const void* address, std::size_t length,
              std::vector<std::uint64_t> iovas, Charge charge)
      : device_(&device),
        space_(space),
        address_(address),
        length_(length),
        iovas_(std::move(iovas)),
        charge_(std::move(charge)) {}

  Device* device_;
  AddressSpace space_;
  const void* address_;
  std::size_t length_;
  std::vector<std::uint64_t> iovas_;
  Charge charge_;
};

/// A registered memory region: its pages are pinned and mapped, and the device accepts its key.
class KernelMr {
 public:
  ~KernelMr();
  KernelMr(const KernelMr&) = delete;
  KernelMr& operator=(const KernelMr&) = delete;

  /// Local and remote key: index in bits 31:8, tag in bits 7:0. Never 0.
  [[nodiscard]] std::uint32_t key() const { return key_; }

  /// The list of DMA addresses that the device reads, 8 bytes a page.
  [[nodiscard]] const std::uint8_t* page_list() const { return list_.data(); }

  /// Errors: those of the admin queue.
  [[nodiscard]] Result<hw::AdminMrState> query();

  /// Destroys it now; the destructor then does nothing. When it returns success no DMA for the key can start or is
  /// under way, and the pages are unpinned. Errors: kBusy (windows are bound to it; it stays), those of the
  /// admin queue. Succeeds when the device has failed, see KernelDevice.
  [[nodiscard]] Result<void> destroy();

  /// Has the device take it, or forget it, and does not wait: `later` is told of the answer, which it gives to
  /// `creation_ended` or `destruction_ended`. Nobody else does anything with the region meanwhile. Errors:
  /// kDeviceFailed; `later` is not told.
  [[nodiscard]] Result<void> begin_creation(const hw::AdminCreateMr& body, std::shared_ptr<AdminQueue::Later> later);
  [[nodiscard]] Result<void> begin_destruction(std::shared_ptr<AdminQueue::Later> later);
  /// Let no time pass. What the answer of a device that has failed leaves open, destroy() settles.
  void creation_ended(const Result<AdminQueue::Reply>& answer);
  void destruction_ended(const Result<AdminQueue::Reply>& answer);
  /// Waits for the answer that `done` says has come. Lets time pass. False: the thread can wait no more.
  [[nodiscard]] bool wait_for(const std::function<bool()>& done);

  /// Destroys it, now or as soon as no window is bound to it any more: until then it belongs to the kernel.
  static void dispose(std::unique_ptr<KernelMr> region);

 private:
  friend class KernelDevice;
  KernelMr(KernelDevice& kernel, std::shared_ptr<void> keeps, PinnedPages pages, PoolMemory list, OwnedNumber number)
      : kernel_(kernel),
        life_(kernel.life()),
        keeps_(std::move(keeps)),
        pages_(std::move(pages)),
        list_(std::move(list)),
        number_(std::move(number)),
        key_((number_.index() << 8) | number_.tag()) {}

  KernelDevice& kernel_;
  const std::shared_ptr<DeviceLife> life_;
  const std::shared_ptr<void> keeps_;
  PinnedPages pages_;
  PoolMemory list_;
  OwnedNumber number_;
  const std::uint32_t key_;
  bool live_ = false;  ///< The device has it
  std::unique_ptr<KernelMr> next_orphan_;
};

}  // namespace rnic::kmd
