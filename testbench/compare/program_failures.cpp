#include <algorithm>
#include <utility>

#include "testbench/compare/program.hpp"
#include "testbench/compare/request_maker.hpp"

namespace rnic::testbench {
namespace {

/// Draws requests that cannot succeed, too.
class FailureMaker : public RequestMaker {
 public:
  using RequestMaker::RequestMaker;

  /// True: the responder refuses it, so that another failure may stand behind it, and nothing comes of that. Not so
  /// behind one that its own NIC refuses: what is behind may have left (Freedom::kBehindError). Nor behind a Read whose
  /// memory its host does not give: which of the two the responder meets first is a matter of time. Nor behind a SEND
  /// without a Receive, which would take that of the other and might fail with it twice (Freedom::kTwoFaults).
  bool add_failure() {
    switch (plan_.service) {
      case ProgramService::kUd: add_datagram_failure(); return false;
      case ProgramService::kUc: add_unreliable_failure(); return false;
      case ProgramService::kEthernet: return false;  // its programs draw frames of their own (program_ethernet.cpp)
      case ProgramService::kRc: break;
    }
    pair_.dead = true;
    pair_.failed = plan_.batch;
    lose_keys();
    const auto kind = is_slow() && plan_.chance(0.3) ? kInvalidated : plan_.below(16);
    add_failure_of(kind);
    return kind != kLocal && kind != kRnr && kind != kKey && kind != kHost && kind != kHostToo && kind != kInvalidated;
  }

  /// Of the peer only on RC: of UC and UD what it had taken is open.
  PlannedRequests add_unread(std::size_t count) {
    const bool receives = plan_.service == ProgramService::kRc && pair_.receives[peer_].empty() && plan_.chance(0.4);
    lose_keys();
    pair_.dead = true;
    pair_.failed = plan_.batch;
    pair_.stopped[host_] = !receives;
    json give = {{"host", host_letter(receives ? peer_ : host_)}, {"do", "ring_reads"}, {"answer", plan_.host_fault}};
    give["queue"] = !receives ? "initiator" : plan_.srq ? "shared" : "receive";
    if (!plan_.srq || !receives) give["qp"] = qp_ + 1;
    for (std::size_t i = 0; i < count; ++i) i == 0 && receives ? add_send(false) : add_any_plain();
    PlannedRequests drawn = take();
    auto& first = receives ? drawn.receives : drawn.requests;
    first.insert(first.begin(), give);
    give["answer"] = "data";
    pair_.unread.push_back(give);
    if (receives) return drawn;
    // Posted to the ring alone: what is written to a UAR's window too, the NIC need not read (docs/host_interface.md).
    for (auto& step : drawn.requests) {
      if (posts_request(step)) step["flags"].push_back("DEFER");
    }
    drawn.requests.push_back({{"host", host_letter(host_)}, {"do", "ring"}, {"qp", qp_ + 1}});
    return drawn;
  }

 private:
  static constexpr std::size_t kLocal = 4, kRnr = 8, kKey = 11, kHost = 12, kHostToo = 13, kInvalidated = 14;

  void add_failure_of(std::size_t kind) {
    switch (kind) {
      case 0: return fail_remote({{"corrupt", plan_.chance(0.5) ? "tag" : "index"}}, region_name(peer_));
      case 1: return fail_rights();
      case 2: return fail_range();
      case 3: return fail_alignment();
      case kLocal: return fail_local();
      case 5:
      case 6: return fail_length();
      case 7: return fail_receive();
      case kRnr: return fail_rnr();
      case 9: return fail_invalidate();
      case 10: return fail_remote("other", region_name(peer_), region_name(peer_, "_other"));
      case kKey: return fail_key_request();
      case kHost:
      case kHostToo: return fail_host();
      case kInvalidated: return fail_invalidated();
      default: return fail_unopened();
    }
  }

  /// DMA reads that fail are never answered.
  [[nodiscard]] bool is_slow() const { return plan_.host_fault == "timeout"; }
  void lose_keys() {
    for (auto& keys : plan_.keys) {
      for (auto& key : keys) key.lost = key.lost || key.qp == qp_;
    }
  }
  /// Any but those about keys.
  void add_any_plain() {
    if (plan_.service != ProgramService::kUd && plan_.chance(0.4) && plan_.remote_write[peer_]) return add_write(true);
    if (plan_.service != ProgramService::kRc || !plan_.chance(0.4)) return add_send(true);
    if (plan_.remote_read[peer_] && plan_.chance(0.6)) return add_read();
    plan_.remote_atomic[peer_] ? add_atomic() : add_send(true);
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
    step["sge"] = result_sink();
    step["add"] = 1;
    step["remote"] = remote(region_name(peer_), plan_.zone(qp_, Zone::kAtomics) + plan_.between(1, 7));
    finish(std::move(step), 1);
  }

  void fail_local() {
    const bool reads = plan_.chance(0.4) && plan_.remote_read[peer_];
    // Freedom::kBehindError: what a peer says of a Write that it refuses depends on whether its first packet has left.
    const bool refused = !reads && !plan_.remote_write[peer_];
    const std::uint64_t length = plan_.between(1, refused ? plan_.mtu : 2000);
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
        wrong = place(region_name(host_, plan_.chance(0.5) ? "_read" : "_unlisted"), plan_.below(100),
                      wrong["length"].get<std::uint64_t>());
        break;
    }
    finish(std::move(step), plan_.packets(length));
  }

  /// Of memory that PCI Express does not give: at home, or at the peer.
  void fail_host() {
    if (plan_.chance(0.4)) {
      json step = begin(plan_.chance(0.6) ? "read" : "fetch_add");
      const std::uint64_t length = step["do"] == "read" ? plan_.between(1, 3000) : 8;
      step["sge"] = step["do"] == "read" ? sink(length) : result_sink();
      if (step["do"] == "fetch_add") step["add"] = plan_.below(100);
      step["remote"] = remote(region_name(peer_, not_given()), 8 * plan_.below(100));
      return finish(std::move(step), plan_.packets(length));
    }
    const bool writes = plan_.chance(0.5) && plan_.remote_write[peer_];
    json step = begin(writes ? "write" : "send");
    std::uint64_t length = plan_.between(1, 3000);
    if (!writes) length = std::max<std::uint64_t>(1, provide_receive(length));
    step["sge"] = source(length);
    if (writes) step["remote"] = remote(region_name(peer_), plan_.zone(qp_, Zone::kWriteTarget));
    // Or the peer does not know where its pages are.
    if (writes && plan_.chance(0.3))
      step["remote"] = remote(region_name(peer_, "_unlisted"), plan_.below(100));
    else
      spoil(step, false);
    finish(std::move(step), plan_.packets(length));
  }

  /// A region whose bytes its host does not give, or whose pages.
  const char* not_given() { return plan_.chance(0.5) ? "_bad" : "_unlisted"; }

  /// The bytes of a request are those that its host does not give: all, or of one of its segments.
  void spoil(json& step, bool all) {
    std::vector<json*> with_bytes;
    for (auto& one : step["sge"]) {
      if (one["length"].get<std::uint64_t>() != 0) with_bytes.push_back(&one);
    }
    if (with_bytes.empty()) return;
    if (!all) with_bytes = {plan_.one_of(with_bytes)};
    for (json* const one : with_bytes) {
      const auto length = (*one)["length"].get<std::uint64_t>();
      *one = place(region_name(host_, not_given()),
                   plan_.below(std::min<std::uint64_t>(100, kSmallRegion + 1 - length)), length);
    }
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
    if (key.length == 0 || key.changed == plan_.batch) return fail_local();
    // Freedom::kWindowElsewhere
    auto& bound_on = plan_.pairs[key.qp];
    if (key.bound && key.qp != qp_) {
      if (bound_on.failed == plan_.batch) return fail_local();
      bound_on.must_live = plan_.batch;
    }
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
    if (key.length == 0 || key.changed == plan_.batch) return fail_rights();  // not there yet, perhaps
    const std::uint64_t length = plan_.between(1, std::min<std::uint64_t>(key.length, 1000));
    json step = remote_request(length);
    const bool beyond = key.bound && key.qp == qp_;
    step["remote"] = key_place(key, beyond ? key.length - length + 1 : 0);
    finish(std::move(step), plan_.packets(length));
  }

  /// Through a window that its owner invalidates while a Read is under way through it: the Invalidate has been executed
  /// before the queue pair fails, and may complete later (decisions 17). Whether the Read comes to its end is open
  /// (Freedom::kWindowEnds).
  void fail_invalidated() {
    const bool allowed = plan_.remote_read[peer_] && plan_.remote_write[peer_];
    if (plan_.fast || plan_.srq || plan_.faults || !allowed) return fail_rights();
    // Of memory whose reads are answered never, or as ever.
    const bool silent = is_slow() && plan_.chance(0.7);
    const std::string region = region_name(peer_, silent ? "_late" : "_win");
    const std::uint64_t offset = silent ? 0 : qp_ * kWindowPart;
    const std::string window = region_name(peer_) + "late" + std::to_string(plan_.next_context);
    const auto owner = [&](const char* what) {
      json step = begin(what);
      step["host"] = host_letter(peer_);
      step["window"] = window;
      return step;
    };
    const auto wait = [&](std::uint64_t us) {
      planned_.requests.push_back({{"host", host_letter(host_)}, {"do", "wait"}, {"us", us}});
    };
    const auto through = [&](json step, std::uint64_t length) {
      step["remote"] = remote(region, offset);
      step["remote"]["token"] = {{"window", window}};
      finish(std::move(step), plan_.packets(length));
    };
    json bind = owner("bind");
    bind.update({{"region", region}, {"offset", offset}, {"length", kWindowPart}});
    bind["flags"] = {"ALLOW_READ", "ALLOW_WRITE"};
    planned_.requests.push_back(std::move(bind));
    wait(20);
    json read = begin("read");
    read["sge"] = sink(kWindowPart / 2);
    through(std::move(read), kWindowPart / 2);
    wait(silent ? 10 : plan_.below(3));
    planned_.requests.push_back(owner("invalidate"));
    wait(20);
    json write = begin("write");
    write["sge"] = source(8);
    through(std::move(write), 8);
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
    pair_.stopped[host_] = pair_.dead = true;
    if (plan_.chance(0.3)) return spoil(step, true);
    for (auto& one : step["sge"]) one["token"] = {{"corrupt", plan_.chance(0.5) ? "tag" : "index"}};
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
};

}  // namespace

PlannedRequests draw_unread(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  return FailureMaker(plan, host, qp).add_unread(count);
}

PlannedRequests draw_failure(ProgramPlan& plan, std::size_t host, std::size_t qp, std::size_t count) {
  FailureMaker maker(plan, host, qp);
  // Freedom::kDroppedBehind
  const std::size_t failing = plan.service != ProgramService::kRc ? count - 1 : plan.below(count);
  const bool twice = plan.chance(0.3);
  bool another = false;
  for (std::size_t i = 0; i < count; ++i) {
    if (i == failing || another)
      another = maker.add_failure() && twice && i == failing;
    else
      i < failing ? maker.add_any() : maker.add_send(true);
  }
  return maker.take();
}

}  // namespace rnic::testbench
