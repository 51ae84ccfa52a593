#include "tests/rtl/sq_world.hpp"

// rtl/sq/send_queue.sv with its contexts: every packet that WQEs ask for, in order, and nothing else.
using namespace rnic::test;
using namespace rnic::hw;
namespace rtl = rnic::rtl;

namespace {

/// Posts `left` random requests on each QP as its queue has room, a few to a doorbell, some through the window.
void traffic(World& world, const std::vector<int>& qps, int left_each, double window = 0.2) {
  std::map<int, int> left;
  for (const int qp : qps) left[qp] = left_each;
  const auto more = [&] { return std::any_of(left.begin(), left.end(), [](const auto& l) { return l.second > 0; }); };
  std::uint64_t quiet = 0;
  while (more()) {
    const int qp = qps[world.bench.uniform(0, qps.size() - 1)];
    auto& queue = world.queues.at(qp);
    if (left[qp] > 0 && queue.free_slots() > 0 && world.bench.chance(0.3)) {
      quiet = 0;
      auto batch = std::min<std::uint64_t>(
          {queue.free_slots(), static_cast<std::uint64_t>(left[qp]), world.bench.uniform(1, 6)});
      const bool pushed = world.bench.chance(window);
      if (pushed) batch = 1;
      bool small = true;
      for (std::uint64_t i = 0; i < batch; ++i) {
        const auto work = world.random_work(qp);
        small = work.size() <= 16;
        world.write_wqe(qp, work);
        --left[qp];
      }
      // Window, doorbell, or both: then the WQE may already be on its way from memory.
      if (!pushed || !small || world.bench.chance(0.2)) world.ring(qp);
      if (pushed && small) world.bench.chance(0.8) ? world.push_last(qp) : world.push_first_word(qp);
    }
    world.bench.tick();
    REQUIRE(++quiet < 100000);
  }
  world.finish();
}

WqeData sge(std::uint32_t length, std::uint64_t va = 0x1000, std::uint32_t key = 0x77) {
  WqeData data;
  data.va = va;
  data.length = length;
  data.lkey = key;
  return data;
}

Work inline_write(std::size_t bytes) {
  Work work;
  work.opcode = WqeOpcode::kWrite;
  work.inlined = true;
  work.va = 0x123456789abcdef0;
  work.rkey = 0x5555aaaa;
  work.inline_bytes.resize(bytes);
  for (std::size_t i = 0; i < bytes; ++i) work.inline_bytes[i] = static_cast<std::uint8_t>(i * 7 + 1);
  return work;
}

Work plain(WqeOpcode opcode, const std::vector<std::uint32_t>& lengths) {
  Work work;
  work.opcode = opcode;
  work.va = 0xabcdef0000;
  work.rkey = 0x1234;
  for (const auto length : lengths) work.sges.push_back(sge(length, 0x10000 * (1 + work.sges.size())));
  return work;
}

}  // namespace

TEST_CASE("send_queue: random requests on many QPs become exactly their packets", "[rtl]") {
  const auto rate = GENERATE(1.0, 0.4);
  World world(seed(static_cast<std::uint64_t>(rate * 10)));
  world.output_rate = rate;
  std::vector<int> qps;
  for (int i = 0; i < 12; ++i) {
    qps.push_back(i * 21);
    // Some of UC, some of UD, some of Ethernet frames.
    const auto type = static_cast<std::uint8_t>(i % 6 == 3   ? QpType::kRawPacket
                                                : i % 6 == 4 ? QpType::kUc
                                                : i % 6 == 5 ? QpType::kUd
                                                             : QpType::kRc);
    // Of some reliable ones the peer counts its Receives.
    const bool credits = i % 6 < 2;
    world.set_up(qps.back(), [type, credits](rtl::SendCtx& ctx) {
      ctx.qp_type = type;
      ctx.credits = credits;
      ctx.lsn = ctx.ssn;
    });
  }
  traffic(world, qps, 400);
  CHECK(world.failures.empty());
  CHECK(world.flushes.empty());
  CHECK(world.count(Counter::kDoorbellsRefused) == 0);
  CHECK(world.count(Counter::kWindowWqes) > 5);
  CHECK(world.count(Counter::kWindowFallbacks) > 5);
  CHECK(world.count(Counter::kFenceStalls) > 5);
  for (const int qp : qps) {
    const auto ctx = world.context(qp);
    const auto& queue = world.queues.at(qp);
    CHECK(ctx.exec_idx == queue.pi);
    CHECK(ctx.pi == queue.pi);
    CHECK(ctx.next_psn == queue.next_psn);
    CHECK(ctx.fault == 0);
    CHECK(ctx.msg_active == 0);
    CHECK(ctx.buf_count == 0);
    CHECK(ctx.rd_tail == (queue.read_slot & 31));
    CHECK(ctx.pd == queue.setup.pd);
    CHECK(ctx.ssn == queue.ssn);
    if (queue.setup.credits) CHECK(queue.beyond_limit > 5);
  }
  CHECK(world.count(Counter::kCreditStalls) > 20);
}

TEST_CASE("send_queue: credits hold back what takes a receive WQE, but for one request beyond the limit (9.7.7.2.5)",
          "[rtl]") {
  World world(seed(12));
  world.answer = false;
  const auto set_up = [&](std::uint32_t credits, bool unacknowledged) {
    world.set_up(5, [&](rtl::SendCtx& ctx) {
      ctx.mtu = 1;
      ctx.log_depth = 5;
      ctx.log_stride = 8;
      ctx.max_rd = 4;
      ctx.credits = 1;
      ctx.ssn = 0xffffff;
      ctx.lsn = (ctx.ssn + credits) & 0xffffff;
      if (unacknowledged) ctx.una_psn = (ctx.next_psn - 1) & 0xffffff;
    });
  };
  const auto post = [&](WqeOpcode opcode, std::uint32_t length) {
    world.write_wqe(5, plain(opcode, {length}));
    world.ring(5);
  };
  const auto packets = [&] {
    world.bench.run(400);
    return world.queues.at(5).packets;
  };
  const auto credit = [&](std::uint32_t more) {
    auto& queue = world.queues.at(5);
    world.change(
        5, [&queue, more](rtl::SendCtx& ctx) { ctx.lsn = queue.lsn = (queue.lsn + more) & 0xffffff; }, true);
  };
  SECTION("two credits let three SENDs go; every further one lets one go") {
    set_up(2, true);
    for (int i = 0; i < 6; ++i) post(i % 2 ? WqeOpcode::kSend : WqeOpcode::kSendImmediate, 8);
    CHECK(packets() == 3);
    credit(1);
    CHECK(packets() == 4);
    credit(2);
    CHECK(packets() == 6);
    CHECK(world.count(Counter::kCreditStalls) >= 2);
  }
  SECTION("what takes no receive WQE needs none, and passes nothing") {
    set_up(0, true);
    post(WqeOpcode::kWrite, 600);
    post(WqeOpcode::kRead, 600);
    post(WqeOpcode::kFetchAdd, 8);
    CHECK(packets() == 5);
    post(WqeOpcode::kSend, 8);
    post(WqeOpcode::kWrite, 8);
    CHECK(packets() == 5);  // three requests beyond the limit are out already
    credit(2);
    CHECK(packets() == 5);
    credit(1);
    CHECK(packets() == 7);  // the SEND is one beyond, and the Write is free
  }
  SECTION("of a long SEND beyond the limit only the first packet goes, until it has its answer") {
    set_up(0, true);
    post(WqeOpcode::kSend, 1000);
    CHECK(packets() == 1);
    auto& queue = world.queues.at(5);
    const auto taken = [&] {
      world.change(
          5, [&](rtl::SendCtx& ctx) { ctx.una_psn = queue.una_psn = ctx.next_psn; }, true);
    };
    taken();
    CHECK(packets() == 2);  // a peer that does not count the WQE under way: packet by packet
    taken();
    CHECK(packets() == 3);
    credit(1);
    CHECK(packets() == 4);
  }
  SECTION(
      "a limit that becomes known in the middle of a SEND: one packet more, which asks, and its answer lets it go on") {
    set_up(0, false);
    auto& queue = world.queues.at(5);
    queue.setup.credits = 0;
    world.change(
        5, [](rtl::SendCtx& ctx) { ctx.credits = 0; }, true);
    post(WqeOpcode::kSend, 50 * 256);
    world.bench.run_until([&] { return queue.packets >= 3; }, 4000, "the first packets");
    world.change(
        5,
        [&](rtl::SendCtx& ctx) {
          ctx.credits = queue.setup.credits = 1;
          ctx.lsn = queue.lsn = ctx.ssn;
        },
        true);
    const auto sent = packets();
    CHECK(sent < 50);
    CHECK(queue.asked);
    world.change(
        5, [&](rtl::SendCtx& ctx) { ctx.una_psn = queue.una_psn = ctx.next_psn; }, true);
    CHECK(packets() == sent + 1);
    credit(1);
    CHECK(packets() == 50);
  }
  SECTION("a WRITE with immediate data takes its receive WQE with the last packet: one beyond the limit goes whole") {
    set_up(0, true);
    post(WqeOpcode::kWriteImmediate, 1000);
    CHECK(packets() == 4);
    post(WqeOpcode::kWriteImmediate, 1000);
    CHECK(packets() == 4);
    credit(1);
    CHECK(packets() == 8);
  }
  SECTION("whatever the peer says, a packet goes when nothing is unacknowledged") {
    set_up(0x800000 - 1000, false);  // a limit far behind
    post(WqeOpcode::kSend, 1000);
    CHECK(packets() == 4);  // no limit: it is as far ahead as the numbers go
    set_up(0xfff000, false);
    post(WqeOpcode::kSend, 1000);
    CHECK(packets() == 1);
  }
}

TEST_CASE("send_queue: every length around multiples of the MTU, every number of segments", "[rtl]") {
  World world(seed(4));
  world.answer_rate = 0.5;
  world.set_up(9, [](rtl::SendCtx& ctx) {
    ctx.mtu = 1;
    ctx.log_depth = 5;
    ctx.log_stride = 9;
  });
  const auto post = [&](const Work& work) {
    world.bench.run_until([&] { return world.queues.at(9).free_slots() > 0; }, 20000, "slot");
    world.write_wqe(9, work);
    world.ring(9);
  };
  for (const auto opcode : {WqeOpcode::kSend, WqeOpcode::kWrite, WqeOpcode::kRead}) {
    for (const std::uint32_t base : {0u, 256u, 512u, 4096u}) {
      for (std::uint32_t delta = 0; delta < 3; ++delta) {
        if (base + delta > 0) post(plain(opcode, {base + delta - 1}));
      }
    }
    for (std::uint32_t count = 0; count <= 16; ++count) {
      post(plain(opcode, std::vector<std::uint32_t>(count, 100)));
      post(plain(opcode, std::vector<std::uint32_t>(count, 0)));
      std::vector<std::uint32_t> holes(count, 0);
      for (std::size_t i = 0; i < count; i += 2) holes[i] = 256;
      post(plain(opcode, holes));
    }
  }
  for (std::size_t bytes = 0; bytes <= 224; ++bytes) post(inline_write(bytes));
  world.finish();
  CHECK(world.failures.empty());
  // Longest message.
  world.change(9, [](rtl::SendCtx& ctx) { ctx.mtu = 5; });
  world.queues.at(9).setup.mtu = 5;
  world.answer = true;
  auto read = plain(WqeOpcode::kRead, {0x80000000});
  post(read);
  world.finish();
  CHECK(world.queues.at(9).packets > 0);
}

TEST_CASE("send_queue: a WQE pushed through the window is sent without a fetch, in few cycles", "[rtl]") {
  World world(seed(5));
  world.set_up(3, [](rtl::SendCtx& ctx) {
    ctx.log_stride = 8;
    ctx.log_depth = 4;
  });
  world.write_wqe(3, inline_write(8));
  const auto start = world.bench.cycle;
  world.push_last(3);
  world.finish();
  CHECK(world.count(Counter::kWqeFetches) == 0);
  CHECK(world.count(Counter::kWindowWqes) == 1);
  std::printf("window WQE to descriptor: %llu cycles, to inline piece: %llu cycles\n",
              static_cast<unsigned long long>(world.first_desc_cycle - start),
              static_cast<unsigned long long>(world.first_piece_cycle - start));
  CHECK(world.first_desc_cycle - start <= 16);
  // Told by its first word, it is fetched.
  world.write_wqe(3, inline_write(8));
  world.push_first_word(3);
  world.finish();
  CHECK(world.count(Counter::kWqeFetches) == 1);
  CHECK(world.count(Counter::kWindowFallbacks) == 1);
  // A long one, over four lines.
  world.write_wqe(3, inline_write(224));
  world.push_last(3);
  world.finish();
  CHECK(world.count(Counter::kWqeFetches) == 1);
  // Behind another WQE that is not sent yet: the ring is used.
  world.answer = false;
  world.write_wqe(3, plain(WqeOpcode::kRead, {10}));
  world.ring(3);
  auto fenced = inline_write(4);
  fenced.fence = true;
  world.write_wqe(3, fenced);
  world.push_last(3);
  world.bench.run(400);
  world.write_wqe(3, inline_write(5));
  world.push_last(3);
  world.bench.run(400);
  CHECK(world.count(Counter::kWindowFallbacks) >= 2);
  CHECK(world.count(Counter::kFenceStalls) >= 1);
  CHECK(world.queues.at(3).expected.size() == 2);
  world.answer = true;
  world.finish();
}

TEST_CASE("send_queue: a WQE that comes through the window while it is being fetched is sent once", "[rtl]") {
  World world(seed(15));
  world.dma_latency_low = world.dma_latency_high = 125;
  world.set_up(3, [](rtl::SendCtx& ctx) {
    ctx.log_stride = 8;
    ctx.log_depth = 4;
  });
  world.write_wqe(3, inline_write(8));
  world.ring(3);
  world.bench.run(60);
  world.push_last(3);
  world.finish();
  CHECK(world.count(Counter::kWqeFetches) == 1);
  CHECK(world.count(Counter::kWindowFallbacks) == 1);
  CHECK(world.count(Counter::kWindowWqes) == 0);
}

TEST_CASE("send_queue: small inline Writes of 16 QPs follow each other closely", "[rtl]") {
  World world(seed(6));
  world.dma_latency_low = world.dma_latency_high = 125;
  world.answer = false;
  for (int qp = 0; qp < 16; ++qp) {
    world.set_up(qp, [](rtl::SendCtx& ctx) {
      ctx.log_stride = 6;
      ctx.log_depth = 6;
    });
    for (int i = 0; i < 32; ++i) world.write_wqe(qp, inline_write(8));
  }
  for (int qp = 0; qp < 16; ++qp) world.ring(qp);
  world.bench.run_until([&] { return world.desc_count == 16 * 32; }, 20000, "all packets");
  const double gap = static_cast<double>(world.last_desc_cycle - world.first_desc_cycle) / (16 * 32 - 1);
  std::printf("cycles per 8-byte inline Write, 16 QPs: %.2f\n", gap);
  CHECK(gap <= 10);
  world.finish();
}

TEST_CASE("send_queue: one QP streams packets at less than a packet's wire time", "[rtl]") {
  World world(seed(7));
  world.answer = false;
  world.set_up(1, [](rtl::SendCtx& ctx) {
    ctx.log_stride = 8;
    ctx.log_depth = 4;
    ctx.mtu = 3;
  });
  world.write_wqe(1, plain(WqeOpcode::kWrite, {65536}));
  world.ring(1);
  world.finish();
  const double gap = static_cast<double>(world.last_desc_cycle - world.first_desc_cycle) / 63;
  std::printf("cycles per packet of one message: %.2f\n", gap);
  CHECK(gap <= 12);
}

TEST_CASE("send_queue: queue pairs share the wire by turns of 1 KiB, small packets four to a turn", "[rtl]") {
  const auto mtu = GENERATE(as<std::uint8_t>{}, 1, 2, 3, 0);  // 256, 512, 1024; 0: messages of 8 bytes
  World world(seed(18));
  world.answer = false;
  world.dma_latency_low = world.dma_latency_high = 5;
  const unsigned at_once = mtu <= 1 ? 4 : mtu == 2 ? 2 : 1;
  for (int qp = 0; qp < 3; ++qp) {
    world.set_up(qp, [&](rtl::SendCtx& ctx) {
      ctx.log_stride = 6;
      ctx.log_depth = 6;
      ctx.mtu = mtu == 0 ? 1 : mtu;
    });
    for (int i = 0; i < (mtu == 0 ? 32 : 4); ++i)
      world.write_wqe(qp, mtu == 0 ? inline_write(8) : plain(WqeOpcode::kWrite, {8192}));
  }
  for (int qp = 0; qp < 3; ++qp) world.ring(qp);
  const std::uint64_t all = mtu == 0 ? 32 : 4 * 8192 / (128u << mtu);
  std::array<std::uint64_t, 3> sent{};
  unsigned run = 0, longest = 0, last = 3;
  world.on_desc = [&](const rtl::TxDesc& desc) {
    ++sent[desc.qp];
    run = desc.qp == last ? run + 1 : 1;
    last = desc.qp;
    const auto [least, most] = std::minmax_element(sent.begin(), sent.end());
    if (*least > at_once && *most + at_once < all) longest = std::max(longest, run);  // all have something to send
  };
  world.finish();
  CHECK(longest == at_once);
}

// The engine gives its contexts back whether the wire moves or not; what it makes always has a place.
TEST_CASE("send_queue: a wire that stands still fills the queue of packets, and nothing is lost", "[rtl]") {
  World world(seed(24));
  world.answer = false;
  world.dma_latency_low = world.dma_latency_high = 5;
  constexpr int kQps = 8, kWqes = 32;
  for (int qp = 0; qp < kQps; ++qp) {
    world.set_up(qp, [&](rtl::SendCtx& ctx) {
      ctx.log_stride = 6;
      ctx.log_depth = 6;
      ctx.mtu = 1;
    });
    for (int i = 0; i < kWqes; ++i)
      world.write_wqe(qp, world.bench.chance(0.5) ? inline_write(8) : plain(WqeOpcode::kWrite, {100, 100}));
    world.ring(qp);
  }
  while (world.desc_count < kQps * kWqes) {
    world.output_rate = world.output_rate == 0 ? 1 : 0;
    world.bench.run(world.bench.uniform(1, world.output_rate == 0 ? 150 : 60));
  }
  world.output_rate = 1;
  world.finish();
  CHECK(world.desc_count == kQps * kWqes);
}

// What waits for the wire can't be taken back: a peer that asks for something again, and every other queue pair, waits
// behind it (docs/architecture.md, Turns of the send queues).
TEST_CASE("send_queue: of a message that waits for the wire little is made into packets", "[rtl]") {
  constexpr std::uint32_t kLimit = 8192, kPackets = 16;
  const auto mtu = GENERATE(as<std::uint8_t>{}, 1, 3, 5);
  World world(seed(25));
  world.answer = false;
  world.set_up(1, [&](rtl::SendCtx& ctx) {
    ctx.log_stride = 6;
    ctx.log_depth = 4;
    ctx.mtu = mtu;
  });
  world.write_wqe(1, plain(WqeOpcode::kWrite, {200'000}));
  world.ring(1);
  world.bench.run_until([&] { return world.desc_count > 0; }, 2000, "first packet");
  world.output_rate = 0;
  world.bench.run(20);  // what the sinks of this test were about to take
  const auto taken = static_cast<std::uint32_t>(world.desc_count);
  world.bench.run(2000);
  const std::uint32_t bytes = 128u << mtu;
  const std::uint32_t made = (world.context(1).next_psn - world.queues.at(1).setup.next_psn) & 0xffffff;
  CHECK((made - taken) * bytes >= std::min(kLimit, kPackets * bytes));
  CHECK((made - taken) * bytes <= kLimit + 2 * std::max(bytes, 1024u) + bytes);
  world.output_rate = 1;
  world.finish();
}

TEST_CASE("send_queue: a queue that steps aside is marked until it goes on", "[rtl]") {
  World world(seed(19));
  world.answer = false;
  world.set_up(3, [](rtl::SendCtx& ctx) {
    ctx.log_stride = 7;
    ctx.log_depth = 4;
    ctx.max_rd = 2;
  });
  world.write_wqe(3, plain(WqeOpcode::kRead, {100}));
  auto fenced = inline_write(8);
  fenced.fence = true;
  world.write_wqe(3, fenced);
  world.ring(3);
  world.bench.run(400);
  CHECK(world.desc_count == 1);
  CHECK(world.context(3).stalled == 1);
  CHECK(world.context(3).rd_outstanding == 1);
  world.queues.at(3).reads.clear();
  world.queues.at(3).unanswered.clear();
  world.change(
      3, [](rtl::SendCtx& ctx) { ctx.rd_outstanding = 0; }, true);
  world.bench.run(400);
  CHECK(world.desc_count == 2);
  CHECK(world.context(3).stalled == 0);
}

TEST_CASE("send_queue: at most SqWindow WQEs wait for retirement", "[rtl]") {
  World world(seed(8));
  world.answer = false;
  world.set_up(40, [](rtl::SendCtx& ctx) {
    ctx.log_depth = 8;
    ctx.log_stride = 7;
  });
  for (int i = 0; i < 100; ++i) world.write_wqe(40, inline_write(16));
  world.ring(40);
  world.bench.run(4000);
  CHECK(world.desc_count == 64);
  CHECK(world.count(Counter::kWindowStalls) >= 1);
  world.answer = true;
  world.finish();
  CHECK(world.desc_count == 100);
}

TEST_CASE("send_queue: the Read limit holds Reads back, and all that follows them", "[rtl]") {
  World world(seed(9));
  world.answer = false;
  world.set_up(77, [](rtl::SendCtx& ctx) {
    ctx.log_depth = 6;
    ctx.max_rd = 3;
  });
  for (int i = 0; i < 5; ++i) world.write_wqe(77, plain(WqeOpcode::kRead, {1000}));
  world.write_wqe(77, inline_write(1));
  world.ring(77);
  world.bench.run(1000);
  CHECK(world.desc_count == 3);
  CHECK(world.count(Counter::kReadLimitStalls) >= 1);
  world.answer = true;
  world.finish();
}

TEST_CASE("send_queue: a Write passes an unfinished Read, a fenced one waits", "[rtl]") {
  World world(seed(10));
  world.answer = false;
  world.set_up(5, [](rtl::SendCtx& ctx) { ctx.log_depth = 4; });
  world.write_wqe(5, plain(WqeOpcode::kRead, {100}));
  world.write_wqe(5, inline_write(3));
  auto fenced = inline_write(3);
  fenced.fence = true;
  world.write_wqe(5, fenced);
  world.ring(5);
  world.bench.run(1000);
  CHECK(world.desc_count == 2);
  world.answer = true;
  world.finish();
}

TEST_CASE("send_queue: Reads never have more than half of the PSNs outstanding", "[rtl]") {
  World world(seed(11));
  world.answer = false;
  world.set_up(5, [](rtl::SendCtx& ctx) {
    ctx.log_depth = 4;
    ctx.mtu = 1;
    ctx.max_rd = 16;
  });
  world.write_wqe(5, plain(WqeOpcode::kRead, {0x40000000}));
  world.write_wqe(5, plain(WqeOpcode::kRead, {0x40000000}));
  world.write_wqe(5, plain(WqeOpcode::kRead, {1}));
  world.ring(5);
  world.bench.run(1000);
  CHECK(world.desc_count == 2);
  world.change(5, [](rtl::SendCtx& ctx) { ctx.una_psn = (ctx.una_psn + 0x400000) & 0xffffff; });
  world.answer = true;
  world.finish();
}

TEST_CASE("send_queue: a malformed WQE sends nothing and stops its queue only", "[rtl]") {
  struct Bad {
    const char* what;
    std::function<void(Work&)> work;                // before it is encoded
    std::function<void(rnic::test::Bytes&)> bytes;  // in the ring
  };
  const auto control = [](auto change) {
    return [change](Bytes& bytes) {
      auto c = WqeControl::decode(std::span<const std::uint8_t, 16>(bytes.data(), 16));
      change(c);
      c.encode(std::span<std::uint8_t, 16>(bytes.data(), 16));
    };
  };
  const std::vector<Bad> kinds = {
      {"opcode", {}, control([](WqeControl& c) { c.opcode = 7; })},
      {"bind with data",
       [](Work& w) {
         w = plain(WqeOpcode::kWrite, {0, 0});
       },
       control([](WqeControl& c) { c.opcode = 0x45; })},
      {"bind with a length", [](Work& w) { w = plain(WqeOpcode::kWrite, {0}); },
       control([](WqeControl& c) { c.opcode = 0x05, c.length = 1; })},
      {"bind without its second segment", [](Work& w) { w = plain(WqeOpcode::kWrite, {}); },
       control([](WqeControl& c) { c.opcode = 0x45; })},
      {"inline bind", [](Work& w) { w = plain(WqeOpcode::kWrite, {0}); },
       control([](WqeControl& c) { c.opcode = 0x45, c.inline_data = 1; })},
      {"invalidation with a segment", [](Work& w) { w = plain(WqeOpcode::kSend, {0}); },
       control([](WqeControl& c) { c.opcode = 0x06; })},
      {"fast registration by a process", [](Work& w) { w = plain(WqeOpcode::kWrite, {0}); },
       control([](WqeControl& c) { c.opcode = 0x08; })},
      {"fast registration without its second segment", [](Work& w) { w = plain(WqeOpcode::kWrite, {}); },
       control([](WqeControl& c) { c.opcode = 0x08; })},
      {"Read with immediate", [](Work& w) { w = plain(WqeOpcode::kRead, {8}); },
       control([](WqeControl& c) { c.opcode = 0x12; })},
      {"Write with invalidate", {}, control([](WqeControl& c) { c.opcode = 0x21; })},
      {"immediate and invalidate", {}, control([](WqeControl& c) { c.opcode = 0x30; })},
      {"atomic of 4 bytes", [](Work& w) { w = plain(WqeOpcode::kFetchAdd, {4}); }, {}},
      {"atomic of 16 bytes", [](Work& w) { w = plain(WqeOpcode::kFetchAdd, {16}); }, {}},
      {"atomic in two segments",
       [](Work& w) {
         w = plain(WqeOpcode::kCompareSwap, {4, 4});
       },
       {}},
      {"atomic without a segment", [](Work& w) { w = plain(WqeOpcode::kCompareSwap, {}); }, {}},
      {"inline atomic",
       [](Work& w) {
         w = inline_write(8);
         w.opcode = WqeOpcode::kCompareSwap;
       },
       {}},
      {"atomic when none are allowed", [](Work& w) { w = plain(WqeOpcode::kFetchAdd, {8}); }, {}},
      {"qpn", {}, control([](WqeControl& c) { c.qpn ^= 0x100; })},
      {"index", {}, control([](WqeControl& c) { ++c.wqe_index; })},
      {"size 0", {}, control([](WqeControl& c) { c.size = 0; })},
      {"size above the stride", {}, control([](WqeControl& c) { c.size = 33; })},
      {"size 255", {}, control([](WqeControl& c) { c.size = 255; })},
      {"size below the data", {}, control([](WqeControl& c) { --c.size; })},
      {"length above the data", {}, control([](WqeControl& c) { ++c.length; })},
      {"length below the data", {}, control([](WqeControl& c) { --c.length; })},
      {"length 2^31 + 1",
       [](Work& w) {
         w.sges = {sge(0x7fffffff), sge(2)};
       },
       {}},
      {"length wraps",
       [](Work& w) {
         w.sges = {sge(0x80000000), sge(0x80000000), sge(100)};
       },
       control([](WqeControl& c) { c.length = 100; })},
      {"17 segments", [](Work& w) { w.sges.assign(17, sge(1)); }, {}},
      {"inline Read",
       [](Work& w) {
         w = inline_write(8);
         w.opcode = WqeOpcode::kRead;
       },
       {}},
      {"inline longer than its size", [](Work& w) { w = inline_write(16); },
       control([](WqeControl& c) { c.length = 17; })},
      {"inline of 225 bytes", [](Work& w) { w = inline_write(225); }, {}},
      {"inline Write without its remote segment", [](Work& w) { w = inline_write(0); },
       control([](WqeControl& c) { c.size = 1; })},
      {"inline Write larger than its slot", [](Work& w) { w = inline_write(16); },
       control([](WqeControl& c) { c.size = 33; })},
      {"Read without remote segment", [](Work& w) { w = plain(WqeOpcode::kRead, {}); },
       control([](WqeControl& c) { c.size = 1; })},
      {"Read when none are allowed", [](Work& w) { w = plain(WqeOpcode::kRead, {5}); }, {}},
  };
  World world(seed(12));
  world.set_up(200, [](rtl::SendCtx& ctx) { ctx.log_depth = 7; });
  int qp = 0;
  for (const auto& kind : kinds) {
    DYNAMIC_SECTION(kind.what) {
      const bool no_reads = std::string(kind.what).find("none are allowed") != std::string::npos;
      world.set_up(qp, [&](rtl::SendCtx& ctx) {
        ctx.log_depth = 3;
        ctx.log_stride = 9;
        ctx.mtu = 1;
        ctx.max_rd = no_reads ? 0 : 4;
      });
      auto& queue = world.queues.at(qp);
      world.write_wqe(qp, plain(WqeOpcode::kWrite, {700}));
      Work work = plain(WqeOpcode::kWrite, {100, 300});
      if (kind.work) kind.work(work);
      const std::uint16_t bad = queue.pi++;
      auto bytes = world.encode(qp, bad, work);
      if (kind.bytes) kind.bytes(bytes);
      world.write_memory(queue.setup.sq_base + std::uint64_t{bad & 7u} * 512, bytes);
      ++queue.pi;  // one more behind it, never looked at
      world.ring(qp);
      world.write_wqe(200, inline_write(10));
      world.ring(200);
      world.finish();
      world.bench.run(500);
      REQUIRE(world.failures.size() == 1);
      CHECK(world.failures[0].qp == qp);
      CHECK(world.failures[0].command == static_cast<std::uint8_t>(rtl::RetireCommand::kFailWqe));
      CHECK(world.failures[0].wqe_idx == bad);
      CHECK(world.failures[0].status == static_cast<std::uint8_t>(CqeStatus::kLocQpOpErr));
      CHECK(world.count(Counter::kWqeErrors) == 1);
      const auto ctx = world.context(qp);
      CHECK(ctx.fault == 1);
      CHECK(ctx.fault_idx == bad);
      CHECK(ctx.exec_idx == bad);
      CHECK(ctx.next_psn == queue.next_psn);
    }
    ++qp;
  }
}

TEST_CASE("send_queue: a WQE that cannot be read fails when all before it have been sent", "[rtl]") {
  World world(seed(13));
  for (int good = 0; good < 20; good += 3) {
    const int qp = good;
    world.failures.clear();
    world.set_up(qp, [](rtl::SendCtx& ctx) {
      ctx.log_depth = 6;
      ctx.log_stride = 6;
      ctx.pi = ctx.exec_idx = ctx.retire_idx = 0;
    });
    for (int i = 0; i < good; ++i) world.write_wqe(qp, inline_write(8));
    auto& queue = world.queues.at(qp);
    if (good > 0) {
      world.ring(qp);
      world.bench.run(world.bench.uniform(0, 150));
    }
    world.bad_addresses.insert(queue.setup.sq_base / 64 + static_cast<std::uint64_t>(good));
    queue.pi = static_cast<std::uint16_t>(queue.pi + 3);
    world.ring(qp);
    world.bench.run_until([&] { return !world.failures.empty(); }, 10000, "failure");
    world.bench.run(300);
    REQUIRE(world.failures.size() == 1);
    CHECK(world.failures[0].qp == qp);
    CHECK(world.failures[0].command == static_cast<std::uint8_t>(rtl::RetireCommand::kFailWqe));
    CHECK(world.failures[0].status == static_cast<std::uint8_t>(CqeStatus::kFatalErr));
    const auto ctx = world.context(qp);
    CHECK(world.failures[0].wqe_idx == ctx.exec_idx);
    // A whole fetch fails at its first WQE: what was sent before is a prefix of the good ones.
    CHECK(ctx.exec_idx <= good);
    CHECK(ctx.fault == 1);
    CHECK(ctx.fetching == 0);
    CHECK(queue.packets == ctx.exec_idx);
    queue.expected.clear();
  }
}

TEST_CASE("send_queue: WQEs that could not be read ahead do not hurt those in the buffer", "[rtl]") {
  World world(seed(21));
  world.set_up(4, [](rtl::SendCtx& ctx) {
    ctx.log_depth = 5;
    ctx.log_stride = 6;
    ctx.max_rd = 1;
    ctx.pi = ctx.exec_idx = ctx.retire_idx = 0;
  });
  world.answer = false;
  for (int i = 0; i < 4; ++i) world.write_wqe(4, plain(WqeOpcode::kRead, {8}));
  world.ring(4);
  world.bench.run(500);
  auto& queue = world.queues.at(4);
  REQUIRE(queue.packets == 1);  // the others wait for the first Read
  REQUIRE(world.context(4).buf_count == 3);
  for (std::uint64_t line = 4; line < 7; ++line) world.bad_addresses.insert(queue.setup.sq_base / 64 + line);
  queue.pi = 7;
  world.ring(4);
  world.bench.run(500);
  CHECK(world.failures.empty());
  CHECK(world.context(4).buf_count == 3);
  CHECK(world.count(Counter::kWqeFetches) >= 2);
  world.answer = true;
  world.bench.run_until([&] { return !world.failures.empty(); }, 10000, "failure");
  CHECK(world.failures[0].wqe_idx == 4);
  CHECK(queue.packets == 4);
}

TEST_CASE("send_queue: doorbells that are not the owner's are refused", "[rtl]") {
  World world(seed(14));
  world.set_up(6, [](rtl::SendCtx& ctx) { ctx.log_depth = 3; });
  auto& queue = world.queues.at(6);
  const auto setup = queue.setup;
  const auto base = queue.pi;
  std::uint64_t refused = 0;
  const auto refuse = [&](std::uint8_t uar, std::uint32_t qpn, std::uint16_t pi) {
    world.ring(uar, qpn, pi);
    world.bench.run(40);
    CHECK(world.count(Counter::kDoorbellsRefused) == ++refused);
    CHECK(world.context(6).pi == base);
  };
  refuse(static_cast<std::uint8_t>(setup.uar ^ 1), setup.qpn, base + 1);
  refuse(setup.uar, setup.qpn ^ 0x100, base + 1);
  refuse(setup.uar, setup.qpn, base + 9);
  refuse(setup.uar, setup.qpn, base - 1);
  refuse(setup.uar, 7, 1);  // never created
  world.change(6, [](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kReset); });
  world.bench.run(20);
  refuse(setup.uar, setup.qpn, base + 1);
  world.change(6, [](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kRts), ctx.in_use = 0; });
  world.bench.run(20);
  refuse(setup.uar, setup.qpn, base + 1);
  world.change(6, [](rtl::SendCtx& ctx) { ctx.in_use = 1; });
  world.bench.run(20);
  // The same through the window.
  auto wqe = world.encode(6, static_cast<std::uint16_t>(base), inline_write(8));
  wqe.resize(48);
  world.push(static_cast<std::uint8_t>(setup.uar ^ 1), wqe);
  world.bench.run(40);
  CHECK(world.count(Counter::kDoorbellsRefused) == ++refused);
  CHECK(world.count(Counter::kWindowWqes) == 0);
  CHECK(world.desc_count == 0);
  // A full queue is legal, a stale doorbell changes nothing.
  for (int i = 0; i < 8; ++i) world.write_wqe(6, inline_write(8));
  world.answer = false;
  world.ring(6);
  world.ring(setup.uar, setup.qpn, static_cast<std::uint16_t>(base + 3));
  world.finish();
  CHECK(world.desc_count == 8);
  CHECK(world.count(Counter::kDoorbellsRefused) == refused);
  CHECK(world.context(6).pi == static_cast<std::uint16_t>(base + 8));
}

TEST_CASE("send_queue: doorbells of a QP in the error state ask for a flush and hold up nobody", "[rtl]") {
  World world(seed(15));
  for (int qp = 0; qp < 8; ++qp) world.set_up(qp, [](rtl::SendCtx& ctx) { ctx.log_depth = 6; });
  for (int qp = 0; qp < 7; ++qp)
    world.change(qp, [](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kErr); });
  world.bench.run(200);
  world.output_rate = 0.02;
  for (int round = 0; round < 3; ++round) {
    for (int qp = 0; qp < 7; ++qp) {
      ++world.queues.at(qp).pi;
      world.ring(qp);
    }
  }
  const auto before = world.bench.cycle;
  world.bench.run_until([&] { return world.count(Counter::kSendDoorbells) == 21; }, 200, "doorbells");
  CHECK(world.bench.cycle - before < 200);
  world.output_rate = 1;
  world.bench.run(100);
  std::set<int> flushed(world.flushes.begin(), world.flushes.end());
  CHECK(flushed == std::set<int>{0, 1, 2, 3, 4, 5, 6});
  for (int qp = 0; qp < 7; ++qp) CHECK(world.context(qp).pi == world.queues.at(qp).pi);
  CHECK(world.desc_count == 0);
}

TEST_CASE("send_queue: qp_reset forgets a QP in the midst of its traffic", "[rtl]") {
  World world(seed(16));
  world.answer_rate = 0.2;
  world.set_up(11, [](rtl::SendCtx& ctx) { ctx.log_depth = 7; });
  for (int round = 0; round < 60; ++round) {
    const int qp = 12;
    world.output_rate = round % 2 ? 0.05 : 1.0;
    world.dma_latency_high = round % 3 ? 80 : 600;
    world.set_up(qp, [](rtl::SendCtx& ctx) {
      ctx.log_depth = 5;
      ctx.log_stride = 7;
    });
    for (int i = 0; i < 20; ++i) world.write_wqe(qp, world.random_work(qp));
    for (int i = 0; i < 4 && world.queues.at(11).free_slots() > 0; ++i) world.write_wqe(11, inline_write(20));
    world.ring(qp);
    world.ring(11);
    world.bench.run(world.bench.uniform(0, 400));
    // As the admin queue does: error state, nothing new is begun; the context is cleared; reset.
    world.answer = false;
    world.change(qp, [](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kErr); });
    world.change(qp, [](rtl::SendCtx& ctx) { ctx = {}; });
    world.context(qp);
    world.reset_qp(qp);
    auto& queue = world.queues.at(qp);
    queue.expected.clear();  // anything of the old life that came now would not be expected
    queue.sent.clear();
    queue.unanswered.clear();
    queue.reads.clear();
    queue.inflight_seen.clear();
    world.answer = true;
    world.failures.clear();
  }
  world.output_rate = 1;
  world.finish();
}

// What recovery does to a context (rtl/completion/recovery.sv), and what must be sent then: the packets from there on,
// as they were.
TEST_CASE("send_queue: goes on from any packet where recovery puts it", "[rtl]") {
  World world(seed(14));
  world.answer = false;
  for (int round = 0; round < 40; ++round) {
    const int qp = round;
    world.set_up(qp, [&](rtl::SendCtx& ctx) {
      ctx.mtu = static_cast<std::uint8_t>(world.bench.uniform(1, 3)), ctx.max_rd = 16, ctx.log_stride = 9,
      ctx.log_depth = 4;
    });
    const std::uint32_t mtu = 128u << world.queues[qp].setup.mtu;
    std::vector<std::uint16_t> index;
    std::vector<Packet> packets;
    for (int i = 0; i < 3; ++i) {
      Work work =
          plain(std::array{WqeOpcode::kSend, WqeOpcode::kWrite, WqeOpcode::kRead}[world.bench.uniform(0, 2)], {});
      const auto segments = world.bench.uniform(1, 16);
      for (std::uint64_t s = 0; s < segments; ++s)
        work.sges.push_back(sge(static_cast<std::uint32_t>(world.bench.chance(0.2) ? 0 : world.bench.uniform(1, mtu)),
                                world.bench.rng()));
      index.push_back(world.write_wqe(qp, work));
    }
    auto& queue = world.queues[qp];
    packets.assign(queue.expected.begin(), queue.expected.end());
    world.ring(qp);
    world.bench.run_until([&] { return queue.expected.empty(); }, 20000, "first pass");
    world.bench.run(200);
    const auto before = world.context(qp);
    // Any packet; of a Read, any of its responses: the request then asks for the rest.
    auto at = static_cast<std::size_t>(world.bench.uniform(0, packets.size() - 1));
    Packet first = packets[at];
    std::uint32_t skipped = 0;
    if (first.read) {
      skipped = static_cast<std::uint32_t>(
                    world.bench.uniform(0, (first.desc.dma_length + mtu - 1) / mtu - (first.desc.dma_length != 0))) *
                (first.desc.dma_length > mtu);
      first.desc.psn = (first.desc.psn + skipped) & 0xffffff;
      first.desc.va += skipped * mtu;
      first.desc.dma_length -= skipped * mtu;
    }
    first.desc.turned = 1;  // it says that it is the first of a new try, and no other does
    std::uint32_t sent_of_it = skipped;
    for (std::size_t i = at; i > 0 && packets[i - 1].desc.wqe_idx == first.desc.wqe_idx; --i) ++sent_of_it;
    queue.expected.push_back(first);
    queue.expected.insert(queue.expected.end(), packets.begin() + static_cast<std::ptrdiff_t>(at) + 1, packets.end());
    std::size_t reads = 0;
    constexpr std::uint8_t kTries = 5;
    for (auto& packet : queue.expected) {
      packet.desc.tries = kTries;
      if (packet.read) packet.read->replayed = 1, ++reads;
    }
    queue.read_slot = static_cast<std::uint8_t>(queue.read_slot - reads);
    queue.reads.clear();
    queue.unanswered.clear();
    world.change(
        qp,
        [&](rtl::SendCtx& ctx) {
          ctx.exec_idx = first.desc.wqe_idx;
          ctx.next_psn = first.desc.psn;
          ctx.msg_off = sent_of_it * mtu;
          ctx.msg_active = sent_of_it != 0 && !first.read;
          ctx.resume = sent_of_it != 0;
          ctx.sge_idx = 0;
          ctx.sge_off = 0;
          ctx.turned = 1;
          ctx.tries = kTries;
          ctx.buf_count = 0;
          ctx.ahead = 0;
          ctx.fetch_gen = (ctx.fetch_gen + 1) & 15;
          ctx.rd_tail = static_cast<std::uint8_t>((ctx.rd_tail - reads) & 31);
          ctx.rd_outstanding = static_cast<std::uint8_t>(ctx.rd_outstanding - reads);
        },
        true);
    world.bench.run_until([&] { return queue.expected.empty(); }, 20000, "second pass");
    world.bench.run(200);
    const auto after = world.context(qp);
    CHECK(after.next_psn == before.next_psn);
    CHECK(after.max_psn == before.max_psn);
    CHECK(after.exec_idx == before.exec_idx);
    CHECK((before.sent_idx == before.exec_idx && after.sent_idx == before.exec_idx));
    CHECK(after.rd_tail == before.rd_tail);
    CHECK((after.resume == 0 && after.msg_active == 0 && after.fault == 0));
  }
}

TEST_CASE(
    "send_queue: a Read of 2^23 responses takes all PSNs that may be out, and is drained as any other (9.7.2, 10.3.1)",
    "[rtl]") {
  World world(seed(23));
  world.answer = false;
  world.set_up(5, [](rtl::SendCtx& ctx) { ctx.mtu = 1, ctx.log_depth = 4, ctx.max_rd = 4; });
  const auto first = world.context(5).next_psn;
  world.write_wqe(5, plain(WqeOpcode::kRead, {0x80000000}));
  auto& queue = world.queues[5];
  world.ring(5);
  world.bench.run_until([&] { return queue.expected.empty(); }, 3000, "the request");
  world.bench.run(100);
  const auto after = world.context(5);
  CHECK(after.next_psn == ((first + 0x800000) & 0xffffff));
  CHECK(after.max_psn == after.next_psn);
  world.change(
      5,
      [](rtl::SendCtx& ctx) {
        ctx.state = static_cast<std::uint8_t>(QpState::kSqd);
        ctx.sqd_notify = 1;
      },
      true);
  world.answer = true;
  world.bench.run_until([&] { return !world.drained.empty(); }, 5000, "drained");
}

TEST_CASE("send_queue: WQEs that were on their way when recovery went back are dropped", "[rtl]") {
  World world(seed(21));
  world.answer = false;
  world.dma_latency_low = world.dma_latency_high = 400;
  world.set_up(5, [](rtl::SendCtx& ctx) { ctx.log_depth = 5, ctx.log_stride = 6; });
  for (int i = 0; i < 12; ++i) world.write_wqe(5, inline_write(8 + static_cast<std::size_t>(i)));
  auto& queue = world.queues[5];
  const std::vector<Packet> packets(queue.expected.begin(), queue.expected.end());
  world.ring(5);
  world.bench.run_until([&] { return world.desc_count != 0 && world.count(Counter::kWqeFetches) == 2; }, 3000,
                        "second fetch");
  world.bench.run(150);
  REQUIRE(world.desc_count < 12);
  REQUIRE(world.context(5).fetching == 1);
  queue.expected.assign(packets.begin() + 1, packets.end());
  world.change(
      5,
      [&](rtl::SendCtx& ctx) {
        ctx.exec_idx = packets[1].desc.wqe_idx;
        ctx.next_psn = packets[1].desc.psn;
        ctx.buf_count = 0;
        ctx.ahead = 0;
        ctx.fetch_gen = (ctx.fetch_gen + 1) & 15;
      },
      true);
  world.bench.run_until([&] { return queue.expected.empty(); }, 5000, "second pass");
  world.bench.run(500);
  CHECK(world.context(5).exec_idx == queue.pi);
  CHECK(world.failures.empty());
}

namespace {

Work small_frame(std::size_t bytes) {
  auto work = inline_write(bytes);
  work.opcode = WqeOpcode::kSend;
  return work;
}

/// A queue of small frames whose next WQEs take long to come.
std::vector<Packet> post_small(World& world, int qp, int count) {
  world.dma_latency_low = world.dma_latency_high = 400;
  world.set_up(qp, [](rtl::SendCtx& ctx) {
    ctx.log_depth = 7;
    ctx.log_stride = 6;
    ctx.qp_type = static_cast<std::uint8_t>(QpType::kRawPacket);
  });
  for (int i = 0; i < count; ++i) world.write_wqe(qp, small_frame(14 + static_cast<std::size_t>(i) % 16));
  const auto& expected = world.queues[qp].expected;
  std::vector<Packet> packets(expected.begin(), expected.end());
  world.ring(qp);
  return packets;
}

}  // namespace

TEST_CASE("send_queue: one half of the WQE buffer is fetched while the other is on its way", "[rtl]") {
  World world(seed(24));
  post_small(world, 5, 100);
  auto& queue = world.queues[5];
  world.bench.run_until([&] { return world.context(5).fetching == 2; }, 3000, "two fetches");
  const auto begin = world.bench.cycle;
  world.bench.run_until([&] { return queue.expected.empty(); }, 20000, "all packets");
  // Eight WQEs in the time of a read and what they take themselves; one fetch at a time would bring less than five.
  CHECK(world.bench.cycle - begin < 92 * (400 + 150) / 8);
  world.finish();
}

TEST_CASE("send_queue: of two fetches that were on their way when recovery went back both are dropped", "[rtl]") {
  World world(seed(25));
  world.answer = false;
  for (int round = 0; round < 8; ++round) {
    const auto packets = post_small(world, round, 40);
    auto& queue = world.queues[round];
    world.bench.run_until([&] { return world.context(round).fetching == 2; }, 3000, "two fetches");
    world.bench.run(world.bench.uniform(150, 300));  // what was made has left, what was asked for has not come
    const std::size_t sent = packets.size() - queue.expected.size();
    REQUIRE(sent > 2);
    const std::size_t back = world.bench.uniform(1, sent - 1);
    queue.expected.assign(packets.begin() + static_cast<std::ptrdiff_t>(back), packets.end());
    world.change(
        round,
        [&](rtl::SendCtx& ctx) {
          ctx.exec_idx = packets[back].desc.wqe_idx;
          ctx.next_psn = packets[back].desc.psn;
          ctx.buf_count = 0;
          ctx.ahead = 0;
          ctx.fetch_gen = (ctx.fetch_gen + 1) & 15;
        },
        true);
    world.bench.run_until([&] { return queue.expected.empty(); }, 20000, "second pass");
    world.bench.run(1000);
    const auto ctx = world.context(round);
    CHECK(ctx.exec_idx == queue.pi);
    CHECK((ctx.fetching == 0 && ctx.ahead == 0 && ctx.buf_count == 0));
  }
  CHECK(world.failures.empty());
}

TEST_CASE("send_queue: behind a fetch that failed the next one is not taken in its place", "[rtl]") {
  World world(seed(26));
  world.set_up(4, [](rtl::SendCtx& ctx) {
    ctx.log_depth = 7;
    ctx.log_stride = 6;
    ctx.qp_type = static_cast<std::uint8_t>(QpType::kRawPacket);
    ctx.pi = ctx.exec_idx = ctx.retire_idx = 0;
  });
  world.answer = false;
  constexpr int kWindow = rnic::hw::kSqWindow;
  for (int i = 0; i < kWindow + 3; ++i) world.write_wqe(4, small_frame(40));
  world.ring(4);
  world.bench.run(10000);
  auto& queue = world.queues.at(4);
  REQUIRE(world.context(4).buf_count == 3);  // they wait until one of the window retires
  world.dma_latency_low = world.dma_latency_high = 400;
  world.bad_addresses.insert(queue.setup.sq_base / 64 + kWindow + 3);
  for (const int count : {1, 2}) {
    for (int i = 0; i < count; ++i) world.write_wqe(4, small_frame(30));
    world.ring(4);
    world.bench.run(100);
  }
  REQUIRE(world.context(4).fetching == 2);
  REQUIRE(world.context(4).ahead == 3);
  // The first of the three can be read the next time. Once all is asked for anew, it is sent in order.
  world.bench.run_until([&] { return world.context(4).ahead != 3; }, 1000, "the first to fail");
  world.bad_addresses.clear();
  CHECK(world.context(4).buf_count == 3);
  world.answer = true;
  world.finish();
  CHECK(world.failures.empty());
  CHECK(world.context(4).exec_idx == queue.pi);
  CHECK(queue.packets == kWindow + 6);
}

// What the host has shortened since its first packets left is no WQE to go on with.
TEST_CASE("send_queue: a WQE that is shorter than what was sent of it fails", "[rtl]") {
  World world(seed(22));
  world.answer = false;
  int qp = 0;
  for (const auto opcode : {WqeOpcode::kSend, WqeOpcode::kWrite, WqeOpcode::kRead}) {
    for (const std::uint32_t length : {512u, 511u, 0u}) {
      world.set_up(++qp, [](rtl::SendCtx& ctx) { ctx.mtu = 1, ctx.log_depth = 4, ctx.log_stride = 7; });
      auto& queue = world.queues[qp];
      const auto index = world.write_wqe(qp, plain(opcode, {700}));
      world.ring(qp);
      world.bench.run_until([&] { return queue.expected.empty(); }, 5000, "first pass");
      world.bench.run(200);
      const auto sent = world.desc_count;
      world.failures.clear();
      world.write_memory(queue.setup.sq_base + std::uint64_t{queue.stride()} * (index % queue.depth()),
                         world.encode(qp, index, plain(opcode, {length})));
      world.change(
          qp,
          [&](rtl::SendCtx& ctx) {
            ctx.exec_idx = index;
            ctx.next_psn = (ctx.next_psn - 1) & 0xffffff;  // the third packet is to be sent again
            ctx.msg_off = 512;
            ctx.msg_active = opcode != WqeOpcode::kRead;
            ctx.resume = 1;
            ctx.buf_count = 0;
            ctx.ahead = 0;
            ctx.fetch_gen = (ctx.fetch_gen + 1) & 15;
            ctx.rd_tail = ctx.rd_head;
            ctx.rd_outstanding = 0;
          },
          true);
      world.bench.run(1000);
      CHECK(world.desc_count == sent);
      REQUIRE(world.failures.size() == 1);
      CHECK(world.failures[0].command == static_cast<std::uint8_t>(rtl::RetireCommand::kFailWqe));
      CHECK(world.failures[0].wqe_idx == index);
      CHECK(world.failures[0].status == static_cast<std::uint8_t>(CqeStatus::kLocQpOpErr));
    }
  }
}

TEST_CASE("send_queue: nothing is sent while an RNR NAK makes it wait", "[rtl]") {
  World world(seed(15));
  world.set_up(3, [](rtl::SendCtx& ctx) { ctx.rnr_wait = 1; });
  world.write_wqe(3, plain(WqeOpcode::kSend, {100}));
  world.ring(3);
  world.bench.run(2000);
  CHECK(world.desc_count == 0);
  world.change(
      3, [](rtl::SendCtx& ctx) { ctx.rnr_wait = 0; }, true);
  world.finish();
  CHECK(world.desc_count == 1);
}

TEST_CASE("send_queue: nothing is sent in any state but RTS", "[rtl]") {
  World world(seed(17));
  int qp = 3;
  for (const auto state : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kErr}) {
    INFO("state " << static_cast<int>(state));
    // In RTS until the WQE is on the chip; only then the state changes.
    world.set_up(qp, [](rtl::SendCtx& ctx) { ctx.rnr_wait = 1; });
    world.write_wqe(qp, plain(WqeOpcode::kSend, {100}));
    world.ring(qp);
    world.bench.run(2000);
    world.change(
        qp,
        [state](rtl::SendCtx& ctx) {
          ctx.rnr_wait = 0;
          ctx.state = static_cast<std::uint8_t>(state);
        },
        true);
    world.bench.run(2000);
    CHECK(world.desc_count == 0);
    CHECK(world.context(qp).exec_idx == world.queues.at(qp).setup.exec_idx);
    world.queues.at(qp).expected.clear();
    ++qp;
  }
}

// A fault stops the queue at its WQE and behind it. Recovery may go back to WQEs in front of it, whose packets were
// lost.
TEST_CASE("send_queue: WQEs in front of one that failed here are fetched and sent, none from it on", "[rtl]") {
  World world(seed(16));
  world.answer = false;
  for (int round = 0; round < 24; ++round) {
    const int qp = round;
    const bool fetched = round % 2 != 0;
    const std::uint16_t before = static_cast<std::uint16_t>(world.bench.uniform(0, 12));
    world.set_up(qp, [&](rtl::SendCtx& ctx) {
      ctx.log_depth = 6;
      ctx.log_stride = static_cast<std::uint8_t>(6 + round % 4);
      ctx.fault = 1;
      ctx.fault_idx = static_cast<std::uint16_t>(ctx.exec_idx + before);
      ctx.fault_status = static_cast<std::uint8_t>(CqeStatus::kLocProtErr);
    });
    auto& queue = world.queues[qp];
    const auto setup = queue.setup;
    for (int i = 0; i < 20; ++i) {
      if (fetched || i < before)
        world.write_wqe(qp, inline_write(16));
      else
        ++queue.pi;  // not in memory: nothing may come of it
    }
    const auto sent = world.desc_count;
    world.ring(qp);
    world.bench.run(3000);
    CHECK(world.desc_count == sent + before);
    CHECK(world.failures.empty());
    const auto ctx = world.context(qp);
    CHECK(ctx.exec_idx == setup.fault_idx);
    CHECK(ctx.fetching == 0);
    queue.expected.clear();
  }
}

namespace {

/// A WQE without data: the control segment and two others.
std::uint16_t write_memory_wqe(World& world, int qp, WqeOpcode opcode, std::uint32_t key, bool silent = false) {
  auto& queue = world.queues.at(qp);
  const std::uint16_t index = queue.pi++;
  Bytes bytes(queue.stride());
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(world.bench.rng());
  WqeControl control;
  control.opcode = static_cast<std::uint8_t>(opcode);
  control.silent = silent;
  control.wqe_index = index;
  control.qpn = queue.setup.qpn;
  control.size = opcode == WqeOpcode::kLocalInvalidate ? 1 : 3;
  control.immediate = key;
  control.encode(std::span<std::uint8_t, 16>(bytes.data(), 16));
  const WqeRange range{.va = 0x1122334455667788, .length = 0x99};
  range.encode(std::span<std::uint8_t, 16>(bytes.data() + 16, 16));
  WqeBind bind;
  bind.mr_key = 0xCAFE;
  bind.remote_write = 1;
  if (opcode != WqeOpcode::kFastRegister) bind.encode(std::span<std::uint8_t, 16>(bytes.data() + 32, 16));
  world.write_memory(queue.setup.sq_base + std::uint64_t{queue.stride()} * (index % queue.depth()), bytes);
  return index;
}

}  // namespace

// Decisions 1, 4, 17, 18: in order, and with nothing in front that may be sent again or fail.
TEST_CASE("send_queue: a memory operation starts when all in front has retired, and holds up its own QP only",
          "[rtl]") {
  for (const auto opcode :
       {WqeOpcode::kBindWindow1, WqeOpcode::kBindWindow2, WqeOpcode::kLocalInvalidate, WqeOpcode::kFastRegister}) {
    World world(seed(17));
    world.answer = false;
    world.mem_ops.open = false;
    const auto set = [](rtl::SendCtx& ctx) {
      ctx.log_depth = 6, ctx.log_stride = 7, ctx.fast_register = 1, ctx.max_rd = 16;
    };
    world.set_up(8, set);
    world.set_up(9, set);
    auto& queue = world.queues.at(8);
    world.write_wqe(8, plain(WqeOpcode::kRead, {3000}));
    world.write_wqe(8, inline_write(8));
    const auto index = write_memory_wqe(world, 8, opcode, 0xABCD01, true);
    world.write_wqe(8, inline_write(9));
    world.ring(8);
    world.bench.run(1000);
    CHECK(world.desc_count == 2);
    CHECK(world.count(Counter::kFenceStalls) >= 1);
    CHECK(world.mem_ops.taken.empty());
    // The Read ends, then the Write: only then is it its turn.
    world.change(
        8, [](rtl::SendCtx& ctx) { ctx.rd_outstanding = 0, ++ctx.retire_idx; }, true);
    world.bench.run(500);
    CHECK(world.context(8).mem_busy == 0);
    world.change(
        8, [](rtl::SendCtx& ctx) { ctx.una_psn = ctx.next_psn, ++ctx.retire_idx; }, true);
    world.bench.run_until([&] { return world.bench.dut->mem_op_valid_o != 0; }, 500, "operation");
    // Under way: its neighbour goes on, and nothing behind it.
    for (int i = 0; i < 20; ++i) world.write_wqe(9, inline_write(20));
    world.ring(9);
    world.bench.run_until([&] { return world.desc_count == 22; }, 1000, "packets of the neighbour");
    // A doorbell gives it a turn meanwhile: that begins neither the operation again nor what is behind it.
    world.write_wqe(8, inline_write(10));
    world.ring(8);
    world.bench.run(500);
    CHECK(world.desc_count == 22);
    CHECK(world.context(8).mem_busy == 1);
    REQUIRE(queue.inflight_seen.size() == 1);
    const auto entry = queue.inflight_seen.front();
    queue.inflight_seen.pop_front();
    CHECK(entry.wqe_idx == index);
    CHECK(entry.silent == 1);
    CHECK(entry.opcode == (static_cast<unsigned>(opcode) & 15));
    CHECK(((entry.first_psn - entry.last_psn) & 0xffffff) == 1);  // it takes no PSN
    world.mem_ops.open = true;
    world.bench.run_until([&] { return world.desc_count == 24; }, 1000, "packets behind it");
    world.bench.run(200);
    REQUIRE(world.mem_ops.taken.size() == 1);
    const auto& op = world.mem_ops.taken[0];
    CHECK(op.qp == 8);
    CHECK(op.key == 0xABCD01);
    CHECK(op.pd == queue.setup.pd);
    if (opcode != WqeOpcode::kLocalInvalidate) CHECK((op.va == 0x1122334455667788 && op.length == 0x99));
    REQUIRE(world.failures.size() == 1);
    CHECK(world.failures[0].command == static_cast<std::uint8_t>(rtl::RetireCommand::kAck));
    const auto ctx = world.context(8);
    CHECK(ctx.exec_idx == queue.pi);
    CHECK(ctx.fault == 0);
    CHECK(world.count(Counter::kMemoryOps) == 1);
  }
}

namespace {

/// A FastRegister with an inline page list. `change` spoils it.
std::uint16_t write_inline_list(World& world, int qp, std::uint16_t pages,
                                const std::function<void(Bytes&)>& change = {}) {
  auto& queue = world.queues.at(qp);
  const std::uint16_t index = queue.pi++;
  Bytes bytes(queue.stride());
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(world.bench.rng());
  WqeControl control;
  control.opcode = static_cast<std::uint8_t>(WqeOpcode::kFastRegister);
  control.inline_data = 1;
  control.wqe_index = index;
  control.qpn = queue.setup.qpn;
  control.size = static_cast<std::uint8_t>(3 + (pages + 1) / 2);
  control.immediate = 0xABCD01;
  control.encode(std::span<std::uint8_t, 16>(bytes.data(), 16));
  WqeFastRegister fast;
  fast.page_count = pages;
  fast.log_page = 12;
  fast.encode(std::span<std::uint8_t, 16>(bytes.data() + 32, 16));
  if (change) change(bytes);
  world.write_memory(queue.setup.sq_base + std::uint64_t{queue.stride()} * (index % queue.depth()), bytes);
  return index;
}

}  // namespace

// The list is what was in the WQE when it was read: neighbours that keep the engine at the WQE buffer, and slots all
// over it, change nothing.
TEST_CASE("send_queue: an inline page list comes out of the WQE as it was read, while others send", "[rtl]") {
  World world(seed(21));
  for (int qp = 20; qp < 24; ++qp) {
    world.set_up(qp, [](rtl::SendCtx& ctx) { ctx.log_depth = 6, ctx.log_stride = 7, ctx.max_rd = 16; });
  }
  for (int round = 0; round < 60; ++round) {
    const auto log_stride = static_cast<std::uint8_t>(6 + round % 4);
    const auto most = static_cast<std::uint16_t>(((1u << log_stride) - 48) / 8);
    const auto pages = static_cast<std::uint16_t>(round < 8 ? most : world.bench.uniform(1, most));
    world.set_up(8, [&](rtl::SendCtx& ctx) { ctx.log_depth = 5, ctx.log_stride = log_stride, ctx.fast_register = 1; });
    for (auto n = world.bench.uniform(0, 3); n > 0; --n) world.write_wqe(8, inline_write(8));
    for (int qp = 20; qp < 24; ++qp) {
      for (int i = 0; i < 12; ++i) world.write_wqe(qp, inline_write(60));
      world.ring(qp);
    }
    auto& queue = world.queues.at(8);
    const auto index = write_inline_list(world, 8, pages);
    const auto at = queue.setup.sq_base + std::uint64_t{queue.stride()} * (index % queue.depth());
    Bytes written(queue.stride());
    for (std::size_t i = 0; i < written.size(); ++i) written[i] = world.memory.at(at + i);
    world.ring(8);
    const auto taken = world.mem_ops.taken.size();
    world.bench.run_until([&] { return world.mem_ops.taken.size() > taken; }, 20000, "operation");
    // Whoever writes into the ring now is too late.
    for (std::size_t i = 0; i < written.size(); ++i) world.memory[at + i] = 0xEE;
    world.bench.run_until([&] { return world.mem_ops.idle(); }, 2000, "answer");
    const auto& op = world.mem_ops.taken.back();
    CHECK(op.inline_list == 1);
    CHECK(op.page_count == pages);
    REQUIRE(world.mem_ops.lines.size() == (pages + 13u) / 8);
    for (std::size_t i = 0; i < 48u + 8u * pages; ++i) REQUIRE(world.mem_ops.lines[i / 64].data[i % 64] == written[i]);
    world.finish();
    world.failures.clear();
    world.reset_qp(8);
  }
}

TEST_CASE("send_queue: a malformed inline page list is no list", "[rtl]") {
  World world(seed(22));
  struct Bad {
    const char* what;
    std::uint16_t pages;
    std::function<void(Bytes&)> change;
    std::function<void(rtl::SendCtx&)> context;
  };
  const Bad kinds[] = {
      {"more pages than the WQE is long", 9, [](Bytes& b) { b[44] = 11; }, {}},
      {"more pages than the slot holds", 11, {}, {}},
      {"many more", 9, [](Bytes& b) { b[45] = 0xff; }, {}},
      {"fewer pages than the WQE is long", 9, [](Bytes& b) { b[44] = 8; }, {}},
      {"none, and a WQE that goes on", 2, [](Bytes& b) { b[44] = 0; }, {}},
      {"pages, and a WQE that does not go on", 2, [](Bytes& b) { b[7] = 3; }, {}},
      {"a list that is not inline", 2, [](Bytes& b) { b[1] &= 0xf7; }, {}},
      {"a length", 2, [](Bytes& b) { b[12] = 16; }, {}},
      {"a bind", 2, [](Bytes& b) { b[0] = static_cast<std::uint8_t>(WqeOpcode::kBindWindow2); }, {}},
      {"an invalidation",
       2,
       [](Bytes& b) { b[0] = static_cast<std::uint8_t>(WqeOpcode::kLocalInvalidate), b[7] = 1; },
       {}},
      {"on a queue pair that may not", 2, {}, [](rtl::SendCtx& ctx) { ctx.fast_register = 0; }},
  };
  int qp = 1;
  for (const auto& kind : kinds) {
    DYNAMIC_SECTION(kind.what) {
      world.set_up(qp, [&](rtl::SendCtx& ctx) {
        ctx.log_depth = 3, ctx.log_stride = 7, ctx.fast_register = 1;
        if (kind.context) kind.context(ctx);
      });
      const auto index = write_inline_list(world, qp, kind.pages, [&](Bytes& bytes) {
        bytes.resize(128);
        if (kind.change) kind.change(bytes);
      });
      world.ring(qp);
      world.bench.run_until([&] { return !world.failures.empty(); }, 5000, "failure");
      CHECK(world.failures[0].wqe_idx == index);
      CHECK(world.failures[0].status == static_cast<std::uint8_t>(CqeStatus::kLocQpOpErr));
      CHECK(world.failures[0].syndrome == 0);
      CHECK(world.mem_ops.taken.empty());
      CHECK(world.count(Counter::kWqeErrors) == 1);
    }
    ++qp;
  }
}

TEST_CASE("send_queue: a memory operation that is refused stops its queue", "[rtl]") {
  World world(seed(18));
  world.mem_ops.judge = [](const rtl::MemOp&) { return rtl::MemOpStatus::kBadAccess; };
  world.set_up(4, [](rtl::SendCtx& ctx) { ctx.log_depth = 4; });
  const auto index = write_memory_wqe(world, 4, WqeOpcode::kBindWindow2, 5);
  world.write_wqe(4, inline_write(9));
  world.ring(4);
  world.bench.run(1500);
  CHECK(world.desc_count == 0);
  REQUIRE(world.failures.size() == 1);
  CHECK(world.failures[0].command == static_cast<std::uint8_t>(rtl::RetireCommand::kFailWqe));
  CHECK(world.failures[0].wqe_idx == index);
  CHECK(world.failures[0].status == static_cast<std::uint8_t>(CqeStatus::kLocProtErr));
  CHECK(world.context(4).fault_idx == index);
  CHECK(world.count(Counter::kMemoryOpsRefused) == 1);
}

TEST_CASE("send_queue: drained is not before a memory operation is over (10.3.1)", "[rtl]") {
  World world(seed(20));
  world.mem_ops.open = false;
  world.set_up(4, [](rtl::SendCtx& ctx) { ctx.log_depth = 4; });
  const auto index = write_memory_wqe(world, 4, WqeOpcode::kLocalInvalidate, 5);
  world.ring(4);
  world.bench.run_until([&] { return world.bench.dut->mem_op_valid_o != 0; }, 1000, "operation");
  world.change(
      4, [](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kSqd), ctx.sqd_notify = 1; }, true);
  world.bench.run(300);
  CHECK(world.drained.empty());
  world.mem_ops.open = true;
  world.bench.run(300);
  CHECK(world.context(4).mem_busy == 0);
  CHECK(world.drained.empty());
  world.change(
      4, [&](rtl::SendCtx& ctx) { ctx.retire_idx = static_cast<std::uint16_t>(index + 1); }, true);
  world.bench.run(300);
  CHECK(world.drained == std::deque<int>{4});
}

TEST_CASE("send_queue: qp_reset and a flush wait for a memory operation", "[rtl]") {
  World world(seed(19));
  world.mem_ops.open = false;
  world.set_up(4, [](rtl::SendCtx& ctx) { ctx.log_depth = 4; });
  write_memory_wqe(world, 4, WqeOpcode::kLocalInvalidate, 5);
  world.ring(4);
  world.bench.run_until([&] { return world.bench.dut->mem_op_valid_o != 0; }, 1000, "operation");
  // As qp_error does it.
  world.change(4, [](rtl::SendCtx& ctx) {
    ctx.state = static_cast<std::uint8_t>(QpState::kErr);
    ctx.exec_idx = ctx.pi;
    ctx.buf_count = 0;
  });
  world.bench.run(200);
  CHECK(world.flushes.empty());
  auto& dut = *world.bench.dut;
  dut.qp_reset_qp_i = 4;
  dut.qp_reset_valid_i = 1;
  for (int i = 0; i < 300; ++i) {
    world.bench.tick();
    REQUIRE(dut.qp_reset_ready_o == 0);
  }
  dut.qp_reset_valid_i = 0;
  world.mem_ops.open = true;
  world.bench.run(300);
  CHECK(world.context(4).mem_busy == 0);
}

TEST_CASE(
    "send_queue: in SQD what has been started ends, nothing starts, and the host is told (InfiniBand specification "
    "10.3.1)",
    "[rtl]") {
  World world(seed(16));
  const auto state = [](QpState to) { return static_cast<std::uint8_t>(to); };
  unsigned in_the_middle = 0;
  for (int round = 0; round < 40; ++round) {
    const int qp = round;
    const bool notify = round % 4 != 3;
    world.answer = false;
    world.drained.clear();
    world.set_up(qp, [&](rtl::SendCtx& ctx) { ctx.mtu = 1, ctx.max_rd = 16, ctx.log_depth = 4; });
    std::vector<std::uint16_t> index;
    for (int i = 0; i < 5; ++i)
      index.push_back(world.write_wqe(qp, plain(i == 2 ? WqeOpcode::kRead : WqeOpcode::kWrite, {400, 300})));
    auto& queue = world.queues[qp];
    world.ring(qp);
    const auto before = world.desc_count;
    world.bench.run_until([&] { return world.desc_count - before >= static_cast<std::uint64_t>(round % 13); }, 5000,
                          "some packets");
    unsigned started = 0;
    world.change(
        qp,
        [&](rtl::SendCtx& ctx) {
          started = static_cast<std::uint16_t>(ctx.exec_idx - index[0]) + ctx.msg_active;
          in_the_middle += ctx.msg_active;
          ctx.state = state(QpState::kSqd);
          ctx.sqd_notify = notify;
        },
        true);
    world.bench.run(600);
    auto at = world.context(qp);
    CHECK(static_cast<std::uint16_t>(at.exec_idx - index[0]) == started);
    CHECK(at.msg_active == 0);
    CHECK(queue.sent.size() == started);
    CHECK(world.drained.empty() == (started != 0 || !notify));
    world.answer = true;
    world.answer_rate = 0.5;
    world.bench.run_until([&] { return queue.sent.empty() && queue.reads.empty(); }, 20000,
                          "retirement of what was started");
    world.bench.run(300);
    at = world.context(qp);
    CHECK(static_cast<std::uint16_t>(at.retire_idx - index[0]) == started);
    CHECK(world.drained == std::deque<int>(notify ? 1 : 0, qp));
    CHECK(at.sqd_notify == 0);
    world.change(
        qp, [&](rtl::SendCtx& ctx) { ctx.state = state(QpState::kRts); }, true);
    world.finish();
    CHECK(world.drained.size() == (notify ? 1 : 0));
  }
  CHECK(in_the_middle > 5);
}

TEST_CASE("send_queue: lost packets are sent again in SQD; drained is not before that", "[rtl]") {
  // From the second packet of a message on, or from its first: nothing of it is then in front of exec_idx.
  const std::size_t from = GENERATE(1, 0);
  World world(seed(17));
  world.answer = false;
  world.set_up(9, [&](rtl::SendCtx& ctx) { ctx.mtu = 1, ctx.log_depth = 4; });
  std::vector<std::uint16_t> index;
  for (int i = 0; i < 3; ++i) index.push_back(world.write_wqe(9, plain(WqeOpcode::kWrite, {700})));
  auto& queue = world.queues[9];
  const std::vector<Packet> packets(queue.expected.begin(), queue.expected.end());
  world.ring(9);
  world.bench.run_until([&] { return queue.expected.empty(); }, 5000, "first pass");
  world.bench.run(100);
  // Two more, which must not start; the first three are sent again.
  for (int i = 0; i < 2; ++i) world.write_wqe(9, plain(WqeOpcode::kWrite, {700}));
  const std::deque<Packet> new_ones = queue.expected;
  queue.expected.assign(packets.begin() + static_cast<std::ptrdiff_t>(from), packets.end());
  world.change(
      9,
      [&](rtl::SendCtx& ctx) {
        ctx.state = static_cast<std::uint8_t>(QpState::kSqd);
        ctx.sqd_notify = 1;
        ctx.exec_idx = index[0];
        ctx.next_psn = packets[from].desc.psn;
        ctx.msg_off = static_cast<std::uint32_t>(256 * from);
        ctx.msg_active = ctx.resume = from != 0;
        ctx.buf_count = 0;
        ctx.ahead = 0;
        ctx.fetch_gen = (ctx.fetch_gen + 1) & 15;
      },
      true);
  world.ring(9);
  world.bench.run_until([&] { return queue.expected.empty(); }, 5000, "second pass");
  world.bench.run(500);
  const auto at = world.context(9);
  CHECK(static_cast<std::uint16_t>(at.exec_idx - index[0]) == 3);
  CHECK(at.next_psn == at.max_psn);
  CHECK(world.drained.empty());
  queue.expected = new_ones;
  queue.sent.assign(index.begin(), index.end());
  world.answer = true;
  world.answer_rate = 0.5;
  world.bench.run_until([&] { return !world.drained.empty(); }, 5000, "drained");
  CHECK(world.context(9).retire_idx == static_cast<std::uint16_t>(index[0] + 3));
  CHECK(queue.expected.size() == new_ones.size());
  world.change(
      9, [&](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kRts); }, true);
  world.finish();
}

TEST_CASE(
    "send_queue: what UC and UD do not have is malformed, a datagram beyond the MTU a length error (9.4 table 37, "
    "11.6.2)",
    "[rtl]") {
  struct Bad {
    QpType type;
    Work work;
    CqeStatus status;
  };
  const auto datagram = [](Work work) {
    work.address.emplace();
    return work;
  };
  auto inline_send = inline_write(200);
  inline_send.opcode = WqeOpcode::kSend;
  std::vector<Bad> kinds;
  for (const auto opcode :
       {WqeOpcode::kRead, WqeOpcode::kFetchAdd, WqeOpcode::kCompareSwap, WqeOpcode::kSendInvalidate}) {
    kinds.push_back({QpType::kUc, plain(opcode, {8}), CqeStatus::kLocQpOpErr});
    kinds.push_back({QpType::kUd, datagram(plain(opcode, {8})), CqeStatus::kLocQpOpErr});
  }
  for (const auto opcode : {WqeOpcode::kWrite, WqeOpcode::kWriteImmediate})
    kinds.push_back({QpType::kUd, datagram(plain(opcode, {8})), CqeStatus::kLocQpOpErr});
  kinds.push_back({QpType::kUd, plain(WqeOpcode::kSend, {}), CqeStatus::kLocQpOpErr});  // no address segment
  kinds.push_back({QpType::kUd, datagram(plain(WqeOpcode::kSend, {257})), CqeStatus::kLocLenErr});
  kinds.push_back({QpType::kUd, datagram(plain(WqeOpcode::kSend, {200, 100})), CqeStatus::kLocLenErr});
  // 802.1Q 9.6: the VID that no tag has.
  auto reserved = datagram(plain(WqeOpcode::kSend, {8}));
  reserved.address->vlan = 1;
  reserved.address->vlan_id = 0xfff;
  kinds.push_back({QpType::kUd, reserved, CqeStatus::kLocQpOpErr});
  // Ethernet frames (host_interface.md, Ethernet): SENDs of 14 to 4,096 bytes, whatever the path MTU.
  for (const auto opcode : {WqeOpcode::kSendImmediate, WqeOpcode::kSendInvalidate, WqeOpcode::kWrite,
                            WqeOpcode::kWriteImmediate, WqeOpcode::kRead, WqeOpcode::kFetchAdd})
    kinds.push_back(
        {QpType::kRawPacket, plain(opcode, {opcode == WqeOpcode::kFetchAdd ? 8u : 64u}), CqeStatus::kLocQpOpErr});
  for (const std::uint32_t bytes : {0u, 13u, 4097u, 8192u})
    kinds.push_back({QpType::kRawPacket, plain(WqeOpcode::kSend, {bytes}), CqeStatus::kLocLenErr});
  kinds.push_back({QpType::kRawPacket, plain(WqeOpcode::kSend, {4000, 97}), CqeStatus::kLocLenErr});
  // Checksums are put into Ethernet frames alone.
  auto summed = plain(WqeOpcode::kSend, {64});
  summed.ip_csum = true;
  for (const auto type : {QpType::kRc, QpType::kUc}) kinds.push_back({type, summed, CqeStatus::kLocQpOpErr});
  kinds.push_back({QpType::kUd, datagram(summed), CqeStatus::kLocQpOpErr});
  World world(seed(13));
  int qp = 0;
  for (const auto& kind : kinds) {
    CAPTURE(qp);
    world.failures.clear();
    world.set_up(qp, [&](rtl::SendCtx& ctx) {
      ctx.log_depth = 3;
      ctx.log_stride = 9;
      ctx.mtu = 1;
      ctx.max_rd = 4;
      ctx.qp_type = static_cast<std::uint8_t>(kind.type);
    });
    auto& queue = world.queues.at(qp);
    // A full packet goes before it.
    world.write_wqe(
        qp, kind.type == QpType::kUd ? datagram(plain(WqeOpcode::kSend, {256})) : plain(WqeOpcode::kSend, {256}));
    const std::uint16_t bad = queue.pi++;
    world.write_memory(queue.setup.sq_base + std::uint64_t{bad & 7u} * 512, world.encode(qp, bad, kind.work));
    world.ring(qp);
    world.finish();
    world.bench.run(300);
    REQUIRE(world.failures.size() == 1);
    CHECK(world.failures[0].wqe_idx == bad);
    CHECK(world.failures[0].status == static_cast<std::uint8_t>(kind.status));
    CHECK(world.context(qp).fault_status == static_cast<std::uint8_t>(kind.status));
    ++qp;
  }
}

TEST_CASE("send_queue: a queue that is woken at any time sends what it would have sent", "[rtl]") {
  World world(seed(22));
  world.stray_rate = 0.3;
  const std::vector<int> qps = {3, 70, 71};
  for (const int qp : qps) world.set_up(qp, [](rtl::SendCtx& ctx) { ctx.log_depth = 6; });
  traffic(world, qps, 80, 0.5);
  // The same around memory operations, behind which others wait.
  for (int round = 0; round < 60; ++round) {
    const int qp = qps[world.bench.uniform(0, qps.size() - 1)];
    auto& queue = world.queues.at(qp);
    const auto index = write_memory_wqe(world, qp, WqeOpcode::kLocalInvalidate, static_cast<std::uint32_t>(round));
    world.failures.clear();
    world.ring(qp);
    world.bench.run_until([&] { return !world.failures.empty(); }, 5000, "end of the operation");
    CHECK(world.failures[0].qp == qp);
    CHECK(world.failures[0].command == static_cast<std::uint8_t>(rtl::RetireCommand::kAck));
    REQUIRE(world.mem_ops.taken.size() == static_cast<std::size_t>(round + 1));
    CHECK(world.mem_ops.taken.back().qp == qp);
    CHECK(world.mem_ops.taken.back().key == static_cast<std::uint32_t>(round));
    world.change(qp, [&](rtl::SendCtx& ctx) {
      REQUIRE(ctx.exec_idx == static_cast<std::uint16_t>(index + 1));
      ++ctx.retire_idx;
      ++queue.retired;
    });
    REQUIRE(queue.inflight_seen.size() == 1);
    queue.inflight_seen.clear();
    if (world.bench.chance(0.5)) {
      world.write_wqe(qp, inline_write(8));
      world.ring(qp);
    }
    world.finish();
    CHECK(world.failures.size() == 1);
  }
  for (const int qp : qps) CHECK(world.context(qp).exec_idx == world.queues.at(qp).pi);
}

TEST_CASE("send_queue: whatever asks for a flush at whatever time, there is one behind it", "[rtl]") {
  constexpr int kQps = 6;
  World world(seed(23));
  for (int round = 0; round < 40; ++round) {
    std::map<int, std::uint64_t> asked, flushed;
    std::deque<int> rung;
    world.mem_ops.open = false;
    world.flush_rate = round % 2 ? 0.3 : 0.1;
    for (int qp = 0; qp < kQps; ++qp) {
      world.set_up(qp, [](rtl::SendCtx& ctx) { ctx.log_depth = 7; });
      write_memory_wqe(world, qp, WqeOpcode::kBindWindow2, 5);
      world.ring(qp);
    }
    world.bench.run(400);
    for (int qp = 0; qp < kQps; ++qp) {
      world.change(qp, [](rtl::SendCtx& ctx) {
        REQUIRE(ctx.mem_busy == 1);
        ctx.state = static_cast<std::uint8_t>(QpState::kErr);
      });
    }
    world.context(0);
    world.flushes.clear();
    auto doorbells = world.count(Counter::kSendDoorbells);
    std::size_t flushes = 0;
    const auto open_at = world.bench.uniform(0, 150);
    for (std::uint64_t cycle = 0; cycle < 800; ++cycle) {
      if (cycle == open_at) world.mem_ops.open = true;
      if (cycle < 250 && world.bench.chance(0.2)) {
        const int qp = static_cast<int>(world.bench.uniform(0, kQps - 1));
        if (world.queues.at(qp).free_slots() > 0) {
          ++world.queues.at(qp).pi;
          world.ring(qp);
          rung.push_back(qp);
        }
      }
      world.bench.tick();
      for (; doorbells < world.count(Counter::kSendDoorbells); ++doorbells) {
        asked[rung.front()] = cycle;
        rung.pop_front();
      }
      for (; flushes < world.flushes.size(); ++flushes) flushed[world.flushes[flushes]] = cycle;
    }
    CHECK(rung.empty());
    for (int qp = 0; qp < kQps; ++qp) {
      CHECK(flushed.count(qp) == 1);  // the end of its memory operation asks for one at least
      CHECK((asked.count(qp) == 0 || flushed[qp] >= asked[qp]));
      CHECK(world.context(qp).mem_busy == 0);
      world.queues.at(qp).inflight_seen.clear();
    }
    CHECK(world.desc_count == 0);
    CHECK(world.failures.empty());
  }
}

TEST_CASE("send_queue: what wakes a QP while it is being forgotten is forgotten, too", "[rtl]") {
  World world(seed(24));
  auto& dut = *world.bench.dut;
  for (const bool failed : {false, true}) {
    const int qp = failed ? 5 : 4;
    world.queues.clear();
    world.set_up(qp, [](rtl::SendCtx& ctx) { ctx.log_depth = 6; });
    // A memory operation holds up the reset.
    world.mem_ops.open = false;
    write_memory_wqe(world, qp, WqeOpcode::kBindWindow2, 5);
    world.ring(qp);
    world.bench.run_until([&] { return dut.mem_op_valid_o != 0; }, 1000, "operation");
    if (failed) world.change(qp, [](rtl::SendCtx& ctx) { ctx.state = static_cast<std::uint8_t>(QpState::kErr); });
    world.context(qp);
    world.stray_rate = 0.2;
    dut.qp_reset_qp_i = static_cast<std::uint8_t>(qp);
    dut.qp_reset_valid_i = 1;
    world.bench.run(10);
    for (int i = 0; i < 5; ++i) {
      world.write_wqe(qp, inline_write(8));
      world.ring(qp);
      world.bench.run(world.bench.uniform(1, 30));
    }
    world.bench.run(100);
    world.mem_ops.open = true;
    world.bench.run_until([&] { return world.mem_ops.idle() && world.mem_ops.taken.size() == 1u + failed; }, 500,
                          "end of the operation");
    world.bench.run_until([&] { return dut.qp_reset_ready_o != 0; }, 500, "reset");
    world.stray_rate = 0;
    world.bench.tick();
    dut.qp_reset_valid_i = 0;
    world.bench.run(500);
    CHECK(world.desc_count == 0);
    CHECK(world.flushes.empty());
    auto& queue = world.queues.at(qp);
    queue.inflight_seen.clear();
    if (failed) continue;
    // What is in its context is not for this block to forget: it goes on from there when it is woken again.
    CHECK(world.failures.size() == 1);
    world.change(qp, [&](rtl::SendCtx& ctx) { ++ctx.retire_idx, ++queue.retired; });
    world.ring(qp);
    world.finish();
    CHECK(world.desc_count == 5);
    world.desc_count = 0;
  }
}

// Nobody takes the commands that fail a WQE, and more and more come of each kind.
TEST_CASE("send_queue: failures that have to wait are told once each, and others go on behind them", "[rtl]") {
  World world(seed(25));
  enum Kind { kUnreadable, kMalformed, kMemory };
  for (int round = 0; round < 48; ++round) {
    world.failures.clear();
    world.bad_addresses.clear();
    const bool many = round % 6 == 0;  // so many fetches that they have to wait, too
    world.dma_latency_high = round % 3 ? 30 : 80;
    const int per_kind = many ? 3 : 4, without = many ? -1 : round % 4;
    std::map<int, std::pair<Kind, std::uint16_t>> bad;
    std::vector<int> good;
    const auto set = [](rtl::SendCtx& ctx) {
      ctx.log_depth = 3;
      ctx.log_stride = 6;
    };
    int qp = 0;
    for (; qp < 3 * per_kind; ++qp) {
      const auto kind = static_cast<Kind>(qp / per_kind);
      if (kind == without) continue;
      world.set_up(qp, set);
      auto& queue = world.queues.at(qp);
      const auto index = queue.pi;
      const auto at = queue.setup.sq_base + std::uint64_t{queue.stride()} * (index % queue.depth());
      if (kind == kMemory) {
        write_memory_wqe(world, qp, WqeOpcode::kBindWindow2, 5);
      } else {
        world.write_wqe(qp, inline_write(8));
        queue.expected.clear();
        if (kind == kMalformed) world.memory[at] = 7;  // the opcode
        if (kind == kUnreadable) world.bad_addresses.insert(at / 64);
      }
      bad[qp] = {kind, index};
    }
    for (; many && qp < 60; ++qp) {
      world.set_up(qp, set);
      world.write_wqe(qp, inline_write(8));
      good.push_back(qp);
    }
    const auto sent = world.desc_count;
    world.failure_rate = 0;
    std::vector<int> order;
    for (const auto& [number, what] : bad) order.push_back(number);
    if (!many) std::shuffle(order.begin(), order.end(), world.bench.rng);
    const auto ring = [&](auto from, auto to) {
      for (; from != to; ++from) world.ring(*from);
    };
    if (round >= 20 && round % 4 == 3) {
      // Two memory operations fill the output. Then a malformed or an unreadable WQE is offered, and behind it wait
      // the other one and a third operation.
      const auto first = round % 8 == 3 ? 4 : 0;
      world.dma_latency_high = 30;
      for (const int number : {8, 9}) world.ring(number);
      world.bench.run(300);
      world.mem_ops.open = false;
      world.ring(10);
      world.bench.run(200);
      world.ring(first);
      world.bench.run(first == 4 ? world.bench.uniform(12, 25) : 0);
      world.ring(4 - first);
      world.bench.run(200);
      world.mem_ops.open = true;
      order = {1, 5, 11, 2, 6, 3, 7};
    }
    ring(order.begin(), order.begin() + per_kind);
    if (many) world.bench.run(150);
    ring(good.begin(), good.end());
    if (many) world.bench.run(600);
    ring(order.begin() + per_kind, order.end());
    world.bench.run(300);
    CHECK(world.failures.empty());
    CHECK(world.desc_count - sent < good.size() + 1);
    world.failure_rate = round % 2 ? 1.0 : 0.4;
    world.bench.run_until([&] { return world.failures.size() == bad.size(); }, 5000, "failures");
    world.finish();
    CHECK(world.desc_count - sent == good.size());
    REQUIRE(world.failures.size() == bad.size());
    for (const auto& command : world.failures) {
      REQUIRE(bad.count(command.qp) == 1);
      const auto [kind, index] = bad.at(command.qp);
      bad.erase(command.qp);
      if (kind == kMemory) {
        CHECK(command.command == static_cast<std::uint8_t>(rtl::RetireCommand::kAck));
        world.queues.at(command.qp).inflight_seen.clear();
        continue;
      }
      CHECK(command.command == static_cast<std::uint8_t>(rtl::RetireCommand::kFailWqe));
      CHECK(command.wqe_idx == index);
      CHECK(command.status ==
            static_cast<std::uint8_t>(kind == kUnreadable ? CqeStatus::kFatalErr : CqeStatus::kLocQpOpErr));
    }
  }
}
