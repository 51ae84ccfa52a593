// Memory windows, fast registration and invalidation, end to end. InfiniBand specification volume 1: 10.6.7
// (windows), 10.6.4 and 10.6.5 (fast registration, local invalidation), 9.4.1.1.3 and o9-5.2 (SEND with invalidate); on
// a good wire and on one that loses packets.
#include <catch2/catch.hpp>
#include <cstring>
#include <string>

#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/protection_domain.hpp"
#include "driver/umd/memory_request.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;
using model::WireFault;

namespace {

constexpr ULONG kLocal = ND_MR_FLAG_ALLOW_LOCAL_WRITE;
constexpr ULONG kBoth = ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE;
constexpr std::size_t kBytes = 64 << 10;

std::uint64_t address_of(const void* p) { return reinterpret_cast<std::uint64_t>(p); }

/// One end: a queue pair of the driver's own, so that every request can be posted, with memory of its own.
struct End {
  End(Endpoint& at, bool fast, std::shared_ptr<umd::ProcessContext> of = {})
      : endpoint(at),
        process(of ? std::move(of)
                   : umd::ProcessContext::open(fast ? at.kernel().kernel_node() : at.kernel().node()).take()) {
    cq = umd::CompletionQueue::create(process, 200).take();
    qp = umd::QueuePair::create_idle(process, {.send_cq = cq,
                                               .receive_cq = cq,
                                               .capacity = {.send_depth = 64,
                                                            .receive_depth = 64,
                                                            .send_segments = 4,
                                                            .receive_segments = 4,
                                                            .inline_bytes = 0},
                                               .context = nullptr,
                                               .fast_register = fast})
             .take();
    memory = static_cast<std::uint8_t*>(at.host().memory().allocate(kBytes));
    std::memset(memory, at.host().index() ? 0xBB : 0xAA, kBytes);
    region = process->create_mr({.address = memory, .length = kBytes, .local_write = true, .window_bind = true}).take();
  }
  umd::Completion take(std::uint64_t limit_ns = 3'000'000) {
    umd::Completion completion;
    const std::uint64_t end = endpoint.device().now_ns() + limit_ns;
    while (cq->poll(std::span(&completion, 1)) == 0) {
      if (endpoint.device().now_ns() >= end) FAIL("no completion");
      endpoint.device().elapse(200);
    }
    return completion;
  }
  hw::CqeStatus status() { return take().status; }
  Result<void> rdma(hw::WqeOpcode opcode, std::uint64_t address, std::uint32_t key, std::uint32_t bytes) {
    const umd::Segment segment{address_of(memory), bytes, region->key()};
    return qp->post_send(
        {.opcode = opcode, .id = 77, .segments = std::span(&segment, 1), .remote_address = address, .remote_key = key});
  }
  hw::CqeStatus write(std::uint64_t address, std::uint32_t key, std::uint32_t bytes = 3000) {
    REQUIRE(rdma(hw::WqeOpcode::kWrite, address, key, bytes).ok());
    return status();
  }
  hw::CqeStatus read(std::uint64_t address, std::uint32_t key, std::uint32_t bytes = 3000) {
    REQUIRE(rdma(hw::WqeOpcode::kRead, address, key, bytes).ok());
    return status();
  }
  void send(hw::WqeOpcode opcode, std::uint32_t immediate, std::uint32_t bytes = 100) {
    const umd::Segment segment{address_of(memory), bytes, region->key()};
    REQUIRE(qp->post_send({.opcode = opcode, .segments = std::span(&segment, 1), .immediate = immediate}).ok());
  }
  void receive() {
    const umd::Segment segment{address_of(memory), kBytes, region->key()};
    REQUIRE(qp->post_receive({.id = 5, .segments = std::span(&segment, 1)}).ok());
  }
  hw::AdminMrState query(std::uint32_t key) {
    auto reply = endpoint.kernel().admin().execute(hw::AdminOpcode::kQueryMr, key, kmd::AdminQueue::Body{});
    REQUIRE(reply.ok());
    return hw::AdminMrState::decode(*reply);
  }
  std::uint64_t count(hw::Counter counter) { return endpoint.kernel().counter(counter).take(); }

  Endpoint& endpoint;
  std::shared_ptr<umd::ProcessContext> process;
  std::shared_ptr<umd::CompletionQueue> cq;
  std::shared_ptr<umd::QueuePair> qp;
  std::uint8_t* memory;
  std::unique_ptr<umd::KernelMr> region;
};

/// A peer of the owner of keys, and the owner.
struct Lab {
  Lab(Endpoint& end_a, Endpoint& end_b, bool fast = false, std::shared_ptr<umd::ProcessContext> owner_process = {})
      : peer(end_a, false), owner(end_b, fast, std::move(owner_process)) {
    testbench::connect_pair(end_a, *peer.qp, end_b, *owner.qp, {.mtu = 1024, .ack_timeout = 4});
  }
  End peer, owner;
};

void experiment(const std::string& name, bool lossy, const std::function<void(World&, Endpoint&, Endpoint&)>& body) {
  auto options = WorldOptions::from_environment("memory_operations_" + name + (lossy ? "_lossy" : ""));
  if (lossy) {
    for (auto& faults : options.wire.faults) faults.drop = 0.05, faults.duplicate = 0.03, faults.reorder = 0.02;
  }
  INFO(name << (lossy ? ", lossy" : "") << ", seed " << options.seed);
  World& world = fresh_world(options);
  with_endpoints(
      world, [&](Endpoint& a, Endpoint& b) { body(world, a, b); }, 4'000'000'000);
}

std::unique_ptr<umd::KernelMw> window_of(End& end, hw::MptType type = hw::MptType::kWindow2) {
  return end.process->create_mw({.type = type}).take();
}

/// Binds `window` to [offset, offset + length) of the end's memory, and gives the status of the request.
hw::CqeStatus bind(End& end, umd::KernelMw& window, std::size_t offset, std::size_t length, bool read = true,
                   bool write = true) {
  REQUIRE(umd::post_bind(*end.qp, window,
                         {.region_key = end.region->key(),
                          .address = address_of(end.memory + offset),
                          .length = length,
                          .remote_read = read,
                          .remote_write = write,
                          .remote_atomic = false},
                         {.id = 1})
              .ok());
  const auto completion = end.take();
  CHECK(completion.kind == umd::RequestKind::kBind);
  return completion.status;
}

hw::CqeStatus invalidate(End& end, std::uint32_t key) {
  REQUIRE(umd::post_invalidate(*end.qp, key, {.id = 2}).ok());
  const auto completion = end.take();
  CHECK(completion.kind == umd::RequestKind::kInvalidate);
  return completion.status;
}

/// Behind SENDs, one of which completes.
hw::CqeStatus invalidate_behind(End& end, std::uint32_t key) {
  REQUIRE(umd::post_invalidate(*end.qp, key, {.id = 2}).ok());
  CHECK(end.take().kind == umd::RequestKind::kSend);
  return end.status();
}

bool all_are(const std::uint8_t* from, std::size_t count, std::uint8_t value) {
  for (std::size_t i = 0; i < count; ++i) {
    if (from[i] != value) return false;
  }
  return true;
}

constexpr auto kOk = hw::CqeStatus::kSuccess;
constexpr auto kRemote = hw::CqeStatus::kRemAccessErr;

}  // namespace

TEST_CASE("bind, access through the window, invalidate, no more access (10.6.7.2, decisions 17, 18, 21)", "[system]") {
  const bool lossy = GENERATE(false, true);
  const auto type = GENERATE(hw::MptType::kWindow1, hw::MptType::kWindow2);
  experiment("window", lossy, [=](World&, Endpoint& a, Endpoint& b) {
    Lab lab(a, b);
    auto& [peer, owner] = lab;
    auto window = window_of(owner, type);
    const auto unbound = window->key();
    // The region itself gives its peer no right.
    CHECK(bind(owner, *window, 4000, 9000) == kOk);
    const auto key = window->key();
    CHECK(key != unbound);
    CHECK(owner.query(key).valid == 1);
    CHECK(owner.query(key).bound_qp == (owner.qp->qpn() & 0xFF));
    CHECK(peer.write(address_of(owner.memory + 4000), key, 9000) == kOk);
    CHECK(all_are(owner.memory + 4000, 9000, 0xAA));
    CHECK(all_are(owner.memory + 13'000, 3000, 0xBB));
    CHECK(peer.read(address_of(owner.memory + 12'999), key, 1) == kOk);
    CHECK(owner.region->destroy().error() == Error::kBusy);  // decisions 23
    // Type 1 is unbound by a bind of no bytes.
    if (type == hw::MptType::kWindow2)
      CHECK(invalidate(owner, key) == kOk);
    else
      CHECK(bind(owner, *window, 0, 0) == kOk);
    CHECK(owner.query(key).valid == 0);
    CHECK(owner.count(hw::Counter::kMemoryOps) == 2);
    std::memset(peer.memory, 0xCC, 100);
    CHECK(peer.write(address_of(owner.memory + 4000), key, 100) == kRemote);
    CHECK(all_are(owner.memory + 4000, 9000, 0xAA));
  });
}

TEST_CASE("what a window does not open (10.6.7.2.4, 9.7.4.1.5)", "[system]") {
  const bool lossy = GENERATE(false, true);
  experiment("closed", lossy, [=](World&, Endpoint& a, Endpoint& b) {
    const auto refused = [&](const std::string& what, const std::function<hw::CqeStatus(End&, End&)>& attempt) {
      INFO(what);
      Lab lab(a, b);
      lab.owner.receive();
      CHECK(attempt(lab.peer, lab.owner) == kRemote);
      CHECK(all_are(lab.owner.memory, kBytes, 0xBB));
      CHECK(lab.owner.status() == hw::CqeStatus::kWrFlushErr);  // decisions 11: its Receives are canceled
    };
    refused("one byte in front", [](End& peer, End& owner) {
      auto window = window_of(owner);
      CHECK(bind(owner, *window, 5000, 100) == kOk);
      return peer.write(address_of(owner.memory + 4999), window->key(), 50);
    });
    refused("one byte behind", [](End& peer, End& owner) {
      auto window = window_of(owner);
      CHECK(bind(owner, *window, 5000, 100) == kOk);
      return peer.write(address_of(owner.memory + 5000), window->key(), 101);
    });
    refused("without the right to write", [](End& peer, End& owner) {
      auto window = window_of(owner);
      CHECK(bind(owner, *window, 5000, 100, true, false) == kOk);
      return peer.write(address_of(owner.memory + 5000), window->key(), 10);
    });
    refused("without any right (decisions 19)", [](End& peer, End& owner) {
      auto window = window_of(owner);
      CHECK(bind(owner, *window, 5000, 100, false, false) == kOk);
      return peer.read(address_of(owner.memory + 5000), window->key(), 10);
    });
    refused("a token of an earlier bind (decisions 16)", [](End& peer, End& owner) {
      auto window = window_of(owner);
      CHECK(bind(owner, *window, 0, kBytes) == kOk);
      const auto stale = window->key();
      CHECK(invalidate(owner, stale) == kOk);
      CHECK(bind(owner, *window, 0, kBytes) == kOk);
      return peer.write(address_of(owner.memory), stale, 10);
    });
    refused("the token before its bind has executed (decisions 17)", [](End& peer, End& owner) {
      auto window = window_of(owner);
      return peer.write(address_of(owner.memory), window->draw_key(), 10);
    });
    refused("a window of type 2 that was bound on another queue pair (decisions 20)", [&](End& peer, End& owner) {
      Lab other(a, b, false, owner.process);
      auto window = window_of(owner);
      CHECK(bind(owner, *window, 0, kBytes, true, false) == kOk);
      CHECK(peer.read(address_of(owner.memory), window->key(), 10) == kOk);
      const auto status = other.peer.read(address_of(owner.memory), window->key(), 10);
      CHECK(peer.read(address_of(owner.memory), window->key(), 10) == kOk);
      CHECK(owner.qp->flush().ok());
      CHECK(owner.query(window->key()).valid == 0);  // decisions 23
      return status;
    });
    // A window of type 1 serves every queue pair of its protection domain.
    Lab lab(a, b);
    Lab other(a, b, false, lab.owner.process);
    auto window = window_of(lab.owner, hw::MptType::kWindow1);
    CHECK(bind(lab.owner, *window, 0, kBytes) == kOk);
    CHECK(other.peer.write(address_of(lab.owner.memory), window->key(), 5000) == kOk);
    CHECK(all_are(lab.owner.memory, 5000, 0xAA));
  });
}

TEST_CASE("requests about keys that fail: earlier ones complete, later ones are flushed (decisions 1, 7, 14, 18, 19)",
          "[system]") {
  const bool lossy = GENERATE(false, true);
  experiment("errors", lossy, [=](World&, Endpoint& a, Endpoint& b) {
    const auto fails = [&](const std::string& what, hw::CqeStatus expected, bool fast,
                           const std::function<std::uint32_t(Lab&)>& post) {
      INFO(what);
      Lab lab(a, b, fast);
      auto& owner = lab.owner;
      auto target = lab.peer.process
                        ->create_mr({.address = lab.peer.memory,
                                     .length = kBytes,
                                     .local_write = true,
                                     .remote_read = true,
                                     .remote_write = true})
                        .take();
      REQUIRE(owner.rdma(hw::WqeOpcode::kRead, address_of(lab.peer.memory), target->key(), 5000).ok());
      REQUIRE(owner.rdma(hw::WqeOpcode::kWrite, address_of(lab.peer.memory + 8000), target->key(), 5000).ok());
      const auto key = post(lab);
      REQUIRE(owner.rdma(hw::WqeOpcode::kWrite, address_of(lab.peer.memory + 20'000), target->key(), 10).ok());
      CHECK(owner.status() == kOk);
      CHECK(owner.status() == kOk);
      CHECK(owner.status() == expected);
      CHECK(owner.status() == hw::CqeStatus::kWrFlushErr);
      CHECK(all_are(lab.peer.memory + 20'000, 100, 0xAA));
      if (key != 0) CHECK(owner.query(key).valid == 0);
    };
    const auto post = [](Lab& lab, umd::KernelMw& window, const umd::WindowRange& range) {
      REQUIRE(umd::post_bind(*lab.owner.qp, window, range, {}).ok());
      return window.key();
    };
    std::unique_ptr<umd::KernelMw> window;
    std::unique_ptr<umd::KernelFastMr> region;
    std::unique_ptr<umd::ProtectionDomain> domain;
    fails("bind of a window that is bound", hw::CqeStatus::kLocQpOpErr, false, [&](Lab& lab) {
      window = window_of(lab.owner);
      const umd::WindowRange range{
          .region_key = lab.owner.region->key(), .address = address_of(lab.owner.memory), .length = 9};
      REQUIRE(umd::post_bind(*lab.owner.qp, *window, range, {.silent = true}).ok());
      post(lab, *window, range);
      return 0;
    });
    fails("invalidation of a window that is not", hw::CqeStatus::kLocQpOpErr, false, [&](Lab& lab) {
      window = window_of(lab.owner);
      REQUIRE(umd::post_invalidate(*lab.owner.qp, window->key(), {.silent = true}).ok());
      return 0;
    });
    fails("bind to a region that is gone", hw::CqeStatus::kLocProtErr, false, [&](Lab& lab) {
      window = window_of(lab.owner);
      return post(lab, *window,
                  {.region_key = lab.owner.region->key() ^ 1, .address = address_of(lab.owner.memory), .length = 9});
    });
    fails("bind beyond the region", hw::CqeStatus::kLocProtErr, false, [&](Lab& lab) {
      window = window_of(lab.owner);
      return post(
          lab, *window,
          {.region_key = lab.owner.region->key(), .address = address_of(lab.owner.memory) + kBytes - 8, .length = 9});
    });
    fails("bind of a window of another protection domain", hw::CqeStatus::kLocProtErr, false, [&](Lab& lab) {
      domain = lab.owner.process->alloc_pd().take();
      window = lab.owner.process->create_mw({.pd = domain->handle()}).take();
      return post(lab, *window,
                  {.region_key = lab.owner.region->key(), .address = address_of(lab.owner.memory), .length = 9});
    });
    const std::vector<std::uint64_t> pages(4, 0x1000);
    const FastRange range{.pages = pages, .length = 100, .base = 0x10000};
    fails("fast registration on a queue pair of a process", hw::CqeStatus::kLocQpOpErr, false, [&](Lab& lab) {
      region = umd::ProcessContext::open(b.kernel().kernel_node()).take()->create_fast_mr({.max_pages = 4}).take();
      REQUIRE(umd::post_fast_register(*lab.owner.qp, *region, range, {}).ok());
      return region->key();
    });
    fails("fast registration of a region that is registered", hw::CqeStatus::kLocQpOpErr, true, [&](Lab& lab) {
      region = lab.owner.process->create_fast_mr({.max_pages = 4}).take();
      REQUIRE(umd::post_fast_register(*lab.owner.qp, *region, range, {.silent = true}).ok());
      REQUIRE(umd::post_fast_register(*lab.owner.qp, *region, range, {}).ok());
      return 0;
    });
  });
}

TEST_CASE(
    "fast registration of more than 256 pages with a first byte offset; its key locally and for the peer (10.6.4, "
    "10.6.5)",
    "[system]") {
  const bool lossy = GENERATE(false, true);
  experiment("fast", lossy, [=](World&, Endpoint& a, Endpoint& b) {
    constexpr std::size_t kPages = 300, kOffset = 0x123, kPage = 4096;
    Lab lab(a, b, true);
    auto& [peer, owner] = lab;
    auto* const memory = static_cast<std::uint8_t*>(b.host().memory().allocate(kPages * kPage));
    std::memset(memory, 0xBB, kPages * kPage);
    const auto mapped = b.device().map_pages(memory, kPages * kPage, true).take();
    // In another order than in memory: what counts is the list.
    std::vector<std::uint64_t> pages(mapped.rbegin(), mapped.rend());
    const auto at = [&](std::uint64_t offset) {
      const auto in_list = (offset + kOffset) / kPage;
      return memory + (kPages - 1 - in_list) * kPage + (offset + kOffset) % kPage;
    };
    auto region =
        owner.process->create_fast_mr({.max_pages = kPages, .remote_access = true, .window_bind = true}).take();
    const std::uint64_t base = 0x4000'0000 + kOffset, length = kPages * kPage - kOffset - 5;
    const FastRange range{.pages = pages,
                          .first_offset = kOffset,
                          .length = length,
                          .base = base,
                          .local_write = true,
                          .remote_read = true,
                          .remote_write = true};
    for (int round = 0; round < 2; ++round) {
      REQUIRE(umd::post_fast_register(*owner.qp, *region, range, {.id = 8}).ok());
      const auto registered = owner.take();
      CHECK(registered.status == kOk);
      CHECK(registered.kind == umd::RequestKind::kFastRegister);
      const auto key = region->key();
      std::memset(peer.memory, 0x10 + round, 3000);
      for (const std::uint64_t offset :
           {std::uint64_t{0}, std::uint64_t{4096 - kOffset - 1}, std::uint64_t{256 * kPage}, length - 3000}) {
        CHECK(peer.write(base + offset, key) == kOk);
        for (std::uint64_t i = 0; i < 3000; ++i) REQUIRE(*at(offset + i) == 0x10 + round);
      }
      // Locally: SENDs from it, which lose packets and are sent again, with the invalidation behind them.
      for (int i = 0; i < 4; ++i) peer.receive();
      const umd::Segment segment{base + 256 * kPage, 3000, key};
      for (int i = 0; i < 4; ++i)
        REQUIRE(
            owner.qp->post_send({.opcode = hw::WqeOpcode::kSend, .segments = std::span(&segment, 1), .silent = i != 2})
                .ok());
      CHECK(invalidate_behind(owner, key) == kOk);
      for (int i = 0; i < 4; ++i) CHECK(peer.status() == kOk);
      CHECK(all_are(peer.memory, 3000, static_cast<std::uint8_t>(0x10 + round)));
      CHECK(owner.query(key).valid == 0);
      CHECK(region->release(key).ok());
    }
    CHECK(peer.write(base, region->key(), 10) == kRemote);
    CHECK(region->destroy().ok());
    b.device().unmap_pages(memory, kPages * kPage, mapped);
    b.host().memory().release(memory);
    CHECK(b.host().iommu().fault_count() == 0);
  });
}

TEST_CASE(
    "fast registration with the page list in the request: every length that fits, and windows on it (decisions 68)",
    "[system]") {
  const bool lossy = GENERATE(false, true);
  experiment("inline", lossy, [=](World&, Endpoint& a, Endpoint& b) {
    constexpr std::size_t kPages = 14, kPage = 4096;
    Lab lab(a, b, true);
    auto& [peer, owner] = lab;
    const std::uint32_t most = owner.qp->inline_pages();
    REQUIRE(most == 10);
    auto* const memory = static_cast<std::uint8_t*>(b.host().memory().allocate(kPages * kPage));
    const auto mapped = b.device().map_pages(memory, kPages * kPage, true).take();
    const std::vector<std::uint64_t> pages(mapped.rbegin(), mapped.rend());
    auto region =
        owner.process->create_fast_mr({.max_pages = kPages, .remote_access = true, .window_bind = true}).take();
    auto window = window_of(owner);
    const auto misses = owner.count(hw::Counter::kTlbMisses) + owner.count(hw::Counter::kTlbPrefetches);
    for (std::uint32_t count = 1; count <= kPages; ++count) {
      INFO(count << " pages");
      const std::uint64_t base = 0x4000'0000 + 0x100 * count, length = count * kPage - 0x100 * count;
      const FastRange range{.pages = std::span(pages).first(count),
                            .first_offset = 0x100 * count,
                            .length = length,
                            .base = base,
                            .local_write = true,
                            .remote_read = true,
                            .remote_write = true};
      std::memset(memory, 0xCC, kPages * kPage);
      REQUIRE(umd::post_fast_register(*owner.qp, *region, range, {.id = 8}).ok());
      CHECK(owner.take().status == kOk);
      const auto key = region->key();
      for (std::uint64_t i = 0; i < length; ++i) peer.memory[i] = static_cast<std::uint8_t>(i / 7 + count);
      const auto sent = static_cast<std::uint32_t>(std::min<std::uint64_t>(length, kBytes));
      CHECK(peer.write(base, key, sent) == kOk);
      const auto at = [&](std::uint64_t offset) {
        const auto in_list = (offset + range.first_offset) / kPage;
        return memory + (kPages - 1 - in_list) * kPage + (offset + range.first_offset) % kPage;
      };
      for (std::uint64_t i = 0; i < sent; ++i) REQUIRE(*at(i) == peer.memory[i]);
      if (count > 2) {
        // A window from the third page on; the registration cannot end under it.
        const std::uint64_t from = 2 * kPage - range.first_offset;
        REQUIRE(umd::post_bind(*owner.qp, *window,
                               {.region_key = key,
                                .address = base + from,
                                .length = length - from,
                                .remote_read = true,
                                .remote_write = true},
                               {.id = 1})
                    .ok());
        CHECK(owner.status() == kOk);
        std::memset(peer.memory, 0x33, kPage);
        CHECK(peer.write(base + from, window->key(), 100) == kOk);
        for (std::uint64_t i = 0; i < 100; ++i) REQUIRE(*at(from + i) == 0x33);
        CHECK(invalidate(owner, window->key()) == kOk);
      }
      CHECK(invalidate(owner, key) == kOk);
      CHECK(region->release(key).ok());
      if (count == most)
        CHECK(owner.count(hw::Counter::kTlbMisses) + owner.count(hw::Counter::kTlbPrefetches) == misses);
    }
    CHECK(owner.count(hw::Counter::kTlbMisses) > misses);
    CHECK(region->destroy().ok());
    b.device().unmap_pages(memory, kPages * kPage, mapped);
    b.host().memory().release(memory);
    CHECK(b.host().iommu().fault_count() == 0);
  });
}

TEST_CASE("a page list in the request that is not as it must be registers nothing (decisions 68)", "[system]") {
  experiment("inline_refused", false, [=](World&, Endpoint& a, Endpoint& b) {
    const std::vector<std::uint64_t> good{0x1000, 0x2000, 0x3000};
    const FastRange range{.pages = good, .length = 100, .base = 0x10000, .local_write = true, .remote_write = true};
    const auto refused = [&](const std::string& what, std::uint32_t max_pages,
                             const std::function<void(umd::MemoryRequest&)>& change) {
      INFO(what);
      Lab lab(a, b, true);
      auto& owner = lab.owner;
      auto region = owner.process->create_fast_mr({.max_pages = max_pages, .remote_access = true}).take();
      auto prepared = region->prepare(range, owner.qp->inline_pages()).take();
      REQUIRE(prepared.inline_list);
      auto request = umd::fast_register_request(prepared, range, {});
      change(request);
      REQUIRE(owner.qp->post_memory(request).ok());
      const auto completion = owner.take();
      CHECK(completion.status == hw::CqeStatus::kLocQpOpErr);
      CHECK(owner.query(prepared.key).valid == 0);
      CHECK(lab.peer.write(range.base, prepared.key, 10) != kOk);
      CHECK(region->release(prepared.key).ok());
      CHECK(region->destroy().ok());
    };
    for (const std::size_t place : {0U, 1U, 2U}) {
      std::vector<std::uint64_t> odd = good;
      odd[place] += place == 1 ? 1 : 0x800;
      refused("page " + std::to_string(place) + " is not aligned", 3, [&](auto& request) { request.pages = odd; });
    }
    const std::vector<std::uint64_t> more{0x1000, 0x2000, 0x3000, 0x4000, 0x5000};
    refused("more pages than the region takes", 3, [&](auto& request) {
      request.pages = more;
      request.page_count = 5;
    });
    refused("fewer pages than the request says", 10, [&](auto& request) { request.page_count = 5; });
    refused("more pages than the request says", 10, [&](auto& request) { request.page_count = 2; });
    refused("no pages", 10, [&](auto& request) { request.page_count = 0; });
    refused("a pointer as well", 10, [&](auto& request) { request.page_list = 0x1000; });
    CHECK(b.host().iommu().fault_count() == 0);
  });
}

TEST_CASE("SEND with invalidate: the key is dead when the Receive completes; a refused one fails both ends (o9-5.2)",
          "[system]") {
  const bool lossy = GENERATE(false, true);
  experiment("send", lossy, [=](World& world, Endpoint& a, Endpoint& b) {
    {
      Lab lab(a, b);
      auto& [peer, owner] = lab;
      const auto before = owner.count(hw::Counter::kMemoryOps);
      for (int round = 0; round < 4; ++round) {
        auto window = window_of(owner);
        CHECK(bind(owner, *window, 1000, 5000) == kOk);
        const auto key = window->key();
        CHECK(peer.write(address_of(owner.memory + 1000), key, 5000) == kOk);
        owner.receive();
        // Its ACK is lost: the SEND comes again, and invalidates nothing then.
        model::WireRule rule;
        rule.match.opcode = static_cast<std::uint8_t>(hw::RcOpcode::kAcknowledge);
        world.wire().arm(1, rule);
        peer.send(hw::WqeOpcode::kSendInvalidate, key, round % 2 ? 2500 : 0);
        const auto received = owner.take();
        CHECK(received.status == kOk);
        CHECK(received.with_invalidate);
        CHECK(received.immediate == key);
        CHECK(owner.query(key).valid == 0);
        CHECK(peer.status() == kOk);
      }
      CHECK(owner.count(hw::Counter::kMemoryOps) == before + 8);
    }
    for (const int what : {0, 1, 2}) {
      INFO("refusal " << what);
      Lab lab(a, b);
      auto& [peer, owner] = lab;
      auto window = window_of(owner);
      owner.receive();
      owner.receive();
      // Not bound; not a key at all; a plain region, which the peer can't take away.
      const std::uint32_t key = what == 0 ? window->key() : what == 1 ? 0xFFFF'FF01 : owner.region->key();
      peer.send(hw::WqeOpcode::kSendInvalidate, key);
      peer.send(hw::WqeOpcode::kSend, 0);
      CHECK(peer.status() == kRemote);
      CHECK(peer.status() == hw::CqeStatus::kWrFlushErr);
      const auto received = owner.take();
      CHECK(received.status == hw::CqeStatus::kLocProtErr);
      CHECK_FALSE(received.with_invalidate);
      CHECK(owner.status() == hw::CqeStatus::kWrFlushErr);
      CHECK(owner.query(owner.region->key()).valid == 1);
    }
  });
}

TEST_CASE("binds and invalidations of many queue pairs at once, with traffic through the windows", "[system]") {
  const bool lossy = GENERATE(false, true);
  experiment("many", lossy, [=](World&, Endpoint& a, Endpoint& b) {
    std::vector<std::unique_ptr<Lab>> labs;
    std::vector<std::unique_ptr<umd::KernelMw>> windows;
    for (int i = 0; i < 6; ++i) {
      labs.push_back(std::make_unique<Lab>(a, b));
      windows.push_back(window_of(labs.back()->owner));
    }
    for (int round = 0; round < 5; ++round) {
      for (std::size_t i = 0; i < labs.size(); ++i) {
        auto& owner = labs[i]->owner;
        REQUIRE(umd::post_bind(*owner.qp, *windows[i],
                               {.region_key = owner.region->key(),
                                .address = address_of(owner.memory),
                                .length = kBytes,
                                .remote_read = true,
                                .remote_write = true,
                                .remote_atomic = false},
                               {})
                    .ok());
      }
      for (auto& lab : labs) CHECK(lab->owner.status() == kOk);
      for (std::size_t i = 0; i < labs.size(); ++i) {
        auto& [peer, owner] = *labs[i];
        std::memset(peer.memory, round * 16 + static_cast<int>(i), 6000);
        REQUIRE(peer.rdma(hw::WqeOpcode::kWrite, address_of(owner.memory), windows[i]->key(), 6000).ok());
      }
      for (std::size_t i = 0; i < labs.size(); ++i) {
        CHECK(labs[i]->peer.status() == kOk);
        CHECK(all_are(labs[i]->owner.memory, 6000, static_cast<std::uint8_t>(round * 16 + static_cast<int>(i))));
        REQUIRE(umd::post_invalidate(*labs[i]->owner.qp, windows[i]->key(), {.silent = true}).ok());
      }
    }
    b.device().elapse(100'000);
    for (std::size_t i = 0; i < labs.size(); ++i) {
      CHECK(labs[i]->owner.query(windows[i]->key()).valid == 0);
      CHECK(labs[i]->owner.region->destroy().ok());
    }
  });
}

TEST_CASE("a copy of a Read request that comes when its key has been invalidated does no harm (9.7.5.1.3)",
          "[system]") {
  experiment("late_copy", false, [](World& world, Endpoint& a, Endpoint& b) {
    Lab lab(a, b);
    auto& [peer, owner] = lab;
    auto window = window_of(owner);
    CHECK(bind(owner, *window, 0, 5000) == kOk);
    for (int i = 0; i < 4; ++i) owner.receive();
    model::WireRule rule;
    rule.fault = WireFault::kDuplicate;
    rule.match.opcode = static_cast<std::uint8_t>(hw::RcOpcode::kReadRequest);
    rule.parameters.duplicate_frames = 2;
    rule.parameters.duplicate_hold_ns = 100'000;
    world.wire().arm(0, rule);
    CHECK(peer.read(address_of(owner.memory), window->key(), 600) == kOk);
    peer.send(hw::WqeOpcode::kSendInvalidate, window->key());
    CHECK(peer.status() == kOk);
    for (int i = 0; i < 3; ++i) {
      peer.send(hw::WqeOpcode::kSend, 0);
      CHECK(peer.status() == kOk);
    }
  });
}
