#include "driver/win32/waitable.hpp"

#include <algorithm>
#include <functional>
#include <vector>

namespace rnic::win32 {

/// A thread's place among those who wait for an object.
class Waitable::Place {
 public:
  Place(Waitable& object, Waiter& waiter) : object_(object) {
    std::list<Waiter*> place{&waiter};
    const std::lock_guard lock(object_.mutex_);
    place_ = place.begin();
    object_.waiting_.splice(object_.waiting_.end(), place);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  ~Place() {
    const std::lock_guard lock(object_.mutex_);
    object_.waiting_.erase(place_);
  }

 private:
  Waitable& object_;
  std::list<Waiter*>::iterator place_;
};

void Waitable::wake_waiting() {
  for (Waiter* waiter : waiting_) waiter->wake();
}

bool Waitable::take_if_signaled() {
  const bool was = signaled();
  if (was) on_taken();
  return was;
}

bool Waitable::try_take() {
  const std::lock_guard lock(mutex_);
  return take_if_signaled();
}

bool Waitable::wait(std::uint64_t timeout_ns) {
  if (try_take()) return true;
  Waiter& waiter = own_ != nullptr ? *own_ : surroundings().waiter();
  const Place place(*this, waiter);
  return waiter.wait_until([this] { return try_take(); }, timeout_ns) == Waited::kDone;
}

Waited Waitable::wait_for(std::span<const std::shared_ptr<Waitable>> objects, bool all, std::uint64_t timeout_ns,
                          std::size_t& first) {
  first = 0;
  const auto take_one = [&] {
    for (first = 0; first < objects.size(); ++first)
      if (objects[first]->try_take()) return true;
    return false;
  };
  // Everybody who takes several takes their locks in the order of their addresses.
  std::vector<Waitable*> ordered;
  for (const auto& object : objects) ordered.push_back(object.get());
  std::sort(ordered.begin(), ordered.end(), std::less<>());
  std::vector<std::unique_lock<std::mutex>> locks;
  locks.reserve(ordered.size());
  const auto take_all = [&] {
    for (Waitable* object : ordered) locks.emplace_back(object->mutex_);
    const bool can =
        std::all_of(ordered.begin(), ordered.end(), [](const Waitable* object) { return object->signaled(); });
    if (can)
      for (Waitable* object : ordered) object->on_taken();
    locks.clear();
    return can;
  };
  const std::function<bool()> take = all ? std::function<bool()>(take_all) : std::function<bool()>(take_one);
  if (take()) return Waited::kDone;
  const auto own =
      std::find_if(ordered.begin(), ordered.end(), [](const Waitable* one) { return one->own_ != nullptr; });
  Waiter& waiter = own != ordered.end() ? *(*own)->own_ : surroundings().waiter();
  std::list<Place> places;
  for (Waitable* object : ordered) places.emplace_back(*object, waiter);
  return waiter.wait_until(take, timeout_ns);
}

void Event::reset() {
  const std::lock_guard lock(mutex());
  set_ = false;
}

}  // namespace rnic::win32
