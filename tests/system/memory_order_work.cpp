#include "tests/system/memory_order_work.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <system_error>

#include "driver/umd/queue_pair.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/traffic/mix_side.hpp"
#include "testbench/traffic/traffic.hpp"

namespace rnic::test {
namespace {

using namespace testbench;

/// A process that runs in circles is ended.
constexpr unsigned kSeconds = 60;
constexpr std::uint64_t kLimitNs = 20'000'000, kHangNs = 1'000'000;
/// By then the device has seen what was stored without a barrier.
constexpr std::uint64_t kDrainNs = 4'000;
/// What has not come by then never will.
constexpr std::uint64_t kPatienceNs = 100'000;

[[noreturn]] void fail(const std::string& text) { throw std::runtime_error(text); }

/// What a Traffic has not: an event for each completion, Reads of which nothing tells but their slot, a shared receive
/// queue whose ring moves. One after the other, so that what one needs the barriers of another don't bring.
class SingleSteps {
 public:
  SingleSteps(Endpoint& a, Endpoint& b, std::uint64_t seed)
      : random_(seed, "single steps"),
        a_(a, {.bytes = kBytes, .entries = kEntries}),
        b_(b, {.bytes = kBytes, .entries = kEntries}) {
    sent_ = a_.take(kMessage);
    for (auto& sink : sinks_) sink = a_.take(kMessage);
    source_ = b_.take(kReads * kMessage);
    own_received_ = b_.take(2 * kMessage);
    for (auto& buffer : received_) buffer = b_.take(kMessage);
    readable_ = require_success(
        b_.process()->create_mr({.address = source_.data(), .length = source_.size(), .remote_read = true}),
        "registering what is read");
    shared_ = require_success(umd::SharedReceiveQueue::create(b_.process(), kDepths.front(), 1),
                              "creating a shared receive queue");
    sender_ = make(a_, nullptr);
    receiver_ = make(b_, shared_);
    reader_ = make(a_, nullptr);
    read_ = make(b_, nullptr);
    connect_pair(a, *sender_, b, *receiver_, {});
    connect_pair(a, *reader_, b, *read_, {});
    b_.process()->events().subscribe(EventTable::Of::kCq, b_.cq()->cqn(), events_);
  }
  ~SingleSteps() { b_.process()->events().unsubscribe(EventTable::Of::kCq, b_.cq()->cqn()); }
  SingleSteps(const SingleSteps&) = delete;
  SingleSteps& operator=(const SingleSteps&) = delete;

  void run() {
    for (const auto depth : kDepths) {  // those that are left move with the ring
      fill_receives(depth);
      for (std::uint32_t i = 0; i <= depth / 2; ++i) send_with_event();
    }
    for (std::uint32_t i = 0; i < kMessages; ++i) send();
    read_silently();
  }

 private:
  static constexpr std::size_t kMessage = 1'000, kMessages = 30, kReads = 20, kBytes = 1 << 16, kEntries = 64;
  static constexpr std::array<std::uint32_t, 4> kDepths = {2, 4, 7, 16};
  struct Events : EventSink {
    void on_event(const hw::Eqe&) override { ++count; }
    std::uint32_t count = 0;
  };

  static std::shared_ptr<umd::QueuePair> make(MixSide& side, const std::shared_ptr<umd::SharedReceiveQueue>& shared) {
    return require_success(
        umd::QueuePair::create_idle(side.process(), {.send_cq = side.cq(),
                                                     .receive_cq = side.cq(),
                                                     .shared_receives = shared,
                                                     .capacity = {.send_depth = 1, .receive_depth = 1}}),
        "creating a queue pair");
  }
  [[nodiscard]] Device& device() { return a_.endpoint().device(); }

  /// Waits until `done`, looking at random times.
  template <typename Done>
  void wait_for(const char* what, Done done) {
    const std::uint64_t end = device().now_ns() + kPatienceNs;
    while (!done()) {
      if (device().now_ns() >= end) fail(fmt::format("single steps: {} does not come", what));
      device().elapse(20 + random_.below(100));
    }
  }

  void fill_receives(std::uint32_t depth) {
    if (shared_->depth() != depth) require_success(shared_->resize(depth), "resizing a shared receive queue");
    for (; posted_ - taken_ < depth; ++posted_) {
      const auto& buffer = received_[posted_ % received_.size()];
      const umd::Segment segment{reinterpret_cast<std::uint64_t>(buffer.data()),
                                 static_cast<std::uint32_t>(buffer.size()), b_.key()};
      require_success(shared_->post({.id = posted_, .segments = std::span(&segment, 1)}), "posting a Receive");
    }
  }

  /// The next message, to be posted.
  umd::Segment message() {
    const auto message = sent_.first(1 + random_.below(sent_.size()));
    bytes_ = message.size();
    fill_message(message, 1, ++number_);
    return {reinterpret_cast<std::uint64_t>(message.data()), static_cast<std::uint32_t>(bytes_), a_.key()};
  }
  /// Whether the message has come, to `buffer`, with the Receive `id`.
  bool take(std::span<const std::uint8_t> buffer, std::uint64_t id) {
    umd::Completion completion;
    if (b_.cq()->poll(std::span(&completion, 1)) == 0) return false;
    if (completion.status != hw::CqeStatus::kSuccess || completion.id != id || completion.byte_count != bytes_)
      fail(fmt::format("single steps: message {} of {} bytes: Receive {}, not {}, with {} bytes, status {}", number_,
                       bytes_, completion.id, id, completion.byte_count, static_cast<int>(completion.status)));
    if (const auto place = compare_message(buffer.first(bytes_), 1, number_); place != bytes_)
      fail(fmt::format("single steps: message {} of {} bytes is wrong from byte {} on", number_, bytes_, place));
    return true;
  }
  void take_sent() {
    wait_for("the completion of a Send", [this] {
      umd::Completion completion;
      if (a_.cq()->poll(std::span(&completion, 1)) == 0) return false;
      if (completion.status != hw::CqeStatus::kSuccess || completion.id != number_)
        fail(fmt::format("single steps: Send {} completes as {}, status {}", number_, completion.id,
                         static_cast<int>(completion.status)));
      return true;
    });
  }

  /// By the doorbell, to a Receive that has just been posted.
  void send() {
    const auto buffer = own_received_.subspan(random_.below(kMessage), kMessage);  // no Receive is like the one before
    const umd::Segment to{reinterpret_cast<std::uint64_t>(buffer.data()), kMessage, b_.key()};
    require_success(read_->post_receive({.id = number_, .segments = std::span(&to, 1)}), "posting a Receive");
    const std::uint64_t id = number_;
    const umd::Segment from = message();
    require_success(reader_->post_send({.id = number_, .segments = std::span(&from, 1), .defer = true}),
                    "posting a Send");
    reader_->ring_deferred();
    wait_for("a message", [&] { return take(buffer, id); });
    take_sent();
  }

  /// Through the window, to a Receive of the shared queue. Of the event a driver is told by its interrupt, or finds it
  /// before that.
  void send_with_event() {
    const std::uint32_t before = events_->count;
    b_.cq()->arm(hw::CqArm::kAny);
    const umd::Segment from = message();
    require_success(sender_->post_send({.id = number_, .segments = std::span(&from, 1)}), "posting a Send");
    wait_for("an event", [&] {
      b_.endpoint().take_events();
      return events_->count != before;
    });
    if (events_->count != before + 1) fail("single steps: an event came twice");
    if (!take(received_[taken_ % received_.size()], taken_))
      fail("single steps: the event is there, and its completion is not");
    ++taken_;
    take_sent();
  }

  /// The only slot is free again when the Read in it has retired: then its bytes are there (docs/driver.md, When a slot
  /// is free).
  void read_silently() {
    for (std::size_t i = 0; i < kReads; ++i) fill_message(source_.subspan(i * kMessage, kMessage), 2, i);
    device().elapse(kDrainNs);
    for (std::size_t i = 0; i < kReads; ++i) {
      const auto& sink = sinks_[i % 2];
      const umd::Segment segment{reinterpret_cast<std::uint64_t>(sink.data()), kMessage, a_.key()};
      wait_for("a free slot", [&] {
        const auto posted =
            reader_->post_send({.opcode = hw::WqeOpcode::kRead,
                                .segments = std::span(&segment, 1),
                                .remote_address = reinterpret_cast<std::uint64_t>(source_.data() + i * kMessage),
                                .remote_key = readable_->key(),
                                .silent = true});
        if (!posted.ok() && posted.error() == Error::kQueueFull) return false;
        require_success(posted, "posting a Read");
        return true;
      });
      if (i == 0) continue;
      if (const auto place = compare_message(sinks_[(i - 1) % 2], 2, i - 1); place != kMessage)
        fail(fmt::format("single steps: the slot of Read {} is free, and it is wrong from byte {} on", i - 1, place));
    }
  }

  model::Random random_;
  MixSide a_, b_;
  std::span<std::uint8_t> sent_, source_, own_received_;
  std::array<std::span<std::uint8_t>, 2> sinks_;
  std::array<std::span<std::uint8_t>, kDepths.back()> received_;
  std::unique_ptr<umd::KernelMr> readable_;
  std::shared_ptr<umd::SharedReceiveQueue> shared_;
  std::shared_ptr<umd::QueuePair> sender_, receiver_, reader_, read_;
  const std::shared_ptr<Events> events_ = std::make_shared<Events>();
  std::uint64_t posted_ = 0, taken_ = 0;  ///< Receives of the shared queue
  std::uint64_t number_ = 0;              ///< Of the message under way
  std::size_t bytes_ = 0;                 ///< Of that message
};

/// An entry of a ring is given back when it has been read. That a processor loads it later all the same can't be played
/// (model/memory_order.hpp); that a barrier stands between can be seen: each write that gives entries back follows one
/// that stands behind the loads.
class ReleaseWatch {
 public:
  explicit ReleaseWatch(World& world) {
    BarrierSwitch::instance().listen(this, [this](Barrier kind) {
      if (kind == Barrier::kDmaRead) open_ = true;
      if (kind == Barrier::kDmaRelease) open_ = false;
    });
    for (std::size_t i = 0; i < World::kHosts; ++i) {
      world.host(i).device().observe_writes([this](std::uint64_t offset, std::uint64_t) {
        const std::uint64_t in_page = offset % hw::kUarPageBytes;
        const bool gives_back = offset < hw::kUarPageBytes
                                    ? offset == hw::reg::kAdminDoorbell
                                    : in_page == hw::uar::kCqDoorbell || in_page == hw::uar::kEqDoorbell;
        if (open_ && gives_back) fail(fmt::format("a write to {:#x} gives back what may not have been read", offset));
      });
    }
  }
  ~ReleaseWatch() { BarrierSwitch::instance().forget(this); }
  ReleaseWatch(const ReleaseWatch&) = delete;
  ReleaseWatch& operator=(const ReleaseWatch&) = delete;

 private:
  bool open_ = false;  ///< An entry is read
};

TrafficOptions traffic_options() {
  TrafficOptions options;
  options.mixes = 1;
  options.pairs = 2;
  options.requests = 40;
  options.window = 8;
  options.most_bytes = 3'000;
  options.big_bytes = 6'000;
  options.own_region_chance = 0.1;
  options.fill_lead_ns = kDrainNs;
  options.hang_ns = kHangNs;
  return options;
}

void require_right(const TrafficReport& report) {
  if (report.wrong == 0 && report.hung == 0) return;
  fail(report.messages.empty() ? "traffic: bytes changed that belong to no request" : report.messages.front());
}

/// Throws when anything is wrong.
void work(const WorldOptions& options) {
  World world(options);
  const ReleaseWatch watch(world);
  std::unique_ptr<Endpoint> a, b;
  std::unique_ptr<Traffic> traffic;
  world.add_app(0, "single steps", [&](Host& host) {
    a = std::make_unique<Endpoint>(host);
    b = std::make_unique<Endpoint>(world.host(1));
    SingleSteps(*a, *b, options.seed).run();
    traffic = std::make_unique<Traffic>(*a, *b, traffic_options(), options.seed);
  });
  world.run(kLimitNs);
  for (std::size_t thread = 0; thread < traffic->threads(); ++thread) {
    world.add_app(thread % 2, "traffic", [&, thread](Host&) {
      traffic->run(thread);
      require_right(traffic->report());
    });
  }
  world.run(kLimitNs);
  world.add_app(0, "end", [&](Host&) {
    traffic->check_orderly();
    require_right(traffic->report());
    traffic.reset();
    a.reset();
    b.reset();
  });
  world.run(kLimitNs);
  for (std::size_t i = 0; i < World::kHosts; ++i) {
    if (world.host(i).iommu().fault_count() != 0) fail(fmt::format("host {} touched memory that is not its own", i));
  }
}

/// In the child: the barriers that were passed, a line each, and what is wrong.
[[noreturn]] void tell(const WorldOptions& options, const std::optional<BarrierPlace>& out, std::FILE* to) {
  alarm(kSeconds);
  BarrierSwitch::instance().take_out(out);
  std::string wrong;
  try {
    work(options);
  } catch (const std::exception& error) {
    wrong = error.what();
  }
  for (const auto& [place, times] : BarrierSwitch::instance().passed())
    fmt::print(to, "barrier {} {} {}\n", place.file, place.line, static_cast<int>(place.kind));
  std::replace(wrong.begin(), wrong.end(), '\n', ';');
  fmt::print(to, "end {}\n", wrong);
  std::fflush(to);
  _exit(0);  // nothing of the parent's may be flushed or torn down twice
}

}  // namespace

MemoryOrderOutcome work_apart(const WorldOptions& options, const std::optional<BarrierPlace>& out) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (child == 0) {
    close(ends[0]);
    tell(options, out, fdopen(ends[1], "w"));
  }
  close(ends[1]);
  std::string text;
  std::array<char, 4096> piece;
  for (ssize_t got; (got = read(ends[0], piece.data(), piece.size())) > 0;)
    text.append(piece.data(), static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);

  MemoryOrderOutcome outcome{.wrong = "the process has come to grief", .barriers = {}};
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string what;
    words >> what;
    if (what == "end") {
      outcome.wrong = line.substr(std::min<std::size_t>(line.size(), 4));
    } else if (int kind = 0; what == "barrier") {
      BarrierPlace place;
      words >> place.file >> place.line >> kind;
      place.kind = static_cast<Barrier>(kind);
      outcome.barriers.push_back(place);
    }
  }
  return outcome;
}

}  // namespace rnic::test
