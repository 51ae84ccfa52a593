#include <Vadmin_queue.h>

#include <map>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

// rtl/host/admin_queue.sv, admin_fetch.sv, admin_answer.sv: commands are fetched ahead, executed in their order, each
// once, and answered in that order (host interface, "Admin queue").
using namespace rnic::test;
namespace hw = rnic::hw;

namespace {

constexpr unsigned kAhead = 8;    // admin_fetch Ahead
constexpr unsigned kAnswers = 7;  // executed without an answer that has left: 4 and 1 in the FIFO, 1 behind, 1 in front

/// A driver, its memory, DMA, a verb that answers each command with its own number, and the interrupt controller.
/// Every access is checked against what the driver has posted.
class QueueWorld : public Agent {
 public:
  explicit QueueWorld(std::uint64_t seed_value) : bench(seed_value) {
    auto& dut = *bench.dut;
    dut.enable_i = 1;
    dut.restart_i = dut.exec_done_i = dut.rd_rsp_valid_i = dut.wr_done_i = 0;
    configure(5, true);
    bench.reset();
    bench.add(*this);
  }

  void configure(unsigned log_depth, bool interrupt) {
    auto& dut = *bench.dut;
    commands_at = bench.rng() & ~0xfffULL;
    completions_at = bench.rng() & ~0xfffULL;
    dut.command_base_i = commands_at | 0x123;  // the low 12 bits do not count
    dut.completion_base_i = completions_at | 0x40;
    dut.producer_index_i = 0;
    interrupts_on = interrupt;
    put(dut.config_i,
        hw::RegAdminConfig{
            .log_depth = static_cast<std::uint8_t>(log_depth), .interrupt_vector = 9, .interrupt_enable = interrupt});
    depth = 1u << log_depth;
  }
  /// The driver writes AdminConfig: other rings, and what was posted is forgotten.
  void restart(unsigned log_depth, bool interrupt) {
    if (bench.dut->exec_valid_o && !executing) begin();
    configure(log_depth, interrupt);
    old_requests = bench.dut->rd_req_valid_o;
    restarted = true;
    posted.clear();
    producer = fetched = executed = answered = 0;
    bench.dut->restart_i = 1;
    bench.tick();
    bench.dut->restart_i = 0;
  }
  /// Puts `count` commands into the ring.
  void post(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      hw::AdminCommand command;
      command.opcode = static_cast<std::uint8_t>(bench.rng());
      command.command_id = static_cast<std::uint16_t>(bench.rng());
      command.number = ++serial;
      posted.push_back(command);
      std::array<std::uint8_t, 128> bytes{};
      command.encode(bytes);
      for (unsigned line = 0; line < 2; ++line) {
        auto& to = memory[commands_at + 128 * (producer % depth) + 64 * line];
        std::copy_n(bytes.begin() + 64 * line, 64, to.begin());
      }
      ++producer;
    }
    bench.dut->producer_index_i = producer;
  }
  [[nodiscard]] unsigned room() const { return depth - static_cast<std::uint16_t>(producer - answered); }
  void finish(std::uint64_t limit = 20'000) {
    bench.run_until([&] { return answered == producer && !writing && !irq_pending; }, limit, "all answers");
    CHECK(interrupts == wanted_interrupts);
  }

  void drive() override {
    auto& dut = *bench.dut;
    dut.rd_req_ready_i = bench.chance(rate);
    if (!offering && !beats.empty() && beats.front().at <= bench.cycle && bench.chance(rate)) {
      put(dut.rd_rsp_data_i, line_of(beats.front()));
      offering = true;
    }
    dut.rd_rsp_valid_i = offering;
    // A verb takes its time; status and result come with the end alone.
    if (executing && verb_left > 0) --verb_left;
    const bool done = executing && verb_left == 0;
    dut.exec_done_i = done;
    dut.exec_status_i = static_cast<std::uint8_t>(done ? status_of(current) : bench.rng());
    std::array<std::uint8_t, 48> result{};
    result[3] = static_cast<std::uint8_t>(done ? current.number : 0);
    port_from_bytes(dut.exec_result_i, result);
    dut.wr_ready_i = !writing && !hold_writes && bench.chance(rate);
    // The TLP may be accepted in the cycle of the beat, or later.
    const bool leaves = dut.wr_valid_o && dut.wr_ready_i;
    dut.wr_done_i = (writing || leaves) && bench.chance(rate);
    if (dut.wr_done_i) writing = false;
    dut.irq_ready_i = bench.chance(rate);
  }
  void sample() override {
    auto& dut = *bench.dut;
    if (dut.rd_req_valid_o && dut.rd_req_ready_i) take_request(get<rnic::rtl::DmaRdReq>(dut.rd_req_data_o));
    if (offering && dut.rd_rsp_ready_o) {
      beats.pop_front();
      offering = false;
    }
    REQUIRE((!executing || dut.exec_valid_o));
    if (dut.exec_valid_o) execute();
    if (dut.wr_valid_o && dut.wr_ready_i) take_answer(get<rnic::rtl::DmaWr>(dut.wr_data_o));
    if (dut.irq_valid_o && dut.irq_ready_i) {
      REQUIRE(!writing);  // behind its completion
      REQUIRE(irq_pending);
      REQUIRE(int(dut.irq_vector_o) == 9);
      irq_pending = false;
      ++interrupts;
    }
    if (!dut.enable_i) {
      // What had been taken when the device was disabled may still run.
      REQUIRE(begun_while_disabled <= 1);
      REQUIRE(asked_while_disabled <= 1);
    } else {
      begun_while_disabled = asked_while_disabled = 0;
    }
  }

  Bench<Vadmin_queue> bench;
  double rate = 0.5;
  unsigned latency = 20, verb_cycles = 10;
  bool hold_writes = false, interrupts_on = true;
  enum class Fault { kError, kShort, kLong } fault = Fault::kError;
  int fail_read = -1;  ///< The read whose answer has the fault, counted from now on
  std::uint64_t commands_at = 0, completions_at = 0;
  unsigned depth = 1, serial = 0, runs = 0, most_ahead = 0;
  std::uint16_t producer = 0, fetched = 0, executed = 0, answered = 0;
  unsigned interrupts = 0, wanted_interrupts = 0;
  bool writing = false, irq_pending = false;

 private:
  struct Beat {
    std::uint64_t at, address;
    bool last, err;
  };
  struct Answer {
    std::uint64_t address;
    hw::AdminCompletion completion;
    bool interrupt, old;
  };

  static std::uint8_t status_of(const hw::AdminCommand& command) { return command.number % 8; }

  rnic::rtl::DmaRdRsp line_of(const Beat& beat) {
    rnic::rtl::DmaRdRsp line;
    line.data = memory[beat.address];
    line.bytes = beat.err ? 0 : 64;
    line.err = beat.err;
    line.last = beat.last;
    return line;
  }
  void take_request(const rnic::rtl::DmaRdReq& request) {
    REQUIRE(request.length == 128);
    if (old_requests != 0) {
      --old_requests;  // offered before the restart
    } else {
      REQUIRE(request.addr == commands_at + 128 * (fetched % depth));
      REQUIRE(fetched != producer);
      ++fetched;
      const auto ahead = static_cast<unsigned>(static_cast<std::uint16_t>(fetched - executed));
      REQUIRE(ahead <= kAhead);
      most_ahead = std::max(most_ahead, ahead);
    }
    if (!bench.dut->enable_i) ++asked_while_disabled;
    const bool failed = fail_read == 0;
    if (fail_read >= 0) --fail_read;
    const auto at = bench.cycle + latency;
    if (failed && fault != Fault::kLong) return beats.push_back({at, request.addr, true, fault == Fault::kError});
    beats.push_back({at, request.addr, false, false});
    beats.push_back({at, request.addr + 64, !failed, false});
  }
  void begin() {
    REQUIRE(!posted.empty());
    current = posted.front();
    posted.pop_front();
    executing = true;
    restarted = false;
    ++runs;
    verb_left = verb_cycles == 0 ? 0 : static_cast<unsigned>(bench.uniform(0, static_cast<int>(verb_cycles)));
    if (!bench.dut->enable_i) ++begun_while_disabled;
  }
  void execute() {
    auto& dut = *bench.dut;
    const auto seen = get<hw::AdminCommand>(dut.command_o);
    if (!executing) begin();
    REQUIRE(seen.number == current.number);
    REQUIRE(seen.command_id == current.command_id);
    REQUIRE(seen.opcode == current.opcode);
    if (!dut.exec_done_i) return;
    executing = false;
    if (restarted || dut.restart_i) return;  // nobody waits for the completion any more
    Answer answer{};
    answer.address = completions_at + 64 * (executed % depth);
    answer.completion.phase = executed / depth % 2 == 0;
    answer.completion.consumer_index = ++executed;
    answer.completion.status = status_of(current);
    answer.completion.opcode = current.opcode;
    answer.completion.command_id = current.command_id;
    answer.completion.result[3] = static_cast<std::uint8_t>(current.number);
    answer.interrupt = interrupts_on;
    answers.push_back(answer);
    REQUIRE(answers.size() <= kAnswers);
  }
  void take_answer(const rnic::rtl::DmaWr& write) {
    REQUIRE(!answers.empty());
    const Answer expected = answers.front();
    answers.pop_front();
    REQUIRE(write.addr == expected.address);
    REQUIRE(write.length == 64);
    REQUIRE(write.last == 1);
    std::array<std::uint8_t, 64> bytes{};
    expected.completion.encode(bytes);
    REQUIRE(std::equal(bytes.begin(), bytes.end(), write.data.begin()));
    if (expected.address >= completions_at && expected.address < completions_at + 64ULL * depth) ++answered;
    REQUIRE(!irq_pending);
    irq_pending = expected.interrupt;
    wanted_interrupts += expected.interrupt;
    writing = !bench.dut->wr_done_i;
  }

  std::map<std::uint64_t, std::array<std::uint8_t, 64>> memory;
  std::deque<hw::AdminCommand> posted;
  std::deque<Beat> beats;
  std::deque<Answer> answers;
  hw::AdminCommand current;
  unsigned verb_left = 0, old_requests = 0, begun_while_disabled = 0, asked_while_disabled = 0;
  bool offering = false, executing = false, restarted = false;
};

}  // namespace

TEST_CASE("admin_queue: each command is executed once, in order, and answered in order", "[rtl]") {
  QueueWorld world(seed());
  unsigned restarts = 0;
  for (int round = 0; round < 3000; ++round) {
    if (world.bench.chance(0.1)) {
      world.rate = world.bench.uniform(1, 10) / 10.0;
      world.latency = static_cast<unsigned>(world.bench.uniform(0, 60));
      world.verb_cycles = static_cast<unsigned>(world.bench.uniform(0, 40));
    }
    world.hold_writes = world.bench.chance(0.1);
    if (world.bench.chance(0.1)) world.bench.dut->enable_i = !world.bench.dut->enable_i;
    if (world.bench.chance(0.01)) {
      world.restart(static_cast<unsigned>(world.bench.uniform(0, 8)), world.bench.chance(0.5));
      ++restarts;
    }
    const unsigned room = world.room();
    if (room > 0 && world.bench.chance(0.5))
      world.post(static_cast<unsigned>(world.bench.uniform(1, static_cast<int>(room))));
    world.bench.run(static_cast<std::uint64_t>(world.bench.uniform(1, 60)));
  }
  world.bench.dut->enable_i = 1;
  world.hold_writes = false;
  world.finish();
  CHECK(restarts > 10);
  CHECK(world.runs > 1000);
  CHECK(world.most_ahead == kAhead);
}

TEST_CASE("admin_queue: the next commands are fetched while one is executed", "[rtl]") {
  QueueWorld world(seed());
  world.rate = 1;
  world.latency = 130;
  world.verb_cycles = 0;
  world.interrupts_on = false;
  world.configure(8, false);
  world.post(100);
  const auto start = world.bench.cycle;
  world.finish();
  // Eight reads are under way at a time, so 100 commands take some 13 times the latency and not 100 times.
  CHECK(world.bench.cycle - start < 13 * (130 + 20));
}

TEST_CASE("admin_queue: commands go on while completions wait to leave, until their places are taken", "[rtl]") {
  QueueWorld world(seed());
  world.hold_writes = true;
  world.post(20);
  world.bench.run(2000);
  CHECK(world.executed >= 5);
  CHECK(world.executed < 20);
  world.hold_writes = false;
  world.finish();
  CHECK(world.executed == 20);
}

TEST_CASE("admin_queue: a command that cannot be read stops the queue behind those before it", "[rtl]") {
  QueueWorld world(seed());
  auto& dut = *world.bench.dut;
  world.fault = GENERATE(QueueWorld::Fault::kError, QueueWorld::Fault::kShort, QueueWorld::Fault::kLong);
  world.fail_read = 5;
  world.post(12);
  world.bench.run_until([&] { return dut.fatal_o != 0; }, 5000, "fatal");
  world.bench.run(500);
  CHECK(world.executed == 5);
  CHECK(world.answered == 5);
  CHECK(dut.fatal_o);
  world.restart(3, true);
  world.post(3);
  world.bench.run(500);
  CHECK(world.answered == 0);
  CHECK(dut.fatal_o);
}

TEST_CASE("admin_queue: a restart drops what was fetched, and begins at index 0", "[rtl]") {
  QueueWorld world(seed());
  world.verb_cycles = 400;
  world.latency = 3;
  for (int i = 0; i < 30; ++i) {
    world.post(std::min(world.room(), 10u));
    const unsigned runs = world.runs;
    world.bench.run_until([&] { return world.runs > runs; }, 5000, "a command under way");
    world.bench.run(static_cast<std::uint64_t>(world.bench.uniform(0, 100)));
    if (i % 3 == 2) world.bench.dut->enable_i = 0;  // as a driver does that stops the device
    world.restart(static_cast<unsigned>(world.bench.uniform(1, 6)), true);
    world.bench.dut->enable_i = 1;
  }
  world.verb_cycles = 3;
  world.post(2);
  world.finish();
}

TEST_CASE("admin_queue: what was fetched waits while the device is disabled", "[rtl]") {
  QueueWorld world(seed());
  auto& dut = *world.bench.dut;
  world.verb_cycles = 200;
  world.latency = 1;
  world.post(8);
  world.bench.run_until([&] { return world.runs == 2; }, 5000, "the second command");
  dut.enable_i = 0;
  world.bench.run(5000);
  CHECK(world.runs <= 3);
  CHECK(world.answered == world.runs);
  dut.enable_i = 1;
  world.finish();
  CHECK(world.runs == 8);
}
