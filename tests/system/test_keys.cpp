// Windows and fast-register regions, as the kernel driver allocates them on the NIC: what they are, and that they open
// nothing before a work request has bound or registered them. InfiniBand specification volume 1: 10.6.7
// (windows), 10.6.4.4 (fast registration), 11.6.2 (completion status).
#include <catch2/catch.hpp>
#include <cstring>

#include "driver/kmd/kernel_fast_mr.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/kernel_mw.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

constexpr std::size_t kBytes = 4096;
constexpr ULONG kAllRights =
    ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;

/// What the NIC has of the key of a region.
hw::AdminMrState query(Endpoint& endpoint, std::uint32_t key) {
  auto reply = endpoint.kernel().admin().execute(hw::AdminOpcode::kQueryMr, key, kmd::AdminQueue::Body{});
  REQUIRE(reply.ok());
  return hw::AdminMrState::decode(*reply);
}

}  // namespace

TEST_CASE("windows and fast-register regions on the NIC: allocated, described, destroyed", "[system]") {
  auto& world = fresh_world({});
  with_endpoints(world, [](Endpoint& a, Endpoint&) {
    const auto& limits = a.kernel().limits();
    CHECK(limits.window_type1);
    CHECK(limits.window_type2);
    CHECK(limits.max_mw == limits.max_mr);
    CHECK(limits.max_fast_pages == hw::kMaxFastPages);
    for (const auto type : {hw::MptType::kWindow1, hw::MptType::kWindow2}) {
      auto window = a.process().create_mw({.type = type}).take();
      const auto state = window->query();
      REQUIRE(state.ok());
      CHECK(state->mpt_type == static_cast<std::uint8_t>(type));
      CHECK(state->pd == a.process().pd_number());
      CHECK(state->tag == (window->key() & 0xFF));
      CHECK(state->valid == 0);
      // A key that is drawn is the driver's affair until the bind executes.
      window->keys()->posted(window->draw_key());
      CHECK(window->query()->tag != (window->key() & 0xFF));
      const std::uint32_t key = window->key();
      CHECK(window->destroy().ok());
      CHECK(a.kernel().admin().execute(hw::AdminOpcode::kQueryMr, key, kmd::AdminQueue::Body{}).error() ==
            Error::kNotFound);
      CHECK(a.kernel().admin().execute(hw::AdminOpcode::kDestroyMw, key, kmd::AdminQueue::Body{}).error() ==
            Error::kNotFound);
    }
    auto region =
        a.kernel()
            .create_fast_mr({.pd = 7, .max_pages = hw::kMaxFastPages, .remote_access = true, .window_bind = true})
            .take();
    const auto state = region->query();
    REQUIRE(state.ok());
    CHECK(state->mpt_type == static_cast<std::uint8_t>(hw::MptType::kFastRegion));
    CHECK(state->max_pages == hw::kMaxFastPages);
    CHECK(state->remote_access == 1);
    CHECK(state->window_bind == 1);
    CHECK(state->valid == 0);
    // A key is destroyed as what it is.
    for (const auto opcode : {hw::AdminOpcode::kDestroyMr, hw::AdminOpcode::kDestroyMw}) {
      CHECK(a.kernel().admin().execute(opcode, region->key(), kmd::AdminQueue::Body{}).error() == Error::kNotFound);
    }
    CHECK(region->destroy().ok());

    auto* memory = static_cast<std::uint8_t*>(a.host().memory().allocate(kBytes));
    auto plain = a.register_memory(memory, kBytes, kAllRights);
    const auto described = query(a, plain->GetLocalToken());
    CHECK(described.mpt_type == static_cast<std::uint8_t>(hw::MptType::kRegion));
    CHECK(described.valid == 1);
    CHECK(described.window_bind == 1);  // NetworkDirect: windows may be bound to every region
    CHECK(described.bound_windows == 0);
    CHECK(described.remote_atomic == 0);
  });
}

TEST_CASE("a window that is not bound and a fast-register region that is not registered open nothing", "[system]") {
  const bool fast = GENERATE(false, true);
  const bool remote = GENERATE(false, true);
  auto& world = fresh_world({});
  with_endpoints(world, [=](Endpoint& a, Endpoint& b) {
    Pair pair(a, b, {});
    Endpoint* endpoints[] = {&a, &b};
    std::uint8_t* memory[2];
    ComPtr<IND2MemoryRegion> regions[2];
    for (std::size_t i = 0; i < 2; ++i) {
      memory[i] = static_cast<std::uint8_t*>(endpoints[i]->host().memory().allocate(kBytes));
      std::memset(memory[i], static_cast<int>(0x11 * (i + 1)), kBytes);
      regions[i] = endpoints[i]->register_memory(memory[i], kBytes, kAllRights);
    }
    // In the protection domain of the pair, so that nothing but its state stands in the way.
    auto& owner = remote ? b : a;
    const std::uint32_t pd = query(owner, regions[remote ? 1 : 0]->GetLocalToken()).pd;
    std::unique_ptr<kmd::KernelMw> window;
    std::unique_ptr<kmd::KernelFastMr> region;
    if (fast)
      region = owner.kernel().create_fast_mr({.pd = pd, .max_pages = 1, .remote_access = true}).take();
    else
      window = owner.kernel().create_mw({.pd = pd}).take();
    const std::uint32_t key = fast ? region->key() : window->key();

    const ND2_SGE sge{memory[0], 64, remote ? regions[0]->GetLocalToken() : key};
    const UINT32 token = remote ? __builtin_bswap32(key) : regions[1]->GetRemoteToken();
    auto& end = pair.ends[0];
    REQUIRE(end.qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(memory[1]), token, 0) == ND_SUCCESS);
    ND2_RESULT result{};
    REQUIRE(take_result(a, *end.initiator_cq, result));
    CHECK(result.Status == ND_ACCESS_VIOLATION);
    for (std::size_t i = 0; i < kBytes; ++i) REQUIRE(memory[1][i] == 0x22);
    for (auto* endpoint : endpoints) CHECK(endpoint->host().iommu().fault_count() == 0);
  });
}
