#include "testbench/verilated_nic.hpp"

#include <verilated.h>
#include <verilated_fst_c.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <stdexcept>
#include <utility>

#include "Vrnic_top.h"
#include "driver/generated/host_interface.hpp"
#include "model/tlp_checker.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "testbench/nic_counts.hpp"
#include "testbench/nic_state.hpp"
#include "testbench/state_check.hpp"
#include "testbench/timeline/nic_signals.hpp"
#include "testbench/wave_views.hpp"

namespace rnic::testbench {
namespace {

/// A struct of rtl_streams.hpp into a Verilated port (an integer or VlWide) and out of it; both are little-endian.
template <typename T, typename Port>
void put(Port& port, const T& value) {
  static_assert(T::kBytes <= sizeof(Port));
  std::array<std::uint8_t, sizeof(Port)> raw{};
  value.encode(std::span<std::uint8_t, T::kBytes>(raw.data(), T::kBytes));
  std::memcpy(&port, raw.data(), raw.size());
}

template <typename T, typename Port>
T get(const Port& port) {
  static_assert(T::kBytes <= sizeof(Port));
  std::array<std::uint8_t, T::kBytes> raw;
  std::memcpy(raw.data(), &port, raw.size());
  return T::decode(raw);
}

template <typename Port>
std::span<std::uint8_t, BeatCutter::kLanes> lanes(Port& port) {
  static_assert(sizeof(Port) >= BeatCutter::kLanes);
  return std::span<std::uint8_t, BeatCutter::kLanes>(reinterpret_cast<std::uint8_t*>(&port), BeatCutter::kLanes);
}

/// Name of the model: viewers take a dot for the border of two scopes.
std::string scope_name(std::string name) {
  std::replace(name.begin(), name.end(), '.', '_');
  return name;
}

/// It rings the doorbell of a send queue, or brings a WQE (docs/host_interface.md, UAR pages).
bool posts_work(const model::HostRequest& request) {
  constexpr std::uint64_t kPageMask = hw::kUarPageBytes - 1;
  const std::uint64_t offset = request.address & kPageMask;
  const bool in_window = offset >= hw::uar::kWqeWindow && offset < hw::uar::kWqeWindow + hw::kUarWqeWindowBytes;
  return request.kind == model::TlpKind::kMemoryWrite && (request.address & ~kPageMask) != 0 &&
         (offset == hw::uar::kSendDoorbell || in_window);
}

rtl::TlpType to_rtl(model::TlpKind kind) {
  switch (kind) {
    case model::TlpKind::kMemoryRead: return rtl::TlpType::kMemRead;
    case model::TlpKind::kMemoryWrite: return rtl::TlpType::kMemWrite;
    case model::TlpKind::kMessage: return rtl::TlpType::kMessage;
    case model::TlpKind::kOther: break;
  }
  return rtl::TlpType::kOther;
}

}  // namespace

VerilatedNic::VerilatedNic(std::string name, model::PcieLink& pcie, model::EthernetLink& ethernet, std::uint64_t seed,
                           const ClockOptions& clock)
    : name_(std::move(name)), pcie_(pcie), ethernet_(ethernet), context_(std::make_unique<VerilatedContext>()) {
  context_->randReset(2);
  context_->randSeed(static_cast<int>(seed % 0x7FFF'FFFF) + 1);
  context_->traceEverOn(true);
  context_->fatalOnError(false);  // thrown instead, so that traces are closed
  top_ = std::make_unique<Vrnic_top>(context_.get(), scope_name(name_).c_str());
  top_->clk_i = 0;
  top_->clk_open_i = !clock.gating;
  if (clock.check_rest) state_check_ = std::make_unique<StateCheck>(*top_);
  hold_reset();
  if (clock.own_thread) {
    edge_thread_.emplace([this] {
      Verilated::threadContextp(context_.get());
      make_edge();
    });
  }
}

VerilatedNic::~VerilatedNic() {
  edge_thread_.reset();
  Verilated::threadContextp(context_.get());  // the destructor of the model looks there for its context
  close_trace();
  top_->final();
  top_.reset();
}

void VerilatedNic::start_trace(const std::string& path, const TraceRange& range, std::uint64_t power_on) {
  if (trace_) throw std::runtime_error(name_ + ": a trace is already on");
  join_edge();
  open_trace(path, range);
  if (!range.scope.empty()) {
    // Nobody says which signals there are until the file is closed.
    trace_->close();
    trace_.reset();
    if (traced_signals(path) == 0) {
      std::filesystem::remove(path);
      throw NoSuchScope("the NIC has no scope 'rnic_top." + range.scope + "'");
    }
    open_trace(path, range);
  }
  trace_path_ = path;
  constexpr std::uint64_t kPicosecondsPerNanosecond = 1000, kEnd = ~0ULL;
  trace_from_ = power_on + range.from_ns * kPicosecondsPerNanosecond;
  first_request_ = 0;
  trace_mark_.reset();
  if (range.mark_ns) trace_mark_ = power_on + *range.mark_ns * kPicosecondsPerNanosecond;
  const bool ends = range.to_ns < (kEnd - power_on) / kPicosecondsPerNanosecond;
  trace_to_ = ends ? power_on + range.to_ns * kPicosecondsPerNanosecond : kEnd;
}

void VerilatedNic::open_trace(const std::string& path, const TraceRange& range) {
  Verilated::threadContextp(context_.get());  // where the trace looks; it may be that of a NIC that is gone
  auto trace = std::make_unique<VerilatedFstC>();
  constexpr int kAllLevels = 99;
  if (!range.scope.empty()) {
    // Verilator separates scopes by blanks.
    std::string scope = scope_name(name_) + ".rnic_top." + range.scope;
    std::replace(scope.begin(), scope.end(), '.', ' ');
    trace->dumpvars(range.depth == 0 ? kAllLevels : static_cast<int>(range.depth), scope);
  } else if (range.depth != 0) {
    trace->dumpvars(static_cast<int>(range.depth), scope_name(name_) + " rnic_top");
  }
  top_->trace(trace.get(), kAllLevels);
  trace->open(path.c_str());
  if (!trace->isOpen()) throw std::runtime_error("cannot write trace file '" + path + "'");
  trace_ = std::move(trace);
}

void VerilatedNic::stop_trace(std::uint64_t now) {
  join_edge();
  record(std::min(now, trace_to_));
  close_trace();
}

void VerilatedNic::flush_trace(std::uint64_t now) {
  join_edge();
  if (!trace_) return;
  trace_->flush();
  // It happens with the next time that the file hears of.
  record(std::max(now, traced_time_ + 1));
  write_views();
}

void VerilatedNic::write_views() const {
  if (failed_at_ && !trace_mark_) return write_wave_views(trace_path_, {*failed_at_, true});
  // A mark that was asked for is that of a failure: what led to it is in front of it.
  write_wave_views(trace_path_, {trace_mark_.value_or(first_request_), trace_mark_.has_value()});
}

/// Between two edges the state is what it was, and a clock may stand still for long: at the ends of a window too.
void VerilatedNic::record(std::uint64_t time) {
  if (trace_ && time > traced_time_ && time >= trace_from_ && time <= trace_to_) trace_->dump(traced_time_ = time);
}

void VerilatedNic::close_trace() {
  if (!trace_) return;
  trace_->close();
  trace_.reset();
  write_views();
}

void VerilatedNic::listen(NicListener* listener) {
  join_edge();
  signals_ = listener == nullptr ? nullptr : std::make_unique<NicSignals>(*context_, *listener);
}

void VerilatedNic::cycle(std::uint64_t number, bool reset, std::uint64_t settle_time, std::uint64_t edge_time) {
  finish_edge();
  Verilated::threadContextp(context_.get());
  if (settle_time > trace_from_) record(trace_from_);
  cycle_ = number;
  top_->time_i = number;
  const bool was_quiet = std::exchange(quiet_until_, std::nullopt).has_value();
  if (reset) {
    hold_reset();
    evaluate(false, settle_time);
    if (signals_) signals_->reset();
  } else {
    top_->rst_ni = 1;
    drive();
    drive_flow_control();
    evaluate(false, settle_time);
    throw_if_failed();
    sample();
    sample_quiet(was_quiet);
    if (signals_) signals_->sample(edge_time);
  }
  edge_time_ = edge_time;
  if (edge_thread_) {
    edge_thread_->start();
  } else {
    make_edge();
  }
}

void VerilatedNic::sample_quiet(bool was_quiet) {
  if (!top_->quiet_o) return;
  quiet_until_ = top_->quiet_timed_o ? top_->quiet_until_o : kNever;
  // The state is megabytes: when it says so first, and then seldom.
  constexpr std::uint64_t kSeldom = 1000;
  if (!state_check_ || (was_quiet && cycle_ < quiet_checked_at_ + kSeldom)) return;
  quiet_checked_at_ = cycle_;
  throw_if_restless(state_check_->next_edge(), "it says that it is quiet, and its state changes with the clock");
}

void VerilatedNic::make_edge() {
  constexpr std::uint64_t kSometimes = 61;
  if (!state_check_ || !top_->rst_ni || cycle_ % kSometimes != 0) return evaluate(true, edge_time_);
  restless_ = state_check_->edge([this] { evaluate(true, edge_time_); });
}

void VerilatedNic::throw_if_restless(const std::vector<std::string>& signals, const char* what) const {
  if (signals.empty()) return;
  std::string text = name_ + ": in cycle " + std::to_string(cycle_) + " " + what + ":";
  for (const auto& signal : signals) text += ' ' + signal;
  throw std::runtime_error(text);
}

void VerilatedNic::join_edge() {
  if (edge_thread_) edge_thread_->join();
}

void VerilatedNic::finish_edge() {
  join_edge();
  throw_if_failed();
  throw_if_restless(std::exchange(restless_, {}), "the clock of a room stands still, and its state would change");
}

void VerilatedNic::throw_if_failed() {
  if (!failed_at_) return;
  close_trace();
  throw std::runtime_error(name_ + ": an assertion of the RTL failed at " + std::to_string(*failed_at_) + " ps");
}

void VerilatedNic::hold_reset() {
  // The MAC loses the rest of its frame, and ends it with an error.
  if (in_frame_) ethernet_.transmit({{}, 1, true, true});
  in_frame_ = false;
  top_->rst_ni = 0;
  top_->host_req_valid_i = 0;
  top_->dma_cpl_valid_i = 0;
  top_->eth_rx_valid_i = 0;
  top_->eth_link_up_i = ethernet_.link_up();
  host_request_.reset();
  dma_completion_.reset();
  dma_data_.reset();
  host_completion_.reset();
  drive_config();
}

void VerilatedNic::evaluate(bool clock, std::uint64_t time) {
  top_->clk_i = clock;
  context_->time(time);
  top_->eval();
  record(time);
  if (context_->gotError() && !failed_at_) failed_at_ = time;
}

std::optional<std::vector<std::uint64_t>> VerilatedNic::counts() {
  join_edge();
  return counts_of(*top_);
}

std::vector<std::string> VerilatedNic::state() {
  join_edge();
  std::vector<std::string> lines;
  const auto port = [&](const char* name, bool valid, bool ready) {
    if (valid && !ready) lines.push_back(std::string("rnic_top.") + name + ": valid, not ready");
  };
  port("host_req", top_->host_req_valid_i, top_->host_req_ready_o);
  port("dma_req", top_->dma_req_valid_o, top_->dma_req_ready_i);
  port("host_cpl", top_->host_cpl_valid_o, top_->host_cpl_ready_i);
  port("dma_cpl", top_->dma_cpl_valid_i, top_->dma_cpl_ready_o);
  port("eth_tx", top_->eth_tx_valid_o, top_->eth_tx_ready_i);
  auto inside = busy_signals(*context_);
  lines.insert(lines.end(), std::make_move_iterator(inside.begin()), std::make_move_iterator(inside.end()));
  return lines;
}

// ---- Into the NIC
// ------------------------------------------------------------------------------------------------------

void VerilatedNic::drive() {
  drive_config();
  drive_host_request();
  drive_dma_completion();
  top_->host_cpl_ready_i = host_completion_.active() || pcie_.can_complete();
  top_->dma_req_np_hold_i = pcie_.reads_held();
  top_->dma_req_ready_i = dma_data_.active() || pcie_.can_request();
  top_->eth_tx_ready_i = ethernet_.can_transmit();
  top_->eth_link_up_i = ethernet_.link_up();
  model::FrameBeat beat;
  top_->eth_rx_valid_i = ethernet_.receive(beat);
  if (top_->eth_rx_valid_i) put(top_->eth_rx_data_i, rtl::FrameBeat{beat.data, beat.bytes, beat.last, beat.err});
}

/// Ready for what is offered, which is known once the other inputs have settled. The clock is still high: rooms decide
/// whether they are clocked when it falls.
void VerilatedNic::drive_flow_control() {
  if (!pcie_.flow_limited() || dma_data_.active() || !top_->dma_req_ready_i) return;
  top_->eval();
  if (!top_->dma_req_valid_o) return;
  const auto header = get<rtl::DmaReqHdr>(top_->dma_req_hdr_o);
  const bool write = header.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemWrite);
  top_->dma_req_ready_i = pcie_.has_credits(write ? model::TlpKind::kMemoryWrite : model::TlpKind::kMemoryRead,
                                            write ? std::size_t{header.length_dw} * 4 : 0);
}

void VerilatedNic::drive_config() {
  const model::PcieConfig& config = pcie_.config();
  if (config_ == config) return;
  config_ = config;
  top_->cfg_max_payload_i = model::size_code(config.max_payload);
  top_->cfg_max_read_req_i = model::size_code(config.max_read_request);
  top_->cfg_bus_master_i = config.bus_master;
  top_->cfg_ext_tag_i = config.extended_tags;
  top_->cfg_cpl_timeout_disable_i = config.completion_timeout_disable;
  top_->cfg_msix_enable_i = config.msix_enable;
  top_->cfg_msix_mask_i = config.msix_mask;
}

void VerilatedNic::drive_host_request() {
  if (!host_request_.active()) {
    model::HostRequest request;
    top_->host_req_valid_i = pcie_.take_host_request(request);
    if (!top_->host_req_valid_i) return;
    if (trace_ && first_request_ == 0 && edge_time_ >= trace_from_ && posts_work(request)) first_request_ = edge_time_;
    const auto type = static_cast<std::uint8_t>(to_rtl(request.kind));
    put(top_->host_req_hdr_i,
        rtl::HostReqHdr{type, request.poisoned, request.address, request.length_dw, request.first_be, request.last_be,
                        request.tag, request.requester, request.handling.traffic_class, request.handling.attributes});
    host_request_.start(request.address, std::move(request.data));
  }
  host_request_.write_lanes(lanes(top_->host_req_data_i));
  top_->host_req_last_i = host_request_.last();
}

void VerilatedNic::drive_dma_completion() {
  if (!dma_completion_.active()) {
    model::DmaCompletion completion;
    top_->dma_cpl_valid_i = pcie_.take_dma_completion(completion);
    if (!top_->dma_cpl_valid_i) return;
    put(top_->dma_cpl_hdr_i, rtl::DmaCplHdr{static_cast<std::uint8_t>(completion.status), completion.poisoned,
                                            completion.tag, completion.byte_count, completion.lower_address,
                                            static_cast<std::uint16_t>(completion.data.size() / 4)});
    dma_completion_.start(completion.lower_address & ~3u, std::move(completion.data));
  }
  dma_completion_.write_lanes(lanes(top_->dma_cpl_data_i));
  top_->dma_cpl_last_i = dma_completion_.last();
}

// ---- Out of the NIC
// ----------------------------------------------------------------------------------------------------

void VerilatedNic::sample() {
  if (top_->host_req_valid_i && top_->host_req_ready_o) {
    if (host_request_.last()) activity_.last_host_request = cycle_;
    host_request_.advance();
  }
  if (top_->dma_cpl_valid_i && top_->dma_cpl_ready_o) dma_completion_.advance();
  if (top_->host_cpl_valid_o && top_->host_cpl_ready_i) {
    const auto header = get<rtl::HostCplHdr>(top_->host_cpl_hdr_o);
    if (!host_completion_.active()) host_completion_.start(header.lower_addr & ~3u, std::size_t{header.length_dw} * 4);
    if (host_completion_.take(lanes(top_->host_cpl_data_o)) != (top_->host_cpl_last_o != 0))
      throw model::PcieProtocolError("completion of a host read: its last beat is not where its length ends");
    if (top_->host_cpl_last_o) {
      pcie_.host_completion({static_cast<model::CompletionStatus>(header.status),
                             header.tag,
                             header.requester,
                             header.byte_count,
                             header.lower_addr,
                             host_completion_.finish(),
                             {header.tc, header.attr}});
    }
  }
  if (top_->dma_req_valid_o && top_->dma_req_ready_i) sample_dma_request();
  if (top_->eth_tx_valid_o && top_->eth_tx_ready_i) {
    const auto beat = get<rtl::FrameBeat>(top_->eth_tx_data_o);
    if (!in_frame_) activity_.last_frame_start = cycle_;
    in_frame_ = beat.last == 0;
    ethernet_.transmit({beat.data, beat.bytes, beat.last != 0, beat.err != 0});
  }
}

void VerilatedNic::sample_dma_request() {
  if (!dma_data_.active()) {
    const auto header = get<rtl::DmaReqHdr>(top_->dma_req_hdr_o);
    const bool write = header.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemWrite);
    const bool read = header.tlp_type == static_cast<std::uint8_t>(rtl::TlpType::kMemRead);
    dma_request_ = {write  ? model::TlpKind::kMemoryWrite
                    : read ? model::TlpKind::kMemoryRead
                           : model::TlpKind::kOther,
                    header.addr,
                    header.length_dw,
                    header.first_be,
                    header.last_be,
                    header.tag,
                    {}};
    dma_data_.start(header.addr, write ? std::size_t{header.length_dw} * 4 : 0);
  }
  const bool complete = dma_data_.take(lanes(top_->dma_req_data_o));
  if (complete != (top_->dma_req_last_o != 0))
    throw model::PcieProtocolError("last beat of a DMA TLP does not agree with its length");
  if (!complete) return;
  dma_request_.data = dma_data_.finish();
  pcie_.dma_request(std::move(dma_request_));
}

}  // namespace rnic::testbench
