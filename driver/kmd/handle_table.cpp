#include "driver/kmd/handle_table.hpp"

namespace rnic::kmd {

/// Objects that could not be destroyed on the device keep what they need until they go themselves.
HandleTable::~HandleTable() {
  for (auto kind : {calls::ObjectKind::kQp, calls::ObjectKind::kMw, calls::ObjectKind::kFastMr, calls::ObjectKind::kMr,
                    calls::ObjectKind::kSrq, calls::ObjectKind::kCq, calls::ObjectKind::kPd}) {
    for (auto& entry : entries_) {
      if (entry.object != nullptr && entry.object->kind() == kind) entry.object.reset();
    }
  }
}

Result<HandleTable::Place> HandleTable::reserve(calls::ObjectKind kind) {
  return or_out_of_memory([&]() -> Result<Place> {
    const std::lock_guard lock(mutex_);
    const auto index = take_place();
    if (!index) return index.error();
    if (!account_->take(kind)) {
      free_place(*index);
      return Error::kOutOfResources;
    }
    ++count_of(kind);
    return Place(*this, entries_[*index].generation << kIndexBits | *index, kind);
  });
}

Result<std::uint32_t> HandleTable::take_place() {
  const auto next = static_cast<std::uint32_t>(std::max<std::size_t>(entries_.size(), 1));
  if (free_count_ < kResting && next >> kIndexBits == 0) {
    entries_.resize(next + 1);
    return next;
  }
  if (free_count_ == 0) return Error::kOutOfResources;
  --free_count_;
  return std::exchange(oldest_free_, entries_[oldest_free_].next_free);
}

void HandleTable::free_place(std::uint32_t index) noexcept {
  (free_count_++ == 0 ? oldest_free_ : entries_[newest_free_].next_free) = index;
  newest_free_ = index;
}

void HandleTable::fill(calls::Handle handle, std::shared_ptr<ClientObject> object) {
  const std::lock_guard lock(mutex_);
  object->handle_ = handle;
  object->born_ = ++births_;
  entries_[index_of(handle)].object = std::move(object);
}

void HandleTable::give_back(calls::Handle handle, calls::ObjectKind kind) noexcept {
  const std::lock_guard lock(mutex_);
  release(handle, kind);
}

void HandleTable::release(calls::Handle handle, calls::ObjectKind kind) noexcept {
  auto& entry = entries_[index_of(handle)];
  entry.generation = (entry.generation + 1) % kGenerations;
  free_place(static_cast<std::uint32_t>(index_of(handle)));
  --count_of(kind);
  account_->give(kind);
}

ClientObject* HandleTable::look_up(calls::Handle handle, calls::ObjectKind kind) {
  const std::size_t index = index_of(handle);
  if (index >= entries_.size()) return nullptr;
  auto* object = entries_[index].object.get();
  if (object == nullptr || object->handle_ != handle || object->kind() != kind || object->ending_) return nullptr;
  return object;
}

Result<std::shared_ptr<ClientObject>> HandleTable::find(calls::Handle handle, calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  if (look_up(handle, kind) == nullptr) return Error::kNotFound;
  return entries_[index_of(handle)].object;
}

Result<HandleTable::Use> HandleTable::use(calls::Handle handle, calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  auto* object = look_up(handle, kind);
  if (object == nullptr) return Error::kNotFound;
  ++object->users_;
  return Use(*this, entries_[index_of(handle)].object);
}

void HandleTable::let_go(ClientObject& object) {
  const std::lock_guard lock(mutex_);
  --object.users_;
}

Result<std::shared_ptr<ClientObject>> HandleTable::begin_end(calls::Handle handle, calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  auto* object = look_up(handle, kind);
  if (object == nullptr) return Error::kNotFound;
  if (object->users_ != 0) return Error::kBusy;
  object->ending_ = true;
  return entries_[index_of(handle)].object;
}

void HandleTable::stay(ClientObject& object) {
  const std::lock_guard lock(mutex_);
  object.ending_ = false;
}

void HandleTable::end(ClientObject& object) {
  std::shared_ptr<ClientObject> last;  // goes without the lock
  const std::lock_guard lock(mutex_);
  last = std::move(entries_[index_of(object.handle_)].object);
  release(object.handle_, object.kind());
}

std::shared_ptr<ClientObject> HandleTable::next_to_end(calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  const Entry* newest = nullptr;
  for (const auto& entry : entries_) {
    if (entry.object == nullptr || entry.object->kind() != kind || entry.object->ending_) continue;
    if (newest == nullptr || entry.object->born_ > newest->object->born_) newest = &entry;
  }
  if (newest == nullptr) return nullptr;
  newest->object->ending_ = true;
  return newest->object;
}

std::vector<calls::Handle> HandleTable::handles(calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  std::vector<calls::Handle> all;
  for (const auto& entry : entries_) {
    if (entry.object != nullptr && entry.object->kind() == kind && !entry.object->ending_)
      all.push_back(entry.object->handle_);
  }
  return all;
}

std::uint32_t HandleTable::count(calls::ObjectKind kind) {
  const std::lock_guard lock(mutex_);
  return count_of(kind);
}

}  // namespace rnic::kmd
