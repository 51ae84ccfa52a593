#include "testbench/sim_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <stdexcept>
#include <utility>

#include "model/pcie.hpp"
#include "model/timed_event.hpp"

namespace rnic::testbench {
namespace {

/// How often an application may ask for time in vain. More than a driver with thousands of objects does on its way
/// down.
constexpr std::uint64_t kPatience = 1'000'000;
/// Of memory of a process that is looked at without a pause, and simulated time between two such pieces.
constexpr std::uint64_t kSliceBytes = std::uint64_t{1} << 20, kSliceNs = 200;

}  // namespace

SimDevice::SimDevice(const sc_core::sc_module_name& name, model::HostMemory& memory, model::Iommu& iommu,
                     model::InterruptController& interrupts, std::uint64_t seed)
    : sc_module(name),
      mmio("mmio"),
      memory_(memory),
      iommu_(iommu),
      interrupts_(interrupts),
      random_(seed, "entropy"),
      combining_(seed, "write_combining") {}

/// Whether the caller can wait for simulated time.
bool SimDevice::time_can_pass() const {
  const sc_core::sc_process_handle process = sc_core::sc_get_current_process_handle();
  return !stopping_ && process.valid() && process.proc_kind() == sc_core::SC_THREAD_PROC_ && !process.is_unwinding();
}

void SimDevice::stop() {
  stopping_ = true;
  skips_ = 0;
  stop_event_.notify(sc_core::SC_ZERO_TIME);
  happen_event_.notify(sc_core::SC_ZERO_TIME);
  interrupts_.wake();
}

/// `ns` that cannot pass.
void SimDevice::skip(std::uint64_t ns) {
  skipped_ns_ += ns;
  if (!stopping_ || ++skips_ < kPatience || std::uncaught_exceptions() != 0) return;
  skips_ = 0;
  throw Stopped{};
}

void SimDevice::reset(std::uint64_t seed) {
  random_ = model::Random(seed, "entropy");
  combining_ = model::Random(seed, "write_combining");
  epoch_ = model::now_ps();
  skipped_ns_ = 0;
  asleep_until_ = 0;
  stopping_ = false;
  misuse_.clear();
  oddities_.clear();
}

tlm::tlm_response_status SimDevice::transport(tlm::tlm_command command, std::uint64_t offset, std::uint8_t* data,
                                              unsigned length) {
  tlm::tlm_generic_payload payload;
  payload.set_command(command);
  payload.set_address(offset);
  payload.set_data_ptr(data);
  payload.set_data_length(length);
  payload.set_streaming_width(length);
  payload.set_response_status(tlm::TLM_INCOMPLETE_RESPONSE);
  sc_core::sc_time delay = sc_core::SC_ZERO_TIME;
  mmio->b_transport(payload, delay);
  return payload.get_response_status();
}

std::uint64_t SimDevice::read64(std::uint64_t offset) {
  if (!time_can_pass()) return ~std::uint64_t{0};
  std::array<std::uint8_t, 8> data{};
  const auto status = transport(tlm::TLM_READ_COMMAND, offset, data.data(), data.size());
  if (order_ != nullptr) order_->loads_barrier();  // rule 7
  if (status != tlm::TLM_OK_RESPONSE) return ~std::uint64_t{0};
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < data.size(); ++i) value |= std::uint64_t{data[i]} << (8 * i);
  return value;
}

void SimDevice::write64(std::uint64_t offset, std::uint64_t value) {
  std::array<std::uint8_t, 8> data{};
  for (std::size_t i = 0; i < data.size(); ++i) data[i] = static_cast<std::uint8_t>(value >> (8 * i));
  if (observer_) observer_(offset, value);
  if (order_ != nullptr) order_->device_write();
  static_cast<void>(transport(tlm::TLM_WRITE_COMMAND, offset, data.data(), data.size()));
}

void SimDevice::write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) {
  std::array<std::uint8_t, 64> copy{};
  std::copy(data.begin(), data.end(), copy.begin());
  if (order_ != nullptr) order_->device_write();
  for (const auto& [from, bytes] : pieces_of_burst())
    static_cast<void>(
        transport(tlm::TLM_WRITE_COMMAND, offset + from, copy.data() + from, static_cast<unsigned>(bytes)));
}

std::vector<SimDevice::Piece> SimDevice::pieces_of_burst() {
  constexpr std::size_t kBurst = 64, kLeast = 8;
  std::vector<Piece> pieces{{0, kBurst}};
  if (!combining_.chance(combining_split_)) return pieces;
  // Halves of halves, as often as a coin says; the whole is always cut.
  for (std::size_t i = 0; i < pieces.size();) {
    const std::size_t half = pieces[i].bytes / 2;
    if (half < kLeast || (half != kBurst / 2 && combining_.chance(0.5))) {
      ++i;
      continue;
    }
    pieces[i].bytes = half;
    pieces.push_back({pieces[i].offset + half, half});
  }
  for (std::size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[combining_.below(i)]);
  return pieces;
}

Result<DmaBuffer> SimDevice::dma_alloc(std::size_t bytes) {
  void* const pointer = memory_.allocate(bytes);
  if (pointer == nullptr) return Error::kOutOfMemory;
  const std::size_t size =
      (std::max<std::size_t>(bytes, 1) + model::kPageBytes - 1) / model::kPageBytes * model::kPageBytes;
  if (order_ != nullptr) order_->share(pointer, size);
  return DmaBuffer{pointer, iommu_.map_range(pointer, size, model::Iommu::Rights::kReadWrite), size};
}

void SimDevice::dma_free(const DmaBuffer& buffer) {
  try {
    iommu_.unmap_range(buffer.iova, buffer.size);
    if (order_ != nullptr) order_->unshare(buffer.pointer, buffer.size);
    memory_.release(buffer.pointer);
  } catch (const std::invalid_argument& error) {
    misuse_.push_back(std::string("dma_free: ") + error.what());
  }
}

Result<std::vector<std::uint64_t>> SimDevice::map_pages(const void* p, std::size_t length, bool writable) {
  const std::size_t bytes = std::max<std::size_t>(length, 1);
  if (!model::HostMemory::accessible(p, bytes, writable)) return Error::kAccessViolation;
  memory_.pin(p, bytes);
  if (order_ != nullptr) order_->share(p, bytes);
  return iommu_.map_pages(p, bytes, writable ? model::Iommu::Rights::kReadWrite : model::Iommu::Rights::kRead);
}

void SimDevice::unmap_pages(const void* p, std::size_t length, std::span<const std::uint64_t> iovas) {
  try {
    iommu_.unmap_pages(iovas);
    if (order_ != nullptr) order_->unshare(p, std::max<std::size_t>(length, 1));
    memory_.unpin(p, std::max<std::size_t>(length, 1));
  } catch (const std::invalid_argument& error) {
    misuse_.push_back(std::string("unmap_pages: ") + error.what());
  }
}

Result<std::vector<std::uint64_t>> SimDevice::map_process_pages(std::int32_t process, std::uint64_t address,
                                                                std::size_t length, bool writable) {
  const std::uint64_t end = address + std::max<std::size_t>(length, 1);
  const auto mapping = iommu_.new_mapping();
  std::vector<std::uint64_t> iovas;
  for (std::uint64_t next = address; next < end;) {
    const std::uint64_t bytes = std::min(end - next, kSliceBytes - next % kSliceBytes);
    if (const auto refused = reach(process, next, bytes, writable); !refused) {
      iommu_.unmap_process_pages(iovas);
      return refused.error();
    }
    const auto rights = writable ? model::Iommu::Rights::kReadWrite : model::Iommu::Rights::kRead;
    const auto slice = iommu_.map_process_pages(process, next, bytes, rights, mapping);
    iovas.insert(iovas.end(), slice.begin(), slice.end());
    next += bytes;
    // Others have their turn.
    if (next < end && time_can_pass()) elapse(kSliceNs);
  }
  return iovas;
}

Result<void> SimDevice::reach(std::int32_t process, std::uint64_t address, std::uint64_t bytes, bool writable) {
  using Reach = model::ProcessMemory::Reach;
  const auto memory = [&] {
    const auto of_process = iommu_.process(process);
    return of_process == nullptr ? Reach::kForbidden : of_process->reach(address, bytes, writable);
  };
  switch (witness_ != nullptr ? witness_->reach(process, address, bytes, writable, memory) : memory()) {
    case Reach::kYes: break;
    case Reach::kNo: return Error::kAccessViolation;
    case Reach::kForbidden:
      if (forbidden_) forbidden_(process);
      return Error::kNotSupported;
  }
  return {};
}

void SimDevice::unmap_process_pages(std::int32_t, std::uint64_t, std::size_t, std::span<const std::uint64_t> iovas) {
  try {
    iommu_.unmap_process_pages(iovas);
  } catch (const std::invalid_argument& error) {
    misuse_.push_back(std::string("unmap_process_pages: ") + error.what());
  }
}

bool SimDevice::wait(std::uint64_t seen, std::uint64_t timeout_ns) {
  if (time_can_pass()) {
    if (timeout_ns == kForever) return interrupts_.wait_for_wake(seen);
    return interrupts_.wait_for_wake(seen, model::to_sc_time(timeout_ns * model::kPicosecondsPerNanosecond));
  }
  skip(timeout_ns == kForever ? 0 : timeout_ns);
  return false;
}

bool SimDevice::removed() { return !time_can_pass(); }

void SimDevice::set_function_reset(std::function<void()> reset, std::uint64_t takes_ns) {
  function_reset_ = std::move(reset);
  function_reset_ns_ = takes_ns;
}

void SimDevice::reset_function() {
  if (!time_can_pass() || !function_reset_) return;
  function_reset_();
  elapse(function_reset_ns_);
  if (order_ != nullptr) order_->settle();
}

void SimDevice::report(DeviceOddity oddity, std::uint32_t number) {
  switch (oddity) {
    case DeviceOddity::kUnknownCompletion:
      return oddities_.push_back(fmt::format("a CQE of queue pair {:#x} that no request waits for", number));
    case DeviceOddity::kUnknownEvent:
      return oddities_.push_back(fmt::format("an EQE of type {:#x}, which there is not", number));
  }
}

Device::MsixMessage SimDevice::msix_message(std::uint32_t vector) {
  return {model::InterruptController::kAddress, model::InterruptController::data(vector)};
}

void SimDevice::elapse(std::uint64_t ns) {
  if (ns == 0) return;
  if (time_can_pass()) {
    const model::Picoseconds time = ns * model::kPicosecondsPerNanosecond;
    if (const model::Picoseconds begun = std::exchange(begun_, 0); begun != 0) {
      return model::wait_turn_at(model::now_ps() + time - std::min(time, begun), stop_event_);
    }
    if (time >= long_sleep_) asleep_until_ = std::max(asleep_until_, model::now_ps() + time);
    return model::wait_until(model::time_in(time), stop_event_);
  }
  skip(ns);
}

void SimDevice::happen() {
  ++happened_;
  if (looking_ != 0) happen_event_.notify(sc_core::SC_ZERO_TIME);
}

void SimDevice::look_again(const Look& look, std::uint64_t step_ns, std::uint64_t end_ns) {
  if (!time_can_pass() || (order_ != nullptr && order_->weak())) return elapse(step_ns);
  constexpr std::uint64_t kPs = model::kPicosecondsPerNanosecond;
  // The program sees at `seen` what it began to look for at look.at, and begins again step_ns later.
  const model::Picoseconds seen = model::now_ps();
  const model::Picoseconds period = seen - look.at + step_ns * kPs;
  const std::uint64_t until_ns = end_ns - std::min(end_ns, skipped_ns_);
  const bool ends = until_ns < (~model::Picoseconds{0} - epoch_) / kPs;
  const model::Picoseconds end = ends ? epoch_ + until_ns * kPs : ~model::Picoseconds{0};
  ++looking_;
  while (happened_ == look.happened && !stopping_ && model::now_ps() < end) {
    if (ends) {
      model::wait_until(end, happen_event_);
    } else {
      sc_core::wait(happen_event_);
    }
  }
  --looking_;
  if (stopping_) return;
  const model::Picoseconds now = model::now_ps();
  const std::uint64_t looks = std::max<std::uint64_t>(1, (now - seen + period - 1) / period);
  const model::Picoseconds begin = look.at + looks * period;
  if (begin >= now) return model::wait_turn_at(begin, stop_event_);
  begun_ = now - begin;
}

std::uint64_t SimDevice::now_ns() {
  return (model::now_ps() - begun_ - epoch_) / model::kPicosecondsPerNanosecond + skipped_ns_;
}

}  // namespace rnic::testbench
