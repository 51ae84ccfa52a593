/// A program of libibverbs that forks (docs/verbs.md, Fork). Each way to do so is an argument; exit code 0: what must
/// hold did.
#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/server/verbs_pair.hpp"

namespace {

using namespace rnic::test;

/// Runs `body` in a child: its number.
pid_t child_that(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child != 0) return child;
  try {
    body();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "child: %s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

bool over(pid_t child, int& status) { return waitpid(child, &status, WNOHANG) == child; }

/// The parent goes on while the child lives.
void work_beside(Pair& pair, pid_t child, int expected = 0) {
  int status = -1;
  for (unsigned i = 1; !over(child, status); ++i) pair.write(i % 2, static_cast<std::uint8_t>(i % 100 + 1));
  must(status == expected, "the child ends as it should");
  pair.write_and_sleep(101);
}

/// A forking server: the parent never opens the device, each child does.
void children_open(ibv_device*) {
  std::vector<pid_t> children;
  for (int i = 0; i < 3; ++i)
    children.push_back(child_that([] {
      Pair own(first_device());
      for (std::uint8_t n = 1; n < 30; ++n) own.write(n % 2, n);
      own.end();
    }));
  for (const pid_t child : children) {
    int status = -1;
    must(waitpid(child, &status, 0) == child && status == 0, "a child that opens the device");
  }
}

/// The child opens the device that the parent found, while the parent uses it.
void child_opens_found_device(ibv_device* device) {
  Pair pair(device);
  const pid_t child = child_that([device] {
    Pair own(device);
    for (std::uint8_t n = 1; n < 30; ++n) own.write(n % 2, n);
    own.end();
    must(std::string(ibv_get_device_name(first_device())) == ibv_get_device_name(device), "the list has it too");
  });
  work_beside(pair, child);
  pair.end();
}

/// The child ends what it inherited; only its copies go.
void child_destroys(ibv_device* device) {
  Pair pair(device);
  const pid_t child = child_that([&] {
    pair.end();
    Pair own(first_device());
    own.write(0, 1);
    own.end();
  });
  work_beside(pair, child);
  pair.end();
}

/// Nothing of what the child does with what it inherited happens, and it is told so.
void child_misuses(ibv_device* device) {
  Pair pair(device);
  pair.write(0, 1);
  const pid_t child = child_that([&] {
    for (int i = 0; i < 3000; ++i) must(pair.post(0, 99) != 0, "a send of a parent's queue pair is refused");
    for (int i = 0; i < 3000; ++i) done(ibv_req_notify_cq(pair.cq, 0), "ibv_req_notify_cq");
    ibv_wc completion{};
    for (int i = 0; i < 100; ++i) must(ibv_poll_cq(pair.cq, 1, &completion) <= 0, "no completions of the parent");
    must(ibv_reg_mr(pair.pd, pair.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE) == nullptr && errno == EIO, "ibv_reg_mr");
    must(ibv_alloc_pd(pair.context) == nullptr && errno == EIO, "ibv_alloc_pd");
    ibv_port_attr port{};
    must(ibv_query_port(pair.context, 1, &port) == EIO, "ibv_query_port");
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_ERR;
    must(ibv_modify_qp(pair.qps[0], &attributes, IBV_QP_STATE) == EIO, "ibv_modify_qp");
    ibv_async_event event{};
    while (ibv_get_async_event(pair.context, &event) == 0) ibv_ack_async_event(&event);
    must(errno == EIO, "ibv_get_async_event");
  });
  work_beside(pair, child);
  // No event of the child has come to the parent.
  pollfd what{.fd = pair.context->async_fd, .events = POLLIN, .revents = 0};
  must(poll(&what, 1, 0) == 0, "no asynchronous events");
  pair.end();
}

/// What a child has is memory of its own: what it writes there does not travel.
void child_writes_memory(ibv_device* device) {
  Pair pair(device);
  const pid_t child = child_that([&] { std::memset(pair.memory.data(), 0xEE, Pair::kBytes); });
  work_beside(pair, child);
  for (int i = 2; i < 100; ++i) must(pair.memory[4096 + static_cast<std::size_t>(i)] == 0, "the parent's memory");
  pair.end();
}

void child_executes(ibv_device* device) {
  Pair pair(device);
  work_beside(pair, child_that([] {
                usleep(20'000);
                execlp("true", "true", nullptr);
                fail("true");
              }));
  must(system("exit 3") == 3 << 8, "system");
  pair.write(0, 7);
  pair.end();
}

void child_is_killed(ibv_device* device) {
  Pair pair(device);
  work_beside(pair, child_that([&] {
                Pair own(first_device());
                for (std::uint8_t n = 1; n < 20; ++n) own.write(n % 2, n);
                kill(getpid(), SIGKILL);
              }),
              SIGKILL);
  pair.end();
}

/// Threads of the parent are in the middle of everything when it forks.
void threads_work(ibv_device* device) {
  Pair pair(device);
  std::atomic<bool> stop = false, failed = false;
  const auto look = [&](const std::function<void()>& body) {
    try {
      while (!stop) body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "thread: %s\n", error.what());
      failed = true;
    }
  };
  std::thread writer([&] { look([&] { pair.write(0, 5); }); });
  std::thread caller([&] {
    look([&] {
      done(ibv_dereg_mr(made(ibv_reg_mr(pair.pd, pair.memory.data(), 64, IBV_ACCESS_LOCAL_WRITE), "ibv_reg_mr")),
           "ibv_dereg_mr");
    });
  });
  std::thread lister([&] { look([] { first_device(); }); });
  int status = 0;
  for (int i = 0; i < 10 && status == 0; ++i) {
    const pid_t child = child_that([device] {
      Pair own(device);
      own.write(0, 1);
      own.end();
    });
    must(waitpid(child, &status, 0) == child, "waitpid");
  }
  stop = true;
  for (auto* const thread : {&writer, &caller, &lister}) thread->join();
  must(status == 0 && !failed, "children and threads");
  pair.end();
}

/// A program of another kind in the place of the parent, while a child lives: nothing of the parent's stays. Prints
/// the numbers of both and goes on as `sleep`.
void parent_executes(ibv_device* device) {
  Pair pair(device);
  pair.write(0, 1);
  const pid_t child = child_that([] { sleep(60); });
  std::printf("%d %d\n", getpid(), child);
  std::fflush(stdout);
  execlp("sleep", "sleep", "60", nullptr);
  fail("sleep");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(ibv_device*)> ways{{"children_open", children_open},
                                                          {"child_opens_found_device", child_opens_found_device},
                                                          {"child_destroys", child_destroys},
                                                          {"child_misuses", child_misuses},
                                                          {"child_writes_memory", child_writes_memory},
                                                          {"child_executes", child_executes},
                                                          {"child_is_killed", child_is_killed},
                                                          {"threads_work", threads_work},
                                                          {"parent_executes", parent_executes}};
  try {
    must(argc == 2, "one argument");
    must(ibv_fork_init() == 0 && ibv_is_fork_initialized() == IBV_FORK_UNNEEDED, "ibv_fork_init");
    ways.at(argv[1])(first_device());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "forking", error.what());
    return 1;
  }
}
