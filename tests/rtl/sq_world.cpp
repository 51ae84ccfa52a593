#include "tests/rtl/sq_world.hpp"

#include <algorithm>
#include <utility>

namespace rnic::test {

World::World(std::uint64_t seed_value) : bench(seed_value) {
  auto& dut = *bench.dut;
  auto& rng = bench.rng;
  dut.host_acq_valid_i = dut.host_rel_valid_i = dut.sq_wake_valid_i = dut.host_wake_valid_i = dut.read_slot_en_i =
      dut.qp_reset_valid_i = 0;
  dut.rd_rsp_valid_i = dut.rd_req_ready_i = dut.flush_req_ready_i = 0;
  dut.sq_doorbell_valid_i = dut.wqe_push_valid_i = dut.desc_ready_i = dut.piece_ready_i = dut.retire_cmd_ready_i = 0;
  doorbells_ = std::make_unique<Source<rtl::Doorbell>>(
      [&](bool v) { dut.sq_doorbell_valid_i = v; }, [&] { return dut.sq_doorbell_ready_o != 0; },
      [&](const rtl::Doorbell& d) { put(dut.sq_doorbell_data_i, d); }, rng);
  pushes_ = std::make_unique<Source<rtl::WqePush>>([&](bool v) { dut.wqe_push_valid_i = v; },
                                                   [&] { return dut.wqe_push_ready_o != 0; },
                                                   [&](const rtl::WqePush& d) { put(dut.wqe_push_data_i, d); }, rng);
  descs_ =
      std::make_unique<Sink<rtl::TxDesc>>([&] { return dut.desc_valid_o != 0; }, [&](bool r) { dut.desc_ready_i = r; },
                                          [&] { return get<rtl::TxDesc>(dut.desc_data_o); }, rng);
  pieces_ = std::make_unique<Sink<rtl::SgPiece>>([&] { return dut.piece_valid_o != 0; },
                                                 [&](bool r) { dut.piece_ready_i = r; },
                                                 [&] { return get<rtl::SgPiece>(dut.piece_data_o); }, rng);
  fails_ = std::make_unique<Sink<rtl::RetireCmd>>([&] { return dut.retire_cmd_valid_o != 0; },
                                                  [&](bool r) { dut.retire_cmd_ready_i = r; },
                                                  [&] { return get<rtl::RetireCmd>(dut.retire_cmd_data_o); }, rng);
  descs_->on_item = [&](const rtl::TxDesc& desc) { take_desc(desc); };
  pieces_->on_item = [&](const rtl::SgPiece&) {
    if (!first_piece_cycle) first_piece_cycle = bench.cycle;
    match();
  };
  fails_->on_item = [&](const rtl::RetireCmd& command) { failures.push_back(command); };
  const auto part = [&](void (World::*drive)(), void (World::*sample)()) {
    parts_.push_back(std::make_unique<Part>());
    parts_.back()->on_drive = [this, drive] { (this->*drive)(); };
    parts_.back()->on_sample = [this, sample] { (this->*sample)(); };
    bench.add(*parts_.back());
  };
  part(&World::drive_misc, &World::sample_misc);  // the in-flight entry is seen before the descriptor of the same cycle
  bench.add(*doorbells_);
  bench.add(*pushes_);
  bench.add(*descs_);
  bench.add(*pieces_);
  bench.add(*fails_);
  bench.add(mem_ops);
  part(&World::drive_dma, &World::sample_dma);
  part(&World::drive_host, &World::sample_host);
  bench.reset();
  bench.run_until([&] { return dut.contexts_ready_o != 0; }, 300, "contexts ready");
}

// ---- Driver
// ------------------------------------------------------------------------------------------------------------

void World::set_up(int qp, const std::function<void(rtl::SendCtx&)>& adjust) {
  auto& queue = queues[qp];
  queue = {};
  auto& ctx = queue.setup;
  ctx.state = static_cast<std::uint8_t>(QpState::kRts);
  ctx.in_use = 1;
  ctx.qkey = static_cast<std::uint32_t>(bench.rng());
  ctx.qpn = static_cast<std::uint32_t>(bench.uniform(0, 0xffff) << 8 | static_cast<std::uint64_t>(qp));
  ctx.pd = static_cast<std::uint32_t>(bench.uniform(0, 0xffffff));
  ctx.uar = static_cast<std::uint8_t>(bench.uniform(1, 127));
  ctx.sq_base = (bench.uniform(1, 0xfffff) << 32) | (static_cast<std::uint64_t>(qp) << 24);
  ctx.log_depth = static_cast<std::uint8_t>(bench.uniform(0, 7));
  ctx.log_stride = static_cast<std::uint8_t>(bench.uniform(6, 9));
  ctx.mtu = static_cast<std::uint8_t>(bench.uniform(1, 5));
  ctx.max_rd = static_cast<std::uint8_t>(bench.uniform(1, 16));
  ctx.ack_timeout = static_cast<std::uint8_t>((qp * 7 + 3) & 31);
  ctx.next_psn = ctx.una_psn = ctx.max_psn = static_cast<std::uint32_t>(bench.uniform(0xfffff0, 0xffffff));
  ctx.pi = ctx.exec_idx = ctx.retire_idx = static_cast<std::uint16_t>(bench.uniform(0xffe0, 0xffff));
  ctx.ssn = static_cast<std::uint32_t>(bench.uniform(0xfffff0, 0xffffff));
  if (adjust) adjust(ctx);
  queue.ssn = ctx.ssn;
  queue.lsn = ctx.lsn;
  queue.una_psn = ctx.una_psn;
  queue.pi = queue.retired = queue.started = ctx.pi;
  queue.next_psn = ctx.next_psn;
  change(qp, [ctx](rtl::SendCtx& held) { held = ctx; });
  bench.run_until([&] { return steps_.empty() && host_ == HostState::kIdle; }, 5000, "context written");
}

Bytes World::encode(int qp, std::uint16_t index, const Work& work) const {
  const auto& queue = queues.at(qp);
  Bytes bytes(std::max<std::size_t>(queue.stride(), work.size() * 16));
  WqeControl control;
  control.opcode = static_cast<std::uint8_t>(work.opcode);
  control.silent = work.silent;
  control.fence = work.fence;
  control.solicited = work.solicited;
  control.inline_data = work.inlined;
  control.ip_csum = work.ip_csum;
  control.wqe_index = index;
  control.qpn = queue.setup.qpn;
  control.size = static_cast<std::uint8_t>(work.size());
  control.immediate = work.immediate;
  control.length = work.length();
  control.encode(std::span<std::uint8_t, 16>(bytes.data(), 16));
  if (work.atomic()) {
    const WqeAtomic atomic{.swap_add = work.swap_add, .compare = work.compare};
    atomic.encode(std::span<std::uint8_t, 16>(bytes.data() + 32, 16));
  }
  if (work.address) {
    work.address->encode(std::span<std::uint8_t, 48>(bytes.data() + 16, 48));
  } else if (!work.send()) {
    WqeRemote remote;
    remote.va = work.va;
    remote.rkey = work.rkey;
    remote.encode(std::span<std::uint8_t, 16>(bytes.data() + 16, 16));
  }
  std::size_t at = 16 * work.header();
  if (work.inlined)
    std::copy(work.inline_bytes.begin(), work.inline_bytes.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  for (const auto& sge : work.sges) {
    sge.encode(std::span<std::uint8_t, 16>(bytes.data() + at, 16));
    at += 16;
  }
  return bytes;
}

void World::write_memory(std::uint64_t addr, std::span<const std::uint8_t> bytes) {
  for (std::size_t i = 0; i < bytes.size(); ++i) memory[addr + i] = bytes[i];
}

std::uint16_t World::write_wqe(int qp, const Work& work) {
  auto& queue = queues.at(qp);
  const std::uint16_t index = queue.pi++;
  auto bytes = encode(qp, index, work);
  last_wqe_[qp] = Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(work.size() * 16));
  // What lies behind the WQE in its slot must not matter.
  for (std::size_t i = work.size() * 16; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(bench.rng());
  write_memory(queue.setup.sq_base + std::uint64_t{queue.stride()} * (index % queue.depth()), bytes);
  expect(queue, qp, index, work);
  return index;
}

void World::ring(int qp) { ring(queues.at(qp).setup.uar, queues.at(qp).setup.qpn, queues.at(qp).pi); }
void World::ring(std::uint8_t uar, std::uint32_t qpn, std::uint16_t pi) {
  rtl::Doorbell doorbell;
  doorbell.uar = uar;
  doorbell.value = qpn | std::uint64_t{pi} << 32;
  doorbells_->push(doorbell);
}

void World::push(std::uint8_t uar, std::span<const std::uint8_t> wqe) {
  for (std::size_t at = 0; at < wqe.size(); at += 64) {
    rtl::WqePush beat;
    beat.uar = uar;
    for (std::size_t i = 0; i < 64; ++i)
      beat.data[i] = at + i < wqe.size() ? wqe[at + i] : static_cast<std::uint8_t>(bench.rng());
    beat.last = at + 64 >= wqe.size();
    beat.whole = 1;
    pushes_->push(beat);
  }
}
void World::push_last(int qp) { push(queues.at(qp).setup.uar, last_wqe_.at(qp)); }
void World::push_first_word(int qp) {
  const auto& wqe = last_wqe_.at(qp);
  rtl::WqePush beat;
  beat.uar = queues.at(qp).setup.uar;
  for (std::size_t i = 0; i < 64; ++i) beat.data[i] = i < 8 ? wqe[i] : static_cast<std::uint8_t>(bench.rng());
  beat.last = 1;
  pushes_->push(beat);
}

Work World::random_work(int qp) {
  const auto& queue = queues.at(qp);
  const std::size_t units = queue.stride() / 16;
  const bool is_raw = queue.setup.qp_type == static_cast<std::uint8_t>(QpType::kRawPacket);
  const std::uint32_t mtu = is_raw ? hw::kMaxFrameBytes : 128u << queue.setup.mtu;
  Work work;
  // Those that need the peer's data last.
  static constexpr std::array kOpcodes = {
      WqeOpcode::kSend,           WqeOpcode::kWrite,          WqeOpcode::kSendImmediate,
      WqeOpcode::kWriteImmediate, WqeOpcode::kSendInvalidate, WqeOpcode::kRead,
      WqeOpcode::kRead,           WqeOpcode::kFetchAdd,       WqeOpcode::kCompareSwap};
  work.opcode = kOpcodes[bench.uniform(0, queue.setup.max_rd ? kOpcodes.size() - 1 : 4)];
  // Table 37: UC has SENDs and WRITEs without invalidate, UD SENDs only.
  if (queue.setup.qp_type == static_cast<std::uint8_t>(QpType::kUc)) work.opcode = kOpcodes[bench.uniform(0, 3)];
  const bool datagram = queue.setup.qp_type == static_cast<std::uint8_t>(QpType::kUd);
  if (is_raw) {
    work.opcode = WqeOpcode::kSend;
    work.ip_csum = bench.chance(0.5);
  }
  if (datagram) {
    work.opcode = bench.chance(0.5) ? WqeOpcode::kSend : WqeOpcode::kSendImmediate;
    Bytes bytes(48);
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(bench.rng());
    work.address = WqeAddress::decode(std::span<const std::uint8_t, 48>(bytes.data(), 48));
    if (work.address->vlan_id == kReservedVid) work.address->vlan = 0;
  }
  work.immediate = static_cast<std::uint32_t>(bench.rng());
  work.swap_add = bench.rng();
  work.compare = bench.rng();
  work.silent = bench.chance(0.3);
  work.fence = bench.chance(0.15);
  work.solicited = bench.chance(0.3);
  work.va = bench.rng();
  work.rkey = static_cast<std::uint32_t>(bench.rng());
  const std::size_t room = units - work.header();
  if (work.atomic()) {
    WqeData sge;
    sge.va = bench.rng();
    sge.length = 8;
    sge.lkey = static_cast<std::uint32_t>(bench.rng());
    work.sges.push_back(sge);
    return work;
  }
  if (work.opcode != WqeOpcode::kRead && bench.chance(0.4)) {
    work.inlined = true;
    work.inline_bytes.resize(bench.uniform(is_raw ? hw::kEthHeaderBytes : 0, std::min<std::size_t>(224, room * 16)));
    if (datagram && work.inline_bytes.size() > mtu) work.inline_bytes.resize(mtu);
    for (auto& byte : work.inline_bytes) byte = static_cast<std::uint8_t>(bench.rng());
    return work;
  }
  const std::size_t count = bench.uniform(is_raw ? 1 : 0, std::min<std::size_t>(16, room));
  // Lengths around multiples of the MTU, cut into segments at random places, some of them empty.
  std::uint64_t total = 0;
  switch (bench.uniform(0, 3)) {
    case 0: total = bench.uniform(0, 64); break;
    case 1: total = mtu * bench.uniform(1, 5) + bench.uniform(0, 2) - 1; break;
    case 2: total = bench.uniform(0, 6 * mtu); break;
    default:
      total = work.opcode == WqeOpcode::kRead ? bench.uniform(0, hw::kMaxMessageBytes)
                                              : mtu * bench.uniform(14, 18) + bench.uniform(0, 2) - 1;
      break;
  }
  if (datagram || is_raw) total = bench.chance(0.3) ? mtu : bench.uniform(is_raw ? hw::kEthHeaderBytes : 0, mtu);
  if (count == 0) total = 0;
  std::vector<std::uint64_t> cuts = {0, total};
  for (std::size_t i = 1; i < count; ++i)
    cuts.push_back(bench.chance(0.2) ? cuts[bench.uniform(0, cuts.size() - 1)] : bench.uniform(0, total));
  std::sort(cuts.begin(), cuts.end());
  for (std::size_t i = 0; i < count; ++i) {
    WqeData sge;
    sge.va = bench.rng();
    sge.length = static_cast<std::uint32_t>(cuts[i + 1] - cuts[i]);
    sge.lkey = static_cast<std::uint32_t>(bench.rng());
    work.sges.push_back(sge);
  }
  return work;
}

/// The packets of a message: InfiniBand specification 9.2.1 (opcodes), 9.7.2 (PSNs), 9.4.3 (RETH in the first packet).
void World::expect(Queue& queue, int qp, std::uint16_t index, const Work& work) {
  const bool is_raw = queue.setup.qp_type == static_cast<std::uint8_t>(QpType::kRawPacket);
  const std::uint32_t mtu = is_raw ? hw::kMaxFrameBytes : 128u << queue.setup.mtu, length = work.length();
  const bool read = work.read(), write = work.write();
  const bool immediate = work.opcode == WqeOpcode::kSendImmediate || work.opcode == WqeOpcode::kWriteImmediate;
  const bool invalidate = work.opcode == WqeOpcode::kSendInvalidate;
  const std::uint32_t packets = length == 0 ? 1 : (length - 1) / mtu + 1;
  const std::uint32_t first_psn = queue.next_psn;
  rtl::Inflight inflight;
  inflight.qp = static_cast<std::uint8_t>(qp);
  inflight.wqe_idx = index;
  inflight.opcode = static_cast<std::uint8_t>(
      work.atomic() ? (work.opcode == WqeOpcode::kFetchAdd ? CqeOpcode::kFetchAdd : CqeOpcode::kCompareSwap)
      : read        ? CqeOpcode::kRead
      : write       ? CqeOpcode::kWrite
                    : CqeOpcode::kSend);
  inflight.silent = work.silent;
  inflight.first_psn = first_psn;
  inflight.last_psn = (first_psn + packets - 1) & 0xffffff;
  inflight.length = length;
  queue.last_psns[index] = inflight.last_psn;
  queue.next_psn = (first_psn + packets) & 0xffffff;
  queue.ssn = (queue.ssn + 1) & 0xffffff;
  std::size_t sge = 0;
  std::uint32_t used = 0;
  for (std::uint32_t i = 0; i < (read ? 1 : packets); ++i) {
    Packet packet;
    packet.first = i == 0;
    packet.last = read || i == packets - 1;
    packet.fence = work.fence;
    packet.send = work.send();
    packet.takes_receive = work.send() || work.opcode == WqeOpcode::kWriteImmediate;
    packet.ssn = queue.ssn;
    auto& desc = packet.desc;
    desc.qp = static_cast<std::uint8_t>(qp);
    desc.psn = (first_psn + i) & 0xffffff;
    desc.ack_req = packet.last || i % 16 == 15;
    desc.solicited = packet.last && packet.takes_receive && work.solicited;
    desc.ip_csum = work.ip_csum;
    desc.wqe_idx = index;
    desc.ack_timeout = queue.setup.ack_timeout;
    desc.last_psn = read ? inflight.last_psn : desc.psn;  // what an answer to it acknowledges
    RcOpcode opcode = RcOpcode::kReadRequest;
    if (!read) {
      if (packet.first && packet.last)
        opcode = write ? RcOpcode::kWriteOnly : RcOpcode::kSendOnly;
      else if (packet.first)
        opcode = write ? RcOpcode::kWriteFirst : RcOpcode::kSendFirst;
      else if (packet.last)
        opcode = write ? RcOpcode::kWriteLast : RcOpcode::kSendLast;
      else
        opcode = write ? RcOpcode::kWriteMiddle : RcOpcode::kSendMiddle;
      desc.payload_length = static_cast<std::uint16_t>(std::min(mtu, length - i * mtu));
      // ImmDt and IETH are in the last packet (9.3.6, 9.3.7).
      if (packet.last && immediate && packet.first)
        opcode = write ? RcOpcode::kWriteOnlyImmediate : RcOpcode::kSendOnlyImmediate;
      else if (packet.last && immediate)
        opcode = write ? RcOpcode::kWriteLastImmediate : RcOpcode::kSendLastImmediate;
      if (packet.last && invalidate)
        opcode = packet.first ? RcOpcode::kSendOnlyInvalidate : RcOpcode::kSendLastInvalidate;
      if (packet.last && (immediate || invalidate)) desc.immediate = work.immediate;
    }
    if (work.atomic()) {
      opcode = work.opcode == WqeOpcode::kFetchAdd ? RcOpcode::kFetchAdd : RcOpcode::kCompareSwap;
      desc.swap_add = work.swap_add;
      desc.compare = work.compare;
    }
    desc.opcode = static_cast<std::uint8_t>(static_cast<unsigned>(opcode) | queue.setup.qp_type * 0x20u);
    if (queue.setup.qp_type != 0) {  // nothing is acknowledged; the message is done when its last packet has left
      desc.ack_req = 0;
      desc.tell = packet.last;
    }
    if (work.address) {
      work.address->encode(desc.address);
      desc.source_qpn = queue.setup.qpn;
      desc.qkey = work.address->qkey >> 31 ? queue.setup.qkey : work.address->qkey;  // 10.2.5
    }
    if (read || (write && packet.first)) {
      desc.va = work.va;
      desc.rkey = work.rkey;
      if (!work.atomic()) desc.dma_length = length;
    }
    if (read)
      packet.read = rtl::ReadSlot{.wqe_idx = index, .first_psn = first_psn, .length = length, .atomic = work.atomic()};
    if (packet.last) packet.inflight = inflight;
    if (work.inlined) packet.inline_bytes = work.inline_bytes;
    std::uint32_t left = work.inlined ? 0 : desc.payload_length;
    while (left > 0) {
      const auto& segment = work.sges[sge];
      const std::uint32_t take = std::min(left, segment.length - used);
      if (take > 0) {
        rtl::SgPiece piece;
        piece.key = segment.lkey;
        piece.va = segment.va + used;
        piece.length = static_cast<std::uint16_t>(take);
        piece.pd = queue.setup.pd;
        piece.access = static_cast<std::uint8_t>(rtl::Access::kLocalRead);
        packet.pieces.push_back(piece);
      }
      left -= take;
      used += take;
      if (used == segment.length) {
        ++sge;
        used = 0;
      }
    }
    if (!packet.pieces.empty()) packet.pieces.back().last = 1;
    queue.expected.push_back(std::move(packet));
  }
}

// ---- Scoreboard
// ----------------------------------------------------------------------------------------------------------

void World::take_desc(const rtl::TxDesc& desc) {
  if (!desc_count++) first_desc_cycle = bench.cycle;
  last_desc_cycle = bench.cycle;
  INFO("QP " << int{desc.qp} << " WQE " << desc.wqe_idx << " opcode " << int{desc.opcode} << " psn " << desc.psn);
  REQUIRE(queues.count(desc.qp) == 1);
  auto& queue = queues[desc.qp];
  REQUIRE_FALSE(queue.expected.empty());
  Packet packet = std::move(queue.expected.front());
  queue.expected.pop_front();
  if (queue.setup.credits && queue.setup.qp_type == 0 && packet.takes_receive) {
    // 9.7.7.2.5. The limit may have moved since the packet was made; it only grows.
    const auto over = static_cast<std::int32_t>((packet.ssn - queue.lsn) << 8) >> 8;
    const bool alone = desc.psn == queue.una_psn;
    // An answer must come: of one that has asked, or of this one.
    const bool mute = !packet.first && !queue.asked;
    REQUIRE((over <= 0 || alone || mute || (over == 1 && packet.first) || (!packet.send && !packet.first)));
    if (packet.send) {
      if (over > 0) REQUIRE(desc.ack_req);
      packet.desc.ack_req |= desc.ack_req;
    }
    queue.beyond_limit += over > 0;
  }
  REQUIRE(desc == packet.desc);
  queue.asked = desc.ack_req;
  queue.partly = packet.last ? std::nullopt : std::optional(desc.psn);
  ++queue.packets;
  if (packet.first) {
    REQUIRE(static_cast<std::uint16_t>(desc.wqe_idx - queue.retired) < kSqWindow);
    if (packet.fence) REQUIRE(queue.reads.empty());
    queue.started = static_cast<std::uint16_t>(desc.wqe_idx + 1);
  }
  if (packet.read) {
    queue.reads.insert(desc.wqe_idx);
    queue.unanswered.push_back(desc.wqe_idx);
    REQUIRE(queue.reads.size() <= queue.setup.max_rd);
    slot_checks_.emplace_back(static_cast<std::uint16_t>(desc.qp << 4 | (queue.read_slot++ & 15)), *packet.read);
  }
  if (packet.last) {
    REQUIRE_FALSE(queue.inflight_seen.empty());
    REQUIRE(queue.inflight_seen.front() == *packet.inflight);
    queue.inflight_seen.pop_front();
    queue.sent.push_back(desc.wqe_idx);
  }
  if (desc.payload_length > 0) to_match_.push_back(std::move(packet));
  if (on_desc) on_desc(desc);
  match();
}

void World::match() {
  while (!to_match_.empty() && !pieces_->items.empty()) {
    auto& packet = to_match_.front();
    auto piece = pieces_->items.front();
    pieces_->items.pop_front();
    if (!packet.inline_bytes.empty()) {
      REQUIRE(piece.inline_data == 1);
      REQUIRE(piece.length <= packet.inline_bytes.size());
      REQUIRE(piece.offset + piece.length <= 64);
      REQUIRE(std::equal(packet.inline_bytes.begin(), packet.inline_bytes.begin() + piece.length,
                         piece.data.begin() + piece.offset));
      packet.inline_bytes.erase(packet.inline_bytes.begin(), packet.inline_bytes.begin() + piece.length);
      REQUIRE((piece.last == 1) == packet.inline_bytes.empty());
    } else {
      piece.data = {};  // means something for inline pieces only
      REQUIRE(piece == packet.pieces.front());
      packet.pieces.erase(packet.pieces.begin());
    }
    if (packet.pieces.empty() && packet.inline_bytes.empty()) to_match_.pop_front();
  }
}

bool World::idle() const {
  if (!to_match_.empty() || !pieces_->items.empty() || !doorbells_->idle() || !pushes_->idle() || !steps_.empty() ||
      host_ != HostState::kIdle)
    return false;
  for (const auto& [qp, queue] : queues) {
    if (!queue.expected.empty() || (answer && (!queue.sent.empty() || !queue.reads.empty()))) return false;
  }
  return true;
}

// ---- Host memory
// -----------------------------------------------------------------------------------------------------------

void World::drive_dma() {
  auto& dut = *bench.dut;
  dut.rd_req_ready_i = fetches_.size() < 20 && bench.chance(output_rate);
  if (beats_.empty() && !fetches_.empty() && fetches_.front().due <= bench.cycle) {
    const auto request = fetches_.front().request;
    fetches_.pop_front();
    bool bad = false;
    for (std::uint64_t line = request.addr / 64; line <= (request.addr + request.length - 1) / 64; ++line)
      bad |= bad_addresses.count(line) != 0;
    for (std::uint32_t at = 0; at < request.length; at += 64) {
      rtl::DmaRdRsp beat;
      beat.err = bad;
      beat.bytes = bad ? 0 : 64;
      beat.last = bad || at + 64 == request.length;
      for (std::size_t i = 0; i < 64; ++i) {
        const auto found = memory.find(request.addr + at + i);
        beat.data[i] = found == memory.end() ? static_cast<std::uint8_t>(bench.rng()) : found->second;
      }
      beats_.push_back(beat);
      if (bad) break;
    }
  }
  if (!beat_offered_ && !beats_.empty() && bench.chance(output_rate)) {
    put(dut.rd_rsp_data_i, beats_.front());
    beat_offered_ = true;
  }
  dut.rd_rsp_valid_i = beat_offered_;
}

void World::sample_dma() {
  auto& dut = *bench.dut;
  if (dut.rd_req_valid_o && dut.rd_req_ready_i) {
    const auto request = get<rtl::DmaRdReq>(dut.rd_req_data_o);
    REQUIRE(request.addr % 64 == 0);
    REQUIRE(request.length % 64 == 0);
    REQUIRE(request.length > 0);
    REQUIRE(request.length <= 512);
    bool inside = false;
    for (const auto& [qp, queue] : queues) {
      const std::uint64_t end = queue.setup.sq_base + std::uint64_t{queue.depth()} * queue.stride();
      inside |= request.addr >= queue.setup.sq_base && request.addr + request.length <= end;
    }
    REQUIRE(inside);
    fetches_.push_back({request, bench.cycle + bench.uniform(dma_latency_low, dma_latency_high)});
  }
  if (beat_offered_ && dut.rd_rsp_ready_o) {
    beats_.pop_front();
    beat_offered_ = false;
  }
}

// ---- Context client: set-up, the peer's answers
// ------------------------------------------------------------------------------

void World::change(int qp, std::function<void(rtl::SendCtx&)> action, bool wake) {
  steps_.push_back({qp, std::move(action), wake});
}

rtl::SendCtx World::context(int qp) {
  std::optional<rtl::SendCtx> seen;
  change(qp, [&](rtl::SendCtx& ctx) { seen = ctx; });
  bench.run_until([&] { return seen && steps_.empty() && host_ == HostState::kIdle; }, 5000, "context");
  return *seen;
}

void World::drive_host() {
  auto& dut = *bench.dut;
  dut.host_acq_valid_i = host_ == HostState::kIdle && !steps_.empty();
  if (!steps_.empty()) dut.host_acq_index_i = static_cast<std::uint8_t>(steps_.front().qp);
  dut.host_rel_valid_i = host_ == HostState::kReleasing;
  put(dut.host_rel_data_i, held_);
  // The completion block and the host wake it by ports of their own, with the same effect.
  const bool by_host = bench.chance(0.3);
  dut.sq_wake_valid_i = wake_.has_value() && !by_host;
  dut.sq_wake_qp_i = static_cast<std::uint8_t>(wake_.value_or(0));
  dut.host_wake_valid_i = wake_.has_value() && by_host;
  dut.host_wake_qp_i = dut.sq_wake_qp_i;
  wake_.reset();
  const auto stray = [&](CData& valid, CData& qp) {
    if (valid || stray_rate == 0 || queues.empty() || !bench.chance(stray_rate)) return;
    valid = 1;
    const auto at = bench.uniform(0, queues.size() - 1);
    qp = static_cast<std::uint8_t>(std::next(queues.begin(), static_cast<std::ptrdiff_t>(at))->first);
  };
  stray(dut.sq_wake_valid_i, dut.sq_wake_qp_i);
  stray(dut.host_wake_valid_i, dut.host_wake_qp_i);
}

void World::sample_host() {
  auto& dut = *bench.dut;
  if (dut.host_acq_valid_i && dut.host_acq_ready_o) host_ = HostState::kWaiting;
  if (host_ == HostState::kWaiting && dut.host_ctx_valid_o) {
    held_ = get<rtl::SendCtx>(dut.host_ctx_data_o);
    auto& step = steps_.front();
    step.action(held_);
    if (step.retires)
      step.wake = std::exchange(held_.stalled, 0) != 0 || held_.state == static_cast<std::uint8_t>(QpState::kSqd);
    host_ = HostState::kReleasing;
  } else if (dut.host_rel_valid_i && dut.host_rel_ready_o) {
    if (steps_.front().wake) wake_ = steps_.front().qp;
    steps_.pop_front();
    host_ = HostState::kIdle;
  }
  peer();
}

void World::answer_to(int qp, std::function<void(rtl::SendCtx&)> action) {
  steps_.push_back({qp, std::move(action), false, true});
}

/// Retires the oldest sent WQE of some QP, or finishes one of its Reads; Reads finish in order, WQEs retire in order.
void World::peer() {
  if (!answer || queues.empty() || steps_.size() > 2 || !bench.chance(answer_rate)) return;
  auto at = queues.begin();
  std::advance(at, static_cast<std::ptrdiff_t>(bench.uniform(0, queues.size() - 1)));
  for (std::size_t tries = 0; tries < queues.size(); ++tries, ++at) {
    if (at == queues.end()) at = queues.begin();
    auto& [qp, queue] = *at;
    if (queue.setup.credits && bench.chance(0.3)) {
      // Receives are posted; or the peer takes the first packets of a message, whose last one has not left.
      const bool taken = queue.partly && queue.sent.empty() && bench.chance(0.5);
      const bool short_of = ((queue.lsn - queue.ssn) & 0x800000) != 0;  // of credits for what is posted
      answer_to(qp, [&queue, taken, partly = queue.partly.value_or(0),
                     more = static_cast<std::uint32_t>(bench.uniform(0, short_of ? 3 : 0))](rtl::SendCtx& ctx) {
        if (taken)
          ctx.una_psn = queue.una_psn = (partly + 1) & 0xffffff;
        else
          ctx.lsn = queue.lsn = (queue.lsn + more) & 0xffffff;
      });
      return;
    }
    if (!queue.unanswered.empty() && bench.chance(0.6)) {
      const auto index = queue.unanswered.front();
      queue.unanswered.pop_front();
      answer_to(qp, [&queue, index](rtl::SendCtx& ctx) {
        --ctx.rd_outstanding;
        queue.reads.erase(index);
      });
      return;
    }
    if (queue.sent.empty() || queue.reads.count(queue.sent.front())) continue;
    const auto retired = queue.last_psns.extract(queue.sent.front());
    queue.sent.pop_front();
    answer_to(qp, [&queue, psn = retired.mapped()](rtl::SendCtx& ctx) {
      ctx.una_psn = queue.una_psn = (psn + 1) & 0xffffff;
      ++ctx.retire_idx;
      ++queue.retired;
    });
    return;
  }
}

// ---- The rest
// ----------------------------------------------------------------------------------------------------------------

void World::drive_misc() {
  auto& dut = *bench.dut;
  descs_->rate = pieces_->rate = output_rate;
  fails_->rate = output_rate * failure_rate;
  flush_ready_ = bench.chance(output_rate * flush_rate);
  dut.flush_req_ready_i = flush_ready_;
  slot_read_ = !slot_checks_.empty() && !slot_answer_;
  dut.read_slot_en_i = slot_read_;
  if (slot_read_) dut.read_slot_addr_i = slot_checks_.front().first;
}

void World::sample_misc() {
  auto& dut = *bench.dut;
  if (dut.drained_valid_o) drained.push_back(dut.drained_qp_o);
  for (std::size_t i = 0; i < events.size(); ++i) events[i] += port_bit(dut.event_o, i);
  if (dut.inflight_valid_o) {
    const auto entry = get<rtl::Inflight>(dut.inflight_data_o);
    queues[entry.qp].inflight_seen.push_back(entry);
  }
  if (dut.flush_req_valid_o && flush_ready_) flushes.push_back(dut.flush_req_qp_o);
  if (slot_answer_) {
    REQUIRE(get<rtl::ReadSlot>(dut.read_slot_data_o) == *slot_answer_);
    slot_answer_.reset();
  }
  if (slot_read_) {
    slot_answer_ = slot_checks_.front().second;
    slot_checks_.pop_front();
  }
}

void World::reset_qp(int qp) {
  auto& dut = *bench.dut;
  dut.qp_reset_qp_i = static_cast<std::uint8_t>(qp);
  dut.qp_reset_valid_i = 1;
  bool answered = false;
  for (int i = 0; i < 20000 && !answered; ++i) {
    bench.tick();
    // The answer was visible before the edge that this tick ended with, or is from now on.
    dut.eval();
    answered = dut.qp_reset_ready_o != 0;
  }
  REQUIRE(answered);
  bench.tick();
  dut.qp_reset_valid_i = 0;
}

}  // namespace rnic::test
