#include "model/memory_order.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace rnic::model {
namespace {

/// How often it is looked whether something arrives.
constexpr Picoseconds kTick = from_ns(50);
/// Chance that a device that reads a word finds a store that nothing has ordered yet.
constexpr double kSeen = 0.5;

constexpr std::uint64_t start_of(std::uint64_t address, std::uint64_t unit) { return address & ~(unit - 1); }
std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uint64_t>(pointer); }
std::uint8_t* pointer_to(std::uint64_t address) { return reinterpret_cast<std::uint8_t*>(address); }

void check(const MemoryOrderOptions& options) {
  if (!(options.longest_store_ns > 0) || !(options.longest_arrival_ns > 0))
    throw std::invalid_argument("a longest time of the memory order is not positive");
}

}  // namespace

MemoryOrder::MemoryOrder(const sc_core::sc_module_name& name, const MemoryOrderOptions& options)
    : sc_module(name), options_((check(options), options)), random_(options.seed, "memory order") {
  SC_HAS_PROCESS(MemoryOrder);
  SC_METHOD(arrive);
  sensitive << arrive_event_.event();
  dont_initialize();
  SC_METHOD(drain);
  sensitive << drain_event_.event();
  dont_initialize();
}

void MemoryOrder::reset(const MemoryOrderOptions& options) {
  check(options);
  options_ = options;
  random_ = Random(options.seed, "memory order");
  pages_.clear();
  staged_.clear();
  under_way_.clear();
  interrupts_.clear();
  arrive_event_.cancel();
  drain_event_.cancel();
}

MemoryOrder::Page* MemoryOrder::page_of(Address address) {
  const auto found = pages_.find(start_of(address, kPageBytes));
  return found == pages_.end() ? nullptr : &found->second;
}

Picoseconds MemoryOrder::some_time() { return now_ps() + random_.below(from_ns(options_.longest_arrival_ns)); }

// ---- Host software
// -----------------------------------------------------------------------------------------------------

void MemoryOrder::share(const void* start, std::size_t length) {
  if (!options_.weak || length == 0) return;
  if (pages_.empty()) drain_event_.notify_at(time_in(from_ns(options_.longest_store_ns / 2)));
  const Address end = address_of(start) + length;
  for (Address at = start_of(address_of(start), kPageBytes); at < end; at += kPageBytes) {
    Page& page = pages_[at];
    if (page.shares++ == 0) {
      std::memcpy(page.known.data(), pointer_to(at), kPageBytes);
      page.device = page.known;
      continue;
    }
    for (Address word = at; word < at + kPageBytes; word += kWord) {
      if (stored(word, page) != 0) publish(word);
    }
  }
}

void MemoryOrder::unshare(const void* start, std::size_t length) {
  const Address end = address_of(start) + length;
  for (Address at = start_of(address_of(start), kPageBytes); at < end; at += kPageBytes) {
    const auto found = pages_.find(at);
    if (found == pages_.end() || --found->second.shares != 0) continue;
    const auto first = under_way_.lower_bound(at), last = under_way_.lower_bound(at + kPageBytes);
    for (auto piece = first; piece != last; ++piece) show_processor(piece->first, piece->second);
    under_way_.erase(first, last);
    staged_.erase(staged_.lower_bound(at), staged_.lower_bound(at + kPageBytes));
    pages_.erase(found);
  }
}

// ---- Processor to device
// -----------------------------------------------------------------------------------------------

/// Bytes of `word` that the processor has stored to and the device has not seen.
std::uint8_t MemoryOrder::stored(Address word, const Page& page) {
  const std::uint8_t *now = pointer_to(word), *before = page.known.data() + word % kPageBytes;
  std::uint8_t mask = 0;
  for (std::size_t i = 0; i < kWord; ++i) mask = static_cast<std::uint8_t>(mask | (now[i] != before[i]) << i);
  return mask;
}

/// Calls `action(word, page, mask)` for every word that the processor has stored to and the device has not seen.
template <typename Action>
void MemoryOrder::for_stored(Action action) {
  for (auto& [address, page] : pages_) {
    if (std::memcmp(pointer_to(address), page.known.data(), kPageBytes) == 0) continue;
    for (Address word = address; word < address + kPageBytes; word += kWord) {
      if (const std::uint8_t mask = stored(word, page)) action(word, page, mask);
    }
  }
}

void MemoryOrder::show_device(Address word, const Word& data, std::uint8_t mask) {
  // The device's own write is the older one: the processor has it before its store.
  if (const auto piece = under_way_.find(word); piece != under_way_.end()) {
    show_processor(word, piece->second);
    under_way_.erase(piece);
  }
  Page& page = *page_of(word);
  for (std::size_t i = 0; i < kWord; ++i) {
    if ((mask >> i & 1) != 0) page.device[word % kPageBytes + i] = page.known[word % kPageBytes + i] = data[i];
  }
}

/// The device sees what is in `word` now. What was in it at the last barrier is older.
void MemoryOrder::publish(Address word) {
  Word data;
  std::memcpy(data.data(), pointer_to(word), kWord);
  show_device(word, data, stored(word, *page_of(word)));
  staged_.erase(word);
}

void MemoryOrder::stores_barrier() {
  for_stored([this](Address word, const Page&, std::uint8_t mask) {
    auto& staged = staged_[word];
    std::memcpy(staged.data.data(), pointer_to(word), kWord);
    staged.mask |= mask;
  });
}

void MemoryOrder::device_write() {
  for (const auto& [word, staged] : staged_) show_device(word, staged.data, staged.mask);
  staged_.clear();
}

/// Twice in longest_store_ns: what was stored before the last time is seen.
void MemoryOrder::drain() {
  if (pages_.empty()) return;
  drain_event_.notify_at(time_in(from_ns(options_.longest_store_ns / 2)));
  for (auto& [address, page] : pages_) {
    if (std::memcmp(pointer_to(address), page.known.data(), kPageBytes) == 0) {
      page.old.reset();
      continue;
    }
    for (std::size_t i = 0; i < page.old.size(); ++i) {
      const Address word = address + i * kWord;
      const bool waits = stored(word, page) != 0;
      if (waits && page.old[i]) publish(word);
      page.old[i] = waits && !page.old[i];
    }
  }
}

void MemoryOrder::read(const std::uint8_t* at, std::span<std::uint8_t> data) {
  const Address first = address_of(at);
  Page* const page = page_of(first);
  if (page == nullptr) {
    std::memcpy(data.data(), at, data.size());
    return;
  }
  for (Address word = start_of(first, kWord); word < first + data.size(); word += kWord) {
    if (stored(word, *page) != 0 && random_.chance(kSeen)) publish(word);
  }
  std::memcpy(data.data(), page->device.data() + first % kPageBytes, data.size());
}

// ---- Device to processor
// -----------------------------------------------------------------------------------------------

void MemoryOrder::show_processor(Address word, const Piece& piece) {
  Page& page = *page_of(word);
  for (std::size_t i = 0; i < kWord; ++i) {
    if ((piece.mask >> i & 1) == 0) continue;
    std::uint8_t& known = page.known[word % kPageBytes + i];
    std::uint8_t* const byte = pointer_to(word + i);
    if (*byte == known) *byte = piece.data[i];  // otherwise the processor has stored there since
    known = piece.data[i];
  }
}

std::size_t MemoryOrder::write(std::uint8_t* at, const DmaRequest& request) {
  Page* const page = page_of(address_of(at));
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < request.data.size(); ++i) {
    if (!byte_enabled(i, request.length_dw, request.first_be, request.last_be)) continue;
    ++bytes;
    if (page == nullptr) {
      at[i] = request.data[i];
      continue;
    }
    const Address address = address_of(at + i), word = start_of(address, kWord);
    page->device[address % kPageBytes] = request.data[i];
    auto& piece = under_way_[word];
    if (piece.mask == 0) piece.due = some_time();
    piece.data[address % kWord] = request.data[i];
    piece.mask = static_cast<std::uint8_t>(piece.mask | 1u << address % kWord);
  }
  if (!under_way_.empty()) arrive_event_.notify_at(time_in(kTick));
  return bytes;
}

void MemoryOrder::interrupt(std::function<void()> deliver) {
  if (!options_.weak) return deliver();
  const Picoseconds before = interrupts_.empty() ? 0 : interrupts_.back().due;
  interrupts_.push_back({std::max(before, some_time()), std::move(deliver)});
  arrive_event_.notify_at(time_in(kTick));
}

void MemoryOrder::loads_barrier() {
  for (const auto& [word, piece] : under_way_) show_processor(word, piece);
  under_way_.clear();
}

void MemoryOrder::settle() {
  loads_barrier();
  for (auto arrived = std::exchange(interrupts_, {}); !arrived.empty(); arrived.pop_front()) arrived.front().deliver();
}

void MemoryOrder::arrive() {
  const Picoseconds now = now_ps();
  for (; !interrupts_.empty() && interrupts_.front().due <= now; interrupts_.pop_front()) {
    loads_barrier();
    interrupts_.front().deliver();
  }
  std::erase_if(under_way_, [&](const auto& next) {
    if (next.second.due > now) return false;
    show_processor(next.first, next.second);
    return true;
  });
  if (!under_way_.empty() || !interrupts_.empty()) arrive_event_.notify_at(time_in(kTick));
}

}  // namespace rnic::model
