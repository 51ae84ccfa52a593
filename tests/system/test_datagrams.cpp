// UD queue pairs and QP1 (InfiniBand specification volume 1, 9.3.2, 9.8.3, 10.2.4, 10.2.5, 11.4.1.2; annex A17.4.5).
// RNIC_SEED=n replays a failure.
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "driver/path_entropy.hpp"
#include "driver/umd/shared_receive_queue.hpp"
#include "model/random.hpp"
#include "testbench/roce_frame.hpp"
#include "tests/system/unreliable_world.hpp"

using namespace rnic;
using namespace rnic::test;
using umd::AddressHandle;
using umd::SendRequest;

namespace {

constexpr std::uint32_t kQkey = 0x11223344;
constexpr std::size_t kGrh = hw::kGrhBytes;

SendRequest datagram(const AddressHandle& to, std::uint32_t qpn, const umd::Segment& segment, std::uint64_t id) {
  return {
      .opcode = WqeOpcode::kSend, .id = id, .segments = {&segment, 1}, .address = &to, .dest_qpn = qpn, .qkey = kQkey};
}

}  // namespace

TEST_CASE(
    "datagrams arrive behind their IP header, over IPv4 and IPv6, at every length up to the MTU (9.8.3, A17.4.5.1)") {
  auto options = WorldOptions::from_environment("datagrams");
  auto& world = fresh_world(options);
  std::vector<std::vector<std::uint8_t>> frames;
  world.observe_frames([&](const auto& record) { frames.emplace_back(record.bytes.begin(), record.bytes.end()); });
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    auto& to = b.add_datagram_qp(kQkey);
    model::Random random(options.seed, "datagrams");
    for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i) a.memory[i] = static_cast<std::uint8_t>(random.below(256));
    std::uint64_t id = 0;
    for (const bool ipv6 : {false, true}) {
      auto spec = testbench::address_of(endpoint_b, ipv6);
      spec.traffic_class = 0x68;
      spec.hop_limit = 17;
      spec.flow_label = 0x54321;
      const auto peer = AddressHandle::create(spec).take();
      for (const std::size_t bytes : {0, 1, 3, 4, 23, 24, 25, 63, 64, 65, 127, 255, 1000, 4095, 4096}) {
        for (const bool immediate : {false, true}) {
          ++id;
          INFO("ipv6 " << ipv6 << ", " << bytes << " bytes, immediate " << immediate);
          std::memset(b.memory, UnreliableSide::kUntouched, UnreliableSide::kBytes);
          b.post_receive(to, id, 100, bytes + kGrh);
          const auto segment = a.segment(id * 8, bytes);
          auto request = datagram(peer, to.qpn(), segment, 1000 + id);
          if (immediate) request.opcode = WqeOpcode::kSendImmediate;
          request.immediate = 0xFACE0000 + static_cast<std::uint32_t>(id);
          must(from.post_send(request));
          const auto sent = a.sent();
          CHECK(sent.id == 1000 + id);
          CHECK(sent.status == CqeStatus::kSuccess);
          const auto got = b.received();
          REQUIRE(got.status == CqeStatus::kSuccess);
          CHECK(got.id == id);
          CHECK(got.byte_count == bytes + kGrh);
          CHECK(got.grh);
          CHECK(got.source_qpn == from.qpn());
          CHECK(got.with_immediate == immediate);
          if (immediate) CHECK(got.immediate == request.immediate);
          CHECK(std::memcmp(b.memory + 100 + kGrh, a.memory + id * 8, bytes) == 0);
          CHECK(b.untouched(0, 100));
          CHECK(b.untouched(100 + kGrh + bytes, 200));
          // The header in the buffer is that of the frame.
          REQUIRE(!frames.empty());
          const auto& frame = frames.back();
          if (ipv6) {
            CHECK(std::memcmp(b.memory + 100, frame.data() + 14, 40) == 0);
            CHECK(b.memory[100 + 7] == 17);
          } else {
            CHECK(std::all_of(b.memory + 100, b.memory + 120, [](std::uint8_t byte) { return byte == 0; }));
            CHECK(std::memcmp(b.memory + 120, frame.data() + 14, 20) == 0);
            CHECK(b.memory[120 + 1] == 0x68);
            CHECK(b.memory[120 + 8] == 17);
          }
          const std::size_t udp = ipv6 ? 54 : 34;
          CHECK(roce::read_big(frame, udp, 2) == udp_source_port_for(0x54321));
        }
      }
    }
    CHECK(a.quiet());
    CHECK(b.quiet());
  });
  world.observe_frames({});
}

TEST_CASE("tshark and the ICRC check agree with the frames of datagrams") {
  auto options = WorldOptions::from_environment("datagrams_capture");
  const auto path = (std::filesystem::temp_directory_path() / "rnic_datagrams.pcap").string();
  options.capture_path = path;
  auto& world = fresh_world(options);
  std::uint32_t source = 0, dest = 0;
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    auto& to = b.add_datagram_qp(kQkey);
    source = from.qpn();
    dest = to.qpn();
    for (const bool ipv6 : {false, true}) {
      auto spec = testbench::address_of(endpoint_b, ipv6);
      spec.traffic_class = 0x20;
      spec.flow_label = 0x12345;
      const auto peer = AddressHandle::create(spec).take();
      b.post_receive(to, 1, 0, 4096);
      const auto segment = a.segment(0, 61);
      auto request = datagram(peer, dest, segment, 1);
      request.opcode = ipv6 ? WqeOpcode::kSendImmediate : WqeOpcode::kSend;
      request.immediate = 0x01020304;
      must(from.post_send(request));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      CHECK(b.received().status == CqeStatus::kSuccess);
    }
  });
  options.capture_path.clear();
  fresh_world(options);  // closes the file
  const auto run = [](const std::string& command) {
    std::string out;
    FILE* pipe = popen(command.c_str(), "r");
    REQUIRE(pipe != nullptr);
    std::array<char, 256> buffer;
    while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) out += buffer.data();
    CHECK(pclose(pipe) == 0);
    return out;
  };
  const auto out =
      run("tshark -r " + path +
          " -o ip.check_checksum:TRUE -T fields -E separator=' ' -e infiniband.bth.opcode -e infiniband.deth.q_key "
          "-e infiniband.deth.srcqp -e infiniband.bth.destqp -e infiniband.bth.padcnt -e udp.srcport -e "
          "ip.checksum.status 2>/dev/null");
  std::istringstream lines(out);
  std::string line;
  const auto numbers = [](const std::string& text) {
    std::vector<std::uint64_t> all;
    std::istringstream words(text);
    for (std::string word; words >> word;) all.push_back(std::stoull(word, nullptr, 0));
    return all;
  };
  const std::uint64_t port = udp_source_port_for(0x12345);
  REQUIRE(std::getline(lines, line));
  INFO(out);
  CHECK(numbers(line) == std::vector<std::uint64_t>{100, kQkey, source, dest, 3, port, 1});
  REQUIRE(std::getline(lines, line));
  CHECK(numbers(line) == std::vector<std::uint64_t>{101, kQkey, source, dest, 3, port});
  CHECK(run("python3 " RNIC_SOURCE_DIR "/tests/tools/icrc_check.py " + path).find("2") != std::string::npos);
  std::filesystem::remove(path);
}

TEST_CASE("a wrong Q_Key, a missing receive and a stranger's port drop a datagram and nothing else (10.2.5, 9.8.3.2)") {
  const auto options = WorldOptions::from_environment("datagrams_dropped");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    auto& to = b.add_datagram_qp(kQkey);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    const auto segment = a.segment(0, 100);
    const auto send = [&](std::uint32_t qkey, std::uint32_t qpn) {
      auto request = datagram(peer, qpn, segment, 1);
      request.qkey = qkey;
      must(from.post_send(request));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      endpoint_a.device().elapse(5000);
    };
    send(kQkey, to.qpn());  // no receive yet
    CHECK(b.counter(Counter::kRxRnr) == 1);
    b.post_receive(to, 1, 0, 1000);
    send(kQkey + 1, to.qpn());
    CHECK(b.counter(Counter::kRxBadQkey) == 1);
    send(kQkey, to.qpn() ^ 0x100);
    CHECK(b.counter(Counter::kRxNoQp) == 1);
    CHECK(b.quiet());
    CHECK(b.untouched(0, 1000));
    send(kQkey, to.qpn());
    CHECK(b.received().id == 1);
    CHECK(a.quiet());
    CHECK(must(to.kernel_qp().query()).state == static_cast<std::uint8_t>(hw::QpState::kRts));
  });
}

TEST_CASE("a privileged Q_Key in a request sends that of the queue pair (10.2.5)") {
  const auto options = WorldOptions::from_environment("datagrams_privileged");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(0x0BAD0BAD);
    auto& to = b.add_datagram_qp(0x0BAD0BAD);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, true)).take();
    b.post_receive(to, 1, 0, 1000);
    const auto segment = a.segment(0, 8);
    auto request = datagram(peer, to.qpn(), segment, 1);
    request.qkey = 0x80000000;
    must(from.post_send(request));
    CHECK(b.received().id == 1);
  });
}

TEST_CASE("a datagram longer than its receive is dropped, and the receive serves the next (9.9.3)") {
  const auto options = WorldOptions::from_environment("datagrams_too_long");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    auto& to = b.add_datagram_qp(kQkey);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    b.post_receive(to, 1, 0, 139);
    b.post_receive(to, 2, 1000, 2000);
    const auto send = [&](std::size_t bytes) {
      const auto segment = a.segment(0, bytes);
      must(from.post_send(datagram(peer, to.qpn(), segment, 1)));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      endpoint_a.device().elapse(5000);
    };
    send(100);
    CHECK(b.quiet());
    CHECK(b.untouched(0, 4096));
    send(99);
    send(100);
    CHECK(b.received().id == 1);
    const auto second = b.received();
    CHECK(second.id == 2);
    CHECK(second.byte_count == 140);
    CHECK(b.untouched(139, 861));
  });
}

TEST_CASE("a datagram beyond the MTU is a local length error (11.6.2)") {
  const auto options = WorldOptions::from_environment("datagrams_mtu");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a);
    auto& from = a.add_datagram_qp(kQkey, 1024);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    const auto fits = a.segment(0, 1024), beyond = a.segment(0, 1025);
    must(from.post_send(datagram(peer, 0x100, fits, 1)));
    must(from.post_send(datagram(peer, 0x100, beyond, 2)));
    must(from.post_send(datagram(peer, 0x100, fits, 3)));
    const auto first = a.sent(), second = a.sent(), third = a.sent();
    CHECK(first.status == CqeStatus::kSuccess);
    CHECK(second.id == 2);
    CHECK(second.status == CqeStatus::kLocLenErr);
    CHECK(third.status == CqeStatus::kWrFlushErr);
  });
}

TEST_CASE("a key that does not open fails the datagram, behind those before it") {
  const auto options = WorldOptions::from_environment("datagrams_key");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a);
    auto& from = a.add_datagram_qp(kQkey);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    const auto good = a.segment(0, 512);
    auto bad = good;
    bad.key ^= 1;
    for (std::uint64_t id = 1; id <= 5; ++id) must(from.post_send(datagram(peer, 0x100, id == 4 ? bad : good, id)));
    for (std::uint64_t id = 1; id <= 5; ++id) {
      const auto done = a.sent();
      CHECK(done.id == id);
      CHECK(done.status == (id < 4 ? CqeStatus::kSuccess : id == 4 ? CqeStatus::kLocProtErr : CqeStatus::kWrFlushErr));
    }
  });
}

TEST_CASE("management datagrams reach QP1 of the kernel driver (10.2.4.1)") {
  const auto options = WorldOptions::from_environment("datagrams_qp1");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a, must(umd::ProcessContext::open_for_management(endpoint_a.kernel().kernel_node())));
    UnreliableSide b(endpoint_b, must(umd::ProcessContext::open_for_management(endpoint_b.kernel().kernel_node())));
    auto& from = a.add_datagram_qp(kGeneralServiceQkey, 256, true);
    auto& to = b.add_datagram_qp(kGeneralServiceQkey, 256, true);
    CHECK(from.qpn() == 1);
    for (const bool ipv6 : {false, true}) {
      const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, ipv6)).take();
      b.post_receive(to, 9, 0, 256 + kGrh);
      for (int i = 0; i < 256; ++i) a.memory[i] = static_cast<std::uint8_t>(i + ipv6);
      const auto mad = a.segment(0, 256);
      auto request = datagram(peer, 1, mad, 3);
      request.qkey = kPrivilegedQkey;
      must(from.post_send(request));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      const auto got = b.received();
      CHECK(got.status == CqeStatus::kSuccess);
      CHECK(got.source_qpn == 1);
      CHECK(std::memcmp(b.memory + kGrh, a.memory, 256) == 0);
    }
    // A process cannot forge it: the device sends its queue pair's Q_Key for a privileged one.
    UnreliableSide process(endpoint_a);
    auto& forger = process.add_datagram_qp(kQkey);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    b.post_receive(to, 9, 0, 256 + kGrh);
    const auto mad = process.segment(0, 256);
    auto request = datagram(peer, 1, mad, 3);
    request.qkey = kGeneralServiceQkey;
    must(forger.post_send(request));
    CHECK(process.sent().status == CqeStatus::kSuccess);
    endpoint_a.device().elapse(5000);
    CHECK(b.counter(Counter::kRxBadQkey) == 1);
    CHECK(b.quiet());
  });
}

TEST_CASE("under a bad wire each datagram comes whole or not at all") {
  auto options = WorldOptions::from_environment("datagrams_loss");
  for (auto* direction : {&options.wire.faults[0], &options.wire.faults[1]}) {
    direction->drop = 0.05;
    direction->duplicate = 0.02;
    direction->reorder = 0.05;
    direction->corrupt = 0.03;
  }
  auto& world = fresh_world(options);
  std::printf("seed %llu\n", static_cast<unsigned long long>(options.seed));
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    auto& to = b.add_datagram_qp(kQkey);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    model::Random random(options.seed, "loss");
    constexpr std::size_t kCount = 400, kSlot = 640;
    for (std::size_t i = 0; i < 200; ++i) b.post_receive(to, i, i * kSlot, kSlot);
    std::size_t next_receive = 200, received = 0;
    const auto drain = [&](std::uint64_t wait) {
      for (umd::Completion got; b.poll(*b.receive_cq, got, wait);) {
        ++received;
        REQUIRE(got.status == CqeStatus::kSuccess);
        const std::size_t bytes = got.byte_count - kGrh;
        const auto* data = b.memory + got.id % 200 * kSlot + kGrh;
        const auto tag = static_cast<std::uint8_t>(got.immediate);
        CHECK(bytes == got.immediate >> 8);
        CHECK(std::all_of(data, data + bytes, [&](std::uint8_t byte) { return byte == tag; }));
        b.post_receive(to, next_receive, next_receive % 200 * kSlot, kSlot);
        ++next_receive;
      }
    };
    for (std::size_t i = 0; i < kCount; ++i) {
      const std::size_t bytes = random.below(600), slot = i % 32 * 1024;
      std::memset(a.memory + slot, static_cast<int>(i & 0xFF), bytes);
      const auto segment = a.segment(slot, bytes);
      auto request = datagram(peer, to.qpn(), segment, i);
      request.opcode = WqeOpcode::kSendImmediate;
      request.immediate = static_cast<std::uint32_t>(bytes << 8 | (i & 0xFF));
      must(from.post_send(request));
      if (i % 16 == 15) {
        for (int n = 0; n < 16; ++n) CHECK(a.sent().status == CqeStatus::kSuccess);
        drain(100);
      }
    }
    drain(50'000);
    std::printf("%zu of %zu datagrams came\n", received, kCount);
    CHECK(received > kCount * 8 / 10);
    CHECK(received < kCount * 105 / 100);
  });
}

TEST_CASE("a failed datagram stops the send queue alone, and RTS lets it go on (10.3.1.6)") {
  const auto options = WorldOptions::from_environment("datagrams_sqe");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& left = a.add_datagram_qp(kQkey);
    auto& right = b.add_datagram_qp(kQkey);
    const auto to_b = AddressHandle::create(testbench::address_of(endpoint_b, false)).take();
    const auto to_a = AddressHandle::create(testbench::address_of(endpoint_a, false)).take();
    const auto good = a.segment(0, 512), back = b.segment(0, 64);
    auto bad = good;
    bad.key ^= 1;
    const auto state = [&] { return must(left.kernel_qp().query()).state; };
    for (std::uint64_t round = 0; round < 3; ++round) {
      a.post_receive(left, 100 + round, 4096, 2048);
      b.post_receive(right, 200 + round, 4096, 2048);
      for (std::uint64_t id = 1; id <= 20; ++id)
        must(left.post_send(datagram(to_b, right.qpn(), id == 2 ? bad : good, id)));
      for (std::uint64_t id = 1; id <= 20; ++id) {
        const auto done = a.sent();
        CHECK(done.id == id);
        CHECK(done.status == (id == 1   ? CqeStatus::kSuccess
                              : id == 2 ? CqeStatus::kLocProtErr
                                        : CqeStatus::kWrFlushErr));
      }
      CHECK(b.received().id == 200 + round);
      CHECK(state() == static_cast<std::uint8_t>(hw::QpState::kSqe));
      // What is posted now is flushed; what comes is received.
      must(left.post_send(datagram(to_b, right.qpn(), good, 30)));
      CHECK(a.sent().status == CqeStatus::kWrFlushErr);
      must(right.post_send(datagram(to_a, left.qpn(), back, 40)));
      CHECK(b.sent().status == CqeStatus::kSuccess);
      CHECK(a.received().id == 100 + round);
      must(left.resume());
      CHECK(state() == static_cast<std::uint8_t>(hw::QpState::kRts));
      b.post_receive(right, 300, 4096, 2048);
      must(left.post_send(datagram(to_b, right.qpn(), good, 50)));
      CHECK(a.sent().status == CqeStatus::kSuccess);
      CHECK(b.received().id == 300);
    }
  });
}

TEST_CASE(
    "datagram queue pairs share receives: an empty queue drops, one that is too short fails its receive (10.2.9, 9.9.3 "
    "class E)") {
  const auto options = WorldOptions::from_environment("datagrams_shared");
  auto& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& endpoint_a, Endpoint& endpoint_b) {
    UnreliableSide a(endpoint_a), b(endpoint_b);
    auto& from = a.add_datagram_qp(kQkey);
    const auto srq = must(umd::SharedReceiveQueue::create(b.process, 8, 2));
    std::vector<std::shared_ptr<umd::QueuePair>> to;
    const umd::QueuePair::Spec spec{
        .send_cq = b.cq,
        .receive_cq = b.receive_cq,
        .shared_receives = srq,
        .type = QpType::kUd,
        .capacity = {
            .send_depth = 8, .receive_depth = 0, .send_segments = 1, .receive_segments = 1, .inline_bytes = 0}};
    for (int i = 0; i < 3; ++i) {
      to.push_back(must(umd::QueuePair::create_idle(b.process, spec)));
      must(to.back()->connect(testbench::datagram_attributes(endpoint_b, kQkey)));
    }
    auto connected = spec;
    connected.type = QpType::kUc;
    CHECK(umd::QueuePair::create_idle(b.process, connected).error() == Error::kNotSupported);
    const auto peer = AddressHandle::create(testbench::address_of(endpoint_b, true)).take();
    const auto send = [&](std::size_t qp, std::size_t bytes) {
      const auto segment = a.segment(0, bytes);
      must(from.post_send(datagram(peer, to[qp]->qpn(), segment, 1)));
      CHECK(a.sent().status == CqeStatus::kSuccess);
    };
    const auto receive = [&](std::uint64_t id, std::size_t bytes) {
      const auto place = b.segment(id * 1024, bytes);
      must(srq->post({.id = id, .segments = {&place, 1}}));
    };
    const auto state = [&](std::size_t qp) {
      return static_cast<hw::QpState>(must(to[qp]->kernel_qp().query()).state);
    };
    for (std::size_t i = 0; i < 1024; ++i) a.memory[i] = static_cast<std::uint8_t>(i * 5);

    send(1, 100);  // nothing is posted
    CHECK(b.quiet());
    CHECK(b.counter(Counter::kRxRnr) == 1);
    CHECK(must(to[1]->kernel_qp().counters())[hw::QpCounter::kNoReceive] == 1);
    // Whoever comes takes the next, more than the queue holds in all.
    for (std::uint64_t id = 0; id < 24; ++id) {
      receive(id % 8, 1024);
      send(id % 3, 20 * id);
      const auto got = b.received();
      CHECK(got.id == id % 8);
      CHECK(got.status == CqeStatus::kSuccess);
      CHECK(got.qpn == to[id % 3]->qpn());
      CHECK(got.source_qpn == from.qpn());
      CHECK(got.grh);
      CHECK(got.byte_count == kGrh + 20 * id);
      CHECK(std::memcmp(b.memory + (id % 8) * 1024 + kGrh, a.memory, 20 * id) == 0);
    }
    // Too long for what it took: that receive fails, and nothing of it is written; the others are used by the next.
    for (const std::uint64_t id : {20, 21, 22}) receive(id, id == 20 ? 139 : 1024);
    send(0, 100);
    auto got = b.received();
    CHECK((got.id == 20 && got.status == CqeStatus::kLocLenErr));
    CHECK(b.untouched(20 * 1024, 1024));
    send(0, 99);
    send(2, 100);
    got = b.received();
    CHECK((got.id == 21 && got.status == CqeStatus::kSuccess && got.qpn == to[0]->qpn()));
    got = b.received();
    CHECK((got.id == 22 && got.status == CqeStatus::kSuccess && got.qpn == to[2]->qpn()));
    CHECK(must(to[0]->kernel_qp().counters())[hw::QpCounter::kPlaceFaults] == 1);
    // A receive that was rung for and never written is the end of the queue, and of those that need it (11.6.3.3).
    const auto next = static_cast<std::uint16_t>(must(srq->kernel_srq().query()).head + 1);
    b.process->ring(hw::uar::kSrqDoorbell, hw::SrqDoorbell{.srqn = srq->srqn(), .producer_index = next}.word());
    send(1, 50);
    send(2, 50);
    CHECK(endpoint_b.wait_until([&] { return to[1]->failed() && to[2]->failed() && to[2]->last_wqe_reached(); },
                                1'000'000));
    CHECK(state(0) == hw::QpState::kRts);
    CHECK(state(1) == hw::QpState::kErr);
    CHECK(state(2) == hw::QpState::kErr);
    CHECK(must(to[2]->kernel_qp().counters())[hw::QpCounter::kSrqErrors] == 1);
    CHECK(b.quiet());
  });
}
