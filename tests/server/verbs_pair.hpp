#pragma once

#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

// For programs that know libibverbs and nothing of this project.

namespace rnic::test {

[[noreturn]] inline void fail(const std::string& what) { throw std::runtime_error(what + ": " + std::strerror(errno)); }

inline void must(bool holds, const char* what) {
  if (!holds) fail(what);
}

template <typename T>
T* made(T* object, const char* what) {
  must(object != nullptr, what);
  return object;
}

inline void done(int error, const char* what) {
  if (error == 0) return;
  errno = error;
  fail(what);
}

inline ibv_device* first_device() {
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

}  // namespace rnic::test
