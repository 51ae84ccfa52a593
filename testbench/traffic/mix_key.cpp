#include "testbench/traffic/mix_key.hpp"

#include <algorithm>

namespace rnic::testbench {

MixKey::MixKey(MixSide& owner, umd::QueuePair& qp, bool fast) : owner_(owner), qp_(qp) {
  const auto room = owner.take((kPages + 1) * kPage);
  const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(room.data()) % kPage;
  memory_ = room.subspan((kPage - unaligned) % kPage, kPages * kPage);
  if (fast) {
    pages_ =
        require_success(owner.endpoint().device().map_pages(memory_.data(), memory_.size(), true), "mapping pages");
    fast_ = require_success(owner.process()->create_fast_mr({.max_pages = kPages, .remote_access = true}),
                            "creating a fast-register region");
  } else {
    window_ = require_success(owner.process()->create_mw({}), "creating a window");
  }
}

MixKey::~MixKey() {
  window_.reset();
  if (!fast_) return;
  const bool destroyed = fast_->destroy().ok();
  fast_.reset();
  if (destroyed) owner_.endpoint().device().unmap_pages(memory_.data(), memory_.size(), pages_);
}

bool MixKey::open(model::Random& random, std::uint64_t id) {
  const std::size_t first = random.below(kPage), length = 1 + random.below(memory_.size() - first);
  range_ = memory_.subspan(first, length);
  Result<void> posted;
  if (fast_) {
    address_ = (kPage * (1 + random.below(1u << 20))) + first;
    const FastRange range{.pages = std::span(pages_).first((first + length + kPage - 1) / kPage),
                          .first_offset = static_cast<std::uint32_t>(first),
                          .length = length,
                          .base = address_,
                          .local_write = true,
                          .remote_read = true,
                          .remote_write = true};
    posted = umd::post_fast_register(qp_, *fast_, range, {.id = id});
  } else {
    address_ = reinterpret_cast<std::uint64_t>(range_.data());
    const umd::WindowRange range{
        .region_key = owner_.key(), .address = address_, .length = length, .remote_read = true, .remote_write = true};
    posted = umd::post_bind(qp_, *window_, range, {.id = id});
  }
  if (!posted.ok() && posted.error() == Error::kQueueFull) return false;
  require_success(posted, fast_ ? "posting a fast registration" : "posting a bind");
  state_ = State::kOpening;
  return true;
}

void MixKey::use(std::uint32_t users) {
  state_ = State::kInUse;
  users_ = users;
  ended_ = false;
}

void MixKey::used(TrafficReport& report) {
  --users_;
  if (ended_ && users_ == 0) end(report);
}

bool MixKey::message_came(bool invalidated, std::uint64_t id, TrafficReport& report) {
  if (invalidated) {
    ++report.mix.send_invalidates;
    ended_ = true;
    if (users_ == 0) end(report);
    return true;
  }
  const auto posted = umd::post_invalidate(qp_, key(), {.id = id});
  if (!posted.ok() && posted.error() == Error::kQueueFull) return false;
  require_success(posted, "posting an invalidation");
  state_ = State::kClosing;
  return true;
}

bool MixKey::on_request(umd::RequestKind kind, TrafficReport& report) {
  const bool closes = kind == umd::RequestKind::kInvalidate;
  if (!closes && kind != (fast_ ? umd::RequestKind::kFastRegister : umd::RequestKind::kBind)) return false;
  if (state_ != (closes ? State::kClosing : State::kOpening)) return false;
  if (!closes) {
    state_ = State::kOpen;
    ++(fast_ ? report.mix.fast_registrations : report.mix.binds);
    return true;
  }
  ended_ = true;
  if (users_ == 0) end(report);
  return true;
}

void MixKey::end(TrafficReport& report) {
  ++report.mix.keys_ended;
  if (fast_) require_success(fast_->release(fast_->key()), "releasing a page list");
  state_ = State::kIdle;
}

}  // namespace rnic::testbench
