#include "model/config_space.hpp"

#include <bit>
#include <stdexcept>
#include <utility>

namespace rnic::model {
namespace {

// Type 0 header (7.5.1).
constexpr std::size_t kVendorId = 0x00, kDeviceId = 0x02, kCommand = 0x04, kStatus = 0x06, kClass = 0x08,
                      kCacheLine = 0x0C, kBar0 = 0x10, kSubsystemVendor = 0x2C, kSubsystem = 0x2E, kPointer = 0x34,
                      kInterruptLine = 0x3C;
// Where the capabilities are.
constexpr std::size_t kPower = 0x40, kExpress = 0x60, kMsix = 0xA0;
constexpr std::uint32_t kPowerId = 0x01, kExpressId = 0x10, kMsixId = 0x11;

constexpr std::uint32_t kMemorySpace = 1u << 1, kBusMaster = 1u << 2, kParity = 1u << 6, kSerr = 1u << 8,
                        kInterruptDisable = 1u << 10;
constexpr std::uint32_t kCapabilities = 1u << 4, kStatusErrors = 0xF900;  // 7.5.1.1.4, cleared by ones
// 7.5.2.
constexpr std::size_t kPowerControl = kPower + 4;
constexpr std::uint32_t kPowerVersion = 3, kPowerState = 3, kD3hot = 3, kNoSoftReset = 1u << 3;
// 7.5.3.
constexpr std::size_t kExpressCaps = kExpress + 2, kDeviceCaps = kExpress + 4, kDeviceControl = kExpress + 8,
                      kDeviceStatus = kExpress + 10, kDeviceCaps2 = kExpress + 0x24, kDeviceControl2 = kExpress + 0x28;
constexpr std::uint32_t kExpressVersion = 2, kIntegratedEndpoint = 9u << 4;
constexpr std::uint32_t kExtendedTagCapable = 1u << 5, kRoleBased = 1u << 15, kResetCapable = 1u << 28;
constexpr std::uint32_t kErrorReports = 0xF, kPayloadAt = 5, kPayload = 7u << kPayloadAt, kExtendedTag = 1u << 8,
                        kReadRequestAt = 12, kReadRequest = 7u << kReadRequestAt, kInitiateReset = 1u << 15;
constexpr std::uint32_t kInitialReadRequest = 2u << kReadRequestAt;  // 512 bytes
constexpr std::uint32_t kStatusByOnes = 0xF, kPending = 1u << 5;
constexpr std::uint32_t kTimeoutRangesAToC = 7, kTimeoutDisableCapable = 1u << 4;
constexpr std::uint32_t kTimeoutRange = 0xF, kTimeoutDisable = 1u << 4;
// 7.7.2.
constexpr std::size_t kMsixControl = kMsix + 2, kMsixTable = kMsix + 4, kMsixPending = kMsix + 8;
constexpr std::uint32_t kMsixEnable = 1u << 15, kMsixMask = 1u << 14;

constexpr std::uint32_t kMostCode = 5;  // 4096 bytes; what is above is reserved

std::size_t bytes_of(std::uint32_t code) { return std::size_t{128} << (code > kMostCode ? 0 : code); }

void check(const FunctionDescription& description) {
  const std::uint32_t bytes = description.bar0_bytes;
  if (!std::has_single_bit(bytes) || bytes < 16 || bytes > 1u << 30)
    throw std::invalid_argument("a BAR has 16 bytes to 1 GiB, a power of two");
  if (description.msix_vectors < 1 || description.msix_vectors > 2048)
    throw std::invalid_argument("a function has 1 to 2048 MSI-X vectors");
  if (description.msix_table % 8 != 0 || description.msix_pending % 8 != 0)
    throw std::invalid_argument("MSI-X table and pending bits lie at multiples of 8");
}

}  // namespace

ConfigSpace::ConfigSpace(const FunctionDescription& description) {
  check(description);
  put(kVendorId, description.vendor, 2);
  put(kDeviceId, description.device, 2);
  put(kCommand, 0, 2, kMemorySpace | kBusMaster | kParity | kSerr | kInterruptDisable);
  put(kStatus, kCapabilities, 2, 0, kStatusErrors);
  put(kClass, description.class_code << 8, 4);
  put(kCacheLine, 0, 1, 0xFF);
  put(kBar0, 0, 4, ~(description.bar0_bytes - 1));
  put(kSubsystemVendor, description.vendor, 2);
  put(kSubsystem, description.device, 2);
  put(kPointer, kPower, 1);
  put(kInterruptLine, 0, 1, 0xFF);

  put(kPower, kPowerId | kExpress << 8 | kPowerVersion << 16, 4);
  put(kPowerControl, kNoSoftReset, 2, kPowerState);

  put(kExpress, kExpressId | kMsix << 8, 2);
  put(kExpressCaps, kExpressVersion | kIntegratedEndpoint, 2);
  put(kDeviceCaps, size_code(description.max_payload_supported) | kExtendedTagCapable | kRoleBased | kResetCapable, 4);
  put(kDeviceControl, kInitialReadRequest, 2, kErrorReports | kPayload | kExtendedTag | kReadRequest);
  put(kDeviceStatus, 0, 2, 0, kStatusByOnes);
  put(kDeviceCaps2, kTimeoutRangesAToC | kTimeoutDisableCapable, 4);
  put(kDeviceControl2, 0, 2, kTimeoutRange | kTimeoutDisable);

  put(kMsix, kMsixId, 2);
  put(kMsixControl, description.msix_vectors - 1, 2, kMsixEnable | kMsixMask);
  put(kMsixTable, description.msix_table, 4);
  put(kMsixPending, description.msix_pending, 4);
  initial_ = value_;
}

void ConfigSpace::put(std::size_t offset, std::uint32_t value, std::size_t length, std::uint32_t writable,
                      std::uint32_t cleared_by_ones) {
  for (std::size_t i = 0; i < length; ++i) {
    value_[offset + i] = static_cast<std::uint8_t>(value >> 8 * i);
    writable_[offset + i] = static_cast<std::uint8_t>(writable >> 8 * i);
    cleared_by_ones_[offset + i] = static_cast<std::uint8_t>(cleared_by_ones >> 8 * i);
  }
}

std::uint32_t ConfigSpace::read(std::size_t offset, std::size_t length) const {
  if (length > 4 || offset > kBytes - length) throw std::out_of_range("outside of the configuration space");
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < length; ++i) value |= std::uint32_t{value_[offset + i]} << 8 * i;
  return value;
}

void ConfigSpace::write(std::size_t offset, std::uint32_t value, std::size_t length) {
  if (length > 4 || offset > kBytes - length) throw std::out_of_range("outside of the configuration space");
  const std::uint32_t power = read(kPowerControl, 2) & kPowerState;
  for (std::size_t i = 0; i < length; ++i) {
    const auto byte = static_cast<std::uint8_t>(value >> 8 * i);
    std::uint8_t& here = value_[offset + i];
    const std::uint8_t writable = writable_[offset + i];
    here = static_cast<std::uint8_t>((here & ~writable) | (byte & writable));
    here = static_cast<std::uint8_t>(here & ~(byte & cleared_by_ones_[offset + i]));
    // The bit itself always reads 0.
    if (offset + i == kDeviceControl + 1 && (byte & kInitiateReset >> 8) != 0) reset_asked_ = true;
  }
  // D1 and D2 are not there: a write of them changes nothing (7.5.2.2).
  const std::uint32_t asked = read(kPowerControl, 2) & kPowerState;
  if (asked != 0 && asked != kD3hot)
    value_[kPowerControl] = static_cast<std::uint8_t>((value_[kPowerControl] & ~kPowerState) | power);
}

void ConfigSpace::reset() {
  value_ = initial_;
  reset_asked_ = false;
}

void ConfigSpace::reset_function() {
  const std::uint32_t payload = read(kDeviceControl, 2) & kPayload;
  reset();
  write(kDeviceControl, (read(kDeviceControl, 2) & ~kPayload) | payload, 2);
}

bool ConfigSpace::take_reset_request() { return std::exchange(reset_asked_, false); }

void ConfigSpace::set_transactions_pending(bool pending) {
  value_[kDeviceStatus] = static_cast<std::uint8_t>((value_[kDeviceStatus] & ~kPending) | (pending ? kPending : 0));
}

bool ConfigSpace::memory_enabled() const {
  return (read(kCommand, 2) & kMemorySpace) != 0 && (read(kPowerControl, 2) & kPowerState) == 0;
}

std::uint32_t ConfigSpace::bar0() const { return read(kBar0, 4); }

PcieConfig ConfigSpace::config() const {
  const std::uint32_t control = read(kDeviceControl, 2), msix = read(kMsixControl, 2);
  PcieConfig config;
  config.max_payload = bytes_of((control & kPayload) >> kPayloadAt);
  config.max_read_request = bytes_of((control & kReadRequest) >> kReadRequestAt);
  config.bus_master = (read(kCommand, 2) & kBusMaster) != 0 && (read(kPowerControl, 2) & kPowerState) == 0;
  config.extended_tags = (control & kExtendedTag) != 0;
  config.completion_timeout_disable = (read(kDeviceControl2, 2) & kTimeoutDisable) != 0;
  config.msix_enable = (msix & kMsixEnable) != 0;
  config.msix_mask = (msix & kMsixMask) != 0;
  return config;
}

}  // namespace rnic::model
