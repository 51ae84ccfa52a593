#pragma once

#include <cstdint>
#include <functional>

#include "model/reference/bytes.hpp"

/// What passes between the NIC and what is around it: transaction layer packets of PCI Express (base specification,
/// chapter 2) and Ethernet frames.
namespace rnic::reference {

/// What configuration space says (7.5.3, 7.7.2), and the MAC.
struct Settings {
  std::size_t max_payload = 128, max_read_request = 512;  ///< Bytes
  bool bus_master{}, extended_tags{}, completion_timeout_disable{}, msix_enable{}, msix_mask{};
  bool link_up{};
  bool operator==(const Settings&) const = default;
};

/// A request of the host to BAR0.
struct HostRequest {
  enum class Kind : std::uint8_t { Read, Write, Other, Message } kind{};
  bool poisoned{};
  std::uint64_t address{};  ///< Offset in BAR0, dword aligned
  std::uint16_t dwords{};
  std::uint8_t first_be{}, last_be{};
  Bytes data;  ///< Write: all dwords
};

/// Its completion. The link makes TLPs of it: cut, with the tag and the attributes of the request.
struct HostAnswer {
  bool unsupported{};
  std::uint64_t address{};  ///< First enabled byte
  std::uint32_t bytes{};    ///< From there to the last enabled byte (2.3.1.1)
  Bytes data;               ///< All dwords of the request
};

/// A request of the NIC to host memory: a write with `data`, or a read.
struct DmaTlp {
  bool write{};
  std::uint64_t address{};  ///< Dword aligned
  std::uint16_t dwords{};
  std::uint8_t first_be{}, last_be{};
  std::uint16_t tag{};
  Bytes data;
};

/// A completion of a read.
struct DmaAnswer {
  bool good{};  ///< Successful and not poisoned
  std::uint16_t tag{}, byte_count{}, lower_address{};
  Bytes data;
};

struct Frame {
  Bytes bytes;
  std::function<void()> left;  ///< Its last byte is in the MAC
};

}  // namespace rnic::reference
