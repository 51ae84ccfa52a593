#pragma once

#include <cstdint>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "testbench/timeline/block_usage.hpp"

namespace rnic::testbench {

/// Why a queue pair does not go on sending.
enum class StallReason : std::uint8_t {
  kFence,
  kReadLimit,
  kWindow,
  kCredits,
  kNak,
  kRnr,
  kTimeout,
  kFault,
  kRefused,
  kCount,
};

/// What the packet check says of a packet that it does not take as it is.
enum class RxReason : std::uint8_t {
  kNone,
  kNoQp,
  kBadState,
  kBadPeer,
  kBadQkey,
  kBroken,
  kDuplicate,
  kPsnError,
  kInvalid,
  kForbidden,
  kRnr,
  kWaits,
  kNak,
  kGap,
  kStray,
  kBadResponse,
  kCount,
};

/// A CQE as it is handed to DMA.
struct CqeWrite {
  std::uint8_t cqn{};
  std::uint32_t end{};  ///< Producer index of its CQ behind it, 24 bits
  std::uint64_t address{};
  std::uint8_t status{}, opcode{};
  std::uint16_t wqe_index{};
  std::uint32_t qpn{};
  bool receive{};
};

/// What happens inside a NIC, told once for each clock cycle in which it does (NicSignals). Where nothing is said of
/// whose an event is, it is that of the oldest one: the NIC keeps their order.
class NicListener {
 public:
  virtual ~NicListener() = default;

  /// What follows happens in the cycle that ends at `now_ps`.
  virtual void cycle(std::uint64_t now_ps) = 0;
  virtual void nic_reset() = 0;

  // Send queue
  virtual void turn(std::uint8_t qp) = 0;
  virtual void stalled(std::uint8_t qp, StallReason reason) = 0;
  virtual void fetch_asked(const rtl::WqeFetchReq& fetch) = 0;
  virtual void fetch_issued() = 0;
  virtual void fetch_answered() = 0;
  /// A packet of a WQE is made; `inflight`, if it is its last, comes in the same cycle.
  virtual void packet_made(std::uint8_t qp) = 0;
  virtual void inflight(const rtl::Inflight& wqe) = 0;

  // Send path
  virtual void packet_taken(const rtl::TxDesc& packet) = 0;
  /// A part of the packet taken last goes to be gathered. `read`: it is translated and read from memory.
  virtual void part_asked(bool read) = 0;
  virtual void part_translated() = 0;
  virtual void packet_dropped() = 0;
  virtual void packet_gathered() = 0;

  // Receive side
  virtual void packet_judged(const rtl::RxDesc& packet, RxReason reason) = 0;
  /// Told in the next cycle: the packet judged last is planned, so it will leave, with what became of it if that is
  /// anybody's business.
  virtual void packet_planned() = 0;
  virtual void packet_left(const rtl::RxDone* done) = 0;

  // Completion
  virtual void went_back(std::uint8_t qp, StallReason cause) = 0;
  virtual void retired(std::uint8_t qp, std::uint16_t index, bool failed) = 0;
  virtual void cqe(const CqeWrite& cqe) = 0;
  virtual void qp_forgotten(std::uint8_t qp) = 0;

  // Memory
  virtual void tlb_missed() = 0;
  /// Levels. A DMA read waits for a tag or a place for its data; a TLP waits for credits or the link.
  virtual void waits(bool for_tag, bool for_link) = 0;

  // For statistics, of who wants them: asked once, when NicSignals begins
  virtual void counted(hw::Counter counter) = 0;
  [[nodiscard]] virtual BlockUsage* usage() { return nullptr; }
};

}  // namespace rnic::testbench
