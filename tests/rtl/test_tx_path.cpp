#include <Vtx_path.h>

#include <numeric>
#include <optional>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/ip_checksums.hpp"
#include "tests/support/roce_frame.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/tx/tx_path.sv: descriptors and pieces of two sources become frames. Translation, memory, path table and wire are
// models here; the frames expected are built byte by byte by roce_frame.hpp.
using namespace rnic::test;
using namespace rnic::rtl;

namespace {
constexpr std::uint64_t kPortMac = 0x021122334455;
constexpr std::uint64_t kPage = 4096;

std::uint64_t mix(std::uint64_t x) {
  x = (x ^ x >> 31) * 0x9E3779B97F4A7C15ull;
  x = (x ^ x >> 29) * 0xBF58476D1CE4E5B9ull;
  return x ^ x >> 32;
}

// A key says how its pages behave: bits 3:0 status of the translation; bit 4: the DMA read fails; bit 5: both on odd
// pages only. Pages: 4 KiB, or 64 KiB with bit 6.
bool page_bad(std::uint32_t key, std::uint64_t va) { return !(key & 32) || (va / kPage & 1); }
std::uint8_t page_status(std::uint32_t key, std::uint64_t va) {
  return page_bad(key, va) ? static_cast<std::uint8_t>(key & 15) : 0;
}
bool read_fails(std::uint32_t key, std::uint64_t va) { return (key & 16) && page_bad(key, va); }
std::uint64_t page_bytes(std::uint32_t key) { return key & 64 ? 16 * kPage : kPage; }
std::uint64_t dma_address(std::uint32_t key, std::uint64_t va) {
  const auto size = page_bytes(key);
  // Bit 63 tells the memory that the read fails.
  return (mix(key ^ va / size * 0x10001) & 0x7fffffffffffffffull & ~(size - 1)) | va % size |
         static_cast<std::uint64_t>(read_fails(key, va)) << 63;
}
std::uint8_t memory_byte(std::uint64_t address) { return static_cast<std::uint8_t>(mix(address) >> 13); }

struct Packet {
  TxDesc desc;
  std::vector<SgPiece> pieces;
};

/// Payload of a packet, or the status of the first part that fails (XlateStatus; 0: DMA).
struct Payload {
  Bytes bytes;
  bool fails = false;
  std::uint8_t status = 0;
};
Payload payload_of(const Packet& packet) {
  Payload result;
  for (const auto& piece : packet.pieces) {
    for (std::uint64_t i = 0; i < piece.length; ++i) {
      const auto va = piece.va + i;
      if (piece.inline_data) {
        result.bytes.push_back(piece.data[piece.offset + i]);
      } else if (page_status(piece.key, va) != 0 || read_fails(piece.key, va)) {
        return {{}, true, page_status(piece.key, va)};
      } else {
        result.bytes.push_back(memory_byte(dma_address(piece.key, va)));
      }
    }
  }
  return result;
}

/// An Ethernet frame of a RawPacket QP.
constexpr std::uint8_t kRawOpcode = 0x44;

Bytes frame_of(const TxDesc& d, const Path& path, Bytes payload) {
  if (d.opcode == kRawOpcode) {
    payload.resize(std::max<std::size_t>(payload.size(), 60));
    return d.ip_csum ? IpChecksums::inserted(std::move(payload)) : payload;
  }
  RoceFields f;
  f.ipv6 = path.ipv6;
  f.dest_mac = path.dest_mac;
  f.source_mac = kPortMac;
  const auto tag = [&f](const auto& from) {
    f.vlan_tci.reset();
    if (from.vlan) f.vlan_tci = static_cast<std::uint16_t>(from.pcp << 13 | from.vlan_id);
  };
  tag(path);
  f.source_ip = path.source_ip;
  f.dest_ip = path.dest_ip;
  f.traffic_class = path.traffic_class;
  f.hop_limit = path.hop_limit;
  f.flow_label = path.flow_label;
  f.udp_source_port = path.udp_source_port;
  f.pkey = path.pkey;
  f.opcode = d.opcode;
  f.solicited = d.solicited;
  f.ack_req = d.ack_req;
  f.dest_qpn = path.dest_qpn;
  f.psn = d.psn;
  // UD: the WQE's address, from an address of the queue pair; UC: the opcodes of RC, plus 0x20.
  if (d.opcode >= 0x60) {
    const auto a = rnic::hw::WqeAddress::decode(d.address);
    f.source_ip = a.second_source ? path.dest_ip : path.source_ip;
    static constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    f.ipv6 = !std::equal(kMapped.begin(), kMapped.end(), f.source_ip.begin());
    f.dest_ip = a.dest_ip;
    f.dest_mac = a.dest_mac;
    tag(a);
    f.dest_qpn = a.dest_qpn;
    f.traffic_class = a.traffic_class;
    f.hop_limit = a.hop_limit;
    f.flow_label = a.flow_label & 0xfffff;
    f.udp_source_port = static_cast<std::uint16_t>(0xc000 | ((f.flow_label & 0x3fff) ^ f.flow_label >> 14));
    append_big(f.ext, d.qkey, 4);
    append_big(f.ext, d.source_qpn, 4);
  }
  switch (static_cast<rnic::hw::RcOpcode>(d.opcode & 0x1f)) {
    case rnic::hw::RcOpcode::kWriteFirst:
    case rnic::hw::RcOpcode::kWriteOnly:
    case rnic::hw::RcOpcode::kReadRequest: f.ext = reth(d.va, d.rkey, d.dma_length); break;
    case rnic::hw::RcOpcode::kReadResponseFirst:
    case rnic::hw::RcOpcode::kReadResponseLast:
    case rnic::hw::RcOpcode::kReadResponseOnly:
    case rnic::hw::RcOpcode::kAtomicAcknowledge:
    case rnic::hw::RcOpcode::kAcknowledge: f.ext = aeth(d.syndrome, d.msn); break;
    case rnic::hw::RcOpcode::kCompareSwap:
    case rnic::hw::RcOpcode::kFetchAdd: f.ext = atomic_eth(d.va, d.rkey, d.swap_add, d.compare); break;
    case rnic::hw::RcOpcode::kWriteOnlyImmediate: f.ext = reth(d.va, d.rkey, d.dma_length); [[fallthrough]];
    case rnic::hw::RcOpcode::kSendLastImmediate:
    case rnic::hw::RcOpcode::kSendOnlyImmediate:
    case rnic::hw::RcOpcode::kSendLastInvalidate:
    case rnic::hw::RcOpcode::kSendOnlyInvalidate:
    case rnic::hw::RcOpcode::kWriteLastImmediate: append_big(f.ext, d.immediate, 4); break;
    default: break;
  }
  f.payload = std::move(payload);
  auto frame = roce_frame(f);
  if (frame.size() < 60) frame.resize(60);
  return frame;
}

/// A moment in the life of a queue pair: so many of its requests are on the wire.
struct ReachQuery {
  std::uint8_t qp = 0;
  unsigned life = 0;
  std::size_t on_wire = 0;
};

/// The NIC's surroundings. What the block must do with each packet is decided when its descriptor is accepted.
struct World : Agent {
  explicit World(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.port_mac_i = kPortMac;
    dut.enable_i = 1;
    dut.qp_reset_valid_i = dut.desc_valid_i = dut.piece_valid_i = 0;
    dut.xlate_req_ready_i = dut.xlate_rsp_valid_i = dut.rd_req_ready_i = dut.rd_rsp_valid_i = 0;
    dut.tx_fault_ready_i = dut.eth_tx_ready_i = dut.left_ready_i = 0;
    dut.reach_rd_en_i = 0;
    bench.reset();
    for (auto& path : paths) path = random_path();
    for (auto& psns : reached) psns = {std::nullopt};
    bench.add(*this);
    for (int s = 0; s < 2; ++s) {
      bench.add(descs[s]);
      bench.add(pieces[s]);
    }
    bench.add(faults);
    bench.add(wire);
    bench.add(lefts);
    lefts.on_item = [this](const TimerEvent& event) {
      // Its frame has left.
      REQUIRE_FALSE(expected_left.empty());
      REQUIRE(event == expected_left.front());
      expected_left.pop_front();
      ++reports;
    };
    wire.on_item = [this](const FrameBeat& beat) { on_wire(beat); };
  }

  Path random_path() {
    Path p;
    p.ipv6 = bench.chance(0.5);
    p.dest_qpn = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
    p.pkey = static_cast<std::uint16_t>(bench.rng());
    p.traffic_class = static_cast<std::uint8_t>(bench.rng());
    p.hop_limit = static_cast<std::uint8_t>(bench.rng());
    p.udp_source_port = static_cast<std::uint16_t>(bench.rng());
    p.flow_label = static_cast<std::uint32_t>(bench.uniform(0, 0xfffff));
    p.dest_mac = bench.uniform(0, 0xffffffffffffull);
    p.vlan = bench.chance(0.5);
    p.vlan_id = static_cast<std::uint16_t>(bench.uniform(0, 0xffe));
    p.pcp = static_cast<std::uint8_t>(bench.uniform(0, 7));
    // IPv4 addresses are mapped.
    const auto address = [&](bool ipv6) {
      std::array<std::uint8_t, 16> ip{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
      for (std::size_t i = ipv6 ? 0 : 12; i < 16; ++i) ip[i] = static_cast<std::uint8_t>(bench.rng());
      return ip;
    };
    p.source_ip = address(p.ipv6);
    p.dest_ip = address(bench.chance(0.5));
    return p;
  }

  void send(int source, Packet packet) {
    descs[source].push(packet.desc);
    for (const auto& piece : packet.pieces) pieces[source].push(piece);
    program[source].push_back(std::move(packet));
  }

  // ---- Agent: path table, translation, memory, observation of descriptors ----
  void drive() override {
    auto& dut = *bench.dut;
    put(dut.path_rd_data_i, path_read ? paths[path_qp] : random_path());
    path_read = false;

    dut.xlate_req_ready_i = xlate_queue.size() < xlate_room && bench.chance(xlate_rate);
    if (!xlate_offer && !xlate_queue.empty() && bench.cycle >= xlate_queue.front().due && bench.cycle >= xlate_next) {
      xlate_offer = true;
      xlate_next = bench.cycle + 4;
      put(dut.xlate_rsp_data_i, xlate_queue.front().rsp);
    }
    dut.xlate_rsp_valid_i = xlate_offer;

    dut.rd_req_ready_i = read_queue.size() < 4096 && bench.chance(read_rate);
    if (!read_offer && !read_queue.empty() && bench.cycle >= read_queue.front().due && bench.chance(read_rate)) {
      read_offer = true;
      put(dut.rd_rsp_data_i, read_queue.front().rsp);
    }
    dut.rd_rsp_valid_i = read_offer;

    // Somebody always asks what the queue pair of the newest packet has sent.
    reach_read = bench.chance(0.5);
    dut.reach_rd_en_i = reach_read;
    dut.reach_rd_qp_i = reach_read ? newest_qp : static_cast<std::uint8_t>(bench.rng());
    if (reach_read) reach_query = {newest_qp, lives[newest_qp], on_wire_count[newest_qp]};
  }

  void sample() override {
    auto& dut = *bench.dut;
    for (std::size_t i = 0; i < counters.size(); ++i) counters[i] += port_bit(dut.event_o, i);
    if (reach_answer && reach_answer->life == lives[reach_answer->qp]) check_reach(*reach_answer);
    if (reach_read) reach_answer = reach_query;
    if (dut.path_rd_en_o) {
      path_read = true;
      path_qp = dut.path_rd_qp_o;
    }
    for (int s = 0; s < 2; ++s) {
      if (dut.desc_valid_i & dut.desc_ready_o & 1 << s) {
        REQUIRE_FALSE(program[s].empty());
        accept(program[s].front());
        program[s].pop_front();
      }
    }
    if (dut.xlate_req_valid_o && dut.xlate_req_ready_i) translate(get<XlateReq>(dut.xlate_req_data_o));
    if (xlate_offer && dut.xlate_rsp_ready_o) {
      const auto& rsp = xlate_queue.front().rsp;
      if (rsp.status == 0) {
        epochs.push_back(rsp.epoch);
        // Its read is asked for when the answer has been taken.
        reads_due.push_back({rsp.addr, rsp.contiguous});
      }
      xlate_queue.pop_front();
      xlate_offer = false;
    }
    if (dut.rd_req_valid_o && dut.rd_req_ready_i) read(get<DmaRdReq>(dut.rd_req_data_o));
    if (read_offer && dut.rd_rsp_ready_o) {
      reads_done += read_queue.front().rsp.last;
      read_queue.pop_front();
      read_offer = false;
    }
    if (dut.xlate_retire_valid_o) {
      REQUIRE_FALSE(epochs.empty());
      REQUIRE(dut.xlate_retire_epoch_o == epochs.front());
      epochs.pop_front();
      REQUIRE(++retired <= reads_done);
    }
    if (in_frame) REQUIRE(dut.eth_tx_valid_o);
  }

  /// What a queue pair has sent: at least all that is on the wire, nothing that has not been asked for.
  void check_reach(const ReachQuery& query) {
    const auto reach = get<Reach>(bench.dut->reach_data_o);
    const auto& may_be = reached[query.qp];
    const auto fits = [&](const std::optional<std::uint32_t>& psn) {
      return psn ? reach.known && reach.next_psn == *psn : !reach.known;
    };
    REQUIRE(std::any_of(may_be.begin() + static_cast<std::ptrdiff_t>(query.on_wire), may_be.end(), fits));
  }
  Reach reach_of(std::uint8_t qp) {
    auto& dut = *bench.dut;
    newest_qp = qp;
    bench.run(1);
    bench.run_until([&] { return reach_read; }, 100, "a read of what has been sent");
    return get<Reach>(dut.reach_data_o);
  }

  void accept(const Packet& packet) {
    const auto& d = packet.desc;
    for (const auto& piece : packet.pieces) {
      if (!piece.inline_data) to_translate.push_back({piece, d.qp});
    }
    const auto payload = payload_of(packet);
    auto& dead = killed[d.responder][d.qp];
    if (d.turned) dead = false;  // what failed was of the try before, or is what this NAK tells
    if (dead || payload.fails) {
      ++expected_drops;
      // A response to a repeated Read ends nothing when its memory is gone.
      if (!dead && !d.quiet) expected_faults.push_back({d.qp, d.responder, d.psn, d.wqe_idx, payload.status});
      dead |= !d.quiet;
      return;
    }
    frames.push_back(frame_of(d, paths[d.qp], payload.bytes));
    newest_qp = d.qp;
    if (!d.responder) {
      auto& psns = reached[d.qp];
      // 9.7.2: what is sent again is older, by less than 2^23.
      const auto next = (d.last_psn + 1) & 0xffffff;
      const bool newer = !psns.back() || ((next - *psns.back()) & 0xffffff) <= 0x800000;
      psns.push_back(newer ? next : psns.back());
    }
    reaches.push_back({d.qp, lives[d.qp], reached[d.qp].size() - 1});
    // 9.7.6.1.3: a request that asks for an answer.
    asking.push_back(
        d.ack_req && !d.responder
            ? std::optional(TimerEvent{.qp = d.qp, .exponent = d.ack_timeout, .psn = d.last_psn, .tries = d.tries})
            : std::nullopt);
    if (d.tell) expected_faults.push_back({d.qp, d.responder, d.psn, d.wqe_idx, 0, 1});
    using rnic::hw::Counter;
    auto kind = Counter::kTxRequests;
    if (d.responder) {
      kind = Counter::kTxReadResponses;
      if (d.opcode == static_cast<std::uint8_t>(rnic::hw::RcOpcode::kAcknowledge)) {
        kind = d.syndrome < 0x20 ? Counter::kTxAcks : (d.syndrome < 0x40 ? Counter::kTxRnrNaks : Counter::kTxNaks);
      }
    }
    if (d.opcode != kRawOpcode) ++expected_counts[static_cast<std::size_t>(kind)];
  }

  void translate(const XlateReq& req) {
    ++translated;
    REQUIRE_FALSE(to_translate.empty());
    auto& [piece, qp] = to_translate.front();
    REQUIRE(req.key == piece.key);
    REQUIRE(req.va == piece.va);
    REQUIRE(req.pd == piece.pd);
    REQUIRE(req.access == piece.access);
    REQUIRE(req.qp == qp);
    REQUIRE(req.length >= 1);
    REQUIRE(req.length <= piece.length);
    piece.va += req.length;
    piece.length = static_cast<std::uint16_t>(piece.length - req.length);
    if (piece.length == 0) to_translate.pop_front();
    XlateRsp rsp;
    rsp.status = page_status(req.key, req.va);
    rsp.addr = rsp.status ? bench.rng() : dma_address(req.key, req.va);
    rsp.contiguous = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(req.length, page_bytes(req.key) - req.va % page_bytes(req.key)));
    rsp.epoch = bench.chance(0.5);
    xlate_queue.push_back({bench.cycle + 4 + bench.uniform(0, latency), rsp});
  }

  void read(const DmaRdReq& req) {
    REQUIRE_FALSE(reads_due.empty());
    REQUIRE(req.addr == reads_due.front().first);
    REQUIRE(req.length == reads_due.front().second);
    REQUIRE(req.addr % kPage + req.length <= kPage);
    reads_due.pop_front();
    const auto due = bench.cycle + 2 + read_delay + bench.uniform(0, 4 * latency);
    if (req.addr >> 63) {
      DmaRdRsp rsp;
      for (auto& b : rsp.data) b = static_cast<std::uint8_t>(bench.rng());
      rsp.last = rsp.err = 1;
      read_queue.push_back({due, rsp});
      return;
    }
    for (std::uint64_t at = req.addr, end = req.addr + req.length; at < end;) {
      DmaRdRsp rsp;
      const auto stop = std::min(end, at / 64 * 64 + 64);
      rsp.offset = static_cast<std::uint8_t>(at % 64);
      rsp.bytes = static_cast<std::uint8_t>(stop - at);
      for (std::uint64_t i = 0; i < 64; ++i) rsp.data[i] = static_cast<std::uint8_t>(bench.rng());
      for (; at < stop; ++at) rsp.data[at % 64] = memory_byte(at);
      rsp.last = at == end;
      read_queue.push_back({due, rsp});
    }
  }

  void on_wire(const FrameBeat& beat) {
    REQUIRE_FALSE(beat.err);
    REQUIRE((beat.last ? beat.bytes >= 1 : beat.bytes == 64));
    frame.insert(frame.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
    in_frame = !beat.last;
    if (beat.last) {
      REQUIRE_FALSE(frames.empty());
      REQUIRE(frame == frames.front());
      frames.pop_front();
      if (asking.front()) expected_left.push_back(*asking.front());
      asking.pop_front();
      const auto& at = reaches.front();
      if (at.life == lives[at.qp]) on_wire_count[at.qp] = at.on_wire;
      reaches.pop_front();
      frame.clear();
      ++sent;
    }
  }

  bool sources_idle() const { return descs[0].idle() && descs[1].idle() && pieces[0].idle() && pieces[1].idle(); }
  void drain() {
    bench.run_until([&] { return sources_idle(); }, 2000000, "packets taken");
    bench.run_until([&] { return frames.empty() && faults.items.size() == expected_faults.size(); }, 200000,
                    "last frame");
    bench.run(500);
    bench.run_until([&] { return expected_left.empty(); }, 20000, "report of the last request");
    CHECK(to_translate.empty());
    CHECK(epochs.empty());
    CHECK(reads_due.empty());
    CHECK(read_queue.empty());
    REQUIRE(faults.items.size() == expected_faults.size());
    for (std::size_t i = 0; i < expected_faults.size(); ++i) {
      auto item = faults.items[i];
      if (item.sent) item.status = 0;  // means something for a fault only
      REQUIRE(item == expected_faults[i]);
    }
    CHECK(counters[static_cast<std::size_t>(rnic::hw::Counter::kTxFrames)] == sent);
    CHECK(counters[static_cast<std::size_t>(rnic::hw::Counter::kTxDropped)] == expected_drops);
    for (const auto kind : {rnic::hw::Counter::kTxRequests, rnic::hw::Counter::kTxReadResponses,
                            rnic::hw::Counter::kTxAcks, rnic::hw::Counter::kTxNaks, rnic::hw::Counter::kTxRnrNaks}) {
      CHECK(counters[static_cast<std::size_t>(kind)] == expected_counts[static_cast<std::size_t>(kind)]);
    }
  }
  void reset_qp(std::uint8_t qp) {
    auto& dut = *bench.dut;
    dut.qp_reset_qp_i = qp;
    dut.qp_reset_valid_i = 1;
    for (int i = 0;; ++i) {
      REQUIRE(i < 20000);
      dut.eval();
      const bool ready = dut.qp_reset_ready_o;
      bench.tick();
      if (ready) break;
    }
    dut.qp_reset_valid_i = 0;
    killed[0][qp] = killed[1][qp] = false;
    reached[qp] = {std::nullopt};
    on_wire_count[qp] = 0;
    ++lives[qp];
  }

  template <typename T>
  struct Timed {
    std::uint64_t due;
    T rsp;
  };

  Bench<Vtx_path> bench;
  std::array<Path, 256> paths;
  std::array<std::deque<Packet>, 2> program;
  std::array<Source<TxDesc>, 2> descs{desc_source(0), desc_source(1)};
  std::array<Source<SgPiece>, 2> pieces{piece_source(0), piece_source(1)};
  Sink<TxFault> faults{[this] { return bench.dut->tx_fault_valid_o != 0; },
                       [this](bool r) { bench.dut->tx_fault_ready_i = r; },
                       [this] { return get<TxFault>(bench.dut->tx_fault_data_o); }, bench.rng};
  Sink<FrameBeat> wire{[this] { return bench.dut->eth_tx_valid_o != 0; },
                       [this](bool r) { bench.dut->eth_tx_ready_i = r; },
                       [this] { return get<FrameBeat>(bench.dut->eth_tx_data_o); }, bench.rng};
  Sink<TimerEvent> lefts{[this] { return bench.dut->left_valid_o != 0; },
                         [this](bool r) { bench.dut->left_ready_i = r; },
                         [this] { return get<TimerEvent>(bench.dut->left_data_o); }, bench.rng};
  double xlate_rate = 1, read_rate = 1;
  std::size_t xlate_room = 32;  // translations under way at most
  std::uint64_t latency = 0, read_delay = 0;

  bool path_read = false, xlate_offer = false, read_offer = false, in_frame = false;
  std::uint8_t path_qp = 0;
  std::uint64_t xlate_next = 0, translated = 0, reads_done = 0, retired = 0, sent = 0, expected_drops = 0;
  std::deque<Timed<XlateRsp>> xlate_queue;
  std::deque<Timed<DmaRdRsp>> read_queue;
  std::deque<std::pair<std::uint64_t, std::uint32_t>> reads_due;
  std::deque<std::pair<SgPiece, std::uint8_t>> to_translate;
  std::deque<std::uint8_t> epochs;
  std::array<std::array<bool, 256>, 2> killed{};
  std::deque<Bytes> frames;
  std::deque<std::optional<TimerEvent>> asking;  // of each of them
  std::deque<ReachQuery> reaches;                // of each of them
  /// Of each queue pair, after each request of this life: the first PSN of which nothing was sent.
  std::array<std::vector<std::optional<std::uint32_t>>, 256> reached;
  std::array<unsigned, 256> lives{};
  std::array<std::size_t, 256> on_wire_count{};
  bool reach_read = false;
  std::uint8_t newest_qp = 0;
  ReachQuery reach_query;
  std::optional<ReachQuery> reach_answer;
  std::deque<TimerEvent> expected_left;
  std::uint64_t reports = 0;
  std::vector<TxFault> expected_faults;
  std::array<std::uint64_t, rnic::hw::kCounterNames.size()> counters{}, expected_counts{};
  Bytes frame;

 private:
  static void set_bit(CData& port, int bit, bool value) {
    port = static_cast<CData>((port & ~(1 << bit)) | value << bit);
  }
  Source<TxDesc> desc_source(int s) {
    return {[this, s](bool v) { set_bit(bench.dut->desc_valid_i, s, v); },
            [this, s] { return (bench.dut->desc_ready_o >> s & 1) != 0; },
            [this, s](const TxDesc& d) { put_slice(bench.dut->desc_data_i, static_cast<std::size_t>(s), d); },
            bench.rng};
  }
  Source<SgPiece> piece_source(int s) {
    return {[this, s](bool v) { set_bit(bench.dut->piece_valid_i, s, v); },
            [this, s] { return (bench.dut->piece_ready_o >> s & 1) != 0; },
            [this, s](const SgPiece& p) { put_slice(bench.dut->piece_data_i, static_cast<std::size_t>(s), p); },
            bench.rng};
  }
};

template <typename Range>
auto pick(World& w, const Range& from) {
  return from.begin()[w.bench.uniform(0, from.size() - 1)];
}

SgPiece inline_piece(World& w, unsigned offset, unsigned length) {
  SgPiece p;
  p.inline_data = 1;
  p.offset = static_cast<std::uint8_t>(offset);
  p.length = static_cast<std::uint16_t>(length);
  for (auto& b : p.data) b = static_cast<std::uint8_t>(w.bench.rng());
  return p;
}

SgPiece memory_piece(World& w, unsigned length, std::uint32_t behaviour, bool remote) {
  SgPiece p;
  p.key = static_cast<std::uint32_t>(w.bench.rng() & ~0x7full) | behaviour;
  p.va = w.bench.rng() >> w.bench.uniform(0, 40);
  if (w.bench.chance(0.3))
    p.va = p.va / kPage * kPage + kPage - w.bench.uniform(1, std::min(length + 1, 4096u));  // near the end of a page
  if (w.bench.chance(0.2)) p.va = p.va / 64 * 64;
  p.length = static_cast<std::uint16_t>(length);
  p.pd = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
  p.access = static_cast<std::uint8_t>(remote ? Access::kRemoteRead : Access::kLocalRead);
  return p;
}

Packet random_packet(World& w, bool responder, double fault_rate, unsigned qps) {
  using rnic::hw::RcOpcode;
  static const std::vector<RcOpcode> requests = {RcOpcode::kSendFirst,
                                                 RcOpcode::kSendMiddle,
                                                 RcOpcode::kSendLast,
                                                 RcOpcode::kSendOnly,
                                                 RcOpcode::kWriteFirst,
                                                 RcOpcode::kWriteMiddle,
                                                 RcOpcode::kWriteLast,
                                                 RcOpcode::kWriteOnly,
                                                 RcOpcode::kReadRequest,
                                                 RcOpcode::kSendLastImmediate,
                                                 RcOpcode::kSendOnlyImmediate,
                                                 RcOpcode::kSendLastInvalidate,
                                                 RcOpcode::kSendOnlyInvalidate,
                                                 RcOpcode::kWriteLastImmediate,
                                                 RcOpcode::kWriteOnlyImmediate,
                                                 RcOpcode::kCompareSwap,
                                                 RcOpcode::kFetchAdd};
  static const std::vector<RcOpcode> responses = {RcOpcode::kReadResponseFirst, RcOpcode::kReadResponseMiddle,
                                                  RcOpcode::kReadResponseLast,  RcOpcode::kReadResponseOnly,
                                                  RcOpcode::kAcknowledge,       RcOpcode::kAtomicAcknowledge};
  Packet packet;
  auto& d = packet.desc;
  const auto opcode = pick(w, responder ? responses : requests);
  d.qp = static_cast<std::uint8_t>(w.bench.uniform(0, qps - 1));
  d.responder = responder;
  d.quiet = responder && w.bench.chance(0.3);
  d.turned = w.bench.chance(0.1);
  d.tries = static_cast<std::uint8_t>(w.bench.uniform(0, 15));
  d.opcode = static_cast<std::uint8_t>(opcode);
  d.psn = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
  d.ack_req = w.bench.chance(0.5);
  d.ack_timeout = static_cast<std::uint8_t>(w.bench.uniform(0, 31));
  d.last_psn = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
  d.solicited = w.bench.chance(0.5);
  d.va = w.bench.rng();
  d.rkey = static_cast<std::uint32_t>(w.bench.rng());
  d.dma_length = static_cast<std::uint32_t>(w.bench.rng());
  d.swap_add = w.bench.rng();
  d.compare = w.bench.rng();
  d.immediate = static_cast<std::uint32_t>(w.bench.rng());
  d.syndrome = pick(w, std::vector<std::uint8_t>{0x00, 0x1f, 0x20, 0x3f, 0x60, 0x61, 0x63});
  d.msn = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
  d.wqe_idx = static_cast<std::uint16_t>(w.bench.rng());
  d.qkey = static_cast<std::uint32_t>(w.bench.rng());
  d.source_qpn = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
  for (auto& byte : d.address) byte = static_cast<std::uint8_t>(w.bench.rng());
  if (!responder && w.bench.chance(0.3)) {
    d.opcode = static_cast<std::uint8_t>(w.bench.uniform(0x64, 0x65));
    d.tell = 1;
  } else if (!responder && d.opcode <= 0x0b && w.bench.chance(0.3)) {
    d.opcode |= 0x20;
    d.tell = w.bench.chance(0.5);
  } else if (!responder && w.bench.chance(0.2)) {
    d.opcode = kRawOpcode;
    d.ack_req = 0;
    d.tell = 1;
    d.ip_csum = w.bench.chance(0.5);
  }
  const bool bare = d.opcode == static_cast<std::uint8_t>(RcOpcode::kReadRequest) ||
                    d.opcode == static_cast<std::uint8_t>(RcOpcode::kAcknowledge);
  const bool is_raw = d.opcode == kRawOpcode;
  if (bare || (!is_raw && w.bench.chance(0.1))) return packet;
  unsigned left = static_cast<unsigned>(w.bench.uniform(1, w.bench.chance(0.5) ? 80 : 4096));
  if (w.bench.chance(0.1)) left = 4096;
  if (is_raw) left = std::max(left, 14u);
  d.payload_length = static_cast<std::uint16_t>(left);
  while (left > 0) {
    if (w.bench.chance(left <= 64 ? 0.4 : 0.1)) {
      const auto length = static_cast<unsigned>(w.bench.uniform(1, std::min(left, 64u)));
      packet.pieces.push_back(inline_piece(w, static_cast<unsigned>(w.bench.uniform(0, 64 - length)), length));
    } else {
      const auto length = w.bench.chance(0.5) ? left : static_cast<unsigned>(w.bench.uniform(1, left));
      std::uint32_t behaviour = w.bench.chance(0.3) ? 64 : 0;
      if (w.bench.chance(fault_rate)) behaviour |= static_cast<std::uint32_t>(w.bench.uniform(1, 63));
      if ((behaviour & 15) > 6) behaviour &= ~8u;
      packet.pieces.push_back(memory_piece(w, length, behaviour, responder));
    }
    left -= packet.pieces.back().length;
  }
  packet.pieces.back().last = 1;
  if (!responder) d.last_psn = d.psn;  // what has a payload takes one PSN
  return packet;
}

/// A frame with an IP packet, whose first bytes are in the WQE and whose others, if any, lie in memory; a read of those
/// may fail.
Packet ip_frame(World& w, bool ip_csum, double fault_rate) {
  Packet packet;
  auto& d = packet.desc;
  d.qp = static_cast<std::uint8_t>(w.bench.uniform(0, 255));
  d.opcode = kRawOpcode;
  d.tell = 1;
  d.ip_csum = ip_csum;
  d.psn = d.last_psn = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
  const Bytes frame = IpChecksums::random_frame(w.bench.rng, w.bench.chance(0.5) ? 130 : 4096);
  d.payload_length = static_cast<std::uint16_t>(frame.size());
  std::size_t at = 0;
  while (at < frame.size() && packet.pieces.size() < 4) {
    const auto length = static_cast<unsigned>(std::min<std::size_t>(frame.size() - at, w.bench.uniform(30, 64)));
    auto piece = inline_piece(w, static_cast<unsigned>(w.bench.uniform(0, 64 - length)), length);
    std::copy_n(frame.begin() + static_cast<std::ptrdiff_t>(at), length, piece.data.begin() + piece.offset);
    packet.pieces.push_back(piece);
    at += length;
  }
  if (at < frame.size()) {
    const std::uint32_t behaviour = w.bench.chance(fault_rate) ? 16 : 0;
    packet.pieces.push_back(memory_piece(w, static_cast<unsigned>(frame.size() - at), behaviour, false));
  }
  packet.pieces.back().last = 1;
  return packet;
}

Packet small_write(World& w, std::uint8_t qp) {
  Packet packet;
  packet.desc.qp = qp;
  packet.desc.opcode = static_cast<std::uint8_t>(rnic::hw::RcOpcode::kWriteOnly);
  packet.desc.payload_length = 8;
  packet.pieces = {inline_piece(w, 16, 8)};
  packet.pieces[0].last = 1;
  return packet;
}
}  // namespace

TEST_CASE("tx_path: random packets from both sources, no faults", "[rtl]") {
  World w(seed());
  w.latency = 30;
  w.wire.rate = 0.9;
  w.read_rate = 0.9;
  for (int i = 0; i < 300; ++i) {
    for (int s = 0; s < 2; ++s) w.send(s, random_packet(w, s == 1, 0, 256));
  }
  w.drain();
  CHECK(w.sent == 600);
}

TEST_CASE("tx_path: datagrams of every length, with a tag and without, one right behind the other", "[rtl]") {
  World w(seed(11));
  for (std::size_t qp = 0; qp < 4; ++qp) w.paths[qp].source_ip = w.paths[qp % 2].source_ip;
  for (int round = 0; round < 3; ++round) {
    for (unsigned length = 0; length <= 150; ++length) {
      auto packet = small_write(w, static_cast<std::uint8_t>(w.bench.uniform(0, 3)));
      packet.desc.opcode = 0x64;
      for (auto& byte : packet.desc.address) byte = static_cast<std::uint8_t>(w.bench.rng());
      packet.desc.payload_length = static_cast<std::uint16_t>(length);
      packet.pieces.clear();
      for (unsigned left = length; left > 0; left -= packet.pieces.back().length)
        packet.pieces.push_back(inline_piece(w, 0, std::min(left, 64u)));
      if (length > 0) packet.pieces.back().last = 1;
      w.send(0, packet);
    }
  }
  w.drain();
  CHECK(w.sent == 3 * 151);
}

TEST_CASE("tx_path: Ethernet frames leave with the checksums that their requests ask for, and as they are", "[rtl]") {
  World w(seed(31));
  w.latency = 30;
  w.wire.rate = GENERATE(1.0, 0.6);
  w.read_rate = 0.9;
  for (int i = 0; i < 800; ++i) {
    w.send(0, ip_frame(w, w.bench.chance(0.7), 0.05));
    if (w.bench.chance(0.3)) w.send(1, random_packet(w, true, 0, 256));
  }
  w.drain();
  CHECK(w.sent > 500);
}

TEST_CASE("tx_path: while the device is off no frame begins, and one that has begun ends", "[rtl]") {
  World w(seed(8));
  w.latency = 30;
  w.wire.rate = 0.5;
  for (int i = 0; i < 200; ++i) {
    for (int s = 0; s < 2; ++s) w.send(s, random_packet(w, s == 1, 0, 256));
  }
  auto& dut = *w.bench.dut;
  unsigned inside = 0;
  for (int i = 0; i < 60; ++i) {
    w.bench.run(w.bench.uniform(20, 200));
    dut.enable_i = 0;
    const auto sent = w.sent;
    const bool begun = w.in_frame || dut.eth_tx_valid_o;
    w.bench.run(400);
    CHECK(w.sent <= sent + begun);
    CHECK_FALSE(dut.eth_tx_valid_o);
    CHECK_FALSE(w.in_frame);
    inside += w.sent > sent;
    dut.enable_i = 1;
  }
  CHECK(inside > 5);
  w.drain();
  CHECK(w.sent == 400);
}

TEST_CASE("tx_path: faults kill one side of one QP until qp_reset, or its next try", "[rtl]") {
  World w(seed(5));
  w.latency = 40;
  for (int phase = 0; phase < 25; ++phase) {
    w.wire.rate = phase % 3 ? 1.0 : 0.5;
    w.read_rate = phase % 4 ? 1.0 : 0.4;
    w.xlate_rate = phase % 5 ? 1.0 : 0.3;
    w.faults.rate = phase % 2 ? 0.05 : 1.0;
    for (auto& source : w.pieces) source.rate = phase % 2 ? 1.0 : 0.5;
    for (int i = 0; i < 40; ++i) {
      for (int s = 0; s < 2; ++s) w.send(s, random_packet(w, s == 1, 0.08, 6));
    }
    // Packets are still inside when the resets come.
    w.bench.run_until([&] { return w.sources_idle(); }, 500000, "packets taken");
    for (std::uint8_t qp = 0; qp < 6; ++qp) {
      if (w.bench.chance(0.6)) w.reset_qp(qp);
    }
  }
  w.drain();
  CHECK(w.sent > 300);
  CHECK(w.expected_faults.size() > 50);
}

TEST_CASE("tx_path: a request is sent when its payload is here, and not before (9.7.6)", "[rtl]") {
  World w(seed(10));
  const auto write = [&](std::uint32_t psn, std::uint32_t behaviour) {
    Packet packet = small_write(w, 3);
    packet.desc.psn = packet.desc.last_psn = psn;
    packet.desc.payload_length = 512;
    packet.pieces = {memory_piece(w, 512, behaviour, false)};
    packet.pieces[0].va = 0x1000;
    packet.pieces[0].last = 1;
    w.send(0, packet);
  };
  const auto is = [&](std::uint32_t next) { return w.reach_of(3).known && w.reach_of(3).next_psn == next; };
  CHECK_FALSE(w.reach_of(3).known);
  w.read_delay = 400;
  write(0xffffff, 0);
  w.bench.run(300);
  CHECK_FALSE(w.reach_of(3).known);
  w.drain();
  CHECK(is(0));
  CHECK_FALSE(w.reach_of(4).known);
  // Sent again: older, so that nothing new has been sent. A Read takes the PSNs of its responses.
  write(0xfffffe, 0);
  w.drain();
  CHECK(is(0));
  Packet read = small_write(w, 3);
  read.desc.opcode = static_cast<std::uint8_t>(rnic::hw::RcOpcode::kReadRequest);
  read.desc.payload_length = 0;
  read.pieces.clear();
  read.desc.psn = 0;
  read.desc.last_psn = 6;
  w.send(0, read);
  w.drain();
  CHECK(is(7));
  // The farthest Read there is (9.7.2), and the oldest packet that may be sent again.
  read.desc.psn = 7;
  read.desc.last_psn = 7 + 0x7fffff;
  w.send(0, read);
  w.drain();
  CHECK(is(7 + 0x800000));
  write(7, 0);
  w.drain();
  CHECK(is(7 + 0x800000));
  // A payload that is not there is not sent.
  const auto fails = GENERATE(1u, 16u);  // its translation, its DMA read
  write(8 + 0x800000, fails);
  w.drain();
  CHECK(is(7 + 0x800000));
  w.reset_qp(3);
  CHECK_FALSE(w.reach_of(3).known);
  write(5, 0);
  w.drain();
  CHECK(is(6));
}

TEST_CASE("tx_path: of requests that leave in a row the newest counts", "[rtl]") {
  World w(seed());
  w.read_delay = 300;
  w.paths[3].ipv6 = false;  // headers of one word
  const auto ask = [&](std::uint32_t last_psn) {
    Packet read = small_write(w, 3);
    read.desc.opcode = static_cast<std::uint8_t>(rnic::hw::RcOpcode::kReadRequest);
    read.desc.payload_length = 0;
    read.pieces.clear();
    read.desc.last_psn = last_psn;
    w.send(0, read);
  };
  for (const bool first_of_life : {true, false}) {
    for (std::uint32_t older = 0; older < 12; ++older) {
      CAPTURE(first_of_life, older);
      if (!first_of_life) ask(50);
      w.drain();
      // Behind a payload that is awaited headers wait, and then leave one a cycle as far as the port takes them.
      Packet slow = small_write(w, 9);
      slow.pieces = {memory_piece(w, 8, 0, false)};
      slow.pieces[0].va = 0x1000;
      slow.pieces[0].last = 1;
      w.send(0, slow);
      for (std::uint32_t i = 0; i < older; ++i) ask(60 + i);
      ask(1000);
      ask(static_cast<std::uint32_t>(w.bench.uniform(100, 999)));
      w.drain();
      const auto reach = w.reach_of(3);
      CHECK(reach.known);
      CHECK(reach.next_psn == 1001);
      w.reset_qp(3);
    }
  }
}

TEST_CASE("tx_path: a slow wire and slow memory lose nothing", "[rtl]") {
  World w(seed(6));
  w.latency = 200;
  w.wire.rate = 0.2;
  w.read_rate = 0.3;
  for (int i = 0; i < 100; ++i) {
    for (int s = 0; s < 2; ++s) w.send(s, random_packet(w, s == 1, 0, 256));
  }
  w.drain();
  CHECK(w.sent == 200);
}

// What has been taken can't be taken back, and everything else waits behind it (docs/architecture.md, Turns of the send
// queues).
TEST_CASE("tx_path: before a wire that stands still 32 KiB are fetched ahead, and what the frame buffer holds",
          "[rtl]") {
  constexpr std::uint64_t kAhead = 32768, kFrames = 256 * 64;
  const auto size = GENERATE(as<std::uint16_t>{}, 1024, 4096);
  World w(seed(9));
  w.wire.rate = 0;
  const auto packets = 4 * (kAhead + kFrames) / size;
  for (std::uint64_t i = 0; i < packets; ++i) {
    Packet packet = small_write(w, static_cast<std::uint8_t>(i));
    packet.desc.payload_length = size;
    packet.pieces = {memory_piece(w, size, 0, false)};
    packet.pieces[0].last = 1;
    w.send(static_cast<int>(i % 2), packet);
  }
  w.bench.run(6000);
  const auto taken = (w.descs[0].accepted + w.descs[1].accepted) * size;
  CHECK(taken >= kAhead);
  CHECK(taken <= kAhead + kFrames + 2 * size);  // one becomes a frame, one is offered
  w.wire.rate = 1;
  w.drain();
  CHECK(w.sent == packets);
}

// Memory that does not answer, and a translation that takes all it is asked: what is known of the parts under way has
// an end, and no part is lost there.
TEST_CASE("tx_path: of packets of many small parts 128 parts are under way at most", "[rtl]") {
  constexpr std::uint64_t kHeld = 2000;
  World w(seed(12));
  w.xlate_room = 256;
  for (int round = 0; round < 3; ++round) {
    w.read_delay = kHeld;
    const auto before = w.translated;
    for (int i = 0; i < 20; ++i) {
      Packet packet = small_write(w, static_cast<std::uint8_t>(w.bench.uniform(0, 255)));
      packet.pieces.clear();
      for (int part = 0; part < 16; ++part) {
        // Now and then one of the WQE; each of the others lies in one page.
        const auto length = static_cast<unsigned>(w.bench.uniform(1, 8));
        packet.pieces.push_back(w.bench.chance(0.1) ? inline_piece(w, 0, length) : memory_piece(w, length, 0, false));
        auto& piece = packet.pieces.back();
        if (!piece.inline_data) piece.va = piece.va / 64 * 64;
      }
      packet.pieces.back().last = 1;
      packet.desc.payload_length = 0;
      for (const auto& piece : packet.pieces)
        packet.desc.payload_length = static_cast<std::uint16_t>(packet.desc.payload_length + piece.length);
      w.send(static_cast<int>(w.bench.uniform(0, 1)), packet);
    }
    w.bench.run(kHeld - 500);
    CHECK(w.translated - before >= 90);
    CHECK(w.translated - before <= 128);
    w.read_delay = 0;
    w.drain();
  }
  CHECK(w.sent == 60);
}

TEST_CASE("tx_path: of 257 requests that leave in a row each is reported, if nobody takes a report meanwhile",
          "[rtl]") {
  World w(seed(13));
  for (int round = 1; round <= 2; ++round) {
    w.lefts.rate = 0;
    for (int i = 0; i < 257; ++i) {
      Packet packet = small_write(w, static_cast<std::uint8_t>(w.bench.uniform(0, 255)));
      packet.pieces.clear();
      packet.desc.payload_length = 0;
      packet.desc.opcode = static_cast<std::uint8_t>(rnic::hw::RcOpcode::kSendOnly);
      packet.desc.ack_req = 1;
      packet.desc.psn = packet.desc.last_psn = static_cast<std::uint32_t>(w.bench.uniform(0, 0xffffff));
      packet.desc.ack_timeout = static_cast<std::uint8_t>(w.bench.uniform(0, 31));
      w.send(0, packet);
    }
    w.bench.run_until([&] { return w.sent == static_cast<std::uint64_t>(257 * round); }, 5000, "frames");
    w.bench.run(20);
    CHECK(w.reports == static_cast<std::uint64_t>(257 * (round - 1)));
    w.lefts.rate = round == 1 ? 1.0 : 0.25;
    w.drain();
    CHECK(w.reports == static_cast<std::uint64_t>(257 * round));
  }
}

TEST_CASE("tx_path: latency of a small inline packet", "[rtl]") {
  World w(seed(7));
  for (const bool ipv6 : {false, true}) {
    w.paths[1].ipv6 = ipv6;
    w.bench.run(20);
    w.send(0, small_write(w, 1));
    const auto from = w.bench.cycle;
    w.bench.run_until([&] { return w.bench.dut->eth_tx_valid_o != 0; }, 100, "frame");
    // run_until sees the output after the clock edge: `cycle` counts edges from the cycle in which the descriptor was
    // offered.
    std::printf("descriptor and inline piece to first wire beat: %d cycles (IPv%d)\n",
                static_cast<int>(w.bench.cycle - from), ipv6 ? 6 : 4);
    CHECK(w.bench.cycle - from <= 16);
    w.drain();
  }
}

TEST_CASE("tx_path: rate of small and of large packets", "[rtl]") {
  World w(seed(8));
  constexpr int kPackets = 200;
  for (int i = 0; i < kPackets; ++i) w.send(0, small_write(w, static_cast<std::uint8_t>(i)));
  auto from = w.bench.cycle;
  w.bench.run_until([&] { return w.sent == kPackets; }, 20000, "all frames");
  std::printf("8-byte inline writes: %.2f cycles a packet\n", static_cast<double>(w.bench.cycle - from) / kPackets);
  CHECK(w.bench.cycle - from <= 3 * kPackets + 50);

  // 8-byte writes from memory 125 cycles away.
  w.read_delay = 125;
  for (int i = 0; i < kPackets; ++i) {
    auto packet = small_write(w, static_cast<std::uint8_t>(i));
    packet.pieces = {memory_piece(w, 8, 0, false)};
    packet.pieces[0].va &= ~63ull;
    packet.pieces[0].last = 1;
    w.send(0, packet);
  }
  from = w.bench.cycle;
  w.bench.run_until([&] { return w.sent == 2 * kPackets; }, 20000, "all frames");
  std::printf("8-byte writes from memory: %.2f cycles a packet\n",
              static_cast<double>(w.bench.cycle - from) / kPackets);
  CHECK(w.bench.cycle - from <= 8 * kPackets);

  // 4 KiB at the worst alignment; the wire needs 65 or 66 cycles for each.
  for (int i = 0; i < kPackets; ++i) {
    Packet packet = small_write(w, static_cast<std::uint8_t>(i));
    packet.desc.payload_length = 4096;
    packet.pieces = {memory_piece(w, 4096, 0, false)};
    packet.pieces[0].va = w.bench.rng() / kPage * kPage + 61;
    packet.pieces[0].last = 1;
    w.send(0, packet);
  }
  from = w.bench.cycle;
  w.bench.run_until([&] { return w.sent == 3 * kPackets; }, 40000, "all frames");
  std::printf("4096-byte unaligned writes: %.2f cycles a packet\n",
              static_cast<double>(w.bench.cycle - from) / kPackets);
  CHECK(w.bench.cycle - from <= 69 * kPackets);
  w.drain();
}
