#include "testbench/compare/memory_record.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "testbench/compare/packet_record.hpp"

namespace rnic::testbench {

using nlohmann::json;

MemoryRecord::MemoryRecord(VectorSession& session, const VectorSetup& setup) : session_(session) {
  for (const auto& region : setup.regions) {
    if (region.memory_of.empty()) names_.push_back(region.name);
  }
}

void MemoryRecord::leave_open(const std::string& region, std::int64_t offset, std::uint64_t length) {
  if (region.empty()) return;
  const auto bytes = session_.bytes_of(region);
  const auto first = static_cast<std::uint64_t>(std::max<std::int64_t>(offset, 0));
  if (first >= bytes.size()) return;
  open_.push_back({bytes.data() + first, std::min<std::uint64_t>(length, bytes.size() - first)});
}

json MemoryRecord::changes() {
  json memory = json::object();
  for (const auto& name : names_) {
    const auto bytes = session_.bytes_of(name);
    auto& last = hashes_[name];
    last.resize((bytes.size() + kHashedBytes - 1) / kHashedBytes);
    std::vector<Span> open;
    std::copy_if(open_.begin(), open_.end(), std::back_inserter(open), [&](const Span& span) {
      return span.first >= bytes.data() && span.first < bytes.data() + bytes.size();
    });
    for (std::size_t i = 0; i < last.size(); ++i) {
      const std::size_t count = std::min(kHashedBytes, bytes.size() - i * kHashedBytes);
      const std::uint64_t hash = hash_but(open, bytes.data() + i * kHashedBytes, count);
      if (std::exchange(last[i], hash) != hash) memory[name][std::to_string(i)] = hash;
    }
  }
  return memory;
}

/// With zeroes for what is open.
std::uint64_t MemoryRecord::hash_but(const std::vector<Span>& open, const std::uint8_t* first, std::size_t count) {
  std::vector<std::uint8_t> block;
  for (const auto& span : open) {
    const std::uint8_t* const from = std::max(span.first, first);
    const std::uint8_t* const to = std::min(span.first + span.bytes, first + count);
    if (from >= to) continue;
    if (block.empty()) block.assign(first, first + count);
    std::fill(block.begin() + (from - first), block.begin() + (to - first), std::uint8_t{});
  }
  return hash_of(block.empty() ? first : block.data(), count);
}

json MemoryRecord::bytes() {
  json all = json::object();
  for (const auto& name : names_) {
    const auto bytes = session_.bytes_of(name);
    std::string text;
    for (const auto byte : bytes) text += fmt::format("{:02x}", byte);
    for (const auto& span : open_) {
      for (const std::uint8_t* at = span.first; at < span.first + span.bytes; ++at) {
        if (at >= bytes.data() && at < bytes.data() + bytes.size())
          text.replace(2 * static_cast<std::size_t>(at - bytes.data()), 2, "??");
      }
    }
    all[name] = text;
  }
  return all;
}

}  // namespace rnic::testbench
