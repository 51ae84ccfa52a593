#include "testbench/compare/program_requests.hpp"

#include <utility>

namespace rnic::testbench {
namespace {

using nlohmann::json;

json place(const std::string& region, std::uint64_t offset, std::uint64_t length) {
  return {{"region", region}, {"offset", offset}, {"length", length}};
}

json remote(const std::string& region, std::uint64_t offset) { return {{"region", region}, {"offset", offset}}; }

/// Draws the requests of one direction one after the other.
class RequestMaker {
 public:
  RequestMaker(ProgramPlan& plan, std::size_t host, std::size_t qp)
      : plan_(plan), host_(host), peer_(1 - host), qp_(qp), pair_(plan.pairs[qp]) {
    planned_.first_psn = planned_.end_psn = pair_.psn[host];
  }

  PlannedRequests take() {
    planned_.end_psn = pair_.psn[host_];
    return std::move(planned_);
  }

  void add_any() {
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

  void add_send(bool blind) {
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

  void add_write(bool blind) {
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

  void add_read() {
    json step = begin("read");
    const std::uint64_t length = draw_length();
    step["sge"] = sink(length);
    step["remote"] =
        remote(region_name(peer_), plan_.zone(qp_, Zone::kReadSource) + plan_.below(plan_.zone_bytes - length + 1));
    flag(step, length, false);
    finish(std::move(step), plan_.packets(length));
  }

  void add_atomic() {
    json step = begin(plan_.chance(0.5) ? "fetch_add" : "compare_swap");
    step["sge"] = sink(8);
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

  /// Binds, registers, ends or uses a key; a Send where there is none.
  void add_key_request() {
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

  void add_failure() {
    switch (plan_.service) {
      case ProgramService::kUd: return add_datagram_failure();
      case ProgramService::kUc: return add_unreliable_failure();
      case ProgramService::kRc: break;
    }
    pair_.dead = true;
    for (auto& keys : plan_.keys) {
      for (auto& key : keys) key.lost = key.lost || key.qp == qp_;
    }
    switch (plan_.below(13)) {
      case 0: return fail_remote({{"corrupt", plan_.chance(0.5) ? "tag" : "index"}}, region_name(peer_));
      case 1: return fail_rights();
      case 2: return fail_range();
      case 3: return fail_alignment();
      case 4: return fail_local();
      case 5:
      case 6: return fail_length();
      case 7: return fail_receive();
      case 8: return fail_rnr();
      case 9: return fail_invalidate();
      case 10: return fail_remote("other", region_name(peer_), region_name(peer_, "_other"));
      case 11: return fail_key_request();
      default: return fail_unopened();
    }
  }

 private:
  json begin(const char* what) {
    return {{"host", host_letter(host_)}, {"do", what}, {"qp", qp_ + 1}, {"context", plan_.next_context++}};
  }

  void finish(json step, std::uint32_t packets) {
    pair_.psn[host_] = (pair_.psn[host_] + packets) & 0xffffff;
    planned_.requests.push_back(std::move(step));
  }

  std::uint64_t draw_length() {
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

  /// Segments of a request, or of a Receive, one behind the other in a zone, at any alignment.
  json segments(std::uint64_t zone, std::uint64_t length) {
    const std::size_t count = length == 0 ? plan_.below(2) : plan_.between(1, 4);
    json list = json::array();
    std::uint64_t at = zone + plan_.below(64), left = length;
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t bytes = i + 1 == count ? left : plan_.below(left + 1);
      list.push_back(place(region_name(segment_host_), at, bytes));
      if (bytes == 0 && plan_.chance(0.3)) list.back()["token"] = {{"corrupt", "tag"}};
      at += bytes + plan_.below(3) * plan_.below(100);
      left -= bytes;
    }
    return list;
  }
  json source(std::uint64_t length) {
    segment_host_ = host_;
    return segments(plan_.zone(qp_, Zone::kSource) + plan_.below(plan_.zone_bytes / 4), length);
  }
  json sink(std::uint64_t length) {
    segment_host_ = host_;
    return segments(plan_.zone(qp_, Zone::kSink) + plan_.below(plan_.zone_bytes / 4), length);
  }

  void flag(json& step, std::uint64_t length, bool may_be_inline) {
    json flags = json::array();
    if (plan_.chance(0.2)) flags.push_back("READ_FENCE");
    if (plan_.chance(0.2)) flags.push_back("SILENT_SUCCESS");
    if (plan_.chance(0.1) && (step["do"] == "send" || step.contains("immediate"))) flags.push_back("SOLICIT");
    if (may_be_inline && length <= plan_.inline_bytes && plan_.chance(0.4)) flags.push_back("INLINE");
    if (!flags.empty()) step["flags"] = flags;
  }

  /// The message has a Receive, and fits; gives its length.
  std::uint64_t provide_receive(std::uint64_t length) {
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

  void post_receive(std::uint64_t bytes, bool wrong = false) {
    segment_host_ = peer_;
    json step = {{"host", host_letter(peer_)}, {"do", "receive"}, {"qp", qp_ + 1}, {"context", plan_.next_context++}};
    step["sge"] = segments(plan_.zone(qp_, Zone::kReceives) + plan_.below(plan_.zone_bytes / 4), bytes);
    if (wrong) {
      step["sge"] =
          json::array({place(region_name(peer_, plan_.chance(0.5) ? "_read" : "_other"), plan_.below(64), bytes)});
    }
    planned_.receives.push_back(std::move(step));
    pair_.receives[peer_].push_back(static_cast<std::uint32_t>(bytes));
    ++plan_.shared_receives[peer_];
  }

  void open_key(PlannedKey& key) {
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

  void end_key(PlannedKey& key) {
    json step = begin(plan_.fast ? "end_registration" : "invalidate");
    step[plan_.fast ? "name" : "window"] = key.name;
    key.bound = false;
    key.changed = plan_.batch;
    finish(std::move(step), 0);
  }

  void end_by_peer(PlannedKey& key) {
    json step = begin("send");
    const std::uint64_t length = provide_receive(draw_length());
    step["sge"] = source(length);
    step["invalidate"] = key.name;
    key.bound = false;
    key.changed = plan_.batch;
    finish(std::move(step), plan_.packets(length));
  }

  /// Reads in one batch, Writes in the next one, so that nothing that is written is read.
  void use_key(PlannedKey& key) {
    const bool writes = plan_.batch % 2 == 0;
    if (!(writes ? key.writes && plan_.remote_write[peer_] : key.reads && plan_.remote_read[peer_]))
      return add_send(false);
    key.used = plan_.batch;
    json step = begin(writes ? "write" : "read");
    const std::uint64_t most = std::min<std::uint64_t>(key.length, plan_.zone_bytes / 2),
                        length = plan_.between(0, most);
    const std::uint64_t offset = plan_.between(0, key.length - length);
    step["sge"] = writes ? source(length) : sink(length);
    step["remote"] = key_place(key, offset);
    flag(step, length, false);
    finish(std::move(step), plan_.packets(length));
  }

  [[nodiscard]] json key_place(const PlannedKey& key, std::uint64_t offset) const {
    if (plan_.fast) return remote(key.name, offset);
    json to = remote(region_name(peer_, "_win"), key.offset + offset);
    to["token"] = {{"window", key.name}};
    return to;
  }

  /// A Read, a Write or an atomic, as its peer allows.
  json remote_request(std::uint64_t length) {
    const auto kind = plan_.below(4);
    if (kind == 3) {
      json step = begin("fetch_add");
      step["sge"] = sink(8);
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

  void fail_remote(const json& token, const std::string& region, const std::string& of = {}) {
    const std::uint64_t length = std::max<std::uint64_t>(1, draw_length());
    json step = remote_request(length);
    step["remote"] = remote(region, plan_.zone(qp_, Zone::kAtomics));
    step["remote"]["token"] = token;
    if (!of.empty()) step["remote"]["of"] = of;
    finish(std::move(step), plan_.packets(length));
  }

  void fail_rights() {
    static const std::vector<const char*> kRegions = {"_none", "_read", "_write", "_other", "_win"};
    const std::uint64_t length = plan_.between(1, 1000);
    json step = remote_request(length);
    step["remote"] = remote(region_name(peer_, plan_.one_of(kRegions)), 8 * plan_.below(128));
    finish(std::move(step), plan_.packets(length));
  }

  void fail_range() {
    const std::uint64_t length = plan_.between(8, 2000);
    json step = remote_request(length);
    const bool behind = plan_.chance(0.5);
    const std::int64_t over = static_cast<std::int64_t>(plan_.chance(0.5) ? 1 : plan_.between(1, length));
    const std::int64_t offset = behind ? static_cast<std::int64_t>(plan_.main_bytes() - length) + over : -over;
    step["remote"] = {{"region", region_name(peer_)}, {"offset", step["do"] == "fetch_add" ? offset & ~7ll : offset}};
    finish(std::move(step), plan_.packets(length));
  }

  void fail_alignment() {
    json step = begin("fetch_add");
    step["sge"] = sink(8);
    step["add"] = 1;
    step["remote"] = remote(region_name(peer_), plan_.zone(qp_, Zone::kAtomics) + plan_.between(1, 7));
    finish(std::move(step), 1);
  }

  void fail_local() {
    const std::uint64_t length = plan_.between(1, 2000);
    const bool reads = plan_.chance(0.4) && plan_.remote_read[peer_];
    json step = begin(reads ? "read" : "write");
    step["sge"] = reads ? sink(length) : source(length);
    step["remote"] = remote(region_name(peer_), plan_.zone(qp_, reads ? Zone::kReadSource : Zone::kWriteTarget));
    json& wrong = step["sge"][plan_.below(step["sge"].size())];
    switch (plan_.below(reads ? 4 : 3)) {
      case 0: wrong["token"] = {{"corrupt", plan_.chance(0.5) ? "tag" : "index"}}; break;
      case 1:
        wrong = place(region_name(host_, "_other"), plan_.below(100), wrong["length"].get<std::uint64_t>());
        break;
      case 2: wrong["offset"] = plan_.main_bytes() - plan_.below(wrong["length"].get<std::uint64_t>() + 1); break;
      default:
        wrong = place(region_name(host_, "_read"), plan_.below(100), wrong["length"].get<std::uint64_t>());
        break;
    }
    finish(std::move(step), plan_.packets(length));
  }

  void fail_length() {
    if (plan_.srq) return fail_alignment();
    auto& waiting = pair_.receives[peer_];
    if (waiting.empty()) post_receive(plan_.chance(0.3) ? 0 : plan_.below(plan_.zone_bytes / 3));
    json step = begin("send");
    const std::uint64_t length = std::min<std::uint64_t>(
        waiting.front() + (plan_.chance(0.5) ? 1 : plan_.between(1, 2000)), plan_.zone_bytes / 8 * 5);
    waiting.pop_front();
    step["sge"] = source(length);
    finish(std::move(step), plan_.packets(length));
  }

  void fail_receive() {
    if (plan_.srq || !pair_.receives[peer_].empty()) return fail_alignment();
    const std::uint64_t bytes = plan_.between(1, 2000);
    post_receive(bytes, true);
    pair_.receives[peer_].pop_front();
    json step = begin("send");
    step["sge"] = source(plan_.between(1, bytes));
    finish(std::move(step), plan_.packets(bytes));
  }

  void fail_rnr() {
    if (plan_.srq || !pair_.receives[peer_].empty() || plan_.rnr_retry > 2) return fail_alignment();
    json step = begin("send");
    const std::uint64_t length = draw_length();
    step["sge"] = source(length);
    finish(std::move(step), plan_.packets(length));
  }

  void fail_invalidate() {
    json step = begin("send");
    const std::uint64_t length = provide_receive(draw_length());
    step["sge"] = source(length);
    step["invalidate"] = region_name(peer_, plan_.chance(0.5) ? "_other" : "_read");
    finish(std::move(step), plan_.packets(length));
  }

  /// Of a key that is bound, or that is not.
  void fail_key_request() {
    auto& own = plan_.keys[host_];
    if (own.empty()) return fail_local();
    PlannedKey& key = own[plan_.below(own.size())];
    if (key.length == 0) return fail_local();
    key.lost = true;
    if (key.bound && !plan_.fast) return open_key(key);
    if (!key.bound) return end_key(key);
    fail_local();
  }

  /// Through a key that is not open, or beyond what it opens, or without its right.
  void fail_unopened() {
    auto& theirs = plan_.keys[peer_];
    if (theirs.empty()) return fail_rights();
    PlannedKey& key = theirs[plan_.below(theirs.size())];
    if (key.length == 0) return fail_rights();
    const std::uint64_t length = plan_.between(1, std::min<std::uint64_t>(key.length, 1000));
    json step = remote_request(length);
    const bool beyond = key.bound && key.qp == qp_;
    step["remote"] = key_place(key, beyond ? key.length - length + 1 : 0);
    finish(std::move(step), plan_.packets(length));
  }

  void add_datagram_failure() {
    json step = begin("send");
    const std::uint64_t length = plan_.between(1, plan_.mtu);
    step["sge"] = source(length);
    switch (plan_.below(pair_.receives[peer_].empty() ? 4 : 3)) {
      case 0: step["qkey"] = plan_.below(1u << 31); break;
      case 1: step["qpn_xor"] = 1u << plan_.between(16, 23); break;
      case 2: stop(step); break;
      default: break;  // there is no Receive
    }
    finish(std::move(step), 1);
  }

  /// A request that its own NIC refuses: an unreliable queue pair stops.
  void stop(json& step) {
    for (auto& one : step["sge"]) one["token"] = {{"corrupt", plan_.chance(0.5) ? "tag" : "index"}};
    pair_.stopped[host_] = pair_.dead = true;
  }

  void add_unreliable_failure() {
    const std::uint64_t length = plan_.between(1, plan_.mtu);
    json step = begin(plan_.chance(0.7) || !pair_.receives[peer_].empty() ? "write" : "send");
    step["sge"] = source(length);
    if (step["do"] == "write") {
      step["remote"] = remote(region_name(peer_), plan_.zone(qp_, Zone::kWriteTarget));
      switch (plan_.below(3)) {
        case 0: step["remote"]["token"] = {{"corrupt", "tag"}}; break;
        case 1: step["remote"] = remote(region_name(peer_, "_read"), plan_.below(64)); break;
        default: stop(step); break;
      }
    }
    finish(std::move(step), plan_.packets(length));
  }

  ProgramPlan& plan_;
  const std::size_t host_, peer_, qp_;
  PlannedPair& pair_;
  PlannedRequests planned_;
  std::size_t segment_host_ = 0;
};

}  // namespace

PlannedRequests draw_requests(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  RequestMaker maker(plan, host, qp);
  for (std::size_t i = 0; i < count; ++i) maker.add_any();
  return maker.take();
}

PlannedRequests draw_failure(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  RequestMaker maker(plan, host, qp);
  // What is under way behind a message that a UC responder drops may be dropped with it.
  const std::size_t failing = plan.service == ProgramService::kUc ? count - 1 : plan.below(count);
  for (std::size_t i = 0; i < count; ++i)
    i == failing ? maker.add_failure() : i < failing ? maker.add_any() : maker.add_send(true);
  return maker.take();
}

PlannedRequests draw_blind(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  RequestMaker maker(plan, host, qp);
  for (std::size_t i = 0; i < count; ++i)
    plan.service != ProgramService::kUd&& plan.chance(0.5) ? maker.add_write(true) : maker.add_send(true);
  return maker.take();
}

}  // namespace rnic::testbench
