#include "model/root_complex.hpp"

#include <algorithm>
#include <utility>

#include "model/interrupt_controller.hpp"

namespace rnic::model {
namespace {

/// What the link takes before it asks the NIC to wait.
constexpr std::size_t kTransmitBufferBytes = 1024;
/// Bytes that a read did not enable. Their value is undefined (base specification 2.2.5); this one is easy to
/// recognize.
constexpr std::uint8_t kUndefinedByte = 0xA5;

/// Time for messages that a NIC had begun before it was told to send none.
constexpr Picoseconds kInterruptGrace = 2'000'000;

bool may_interrupt(const PcieConfig& config) { return config.msix_enable && !config.msix_mask; }

CompletionStatus status_of(PcieFault fault) {
  if (fault == PcieFault::kUnsupportedRequest) return CompletionStatus::kUnsupportedRequest;
  return fault == PcieFault::kCompleterAbort ? CompletionStatus::kCompleterAbort : CompletionStatus::kSuccess;
}

}  // namespace

RootComplex::RootComplex(const sc_core::sc_module_name& name, Iommu& iommu, const RootComplexOptions& options)
    : sc_module(name),
      mmio("mmio"),
      iommu_(iommu),
      memory_(iommu),
      options_((check(options), options)),
      upstream_line_(options.bandwidth_gbytes),
      credits_(options.credits),
      upstream_random_(options.seed, "upstream"),
      downstream_(options),
      faults_(options.faults, options.seed, now_ps()),
      handling_(options.seed, "handling of host reads") {
  mmio.register_b_transport(this, &RootComplex::b_transport);
  memory_.set_lost_write_handler([this](std::size_t bytes) {
    ++statistics_.dropped_writes;
    statistics_.dma_write_bytes -= bytes;
  });
  SC_HAS_PROCESS(RootComplex);
  SC_METHOD(deliver);
  sensitive << upstream_event_.event();
  dont_initialize();
  SC_METHOD(release);
  sensitive << release_event_.event();
  dont_initialize();
}

void RootComplex::reset(const RootComplexOptions& options) {
  check(options);
  options_ = options;
  statistics_ = {};
  checker_.reset();
  upstream_line_ = TlpLine(options.bandwidth_gbytes);
  credits_ = CreditCounter(options.credits);
  upstream_.clear();
  last_arrival_ = 0;
  late_reads_.clear();
  finish_writes();
  upstream_event_.cancel();
  upstream_random_ = Random(options.seed, "upstream");
  downstream_ = Downstream(options);
  tags_.reset();
  faults_ = PcieFaultInjector(options.faults, options.seed, now_ps());
  handling_ = Random(options.seed, "handling of host reads");
  paused_until_ = 0;
  held_ = {};
  held_until_ = {};
  release_event_.cancel();
  last_of_ = {};
  last_request_ = false;
  silent_from_ = 0;
}

void RootComplex::reset_function() {
  std::erase_if(upstream_, [](const Upstream& next) {
    const auto* request = std::get_if<DmaRequest>(&next.packet);
    return request != nullptr && request->kind == TlpKind::kMemoryRead;
  });
  late_reads_.clear();
  const CreditKinds held = downstream_.held();
  downstream_ = Downstream(options_);
  downstream_.hold(held, now_ps());
  changed();
  checker_.reset();
}

void RootComplex::set_config(const PcieConfig& config) {
  RootComplexOptions changed = options_;
  changed.config = config;
  check(changed);
  if (distrusted_) {
    former_ = allowed();
    former_until_ = now_ps() + kConfigGrace;
  }
  if (options_.config.bus_master != config.bus_master) last_request_ = !config.bus_master;
  if (may_interrupt(options_.config) && !may_interrupt(config)) silent_from_ = now_ps() + kInterruptGrace;
  options_ = changed;
  downstream_.set_max_payload(config.max_payload);
  NicLink::changed();
}

void RootComplex::hold(PcieWay way, const CreditKinds& kinds, std::optional<Picoseconds> duration) {
  changed();
  auto& until = held_until_.at(static_cast<std::size_t>(way));
  until.reset();
  if (duration) {
    until = now_ps() + *duration;
    release_event_.notify_at(*until);
  }
  if (way == PcieWay::kToNic) return downstream_.hold(kinds, now_ps());
  if (held_.has(CreditKind::kPosted) && !kinds.has(CreditKind::kPosted))
    silent_from_ = std::max(silent_from_, now_ps() + kInterruptGrace);
  for (const CreditKind kind : {CreditKind::kPosted, CreditKind::kNonPosted, CreditKind::kCompletion}) {
    if (kinds.has(kind) != held_.has(kind)) last_of_.set(kind, kinds.has(kind));
  }
  held_ = kinds;
}

void RootComplex::release() {
  for (const auto way : {PcieWay::kToNic, PcieWay::kToHost}) {
    const auto until = held_until_.at(static_cast<std::size_t>(way));
    if (until && *until <= now_ps()) {
      hold(way, {});
    } else if (until) {
      release_event_.notify_at(*until);
    }
  }
}

// ---- Processor to NIC
// --------------------------------------------------------------------------------------------------

void RootComplex::post(HostRequest request) {
  request_taps_(request);
  downstream_.push_request(std::move(request), now_ps());
  pushed();
}

std::optional<HostCompletion> RootComplex::request(HostRequest request) {
  const ByteRange range = enabled_range(request.address, request.length_dw, request.first_be, request.last_be);
  if (request.kind == TlpKind::kMemoryRead) {
    if (const auto hit = faults_.judge(PcieAccess::kHostRead, range).hit) {
      // Something between host and NIC took the request.
      faults_.count(hit->fault);
      const bool lost = hit->fault == PcieFault::kTimeout;
      wait_until(time_in(from_ns(lost ? options_.mmio_timeout_ns : options_.read_latency_ns)));
      if (lost) return std::nullopt;
      return HostCompletion{
          status_of(hit->fault), 0, request.requester, static_cast<std::uint16_t>(range.length), 0, {}};
    }
  }
  MmioTags::Lease lease(tags_, range, request.handling);
  request.tag = lease.tag();
  post(std::move(request));
  const HostCompletion* completion = lease.wait(from_ns(options_.mmio_timeout_ns));
  if (completion == nullptr) return std::nullopt;
  return *completion;
}

void RootComplex::b_transport(tlm::tlm_generic_payload& payload, sc_core::sc_time& delay) {
  const std::uint64_t address = payload.get_address();
  const std::size_t length = payload.get_data_length();
  if (payload.get_byte_enable_ptr() != nullptr) return payload.set_response_status(tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
  if (length == 0 || address % kPageBytes + length > kPageBytes)
    return payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  const DwordRange range = covering_dwords(address, static_cast<std::uint32_t>(length));
  const std::size_t bytes = std::size_t{range.length_dw} * 4;
  if (bytes > options_.config.max_payload) return payload.set_response_status(tlm::TLM_BURST_ERROR_RESPONSE);
  if (delay != sc_core::SC_ZERO_TIME) {
    wait_until(time_in(delay.value()));
    delay = sc_core::SC_ZERO_TIME;
  }

  HostRequest tlp{TlpKind::kMemoryRead, false, range.address, range.length_dw, range.first_be, range.last_be, 0, 0, {}};
  const std::size_t offset = address - range.address;
  if (payload.is_write()) {
    tlp.kind = TlpKind::kMemoryWrite;
    tlp.data.resize(bytes);
    std::memcpy(tlp.data.data() + offset, payload.get_data_ptr(), length);
    const ByteRange written{address, static_cast<std::uint32_t>(length)};
    if (const auto hit = faults_.judge(PcieAccess::kHostWrite, written).hit) {
      faults_.count(hit->fault);
      tlp.poisoned = true;
      for (auto& byte : tlp.data) byte = static_cast<std::uint8_t>(~byte);
    }
    post(std::move(tlp));
    return payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  tlp.handling = {static_cast<std::uint8_t>(handling_.below(8)), static_cast<std::uint8_t>(handling_.below(8))};
  const auto completion = request(std::move(tlp));
  const bool success =
      completion && completion->status == CompletionStatus::kSuccess && completion->data.size() == bytes;
  if (success) {
    std::memcpy(payload.get_data_ptr(), completion->data.data() + offset, length);
    return payload.set_response_status(tlm::TLM_OK_RESPONSE);
  }
  std::memset(payload.get_data_ptr(), 0xFF, length);
  const bool refused = completion && completion->status != CompletionStatus::kSuccess;
  payload.set_response_status(refused ? tlm::TLM_ADDRESS_ERROR_RESPONSE : tlm::TLM_GENERIC_ERROR_RESPONSE);
}

// ---- NIC to host
// -------------------------------------------------------------------------------------------------------

bool RootComplex::take_host_request(HostRequest& request) {
  if (!downstream_.take_request(request, now_ps())) return false;
  ++statistics_.packets;
  if (tlp_tap_)
    tlp_tap_({PcieWay::kToNic, credit_kind(request.kind), request.address, request.tag, request.data.size()});
  return true;
}

bool RootComplex::can_request() const {
  if (held_.has(CreditKind::kPosted) && held_.has(CreditKind::kNonPosted)) return false;
  if (now_ps() < paused_until_ || faults_.stalled(now_ps())) return false;
  return requests_from() <= now_ps();
}

Picoseconds RootComplex::requests_from() const {
  const Picoseconds ahead = upstream_line_.duration(kTransmitBufferBytes);
  return upstream_line_.free_at() - std::min(upstream_line_.free_at(), ahead);
}

bool RootComplex::has_credits(TlpKind kind, std::size_t payload_bytes) const {
  // A read that is offered has had its credit all along: nobody else takes one.
  if (credit_kind(kind) == CreditKind::kNonPosted) return true;
  return !held_.has(CreditKind::kPosted) && credits_.enough(CreditKind::kPosted, payload_bytes, now_ps());
}

bool RootComplex::reads_held() const {
  return held_.has(CreditKind::kNonPosted) || !credits_.enough(CreditKind::kNonPosted, 0, now_ps());
}

bool RootComplex::can_complete() const {
  return !held_.has(CreditKind::kCompletion) && credits_.enough(CreditKind::kCompletion, kNicCompletionBytes, now_ps());
}

void RootComplex::take_held(CreditKind kind) {
  if (!held_.has(kind)) return;
  if (!last_of_.has(kind)) throw PcieProtocolError("a TLP that its receiver has no credits for (2.6.1.2)");
  last_of_.set(kind, false);
}

PcieConfig RootComplex::allowed() const {
  PcieConfig config = options_.config;
  if (now_ps() >= former_until_) return config;
  config.bus_master = config.bus_master || former_.bus_master;
  config.extended_tags = config.extended_tags || former_.extended_tags;
  config.max_payload = std::max(config.max_payload, former_.max_payload);
  config.max_read_request = std::max(config.max_read_request, former_.max_read_request);
  return config;
}

void RootComplex::dma_request(DmaRequest request) {
  PcieConfig config = allowed();
  config.bus_master = config.bus_master || last_request_;
  last_request_ = false;
  checker_.check_request(request, config, !distrusted_);
  if (InterruptController::is_message(request.address) && !may_interrupt(config) && now_ps() > silent_from_)
    ++statistics_.forbidden_interrupts;
  const std::size_t bytes = request.data.size();
  const CreditKind kind = credit_kind(request.kind);
  take_held(kind);
  if (tlp_tap_) tlp_tap_({PcieWay::kToHost, kind, request.address, request.tag, bytes});
  send_upstream(std::move(request), kind, bytes);
  if (const Picoseconds pause = faults_.pause()) paused_until_ = now_ps() + pause;
}

void RootComplex::host_completion(HostCompletion completion) {
  const std::size_t bytes = completion.data.size();
  take_held(CreditKind::kCompletion);
  if (tlp_tap_) tlp_tap_({PcieWay::kToHost, CreditKind::kCompletion, 0, completion.tag, bytes});
  send_upstream(std::move(completion), CreditKind::kCompletion, bytes);
}

void RootComplex::send_upstream(std::variant<DmaRequest, HostCompletion> packet, CreditKind kind,
                                std::size_t payload_bytes) {
  ++statistics_.packets;
  const Picoseconds sent = upstream_line_.send(now_ps(), payload_bytes);
  credits_.spend(kind, payload_bytes, now_ps(), sent);
  const Picoseconds arrival =
      sent + from_ns(options_.read_latency_ns / 2) + upstream_random_.below(from_ns(options_.jitter_ns) + 1);
  last_arrival_ = std::max(last_arrival_, arrival);
  upstream_.push_back({last_arrival_, std::move(packet)});
  if (upstream_.size() == 1) expect_delivery();
}

/// An event keeps the earliest time that it was notified with.
void RootComplex::expect_delivery() {
  if (!upstream_.empty()) upstream_event_.notify_at(upstream_.front().arrival);
  if (!late_reads_.empty()) upstream_event_.notify_at(late_reads_.begin()->first);
}

void RootComplex::deliver() {
  const Picoseconds now = now_ps();
  for (; !late_reads_.empty() && late_reads_.begin()->first <= now; late_reads_.erase(late_reads_.begin()))
    read_memory(late_reads_.begin()->second);
  while (!upstream_.empty() && upstream_.front().arrival <= now) {
    Upstream next = std::move(upstream_.front());
    upstream_.pop_front();
    if (auto* completion = std::get_if<HostCompletion>(&next.packet)) {
      switch (tags_.complete(std::move(*completion))) {
        case MmioTags::Taken::kByItsRequest: break;
        case MmioTags::Taken::kTooLate: ++statistics_.late_completions; break;
        case MmioTags::Taken::kByNobody: ++statistics_.unexpected_completions; break;
      }
      continue;
    }
    DmaRequest& request = std::get<DmaRequest>(next.packet);
    if (request.kind != TlpKind::kMemoryRead) {
      write_memory(request);
    } else if (upstream_random_.chance(options_.pass_probability)) {
      const Picoseconds delay = 1 + upstream_random_.below(from_ns(options_.reorder_window_ns) + 1);
      late_reads_.emplace(now + delay, std::move(request));
    } else {
      read_memory(request);
    }
  }
  expect_delivery();
}

std::optional<PcieFaultInjector::Hit> RootComplex::judge_dma(PcieAccess access, const DmaRequest& request) {
  for (const std::uint64_t address : faults_.due_unmaps(now_ps())) {
    if (iommu_.revoke(reinterpret_cast<const void*>(address)) != 0) faults_.count(PcieFault::kUnmap);
  }
  ByteRange range = enabled_range(request.address, request.length_dw, request.first_be, request.last_be);
  const std::uint8_t* host = iommu_.peek(range.address);
  range.address = reinterpret_cast<std::uint64_t>(host);
  const auto fate = faults_.judge(access, range, host == nullptr);
  if (fate.unmap && iommu_.revoke_page(request.address)) faults_.count(PcieFault::kUnmap);
  return fate.hit;
}

void RootComplex::answer_read(const DmaRequest& request, bool good, ReadJob& job) {
  if (!good) {
    ++statistics_.unsupported_reads;
    job.status = CompletionStatus::kUnsupportedRequest;
    return;
  }
  const auto blank = [&](std::size_t dword) {
    for (std::size_t i = 4 * dword; i < 4 * dword + 4; ++i) {
      if (!byte_enabled(i, request.length_dw, request.first_be, request.last_be)) job.data[i] = kUndefinedByte;
    }
  };
  blank(0);
  blank(request.length_dw - 1u);
}

void RootComplex::read_memory(const DmaRequest& request) {
  const auto hit = judge_dma(PcieAccess::kDmaRead, request);
  const ByteRange range = enabled_range(request.address, request.length_dw, request.first_be, request.last_be);
  ReadJob job{CompletionStatus::kSuccess, request.tag, range.address, range.length, {}, 0};
  ++statistics_.dma_reads;
  statistics_.dma_read_bytes += range.length;
  const auto from = iommu_.locate(request.address, Iommu::Access::kRead);
  if (memory_.answers_later(from) && !hit) {  // while the completion is on its way
    if (auto await = memory_.begin_read(request, from)) {
      job.await = [this, request, await = std::move(await)](ReadJob& to) { answer_read(request, await(to.data), to); };
    } else {
      answer_read(request, false, job);
    }
  } else {
    const bool good = from.at != nullptr && memory_.read(request, from, job.data);
    answer_read(request, good, job);
    if (good && hit) {
      faults_.count(hit->fault);
      job.status = status_of(hit->fault);
      job.poisoned = hit->fault == PcieFault::kPoisoned;
      job.lost = hit->fault == PcieFault::kTimeout;
      job.fault_address = range.address + std::min(hit->after_bytes, range.length - 1);
      if (hit->fault == PcieFault::kLate) job.late = from_ns(hit->late_ns);
      if (hit->fault > PcieFault::kLate) job.forged = hit->fault;
      // The NIC may wait for more.
      if (hit->fault >= PcieFault::kLate) statistics_.last_withheld = now_ps() + job.late;
    }
  }
  if (job.lost) {
    checker_.forget(job.tag);
    statistics_.last_withheld = now_ps();
    if (job.fault_address == job.address) return;
  }
  downstream_.push_read(std::move(job), now_ps());
  pushed();
}

void RootComplex::write_memory(const DmaRequest& request) {
  const bool message = request.length_dw == 1 && request.first_be == 0xF;
  if (InterruptController::is_message(request.address) && (message || !distrusted_)) {
    std::uint32_t data = 0;
    for (std::size_t i = 0; i < 4; ++i) data |= std::uint32_t{request.data[i]} << (8 * i);
    ++statistics_.interrupts;
    if (on_interrupt_) on_interrupt_(request.address, data);
    return;
  }
  ++statistics_.dma_writes;
  static_cast<void>(judge_dma(PcieAccess::kDmaWrite, request));
  const auto to = iommu_.locate(request.address, Iommu::Access::kWrite);
  if (to.at == nullptr) {
    ++statistics_.dropped_writes;
    return;
  }
  if (!memory_.write(request, to)) {
    ++statistics_.dropped_writes;
    return;
  }
  statistics_.dma_write_bytes += enabled_bytes(request);
  write_taps_(request);
  if (to.process == 0 && write_tap_) write_tap_(to.at);
  if (on_memory_) on_memory_();
}

bool RootComplex::take_dma_completion(DmaCompletion& completion) {
  if (!downstream_.take_completion(completion, now_ps())) return false;
  ++statistics_.packets;
  if (tlp_tap_) tlp_tap_({PcieWay::kToNic, CreditKind::kCompletion, 0, completion.tag, completion.data.size()});
  checker_.note_completion(completion);
  return true;
}

}  // namespace rnic::model
