// The regions of a VectorSession, and the steps about memory.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "driver/nd2/shared_receive_queue.hpp"

namespace rnic::testbench {
namespace {

/// What every DMA read meets that touches these bytes.
model::PcieRule always(model::PcieFault fault, const std::uint8_t* memory, std::size_t bytes) {
  return {.fault = fault,
          .match = {.address = reinterpret_cast<std::uintptr_t>(memory), .bytes = bytes},
          .count = ~std::uint64_t{0}};
}

}  // namespace

/// Of all regions, which are then registered.
void VectorSession::make_memory() {
  for (const auto& spec : setup_.regions) {
    Region region;
    region.host = spec.host;
    region.size = spec.size;
    region.pattern = region_pattern(spec.host, spec.name);
    if (spec.memory_of.empty()) {
      region.memory = static_cast<std::uint8_t*>(world_.host(spec.host).memory().allocate(spec.size));
      if (!region.memory) throw VectorFailure(fmt::format("no memory for region \"{}\"", spec.name));
      for (std::uint64_t i = 0; spec.pattern && i < spec.size; ++i) region.memory[i] = pattern_byte(region.pattern, i);
    } else {
      const auto& shared = this->region(spec.memory_of);
      if (shared.host != spec.host || shared.size < spec.size)
        throw VectorFailure(fmt::format("region \"{}\" cannot have the memory of \"{}\"", spec.name, spec.memory_of));
      region.memory = shared.memory;
      region.pattern = shared.pattern;
    }
    if (spec.reads && spec.size != 0)
      world_.host(spec.host).root_complex().arm(always(*spec.reads, region.memory, spec.size));
    regions_.emplace(spec.name, std::move(region));
  }
}

void VectorSession::add_region(const VectorRegion& spec) {
  auto& region = this->region(spec.name);
  auto& side = sides_[spec.host];
  auto& endpoint = *side.endpoint;
  if (spec.list_reads) return add_listed_region(spec);
  if (spec.remote_atomic || spec.other_domain || !side.initiator_cq) {
    calls::Handle pd = side.process->pd();
    if (spec.other_domain)
      pd = side.domains.emplace_back(take_or_fail(side.process->alloc_pd(), "another protection domain"))->handle();
    const bool local_write = spec.remote_atomic || (spec.flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0;
    region.kernel_region =
        take_or_fail(side.process->create_mr({.address = region.memory,
                                              .length = spec.size,
                                              .pd = pd,
                                              .local_write = local_write,
                                              .read_sink = (spec.flags & ND_MR_FLAG_RDMA_READ_SINK) != 0,
                                              .remote_read = (spec.flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                                              .remote_write = (spec.flags & kRemoteWriteBit) != 0,
                                              .remote_atomic = spec.remote_atomic,
                                              .window_bind = true}),
                     "registering memory");
    region.local_token = region.kernel_region->key();
    region.remote_token = __builtin_bswap32(region.kernel_region->key());
  } else {
    region.region = endpoint.register_memory(region.memory, spec.size, spec.flags);
    region.local_token = region.region->GetLocalToken();
    region.remote_token = region.region->GetRemoteToken();
  }
}

void VectorSession::add_listed_region(const VectorRegion& spec) {
  auto& region = this->region(spec.name);
  auto& side = sides_[spec.host];
  auto& root = world_.host(spec.host).root_complex();
  region.listed_region =
      take_or_fail(side.endpoint->kernel().create_mr(
                       {.address = region.memory,
                        .length = spec.size,
                        .pd = side.process->pd_number(),
                        .local_write = spec.remote_atomic || (spec.flags & ND_MR_FLAG_ALLOW_LOCAL_WRITE) != 0,
                        .read_sink = (spec.flags & ND_MR_FLAG_RDMA_READ_SINK) != 0,
                        .remote_read = (spec.flags & ND_MR_FLAG_ALLOW_REMOTE_READ) != 0,
                        .remote_write = (spec.flags & kRemoteWriteBit) != 0,
                        .remote_atomic = spec.remote_atomic}),
                   "registering memory");
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t first = reinterpret_cast<std::uintptr_t>(region.memory) / kPage;
  const std::uint64_t last = (reinterpret_cast<std::uintptr_t>(region.memory) + spec.size - 1) / kPage;
  root.arm(always(*spec.list_reads, region.listed_region->page_list(), 8 * (last - first + 1)));
  region.local_token = region.listed_region->key();
  region.remote_token = __builtin_bswap32(region.listed_region->key());
}

/// From now on, of the whole ring.
void VectorSession::ring_reads(const VectorStep& step) {
  const std::uint8_t* ring = nullptr;
  std::size_t bytes = 0;
  if (step.queue == VectorQueue::kShared) {
    auto& srq = static_cast<nd2::SharedReceiveQueue&>(*side(step).srq).core()->kernel_srq();
    ring = srq.ring();
    bytes = std::size_t{1} << (srq.log_depth() + srq.log_stride());
  } else {
    auto& qp = pair(step).core().kernel_qp();
    const bool sends = step.queue == VectorQueue::kInitiator;
    ring = sends ? qp.send_ring() : qp.receive_ring();
    bytes = sends ? qp.send_ring_bytes() : qp.receive_ring_bytes();
  }
  if (ring == nullptr) throw VectorFailure(fmt::format("{}: Receives come from the shared queue", step.text));
  auto& root = world_.host(step.host).root_complex();
  const auto rule = always(step.reads.value_or(model::PcieFault::kTimeout), ring, bytes);
  root.disarm(rule.match);
  if (step.reads) root.arm(rule);
}

void VectorSession::memory(const VectorStep& step) {
  const auto& here = region(step.name);
  // A peer that is told of a write knows nothing of the way to this memory.
  if (const std::uint64_t way = way_ns(here.host); way != 0) sides_[here.host].endpoint->device().elapse(way);
  if (step.value) {
    std::uint64_t word = 0;
    if (step.offset + sizeof word > here.size)
      throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
    std::memcpy(&word, here.memory + step.offset, sizeof word);
    if (word != *step.value)
      throw VectorFailure(fmt::format("{}: {:#x} at byte {} of region \"{}\", expected {:#x}", step.text, word,
                                      step.offset, step.name, *step.value));
    return;
  }
  if (!step.bytes.empty()) return memory_bytes(step);
  if (step.offset + step.length > here.size)
    throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  std::vector<Expectation> expectations;
  if (step.equals) {
    const auto& there = region(step.equals->region);
    const auto from = static_cast<std::uint64_t>(step.equals->offset);
    if (from + step.length > there.size)
      throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.equals->region));
    expectations.emplace_back([&there, from](std::uint64_t i) { return there.memory[from + i]; });
  }
  if (step.payload_of) {
    const auto& of = *step.payload_of;
    const auto pattern = payload_pattern(1 - step.host, of.qp, of.psn);
    expectations.emplace_back([pattern, &of](std::uint64_t i) { return pattern_byte(pattern, of.byte + i); });
  }
  for (const bool with_pattern : step.fills) {
    expectations.emplace_back([&here, &step, with_pattern](std::uint64_t i) {
      return with_pattern ? pattern_byte(here.pattern, step.offset + i) : std::uint8_t{0};
    });
  }
  expect_bytes(step, expectations);
}

/// One of the expectations must hold for all bytes.
void VectorSession::expect_bytes(const VectorStep& step, const std::vector<Expectation>& expectations) {
  const auto& here = region(step.name);
  std::string failure;
  for (const auto& expected : expectations) {
    std::uint64_t i = 0;
    while (i < step.length && here.memory[step.offset + i] == expected(i)) ++i;
    if (i == step.length) return;
    failure += fmt::format("{}byte {} of region \"{}\" is {:#04x}, expected {:#04x}",
                           failure.empty() ? "" : "; or: ", step.offset + i, step.name, here.memory[step.offset + i],
                           expected(i));
  }
  if (!step.open_by.empty()) failure += fmt::format(" (open by {})", step.open_by);
  throw VectorFailure(fmt::format("{}: {}", step.text, failure));
}

void VectorSession::memory_bytes(const VectorStep& step) {
  const auto& here = region(step.name);
  if (step.offset + step.bytes.size() > here.size)
    throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  for (std::size_t i = 0; i < step.bytes.size(); ++i) {
    const auto& expected = step.bytes[i];
    if (expected && here.memory[step.offset + i] != *expected) {
      throw VectorFailure(fmt::format("{}: byte {} of region \"{}\" is {:#04x}, expected {:#04x}", step.text,
                                      step.offset + i, step.name, here.memory[step.offset + i], *expected));
    }
  }
}

/// Whatever stands there.
void VectorSession::untouched_memory(const VectorStep& step) {
  const auto& here = region(step.name);
  if (step.offset + step.length > here.size)
    throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  const std::vector<std::uint8_t> before(here.memory + step.offset, here.memory + step.offset + step.length);
  sides_[here.host].endpoint->device().elapse(step.within_ns);
  const auto [one, other] = std::mismatch(before.begin(), before.end(), here.memory + step.offset);
  if (one == before.end()) return;
  throw VectorFailure(fmt::format("{}: byte {} of region \"{}\" was {:#04x} and is {:#04x}", step.text,
                                  step.offset + static_cast<std::uint64_t>(one - before.begin()), step.name, *one,
                                  *other));
}

void VectorSession::store(const VectorStep& step) {
  auto& here = region(step.name);
  const auto bytes = step.stored();
  if (step.offset + bytes.size() > here.size)
    throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  std::copy(bytes.begin(), bytes.end(), here.memory + step.offset);
}

void VectorSession::revoke(const VectorStep& step) {
  const auto& here = region(step.name);
  if (step.offset >= here.size) throw VectorFailure(fmt::format("{}: outside region \"{}\"", step.text, step.name));
  if (world_.host(here.host).iommu().revoke(here.memory + step.offset) == 0)
    throw VectorFailure(fmt::format("{}: that page is mapped nowhere", step.text));
}

void VectorSession::register_region(const VectorStep& step) {
  auto& endpoint = *sides_[step.host].endpoint;
  auto& entry = regions_[step.name];
  entry.host = step.host;
  entry.pattern = region_pattern(step.host, step.name);
  if (!entry.region) entry.region = endpoint.create_region();
  if (step.buffer == VectorStep::Buffer::kValid && !entry.memory) {
    entry.size = std::min<std::uint64_t>(std::max<std::uint64_t>(step.size, 1), 1 << 20);
    entry.memory = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(entry.size));
  }
  const void* buffer = step.buffer == VectorStep::Buffer::kNull ? nullptr : entry.memory;
  if (step.buffer == VectorStep::Buffer::kUnmapped) {
    // Past the end of what the host has: reserved address space that nobody may touch.
    buffer =
        reinterpret_cast<const void*>(endpoint.host().memory().base() + endpoint.host().memory().size() - (64 << 10));
  }
  OVERLAPPED overlapped = endpoint.open_event();
  const HRESULT called =
      entry.region->Register(buffer, step.size, step.flags, step.null.empty() ? &overlapped : nullptr);
  const HRESULT status = endpoint.finish(*entry.region, overlapped, called);
  Endpoint::close_event(overlapped);
  expect_call(step, called);
  expect_status(step, status);
  if (status == ND_SUCCESS) {
    entry.local_token = entry.region->GetLocalToken();
    entry.remote_token = entry.region->GetRemoteToken();
  }
}

void VectorSession::deregister_region(const VectorStep& step) {
  auto& endpoint = *sides_[step.host].endpoint;
  auto& entry = region(step.name);
  if (entry.kernel_region) return expect_status(step, control_status(entry.kernel_region->destroy()));
  OVERLAPPED overlapped = endpoint.open_event();
  const HRESULT called = entry.region->Deregister(step.null.empty() ? &overlapped : nullptr);
  const HRESULT status = endpoint.finish(*entry.region, overlapped, called);
  Endpoint::close_event(overlapped);
  expect_call(step, called);
  expect_status(step, status);
}

}  // namespace rnic::testbench
