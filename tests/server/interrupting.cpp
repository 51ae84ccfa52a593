/// A program of libibverbs and librdmacm whose threads are cancelled, whom signals interrupt, and who closes what it
/// did not open (docs/verbs.md, Threads and signals). Each way is an argument; exit code 0: what must hold did.
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>

#include "tests/server/verbs_pair.hpp"

namespace {

using namespace rnic::test;

constexpr unsigned kPatience = 60;  // seconds
constexpr useconds_t kWhileUs = 30'000;

/// A thread that may be cancelled.
class Cancellable {
 public:
  explicit Cancellable(std::function<void()> body) : body_(std::move(body)) {
    must(pthread_create(&thread_, nullptr, run, this) == 0, "pthread_create");
  }
  void cancel() const { must(pthread_cancel(thread_) == 0, "pthread_cancel"); }
  void interrupt(int signal) const { must(pthread_kill(thread_, signal) == 0, "pthread_kill"); }
  /// Whether it was cancelled.
  [[nodiscard]] bool join() const {
    void* result = nullptr;
    must(pthread_join(thread_, &result) == 0, "pthread_join");
    if (!error_.empty()) throw std::runtime_error(error_);
    return result == PTHREAD_CANCELED;
  }

 private:
  static void* run(void* self) {
    auto& own = *static_cast<Cancellable*>(self);
    try {
      own.body_();
    } catch (const std::exception& error) {
      own.error_ = error.what();
    }
    return nullptr;
  }

  const std::function<void()> body_;
  std::string error_;
  pthread_t thread_{};
};

/// `body` runs while its thread is to be cancelled, and to its end: nothing in it is a cancellation point.
void run_cancelled(const char* what, const std::function<void()>& body) {
  std::atomic<bool> whole = false;
  Cancellable thread([&] {
    pthread_cancel(pthread_self());
    body();
    whole = true;
    pthread_testcancel();
  });
  must(thread.join() && whole, what);
}

void wait_for_event(ibv_comp_channel* channel) {
  ibv_cq* of = nullptr;
  void* cookie = nullptr;
  done(ibv_get_cq_event(channel, &of, &cookie), "ibv_get_cq_event");
  ibv_ack_cq_events(of, 1);
}

sockaddr_in own_address(std::uint16_t port) {
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(port);
  must(inet_pton(AF_INET, "10.0.0.1", &at.sin_addr) == 1, "inet_pton");
  return at;
}

/// A listener of its own channel, or a synchronous one.
rdma_cm_id* listener(rdma_event_channel* channel, std::uint16_t port) {
  rdma_cm_id* id = nullptr;
  done(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  auto at = own_address(port);
  done(rdma_bind_addr(id, reinterpret_cast<sockaddr*>(&at)), "rdma_bind_addr");
  done(rdma_listen(id, 1), "rdma_listen");
  return id;
}

void cancelled_calls(ibv_device* device) {
  run_cancelled("calls of ibverbs that make, ask and end", [device] {
    Pair own(device);
    ibv_port_attr port{};
    done(ibv_query_port(own.context, 1, &port), "ibv_query_port");
    ibv_device_attr attributes{};
    done(ibv_query_device(own.context, &attributes), "ibv_query_device");
    done(ibv_resize_cq(own.cq, 40), "ibv_resize_cq");
    own.write(0, 1);
    own.end();
    first_device();
  });
  run_cancelled("calls of rdmacm", [] {
    auto* const channel = made(rdma_create_event_channel(), "rdma_create_event_channel");
    auto* const id = listener(channel, 7001);
    done(rdma_destroy_id(id), "rdma_destroy_id");
    rdma_destroy_event_channel(channel);
    rdma_addrinfo* found = nullptr;
    done(rdma_getaddrinfo("10.0.0.1", "7001", nullptr, &found), "rdma_getaddrinfo");
    rdma_freeaddrinfo(found);
  });
  Pair pair(device);
  for (std::uint8_t n = 1; n < 10; ++n) {
    usleep(kWhileUs);  // the machine sleeps, and a doorbell wakes it
    run_cancelled("ibv_post_send and ibv_poll_cq", [&] { pair.write(0, n); });
    usleep(kWhileUs);
    run_cancelled("ibv_req_notify_cq", [&] { done(ibv_req_notify_cq(pair.cq, 0), "ibv_req_notify_cq"); });
    run_cancelled("ibv_reg_mr and ibv_dereg_mr", [&] {
      done(ibv_dereg_mr(made(ibv_reg_mr(pair.pd, pair.memory.data(), 64, 0), "ibv_reg_mr")), "ibv_dereg_mr");
    });
  }
  // What was armed has come.
  wait_for_event(pair.channel);
  pair.end();
}

/// A thread that waits is cancelled, and what it waited for is there for others.
void cancelled_waits(ibv_device* device) {
  Pair pair(device);
  auto* const events = made(rdma_create_event_channel(), "rdma_create_event_channel");
  auto* const synchronous = listener(nullptr, 7002);
  const std::map<const char*, std::function<void()>> waits{
      {"ibv_get_cq_event", [&] { wait_for_event(pair.channel); }},
      {"ibv_get_async_event",
       [&] {
         ibv_async_event event{};
         done(ibv_get_async_event(pair.context, &event), "ibv_get_async_event");
       }},
      {"rdma_get_cm_event",
       [&] {
         rdma_cm_event* event = nullptr;
         done(rdma_get_cm_event(events, &event), "rdma_get_cm_event");
       }},
      {"rdma_get_request", [&] {
         rdma_cm_id* id = nullptr;
         done(rdma_get_request(synchronous, &id), "rdma_get_request");
       }}};
  for (const auto& [what, body] : waits) {
    const Cancellable waits_long(body);
    usleep(kWhileUs);
    waits_long.cancel();
    must(waits_long.join(), what);
  }
  // Anywhere in between.
  for (int round = 0; round < 60; ++round) {
    const Cancellable waiter([&] {
      for (;;) {
        done(ibv_req_notify_cq(pair.cq, 0), "ibv_req_notify_cq");
        wait_for_event(pair.channel);
      }
    });
    for (std::uint8_t n = 1; n < 4; ++n) {
      pair.write(0, n);
      usleep(static_cast<useconds_t>(std::rand() % 500));
    }
    waiter.cancel();
    must(waiter.join(), "a waiter is cancelled");
    ibv_port_attr port{};
    done(ibv_query_port(pair.context, 1, &port), "ibv_query_port");
  }
  done(rdma_destroy_id(synchronous), "rdma_destroy_id");
  rdma_destroy_event_channel(events);
  pair.end();
}

/// A thread that posts and polls loses nothing when it is cancelled.
void cancelled_pollers(ibv_device* device) {
  Pair pair(device);
  for (int round = 0; round < 60; ++round) {
    const Cancellable poller([&] {
      for (std::uint8_t n = 1;; n = n % 100 + 1) {
        pair.write(0, n);
        pthread_testcancel();
      }
    });
    usleep(static_cast<useconds_t>(std::rand() % 2000));
    poller.cancel();
    must(poller.join(), "a poller is cancelled");
    pair.write(0, 101);  // finds its own completion, not one that was left
  }
  pair.end();
}

std::atomic<int> g_handled;

void handle(int signal, int flags) {
  struct sigaction action {};
  action.sa_handler = [](int) { ++g_handled; };
  action.sa_flags = flags;
  must(sigaction(signal, &action, nullptr) == 0, "sigaction");
}

/// `wait` returns an errno. It goes on behind a handler with SA_RESTART, ends at one without, and at what it is for.
void check_interruptions(const char* what, const std::function<int()>& wait, const std::function<void()>& wake) {
  for (const bool ends : {true, false}) {
    g_handled = 0;
    std::atomic<int> error = -1;
    const Cancellable waiter([&] { error = wait(); });
    for (int i = 1; i <= 3; ++i) {
      usleep(kWhileUs);
      waiter.interrupt(SIGUSR1);
      for (int tries = 0; tries < 1000 && g_handled != i; ++tries) usleep(1000);
      must(g_handled == i, "the handler runs while its thread waits");
    }
    usleep(kWhileUs);
    must(error == -1, what);
    if (ends)
      waiter.interrupt(SIGUSR2);
    else
      wake();
    must(!waiter.join(), "a waiter ends");
    must(error == (ends ? EINTR : 0), what);
  }
}

void interrupted_waits(ibv_device* device) {
  handle(SIGUSR1, SA_RESTART);
  handle(SIGUSR2, 0);
  Pair pair(device);
  done(ibv_req_notify_cq(pair.cq, 0), "ibv_req_notify_cq");
  const auto errno_of = [](int result) { return result == 0 ? 0 : errno; };
  check_interruptions(
      "ibv_get_cq_event",
      [&] {
        ibv_cq* of = nullptr;
        void* cookie = nullptr;
        const int error = errno_of(ibv_get_cq_event(pair.channel, &of, &cookie));
        if (error == 0) ibv_ack_cq_events(of, 1);
        return error;
      },
      [&] { pair.write(0, 1); });
  check_interruptions(
      "ibv_get_async_event",
      [&] {
        ibv_async_event event{};
        const int error = errno_of(ibv_get_async_event(pair.context, &event));
        if (error == 0) ibv_ack_async_event(&event);
        return error;
      },
      [&] {
        // A Write that the peer refuses is an event there.
        ++pair.mr->rkey;
        done(pair.post(0, 2), "ibv_post_send");
        --pair.mr->rkey;
      });
  auto* const events = made(rdma_create_event_channel(), "rdma_create_event_channel");
  auto* const synchronous = listener(nullptr, 7003);
  rdma_cm_id* id = nullptr;
  auto to = own_address(7003);
  done(rdma_create_id(events, &id, nullptr, RDMA_PS_TCP), "rdma_create_id");
  check_interruptions(
      "rdma_get_cm_event",
      [&] {
        rdma_cm_event* event = nullptr;
        const int error = errno_of(rdma_get_cm_event(events, &event));
        if (error == 0) rdma_ack_cm_event(event);
        return error;
      },
      [&] { done(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), "rdma_resolve_addr"); });
  rdma_cm_id *asks = nullptr, *asked = nullptr;
  check_interruptions(
      "rdma_get_request", [&] { return errno_of(rdma_get_request(synchronous, &asked)); },
      [&] {
        done(rdma_create_id(nullptr, &asks, nullptr, RDMA_PS_TCP), "rdma_create_id");
        done(rdma_resolve_addr(asks, nullptr, reinterpret_cast<sockaddr*>(&to), 1000), "rdma_resolve_addr");
        done(rdma_resolve_route(asks, 1000), "rdma_resolve_route");
        done(rdma_migrate_id(asks, events), "rdma_migrate_id");  // it need not wait for an answer
        ibv_qp_init_attr attributes{};
        attributes.cap = {
            .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
        attributes.qp_type = IBV_QPT_RC;
        done(rdma_create_qp(asks, nullptr, &attributes), "rdma_create_qp");
        rdma_conn_param parameters{};
        done(rdma_connect(asks, &parameters), "rdma_connect");
      });
}

Pair* g_of_handler;
std::atomic<int> g_posted, g_taken;

/// A signal handler posts and polls, on a queue pair of its own, whatever the thread is at.
void handler_posts(ibv_device* device) {
  Pair pair(device), of_handler(device);
  g_of_handler = &of_handler;
  struct sigaction action {};
  action.sa_handler = [](int) {
    if (g_posted - g_taken < static_cast<int>(Pair::kDepth) && g_of_handler->post(0, 1) == 0) ++g_posted;
    ibv_wc completion{};
    while (ibv_poll_cq(g_of_handler->cq, 1, &completion) == 1) ++g_taken;
  };
  action.sa_flags = SA_RESTART;
  must(sigaction(SIGALRM, &action, nullptr) == 0, "sigaction");
  itimerval timer{.it_interval = {0, 300}, .it_value = {0, 300}};
  must(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "setitimer");
  constexpr int kMine = 12345;
  for (int round = 0; round < 3000 && g_taken < 500; ++round) {
    errno = kMine;
    pair.write(0, static_cast<std::uint8_t>(round % 100 + 1));
    must(errno == kMine, "posting and polling leave errno alone");
  }
  timer = {};
  must(setitimer(ITIMER_REAL, &timer, nullptr) == 0, "setitimer");
  must(g_taken > 20, "the handler has sent");
  for (; g_taken < g_posted; ++g_taken) of_handler.take(1);
  pair.end();
  of_handler.end();
}

/// As daemons do, the program closes all descriptors that it may have, and opens files, which get the same numbers.
void closes_descriptors(ibv_device* device) {
  Pair pair(device);
  pair.write(0, 1);
  for (int number = 3; number < 1024; ++number) close(number);
  std::array<int, 24> files{};
  for (int& file : files) {
    file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    must(file >= 3, "a file");
  }
  usleep(kWhileUs);
  for (std::uint8_t n = 0; n < 10; ++n) static_cast<void>(pair.post(0, n));
  ibv_port_attr port{};
  must(ibv_query_port(pair.context, 1, &port) != 0, "no way to the device is left");
  must(ibv_reg_mr(pair.pd, pair.memory.data(), 64, 0) == nullptr, "ibv_reg_mr");
  // A program that comes so far opens it once more.
  Pair again(device);
  again.write(0, 1);
  again.end();
  for (const int file : files) {
    struct stat of {};
    must(fstat(file, &of) == 0 && of.st_size == 0, "the program's files are untouched");
  }
}

/// Objects of threads and of the program end when these end.
struct Late {
  explicit Late(ibv_device* device) : pair(device) {}
  ~Late() {
    try {
      pair.write(0, 1);
      pair.write_and_sleep(2);
      pair.end();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "late: %s\n", error.what());
      _exit(1);
    }
  }
  Pair pair;
};

void ends_late(ibv_device* device) {
  const Cancellable thread([device] {
    thread_local const Late of_thread(device);
    pthread_key_t key{};
    must(pthread_key_create(&key, [](void* late) { delete static_cast<Late*>(late); }) == 0, "pthread_key_create");
    must(pthread_setspecific(key, new Late(device)) == 0, "pthread_setspecific");
  });
  must(!thread.join(), "a thread with objects");
  static const Late of_program(device);
  static std::atomic<Late*> at_exit;
  at_exit = new Late(device);
  must(std::atexit([] { delete at_exit.load(); }) == 0, "atexit");
}

}  // namespace

int main(int argc, char** argv) {
  const std::map<std::string, void (*)(ibv_device*)> ways{{"cancelled_calls", cancelled_calls},
                                                          {"cancelled_waits", cancelled_waits},
                                                          {"cancelled_pollers", cancelled_pollers},
                                                          {"interrupted_waits", interrupted_waits},
                                                          {"handler_posts", handler_posts},
                                                          {"closes_descriptors", closes_descriptors},
                                                          {"ends_late", ends_late}};
  try {
    must(argc == 2, "one argument");
    if (std::string(argv[1]) != "handler_posts") alarm(kPatience);
    ways.at(argv[1])(first_device());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s: %s\n", argc > 1 ? argv[1] : "interrupting", error.what());
    return 1;
  }
}
