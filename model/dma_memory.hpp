#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "model/iommu.hpp"
#include "model/memory_order.hpp"
#include "model/memory_witness.hpp"
#include "model/pcie.hpp"
#include "model/process_memory.hpp"

namespace rnic::model {

/// The bytes that a write enables (PCI Express base specification 2.2.5).
[[nodiscard]] std::size_t enabled_bytes(const DmaRequest& request);

/// Memory of one host as DMA reaches it, behind the IOMMU: of this process, in the order that the host has; of another
/// one, through the system (ProcessMemory), where writes take their time and a read may answer later. What is not there
/// faults as behind an IOMMU.
class DmaMemory {
 public:
  explicit DmaMemory(Iommu& iommu) : iommu_(iommu) {}
  DmaMemory(const DmaMemory&) = delete;
  DmaMemory& operator=(const DmaMemory&) = delete;

  /// Memory of this process is read and written as `order` has it, from now on. It outlives this.
  void set_order(MemoryOrder& order) { order_ = &order; }
  /// All goes through `witness` from now on, which outlives this. Null: by itself.
  void set_witness(MemoryWitness* witness) { witness_ = witness; }
  /// Called before memory of this process is written. Empty: finish_writes.
  void set_before_write(std::function<void()> before) { before_write_ = std::move(before); }
  /// Called with the bytes of a write that was under way when its memory was no longer there.
  void set_lost_write_handler(std::function<void(std::size_t)> handler) { on_lost_write_ = std::move(handler); }

  /// The whole dwords of a read. False: the memory is not there.
  [[nodiscard]] bool read(const DmaRequest& request, const Iommu::Place& from, std::vector<std::uint8_t>& data);
  /// Whether begin_read may be called.
  [[nodiscard]] bool answers_later(const Iommu::Place& from) const { return from.process != 0 && witness_ == nullptr; }
  /// The same as `read`, whose end the result waits for. Empty: the memory is not there.
  [[nodiscard]] std::function<bool(std::vector<std::uint8_t>&)> begin_read(const DmaRequest& request,
                                                                           const Iommu::Place& from);
  /// False: the memory is not there, or not to be written.
  [[nodiscard]] bool write(const DmaRequest& request, const Iommu::Place& to);
  /// Writes that are under way have arrived when this returns.
  void finish_writes();

 private:
  /// To memory of another process, under way.
  struct Write {
    std::shared_ptr<ProcessMemory> memory;
    std::shared_ptr<ProcessMemory::Access> access;
    std::uint64_t address;
    std::size_t bytes;
  };

  [[nodiscard]] bool weak_order() const { return order_ != nullptr && order_->weak(); }
  [[nodiscard]] bool copy_from(const Iommu::Place& from, std::vector<std::uint8_t>& data);
  [[nodiscard]] bool copy_to(const Iommu::Place& to, const DmaRequest& request);
  [[nodiscard]] bool begin_write(const DmaRequest& request, const Iommu::Place& to);

  Iommu& iommu_;
  MemoryOrder* order_ = nullptr;
  MemoryWitness* witness_ = nullptr;
  std::function<void()> before_write_;
  std::function<void(std::size_t)> on_lost_write_;
  std::vector<Write> writes_;
};

}  // namespace rnic::model
