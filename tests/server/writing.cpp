// A pair of programs that know libibverbs and nothing of this project: the client writes once into the server's memory.
// usage: server_writing server|client good|rights|range|key|window|freed|local|call PORT-FILE
// In all but "good" something is refused. The Write: the region gives no right, the range is outside, there is no such
// R_Key, it is that of a memory window which was never bound or is deallocated, or the client's own L_Key is wrong; or,
// of "call", the client's registration of memory that it does not have. Exit code: 0, 1 when the Write failed, or 3.
#include <infiniband/verbs.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <string>

namespace {

constexpr std::size_t kBytes = 8192;
constexpr std::uintptr_t kNowhere = 8192;
constexpr std::uint32_t kPsn = 100;
constexpr int kFailed = 1, kBroken = 3;

struct Terms {
  ibv_gid gid;
  std::uint32_t qpn;
  std::uint32_t rkey;
  std::uint64_t address;
};

template <typename Made>
Made* require(Made* made, const char* what) {
  if (made != nullptr) return made;
  std::perror(what);
  std::exit(kBroken);
}

void require(bool good, const char* what) {
  if (good) return;
  std::perror(what);
  std::exit(kBroken);
}

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return address;
}

int accept_one(const std::string& file) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  require(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0, "bind");
  require(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) == 0, "getsockname");
  std::ofstream(file) << ntohs(address.sin_port) << std::endl;
  require(listen(listener, 1) == 0, "listen");
  return accept(listener, nullptr, nullptr);
}

int connect_to(const std::string& file) {
  std::uint16_t port = 0;
  std::ifstream(file) >> port;
  const int peer = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = loopback(port);
  require(connect(peer, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0, "connect");
  return peer;
}

void connect_pair(ibv_qp* qp, const Terms& peer) {
  ibv_qp_attr a{};
  a.qp_state = IBV_QPS_INIT;
  a.port_num = 1;
  a.qp_access_flags = IBV_ACCESS_REMOTE_WRITE;
  require(ibv_modify_qp(qp, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS) == 0, "INIT");
  a.qp_state = IBV_QPS_RTR;
  a.path_mtu = IBV_MTU_1024;
  a.dest_qp_num = peer.qpn;
  a.rq_psn = kPsn;
  a.max_dest_rd_atomic = 1;
  a.ah_attr.is_global = 1;
  a.ah_attr.port_num = 1;
  a.ah_attr.grh.dgid = peer.gid;
  require(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0,
          "RTR");
  a.qp_state = IBV_QPS_RTS;
  a.sq_psn = kPsn;
  a.timeout = 14;
  a.retry_cnt = 7;
  a.rnr_retry = 7;
  a.max_rd_atomic = 1;
  require(ibv_modify_qp(qp, &a,
                        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
                            IBV_QP_MAX_QP_RD_ATOMIC) == 0,
          "RTS");
}

int write_once(ibv_qp* qp, const ibv_mr* from, const Terms& peer, const std::string& mode) {
  ibv_sge sge{reinterpret_cast<std::uintptr_t>(from->addr), kBytes, from->lkey + (mode == "local" ? 256 : 0)};
  ibv_send_wr wr{};
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.opcode = IBV_WR_RDMA_WRITE;
  wr.send_flags = IBV_SEND_SIGNALED;
  wr.wr.rdma.remote_addr = peer.address + (mode == "range" ? kBytes / 2 : 0);
  wr.wr.rdma.rkey = peer.rkey + (mode == "key" ? 256 : 0);
  ibv_send_wr* bad = nullptr;
  require(ibv_post_send(qp, &wr, &bad) == 0, "post");
  ibv_wc wc{};
  while (ibv_poll_cq(qp->send_cq, 1, &wc) == 0) {
  }
  std::cout << "completion: " << ibv_wc_status_str(wc.status) << std::endl;
  return wc.status == IBV_WC_SUCCESS ? 0 : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return kBroken;
  const bool serves = std::string(argv[1]) == "server";
  const std::string mode = argv[2];
  ibv_device** const devices = require(ibv_get_device_list(nullptr), "devices");
  ibv_context* const context = require(ibv_open_device(require(*devices, "device")), "open");
  ibv_pd* const pd = require(ibv_alloc_pd(context), "pd");
  ibv_cq* const cq = require(ibv_create_cq(context, 16, nullptr, nullptr, 0), "cq");
  static std::array<char, kBytes> memory;
  const int rights = IBV_ACCESS_LOCAL_WRITE | (mode == "rights" ? 0 : IBV_ACCESS_REMOTE_WRITE);
  ibv_mr* const mr = require(ibv_reg_mr(pd, memory.data(), memory.size(), rights), "mr");
  ibv_qp_init_attr init{};
  init.send_cq = init.recv_cq = cq;
  init.cap = {.max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
  init.qp_type = IBV_QPT_RC;
  ibv_qp* const qp = require(ibv_create_qp(pd, &init), "qp");
  std::uint32_t rkey = mr->rkey;
  if (mode == "window" || mode == "freed") {
    ibv_mw* const window = require(ibv_alloc_mw(pd, IBV_MW_TYPE_2), "window");
    rkey = window->rkey;
    require(mode == "window" || ibv_dealloc_mw(window) == 0, "deallocation");
  }
  Terms own{{}, qp->qp_num, rkey, reinterpret_cast<std::uintptr_t>(memory.data())}, peer{};
  require(ibv_query_gid(context, 1, 0, &own.gid) == 0, "gid");
  const int socket = serves ? accept_one(argv[3]) : connect_to(argv[3]);
  if (mode == "call" && !serves) require(ibv_reg_mr(pd, reinterpret_cast<void*>(kNowhere), kBytes, rights), "nowhere");
  require(write(socket, &own, sizeof own) == sizeof own && read(socket, &peer, sizeof peer) == sizeof peer, "terms");
  connect_pair(qp, peer);
  char ready{};
  require(write(socket, &ready, 1) == 1 && read(socket, &ready, 1) == 1, "ready");
  const int code = serves ? 0 : write_once(qp, mr, peer, mode);
  // The server waits for the end of its client.
  static_cast<void>(serves && read(socket, &ready, 1) == 0);
  return code;
}
