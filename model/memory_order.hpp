#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <span>
#include <systemc>

#include "model/pcie.hpp"
#include "model/random.hpp"
#include "model/time.hpp"
#include "model/timed_event.hpp"

namespace rnic::model {

struct MemoryOrderOptions {
  /// False: processor and device see each other's stores at once, in their order.
  bool weak = false;
  /// Longest time after which the device sees a store, and the processor a DMA write or an interrupt, although nothing
  /// orders it. Positive.
  double longest_store_ns = 3'500, longest_arrival_ns = 2'000;
  std::uint64_t seed = 1;
};

/// In which order the processor of a host and its device see what they store in memory that they share. Of a weak host
/// nothing is promised but by barriers, as on the weakest of the machines that driver/mmio.hpp knows; every word of
/// eight bytes goes its own way.
///
/// Processor to device: what the processor has stored when stores_barrier is called the device sees before the next
/// write of the processor to the device (device_write) reaches it. What no barrier orders it sees sooner or later: by
/// chance when it reads the word, and after longest_store_ns at the latest.
///
/// Device to processor: what the device has written when loads_barrier is called the processor sees from then on.
/// Without, each word appears at a random time within longest_arrival_ns, in any order. An interrupt, which takes a
/// random time too, brings all that was written before it.
///
/// Memory that is shared lies in this process, and the processor's loads and stores are those of the program. So its
/// view is the memory itself; of each page there is a copy as the device sees it. A load that the processor delays
/// beyond a later store can't be played: it has happened.
class MemoryOrder : public sc_core::sc_module {
 public:
  /// Throws std::invalid_argument when an option is out of range.
  MemoryOrder(const sc_core::sc_module_name& name, const MemoryOrderOptions& options);

  /// Shares nothing any more, drops what is under way, and starts again with `options`.
  void reset(const MemoryOrderOptions& options);
  [[nodiscard]] bool weak() const { return options_.weak; }

  // Host software
  /// The device may use the pages of [start, start + length) from now on, and sees what is in them. Calls for the same
  /// page are counted.
  void share(const void* start, std::size_t length);
  /// Undoes one share. The last one settles the page: what the device has written there is seen.
  void unshare(const void* start, std::size_t length);

  // Processor
  void stores_barrier();
  void loads_barrier();
  /// The processor's next write to the device leaves.
  void device_write();
  /// What the device did so far has taken effect: as loads_barrier, and interrupts that it sent have arrived.
  void settle();

  // Device; `at` is where the IOMMU has found the memory, within one page
  void read(const std::uint8_t* at, std::span<std::uint8_t> data);
  /// Returns the number of bytes that the request enables.
  std::size_t write(std::uint8_t* at, const DmaRequest& request);
  /// `deliver` is called when the interrupt arrives.
  void interrupt(std::function<void()> deliver);

 private:
  static constexpr std::size_t kWord = 8;
  using Word = std::array<std::uint8_t, kWord>;
  struct Page {
    std::size_t shares = 0;
    std::array<std::uint8_t, kPageBytes> device;  ///< As the device sees it
    std::array<std::uint8_t, kPageBytes> known;   ///< The processor's view, without stores that the device has not seen
    std::bitset<kPageBytes / kWord> old;          ///< Words that were stored to before the last drain, and not seen yet
  };
  struct Piece {
    Word data{};
    std::uint8_t mask = 0;  ///< Bytes that count
    Picoseconds due = 0;
  };
  struct Interrupt {
    Picoseconds due;
    std::function<void()> deliver;
  };
  using Address = std::uint64_t;

  [[nodiscard]] Page* page_of(Address address);
  [[nodiscard]] Picoseconds some_time();
  [[nodiscard]] static std::uint8_t stored(Address word, const Page& page);
  void show_device(Address word, const Word& data, std::uint8_t mask);
  void show_processor(Address word, const Piece& piece);
  void publish(Address word);
  template <typename Action>
  void for_stored(Action action);
  void arrive();
  void drain();

  MemoryOrderOptions options_;
  Random random_;
  std::map<Address, Page> pages_;       ///< By address of the page
  std::map<Address, Piece> staged_;     ///< Stores in front of the last barrier, by address of the word
  std::map<Address, Piece> under_way_;  ///< DMA writes that the processor has not seen, by address of the word
  std::deque<Interrupt> interrupts_;    ///< In the order of their arrival
  TimedEvent arrive_event_, drain_event_;
};

}  // namespace rnic::model
