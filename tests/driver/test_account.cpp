#include <catch2/catch.hpp>

#include <array>
#include <memory>

#include "driver/kmd/kernel_device.hpp"
#include "driver/kmd/local_node.hpp"
#include "tests/driver/fake_device.hpp"

using namespace rnic;
using calls::Handle;
using calls::ObjectKind;
using kmd::Account;
using test::FakeDevice;

// What clients may have of what they share: docs/kernel_calls.md, 6.

namespace {

constexpr kmd::Gid group(std::uint8_t number) { return {0xFF, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number}; }

struct AccountFixture {
  static constexpr std::size_t kPage = 4096;

  std::unique_ptr<kmd::LocalPort> open(const std::shared_ptr<Account>& account) {
    return std::make_unique<kmd::LocalPort>(*kernel, kmd::Client::create(*kernel, false, {}, account).take());
  }
  /// With its UAR and a protection domain.
  std::unique_ptr<kmd::LocalPort> ready(const std::shared_ptr<Account>& account) {
    auto port = open(account);
    REQUIRE(port->call(calls::OpenContext{}).ok());
    pd = port->call(calls::AllocPd{}).take().pd;
    return port;
  }
  Result<calls::RegisterMr::Answer> region(KernelPort& of, std::size_t offset, std::size_t length) {
    const std::uint64_t at = reinterpret_cast<std::uintptr_t>(memory.data()) + offset;
    return of.call(calls::RegisterMr{.address = at, .length = length, .iova = at, .pd = pd, .local_write = 1});
  }
  static Result<calls::Destroy::Answer> destroy(KernelPort& of, Handle handle, ObjectKind kind) {
    return of.call(calls::Destroy{.object = handle, .kind = static_cast<std::uint8_t>(kind), .when_unbound = 1});
  }
  Result<calls::CreateQp::Answer> datagram_qp(KernelPort& of, Handle cq) {
    return of.call(calls::CreateQp{.pd = pd,
                                   .send_cq = cq,
                                   .receive_cq = cq,
                                   .type = static_cast<std::uint8_t>(hw::QpType::kUd),
                                   .sq_log_depth = 3,
                                   .sq_log_stride = 7,
                                   .rq_log_depth = 3,
                                   .rq_log_stride = 6});
  }

  FakeDevice device;
  alignas(4096) std::array<std::uint8_t, 4 * kPage> memory{};
  std::unique_ptr<kmd::KernelDevice> kernel = kmd::KernelDevice::open(device, {.mac = 0x0200'0000'0001}).take();
  Handle pd{};
};

}  // namespace

TEST_CASE_METHOD(AccountFixture, "registered pages are counted, and no more than may be") {
  kmd::Quota quota;
  quota.pinned_bytes = 3 * kPage;
  const auto account = std::make_shared<Account>(quota);
  const auto pinned = [&] { return account->used(Account::Of::kPinnedBytes); };
  auto port = ready(account);
  // Two bytes may be in two pages.
  const auto first = region(*port, kPage - 1, 2);
  REQUIRE(first.ok());
  CHECK(pinned() == 2 * kPage);
  CHECK(region(*port, 0, kPage + 1).error() == Error::kOutOfMemory);
  CHECK(pinned() == 2 * kPage);
  const auto second = region(*port, 0, kPage);
  REQUIRE(second.ok());
  CHECK(region(*port, 0, 1).error() == Error::kOutOfMemory);
  // Registered anew, both regions are there for a moment; what is refused changes nothing.
  CHECK(port->call(calls::ReregisterMr{.mr = second->mr, .change_access = 1}).error() == Error::kOutOfMemory);
  CHECK(pinned() == 3 * kPage);
  REQUIRE(destroy(*port, first->mr, ObjectKind::kMr).ok());
  CHECK(pinned() == kPage);
  CHECK(port->call(calls::ReregisterMr{.mr = second->mr, .change_access = 1}).ok());
  CHECK(pinned() == kPage);
  // What the device refuses costs nothing.
  CHECK_FALSE(port->call(calls::RegisterMr{.address = 16, .length = ~0ULL - 64, .iova = 16, .pd = pd}).ok());
  CHECK(pinned() == kPage);
  port.reset();
  CHECK(pinned() == 0);
}

TEST_CASE_METHOD(AccountFixture, "bytes of rings are counted, those of old rings too") {
  kmd::Quota quota;
  quota.ring_bytes = 16 * kPage;
  const auto account = std::make_shared<Account>(quota);
  const auto rings = [&] { return account->used(Account::Of::kRingBytes); };
  auto port = ready(account);
  const auto cq = port->call(calls::CreateCq{.entries = 64});  // 64 bytes each
  REQUIRE(cq.ok());
  CHECK(rings() == kPage);
  CHECK(port->call(calls::CreateCq{.entries = 1024}).error() == Error::kOutOfMemory);
  CHECK(port->call(calls::ResizeCq{.cq = cq->cq, .entries = 1024}).error() == Error::kOutOfMemory);
  CHECK(rings() == kPage);
  REQUIRE(port->call(calls::ResizeCq{.cq = cq->cq, .entries = 256}).ok());
  CHECK(rings() == 5 * kPage);
  REQUIRE(port->call(calls::AdoptCqRing{.cq = cq->cq}).ok());
  CHECK(rings() == 5 * kPage);  // the device may still have the old one
  // 1 KiB and 512 bytes, and a record, in pages of its own.
  const auto qp = datagram_qp(*port, cq->cq);
  REQUIRE(qp.ok());
  CHECK(rings() == 7 * kPage);
  const auto srq = port->call(calls::CreateSrq{.pd = pd, .log_depth = 8, .log_stride = 6});
  REQUIRE(srq.ok());
  CHECK(rings() == 11 * kPage);
  CHECK(port->call(calls::PrepareSrqRing{.srq = srq->srq, .log_depth = 10}).error() == Error::kOutOfMemory);
  CHECK(port->call(calls::CreateSrq{.pd = pd, .log_depth = 9, .log_stride = 6}).error() == Error::kOutOfMemory);
  const std::size_t before = rings();
  const auto list = region(*port, 0, 1);
  REQUIRE(list.ok());
  CHECK(rings() == before + 8);
  // Another client's memory is counted for itself.
  const auto other = ready(std::make_shared<Account>(quota));
  CHECK(other->call(calls::CreateCq{.entries = 1024}).ok());
  port.reset();
  CHECK(rings() == 0);
}

TEST_CASE_METHOD(AccountFixture, "the groups of a client are counted, and left when it goes") {
  kmd::Quota quota;
  quota.multicast_groups = 2;
  const auto account = std::make_shared<Account>(quota);
  auto port = ready(account);
  const auto cq = port->call(calls::CreateCq{.entries = 64}).take().cq;
  const auto a = datagram_qp(*port, cq).take().qp, b = datagram_qp(*port, cq).take().qp;
  const auto attach = [&](Handle qp, std::uint8_t number) {
    return port->call(calls::AttachMulticast{.gid = group(number), .qp = qp});
  };
  const auto detach = [&](Handle qp, std::uint8_t number) {
    return port->call(calls::DetachMulticast{.gid = group(number), .qp = qp});
  };
  REQUIRE(attach(a, 1).ok());
  REQUIRE(attach(b, 1).ok());
  REQUIRE(attach(a, 2).ok());
  CHECK(account->multicast_groups() == 2);
  CHECK(attach(a, 3).error() == Error::kOutOfResources);
  CHECK(attach(a, 1).error() == Error::kExists);
  CHECK(account->multicast_groups() == 2);
  CHECK(device.multicast_groups.size() == 2);
  REQUIRE(detach(a, 1).ok());
  CHECK(detach(a, 1).error() == Error::kNotFound);
  CHECK(attach(a, 3).error() == Error::kOutOfResources);  // the other queue pair is in group 1
  REQUIRE(detach(b, 1).ok());
  CHECK(attach(a, 3).ok());
  CHECK(destroy(*port, a, ObjectKind::kQp).ok());
  CHECK(account->multicast_groups() == 0);
  REQUIRE(attach(b, 7).ok());
  port.reset();
  CHECK(account->multicast_groups() == 0);
  CHECK(device.multicast_groups.empty());
}

TEST_CASE_METHOD(AccountFixture, "clients with one account have no more queue pairs in a group than it allows") {
  kmd::Quota quota;
  quota.group_members = 2;
  const auto account = std::make_shared<Account>(quota);
  auto first = ready(account), second = ready(account), other = ready(std::make_shared<Account>(quota));
  const auto qp_of = [&](KernelPort& port) {
    const auto cq = port.call(calls::CreateCq{.entries = 64}).take().cq;
    return datagram_qp(port, cq).take().qp;
  };
  const auto attach = [&](KernelPort& port, Handle qp, std::uint8_t number) {
    return port.call(calls::AttachMulticast{.gid = group(number), .qp = qp});
  };
  const auto detach = [&](KernelPort& port, Handle qp, std::uint8_t number) {
    return port.call(calls::DetachMulticast{.gid = group(number), .qp = qp});
  };
  const auto a = qp_of(*first), b = qp_of(*first), c = qp_of(*second), d = qp_of(*other);
  REQUIRE(attach(*first, a, 1).ok());
  REQUIRE(attach(*second, c, 1).ok());
  CHECK(attach(*first, b, 1).error() == Error::kOutOfResources);
  CHECK(attach(*first, a, 1).error() == Error::kExists);
  CHECK(device.multicast_groups.at(group(1)).size() == 2);
  // Of each group, and of each account.
  CHECK(attach(*first, b, 2).ok());
  CHECK(attach(*other, d, 1).ok());
  // One that leaves makes room, and so does one that goes.
  REQUIRE(detach(*first, a, 1).ok());
  CHECK(attach(*first, b, 1).ok());
  CHECK(attach(*first, a, 1).error() == Error::kOutOfResources);
  second.reset();
  CHECK(attach(*first, a, 1).ok());
}

TEST_CASE_METHOD(AccountFixture, "clients with one account have together what it allows") {
  kmd::Quota quota;
  quota.contexts = 2;
  quota.objects[static_cast<std::size_t>(ObjectKind::kCq) - 1] = 3;
  const auto account = std::make_shared<Account>(quota);
  auto first = ready(account);
  auto second = ready(account);
  CHECK(open(account)->call(calls::OpenContext{}).error() == Error::kOutOfResources);
  CHECK(account->used(Account::Of::kContexts) == 2);
  CHECK(ready(std::make_shared<Account>(quota)) != nullptr);
  const auto create = [](KernelPort& of) { return of.call(calls::CreateCq{.entries = 8}); };
  CHECK(create(*first).ok());
  CHECK(create(*first).ok());
  CHECK(create(*second).ok());
  CHECK(create(*second).error() == Error::kOutOfResources);
  first.reset();
  CHECK(account->used(Account::Of::kContexts) == 1);
  CHECK(create(*second).ok());
  CHECK(create(*second).ok());
  CHECK(create(*second).error() == Error::kOutOfResources);
}
