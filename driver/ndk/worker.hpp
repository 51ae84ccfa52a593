#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "driver/machine.hpp"
#include "driver/spin_lock.hpp"

namespace rnic::ndk {

/// Something for the worker to do. It belongs to whoever gave it, and is given again only when it has run.
class Work {
 public:
  Work() = default;
  Work(const Work&) = delete;
  Work& operator=(const Work&) = delete;

  /// On the worker's thread: may wait and allocate. The work may be gone afterwards.
  virtual void run() = 0;

 protected:
  ~Work() = default;

 private:
  friend class Worker;
  Work* next_{};
};

/// The queue of what may not be done where it is asked for (at DISPATCH_LEVEL): one thread does it, in order. Giving
/// work needs no memory, and lets no time pass. Thread safe.
class Worker {
 public:
  /// `machine` outlives it.
  explicit Worker(Machine& machine) : machine_(machine) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void submit(Work& work) {
    {
      const std::lock_guard lock(lock_);
      (last_ != nullptr ? last_->next_ : first_) = &work;
      last_ = &work;
    }
    machine_.wake();
  }

  /// For a function that does not fit into the object that it is about: from a fixed number of places. False: all are
  /// taken, and nothing was given.
  template <typename Body>
  [[nodiscard]] bool call(Body&& body);

  /// Does what there is. Returns whether there was anything. For the worker's thread.
  bool run_all();

 private:
  static constexpr std::size_t kPlaces = 256;
  static constexpr std::size_t kBytes = 256;

  struct Place final : Work {
    void run() override;

    Worker* worker{};
    Place* next_free{};
    void (*call)(void*){};
    alignas(std::max_align_t) std::array<std::byte, kBytes> body;
  };
  [[nodiscard]] Place* take_place();
  void give_back(Place& place);

  Machine& machine_;
  SpinLock lock_;
  Work* first_{};
  Work* last_{};
  std::array<Place, kPlaces> places_{};
  std::size_t used_{};  ///< Places that were ever taken
  Place* free_{};       ///< Of those
};

template <typename Body>
bool Worker::call(Body&& body) {
  using Stored = std::decay_t<Body>;
  static_assert(sizeof(Stored) <= kBytes && alignof(Stored) <= alignof(std::max_align_t));
  Place* const place = take_place();
  if (place == nullptr) return false;
  ::new (static_cast<void*>(place->body.data())) Stored(std::forward<Body>(body));
  place->call = [](void* at) {
    // Its place may be needed by what it begins.
    Stored mine(std::move(*std::launder(static_cast<Stored*>(at))));
    std::launder(static_cast<Stored*>(at))->~Stored();
    mine();
  };
  submit(*place);
  return true;
}

}  // namespace rnic::ndk
