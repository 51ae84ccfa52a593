#include <catch2/catch.hpp>

#include <bit>
#include <set>

#include "tests/driver/nd2_fixture.hpp"

// Expectations: section 6 of the interface reference (what can't be had is silently ignored), issue: an event queue a
// processor.

using namespace rnic;
using test::FakeDevice;

namespace {

struct AffinityFixture {
  explicit AffinityFixture(std::uint32_t processors = 4) {
    kernel = kmd::KernelDevice::open(device, {.mac = 2, .event_queues = processors}).take();
    void* object = nullptr;
    nd2::open_adapter(kernel->node(), {}, IID_IND2Adapter, &object);
    adapter = static_cast<IND2Adapter*>(object);
    adapter->CreateOverlappedFile(&file);
  }
  ~AffinityFixture() {
    adapter->Release();
    nd2::close_handle(file);
  }
  /// What the queue says of itself, behind the event queue that the device was told.
  std::pair<KAFFINITY, std::uint32_t> queue(USHORT group, KAFFINITY affinity) {
    void* object = nullptr;
    REQUIRE(adapter->CreateCompletionQueue(IID_IND2CompletionQueue, file, 8, group, affinity, &object) == ND_SUCCESS);
    return look(*static_cast<IND2CompletionQueue*>(object), device.completion_queues.begin()->second.eqn);
  }
  std::pair<KAFFINITY, std::uint32_t> shared(USHORT group, KAFFINITY affinity) {
    void* object = nullptr;
    REQUIRE(adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 1, group, affinity, &object) ==
            ND_SUCCESS);
    return look(*static_cast<IND2SharedReceiveQueue*>(object), device.shared_queues.begin()->second.create.eqn);
  }
  template <typename Interface>
  static std::pair<KAFFINITY, std::uint32_t> look(Interface& object, std::uint32_t eqn) {
    USHORT group = 9;
    KAFFINITY affinity = 9;
    CHECK(object.GetNotifyAffinity(&group, &affinity) == ND_SUCCESS);
    CHECK(group == 0);
    object.Release();
    return {affinity, eqn};
  }
  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  IND2Adapter* adapter{};
  HANDLE file{};
};

}  // namespace

TEST_CASE_METHOD(AffinityFixture, "an affinity chooses the event queue, and is told back") {
  for (std::uint32_t processor = 0; processor < 4; ++processor) {
    const KAFFINITY mask = KAFFINITY{1} << processor;
    CHECK(queue(0, mask) == std::pair(mask, processor));
    CHECK(shared(0, mask) == std::pair(mask, processor));
  }
}

TEST_CASE_METHOD(AffinityFixture, "of several processors each is chosen in turn") {
  std::set<std::uint32_t> chosen;
  for (int i = 0; i < 8; ++i) {
    const auto [mask, eqn] = queue(0, 0b1010);
    CHECK(mask == KAFFINITY{1} << eqn);
    chosen.insert(eqn);
  }
  CHECK(chosen == std::set<std::uint32_t>{1, 3});
}

TEST_CASE_METHOD(AffinityFixture,
                 "without an affinity, or with one that can't be had, any event queue serves, and is told") {
  std::set<std::uint32_t> chosen;
  for (const KAFFINITY mask : {KAFFINITY{0}, KAFFINITY{0xF0}, ~KAFFINITY{0} << 4}) {
    for (int i = 0; i < 4; ++i) {
      const auto [told, eqn] = queue(0, mask);
      CHECK(told == KAFFINITY{1} << eqn);  // of that which was chosen
      chosen.insert(eqn);
    }
  }
  CHECK(chosen.size() == 4);
  const auto [told, eqn] = queue(1, 0b1);  // there is no such group
  CHECK(told == KAFFINITY{1} << eqn);
}
