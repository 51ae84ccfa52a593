#include "tests/rtl/admin_commands.hpp"
#include "tests/rtl/admin_world.hpp"

// rtl/host/admin.sv and the modules in it: every command, its status, its result, and the contexts that it leaves.
using namespace rnic::test;
namespace hw = rnic::hw;

namespace {
constexpr auto kSuccess = static_cast<std::uint8_t>(AdminStatus::kSuccess);
constexpr auto kBadState = static_cast<std::uint8_t>(AdminStatus::kBadState);
constexpr auto kErr = static_cast<std::uint8_t>(QpState::kErr);

/// Runs a command on the NIC and on the model; status and result must agree.
std::uint8_t both(AdminWorld& world, const hw::AdminCommand& command) {
  // A query is compared with the model: nothing may move while it runs.
  const bool query = command.opcode == static_cast<std::uint8_t>(AdminOpcode::kQueryQp) ||
                     command.opcode == static_cast<std::uint8_t>(AdminOpcode::kQueryQpCounters) ||
                     command.opcode >> 4 == 3 || command.opcode >> 4 == 2;
  const auto background = world.background;
  if (query) {
    world.background = nullptr;
    world.settle();
  }
  AdminModel expected = world.model;
  const auto status = static_cast<std::uint8_t>(expected.apply(command));
  const auto result = expected.result;
  const auto completion = world.execute(command);
  world.settle();
  world.background = background;
  AdminModel& now = world.model;
  INFO("opcode " << int(command.opcode) << " number " << command.number << " next state " << int(command.body[0]));
  REQUIRE(int(completion.status) == int(status));
  REQUIRE(completion.result == result);
  now.apply(command);
  return completion.status;
}

/// The NIC has the contexts that the model has.
void compare_qp(AdminWorld& world, unsigned qp) {
  const auto background = std::exchange(world.background, nullptr);
  world.settle();
  const auto seen = world.contexts(qp);
  const auto expected = world.model.qps.contains(qp) ? world.model.qps[qp] : AdminModel::Qp{};
  INFO("QP index " << qp << " state " << int(seen.send.state) << " expected " << int(expected.send.state));
  REQUIRE(seen.send == expected.send);
  REQUIRE(seen.recv == expected.recv);
  if (world.model.paths.contains(qp)) REQUIRE(world.paths[qp] == world.model.paths[qp]);
  world.background = background;
}
void compare_queues(AdminWorld& world) {
  for (unsigned n = 0; n < 6; ++n) {
    rnic::rtl::CqCtx cq;
    world.nic(2, n, [&] {
      cq = world.cq;
      return false;
    });
    world.settle();
    REQUIRE(cq == (world.model.cqs.contains(n) ? world.model.cqs[n] : rnic::rtl::CqCtx{}));
  }
  for (unsigned n = 0; n < 3; ++n) {
    rnic::rtl::EqCtx eq;
    world.nic(3, n, [&] {
      eq = world.eq;
      return false;
    });
    world.settle();
    REQUIRE(eq == (world.model.eqs.contains(n) ? world.model.eqs[n] : rnic::rtl::EqCtx{}));
  }
  for (unsigned n = 0; n < 4; ++n) {
    rnic::rtl::SrqCtx srq;
    world.nic(4, n, [&] {
      srq = world.srq;
      return false;
    });
    world.settle();
    REQUIRE(srq == (world.model.srqs.contains(n) ? world.model.srqs[n] : rnic::rtl::SrqCtx{}));
  }
  // By the bits that the table has: the model's fields are wider.
  const auto bits = [](const rnic::rtl::Mpt& entry) {
    std::array<std::uint8_t, rnic::rtl::Mpt::kBytes> raw{};
    entry.encode(raw);
    return raw;
  };
  for (unsigned n = 0; n < 10; ++n)
    REQUIRE(bits(world.mpt[n]) == bits(world.model.regions.contains(n) ? world.model.regions[n] : rnic::rtl::Mpt{}));
}

/// Binds a random window to a random region, in the table and in the model.
void bind_window(AdminWorld& world, unsigned window, unsigned region, unsigned qp) {
  auto& keys = world.model.regions;
  if (!keys.contains(window) || !keys.contains(region) || world.mpt[window] != keys[window] ||
      world.mpt[region] != keys[region])
    return;
  const auto type = static_cast<rnic::hw::MptType>(keys[window].mpt_type);
  if ((type != MptType::kWindow1 && type != MptType::kWindow2) || MemOpModel::is_valid(keys[window]) ||
      MemOpModel::is_window(keys[region]))
    return;
  keys[window].state = static_cast<std::uint8_t>(MptState::kValid);
  keys[window].qp = static_cast<std::uint8_t>(qp);
  keys[window].mr_index = static_cast<std::uint16_t>(region);
  ++keys[region].bound;
  world.mpt[window] = keys[window];
  world.mpt[region] = keys[region];
}

/// Two EQs, four CQs, one QP with this number.
void make_objects(AdminWorld& world, AdminCommands& commands, std::uint32_t qpn, hw::QpType type = hw::QpType::kRc) {
  for (unsigned n = 0; n < 3; ++n) REQUIRE(both(world, commands.create_eq(n)) == kSuccess);
  for (unsigned n = 0; n < 6; ++n) REQUIRE(both(world, commands.create_cq(AdminCommands::usual(n))) == kSuccess);
  auto create = commands.create_qp(qpn);
  auto body = body_of<hw::AdminCreateQp>(create);
  body.qp_type = static_cast<std::uint8_t>(type);
  if (type == hw::QpType::kRawPacket) body.uar = hw::kKernelUar;
  set_body(create, body);
  REQUIRE(both(world, create) == kSuccess);
}
/// Puts a QP in a state that the host does not choose: SQE comes from the NIC, which stops the send side only. `left`
/// WQEs are not retired yet.
void force_state(AdminWorld& world, unsigned qp, unsigned state, unsigned left = 0) {
  const auto background = std::exchange(world.background, nullptr);
  world.settle();
  const auto recv_state = static_cast<std::uint8_t>(
      state == static_cast<unsigned>(QpState::kSqe) ? static_cast<unsigned>(QpState::kRts) : state);
  world.nic(0, qp, [&] {
    world.send.state = static_cast<std::uint8_t>(state);
    world.send.exec_idx = static_cast<std::uint16_t>(world.send.retire_idx + left);
    if (left != 0 || state == static_cast<unsigned>(QpState::kSqe)) world.send.pi = world.send.exec_idx;
    world.model.qps[qp].send = world.send;
    return true;
  });
  world.nic(1, qp, [&] {
    world.recv.state = recv_state, world.model.qps[qp].recv = world.recv;
    return true;
  });
  world.settle();
  world.background = background;
}
using Log = std::vector<std::string>;
}  // namespace

TEST_CASE("admin: random commands agree with the model", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.on_srqs = true;
  std::map<unsigned, unsigned> statuses, successes;  // by status; by opcode
  // Doorbells, error flushes, and the fields that only the NIC moves.
  world.background = [&] {
    const auto qp = static_cast<unsigned>(world.bench.uniform(0, 3));
    if (world.bench.chance(0.7)) world.flush(qp, 3);
    if (world.bench.chance(0.2)) world.doorbell(qp, 2);
  };
  // Entries come and go, and some CQs overrun.
  const auto use_cq = [&](unsigned cqn) {
    if (!world.model.cqs.contains(cqn)) return;
    world.nic(2, cqn, [&world, cqn] {
      auto& cq = world.cq;
      cq.pi = (cq.pi + (world.bench.rng() & 63)) & 0xffffff;
      cq.ci = (cq.pi - (world.bench.rng() & 15)) & 0xffffff;
      cq.overrun = cq.overrun || world.bench.chance(0.02);
      world.model.cqs[cqn] = cq;
      return true;
    });
    world.settle();
  };
  for (int i = 0; i < 16000; ++i) {
    world.rate = world.bench.chance(0.5) ? 0.9 : 0.4;
    commands.shrinks = i / 100 % 3 == 2;
    if (world.bench.chance(0.3)) {
      bind_window(world, static_cast<unsigned>(world.bench.uniform(0, 9)),
                  static_cast<unsigned>(world.bench.uniform(0, 9)), static_cast<unsigned>(world.bench.uniform(0, 3)));
    }
    if (world.bench.chance(0.3)) {
      const auto background = std::exchange(world.background, nullptr);
      use_cq(static_cast<unsigned>(world.bench.uniform(0, 5)));
      world.background = background;
    }
    if (world.bench.chance(0.3)) {  // something happens to a QP
      const auto qp = static_cast<unsigned>(world.bench.uniform(0, 3)),
                 which = static_cast<unsigned>(world.bench.uniform(0, hw::kQpCounters - 1));
      ++world.counters[qp][which];
      ++world.model.counters[qp][which];
    }
    const auto command = commands.next(world.model);
    const auto status = both(world, command);
    ++statuses[status];
    if (status == kSuccess) ++successes[command.opcode];
    if (i % 4 == 0)
      compare_qp(world,
                 world.bench.chance(0.8) ? command.number & 0xff : static_cast<unsigned>(world.bench.uniform(0, 255)));
    if (i % 50 == 0) compare_queues(world);
  }
  for (unsigned s = 0; s <= 9; ++s) {
    INFO("status " << s);
    CHECK(statuses[s] > 0);
  }
  CHECK(successes.size() == 27);
  for (const auto& [opcode, count] : successes) {
    INFO("opcode " << opcode);
    CHECK(count > 0);
  }
}

TEST_CASE("admin: the NIC's own errors race with transitions", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  make_objects(world, commands, 0x12302);
  bool inject = false;
  world.background = [&] {
    if (inject && world.bench.chance(0.5)) world.inject_error(2);
    if (world.bench.chance(0.5)) world.flush(2, 3);
    if (world.bench.chance(0.1)) world.doorbell(2, 1);
  };
  unsigned raced = 0, refused = 0;
  for (int i = 0; i < 3000; ++i) {
    // Through the states one by one; from the error state back to RESET.
    const unsigned state = world.model.qps[2].send.state;
    const auto command = commands.modify_qp_to(0x12302,
                                               state == kErr || world.bench.chance(0.1) ? 0u
                                               : state == 4                             ? 3
                                                                                        : state + 1,
                                               state);
    const auto next = static_cast<QpState>(command.body[0]);
    const bool simple = next != QpState::kReset && next != QpState::kErr;
    AdminModel before = world.model;
    world.errors.clear();
    inject = world.bench.chance(0.4);
    const auto expected = static_cast<std::uint8_t>(AdminModel(before).apply(command));
    const auto completion = world.execute(command);
    const auto background = std::exchange(world.background, nullptr);
    world.settle();
    if (simple && world.errors.contains(2)) {
      ++raced;
      if (completion.status != expected) {
        REQUIRE(completion.status == kBadState);
        ++refused;
      }
      const auto seen = world.contexts(2);
      REQUIRE(seen.send.state == kErr);
      REQUIRE(seen.recv.state == kErr);
      world.model.qps[2] = seen;
      world.model.paths = world.paths;
    } else {
      REQUIRE(completion.status == expected);
      if (expected == kSuccess) {
        world.model.apply(command);
        compare_qp(world, 2);
      }
    }
    world.background = background;
  }
  CHECK(raced > 200);
  CHECK(refused > 20);
}

TEST_CASE("admin: a queue pair's life, and what the other blocks are asked for", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  const std::uint32_t qpn = 0xabcd07;
  make_objects(world, commands, qpn);
  CHECK(world.log == Log{"reset"});
  world.background = [&] { world.flush(7, 2); };
  auto step = [&](QpState state) {
    REQUIRE(both(world, commands.modify_qp_to(qpn, static_cast<unsigned>(state), world.model.qps[7].send.state)) ==
            kSuccess);
    compare_qp(world, 7);
    return world.log;
  };
  CHECK(step(QpState::kInit) == Log{"path", "wake"});
  // A P_Key is optional from now on.
  const auto again = step(QpState::kInit);
  CHECK((again == Log{"wake"} || again == Log{"path", "wake"}));
  world.doorbell(7, 9);  // receives may be posted now
  CHECK(step(QpState::kRtr) == Log{"path", "wake"});
  CHECK(world.model.qps[7].recv.rq_pi == 9);
  for (const auto state : {QpState::kRts, QpState::kRts, QpState::kSqd, QpState::kRts})
    CHECK(step(state) == Log{"wake"});
  world.doorbell(7, 5);
  world.settle();
  CHECK(step(QpState::kErr) == Log{"error", "unbind"});
  CHECK(step(QpState::kErr) == Log{"unbind"});
  CHECK(step(QpState::kReset) == Log{"drain", "reset", "unbind"});
  for (const auto state : {QpState::kInit, QpState::kRtr, QpState::kRts}) step(state);
  world.doorbell(7, 20);
  world.settle();
  CHECK(step(QpState::kReset) == Log{"error", "drain", "reset", "unbind"});
  CHECK(step(QpState::kReset) == Log{"error", "drain", "reset", "unbind"});
  step(QpState::kInit);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, qpn ^ 0x100)) ==
        static_cast<std::uint8_t>(AdminStatus::kBadNumber));
  CHECK(world.log == Log{});
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, qpn)) == kSuccess);
  CHECK(world.log == Log{"error", "drain", "reset", "unbind"});
  compare_qp(world, 7);
  // All CQs are free again, then all EQs.
  for (unsigned n = 0; n < 6; ++n)
    CHECK(both(world, commands.command(AdminOpcode::kDestroyCq, AdminCommands::usual(n))) == kSuccess);
  for (unsigned n = 0; n < 3; ++n) CHECK(both(world, commands.command(AdminOpcode::kDestroyEq, n)) == kSuccess);
}

TEST_CASE("admin: a QP stays while it is attached to a multicast group, and nobody is MulticastQpn or 0", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  const std::uint32_t qpn = 0xabcd07;
  make_objects(world, commands, qpn, hw::QpType::kUd);
  for (const std::uint32_t number : {hw::kMulticastQpn, 0u}) {
    auto reserved = commands.create_qp(number);
    CHECK(both(world, reserved) == static_cast<std::uint8_t>(AdminStatus::kBadParameter));
  }
  world.background = [&] { world.flush(7, 2); };
  const auto one = commands.group();
  CHECK(both(world, commands.multicast(AdminOpcode::kAttachMulticast, qpn, one)) == kSuccess);
  CHECK(both(world, commands.multicast(AdminOpcode::kAttachMulticast, qpn, one)) ==
        static_cast<std::uint8_t>(AdminStatus::kExists));
  CHECK(both(world, commands.multicast(AdminOpcode::kAttachMulticast, qpn ^ 0x100, one)) ==
        static_cast<std::uint8_t>(AdminStatus::kBadNumber));
  // Another tag is no such QP; this one is in use, and nothing happens to it.
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, qpn ^ 0x100)) ==
        static_cast<std::uint8_t>(AdminStatus::kBadNumber));
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, qpn)) == static_cast<std::uint8_t>(AdminStatus::kInUse));
  CHECK(world.log == Log{});
  compare_qp(world, 7);
  CHECK(both(world, commands.multicast(AdminOpcode::kDetachMulticast, qpn, one)) == kSuccess);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, qpn)) == kSuccess);
  CHECK(world.log == Log{"error", "drain", "reset", "unbind"});
}

TEST_CASE("admin: an SRQ stays while a QP uses it, its EQ while it is there (InfiniBand 10.2.9.3)", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  make_objects(world, commands, 0x4201);
  auto create = commands.create_srq(200);
  hw::AdminCreateSrq srq{.base = 0x5000, .pd = 3, .log_depth = 15, .log_stride = 9, .eqn = 2, .uar = 5};
  set_body(create, srq);
  REQUIRE(both(world, create) == kSuccess);
  CHECK(both(world, create) == static_cast<std::uint8_t>(AdminStatus::kExists));
  auto create_qp = [&](std::uint32_t qpn, std::uint32_t srqn, hw::QpType type = hw::QpType::kRc) {
    auto command = commands.create_qp(qpn);
    auto body = body_of<hw::AdminCreateQp>(command);
    body.qp_type = static_cast<std::uint8_t>(type);
    body.use_srq = 1;
    body.srqn = srqn;
    body.rq_base = 0x123;  // rq_* are not looked at
    body.rq_log_depth = 0xff;
    set_body(command, body);
    return both(world, command);
  };
  const auto in_use = static_cast<std::uint8_t>(AdminStatus::kInUse),
             bad_number = static_cast<std::uint8_t>(AdminStatus::kBadNumber);
  world.background = [&] { world.flush(7, 2), world.flush(8, 2); };
  // UC gives receive WQEs back, which an SRQ does not take.
  CHECK(create_qp(0x1107, 200, hw::QpType::kUc) == static_cast<std::uint8_t>(AdminStatus::kBadParameter));
  // Ethernet frames are the kernel's, and have a receive queue of their own.
  CHECK(create_qp(0x1107, 200, hw::QpType::kRawPacket) == static_cast<std::uint8_t>(AdminStatus::kBadParameter));
  CHECK(create_qp(0x1108, 200, hw::QpType::kUd) == kSuccess);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, 0x1108)) == kSuccess);
  CHECK(create_qp(0x1107, 201) == bad_number);
  CHECK(create_qp(0x1107, 200 | 0x100) == bad_number);
  CHECK(create_qp(0x1107, 200) == kSuccess);
  CHECK(create_qp(0x2208, 200) == kSuccess);
  for (const std::uint32_t qpn : {0x1107u, 0x2208u}) {
    CHECK(both(world, commands.command(AdminOpcode::kDestroySrq, 200)) == in_use);
    const auto init = static_cast<unsigned>(QpState::kInit), reset = static_cast<unsigned>(QpState::kReset);
    REQUIRE(both(world, commands.modify_qp_to(qpn, init, reset)) == kSuccess);
    REQUIRE(both(world, commands.modify_qp_to(qpn, reset, init)) == kSuccess);
    compare_qp(world, qpn & 0xff);  // RESET keeps the SRQ
    CHECK(both(world, commands.command(AdminOpcode::kDestroySrq, 200)) == in_use);
    CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, qpn)) == kSuccess);
  }
  for (unsigned n = 0; n < 6; ++n) {
    if (world.model.cqs[n].eqn == 2 && n != world.model.qps[1].send.cqn && n != world.model.qps[1].recv.cqn) {
      REQUIRE(both(world, commands.command(AdminOpcode::kDestroyCq, AdminCommands::usual(n))) == kSuccess);
    }
  }
  CHECK(both(world, commands.command(AdminOpcode::kDestroyEq, 2)) == in_use);
  CHECK(both(world, commands.command(AdminOpcode::kDestroySrq, 200)) == kSuccess);
  CHECK(both(world, commands.command(AdminOpcode::kQuerySrq, 200)) == bad_number);
  compare_queues(world);
}

TEST_CASE("admin: each pair of states takes its attributes and no others (InfiniBand specification 10.3.1, 11.2.5.2)",
          "[rtl]") {
  const auto type = GENERATE(hw::QpType::kRc, hw::QpType::kUc, hw::QpType::kRawPacket, hw::QpType::kUd);
  AdminWorld world(seed());
  world.rate = 1;
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  const std::uint32_t qpn = 0x77703;
  make_objects(world, commands, qpn, type);
  world.background = [&] { world.flush(3, 4); };
  auto force = [&](unsigned state) { force_state(world, 3, state); };
  std::map<unsigned, unsigned> statuses;
  auto attempt = [&](unsigned from, unsigned to, std::uint32_t mask) {
    force(from);
    auto command = commands.modify_qp_to(qpn, to, from, static_cast<unsigned>(type));
    auto body = body_of<hw::AdminModifyQp>(command);
    body.attr_mask = mask;
    set_body(command, body);
    INFO("from " << from << " to " << to << " attributes " << mask);
    const auto status = both(world, command);
    ++statuses[status];
    compare_qp(world, 3);
    return status;
  };
  for (unsigned from = 0; from <= 6; ++from) {
    for (unsigned to = 0; to <= 7; ++to) {
      const auto* row = transition_row(from, to, type);
      const std::uint32_t required = row ? row->required : 0, optional = row ? row->optional : 0;
      CHECK((attempt(from, to, required) == kSuccess) == (row != nullptr));
      CHECK((attempt(from, to, required | optional | 1) == kSuccess) == (row != nullptr));
      // One attribute too many, one too few.
      for (unsigned bit = 1; bit <= 20; ++bit) {
        const bool success = attempt(from, to, required ^ 1u << bit) == kSuccess;
        CHECK(success == (row != nullptr && (optional >> bit & 1) != 0));
      }
    }
  }
  CHECK(statuses[kSuccess] > 40);
  CHECK(statuses[kBadState] > 500);
  // What a transition needs and has not got; RawPacket needs one thing once.
  CHECK(statuses[static_cast<std::uint8_t>(AdminStatus::kBadParameter)] >= (type == hw::QpType::kRawPacket ? 1 : 6));
}

TEST_CASE(
    "admin: attributes at the ends of their ranges; one that is not given is not looked at (InfiniBand specification "
    "11.2.5.2)",
    "[rtl]") {
  AdminWorld world(seed());
  world.rate = 1;
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  const std::uint32_t qpn = 0x77703;
  make_objects(world, commands, qpn);
  world.background = [&] { world.flush(3, 4); };
  constexpr auto kBadParameter = static_cast<std::uint8_t>(AdminStatus::kBadParameter);
  const auto bits = [](hw::QpAttr attr) { return static_cast<std::uint32_t>(attr); };
  auto attempt = [&](QpState from, QpState to, std::uint32_t more,
                     const std::function<void(hw::AdminModifyQp&)>& change) {
    force_state(world, 3, static_cast<unsigned>(from));
    auto command = commands.modify_qp_to(qpn, static_cast<unsigned>(to), static_cast<unsigned>(from));
    auto body = body_of<hw::AdminModifyQp>(command);
    body.attr_mask =
        transition_row(static_cast<unsigned>(from), static_cast<unsigned>(to), hw::QpType::kRc)->required | more | 1;
    change(body);
    set_body(command, body);
    const auto status = both(world, command);
    compare_qp(world, 3);
    return status;
  };
  struct Range {
    const char* what;
    QpState from;
    std::uint32_t attr;
    unsigned low, high;
    std::vector<unsigned> beyond;
    std::function<void(hw::AdminModifyQp&, unsigned)> set;
  };
  const std::vector<Range> ranges = {
      {"path_mtu",
       QpState::kInit,
       bits(hw::QpAttr::kPathMtu),
       1,
       5,
       {0, 6, 0x81, 0xff},
       [](auto& b, unsigned v) { b.path_mtu = static_cast<std::uint8_t>(v); }},
      {"max_dest_rd_atomic",
       QpState::kInit,
       bits(hw::QpAttr::kMaxDestRdAtomic),
       0,
       16,
       {17, 32, 0x81, 0xff},
       [](auto& b, unsigned v) { b.max_dest_rd_atomic = static_cast<std::uint8_t>(v); }},
      {"min_rnr_timer",
       QpState::kInit,
       bits(hw::QpAttr::kMinRnrTimer),
       0,
       31,
       {32, 64, 0x80, 0xff},
       [](auto& b, unsigned v) { b.min_rnr_timer = static_cast<std::uint8_t>(v); }},
      {"max_rd_atomic",
       QpState::kRtr,
       bits(hw::QpAttr::kMaxRdAtomic),
       0,
       16,
       {17, 32, 0x81, 0xff},
       [](auto& b, unsigned v) { b.max_rd_atomic = static_cast<std::uint8_t>(v); }},
      {"ack_timeout",
       QpState::kRtr,
       bits(hw::QpAttr::kTimeout),
       0,
       31,
       {32, 64, 0x80, 0xff},
       [](auto& b, unsigned v) { b.ack_timeout = static_cast<std::uint8_t>(v); }},
      {"retry_count",
       QpState::kRtr,
       bits(hw::QpAttr::kRetryCnt),
       0,
       7,
       {8, 15},
       [](auto& b, unsigned v) { b.retry_count = static_cast<std::uint8_t>(v); }},
      {"rnr_retry",
       QpState::kRtr,
       bits(hw::QpAttr::kRnrRetry),
       0,
       7,
       {8, 15},
       [](auto& b, unsigned v) { b.rnr_retry = static_cast<std::uint8_t>(v); }},
  };
  for (const auto& range : ranges) {
    INFO(range.what);
    const auto to = range.from == QpState::kInit ? QpState::kRtr : QpState::kRts;
    for (const unsigned value : {range.low, range.high})
      CHECK(attempt(range.from, to, 0, [&](auto& b) { range.set(b, value); }) == kSuccess);
    for (const unsigned value : range.beyond) {
      INFO(value);
      CHECK(attempt(range.from, to, 0, [&](auto& b) { range.set(b, value); }) == kBadParameter);
      CHECK(attempt(QpState::kRts, QpState::kRts, 0, [&](auto& b) { range.set(b, value); }) == kSuccess);
    }
  }
  // The addresses of IPv4 are mapped ones (RFC 4291 2.5.5.2), those of IPv6 any.
  for (std::size_t i = 0; i < 12; ++i) {
    for (const bool source : {false, true}) {
      const auto spoil = [&](auto& b) { (source ? b.source_ip : b.dest_ip)[i] ^= 4; };
      const auto ipv4 = [](auto& b) {
        b.ipv6 = 0;
        for (auto* ip : {&b.source_ip, &b.dest_ip}) *ip = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 1};
      };
      CHECK(attempt(QpState::kInit, QpState::kRtr, 0, [&](auto& b) { ipv4(b), spoil(b); }) == kBadParameter);
      CHECK(attempt(QpState::kInit, QpState::kRtr, 0, [&](auto& b) { ipv4(b), spoil(b), b.ipv6 = 1; }) == kSuccess);
    }
  }
  // 802.1Q 9.6: VID 0xFFF is reserved. Without a tag the VID means nothing.
  for (const unsigned vid : {0u, 1u, 0xffeu, 0xfffu}) {
    for (const bool tag : {true, false}) {
      const auto with = [&](auto& b) { b.vlan = tag, b.vlan_id = static_cast<std::uint16_t>(vid), b.pcp = 7; };
      CHECK(attempt(QpState::kInit, QpState::kRtr, 0, with) == (tag && vid == 0xfff ? kBadParameter : kSuccess));
      CHECK(attempt(QpState::kRts, QpState::kRts, 0, with) == kSuccess);
    }
  }
  // The current state, if it is named, is that in which the QP is.
  for (unsigned state = 0; state < 9; ++state) {
    const bool right = state == static_cast<unsigned>(QpState::kRts);
    CHECK(attempt(QpState::kRts, QpState::kRts, bits(hw::QpAttr::kCurState),
                  [&](auto& b) { b.cur_state = static_cast<std::uint8_t>(state); }) == (right ? kSuccess : kBadState));
    CHECK(attempt(QpState::kRts, QpState::kRts, 0, [&](auto& b) { b.cur_state = static_cast<std::uint8_t>(state); }) ==
          kSuccess);
  }
}

TEST_CASE("admin: SQE is left for RTS when its send queue has been flushed, for ERR and RESET at once (10.3.1)",
          "[rtl]") {
  AdminWorld world(seed());
  world.rate = 1;
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  const std::uint32_t qpn = 0x77703;
  make_objects(world, commands, qpn, hw::QpType::kUc);
  const auto sqe = static_cast<unsigned>(QpState::kSqe);
  for (const unsigned left : {3u, 1u, 0u}) {
    force_state(world, 3, sqe, left);
    CHECK(both(world, commands.modify_qp_to(qpn, static_cast<unsigned>(QpState::kRts), sqe,
                                            static_cast<unsigned>(hw::QpType::kUc))) == (left ? kBadState : kSuccess));
    compare_qp(world, 3);
  }
  const auto resume = [&] {
    return commands.modify_qp_to(qpn, static_cast<unsigned>(QpState::kRts), sqe,
                                 static_cast<unsigned>(hw::QpType::kUc));
  };
  /// What the NIC does with the send context while the QP is in SQE.
  const auto in_sqe = [&](const std::function<void(rnic::rtl::SendCtx&)>& change) {
    world.nic(0, 3, [&world, change] {
      change(world.send);
      world.model.qps[3].send = world.send;
      return true;
    });
  };
  // WQEs that were posted in SQE are flushed too, those that the send queue has not looked at as well.
  for (const unsigned left : {40u, 1u, 0u}) {
    force_state(world, 3, sqe);
    in_sqe([&](auto& s) { s.pi = static_cast<std::uint16_t>(s.retire_idx + left); });
    world.settle();
    CHECK(both(world, resume()) == (left ? kBadState : kSuccess));
    compare_qp(world, 3);
  }
  // Their completions come first: while the flush has something of the QP, it stays in SQE.
  force_state(world, 3, sqe);
  world.bench.dut->flushing_i = 1;
  CHECK(world.execute(resume()).status == kBadState);
  compare_qp(world, 3);
  world.bench.dut->flushing_i = 0;
  // Nothing is left of the message that failed.
  force_state(world, 3, sqe);
  in_sqe([](auto& s) {
    s.msg_active = s.resume = 1, s.msg_off = 4096, s.sge_idx = 3, s.sge_off = 77, s.buf_count = 5, s.ahead = 3,
    s.exec_idx = static_cast<std::uint16_t>(s.exec_idx - 1);
    s.fault = 1;
    s.max_psn = s.next_psn = (s.una_psn + 9) & 0xffffff;
  });
  CHECK(both(world, resume()) == kSuccess);
  compare_qp(world, 3);
  const auto& left = world.model.qps[3].send;
  CHECK((left.msg_active == 0 && left.msg_off == 0 && left.resume == 0 && left.sge_idx == 0 && left.sge_off == 0 &&
         left.buf_count == 0 && left.ahead == 0 && left.exec_idx == left.pi));
  CHECK(left.fault == 0);
  CHECK((left.una_psn == left.next_psn && left.max_psn == left.next_psn));
  // A doorbell between the judgement and the writing: whatever comes first, no WQE of SQE is left in RTS.
  unsigned refused = 0, taken = 0;
  for (int round = 0; round < 240; ++round) {
    world.background = nullptr;
    force_state(world, 3, sqe);
    std::uint8_t found = sqe;
    const int at = static_cast<int>(world.bench.uniform(0, 120));
    int calls = 0;
    world.background = [&] {
      if (++calls == at) {
        world.nic(0, 3, [&] {
          found = world.send.state;
          if (found == sqe) world.send.pi = static_cast<std::uint16_t>(world.send.pi + 1);
          return found == sqe;
        });
      }
    };
    const auto status = world.execute(resume()).status;
    world.background = nullptr;
    world.settle();
    const auto now = world.contexts(3).send;
    REQUIRE((status == kSuccess || status == kBadState));
    REQUIRE((status == kSuccess) == (now.state == static_cast<std::uint8_t>(QpState::kRts)));
    if (status == kSuccess) REQUIRE(now.pi == now.retire_idx);
    ++(status == kSuccess ? taken : refused);
  }
  CHECK(taken > 5);
  CHECK(refused > 5);
  world.background = [&] { world.flush(3, 4); };
  for (const auto to : {QpState::kErr, QpState::kReset}) {
    force_state(world, 3, sqe, 2);
    CHECK(both(world, commands.modify_qp_to(qpn, static_cast<unsigned>(to), sqe,
                                            static_cast<unsigned>(hw::QpType::kUc))) == kSuccess);
  }
}

TEST_CASE("admin: a QP is taken out of service when its memory operation is over, not before", "[rtl]") {
  for (const auto to : {QpState::kErr, QpState::kReset}) {
    CAPTURE(static_cast<unsigned>(to));
    AdminWorld world(seed());
    world.rate = 1;
    AdminCommands commands(world.bench.rng);
    commands.spoils = false;
    const std::uint32_t qpn = 0x77703;
    make_objects(world, commands, qpn, hw::QpType::kRc);
    const auto rts = static_cast<unsigned>(QpState::kRts);
    force_state(world, 3, rts);
    const auto operation = [&](std::uint8_t under_way) {
      world.nic(0, 3, [&world, under_way] {
        world.send.mem_busy = under_way;
        return true;
      });
    };
    operation(1);
    world.settle();
    bool over = false;
    int calls = 0;
    world.background = [&] {
      if (++calls == 300) {
        over = true;
        operation(0);
      } else {
        world.flush(3, 4);
      }
    };
    CHECK(world.execute(commands.modify_qp_to(qpn, static_cast<unsigned>(to), rts)).status == kSuccess);
    CHECK(over);
    world.background = nullptr;
    world.settle();
  }
}

TEST_CASE("admin: a process that rings for ever does not hold up the destruction of its QP", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  make_objects(world, commands, 0x000103);
  for (const auto state : {QpState::kInit, QpState::kRtr, QpState::kRts}) {
    REQUIRE(both(world, commands.modify_qp_to(0x103, static_cast<unsigned>(state), world.model.qps[3].send.state)) ==
            kSuccess);
  }
  // More is posted than the flush takes away.
  world.background = [&] {
    world.doorbell(3, 4);
    world.flush(3, 3);
  };
  world.bench.run(300);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyQp, 0x103)) == kSuccess);
  compare_qp(world, 3);
}

TEST_CASE("admin: a region is destroyed by a memory operation; bound windows keep it", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  auto create = commands.create_mr(5 << 8 | 0x33);
  hw::AdminCreateMr body;
  body.va = 0x7000;
  body.length = 4096;
  body.log_page = 12;
  set_body(create, body);
  REQUIRE(both(world, create) == kSuccess);
  CHECK(world.log == Log{"mpt"});
  world.mpt[5].bound = world.model.regions[5].bound = 2;
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMr, 5 << 8 | 0x33)) ==
        static_cast<std::uint8_t>(AdminStatus::kInUse));
  world.mpt[5].bound = world.model.regions[5].bound = 0;
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMr, 5 << 8 | 0x34)) ==
        static_cast<std::uint8_t>(AdminStatus::kBadNumber));
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMr, 5 << 8 | 0x33)) == kSuccess);
  CHECK(world.log == Log{"destroy"});
  CHECK(world.mpt[5] == rnic::rtl::Mpt{});
}

TEST_CASE(
    "admin: windows and fast-register regions go by their index; a window's end, and its QP's, free the region "
    "(decisions 23)",
    "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  make_objects(world, commands, 0x4202);
  auto region = commands.create_mr(1 << 8 | 0x33);
  hw::AdminCreateMr body;
  body.va = 0x7000;
  body.length = 4096;
  body.log_page = 12;
  body.window_bind = 1;
  set_body(region, body);
  REQUIRE(both(world, region) == kSuccess);
  auto window = commands.create_mw(2 << 8 | 0x44);
  set_body(window, hw::AdminCreateMw{.pd = 9, .window_type = 2});
  REQUIRE(both(world, window) == kSuccess);
  auto fast = commands.create_fast_mr(3 << 8 | 0x55);
  set_body(fast, hw::AdminCreateFastMr{.pd = 9, .remote_access = 1, .max_pages = hw::kMaxFastPages});
  REQUIRE(both(world, fast) == kSuccess);
  CHECK(both(world, commands.create_fast_mr(2 << 8 | 0x66)) == static_cast<std::uint8_t>(AdminStatus::kExists));
  const auto bad_number = static_cast<std::uint8_t>(AdminStatus::kBadNumber),
             in_use = static_cast<std::uint8_t>(AdminStatus::kInUse);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMr, 2 << 8 | 0x44)) == bad_number);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyFastMr, 2 << 8 | 0x44)) == bad_number);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMw, 1 << 8 | 0x33)) == bad_number);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMw, 3 << 8 | 0x55)) == bad_number);
  for (const auto opcode : {AdminOpcode::kDestroyQp, AdminOpcode::kModifyQp, AdminOpcode::kDestroyMw}) {
    bind_window(world, 2, 1, 2);
    CHECK(both(world, commands.command(AdminOpcode::kQueryMr, 2 << 8)) == kSuccess);
    CHECK(both(world, commands.command(AdminOpcode::kQueryMr, 1 << 8 | 0x33)) == kSuccess);
    CHECK(both(world, commands.command(AdminOpcode::kDestroyMr, 1 << 8 | 0x33)) == in_use);
    if (opcode == AdminOpcode::kModifyQp)
      REQUIRE(both(world, commands.modify_qp_to(0x4202, static_cast<unsigned>(QpState::kErr), 0)) == kSuccess);
    if (opcode == AdminOpcode::kDestroyQp) REQUIRE(both(world, commands.command(opcode, 0x4202)) == kSuccess);
    if (opcode == AdminOpcode::kDestroyQp) REQUIRE(both(world, commands.create_qp(0x4202)) == kSuccess);
    if (opcode == AdminOpcode::kDestroyMw) REQUIRE(both(world, commands.command(opcode, 2 << 8 | 0x99)) == kSuccess);
    CHECK(world.mpt[1].bound == 0);
  }
  CHECK(both(world, commands.command(AdminOpcode::kDestroyMr, 1 << 8 | 0x33)) == kSuccess);
  CHECK(both(world, commands.command(AdminOpcode::kDestroyFastMr, 3 << 8 | 0x99)) == kSuccess);
  compare_queues(world);
}

TEST_CASE("admin: queries show what the NIC has moved", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  commands.spoils = false;
  make_objects(world, commands, 9);
  REQUIRE(both(world, commands.create_srq(AdminCommands::usual(2))) == kSuccess);
  auto& rng = world.bench.rng;
  for (int round = 0; round < 20; ++round) {
    auto random = [&](auto& raw) {
      for (auto& b : raw) b = static_cast<std::uint8_t>(rng());
    };
    world.nic(0, 9, [&] {
      std::array<std::uint8_t, rnic::rtl::SendCtx::kBytes> raw{};
      random(raw);
      world.send = rnic::rtl::SendCtx::decode(raw);
      world.send.in_use = 1, world.send.qpn = 9, world.send.state = static_cast<std::uint8_t>(QpState::kRts);
      world.model.qps[9].send = world.send;
      return true;
    });
    world.nic(1, 9, [&] {
      std::array<std::uint8_t, rnic::rtl::RecvCtx::kBytes> raw{};
      random(raw);
      world.recv = rnic::rtl::RecvCtx::decode(raw);
      // On its way to the error state it shows that in one context first.
      const auto state = round % 3 == 0 ? QpState::kErr : QpState::kRts;
      world.recv.in_use = 1, world.recv.qpn = 9, world.recv.state = static_cast<std::uint8_t>(state);
      world.model.qps[9].recv = world.recv;
      return true;
    });
    world.nic(2, 4, [&] {
      world.cq.pi = rng() & 0xffffff, world.cq.ci = rng() & 0xffffff, world.cq.arm = rng() & 3,
      world.cq.overrun = rng() & 1;
      world.model.cqs[4] = world.cq;
      return true;
    });
    world.nic(3, 1, [&] {
      world.eq.pi = rng() & 0xffffff, world.eq.ci = rng() & 0xffffff;
      world.model.eqs[1] = world.eq;
      return true;
    });
    world.nic(4, 2, [&] {
      world.srq.head = static_cast<std::uint16_t>(rng()),
      world.srq.pi = static_cast<std::uint16_t>(world.srq.head + world.bench.uniform(0, 1u << world.srq.log_depth));
      world.srq.limit = static_cast<std::uint16_t>(rng()), world.srq.error = rng() & 1, world.srq.limit_hit = rng() & 1;
      world.model.srqs[2] = world.srq;
      return true;
    });
    world.settle();
    REQUIRE(both(world, commands.command(AdminOpcode::kQuerySrq, AdminCommands::usual(2))) == kSuccess);
    // A ring that holds what is posted, and one that may not.
    for (int i = 0; i < 4; ++i) both(world, commands.modify_srq(AdminCommands::usual(2)));
    compare_queues(world);
    REQUIRE(both(world, commands.command(AdminOpcode::kQueryQp, 9)) == kSuccess);
    REQUIRE(both(world, commands.command(AdminOpcode::kQueryCq, AdminCommands::usual(4))) == kSuccess);
    REQUIRE(both(world, commands.command(AdminOpcode::kQueryEq, 1)) == kSuccess);
  }
}

TEST_CASE("admin: rings wrap, the phase turns, interrupts follow completions, a restart begins again", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  auto fill = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) world.post(commands.command(AdminOpcode::kQueryCapabilities, 0));
    world.ring();
    for (unsigned i = 0; i < count; ++i) CHECK(world.reap().status == kSuccess);
  };
  for (int i = 0; i < 20; ++i) fill(static_cast<unsigned>(world.bench.uniform(1, world.depth)));
  world.bench.run(30);
  CHECK(world.interrupts.size() == world.consumer);
  CHECK(std::all_of(world.interrupts.begin(), world.interrupts.end(), [](unsigned v) { return v == 5; }));

  for (unsigned log_depth : {0u, 3u, 8u, 15u}) {
    world.memory.clear();
    world.interrupts.clear();
    world.configure(log_depth, false, 7);
    world.producer = world.consumer = world.fetched = world.answered = 0;
    world.ring();
    world.bench.dut->restart_i = 1;
    world.bench.tick();
    world.bench.dut->restart_i = 0;
    for (int i = 0; i < 9; ++i) fill(static_cast<unsigned>(world.bench.uniform(1, world.depth)));
    CHECK(world.interrupts.empty());
  }
  // An index beyond the ring cannot be right.
  const unsigned fetches = world.fetches;
  world.bench.dut->producer_index_i = static_cast<std::uint16_t>(world.producer + world.depth + 1);
  world.bench.run(200);
  CHECK(world.fetches == fetches);
}

TEST_CASE("admin: nothing is fetched until the device is enabled; a failed fetch is fatal", "[rtl]") {
  AdminWorld world(seed());
  AdminCommands commands(world.bench.rng);
  auto& dut = *world.bench.dut;
  dut.enable_i = 0;
  world.post(commands.command(AdminOpcode::kQueryCapabilities, 0));
  world.ring();
  world.bench.run(100);
  CHECK(world.fetches == 0);
  dut.enable_i = 1;
  world.reap();
  CHECK(!dut.fatal_o);
  world.fail_next_read = true;
  world.post(commands.command(AdminOpcode::kQueryCapabilities, 0));
  world.ring();
  world.bench.run_until([&] { return dut.fatal_o != 0; }, 200, "fatal");
  world.fail_next_read = false;
  world.post(commands.command(AdminOpcode::kQueryCapabilities, 0));
  world.ring();
  world.bench.run(200);
  CHECK(world.fetches == 2);
  CHECK(dut.fatal_o);
}
