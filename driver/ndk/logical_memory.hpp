#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "driver/device.hpp"
#include "driver/ndk/ndkpi.h"
#include "driver/spin_lock.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/request.hpp"

namespace rnic::ndk {

/// What segments with logical addresses carry as their token (NdkGetPrivilegedMemoryRegionToken). The device has no
/// such key, so a peer can do nothing with it.
inline constexpr UINT32 kPrivilegedToken = 0xFFFFFF01;

/// Memory that has logical addresses: what NdkBuildLAM has mapped for the device. The device knows memory by keys and
/// virtual addresses only; so a segment with a logical address is posted as one of a region, which each mapping has in
/// each protection domain.
class LogicalMemory {
 public:
  /// `context` and `device` outlive it.
  LogicalMemory(umd::ProcessContext& context, Device& device) : context_(context), device_(device) {}
  LogicalMemory(const LogicalMemory&) = delete;
  LogicalMemory& operator=(const LogicalMemory&) = delete;
  ~LogicalMemory();

  struct Mapping;

  /// Maps memory. Errors: kAccessViolation (it is not the process's, or not writable), those of create_mr. Lets time
  /// pass.
  [[nodiscard]] Result<Mapping*> build(void* memory, std::size_t bytes);
  [[nodiscard]] static std::span<const std::uint64_t> pages(const Mapping& mapping);
  /// Its pages have no logical addresses from now on. Lets time pass.
  void release(Mapping& mapping);

  /// Segments of requests in this protection domain may have logical addresses from now on. Errors: those of
  /// create_mr. Lets time pass.
  [[nodiscard]] Result<void> add_domain(calls::Handle pd);
  void remove_domain(calls::Handle pd);

  /// The segment as the device can use it; one that lies in no mapping, or that goes on where the next page has another
  /// logical address, stays as it is, and fails as one with a bad key. Needs no memory, lets no time pass.
  [[nodiscard]] umd::Segment translate(calls::Handle pd, const NDK_SGE& sge);

 private:
  struct Place {
    Mapping* mapping{};
    std::size_t page{};
  };

  [[nodiscard]] Result<void> open_in(Mapping& mapping, calls::Handle pd);

  umd::ProcessContext& context_;
  Device& device_;
  SpinLock lock_;                               ///< Guards what translate reads
  std::multimap<std::uint64_t, Place> places_;  ///< By logical address
  std::list<Mapping> mappings_;
  std::vector<calls::Handle> domains_;
};

struct LogicalMemory::Mapping {
  void* memory{};
  std::size_t bytes{};
  std::vector<std::uint64_t> iovas;
  std::map<calls::Handle, std::unique_ptr<umd::KernelMr>> regions;  ///< By protection domain
};

inline std::span<const std::uint64_t> LogicalMemory::pages(const Mapping& mapping) { return mapping.iovas; }

}  // namespace rnic::ndk
