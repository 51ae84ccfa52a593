#pragma once

#include <cstdint>
#include <functional>

namespace rnic::win32 {

inline constexpr std::uint64_t kForever = ~std::uint64_t{0};  ///< No time limit

/// How a wait has ended. Gone: the thread can wait no more, for what it waits in has gone.
enum class Waited : std::uint8_t { kDone, kTimeout, kGone };

/// How one thread, or several, wait.
class Waiter {
 public:
  Waiter() = default;
  Waiter(const Waiter&) = delete;
  Waiter& operator=(const Waiter&) = delete;
  virtual ~Waiter() = default;

  /// Waits until `done` holds, at most `timeout_ns`. Looks at `done` in the calling thread alone, again after every
  /// wake that comes behind its last look.
  [[nodiscard]] virtual Waited wait_until(const std::function<bool()>& done, std::uint64_t timeout_ns) = 0;
  /// Makes those who wait look again. Called by any thread, also with locks held; takes none that wait_until holds
  /// while it looks.
  virtual void wake() = 0;
};

/// What this layer takes from outside. By default threads are those of the system and wait for each other, and time is
/// the system's; in a simulated machine all three are the machine's.
class Surroundings {
 public:
  Surroundings() = default;
  Surroundings(const Surroundings&) = delete;
  Surroundings& operator=(const Surroundings&) = delete;
  virtual ~Surroundings() = default;

  /// That of the calling thread.
  [[nodiscard]] virtual Waiter& waiter();
  /// Time since an arbitrary start, never going back.
  [[nodiscard]] virtual std::uint64_t now_ns();
  /// Runs `body` in a new thread; false if there can be none. `body` throws nothing.
  [[nodiscard]] virtual bool start_thread(std::function<void()> body);
  /// One turn of a spin: the processor rests for a moment.
  virtual void pause();
  /// The rest of the calling thread's turn is for others.
  virtual void yield();
  /// Every thread has thread-local storage of its own. False: its end can't be seen, so no port waits for it.
  [[nodiscard]] virtual bool threads_are_separate() { return true; }
};

[[nodiscard]] Surroundings& surroundings();
/// From now on those of the process; null: the default. They outlive their use; nobody waits meanwhile.
void set_surroundings(Surroundings* surroundings);

}  // namespace rnic::win32
