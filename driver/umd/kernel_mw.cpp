#include "driver/umd/kernel_mw.hpp"

namespace rnic::umd {
namespace {

/// A tag that follows from the kernel driver's seed and the number of the draw, and from nothing that a peer sees.
std::uint8_t tag_of(std::uint64_t draw) {
  draw = (draw ^ draw >> 30) * 0xBF58476D1CE4E5B9ULL;
  draw = (draw ^ draw >> 27) * 0x94D049BB133111EBULL;
  return static_cast<std::uint8_t>(draw >> 56);
}

}  // namespace

Result<void> KernelMw::begin(const calls::CreateMw& request, const calls::CreateMw::Answer& answer) {
  is(answer.mw);
  type_ = static_cast<hw::MptType>(request.type);
  keys_->begin(answer.key);
  draws_ = answer.seed;
  return {};
}

std::uint32_t KernelMw::draw_key() {
  constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15ULL;
  const std::uint32_t index = key() & ~0xFFU;
  std::uint32_t key{};
  do {
    key = index | tag_of(draws_.fetch_add(kStep));
  } while ((key & 0xFFU) == 0 || keys_->contains(key));
  return key;
}

Result<calls::QueryKey::Answer> KernelMw::query() {
  return context().call(calls::QueryKey{.object = handle(), .kind = static_cast<std::uint8_t>(kind())});
}

}  // namespace rnic::umd
