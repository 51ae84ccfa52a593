#include "testbench/fuzz/wqe_fuzzer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace rnic::testbench {
bool WqeFuzzer::post() {
  // There is one queue pair for fast registrations; its share is that of five others.
  auto& qp = here_.qp(random_.chance(0.2) ? FuzzProcess::kQps - 1 : random_.below(here_.qps()));
  if (qp.changing) return false;
  lying_ = random_.chance(
      0.3);  // many requests are right, so that a queue pair lives long enough to get into a state worth attacking
  constexpr std::uint16_t kDepth = 1u << FuzzProcess::kLogDepth;
  const bool receive = random_.chance(qp.framed ? 0.9 : 0.4);
  // A queue that is overfull once is refused every doorbell from then on, so it is seldom filled up.
  if ((receive ? qp.receives() : qp.sends()) >= kDepth) {
    if (random_.chance(0.995)) return false;
    qp.lied();
  }
  if (receive) {
    const auto index = qp.rq_producer++;
    const auto wqe = receive_wqe(qp, lies(0.05) ? static_cast<std::uint16_t>(random_.next()) : index);
    std::uint8_t* const ring = qp.srq ? qp.srq->ring() : qp.qp->receive_ring();
    std::memcpy(ring + std::size_t{index & ((1u << FuzzProcess::kLogDepth) - 1)} * wqe.size(), wqe.data(), wqe.size());
    note("receive WQE", wqe);
    if (random_.chance(0.1)) return true;  // a later doorbell will cover it
    qp.rq_rung = qp.rq_producer;
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
  auto wqe = memory ? memory_wqe(qp, index) : send_wqe(qp, index);
  make_plain(qp, wqe);
  std::uint8_t* const slot =
      qp.qp->send_ring() + std::size_t{index & ((1u << FuzzProcess::kLogDepth) - 1)} * wqe.size();
  std::memcpy(slot, wqe.data(), wqe.size());
  const auto control = hw::WqeControl::decode(std::span(wqe).first<hw::WqeControl::kBytes>());
  qp.expected[index] = {verdict_.judge(qp, wqe, index, !lying_), control.silent != 0};
  note("send WQE", wqe);
  ring_send(qp, wqe, control.wqe_index == index && control.qpn == qp.qp->qpn());
  if (scribbles(qp, 0.05)) {  // over requests under way
    const std::size_t at = random_.below(wqe.size() << FuzzProcess::kLogDepth);
    qp.qp->send_ring()[at] = static_cast<std::uint8_t>(random_.next());
    make_plain(qp, std::span(qp.qp->send_ring() + at / wqe.size() * wqe.size(), wqe.size()));
    qp.expected.clear();
    qp.lied();
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
  if (lies(0.2)) remote = {.va = there_.shown() + random_.below(FuzzProcess::kShownBytes), .rkey = there_.shown_key()};
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

void WqeFuzzer::make_plain(const FuzzProcess::Qp& qp, std::span<std::uint8_t> wqe) {
  const auto control = hw::WqeControl::decode(wqe.first<hw::WqeControl::kBytes>());
  const auto opcode = static_cast<hw::WqeOpcode>(control.opcode);
  const bool send = opcode == hw::WqeOpcode::kSend || opcode == hw::WqeOpcode::kSendImmediate ||
                    opcode == hw::WqeOpcode::kSendInvalidate;
  std::size_t at = hw::WqeControl::kBytes;
  if (!send) at += hw::WqeRemote::kBytes;
  if (opcode == hw::WqeOpcode::kFetchAdd || opcode == hw::WqeOpcode::kCompareSwap) {
    auto atomic = hw::WqeAtomic::decode(wqe.subspan(at).first<hw::WqeAtomic::kBytes>());
    constexpr std::uint64_t kPlainWord = FuzzProcess::kPlainBits * 0x0101'0101'0101'0101ULL;
    atomic.swap_add &= opcode == hw::WqeOpcode::kFetchAdd ? 0 : kPlainWord;  // a sum has any bits
    atomic.encode(wqe.subspan(at).first<hw::WqeAtomic::kBytes>());
  }
  const bool write = opcode == hw::WqeOpcode::kWrite || opcode == hw::WqeOpcode::kWriteImmediate;
  if ((!send && !write) || control.inline_data == 0) return;  // a page list is no payload
  if (qp.kind == FuzzProcess::Kind::kUd) at = hw::WqeControl::kBytes + hw::WqeAddress::kBytes;
  for (auto& byte : wqe.subspan(at)) byte &= FuzzProcess::kPlainBits;
}

WqeFuzzer::Wqe WqeFuzzer::receive_wqe(const FuzzProcess::Qp& qp, std::uint16_t index) {
  Wqe wqe{};
  const std::size_t count = random_.below(random_.chance(0.1) ? 16 : 4);
  std::uint32_t total = 0;
  segments(std::span(wqe).subspan(hw::WqeReceive::kBytes), count, total, qp.kind == FuzzProcess::Kind::kUd);
  const hw::WqeReceive head{.sge_count = static_cast<std::uint8_t>(lies(0.15) ? random_.next() : count),
                            .wqe_index = index};
  head.encode(std::span<std::uint8_t, hw::WqeReceive::kBytes>(wqe.data(), hw::WqeReceive::kBytes));
  if (lies(0.1)) wqe[random_.below(wqe.size())] = static_cast<std::uint8_t>(random_.next());
  return wqe;
}

/// Data segments as far as they fit; returns the bytes used.
std::size_t WqeFuzzer::segments(std::span<std::uint8_t> to, std::size_t count, std::uint32_t& total, bool datagrams) {
  std::size_t used = 0;
  for (std::size_t i = 0; i < count && used + hw::WqeData::kBytes <= to.size(); ++i, used += hw::WqeData::kBytes) {
    const auto length = static_cast<std::uint32_t>(random_.chance(0.2) ? 0 : random_.below(lies(0.2) ? 3'000 : 300));
    hw::WqeData data{.va = here_.granted() + random_.below(FuzzProcess::kGrantedBytes - length),
                     .length = length,
                     .lkey = here_.key()};
    if (datagrams) {
      data.va = here_.datagrams() + random_.below(FuzzProcess::kDatagramBytes - length);
      data.lkey = here_.datagram_key();
    }
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
