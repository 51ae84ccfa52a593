#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <unordered_map>
#include <vector>

#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

/// The host's side of DMA for block tests: memory, a checker of request TLPs, and a completer that splits, reorders and
/// breaks completions.
namespace rnic::test {

/// Memory whose bytes have a value before they are written: a hash of their address.
class DmaMemory {
 public:
  std::uint8_t read(std::uint64_t addr) const {
    const auto it = bytes_.find(addr);
    if (it != bytes_.end()) return it->second;
    std::uint64_t x = (addr >> 3) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 29;
    return static_cast<std::uint8_t>(x * 0xBF58476D1CE4E5B9ull >> (8 * (addr & 7)));
  }
  void write(std::uint64_t addr, std::uint8_t value) { bytes_[addr] = value; }
  bool written(std::uint64_t addr) const { return bytes_.count(addr) != 0; }
  std::size_t bytes_written() const { return bytes_.size(); }

 private:
  std::unordered_map<std::uint64_t, std::uint8_t> bytes_;
};

/// First byte and byte count that a request TLP asks for. Fails the test when the header is not legal (PCI Express base
/// specification 2.2.5, 2.2.7).
struct TlpRange {
  std::uint64_t addr = 0;
  std::uint32_t bytes = 0;
};
inline TlpRange check_request(const rtl::DmaReqHdr& h, std::uint32_t max_bytes) {
  REQUIRE(h.addr % 4 == 0);
  REQUIRE(h.length_dw >= 1);
  REQUIRE(4u * h.length_dw <= max_bytes);
  REQUIRE((h.addr % 4096) + 4u * h.length_dw <= 4096);
  REQUIRE(h.first_be != 0);
  const auto lead = [](unsigned be) {
    unsigned n = 0;
    while (!(be >> n & 1)) ++n;
    return n;
  };
  const auto trail = [](unsigned be) {
    unsigned n = 0;
    while (!(be << n & 8)) ++n;
    return n;
  };
  TlpRange range{h.addr + lead(h.first_be), 4u * h.length_dw - lead(h.first_be)};
  if (h.length_dw == 1) {
    REQUIRE(h.last_be == 0);
    range.bytes -= trail(h.first_be);
    REQUIRE(h.first_be == ((0xFu << lead(h.first_be)) & (0xFu >> trail(h.first_be))));
  } else {
    REQUIRE(h.last_be != 0);
    REQUIRE(h.first_be == ((0xFu << lead(h.first_be)) & 0xF));
    REQUIRE(h.last_be == 0xFu >> trail(h.last_be));
    range.bytes -= trail(h.last_be);
  }
  return range;
}

enum class Fault {
  kNone,
  kUnsupported,
  kAbort,
  kAbortWithData,
  kPoison,
  kByteCount,
  kLooksLast,  ///< By its byte count; others follow all the same
  kBoundary,   ///< Ends between two boundaries
  kLowerAddr,
  kTooShort,
  kTooLong,
  kExtraBeat,
  kMissingBeat,
  kDrop,
  kLate
};

/// A read that has left the NIC.
struct HostRead {
  std::uint16_t tag = 0;
  std::uint64_t addr = 0;
  std::uint32_t bytes = 0, sent = 0;
  std::uint64_t ready_at = 0;
  Fault fault = Fault::kNone;
  std::uint32_t fault_at = 0;  ///< The completion that holds this byte is the broken one
};

/// Answers the reads given to `request`, on the dma_cpl port of a model.
template <typename Model>
class DmaCompleter : public Agent {
 public:
  explicit DmaCompleter(Bench<Model>& bench) : bench_(bench) {}

  std::uint64_t min_latency = 20, max_latency = 200, late_by = 10000;
  std::uint64_t quarantine = ~0ull >> 1;  ///< A tag whose completions are lost must not come back sooner
  std::uint32_t rcb = 64;                 ///< Completions break at multiples of it
  bool shuffle = true;                    ///< Reads overtake each other, completions are split at random
  double rate = 1.0;                      ///< Chance that a beat is offered in a cycle
  std::function<Fault(const TlpRange&)> choose_fault;
  DmaMemory memory;
  std::uint64_t beats = 0;

  void request(std::uint16_t tag, const TlpRange& range) {
    for (const auto& r : reads_) REQUIRE(r.tag != tag);
    for (const auto& [lost, since] : lost_) REQUIRE((lost != tag || bench_.cycle > since + quarantine));
    REQUIRE(std::count_if(reads_.begin(), reads_.end(), [](const auto& r) { return r.fault == Fault::kNone; }) < 64);
    HostRead r{tag,          range.addr, range.bytes, 0, bench_.cycle + bench_.uniform(min_latency, max_latency),
               Fault::kNone, 0};
    if (choose_fault) r.fault = choose_fault(range);
    r.fault_at = static_cast<std::uint32_t>(bench_.uniform(0, range.bytes - 1));
    if (r.fault == Fault::kLate) r.ready_at += late_by;
    reads_.push_back(r);
  }
  /// Puts a completion that nobody asked for on the port.
  void stray(std::uint16_t tag) {
    HostRead r{tag, bench_.uniform(0, 4095) & ~3ull, 64, 0, 0, Fault::kNone, 0};
    emit(r);
  }
  std::size_t waiting() const { return reads_.size(); }
  bool uses(std::uint16_t tag) const {
    return std::any_of(reads_.begin(), reads_.end(), [&](const auto& r) { return r.tag == tag; });
  }

  void drive() override {
    if (!offering_ && beats_.empty()) next();
    if (!offering_ && !beats_.empty() && bench_.chance(rate)) {
      const auto& b = beats_.front();
      put(bench_.dut->dma_cpl_hdr_i, b.hdr);
      port_from_bytes(bench_.dut->dma_cpl_data_i, b.data);
      bench_.dut->dma_cpl_last_i = b.last;
      offering_ = true;
    }
    bench_.dut->dma_cpl_valid_i = offering_;
  }
  void sample() override {
    if (!offering_ || !bench_.dut->dma_cpl_ready_o) return;
    beats_.pop_front();
    offering_ = false;
    ++beats;
  }

 private:
  struct Beat {
    rtl::DmaCplHdr hdr;
    std::array<std::uint8_t, 64> data;
    bool last;
  };

  void next() {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < reads_.size(); ++i) {
      if (reads_[i].ready_at <= bench_.cycle) ready.push_back(i);
    }
    if (ready.empty()) return;
    const std::size_t at = ready[shuffle ? bench_.uniform(0, ready.size() - 1) : 0];
    if (emit(reads_[at])) reads_.erase(reads_.begin() + static_cast<std::ptrdiff_t>(at));
  }

  /// One completion of the read; true when nothing more comes for it.
  bool emit(HostRead& r) {
    const std::uint64_t from = r.addr + r.sent;
    const std::uint32_t rest = r.bytes - r.sent;
    std::uint32_t n = rest;
    if (shuffle && bench_.chance(0.7))
      n = std::min<std::uint32_t>(rest, static_cast<std::uint32_t>(bench_.uniform(1, 4) * rcb - from % rcb));
    Fault fault = r.fault_at >= r.sent && r.fault_at < r.sent + n ? r.fault : Fault::kNone;
    const bool between = fault == Fault::kBoundary && n > 8 && from % 64 < 48;
    if (between) n = static_cast<std::uint32_t>(8 - from % 4);
    if (fault == Fault::kDrop) {
      lost_.push_back({r.tag, bench_.cycle});
      return true;
    }
    rtl::DmaCplHdr h;
    h.tag = r.tag;
    h.byte_count = static_cast<std::uint16_t>(rest);
    h.lower_addr = from & 0xfff;
    h.length_dw = static_cast<std::uint16_t>((from % 4 + n + 3) / 4);
    if (fault == Fault::kUnsupported || fault == Fault::kAbort) {
      h.status = static_cast<std::uint8_t>(fault == Fault::kAbort ? rtl::CplStatus::kCompleterAbort
                                                                  : rtl::CplStatus::kUnsupportedRequest);
      h.length_dw = 0;
      beats_.push_back({h, {}, true});
      return true;
    }
    // No completion with such a status has data (PCI Express base specification 2.2.9): what it brings is not used.
    if (fault == Fault::kAbortWithData) h.status = static_cast<std::uint8_t>(rtl::CplStatus::kCompleterAbort);
    h.poisoned = fault == Fault::kPoison;
    if (fault == Fault::kByteCount) h.byte_count = static_cast<std::uint16_t>(h.byte_count + 4);
    if (fault == Fault::kLooksLast) h.byte_count = static_cast<std::uint16_t>(n == rest ? n / 2 : n);
    // There is nothing wrong with so short a one.
    if (fault == Fault::kBoundary && !between) h.byte_count ^= 1;
    if (fault == Fault::kLowerAddr) h.lower_addr ^= 1u << bench_.uniform(0, 6);
    if (fault == Fault::kTooShort) --h.length_dw;
    if (fault == Fault::kTooLong) ++h.length_dw;
    for (std::uint64_t line = from & ~63ull; line < from + n; line += 64) {
      Beat b{h, {}, line + 64 >= from + n};
      for (unsigned i = 0; i < 64; ++i) {
        const bool in = line + i >= from && line + i < from + n;
        b.data[i] = in ? memory.read(line + i) : static_cast<std::uint8_t>(bench_.uniform(0, 255));
      }
      beats_.push_back(b);
    }
    if (fault == Fault::kExtraBeat) {
      beats_.push_back(beats_.back());
      beats_[beats_.size() - 2].last = false;
    }
    if (fault == Fault::kMissingBeat) {
      if (beats_.size() > 1) {
        beats_.pop_back();
        beats_.back().last = true;
      } else {
        beats_.back().hdr.byte_count ^= 1;
      }
    }
    r.sent += n;
    return r.sent == r.bytes || fault == Fault::kAbortWithData;
  }

  Bench<Model>& bench_;
  std::deque<HostRead> reads_;
  std::vector<std::pair<std::uint16_t, std::uint64_t>> lost_;  ///< Tag, time
  std::deque<Beat> beats_;
  bool offering_ = false;
};

}  // namespace rnic::test
