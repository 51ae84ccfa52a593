#include "testbench/traffic/fence_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rnic::testbench {
namespace {

constexpr std::size_t kWordBytes = sizeof(std::uint64_t);

}  // namespace

FenceLane::FenceLane(const Spec& spec, MomentClock& clock, const TrafficOptions& options, std::uint64_t seed,
                     TrafficReport& report)
    : ShareLane(spec, kReceives, kBytes, clock, options, seed, report), options_(options) {
  for (auto& source : sources_) source = spec.to.side.take(kBytes);
  for (auto& target : targets_) target = spec.to.side.take(kBytes);
  const auto room = spec.to.side.take(2 * kWordBytes);
  word_ =
      room.subspan((kWordBytes - reinterpret_cast<std::uintptr_t>(room.data()) % kWordBytes) % kWordBytes, kWordBytes);
  std::memcpy(&sum_, word_.data(), kWordBytes);
}

/// A Read or an atomic, and the message. The peer's memory of a place is used again when its message has come.
void FenceLane::next(bool /*last*/) {
  if (under_way() >= kPlaces) return;
  const std::size_t place = messages() % kPlaces;
  Expected expected{.bytes = 1 + random().below(kBytes),
                    .atomic = random().chance(0.3),
                    .write = random().chance(0.3),
                    .value = sum_};
  if (expected.atomic) expected.bytes = kWordBytes;
  Request first{.memory = slot(expected.bytes)};
  const auto memory = first.memory;
  std::fill(memory.begin(), memory.end(), MixSide::kUntouched);
  first.send.remote_key = spec().to.side.key();
  if (expected.atomic) {
    first.send.opcode = hw::WqeOpcode::kFetchAdd;
    first.send.remote_address = reinterpret_cast<std::uint64_t>(word_.data());
    first.send.swap_add = random().next();
    sum_ += first.send.swap_add;
  } else {
    const auto source = sources_[place].first(expected.bytes);
    fill_message(source, spec().number, messages());
    first.send.opcode = hw::WqeOpcode::kRead;
    first.send.remote_address = reinterpret_cast<std::uint64_t>(source.data());
  }
  plan(std::move(first));
  expected_.push_back(expected);
  plan(message(expected, memory, place));
}

ShareLane::Request FenceLane::message(const Expected& expected, std::span<std::uint8_t> memory, std::size_t place) {
  Request request{.memory = memory, .tells = true};
  request.send.opcode = expected.write         ? hw::WqeOpcode::kWriteImmediate
                        : random().chance(0.5) ? hw::WqeOpcode::kSend
                                               : hw::WqeOpcode::kSendImmediate;
  request.send.immediate = static_cast<std::uint32_t>(messages());
  request.send.fence = options_.planted != PlantedSoakFault::kNoFence;
  if (expected.write) {
    request.send.remote_address = reinterpret_cast<std::uint64_t>(targets_[place].data());
    request.send.remote_key = spec().to.side.key();
  }
  return request;
}

void FenceLane::arrived(std::uint64_t message, const umd::Completion& completion,
                        std::span<const std::uint8_t> buffer) {
  const Expected expected = expected_.front();
  expected_.pop_front();
  if (completion.byte_count != expected.bytes)
    return wrong(
        fmt::format("message {}: {} bytes came, {} were sent", message, completion.byte_count, expected.bytes));
  if (completion.with_immediate && completion.immediate != static_cast<std::uint32_t>(message))
    return wrong(fmt::format("message {} came as {}", message, completion.immediate));
  const auto found =
      (expected.write ? std::span<const std::uint8_t>(targets_[message % kPlaces]) : buffer).first(expected.bytes);
  if (expected.atomic) {
    std::uint64_t value = 0;
    std::memcpy(&value, found.data(), kWordBytes);
    if (value != expected.value)
      return wrong(
          fmt::format("message {}: {:#x}, and the atomic in front of it found {:#x}", message, value, expected.value));
  } else if (const auto at = compare_message(found, spec().number, message); at != found.size()) {
    return wrong(fmt::format("message {}: byte {} of {} is {:#04x}, which the Read in front of it did not bring",
                             message, at, found.size(), found[at]));
  }
  ++report().share.fenced;
}

OverwriteLane::OverwriteLane(const Spec& spec, MomentClock& clock, const TrafficOptions& options, std::uint64_t seed,
                             TrafficReport& report)
    : ShareLane(spec, kReceives, kReceiveBytes, clock, options, seed, report), options_(options) {
  for (std::size_t i = 0; i < kAreas; ++i) {
    areas_[i] = spec.to.side.take(kBytes);
    expected_[i].assign(areas_[i].begin(), areas_[i].end());
  }
}

/// Two to five Writes that overlap, and a message, which may be the last of them.
void OverwriteLane::next(bool /*last*/) {
  if (under_way() >= kAreas) return;
  const std::size_t area = messages() % kAreas;
  const std::size_t writes = 2 + random().below(4), middle = random().below(kBytes);
  std::vector<Request> requests;
  for (std::size_t i = 0; i < writes; ++i) {
    const std::size_t first = random().below(middle + 1);
    const std::size_t end = middle + 1 + random().below(random().chance(0.5) ? kBytes - middle : 32);
    requests.push_back(write(area, first, std::min(end, kBytes) - first));
  }
  Request told{.tells = true};
  if (random().chance(0.5)) {
    told = std::move(requests.back());
    requests.pop_back();
    told.tells = true;
    told.send.opcode = hw::WqeOpcode::kWriteImmediate;
  } else {
    told.memory = slot(random().below(kReceiveBytes + 1));
    told.send.opcode = hw::WqeOpcode::kSend;
  }
  report().share.overwrites += writes - 1;
  if (options_.planted == PlantedSoakFault::kWrongOrder) std::reverse(requests.begin(), requests.end());
  for (auto& request : requests) plan(std::move(request));
  plan(std::move(told));
}

ShareLane::Request OverwriteLane::write(std::size_t area, std::size_t first, std::size_t bytes) {
  Request request{.memory = slot(bytes)};
  for (auto& byte : request.memory) byte = static_cast<std::uint8_t>(random().next());
  std::copy(request.memory.begin(), request.memory.end(), expected_[area].begin() + static_cast<std::ptrdiff_t>(first));
  request.send.opcode = hw::WqeOpcode::kWrite;
  request.send.inline_data = bytes <= kShareInline && random().chance(0.5);
  request.send.remote_address = reinterpret_cast<std::uint64_t>(areas_[area].data() + first);
  request.send.remote_key = spec().to.side.key();
  return request;
}

void OverwriteLane::arrived(std::uint64_t message, const umd::Completion& /*completion*/,
                            std::span<const std::uint8_t> /*buffer*/) {
  const std::size_t area = message % kAreas;
  const auto place = std::mismatch(areas_[area].begin(), areas_[area].end(), expected_[area].begin());
  if (place.first == areas_[area].end()) return;
  wrong(fmt::format("message {}: byte {} of the area that was written in front of it is {:#04x}, must be {:#04x}",
                    message, place.first - areas_[area].begin(), *place.first, *place.second));
}

}  // namespace rnic::testbench
