#include "driver/umd/kernel_mw.hpp"

namespace rnic::umd {

Result<void> KernelMw::begin(const calls::CreateMw& request, const calls::CreateMw::Answer& answer) {
  is(answer.mw);
  type_ = static_cast<hw::MptType>(request.type);
  keys_->begin(answer.key);
  tags_ = FreshNumbers(answer.seed, kTagBits);
  return {};
}

std::uint32_t KernelMw::draw_key() {
  const std::uint32_t index = key() >> kTagBits << kTagBits;
  std::uint32_t key{};
  do {
    key = index | tags_.at(draws_.fetch_add(1));
  } while (keys_->contains(key));
  return key;
}

Result<calls::QueryKey::Answer> KernelMw::query() {
  return context().call(calls::QueryKey{.object = handle(), .kind = static_cast<std::uint8_t>(kind())});
}

}  // namespace rnic::umd
