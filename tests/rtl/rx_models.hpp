#pragma once

#include <map>
#include <optional>
#include <unordered_map>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

/// What surrounds the receive engine in its unit tests: translation, DMA writes, DMA reads, payload; and a model of
/// where payload goes.
namespace rnic::test {

using Bytes = std::vector<std::uint8_t>;

inline Bytes random_bytes(std::mt19937_64& rng, std::size_t size) {
  Bytes bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng());
  return bytes;
}

inline bool toss(std::mt19937_64& rng, double probability) {
  return std::uniform_real_distribution<>(0, 1)(rng) < probability;
}

/// Sparse memory; remembers only bytes that were written.
struct ByteMemory {
  std::unordered_map<std::uint64_t, std::uint8_t> bytes;
  void write(std::uint64_t addr, std::span<const std::uint8_t> data) {
    for (std::size_t i = 0; i < data.size(); ++i) bytes[addr + i] = data[i];
  }
  std::uint8_t read(std::uint64_t addr) const {
    const auto found = bytes.find(addr);
    return found == bytes.end() ? 0 : found->second;
  }
};

/// Payload of a packet as beats.
inline std::vector<rtl::PayloadBeat> payload_beats(const Bytes& payload, std::mt19937_64& rng) {
  std::vector<rtl::PayloadBeat> beats;
  for (std::size_t at = 0; at < payload.size(); at += 64) {
    rtl::PayloadBeat beat;
    for (auto& byte : beat.data) byte = static_cast<std::uint8_t>(rng());
    beat.bytes = static_cast<std::uint8_t>(std::min<std::size_t>(64, payload.size() - at));
    std::copy_n(payload.begin() + static_cast<std::ptrdiff_t>(at), beat.bytes, beat.data.begin());
    beat.last = at + 64 >= payload.size();
    beats.push_back(beat);
  }
  return beats;
}

/// Memory regions and their pages, as the translation block sees them (rtl/streams.toml: Access, XlateStatus).
class RegionTable {
 public:
  struct Region {
    std::uint32_t key = 0, pd = 0;
    std::uint64_t va = 0, length = 0;
    int log_page = 12;
    bool local_write = true, read_sink = false, remote_read = true, remote_write = true, remote_atomic = true,
         page_list_error = false;
  };
  void add(const Region& region) { regions_[region.key >> 8] = region; }
  rtl::XlateStatus check(std::uint32_t key, std::uint64_t va, std::uint64_t length, std::uint32_t pd,
                         rtl::Access access) const {
    const auto found = regions_.find(key >> 8);
    if (found == regions_.end()) return rtl::XlateStatus::kBadIndex;
    const auto& r = found->second;
    if (r.key != key) return rtl::XlateStatus::kBadTag;
    if (r.pd != pd) return rtl::XlateStatus::kBadPd;
    if ((access == rtl::Access::kLocalWrite && !r.local_write) ||
        (access == rtl::Access::kLocalSink && !r.local_write && !r.read_sink) ||
        (access == rtl::Access::kRemoteRead && !r.remote_read) ||
        (access == rtl::Access::kRemoteWrite && !r.remote_write) ||
        (access == rtl::Access::kRemoteAtomic && !r.remote_atomic))
      return rtl::XlateStatus::kBadAccess;
    if (va < r.va || va - r.va > r.length || length > r.length - (va - r.va)) return rtl::XlateStatus::kBadRange;
    return r.page_list_error ? rtl::XlateStatus::kPageListError : rtl::XlateStatus::kOk;
  }
  /// DMA address of `va`; pages are given out in the order of first use.
  std::uint64_t translate(std::uint32_t key, std::uint64_t va) {
    const auto& r = regions_.at(key >> 8);
    const auto [entry, fresh] = pages_.try_emplace({key >> 8, va >> r.log_page}, next_page_);
    if (fresh) next_page_ += 1ULL << 20;
    return entry->second + (va & ((1ULL << r.log_page) - 1));
  }
  std::uint64_t page_left(std::uint32_t key, std::uint64_t va) const {
    const std::uint64_t page = 1ULL << regions_.at(key >> 8).log_page;
    return page - (va & (page - 1));
  }

 private:
  std::map<std::uint32_t, Region> regions_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint64_t> pages_;
  std::uint64_t next_page_ = 0x10'0000'0000;
};

/// The receive port of the translation block: answers in order after a random time, and counts what is handed back.
template <typename Model>
class XlatePort : public Agent {
 public:
  XlatePort(Bench<Model>& bench, RegionTable& regions) : bench_(bench), regions_(regions) { bench.add(*this); }
  void drive() override {
    bench_.dut->xlate_req_ready_i = toss(bench_.rng, rate) && answers_.size() < 64;
    if (!offering_ && !answers_.empty() && answers_.front().first <= bench_.cycle) {
      put(bench_.dut->xlate_rsp_data_i, answers_.front().second);
      offering_ = true;
    }
    bench_.dut->xlate_rsp_valid_i = offering_;
  }
  void sample() override {
    if (bench_.dut->xlate_retire_valid_o) {
      auto& count = open[bench_.dut->xlate_retire_epoch_o];
      REQUIRE(count > 0);
      --count;
    }
    if (offering_ && bench_.dut->xlate_rsp_ready_o) {
      if (answers_.front().second.status == 0) ++open[answers_.front().second.epoch];
      answers_.pop_front();
      offering_ = false;
    }
    if (bench_.dut->xlate_req_valid_o && bench_.dut->xlate_req_ready_i) {
      const auto request = get<rtl::XlateReq>(bench_.dut->xlate_req_data_o);
      REQUIRE(request.length > 0);
      rtl::XlateRsp answer;
      const auto status =
          regions_.check(request.key, request.va, request.length, request.pd, static_cast<rtl::Access>(request.access));
      answer.status = static_cast<std::uint8_t>(status);
      if (status == rtl::XlateStatus::kOk) {
        answer.addr = regions_.translate(request.key, request.va);
        answer.contiguous = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(request.length, regions_.page_left(request.key, request.va)));
        answer.epoch = static_cast<std::uint8_t>(bench_.rng() & 1);
      }
      // One answer every 4 cycles at best, as the real block.
      next_ = std::max(next_ + 4, bench_.cycle + (slow ? bench_.uniform(4, 60) : 6));
      answers_.push_back({next_, answer});
      ++requests;
    }
  }
  bool idle() const { return answers_.empty() && open[0] == 0 && open[1] == 0; }
  double rate = 1.0;
  bool slow = false;
  std::uint64_t requests = 0;
  std::array<std::int64_t, 2> open{};

 private:
  Bench<Model>& bench_;
  RegionTable& regions_;
  std::deque<std::pair<std::uint64_t, rtl::XlateRsp>> answers_;
  std::uint64_t next_ = 0;
  bool offering_ = false;
};

/// A DMA write client port: checks the shape of every request, keeps the bytes, and reports wr_done in order after a
/// random time.
template <typename Model>
class WritePort : public Agent {
 public:
  struct Write {
    std::uint64_t addr = 0;
    Bytes data;
  };
  explicit WritePort(Bench<Model>& bench) : bench_(bench) { bench.add(*this); }
  void drive() override {
    bench_.dut->wr_ready_i = ready_ = toss(bench_.rng, rate);
    if constexpr (requires { bench_.dut->wr_done_i; }) {
      bench_.dut->wr_done_i = 0;
      if (!silent && !pending_.empty() && pending_.front().first <= bench_.cycle) {
        bench_.dut->wr_done_i = 1;
        done_bytes += pending_.front().second;
        pending_.pop_front();
      }
    }
  }
  void sample() override {
    const bool valid = bench_.dut->wr_valid_o;
    if (!valid || !ready_) return;
    const auto beat = get<rtl::DmaWr>(bench_.dut->wr_data_o);
    if (left_ == 0) {
      REQUIRE(beat.length > 0);
      REQUIRE(beat.length <= 4096);
      writes.push_back({beat.addr, {}});
      first_ = beat;
      left_ = beat.length;
    }
    REQUIRE(beat.addr == first_.addr);
    REQUIRE(beat.length == first_.length);
    const std::uint64_t at = beat.addr + beat.length - left_;
    const std::size_t lane = at % 64;
    const std::size_t bytes = std::min<std::size_t>(64 - lane, left_);
    writes.back().data.insert(writes.back().data.end(), beat.data.begin() + lane, beat.data.begin() + lane + bytes);
    memory.write(at, std::span(beat.data).subspan(lane, bytes));
    left_ -= bytes;
    REQUIRE((beat.last != 0) == (left_ == 0));
    if constexpr (requires { bench_.dut->wr_done_i; })
      if (left_ == 0) pending_.push_back({bench_.cycle + bench_.uniform(1, slow ? 100 : 4), first_.length});
    ++lines;
    last_line = bench_.cycle;
  }
  bool idle() const { return left_ == 0 && pending_.empty(); }
  double rate = 1.0;
  bool slow = false;
  bool silent = false;  ///< Nothing is said to be done
  std::vector<Write> writes;
  ByteMemory memory;
  std::uint64_t done_bytes = 0, lines = 0, last_line = 0;

 private:
  Bench<Model>& bench_;
  rtl::DmaWr first_;
  std::size_t left_ = 0;
  bool ready_ = false;
  std::deque<std::pair<std::uint64_t, std::uint64_t>> pending_;
};

/// A DMA read client's answer stream: queued reads of host memory, each after a random time.
template <typename Model>
class ReadPort : public Agent {
 public:
  explicit ReadPort(Bench<Model>& bench) : bench_(bench) { bench.add(*this); }
  void push(std::uint64_t addr, const Bytes& data, bool err) {
    const std::uint64_t ready_at = bench_.cycle + bench_.uniform(latency / 2, latency);
    if (err) {
      rtl::DmaRdRsp beat;
      beat.last = beat.err = 1;
      beats_.push_back({ready_at, beat});
      return;
    }
    for (std::size_t at = 0; at < data.size();) {
      rtl::DmaRdRsp beat;
      for (auto& byte : beat.data) byte = static_cast<std::uint8_t>(bench_.rng());
      beat.offset = static_cast<std::uint8_t>((addr + at) % 64);
      beat.bytes = static_cast<std::uint8_t>(std::min<std::size_t>(64u - beat.offset, data.size() - at));
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(at), beat.bytes, beat.data.begin() + beat.offset);
      at += beat.bytes;
      beat.last = at == data.size();
      beats_.push_back({ready_at, beat});
    }
  }
  void drive() override {
    if (!offering_ && !beats_.empty() && beats_.front().first <= bench_.cycle && toss(bench_.rng, rate)) {
      put(bench_.dut->rd_rsp_data_i, beats_.front().second);
      offering_ = true;
    }
    bench_.dut->rd_rsp_valid_i = offering_;
  }
  void sample() override {
    if (!offering_ || !bench_.dut->rd_rsp_ready_o) return;
    beats_.pop_front();
    offering_ = false;
  }
  bool idle() const { return beats_.empty(); }
  double rate = 1.0;
  std::uint64_t latency = 10;

 private:
  Bench<Model>& bench_;
  std::deque<std::pair<std::uint64_t, rtl::DmaRdRsp>> beats_;
  bool offering_ = false;
};

/// Scatter list of a message as it stands in its WQE.
struct ScatterList {
  bool bad = false;
  bool unread = false;  ///< Bad, because it can't be read
  bool lost = false;    ///< Bad, and its tag can't be known either
  std::uint16_t tag = 0;
  std::vector<hw::WqeData> entries;
};

/// Regions to place payload in, and WQEs with scatter lists into them; on demand, ranges and WQEs that must be refused.
class MemoryWorld {
 public:
  static constexpr std::uint32_t kPd = 7;
  struct Wqe {
    ScatterList list;
    Bytes bytes;
    bool err = false;  ///< Reading it fails
  };

  explicit MemoryWorld(std::mt19937_64& rng) : rng_(rng) {
    for (std::uint32_t i = 1; i <= 12; ++i) {
      RegionTable::Region r{.key = i << 8 | (0x50 + i), .pd = kPd, .va = uniform(0, 1ULL << 40), .length = 1u << 20};
      r.log_page = std::array{12, 12, 14, 16}[i % 4];
      if (i == 1) r.va = ~0ULL - r.length + 1;  // ends at the end of the address space
      regions.add(r);
      good.push_back(r);
    }
    regions.add({.key = 100 << 8, .pd = kPd + 1, .va = 0, .length = 1u << 20});
    regions.add({.key = 101 << 8,
                 .pd = kPd,
                 .va = 0,
                 .length = 1u << 20,
                 .local_write = false,
                 .remote_read = false,
                 .remote_write = false,
                 .remote_atomic = false});
    regions.add({.key = 102 << 8, .pd = kPd, .va = 0, .length = 1u << 20, .page_list_error = true});
    regions.add({.key = 103 << 8,
                 .pd = kPd,
                 .va = 0,
                 .length = 1u << 20,
                 .local_write = false,
                 .read_sink = true,
                 .remote_write = false,
                 .remote_atomic = false});
  }

  /// Key and address of `length` bytes, often across a page boundary; with `fault`, of a range that must be refused.
  std::pair<std::uint32_t, std::uint64_t> range(std::uint64_t length, bool fault) {
    const auto& r = good[uniform(0, good.size() - 1)];
    std::uint64_t offset = uniform(0, r.length - length);
    if (toss(rng_, 0.3)) {
      const std::uint64_t before = uniform(0, std::min<std::uint64_t>(length, 4096));
      offset = std::min<std::uint64_t>(r.length - length, (offset & ~std::uint64_t{0xfff}) + 4096 - before);
    }
    if (!fault) return {r.key, r.va + offset};
    switch (uniform(0, 4)) {
      case 0: return {r.key + 1, r.va};
      case 1: return {r.key, r.va + r.length - length + 1};
      case 2: return {200 << 8, 0};
      default: return {static_cast<std::uint32_t>(uniform(100, 103)) << 8, offset};
    }
  }

  /// A WQE in a slot of `slot` bytes whose list takes a message of `length` bytes, unless it is one of the bad ones. Of
  /// the send queue: a Read, or an atomic.
  Wqe wqe(bool send, std::uint64_t length, std::size_t slot, std::uint16_t idx, std::uint32_t qpn, double fault_rate,
          bool atomic = false) {
    Wqe made;
    const auto asked = idx;
    const std::size_t head = send ? (atomic ? 3 : 2) : 1;
    const std::size_t limit = std::min<std::size_t>(16, slot / 16 - head);
    std::uint64_t left =
        toss(rng_, fault_rate) ? length - std::min<std::uint64_t>(length, uniform(1, 200)) : length + uniform(0, 100);
    const auto count = toss(rng_, long_lists) ? limit : std::min<std::uint64_t>(limit, uniform(left ? 1 : 0, 6));
    for (std::uint64_t i = 0; i < count; ++i) {
      hw::WqeData entry;
      const std::uint64_t rest = left - (i + 1 == count ? 0 : uniform(0, left));
      entry.length = static_cast<std::uint32_t>(toss(rng_, 0.1) && i + 1 < count ? 0 : rest);
      // The key of an entry of zero bytes is never looked at.
      std::tie(entry.lkey, entry.va) = range(entry.length, entry.length == 0 || toss(rng_, fault_rate));
      left -= entry.length;
      made.list.entries.push_back(entry);
    }
    std::size_t segments = head + made.list.entries.size();
    std::uint8_t opcode = static_cast<std::uint8_t>(atomic ? uniform(3, 4) : 2), inline_data = 0;
    if (toss(rng_, fault_rate)) {
      made.list.bad = true;
      switch (uniform(0, 5)) {
        case 0: made.err = true; break;
        case 1: ++idx; break;
        case 2: segments = slot / 16 + 1; break;
        case 3: segments = send ? uniform(0, head - 1) : head + 17; break;
        case 4: send ? opcode = static_cast<std::uint8_t>(uniform(0, 1)) : ++idx; break;
        default: send ? (toss(rng_, 0.5) ? inline_data = 1 : ++qpn) : segments = head + 255; break;
      }
      made.list.entries.clear();
      made.list.unread = made.err;
      made.list.lost = made.err || idx != asked;
    }
    made.bytes = random_bytes(rng_, slot);
    const std::span<std::uint8_t, 16> header(made.bytes.data(), 16);
    if (send) {
      auto control = hw::WqeControl::decode(header);
      control.opcode = opcode;
      control.inline_data = inline_data;
      control.wqe_index = idx;
      control.qpn = qpn;
      control.size = static_cast<std::uint8_t>(segments);
      control.encode(header);
    } else {
      auto receive = hw::WqeReceive::decode(header);
      receive.sge_count = static_cast<std::uint8_t>(segments - 1);
      receive.wqe_index = idx;
      made.list.tag = receive.tag;
      receive.encode(header);
    }
    for (std::size_t i = 0; i < made.list.entries.size(); ++i)
      made.list.entries[i].encode(std::span<std::uint8_t, 16>(made.bytes.data() + 16 * (head + i), 16));
    return made;
  }

  RegionTable regions;
  std::vector<RegionTable::Region> good;
  double long_lists = 0.1;  ///< Lists of as many entries as the slot has room for

 private:
  std::uint64_t uniform(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(rng_);
  }
  std::mt19937_64& rng_;
};

/// Where payload must go and what must be reported, one packet at a time, from the contract of rx_plan and rx_done.
class PlaceModel {
 public:
  explicit PlaceModel(RegionTable& regions) : regions_(regions) {}

  /// Outcome of a plan; nothing when the packet leaves no trace. `fresh`: the list of a message that begins here.
  std::optional<rtl::RxDone> place(const rtl::RxPlan& plan, const Bytes& payload, const ScatterList* fresh = nullptr) {
    const auto action = static_cast<rtl::RxAction>(plan.action);
    const bool requester = action >= rtl::RxAction::kAck;
    const auto target = static_cast<rtl::PlaceTarget>(plan.target);
    const std::pair side{requester, plan.qp};
    if (fresh) lists_[side] = *fresh;

    rtl::RxDone done;
    done.qp = plan.qp;
    done.qpn = plan.qpn;
    done.action = plan.action;
    done.psn = plan.psn;
    done.syndrome = plan.syndrome;
    done.ack_req = plan.ack_req;
    done.msg_last = plan.msg_last;
    done.solicited = plan.solicited;
    done.wqe_idx = plan.wqe_idx;
    done.srq = plan.srq;
    done.takes = plan.takes;
    done.srqn = plan.srqn;
    done.wqe_lost = plan.srq && fresh && fresh->lost;
    done.byte_count = plan.byte_count;
    done.key = plan.key;
    done.va = plan.va;
    done.target = plan.target;
    done.write_imm = plan.write_imm;
    done.with_imm = plan.with_imm;
    done.with_invalidate = plan.with_invalidate;
    done.immediate = plan.immediate;
    done.atomic = plan.atomic;
    done.fetch_add = plan.fetch_add;
    done.swap_add = plan.swap_add;
    done.compare = plan.compare;
    done.pd = plan.pd;
    done.unreliable = plan.unreliable;
    done.take = plan.take;
    done.grh = plan.grh;
    done.source_qpn = plan.source_qpn;
    done.vlan = plan.vlan;
    done.vlan_tci = plan.vlan_tci;
    done.l3_ok = plan.l3_ok;
    done.l4_ok = plan.l4_ok;

    std::vector<std::pair<std::uint64_t, std::uint8_t>> bytes;
    auto status = rtl::XlateStatus::kOk;
    bool overflow = false, bad_wqe = false;
    const auto run = [&](std::uint32_t key, std::uint64_t va, std::size_t from, std::size_t length,
                         std::uint64_t checked, rtl::Access access) {
      if (status == rtl::XlateStatus::kOk) status = regions_.check(key, va, checked, plan.pd, access);
      if (status != rtl::XlateStatus::kOk) return;
      // The answer to an atomic comes most significant byte first.
      const auto byte = [&](std::size_t i) { return payload[plan.atomic && payload.size() == 8 ? 7 - i : i]; };
      for (std::size_t i = 0; i < length; ++i) bytes.push_back({regions_.translate(key, va + i), byte(from + i)});
    };
    // A WQE of an SRQ is read for its tag, whatever the message does to its buffers.
    if (plan.takes && fresh && fresh->bad) bad_wqe = true;
    if (target == rtl::PlaceTarget::kWrite && !bad_wqe)
      run(plan.key, plan.va, 0, payload.size(), plan.check_length, rtl::Access::kRemoteWrite);
    if (target == rtl::PlaceTarget::kCheckRead)
      run(plan.key, plan.va, 0, 0, plan.check_length, rtl::Access::kRemoteRead);
    if (target == rtl::PlaceTarget::kCheckAtomic)
      run(plan.key, plan.va, 0, 0, plan.check_length, rtl::Access::kRemoteAtomic);
    if (target == rtl::PlaceTarget::kReceive || target == rtl::PlaceTarget::kResponse) {
      const auto& list = lists_[side];
      bad_wqe = list.bad && fresh;
      std::uint64_t begin = 0;  // offset of the entry in the message
      std::size_t placed = 0;
      for (const auto& entry : list.entries) {
        const std::uint64_t at = plan.first_byte + placed;
        if (placed < payload.size() && at < begin + entry.length) {
          const std::size_t length = std::min<std::uint64_t>(payload.size() - placed, begin + entry.length - at);
          const bool sink = target == rtl::PlaceTarget::kResponse && !plan.atomic;  // decisions 57
          run(entry.lkey, entry.va + (at - begin), placed, length, length,
              sink ? rtl::Access::kLocalSink : rtl::Access::kLocalWrite);
          placed += length;
        }
        begin += entry.length;
      }
      overflow = !bad_wqe && placed < payload.size() && status == rtl::XlateStatus::kOk;
    }

    const bool fault = bad_wqe || overflow || status != rtl::XlateStatus::kOk;
    if (dead_.contains(side) && plan.takes) {
      done.action = static_cast<std::uint8_t>(rtl::RxAction::kReceiveFlush);
      return done;
    }
    if (dead_.contains(side) || (action == rtl::RxAction::kNone && !plan.unreliable)) return std::nullopt;
    if (plan.unreliable && plan.take != takes_[plan.qp]) return std::nullopt;
    // 9.9.3, class D: what the peer of an unreliable service does wrong costs it its message.
    if (fault && plan.unreliable && !plan.srq && (overflow || target == rtl::PlaceTarget::kWrite)) {
      takes_[plan.qp] ^= 1;
      done.action = static_cast<std::uint8_t>(rtl::RxAction::kGiveBack);
      ++faults;
      return done;
    }
    if (bad_wqe || overflow || status != rtl::XlateStatus::kOk) {
      // Class E: a datagram too long for its WQE of an SRQ fails that, not the QP.
      if (!(plan.unreliable && overflow)) dead_[side] = true;
      done.fault = 1;
      done.status = static_cast<std::uint8_t>(status);
      done.overflow = overflow;
      done.bad_wqe = bad_wqe;
      done.wqe_unread = bad_wqe && fresh && fresh->unread;
      done.msg_last = 0;
      done.action = static_cast<std::uint8_t>(requester ? rtl::RxAction::kBadResponse : rtl::RxAction::kNak);
      // Decisions 11 and 12: what the peer did wrong is an access or request error, what is wrong here is an
      // operational one.
      if (requester)
        done.syndrome = 0;
      else if (overflow)
        done.syndrome = 0x61;
      else if (bad_wqe || target == rtl::PlaceTarget::kReceive || status == rtl::XlateStatus::kPageListError)
        done.syndrome = 0x63;
      else
        done.syndrome = 0x62;
      ++faults;
      return done;
    }
    for (const auto& [addr, byte] : bytes) memory.bytes[addr] = byte;
    placed_bytes += bytes.size();
    if (action == rtl::RxAction::kNone) return std::nullopt;
    return done;
  }
  void reset(std::uint8_t qp) {
    dead_.erase({false, qp});
    dead_.erase({true, qp});
    takes_.erase(qp);
  }
  bool dead(bool requester, std::uint8_t qp) const { return dead_.contains({requester, qp}); }

  ByteMemory memory;
  std::uint64_t placed_bytes = 0, faults = 0;

 private:
  RegionTable& regions_;
  std::map<std::pair<bool, std::uint8_t>, ScatterList> lists_;
  std::map<std::pair<bool, std::uint8_t>, bool> dead_;
  std::map<std::uint8_t, std::uint8_t> takes_;
};

}  // namespace rnic::test
