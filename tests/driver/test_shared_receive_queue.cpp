#include <catch2/catch.hpp>

#include <array>
#include <random>
#include <set>

#include "driver/nd2/shared_receive_queue.hpp"
#include "tests/driver/driver_fixture.hpp"
#include "tests/driver/nd2_fixture.hpp"

using namespace rnic;
using test::DriverFixture;
using test::Nd2Fixture;

namespace {

/// Two queue pairs on one shared receive queue.
struct SharedFixture : DriverFixture {
  explicit SharedFixture(std::uint32_t depth = 5) {
    cq = make_cq();
    srq = umd::SharedReceiveQueue::create(process, depth, 1).take();
    for (auto& qp : qps) {
      qp = umd::QueuePair::create_idle(
               process, {.send_cq = cq, .receive_cq = cq, .shared_receives = srq, .capacity = {8, 0, 4, 0, 64}})
               .take();
    }
  }
  Result<void> post(std::uint64_t id, bool defer = false) {
    const umd::Segment segment{.address = 0x1000 + id, .length = 64, .key = 7};
    return srq->post({.id = id, .segments = std::span(&segment, 1), .defer = defer});
  }
  [[nodiscard]] test::FakeDevice::SharedQueue& queue() { return device.shared_queues.at(srq->srqn()); }
  std::uint16_t take(std::size_t qp) { return device.take_shared(qps[qp]->qpn()); }
  void finish(std::size_t qp, std::uint16_t tag, hw::CqeStatus status = hw::CqeStatus::kSuccess) {
    device.finish_shared(qps[qp]->qpn(), tag, 64, status);
  }

  std::shared_ptr<umd::CompletionQueue> cq;
  std::shared_ptr<umd::SharedReceiveQueue> srq;
  std::array<std::shared_ptr<umd::QueuePair>, 2> qps;
};

struct SrqFixtureWithEvents : Nd2Fixture {
  SrqFixtureWithEvents() { REQUIRE(create(16, 2, 4) == ND_SUCCESS); }
  ~SrqFixtureWithEvents() {
    if (srq != nullptr) srq->Release();
  }
  HRESULT create(ULONG depth, ULONG sges, ULONG threshold) {
    void* object = nullptr;
    const HRESULT status =
        adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, depth, sges, threshold, 0, 0, &object);
    if (status == ND_SUCCESS) {
      if (srq != nullptr) srq->Release();
      srq = static_cast<IND2SharedReceiveQueue*>(object);
    }
    return status;
  }
  [[nodiscard]] std::uint32_t srqn() const { return nd2::SharedReceiveQueue::find(srq)->core()->srqn(); }
  [[nodiscard]] test::FakeDevice::SharedQueue& queue() { return device.shared_queues.at(srqn()); }
  void event(hw::EqeType type) {
    device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = srqn()});
    kernel->node().takers().take_events();
  }
  static HRESULT state(const OVERLAPPED& request) { return static_cast<HRESULT>(request.Internal); }
  IND2SharedReceiveQueue* srq = nullptr;
  std::array<OVERLAPPED, 3> requests{};
};

}  // namespace

TEST_CASE("requests of a shared receive queue finish in any order, each with its own id") {
  SharedFixture f;
  CHECK(f.queue().create.pd == f.process->pd_number());
  CHECK(f.queue().create.uar == f.process->uar());
  CHECK(f.queue().create.log_depth == 3);
  CHECK(f.device.pairs.at(f.qps[0]->qpn()).create.use_srq == 1);
  CHECK(f.device.pairs.at(f.qps[0]->qpn()).create.srqn == f.srq->srqn());
  for (std::uint64_t id = 100; id < 105; ++id) REQUIRE(f.post(id).ok());
  CHECK(f.post(105).error() == Error::kQueueFull);
  CHECK(f.queue().producer == 5);
  const std::array tags{f.take(0), f.take(1), f.take(0), f.take(1), f.take(1)};
  CHECK(std::set(tags.begin(), tags.end()).size() == 5);
  f.finish(1, tags[3]);
  f.finish(0, tags[0], hw::CqeStatus::kWrFlushErr);
  auto got = f.drain(*f.cq);
  REQUIRE(got.size() == 2);
  CHECK((got[0].id == 103 && got[0].qpn == f.qps[1]->qpn() && got[0].kind == umd::RequestKind::kReceive));
  CHECK((got[1].id == 100 && got[1].status == hw::CqeStatus::kWrFlushErr));
  CHECK(f.srq->outstanding() == 3);
  REQUIRE(f.post(105).ok());
  REQUIRE(f.post(106).ok());
  CHECK(f.post(107).error() == Error::kQueueFull);
  // A CQE of no request that is known is dropped: its tag has none, or one beyond.
  f.finish(0, tags[0] == 4 ? 3 : 4);
  f.finish(0, 5000);
  CHECK(f.drain(*f.cq).size() <= 1);
}

TEST_CASE("a full shared receive queue decodes what has arrived before it refuses") {
  SharedFixture f(1);
  REQUIRE(f.post(1).ok());
  f.finish(1, f.take(1));
  REQUIRE(f.post(2).ok());
  const auto got = f.drain(*f.cq);
  REQUIRE(got.size() == 1);
  CHECK(got[0].id == 1);
}

TEST_CASE("a deferred request is rung for with the next one, or by an error") {
  SharedFixture f;
  REQUIRE(f.post(1, true).ok());
  CHECK(f.queue().producer == 0);
  const std::array<umd::Segment, 5> many{};
  CHECK(f.srq->post({.segments = many}).error() == Error::kTooManySegments);
  CHECK(f.queue().producer == 1);
  const std::array<umd::Segment, 2> longest{umd::Segment{.length = 0x7FFFFFFF}, umd::Segment{.length = 2}};
  CHECK(f.srq->post({.segments = longest}).error() == Error::kMessageTooLong);
  REQUIRE(f.post(2, true).ok());
  f.srq->ring_deferred();
  CHECK(f.queue().producer == 2);
}

TEST_CASE("random traffic over a shared receive queue, growing and shrinking on the way") {
  SharedFixture f(3);
  std::mt19937_64 rng(7);
  const auto uniform = [&](std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(rng);
  };
  std::uint64_t next = 0;
  std::vector<std::pair<std::size_t, std::uint16_t>> taken;  // queue pair, tag
  std::set<std::uint64_t> posted, seen;
  for (int i = 0; i < 20000; ++i) {
    switch (uniform(0, 9)) {
      case 0:
      case 1:
      case 2:
      case 3:
        if (auto done = f.post(next); done.ok())
          posted.insert(next++);
        else
          REQUIRE((done.error() == Error::kQueueFull && f.srq->outstanding() == f.srq->depth()));
        break;
      case 4:
      case 5:
      case 6: {
        const std::size_t qp = uniform(0, 1);
        const std::uint16_t tag = f.take(qp);
        if (f.queue().head != f.queue().producer || tag != 0xFFFF)
          REQUIRE(tag != 0xFFFF);  // the ring had it where the device looks
        if (tag != 0xFFFF) taken.emplace_back(qp, tag);
        break;
      }
      case 7:
      case 8:
        if (!taken.empty()) {
          const auto pick = taken.begin() + static_cast<long>(uniform(0, taken.size() - 1));
          f.finish(pick->first, pick->second);
          taken.erase(pick);
          for (const auto& c : f.drain(*f.cq)) REQUIRE(seen.insert(c.id).second);
        }
        break;
      default:
        if (uniform(0, 19) == 0) {
          const auto depth = static_cast<std::uint32_t>(uniform(1, 40));
          const auto outstanding = f.srq->outstanding();
          auto done = f.srq->resize(depth);
          if (outstanding > depth)
            REQUIRE(done.error() == Error::kMessageTooLong);
          else
            REQUIRE((done.ok() && f.srq->depth() == depth));
        }
    }
  }
  CHECK(seen.size() > 2000);
  for (const auto id : seen) REQUIRE(posted.contains(id));
  CHECK(f.queue().create.log_depth == 6);
  CHECK(f.srq->resize(0).error() == Error::kInvalidParameter);
  CHECK(f.srq->resize(32769).error() == Error::kInvalidParameter);
}

TEST_CASE("a ring that the device refuses leaves the shared receive queue as it was") {
  SharedFixture f(4);
  REQUIRE(f.post(1).ok());
  f.device.next_status.push_back(hw::AdminStatus::kBadParameter);
  CHECK(f.srq->resize(100).error() == Error::kInvalidParameter);
  CHECK(f.srq->depth() == 4);
  f.device.dma_allocations_left = 0;
  CHECK(f.srq->resize(100).error() == Error::kOutOfMemory);
  f.finish(0, f.take(0));
  for (std::uint64_t id = 2; id < 6; ++id) REQUIRE(f.post(id).ok());
  CHECK(f.post(6).error() == Error::kQueueFull);
}

TEST_CASE("a shared receive queue goes with its last user; its own memory with it") {
  const auto memory = [](DriverFixture& f) { return f.device.live_allocations(); };
  DriverFixture f;
  auto cq = f.make_cq();
  f.make_qp(cq).reset();  // the pool keeps its page
  const auto before = memory(f);
  auto srq = umd::SharedReceiveQueue::create(f.process, 8, 1).take();
  CHECK(srq->resize(1000).ok());
  auto qp = umd::QueuePair::create_idle(
                f.process, {.send_cq = cq, .receive_cq = cq, .shared_receives = srq, .capacity = {8, 0, 4, 0, 64}})
                .take();
  CHECK(qp->post_receive({}).error() == Error::kNotSupported);
  CHECK(qp->flush().ok());  // idle: RESET and back
  CHECK(srq->kernel_srq().destroy().error() == Error::kBusy);
  srq.reset();
  CHECK(f.device.shared_queues.size() == 1);
  qp.reset();
  CHECK(f.device.shared_queues.empty());
  CHECK(memory(f) == before);
  CHECK(umd::SharedReceiveQueue::create(f.process, 0, 1).error() == Error::kInvalidParameter);
  CHECK(umd::SharedReceiveQueue::create(f.process, 8, 17).error() == Error::kInvalidParameter);
  f.device.next_status.push_back(hw::AdminStatus::kExists);
  CHECK_FALSE(umd::SharedReceiveQueue::create(f.process, 8, 1).ok());
  CHECK(memory(f) == before);
}

TEST_CASE("a queue pair tells the last WQE from a failure") {
  SharedFixture f;
  const auto event = [&](hw::EqeType type) {
    f.device.write_eqe(0, {.event_type = static_cast<std::uint8_t>(type), .number = f.qps[0]->qpn()});
    f.kernel->node().takers().take_events();
  };
  event(hw::EqeType::kLastWqeReached);
  CHECK(f.qps[0]->last_wqe_reached());
  CHECK_FALSE(f.qps[0]->failed());
  event(hw::EqeType::kQpFatal);
  CHECK(f.qps[0]->failed());
  CHECK_FALSE(f.qps[1]->last_wqe_reached());
}

TEST_CASE_METHOD(SrqFixtureWithEvents,
                 "CreateSharedReceiveQueue and CreateQueuePairWithSrq check their arguments in their order") {
  CHECK(create(0, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(create(32769, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(create(8, 17, 0) == ND_INVALID_PARAMETER_4);
  CHECK(create(8, 16, 9) == ND_INVALID_PARAMETER_5);
  CHECK(create(32768, 16, 32768) == ND_SUCCESS);
  void* object = nullptr;
  CHECK(adapter->CreateSharedReceiveQueue(IID_IND2QueuePair, file, 8, 1, 0, 0, 0, &object) == E_NOINTERFACE);
  CHECK(adapter->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, nullptr, 8, 1, 0, 0, 0, &object) ==
        ND_INVALID_HANDLE);
  auto* cq = make_queue();
  const auto pair_with = [&](IUnknown* receive, IUnknown* initiator, IUnknown* shared, ULONG depth, ULONG sges,
                             ULONG bytes) {
    return adapter->CreateQueuePairWithSrq(IID_IND2QueuePair, receive, initiator, shared, this, depth, sges, bytes,
                                           &object);
  };
  CHECK(pair_with(nullptr, cq, srq, 8, 1, 0) == ND_INVALID_PARAMETER_2);
  CHECK(pair_with(cq, srq, srq, 8, 1, 0) == ND_INVALID_PARAMETER_3);
  CHECK(pair_with(cq, cq, cq, 8, 1, 0) == ND_INVALID_PARAMETER_4);
  CHECK(pair_with(cq, cq, srq, 32769, 1, 0) == ND_INVALID_PARAMETER_6);
  CHECK(pair_with(cq, cq, srq, 8, 17, 0) == ND_INVALID_PARAMETER_7);
  CHECK(pair_with(cq, cq, srq, 8, 1, 225) == ND_INVALID_PARAMETER_8);
  // An SRQ of another adapter is another process's.
  void* other = nullptr;
  REQUIRE(nd2::open_adapter(kernel->node(), addresses, IID_IND2Adapter, &other) == ND_SUCCESS);
  void* foreign = nullptr;
  REQUIRE(static_cast<IND2Adapter*>(other)->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 0, 0, 0,
                                                                     &foreign) == ND_SUCCESS);
  CHECK(pair_with(cq, cq, static_cast<IUnknown*>(static_cast<IND2SharedReceiveQueue*>(foreign)), 8, 1, 0) ==
        ND_INVALID_PARAMETER_4);
  static_cast<IND2SharedReceiveQueue*>(foreign)->Release();
  static_cast<IND2Adapter*>(other)->Release();
  REQUIRE(pair_with(cq, cq, srq, 8, 1, 0) == ND_SUCCESS);
  // The SRQ may go before its queue pair.
  CHECK(srq->Release() == 0);
  srq = nullptr;
  CHECK(device.shared_queues.size() == 1);
  CHECK(static_cast<IND2QueuePair*>(object)->Receive(nullptr, nullptr, 0) == ND_NOT_SUPPORTED);
  CHECK(static_cast<IND2QueuePair*>(object)->Release() == 0);
  CHECK(device.shared_queues.empty());
  cq->Release();
}

TEST_CASE_METHOD(SrqFixtureWithEvents, "a device without shared receive queues says so") {
  srq->Release();
  srq = nullptr;
  test::FakeDevice plain;
  plain.capabilities.log_max_srq_depth = 0;
  auto other = kmd::KernelDevice::open(plain).take();
  void* object = nullptr;
  REQUIRE(nd2::open_adapter(other->node(), addresses, IID_IND2Adapter, &object) == ND_SUCCESS);
  auto* bare = static_cast<IND2Adapter*>(object);
  ND2_ADAPTER_INFO info{};
  info.InfoVersion = ND_VERSION_2;
  ULONG size = sizeof info;
  REQUIRE(bare->Query(&info, &size) == ND_SUCCESS);
  CHECK(info.MaxSharedReceiveQueueDepth == 0);
  CHECK(bare->CreateSharedReceiveQueue(IID_IND2SharedReceiveQueue, file, 8, 1, 0, 0, 0, &object) == ND_NOT_SUPPORTED);
  CHECK(bare->CreateQueuePairWithSrq(IID_IND2QueuePair, nullptr, nullptr, nullptr, nullptr, 1, 1, 0, &object) ==
        ND_NOT_SUPPORTED);
  bare->Release();
}

TEST_CASE_METHOD(SrqFixtureWithEvents, "Receive answers as the interface says") {
  std::array<ND2_SGE, 6> list{};
  CHECK(srq->Receive(nullptr, nullptr, 1) == ND_INVALID_PARAMETER_2);
  CHECK(srq->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  CHECK(srq->Receive(nullptr, list.data(), 4) == ND_SUCCESS);
  CHECK(srq->Receive(nullptr, list.data(), 5) == ND_DATA_OVERRUN);
  list[0].BufferLength = 0x80000001;
  CHECK(srq->Receive(nullptr, list.data(), 1) == ND_BUFFER_OVERFLOW);
  for (int i = 2; i < 16; ++i) REQUIRE(srq->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  CHECK(srq->Receive(nullptr, nullptr, 0) == ND_NO_MORE_ENTRIES);
  CHECK(srq->Modify(15, 0) == ND_BUFFER_OVERFLOW);
  CHECK(srq->Modify(17, 0) == ND_SUCCESS);
  CHECK(srq->Receive(nullptr, nullptr, 0) == ND_SUCCESS);
  CHECK(srq->Receive(nullptr, nullptr, 0) == ND_NO_MORE_ENTRIES);
  CHECK(srq->Modify(32769, 0) == ND_INVALID_PARAMETER);
  CHECK(srq->Modify(0, 18) == ND_INVALID_PARAMETER);
  CHECK(srq->Modify(0, 17) == ND_SUCCESS);
  USHORT group = 7;
  KAFFINITY affinity = 7;
  CHECK(srq->GetNotifyAffinity(&group, &affinity) == ND_SUCCESS);
  CHECK((group == 0 && affinity == 1));
  CHECK(srq->GetNotifyAffinity(nullptr, &affinity) == ND_INVALID_PARAMETER);
}

TEST_CASE_METHOD(SrqFixtureWithEvents, "the limit event completes every pending Notify of the queue, once") {
  CHECK(queue().create.limit == 0);
  CHECK(srq->Notify(&requests[0]) == ND_PENDING);
  CHECK(srq->Notify(&requests[1]) == ND_PENDING);
  CHECK(queue().create.limit == 4);
  CHECK(state(requests[0]) == ND_PENDING);
  event(hw::EqeType::kSrqLimit);
  CHECK(srq->GetOverlappedResult(&requests[0], FALSE) == ND_SUCCESS);
  CHECK(srq->GetOverlappedResult(&requests[1], FALSE) == ND_SUCCESS);
  CHECK(srq->Notify(&requests[2]) == ND_PENDING);
  CHECK(state(requests[2]) == ND_PENDING);
  CHECK(srq->Modify(0, 9) == ND_SUCCESS);  // while it is pending: armed anew
  CHECK(queue().create.limit == 9);
  CHECK(srq->Modify(0, 0) == ND_SUCCESS);  // keeps what there is
  event(hw::EqeType::kSrqLimit);
  queue().create.limit = 0;
  CHECK(srq->Notify(&requests[2]) == ND_PENDING);
  CHECK(queue().create.limit == 9);
  CHECK(srq->CancelOverlappedRequests() == ND_SUCCESS);
  CHECK(state(requests[2]) == ND_CANCELED);
  event(hw::EqeType::kSrqLimit);  // finds nobody
  CHECK(srq->Notify(nullptr) == ND_INVALID_PARAMETER);
  CHECK(srq->Notify(&requests[0]) == ND_PENDING);
  device.next_status.push_back(hw::AdminStatus::kBadNumber);
  CHECK(srq->Notify(&requests[1]) == ND_PENDING);
  CHECK(state(requests[0]) == ND_INVALID_HANDLE);  // the device could not be armed
  CHECK(srq->Notify(&requests[0]) == ND_PENDING);
  CHECK(srq->Release() == 0);
  srq = nullptr;
  CHECK(state(requests[0]) == ND_CANCELED);
}

TEST_CASE_METHOD(SrqFixtureWithEvents,
                 "an error of the queue completes every Notify, now and later; threshold 0 waits for nothing else") {
  REQUIRE(create(8, 1, 0) == ND_SUCCESS);
  device.commands.clear();
  CHECK(srq->Notify(&requests[0]) == ND_PENDING);
  CHECK(device.commands.empty());
  event(hw::EqeType::kSrqError);
  CHECK(state(requests[0]) == ND_INTERNAL_ERROR);
  CHECK(srq->Notify(&requests[1]) == ND_INTERNAL_ERROR);
}

TEST_CASE("datagram queue pairs may share receives, those of an unreliable connection may not") {
  DriverFixture f;
  const auto cq = f.make_cq();
  const auto srq = umd::SharedReceiveQueue::create(f.process, 8, 2).take();
  umd::QueuePair::Spec spec{
      .send_cq = cq, .receive_cq = cq, .shared_receives = srq, .type = hw::QpType::kUd, .capacity = {8, 0, 4, 0, 64}};
  const auto qp = umd::QueuePair::create_idle(f.process, spec).take();
  CHECK(f.device.pairs.at(qp->qpn()).create.use_srq == 1);
  f.device.commands.clear();
  spec.type = hw::QpType::kUc;
  CHECK(umd::QueuePair::create_idle(f.process, spec).error() == Error::kNotSupported);
  CHECK(f.device.commands.empty());
}
