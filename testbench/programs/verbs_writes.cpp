/// A program of libibverbs, like any other: RDMA Writes from one host into memory of another, against the clock on the
/// wall. `rnic bench` runs it through a machine of its own (wall_us_per_small_write, wall_mb_per_s).
///
/// usage: verbs_writes target            prints the TCP port at which it listens, and lends its memory
///        verbs_writes write PORT        prints microseconds for each of 500 Writes of 8 bytes, one after the other,
///        and
///                                       megabytes a second of 64 Writes of 64 KiB, 16 at once
#include <arpa/inet.h>
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t kLarge = 64 << 10;
constexpr unsigned kSmallWrites = 500, kLargeWrites = 64, kAtOnce = 16;

/// What one end tells the other.
struct Endpoint {
  ibv_gid gid;
  std::uint64_t address;
  std::uint32_t key;
  std::uint32_t qpn;
};

[[noreturn]] void fail(const char* what) { throw std::runtime_error(std::string(what) + ": " + std::strerror(errno)); }

template <typename T>
T* made(T* object, const char* what) {
  if (object == nullptr) fail(what);
  return object;
}

void done(int error, const char* what) {
  if (error == 0) return;
  errno = error;
  fail(what);
}

void send_all(int socket, const void* data, std::size_t bytes) {
  if (write(socket, data, bytes) != static_cast<ssize_t>(bytes)) fail("write");
}

void receive_all(int socket, void* data, std::size_t bytes) {
  if (recv(socket, data, bytes, MSG_WAITALL) != static_cast<ssize_t>(bytes))
    throw std::runtime_error("the other end has ended");
}

sockaddr_in here(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int accept_one() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = here(0);
  socklen_t bytes = sizeof address;
  if (bind(listener, reinterpret_cast<sockaddr*>(&address), bytes) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &bytes) != 0)
    fail("listen");
  std::printf("%u\n", ntohs(address.sin_port));
  std::fflush(stdout);
  const int peer = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
  if (peer < 0) fail("accept");
  close(listener);
  return peer;
}

int connect_to(std::uint16_t port) {
  const int peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = here(port);
  if (connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("connect");
  return peer;
}

/// One end: a queue pair, and memory for it. Ends with the process.
class End {
 public:
  explicit End(int peer) : peer_(peer), memory_(kLarge) {
    int devices = 0;
    ibv_device** list = made(ibv_get_device_list(&devices), "ibv_get_device_list");
    if (devices == 0) throw std::runtime_error("there is no device");
    context_ = made(ibv_open_device(list[0]), "ibv_open_device");
    ibv_free_device_list(list);
    pd_ = made(ibv_alloc_pd(context_), "ibv_alloc_pd");
    cq_ = made(ibv_create_cq(context_, kAtOnce, nullptr, nullptr, 0), "ibv_create_cq");
    mr_ = made(ibv_reg_mr(pd_, memory_.data(), memory_.size(), IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE),
               "ibv_reg_mr");
    ibv_qp_init_attr create{};
    create.send_cq = create.recv_cq = cq_;
    create.qp_type = IBV_QPT_RC;
    create.cap = {.max_send_wr = kAtOnce, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 8};
    qp_ = made(ibv_create_qp(pd_, &create), "ibv_create_qp");
    Endpoint own{{}, reinterpret_cast<std::uintptr_t>(memory_.data()), mr_->rkey, qp_->qp_num};
    done(ibv_query_gid(context_, 1, 0, &own.gid), "ibv_query_gid");
    send_all(peer_, &own, sizeof own);
    receive_all(peer_, &other_, sizeof other_);
    connect();
  }

  /// Writes `bytes` to the other end `count` times, `at_once` of them under way. Returns the seconds that it took.
  double write(std::size_t bytes, unsigned count, unsigned at_once, unsigned flags) {
    ibv_sge sge{reinterpret_cast<std::uintptr_t>(memory_.data()), static_cast<std::uint32_t>(bytes), mr_->lkey};
    ibv_send_wr request{}, *bad = nullptr;
    request.sg_list = &sge;
    request.num_sge = 1;
    request.opcode = IBV_WR_RDMA_WRITE;
    request.send_flags = IBV_SEND_SIGNALED | flags;
    request.wr.rdma.remote_addr = other_.address;
    request.wr.rdma.rkey = other_.key;
    const auto start = std::chrono::steady_clock::now();
    for (unsigned posted = 0, taken = 0; taken < count;) {
      for (; posted < count && posted - taken < at_once; ++posted)
        done(ibv_post_send(qp_, &request, &bad), "ibv_post_send");
      ibv_wc completion{};
      const int found = ibv_poll_cq(cq_, 1, &completion);
      if (found < 0) throw std::runtime_error("ibv_poll_cq failed");
      if (found != 0 && completion.status != IBV_WC_SUCCESS)
        throw std::runtime_error(ibv_wc_status_str(completion.status));
      taken += static_cast<unsigned>(found);
    }
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

  /// Both ends have come this far.
  void meet() const {
    char byte = 0;
    send_all(peer_, &byte, 1);
    receive_all(peer_, &byte, 1);
  }

 private:
  void connect() {
    ibv_qp_attr attributes{};
    attributes.qp_state = IBV_QPS_INIT;
    attributes.port_num = 1;
    attributes.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
    done(ibv_modify_qp(qp_, &attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS), "INIT");
    attributes.qp_state = IBV_QPS_RTR;
    attributes.path_mtu = IBV_MTU_4096;
    attributes.dest_qp_num = other_.qpn;
    attributes.max_dest_rd_atomic = 1;
    attributes.ah_attr.port_num = 1;
    attributes.ah_attr.is_global = 1;
    attributes.ah_attr.grh.dgid = other_.gid;
    attributes.ah_attr.grh.hop_limit = 64;
    done(ibv_modify_qp(qp_, &attributes,
                       IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                           IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
         "RTR");
    attributes.qp_state = IBV_QPS_RTS;
    attributes.timeout = 14;
    attributes.retry_cnt = attributes.rnr_retry = 7;
    attributes.max_rd_atomic = 1;
    done(ibv_modify_qp(qp_, &attributes,
                       IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                           IBV_QP_MAX_QP_RD_ATOMIC),
         "RTS");
    meet();
  }

  const int peer_;
  std::vector<std::uint8_t> memory_;
  ibv_context* context_{};
  ibv_pd* pd_{};
  ibv_cq* cq_{};
  ibv_mr* mr_{};
  ibv_qp* qp_{};
  Endpoint other_{};
};

int run(int argc, char** argv) {
  const std::string_view role = argc > 1 ? argv[1] : "";
  if (role == "target" && argc == 2) {
    const End end(accept_one());
    end.meet();
    return 0;
  }
  if (role != "write" || argc != 3) {
    std::fputs("usage: verbs_writes target | verbs_writes write PORT\n", stderr);
    return 2;
  }
  End end(connect_to(static_cast<std::uint16_t>(std::atoi(argv[2]))));
  const double small = end.write(8, kSmallWrites, 1, IBV_SEND_INLINE);
  const double large = end.write(kLarge, kLargeWrites, kAtOnce, 0);
  std::printf("%.3f %.3f\n", small / kSmallWrites * 1e6, static_cast<double>(kLarge) * kLargeWrites / large / 1e6);
  end.meet();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "verbs_writes: %s\n", error.what());
    return 1;
  }
}
