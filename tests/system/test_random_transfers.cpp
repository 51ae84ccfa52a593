// Random work on many queue pairs in both directions, over links that split and reorder completions. Every byte must arrive,
// no byte beside it may change, and results come in posting order (InfiniBand specification volume 1, 9.5, 10.8.3.3).
// RNIC_SEED=n replays a failure.
#include <catch2/catch.hpp>
#include <cstring>
#include <deque>
#include <string>

#include "model/random.hpp"
#include "tests/system/system_world.hpp"

using namespace rnic;
using namespace rnic::test;

namespace {

enum class Kind { kSend, kWrite, kRead, kInlineWrite, kInlineSend };

constexpr std::size_t kArenaBytes = 3 << 20;
constexpr std::uint32_t kDepth = 64, kSges = 16, kInline = 200;
constexpr std::uint8_t kUntouched = 0x5A;

/// Memory of one host, handed out in pieces that never overlap, with at least a byte between them.
class Arena {
 public:
  explicit Arena(Endpoint& endpoint) {
    base_ = static_cast<std::uint8_t*>(endpoint.host().memory().allocate(kArenaBytes));
    std::memset(base_, kUntouched, kArenaBytes);
    constexpr ULONG kRights = ND_MR_FLAG_ALLOW_LOCAL_WRITE | ND_MR_FLAG_ALLOW_REMOTE_READ | ND_MR_FLAG_ALLOW_REMOTE_WRITE;
    region_ = endpoint.register_memory(base_, kArenaBytes, kRights);
    used_.resize(kArenaBytes);
  }
  std::uint8_t* take(std::size_t bytes, model::Random& random) {
    next_ += 1 + random.below(130);
    REQUIRE(next_ + bytes < kArenaBytes);
    std::uint8_t* const piece = base_ + next_;
    next_ += bytes;
    return piece;
  }
  /// These bytes may have changed.
  void mark(const std::uint8_t* piece, std::size_t bytes) { std::fill_n(used_.begin() + (piece - base_), bytes, true); }
  [[nodiscard]] std::size_t strays() const {
    std::size_t count = 0;
    for (std::size_t i = 0; i < kArenaBytes; ++i) count += !used_[i] && base_[i] != kUntouched;
    return count;
  }
  [[nodiscard]] UINT32 local_token() { return region_->GetLocalToken(); }
  [[nodiscard]] UINT32 remote_token() { return region_->GetRemoteToken(); }

 private:
  std::uint8_t* base_;
  ComPtr<IND2MemoryRegion> region_;
  std::vector<bool> used_;
  std::size_t next_ = 0;
};

/// One request: where its bytes come from and where they must be in the end, piece by piece.
struct Work {
  Kind kind{};
  ULONG flags{};
  std::vector<ND2_SGE> local;    ///< Of the request
  std::vector<ND2_SGE> receive;  ///< Of the peer's Receive
  std::uint8_t* remote = nullptr;
  std::size_t bytes{};
};

std::size_t random_length(model::Random& random) {
  switch (random.below(6)) {
    case 0: return random.below(4);
    case 1: return random.below(100);
    case 2: return 256 * random.below(20);
    case 3: return 4096 + random.below(3) - 1;
    default: return random.below(9000);
  }
}

class Direction {
 public:
  /// Plans `count` requests on `end` and posts the Receives that they need at the peer.
  Direction(Arena& source, Arena& peer, PairEnd& end, PairEnd& peer_end, std::size_t count, std::uint64_t seed)
      : source_(source), peer_(peer), end_(end), peer_end_(peer_end), random_(seed) {
    for (std::size_t i = 0; i < count; ++i) work_.push_back(plan(i + 1 == count));
    for (const auto& work : work_) {
      if (work.kind != Kind::kSend && work.kind != Kind::kInlineSend) continue;
      REQUIRE(peer_end_.qp->Receive(reinterpret_cast<void*>(receives_++), work.receive.data(), static_cast<ULONG>(work.receive.size())) == ND_SUCCESS);
    }
  }

  /// Posts what fits, takes what has come. True when all is done.
  bool step() {
    while (posted_ < work_.size() && random_.below(4) != 0 && post(work_[posted_])) ++posted_;
    ND2_RESULT results[8];
    for (ULONG n = end_.initiator_cq->GetResults(results, 8), i = 0; i < n; ++i) {
      CHECK(results[i].Status == ND_SUCCESS);
      // Results in posting order; silent ones are left out.
      while (next_ < posted_ && (work_[next_].flags & ND_OP_FLAG_SILENT_SUCCESS) != 0) ++next_;
      REQUIRE(reinterpret_cast<std::uintptr_t>(results[i].RequestContext) == next_);
      ++next_;
    }
    take_receives();
    return posted_ == work_.size() && next_ == work_.size() && received_ == receives_;
  }

  void check() {
    for (std::size_t i = 0; i < work_.size(); ++i) {
      const auto& work = work_[i];
      INFO("request " << i << " of kind " << static_cast<int>(work.kind) << ", " << work.bytes << " bytes");
      const std::string local = gather(work.local), other = remote_bytes(work);
      CHECK((local == other));
    }
  }

 private:
  /// `bytes` cut into segments somewhere in `arena`; filled with random bytes unless it is a sink.
  std::vector<ND2_SGE> cut(Arena& arena, std::size_t bytes, bool sink, std::size_t most) {
    std::vector<ND2_SGE> list;
    const std::size_t count = bytes == 0 ? random_.below(2) : 1 + random_.below(random_.chance(0.5) ? 2 : most);
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t piece = i + 1 == count ? bytes : random_.chance(0.1) ? 0 : random_.below(bytes + 1);
      std::uint8_t* const at = arena.take(piece, random_);
      if (sink) arena.mark(at, piece);
      else fill(arena, at, piece);
      list.push_back({at, static_cast<ULONG>(piece), arena.local_token()});
      bytes -= piece;
    }
    return list;
  }
  void fill(Arena& arena, std::uint8_t* at, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes; ++i) at[i] = static_cast<std::uint8_t>(random_.next());
    arena.mark(at, bytes);
  }
  Work plan(bool last) {
    Work work;
    work.kind = static_cast<Kind>(random_.below(5));
    const bool inlined = work.kind == Kind::kInlineWrite || work.kind == Kind::kInlineSend;
    work.bytes = inlined ? random_.below(kInline + 1) : random_length(random_);
    if (inlined) work.flags |= ND_OP_FLAG_INLINE;
    if (random_.chance(0.2)) work.flags |= ND_OP_FLAG_READ_FENCE;
    if (!last && random_.chance(0.3)) work.flags |= ND_OP_FLAG_SILENT_SUCCESS;  // the last one reports, so that the end is seen
    work.local = cut(source_, work.bytes, work.kind == Kind::kRead, kSges);
    if (work.kind == Kind::kSend || work.kind == Kind::kInlineSend) {
      work.receive = cut(peer_, work.bytes, true, kSges);
    } else {
      work.remote = peer_.take(work.bytes, random_);
      if (work.kind == Kind::kRead) fill(peer_, work.remote, work.bytes);
      else peer_.mark(work.remote, work.bytes);
    }
    return work;
  }
  bool post(const Work& work) {
    void* const context = reinterpret_cast<void*>(posted_);
    const auto count = static_cast<ULONG>(work.local.size());
    const ND2_SGE* const sge = work.local.empty() ? nullptr : work.local.data();
    const auto remote = reinterpret_cast<UINT64>(work.remote);
    HRESULT status = ND_SUCCESS;
    switch (work.kind) {
      case Kind::kSend:
      case Kind::kInlineSend: status = end_.qp->Send(context, sge, count, work.flags); break;
      case Kind::kWrite:
      case Kind::kInlineWrite: status = end_.qp->Write(context, sge, count, remote, peer_.remote_token(), work.flags); break;
      case Kind::kRead: status = end_.qp->Read(context, sge, count, remote, peer_.remote_token(), work.flags); break;
    }
    if (status == ND_NO_MORE_ENTRIES) return false;
    REQUIRE(status == ND_SUCCESS);
    return true;
  }
  void take_receives() {
    ND2_RESULT results[8];
    for (ULONG n = peer_end_.receive_cq->GetResults(results, 8), i = 0; i < n; ++i) {
      CHECK(results[i].Status == ND_SUCCESS);
      REQUIRE(reinterpret_cast<std::uintptr_t>(results[i].RequestContext) == received_);
      ++received_;
    }
  }
  static std::string gather(const std::vector<ND2_SGE>& list) {
    std::string bytes;
    for (const auto& sge : list) bytes.append(static_cast<const char*>(sge.Buffer), sge.BufferLength);
    return bytes;
  }
  static std::string remote_bytes(const Work& work) {
    if (work.remote == nullptr) return gather(work.receive);
    return {reinterpret_cast<const char*>(work.remote), work.bytes};
  }

  Arena& source_;
  Arena& peer_;
  PairEnd& end_;
  PairEnd& peer_end_;
  model::Random random_;
  std::deque<Work> work_;
  std::size_t posted_ = 0, next_ = 0;
  std::uintptr_t receives_ = 0, received_ = 0;
};

void run(WorldOptions options, std::size_t qps, std::size_t count, ConnectParameters connection = {}) {
  World& world = fresh_world(options);
  with_endpoints(world, [&](Endpoint& a, Endpoint& b) {
    INFO("seed " << options.seed);
    model::Random random(options.seed, "transfers");
    Arena arena_a(a), arena_b(b);
    std::deque<Pair> pairs;
    std::deque<Direction> directions;
    for (std::size_t i = 0; i < qps; ++i) {
      connection.mtu = 256u << random.below(5);
      connection.ipv6 = random.chance(0.5);
      connection.read_limit = static_cast<std::uint32_t>(1 + random.below(16));
      pairs.emplace_back(a, b, PairSpec{{kDepth, kDepth, kSges, kSges, kInline, nullptr}, connection});
      auto& ends = pairs.back().ends;
      directions.emplace_back(arena_a, arena_b, ends[0], ends[1], count, random.next());
      directions.emplace_back(arena_b, arena_a, ends[1], ends[0], count, random.next());
    }
    bool done = false;
    while (!done) {
      done = true;
      for (auto& direction : directions) done = direction.step() && done;
      a.device().elapse(100);
    }
    for (auto& direction : directions) direction.check();
    CHECK(arena_a.strays() == 0);
    CHECK(arena_b.strays() == 0);
    for (auto* endpoint : {&a, &b}) CHECK(endpoint->host().iommu().fault_count() == 0);
  }, 20'000'000);
}

}  // namespace

TEST_CASE("random transfers over an orderly link") { run(WorldOptions::from_environment("random_orderly"), 4, 40); }

TEST_CASE("random transfers while completions are split and reordered") {
  auto options = WorldOptions::from_environment("random_reordered");
  options.host.root_complex.reorder_probability = 0.5;
  options.host.root_complex.split_probability = 0.5;
  run(options, 8, 40);
}

TEST_CASE("random transfers over a small and slow PCI Express link") {
  auto options = WorldOptions::from_environment("random_small");
  auto& pcie = options.host.root_complex;
  pcie.config.max_payload = 128;
  pcie.config.max_read_request = 128;
  pcie.read_completion_boundary = 64;
  pcie.read_latency_ns = 1'500;
  pcie.bandwidth_gbytes = 4;
  pcie.reorder_probability = 0.2;
  run(options, 4, 40);
}

TEST_CASE("random transfers over a wire that loses, repeats, reorders and corrupts") {
  auto options = WorldOptions::from_environment("random_faults");
  for (auto& faults : options.wire.faults) {
    faults.drop = 0.01;
    faults.duplicate = 0.005;
    faults.reorder = 0.01;
    faults.corrupt = 0.001;
  }
  options.host.root_complex.reorder_probability = 0.1;
  ConnectParameters connection;
  connection.ack_timeout = 4;
  run(options, 8, 40, connection);
}
