// A program that knows nothing of this project and reads the time in many ways, for rnic exec --clock simulated
// (docs/simulated_clock.md). Prints what is not as it must be; the exit code is how much that is.
#include <poll.h>
#include <pthread.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <mutex>
#include <thread>

namespace {

constexpr std::int64_t kMs = 1'000'000;
int g_wrong = 0;

void check(bool well, const char* what) {
  if (well) return;
  std::printf("wrong: %s\n", what);
  ++g_wrong;
}

std::int64_t ns_of(const timespec& time) { return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec; }

std::int64_t now(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  clock_gettime(clock, &time);
  return ns_of(time);
}

/// The system's own.
std::int64_t wall(clockid_t clock = CLOCK_MONOTONIC) {
  timespec time{};
  syscall(SYS_clock_gettime, clock, &time);
  return ns_of(time);
}

void compute(std::int64_t ns) {
  const std::int64_t end = wall() + ns;
  while (wall() < end) continue;
}

/// What `wait` takes of simulated time, at least `ns` and not much more: a machine that rests keeps pace.
template <typename Wait>
void check_waits(const char* what, std::int64_t ns, const Wait& wait) {
  const std::int64_t begin = now();
  wait();
  const std::int64_t passed = now() - begin;
  check(passed >= ns, what);
  check(passed < 50 * ns + 200 * kMs, what);
}

#if defined(__x86_64__)
std::uint64_t counter() {
  std::uint32_t low = 0, high = 0;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  return std::uint64_t{high} << 32 | low;
}
std::uint64_t counter_of_processor_too() {
  std::uint32_t low = 0, high = 0, processor = 0;
  asm volatile("rdtscp" : "=a"(low), "=d"(high), "=c"(processor));
  return std::uint64_t{high} << 32 | low;
}

/// 10 a nanosecond, in step with the clock.
bool counts_simulated_time() {
  const std::uint64_t first = counter();
  const std::int64_t between = now();
  const std::uint64_t second = counter_of_processor_too();
  return first / 10 <= static_cast<std::uint64_t>(between) && static_cast<std::uint64_t>(between) <= second / 10;
}

sigjmp_buf g_back;
void jump_back(int) { siglongjmp(g_back, 1); }
void read_counter(int) { check(counts_simulated_time(), "the counter in a handler"); }

void check_counter() {
  check(counts_simulated_time(), "the counter");
  std::thread([] { check(counts_simulated_time(), "the counter in a thread"); }).join();
  // The signal of the trap is the program's all the same.
  struct sigaction action {};
  action.sa_handler = jump_back;
  sigaction(SIGSEGV, &action, nullptr);
  volatile bool came = false;
  if (sigsetjmp(g_back, 1) == 0) {
    *reinterpret_cast<volatile int*>(std::uintptr_t{8}) = 1;
  } else {
    came = true;
  }
  check(came, "a fault of the program's own comes to its handler");
  check(counts_simulated_time(), "the counter behind a handler of the program");
  sigset_t all;
  sigfillset(&all);
  sigset_t before;
  pthread_sigmask(SIG_SETMASK, &all, &before);
  check(counts_simulated_time(), "the counter while signals are blocked");
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  struct sigaction reads {};
  reads.sa_handler = read_counter;
  sigfillset(&reads.sa_mask);
  sigaction(SIGUSR1, &reads, nullptr);
  raise(SIGUSR1);
  signal(SIGSEGV, SIG_DFL);
}
#else
void check_counter() {}
#endif

void check_clocks() {
  const std::int64_t first = now();
  compute(30 * kMs);
  check(now() - first < 20 * kMs, "what a program computes takes no simulated time");
  check(std::llabs(now(CLOCK_REALTIME) - wall(CLOCK_REALTIME)) < 3600 * 1000 * kMs, "it is today");
  timeval day{};
  gettimeofday(&day, nullptr);
  check(std::llabs(day.tv_sec - now(CLOCK_REALTIME) / (1000 * kMs)) <= 1, "gettimeofday");
  check(std::llabs(time(nullptr) - day.tv_sec) <= 1, "time");
  const std::int64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID);
  compute(5 * kMs);
  check(now(CLOCK_PROCESS_CPUTIME_ID) > cpu, "the processor's time is the system's");
  check_waits("a loop until some instant ends", kMs, [] {
    const std::int64_t end = now() + kMs;
    while (now() < end) continue;
  });
}

void check_sleeps() {
  check_waits("usleep", 2 * kMs, [] { usleep(2000); });
  check_waits("clock_nanosleep until", 2 * kMs, [] {
    const std::int64_t end = now() + 2 * kMs;
    const timespec until{end / (1000 * kMs), end % (1000 * kMs)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  });
  check_waits("sleep_for", 2 * kMs, [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); });
  check_waits("poll", 2 * kMs, [] { poll(nullptr, 0, 2); });
  check_waits("select", 2 * kMs, [] {
    timeval limit{0, 2000};
    select(0, nullptr, nullptr, nullptr, &limit);
  });
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  check_waits("wait_for", 2 * kMs, [&] { changed.wait_for(lock, std::chrono::milliseconds(2)); });
  check_waits("wait_until", 2 * kMs,
              [&] { changed.wait_until(lock, std::chrono::system_clock::now() + std::chrono::milliseconds(2)); });
  // A wait that has ended lets no time pass any more.
  int ends[2];
  check(pipe(ends) == 0 && write(ends[1], "x", 1) == 1, "pipe");
  pollfd what{ends[0], POLLIN, 0};
  check(poll(&what, 1, 60'000) == 1, "poll finds what has come");
  const std::int64_t first = now();
  compute(30 * kMs);
  check(now() - first < 20 * kMs, "a wait that has ended early");
}

void check_children() {
  const pid_t child = fork();
  if (child == 0) {
    const std::int64_t begin = now();
    usleep(1000);
    _exit(now() - begin >= kMs ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  check(status == 0, "a child of fork");
  check(system("exec date > /dev/null") == 0, "a program of its own");
  FILE* const pipe = popen("echo word", "r");
  check(pipe != nullptr && std::fgetc(pipe) == 'w' && pclose(pipe) == 0, "popen");
}

}  // namespace

int main() {
  check_clocks();
  check_counter();
  check_sleeps();
  check_children();
  return g_wrong;
}
