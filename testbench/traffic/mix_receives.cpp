#include "testbench/traffic/mix_receives.hpp"

#include <algorithm>
#include <utility>

namespace rnic::testbench {

MixReceives::MixReceives(MixSide& side, std::size_t count, std::size_t bytes, Post post)
    : side_(side), post_(std::move(post)) {
  for (std::size_t i = 0; i < count; ++i) {
    buffers_.push_back({side.take(bytes)});
    free_.push_back(i);
  }
}

void MixReceives::refill(model::Random& random, bool all) {
  for (std::size_t count = free_.size(); count > 0; --count) {
    if (!all && random.chance(0.8)) continue;
    const std::size_t pick = random.below(free_.size()), id = free_[pick];
    auto& buffer = buffers_[id];
    std::fill(buffer.memory.begin(), buffer.memory.end(), MixSide::kUntouched);
    std::vector<umd::Segment> segments;
    auto address = reinterpret_cast<std::uint64_t>(buffer.memory.data());
    std::size_t left = buffer.memory.size();
    for (std::uint64_t parts = 1 + random.below(3); parts > 0; --parts) {
      const std::size_t bytes = parts == 1 ? left : random.below(std::min<std::size_t>(left, 2'000) + 1);
      segments.push_back({address, static_cast<std::uint32_t>(bytes), side_.key()});
      address += bytes;
      left -= bytes;
    }
    const auto posted = post_({.id = id, .segments = segments});
    if (!posted.ok() && posted.error() == Error::kQueueFull) return;
    require_success(posted, "posting a Receive");
    buffer.posted = true;
    free_.erase(free_.begin() + static_cast<std::ptrdiff_t>(pick));
  }
}

std::span<const std::uint8_t> MixReceives::taken(std::uint64_t id) {
  if (id >= buffers_.size() || !buffers_[id].posted) return {};
  buffers_[id].posted = false;
  return buffers_[id].memory;
}

}  // namespace rnic::testbench
