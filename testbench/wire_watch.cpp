#include "testbench/wire_watch.hpp"

#include <fmt/format.h>

#include <functional>
#include <string_view>
#include <utility>

#include "model/pcie.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kSaid = 8;

std::size_t hash(std::span<const std::uint8_t> frame) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(frame.data()), frame.size()});
}

/// By the addresses that the device uses, without a fault where there is nothing.
std::vector<std::uint8_t> peek(const model::Iommu& iommu, std::uint64_t address, std::size_t bytes) {
  const std::uint8_t* const at = iommu.peek(address);
  return at == nullptr ? std::vector<std::uint8_t>{} : std::vector<std::uint8_t>(at, at + bytes);
}

void tell(wire_check::PortCheck& check, const model::HostRequest& request) {
  if (request.kind != model::TlpKind::kMemoryWrite || request.poisoned) return;
  std::vector<bool> enabled(request.data.size());
  for (std::size_t i = 0; i < enabled.size(); ++i)
    enabled[i] = model::byte_enabled(i, request.length_dw, request.first_be, request.last_be);
  check.written(request.address, request.data, enabled, model::now_ps());
}

}  // namespace

WireWatch::WireWatch(std::vector<Plug> plugs, model::Picoseconds epoch)
    : plugs_(std::move(plugs)), epoch_(epoch), ports_(plugs_.size()) {
  for (std::size_t i = 0; i < plugs_.size(); ++i) {
    Port& port = ports_[i];
    const model::Iommu& iommu = plugs_[i].host.iommu();
    port.check = std::make_unique<wire_check::PortCheck>(
        [&iommu](std::uint64_t address, std::size_t bytes) { return peek(iommu, address, bytes); },
        [this, &port](const std::string& what) {
          if (port.count++ >= kSaid) return;
          port.said.push_back(
              fmt::format("at {} ns {}", (model::now_ps() - epoch_) / model::kPicosecondsPerNanosecond, what));
        });
    plugs_[i].host.root_complex().request_taps().add(
        this, [&port](const model::HostRequest& request) { tell(*port.check, request); });
    plugs_[i].wire.injections(plugs_[i].end).add(this, [this](std::span<const std::uint8_t> frame) {
      forged_.insert(hash(frame));
    });
    plugs_[i].wire.ears(plugs_[i].end).add(this, [this, &port](std::span<const std::uint8_t> frame) {
      port.check->received(frame, !forged_.empty() && forged_.count(hash(frame)) != 0, model::now_ps());
    });
    // What the NIC sends into a cable that is not plugged in counts as sent: the checker does not know the frame's
    // fate.
    plugs_[i].wire.losses(plugs_[i].end).add(this, [&port](std::span<const std::uint8_t> frame) {
      port.check->sent(frame, model::now_ps());
    });
  }
}

WireWatch::~WireWatch() {
  for (auto& plug : plugs_) {
    plug.host.root_complex().request_taps().remove(this);
    plug.wire.injections(plug.end).remove(this);
    plug.wire.ears(plug.end).remove(this);
    plug.wire.losses(plug.end).remove(this);
  }
}

void WireWatch::sent(const model::FrameRecord& frame) {
  if (!frame.injected && !frame.bad) ports_.at(frame.from).check->sent(frame.bytes, model::now_ps());
}

}  // namespace rnic::testbench
