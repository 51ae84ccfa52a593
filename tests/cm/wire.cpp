#include "tests/cm/wire.hpp"

#include <algorithm>

namespace rnic::test {

CmWire::CmWire(std::uint64_t seed, const cm::Config& config) : random_(seed) {
  for (const int number : {0, 1}) {
    hosts_.push_back(std::make_unique<Host>(*this, number));
    hosts_.back()->manager = std::make_unique<cm::Manager>(config, *hosts_.back());
  }
}

cm::Gid CmWire::gid(int host, std::uint8_t network) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, network, static_cast<std::uint8_t>(host + 1)};
}

void CmWire::Host::send(const cm::Gid& local, const cm::Gid& remote, const cm::Mad& mad) {
  const Sent sent{of.now_, local, remote, mad};
  if (of.keep_log) of.log.push_back(sent);
  if (!of.lose(sent)) of.on_its_way_.emplace(of.now_ + kDelayNs, sent);
}

bool CmWire::step(std::uint64_t until) {
  std::uint64_t next = on_its_way_.empty() ? cm::Manager::kNever : on_its_way_.begin()->first;
  for (auto& host : hosts_) next = std::min(next, host->manager->next_deadline());
  if (next > until) return false;
  now_ = std::max(now_, next);
  if (!on_its_way_.empty() && on_its_way_.begin()->first <= now_) {
    const Sent sent = on_its_way_.begin()->second;
    on_its_way_.erase(on_its_way_.begin());
    for (auto& host : hosts_) {
      if (host->is_own(sent.to)) host->manager->receive(sent.to, sent.from, sent.mad, now_);
    }
    return true;
  }
  for (auto& host : hosts_) host->manager->run_timers(now_);
  return true;
}

void CmWire::run(std::uint64_t ns) {
  const std::uint64_t until = now_ + ns;
  while (!on_its_way_.empty() || ns != 0) {
    if (!step(on_its_way_.empty() ? until : std::max(until, on_its_way_.begin()->first))) break;
  }
  now_ = std::max(now_, until);
}

void CmWire::run_out() {
  while (step(cm::Manager::kNever - 1)) {
  }
}

std::size_t CmWire::count(cm::Attribute attribute) const {
  return static_cast<std::size_t>(std::count_if(log.begin(), log.end(), [attribute](const Sent& sent) {
    return sent.mad[17] == static_cast<std::uint8_t>(attribute);
  }));
}

}  // namespace rnic::test
