#include "testbench/tool/bench_nd2.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <cstring>
#include <vector>

#include "driver/ndk/queue_pair.hpp"
#include "testbench/management_thread.hpp"
#include "testbench/ndk_host.hpp"
#include "testbench/tool/bench_pairs.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kLoadNs = 5;  ///< Between two looks at a completion queue
constexpr double kNsPerSecond = 1e9;

/// The next result, which must be a success, by polls alone.
void take_one(Endpoint& endpoint, IND2CompletionQueue& cq, const char* what) {
  ND2_RESULT result{};
  auto& device = endpoint.host().device();
  for (auto look = device.look(); cq.GetResults(&result, 1) == 0; look = device.look())
    device.look_again(look, kLoadNs);
  require_success(result.Status, what);
}

void post_receive(Pairs::Side& side) {
  const ND2_SGE sge{side.buffer, 8, side.region->GetLocalToken()};
  require_success(side.qps[0]->Receive(nullptr, &sge, 1), "IND2QueuePair::Receive");
}

void send_word(Pairs::Side& side, std::uint64_t value) {
  const ND2_SGE sge{&value, sizeof value, 0};
  require_success(side.qps[0]->Send(nullptr, &sge, 1, ND_OP_FLAG_INLINE | ND_OP_FLAG_SILENT_SUCCESS),
                  "IND2QueuePair::Send");
}

/// An OVERLAPPED with an event, for one call after the other.
class EventCall {
 public:
  explicit EventCall(Endpoint& endpoint) : endpoint_(endpoint), overlapped_(endpoint.open_event()) {}
  ~EventCall() { Endpoint::close_event(overlapped_); }
  EventCall(const EventCall&) = delete;
  EventCall& operator=(const EventCall&) = delete;
  OVERLAPPED* get() { return &overlapped_; }
  void finish(IND2Overlapped& object, HRESULT status, const char* what) {
    require_success(endpoint_.finish(object, overlapped_, status), what);
  }

 private:
  Endpoint& endpoint_;
  OVERLAPPED overlapped_;
};

constexpr std::uint16_t kPort = 9000;

sockaddr_in address(Endpoint& endpoint, std::uint16_t port) {
  sockaddr_in made{};
  made.sin_family = AF_INET;
  made.sin_port = htons(port);
  // The IPv4 address is the end of the mapped one.
  const auto mapped = ip_of(endpoint, false);
  std::memcpy(&made.sin_addr, mapped.data() + 12, sizeof made.sin_addr);
  return made;
}
const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

/// One side of connections.
struct Caller {
  explicit Caller(Endpoint& at) : endpoint(at), cq(at.create_cq(16)), first(at), second(at) {}
  ComPtr<IND2Connector> make_connector() {
    ComPtr<IND2Connector> made;
    require_success(endpoint.adapter().CreateConnector(IID_IND2Connector, endpoint.file(), made.put()),
                    "IND2Adapter::CreateConnector");
    return made;
  }
  ComPtr<IND2QueuePair> make_qp() { return endpoint.create_qp(*cq, *cq, {4, 4, 1, 1, 0, nullptr}); }

  Endpoint& endpoint;
  ComPtr<IND2CompletionQueue> cq;
  EventCall first, second;
};

/// One connection from its objects' making to their end.
void connect_and_part(Caller& a, Caller& b, IND2Listener& listener) {
  const auto qp_a = a.make_qp(), qp_b = b.make_qp();
  const auto from = a.make_connector(), to = b.make_connector();
  const auto own = address(a.endpoint, 0), peer = address(b.endpoint, kPort);
  require_success(from->Bind(generic(own), sizeof own), "IND2Connector::Bind");
  const HRESULT incoming = listener.GetConnectionRequest(to.get(), b.first.get());
  const HRESULT asked = from->Connect(qp_a.get(), generic(peer), sizeof peer, 1, 1, nullptr, 0, a.first.get());
  b.first.finish(listener, incoming, "IND2Listener::GetConnectionRequest");
  const HRESULT accepted = to->Accept(qp_b.get(), 1, 1, nullptr, 0, b.first.get());
  a.first.finish(*from, asked, "IND2Connector::Connect");
  a.first.finish(*from, from->CompleteConnect(a.first.get()), "IND2Connector::CompleteConnect");
  b.first.finish(*to, accepted, "IND2Connector::Accept");
  const HRESULT told = to->NotifyDisconnect(b.second.get());
  a.first.finish(*from, from->Disconnect(a.first.get()), "IND2Connector::Disconnect");
  b.second.finish(*to, told, "IND2Connector::NotifyDisconnect");
  b.first.finish(*to, to->Disconnect(b.first.get()), "IND2Connector::Disconnect");
}

/// Both hosts brought up, in a thread of simulated time. A host that waits for an answer is patient.
void with_hosts(World& world, WorldOptions options, const std::function<void(Endpoint&, Endpoint&)>& body) {
  constexpr std::uint64_t kPatienceNs = 30'000'000'000;
  options.hang_ns = kPatienceNs;
  world.reset(options);
  world.add_app(0, "nd2", [&](Host& host) {
    Endpoint a(host), b(world.host(1));
    body(a, b);
  });
  world.run(kPatienceNs);
}

/// Objects of the kernel interface on one queue pair.
class FastRegions {
 public:
  static constexpr ULONG kPages = 16, kRegions = 8, kBytes = kPages * PAGE_SIZE;

  FastRegions(Endpoint& endpoint, Endpoint& peer, IND2QueuePair& peer_qp)
      : host_(endpoint), memory_(static_cast<std::uint8_t*>(endpoint.host().memory().allocate(kBytes))) {
    NDK_ADAPTER* const a = host_.adapter();
    pd_ = host_.make<NDK_PD>([&](auto cb, auto ctx, auto out) { return a->Dispatch->NdkCreatePd(a, cb, ctx, out); });
    cq_ = host_.make<NDK_CQ>([&](auto cb, auto ctx, auto out) {
      return a->Dispatch->NdkCreateCq(
          a, 4 * kRegions, [](PVOID, NTSTATUS) {}, nullptr, nullptr, cb, ctx, out);
    });
    qp_ = host_.make<NDK_QP>([&](auto cb, auto ctx, auto out) {
      return pd_->Dispatch->NdkCreateQp(pd_, cq_, cq_, nullptr, 4, 4 * kRegions, 1, 1, 0, cb, ctx, out);
    });
    for (auto& mr : regions_) {
      mr = host_.make<NDK_MR>(
          [&](auto cb, auto ctx, auto out) { return pd_->Dispatch->NdkCreateMr(pd_, TRUE, cb, ctx, out); });
      require_success(host_.finish([&](auto cb, auto ctx) {
        return mr->Dispatch->NdkInitializeFastRegisterMr(mr, kPages, TRUE, cb, ctx);
      }),
                      "NdkInitializeFastRegisterMr");
    }
    connect_pair(endpoint, *ndk::QueuePair::of(qp_).core(), peer, core_of(peer_qp), {});
    MDL mdl = mdl_of(memory_, kBytes);
    ULONG size = 0;
    static_cast<void>(a->Dispatch->NdkBuildLAM(
        a, &mdl, kBytes, [](PVOID, NTSTATUS) {}, nullptr, nullptr, &size, &fbo_));
    lam_.resize(size);
    require_success(host_.finish([&](auto cb, auto ctx) {
      return a->Dispatch->NdkBuildLAM(a, &mdl, kBytes, cb, ctx, lam(), &size, &fbo_);
    }),
                    "NdkBuildLAM");
  }
  ~FastRegions() {
    host_.adapter()->Dispatch->NdkReleaseLAM(host_.adapter(), lam());
    host_.close(qp_);
    for (auto* mr : regions_) host_.close(mr);
    host_.close(cq_);
    host_.close(pd_);
  }
  FastRegions(const FastRegions&) = delete;
  FastRegions& operator=(const FastRegions&) = delete;

  /// Registers and invalidates `count` times; nanoseconds.
  std::uint64_t run(unsigned count) {
    auto& device = host_.endpoint().device();
    const std::uint64_t begin = device.now_ns();
    unsigned posted = 0;
    for (; posted < kRegions; ++posted) post(*regions_[posted]);
    for (unsigned done = 0; done < count;) {
      const auto look = host_.endpoint().host().device().look();
      NDK_RESULT_EX result{};
      if (cq_->Dispatch->NdkGetCqResultsEx(cq_, &result, 1) == 0) {
        host_.endpoint().host().device().look_again(look, kLoadNs);
        continue;
      }
      require_success(result.Status, "NdkInvalidate");
      ++done;
      if (posted == count) continue;
      post(*static_cast<NDK_MR*>(result.RequestContext));
      ++posted;
    }
    return device.now_ns() - begin;
  }

 private:
  NDK_LOGICAL_ADDRESS_MAPPING* lam() { return reinterpret_cast<NDK_LOGICAL_ADDRESS_MAPPING*>(lam_.data()); }
  void post(NDK_MR& mr) {
    require_success(
        qp_->Dispatch->NdkFastRegister(qp_, &mr, &mr, lam()->AdapterPageCount, lam()->AdapterPageArray, fbo_, kBytes,
                                       memory_, NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_SILENT_SUCCESS),
        "NdkFastRegister");
    require_success(qp_->Dispatch->NdkInvalidate(qp_, &mr, &mr.Header, 0), "NdkInvalidate");
  }

  NdkHost host_;
  std::uint8_t* const memory_;
  NDK_PD* pd_ = nullptr;
  NDK_CQ* cq_ = nullptr;
  NDK_QP* qp_ = nullptr;
  std::array<NDK_MR*, kRegions> regions_{};
  std::vector<std::byte> lam_;
  ULONG fbo_ = 0;
};

}  // namespace

double send_half_round_trip(World& world, const WorldOptions& options) {
  constexpr std::uint64_t kRounds = 50;
  std::uint64_t nanoseconds = 0;
  with_pairs(world, options, 1, 1, 64, 8, 0, [&](Pairs& pairs) {
    for (std::size_t h = 0; h < 2; ++h) post_receive(pairs.side(h));
    const auto answer = [&](std::size_t h) {
      auto& side = pairs.side(h);
      take_one(*side.endpoint, *side.cqs[0], "a Send of the benchmark");
      post_receive(side);
    };
    world.add_app(0, "ping", [&, answer](Host& host) {
      const std::uint64_t start = host.device().now_ns();
      for (std::uint64_t i = 1; i <= kRounds; ++i) {
        send_word(pairs.side(0), i);
        answer(0);
      }
      nanoseconds = host.device().now_ns() - start;
    });
    world.add_app(1, "pong", [&, answer](Host&) {
      for (std::uint64_t i = 1; i <= kRounds; ++i) {
        answer(1);
        send_word(pairs.side(1), i);
      }
    });
  });
  return static_cast<double>(nanoseconds) / (2.0 * kRounds);
}

double registration_rate(World& world, const WorldOptions& options) {
  constexpr unsigned kCount = 64;
  constexpr std::size_t kBytes = 64 << 10;
  std::uint64_t nanoseconds = 0;
  with_hosts(world, options, [&](Endpoint& a, Endpoint&) {
    const void* const memory = a.host().memory().allocate(kBytes);
    const auto region = a.create_region();
    EventCall request(a);
    const std::uint64_t begin = a.device().now_ns();
    for (unsigned i = 0; i < kCount; ++i) {
      request.finish(
          *region,
          region->Register(memory, kBytes, ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE, request.get()),
          "IND2MemoryRegion::Register");
      request.finish(*region, region->Deregister(request.get()), "IND2MemoryRegion::Deregister");
    }
    nanoseconds = a.device().now_ns() - begin;
  });
  return kCount * kNsPerSecond / static_cast<double>(nanoseconds);
}

double fast_registration_rate(World& world, const WorldOptions& options) {
  constexpr unsigned kCount = 512;
  std::uint64_t nanoseconds = 0;
  with_hosts(world, options, [&](Endpoint& a, Endpoint& b) {
    const auto cq = b.create_cq(16);
    const auto qp = b.create_qp(*cq, *cq, {4, 4, 1, 1, 0, nullptr});
    nanoseconds = FastRegions(a, b, *qp).run(kCount);
  });
  return kCount * kNsPerSecond / static_cast<double>(nanoseconds);
}

double connection_rate(World& world, const WorldOptions& options) {
  constexpr unsigned kCount = 50;
  std::uint64_t nanoseconds = 0;
  with_hosts(world, options, [&](Endpoint& a, Endpoint& b) {
    require_success(a.kernel().port_tables().add_neighbour(ip_of(b, false), mac_of(b)), "a neighbour");
    require_success(b.kernel().port_tables().add_neighbour(ip_of(a, false), mac_of(a)), "a neighbour");
    const ManagementThread of_a(a.kernel(), a.host().device()), of_b(b.kernel(), b.host().device());
    Caller caller(a), callee(b);
    ComPtr<IND2Listener> listener;
    require_success(b.adapter().CreateListener(IID_IND2Listener, b.file(), listener.put()),
                    "IND2Adapter::CreateListener");
    const auto own = address(b, kPort);
    require_success(listener->Bind(generic(own), sizeof own), "IND2Listener::Bind");
    require_success(listener->Listen(0), "IND2Listener::Listen");
    const std::uint64_t begin = a.device().now_ns();
    for (unsigned i = 0; i < kCount; ++i) connect_and_part(caller, callee, *listener);
    nanoseconds = a.device().now_ns() - begin;
  });
  return kCount * kNsPerSecond / static_cast<double>(nanoseconds);
}

}  // namespace rnic::testbench
