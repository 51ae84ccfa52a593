// Taking completions.
#include <arpa/inet.h>

#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

ibv_wc_opcode opcode_of(const umd::Completion& completion) {
  switch (completion.kind) {
    case umd::RequestKind::kSend: return IBV_WC_SEND;
    case umd::RequestKind::kWrite: return IBV_WC_RDMA_WRITE;
    case umd::RequestKind::kRead: return IBV_WC_RDMA_READ;
    case umd::RequestKind::kCompareSwap: return IBV_WC_COMP_SWAP;
    case umd::RequestKind::kFetchAdd: return IBV_WC_FETCH_ADD;
    case umd::RequestKind::kReceive: return IBV_WC_RECV;
    case umd::RequestKind::kReceiveWrite: return IBV_WC_RECV_RDMA_WITH_IMM;
    case umd::RequestKind::kBind: return IBV_WC_BIND_MW;
    case umd::RequestKind::kInvalidate:
    case umd::RequestKind::kFastRegister:
    case umd::RequestKind::kReadInvalidate: break;
  }
  return IBV_WC_LOCAL_INV;
}

/// The numbers are those of ibv_wc_status; a bind and an invalidation fail in a way of their own (10.6.7.2.4,
/// ibv_poll_cq).
ibv_wc_status status_of(const umd::Completion& completion) {
  const bool about_keys = completion.kind == umd::RequestKind::kBind;
  const bool refused = completion.status == hw::CqeStatus::kLocProtErr;
  return about_keys && refused ? IBV_WC_MW_BIND_ERR : static_cast<ibv_wc_status>(completion.status);
}
static_assert(static_cast<int>(hw::CqeStatus::kLocProtErr) == IBV_WC_LOC_PROT_ERR);
static_assert(static_cast<int>(hw::CqeStatus::kRnrRetryExcErr) == IBV_WC_RNR_RETRY_EXC_ERR);
static_assert(static_cast<int>(hw::CqeStatus::kFatalErr) == IBV_WC_FATAL_ERR);

unsigned flags_of(const umd::Completion& completion) {
  return flag_if(completion.grh, IBV_WC_GRH) | flag_if(completion.with_immediate, IBV_WC_WITH_IMM) |
         flag_if(completion.with_invalidate, IBV_WC_WITH_INV);
}

/// Immediate data in network order; a key as it is.
std::uint32_t immediate_of(const umd::Completion& completion) {
  return completion.with_immediate ? htonl(completion.immediate) : completion.immediate;
}

/// The service level of a datagram is the priority of its VLAN tag.
std::uint8_t sl_of(const umd::Completion& completion) { return static_cast<std::uint8_t>(completion.vlan_tci >> 13); }

const umd::Completion& at(ibv_cq_ex* face) { return Cq::of(face).completion; }

int take_one(Cq& cq) {
  const auto taken = cq.core->poll(1, [&](const umd::Completion& completion) { cq.completion = completion; });
  if (taken == 0) return ENOENT;
  cq.face.wr_id = cq.completion.id;
  cq.face.status = status_of(cq.completion);
  return 0;
}

int start_poll(ibv_cq_ex* face, ibv_poll_cq_attr* attributes) {
  if (attributes->comp_mask != 0) return EINVAL;
  auto& cq = Cq::of(face);
  if (!cq.single_threaded) cq.poll_lock.lock();
  const int error = take_one(cq);
  if (error != 0 && !cq.single_threaded) cq.poll_lock.unlock();
  return error;
}

void end_poll(ibv_cq_ex* face) {
  auto& cq = Cq::of(face);
  if (!cq.single_threaded) cq.poll_lock.unlock();
}

std::uint64_t nanoseconds(ibv_cq_ex* face) {
  const std::uint64_t mhz = Cq::of(face).clock_mhz;
  const std::uint64_t cycles = at(face).timestamp;
  return mhz == 0 ? 0 : cycles / mhz * 1000 + cycles % mhz * 1000 / mhz;
}

}  // namespace

int poll_cq(ibv_cq* face, int count, ibv_wc* completions) {
  if (count <= 0) return 0;
  ibv_wc* to = completions;
  Cq::of(face).core->poll(static_cast<std::size_t>(count), [&](const umd::Completion& completion) {
    *to++ = {.wr_id = completion.id,
             .status = status_of(completion),
             .opcode = opcode_of(completion),
             .vendor_err = completion.syndrome,
             .byte_len = completion.byte_count,
             .imm_data = immediate_of(completion),
             .qp_num = completion.qpn,
             .src_qp = completion.source_qpn,
             .wc_flags = flags_of(completion),
             .pkey_index = 0,
             .slid = 0,
             .sl = sl_of(completion),
             .dlid_path_bits = 0};
  });
  return static_cast<int>(to - completions);
}

/// All of them: what a program did not ask for costs nothing here.
void set_poll_operations(ibv_cq_ex& cq) {
  cq.start_poll = start_poll;
  cq.next_poll = [](ibv_cq_ex* of) { return take_one(Cq::of(of)); };
  cq.end_poll = end_poll;
  cq.read_opcode = [](ibv_cq_ex* of) { return opcode_of(at(of)); };
  cq.read_vendor_err = [](ibv_cq_ex* of) -> std::uint32_t { return at(of).syndrome; };
  cq.read_byte_len = [](ibv_cq_ex* of) { return at(of).byte_count; };
  cq.read_imm_data = [](ibv_cq_ex* of) -> __be32 { return immediate_of(at(of)); };
  cq.read_qp_num = [](ibv_cq_ex* of) { return at(of).qpn; };
  cq.read_src_qp = [](ibv_cq_ex* of) { return at(of).source_qpn; };
  cq.read_wc_flags = [](ibv_cq_ex* of) { return flags_of(at(of)); };
  cq.read_slid = [](ibv_cq_ex*) -> std::uint32_t { return 0; };
  cq.read_sl = [](ibv_cq_ex* of) { return sl_of(at(of)); };
  cq.read_cvlan = [](ibv_cq_ex* of) -> std::uint16_t { return at(of).vlan_tci & 0xFFF; };
  cq.read_dlid_path_bits = [](ibv_cq_ex*) -> std::uint8_t { return 0; };
  cq.read_completion_ts = [](ibv_cq_ex* of) { return at(of).timestamp; };
  cq.read_completion_wallclock_ns = nanoseconds;
}

}  // namespace rnic::verbs
