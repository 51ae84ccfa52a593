// Every wrong access, local and remote, at the first and at the last packet of a message, through the driver and over
// the wire. InfiniBand specification volume 1: 10.6 (memory management), 9.7.4.1.5 and 9.7.5.2.4 (R_Key, remote access
// errors), 11.6.2 (completion status). What must hold, whatever was wrong: the request fails with its status, no byte
// outside what was granted changes, none leaves its host, no DMA misses what the IOMMU maps, and other queue pairs go
// on.
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <ostream>
#include <string>

#include "driver/nd2/adapter.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

constexpr std::uint32_t kMtu = 256;
constexpr std::uint32_t kLastPiece = 100;
constexpr std::uint32_t kMessage = 2 * kMtu + kLastPiece;  // three packets
constexpr std::uint8_t kSecret = 0xEE;                     // every byte that may not be touched
constexpr std::size_t kArenaBytes = 3 * 4096;
constexpr std::size_t kGrantedAt = 4096 - 301;  // neither start nor end is aligned; crosses pages
constexpr ULONG kAllRights =
    ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;

enum class Access { kSendGather, kWriteGather, kReceiveScatter, kReadScatter, kRemoteWrite, kRemoteRead };
enum class Fault {
  kZeroKey,
  kIndex,
  kIndexOutOfRange,
  kTag,
  kDomain,
  kRights,
  kBefore,
  kAfter,
  kFar,
  kWrap,
  kDeregistered
};
enum class Position { kFirst, kLast };

const char* name(Access a) {
  constexpr const char* kNames[] = {"SEND gather",  "WRITE gather", "RECEIVE scatter",
                                    "READ scatter", "remote WRITE", "remote READ"};
  return kNames[static_cast<int>(a)];
}
const char* name(Fault f) {
  constexpr const char* kNames[] = {"zero key", "index",  "index out of range", "tag",
                                    "domain",   "rights", "before the start",   "past the end",
                                    "far",      "wrap",   "deregistered"};
  return kNames[static_cast<int>(f)];
}

bool is_remote(Access a) { return a == Access::kRemoteWrite || a == Access::kRemoteRead; }
/// The host whose memory is accessed wrongly; requests come from host 0.
std::size_t victim(Access a) { return is_remote(a) || a == Access::kReceiveScatter ? 1 : 0; }
bool reads_victim(Access a) {
  return a == Access::kSendGather || a == Access::kWriteGather || a == Access::kRemoteRead;
}

/// Memory with a granted piece in the middle; everything round it is secret.
struct Arena {
  Arena(Endpoint& endpoint, std::size_t granted_bytes, std::uint8_t fill) {
    base = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(kArenaBytes));
    std::memset(base, kSecret, kArenaBytes);
    std::memset(granted(), fill, granted_bytes);
  }
  [[nodiscard]] std::uint8_t* granted() const { return base + kGrantedAt; }
  std::uint8_t* base;
};

/// Addresses and tokens are what the wrong access names.
struct Reference {
  std::uint64_t address;
  UINT32 local_token, remote_token;
};

UINT32 change(UINT32 token, bool remote, std::uint32_t bits) {
  return remote ? __builtin_bswap32(__builtin_bswap32(token) ^ bits) : token ^ bits;
}

/// Memory of the victim that the access may not have, and how the wrong access names it.
class Forbidden {
 public:
  /// At kLast of a remote access, one byte alone lies past the end.
  Forbidden(Endpoint& endpoint, Access access, Fault fault, Position position) : arena_(endpoint, 0, kSecret) {
    const std::uint32_t bytes = is_remote(access) || position == Position::kFirst ? kMessage : kLastPiece;
    std::uint8_t* const start = arena_.granted();
    ULONG flags = kAllRights;
    // Without the one right that the access needs; reading locally needs none.
    if (fault == Fault::kRights) {
      if (access == Access::kRemoteRead) flags = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
      if (access == Access::kRemoteWrite) flags = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ;
      if (access == Access::kReceiveScatter || access == Access::kReadScatter) flags = ND_MR_FLAG_ALLOW_REMOTE_READ;
    }
    if (fault == Fault::kDomain) {
      testbench::require_success(nd2::open_adapter(endpoint.kernel().node(), {}, IID_IND2Adapter, other_adapter_.put()),
                                 "a second adapter");
      testbench::require_success(other_adapter_->CreateOverlappedFile(&other_file_), "CreateOverlappedFile");
      testbench::require_success(other_adapter_->CreateMemoryRegion(IID_IND2MemoryRegion, other_file_, region_.put()),
                                 "CreateMemoryRegion");
      OVERLAPPED overlapped = endpoint.open_event();
      const HRESULT status = endpoint.finish(*region_, overlapped, region_->Register(start, bytes, flags, &overlapped));
      Endpoint::close_event(overlapped);
      testbench::require_success(status, "Register");
    } else {
      region_ = endpoint.register_memory(start, bytes, flags);
    }
    reference_ = {reinterpret_cast<std::uint64_t>(start), region_->GetLocalToken(), region_->GetRemoteToken()};
    spoil(endpoint, fault, bytes, is_remote(access) ? position : Position::kFirst);
  }
  ~Forbidden() {
    region_.reset();
    if (other_file_ != nullptr) nd2::close_handle(other_file_);
  }

  [[nodiscard]] const Reference& reference() const { return reference_; }
  [[nodiscard]] bool untouched() const {
    for (std::size_t i = 0; i < kArenaBytes; ++i) {
      if (arena_.base[i] != kSecret) return false;
    }
    return true;
  }

 private:
  void change_key(std::uint32_t bits) {
    reference_.local_token = change(reference_.local_token, false, bits);
    reference_.remote_token = change(reference_.remote_token, true, bits);
  }
  void spoil(Endpoint& endpoint, Fault fault, std::uint32_t bytes, Position outside_at) {
    switch (fault) {
      case Fault::kZeroKey: reference_.local_token = reference_.remote_token = 0; break;
      case Fault::kIndex: change_key(1u << 8); break;
      case Fault::kIndexOutOfRange: change_key(0x80000000); break;
      case Fault::kTag: change_key(0x80); break;
      case Fault::kDomain:
      case Fault::kRights: break;
      case Fault::kBefore: reference_.address -= 1; break;
      case Fault::kAfter: reference_.address += outside_at == Position::kFirst ? bytes - 1 : 1; break;
      case Fault::kFar: reference_.address += std::uint64_t{1} << 40; break;
      case Fault::kWrap: reference_.address = std::numeric_limits<std::uint64_t>::max() - bytes / 2; break;
      case Fault::kDeregistered: {
        OVERLAPPED overlapped = endpoint.open_event();
        const HRESULT status = endpoint.finish(*region_, overlapped, region_->Deregister(&overlapped));
        Endpoint::close_event(overlapped);
        testbench::require_success(status, "Deregister");
        break;
      }
    }
  }

  Arena arena_;
  ComPtr<IND2Adapter> other_adapter_;
  HANDLE other_file_ = nullptr;
  ComPtr<IND2MemoryRegion> region_;
  Reference reference_{};
};

/// Looks for the secret on the wire.
struct LeakWatch {
  explicit LeakWatch(World& of) : world(of) {
    world.observe_frames([this](const model::FrameRecord& record) {
      std::size_t run = 0;
      for (const auto byte : record.bytes) {
        run = byte == kSecret ? run + 1 : 0;
        if (run == 4) ++leaks;
      }
    });
  }
  ~LeakWatch() { world.observe_frames({}); }
  World& world;
  std::size_t leaks = 0;
};

/// A pair that has nothing to do with the fault. Its Writes must arrive all the time.
class Neighbour {
 public:
  Neighbour(Endpoint& a, Endpoint& b) : a_(a), pair_(a, b, {{4, 4, 1, 1, 0, nullptr}, {kMtu}}) {
    from_ = static_cast<std::uint8_t*>(a.host().memory().allocate(4096));
    to_ = static_cast<std::uint8_t*>(b.host().memory().allocate(4096));
    from_region_ = a.register_memory(from_, 4096, ND_MR_FLAG_ALLOW_LOCAL_WRITE);
    to_region_ = b.register_memory(to_, 4096, kAllRights);
  }
  bool works() {
    ++round_;
    for (std::size_t i = 0; i < kMessage; ++i) from_[i] = static_cast<std::uint8_t>(i % 200 + round_ % 30);
    const ND2_SGE sge{from_, kMessage, from_region_->GetLocalToken()};
    auto& end = pair_.ends[0];
    if (end.qp->Write(nullptr, &sge, 1, reinterpret_cast<UINT64>(to_), to_region_->GetRemoteToken(), 0) != ND_SUCCESS)
      return false;
    ND2_RESULT result{};
    return take_result(a_, *end.initiator_cq, result) && result.Status == ND_SUCCESS &&
           std::memcmp(from_, to_, kMessage) == 0;
  }

 private:
  Endpoint& a_;
  Pair pair_;
  std::uint8_t* from_;
  std::uint8_t* to_;
  ComPtr<IND2MemoryRegion> from_region_, to_region_;
  std::size_t round_ = 0;
};

/// One wrong access on a pair of its own. The message has three packets; at kLast only what the last packet carries is
/// wrong.
class Attempt {
 public:
  Attempt(Endpoint& a, Endpoint& b, Access access, Fault fault, Position position)
      : hosts_{&a, &b},
        access_(access),
        position_(position),
        pair_(a, b, {{4, 4, 2, 2, 0, nullptr}, {kMtu}}),
        good_{Arena(a, kMessage, 0x11), Arena(b, kMessage, 0x22)},
        forbidden_(*hosts_[victim(access)], access, fault, position) {
    for (std::size_t i = 0; i < 2; ++i)
      regions_[i] = hosts_[i]->register_memory(good_[i].granted(), kMessage, kAllRights);
  }

  void run() {
    auto& request = *pair_.ends[0].qp;
    const auto peer = reinterpret_cast<UINT64>(good_[1].granted());
    const UINT32 peer_token = regions_[1]->GetRemoteToken();
    const auto& wrong = forbidden_.reference();
    const auto local = sges(0);
    const auto count = static_cast<ULONG>(local.size());
    if (access_ == Access::kSendGather || access_ == Access::kReceiveScatter) {
      const auto sink = sges(1);
      REQUIRE(pair_.ends[1].qp->Receive(nullptr, sink.data(), static_cast<ULONG>(sink.size())) == ND_SUCCESS);
    }
    switch (access_) {
      case Access::kSendGather:
      case Access::kReceiveScatter: REQUIRE(request.Send(nullptr, local.data(), count, 0) == ND_SUCCESS); break;
      case Access::kWriteGather:
        REQUIRE(request.Write(nullptr, local.data(), count, peer, peer_token, 0) == ND_SUCCESS);
        break;
      case Access::kReadScatter:
        REQUIRE(request.Read(nullptr, local.data(), count, peer, peer_token, 0) == ND_SUCCESS);
        break;
      case Access::kRemoteWrite:
        REQUIRE(request.Write(nullptr, local.data(), count, wrong.address, wrong.remote_token, 0) == ND_SUCCESS);
        break;
      case Access::kRemoteRead:
        REQUIRE(request.Read(nullptr, local.data(), count, wrong.address, wrong.remote_token, 0) == ND_SUCCESS);
        break;
    }
    check_completions();
    check_memory();
  }

 private:
  /// The data segments of the request (host 0) or of the Receive (host 1).
  std::vector<ND2_SGE> sges(std::size_t host) {
    const ND2_SGE whole{good_[host].granted(), kMessage, regions_[host]->GetLocalToken()};
    if (is_remote(access_) || host != victim(access_)) return {whole};
    const auto& wrong = forbidden_.reference();
    void* const address = reinterpret_cast<void*>(wrong.address);
    if (position_ == Position::kFirst) return {{address, kMessage, wrong.local_token}};
    return {{whole.Buffer, 2 * kMtu, whole.MemoryRegionToken}, {address, kLastPiece, wrong.local_token}};
  }

  void check_completions() {
    ND2_RESULT result{};
    REQUIRE(take_result(*hosts_[0], *pair_.ends[0].initiator_cq, result));
    // 11.6.2: local protection errors and remote access errors are ND_ACCESS_VIOLATION at the requester; what went
    // wrong in the responder's own Receive is its own fault, and an operational error for the requester.
    CHECK(result.Status == (access_ == Access::kReceiveScatter ? ND_REMOTE_ERROR : ND_ACCESS_VIOLATION));
    if (access_ == Access::kReceiveScatter) {
      REQUIRE(take_result(*hosts_[1], *pair_.ends[1].receive_cq, result));
      CHECK(result.Status == ND_ACCESS_VIOLATION);
    }
    hosts_[0]->device().elapse(3'000);
    while (pair_.ends[1].receive_cq->GetResults(&result, 1) != 0) CHECK(result.Status != ND_SUCCESS);
    for (auto* host : hosts_) CHECK(host->host().iommu().fault_count() == 0);
  }

  void check_memory() {
    CHECK(forbidden_.untouched());
    // Bytes of packets before the wrong one may have arrived where they were granted.
    const std::size_t sink = reads_victim(access_) && access_ != Access::kRemoteRead ? 1
                             : access_ == Access::kReceiveScatter                    ? 1
                                                                                     : 0;
    const bool may_arrive = position_ == Position::kLast && !is_remote(access_);
    for (std::size_t host = 0; host < 2; ++host) {
      const auto& arena = good_[host];
      const std::uint8_t own = host == 0 ? 0x11 : 0x22, other = host == 0 ? 0x22 : 0x11;
      std::size_t changed = 0;
      for (std::size_t i = 0; i < kArenaBytes; ++i) {
        const bool granted = i >= kGrantedAt && i < kGrantedAt + kMessage;
        const bool sunk = granted && may_arrive && host == sink && i < kGrantedAt + 2 * kMtu && arena.base[i] == other;
        changed += arena.base[i] != (granted ? own : kSecret) && !sunk;
      }
      CHECK(changed == 0);
    }
  }

  Endpoint* hosts_[2];
  Access access_;
  Position position_;
  Pair pair_;
  Arena good_[2];
  Forbidden forbidden_;
  ComPtr<IND2MemoryRegion> regions_[2];
};

bool applies(Access access, Fault fault, Position position) {
  // Every registration may be read by its owner.
  if (fault == Fault::kRights && (access == Access::kSendGather || access == Access::kWriteGather)) return false;
  // One key and one range serve the whole of a remote message: only its end can be wrong alone.
  if (is_remote(access) && position == Position::kLast) return fault == Fault::kAfter;
  return true;
}

}  // namespace

TEST_CASE("a wrong access fails, and nothing outside what was granted moves") {
  constexpr Access kAccesses[] = {Access::kSendGather,  Access::kWriteGather, Access::kReceiveScatter,
                                  Access::kReadScatter, Access::kRemoteWrite, Access::kRemoteRead};
  constexpr Fault kFaults[] = {Fault::kZeroKey, Fault::kIndex,  Fault::kIndexOutOfRange, Fault::kTag,
                               Fault::kDomain,  Fault::kRights, Fault::kBefore,          Fault::kAfter,
                               Fault::kFar,     Fault::kWrap,   Fault::kDeregistered};
  const auto options = WorldOptions::from_environment("protection");
  World& world = fresh_world(options);
  LeakWatch watch(world);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
    Neighbour neighbour(a, b);
    for (const Access access : kAccesses) {
      for (const Fault fault : kFaults) {
        for (const Position position : {Position::kFirst, Position::kLast}) {
          if (!applies(access, fault, position)) continue;
          INFO(name(access) << ", " << name(fault) << ", at the " << (position == Position::kFirst ? "first" : "last")
                            << " packet; seed " << options.seed);
          Attempt(a, b, access, fault, position).run();
          CHECK(watch.leaks == 0);
          CHECK(neighbour.works());
        }
      }
    }
  });
}

TEST_CASE("a region that is deregistered under a message is not touched from then on") {
  // The cut falls into another packet each time, the first and the last among them.
  constexpr std::size_t kBytes = 64 << 10;
  constexpr std::uint32_t kStepNs = 700;
  const auto options = WorldOptions::from_environment("protection_deregister");
  for (const Access access : {Access::kRemoteWrite, Access::kRemoteRead, Access::kWriteGather, Access::kReadScatter}) {
    World& world = fresh_world(options);
    with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
      Endpoint* hosts[] = {&a, &b};
      Neighbour neighbour(a, b);
      std::size_t failed = 0, whole = 0;
      for (std::uint64_t delay = 0; delay < 12; ++delay) {
        INFO(name(access) << ", deregistered " << delay * kStepNs << " ns after the request; seed " << options.seed);
        Pair pair(a, b, {{1, 4, 1, 1, 0, nullptr}, {1024}});
        std::uint8_t* memory[2];
        ComPtr<IND2MemoryRegion> region[2];
        for (std::size_t i = 0; i < 2; ++i) {
          memory[i] = static_cast<std::uint8_t*>(hosts[i]->host().memory().allocate(kBytes));
          std::memset(memory[i], i == 0 ? 0x11 : 0x22, kBytes);
          region[i] = hosts[i]->register_memory(memory[i], kBytes, kAllRights);
        }
        const ND2_SGE sge{memory[0], kBytes, region[0]->GetLocalToken()};
        const auto remote = reinterpret_cast<UINT64>(memory[1]);
        const bool write = access == Access::kRemoteWrite || access == Access::kWriteGather;
        auto& qp = *pair.ends[0].qp;
        REQUIRE((write ? qp.Write(nullptr, &sge, 1, remote, region[1]->GetRemoteToken(), 0)
                       : qp.Read(nullptr, &sge, 1, remote, region[1]->GetRemoteToken(), 0)) == ND_SUCCESS);
        a.device().elapse(1 + delay * kStepNs);
        const std::size_t cut = victim(access);
        OVERLAPPED overlapped = hosts[cut]->open_event();
        REQUIRE(hosts[cut]->finish(*region[cut], overlapped, region[cut]->Deregister(&overlapped)) == ND_SUCCESS);
        Endpoint::close_event(overlapped);
        // The application uses its memory again: nobody may read or write it now.
        std::memset(memory[cut], kSecret, kBytes);
        LeakWatch watch(world);
        ND2_RESULT result{};
        REQUIRE(take_result(a, *pair.ends[0].initiator_cq, result));
        CHECK((result.Status == ND_SUCCESS || result.Status == ND_ACCESS_VIOLATION));
        ++(result.Status == ND_SUCCESS ? whole : failed);
        a.device().elapse(3'000);
        std::size_t changed = 0;
        for (std::size_t i = 0; i < kBytes; ++i) changed += memory[cut][i] != kSecret;
        CHECK(changed == 0);
        CHECK(watch.leaks == 0);
        for (auto* host : hosts) CHECK(host->host().iommu().fault_count() == 0);
        CHECK(neighbour.works());
      }
      CHECK(failed >= 3);
      CHECK(whole >= 1);
    });
  }
}
