#include "testbench/compare/program_requests.hpp"

#include <algorithm>

#include "testbench/compare/request_maker.hpp"

namespace rnic::testbench {

PlannedRequests RequestMaker::take() {
  planned_.end_psn = pair_.psn[host_];
  return std::move(planned_);
}

void RequestMaker::add_any() {
  if (plan_.service == ProgramService::kUd) return add_send(false);
  if (plan_.service == ProgramService::kUc) return plan_.chance(0.5) ? add_send(false) : add_write(false);
  switch (plan_.below(10)) {
    case 0:
    case 1:
    case 2: return add_send(false);
    case 3:
    case 4: return plan_.remote_write[peer_] ? add_write(false) : add_send(false);
    case 5:
    case 6: return plan_.remote_read[peer_] ? add_read() : add_send(false);
    case 7: return plan_.remote_atomic[peer_] ? add_atomic() : add_send(false);
    default: return add_key_request();
  }
}

void RequestMaker::add_send(bool blind) {
  json step = begin("send");
  std::uint64_t length = draw_length();
  if (plan_.service == ProgramService::kUd) length = std::min<std::uint64_t>(length, plan_.mtu);
  const bool single = plan_.service == ProgramService::kUc && plan_.faults;
  if (single) length = std::min<std::uint64_t>(length, plan_.mtu);
  if (!blind) length = provide_receive(length);
  step["sge"] = source(length);
  if (plan_.chance(0.2)) step["immediate"] = plan_.below(1ull << 32);
  if (plan_.service == ProgramService::kUd && plan_.chance(0.3))
    step["address"] = {
        {"ipv6", plan_.chance(0.5)}, {"traffic_class", plan_.below(256)}, {"hop_limit", plan_.between(1, 255)}};
  flag(step, length, true);
  finish(std::move(step), plan_.packets(length));
}

void RequestMaker::add_write(bool blind) {
  json step = begin("write");
  std::uint64_t length = draw_length();
  if (plan_.service == ProgramService::kUc && plan_.faults) length = std::min<std::uint64_t>(length, plan_.mtu);
  step["sge"] = source(length);
  const std::uint64_t offset = plan_.zone(qp_, Zone::kWriteTarget) + plan_.below(plan_.zone_bytes - length + 1);
  step["remote"] = remote(region_name(peer_), offset);
  if (length == 0 && plan_.chance(0.5)) step["remote"]["token"] = {{"corrupt", "tag"}};
  if (plan_.chance(0.2)) {
    if (!blind) provide_receive(0);
    step["immediate"] = plan_.below(1ull << 32);
  }
  flag(step, length, true);
  finish(std::move(step), plan_.packets(length));
}

void RequestMaker::add_read() {
  json step = begin("read");
  const std::uint64_t length = draw_length();
  step["sge"] = sink(length);
  step["remote"] =
      remote(region_name(peer_), plan_.zone(qp_, Zone::kReadSource) + plan_.below(plan_.zone_bytes - length + 1));
  flag(step, length, false);
  finish(std::move(step), plan_.packets(length));
}

void RequestMaker::add_atomic() {
  json step = begin(plan_.chance(0.5) ? "fetch_add" : "compare_swap");
  step["sge"] = result_sink();
  step["remote"] = remote(region_name(peer_), plan_.zone(qp_, Zone::kAtomics) + 8 * plan_.below(4));
  const auto value = [this] { return plan_.chance(0.3) ? plan_.below(4) : plan_.random.next(); };
  if (step["do"] == "fetch_add") {
    step["add"] = value();
  } else {
    step["compare"] = value();
    step["swap"] = value();
  }
  flag(step, 8, false);
  finish(std::move(step), 1);
}

void RequestMaker::add_key_request() {
  auto& own = plan_.keys[host_];
  auto& theirs = plan_.keys[peer_];
  if (own.empty() || plan_.srq) return add_send(false);
  PlannedKey& mine = own[plan_.below(own.size())];
  PlannedKey& other = theirs[plan_.below(theirs.size())];
  const auto quiet = [this](const PlannedKey& key) { return key.changed != plan_.batch && key.used != plan_.batch; };
  if (plan_.chance(0.6) && !other.lost && other.bound && other.qp == qp_ && other.changed != plan_.batch) {
    if (quiet(other) && plan_.chance(0.2)) return end_by_peer(other);
    return use_key(other);
  }
  if (mine.lost) return add_send(false);
  if (mine.bound && mine.qp == qp_ && quiet(mine) && plan_.chance(0.3)) return end_key(mine);
  if (!mine.bound && quiet(mine) && (mine.length == 0 || !plan_.fast || mine.qp == qp_)) return open_key(mine);
  add_send(false);
}

nlohmann::json RequestMaker::begin(const char* what) {
  return {{"host", host_letter(host_)}, {"do", what}, {"qp", qp_ + 1}, {"context", plan_.next_context++}};
}

void RequestMaker::finish(json step, std::uint32_t packets) {
  pair_.psn[host_] = (pair_.psn[host_] + packets) & 0xffffff;
  planned_.requests.push_back(std::move(step));
}

std::uint64_t RequestMaker::draw_length() {
  const std::uint64_t most = plan_.zone_bytes / 2;
  switch (plan_.below(8)) {
    case 0: return 0;
    case 1: return plan_.between(1, 16);
    case 2:
    case 3: {
      const std::uint64_t multiple = plan_.mtu * plan_.between(1, 4) + plan_.between(0, 8);
      return std::min(most, multiple - std::min<std::uint64_t>(multiple, 4));
    }
    case 4: return plan_.between(1, most);
    default: return plan_.between(1, std::min<std::uint64_t>(most, 600));
  }
}

nlohmann::json RequestMaker::segments(const std::string& region, std::uint64_t zone, std::uint64_t length) {
  const std::size_t count = length == 0 ? plan_.below(2) : plan_.between(1, 4);
  json list = json::array();
  std::uint64_t at = zone + plan_.below(plan_.zone_bytes / 4) + plan_.below(64), left = length;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t bytes = i + 1 == count ? left : plan_.below(left + 1);
    list.push_back(place(region, at, bytes));
    if (bytes == 0 && plan_.chance(0.3)) list.back()["token"] = {{"corrupt", "tag"}};
    at += bytes + plan_.below(3) * plan_.below(100);
    left -= bytes;
  }
  return list;
}

nlohmann::json RequestMaker::source(std::uint64_t length) {
  if (was_dead_) return segments(region_name(host_, "_read"), 0, length);
  return segments(region_name(host_), plan_.zone(qp_, Zone::kSource), length);
}

nlohmann::json RequestMaker::sink(std::uint64_t length) {
  return segments(region_name(host_), plan_.zone(qp_, Zone::kSink), length);
}

nlohmann::json RequestMaker::result_sink() {
  const std::uint64_t at = plan_.zone(qp_, Zone::kSink) + plan_.below(plan_.zone_bytes - 8);
  return json::array({place(region_name(host_), at, 8)});
}

void RequestMaker::flag(json& step, std::uint64_t length, bool may_be_inline) {
  json flags = json::array();
  if (plan_.chance(0.2)) flags.push_back("READ_FENCE");
  if (plan_.chance(0.2)) flags.push_back("SILENT_SUCCESS");
  if (plan_.chance(0.1) && (step["do"] == "send" || step.contains("immediate"))) flags.push_back("SOLICIT");
  if (may_be_inline && length <= plan_.inline_bytes && plan_.chance(0.4)) flags.push_back("INLINE");
  if (!flags.empty()) step["flags"] = flags;
}

std::uint64_t RequestMaker::provide_receive(std::uint64_t length) {
  const std::uint32_t more = plan_.service == ProgramService::kUd ? 40 : 0;
  auto& waiting = pair_.receives[peer_];
  // Any queue pair may take any Receive of a shared queue; and on a wire that loses any message may take any one.
  if (plan_.srq || (plan_.faults && plan_.service != ProgramService::kRc)) {
    post_receive(plan_.zone_bytes / 2 + more);
    return length;
  }
  if (waiting.empty() || plan_.chance(0.1)) {
    const std::uint64_t extra = plan_.chance(0.5) ? 0 : plan_.below(300);
    const bool first = waiting.empty();
    post_receive(std::min<std::uint64_t>(length + more + extra, plan_.zone_bytes / 2 + more));
    if (!first) length = std::min<std::uint64_t>(length, waiting.front() - more);
  } else {
    length = std::min<std::uint64_t>(length, waiting.front() - more);
  }
  waiting.pop_front();
  return length;
}

void RequestMaker::post_receive(std::uint64_t bytes, bool wrong) {
  json step = {{"host", host_letter(peer_)}, {"do", "receive"}, {"qp", qp_ + 1}, {"context", plan_.next_context++}};
  step["sge"] = segments(region_name(peer_), plan_.zone(qp_, Zone::kReceives), bytes);
  if (wrong) {
    static const std::vector<const char*> kWrong = {"_read", "_other", "_unlisted"};
    step["sge"] = json::array({place(region_name(peer_, plan_.one_of(kWrong)), plan_.below(64), bytes)});
  }
  planned_.receives.push_back(std::move(step));
  pair_.receives[peer_].push_back(static_cast<std::uint32_t>(bytes));
  ++plan_.shared_receives[peer_];
}

void RequestMaker::open_key(PlannedKey& key) {
  key.reads = plan_.chance(0.6);
  key.writes = !key.reads || plan_.chance(0.5);
  if (key.length == 0 || !plan_.fast) {
    key.length = plan_.between(1, kWindowPart - 8);
    key.offset = qp_ * kWindowPart + plan_.below(kWindowPart - key.length);
  }
  key.qp = qp_;
  key.bound = true;
  key.changed = plan_.batch;
  json step = begin(plan_.fast ? "fast_register" : "bind");
  step[plan_.fast ? "name" : "window"] = key.name;
  step["region"] = region_name(host_, "_win");
  step["offset"] = key.offset;
  step["length"] = key.length;
  json flags = json::array();
  if (key.reads) flags.push_back(plan_.fast ? "REMOTE_READ" : "ALLOW_READ");
  if (key.writes) flags.push_back(plan_.fast ? "REMOTE_WRITE" : "ALLOW_WRITE");
  if (plan_.fast) flags.push_back("LOCAL_WRITE");
  step["flags"] = flags;
  finish(std::move(step), 0);
}

void RequestMaker::end_key(PlannedKey& key) {
  json step = begin(plan_.fast ? "end_registration" : "invalidate");
  step[plan_.fast ? "name" : "window"] = key.name;
  key.bound = false;
  key.changed = plan_.batch;
  finish(std::move(step), 0);
}

void RequestMaker::end_by_peer(PlannedKey& key) {
  json step = begin("send");
  const std::uint64_t length = provide_receive(draw_length());
  step["sge"] = source(length);
  step["invalidate"] = key.name;
  key.bound = false;
  key.changed = plan_.batch;
  finish(std::move(step), plan_.packets(length));
}

void RequestMaker::use_key(PlannedKey& key) {
  const bool writes = plan_.batch % 2 == 0;
  if (!(writes ? key.writes && plan_.remote_write[peer_] : key.reads && plan_.remote_read[peer_]))
    return add_send(false);
  key.used = plan_.batch;
  json step = begin(writes ? "write" : "read");
  const std::uint64_t most = std::min<std::uint64_t>(key.length, plan_.zone_bytes / 2), length = plan_.between(0, most);
  const std::uint64_t offset = plan_.between(0, key.length - length);
  step["sge"] = writes ? source(length) : sink(length);
  step["remote"] = key_place(key, offset);
  flag(step, length, false);
  finish(std::move(step), plan_.packets(length));
}

nlohmann::json RequestMaker::key_place(const PlannedKey& key, std::uint64_t offset) const {
  if (plan_.fast) return remote(key.name, offset);
  json to = remote(region_name(peer_, "_win"), key.offset + offset);
  to["token"] = {{"window", key.name}};
  return to;
}

nlohmann::json RequestMaker::remote_request(std::uint64_t length) {
  const auto kind = plan_.below(4);
  if (kind == 3) {
    json step = begin("fetch_add");
    step["sge"] = result_sink();
    step["add"] = plan_.below(100);
    return step;
  }
  json step = begin(kind == 0 ? "read" : "write");
  step["sge"] = kind == 0 ? sink(length) : source(length);
  if (kind == 2 && plan_.chance(0.5)) {
    provide_receive(0);
    step["immediate"] = plan_.below(1ull << 32);
  }
  return step;
}

PlannedRequests draw_requests(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  RequestMaker maker(plan, host, qp);
  for (std::size_t i = 0; i < count; ++i) maker.add_any();
  return maker.take();
}

PlannedRequests draw_blind(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  RequestMaker maker(plan, host, qp);
  for (std::size_t i = 0; i < count; ++i)
    plan.service != ProgramService::kUd&& plan.chance(0.5) ? maker.add_write(true) : maker.add_send(true);
  return maker.take();
}

}  // namespace rnic::testbench
