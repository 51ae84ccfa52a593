#include "model/timed_event.hpp"

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace rnic::model {

namespace {

const std::string kRank = "rank";

}  // namespace

ThreadRank::ThreadRank(std::uint64_t rank) : rank_(kRank, rank), thread_(sc_core::sc_get_current_process_handle()) {
  thread_.get_process_object()->add_attribute(rank_);
}

ThreadRank::~ThreadRank() { thread_.get_process_object()->remove_attribute(kRank); }

std::uint64_t ThreadRank::of_caller() {
  const auto* const rank = sc_core::sc_get_current_process_handle().get_process_object()->get_attribute(kRank);
  return rank == nullptr ? 0 : static_cast<const sc_core::sc_attribute<std::uint64_t>*>(rank)->value;
}

/// All that is due at a time. There is one, as there is one SystemC kernel, which knows the time of the first of them.
class TimeOrder {
 public:
  static TimeOrder& instance() {
    // Outlives modules that are destroyed behind main.
    static TimeOrder* const order = new TimeOrder;
    return *order;
  }

  [[nodiscard]] std::uint64_t constructed() { return ++constructed_; }

  void add(TimedEvent& event, Picoseconds time) {
    event.due_ = time;
    event.pending_ = true;
    due_.emplace(key_of(event), Due{&event.event_, &event.pending_});
    expect(time);
  }
  void remove(TimedEvent& event) {
    due_.erase(key_of(event));
    event.pending_ = false;
  }

 private:
  friend class Sleeper;
  enum class Kind : std::uint8_t { kEvent, kThread };
  struct Key {
    Picoseconds time;
    Kind kind;
    std::uint64_t rank;  ///< Of a thread
    std::uint64_t order;
    friend auto operator<=>(const Key&, const Key&) = default;
  };
  struct Due {
    sc_core::sc_event* event;
    bool* pending;  ///< Of a TimedEvent
  };

  TimeOrder() {
    spawn(
        "time_order_events",
        [this] {
          expected_ = kNever;
          serve(Kind::kEvent);
        },
        first_);
    spawn(
        "time_order_threads", [this] { serve(Kind::kThread); }, threads_);
  }

  template <typename Body>
  static void spawn(const char* name, Body body, const sc_core::sc_event& event) {
    sc_core::sc_spawn_options options;
    options.spawn_method();
    options.dont_initialize();
    options.set_sensitivity(&event);
    sc_core::sc_spawn(body, sc_core::sc_gen_unique_name(name), &options);
  }

  static Key key_of(const TimedEvent& event) { return {event.due_, Kind::kEvent, 0, event.order_}; }

  /// Of several notifications SystemC keeps the earliest; those that it would not keep are not worth the call.
  void expect(Picoseconds time) {
    if (expected_ <= time) return;
    expected_ = time;
    first_.notify(to_sc_time(time - now_ps()));
  }

  /// What is due now and of this kind happens; the threads have to wait until all that followed from the events has.
  void serve(Kind kind) {
    const Picoseconds now = now_ps();
    if (kind == Kind::kThread && events_at_ == sc_core::sc_delta_count()) {
      threads_.notify(sc_core::SC_ZERO_TIME);
      return;
    }
    while (!due_.empty() && due_.begin()->first.time <= now && due_.begin()->first.kind == kind) {
      const Due next = due_.begin()->second;
      due_.erase(due_.begin());
      if (next.pending != nullptr) *next.pending = false;
      if (kind == Kind::kEvent) events_at_ = sc_core::sc_delta_count();
      next.event->notify();
    }
    if (due_.empty()) return;
    const Key& next = due_.begin()->first;
    if (next.time > now || next.kind == Kind::kEvent) return expect(next.time);
    threads_.notify(sc_core::SC_ZERO_TIME);
  }

  std::map<Key, Due> due_;
  static constexpr Picoseconds kNever = ~Picoseconds{0};

  sc_core::sc_event first_;          ///< The first of all is due
  Picoseconds expected_ = kNever;    ///< When it comes
  sc_core::sc_event threads_;        ///< Threads are due, and nothing else of this time is left
  std::uint64_t events_at_ = ~0ULL;  ///< Delta cycle in which events happened last
  std::uint64_t constructed_ = 0;
  std::uint64_t slept_ = 0;
  std::vector<std::unique_ptr<sc_core::sc_event>> idle_;  ///< Of those that have slept
};

/// A thread that sleeps. It is forgotten when its sleep ends, however that ends.
class Sleeper {
 public:
  explicit Sleeper(Picoseconds time)
      : order_(TimeOrder::instance()), key_{time, TimeOrder::Kind::kThread, ThreadRank::of_caller(), ++order_.slept_} {
    if (order_.idle_.empty()) order_.idle_.push_back(std::make_unique<sc_core::sc_event>());
    woken_ = std::move(order_.idle_.back());
    order_.idle_.pop_back();
    order_.due_.emplace(key_, TimeOrder::Due{woken_.get(), nullptr});
    order_.expect(time);
  }
  ~Sleeper() {
    order_.due_.erase(key_);
    order_.idle_.push_back(std::move(woken_));
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  [[nodiscard]] const sc_core::sc_event& woken() const { return *woken_; }

 private:
  TimeOrder& order_;
  TimeOrder::Key key_;
  std::unique_ptr<sc_core::sc_event> woken_;
};

TimedEvent::TimedEvent() : order_(TimeOrder::instance().constructed()) {}

TimedEvent::~TimedEvent() { cancel(); }

void TimedEvent::notify_at(Picoseconds time) {
  if (pending_ && due_ <= time) return;
  cancel();
  TimeOrder::instance().add(*this, time);
}

void TimedEvent::cancel() {
  if (pending_) TimeOrder::instance().remove(*this);
}

void wait_until(Picoseconds time) {
  if (time <= now_ps()) return;
  const Sleeper sleeper(time);
  sc_core::wait(sleeper.woken());
}

void wait_until(Picoseconds time, const sc_core::sc_event& event) {
  if (time > now_ps()) wait_turn_at(time, event);
}

void wait_turn_at(Picoseconds time, const sc_core::sc_event& event) {
  if (time < now_ps()) return;
  const Sleeper sleeper(time);
  sc_core::wait(sleeper.woken() | event);
}

}  // namespace rnic::model
