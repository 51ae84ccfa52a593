#include "driver/kmd/kernel_mw.hpp"

namespace rnic::kmd {

Result<std::unique_ptr<KernelMw>> KernelDevice::create_mw(const MwSpec& spec) {
  if (admin_.failed()) return Error::kDeviceFailed;
  if (spec.type != hw::MptType::kWindow1 && spec.type != hw::MptType::kWindow2) return Error::kInvalidParameter;
  if (!(spec.type == hw::MptType::kWindow1 ? limits_.window_type1 : limits_.window_type2)) return Error::kNotSupported;
  auto number = mrs_->acquire();
  if (!number) return number.error();
  const std::uint32_t key = (number->index << 8) | number->tag;
  hw::AdminCreateMw body;
  body.pd = spec.pd;
  body.window_type = static_cast<std::uint8_t>(spec.type);
  if (auto reply = admin_.execute(hw::AdminOpcode::kCreateMw, key, body); !reply) {
    mrs_->release(number->index);
    return reply.error();
  }
  return std::unique_ptr<KernelMw>(new KernelMw(*this, spec, key));
}

KernelMw::~KernelMw() { static_cast<void>(destroy().ok()); }

std::uint32_t KernelMw::draw_key() {
  // A key that was drawn and not used has taken the place of the one in use as the last of the pool.
  const std::uint32_t in_use = key_;
  std::uint32_t key{};
  do {
    key = (in_use & ~0xFFU) | kernel_.mrs_->renew(in_use >> 8);
  } while (key == in_use);
  return key;
}

Result<hw::AdminMrState> KernelMw::query() {
  auto reply = kernel_.admin_.execute(hw::AdminOpcode::kQueryMr, key_, AdminQueue::Body{});
  if (!reply) return reply.error();
  return hw::AdminMrState::decode(*reply);
}

Result<void> KernelMw::destroy() {
  if (!live_) return {};
  if (auto done = kernel_.destroy(hw::AdminOpcode::kDestroyMw, key_); !done) return done;
  live_ = false;
  kernel_.mrs_->release(key_ >> 8);
  return {};
}

}  // namespace rnic::kmd
