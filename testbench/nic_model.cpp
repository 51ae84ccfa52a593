#include "testbench/nic_model.hpp"

#include <algorithm>

#include "driver/generated/host_interface.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kCompletionBoundary = 128;
/// Edges of its clock. What comes in between is seen together: fewer events, for a few hundredths of the goodput.
constexpr std::uint64_t kLooksEvery = 8;

}  // namespace

NicModel::NicModel(const sc_core::sc_module_name& name, model::PcieLink& pcie, model::EthernetLink& ethernet,
                   const NicOptions& options)
    : sc_module(name), pcie_(pcie), ethernet_(ethernet) {
  power_cycle(options);
  pcie_.set_waker([this](bool at_once) { wake(at_once); });
  ethernet_.set_waker([this](bool at_once) { wake(at_once); });
  SC_HAS_PROCESS(NicModel);
  SC_METHOD(cycle);
  sensitive << edge_event_.event();
  dont_initialize();
}

void NicModel::power_cycle(const NicOptions& options) {
  options_ = options;
  edges_ = {model::now_ps(), options.clock_phase, options.clock_period, options.clock_ppm};
  clocked_ = cycle_ = 0;
  activity_ = {};
  due_ = ~model::Picoseconds{0};
  edge_event_.cancel();
  reset();
}

void NicModel::reset() {
  core_.reset();
  if (observer_) observer_->reset();
  completions_.clear();
  transmitting_ = false;
  asleep_ = false;
  reset_end_ = edges_.first_edge_at(model::now_ps() + 1) + options_.reset_cycles;
  schedule(reset_end_);
}

void NicModel::listen(NicListener* listener) {
  observer_ = nullptr;
  if (listener != nullptr) {
    observer_ = std::make_unique<NicModelObserver>(
        *listener, [this] { return edges_.edge(born_ + core_->clock.now() / reference::kCycle); });
  }
  if (core_) core_->observer = observer_.get();
}

/// The next edge is `number`, or the next one behind it at which it looks.
void NicModel::schedule(std::uint64_t number) {
  number = (number + kLooksEvery - 1) / kLooksEvery * kLooksEvery;
  edge_event_.cancel();
  due_ = edges_.edge(number);
  edge_event_.notify_at(due_);
}

void NicModel::cycle() {
  cycle_ = edges_.first_edge_at(model::now_ps());
  due_ = ~model::Picoseconds{0};
  ++clocked_;
  if (!core_) {
    if (cycle_ < reset_end_) return schedule(reset_end_);
    core_ = std::make_unique<reference::Nic>();
    core_->observer = observer_.get();
    born_ = cycle_;
    model::FrameBeat lost;
    while (ethernet_.receive(lost)) {
    }
  }
  take_inputs();
  run();
  give_outputs();
  run();
  const auto departure = next_departure();
  asleep_ = !departure;
  std::uint64_t next = ~std::uint64_t{0};
  const auto sooner = [&](std::optional<std::uint64_t> number) {
    if (number) next = std::min(next, std::max(*number, cycle_ + 1));
  };
  const auto edge_at = [&](std::optional<model::Picoseconds> time) {
    return time ? std::optional(edges_.first_edge_at(*time)) : std::nullopt;
  };
  sooner(edge_at(departure));
  sooner(edge_at(next_arrival()));
  if (const auto time = core_->next()) sooner(born_ + (*time + reference::kCycle - 1) / reference::kCycle);
  if (next != ~std::uint64_t{0}) schedule(next);
}

/// Something may have come, or changed.
void NicModel::wake(bool at_once) {
  if (!core_) return;
  const model::Picoseconds now = model::now_ps();
  std::optional<model::Picoseconds> time;
  if (at_once) time = now;
  if (const auto arrival = next_arrival(); arrival && (!time || *arrival < *time)) time = arrival;
  if (!time) return;
  const std::uint64_t number = edges_.first_edge_at(std::max(*time, now + 1));
  if (edges_.edge(number) < due_) schedule(number);
}

void NicModel::take_inputs() {
  const model::PcieConfig& config = pcie_.config();
  const reference::Settings settings{config.max_payload,
                                     config.max_read_request,
                                     config.bus_master,
                                     config.extended_tags,
                                     config.completion_timeout_disable,
                                     config.msix_enable,
                                     config.msix_mask,
                                     ethernet_.link_up()};
  run();
  if (!(settings == core_->settings)) core_->configure(settings);
  model::DmaCompletion completion;
  while (pcie_.take_dma_completion(completion)) {
    core_->dma_answer({completion.status == model::CompletionStatus::kSuccess && !completion.poisoned, completion.tag,
                       completion.byte_count, completion.lower_address, completion.data});
  }
  model::HostRequest request;
  while (pcie_.take_host_request(request)) answer(request);
  take_frames();
}

void NicModel::take_frames() {
  reference::Bytes frame;
  for (bool bad = false; ethernet_.receive_frame(frame, bad);) core_->frame(std::exchange(frame, {}), bad);
}

/// The request, and the TLPs of its completion: each ends at a multiple of the boundary, or with the read.
void NicModel::answer(const model::HostRequest& request) {
  using Kind = reference::HostRequest::Kind;
  activity_.last_host_request = cycle_;
  const Kind kind = request.kind == model::TlpKind::kMemoryRead    ? Kind::Read
                    : request.kind == model::TlpKind::kMemoryWrite ? Kind::Write
                    : request.kind == model::TlpKind::kMessage     ? Kind::Message
                                                                   : Kind::Other;
  const auto answer = core_->host_request(
      {kind, request.poisoned, request.address, request.length_dw, request.first_be, request.last_be, request.data});
  if (!answer) return;
  model::HostCompletion tlp;
  tlp.tag = request.tag;
  tlp.requester = request.requester;
  tlp.handling = request.handling;
  if (answer->unsupported) {
    tlp.status = model::CompletionStatus::kUnsupportedRequest;
    tlp.byte_count = static_cast<std::uint16_t>(answer->bytes);
    tlp.lower_address = static_cast<std::uint8_t>(answer->address & 0x7f);
    completions_.push_back(tlp);
    return;
  }
  const std::uint64_t base = request.address;
  for (std::uint64_t at = answer->address, left = answer->bytes; left != 0;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(left, kCompletionBoundary - at % kCompletionBoundary);
    tlp.byte_count = static_cast<std::uint16_t>(left);
    tlp.lower_address = static_cast<std::uint8_t>(at & 0x7f);
    const std::uint64_t from = (at & ~std::uint64_t{3}) - base, to = ((at + bytes + 3) & ~std::uint64_t{3}) - base;
    tlp.data.assign(answer->data.begin() + static_cast<std::ptrdiff_t>(from),
                    answer->data.begin() + static_cast<std::ptrdiff_t>(to));
    completions_.push_back(tlp);
    at += bytes;
    left -= bytes;
  }
}

void NicModel::give_outputs() {
  while (!completions_.empty() && pcie_.can_complete()) {
    pcie_.host_completion(std::move(completions_.front()));
    completions_.pop_front();
  }
  while (core_->may_request() && pcie_.can_request() && give_request()) {
  }
  give_frames();
}

/// The oldest request for which there are credits; a write passes reads that have none (base specification 2.4.1).
bool NicModel::give_request() {
  auto& out = core_->pcie.out;
  auto it = out.begin();
  if (pcie_.reads_held()) it = std::find_if(out.begin(), out.end(), [](const auto& tlp) { return tlp.write; });
  if (it == out.end()) return false;
  const model::TlpKind kind = it->write ? model::TlpKind::kMemoryWrite : model::TlpKind::kMemoryRead;
  if (!pcie_.has_credits(kind, it->data.size())) return false;
  reference::DmaTlp tlp = std::move(*it);
  out.erase(it);
  pcie_.dma_request({kind, tlp.address, tlp.dwords, tlp.first_be, tlp.last_be, tlp.tag, tlp.data});
  core_->pcie.left(tlp);
  return true;
}

void NicModel::give_frames() {
  auto& out = core_->port.out;
  while (!out.empty() && ethernet_.can_transmit()) {
    if (std::exchange(transmitting_, false)) {
      core_->port.left();
      run();
      continue;
    }
    if (!core_->enabled()) return;
    activity_.last_frame_start = cycle_;
    ethernet_.transmit_frame(out.front().bytes);
    transmitting_ = true;
  }
}

/// When a TLP or a whole frame is there that has not been seen.
std::optional<model::Picoseconds> NicModel::next_arrival() const {
  const auto tlp = pcie_.next_arrival(), frame = ethernet_.next_frame();
  return tlp && frame ? std::min(*tlp, *frame) : tlp ? tlp : frame;
}

/// When something may leave that has not; now: what it waits for has no time.
std::optional<model::Picoseconds> NicModel::next_departure() const {
  std::optional<model::Picoseconds> time;
  const auto sooner = [&time](model::Picoseconds other) { time = std::min(time.value_or(other), other); };
  if (!completions_.empty()) sooner(model::now_ps());
  if (core_->may_request() && !core_->pcie.out.empty()) sooner(pcie_.requests_from());
  if (!core_->port.out.empty() && (transmitting_ || core_->enabled())) sooner(ethernet_.transmits_from());
  return time;
}

std::vector<std::string> NicModel::state() {
  std::vector<std::string> lines;
  if (!core_) return {"in reset"};
  if (!core_->pcie.quiet()) lines.push_back("DMA is under way or waits to leave");
  if (!core_->port.out.empty()) lines.push_back("frames wait to leave");
  return lines;
}

std::optional<std::vector<std::uint64_t>> NicModel::counts() {
  std::vector<std::uint64_t> counts(hw::kCounterNames.size());
  if (!core_) return counts;
  for (std::size_t i = 0; i < counts.size(); ++i) counts[i] = core_->counter(i);
  return counts;
}

}  // namespace rnic::testbench
