#pragma once

#include <string>
#include <vector>

#include "driver/device.hpp"
#include "driver/ndk/ndkpi.h"

// Consumers of the Network Direct kernel provider interface whose every call is one at DISPATCH_LEVEL, where the
// documentation allows it: between entry and return of a call the driver takes no memory and waits for nobody. Giving
// memory back is allowed there, and so is a spin lock. What the simulated machine does for the driver is not the
// driver's.
//
// A program of these has the hooks of dispatch_level.cpp (rnic_dispatch_level in CMakeLists.txt).
namespace rnic::test {

/// The calling thread is at DISPATCH_LEVEL, for a scope.
class DispatchLevel {
 public:
  DispatchLevel();
  DispatchLevel(const DispatchLevel&) = delete;
  DispatchLevel& operator=(const DispatchLevel&) = delete;
  ~DispatchLevel();

  /// What was done meanwhile that may not be; null: nothing.
  [[nodiscard]] const char* broken() const;
};

/// A device whose functions are the machine's, not the driver's; of those that the driver calls at DISPATCH_LEVEL it
/// knows which take memory or let time pass (driver/device.hpp).
class DispatchDevice final : public Device {
 public:
  /// `device` outlives it.
  explicit DispatchDevice(Device& device) : device_(device) {}

  void write64(std::uint64_t offset, std::uint64_t value) override;
  void write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) override;
  [[nodiscard]] std::uint64_t wake_count() override;
  void wake() override;
  [[nodiscard]] bool wait(std::uint64_t seen, std::uint64_t timeout_ns) override;
  [[nodiscard]] bool removed() override;
  void report(DeviceOddity oddity, std::uint32_t number) override;
  void elapse(std::uint64_t ns) override;
  void relax() override;
  [[nodiscard]] std::uint64_t now_ns() override;
  [[nodiscard]] std::uint64_t read64(std::uint64_t offset) override;
  [[nodiscard]] Result<DmaBuffer> dma_alloc(std::size_t bytes) override;
  void dma_free(const DmaBuffer& buffer) override;
  [[nodiscard]] Result<std::vector<std::uint64_t>> map_pages(const void* p, std::size_t length, bool writable) override;
  void unmap_pages(const void* p, std::size_t length, std::span<const std::uint64_t> iovas) override;
  [[nodiscard]] Result<std::vector<std::uint64_t>> map_process_pages(std::int32_t process, std::uint64_t address,
                                                                     std::size_t length, bool writable) override;
  void unmap_process_pages(std::int32_t process, std::uint64_t address, std::size_t length,
                           std::span<const std::uint64_t> iovas) override;
  void reset_function() override;
  [[nodiscard]] MsixMessage msix_message(std::uint32_t vector) override;
  [[nodiscard]] std::uint64_t random64() override;

 private:
  Device& device_;
};

/// From now on the consumer's calls of `object` are at DISPATCH_LEVEL, and the running test fails of one that does what
/// may not be done there. Not NdkQueryAdapterInfo, which belongs to PASSIVE_LEVEL. Null stays null.
NDK_ADAPTER* at_dispatch_level(NDK_ADAPTER* object);
NDK_PD* at_dispatch_level(NDK_PD* object);
NDK_CQ* at_dispatch_level(NDK_CQ* object);
NDK_MR* at_dispatch_level(NDK_MR* object);
NDK_MW* at_dispatch_level(NDK_MW* object);
NDK_QP* at_dispatch_level(NDK_QP* object);
NDK_SRQ* at_dispatch_level(NDK_SRQ* object);
NDK_CONNECTOR* at_dispatch_level(NDK_CONNECTOR* object);
NDK_LISTENER* at_dispatch_level(NDK_LISTENER* object);

/// The functions of all tables that no test of this process has called at DISPATCH_LEVEL so far, by name.
[[nodiscard]] std::vector<std::string> never_raised();

}  // namespace rnic::test
