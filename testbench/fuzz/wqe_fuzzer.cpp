#include "testbench/fuzz/wqe_fuzzer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rnic::testbench {
namespace {

constexpr std::size_t kUnit = 16;
constexpr std::size_t kFastHeadBytes = hw::WqeControl::kBytes + hw::WqeRange::kBytes + hw::WqeFastRegister::kBytes;
constexpr std::uint8_t kNoOpcode = 0x80;  ///< From here on there is no opcode of a send WQE

}  // namespace

bool WqeFuzzer::post() {
  // There is one queue pair for fast registrations; its share is that of five others.
  auto& qp = here_.qp(random_.chance(0.2) ? FuzzProcess::kQps - 1 : random_.below(here_.qps()));
  if (qp.changing) return false;
  lying_ = random_.chance(
      0.3);  // many requests are right, so that a queue pair lives long enough to get into a state worth attacking
  constexpr std::uint16_t kDepth = 1u << FuzzProcess::kLogDepth;
  const bool receive = random_.chance(qp.framed ? 0.9 : 0.4);
  // A queue that is overfull once is refused every doorbell from then on, so it is seldom filled up.
  if ((receive ? qp.receives() : qp.sends()) >= kDepth && random_.chance(0.995)) return false;
  if (receive) {
    const auto index = qp.rq_producer++;
    const auto wqe = receive_wqe(lies(0.05) ? static_cast<std::uint16_t>(random_.next()) : index);
    std::uint8_t* const ring = qp.srq ? qp.srq->ring() : qp.qp->receive_ring();
    std::memcpy(ring + std::size_t{index & ((1u << FuzzProcess::kLogDepth) - 1)} * wqe.size(), wqe.data(), wqe.size());
    note("receive WQE", wqe);
    if (random_.chance(0.1)) return true;  // a later doorbell will cover it
    if (qp.srq)
      here_.process().ring(hw::uar::kSrqDoorbell,
                           hw::SrqDoorbell{.srqn = qp.srq->srqn(), .producer_index = qp.rq_producer}.word());
    else
      here_.process().ring(hw::uar::kReceiveDoorbell,
                           hw::ReceiveDoorbell{.qpn = qp.qp->qpn(), .producer_index = qp.rq_producer}.word());
    return true;
  }
  const auto index = qp.sq_producer++;
  const bool memory =
      qp.kind != FuzzProcess::Kind::kUd && random_.chance(qp.kind == FuzzProcess::Kind::kFast ? 0.9 : 0.12);
  const auto wqe = memory ? memory_wqe(qp, index) : send_wqe(qp, index);
  std::uint8_t* const slot =
      qp.qp->send_ring() + std::size_t{index & ((1u << FuzzProcess::kLogDepth) - 1)} * wqe.size();
  std::memcpy(slot, wqe.data(), wqe.size());
  qp.must_fail[index] = must_fail(qp, wqe, index);
  note("send WQE", wqe);
  ring_send(qp, wqe);
  if (scribbles(qp, 0.05)) {  // over requests under way
    const std::size_t at = random_.below(wqe.size() << FuzzProcess::kLogDepth);
    qp.qp->send_ring()[at] = static_cast<std::uint8_t>(random_.next());
    qp.must_fail.clear();
    note("scribble in the send ring", std::span(qp.qp->send_ring() + at, 1));
  }
  return true;
}

WqeFuzzer::Wqe WqeFuzzer::send_wqe(FuzzProcess::Qp& qp, std::uint16_t index) {
  Wqe wqe{};
  hw::WqeControl control;
  const bool datagram = qp.kind == FuzzProcess::Kind::kUd;
  control.opcode =
      static_cast<std::uint8_t>(scribbles(qp, 0.15) ? random_.next()
                                                    : random_.below(datagram                            ? 1
                                                                    : qp.kind == FuzzProcess::Kind::kUc ? 2
                                                                                                        : 3));
  if (lies(0.05)) control.opcode = static_cast<std::uint8_t>(random_.below(3));
  control.silent = random_.chance(0.2);
  control.fence = random_.chance(0.2);
  control.solicited = random_.chance(0.2);
  control.inline_data =
      random_.chance(0.2) && (control.opcode != static_cast<std::uint8_t>(hw::WqeOpcode::kRead) || lies(0.5));
  control.wqe_index = lies(0.07) ? static_cast<std::uint16_t>(random_.next()) : index;
  control.qpn = lies(0.05) ? others_[random_.below(others_.size())] : qp.qp->qpn();
  std::size_t used = hw::WqeControl::kBytes;
  if (datagram) {
    address(qp).encode(std::span<std::uint8_t, hw::WqeAddress::kBytes>(wqe.data() + used, hw::WqeAddress::kBytes));
    used += hw::WqeAddress::kBytes;
  } else if (control.opcode != static_cast<std::uint8_t>(hw::WqeOpcode::kSend)) {
    remote().encode(std::span<std::uint8_t, hw::WqeRemote::kBytes>(wqe.data() + used, hw::WqeRemote::kBytes));
    used += hw::WqeRemote::kBytes;
  }
  std::uint32_t total = 0;
  if (control.inline_data != 0) {
    total = static_cast<std::uint32_t>(random_.below(wqe.size() - used + 1));
    for (std::uint32_t i = 0; i < total; ++i) wqe[used + i] = static_cast<std::uint8_t>(random_.next());
    used += total;
  } else {
    used += segments(std::span(wqe).subspan(used), random_.below(random_.chance(0.1) ? 15 : 4), total);
  }
  control.size = static_cast<std::uint8_t>(lies(0.1) ? random_.next() : (used + kUnit - 1) / kUnit);
  control.length =
      lies(0.15) ? static_cast<std::uint32_t>(random_.chance(0.5) ? random_.next() : total + random_.below(40) - 20)
                 : total;
  control.encode(std::span<std::uint8_t, hw::WqeControl::kBytes>(wqe.data(), hw::WqeControl::kBytes));
  if (scribbles(qp, 0.1)) wqe[random_.below(wqe.size())] = static_cast<std::uint8_t>(random_.next());
  return wqe;
}

/// Memory of the peers' process, through its region or through a key that was opened there.
hw::WqeRemote WqeFuzzer::remote() {
  hw::WqeRemote remote{.va = there_.granted() + random_.below(FuzzProcess::kGrantedBytes / (lying_ ? 1 : 3)),
                       .rkey = there_.key()};
  if (!there_.openings().empty() && random_.chance(0.15)) {
    const auto& opening = there_.openings()[random_.below(there_.openings().size())];
    remote = {.va = opening.va + random_.below(opening.length / 2 + 1), .rkey = opening.key};
    if (lies(0.3))
      remote.va =
          random_.chance(0.5) ? opening.va - 1 - random_.below(8) : opening.va + opening.length - random_.below(8);
  }
  if (lies(0.2)) remote.rkey = random_.chance(0.5) ? there_.foreign_key() : there_.read_only_key();
  if (lies(0.1)) remote.va = random_.chance(0.5) ? there_.foreign() : random_.next();
  if (lies(0.1)) remote.rkey ^= 1u << random_.below(32);
  return remote;
}

/// Where a datagram goes: to the attackers' own peer, to queue pairs of others, or nowhere.
hw::WqeAddress WqeFuzzer::address(const FuzzProcess::Qp& qp) {
  std::uint32_t to = there_.qp(FuzzProcess::kPlainQps + static_cast<std::size_t>(FuzzProcess::Kind::kUd) - 1).qp->qpn();
  if (lies(0.2)) to = others_[random_.below(others_.size())];
  const bool ipv6 = random_.chance(0.5);
  const auto handle = umd::AddressHandle::create(address_of(there_.endpoint(), ipv6));
  auto address = handle.value().segment(qp.qp->qpn(), to,
                                        lies(0.2) ? static_cast<std::uint32_t>(random_.next()) : FuzzProcess::kQkey);
  if (lies(0.1)) address.second_source = static_cast<std::uint8_t>(random_.next());
  if (lies(0.1)) address.dest_ip[random_.below(16)] ^= static_cast<std::uint8_t>(1u << random_.below(8));
  if (lies(0.1)) address.dest_mac = random_.next();
  if (lies(0.1)) address.hop_limit = static_cast<std::uint8_t>(random_.below(3));
  return address;
}

/// A bind, an invalidation or a fast registration.
WqeFuzzer::Wqe WqeFuzzer::memory_wqe(FuzzProcess::Qp& qp, std::uint16_t index) {
  Wqe wqe{};
  hw::WqeControl control;
  control.silent = random_.chance(0.2);
  control.fence = random_.chance(0.2);
  control.solicited = lies(0.03);
  control.inline_data = lies(0.03);
  control.wqe_index = lies(0.05) ? static_cast<std::uint16_t>(random_.next()) : index;
  control.qpn = lies(0.03) ? others_[random_.below(others_.size())] : qp.qp->qpn();
  const bool fast = qp.kind == FuzzProcess::Kind::kFast ? random_.chance(0.9) : lies(0.05);
  const bool open = fast ? here_.registered : qp.bound2;
  if (open != lies(0.1) && random_.chance(0.7)) {
    control.opcode = static_cast<std::uint8_t>(hw::WqeOpcode::kLocalInvalidate);
    control.immediate = !fast ? qp.window2->key() : (here_.fast_key() & ~0xffu) | fast_tag_;
    if (lies(0.2))
      control.immediate = random_.chance(0.5)   ? here_.key()
                          : random_.chance(0.5) ? here_.foreign_key()
                                                : qp.window1->key();
    control.size = 1;
    (fast ? here_.registered : qp.bound2) = false;
  } else if (fast) {
    fast_register(qp, control, wqe);
  } else {
    bind(qp, control, wqe);
  }
  if (lies(0.1)) control.immediate ^= 1u << random_.below(32);
  if (lies(0.05)) control.size = static_cast<std::uint8_t>(random_.below(18));
  if (lies(0.05)) control.length = static_cast<std::uint32_t>(random_.below(100));
  control.encode(std::span<std::uint8_t, hw::WqeControl::kBytes>(wqe.data(), hw::WqeControl::kBytes));
  if (scribbles(qp, 0.1)) wqe[random_.below(wqe.size())] = static_cast<std::uint8_t>(random_.next());
  return wqe;
}

void WqeFuzzer::bind(FuzzProcess::Qp& qp, hw::WqeControl& control, Wqe& wqe) {
  // A type 2B window that is bound cannot be bound again; one of type 1 can.
  const bool type1 = qp.bound2 ? !lies(0.2) : random_.chance(0.4);
  auto& window = type1 ? *qp.window1 : *qp.window2;
  control.opcode = static_cast<std::uint8_t>(type1 ? hw::WqeOpcode::kBindWindow1 : hw::WqeOpcode::kBindWindow2);
  control.immediate = window.draw_key();
  window.keys()->posted(control.immediate);
  hw::WqeRange range{.va = here_.granted() + random_.below(2'000),
                     .length = 1 + random_.below(FuzzProcess::kGrantedBytes - 2'000)};
  hw::WqeBind bind{.mr_key = here_.key()};
  bind.remote_read = random_.chance(0.8);
  bind.remote_write = random_.chance(0.8);
  bind.remote_atomic = random_.chance(0.3);
  if (type1 && random_.chance(0.1)) range.length = 0;
  if (lies(0.15)) range.va = here_.granted() - 1 - random_.below(8);
  if (lies(0.15)) range.length = FuzzProcess::kGrantedBytes - (range.va - here_.granted()) + 1 + random_.below(8);
  if (lies(0.05)) range.length = random_.next() >> random_.below(64);
  if (lies(0.05)) range.va = random_.next();
  if (lies(0.15)) {
    const bool other = random_.chance(0.5);
    range.va = other ? here_.foreign() : here_.read_only();
    range.length = 1 + random_.below(FuzzProcess::kOtherBytes);
    bind.mr_key = other ? here_.foreign_key() : here_.read_only_key();
  }
  if (lies(0.1)) bind.mr_key ^= 1u << random_.below(32);
  if (lies(0.05)) bind.mr_key = control.immediate;
  range.encode(
      std::span<std::uint8_t, hw::WqeRange::kBytes>(wqe.data() + hw::WqeControl::kBytes, hw::WqeRange::kBytes));
  bind.encode(std::span<std::uint8_t, hw::WqeBind::kBytes>(wqe.data() + hw::WqeControl::kBytes + hw::WqeRange::kBytes,
                                                           hw::WqeBind::kBytes));
  control.size = 3;
  here_.opened({control.immediate, range.va, range.length});
  if (!type1) qp.bound2 = true;
}

/// On a queue pair that may, page list and page size are the truth: they name DMA addresses, and whoever may do that is
/// trusted with them.
void WqeFuzzer::fast_register(FuzzProcess::Qp& qp, hw::WqeControl& control, Wqe& wqe) {
  constexpr std::uint64_t kPageBytes = 4096;
  control.opcode = static_cast<std::uint8_t>(hw::WqeOpcode::kFastRegister);
  if (++fast_tag_ == 0) ++fast_tag_;
  control.immediate = (here_.fast_key() & ~0xffu) | fast_tag_;
  hw::WqeFastRegister fast{.page_list = here_.page_list(),
                           .page_count = static_cast<std::uint16_t>(1 + random_.below(FuzzProcess::kFastPages)),
                           .log_page = 12,
                           .local_write = 1};
  fast.first_offset = static_cast<std::uint32_t>(random_.below(kPageBytes));
  fast.remote_read = random_.chance(0.8);
  fast.remote_write = random_.chance(0.8);
  fast.remote_atomic = random_.chance(0.3);
  hw::WqeRange range{.va = kPageBytes * (1 + random_.below(1u << 20)) + fast.first_offset,
                     .length = 1 + random_.below(fast.page_count * kPageBytes - fast.first_offset)};
  if (lies(0.15)) range.length = fast.page_count * kPageBytes - fast.first_offset + 1 + random_.below(8);
  if (lies(0.05)) range.length = random_.next() >> random_.below(64);
  if (lies(0.6))
    range.length =
        kPageBytes * (fast.page_count = static_cast<std::uint16_t>(FuzzProcess::kFastPages + 1 + random_.below(4))) -
        fast.first_offset;
  if (lies(0.05))
    fast.page_count = static_cast<std::uint16_t>(random_.chance(0.5) ? 0 : 0x7fff + random_.below(0x8000));
  if (lies(0.1)) fast.first_offset ^= 1u << random_.below(32);
  if (lies(0.05)) fast.local_write = 0;
  if (lies(0.05))
    fast.log_page = static_cast<std::uint8_t>(random_.chance(0.5) ? random_.below(12) : 31 + random_.below(200));
  if (lies(0.05)) fast.page_list += 1 + random_.below(7);
  const std::size_t units = inline_list(fast, control, wqe);
  if (lies(0.1)) control.immediate = random_.chance(0.5) ? here_.key() : qp.window2->key();
  range.encode(
      std::span<std::uint8_t, hw::WqeRange::kBytes>(wqe.data() + hw::WqeControl::kBytes, hw::WqeRange::kBytes));
  fast.encode(std::span<std::uint8_t, hw::WqeFastRegister::kBytes>(
      wqe.data() + hw::WqeControl::kBytes + hw::WqeRange::kBytes, hw::WqeFastRegister::kBytes));
  control.size = static_cast<std::uint8_t>(kFastHeadBytes / kUnit + units);
  here_.opened({control.immediate, range.va, range.length});
  here_.registered = true;
}

/// Puts half of the lists that a request has room for into it, and says how many units they take. A page that is none,
/// a pointer beside it, and its size are the lies.
std::size_t WqeFuzzer::inline_list(hw::WqeFastRegister& fast, hw::WqeControl& control, Wqe& wqe) {
  constexpr std::size_t kRoom = (Wqe{}.size() - kFastHeadBytes) / sizeof(std::uint64_t);
  const auto listed = here_.listed_pages();
  if (fast.page_count == 0 || fast.page_count > std::min(kRoom, listed.size()) || random_.chance(0.5)) return 0;
  std::array<std::uint64_t, kRoom> pages{};
  std::copy_n(listed.begin(), fast.page_count, pages.begin());
  if (lies(0.1)) pages[random_.below(fast.page_count)] |= 1ULL << random_.below(12);
  std::memcpy(wqe.data() + kFastHeadBytes, pages.data(), sizeof pages);
  if (!lies(0.05)) fast.page_list = 0;
  control.inline_data = 1;
  return lies(0.05) ? random_.below(kRoom) : (fast.page_count + 1U) / 2;
}

/// Whether the page list of a FastRegister is neither in its request nor where the process keeps it.
bool WqeFuzzer::list_must_fail(const hw::WqeFastRegister& fast, const hw::WqeControl& control, const Wqe& wqe) const {
  const std::size_t units = control.size - kFastHeadBytes / kUnit;
  if (control.inline_data == 0) return fast.page_list != here_.page_list() || units != 0;
  if (fast.page_list != 0 || units != (fast.page_count + 1U) / 2) return true;
  for (std::size_t i = 0; i < fast.page_count && kFastHeadBytes + 8 * i + 8 <= wqe.size(); ++i) {
    if ((wqe[kFastHeadBytes + 8 * i] != 0) || (wqe[kFastHeadBytes + 8 * i + 1] & 0x0f) != 0) return true;
  }
  return false;
}

/// As the table of memory operations in docs/architecture.md says; what depends on what is bound now is left open.
bool WqeFuzzer::memory_must_fail(const FuzzProcess::Qp& qp, const hw::WqeControl& control, const Wqe& wqe) const {
  const auto range = hw::WqeRange::decode(
      std::span<const std::uint8_t, hw::WqeRange::kBytes>(wqe.data() + hw::WqeControl::kBytes, hw::WqeRange::kBytes));
  const auto names = [&](std::uint32_t key) { return control.immediate >> 8 == key >> 8; };
  if (qp.kind == FuzzProcess::Kind::kUd) return true;
  const auto opcode = static_cast<hw::WqeOpcode>(control.opcode);
  // Its own windows of type 2B are bound on it alone, so those of its other queue pairs cannot be invalidated here.
  if (opcode == hw::WqeOpcode::kLocalInvalidate) return !names(qp.window2->key()) && !names(here_.fast_key());
  const auto third = std::span(wqe).subspan(hw::WqeControl::kBytes + hw::WqeRange::kBytes);
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

WqeFuzzer::Wqe WqeFuzzer::receive_wqe(std::uint16_t index) {
  Wqe wqe{};
  const std::size_t count = random_.below(random_.chance(0.1) ? 16 : 4);
  std::uint32_t total = 0;
  segments(std::span(wqe).subspan(hw::WqeReceive::kBytes), count, total);
  const hw::WqeReceive head{.sge_count = static_cast<std::uint8_t>(lies(0.15) ? random_.next() : count),
                            .wqe_index = index};
  head.encode(std::span<std::uint8_t, hw::WqeReceive::kBytes>(wqe.data(), hw::WqeReceive::kBytes));
  if (lies(0.1)) wqe[random_.below(wqe.size())] = static_cast<std::uint8_t>(random_.next());
  return wqe;
}

/// Data segments as far as they fit; returns the bytes used.
std::size_t WqeFuzzer::segments(std::span<std::uint8_t> to, std::size_t count, std::uint32_t& total) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < count && used + hw::WqeData::kBytes <= to.size(); ++i, used += hw::WqeData::kBytes) {
    const auto length = static_cast<std::uint32_t>(random_.chance(0.2) ? 0 : random_.below(lies(0.2) ? 3'000 : 300));
    hw::WqeData data{.va = here_.granted() + random_.below(FuzzProcess::kGrantedBytes - length),
                     .length = length,
                     .lkey = here_.key()};
    if (lies(0.05)) data.lkey = here_.foreign_key();
    if (lies(0.05)) data = {.va = here_.foreign(), .length = length, .lkey = here_.foreign_key()};
    if (lies(0.05)) data = {.va = here_.read_only(), .length = length, .lkey = here_.read_only_key()};
    if (lies(0.05)) data.lkey ^= 1u << random_.below(32);
    if (lies(0.05))
      data.va = random_.chance(0.5) ? random_.next() : here_.granted() + FuzzProcess::kGrantedBytes - length / 2;
    if (lies(0.05))
      data.va = random_.chance(0.5) ? here_.granted() - 1 - random_.below(8)
                                    : here_.granted() + FuzzProcess::kGrantedBytes + 1 + random_.below(8) - length;
    if (lies(0.05)) data.length = static_cast<std::uint32_t>(random_.next());
    total += data.length;
    data.encode(std::span<std::uint8_t, hw::WqeData::kBytes>(to.data() + used, hw::WqeData::kBytes));
  }
  return used;
}

/// Judged from the bytes, by what the host interface says of a send WQE: an opcode that does not exist, the index of
/// another request, or bytes, among the first `length` of the message, in memory that the key does not give.
bool WqeFuzzer::must_fail(const FuzzProcess::Qp& qp, const Wqe& wqe, std::uint16_t index) const {
  const auto control =
      hw::WqeControl::decode(std::span<const std::uint8_t, hw::WqeControl::kBytes>(wqe.data(), hw::WqeControl::kBytes));
  if (control.opcode >= kNoOpcode || control.wqe_index != index || control.qpn != qp.qp->qpn()) return true;
  switch (static_cast<hw::WqeOpcode>(control.opcode)) {
    case hw::WqeOpcode::kBindWindow1:
    case hw::WqeOpcode::kBindWindow2:
    case hw::WqeOpcode::kLocalInvalidate:
    case hw::WqeOpcode::kFastRegister: return memory_must_fail(qp, control, wqe);
    default: break;
  }
  const bool datagram = qp.kind == FuzzProcess::Kind::kUd,
             send = control.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kSend);
  // InfiniBand specification 9.4, table 37.
  if (datagram && ((!send && control.opcode != static_cast<std::uint8_t>(hw::WqeOpcode::kSendImmediate)) ||
                   control.length > qp.mtu))
    return true;
  if (qp.kind == FuzzProcess::Kind::kUc && control.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kRead))
    return true;
  if (control.opcode > static_cast<std::uint8_t>(hw::WqeOpcode::kRead) || control.inline_data != 0) return false;
  const bool read = control.opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kRead);
  std::size_t at = hw::WqeControl::kBytes + (datagram ? hw::WqeAddress::kBytes : send ? 0 : hw::WqeRemote::kBytes);
  const std::size_t end = std::min<std::size_t>(wqe.size(), control.size * kUnit);
  std::uint64_t before = 0;
  for (; at + hw::WqeData::kBytes <= end && before < control.length; at += hw::WqeData::kBytes) {
    const auto data =
        hw::WqeData::decode(std::span<const std::uint8_t, hw::WqeData::kBytes>(wqe.data() + at, hw::WqeData::kBytes));
    if (data.length == 0) continue;
    const bool own = data.lkey == here_.key() && data.va >= here_.granted() &&
                     data.va - here_.granted() <= FuzzProcess::kGrantedBytes &&
                     data.length <= FuzzProcess::kGrantedBytes - (data.va - here_.granted());
    const bool readable = !read && data.lkey == here_.read_only_key() && data.va >= here_.read_only() &&
                          data.va - here_.read_only() <= 4096 && data.length <= 4096 - (data.va - here_.read_only());
    if (!own && !readable) return true;
    before += data.length;
  }
  return false;
}

void WqeFuzzer::ring_send(FuzzProcess::Qp& qp, const Wqe& wqe) {
  if (random_.chance(0.2)) return;  // a later doorbell will cover it
  if (random_.chance(0.4)) return push_window(wqe, qp.kind != FuzzProcess::Kind::kFast && lies(0.2));
  const auto index = lies(0.05) ? static_cast<std::uint16_t>(random_.next()) : qp.sq_producer;
  here_.process().ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = qp.qp->qpn(), .producer_index = index}.word());
}

/// The WQE in bursts, or in words, with pieces left out, doubled or out of order.
void WqeFuzzer::push_window(std::span<const std::uint8_t> wqe, bool disorderly) {
  auto& device = here_.endpoint().device();
  const std::uint64_t window = std::uint64_t{here_.process().uar()} * hw::kUarPageBytes + hw::uar::kWqeWindow;
  const std::size_t bytes = std::clamp<std::size_t>(wqe[7] * kUnit, kUnit, wqe.size());
  if (!disorderly) return here_.process().push_wqe(wqe.first((bytes + 63) / 64 * 64));
  for (std::size_t at = 0; at < bytes; at += 8) {
    if (random_.chance(0.02)) continue;
    const std::size_t to = random_.chance(0.98) ? at : 8 * random_.below(32);
    std::uint64_t word = 0;
    std::memcpy(&word, wqe.data() + at, sizeof word);
    device.write64(window + to, word);
  }
}

/// A doorbell with a number that may be another's.
void WqeFuzzer::doorbell() {
  const bool own = random_.chance(0.2);
  auto& qp = here_.qp(random_.below(here_.qps()));
  const std::uint32_t number = own                   ? qp.qp->qpn()
                               : random_.chance(0.7) ? others_[random_.below(others_.size())]
                                                     : static_cast<std::uint32_t>(random_.next() & 0xffffff);
  const auto index = static_cast<std::uint32_t>(random_.next());
  const auto low = static_cast<std::uint16_t>(index & (random_.chance(0.5) ? 0x1f : 0xffff));
  std::uint64_t word = 0;
  std::uint32_t to = 0;
  switch (random_.below(5)) {
    case 3:
      to = hw::uar::kSrqDoorbell, word = hw::SrqDoorbell{.srqn = number & 0xff, .producer_index = low}.word();
      break;
    case 0: to = hw::uar::kSendDoorbell, word = hw::SendDoorbell{.qpn = number, .producer_index = low}.word(); break;
    case 1:
      to = hw::uar::kReceiveDoorbell, word = hw::ReceiveDoorbell{.qpn = number, .producer_index = low}.word();
      break;
    case 2: {
      // Its own completion queues are told the truth: what it did to itself there could not be told from a fault.
      if (qp.changing) return;
      const bool arm = random_.chance(0.3);
      to = hw::uar::kCqDoorbell;
      word = arm ? hw::CqDoorbell{.cqn = qp.cq->cqn(),
                                  .arm = static_cast<std::uint8_t>(random_.below(4)),
                                  .consumer_index = qp.cq_consumer & 0xffffff}
                       .word()
                 : hw::CqDoorbell{.cqn = others_[random_.below(others_.size())] & 0xff,
                                  .arm = static_cast<std::uint8_t>(random_.below(4)),
                                  .consumer_index = index & 0xffffff}
                       .word();
      for (std::size_t i = 0; !arm && i < here_.qps(); ++i) {
        if (!here_.qp(i).cq || hw::CqDoorbell::from_word(word).cqn == here_.qp(i).cq->cqn()) return;
      }
      break;
    }
    default:
      to = hw::uar::kEqDoorbell, word = hw::EqDoorbell{.eqn = number & 0x1f, .consumer_index = index & 0xffffff}.word();
      break;
  }
  here_.process().ring(to, word);
}

bool WqeFuzzer::access() {
  if (random_.chance(0.5)) return doorbell(), true;
  auto& root = here_.endpoint().host().root_complex();
  model::HostRequest tlp;
  static constexpr std::array<model::TlpKind, 6> kKinds = {model::TlpKind::kMemoryWrite, model::TlpKind::kMemoryWrite,
                                                           model::TlpKind::kMemoryWrite, model::TlpKind::kMemoryRead,
                                                           model::TlpKind::kOther,       model::TlpKind::kMessage};
  tlp.kind = kKinds[random_.below(kKinds.size())];
  // Any range of dwords in the page that does not look like a doorbell of its own completion queues.
  const std::size_t most = root.options().config.max_payload / 4;
  tlp.length_dw = static_cast<std::uint16_t>(1 + random_.below(random_.chance(0.5) ? 4 : most));
  const std::uint64_t dwords = hw::kUarPageBytes / 4 - tlp.length_dw + 1;
  const std::uint64_t offset =
      4 * (random_.chance(0.5) ? random_.below(std::min<std::uint64_t>(16, dwords)) : random_.below(dwords));
  tlp.address = std::uint64_t{here_.process().uar()} * hw::kUarPageBytes + offset;
  const bool single = tlp.length_dw == 1;
  tlp.first_be = static_cast<std::uint8_t>(single ? random_.below(16) : 1 + random_.below(15));
  tlp.last_be = static_cast<std::uint8_t>(single ? 0 : 1 + random_.below(15));
  tlp.poisoned = tlp.kind == model::TlpKind::kMemoryWrite && random_.chance(0.1);
  if (tlp.kind == model::TlpKind::kMemoryWrite || tlp.kind == model::TlpKind::kMessage) {
    tlp.data.resize(std::size_t{tlp.length_dw} * 4);
    for (auto& byte : tlp.data) byte = static_cast<std::uint8_t>(random_.next());
  }
  const bool hits_cq = offset <= hw::uar::kCqDoorbell + 7 && offset + 4u * tlp.length_dw > hw::uar::kCqDoorbell;
  if (hits_cq && !tlp.data.empty()) return true;
  note(fmt::format("TLP kind {} at {:#x}, {} dwords, enables {:x} {:x}, poisoned {}", static_cast<int>(tlp.kind),
                   offset, tlp.length_dw, tlp.first_be, tlp.last_be, tlp.poisoned),
       tlp.data);
  if (tlp.kind == model::TlpKind::kMemoryWrite || tlp.kind == model::TlpKind::kMessage) {
    root.post(std::move(tlp));
    return true;
  }
  return root.request(std::move(tlp)).has_value();
}

void WqeFuzzer::note(std::string_view what, std::span<const std::uint8_t> bytes) {
  std::string line(what);
  line += ": ";
  std::size_t used = bytes.size();
  while (used > 0 && bytes[used - 1] == 0) --used;
  for (std::size_t i = 0; i < used; ++i) line += fmt::format("{:02x}", bytes[i]);
  history_.push_back(std::move(line));
  if (history_.size() > kHistory) history_.pop_front();
}

}  // namespace rnic::testbench
