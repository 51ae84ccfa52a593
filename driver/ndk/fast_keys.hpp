#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>

#include "driver/kmd/kernel_fast_mr.hpp"
#include "driver/spin_lock.hpp"
#include "driver/umd/key_watch.hpp"

namespace rnic::ndk {

/// The registrations of a fast-register region that may be under way or valid: gives the page list of each back when it
/// is over. Outlives the region where requests are under way. Thread safe; needs no memory, lets no time pass.
class FastKeys {
 public:
  FastKeys() : registered_(*this), invalidated_(*this) {}
  FastKeys(const FastKeys&) = delete;
  FastKeys& operator=(const FastKeys&) = delete;

  /// Another region from now on; null: none. Returns the one before.
  std::shared_ptr<kmd::KernelFastMr> use(std::shared_ptr<kmd::KernelFastMr> region) {
    const std::lock_guard lock(lock_);
    region_.swap(region);
    return region;
  }
  /// The peer has invalidated it.
  void invalidated(std::uint32_t key) { give_back(key); }

  /// What registrations and invalidations of `keys` tell of their end.
  static std::shared_ptr<umd::KeyWatch> of_registration(const std::shared_ptr<FastKeys>& keys) {
    return {keys, &keys->registered_};
  }
  static std::shared_ptr<umd::KeyWatch> of_invalidation(const std::shared_ptr<FastKeys>& keys) {
    return {keys, &keys->invalidated_};
  }

 private:
  struct Registered final : umd::KeyWatch {
    explicit Registered(FastKeys& of) : keys(of) {}
    void accepted(std::uint32_t) override {}
    void refused(std::uint32_t key) override { keys.give_back(key); }
    FastKeys& keys;
  };
  struct Invalidated final : umd::KeyWatch {
    explicit Invalidated(FastKeys& of) : keys(of) {}
    void accepted(std::uint32_t key) override { keys.give_back(key); }
    void refused(std::uint32_t) override {}
    FastKeys& keys;
  };

  void give_back(std::uint32_t key) {
    const std::lock_guard lock(lock_);
    // Not there: of the region before, or told twice (a peer and a request of the own that was too late).
    if (region_ != nullptr) static_cast<void>(region_->release(key).ok());
  }

  Registered registered_;
  Invalidated invalidated_;
  SpinLock lock_;
  std::shared_ptr<kmd::KernelFastMr> region_;
};

}  // namespace rnic::ndk
