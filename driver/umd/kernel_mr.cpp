#include "driver/umd/kernel_mr.hpp"

namespace rnic::umd {

Result<void> KernelMr::reregister(const MrChange& change, const MrSpec& spec) {
  const auto address = reinterpret_cast<std::uintptr_t>(spec.address);
  const auto done = context().call(calls::ReregisterMr{.address = address,
                                                       .length = spec.length,
                                                       .iova = spec.iova.value_or(address),
                                                       .mr = handle(),
                                                       .pd = spec.pd != 0 ? spec.pd : context().pd(),
                                                       .change_translation = change.translation,
                                                       .change_pd = change.pd,
                                                       .change_access = change.access,
                                                       .local_write = spec.local_write,
                                                       .read_sink = spec.read_sink,
                                                       .remote_read = spec.remote_read,
                                                       .remote_write = spec.remote_write,
                                                       .remote_atomic = spec.remote_atomic,
                                                       .window_bind = spec.window_bind});
  if (!done) return done.error();
  key_ = done->key;
  return {};
}

Result<calls::QueryKey::Answer> KernelMr::query() {
  return context().call(calls::QueryKey{.object = handle(), .kind = static_cast<std::uint8_t>(kind())});
}

Result<void> KernelMr::begin_destroy(std::uint32_t number) {
  auto begun = context().call(calls::BeginDestroyMr{.mr = handle(), .number = number});
  if (!begun) return begun.error();
  return {};
}

}  // namespace rnic::umd
