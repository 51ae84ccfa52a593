#pragma once

#include <Vsend_queue_harness.h>

#include <map>
#include <optional>
#include <set>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/rtl/mem_op_server.hpp"
#include "tests/support/rtl_bench.hpp"

/// What surrounds the send queue in its unit test: host memory behind DMA, a driver that posts, a peer that answers;
/// and a scoreboard that derives every packet from the WQE posted.
namespace rnic::test {

using namespace rnic::hw;
using Bytes = std::vector<std::uint8_t>;

/// A work request, as the driver would be asked for it.
struct Work {
  WqeOpcode opcode = WqeOpcode::kSend;
  bool silent = false, fence = false, solicited = false, inlined = false, ip_csum = false;
  std::uint64_t va = 0;
  std::uint32_t rkey = 0, immediate = 0;
  std::uint64_t swap_add = 0, compare = 0;
  std::optional<WqeAddress> address;  // of a datagram
  std::vector<WqeData> sges;
  Bytes inline_bytes;
  std::uint32_t length() const {
    std::uint32_t sum = static_cast<std::uint32_t>(inline_bytes.size());
    for (const auto& sge : sges) sum += sge.length;
    return sum;
  }
  bool send() const {
    return opcode == WqeOpcode::kSend || opcode == WqeOpcode::kSendImmediate || opcode == WqeOpcode::kSendInvalidate;
  }
  bool write() const { return opcode == WqeOpcode::kWrite || opcode == WqeOpcode::kWriteImmediate; }
  bool atomic() const { return opcode == WqeOpcode::kCompareSwap || opcode == WqeOpcode::kFetchAdd; }
  bool read() const { return opcode == WqeOpcode::kRead || atomic(); }
  std::size_t header() const { return address ? 4 : send() ? 1 : atomic() ? 3 : 2; }
  std::size_t size() const { return header() + (inlined ? (inline_bytes.size() + 15) / 16 : sges.size()); }
};

struct Packet {
  rtl::TxDesc desc;
  std::vector<rtl::SgPiece> pieces;  // inline: one without data, the bytes are in inline_bytes
  Bytes inline_bytes;
  bool first = false, last = false, fence = false;
  bool send = false, takes_receive = false;  // of the peer; a SEND, or a WRITE with immediate data
  std::uint32_t ssn = 0;
  std::optional<rtl::Inflight> inflight;
  std::optional<rtl::ReadSlot> read;
};

struct Queue {
  rtl::SendCtx setup;
  std::uint16_t pi = 0, retired = 0;
  std::uint32_t next_psn = 0;
  std::uint8_t read_slot = 0;
  std::deque<Packet> expected;
  std::deque<rtl::Inflight> inflight_seen;
  std::deque<std::uint16_t> sent;                    // WQEs whose last packet was seen, not retired
  std::map<std::uint16_t, std::uint32_t> last_psns;  // of WQEs not retired
  std::set<std::uint16_t> reads;                     // Reads not finished
  std::deque<std::uint16_t> unanswered;              // those of them that the peer has not begun to answer
  std::uint16_t started = 0;                         // next WQE to start
  std::uint64_t packets = 0, beyond_limit = 0;
  std::uint32_t ssn = 0;                // of the newest request written
  std::uint32_t lsn = 0, una_psn = 0;   // as the peer has made them last
  bool asked = false;                   // the newest packet asked for an answer
  std::optional<std::uint32_t> partly;  // PSN of the newest packet, if it does not end its message
  std::uint16_t depth() const { return static_cast<std::uint16_t>(1u << setup.log_depth); }
  std::uint32_t stride() const { return 1u << setup.log_stride; }
  std::uint16_t free_slots() const {
    return static_cast<std::uint16_t>(depth() - static_cast<std::uint16_t>(pi - retired));
  }
};

class World {
 public:
  using Model = Vsend_queue_harness;
  explicit World(std::uint64_t seed_value);
  void set_up(int qp, const std::function<void(rtl::SendCtx&)>& change = {});
  /// Writes the WQE into the ring and tells what packets must come; the doorbell is a second step.
  std::uint16_t write_wqe(int qp, const Work& work);
  Bytes encode(int qp, std::uint16_t index, const Work& work) const;
  void write_memory(std::uint64_t addr, std::span<const std::uint8_t> bytes);
  void ring(int qp);
  void ring(std::uint8_t uar, std::uint32_t qpn, std::uint16_t pi);
  void push(std::uint8_t uar, std::span<const std::uint8_t> wqe);
  /// The last write_wqe came through the window in no order, so that its first word alone is told.
  void push_first_word(int qp);
  /// Posts through the window: what the last write_wqe wrote.
  void push_last(int qp);
  Work random_work(int qp);
  /// Runs `change` on the context of a QP with the context held; wakes the QP afterwards.
  void change(int qp, std::function<void(rtl::SendCtx&)> action, bool wake = false);
  rtl::SendCtx context(int qp);
  void reset_qp(int qp);
  bool idle() const;
  void finish(std::uint64_t limit = 400000) {
    bench.run_until([&] { return idle(); }, limit, "end of traffic");
    bench.run(60);
  }

  Bench<Model> bench;
  MemOpServer<Model> mem_ops{*bench.dut, bench.rng};
  std::map<int, Queue> queues;
  std::map<std::uint64_t, std::uint8_t> memory;
  std::deque<rtl::RetireCmd> failures;  // and the commands that retire memory operations
  std::deque<int> flushes;
  std::deque<int> drained;  // SQD: queues that were said to be drained
  std::uint64_t count(Counter counter) const { return events[static_cast<std::size_t>(counter)]; }
  std::array<std::uint64_t, kCounterNames.size()> events{};
  std::set<std::uint64_t> bad_addresses;  // 64-byte lines whose read fails
  double output_rate = 1.0;
  double failure_rate = 1.0, flush_rate = 1.0;  // of that
  double stray_rate = 0;                        // wakes that nothing has caused, of some queue, by either port
  std::uint64_t dma_latency_low = 20, dma_latency_high = 80;
  bool answer = true;  // the peer answers: WQEs retire, Reads finish
  double answer_rate = 0.05;
  std::uint64_t first_desc_cycle = 0, desc_count = 0, last_desc_cycle = 0, first_piece_cycle = 0;
  std::function<void(const rtl::TxDesc&)> on_desc;

 private:
  struct Part : Agent {
    std::function<void()> on_drive, on_sample;
    void drive() override {
      if (on_drive) on_drive();
    }
    void sample() override {
      if (on_sample) on_sample();
    }
  };
  struct Fetch {
    rtl::DmaRdReq request;
    std::uint64_t due;
  };
  struct Step {
    int qp;
    std::function<void(rtl::SendCtx&)> action;
    bool wake;
    bool retires = false;  // wakes only a queue that has stalled, as the completion block does
  };
  void drive_dma();
  void sample_dma();
  void drive_host();
  void sample_host();
  void drive_misc();
  void sample_misc();
  void peer();
  void answer_to(int qp, std::function<void(rtl::SendCtx&)> action);
  void take_desc(const rtl::TxDesc& desc);
  void match();
  void expect(Queue& queue, int qp, std::uint16_t index, const Work& work);

  std::vector<std::unique_ptr<Part>> parts_;
  std::unique_ptr<Source<rtl::Doorbell>> doorbells_;
  std::unique_ptr<Source<rtl::WqePush>> pushes_;
  std::unique_ptr<Sink<rtl::TxDesc>> descs_;
  std::unique_ptr<Sink<rtl::SgPiece>> pieces_;
  std::unique_ptr<Sink<rtl::RetireCmd>> fails_;
  std::deque<Packet> to_match_;  // packets whose descriptor was taken, pieces still to come
  std::deque<Fetch> fetches_;
  std::deque<rtl::DmaRdRsp> beats_;
  bool beat_offered_ = false;
  std::deque<Step> steps_;
  enum class HostState { kIdle, kWaiting, kReleasing } host_ = HostState::kIdle;
  rtl::SendCtx held_;
  std::optional<int> wake_;
  std::deque<std::pair<std::uint16_t, rtl::ReadSlot>> slot_checks_;
  std::optional<rtl::ReadSlot> slot_answer_;
  bool slot_read_ = false;
  bool flush_ready_ = false;
  std::map<int, Bytes> last_wqe_;
};

}  // namespace rnic::test
