#include "driver/kmd/account.hpp"

namespace rnic::kmd {
namespace {

std::size_t place_of(calls::ObjectKind kind) { return static_cast<std::size_t>(kind) - 1; }
std::size_t place_of(Account::Of what) { return static_cast<std::size_t>(what); }

}  // namespace

std::uint64_t Account::limit(Of what) const {
  switch (what) {
    case Of::kContexts: return quota_.contexts;
    case Of::kPinnedBytes: return quota_.pinned_bytes;
    case Of::kRingBytes: return quota_.ring_bytes;
  }
  return 0;
}

bool Account::take(calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  if (objects_[place_of(kind)] >= quota_.objects[place_of(kind)]) return false;
  ++objects_[place_of(kind)];
  return true;
}

void Account::give(calls::ObjectKind kind) noexcept {
  const std::lock_guard lock(mutex_);
  --objects_[place_of(kind)];
}

bool Account::take(Of what, std::uint64_t amount) {
  const std::lock_guard lock(mutex_);
  std::uint64_t& used = used_[place_of(what)];
  if (used > limit(what) || amount > limit(what) - used) return false;
  used += amount;
  return true;
}

void Account::give(Of what, std::uint64_t amount) noexcept {
  const std::lock_guard lock(mutex_);
  used_[place_of(what)] -= amount;
}

bool Account::join(const Gid& group) {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  if (found == groups_.end() ? groups_.size() >= quota_.multicast_groups : found->second >= quota_.group_members)
    return false;
  ++groups_[group];
  return true;
}

void Account::leave(const Gid& group) noexcept {
  const std::lock_guard lock(mutex_);
  const auto found = groups_.find(group);
  if (--found->second == 0) groups_.erase(found);
}

std::uint64_t Account::used(Of what) const {
  const std::lock_guard lock(mutex_);
  return used_[place_of(what)];
}

std::uint64_t Account::multicast_groups() const {
  const std::lock_guard lock(mutex_);
  return groups_.size();
}

}  // namespace rnic::kmd
