#include "testbench/tool/atomic_neighbour.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/queue_pair.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/tool/bench_data.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kStreamBytes = 4 << 20, kStreamMessage = 64 << 10, kSendBytes = 64;
constexpr std::uint32_t kNeighbourMtu = 4096, kStreamDepth = 32, kAtomicPairs = 16;
/// Behind the stream's: the word that is added to, results, and what is sent.
constexpr std::uint64_t kWord = kStreamBytes, kResults = kWord + 64, kMessageArea = kResults + 4096;
constexpr std::uint64_t kArenaBytes = kMessageArea + 4096;
constexpr std::uint64_t kNeighbourPollNs = 50;

/// A process on one host with two queue pairs: 0 for the stream, 1 for the atomics.
struct NeighbourSide {
  NeighbourSide(Host& host, std::uint64_t number)
      : endpoint(host), process(require_success(umd::ProcessContext::open(endpoint.kernel().node()), "process")) {
    memory = static_cast<std::uint8_t*>(host.memory().allocate(kArenaBytes));
    fill_bench_data({memory, kArenaBytes}, number);
    std::memset(memory + kWord, 0, sizeof(std::uint64_t));
    region = require_success(process->create_mr({.address = memory,
                                                 .length = kArenaBytes,
                                                 .local_write = true,
                                                 .remote_read = true,
                                                 .remote_write = true,
                                                 .remote_atomic = true}),
                             "region");
    for (std::size_t i = 0; i < 2; ++i) {
      send_cqs[i] = require_success(umd::CompletionQueue::create(process, 256), "completion queue");
      receive_cqs[i] = require_success(umd::CompletionQueue::create(process, 256), "completion queue");
      qps[i] = require_success(
          umd::QueuePair::create_idle(
              process,
              {.send_cq = send_cqs[i],
               .receive_cq = receive_cqs[i],
               .capacity = {.send_depth = 64, .receive_depth = 128, .send_segments = 4, .receive_segments = 4}}),
          "queue pair");
    }
  }
  [[nodiscard]] std::uint64_t at(std::uint64_t offset) const {
    return reinterpret_cast<std::uint64_t>(memory) + offset;
  }
  [[nodiscard]] umd::Segment segment(std::uint64_t offset, std::uint64_t bytes) const {
    return {at(offset), static_cast<std::uint32_t>(bytes), region->key()};
  }

  Endpoint endpoint;
  std::shared_ptr<umd::ProcessContext> process;
  std::uint8_t* memory = nullptr;
  std::unique_ptr<umd::KernelMr> region;
  std::array<std::shared_ptr<umd::CompletionQueue>, 2> send_cqs, receive_cqs;
  std::array<std::shared_ptr<umd::QueuePair>, 2> qps;
};

/// The next completion, if there is one. A request that failed ends the benchmark.
bool completed(umd::CompletionQueue& cq) {
  umd::Completion completion;
  if (cq.poll({&completion, 1}) == 0) return false;
  if (completion.status != hw::CqeStatus::kSuccess) throw EndpointError("a request of the benchmark failed");
  return true;
}

class Streams {
 public:
  Streams(World& world, bool beside) : world_(world), beside_(beside) {}

  /// Nanoseconds that the stream took.
  std::uint64_t run(const WorldOptions& options) {
    world_.reset(options);
    world_.add_app(0, "setup", [this](Host&) {
      for (std::size_t i = 0; i < 2; ++i) sides_[i] = std::make_unique<NeighbourSide>(world_.host(i), i);
      auto& [a, b] = sides_;
      for (std::size_t i = 0; i < 2; ++i)
        connect_pair(a->endpoint, *a->qps[i], b->endpoint, *b->qps[i], {kNeighbourMtu});
    });
    world_.run();
    world_.add_app(0, "stream", [this](Host&) { stream(); });
    if (beside_) {
      world_.add_app(1, "receives", [this](Host&) { receives(); });
      world_.add_app(0, "atomics", [this](Host&) { atomics(); });
    }
    world_.run();
    world_.add_app(0, "close", [this](Host& host) {
      host.device().elapse(kInFlightNs);
      check();
      sides_ = {};
    });
    world_.run();
    if (beside_ && pairs_ == 0) throw EndpointError("no atomic was executed beside the stream");
    return nanoseconds_;
  }

 private:
  /// The stream is at the peer, the last message too, and every addition has been done once.
  void check() const {
    const auto& [a, b] = sides_;
    require_moved({a->memory, kStreamBytes}, {b->memory, kStreamBytes});
    if (!beside_) return;
    require_moved({a->memory + kMessageArea, kSendBytes}, {b->memory + kMessageArea, kSendBytes});
    std::uint64_t sum = 0;
    std::memcpy(&sum, b->memory + kWord, sizeof sum);
    if (sum != pairs_) throw EndpointError(fmt::format("{} additions of the benchmark made {}", pairs_, sum));
  }
  void stream() {
    auto& [a, b] = sides_;
    std::uint64_t posted = 0, done = 0;
    const std::uint64_t start = a->endpoint.device().now_ns();
    while (done < kStreamBytes) {
      while (posted < kStreamBytes && posted - done < kStreamDepth * kStreamMessage) {
        const auto data = a->segment(posted, kStreamMessage);
        require_success(a->qps[0]->post_send({.opcode = hw::WqeOpcode::kWrite,
                                              .segments = {&data, 1},
                                              .remote_address = b->at(posted),
                                              .remote_key = b->region->key()}),
                        "Write");
        posted += kStreamMessage;
      }
      if (found(*a, *a->send_cqs[0])) done += kStreamMessage;
    }
    nanoseconds_ = a->endpoint.device().now_ns() - start;
    end(stream_over_);
  }
  /// A completion, or some time has passed.
  static bool found(NeighbourSide& side, umd::CompletionQueue& cq) {
    auto& device = side.endpoint.host().device();
    const auto look = device.look();
    if (completed(cq)) return true;
    device.look_again(look, kNeighbourPollNs);
    return false;
  }
  /// What others wait for has happened.
  void end(bool& over) {
    over = true;
    for (auto& side : sides_) side->endpoint.host().device().happen();
  }
  /// Fetch-and-add, SEND, fetch-and-add, ... as many as the read limit lets out, until the stream is over.
  void atomics() {
    auto& [a, b] = sides_;
    std::uint64_t posted = 0, done = 0;
    const auto send = a->segment(kMessageArea, kSendBytes);
    while (!stream_over_ || done < posted) {
      while (!stream_over_ && posted - done < 2 * kAtomicPairs) {
        const auto result = a->segment(kResults + posted / 2 % kAtomicPairs * 8, 8);
        require_success(a->qps[1]->post_send({.opcode = hw::WqeOpcode::kFetchAdd,
                                              .segments = {&result, 1},
                                              .remote_address = b->at(kWord),
                                              .remote_key = b->region->key(),
                                              .swap_add = 1}),
                        "fetch and add");
        require_success(a->qps[1]->post_send({.opcode = hw::WqeOpcode::kSend, .segments = {&send, 1}}), "SEND");
        posted += 2;
      }
      if (found(*a, *a->send_cqs[1])) ++done;
    }
    pairs_ = done / 2;
    end(atomics_over_);
  }
  void receives() {
    auto& b = *sides_[1];
    const auto into = b.segment(kMessageArea, kSendBytes);
    const auto post = [&] { require_success(b.qps[1]->post_receive({.segments = {&into, 1}}), "Receive"); };
    for (std::uint32_t i = 0; i < 4 * kAtomicPairs; ++i) post();
    while (!atomics_over_) {
      if (found(b, *b.receive_cqs[1])) post();
    }
  }

  World& world_;
  const bool beside_;
  std::array<std::unique_ptr<NeighbourSide>, 2> sides_;
  std::uint64_t nanoseconds_ = 0, pairs_ = 0;
  bool stream_over_ = false, atomics_over_ = false;
};

}  // namespace

double atomic_neighbour_goodput_fraction(World& world, const WorldOptions& options) {
  const std::uint64_t alone = Streams(world, false).run(options), beside = Streams(world, true).run(options);
  return static_cast<double>(alone) / static_cast<double>(beside);
}

}  // namespace rnic::testbench
