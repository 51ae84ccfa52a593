#include "testbench/app_runner.hpp"

#include <algorithm>
#include <utility>

#include "model/timed_event.hpp"

namespace rnic::testbench {
namespace {

/// More than the longest read of a register, which nothing cuts short.
constexpr double kGraceNs = 5'000'000;

}  // namespace

AppRunner::AppRunner(const sc_core::sc_module_name& name) : sc_module(name) {
  SC_HAS_PROCESS(AppRunner);
  SC_THREAD(supervise);
}

void AppRunner::add(std::string name, std::function<void()> body) {
  auto app = std::make_unique<App>();
  app->name = std::move(name);
  app->body = std::move(body);
  app->rank = apps_.size() + 1;
  apps_.push_back(std::move(app));
}

void AppRunner::run(const sc_core::sc_time& limit, const Watch& watch, const Stop& stop) {
  failure_ = nullptr;
  timed_out_ = stuck_ = false;
  watch_ = watch;
  stop_ = stop;
  deadline_ = sc_core::sc_time_stamp() + limit;
  requested_ = true;
  start_event_.notify(sc_core::SC_ZERO_TIME);  // has no effect before the first sc_start; the flag has
  sc_core::sc_start();
  const std::string names = std::exchange(unfinished_, {});
  apps_.clear();
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  if (stuck_) throw Hang("nothing moves any more, and these wait: " + names);
  if (timed_out_) {
    throw SimulationTimeout("not ended after " + limit.to_string() + " of simulated time: " + names);
  }
}

void AppRunner::supervise() {
  for (;;) {
    while (!requested_) wait(start_event_);
    requested_ = false;
    for (auto& app : apps_) {
      sc_core::sc_spawn_options options;
      options.set_stack_size(kAppStackBytes);
      app->process =
          sc_core::sc_spawn([this, one = app.get()] { execute(*one); }, sc_core::sc_gen_unique_name("app"), &options);
    }
    wait_for_apps();
    if ((timed_out_ || stuck_) && stop_.late) stop_.late();
    unfinished_ = unfinished();
    if (stop_.ask && !all_ended()) ask_all();
    stop_all();
    sc_core::sc_pause();
  }
}

void AppRunner::wait_for_apps() {
  const bool watched = watch_.period != sc_core::SC_ZERO_TIME;
  sc_core::sc_time look = sc_core::sc_time_stamp() + watch_.period;
  while (!all_ended() && !failure_) {
    const sc_core::sc_time now = sc_core::sc_time_stamp();
    timed_out_ = now >= deadline_;
    if (watched && now >= look) {
      look = now + watch_.period;
      stuck_ = watch_.stuck();
    }
    if (timed_out_ || stuck_) return;
    model::wait_until((watched ? std::min(look, deadline_) : deadline_).value(), end_event_);
  }
}

void AppRunner::execute(App& app) {
  const model::ThreadRank rank(app.rank);
  try {
    app.body();
  } catch (const sc_core::sc_unwind_exception&) {
    throw;
  } catch (...) {
    // What comes of being asked to stop is no reason for it.
    if (!failure_ && !timed_out_ && !stuck_) failure_ = std::current_exception();
  }
  app.ended = true;
  end_event_.notify(sc_core::SC_ZERO_TIME);
}

void AppRunner::ask_all() {
  stop_.ask();
  const model::Picoseconds end = model::time_in(model::from_ns(kGraceNs));
  while (!all_ended() && model::now_ps() < end) model::wait_until(end, end_event_);
}

void AppRunner::stop_all() {
  for (auto& app : apps_) {
    if (!app->ended) app->process.kill();
  }
}

bool AppRunner::all_ended() const {
  return std::all_of(apps_.begin(), apps_.end(), [](const auto& app) { return app->ended; });
}

std::string AppRunner::unfinished() const {
  std::string names;
  for (const auto& app : apps_) {
    if (!app->ended) names += (names.empty() ? "" : ", ") + app->name;
  }
  return names;
}

}  // namespace rnic::testbench
