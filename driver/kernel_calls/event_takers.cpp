#include "driver/kernel_calls/event_takers.hpp"

namespace rnic {

void EventTakers::add(std::weak_ptr<EventTaker> taker) {
  const std::lock_guard lock(mutex_);
  std::erase_if(takers_, [](const auto& old) { return old.expired(); });
  takers_.push_back(std::move(taker));
}

template <typename Ask>
void EventTakers::each(Ask&& ask) {
  for (std::size_t i = 0;; ++i) {
    std::shared_ptr<EventTaker> taker;
    {
      const std::lock_guard lock(mutex_);
      if (i >= takers_.size()) return;
      taker = takers_[i].lock();
    }
    if (taker != nullptr) ask(*taker);
  }
}

unsigned EventTakers::take_events() {
  unsigned taken = 0;
  each([&](EventTaker& taker) { taken += taker.take_events(); });
  return taken;
}

void EventTakers::work() {
  each([](EventTaker& taker) { taker.work(); });
}

bool EventTakers::any_working() {
  bool any = false, working = false;
  each([&](EventTaker& taker) {
    any = true;
    working = working || taker.working();
  });
  return working || !any;
}

bool EventTakers::any_handing_out() {
  bool any = false;
  each([&](EventTaker& taker) { any = any || taker.handing_out(); });
  return any;
}

void EventTakers::check_device() {
  each([](EventTaker& taker) { taker.check_device(); });
}

}  // namespace rnic
