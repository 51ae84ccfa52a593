#include "testbench/tool/copy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <stdexcept>

#include "testbench/endpoint.hpp"
#include "testbench/interrupt.hpp"
#include "testbench/side_by_side.hpp"
#include "testbench/tool/progress.hpp"
#include "testbench/tool/sha256.hpp"
#include "testbench/tool/transfer.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kDepth = 16;
constexpr std::uint64_t kOfferPollNs = 200;

/// What one side tells the other by SEND: memory it offers, and how much of the file the round has.
struct Offer {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  UINT32 token = 0;
  UINT32 last = 0;  ///< No round follows
};

/// One host of the copy: its queue pairs and a pair of message buffers.
class CopySide {
 public:
  CopySide(Host& host, const CopyOptions& options, std::uint64_t buffer_bytes) : endpoint_(host) {
    cq_ = endpoint_.create_cq(kDepth * options.qps + 8);
    receive_cq_ = endpoint_.create_cq(8);
    qps_.resize(options.qps);
    std::vector<std::function<void()>> tasks;
    for (auto& qp : qps_)
      tasks.emplace_back([&] { qp = endpoint_.create_qp(*receive_cq_, *cq_, {4, kDepth, 1, 1, 0, nullptr}); });
    side_by_side(tasks);
    buffer_ = static_cast<std::uint8_t*>(host.memory().allocate(std::max<std::uint64_t>(buffer_bytes, 1)));
    messages_ = static_cast<Offer*>(host.memory().allocate(2 * sizeof(Offer)));
    if (!buffer_ || !messages_)
      throw std::runtime_error(
          fmt::format("host {} has no memory for a round of {} bytes", host.index(), buffer_bytes));
    messages_region_ = endpoint_.register_memory(messages_, 2 * sizeof(Offer), ND_MR_FLAG_ALLOW_LOCAL_WRITE);
  }

  Transfer& begin_transfer() {
    std::vector<IND2QueuePair*> qps;
    for (auto& qp : qps_) qps.push_back(qp.get());
    return transfer_.emplace(endpoint_, *cq_, qps, kDepth);
  }
  /// What it has moved so far.
  [[nodiscard]] CopyPhase phase() const {
    if (!transfer_) return {};
    return {transfer_->latencies().size(), transfer_->bytes(), transfer_->nanoseconds(),
            summarize(transfer_->latencies())};
  }
  void expect_offer() {
    const ND2_SGE sge{&messages_[1], sizeof(Offer), messages_region_->GetLocalToken()};
    require_success(qps_[0]->Receive(nullptr, &sge, 1), "IND2QueuePair::Receive");
  }
  void send_offer(const Offer& offer) {
    messages_[0] = offer;
    const ND2_SGE sge{&messages_[0], sizeof(Offer), messages_region_->GetLocalToken()};
    require_success(qps_[0]->Send(nullptr, &sge, 1, 0), "IND2QueuePair::Send");
    wait(*cq_);
  }
  Offer take_offer() {
    wait(*receive_cq_);
    return messages_[1];
  }

  Endpoint endpoint_;
  ComPtr<IND2CompletionQueue> cq_, receive_cq_;
  std::vector<ComPtr<IND2QueuePair>> qps_;
  std::uint8_t* buffer_ = nullptr;

 private:
  void wait(IND2CompletionQueue& cq) {
    ND2_RESULT result{};
    auto& device = endpoint_.host().device();
    for (auto look = device.look(); cq.GetResults(&result, 1) == 0; look = device.look()) {
      device.look_again(look, kOfferPollNs);
    }
    require_success(result.Status, "completion of a control message");
  }

  Offer* messages_ = nullptr;
  ComPtr<IND2MemoryRegion> messages_region_;
  std::optional<Transfer> transfer_;
};

/// Host A: has the file; writes it to B, then offers it for reading.
void source(CopySide& side, std::ifstream& file, std::uint64_t size, std::uint64_t round, const CopyOptions& options,
            CopyReport& report, Progress& progress) {
  Sha256 hash;
  auto& transfer = side.begin_transfer();
  std::uint64_t done = 0;
  bool last = false;
  Offer target = side.take_offer();
  while (!last) {
    const std::uint64_t bytes = std::min(round, size - done);
    if (!file.read(reinterpret_cast<char*>(side.buffer_), static_cast<std::streamsize>(bytes)))
      throw std::runtime_error("the file changed while it was read");
    hash.add({side.buffer_, bytes});
    last = done + bytes == size;
    const auto region =
        side.endpoint_.register_memory(side.buffer_, std::max<std::uint64_t>(bytes, 1), ND_MR_FLAG_ALLOW_REMOTE_READ);
    side.expect_offer();
    const Transfer::Range range{side.buffer_, region->GetLocalToken(), target.address, target.token, bytes};
    transfer.run(Transfer::Direction::kWrite, range, options.message,
                 [&](std::uint64_t n) { progress.update(2 * done + n); });
    side.send_offer({reinterpret_cast<std::uint64_t>(side.buffer_), bytes, region->GetRemoteToken(), last});
    target = side.take_offer();  // B has read it back: the buffer is free
    done += bytes;
  }
  report.write = side.phase();
  report.file_sha256 = hash.finish();
}

/// Host B: is written to; then reads the same bytes back from A's memory into a second buffer.
void target(CopySide& side, std::uint64_t round, const CopyOptions& options, CopyReport& report, Progress& progress) {
  Sha256 written, read;
  auto& transfer = side.begin_transfer();
  const auto room = std::max<std::uint64_t>(round, 1);
  const auto region = side.endpoint_.register_memory(side.buffer_, 2 * room, ND_MR_FLAG_ALLOW_REMOTE_WRITE);
  std::uint8_t* const back = side.buffer_ + room;
  std::uint64_t done = 0;
  bool last = false;
  while (!last) {
    side.send_offer({reinterpret_cast<std::uint64_t>(side.buffer_), round, region->GetRemoteToken(), 0});
    const Offer from = side.take_offer();
    written.add({side.buffer_, from.bytes});
    last = from.last != 0;
    if (!last) side.expect_offer();
    const Transfer::Range range{back, region->GetLocalToken(), from.address, from.token, from.bytes};
    transfer.run(Transfer::Direction::kRead, range, options.message,
                 [&](std::uint64_t n) { progress.update(2 * done + from.bytes + n); });
    read.add({back, from.bytes});
    done += from.bytes;
  }
  side.send_offer({});
  report.read = side.phase();
  report.written_sha256 = written.finish();
  report.read_sha256 = read.finish();
}

/// Runs what was added to `world`, and says in `interval` how long it took, also when it is interrupted.
void timed_run(World& world, CopyReport::Interval& interval) {
  constexpr std::uint64_t kNoLimitNs = 3'600'000'000'000;
  auto& nic = world.host(0).nic();
  const std::uint64_t start_ns = world.now_ns(), start_cycles = nic.cycles();
  const auto start = std::chrono::steady_clock::now();
  const auto seconds = [start] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  try {
    world.run(kNoLimitNs);
  } catch (const Interrupted& interrupt) {
    const std::uint64_t passed_ns = interrupt.at_ns() - start_ns;
    const auto period = world.options().host.nic.clock_period;
    interval = {passed_ns, passed_ns * model::kPicosecondsPerNanosecond / period, seconds()};
    throw;
  }
  interval = {world.now_ns() - start_ns, nic.cycles() - start_cycles, seconds()};
}

}  // namespace

CopyReport run_copy(World& world, const CopyOptions& options) {
  std::ifstream file(options.file, std::ios::binary);
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(options.file, error);
  if (!file || error) throw std::runtime_error(fmt::format("cannot read '{}'", options.file.string()));
  const std::uint64_t round = std::min(options.round, size);
  CopyReport report;
  report.file_bytes = size;
  Progress progress("copying", 2 * size);
  std::unique_ptr<CopySide> a, b;

  world.add_app(0, "setup", [&](Host& host) {
    const std::uint64_t both = 2 * std::max<std::uint64_t>(round, 1);
    side_by_side({[&] { a = std::make_unique<CopySide>(host, options, round); },
                  [&] { b = std::make_unique<CopySide>(world.host(1), options, both); }});
    ConnectParameters parameters{options.mtu};
    parameters.ack_timeout = options.ack_timeout;
    std::vector<std::function<void()>> tasks;
    for (std::uint32_t i = 0; i < options.qps; ++i)
      tasks.emplace_back([&, i] { connect_pair(a->endpoint_, *a->qps_[i], b->endpoint_, *b->qps_[i], parameters); });
    side_by_side(tasks);
    a->expect_offer();
    b->expect_offer();
  });
  try {
    timed_run(world, report.setup);
    world.add_app(0, "source", [&](Host&) { source(*a, file, size, round, options, report, progress); });
    world.add_app(1, "target", [&](Host&) { target(*b, round, options, report, progress); });
    timed_run(world, report.transfer);
  } catch (const Interrupted&) {
    report.interrupted = true;
    if (a) report.write = a->phase();
    if (b) report.read = b->phase();
    for (std::size_t host = 0; host < World::kHosts; ++host) {
      if (const auto counts = world.host(host).nic().counts())
        std::copy(counts->begin(), counts->end(), report.counters[host].begin());
    }
    return report;
  }
  world.add_app(0, "close", [&](Host&) {
    report.counters = {read_counters(a->endpoint_), read_counters(b->endpoint_)};
    side_by_side({[&] { a.reset(); }, [&] { b.reset(); }});
  });
  timed_run(world, report.tear_down);
  return report;
}

}  // namespace rnic::testbench
