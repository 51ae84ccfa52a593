#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "driver/generated/kernel_calls.hpp"
#include "driver/kmd/port_tables.hpp"
#include "driver/result.hpp"

namespace rnic::kmd {

inline constexpr std::size_t kObjectKinds = 9;

/// How many objects of each kind somebody may have, by calls::ObjectKind less 1.
using ObjectQuota = std::array<std::uint32_t, kObjectKinds>;

/// What somebody may have of all that clients share.
struct Quota {
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  ObjectQuota objects{1U << 16, 1U << 19, 1U << 16, 1U << 19, 1U << 16, 1U << 16, 1024, 1U << 16, 1U << 14};
  std::uint64_t contexts = kNoLimit;          ///< User access regions
  std::uint64_t multicast_groups = kNoLimit;  ///< In which one of its queue pairs is, at least
  std::uint64_t group_members = kNoLimit;     ///< Queue pairs in each multicast group
  std::uint64_t pinned_bytes = kNoLimit;      ///< Of memory that is registered, whole pages of each region
  std::uint64_t ring_bytes = kNoLimit;        ///< Of DMA memory: rings, records and page lists
};

/// What clients have together of what they may have: those of one process share an account. Thread safe; lets no time
/// pass.
class Account {
 public:
  enum class Of : std::uint8_t { kContexts, kPinnedBytes, kRingBytes };

  explicit Account(const Quota& quota) : quota_(quota) {}
  Account(const Account&) = delete;
  Account& operator=(const Account&) = delete;

  /// False: there would be more than it may have; nothing has changed.
  [[nodiscard]] bool take(calls::ObjectKind kind);
  void give(calls::ObjectKind kind) noexcept;
  [[nodiscard]] bool take(Of what, std::uint64_t amount);
  void give(Of what, std::uint64_t amount) noexcept;
  /// A queue pair that is not in the group joins it; each time is one to leave. Throws std::bad_alloc.
  [[nodiscard]] bool join(const Gid& group);
  void leave(const Gid& group) noexcept;

  [[nodiscard]] const Quota& quota() const { return quota_; }
  [[nodiscard]] std::uint64_t used(Of what) const;
  [[nodiscard]] std::uint64_t multicast_groups() const;

 private:
  [[nodiscard]] std::uint64_t limit(Of what) const;

  const Quota quota_;
  mutable std::mutex mutex_;
  ObjectQuota objects_{};
  std::array<std::uint64_t, 3> used_{};  ///< By Of
  std::map<Gid, std::uint32_t> groups_;  ///< How many queue pairs are in each
};

/// An amount that was taken, and is given back with this.
class Charge {
 public:
  Charge() = default;
  Charge(Charge&& other) noexcept
      : account_(std::move(other.account_)), what_(other.what_), amount_(std::exchange(other.amount_, 0)) {}
  Charge& operator=(Charge&& other) noexcept {
    std::swap(account_, other.account_);
    std::swap(what_, other.what_);
    std::swap(amount_, other.amount_);
    return *this;
  }
  ~Charge() {
    if (account_ != nullptr) account_->give(what_, amount_);
  }

  /// Without an account there is no limit. Errors: kOutOfMemory (as much it may not have).
  static Result<Charge> take(const std::shared_ptr<Account>& account, Account::Of what, std::uint64_t amount) {
    Charge charge;
    if (account == nullptr) return charge;
    if (!account->take(what, amount)) return Error::kOutOfMemory;
    charge.account_ = account;
    charge.what_ = what;
    charge.amount_ = amount;
    return charge;
  }

 private:
  std::shared_ptr<Account> account_;
  Account::Of what_{};
  std::uint64_t amount_{};
};

}  // namespace rnic::kmd
