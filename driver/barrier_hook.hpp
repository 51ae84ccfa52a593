#pragma once

#include <cstdint>
#include <source_location>

/// For tests: who is told of each barrier (driver/mmio.hpp) as it is passed. A driver that is compiled with
/// RNIC_BARRIER_HOOK calls barrier_hook, which its test defines; any other calls nothing and passes nothing.
namespace rnic {

enum class Barrier : std::uint8_t { kDmaWrite, kWindowWrite, kWindowFlush, kDmaRead, kDmaRelease };

void barrier_hook(Barrier kind, const std::source_location& site);

#if defined(RNIC_BARRIER_HOOK)
/// Where a barrier stands.
using BarrierSite = std::source_location;
#else
struct BarrierSite {
  static constexpr BarrierSite current() { return {}; }
};
inline void barrier_hook(Barrier /*kind*/, BarrierSite /*site*/) {}
#endif

}  // namespace rnic
