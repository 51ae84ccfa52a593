#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "model/process_memory.hpp"
#include "model/random.hpp"

namespace rnic::model {

/// I/O memory management unit of one host: which pages of the process the device can reach, under which device address
/// (IOVA).
///
/// Device addresses of pages are scattered at random over half of the address space, so that a device that takes pages
/// for contiguous, or uses an address after it was unmapped, meets a fault and not somebody's data.
class Iommu {
 public:
  enum class Rights : std::uint8_t { kRead = 1, kReadWrite = 3 };
  enum class Access : std::uint8_t { kRead, kWrite };
  /// kGone: the process to which the memory belongs does not have it any more.
  enum class Reason : std::uint8_t { kNotMapped, kReadOnly, kRevoked, kGone };

  /// A DMA that was refused.
  struct Fault {
    std::uint64_t iova{};
    Access access{};
    Reason reason{};
  };

  static constexpr unsigned kAddressBits = 47;

  /// Device addresses have `address_bits`, 34 to 64; otherwise throws std::invalid_argument.
  explicit Iommu(std::uint64_t seed = 0, unsigned address_bits = kAddressBits);

  /// Maps each 4 KiB page that [start, start + length) touches; length 0 counts as 1. Returns their device addresses in
  /// order. Mappings of one page are independent of each other.
  [[nodiscard]] std::vector<std::uint64_t> map_pages(const void* start, std::size_t length, Rights rights);
  /// The same for memory of another process, by the number that add_process gave: `address` is one there.
  [[nodiscard]] std::vector<std::uint64_t> map_process_pages(std::int32_t process, std::uint64_t address,
                                                             std::size_t length, Rights rights) {
    return map_process_pages(process, address, length, rights, new_mapping());
  }
  /// The same in parts, which belong to one mapping.
  using Mapping = std::uint64_t;
  [[nodiscard]] Mapping new_mapping() { return ++last_mapping_; }
  [[nodiscard]] std::vector<std::uint64_t> map_process_pages(std::int32_t process, std::uint64_t address,
                                                             std::size_t length, Rights rights, Mapping mapping);
  /// Memory of another process gets a number, never 0 and never given again. Null: of one that is only known to be.
  [[nodiscard]] std::int32_t add_process(std::shared_ptr<ProcessMemory> memory);
  /// What is still mapped of it is not there any more.
  void remove_process(std::int32_t process) { processes_.erase(process); }
  /// Null: there is none of this number, or nothing to reach it by.
  [[nodiscard]] std::shared_ptr<ProcessMemory> process(std::int32_t process) const {
    const auto found = processes_.find(process);
    return found == processes_.end() ? nullptr : found->second;
  }
  /// Unmaps all of a mapping of map_process_pages, however large, in no time: its places are given back a few at a
  /// time, when others are looked for. Throws std::invalid_argument when it is not all of one.
  void unmap_process_pages(std::span<const std::uint64_t> iovas);

  /// Maps [start, start + length), whole pages, at one contiguous range of device addresses; its start is returned.
  [[nodiscard]] std::uint64_t map_range(void* start, std::size_t length, Rights rights);
  /// Memory that the device reaches by the address that it has in its machine, as without an IOMMU.
  struct Window {
    std::uint64_t address{};  ///< Whole pages
    std::uint64_t bytes{};
    std::uint8_t* host{};  ///< Of this process
  };
  /// From now on there are these, and no others; where two overlap the first counts. Beside them stays what is mapped.
  /// Throws std::invalid_argument for one that is not of whole pages, or leaves the address space.
  void set_windows(std::vector<Window> windows);

  /// Unmaps pages of map_pages. Throws std::invalid_argument for one that is not mapped; the others are unmapped.
  void unmap_pages(std::span<const std::uint64_t> iovas);
  /// Unmaps a range of map_range. Throws std::invalid_argument when a page of it is not mapped; the others are
  /// unmapped.
  void unmap_range(std::uint64_t iova, std::size_t length);

  /// Where the device finds `iova`, up to the end of its page. Null, counted and reported, when the access is not
  /// allowed.
  [[nodiscard]] std::uint8_t* translate(std::uint64_t iova, Access access) { return locate(iova, access).at; }
  /// The same for who can reach into other processes.
  struct Place {
    std::uint8_t* at{};      ///< Null: nowhere
    std::int32_t process{};  ///< Whose memory it is (add_process); 0: of this process
  };
  [[nodiscard]] Place locate(std::uint64_t iova, Access access);
  /// What was found is not there any more, or is not for this access: a fault like any other.
  void gone(std::uint64_t iova, Access access) { fault({iova, access, Reason::kGone}); }

  /// Takes away, under the device's feet, every mapping that the page of `host` has now: accesses fault from now on,
  /// and its owner unmaps it as ever. Returns how many there were.
  std::size_t revoke(const void* host);
  /// The same for the one mapping of the page at `iova`. False: there is none.
  bool revoke_page(std::uint64_t iova);
  /// What translate would return for a read, without a fault.
  [[nodiscard]] const std::uint8_t* peek(std::uint64_t iova) const;

  /// Called at each fault.
  void set_fault_handler(std::function<void(const Fault&)> handler) { handler_ = std::move(handler); }
  [[nodiscard]] std::uint64_t fault_count() const { return fault_count_; }
  /// Those of them for which nobody but a process can answer that has given up memory that the device was to use.
  [[nodiscard]] std::uint64_t gone_count() const { return gone_count_; }
  /// The newest faults, at most kFaultLogDepth.
  [[nodiscard]] const std::deque<Fault>& fault_log() const { return fault_log_; }
  [[nodiscard]] std::size_t mapped_pages() const { return pages_.size() - left_pages_; }

  /// Unmaps everything, windows too, forgets the faults, and starts again as the constructor says. The fault handler
  /// stays.
  void clear(std::uint64_t seed, unsigned address_bits = kAddressBits);

  static constexpr std::size_t kFaultLogDepth = 64;

 private:
  struct Page {
    std::uint8_t* host;
    Rights rights;
    std::int32_t process = 0;  ///< Whose memory it is; 0: of this process
    bool revoked = false;
    Mapping mapping = 0;  ///< Of a process's memory
  };
  [[nodiscard]] const Page* find(std::uint64_t iova) const;
  void give_back(std::size_t most);
  void fault(const Fault& fault);
  /// In a window; null: in none.
  [[nodiscard]] std::uint8_t* in_window(std::uint64_t iova) const;

  [[nodiscard]] std::uint64_t scattered_page();
  [[nodiscard]] bool unmap(std::uint64_t iova);

  Random random_;
  std::unordered_map<std::uint64_t, Page> pages_;  ///< By page number
  std::map<std::int32_t, std::shared_ptr<ProcessMemory>> processes_;
  std::int32_t last_process_ = 0;
  std::unordered_map<Mapping, std::size_t> mappings_;  ///< How many pages those of processes have
  Mapping last_mapping_ = 0;
  std::deque<std::vector<std::uint64_t>> left_;  ///< Device addresses of mappings that have gone
  std::size_t left_pages_ = 0;
  std::vector<Window> windows_;
  std::uint64_t end_page_;  ///< Of the scattered pages
  std::uint64_t next_range_;
  std::uint64_t fault_count_ = 0;
  std::uint64_t gone_count_ = 0;
  std::deque<Fault> fault_log_;
  std::function<void(const Fault&)> handler_;
};

}  // namespace rnic::model
