#include <catch2/catch.hpp>

#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "driver/nd2/memory_window.hpp"
#include "driver/umd/memory_request.hpp"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::Nd2Fixture;

namespace {

alignas(4096) std::array<std::uint8_t, 1 << 14> g_memory;
constexpr ULONG kAllowBoth = ND_OP_FLAG_ALLOW_READ | ND_OP_FLAG_ALLOW_WRITE;

struct WindowFixture : Nd2Fixture {
  WindowFixture() {
    open_pair(true);
    region = make_region();
    REQUIRE(region->Register(g_memory.data(), g_memory.size(), ND_MR_FLAG_ALLOW_LOCAL_WRITE, &overlapped) ==
            ND_PENDING);
    window = make_window();
  }
  ~WindowFixture() {
    if (window != nullptr) window->Release();
    if (region != nullptr) region->Release();
  }
  IND2MemoryWindow* make_window() {
    void* object = nullptr;
    REQUIRE(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
    return static_cast<IND2MemoryWindow*>(object);
  }
  hw::WqeControl control(std::uint16_t index) { return segment<hw::WqeControl>(index, 0); }
  template <typename Segment>
  Segment segment(std::uint16_t index, std::size_t number) {
    const auto wqe = device.send_wqe(core->qpn(), index);
    return Segment::decode(std::span<const std::uint8_t, 16>(wqe.data() + 16 * number, 16));
  }
  ND2_RESULT result() {
    ND2_RESULT taken{};
    REQUIRE(queue->GetResults(&taken, 1) == 1);
    return taken;
  }
  IND2MemoryRegion* region = nullptr;
  IND2MemoryWindow* window = nullptr;
};

/// Writes down what it is told.
struct Recorder final : umd::KeyWatch {
  void accepted(std::uint32_t key) override { told.emplace_back(true, key); }
  void refused(std::uint32_t key) override { told.emplace_back(false, key); }
  std::vector<std::pair<bool, std::uint32_t>> told;
};

}  // namespace

TEST_CASE_METHOD(WindowFixture,
                 "Bind: range, rights and a new token reach the WQE; the token is told at once (decisions 17)") {
  const UINT32 before = window->GetRemoteToken();
  CHECK(before != 0);
  int number = 7;
  REQUIRE(pair->Bind(&number, region, window, g_memory.data() + 100, 5000, kAllowBoth | ND_OP_FLAG_READ_FENCE) ==
          ND_SUCCESS);
  const UINT32 token = window->GetRemoteToken();
  CHECK(token != before);
  CHECK((ntohl(token) ^ ntohl(before)) < 256);  // the index stays, the tag changes
  CHECK(control(0).opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kBindWindow2));
  CHECK(control(0).immediate == ntohl(token));
  CHECK(control(0).size == 3);
  CHECK(control(0).length == 0);
  CHECK(control(0).fence == 1);
  CHECK(control(0).silent == 0);
  CHECK(segment<hw::WqeRange>(0, 1).va == reinterpret_cast<std::uintptr_t>(g_memory.data()) + 100);
  CHECK(segment<hw::WqeRange>(0, 1).length == 5000);
  CHECK(segment<hw::WqeBind>(0, 2).mr_key == region->GetLocalToken());
  CHECK(segment<hw::WqeBind>(0, 2).remote_read == 1);
  CHECK(segment<hw::WqeBind>(0, 2).remote_write == 1);
  CHECK(segment<hw::WqeBind>(0, 2).remote_atomic == 0);
  device.finish_send(core->qpn());
  const auto bound = result();
  CHECK(bound.Status == ND_SUCCESS);
  CHECK(bound.RequestType == Nd2RequestTypeBind);
  CHECK(bound.RequestContext == &number);

  REQUIRE(pair->Invalidate(&number, window, ND_OP_FLAG_SILENT_SUCCESS) == ND_SUCCESS);
  CHECK(window->GetRemoteToken() == token);
  CHECK(control(1).opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kLocalInvalidate));
  CHECK(control(1).immediate == ntohl(token));
  CHECK(control(1).size == 1);
  CHECK(control(1).silent == 1);
  device.finish_send(core->qpn(), hw::CqeStatus::kLocQpOpErr);
  const auto refused = result();
  CHECK(refused.Status == ND_INVALID_DEVICE_REQUEST);  // decisions 18
  CHECK(refused.RequestType == Nd2RequestTypeInvalidate);
  // Each right by itself, and none at all (decisions 19).
  for (const ULONG rights : {ULONG{0}, ND_OP_FLAG_ALLOW_READ, ND_OP_FLAG_ALLOW_WRITE}) {
    REQUIRE(pair->Bind(nullptr, region, window, g_memory.data(), g_memory.size(), rights) == ND_SUCCESS);
    const auto index = static_cast<std::uint16_t>(device.pairs.at(core->qpn()).sq_producer - 1);
    CHECK(segment<hw::WqeBind>(index, 2).remote_read == (rights == ND_OP_FLAG_ALLOW_READ));
    CHECK(segment<hw::WqeBind>(index, 2).remote_write == (rights == ND_OP_FLAG_ALLOW_WRITE));
    device.finish_send(core->qpn());
    CHECK(result().Status == ND_SUCCESS);
  }
}

TEST_CASE_METHOD(WindowFixture, "Bind and Invalidate refuse what they can know inline, and change nothing then") {
  const UINT32 token = window->GetRemoteToken();
  auto* const start = g_memory.data();
  const std::size_t all = g_memory.size();
  CHECK(pair->Bind(nullptr, nullptr, window, start, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(pair->Bind(nullptr, window, window, start, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(pair->Bind(nullptr, region, nullptr, start, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(pair->Bind(nullptr, region, queue, start, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(pair->Invalidate(nullptr, nullptr, 0) == ND_INVALID_PARAMETER_2);
  CHECK(pair->Invalidate(nullptr, region, 0) == ND_INVALID_PARAMETER_2);
  for (unsigned bit = 0; bit < 32; ++bit) {
    if ((0x1BU >> bit & 1) == 0)
      CHECK(pair->Bind(nullptr, region, window, start, 1, 1U << bit) == ND_INVALID_PARAMETER_6);
    if ((0x03U >> bit & 1) == 0) CHECK(pair->Invalidate(nullptr, window, 1U << bit) == ND_INVALID_PARAMETER_3);
  }
  // The range is not inside the region.
  void* const before = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(start) - 1);
  CHECK(pair->Bind(nullptr, region, window, before, 2, 0) == ND_ACCESS_VIOLATION);
  CHECK(pair->Bind(nullptr, region, window, start, all + 1, 0) == ND_ACCESS_VIOLATION);
  CHECK(pair->Bind(nullptr, region, window, start + all, 1, 0) == ND_ACCESS_VIOLATION);
  CHECK(pair->Bind(nullptr, region, window, start + 1, ~SIZE_T{0}, 0) == ND_ACCESS_VIOLATION);
  // Decisions 21: to write, the region must have local write; nothing else of its rights counts.
  auto* const read_only = make_region();
  CHECK(pair->Bind(nullptr, read_only, window, start, 1, 0) == ND_ACCESS_VIOLATION);  // nothing is registered
  REQUIRE(read_only->Register(start, all, ND_MR_FLAG_ALLOW_REMOTE_READ, &overlapped) == ND_PENDING);
  CHECK(pair->Bind(nullptr, read_only, window, start, 1, ND_OP_FLAG_ALLOW_WRITE) == ND_ACCESS_VIOLATION);
  CHECK(window->GetRemoteToken() == token);
  CHECK(device.pairs.at(core->qpn()).sq_producer == 0);
  CHECK(pair->Bind(nullptr, read_only, window, start, 1, ND_OP_FLAG_ALLOW_READ) == ND_SUCCESS);
  CHECK(window->GetRemoteToken() != token);
  // A queue that is full; one that was never connected.
  for (int i = 0; i < 7; ++i) CHECK(pair->Bind(nullptr, region, window, start, all, kAllowBoth) == ND_SUCCESS);
  const UINT32 last = window->GetRemoteToken();
  CHECK(pair->Bind(nullptr, region, window, start, all, kAllowBoth) == ND_NO_MORE_ENTRIES);
  CHECK(pair->Invalidate(nullptr, window, 0) == ND_NO_MORE_ENTRIES);
  auto* const other = make_pair(queue);
  CHECK(other->Bind(nullptr, region, window, start, all, kAllowBoth) == ND_CONNECTION_INVALID);
  CHECK(other->Invalidate(nullptr, window, 0) == ND_CONNECTION_INVALID);
  CHECK(window->GetRemoteToken() == last);
  other->Release();
  read_only->Release();
}

TEST_CASE_METHOD(WindowFixture,
                 "a region with a bound window is busy; the last release of the window ends that (decisions 23)") {
  REQUIRE(pair->Bind(nullptr, region, window, g_memory.data(), 1, 0) == ND_SUCCESS);
  device.bound[ntohl(window->GetRemoteToken()) >> 8] = region->GetLocalToken() >> 8;
  REQUIRE(region->Deregister(&overlapped) == ND_PENDING);
  CHECK(status() == ND_DEVICE_BUSY);
  CHECK(window->Release() == 0);
  window = nullptr;
  CHECK(device.windows.empty());
  CHECK(region->Deregister(&overlapped) == ND_PENDING);
}

TEST_CASE_METHOD(WindowFixture, "what became of requests about keys is told in their order, also of silent ones") {
  const auto watch = std::make_shared<Recorder>();
  const auto post = [&](std::uint32_t key) {
    return core->post_memory(
        {.opcode = hw::WqeOpcode::kLocalInvalidate, .id = key, .key = key, .watch = watch, .silent = true});
  };
  REQUIRE(post(0x101).ok());
  REQUIRE(post(0x202).ok());
  REQUIRE(post(0x303).ok());
  device.finish_silently(core->qpn(), 2);
  CHECK(watch->told.empty());  // nobody has looked
  device.finish_send(core->qpn(), hw::CqeStatus::kLocQpOpErr);
  CHECK(result().Status == ND_INVALID_DEVICE_REQUEST);
  using Told = std::vector<std::pair<bool, std::uint32_t>>;
  CHECK(watch->told == Told{{true, 0x101}, {true, 0x202}, {false, 0x303}});
}

TEST_CASE_METHOD(WindowFixture, "a reset tells of requests about keys which have executed, and which have not") {
  const auto watch = std::make_shared<Recorder>();
  for (const std::uint32_t key : {0x101U, 0x202U, 0x303U})
    REQUIRE(core->post_memory(
                    {.opcode = hw::WqeOpcode::kLocalInvalidate, .id = key, .key = key, .watch = watch, .silent = true})
                .ok());
  device.finish_silently(core->qpn(), 1);
  device.write_retired_record(core->qpn());
  REQUIRE(core->modify(hw::QpState::kReset, attribute(hw::QpAttr::kState), {}).ok());
  using Told = std::vector<std::pair<bool, std::uint32_t>>;
  CHECK(watch->told == Told{{true, 0x101}, {false, 0x202}, {false, 0x303}});
}

TEST_CASE_METHOD(Nd2Fixture, "CreateMemoryWindow") {
  void* object = &object;
  CHECK(adapter->CreateMemoryWindow(IID_IND2MemoryRegion, &object) == E_NOINTERFACE);
  CHECK(object == nullptr);
  CHECK(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, nullptr) == E_POINTER);
  CHECK(device.windows.empty());
  device.next_status.push_back(hw::AdminStatus::kBadParameter);
  CHECK(FAILED(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object)));
  REQUIRE(adapter->CreateMemoryWindow(IID_IND2MemoryWindow, &object) == ND_SUCCESS);
  REQUIRE(device.windows.size() == 1);
  CHECK(device.windows.begin()->second.window_type == static_cast<std::uint8_t>(hw::MptType::kWindow2));
  static_cast<IND2MemoryWindow*>(object)->Release();
  CHECK(device.windows.empty());
}

TEST_CASE_METHOD(WindowFixture,
                 "fast registration: list, first byte offset, rights and a new key reach the WQE; what is not posted "
                 "is given back") {
  const auto own = umd::ProcessContext::open(kernel->kernel_node()).take();
  auto fast = own->create_fast_mr({.max_pages = 300, .remote_access = true}).take();
  std::vector<std::uint64_t> pages(300);
  for (std::size_t i = 0; i < pages.size(); ++i) pages[i] = 0x7000'0000 + (299 - i) * 4096;
  const FastRange range{.pages = pages,
                        .first_offset = 0x321,
                        .length = 300 * 4096 - 0x321,
                        .base = 0x5'0000'0321,
                        .local_write = true,
                        .remote_write = true};
  const auto before = fast->key();
  REQUIRE(umd::post_fast_register(*core, *fast, range, {.id = 9, .silent = true}).ok());
  CHECK(fast->key() != before);
  CHECK(control(0).opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kFastRegister));
  CHECK(control(0).immediate == fast->key());
  CHECK(control(0).silent == 1);
  CHECK(segment<hw::WqeRange>(0, 1).va == range.base);
  CHECK(segment<hw::WqeRange>(0, 1).length == range.length);
  const auto list = segment<hw::WqeFastRegister>(0, 2);
  CHECK(list.first_offset == 0x321);
  CHECK(list.page_count == 300);
  CHECK(list.log_page == 12);
  CHECK(list.local_write == 1);
  CHECK(list.remote_read == 0);
  CHECK(list.remote_write == 1);
  CHECK(list.remote_atomic == 0);
  CHECK(std::equal(pages.begin(), pages.end(), reinterpret_cast<const std::uint64_t*>(device.pointer(list.page_list))));
  REQUIRE(umd::post_invalidate(*core, fast->key(), {.id = 10, .fence = true}).ok());
  CHECK(control(1).immediate == fast->key());
  CHECK(control(1).fence == 1);
  // Refused by the region, or by the queue: the key stays, and no list is kept.
  auto bad = range;
  bad.first_offset = 0;
  CHECK(umd::post_fast_register(*core, *fast, bad, {}).error() == Error::kInvalidParameter);
  while (core->post_memory({.opcode = hw::WqeOpcode::kLocalInvalidate}).ok()) {
  }
  const auto last = fast->key();
  const auto allocations = device.live_allocations();
  for (int i = 0; i < 200; ++i) CHECK(umd::post_fast_register(*core, *fast, range, {}).error() == Error::kQueueFull);
  CHECK(fast->key() == last);
  CHECK(device.live_allocations() <= allocations + 1);
  // Only queue pairs of the kernel may; an application's are made without.
  CHECK(device.pairs.at(core->qpn()).create.fast_register == 0);
  CHECK(fast->destroy().ok());
}

TEST_CASE_METHOD(WindowFixture,
                 "fast registration: a short page list stands in the request, behind its segments (decisions 68)") {
  const auto own = umd::ProcessContext::open(kernel->kernel_node()).take();
  auto fast = own->create_fast_mr({.max_pages = 300, .remote_access = true}).take();
  const std::uint32_t room = core->inline_pages();
  // As many as stand behind 48 bytes of a slot of at most 256.
  const auto slot = std::size_t{1} << device.pairs.at(core->qpn()).create.sq_log_stride;
  REQUIRE(room == (std::min<std::size_t>(slot, hw::kUarWqeWindowBytes) - 48) / 8);
  std::vector<std::uint64_t> pages;
  std::uint16_t index = 0;
  for (std::uint32_t count = 1; count <= room + 1; ++count) {
    pages.push_back(0x6'0000'0000 + count * 0x5000ULL);
    const FastRange range{.pages = pages, .length = count * 4096ULL, .base = 0x5'0000'0000, .local_write = true};
    REQUIRE(umd::post_fast_register(*core, *fast, range, {.id = 9}).ok());
    const auto wqe = device.send_wqe(core->qpn(), index);
    const auto list = segment<hw::WqeFastRegister>(index, 2);
    const bool inlined = count <= room;
    CHECK(control(index).inline_data == inlined);
    CHECK(control(index).size == (inlined ? 3 + (count + 1) / 2 : 3));
    CHECK(control(index).length == 0);
    CHECK(list.page_count == count);
    CHECK((list.page_list == 0) == inlined);
    if (inlined) CHECK(std::memcmp(wqe.data() + 48, pages.data(), 8 * count) == 0);
    device.finish_send(core->qpn());
    CHECK(result().Status == ND_SUCCESS);
    CHECK(fast->release(fast->key()).ok());
    ++index;
  }
  // What no slot holds is not posted.
  CHECK(core->post_memory({.opcode = hw::WqeOpcode::kFastRegister, .page_count = room + 1, .pages = pages}).error() ==
        Error::kInvalidParameter);
  CHECK(fast->destroy().ok());
}

TEST_CASE_METHOD(WindowFixture, "binds of windows of type 1, deferred, and as completions of their kind") {
  auto mw = core->process()->create_mw({.type = hw::MptType::kWindow1}).take();
  const auto doorbells = device.doorbells.size();
  const auto pushed = device.window.size();
  REQUIRE(umd::post_bind(*core, *mw, {.region_key = 5, .address = 6, .length = 7, .remote_atomic = true},
                         {.id = 1, .defer = true})
              .ok());
  CHECK(device.doorbells.size() == doorbells);
  CHECK(device.window.size() == pushed);
  core->ring_deferred();
  CHECK(control(0).opcode == static_cast<std::uint8_t>(hw::WqeOpcode::kBindWindow1));
  CHECK(segment<hw::WqeBind>(0, 2).mr_key == 5);
  CHECK(segment<hw::WqeBind>(0, 2).remote_atomic == 1);
  device.finish_send(core->qpn(), hw::CqeStatus::kLocProtErr);
  CHECK(result().Status == ND_ACCESS_VIOLATION);  // decisions 14
}
