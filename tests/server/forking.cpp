/// A program of libibverbs that forks (docs/verbs.md, Fork). Each way to do so is an argument; exit code 0: what must
/// hold did.
#include <fcntl.h>
#include <infiniband/verbs.h>
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
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

void must(bool holds, const char* what) {
  if (!holds) fail(what);
}

template <typename T>
T* made(T* object, const char* what) {
  must(object != nullptr, what);
  return object;
}

void done(int error, const char* what) {
  if (error == 0) return;
  errno = error;
  fail(what);
}

ibv_device* first_device() {
  int count = 0;
  ibv_device** const list = made(ibv_get_device_list(&count), "ibv_get_device_list");
  must(count == 1, "one device");
  ibv_device* const device = list[0];
  ibv_free_device_list(list);
  return device;
}

/// Two queue pairs of one process that talk to each other, and all that they need.
struct Pair {
  static constexpr std::size_t kBytes = 8192;
  static constexpr std::uint32_t kDepth = 16;

  std::vector<std::uint8_t> memory = std::vector<std::uint8_t>(kBytes);
  ibv_context* context;
  ibv_pd* pd;
  ibv_mr* mr;
  ibv_comp_channel* channel;
  ibv_cq* cq;
  ibv_qp* qps[2];

  explicit Pair(ibv_device* device) : context(made(ibv_open_device(device), "ibv_open_device")) {
    pd = made(ibv_alloc_pd(context), "ibv_alloc_pd");
    mr = made(ibv_reg_mr(pd, memory.data(), kBytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE), "ibv_reg_mr");
    channel = made(ibv_create_comp_channel(context), "ibv_create_comp_channel");
    cq = made(ibv_create_cq(context, 2 * kDepth, nullptr, channel, 0), "ibv_create_cq");
    for (auto& qp : qps) {
      ibv_qp_init_attr attributes{};
      attributes.send_cq = attributes.recv_cq = cq;
      attributes.cap = {
          .max_send_wr = kDepth, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
      attributes.qp_type = IBV_QPT_RC;
      qp = made(ibv_create_qp(pd, &attributes), "ibv_create_qp");
    }
    for (int i = 0; i < 2; ++i) connect(qps[i], qps[1 - i]->qp_num);
  }
  Pair(const Pair&) = delete;
  Pair& operator=(const Pair&) = delete;

  void connect(ibv_qp* qp, std::uint32_t peer) const {
    ibv_qp_attr a{};
    a.qp_state = IBV_QPS_INIT;
    a.port_num = 1;
    a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    done(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    a.qp_state = IBV_QPS_RTR;
    a.path_mtu = IBV_MTU_1024;
    a.dest_qp_num = peer;
    a.min_rnr_timer = 12;
    a.ah_attr.is_global = 1;
    a.ah_attr.port_num = 1;
    a.ah_attr.grh.hop_limit = 1;
    done(ibv_query_gid(context, 1, 0, &a.ah_attr.grh.dgid), "ibv_query_gid");
    done(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    a.qp_state = IBV_QPS_RTS;
    a.timeout = 14;
    a.retry_cnt = a.rnr_retry = 7;
    done(ibv_modify_qp(qp, &a,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
  }

  /// An errno.
  int post(unsigned of, std::uint8_t value) {
    std::uint8_t* const from = memory.data() + of * 64;
    *from = value;
    ibv_sge segment{reinterpret_cast<std::uintptr_t>(from), 1, mr->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.wr_id = value;
    request.sg_list = &segment;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED;
    request.wr.rdma.remote_addr = reinterpret_cast<std::uintptr_t>(memory.data()) + 4096 + of;
    request.wr.rdma.rkey = mr->rkey;
    return ibv_post_send(qps[of], &request, &bad);
  }

  void take(std::uint64_t id) {
    ibv_wc completion{};
    int got = 0;
    while ((got = ibv_poll_cq(cq, 1, &completion)) == 0) {
    }
    must(got == 1 && completion.status == IBV_WC_SUCCESS && completion.wr_id == id, "a completion");
  }

  void write(unsigned of, std::uint8_t value) {
    done(post(of, value), "ibv_post_send");
    take(value);
    must(memory[4096 + of] == value, "what was written is there");
  }

  /// The same, and waits for it in the channel.
  void write_and_sleep(std::uint8_t value) {
    done(ibv_req_notify_cq(cq, 0), "ibv_req_notify_cq");
    done(post(0, value), "ibv_post_send");
    ibv_cq* of = nullptr;
    void* cookie = nullptr;
    done(ibv_get_cq_event(channel, &of, &cookie), "ibv_get_cq_event");
    ibv_ack_cq_events(of, 1);
    take(value);
    must(memory[4096] == value, "what was written is there");
  }

  void end() const {
    for (auto* const qp : qps) done(ibv_destroy_qp(qp), "ibv_destroy_qp");
    done(ibv_destroy_cq(cq), "ibv_destroy_cq");
    done(ibv_destroy_comp_channel(channel), "ibv_destroy_comp_channel");
    done(ibv_dereg_mr(mr), "ibv_dereg_mr");
    done(ibv_dealloc_pd(pd), "ibv_dealloc_pd");
    done(ibv_close_device(context), "ibv_close_device");
  }
};

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
