#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "testbench/fuzz/wqe_fuzzer.hpp"

namespace rnic::testbench {
/// `truthful`: the request names its own queue pair and place. It does so to the window, which is a doorbell.
void WqeFuzzer::ring_send(FuzzProcess::Qp& qp, const Wqe& wqe, bool truthful) {
  if (random_.chance(0.2)) return;  // a later doorbell will cover it
  if (random_.chance(0.4)) {
    const bool disorderly = qp.kind != FuzzProcess::Kind::kFast && lies(0.2);
    if (last_pushed_ != nullptr && (disorderly || pushed_part_)) last_pushed_->lied();
    pushed_part_ = disorderly;
    if (pushed_part_ || !truthful) qp.lied();
    last_pushed_ = truthful ? &qp : nullptr;
    qp.sq_rung = qp.sq_producer;
    return push_window(wqe, disorderly);
  }
  const bool lie = lies(0.05);
  if (lie) qp.lied();
  qp.sq_rung = qp.sq_producer;
  const auto index = lie ? static_cast<std::uint16_t>(random_.next()) : qp.sq_producer;
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
  if (own) qp.lied();
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
  constexpr std::uint32_t kWindowBytes = 1U << FuzzProcess::kLogStride;
  if (!tlp.data.empty() && last_pushed_ != nullptr && offset < hw::uar::kWqeWindow + kWindowBytes &&
      offset + 4u * tlp.length_dw > hw::uar::kWqeWindow)
    last_pushed_->lied();
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

}  // namespace rnic::testbench
