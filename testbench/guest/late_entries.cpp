#include "testbench/guest/late_entries.hpp"

#include <algorithm>
#include <cstring>

namespace rnic::testbench {

void LateEntries::write(std::uint8_t* to, const std::uint8_t* entry) {
  Late late{to, {}};
  std::copy_n(entry, kRest, late.rest.begin());
  late_.push_back(late);
  std::uint64_t word{};
  std::memcpy(&word, entry + kRest, kWord);
  __atomic_store_n(reinterpret_cast<std::uint64_t*>(to + kRest), word, __ATOMIC_RELEASE);
}

void LateEntries::bring() {
  for (const Late& late : late_) std::copy(late.rest.begin(), late.rest.end(), late.to);
  late_.clear();
}

bool LateEntries::waits(const std::uint8_t* at) const {
  return std::any_of(late_.begin(), late_.end(), [at](const Late& late) { return late.to == at; });
}

}  // namespace rnic::testbench
