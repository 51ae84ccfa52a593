#include "driver/ndk/worker.hpp"

#include <mutex>

namespace rnic::ndk {

bool Worker::run_all() {
  bool any = false;
  for (;;) {
    Work* work = nullptr;
    {
      const std::lock_guard lock(lock_);
      work = first_;
      if (work == nullptr) return any;
      first_ = work->next_;
      if (first_ == nullptr) last_ = nullptr;
      work->next_ = nullptr;
    }
    any = true;
    work->run();
  }
}

/// The place is free again only behind the call: it holds what is called.
void Worker::Place::run() {
  call(body.data());
  worker->give_back(*this);
}

Worker::Place* Worker::take_place() {
  const std::lock_guard lock(lock_);
  Place* place = free_;
  if (place != nullptr) {
    free_ = place->next_free;
  } else if (used_ < places_.size()) {
    place = &places_[used_++];
    place->worker = this;
  }
  return place;
}

void Worker::give_back(Place& place) {
  const std::lock_guard lock(lock_);
  place.next_free = free_;
  free_ = &place;
}

}  // namespace rnic::ndk
