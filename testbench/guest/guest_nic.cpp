#include "testbench/guest/guest_nic.hpp"

#include <utility>

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kOnes = ~std::uint64_t{0};

model::FunctionDescription describe_nic(const model::PcieConfig& port) {
  return {.vendor = hw::kPciVendorId,
          .device = hw::kPciDeviceId,
          .bar0_bytes = hw::kUarPageBytes << hw::kUarIndexBits,
          .msix_vectors = hw::kMsixVectors,
          .msix_table = hw::reg::kMsixTable,
          .msix_pending = hw::reg::kMsixPending,
          .max_payload_supported = port.max_payload};
}

model::HostRequest tlp_of(model::TlpKind kind, std::uint64_t offset, std::size_t bytes) {
  const auto range = model::covering_dwords(offset, static_cast<std::uint32_t>(bytes));
  return {kind, false, range.address, range.length_dw, range.first_be, range.last_be, 0, 0, {}};
}

}  // namespace

GuestNic::GuestNic(Host& host, CallThreads& calls, OwnershipChecker::Tell tell)
    : host_(host),
      calls_(calls),
      config_(describe_nic(host.root_complex().options().config)),
      checker_(host.iommu(), std::move(tell)) {
  host_.root_complex().request_taps().add(this,
                                          [this](const model::HostRequest& request) { checker_.request(request); });
  host_.root_complex().set_memory_witness(&checker_);
}

GuestNic::~GuestNic() {
  host_.root_complex().set_memory_witness(nullptr);
  host_.root_complex().request_taps().remove(this);
}

void GuestNic::power_on() {
  config_.reset();
  apply();
  reset_nic();
}

void GuestNic::reset_nic() {
  host_.nic().reset();
  host_.root_complex().reset_function();
  checker_.reset();
}

void GuestNic::apply() {
  const auto config = config_.config();
  if (config != host_.root_complex().config()) host_.root_complex().set_config(config);
}

std::uint32_t GuestNic::config_read(std::size_t offset, std::size_t bytes) {
  config_.set_transactions_pending(host_.root_complex().outstanding_reads() != 0);
  return config_.read(offset, bytes);
}

void GuestNic::config_write(std::size_t offset, std::uint32_t value, std::size_t bytes) {
  config_.write(offset, value, bytes);
  const bool reset = config_.take_reset_request();
  if (reset) config_.reset_function();
  apply();
  if (reset) reset_nic();
}

std::optional<std::uint64_t> GuestNic::offset_of(std::uint64_t address, std::size_t bytes) {
  const std::uint64_t offset = address - config_.bar0();
  constexpr std::uint64_t kBar = std::uint64_t{hw::kUarPageBytes} << hw::kUarIndexBits;
  if (config_.memory_enabled() && offset < kBar && offset % model::kPageBytes + bytes <= model::kPageBytes)
    return offset;
  ++unsupported_;
  return {};
}

void GuestNic::write(std::uint64_t address, std::uint64_t value, std::size_t bytes) {
  const auto offset = offset_of(address, bytes);
  if (!offset) return;
  auto tlp = tlp_of(model::TlpKind::kMemoryWrite, *offset, bytes);
  tlp.data.resize(std::size_t{tlp.length_dw} * 4);
  for (std::size_t i = 0; i < bytes; ++i)
    tlp.data[*offset - tlp.address + i] = static_cast<std::uint8_t>(value >> 8 * i);
  host_.root_complex().post(std::move(tlp));
}

void GuestNic::read(std::uint64_t address, std::size_t bytes, std::function<void(std::uint64_t)> done) {
  const auto offset = offset_of(address, bytes);
  if (!offset) return done(kOnes);
  calls_.run([this, offset = *offset, bytes, done = std::move(done)] {
    const auto value = request(offset, bytes);
    checker_.barrier();
    done(value.value_or(kOnes));
  });
}

/// Nothing: no completion, or one with an error.
std::optional<std::uint64_t> GuestNic::request(std::uint64_t offset, std::size_t bytes) {
  auto tlp = tlp_of(model::TlpKind::kMemoryRead, offset, bytes);
  const std::size_t at = offset - tlp.address, whole = std::size_t{tlp.length_dw} * 4;
  const auto completion = host_.root_complex().request(std::move(tlp));
  if (!completion || completion->status != model::CompletionStatus::kSuccess || completion->data.size() != whole)
    return {};
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes; ++i) value |= std::uint64_t{completion->data[at + i]} << 8 * i;
  return value;
}

void GuestNic::set_memory(const std::vector<model::Iommu::Window>& windows) {
  checker_.memory_changes();
  host_.iommu().set_windows(windows);
}

}  // namespace rnic::testbench
