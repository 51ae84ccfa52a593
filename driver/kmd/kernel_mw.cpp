#include "driver/kmd/kernel_mw.hpp"

namespace rnic::kmd {

Result<std::unique_ptr<KernelMw>> KernelDevice::create_mw(const MwSpec& spec) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelMw>> {
    if (spec.type != hw::MptType::kWindow1 && spec.type != hw::MptType::kWindow2) return Error::kInvalidParameter;
    if (!(spec.type == hw::MptType::kWindow1 ? limits_.window_type1 : limits_.window_type2))
      return Error::kNotSupported;
    auto number = OwnedNumber::acquire(*mrs_);
    if (!number) return number.error();
    std::unique_ptr<KernelMw> window(new KernelMw(*this, spec, number.take()));
    hw::AdminCreateMw body;
    body.pd = spec.pd;
    body.window_type = static_cast<std::uint8_t>(spec.type);
    if (auto reply = execute(*window->life_, hw::AdminOpcode::kCreateMw, window->key(), body); !reply)
      return reply.error();
    window->live_ = true;
    return window;
  });
}

KernelMw::~KernelMw() {
  if (!destroy()) number_.abandon();
}

Result<hw::AdminMrState> KernelMw::query() {
  auto reply = kernel_.execute(*life_, hw::AdminOpcode::kQueryMr, key(), AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminMrState::decode(*reply);
}

Result<void> KernelMw::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(*life_, hw::AdminOpcode::kDestroyMw, key()); !done) return done;
  live_ = false;
  kernel_.reap_orphans();
  return {};
}

}  // namespace rnic::kmd
