#include <algorithm>
#include <cstring>

#include "testbench/fuzz/wqe_fuzzer.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kFastHeadBytes = hw::WqeControl::kBytes + hw::WqeRange::kBytes + hw::WqeFastRegister::kBytes;

}  // namespace

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

}  // namespace rnic::testbench
