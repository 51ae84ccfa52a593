#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "model/iommu.hpp"

namespace rnic::testbench {

/// What a guest finds on its PCI bus.
class GuestFunction {
 public:
  virtual ~GuestFunction() = default;

  /// 1, 2 or 4 bytes within the first 256 of the configuration space.
  [[nodiscard]] virtual std::uint32_t config_read(std::size_t offset, std::size_t bytes) = 0;
  virtual void config_write(std::size_t offset, std::uint32_t value, std::size_t bytes) = 0;

  /// A memory write of 1, 2, 4 or 8 bytes; posted. Writes keep their order.
  virtual void write(std::uint64_t address, std::uint64_t value, std::size_t bytes) = 0;
  /// A memory read, which comes behind all writes before it. `done` gets what it has read, in this call or later, once.
  virtual void read(std::uint64_t address, std::size_t bytes, std::function<void(std::uint64_t)> done) = 0;

  /// From now on the function reaches this memory, and no other.
  virtual void set_memory(const std::vector<model::Iommu::Window>& windows) = 0;

  /// As after power-on.
  virtual void reset() = 0;
};

}  // namespace rnic::testbench
