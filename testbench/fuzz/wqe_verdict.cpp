#include "testbench/fuzz/wqe_verdict.hpp"

#include <algorithm>
#include <optional>

namespace rnic::testbench {
namespace {

using hw::CqeStatus;
using hw::WqeOpcode;

constexpr std::size_t kWqeUnit = 16;
constexpr std::size_t kFastHead = hw::WqeControl::kBytes + hw::WqeRange::kBytes + hw::WqeFastRegister::kBytes;

bool is_send(WqeOpcode opcode) {
  return opcode == WqeOpcode::kSend || opcode == WqeOpcode::kSendImmediate || opcode == WqeOpcode::kSendInvalidate;
}

bool is_write(WqeOpcode opcode) { return opcode == WqeOpcode::kWrite || opcode == WqeOpcode::kWriteImmediate; }

bool is_atomic(WqeOpcode opcode) { return opcode == WqeOpcode::kCompareSwap || opcode == WqeOpcode::kFetchAdd; }

bool is_memory(WqeOpcode opcode) {
  return opcode == WqeOpcode::kBindWindow1 || opcode == WqeOpcode::kBindWindow2 ||
         opcode == WqeOpcode::kLocalInvalidate || opcode == WqeOpcode::kFastRegister;
}

/// Of those, by service (InfiniBand specification 9.4, table 37).
bool has_opcode(FuzzProcess::Kind kind, WqeOpcode opcode) {
  if (kind == FuzzProcess::Kind::kUd) return opcode == WqeOpcode::kSend || opcode == WqeOpcode::kSendImmediate;
  if (kind == FuzzProcess::Kind::kUc)
    return is_memory(opcode) || is_write(opcode) || (is_send(opcode) && opcode != WqeOpcode::kSendInvalidate);
  return is_memory(opcode) || is_write(opcode) || is_send(opcode) || is_atomic(opcode) || opcode == WqeOpcode::kRead;
}

bool inside(std::uint64_t va, std::uint64_t length, std::uint64_t first, std::uint64_t bytes) {
  return va >= first && va - first <= bytes && length <= bytes - (va - first);
}

}  // namespace

StatusSet WqeVerdict::judge(const FuzzProcess::Qp& qp, Bytes wqe, std::uint16_t index, bool well_formed) const {
  const auto control = hw::WqeControl::decode(wqe.first<hw::WqeControl::kBytes>());
  const auto opcode = static_cast<WqeOpcode>(control.opcode);
  const StatusSet any_remote = kRefused | kNoAnswer;
  if (!has_opcode(qp.kind, opcode) || control.wqe_index != index || control.qpn != qp.qp->qpn())
    return StatusSet{CqeStatus::kLocQpOpErr} | kFlushed;
  const StatusSet refused = StatusSet{CqeStatus::kLocProtErr, CqeStatus::kLocQpOpErr} | kFlushed;
  if (is_memory(opcode)) {
    if (memory_must_fail(qp, control, wqe)) return refused;
    return well_formed ? refused | StatusSet{CqeStatus::kSuccess} : StatusSet();
  }
  const bool datagram = qp.kind == FuzzProcess::Kind::kUd, read = opcode == WqeOpcode::kRead;
  const StatusSet local{CqeStatus::kLocProtErr, CqeStatus::kLocQpOpErr, CqeStatus::kLocLenErr};
  if (datagram && control.length > qp.mtu) return local | kFlushed;
  if (is_atomic(opcode)) return {};
  if (control.inline_data != 0 && control.length > hw::kMaxInlineBytes) return local | kFlushed;
  std::size_t at = hw::WqeControl::kBytes + (datagram          ? hw::WqeAddress::kBytes
                                             : is_send(opcode) ? 0
                                                               : hw::WqeRemote::kBytes);
  const std::size_t end = control.inline_data != 0 ? at : std::min<std::size_t>(wqe.size(), control.size * kWqeUnit);
  std::uint64_t before = 0;
  for (; at + hw::WqeData::kBytes <= end && before < control.length; at += hw::WqeData::kBytes) {
    const auto data = hw::WqeData::decode(wqe.subspan(at).first<hw::WqeData::kBytes>());
    if (data.length == 0) continue;
    if (!may_use(data, data.length, read)) {
      // A packet is refused for its own bytes alone, so those in front of the fault may have been sent.
      const bool in_first =
          !read && before < qp.mtu && !may_use(data, std::min<std::uint64_t>(data.length, qp.mtu - before), read);
      return in_first ? local | kFlushed : local | kFlushed | any_remote;
    }
    before += data.length;
  }
  if (!well_formed) return {};
  return judge_remote(qp, control, wqe) | kFlushed;
}

/// Whether the first `length` bytes of a data segment are this process's to send, or to receive a Read's answer in.
bool WqeVerdict::may_use(const hw::WqeData& data, std::uint64_t length, bool read) const {
  const auto lies_in = [&](std::uint32_t key, std::uint64_t first, std::uint64_t bytes) {
    return data.lkey == key && inside(data.va, length, first, bytes);
  };
  if (lies_in(here_.key(), here_.granted(), FuzzProcess::kGrantedBytes)) return true;
  if (lies_in(here_.datagram_key(), here_.datagrams(), FuzzProcess::kDatagramBytes)) return true;
  return !read && (lies_in(here_.read_only_key(), here_.read_only(), FuzzProcess::kOtherBytes) ||
                   lies_in(here_.shown_key(), here_.shown(), FuzzProcess::kShownBytes));
}

/// Of a message that has no fault here.
StatusSet WqeVerdict::judge_remote(const FuzzProcess::Qp& qp, const hw::WqeControl& control, Bytes wqe) const {
  const auto opcode = static_cast<WqeOpcode>(control.opcode);
  const StatusSet success{CqeStatus::kSuccess};
  if (qp.kind == FuzzProcess::Kind::kUd || qp.kind == FuzzProcess::Kind::kUc) return success;
  const bool read = opcode == WqeOpcode::kRead;
  // Somebody answers in the name of the peer, with more data than was asked for too.
  if (qp.framed) return success | kRefused | kNoAnswer | (read ? StatusSet{CqeStatus::kLocLenErr} : StatusSet());
  if (is_send(opcode)) return success | kRefused | kNoAnswer;
  const auto remote = hw::WqeRemote::decode(wqe.subspan(hw::WqeControl::kBytes).first<hw::WqeRemote::kBytes>());
  // A peer that is made anew in the middle of a message finds it out of sequence; one that lives on in the middle of a
  // message of before finds the first one out of sequence.
  const bool out_of_sequence = qp.sq_retired == 0 || (control.length > qp.mtu && !read);
  const StatusSet others = out_of_sequence ? kNoAnswer | StatusSet{CqeStatus::kRemInvReqErr} : kNoAnswer;
  if (control.length == 0) return success | others;  // no key is looked at (C9-88)
  const StatusSet no_access = StatusSet{CqeStatus::kRemAccessErr} | others;
  if (remote.rkey == there_.foreign_key() || remote.rkey == there_.read_only_key()) return no_access;
  const bool all = remote.rkey == there_.key(), shown = remote.rkey == there_.shown_key();
  if (!all && !shown) return success | kRefused | kNoAnswer;
  if (shown && !read) return no_access;
  const bool good = all ? inside(remote.va, control.length, there_.granted(), FuzzProcess::kGrantedBytes)
                        : inside(remote.va, control.length, there_.shown(), FuzzProcess::kShownBytes);
  return good ? success | others : no_access;
}

/// Whether the page list of a FastRegister is neither in its request nor where the process keeps it.
bool WqeVerdict::list_must_fail(const hw::WqeFastRegister& fast, const hw::WqeControl& control, Bytes wqe) const {
  const std::size_t units = control.size - kFastHead / kWqeUnit;
  if (control.inline_data == 0) return fast.page_list != here_.page_list() || units != 0;
  if (fast.page_list != 0 || units != (fast.page_count + 1U) / 2) return true;
  for (std::size_t i = 0; i < fast.page_count && kFastHead + 8 * i + 8 <= wqe.size(); ++i) {
    if ((wqe[kFastHead + 8 * i] != 0) || (wqe[kFastHead + 8 * i + 1] & 0x0f) != 0) return true;
  }
  return false;
}

/// As the table of memory operations in docs/architecture.md says; what depends on what is bound now is left open.
bool WqeVerdict::memory_must_fail(const FuzzProcess::Qp& qp, const hw::WqeControl& control, Bytes wqe) const {
  const auto range = hw::WqeRange::decode(
      std::span<const std::uint8_t, hw::WqeRange::kBytes>(wqe.data() + hw::WqeControl::kBytes, hw::WqeRange::kBytes));
  const auto names = [&](std::uint32_t key) { return control.immediate >> 8 == key >> 8; };
  if (qp.kind == FuzzProcess::Kind::kUd) return true;
  const auto opcode = static_cast<hw::WqeOpcode>(control.opcode);
  // Its own windows of type 2B are bound on it alone, so those of its other queue pairs cannot be invalidated here.
  if (opcode == hw::WqeOpcode::kLocalInvalidate) return !names(qp.window2->key()) && !names(here_.fast_key());
  const auto third = wqe.subspan(hw::WqeControl::kBytes + hw::WqeRange::kBytes);
  if (opcode == hw::WqeOpcode::kFastRegister) {
    const auto fast = hw::WqeFastRegister::decode(third.first<hw::WqeFastRegister::kBytes>());
    const std::uint64_t room = std::uint64_t{fast.page_count} << 12;
    return qp.kind != FuzzProcess::Kind::kFast || !names(here_.fast_key()) || fast.page_count == 0 ||
           fast.page_count > FuzzProcess::kFastPages || fast.first_offset != (range.va & 0xfff) || range.length == 0 ||
           range.length > room - fast.first_offset || fast.log_page != 12 || list_must_fail(fast, control, wqe) ||
           (fast.local_write == 0 && (fast.remote_write != 0 || fast.remote_atomic != 0));
  }
  const auto bind = hw::WqeBind::decode(third.first<hw::WqeBind::kBytes>());
  const bool type1 = opcode == hw::WqeOpcode::kBindWindow1;
  bool own_window = false;
  for (std::size_t i = 0; i < here_.qps(); ++i)
    own_window = own_window || names(type1 ? here_.qp(i).window1->key() : here_.qp(i).window2->key());
  if (!own_window) return true;
  if (type1 && range.length == 0) return false;
  // Through a fast registration no window can be bound: its region does not allow it.
  const bool whole = bind.mr_key == here_.key();
  if (!whole && bind.mr_key != here_.read_only_key()) return true;
  const std::uint64_t first = whole ? here_.granted() : here_.read_only(),
                      bytes = whole ? FuzzProcess::kGrantedBytes : FuzzProcess::kOtherBytes;
  if (range.va < first || range.va - first > bytes || range.length > bytes - (range.va - first)) return true;
  return !whole && (bind.remote_write != 0 || bind.remote_atomic != 0);
}

}  // namespace rnic::testbench
