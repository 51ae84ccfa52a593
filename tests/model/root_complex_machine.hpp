#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <map>
#include <vector>

#include "model/timed_event.hpp"
#include "model/host_memory.hpp"
#include "model/root_complex.hpp"
#include "testbench/app_runner.hpp"
#include "testbench/sim_device.hpp"

/// What the tests of the root complex share: they are its NIC.
namespace rnic::model {

/// A root complex with memory and processor; the test is its NIC.
struct Machine {
  rnic::testbench::AppRunner runner{"runner"};
  HostMemory memory{0, 1 << 20};
  Iommu iommu{1};
  InterruptController interrupts{32};
  RootComplex rc{"root_complex", iommu, RootComplexOptions{}};
  rnic::testbench::SimDevice device{"device", memory, iommu, interrupts, 1};
  std::uint8_t* buffer = nullptr;
  std::uint64_t iova = 0;

  Machine() {
    device.mmio.bind(rc.mmio);
    rc.set_interrupt_handler([this](std::uint64_t, std::uint32_t data) { interrupts.signal(data); });
  }
  void reset(const RootComplexOptions& options = {}) {
    rc.reset(options);
    memory.clear();
    iommu.clear(1);
    interrupts.clear();
    device.reset(1);
    buffer = static_cast<std::uint8_t*>(memory.allocate(4 * kPageBytes));
    for (std::size_t i = 0; i < 4 * kPageBytes; ++i) buffer[i] = pattern(i);
    iova = iommu.map_range(buffer, 4 * kPageBytes, Iommu::Rights::kReadWrite);
  }
  static std::uint8_t pattern(std::size_t i) { return static_cast<std::uint8_t>(i * 31 + i / 256); }
};

inline Machine& machine() {
  static Machine instance;
  return instance;
}

inline void run(std::function<void()> body) {
  machine().runner.add("test", std::move(body));
  machine().runner.run(sc_core::sc_time(10, sc_core::SC_MS));
}

inline void wait_ns(double ns) { wait_until(time_in(from_ns(ns))); }

inline DmaRequest request(TlpKind kind, std::uint64_t address, std::uint32_t length, std::uint16_t tag = 0) {
  const DwordRange range = covering_dwords(address, length);
  DmaRequest tlp{kind, range.address, range.length_dw, range.first_be, range.last_be, tag, {}};
  if (kind == TlpKind::kMemoryWrite) tlp.data.resize(std::size_t{range.length_dw} * 4);
  return tlp;
}
inline DmaRequest write_of(std::uint64_t address, std::uint32_t length, std::uint8_t value) {
  DmaRequest tlp = request(TlpKind::kMemoryWrite, address, length);
  std::fill(tlp.data.begin(), tlp.data.end(), value);
  return tlp;
}
inline void read(std::uint64_t address, std::uint32_t length, std::uint16_t tag = 0) {
  machine().rc.dma_request(request(TlpKind::kMemoryRead, address, length, tag));
}

inline DmaCompletion next_completion() {
  DmaCompletion completion;
  while (!machine().rc.take_dma_completion(completion)) sc_core::wait(to_sc_time(100));
  return completion;
}
inline HostRequest next_request() {
  HostRequest tlp;
  while (!machine().rc.take_host_request(tlp)) sc_core::wait(to_sc_time(100));
  return tlp;
}

/// Collects completions until `reads` reads are done; checks byte counts and the order within each read.
struct Collected {
  std::map<unsigned, std::vector<std::uint8_t>> data;  ///< By tag, from the first enabled byte on
  std::vector<unsigned> order;                         ///< Tags as their first completions came
  std::vector<unsigned> done;                          ///< Tags as they finished
  std::size_t packets = 0;
};
inline Collected collect(std::size_t reads) {
  Collected all;
  std::map<unsigned, std::uint32_t> left;
  while (all.done.size() < reads) {
    const DmaCompletion completion = next_completion();
    ++all.packets;
    REQUIRE(completion.status == CompletionStatus::kSuccess);
    if (!left.contains(completion.tag)) {
      left[completion.tag] = completion.byte_count;
      all.order.push_back(completion.tag);
    }
    REQUIRE(completion.byte_count == left[completion.tag]);
    const std::size_t skip = completion.lower_address % 4;
    const auto bytes = std::min<std::size_t>(completion.data.size() - skip, completion.byte_count);
    const auto from = completion.data.begin() + static_cast<std::ptrdiff_t>(skip);
    all.data[completion.tag].insert(all.data[completion.tag].end(), from, from + static_cast<std::ptrdiff_t>(bytes));
    left[completion.tag] -= static_cast<std::uint32_t>(bytes);
    if (left[completion.tag] == 0) {
      all.done.push_back(completion.tag);
      left.erase(completion.tag);
    }
  }
  return all;
}

/// Time of `bytes` on the link at the default bandwidth.
inline double link_ns(std::size_t bytes) { return static_cast<double>(bytes) / 31.5; }

}  // namespace rnic::model
