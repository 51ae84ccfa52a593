#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "driver/kmd/connection_service.hpp"
#include "driver/kmd/kernel_device.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/kernel_fast_mr.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "driver/umd/protection_domain.hpp"
#include "driver/umd/queue_pair.hpp"
#include "driver/umd/shared_receive_queue.hpp"
#include "tests/driver/call_fuzzer.hpp"
#include "tests/driver/fake_device.hpp"

using namespace rnic;
using test::CallFuzzer;
using test::FakeDevice;

// Whatever a client asks for, nothing of others is touched (docs/kernel_calls.md). What counts is what the device is
// told and what memory can be mapped; the kernel driver's own books are not asked.
// RNIC_CALLS: how many calls; RNIC_SEED: which ones.

namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

/// Something wrong with the kernel driver, put there on purpose: it must be found.
enum class Planted {
  kNone,
  kTrusted,   ///< The attacker is taken for one of the kernel's own
  kMixedUp,   ///< A call in 1000 is taken for one of the victim
  kLeftover,  ///< What the attacker had stays when it goes
  kOpenTable  ///< The GID table has an address that is not the port's
};

constexpr std::uint16_t kVictimPort = 77;
constexpr kmd::Gid kOwnAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1};
constexpr kmd::Gid kStrangeAddress{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 9};
constexpr std::uint16_t kSecondPkey = 0x8001;

/// What the device has, object by object, as far as a client could change it.
struct Objects {
  std::map<std::uint32_t, std::array<std::uint64_t, 7>> cqs;
  std::map<std::uint32_t, FakeDevice::Pair> pairs;
  std::map<std::array<std::uint8_t, 16>, std::set<std::uint32_t>> groups;
  std::map<std::uint32_t, FakeDevice::SharedQueue> srqs;
  std::map<std::uint32_t, hw::AdminCreateMr> regions;
  std::map<std::uint32_t, hw::AdminCreateMw> windows;
  std::map<std::uint32_t, hw::AdminCreateFastMr> fast_regions;
  std::size_t mapped_pages{};

  explicit Objects(const FakeDevice& device)
      : pairs(device.pairs),
        groups(device.multicast_groups),
        srqs(device.shared_queues),
        regions(device.regions),
        windows(device.windows),
        fast_regions(device.fast_regions),
        mapped_pages(device.mapped_pages) {
    for (const auto& [cqn, q] : device.completion_queues) {
      cqs[cqn] = {q.base,
                  q.log_depth,
                  q.origin,
                  q.moderation.count,
                  q.moderation.period,
                  q.consumed,
                  static_cast<std::uint64_t>(q.arm)};
    }
  }
  /// Everything that `before` had is still there, unchanged.
  [[nodiscard]] bool has_all_of(const Objects& before) const {
    const auto all_in = [](const auto& old, const auto& now, auto&& same) {
      return std::all_of(old.begin(), old.end(), [&](const auto& entry) {
        const auto found = now.find(entry.first);
        return found != now.end() && same(entry.second, found->second);
      });
    };
    const auto equal = [](const auto& a, const auto& b) { return a == b; };
    const auto same_pair = [](const FakeDevice::Pair& a, const FakeDevice::Pair& b) {
      return a.create == b.create && a.last_modify == b.last_modify && a.state == b.state && a.counters == b.counters &&
             a.sq_producer == b.sq_producer && a.sq_done == b.sq_done && a.rq_producer == b.rq_producer &&
             a.rq_done == b.rq_done;
    };
    const auto same_srq = [](const FakeDevice::SharedQueue& a, const FakeDevice::SharedQueue& b) {
      return a.create == b.create && a.last_modify == b.last_modify && a.producer == b.producer && a.head == b.head;
    };
    const auto has_all = [](const auto& old, const auto& now) {
      return std::includes(now.begin(), now.end(), old.begin(), old.end());
    };
    return all_in(before.cqs, cqs, equal) && all_in(before.pairs, pairs, same_pair) &&
           all_in(before.groups, groups, has_all) && all_in(before.srqs, srqs, same_srq) &&
           all_in(before.regions, regions, equal) && all_in(before.windows, windows, equal) &&
           all_in(before.fast_regions, fast_regions, equal);
  }
};

/// A victim, the kernel's own client, and an attacker.
struct Scene {
  explicit Scene(std::uint64_t seed) : device(seed) {
    kernel = kmd::KernelDevice::open(
                 device, {.mac = 0x0200'0000'0001, .gids = {kOwnAddress}, .quota = {24, 24, 8, 24, 8, 24, 12, 12, 12}})
                 .take();
    REQUIRE(kernel->port_tables().add_pkey(kSecondPkey).ok());
    own = umd::ProcessContext::open_for_management(kernel->kernel_node()).take();
    own_cq = umd::CompletionQueue::create(own, 20).take();
    general = umd::QueuePair::create_idle(own, {.send_cq = own_cq,
                                                .receive_cq = own_cq,
                                                .type = hw::QpType::kUd,
                                                .general_service = true,
                                                .capacity = {4, 4, 1, 1, 0}})
                  .take();
    for (const std::uint8_t last : {3, 7}) {
      kmd::Gid group{0xFF, 0x15};
      group[15] = last;
      REQUIRE(general->attach_multicast(group).ok());
    }
    fast = own->create_fast_mr({.max_pages = 8, .remote_access = true}).take();
    victim = umd::ProcessContext::open(kernel->node()).take();
    cq = umd::CompletionQueue::create(victim, 20).take();
    qp = umd::QueuePair::create_idle(victim, {.send_cq = cq, .receive_cq = cq, .capacity = {8, 8, 2, 2, 64}}).take();
    REQUIRE(qp->connect({}).ok());
    srq = umd::SharedReceiveQueue::create(victim, 8, 2).take();
    region = victim->create_mr({.address = memory.data(), .length = memory.size(), .local_write = true}).take();
    window = victim->create_mw({}).take();
    for (std::uint64_t id = 0; id < 3; ++id) REQUIRE(qp->post_receive({.id = id}).ok());
    rings.emplace_back(qp->kernel_qp().send_ring(), 8U << 7);
    rings.emplace_back(qp->kernel_qp().receive_ring(), 8U << 7);
    rings.emplace_back(cq->kernel_cq().ring().entries, std::size_t{32} * hw::Cqe::kBytes);
    rings.emplace_back(srq->kernel_srq().ring(), std::size_t{8} << srq->kernel_srq().log_stride());
    for (const auto& ring : rings) copies.emplace_back(ring.begin(), ring.end());
    connect_victim();
    device.commands.clear();
    before.emplace(device);
  }

  /// Takes the messages of the connection manager from the host to itself.
  void carry_messages() {
    auto& connections = kernel->connections();
    while (const auto next = connections.next_outgoing()) connections.receive(next->remote, next->local, next->mad);
    connections.run_timers();
  }

  /// With an endpoint of the kernel driver's own.
  void connect_victim() {
    auto& connections = kernel->connections();
    connections.attach(true);
    const auto listener = connections.create().take();
    REQUIRE(connections.bind(listener, cm::PortSpace::kTcp, kOwnAddress, kVictimPort).ok());
    REQUIRE(connections.listen(listener, 1).ok());
    endpoint = victim->call(calls::CreateEndpoint{.port_space = 0x0106}).take().endpoint;
    REQUIRE(victim->call(calls::ResolveAddress{.remote = kOwnAddress, .endpoint = endpoint, .remote_port = kVictimPort})
                .ok());
    calls::Connect connect{.endpoint = endpoint};
    connect.terms.qp = qp->kernel_qp().handle();
    REQUIRE(victim->call(connect).ok());
    carry_messages();
    const auto incoming = connections.take_event(listener).incoming;
    REQUIRE(connections.accept(incoming, {.qpn = 0xABCDEF}).ok());
    carry_messages();
    REQUIRE(victim->call(calls::Establish{.endpoint = endpoint}).ok());
    carry_messages();
    endpoints = connections.endpoints();
  }

  /// What is wrong with a command that the device got while the attacker asked; empty: nothing.
  std::string audit(const hw::AdminCommand& command, const CallFuzzer::Given& given) const {
    const auto body = [&]<typename Body>(std::type_identity<Body>) {
      return Body::decode(std::span<const std::uint8_t, Body::kBytes>(command.body));
    };
    const auto of_others = [&](const auto& objects) { return objects.contains(command.number); };
    const auto key_of_others = [&] {
      const std::uint32_t index = command.number >> 8;
      return before->windows.contains(index) || before->fast_regions.contains(index) ||
             std::any_of(before->regions.begin(), before->regions.end(),
                         [&](const auto& entry) { return entry.first >> 8 == index; });
    };
    switch (static_cast<hw::AdminOpcode>(command.opcode)) {
      case hw::AdminOpcode::kCreateCq:
        if (body(std::type_identity<hw::AdminCreateCq>{}).uar != given.uar) return "a completion queue on another UAR";
        [[fallthrough]];
      case hw::AdminOpcode::kDestroyCq:
      case hw::AdminOpcode::kQueryCq:
      case hw::AdminOpcode::kModifyCq:
      case hw::AdminOpcode::kResizeCq: return of_others(before->cqs) ? "a completion queue of others" : "";
      case hw::AdminOpcode::kCreateSrq: {
        const auto create = body(std::type_identity<hw::AdminCreateSrq>{});
        if (create.uar != given.uar || !given.pds.contains(create.pd)) return "a shared queue on another UAR or PD";
        [[fallthrough]];
      }
      case hw::AdminOpcode::kDestroySrq:
      case hw::AdminOpcode::kQuerySrq:
      case hw::AdminOpcode::kModifySrq: return of_others(before->srqs) ? "a shared queue of others" : "";
      case hw::AdminOpcode::kCreateQp: {
        const auto create = body(std::type_identity<hw::AdminCreateQp>{});
        if (create.uar != given.uar || !given.pds.contains(create.pd)) return "a queue pair on another UAR or PD";
        if (!given.cqns.contains(create.send_cqn) || !given.cqns.contains(create.receive_cqn))
          return "a queue pair on completion queues of others";
        if (create.use_srq != 0 && !given.srqns.contains(create.srqn))
          return "a queue pair on a shared queue of others";
        if (create.fast_register != 0 || command.number == 1) return "a queue pair that only the kernel may have";
        [[fallthrough]];
      }
      case hw::AdminOpcode::kDestroyQp:
      case hw::AdminOpcode::kQueryQp:
      case hw::AdminOpcode::kAttachMulticast:
      case hw::AdminOpcode::kDetachMulticast:
      case hw::AdminOpcode::kQueryQpCounters: return of_others(before->pairs) ? "a queue pair of others" : "";
      case hw::AdminOpcode::kModifyQp: {
        if (of_others(before->pairs)) return "a queue pair of others";
        const auto modify = body(std::type_identity<hw::AdminModifyQp>{});
        const auto link_local = kmd::link_local_gid(0x0200'0000'0001);
        if ((modify.attr_mask & attribute(hw::QpAttr::kAv)) != 0 && modify.source_ip != kOwnAddress &&
            modify.source_ip != link_local)
          return "an address that is not the port's";
        if (modify.pkey != 0xFFFF && modify.pkey != kSecondPkey) return "a P_Key that is not the port's";
        return (modify.qkey & kPrivilegedQkey) != 0 ? "a privileged Q_Key" : "";
      }
      case hw::AdminOpcode::kCreateMr:
        if (!given.pds.contains(body(std::type_identity<hw::AdminCreateMr>{}).pd)) return "a region in another PD";
        return key_of_others() ? "a key of others" : "";
      case hw::AdminOpcode::kCreateMw:
        if (!given.pds.contains(body(std::type_identity<hw::AdminCreateMw>{}).pd)) return "a window in another PD";
        return key_of_others() ? "a key of others" : "";
      case hw::AdminOpcode::kDestroyMr:
      case hw::AdminOpcode::kDestroyMw:
      case hw::AdminOpcode::kQueryMr: return key_of_others() ? "a key of others" : "";
      default: return "a command that no client may cause";
    }
  }

  /// Ranges that were answered, and what lies beside them, below them and under other numbers.
  std::string try_to_map(KernelPort& port, const CallFuzzer& fuzzer, std::mt19937_64& random) const {
    calls::MemoryRange range;
    if (!fuzzer.ranges().empty()) range = fuzzer.ranges()[random() % fuzzer.ranges().size()];
    if (random() % 2 == 0) range.region = static_cast<std::uint32_t>(random() % 200);
    if (random() % 4 == 0) range.offset = random() >> random() % 64;
    if (random() % 4 == 0) range.bytes = random() >> random() % 64;
    const auto mapped = port.map(range);
    if (!mapped || range.bytes == 0) return {};
    for (const auto& ring : rings) {
      if (mapped->get() < ring.data() + ring.size() && ring.data() < mapped->get() + range.bytes)
        return "memory of others can be mapped";
    }
    // It must be there, all of it.
    static_cast<void>(std::count(mapped->get(), mapped->get() + range.bytes, std::uint8_t{0}));
    return {};
  }

  /// Runs an attacker. Returns what it managed to do; empty: nothing.
  std::string attack(std::uint64_t seed, std::uint64_t calls, Planted planted) {
    auto port = (planted == Planted::kTrusted ? kernel->kernel_node() : kernel->node()).open().take();
    auto& used = *port;
    CallFuzzer fuzzer(used, seed), lost(victim->port(), seed + 1);
    for (std::uint32_t handle = 1; handle < 12; ++handle) fuzzer.knows(handle), lost.knows(handle);
    fuzzer.lives_at(kOwnAddress);
    lost.lives_at(kOwnAddress);
    fuzzer.has(reinterpret_cast<std::uintptr_t>(spare.data()), spare.size());
    lost.has(reinterpret_cast<std::uintptr_t>(spare.data()), spare.size());
    if (planted == Planted::kOpenTable) REQUIRE(kernel->port_tables().add_gid(kStrangeAddress).ok());
    std::mt19937_64 random(seed);
    for (std::uint64_t call = 0; call < calls; ++call) {
      device.commands.clear();
      const bool mixed_up = planted == Planted::kMixedUp && random() % 100 == 0;
      if (auto wrong = mixed_up ? lost.step() : fuzzer.step(); !wrong.empty()) return wrong;
      if (call % 4 == 0) carry_messages();
      for (const auto& command : device.commands) {
        if (auto wrong = audit(command, fuzzer.given()); !wrong.empty()) return wrong;
      }
      if (call % 16 == 0) {
        if (auto wrong = try_to_map(used, fuzzer, random); !wrong.empty()) return wrong;
      }
      if (call % 1024 == 0 && !Objects(device).has_all_of(*before)) return "an object of others has changed";
    }
    for (std::size_t i = 0; i < successes.size(); ++i) successes[i] += fuzzer.successes()[i];
    if (planted == Planted::kLeftover) leftover = std::move(port);
    port.reset();
    // Its connections come to an end, too; what was refused is remembered as long as it may be asked again.
    for (int i = 0; i < 10 || (i < 2000 && kernel->connections().endpoints() != endpoints); ++i) {
      carry_messages();
      device.elapse(100'000'000);
    }
    const Objects now(device);
    const auto connection = victim->call(calls::QueryEndpoint{.endpoint = endpoint});
    if (!connection || connection->state != static_cast<std::uint8_t>(cm::State::kEstablished))
      return "a connection of others has ended";
    if (planted == Planted::kNone && kernel->connections().endpoints() != endpoints)
      return "endpoints are left of a client that is gone";
    if (!now.has_all_of(*before)) return "an object of others has changed";
    if (now.pairs.size() != before->pairs.size() || now.cqs.size() != before->cqs.size() ||
        now.groups != before->groups || now.srqs.size() != before->srqs.size() ||
        now.regions.size() != before->regions.size() || now.windows.size() != before->windows.size() ||
        now.mapped_pages != before->mapped_pages)
      return "something is left of a client that is gone";
    for (std::size_t i = 0; i < rings.size(); ++i) {
      if (!std::equal(rings[i].begin(), rings[i].end(), copies[i].begin())) return "memory of others has changed";
    }
    if (!qp->process()->alive() || qp->failed()) return "another client has been told that the device has failed";
    return {};
  }

  FakeDevice device;
  std::array<std::uint8_t, 8192> memory{}, spare{};
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::shared_ptr<umd::ProcessContext> own, victim;
  std::shared_ptr<umd::CompletionQueue> own_cq, cq;
  std::shared_ptr<umd::QueuePair> general, qp;
  std::unique_ptr<umd::KernelFastMr> fast;
  calls::Handle endpoint{};  ///< Of the victim, connected
  std::size_t endpoints{};   ///< Before anybody attacks
  std::shared_ptr<umd::SharedReceiveQueue> srq;
  std::unique_ptr<umd::KernelMr> region;
  std::unique_ptr<umd::KernelMw> window;
  std::vector<std::span<const std::uint8_t>> rings;
  std::vector<std::vector<std::uint8_t>> copies;
  std::optional<Objects> before;
  std::unique_ptr<KernelPort> leftover;
  std::array<std::uint64_t, test::kCallProbes.size()> successes{};
};

}  // namespace

TEST_CASE("whatever a client asks for, nothing of others is touched, and all of it is taken back when it goes") {
  const std::uint64_t seed = from_environment("RNIC_SEED", 1);
  constexpr std::uint64_t kEnough = 1'000'000;
  const std::uint64_t calls = from_environment("RNIC_CALLS", kEnough);
  constexpr std::uint64_t kAttackers = 20;
  INFO("RNIC_SEED=" << seed << " RNIC_CALLS=" << calls);
  Scene scene(seed);
  const auto live = scene.device.live_allocations();
  for (std::uint64_t attacker = 0; attacker < kAttackers; ++attacker) {
    INFO("attacker " << attacker);
    REQUIRE(scene.attack(seed * 1000 + attacker, calls / kAttackers, Planted::kNone) == "");
  }
  // The pool of small blocks may have grown; nothing else.
  CHECK(scene.device.live_allocations() <= live + 4);
  // It came far: what a client may do at all it has done (in fewer calls perhaps not).
  for (std::size_t i = 0; i < test::kCallProbes.size(); ++i) {
    const auto& probe = test::kCallProbes[i];
    INFO(probe.name);
    const bool of_kernel = probe.call == calls::Call::kCreateFastMr || probe.call == calls::Call::kPrepareFastMr ||
                           probe.call == calls::Call::kReleaseFastMr;
    if (of_kernel || calls >= kEnough) CHECK((scene.successes[i] != 0) == !of_kernel);
  }
  // And nobody has less for it.
  std::vector<std::unique_ptr<umd::KernelMr>> more;
  for (int i = 0; i < 20; ++i) more.push_back(scene.victim->create_mr({.address = &scene, .length = 1}).take());
}

TEST_CASE("a kernel driver with a fault does not get past the malicious client") {
  const auto planted = GENERATE(Planted::kTrusted, Planted::kMixedUp, Planted::kLeftover, Planted::kOpenTable);
  Scene scene(3);
  const auto wrong = scene.attack(7, 50'000, planted);
  INFO(wrong);
  switch (planted) {
    case Planted::kTrusted: CHECK((wrong.find("kernel") != wrong.npos || wrong.find("client") != wrong.npos)); break;
    case Planted::kMixedUp: CHECK((wrong.find("other") != wrong.npos)); break;
    case Planted::kLeftover: CHECK(wrong == "something is left of a client that is gone"); break;
    case Planted::kOpenTable: CHECK(wrong == "an address that is not the port's"); break;
    case Planted::kNone: FAIL();
  }
}
