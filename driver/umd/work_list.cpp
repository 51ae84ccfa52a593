#include "driver/umd/work_list.hpp"

#include <utility>

namespace rnic::umd {

void WorkList::put(std::shared_ptr<Worker> worker) {
  const std::lock_guard lock(mutex_);
  Worker& added = *worker;
  if (added.waits_ || added.gone_) return;
  added.waits_ = true;
  (last_ == nullptr ? first_ : last_->next_) = std::move(worker);
  last_ = &added;
  ++size_;
}

std::shared_ptr<Worker> WorkList::take() {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Worker> taken = std::move(first_);
  if (taken == nullptr) return nullptr;
  first_ = std::move(taken->next_);
  if (first_ == nullptr) last_ = nullptr;
  taken->waits_ = false;
  --size_;
  return taken;
}

void WorkList::run() {
  if (empty()) return;
  while (const auto worker = take()) worker->work();
}

void WorkList::remove(Worker& worker) {
  std::shared_ptr<Worker> removed;  // destroyed after the lock is gone
  const std::lock_guard lock(mutex_);
  worker.gone_ = true;
  if (!worker.waits_) return;
  Worker* before = nullptr;
  for (std::shared_ptr<Worker>* place = &first_; *place != nullptr; before = place->get(), place = &before->next_) {
    if (place->get() != &worker) continue;
    removed = std::move(*place);
    *place = std::move(worker.next_);
    if (last_ == &worker) last_ = before;
    worker.waits_ = false;
    --size_;
    return;
  }
}

}  // namespace rnic::umd
