// The ibv_wr_* functions: requests are built one after the other, and posted together or not at all.
#include <algorithm>
#include <cstring>

#include "driver/umd/post_send.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

/// Nothing of the batch will be posted. The first reason is the one that wr_complete says.
[[gnu::noinline]] void refuse_batch(Qp& qp, int error) {
  qp.pending = nullptr;
  if (qp.batch_error == 0) qp.batch_error = error;
}

/// The request that the setters are about. Without one they do nothing, as wr_complete then says.
PendingSend* current(Qp& qp) {
  if (qp.pending == nullptr) [[unlikely]]
    refuse_batch(qp, EINVAL);
  return qp.pending;
}

/// Another request has room in the batch afterwards. An errno.
[[gnu::noinline]] int grow(Qp& qp) {
  return or_enomem([&] {
    qp.batch.emplace_back();
    return 0;
  });
}

/// Begins a request, with what the program has put into the queue pair for it.
ibv_send_wr* begin_request(ibv_qp_ex* face, ibv_wr_opcode opcode, std::uint64_t operation) {
  auto& qp = Qp::of(face);
  if (qp.batch_error != 0) [[unlikely]]
    return nullptr;
  if ((qp.send_operations & operation) == 0) [[unlikely]] {
    refuse_batch(qp, EOPNOTSUPP);
    return nullptr;
  }
  if (qp.batch_size == qp.batch.size()) [[unlikely]] {
    if (const int error = grow(qp); error != 0) {
      refuse_batch(qp, error);
      return nullptr;
    }
  }
  PendingSend& pending = qp.batch[qp.batch_size++];
  qp.pending = &pending;
  pending.inline_data.clear();
  ibv_send_wr& request = pending.request;
  request.wr_id = face->wr_id;
  request.num_sge = 0;
  request.opcode = opcode;
  request.send_flags = face->wr_flags & ~static_cast<unsigned>(IBV_SEND_INLINE);
  request.imm_data = 0;
  std::memset(&request.wr, 0, sizeof request.wr);
  return &request;
}

/// Runs `change` with the parts of the present request and what the queue pair was granted; it returns an errno, which
/// is remembered as a lack of memory is.
template <typename Change>
void with_parts(ibv_qp_ex* face, Change&& change) {
  auto& qp = Qp::of(face);
  PendingSend* const pending = current(qp);
  if (pending == nullptr) return;
  const int error = or_enomem([&] { return change(*pending, qp.core->granted()); });
  if (error != 0) refuse_batch(qp, error);
}

/// What is too long is not read. An errno.
int add_inline(PendingSend& pending, const umd::QueueCapacity& granted, const void* address, std::size_t length) {
  if (length > granted.inline_bytes - pending.inline_data.size()) return EINVAL;
  pending.request.send_flags |= IBV_SEND_INLINE;
  const auto* const from = static_cast<const std::byte*>(address);
  if (length != 0) pending.inline_data.insert(pending.inline_data.end(), from, from + length);
  return 0;
}

/// A list that is too long is not read, as in umd::SendQueue::check. An errno.
int add_inline_list(PendingSend& pending, const umd::QueueCapacity& granted, std::size_t count,
                    const ibv_data_buf* list) {
  int error = count > umd::most_inline_segments(granted.send_segments, granted.inline_bytes) ? EINVAL : 0;
  for (std::size_t i = 0; error == 0 && i < count; ++i)
    error = add_inline(pending, granted, list[i].addr, list[i].length);
  return error;
}

int set_segments(PendingSend& pending, const umd::QueueCapacity& granted, std::size_t count, const ibv_sge* list) {
  if (count > granted.send_segments) return EINVAL;
  pending.request.num_sge = static_cast<int>(count);
  if (count == 1) {
    pending.segment = *list;
  } else {
    pending.segments.assign(list, list + count);
  }
  return 0;
}

void atomic_request(ibv_qp_ex* face, ibv_wr_opcode opcode, std::uint64_t operation, std::uint32_t key,
                    std::uint64_t address, std::uint64_t compare_add, std::uint64_t swap) {
  auto* const request = begin_request(face, opcode, operation);
  if (request != nullptr)
    request->wr.atomic = {.remote_addr = address, .compare_add = compare_add, .swap = swap, .rkey = key};
}

void rdma_request(ibv_qp_ex* face, ibv_wr_opcode opcode, std::uint64_t operation, std::uint32_t key,
                  std::uint64_t address, __be32 immediate = 0) {
  auto* const request = begin_request(face, opcode, operation);
  if (request == nullptr) return;
  request->wr.rdma = {.remote_addr = address, .rkey = key};
  request->imm_data = immediate;
}

void bind_request(ibv_qp_ex* face, ibv_mw* mw, std::uint32_t key, const ibv_mw_bind_info* info) {
  auto* const request = begin_request(face, IBV_WR_BIND_MW, IBV_QP_EX_WITH_BIND_MW);
  if (request != nullptr) request->bind_mw = {.mw = mw, .rkey = key, .bind_info = *info};
}

void send_request(ibv_qp_ex* face, ibv_wr_opcode opcode, std::uint64_t operation, std::uint32_t immediate_or_key) {
  auto* const request = begin_request(face, opcode, operation);
  if (request != nullptr) request->invalidate_rkey = immediate_or_key;
}

void refuse_operation(ibv_qp_ex* face) { refuse_batch(Qp::of(face), EOPNOTSUPP); }

/// Gives a request its segments.
void finish_request(PendingSend& pending) {
  ibv_send_wr& request = pending.request;
  if ((request.send_flags & IBV_SEND_INLINE) != 0) {
    pending.segment = {.addr = reinterpret_cast<std::uintptr_t>(pending.inline_data.data()),
                       .length = static_cast<std::uint32_t>(pending.inline_data.size()),
                       .lkey = 0};
    request.num_sge = 1;
  }
  request.sg_list = request.num_sge == 1 ? &pending.segment : pending.segments.data();
}

/// Several, or none.
[[gnu::noinline]] int post_batch(Qp& qp) {
  if (qp.batch_size == 0) return 0;
  for (std::size_t i = 0; i < qp.batch_size; ++i) {
    finish_request(qp.batch[i]);
    qp.batch[i].request.next = i + 1 != qp.batch_size ? &qp.batch[i + 1].request : nullptr;
  }
  if (!qp.core->has_room(qp.batch_size)) return ENOMEM;
  ibv_send_wr* bad = nullptr;
  return post_send(&qp.face.qp_base, &qp.batch[0].request, &bad);
}

/// One finds out by itself whether there is room.
int post_one(Qp& qp) {
  PendingSend& pending = qp.batch[0];
  finish_request(pending);
  pending.request.next = nullptr;
  ibv_send_wr* bad = nullptr;
  return post_send(&qp.face.qp_base, &pending.request, &bad);
}

void start(ibv_qp_ex* face) {
  auto& qp = Qp::of(face);
  qp.batch_lock.lock();
  qp.batch_size = 0;
  qp.pending = nullptr;
  qp.batch_error = 0;
}

int complete(ibv_qp_ex* face) {
  auto& qp = Qp::of(face);
  int error = qp.batch_error;
  if (error == 0) [[likely]]
    error = qp.batch_size == 1 ? post_one(qp) : post_batch(qp);
  qp.batch_lock.unlock();
  return error;
}

void set_memory_operations(ibv_qp_ex& qp) {
  qp.wr_atomic_cmp_swp = [](ibv_qp_ex* of, std::uint32_t key, std::uint64_t address, std::uint64_t compare,
                            std::uint64_t swap) {
    atomic_request(of, IBV_WR_ATOMIC_CMP_AND_SWP, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP, key, address, compare, swap);
  };
  qp.wr_atomic_fetch_add = [](ibv_qp_ex* of, std::uint32_t key, std::uint64_t address, std::uint64_t add) {
    atomic_request(of, IBV_WR_ATOMIC_FETCH_AND_ADD, IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, key, address, add, 0);
  };
  qp.wr_bind_mw = bind_request;
  qp.wr_local_inv = [](ibv_qp_ex* of, std::uint32_t key) {
    send_request(of, IBV_WR_LOCAL_INV, IBV_QP_EX_WITH_LOCAL_INV, key);
  };
  qp.wr_rdma_read = [](ibv_qp_ex* of, std::uint32_t key, std::uint64_t address) {
    rdma_request(of, IBV_WR_RDMA_READ, IBV_QP_EX_WITH_RDMA_READ, key, address);
  };
  qp.wr_rdma_write = [](ibv_qp_ex* of, std::uint32_t key, std::uint64_t address) {
    rdma_request(of, IBV_WR_RDMA_WRITE, IBV_QP_EX_WITH_RDMA_WRITE, key, address);
  };
  qp.wr_rdma_write_imm = [](ibv_qp_ex* of, std::uint32_t key, std::uint64_t address, __be32 immediate) {
    rdma_request(of, IBV_WR_RDMA_WRITE_WITH_IMM, IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM, key, address, immediate);
  };
  qp.wr_atomic_write = [](ibv_qp_ex* of, std::uint32_t, std::uint64_t, const void*) { refuse_operation(of); };
}

void set_send_operations(ibv_qp_ex& qp) {
  qp.wr_send = [](ibv_qp_ex* of) { send_request(of, IBV_WR_SEND, IBV_QP_EX_WITH_SEND, 0); };
  qp.wr_send_imm = [](ibv_qp_ex* of, __be32 immediate) {
    send_request(of, IBV_WR_SEND_WITH_IMM, IBV_QP_EX_WITH_SEND_WITH_IMM, immediate);
  };
  qp.wr_send_inv = [](ibv_qp_ex* of, std::uint32_t key) {
    send_request(of, IBV_WR_SEND_WITH_INV, IBV_QP_EX_WITH_SEND_WITH_INV, key);
  };
  qp.wr_send_tso = [](ibv_qp_ex* of, void*, std::uint16_t, std::uint16_t) { refuse_operation(of); };
}

void set_setters(ibv_qp_ex& qp) {
  qp.wr_set_ud_addr = [](ibv_qp_ex* of, ibv_ah* ah, std::uint32_t qpn, std::uint32_t qkey) {
    auto* const pending = current(Qp::of(of));
    if (pending != nullptr) pending->request.wr.ud = {.ah = ah, .remote_qpn = qpn, .remote_qkey = qkey};
  };
  qp.wr_set_xrc_srqn = [](ibv_qp_ex* of, std::uint32_t) { refuse_operation(of); };
  qp.wr_set_inline_data = [](ibv_qp_ex* of, void* address, std::size_t length) {
    with_parts(of, [&](PendingSend& pending, const umd::QueueCapacity& granted) {
      return add_inline(pending, granted, address, length);
    });
  };
  qp.wr_set_inline_data_list = [](ibv_qp_ex* of, std::size_t count, const ibv_data_buf* list) {
    with_parts(of, [&](PendingSend& pending, const umd::QueueCapacity& granted) {
      return add_inline_list(pending, granted, count, list);
    });
  };
  qp.wr_set_sge = [](ibv_qp_ex* of, std::uint32_t key, std::uint64_t address, std::uint32_t length) {
    auto* const pending = current(Qp::of(of));
    if (pending == nullptr) return;
    pending->segment = {.addr = address, .length = length, .lkey = key};
    pending->request.num_sge = 1;
  };
  qp.wr_set_sge_list = [](ibv_qp_ex* of, std::size_t count, const ibv_sge* list) {
    with_parts(of, [&](PendingSend& pending, const umd::QueueCapacity& granted) {
      return set_segments(pending, granted, count, list);
    });
  };
}

}  // namespace

void set_batch_operations(ibv_qp_ex& qp) {
  qp.wr_start = start;
  qp.wr_complete = complete;
  qp.wr_abort = [](ibv_qp_ex* of) { Qp::of(of).batch_lock.unlock(); };
  set_memory_operations(qp);
  set_send_operations(qp);
  set_setters(qp);
}

}  // namespace rnic::verbs
