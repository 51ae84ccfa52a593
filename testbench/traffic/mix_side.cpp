#include "testbench/traffic/mix_side.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "model/random.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kWord = sizeof(std::uint64_t);

/// Calls `take(at, bytes)` for each piece of up to eight bytes of the message.
template <typename Take>
void generate(std::size_t size, std::uint32_t lane, std::uint64_t number, Take take) {
  model::Random random((std::uint64_t{lane} << 48) ^ number);
  for (std::size_t at = 0; at < size; at += kWord) {
    const std::uint64_t word = at == 0 && size >= kWord ? number : random.next();
    std::array<std::uint8_t, kWord> bytes;
    std::memcpy(bytes.data(), &word, kWord);
    if (!take(at, std::span<const std::uint8_t>(bytes).first(std::min(kWord, size - at)))) return;
  }
}

}  // namespace

void fill_message(std::span<std::uint8_t> message, std::uint32_t lane, std::uint64_t number) {
  generate(message.size(), lane, number, [message](std::size_t at, std::span<const std::uint8_t> bytes) {
    std::copy(bytes.begin(), bytes.end(), message.begin() + static_cast<std::ptrdiff_t>(at));
    return true;
  });
}

std::size_t compare_message(std::span<const std::uint8_t> message, std::uint32_t lane, std::uint64_t number) {
  std::size_t different = message.size();
  generate(message.size(), lane, number, [&](std::size_t at, std::span<const std::uint8_t> bytes) {
    const auto there = message.subspan(at, bytes.size());
    const auto place = std::mismatch(bytes.begin(), bytes.end(), there.begin()).first;
    if (place == bytes.end()) return true;
    different = at + static_cast<std::size_t>(place - bytes.begin());
    return false;
  });
  return different;
}

MixSide::MixSide(Endpoint& endpoint, const Spec& spec) : endpoint_(endpoint), bytes_(spec.bytes) {
  auto& driver = endpoint.kernel();
  process_ = require_success(
      spec.kernel ? umd::ProcessContext::open(driver.kernel_node()) : umd::ProcessContext::open(driver.node()),
      "opening a process");
  cq_ = require_success(umd::CompletionQueue::create(process_, spec.entries), "creating a completion queue");
  memory_ = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(bytes_));
  std::memset(memory_, kUntouched, bytes_);
  region_ = require_success(process_->create_mr({.address = memory_,
                                                 .length = bytes_,
                                                 .local_write = true,
                                                 .remote_read = spec.shared,
                                                 .remote_write = true,
                                                 .remote_atomic = spec.shared,
                                                 .window_bind = true}),
                            "registering memory");
}

MixSide::~MixSide() {
  region_.reset();
  endpoint_.host().memory().release(memory_);
}

std::span<std::uint8_t> MixSide::take(std::size_t bytes) {
  if (used_ + bytes + 2 * kGuard > bytes_) throw EndpointError("the memory of the mixed traffic is too small");
  guards_.push_back(used_);
  const std::span<std::uint8_t> taken(memory_ + used_ + kGuard, bytes);
  used_ += kGuard + bytes;
  return taken;
}

std::uint64_t MixSide::strays() const {
  std::uint64_t count = 0;
  const auto look = [&](std::size_t from, std::size_t to) {
    count += static_cast<std::uint64_t>(
        std::count_if(memory_ + from, memory_ + to, [](std::uint8_t byte) { return byte != kUntouched; }));
  };
  for (const auto guard : guards_) look(guard, guard + kGuard);
  look(used_, bytes_);
  return count;
}

}  // namespace rnic::testbench
