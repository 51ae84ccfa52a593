#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "testbench/endpoint.hpp"
#include "testbench/tool/transfer.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

inline constexpr std::uint32_t kBenchMtu = 4096;
inline constexpr std::size_t kBenchBufferBytes = 8 << 20;

/// Both hosts with `qps` connected queue pairs; each `per_cq` of them share a completion queue.
class Pairs {
 public:
  /// Throws EndpointError. Each queue takes `depth` requests of up to `inline_bytes` of inline data.
  Pairs(World& world, std::uint32_t qps, std::uint32_t per_cq, ULONG depth, ULONG inline_bytes,
        const ConnectParameters& connection);

  struct Side {
    std::unique_ptr<Endpoint> endpoint;
    std::vector<ComPtr<IND2CompletionQueue>> cqs;
    std::vector<ComPtr<IND2QueuePair>> qps;
    std::uint8_t* buffer = nullptr;
    ComPtr<IND2MemoryRegion> region;
  };
  [[nodiscard]] Side& side(std::size_t host) { return sides_[host]; }
  /// Bytes [offset, offset + bytes) of both buffers: local at `host`, remote at the other.
  [[nodiscard]] Transfer::Range range(std::size_t host, std::uint64_t offset, std::uint64_t bytes, ULONG flags = 0);

 private:
  std::array<Side, 2> sides_;
};

/// Makes the pairs, runs the applications that `apps` adds, and takes the pairs down, all in simulated time. The first
/// `moved` bytes of both buffers must be equal then, wherever they came from. Throws what World::run throws,
/// EndpointError, and std::runtime_error for bytes that differ.
void with_pairs(World& world, const WorldOptions& options, std::uint32_t qps, std::uint32_t per_cq, ULONG depth,
                ULONG inline_bytes, std::uint64_t moved, const std::function<void(Pairs&)>& apps,
                const ConnectParameters& connection = {kBenchMtu});

}  // namespace rnic::testbench
