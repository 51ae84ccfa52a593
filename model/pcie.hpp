#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/nic_link.hpp"

/// Transaction layer packets between a root complex and a NIC, as a PCI Express hard block shows them
/// (PCI Express base specification, chapter 2). Payload bytes are those of the dwords that the packet carries, in
/// address order.
namespace rnic::model {

inline constexpr std::size_t kPageBytes = 4096;

/// Bytes that a TLP takes on the link besides its payload: 16 header, 4 LCRC, 2 sequence number, 2 framing (base
/// specification 2.2.1, 3.6.1, 4.2.2; data link layer packets are rare enough to leave out).
inline constexpr std::size_t kTlpOverheadBytes = 24;

enum class TlpKind : std::uint8_t {
  kMemoryRead,
  kMemoryWrite,
  kOther,    ///< Anything else that expects a completion
  kMessage,  ///< Posted, not a memory write
};

/// Base specification 2.2.9.1.
enum class CompletionStatus : std::uint8_t { kSuccess = 0, kUnsupportedRequest = 1, kCompleterAbort = 4 };

/// What a range of dwords with byte enables covers (base specification 2.2.5, 2.3.1.1).
struct ByteRange {
  std::uint64_t address{};  ///< First enabled byte
  std::uint32_t length{};   ///< To the last enabled byte; 1 for a zero-length request
};
[[nodiscard]] ByteRange enabled_range(std::uint64_t address, std::uint16_t length_dw, std::uint8_t first_be,
                                      std::uint8_t last_be);

/// The inverse: dwords and byte enables that cover `length` (at least 1) bytes at `address`.
struct DwordRange {
  std::uint64_t address{};
  std::uint16_t length_dw{};
  std::uint8_t first_be{};
  std::uint8_t last_be{};
};
[[nodiscard]] DwordRange covering_dwords(std::uint64_t address, std::uint32_t length);

/// True when byte `index` of the payload of a request of `length_dw` dwords is enabled.
[[nodiscard]] inline bool byte_enabled(std::size_t index, std::uint16_t length_dw, std::uint8_t first_be,
                                       std::uint8_t last_be) {
  const std::size_t dword = index / 4;
  if (dword == 0) return first_be >> (index % 4) & 1;
  return dword + 1u < length_dw || (last_be >> (index % 4) & 1);
}

/// What a request says of its own way, and its completions of theirs (base specification 2.2.6.3 to 2.2.6.6).
struct TlpHandling {
  std::uint8_t traffic_class{};  ///< 0 to 7
  std::uint8_t attributes{};     ///< Bit 0: no snoop, 1: relaxed ordering, 2: ID-based ordering
  bool operator==(const TlpHandling&) const = default;
};

/// Request of the host to BAR0 of the NIC.
struct HostRequest {
  TlpKind kind{};
  bool poisoned{};
  std::uint64_t address{};  ///< Offset in BAR0, dword aligned
  std::uint16_t length_dw{};
  std::uint8_t first_be{};
  std::uint8_t last_be{};
  std::uint16_t tag{};
  std::uint16_t requester{};
  std::vector<std::uint8_t> data;  ///< Write: 4 * length_dw bytes
  TlpHandling handling{};
};

/// Answer of the NIC to a HostRequest.
struct HostCompletion {
  CompletionStatus status{};
  std::uint16_t tag{};
  std::uint16_t requester{};
  std::uint16_t byte_count{};
  std::uint8_t lower_address{};
  std::vector<std::uint8_t> data;  ///< Dwords from that of lower_address on
  TlpHandling handling{};
};

/// Request of the NIC to host memory.
struct DmaRequest {
  TlpKind kind{};  ///< kMemoryRead or kMemoryWrite
  std::uint64_t address{};
  std::uint16_t length_dw{};
  std::uint8_t first_be{};
  std::uint8_t last_be{};
  std::uint16_t tag{};
  std::vector<std::uint8_t> data;  ///< Write: 4 * length_dw bytes
};

/// One completion TLP of a DMA read.
struct DmaCompletion {
  CompletionStatus status{};
  bool poisoned{};
  std::uint16_t tag{};
  std::uint16_t byte_count{};      ///< Bytes left of the request, this TLP included
  std::uint16_t lower_address{};   ///< Low 12 bits of the address of the first byte
  std::vector<std::uint8_t> data;  ///< Dwords from that of lower_address on; empty with an error status
  /// Of a completion that is wrong on purpose: what it was made of, of which its fields say nothing true.
  struct Forged {
    std::uint16_t tag{};
    bool last{};  ///< No other of that read follows
  };
  std::optional<Forged> forged{};
};

/// What the configuration space of the NIC says.
struct PcieConfig {
  std::size_t max_payload = 256;       ///< Bytes, 128 to 4096
  std::size_t max_read_request = 512;  ///< Bytes, 128 to 4096
  bool bus_master = true;
  bool extended_tags = true;                ///< Extended Tag Field Enable: tags of reads have 8 bits, else 5
  bool completion_timeout_disable = false;  ///< No DMA read times out
  bool msix_enable = true;
  bool msix_mask = false;
  bool operator==(const PcieConfig&) const = default;
};

/// Code of a size in the device control register: bytes = 128 << code (base specification 7.5.3.4).
/// Throws std::invalid_argument unless `bytes` is a power of two from 128 to 4096.
[[nodiscard]] std::uint8_t size_code(std::size_t bytes);

/// PCI Express as the NIC sees it. A NIC calls it at each of its clock edges, in simulated time; nothing here waits.
class PcieLink : public NicLink {
 public:
  [[nodiscard]] virtual const PcieConfig& config() const = 0;
  /// Takes the next request that has arrived from the host. False: there is none yet.
  virtual bool take_host_request(HostRequest& request) = 0;
  virtual void host_completion(HostCompletion completion) = 0;
  /// False while the transmit buffer is full; dma_request must then not be called.
  [[nodiscard]] virtual bool can_request() const = 0;
  /// From this time on, in picoseconds, the transmit buffer has room; other things may still hold requests up.
  [[nodiscard]] virtual std::uint64_t requests_from() const = 0;
  /// Flow control (base specification 2.6.1). False: all of the three below say yes.
  [[nodiscard]] virtual bool flow_limited() const { return false; }
  /// There are credits for this request: asked when can_request is true. A read that was offered before reads_held
  /// became true is still taken.
  [[nodiscard]] virtual bool has_credits(TlpKind, std::size_t /*payload_bytes*/) const { return true; }
  /// No read may be begun.
  [[nodiscard]] virtual bool reads_held() const { return false; }
  /// False: host_completion must not be called.
  [[nodiscard]] virtual bool can_complete() const { return true; }
  /// Throws PcieProtocolError for a malformed TLP, which on a real machine is a fatal error, and for one without
  /// credits.
  virtual void dma_request(DmaRequest request) = 0;
  /// Takes the next completion of a DMA read that has arrived. False: there is none yet.
  virtual bool take_dma_completion(DmaCompletion& completion) = 0;
};

}  // namespace rnic::model
