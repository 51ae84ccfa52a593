#include "testbench/timeline/nic_signals.hpp"

#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "driver/generated/host_interface.hpp"
#include "testbench/nic_signal.hpp"
#include "testbench/timeline/rx_reasons.hpp"
#include "testbench/timeline/usage_sampler.hpp"

namespace rnic::testbench {
namespace {

constexpr std::string_view kTurns = ".u_send_side.u_send_queue.u_turns",
                           kFetch = ".u_send_side.u_send_queue.u_turns.u_fetch", kTxPath = ".u_send_side.u_tx_path",
                           kPayload = ".u_send_side.u_tx_path.u_payload",
                           kGather = ".u_send_side.u_tx_path.u_payload.u_gather",
                           kRxEngine = ".u_receive_side.u_rx_engine", kCheck = ".u_receive_side.u_rx_engine.u_check",
                           kRetirePath = ".u_completion_side.u_completion.u_qp.u_retire",
                           kRetire = ".u_completion_side.u_completion.u_qp.u_retire.u_retire",
                           kCqeWriter = ".u_completion_side.u_completion.u_queues.u_cq.u_writer",
                           kMemory = ".u_memory_side", kIssue = ".u_memory_side.u_pcie_edge.u_read.u_issue";

/// A signal of up to 64 bits.
class Signal {
 public:
  explicit Signal(const VerilatedVar& variable) : at_(variable.datap()), type_(variable.vltype()) {}
  [[nodiscard]] std::uint64_t value() const { return signal_value(at_, type_); }
  explicit operator bool() const { return value() != 0; }
  [[nodiscard]] std::uint8_t byte() const { return static_cast<std::uint8_t>(value()); }

 private:
  const void* at_;
  VerilatedVarType type_;
};

/// A struct of rtl_streams.hpp.
template <typename T>
class StructSignal {
 public:
  explicit StructSignal(const VerilatedVar& variable) : at_(variable.datap()) {}
  [[nodiscard]] T value() const {
    std::array<std::uint8_t, T::kBytes> raw;
    std::memcpy(raw.data(), at_, raw.size());
    return T::decode(raw);
  }

 private:
  const void* at_;
};

/// Several signals in one word: counters by number.
class Bits {
 public:
  explicit Bits(const VerilatedVar& variable) : at_(static_cast<const EData*>(variable.datap())) {}
  [[nodiscard]] bool test(hw::Counter counter) const {
    const auto bit = static_cast<unsigned>(counter);
    return (at_[bit / 32] >> bit % 32 & 1) != 0;
  }

 private:
  const EData* at_;
};

class Finder {
 public:
  explicit Finder(VerilatedContext& context) : context_(context) {}
  [[nodiscard]] const VerilatedVar& operator()(std::string_view path, const char* name) const {
    const std::string wanted = std::string(kNicTop) + std::string(path);
    for (const auto& [text, scope] : *context_.scopeNameMap()) {
      if (from_top(text) != wanted || scope->varsp() == nullptr) continue;
      const auto found = scope->varsp()->find(name);
      if (found != scope->varsp()->end()) return found->second;
    }
    throw std::runtime_error("the model of the NIC does not show " + wanted + "." + name);
  }

 private:
  VerilatedContext& context_;
};

struct Stream {
  Stream(const Finder& find, std::string_view path, const std::string& name)
      : valid(find(path, (name + "_valid").c_str())), ready(find(path, (name + "_ready").c_str())) {}
  [[nodiscard]] bool passes() const { return (valid.value() & ready.value() & 1) != 0; }
  Signal valid, ready;
};

using hw::Counter;
constexpr std::array kStalls = {
    Cause{Counter::kFenceStalls, StallReason::kFence}, Cause{Counter::kReadLimitStalls, StallReason::kReadLimit},
    Cause{Counter::kWindowStalls, StallReason::kWindow}, Cause{Counter::kCreditStalls, StallReason::kCredits}};

template <typename Reason, std::size_t size>
Reason first_of(const Bits& events, const std::array<Cause<Reason>, size>& causes, Reason none) {
  for (const auto& [counter, reason] : causes) {
    if (events.test(counter)) return reason;
  }
  return none;
}

StallReason reason_of(rtl::RecoverCause cause) {
  switch (cause) {
    case rtl::RecoverCause::kNak: return StallReason::kNak;
    case rtl::RecoverCause::kRnr: return StallReason::kRnr;
    case rtl::RecoverCause::kTimer: return StallReason::kTimeout;
    case rtl::RecoverCause::kFault: return StallReason::kFault;
    case rtl::RecoverCause::kRefused: break;
  }
  return StallReason::kRefused;
}

}  // namespace

struct NicSignals::Table {
  explicit Table(const Finder& find)
      : run(find, kTurns, "run"),
        run_qp(find(kTurns, "run_qp")),
        done_qp(find(kTurns, "done_qp")),
        engine_events(find(kTurns, "ev_engine")),
        made(find(kTurns, "desc_valid")),
        fetch_valid(find(kTurns, "fetch_valid")),
        fetch(find(kTurns, "fetch_data")),
        fetch_issued(find(kFetch, "queue_pop")),
        fetch_answered(find(kFetch, "flight_pop")),
        inflight_valid(find("", "inflight_valid")),
        inflight(find("", "inflight_data")),
        taken(find, kTxPath, "desc"),
        packet(find(kTxPath, "desc")),
        dropped(find(kTxPath, "dropped")),
        gathered(find(kPayload, "packet_out")),
        part(find(kGather, "order_push")),
        part_read(find(kGather, "order_read")),
        part_translated(find(kGather, "answer")),
        judged(find(kCheck, "decide")),
        judged_packet(find(kCheck, "desc_q")),
        judged_events(find(kCheck, "event_d")),
        planned(find(kRxEngine, "plan_in_valid")),
        left(find(kRxEngine, "left")),
        done(find, "", "rx_done"),
        done_data(find("", "rx_done_data")),
        recover(find(kRetirePath, "recover")),
        recovery(find(kRetirePath, "recover_cmd")),
        expired(find(kRetirePath, "expired")),
        expired_ready(find(kRetirePath, "expired_ready")),
        expired_qp(find(kRetirePath, "expired_qp")),
        retire(find(kRetire, "step")),
        retire_next(find(kRetire, "next_idx")),
        retire_qp(find(kRetire, "acq_index_o")),
        retire_failed(find(kRetire, "failed")),
        cqe(find(kCqeWriter, "event_cqe_o")),
        cqe_end(find(kCqeWriter, "next_pi")),
        cqe_cqn(find(kCqeWriter, "acq_index_o")),
        cqe_write(find(kCqeWriter, "wr_data_o")),
        forget(find, "", "qp_reset"),
        forget_qp(find("", "qp_reset_qp")),
        memory_events(find("", "ev_memory")),
        read_waits(find(kIssue, "valid_q")),
        read_room(find(kIssue, "room")),
        request_valid(find(kMemory, "dma_req_valid_o")),
        request_ready(find(kMemory, "dma_req_ready_i")) {}

  void send_queue(NicListener& to) const {
    const std::uint8_t qp = done_qp.byte();
    const StallReason stall = first_of(engine_events, kStalls, StallReason::kCount);
    if (stall != StallReason::kCount) to.stalled(qp, stall);
    if (made) to.packet_made(qp);
    if (inflight_valid) to.inflight(inflight.value());
    if (fetch_issued) to.fetch_issued();
    if (fetch_answered) to.fetch_answered();
    if (fetch_valid) to.fetch_asked(fetch.value());
    if (run.passes()) to.turn(run_qp.byte());
  }
  void send_path(NicListener& to) const {
    if (dropped) to.packet_dropped();
    if (gathered) to.packet_gathered();
    if (part_translated) to.part_translated();
    if (taken.passes()) to.packet_taken(packet.value());
    if (part) to.part_asked(static_cast<bool>(part_read));
  }
  void receive_side(NicListener& to) const {
    if (left) {
      const bool told = done.passes();
      const rtl::RxDone what = told ? done_data.value() : rtl::RxDone{};
      to.packet_left(told ? &what : nullptr);
    }
    if (planned) to.packet_planned();
    if (judged) to.packet_judged(judged_packet.value(), first_of(judged_events, kRxReasons, RxReason::kNone));
  }
  void completion(NicListener& to) const {
    if (recover) {
      const rtl::RecoverCmd command = recovery.value();
      to.went_back(command.qp, reason_of(static_cast<rtl::RecoverCause>(command.cause)));
    }
    if (expired && expired_ready) to.went_back(expired_qp.byte(), StallReason::kTimeout);
    if (retire) {
      to.retired(retire_qp.byte(), static_cast<std::uint16_t>(retire_next.value() - 1),
                 static_cast<bool>(retire_failed));
    }
    if (cqe) {
      const rtl::DmaWr write = cqe_write.value();
      const hw::Cqe entry = hw::Cqe::decode(write.data);
      to.cqe({cqe_cqn.byte(), static_cast<std::uint32_t>(cqe_end.value()), write.addr, entry.status, entry.opcode,
              entry.wqe_index, entry.qpn, entry.is_receive != 0});
    }
    if (forget.passes()) to.qp_forgotten(forget_qp.byte());
  }
  void memory(NicListener& to) const {
    if (memory_events.test(Counter::kTlbMisses)) to.tlb_missed();
    to.waits((read_waits.value() & ~read_room.value()) != 0, request_valid && !request_ready);
  }

  Stream run;
  Signal run_qp, done_qp;
  Bits engine_events;
  Signal made, fetch_valid;
  StructSignal<rtl::WqeFetchReq> fetch;
  Signal fetch_issued, fetch_answered, inflight_valid;
  StructSignal<rtl::Inflight> inflight;
  Stream taken;
  StructSignal<rtl::TxDesc> packet;
  Signal dropped, gathered, part, part_read, part_translated, judged;
  StructSignal<rtl::RxDesc> judged_packet;
  Bits judged_events;
  Signal planned, left;
  Stream done;
  StructSignal<rtl::RxDone> done_data;
  Signal recover;
  StructSignal<rtl::RecoverCmd> recovery;
  Signal expired, expired_ready, expired_qp, retire, retire_next, retire_qp, retire_failed, cqe, cqe_end, cqe_cqn;
  StructSignal<rtl::DmaWr> cqe_write;
  Stream forget;
  Signal forget_qp;
  Bits memory_events;
  Signal read_waits, read_room, request_valid, request_ready;
};

NicSignals::NicSignals(VerilatedContext& context, NicListener& listener)
    : table_(std::make_unique<Table>(Finder(context))), listener_(listener) {
  if (BlockUsage* usage = listener.usage()) usage_ = std::make_unique<UsageSampler>(context, *usage);
}

NicSignals::~NicSignals() = default;

void NicSignals::sample(std::uint64_t now_ps) {
  in_reset_ = false;
  listener_.cycle(now_ps);
  table_->send_path(listener_);
  table_->send_queue(listener_);
  table_->receive_side(listener_);
  table_->completion(listener_);
  table_->memory(listener_);
  if (usage_) usage_->sample(listener_);
}

void NicSignals::reset() {
  if (!in_reset_) listener_.nic_reset();
  in_reset_ = true;
}

}  // namespace rnic::testbench
