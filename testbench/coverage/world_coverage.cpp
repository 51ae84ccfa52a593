#include "testbench/coverage/world_coverage.hpp"

#include <atomic>
#include <cstdlib>

#include "model/pcie.hpp"
#include "testbench/coverage/cover_points.hpp"

namespace rnic::testbench {
namespace {

void note_reached(std::size_t index) {
  static CoverPoint* const points = cover_points(PointList::get().file().c_str(), PointList::get().points().size());
  points[index].fetch_add(1, std::memory_order_relaxed);
}

std::vector<std::uint8_t> read_dma(const model::Iommu& iommu, std::uint64_t address, std::size_t bytes) {
  const std::uint8_t* const at = iommu.peek(address);
  return at == nullptr ? std::vector<std::uint8_t>{} : std::vector<std::uint8_t>(at, at + bytes);
}

}  // namespace

bool WorldCoverage::wanted() { return std::getenv("RNIC_COVERAGE") != nullptr; }

WorldCoverage::~WorldCoverage() {
  for (auto& [host, wire, end, coverage] : hosts_) {
    host.root_complex().request_taps().remove(this);
    host.root_complex().write_taps().remove(this);
    wire.ears(end).remove(this);
  }
}

void WorldCoverage::watch(Host& host, model::Wire& wire, std::size_t end) {
  const model::Iommu& iommu = host.iommu();
  auto made = std::make_unique<HostCoverage>(
      [&iommu](std::uint64_t address, std::size_t bytes) { return read_dma(iommu, address, bytes); }, note_reached);
  HostCoverage& coverage = *made;
  hosts_.push_back({host, wire, end, std::move(made)});
  host.root_complex().request_taps().add(this, [&coverage](const model::HostRequest& request) {
    if (request.kind != model::TlpKind::kMemoryWrite || request.poisoned) return;
    std::vector<bool> enabled(request.data.size());
    for (std::size_t i = 0; i < enabled.size(); ++i)
      enabled[i] = model::byte_enabled(i, request.length_dw, request.first_be, request.last_be);
    coverage.written(request.address, request.data, enabled);
  });
  host.root_complex().write_taps().add(
      this, [&coverage](const model::DmaRequest& request) { coverage.stored(request.address, request.data); });
  wire.ears(end).add(this, [&coverage](std::span<const std::uint8_t> frame) { coverage.received(frame); });
}

void WorldCoverage::sent(const model::FrameRecord& frame) {
  if (!frame.bad) hosts_.at(frame.from).coverage->sent(frame.bytes);
}

}  // namespace rnic::testbench
