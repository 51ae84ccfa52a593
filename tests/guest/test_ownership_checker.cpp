#include <catch2/catch.hpp>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "model/iommu.hpp"
#include "model/pcie.hpp"
#include "testbench/guest/ownership_checker.hpp"

using namespace rnic;
using testbench::OwnershipChecker;
using testbench::OwnershipRule;

// Who owns which memory, and when: docs/host_interface.md, Ownership. The test is driver and device.

namespace {

constexpr std::uint64_t kRam = 0x10'0000, kBytes = 0x10'0000;
constexpr std::uint64_t kCommands = kRam, kAnswers = kRam + 0x1000, kEq = kRam + 0x2000, kCq = kRam + 0x3000,
                        kSends = kRam + 0x4000, kReceives = kRam + 0x5000, kRecord = kRam + 0x6000,
                        kShared = kRam + 0x7000, kNextCq = kRam + 0x8000;
constexpr std::uint8_t kUar = 5;
constexpr std::uint32_t kQpn = 0x102, kCqn = 0x103, kSrqn = 0x104;
/// Entries of each queue.
constexpr unsigned kLogDepth = 2, kDepth = 1u << kLogDepth;
constexpr unsigned kLogSend = 6, kLogReceive = 5;

struct Pair {
  Pair() : storage(kBytes + model::kPageBytes) {
    const auto start = reinterpret_cast<std::uintptr_t>(storage.data());
    ram = storage.data() + (model::kPageBytes - start % model::kPageBytes) % model::kPageBytes;
    memory.set_windows({{kRam, kBytes, ram}});
  }

  // ---- The driver
  std::uint8_t* at(std::uint64_t address) { return ram + (address - kRam); }
  template <typename Structure>
  void put(std::uint64_t address, const Structure& value) {
    value.encode(std::span<std::uint8_t, Structure::kBytes>(at(address), Structure::kBytes));
  }
  void store(std::uint64_t offset, const std::vector<std::uint8_t>& data) {
    const auto dwords = static_cast<std::uint16_t>(data.size() / 4);
    const std::uint8_t last_be = dwords > 1 ? 0xF : 0;
    checker.request({model::TlpKind::kMemoryWrite, false, offset, dwords, 0xF, last_be, 0, 0, data});
  }
  void store(std::uint64_t offset, std::uint64_t value) {
    std::vector<std::uint8_t> data(8);
    std::memcpy(data.data(), &value, data.size());
    store(offset, data);
  }
  void ring(std::uint64_t doorbell, std::uint64_t value, std::uint8_t uar = kUar) {
    store(uar * std::uint64_t{hw::kUarPageBytes} + doorbell, value);
  }
  void begin_admin() {
    store(hw::reg::kAdminCommandBase, kCommands);
    store(hw::reg::kAdminCompletionBase, kAnswers);
    store(hw::reg::kAdminConfig, hw::RegAdminConfig{.log_depth = kLogDepth}.word());
    store(hw::reg::kDeviceControl, 1);
  }
  void command(hw::AdminOpcode opcode, std::uint32_t number,
               const std::function<void(std::span<std::uint8_t, 120>)>& fill) {
    hw::AdminCommand command;
    command.opcode = static_cast<std::uint8_t>(opcode);
    command.command_id = commands;
    command.number = number;
    if (fill) fill(std::span(command.body));
    put(kCommands + commands % kDepth * hw::AdminCommand::kBytes, command);
    store(hw::reg::kAdminDoorbell, ++commands);
  }
  void send_wqe(std::uint16_t index) {
    put(kSends + (index % kDepth << kLogSend), hw::WqeControl{.wqe_index = index, .qpn = kQpn, .size = 1});
  }
  void receive_wqe(std::uint64_t base, std::uint16_t index, std::uint16_t tag = 0) {
    put(base + (index % kDepth << kLogReceive), hw::WqeReceive{.wqe_index = index, .tag = tag});
  }
  void ring_sends(std::uint16_t producer) {
    ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = kQpn, .producer_index = producer}.word());
  }
  void ring_receives(std::uint16_t producer) {
    ring(hw::uar::kReceiveDoorbell, hw::ReceiveDoorbell{.qpn = kQpn, .producer_index = producer}.word());
  }
  void ring_shared(std::uint16_t producer) {
    ring(hw::uar::kSrqDoorbell, hw::SrqDoorbell{.srqn = kSrqn, .producer_index = producer}.word());
  }
  void ring_cq(std::uint32_t consumer) {
    ring(hw::uar::kCqDoorbell, hw::CqDoorbell{.cqn = kCqn, .consumer_index = consumer}.word());
  }
  void ring_eq(std::uint32_t consumer) {
    ring(hw::uar::kEqDoorbell, hw::EqDoorbell{.eqn = 0, .consumer_index = consumer}.word(), hw::kKernelUar);
  }

  // ---- The device
  void read(std::uint64_t address, std::size_t bytes) {
    std::vector<std::uint8_t> data;
    CHECK(checker.read({model::TlpKind::kMemoryRead, address, static_cast<std::uint16_t>(bytes / 4), 0xF, 0xF, 0, {}},
                       {at(address), 0}, data, [] { return true; }));
  }
  template <typename Structure>
  void write(std::uint64_t address, const Structure& value) {
    model::DmaRequest request{model::TlpKind::kMemoryWrite,
                              address,
                              Structure::kBytes / 4,
                              0xF,
                              0xF,
                              0,
                              std::vector<std::uint8_t>(Structure::kBytes)};
    value.encode(std::span<std::uint8_t, Structure::kBytes>(request.data));
    CHECK(checker.write(request, {at(address), 0}, [&] {
      std::memcpy(at(address), request.data.data(), request.data.size());
      return true;
    }));
  }
  void read_command() { read(kCommands + answers % kDepth * hw::AdminCommand::kBytes, hw::AdminCommand::kBytes); }
  void answer(hw::AdminStatus status = hw::AdminStatus::kSuccess, std::uint32_t index = 0) {
    hw::AdminCompletion completion;
    completion.status = static_cast<std::uint8_t>(status);
    completion.phase = (answers / kDepth & 1) == 0;
    completion.result.at(0) = static_cast<std::uint8_t>(index);
    write(kAnswers + answers++ % kDepth * hw::AdminCompletion::kBytes, completion);
  }
  void do_command() {
    read_command();
    answer();
  }
  void cqe(hw::Cqe entry, std::uint64_t base = kCq, std::uint32_t origin = 0) {
    entry.phase = ((cqes - origin) / kDepth & 1) == 0;
    entry.qpn = kQpn;
    write(base + (cqes++ - origin) % kDepth * hw::Cqe::kBytes, entry);
  }
  void sent(std::uint16_t index) { cqe({.wqe_index = index, .retired_index = static_cast<std::uint16_t>(index + 1)}); }
  void received(std::uint16_t index) { cqe({.wqe_index = index, .is_receive = 1}); }
  void eqe() { write(kEq + eqes++ % kDepth * hw::Eqe::kBytes, hw::Eqe{.phase = 1}); }

  /// An EQ, a CQ, an SRQ and a queue pair.
  void begin(bool use_srq = false) {
    begin_admin();
    command(hw::AdminOpcode::kCreateEq, 0,
            [](auto body) { hw::AdminCreateEq{.base = kEq, .log_depth = kLogDepth}.encode(body); });
    do_command();
    command(hw::AdminOpcode::kCreateCq, kCqn,
            [](auto body) { hw::AdminCreateCq{.base = kCq, .log_depth = kLogDepth, .uar = kUar}.encode(body); });
    do_command();
    command(hw::AdminOpcode::kCreateSrq, kSrqn, [](auto body) {
      hw::AdminCreateSrq{.base = kShared, .log_depth = kLogDepth, .log_stride = kLogReceive, .uar = kUar}.encode(body);
    });
    do_command();
    command(hw::AdminOpcode::kCreateQp, kQpn, [use_srq](auto body) { qp(use_srq).encode(body); });
    do_command();
  }
  static hw::AdminCreateQp qp(bool use_srq) {
    return {.sq_base = kSends,
            .rq_base = kReceives,
            .retired_address = kRecord,
            .uar = kUar,
            .send_cqn = kCqn,
            .receive_cqn = kCqn,
            .sq_log_depth = kLogDepth,
            .sq_log_stride = kLogSend,
            .rq_log_depth = kLogDepth,
            .rq_log_stride = kLogReceive,
            .srqn = kSrqn,
            .use_srq = use_srq ? std::uint8_t{1} : std::uint8_t{0}};
  }
  void post_send(std::uint16_t index) {
    send_wqe(index);
    ring_sends(static_cast<std::uint16_t>(index + 1));
  }

  /// The rules that were broken, and how often each; they are forgotten.
  std::string broken() {
    std::string all;
    for (std::size_t i = 0; i < testbench::kOwnershipRules.size(); ++i) {
      const auto times = checker.figures().broken.at(i);
      if (times != 0) all += std::string(testbench::kOwnershipRules.at(i).name) + " " + std::to_string(times) + ". ";
    }
    checker.begin();
    return all;
  }

  std::vector<std::uint8_t> storage;
  std::uint8_t* ram{};
  model::Iommu memory;
  std::vector<std::string> lines;
  OwnershipChecker checker{memory, [this](const std::string& line) { lines.push_back(line); }};
  std::uint16_t commands = 0;
  std::uint32_t answers = 0, cqes = 0, eqes = 0;
};

}  // namespace

TEST_CASE("a driver that keeps the rules is told nothing, over many passes of every ring") {
  Pair pair;
  pair.begin();
  for (std::uint16_t i = 0; i < 5 * kDepth; ++i) {
    pair.post_send(i);
    pair.receive_wqe(kReceives, i);
    pair.ring_receives(static_cast<std::uint16_t>(i + 1));
    pair.receive_wqe(kShared, i, static_cast<std::uint16_t>(i % 3));
    pair.read(kSends + (i % kDepth << kLogSend), 1 << kLogSend);
    pair.read(kReceives + (i % kDepth << kLogReceive), 1 << kLogReceive);
    pair.sent(i);
    pair.received(i);
    pair.ring_cq(2 * (i + 1u));
    pair.eqe();
    pair.ring_eq(i + 1u);
    pair.command(hw::AdminOpcode::kQueryCapabilities, 0, {});
    pair.do_command();
  }
  CHECK(pair.checker.figures().entries == 4 + 4 * 5 * kDepth);
  CHECK(pair.checker.figures().slots == 4 + 3 * 5 * kDepth);
  CHECK(pair.broken().empty());
  CHECK(pair.lines.empty());
}

TEST_CASE("a doorbell before its WQE is named, once, with what is in the slot") {
  Pair pair;
  pair.begin();
  SECTION("of a send queue") {
    pair.ring_sends(1);
    pair.send_wqe(0);
    pair.read(kSends, 64);
    pair.sent(0);
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
    REQUIRE(pair.lines.size() == 1);
    CHECK(
        pair.lines.front() ==
        "the driver breaks doorbell-before-wqe: the send queue of queue pair 0x102: the doorbell comes, and WQE 0x0 is "
        "not in its slot at 0x104000; a WQE is in its slot when its doorbell is rung (docs/host_interface.md, "
        "Ownership, wqe_index)");
  }
  SECTION("of a send queue, with the WQE of the pass before in the slot") {
    for (std::uint16_t i = 0; i < kDepth; ++i) {
      pair.post_send(i);
      pair.sent(i);
      pair.ring_cq(i + 1u);
    }
    CHECK(pair.broken().empty());
    pair.ring_sends(kDepth + 1);
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
  }
  SECTION("of another queue pair's WQE") {
    pair.put(kSends, hw::WqeControl{.wqe_index = 0, .qpn = kQpn + 1, .size = 1});
    pair.ring_sends(1);
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
  }
  SECTION("of a receive queue") {
    pair.receive_wqe(kReceives, 0);
    pair.ring_receives(2);  // and of the second there is nothing
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
  }
  SECTION("of a shared receive queue") {
    pair.receive_wqe(kShared, 0);
    pair.ring_shared(2);
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
  }
  SECTION("through the window: the ring has it, too, when the last piece comes") {
    const auto wqe = [](std::uint16_t index, std::uint8_t size = 2) {
      std::vector<std::uint8_t> bytes(32);
      hw::WqeControl{.wqe_index = index, .qpn = kQpn, .size = size}.encode(
          std::span<std::uint8_t, 16>(bytes.data(), 16));
      return bytes;
    };
    const auto push = [&](std::uint16_t index, const std::vector<unsigned>& order, std::uint8_t size = 2) {
      const auto bytes = wqe(index, size);
      for (const unsigned word : order) {
        const auto from = bytes.begin() + 8 * word;
        pair.store(kUar * std::uint64_t{hw::kUarPageBytes} + hw::uar::kWqeWindow + 8 * word, {from, from + 8});
      }
    };
    push(0, {0, 1, 2});
    std::memcpy(pair.at(kSends), wqe(0).data(), 32);
    push(0, {});
    pair.store(kUar * std::uint64_t{hw::kUarPageBytes} + hw::uar::kWqeWindow + 24, std::uint64_t{0});
    CHECK(pair.broken().empty());
    push(1, {0, 1, 2, 3});
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
    // In another order the first bytes post it.
    push(2, {1, 2, 3, 0});
    CHECK(pair.broken() == "doorbell-before-wqe 1. ");
    CHECK(pair.checker.figures().slots == 0);
    std::memcpy(pair.at(kSends + 3 * 64), wqe(3).data(), 32);
    push(3, {0, 1, 2, 3});
    CHECK(pair.checker.figures().slots == 1);
    CHECK(pair.broken().empty());
    // So they do where the size is none that a WQE can have (decisions 52); the ring is full.
    push(4, {0}, 0);
    push(5, {0}, 17);
    CHECK(pair.broken() == "ring-overrun 2. ");
  }
}

TEST_CASE("what is written behind its doorbell is named when the device reads it") {
  Pair pair;
  pair.begin();
  SECTION("a WQE") {
    pair.post_send(0);
    pair.at(kSends)[40] ^= 1;
    pair.read(kSends, 64);
    pair.sent(0);
    CHECK(pair.broken() == "written-behind-doorbell 1. ");
  }
  SECTION("a WQE among several that are read at once") {
    for (std::uint16_t i = 0; i < kDepth; ++i) pair.post_send(i);
    pair.at(kSends + 64)[0] ^= 1;
    pair.read(kSends, 256);
    CHECK(pair.broken() == "written-behind-doorbell 1. ");
  }
  SECTION("a receive WQE, and one of a shared receive queue") {
    pair.receive_wqe(kReceives, 0);
    pair.ring_receives(1);
    pair.receive_wqe(kShared, 0);
    pair.ring_shared(1);
    pair.at(kReceives)[20] ^= 1;
    pair.at(kShared)[20] ^= 1;
    pair.read(kReceives, 32);
    pair.read(kShared, 32);
    CHECK(pair.broken() == "written-behind-doorbell 2. ");
    CHECK(pair.lines.size() == 1);
  }
  SECTION("an admin command") {
    pair.command(hw::AdminOpcode::kQueryCapabilities, 0, {});
    pair.at(kCommands)[64] ^= 1;
    pair.do_command();
    CHECK(pair.broken() == "written-behind-doorbell 1. ");
  }
  SECTION("what lies behind the doorbell is the driver's") {
    pair.send_wqe(1);
    pair.post_send(0);
    pair.at(kSends + 64)[40] ^= 1;
    pair.read(kSends, 256);
    CHECK(pair.broken().empty());
  }
}

TEST_CASE("a slot that is written while it is the device's is named") {
  Pair pair;
  pair.begin();
  SECTION("until a completion says that the WQE has retired") {
    for (std::uint16_t i = 0; i < kDepth; ++i) pair.post_send(i);
    pair.read(kSends, 256);
    pair.cqe({.wqe_index = 1, .retired_index = 1});  // 0 has retired, 1 has completed
    pair.send_wqe(4);
    pair.at(kSends + 64)[0] ^= 1;
    pair.cqe({.wqe_index = 2, .retired_index = 3});
    CHECK(pair.broken() == "slot-overwritten 1. ");
  }
  SECTION("until the retired record says so") {
    pair.post_send(0);
    pair.post_send(1);
    pair.read(kSends, 128);
    pair.write(kRecord, hw::RetiredRecord{.retired_index = 1});
    pair.send_wqe(4);
    CHECK(pair.broken().empty());
    pair.at(kSends + 64)[8] ^= 1;
    pair.write(kRecord, hw::RetiredRecord{.retired_index = 2});
    CHECK(pair.broken() == "slot-overwritten 1. ");
  }
  SECTION("of a receive queue until its completion") {
    pair.receive_wqe(kReceives, 0);
    pair.ring_receives(1);
    pair.read(kReceives, 32);
    pair.at(kReceives)[16] ^= 1;
    pair.received(0);
    CHECK(pair.broken() == "slot-overwritten 1. ");
  }
  SECTION("of a queue that is full, for the next WQE: that is what is wrong, not the index") {
    for (std::uint16_t i = 0; i < kDepth; ++i) pair.post_send(i);
    pair.post_send(kDepth);
    CHECK(pair.broken() == "slot-overwritten 1. ");
  }
  SECTION("of the admin queue until its completion") {
    pair.command(hw::AdminOpcode::kQueryCapabilities, 0, {});
    pair.read_command();
    pair.at(kCommands)[64] ^= 1;
    pair.answer();
    CHECK(pair.broken() == "slot-overwritten 1. ");
  }
  SECTION("a queue pair that goes to RESET gives all back") {
    pair.post_send(0);
    pair.command(hw::AdminOpcode::kModifyQp, kQpn, [](auto body) { hw::AdminModifyQp{.next_state = 0}.encode(body); });
    pair.do_command();
    pair.send_wqe(0);
    pair.at(kSends)[40] ^= 1;
    const auto before = pair.checker.figures().slots;
    pair.ring_sends(1);
    CHECK(pair.checker.figures().slots == before + 1);
    pair.read(kSends, 64);
    pair.sent(0);
    CHECK(pair.broken().empty());
  }
  SECTION("one that is destroyed, too") {
    pair.post_send(0);
    pair.command(hw::AdminOpcode::kDestroyQp, kQpn, {});
    pair.do_command();
    pair.at(kSends)[0] ^= 1;
    pair.read(kSends, 64);
    const auto before = pair.checker.figures().slots;
    pair.post_send(1);
    CHECK(pair.checker.figures().slots == before);
    CHECK(pair.broken().empty());
  }
}

TEST_CASE("of a shared receive queue a completion frees all that were posted before") {
  Pair pair;
  pair.begin(true);
  for (std::uint16_t i = 0; i < kDepth; ++i) pair.receive_wqe(kShared, i, static_cast<std::uint16_t>(100 + i));
  pair.ring_shared(kDepth);
  pair.cqe({.wqe_index = 102, .is_receive = 1});
  for (std::uint16_t i = kDepth; i < kDepth + 3; ++i) pair.receive_wqe(kShared, i, static_cast<std::uint16_t>(i));
  pair.ring_shared(kDepth + 3);
  CHECK(pair.broken().empty());
  pair.ring_shared(kDepth + 4);
  CHECK(pair.broken() == "ring-overrun 1. ");
  pair.at(kShared + 3 * 32)[0] ^= 1;
  pair.cqe({.wqe_index = 103, .is_receive = 1});
  CHECK(pair.broken() == "slot-overwritten 1. ");
}

TEST_CASE("a shared receive queue whose ring is changed lies elsewhere from then on") {
  Pair pair;
  pair.begin(true);
  pair.receive_wqe(kShared, 0, 7);
  pair.ring_shared(1);
  std::memcpy(pair.at(kNextCq), pair.at(kShared), 32);
  pair.command(hw::AdminOpcode::kModifySrq, kSrqn, [](auto body) {
    hw::AdminModifySrq{.set_ring = 1, .log_depth = kLogDepth + 1, .base = kNextCq}.encode(body);
  });
  pair.do_command();
  pair.at(kShared)[0] ^= 1;
  pair.read(kNextCq, 32);
  CHECK(pair.broken().empty());
  pair.at(kNextCq)[0] ^= 1;
  pair.read(kNextCq, 32);
  CHECK(pair.broken() == "written-behind-doorbell 1. ");
}

TEST_CASE("a producer index beyond the ring, or one that goes back, is named and not followed") {
  Pair pair;
  pair.begin();
  pair.ring_sends(kDepth + 1);
  CHECK(pair.broken() == "ring-overrun 1. ");
  pair.post_send(0);
  pair.post_send(1);
  CHECK(pair.broken().empty());
  pair.ring_sends(1);
  CHECK(pair.broken() == "producer-back 1. ");
  pair.ring_sends(2);  // once more the same
  pair.post_send(2);
  CHECK(pair.broken().empty());
  pair.ring_receives(kDepth + 1);
  CHECK(pair.broken() == "ring-overrun 1. ");
  pair.store(hw::reg::kAdminDoorbell, pair.commands + kDepth + 1u);
  CHECK(pair.broken() == "ring-overrun 1. ");
  // Through another page nobody listens.
  pair.ring(hw::uar::kSendDoorbell, hw::SendDoorbell{.qpn = kQpn, .producer_index = 1}.word(), kUar + 1);
  CHECK(pair.broken().empty());
}

TEST_CASE("a consumer index ahead of the device, or one that goes back, is named and not followed") {
  Pair pair;
  pair.begin();
  for (std::uint16_t i = 0; i < 3; ++i) {
    pair.post_send(i);
    pair.sent(i);
    pair.eqe();
  }
  SECTION("of a completion queue") {
    pair.ring_cq(2);
    pair.ring_cq(4);
    CHECK(pair.broken() == "consumer-ahead 1. ");
    pair.ring_cq(3);
    CHECK(pair.broken().empty());
    pair.ring_cq(2);
    CHECK(pair.broken() == "consumer-back 1. ");
  }
  SECTION("of an event queue") {
    pair.ring_eq(4);
    CHECK(pair.broken() == "consumer-ahead 1. ");
    REQUIRE(pair.lines.size() == 1);
    CHECK_THAT(pair.lines.front(),
               Catch::Contains("event queue 0x0: the consumer index says 0x4, and entry 0x3 is not "
                               "written yet; an entry is there when its phase is that of the pass"));
    pair.ring_eq(3);
    pair.ring_eq(1);
    CHECK(pair.broken() == "consumer-back 1. ");
  }
  SECTION("24 bits count") {
    pair.ring_cq(0xFF'FFFF);
    CHECK(pair.broken() == "consumer-back 1. ");
  }
}

TEST_CASE("an entry that the driver writes while it is the device's is named when the device writes it") {
  Pair pair;
  pair.begin();
  SECTION("in the first pass it is zero") {
    pair.at(kCq)[63] = 1;
    pair.post_send(0);
    pair.sent(0);
    CHECK(pair.broken() == "entry-overwritten 1. ");
  }
  SECTION("in later ones it is as it was given back") {
    for (std::uint16_t i = 0; i < kDepth; ++i) {
      pair.post_send(i);
      pair.sent(i);
      pair.at(kCq + i * 64)[8] = 77;  // it is the driver's
      pair.ring_cq(i + 1u);
    }
    pair.at(kCq + 64)[8] = 78;
    for (std::uint16_t i = kDepth; i < 2 * kDepth; ++i) {
      pair.post_send(i);
      pair.sent(i);
    }
    CHECK(pair.broken() == "entry-overwritten 1. ");
  }
  SECTION("an event") {
    pair.at(kEq)[0] = 1;
    pair.eqe();
    CHECK(pair.broken() == "entry-overwritten 1. ");
  }
  SECTION("an admin completion, in the first pass and later") {
    pair.at(kAnswers)[0] ^= 1;  // the driver's, until the next doorbell for its slot
    pair.command(hw::AdminOpcode::kQueryCapabilities, 0, {});
    pair.do_command();
    CHECK(pair.broken().empty());
    pair.command(hw::AdminOpcode::kQueryCapabilities, 0, {});
    pair.at(kAnswers + 64)[0] ^= 1;
    pair.do_command();
    CHECK(pair.broken() == "entry-overwritten 1. ");
  }
}

TEST_CASE("rings that the device writes are zero when they are handed over") {
  Pair pair;
  pair.at(kAnswers + 100)[0] = 1;
  pair.begin_admin();
  CHECK(pair.broken() == "ring-not-zeroed 1. ");
  pair.at(kAnswers + 100)[0] = 0;
  pair.begin_admin();
  pair.at(kCq + 255)[0] = 1;
  pair.command(hw::AdminOpcode::kCreateCq, kCqn,
               [](auto body) { hw::AdminCreateCq{.base = kCq, .log_depth = kLogDepth, .uar = kUar}.encode(body); });
  pair.do_command();
  CHECK(pair.broken() == "ring-not-zeroed 1. ");
  // It is told of that, and not of each entry.
  for (unsigned i = 0; i < kDepth; ++i) pair.cqe({});
  CHECK(pair.broken().empty());
  pair.at(kEq + 64)[0] = 1;
  pair.command(hw::AdminOpcode::kCreateEq, 0,
               [](auto body) { hw::AdminCreateEq{.base = kEq, .log_depth = kLogDepth}.encode(body); });
  pair.do_command();
  CHECK(pair.broken() == "ring-not-zeroed 1. ");
}

TEST_CASE("a doorbell of what has been asked for and not been answered is named") {
  Pair pair;
  pair.begin_admin();
  pair.command(hw::AdminOpcode::kCreateQp, kQpn, [](auto body) { Pair::qp(false).encode(body); });
  pair.post_send(0);
  CHECK(pair.broken().empty());  // nobody has seen the command
  pair.read_command();
  pair.post_send(0);
  CHECK(pair.broken() == "object-not-there 1. ");
  pair.answer();
  pair.post_send(0);
  CHECK(pair.broken().empty());
  // A process may ring what it had: nobody listens.
  pair.ring_cq(1);
  CHECK(pair.broken().empty());
}

TEST_CASE("what the device refuses to make is not there") {
  Pair pair;
  pair.begin_admin();
  pair.command(hw::AdminOpcode::kCreateQp, kQpn, [](auto body) { Pair::qp(false).encode(body); });
  pair.read_command();
  pair.answer(hw::AdminStatus::kBadParameter);
  pair.ring_sends(1);
  CHECK(pair.checker.figures().slots == 1);  // the command
  CHECK(pair.broken().empty());
}

TEST_CASE("a queue that is resized goes on in its other ring") {
  Pair pair;
  pair.begin();
  pair.post_send(0);
  pair.sent(0);
  pair.command(hw::AdminOpcode::kResizeCq, kCqn,
               [](auto body) { hw::AdminResizeCq{.base = kNextCq, .log_depth = kLogDepth}.encode(body); });
  pair.read_command();
  pair.post_send(1);
  pair.cqe({.wqe_index = 1, .retired_index = 2}, kNextCq, 1);  // before the answer
  pair.answer(hw::AdminStatus::kSuccess, 1);
  pair.ring_cq(2);
  CHECK(pair.broken().empty());
  pair.at(kCq)[0] ^= 1;  // the driver's
  pair.post_send(2);
  pair.cqe({.wqe_index = 2, .retired_index = 3}, kNextCq, 1);
  CHECK(pair.broken().empty());
  pair.ring_cq(4);
  CHECK(pair.broken() == "consumer-ahead 1. ");
  pair.at(kNextCq + 128)[0] ^= 1;
  pair.post_send(3);
  pair.cqe({.wqe_index = 3, .retired_index = 4}, kNextCq, 1);
  CHECK(pair.broken() == "entry-overwritten 1. ");
}

TEST_CASE("with late entries the phase is there first, and who does not wait for the rest is named") {
  Pair pair;
  pair.checker.set_late_entries(true);
  pair.begin();
  pair.checker.barrier();
  CHECK(pair.at(kAnswers)[63] == 1);
  pair.post_send(0);
  pair.cqe({.wqe_index = 0, .byte_count = 99, .retired_index = 1});
  CHECK(pair.at(kCq)[63] == 1);
  CHECK(hw::Cqe::decode(std::span<const std::uint8_t, 64>(pair.at(kCq), 64)).byte_count == 0);
  SECTION("a barrier brings it") {
    pair.checker.barrier();
    CHECK(hw::Cqe::decode(std::span<const std::uint8_t, 64>(pair.at(kCq), 64)).byte_count == 99);
    pair.ring_cq(1);
    CHECK(pair.broken().empty());
  }
  SECTION("without one what is given back was not read") {
    pair.ring_cq(1);
    CHECK(pair.broken() == "entry-read-unordered 1. ");
    CHECK(hw::Cqe::decode(std::span<const std::uint8_t, 64>(pair.at(kCq), 64)).byte_count == 99);
  }
  SECTION("an event, too") {
    pair.eqe();
    pair.ring_eq(1);
    CHECK(pair.broken() == "entry-read-unordered 1. ");
  }
  SECTION("what the driver did not give back it may not have looked at") {
    pair.eqe();
    pair.ring_eq(0);
    CHECK(pair.broken().empty());
  }
}

TEST_CASE("a reset takes everything, and a device that is not enabled hears nothing") {
  Pair pair;
  pair.begin();
  pair.post_send(0);
  pair.store(hw::reg::kDeviceControl, 0);
  pair.ring_sends(3);
  CHECK(pair.broken().empty());
  pair.store(hw::reg::kDeviceControl, 1);
  pair.checker.reset();
  pair.at(kSends)[0] ^= 1;
  pair.read(kSends, 64);
  pair.ring_sends(3);
  pair.ring_cq(3);
  pair.store(hw::reg::kAdminDoorbell, 99);
  CHECK(pair.broken().empty());
  // The next life begins as the first.
  std::memset(pair.at(kAnswers), 0, 0x1000);
  std::memset(pair.at(kCq), 0, 0x1000);
  std::memset(pair.at(kEq), 0, 0x1000);
  pair.commands = 0;
  pair.answers = pair.cqes = pair.eqes = 0;
  pair.begin();
  pair.post_send(0);
  pair.sent(0);
  pair.ring_cq(1);
  CHECK(pair.broken().empty());
}
