#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "model/random.hpp"
#include "testbench/endpoint.hpp"

namespace rnic::testbench {

/// Memory of one host that random work uses again and again, all of it one registered region.
///
/// Every byte that is not part of a piece holds kUntouched: free memory and the guards round each piece. It is checked
/// when memory changes hands, so a byte that anything wrote where it may not is seen sooner or later.
class TrafficArena {
 public:
  static constexpr std::uint8_t kUntouched = 0x5A;

  /// Memory in use. Its bytes are kUntouched at first.
  struct Piece {
    std::uint8_t* data = nullptr;
    std::size_t bytes = 0;
    std::size_t start = 0, span = 0;  ///< With guards, from the start of the arena
  };

  /// Throws EndpointError, and std::bad_alloc when the host has not so much memory.
  TrafficArena(Endpoint& endpoint, std::size_t bytes);
  ~TrafficArena();
  TrafficArena(const TrafficArena&) = delete;
  TrafficArena& operator=(const TrafficArena&) = delete;

  /// A piece of `bytes` at a random alignment, guards on both sides. Nothing: no room now.
  [[nodiscard]] std::optional<Piece> take(std::size_t bytes, model::Random& random);
  /// Frees a piece.
  void give_back(const Piece& piece);

  /// Stray bytes found so far: written in free memory or in guards.
  [[nodiscard]] std::uint64_t strays() const { return strays_; }
  /// Looks at all free memory; returns strays().
  std::uint64_t check_free();

  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] std::uint8_t* base() { return base_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] UINT32 local_token() { return region_->GetLocalToken(); }
  [[nodiscard]] UINT32 remote_token() { return region_->GetRemoteToken(); }

 private:
  void check_untouched(std::size_t start, std::size_t bytes);

  Endpoint& endpoint_;
  const std::size_t size_;
  std::uint8_t* base_ = nullptr;
  ComPtr<IND2MemoryRegion> region_;
  std::map<std::size_t, std::size_t> free_;  ///< Start to length; neighbours are merged
  std::uint64_t strays_ = 0;
};

}  // namespace rnic::testbench
