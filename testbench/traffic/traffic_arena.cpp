#include "testbench/traffic/traffic_arena.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <new>

namespace rnic::testbench {
namespace {

constexpr std::size_t kMostGuard = 130;  // two cache lines, so that every alignment occurs

}  // namespace

TrafficArena::TrafficArena(Endpoint& endpoint, std::size_t bytes) : endpoint_(endpoint), size_(bytes) {
  base_ = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(size_));
  if (base_ == nullptr) throw std::bad_alloc();
  std::memset(base_, kUntouched, size_);
  region_ = endpoint.register_memory(
      base_, size_, ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE);
  free_.emplace(0, size_);
}

TrafficArena::~TrafficArena() {
  region_.reset();
  endpoint_.host().memory().release(base_);
}

std::optional<TrafficArena::Piece> TrafficArena::take(std::size_t bytes, model::Random& random) {
  const std::size_t before = 1 + random.below(kMostGuard), after = 1 + random.below(kMostGuard);
  const std::size_t span = before + bytes + after;
  const auto room = std::find_if(free_.begin(), free_.end(), [&](const auto& range) { return range.second >= span; });
  if (room == free_.end()) return std::nullopt;
  const auto [start, length] = *room;
  free_.erase(room);
  if (length != span) free_.emplace(start + span, length - span);
  check_untouched(start, span);
  return Piece{base_ + start + before, bytes, start, span};
}

void TrafficArena::give_back(const Piece& piece) {
  const auto offset = static_cast<std::size_t>(piece.data - base_);
  check_untouched(piece.start, offset - piece.start);
  check_untouched(offset + piece.bytes, piece.start + piece.span - offset - piece.bytes);
  std::memset(base_ + piece.start, kUntouched, piece.span);
  auto here = free_.emplace(piece.start, piece.span).first;
  if (const auto next = std::next(here); next != free_.end() && here->first + here->second == next->first) {
    here->second += next->second;
    free_.erase(next);
  }
  if (here == free_.begin()) return;
  if (const auto previous = std::prev(here); previous->first + previous->second == here->first) {
    previous->second += here->second;
    free_.erase(here);
  }
}

std::uint64_t TrafficArena::check_free() {
  for (const auto& [start, length] : free_) check_untouched(start, length);
  return strays_;
}

void TrafficArena::check_untouched(std::size_t start, std::size_t bytes) {
  for (std::size_t i = start; i < start + bytes; ++i) {
    if (base_[i] == kUntouched) continue;
    ++strays_;
    base_[i] = kUntouched;  // each is counted once
  }
}

}  // namespace rnic::testbench
