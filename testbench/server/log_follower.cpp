#include "testbench/server/log_follower.hpp"

#include <fmt/format.h>

#include "model/time.hpp"

namespace rnic::testbench {
namespace {

/// Whether the simulation does what the record says; what it then has from outside is the record's alone.
bool same(const LogRecord& met, const LogRecord& logged) {
  if (met.kind != logged.kind || logged.time_ps != model::now_ps()) return false;
  switch (met.kind) {
    case LogKind::kReach:
      return met.host == logged.host && met.process == logged.process && met.address == logged.address &&
             met.length == logged.length && met.flag == logged.flag;
    case LogKind::kDmaRead:
    case LogKind::kDmaWrite:
      return met.host == logged.host && met.address == logged.address && met.length == logged.length &&
             met.checksum == logged.checksum;
    case LogKind::kAnswer:
      return met.session == logged.session && met.number == logged.number && met.checksum == logged.checksum;
    default: return false;
  }
}

bool differs_in_content(const LogRecord& met, const LogRecord& logged) {
  LogRecord like = logged;
  like.checksum = met.checksum;
  return met.checksum != logged.checksum && same(met, like);
}

}  // namespace

std::string LogFollower::difference(const std::string& met, const LogRecord& next) const {
  return fmt::format("at {} ps {}; the log has, as event {}, at {} ps: {}", model::now_ps(), met, log_.taken() + 1,
                     next.time_ps, describe(next));
}

void LogFollower::diverge(const std::string& met) {
  const LogRecord* const next = log_.peek();
  throw Divergence(difference(met, next != nullptr ? *next : LogRecord{}));
}

std::optional<LogRecord> LogFollower::follow(const LogRecord& met) {
  if (lost_) return {};
  try {
    const LogRecord* const next = log_.peek();
    if (next != nullptr && same(met, *next)) return log_.take();
    lost_ = true;
    if (next == nullptr) return {};
    const char* const content = differs_in_content(met, *next) ? ", with other content" : "";
    failure_ = std::make_exception_ptr(Divergence(difference(describe(met) + content, *next)));
  } catch (const EventLogError&) {
    lost_ = true;
    failure_ = std::current_exception();
  }
  return {};
}

std::optional<LogRecord> LogFollower::follow_if(const LogRecord& met) {
  if (lost_) return {};
  try {
    const LogRecord* const next = log_.peek();
    if (next != nullptr && same(met, *next)) return log_.take();
  } catch (const EventLogError&) {
    lost_ = true;
    failure_ = std::current_exception();
  }
  return {};
}

void LogFollower::check() const {
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace rnic::testbench
