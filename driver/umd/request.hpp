#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>

#include "driver/generated/host_interface.hpp"
#include "driver/umd/address_handle.hpp"
#include "driver/umd/key_watch.hpp"

namespace rnic::umd {

/// Local memory of a request.
struct Segment {
  std::uint64_t address{};
  std::uint32_t length{};
  std::uint32_t key{};
};

/// The segments of a request, where the caller keeps them: as Segments, or in a struct of an API that has the same
/// three members in the same places, which is read as it is.
class SegmentList {
 public:
  SegmentList() = default;
  SegmentList(const Segment segments[], std::size_t count) : SegmentList(static_cast<const void*>(segments), count) {}
  template <typename Range>
  requires std::is_convertible_v<const Range&, std::span<const Segment>> SegmentList(const Range& range)
      : SegmentList(std::span<const Segment>(range)) {}
  SegmentList(std::span<const Segment> segments) : SegmentList(segments.data(), segments.size()) {}

  /// `Like` has the layout of Segment; the API says so by static_assert.
  template <typename Like>
  [[nodiscard]] static SegmentList of(const Like segments[], std::size_t count) {
    static_assert(sizeof(Like) == sizeof(Segment) && std::is_trivially_copyable_v<Like>);
    return SegmentList(static_cast<const void*>(segments), count);
  }

  [[nodiscard]] std::size_t size() const { return count_; }
  [[nodiscard]] Segment operator[](std::size_t i) const {
    Segment segment;
    std::memcpy(&segment, static_cast<const std::byte*>(first_) + i * sizeof segment, sizeof segment);
    return segment;
  }
  /// Sum of the lengths.
  [[nodiscard]] std::uint64_t bytes() const {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < count_; ++i) sum += (*this)[i].length;
    return sum;
  }

 private:
  SegmentList(const void* first, std::size_t count) : first_(first), count_(count) {}

  const void* first_{};
  std::size_t count_{};
};

/// A request for a send queue. The segments are read during the call only; inline payload too.
struct SendRequest {
  hw::WqeOpcode opcode{};
  std::uint64_t id{};  ///< Comes back in the completion
  SegmentList segments{};
  std::uint64_t remote_address{};  ///< All but Sends. Atomics: a multiple of 8
  std::uint32_t remote_key{};      ///< All but Sends
  std::uint32_t immediate{};       ///< With immediate data: the data. With invalidate: the peer's key
  std::uint64_t swap_add{};        ///< Atomics: what to write, or to add
  std::uint64_t compare{};         ///< Compare and swap: write only if this is there
  const AddressHandle* address{};  ///< UD: where to. Read during the call only
  std::uint32_t dest_qpn{};        ///< UD
  std::uint32_t qkey{};  ///< UD; with the top bit set, that of the queue pair is sent (InfiniBand specification 10.2.5)
  bool silent{};
  bool fence{};
  bool solicited{};
  bool inline_data{};
  bool ip_csum{};  ///< RawPacket: the NIC puts the checksums of IPv4, TCP and UDP into the frame; others fail
  bool defer{};    ///< Hold the doorbell back until a later request or ring_deferred
};

/// A request of a send queue about keys. It moves no data, and is executed when everything posted before it has
/// completed.
struct MemoryRequest {
  hw::WqeOpcode opcode{};             ///< kBindWindow1, kBindWindow2, kLocalInvalidate, kFastRegister
  std::uint64_t id{};                 ///< Comes back in the completion
  std::uint32_t key{};                ///< Binds, kFastRegister: the new key. kLocalInvalidate: the key
  std::uint32_t region_key{};         ///< Binds: local key of the region
  std::shared_ptr<KeyWatch> watch{};  ///< Is told what becomes of the request; null: nobody
  bool of_read{};                     ///< kLocalInvalidate: completes as kReadInvalidate
  std::uint64_t address{};            ///< First byte of what the key opens; not for kLocalInvalidate
  std::uint64_t length{};             ///< Bytes
  bool local_write{};                 ///< kFastRegister
  bool read_sink{};                   ///< kFastRegister
  bool remote_read{};
  bool remote_write{};
  bool remote_atomic{};
  std::uint64_t page_list{};               ///< From here on kFastRegister: DMA address of the page list
  std::uint32_t page_count{};              ///< At most 2^16 - 1
  std::span<const std::uint64_t> pages{};  ///< The list itself, in place of page_list; read during the call only
  std::uint32_t first_offset{};
  std::uint8_t log_page{};
  bool silent{};
  bool fence{};
  bool defer{};
};

/// A request for a receive queue.
struct ReceiveRequest {
  std::uint64_t id{};
  SegmentList segments{};
  bool defer{};
};

/// kReceiveWrite: a Receive that a Write with immediate data has used up; its buffers are untouched. kReadInvalidate:
/// an invalidation that ends a Read in front of it (MemoryRequest::of_read).
enum class RequestKind : std::uint8_t {
  kSend,
  kWrite,
  kRead,
  kCompareSwap,
  kFetchAdd,
  kReceive,
  kReceiveWrite,
  kBind,
  kInvalidate,
  kFastRegister,
  kReadInvalidate
};

/// A finished request. Without initial values, so that room for many of them costs nothing: polling fills all of it.
struct Completion {
  std::uint64_t id;
  void* qp_context;
  RequestKind kind;
  hw::CqeStatus status;
  std::uint32_t byte_count;
  std::uint32_t qpn;
  std::uint8_t syndrome;
  bool solicited;
  bool l3_ok;            ///< Ethernet frames received: the checksum of the IPv4 header is right
  bool l4_ok;            ///< Ethernet frames received: the checksum of the TCP or UDP segment is right
  bool with_immediate;   ///< Receives: `immediate` came with the message
  bool with_invalidate;  ///< Receives: `immediate` is the local key that the message invalidated
  std::uint32_t immediate;
  bool grh;  ///< Datagrams received: the first 40 bytes hold the IPv6 header, or from byte 20 on the IPv4 header
  std::uint32_t source_qpn;  ///< Datagrams received: who sent it
  bool vlan;                 ///< Datagrams received: it had a VLAN tag,
  std::uint16_t vlan_tci;    ///< with PCP in bits 15:13, DEI in bit 12, and the VID
  std::uint64_t timestamp;
};

/// A solicited event is for it: a solicited message, or an error.
constexpr bool is_solicited(const Completion& completion) {
  return completion.solicited || completion.status != hw::CqeStatus::kSuccess;
}

/// What a queue pair is asked for, and what it was granted.
struct QueueCapacity {
  std::uint32_t send_depth{};
  std::uint32_t receive_depth{};
  std::uint32_t send_segments{};
  std::uint32_t receive_segments{};
  std::uint32_t inline_bytes{};
};

}  // namespace rnic::umd
