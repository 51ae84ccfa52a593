#include "model/reference/registers.hpp"

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

constexpr std::uint64_t kUarBytes = 4096, kBarBytes = kUarBytes * kUars;
constexpr std::size_t kDoorbellBytes = 0x28, kWindow = 0x800, kWindowBytes = 256;

/// Block headers: {next offset, version 1, type}.
constexpr std::uint64_t header(unsigned type, std::uint64_t next) { return next << 32 | 1u << 16 | type; }

/// First enabled byte of a request, and the bytes to the last one; a request without any is for one byte (2.2.5).
void enabled_range(const HostRequest& request, HostAnswer& answer) {
  const std::uint8_t last_be = request.dwords > 1 ? request.last_be : request.first_be;
  unsigned first = 0, last = 3;
  while (first < 3 && (request.first_be >> first & 1) == 0) ++first;
  while (last > 0 && (last_be >> last & 1) == 0) --last;
  if (request.first_be == 0) first = 0;
  const std::size_t end = (request.dwords - std::size_t{1}) * 4 + last + 1;
  answer.address = request.address + first;
  answer.bytes = end > first ? static_cast<std::uint32_t>(end - first) : 1;
}

std::uint64_t byte_mask(std::uint8_t enables, unsigned dword) {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < 4; ++i)
    if ((enables >> i & 1) != 0) mask |= std::uint64_t{0xff} << (8 * (4 * dword + i));
  return mask;
}

}  // namespace

std::optional<HostAnswer> Registers::request(const HostRequest& request) {
  using Kind = HostRequest::Kind;
  const bool page0 = request.address < kUarBytes, inside = request.address + 4 * request.dwords <= kBarBytes;
  const bool one = request.dwords == 1,
             two = request.dwords == 2 && request.address % 8 == 0 && request.first_be != 0 && request.last_be != 0;
  HostAnswer answer;
  if (request.kind == Kind::Read || request.kind == Kind::Other) {
    enabled_range(request, answer);
    const bool good = request.kind == Kind::Read && inside && (page0 ? one || two : true);
    if (!good) {
      nic_.count(Count::HostUnsupported);
      answer.unsupported = true;
      return answer;
    }
    answer.data.assign(request.dwords * std::size_t{4}, 0);
    if (page0) {
      const std::uint64_t value = read(request.address & ~std::uint64_t{7});
      const std::size_t skip = request.address % 8;
      for (std::size_t i = 0; i < answer.data.size(); ++i)
        answer.data[i] = static_cast<std::uint8_t>(value >> (8 * (skip + i)));
    }
    return answer;
  }
  const bool full = request.first_be == 15 && (one || request.last_be == 15);
  const std::size_t bytes = request.data.size(), at = request.address % kUarBytes;
  const auto uar = static_cast<std::uint8_t>(request.address / kUarBytes);
  const bool good = request.kind == Kind::Write && !request.poisoned && inside;
  if (good && page0 && (one || two)) {
    const unsigned dword = request.address % 8 / 4;
    std::uint64_t mask = byte_mask(request.first_be, dword), value = little(request.data, 0, 4) << (32 * dword);
    if (two) {
      mask |= byte_mask(request.last_be, 1);
      value = little(request.data, 0, 8);
    }
    write(request.address & ~std::uint64_t{7}, value, mask);
  } else if (good && !page0 && full && two && at < kDoorbellBytes) {
    if (nic_.enabled()) doorbell(uar, at, little(request.data, 0, 8));
  } else if (good && !page0 && full && at >= kWindow && at < kWindow + kWindowBytes && bytes >= 8 && bytes <= 64 &&
             (bytes & (bytes - 1)) == 0 && at % bytes == 0) {
    if (nic_.enabled()) window(uar, at - kWindow, request.data);
  } else {
    nic_.count(Count::HostUnsupported);
  }
  return std::nullopt;
}

std::uint64_t Registers::read(std::uint64_t offset) const {
  if (offset >= 0x400 && offset < 0x600) return nic_.interrupts.table[(offset - 0x400) / 8];
  if (offset >= 0x800 && offset < 0x800 + 8 * kCounters) return nic_.counter((offset - 0x800) / 8);
  switch (offset) {
    case 0x000: return header(1, 0x080);
    case 0x008: return std::uint64_t{21070} << 48 | std::uint64_t{4660} << 32 | 1380862275;
    case 0x010: return nic_.enable ? 1 : 0;
    case 0x018: return 1u | (nic_.admin.fatal() ? 2u : 0u) | (nic_.quiet() ? 4u : 0u);
    case 0x020: return nic_.clock.now() / kCycle;
    case 0x028: return nic_.pcie.timeout_range;
    case 0x080: return header(2, 0x100);
    case 0x088: return nic_.admin.command_base;
    case 0x090: return nic_.admin.completion_base;
    case 0x098: return nic_.admin.config();
    case 0x0a0: return nic_.admin.producer();
    case 0x100: return header(3, 0x180);
    case 0x108: return nic_.mac;
    case 0x118: return nic_.ethernet.control;
    case 0x120: return nic_.ethernet.groups;
    case 0x110: return nic_.settings.link_up ? 1 : 0;
    case 0x180: return header(4, 0x1c0);
    case 0x1c0: return header(5, 0);
    case 0x600: return nic_.interrupts.pending();
    default: return 0;
  }
}

void Registers::write(std::uint64_t offset, std::uint64_t value, std::uint64_t mask) {
  if (mask == 0) return;
  const std::uint64_t merged = (read(offset) & ~mask) | (value & mask);
  if (offset >= 0x400 && offset < 0x600) {
    const std::size_t index = (offset - 0x400) / 8;
    nic_.interrupts.table[index] = index % 2 == 0 ? merged : merged & 0x1ffffffff;
    return nic_.interrupts.look();
  }
  switch (offset) {
    case 0x010: return nic_.set_enable((merged & 1) != 0);
    case 0x028: {
      const std::uint64_t range = merged & 15;
      const bool known = range <= 2 || range == 5 || range == 6 || range == 9 || range == 10;
      if (known) nic_.pcie.timeout_range = static_cast<std::uint8_t>(range);
      return nic_.pcie.retime();
    }
    case 0x088: nic_.admin.command_base = merged; return;
    case 0x090: nic_.admin.completion_base = merged; return;
    case 0x098: return nic_.admin.configure(merged);
    case 0x0a0: return nic_.admin.doorbell(static_cast<std::uint16_t>(merged));
    case 0x108: nic_.mac = merged & 0xffffffffffff; return;
    case 0x118: nic_.ethernet.control = merged & 0x7ffffff; return;
    case 0x120: nic_.ethernet.groups = merged; return;
    default: return;
  }
}

void Registers::doorbell(std::uint8_t uar, std::uint64_t offset, std::uint64_t value) {
  const auto number = static_cast<std::uint32_t>(value & kMask24);
  const auto producer = static_cast<std::uint16_t>(value >> 32);
  const auto consumer = static_cast<std::uint32_t>(value >> 32 & kMask24);
  bool taken = true;
  switch (offset) {
    case 0x00: taken = nic_.qps.send_doorbell(number, producer, uar); break;
    case 0x08:
      nic_.count(Count::ReceiveDoorbells);
      taken = nic_.qps.receive_doorbell(number, producer, uar);
      break;
    case 0x10:
      nic_.count(Count::CqDoorbells);
      taken = nic_.queues.cq_doorbell(number, static_cast<Arm>(value >> 24 & 3), consumer, uar);
      break;
    case 0x18: taken = uar == 1 && nic_.queues.eq_doorbell(number, consumer); break;
    case 0x20:
      nic_.count(Count::ReceiveDoorbells);
      taken = nic_.queues.srq_doorbell(number, producer, uar);
      break;
    default: break;
  }
  if (!taken) nic_.count(Count::DoorbellsRefused);
}

/// Pieces in ascending order make a WQE, which is posted with its last 16 bytes. In another order its first 8 bytes
/// are a doorbell, and it is taken from the ring; so it is when it has a size that no WQE has (decisions 52).
void Registers::window(std::uint8_t uar, std::size_t offset, const Bytes& piece) {
  Window& window = windows_[uar];
  if (offset != window.wqe.size() || (offset == 0 && window.mixed)) {
    if (!window.wqe.empty()) post_from_ring(uar, window.wqe);
    window.wqe.clear();
    if (offset != 0) {
      window.mixed = true;
      return;
    }
    if (window.mixed) post_from_ring(uar, piece);
    if (window.mixed) {
      window.mixed = false;
      return;
    }
  }
  window.wqe.insert(window.wqe.end(), piece.begin(), piece.end());
  const std::size_t size = window.wqe[7] * std::size_t{16};
  const bool sized = size != 0 && size <= kWindowBytes;
  if (sized && window.wqe.size() < size) return;
  const Bytes wqe = std::exchange(window.wqe, {});
  const auto index = static_cast<std::uint16_t>(little(wqe, 2, 2));
  const QpPtr qp = nic_.qps.find(static_cast<std::uint32_t>(little(wqe, 4, 3)));
  if (sized && qp && qp->uar == uar && index == qp->sq_producer && qp->state == QpState::Rts &&
      size <= std::size_t{1} << qp->sq_log_stride &&
      static_cast<std::uint16_t>(index - qp->sq_retired) < 1u << qp->sq_log_depth) {
    nic_.count(Count::WindowWqes);
    Bytes slot = wqe;
    slot.resize(std::size_t{1} << qp->sq_log_stride);
    qp->fetched[index] = std::move(slot);
    (void)nic_.qps.send_doorbell(qp->number, static_cast<std::uint16_t>(index + 1), uar);
    return;
  }
  post_from_ring(uar, wqe);
}

void Registers::post_from_ring(std::uint8_t uar, const Bytes& first) {
  const auto qpn = static_cast<std::uint32_t>(little(first, 4, 3));
  const auto index = static_cast<std::uint16_t>(little(first, 2, 2));
  const bool taken = nic_.qps.send_doorbell(qpn, static_cast<std::uint16_t>(index + 1), uar);
  nic_.count(taken ? Count::WindowFallbacks : Count::DoorbellsRefused);
}

}  // namespace rnic::reference
