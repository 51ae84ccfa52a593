// Posting requests.
#include <arpa/inet.h>

#include "driver/umd/memory_request.hpp"
#include "driver/umd/post_send.hpp"
#include "driver/verbs/number.hpp"
#include "driver/verbs/post_list.hpp"

namespace rnic::verbs {
namespace {

constexpr unsigned kSendFlags =
    IBV_SEND_FENCE | IBV_SEND_SIGNALED | IBV_SEND_SOLICITED | IBV_SEND_INLINE;  // no checksum offload

/// Of the operations that move data.
struct Operation {
  hw::WqeOpcode opcode{};
  bool immediate{};
  bool moves_data{};
};

constexpr Operation kOperations[] = {
    {hw::WqeOpcode::kWrite, false, true},             // IBV_WR_RDMA_WRITE
    {hw::WqeOpcode::kWriteImmediate, true, true},     // IBV_WR_RDMA_WRITE_WITH_IMM
    {hw::WqeOpcode::kSend, false, true},              // IBV_WR_SEND
    {hw::WqeOpcode::kSendImmediate, true, true},      // IBV_WR_SEND_WITH_IMM
    {hw::WqeOpcode::kRead, false, true},              // IBV_WR_RDMA_READ
    {hw::WqeOpcode::kCompareSwap, false, true},       // IBV_WR_ATOMIC_CMP_AND_SWP
    {hw::WqeOpcode::kFetchAdd, false, true},          // IBV_WR_ATOMIC_FETCH_AND_ADD
    {hw::WqeOpcode::kLocalInvalidate, false, false},  // IBV_WR_LOCAL_INV
    {hw::WqeOpcode::kBindWindow2, false, false},      // IBV_WR_BIND_MW
    {hw::WqeOpcode::kSendInvalidate, false, true},    // IBV_WR_SEND_WITH_INV
};
static_assert(IBV_WR_RDMA_WRITE == 0 && IBV_WR_SEND == 2 && IBV_WR_ATOMIC_FETCH_AND_ADD == 6 &&
              IBV_WR_SEND_WITH_INV == 9);

[[gnu::always_inline]] inline int post_data(Qp& qp, const ibv_send_wr& request, Operation operation, bool defer) {
  umd::SendRequest send{.opcode = operation.opcode,
                        .id = request.wr_id,
                        .segments = segments_of(request.sg_list, request.num_sge),
                        .silent = !qp.signal_all && (request.send_flags & IBV_SEND_SIGNALED) == 0,
                        .fence = (request.send_flags & IBV_SEND_FENCE) != 0,
                        .solicited = (request.send_flags & IBV_SEND_SOLICITED) != 0,
                        .inline_data = (request.send_flags & IBV_SEND_INLINE) != 0,
                        .defer = defer};
  if (send.inline_data && operation.opcode == hw::WqeOpcode::kRead) [[unlikely]]
    return EINVAL;
  send.immediate = operation.immediate ? ntohl(request.imm_data) : request.invalidate_rkey;
  if (qp.type == hw::QpType::kUd) {
    send.address = request.wr.ud.ah != nullptr ? &Ah::of(request.wr.ud.ah).core : nullptr;
    send.dest_qpn = request.wr.ud.remote_qpn & 0xFFFFFF;
    send.qkey = request.wr.ud.remote_qkey;
  } else if (request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || request.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
    const bool swap = request.opcode == IBV_WR_ATOMIC_CMP_AND_SWP;
    send.remote_address = request.wr.atomic.remote_addr;
    send.remote_key = request.wr.atomic.rkey;
    send.swap_add = swap ? request.wr.atomic.swap : request.wr.atomic.compare_add;
    send.compare = swap ? request.wr.atomic.compare_add : 0;
  } else {
    send.remote_address = request.wr.rdma.remote_addr;
    send.remote_key = request.wr.rdma.rkey;
  }
  return errno_of(qp.core->post_here(send));
}

/// A window of type 2 gets the key that the program has chosen: another tag of its index.
int post_bind_2(Qp& qp, const ibv_send_wr& request, bool defer) {
  const auto& bind = request.bind_mw;
  if (bind.mw == nullptr || bind.mw->type != IBV_MW_TYPE_2 || bind.bind_info.mr == nullptr) return EINVAL;
  if ((bind.rkey ^ bind.mw->rkey) >> 8 != 0) return EINVAL;
  const auto range = window_range(*bind.mw, bind.bind_info);
  if (!range) return errno_of(range.error());
  const umd::MemoryOptions options{.id = request.wr_id,
                                   .silent = !qp.signal_all && (request.send_flags & IBV_SEND_SIGNALED) == 0,
                                   .fence = (request.send_flags & IBV_SEND_FENCE) != 0,
                                   .defer = defer};
  return errno_of(umd::post_bind(*qp.core, *Mw::of(bind.mw).window, *range, options, bind.rkey));
}

int post_key_request(Qp& qp, const ibv_send_wr& request, bool defer) {
  if (qp.type == hw::QpType::kUd || (request.send_flags & IBV_SEND_INLINE) != 0) return EINVAL;
  if (request.opcode == IBV_WR_BIND_MW) return post_bind_2(qp, request, defer);
  return errno_of(umd::post_invalidate(*qp.core, request.invalidate_rkey,
                                       {.id = request.wr_id,
                                        .silent = !qp.signal_all && (request.send_flags & IBV_SEND_SIGNALED) == 0,
                                        .fence = (request.send_flags & IBV_SEND_FENCE) != 0,
                                        .defer = defer}));
}

/// What the program has of the queue pair is not what it was given: it has written there, or this is another object
/// (decisions 32).
bool is_spoilt(const Qp& qp) { return qp.face.qp_base.qp_num != qp.number; }

template <typename Request>
[[gnu::cold]] int refuse_queue_pair(Request* first, Request** bad) {
  *bad = first;
  return EFAULT;
}

}  // namespace

int post_send(ibv_qp* face, ibv_send_wr* first, ibv_send_wr** bad) {
  auto& qp = Qp::of(face);
  if (is_spoilt(qp)) [[unlikely]]
    return refuse_queue_pair(first, bad);
  return post_each(*qp.core, first, bad, [&](const ibv_send_wr& request, bool defer) {
    const auto number = static_cast<unsigned>(number_of(request.opcode));
    if (number >= std::size(kOperations) || (request.send_flags & ~kSendFlags) != 0) [[unlikely]]
      return EINVAL;
    const Operation operation = kOperations[number];
    if (operation.moves_data) [[likely]]
      return post_data(qp, request, operation, defer);
    return post_key_request(qp, request, defer);
  });
}

int post_recv(ibv_qp* face, ibv_recv_wr* first, ibv_recv_wr** bad) {
  auto& qp = Qp::of(face);
  if (is_spoilt(qp)) [[unlikely]]
    return refuse_queue_pair(first, bad);
  return post_receives(*qp.core, first, bad);
}

}  // namespace rnic::verbs
