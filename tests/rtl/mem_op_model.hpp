#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <random>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"

/// What memory operations mean (docs/architecture.md "Memory operations"; InfiniBand specification 10.6.7), on a table
/// of entries.
namespace rnic::test {

using hw::MptType;
using rtl::MemOpCode;
using rtl::MemOpStatus;
using rtl::MptState;

/// The inline page list of a FastRegister in the tests: page addresses that follow from the operation, aligned to the
/// largest page. `mr_key`, which the operation has no use for, names one that is not: its place in bits 7:0 (from 1 on,
/// 0: none is), the bit that is set in bits 15:8.
struct InlineList {
  static std::uint64_t page(const rtl::MemOp& op, std::uint32_t i) {
    std::uint64_t x = (op.va ^ op.length << 20 ^ std::uint64_t{op.key} << 32 ^ i) * 0x9E3779B97F4A7C15ull;
    x ^= x >> 31;
    x = (x * 0xBF58476D1CE4E5B9ull) & ~((1ull << 30) - 1);
    return (op.mr_key & 255) == i + 1 ? x | 1ull << (op.mr_key >> 8 & 63) : x;
  }
  static bool aligned(const rtl::MemOp& op) {
    const std::uint64_t within = op.log_page < 64 ? (1ull << op.log_page) - 1 : ~0ull;
    for (std::uint32_t i = 0; i < op.page_count; ++i) {
      if (page(op, i) & within) return false;
    }
    return true;
  }
  static std::uint32_t lines(const rtl::MemOp& op) { return (op.page_count + 6 + 7) / 8; }
  /// Line n of its WQE. What is not of the list is noise.
  static rtl::MemList line(const rtl::MemOp& op, std::uint32_t n, std::mt19937_64& rng) {
    rtl::MemList line;
    for (std::uint32_t i = 0; i < 8; ++i) {
      const std::uint32_t word = 8 * n + i;
      const std::uint64_t value = word >= 6 && word - 6 < op.page_count ? page(op, word - 6) : rng();
      std::memcpy(line.data.data() + 8 * i, &value, 8);
    }
    return line;
  }
};

struct MemOpModel {
  using Wide = unsigned __int128;
  static constexpr std::uint32_t kIndexes = 1u << hw::kMptIndexBits;
  std::map<std::uint32_t, rtl::Mpt> entries;  ///< By index; absent: free

  static bool is(const rtl::Mpt& e, MptType type) { return e.mpt_type == static_cast<std::uint8_t>(type); }
  static bool is_valid(const rtl::Mpt& e) { return e.state == static_cast<std::uint8_t>(MptState::kValid); }
  static bool is_window(const rtl::Mpt& e) { return is(e, MptType::kWindow1) || is(e, MptType::kWindow2); }

  rtl::Mpt at(std::uint32_t index) const {
    const auto found = entries.find(index);
    return found == entries.end() ? rtl::Mpt{} : found->second;
  }

  /// Outcome of an operation, and its effect on the table. UnbindQp: all at once.
  MemOpStatus apply(const rtl::MemOp& op) {
    const auto code = static_cast<MemOpCode>(op.op);
    if (code == MemOpCode::kUnbindQp) {
      for (auto& [index, e] : entries) {
        if (is(e, MptType::kWindow2) && is_valid(e) && e.qp == op.qp) unbind(e);
      }
      return MemOpStatus::kOk;
    }
    const std::uint32_t index = op.key >> 8;
    const auto found = index < kIndexes ? entries.find(index) : entries.end();
    if (found == entries.end()) return MemOpStatus::kBadKey;
    auto& e = found->second;
    const auto tag = static_cast<std::uint8_t>(op.key);
    if (code == MemOpCode::kDestroy) {
      if (e.mpt_type != op.mpt_type || (is(e, MptType::kRegion) && e.tag != tag)) return MemOpStatus::kBadKey;
      if (e.bound) return MemOpStatus::kBadState;
      if (is_window(e) && is_valid(e)) unbind(e);
      entries.erase(index);
      return MemOpStatus::kOk;
    }
    if (e.pd != op.pd) return MemOpStatus::kBadKey;
    switch (code) {
      case MemOpCode::kBindWindow1:
      case MemOpCode::kBindWindow2: return bind(op, e, code == MemOpCode::kBindWindow1);
      case MemOpCode::kInvalidate:
      case MemOpCode::kInvalidateRemote:
        if (!is(e, MptType::kWindow2) && !is(e, MptType::kFastRegion)) return MemOpStatus::kBadRequest;
        if (!is_valid(e) || e.bound) return MemOpStatus::kBadState;  // decisions 18
        if (e.tag != tag) return MemOpStatus::kBadKey;
        if (is(e, MptType::kWindow2)) {
          if (e.qp != op.qp) return MemOpStatus::kBadAccess;
          unbind(e);
        } else {
          if (code == MemOpCode::kInvalidateRemote && !e.remote_read && !e.remote_write && !e.remote_atomic)
            return MemOpStatus::kBadAccess;
          e.state = static_cast<std::uint8_t>(MptState::kInvalid);
        }
        return MemOpStatus::kOk;
      default: return fast_register(op, e);
    }
  }

  void unbind(rtl::Mpt& window) {
    window.state = static_cast<std::uint8_t>(MptState::kInvalid);
    --entries.at(window.mr_index).bound;
  }

 private:
  MemOpStatus bind(const rtl::MemOp& op, rtl::Mpt& e, bool type1) {
    if (!is(e, type1 ? MptType::kWindow1 : MptType::kWindow2)) return MemOpStatus::kBadRequest;
    if (!type1 && is_valid(e)) return MemOpStatus::kBadState;  // decisions 19
    if (type1 && op.length == 0) {
      if (is_valid(e)) unbind(e);
      e.tag = static_cast<std::uint8_t>(op.key);
      return MemOpStatus::kOk;
    }
    const auto found = entries.find(op.mr_key >> 8);
    if (found == entries.end()) return MemOpStatus::kBadKey;  // decisions 14
    auto& region = found->second;
    if (is_window(region) || !is_valid(region) || region.tag != (op.mr_key & 0xff) || region.pd != op.pd)
      return MemOpStatus::kBadKey;
    if (!region.window_bind) return MemOpStatus::kBadAccess;
    if ((op.remote_write || op.remote_atomic) && !region.local_write) return MemOpStatus::kBadAccess;  // decisions 21
    const Wide end = Wide(op.va) + op.length;
    if (op.va < region.va || end > Wide(region.va) + region.length || end > Wide(1) << 64)
      return MemOpStatus::kBadRange;
    if (is_valid(e)) unbind(e);
    ++region.bound;
    e.state = static_cast<std::uint8_t>(MptState::kValid);
    e.tag = static_cast<std::uint8_t>(op.key);
    e.log_page = region.log_page;
    e.local_write = 0;
    e.read_sink = 0;
    e.remote_read = op.remote_read;
    e.remote_write = op.remote_write;
    e.remote_atomic = op.remote_atomic;
    e.va = op.va;
    e.length = op.length;
    e.on_chip = region.on_chip;
    e.page_list = region.page_list + 8 * ((op.va >> region.log_page) - (region.va >> region.log_page));
    e.qp = op.qp;
    e.mr_index = static_cast<std::uint16_t>(op.mr_key >> 8);
    return MemOpStatus::kOk;
  }

  static MemOpStatus fast_register(const rtl::MemOp& op, rtl::Mpt& e) {
    if (!is(e, MptType::kFastRegion)) return MemOpStatus::kBadRequest;
    if (is_valid(e)) return MemOpStatus::kBadState;  // decisions 19
    if (op.log_page < 12 || op.log_page > 30 || op.page_list % 8) return MemOpStatus::kBadRequest;
    if (op.page_count == 0 || op.page_count > e.max_pages) return MemOpStatus::kBadRequest;
    if (op.inline_list && (op.page_list != 0 || e.list_lines == 0 || op.page_count > 8u * e.list_lines - 6))
      return MemOpStatus::kBadRequest;
    if (op.first_offset != (op.va & ((1ull << op.log_page) - 1))) return MemOpStatus::kBadRequest;
    if ((op.remote_write || op.remote_atomic) && !op.local_write) return MemOpStatus::kBadRequest;
    if ((op.remote_read || op.remote_write || op.remote_atomic) && !e.remote_ok)
      return MemOpStatus::kBadAccess;  // decisions 21
    if (op.length == 0 || op.length > 1ull << 47 || Wide(op.va) + op.length > Wide(1) << 64)
      return MemOpStatus::kBadRange;
    if (Wide(op.first_offset) + op.length > Wide(op.page_count) << op.log_page) return MemOpStatus::kBadRange;
    if (op.inline_list && !InlineList::aligned(op)) return MemOpStatus::kBadRequest;
    e.state = static_cast<std::uint8_t>(MptState::kValid);
    e.tag = static_cast<std::uint8_t>(op.key);
    e.log_page = op.log_page;
    e.local_write = op.local_write;
    e.read_sink = op.read_sink;
    e.remote_read = op.remote_read;
    e.remote_write = op.remote_write;
    e.remote_atomic = op.remote_atomic;
    e.va = op.va;
    e.length = op.length;
    e.on_chip = op.inline_list;
    e.page_list = op.inline_list ? 64u * e.list_line + 48u : op.page_list;
    return MemOpStatus::kOk;
  }
};

/// Random entries and operations on few indexes, so that they meet; mostly legal, with a field spoilt now and then.
class MemOpMaker {
 public:
  /// Entries 0 to 3 are regions, 4 and 5 fast-register regions, 6 to 9 windows of type 1, 10 to 19 of type 2B. They lie
  /// all over the table. Some fast-register regions have lines on chip.
  static constexpr std::uint32_t kEntries = 20;
  explicit MemOpMaker(std::mt19937_64& rng) : rng_(rng) {}

  static std::uint32_t index(std::uint32_t n) { return n * 863 % MemOpModel::kIndexes; }
  static MptType type(std::uint32_t n) {
    return n < 4 ? MptType::kRegion : n < 6 ? MptType::kFastRegion : n < 10 ? MptType::kWindow1 : MptType::kWindow2;
  }

  /// A new entry for place n, as the admin queue would write it.
  rtl::Mpt fresh(std::uint32_t n) {
    rtl::Mpt e;
    e.mpt_type = static_cast<std::uint8_t>(type(n));
    e.state = static_cast<std::uint8_t>(type(n) == MptType::kRegion ? MptState::kValid : MptState::kInvalid);
    e.tag = static_cast<std::uint8_t>(rng_());
    e.pd = pd();
    if (type(n) == MptType::kFastRegion) {
      e.max_pages = static_cast<std::uint16_t>(uniform(1, 300));
      e.remote_ok = chance(0.8);
      e.window_bind = chance(0.8);
      // Disjoint, and up to the last line there is.
      e.list_lines = static_cast<std::uint8_t>(uniform(0, 8));
      e.list_line =
          static_cast<std::uint16_t>(n == 4 ? hw::kListLines - std::max<unsigned>(e.list_lines, 1) : uniform(0, 900));
    }
    if (type(n) == MptType::kRegion) {
      e.log_page = static_cast<std::uint8_t>(chance(0.7) ? 12 : uniform(12, 30));
      e.length = uniform(1, 200ull << 12);
      e.va = chance(0.1) ? std::uint64_t{0} - e.length : chance(0.1) ? 0 : uniform(0, ~0ull >> 1);
      e.local_write = chance(0.8);
      e.read_sink = chance(0.5);
      e.remote_read = chance(0.5);
      e.remote_write = e.local_write && chance(0.5);
      e.remote_atomic = e.local_write && chance(0.5);
      e.window_bind = chance(0.9);
      e.page_list = std::uint64_t{n + 1} << 40;
    }
    return e;
  }

  rtl::MemOp next(const MemOpModel& model) {
    static constexpr MemOpCode kCodes[] = {
        MemOpCode::kBindWindow1, MemOpCode::kBindWindow2, MemOpCode::kBindWindow2,      MemOpCode::kBindWindow2,
        MemOpCode::kInvalidate,  MemOpCode::kInvalidate,  MemOpCode::kInvalidateRemote, MemOpCode::kFastRegister};
    return make(kCodes[uniform(0, std::size(kCodes) - 1)], model);
  }
  rtl::MemOp make(MemOpCode code, const MemOpModel& model) {
    rtl::MemOp op;
    op.op = static_cast<std::uint8_t>(code);
    op.qp = static_cast<std::uint8_t>(uniform(0, 2));
    std::uint32_t n = static_cast<std::uint32_t>(uniform(10, 19));
    if (code == MemOpCode::kBindWindow1) n = static_cast<std::uint32_t>(uniform(6, 9));
    if (code == MemOpCode::kFastRegister ||
        (code != MemOpCode::kBindWindow2 && code != MemOpCode::kBindWindow1 && chance(0.3)))
      n = static_cast<std::uint32_t>(uniform(4, 5));
    if (chance(0.05)) n = static_cast<std::uint32_t>(uniform(0, kEntries - 1));
    const auto target = model.at(index(n));
    op.pd = chance(0.95) ? target.pd : pd();
    op.key = index(n) << 8;
    const bool takes = code == MemOpCode::kInvalidate || code == MemOpCode::kInvalidateRemote;
    op.key |= takes && chance(0.95) ? target.tag : static_cast<std::uint32_t>(rng_() & 0xff);
    if (takes && chance(0.9)) op.qp = target.qp;
    if (chance(0.01)) op.key |= 1u << uniform(22, 31);
    if (code == MemOpCode::kDestroy) {
      op.mpt_type = static_cast<std::uint8_t>(chance(0.95) ? target.mpt_type : uniform(0, 3));
      if (chance(0.95)) op.key = (op.key & ~0xffu) | target.tag;
    }
    if (code == MemOpCode::kBindWindow1 || code == MemOpCode::kBindWindow2) bind(op, model);
    if (code == MemOpCode::kFastRegister) fast(op, n, target);
    return op;
  }

 private:
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(rng_) < probability; }
  std::uint64_t uniform(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(rng_);
  }
  std::uint32_t pd() { return static_cast<std::uint32_t>(chance(0.9) ? 1 : 2); }

  void bind(rtl::MemOp& op, const MemOpModel& model) {
    const auto n = static_cast<std::uint32_t>(chance(0.05) ? uniform(0, kEntries - 1) : uniform(0, 5));
    const auto region = model.at(index(n));
    op.mr_key = index(n) << 8 | (chance(0.97) ? region.tag : static_cast<std::uint32_t>(rng_() & 0xff));
    if (chance(0.01)) op.mr_key |= 1u << uniform(22, 31);
    op.remote_read = chance(0.7);
    op.remote_write = chance(0.4);
    op.remote_atomic = chance(0.2);
    const std::uint64_t size = region.length ? region.length : 1, from = uniform(0, size - 1);
    op.va = region.va + from;
    op.length = chance(0.2) ? size - from : uniform(1, size - from);
    if (chance(0.1)) op.length = chance(0.5) ? 0 : size - from + uniform(0, 1);
    if (chance(0.03)) op.va = region.va - 1;
    if (chance(0.03)) op.length = rng_();
    if (chance(0.02)) op.va = rng_();
  }
  void fast(rtl::MemOp& op, std::uint32_t n, const rtl::Mpt& target) {
    op.log_page = static_cast<std::uint8_t>(chance(0.7) ? 12 : uniform(12, 30));
    op.page_count = static_cast<std::uint32_t>(uniform(1, std::max<unsigned>(1, target.max_pages)));
    op.local_write = chance(0.8);
    op.read_sink = chance(0.5);
    op.remote_read = chance(0.5);
    op.remote_write = op.local_write && chance(0.4);
    op.remote_atomic = op.local_write && chance(0.2);
    op.page_list = (std::uint64_t{n + 1} << 40) + 8 * uniform(0, 20);
    if (target.list_lines != 0 && chance(0.5)) {
      op.inline_list = 1;
      op.page_list = 0;
      const auto most = std::min<std::uint64_t>(8u * target.list_lines - 6, target.max_pages);
      op.page_count = static_cast<std::uint32_t>(chance(0.2) ? most : uniform(1, most));
      if (chance(0.1))
        op.mr_key = static_cast<std::uint32_t>(uniform(1, op.page_count) | uniform(0, op.log_page - 1) << 8);
    }
    const std::uint64_t page = 1ull << op.log_page, room = op.page_count * page;
    op.first_offset = static_cast<std::uint32_t>(chance(0.3) ? 0 : uniform(0, page - 1));
    op.length = chance(0.3) ? room - op.first_offset : uniform(1, room - op.first_offset);
    op.va = uniform(0, ~0ull >> 1) / page * page + op.first_offset;
    if (chance(0.05))
      op.va = std::uint64_t{0} - (op.length + op.first_offset + page - 1) / page * page + op.first_offset;
    switch (chance(0.25) ? uniform(0, 9) : 10) {
      case 0: op.length = room - op.first_offset + 1; break;
      case 1: op.length = chance(0.5) ? 0 : rng_(); break;
      case 2: op.page_count = static_cast<std::uint32_t>(chance(0.5) ? 0 : target.max_pages + 1u); break;
      case 3: op.log_page = static_cast<std::uint8_t>(chance(0.5) ? 11 : rng_()); break;
      case 4: op.page_list += uniform(1, 7); break;
      case 5: op.first_offset ^= 1u << uniform(0, 31); break;
      case 6: op.va = rng_(); break;
      case 7: op.remote_write = 1; break;
      case 8: op.inline_list ^= 1; break;
      case 9: op.page_count = 8u * target.list_lines - 5; break;
      default: break;
    }
  }

  std::mt19937_64& rng_;
};

}  // namespace rnic::test
