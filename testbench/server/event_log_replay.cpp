#include "testbench/server/event_log_replay.hpp"

#include <fmt/format.h>

#include <utility>

#include "model/time.hpp"
#include "testbench/server/overseers.hpp"

namespace rnic::testbench {
namespace {

/// Simulated time in which a machine meets nothing, and does not rest.
constexpr model::Picoseconds kLongestGap = 10'000'000'000'000;

}  // namespace

EventLogReplay::EventLogReplay(MachineServer& server, EventLogReader& log) : server_(server), follower_(log) {
  for (const auto& host : server.hosts())
    memories_.push_back(std::make_unique<ReplayedMemory>(host->host(), follower_));
  server.set_after_advance([this] { follower_.check(); });
}

EventLogReplay::~EventLogReplay() { server_.set_after_advance({}); }

void EventLogReplay::wrong(const std::string& what) const {
  throw EventLogError(
      fmt::format("the event log is damaged: at {} ps {}, which no machine writes", model::now_ps(), what));
}

EventLogReplay::Outcome EventLogReplay::run() {
  server_.bring_up();
  EventLogReader& log = follower_.log();
  while (const LogRecord* const next = log.peek()) {
    if (is_inner(next->kind) || next->kind == LogKind::kFailed || next->time_ps != model::now_ps()) {
      let_pass(*next);
      continue;
    }
    if (next->kind == LogKind::kEnd) {
      const auto data = log.take().data;
      figures_.assign(data.begin(), data.end());
      return Outcome::kWhole;
    }
    act(log.take());
  }
  // What came last has its effect; a machine that failed has failed by then.
  if (!finished_) server_.advance(log.header().slice_ps);
  return Outcome::kCutOff;
}

/// Time until the next record, or a part of it. A failure, which may come at any time, is the simulation's to throw.
void EventLogReplay::let_pass(const LogRecord& next) {
  const model::Picoseconds now = model::now_ps();
  if (next.time_ps < now) follower_.diverge("nothing like it has happened");
  if (finished_) follower_.diverge("the machine has ended");
  if (next.time_ps - now > kLongestGap) wrong("a long time passes");
  server_.advance(follower_.log().header().slice_ps);
  for (const auto& host : server_.hosts()) host->take_all();
}

void EventLogReplay::act(const LogRecord& record) {
  if (finished_) wrong("something comes behind the end");
  switch (record.kind) {
    case LogKind::kAttach: {
      if (record.host >= server_.hosts().size() || record.process == 0) wrong("a process comes to no host");
      HostServer& host = *server_.hosts()[record.host];
      auto session =
          std::make_shared<ReplayedSession>(host, static_cast<std::int32_t>(record.process), record.session, follower_);
      sessions_.push_back(session);
      return host.add(std::move(session));
    }
    case LogKind::kDetach:
    case LogKind::kDoorbell:
    case LogKind::kRequest: {
      const auto session = sessions_.at(record.session).lock();
      if (session == nullptr || session->ended())
        throw Divergence(fmt::format("at {} ps connection {} has ended; the log has, as event {}: {}", model::now_ps(),
                                     record.session, follower_.log().taken(), describe(record)));
      return session->say(record);
    }
    case LogKind::kLook:
      return server_.calls().run(
          [server = &server_, counters = record.flag] { static_cast<void>(machine_json(*server, counters)); });
    case LogKind::kFrame:
      if (record.socket >= server_.sockets().size() || record.data.empty()) wrong("a frame comes in at no socket");
      return server_.sockets()[record.socket]->inject(record.data);
    case LogKind::kRest: return server_.advance(record.length);
    case LogKind::kFinish: finished_ = true; return server_.finish();
    default: break;
  }
  wrong("something happens");
}

bool EventLogReplay::failure_is_known(const std::string& why) {
  try {
    const LogRecord* const next = follower_.log().peek();
    return next != nullptr && next->kind == LogKind::kFailed &&
           std::string(next->data.begin(), next->data.end()) == why;
  } catch (const EventLogError&) {
    return false;
  }
}

}  // namespace rnic::testbench
