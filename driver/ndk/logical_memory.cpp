#include "driver/ndk/logical_memory.hpp"

#include <algorithm>

namespace rnic::ndk {
namespace {

constexpr std::uint64_t kOffsetMask = PAGE_SIZE - 1;

}  // namespace

LogicalMemory::~LogicalMemory() {
  while (!mappings_.empty()) release(mappings_.front());
}

Result<LogicalMemory::Mapping*> LogicalMemory::build(void* memory, std::size_t bytes) {
  return or_out_of_memory([&]() -> Result<Mapping*> {
    std::list<Mapping> made(1);
    Mapping& mapping = made.front();
    mapping.memory = memory;
    mapping.bytes = bytes;
    auto iovas = device_.map_pages(memory, bytes, true);
    if (!iovas) return iovas.error();
    mapping.iovas = iovas.take();
    const auto opened = or_out_of_memory([&]() -> Result<void> {
      std::multimap<std::uint64_t, Place> places;
      for (std::size_t i = 0; i < mapping.iovas.size(); ++i) places.emplace(mapping.iovas[i], Place{&mapping, i});
      for (const auto pd : domains_) {
        if (auto done = open_in(mapping, pd); !done) return done;
      }
      const std::lock_guard lock(lock_);
      places_.merge(places);
      return {};
    });
    if (!opened) {
      mapping.regions.clear();
      device_.unmap_pages(memory, bytes, mapping.iovas);
      return opened.error();
    }
    mappings_.splice(mappings_.end(), made);
    return &mapping;
  });
}

/// A region of the mapping's memory, at its own address.
Result<void> LogicalMemory::open_in(Mapping& mapping, calls::Handle pd) {
  auto region = context_.create_mr({.address = mapping.memory, .length = mapping.bytes, .pd = pd, .local_write = true});
  if (!region) return region.error();
  std::map<calls::Handle, std::unique_ptr<umd::KernelMr>> one;
  one.emplace(pd, region.take());
  const std::lock_guard lock(lock_);
  mapping.regions.merge(one);
  return {};
}

void LogicalMemory::release(Mapping& mapping) {
  {
    const std::lock_guard lock(lock_);
    std::erase_if(places_, [&](const auto& place) { return place.second.mapping == &mapping; });
  }
  mapping.regions.clear();
  device_.unmap_pages(mapping.memory, mapping.bytes, mapping.iovas);
  mappings_.remove_if([&](const Mapping& other) { return &other == &mapping; });
}

Result<void> LogicalMemory::add_domain(calls::Handle pd) {
  return or_out_of_memory([&]() -> Result<void> {
    domains_.push_back(pd);
    for (auto& mapping : mappings_) {
      if (auto done = open_in(mapping, pd); !done) {
        remove_domain(pd);
        return done;
      }
    }
    return {};
  });
}

void LogicalMemory::remove_domain(calls::Handle pd) {
  std::erase(domains_, pd);
  for (auto& mapping : mappings_) {
    std::map<calls::Handle, std::unique_ptr<umd::KernelMr>>::node_type gone;  // its end lets time pass
    const std::lock_guard lock(lock_);
    gone = mapping.regions.extract(pd);
  }
}

umd::Segment LogicalMemory::translate(calls::Handle pd, const NDK_SGE& sge) {
  const umd::Segment as_it_is{sge.LogicalAddress, sge.Length, sge.MemoryRegionToken};
  const std::uint64_t first = sge.LogicalAddress & ~kOffsetMask;
  const std::uint64_t offset = sge.LogicalAddress & kOffsetMask;
  const std::uint64_t pages = (offset + std::max<std::uint64_t>(sge.Length, 1) + kOffsetMask) / PAGE_SIZE;
  const std::lock_guard lock(lock_);
  for (auto [place, last] = places_.equal_range(first); place != last; ++place) {
    const Mapping& mapping = *place->second.mapping;
    const std::size_t page = place->second.page;
    const auto region = mapping.regions.find(pd);
    if (region == mapping.regions.end() || pages > mapping.iovas.size() - page) continue;
    bool contiguous = true;
    for (std::uint64_t i = 1; i < pages && contiguous; ++i)
      contiguous = mapping.iovas[page + i] == first + i * PAGE_SIZE;
    if (!contiguous) continue;
    const auto start = reinterpret_cast<std::uintptr_t>(mapping.memory) & ~kOffsetMask;
    return {start + page * PAGE_SIZE + offset, sge.Length, region->second->key()};
  }
  return as_it_is;
}

}  // namespace rnic::ndk
