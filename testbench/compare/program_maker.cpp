#include "testbench/compare/program_maker.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "testbench/compare/program_requests.hpp"

namespace rnic::testbench {
namespace {

using nlohmann::json;

class Maker {
 public:
  Maker(std::uint64_t seed, const ProgramLimits& limits) : limits_(limits) {
    plan_.random = model::Random(seed, "compare");
    program_.seed = seed;
  }

  RandomProgram make() {
    draw_setup();
    while (program_.operations() < limits_.operations && !over_) {
      add_batch();
      ++plan_.batch;
    }
    return std::move(program_);
  }

 private:
  void draw_setup() {
    static const std::vector<std::uint32_t> kMtus = {256, 512, 1024, 2048, 4096};
    static const std::vector<std::uint8_t> kRnrRetries = {0, 1, 2, 6, 7, 7};
    json& setup = program_.setup;
    const auto kind = limits_.scenario ? 0 : plan_.below(21);
    if (kind == 20) return draw_ethernet_setup();
    plan_.service = kind < 14 ? ProgramService::kRc : kind < 18 ? ProgramService::kUc : ProgramService::kUd;
    const bool rc = plan_.service == ProgramService::kRc;
    plan_.scenario = limits_.scenario;
    plan_.faults = limits_.scenario || (limits_.wire_faults && plan_.chance(rc ? 0.35 : 0.2));
    program_.faults = plan_.faults;
    plan_.srq = rc && plan_.chance(0.2);
    plan_.fast = rc && !plan_.srq && plan_.chance(0.25);
    plan_.mtu = plan_.one_of(kMtus);
    plan_.zone_bytes = plan_.mtu >= 2048 ? 16384 : 8192;
    plan_.pairs.resize(plan_.between(1, plan_.mtu >= 2048 ? 2 : 4));
    plan_.rnr_retry = limits_.scenario ? 7 : plan_.one_of(kRnrRetries);
    static const std::vector<const char*> kHostFaults = {"unsupported_request", "completer_abort", "poisoned",
                                                         "timeout"};
    plan_.host_fault = plan_.one_of(kHostFaults);
    if (rc) draw_keys();
    setup["type"] = rc ? "RC" : plan_.service == ProgramService::kUc ? "UC" : "UD";
    setup["queue_pairs"] = plan_.pairs.size();
    if (plan_.srq) setup["srq"] = {{"depth", 1024}, {"sge", 4}};
    if (plan_.fast) setup["fast_register"] = true;
    setup["ipv6"] = plan_.chance(0.4);
    setup["mtu"] = plan_.mtu;
    setup["initiator_depth"] = setup["receive_depth"] = 256;
    setup["cq_depth"] = 2048;
    setup["inline_size"] = plan_.inline_bytes =
        static_cast<std::uint32_t>(plan_.chance(0.3) ? 0 : plan_.between(1, 224));
    // A requester does not give up before a responder whose DMA reads time out.
    const bool slow = plan_.host_fault == "timeout";
    setup["completion_timeout"] = "A1";
    setup["ack_timeout"] = slow ? 9 : plan_.between(6, 7);
    setup["retry_count"] = plan_.faults ? 7 : plan_.between(1, 7);
    setup["rnr_retry"] = plan_.rnr_retry;
    setup["min_rnr_timer"] = plan_.between(1, 4);
    if (plan_.chance(0.5)) setup["read_limit"] = plan_.between(1, 16);
    if (plan_.chance(0.3)) setup["traffic_class"] = plan_.below(256);
    if (plan_.chance(0.3)) setup["hop_limit"] = plan_.between(1, 255);
    if (plan_.chance(0.3)) setup["flow_label"] = plan_.below(1 << 20);
    if (plan_.chance(0.2)) {
      setup["vlan"] = plan_.between(1, 4094);
      setup["sl"] = plan_.below(8);
    }
    for (std::size_t host = 0; host < 2; ++host) {
      json& own = setup[host_letter(host)] = json::object();
      own["first_psn"] = plan_.chance(0.3) ? 0xffffff - plan_.below(64) : plan_.below(1 << 24);
      for (auto [name, right] :
           {std::pair{"remote_read", &plan_.remote_read}, std::pair{"remote_write", &plan_.remote_write},
            std::pair{"remote_atomic", &plan_.remote_atomic}}) {
        if (!rc || !plan_.chance(0.1)) continue;
        own[name] = (*right)[host] = false;
      }
    }
    draw_regions(setup);
    if (plan_.service == ProgramService::kUd && !plan_.faults)
      plan_.groups = {{setup["ipv6"] ? "ff1e::7:1" : "239.7.0.1", {}}, {setup["ipv6"] ? "ff1e::7:2" : "239.7.0.2", {}}};
    if (!limits_.scenario && !plan_.faults && plan_.chance(0.25)) plan_.pairs.back().attacked = true;
  }

  void draw_ethernet_setup() {
    plan_.service = ProgramService::kEthernet;
    plan_.pairs.resize(plan_.between(1, 2));
    plan_.inline_bytes = static_cast<std::uint32_t>(plan_.chance(0.3) ? 0 : plan_.between(1, 224));
    json regions = json::array();
    for (std::size_t host = 0; host < 2; ++host)
      regions.push_back({{"host", host_letter(host)},
                         {"name", region_name(host)},
                         {"size", ethernet_bytes(plan_)},
                         {"flags", {"LOCAL_WRITE"}},
                         {"fill", "pattern"}});
    program_.setup = {{"type", "RAW_PACKET"},
                      {"queue_pairs", plan_.pairs.size()},
                      {"initiator_depth", 256},
                      {"receive_depth", 256},
                      {"cq_depth", 2048},
                      {"inline_size", plan_.inline_bytes},
                      {"regions", std::move(regions)}};
  }

  void draw_keys() {
    for (std::size_t host = 0; host < 2; ++host) {
      for (std::size_t i = 0; i < plan_.pairs.size() + 1; ++i) {
        PlannedKey key;
        key.name = region_name(host) + "key" + std::to_string(i);
        plan_.keys[host].push_back(std::move(key));
      }
    }
  }

  void draw_regions(json& setup) {
    json regions = json::array();
    for (std::size_t host = 0; host < 2; ++host) {
      const auto add = [&](const char* suffix, std::uint64_t size, json flags) {
        regions.push_back({{"host", host_letter(host)},
                           {"name", region_name(host, suffix)},
                           {"size", size},
                           {"flags", std::move(flags)},
                           {"fill", "pattern"}});
      };
      add("", plan_.main_bytes(), {"LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"});
      add("_none", kSmallRegion, json::array());
      add("_read", plan_.zone_bytes, {"REMOTE_READ"});
      add("_write", kSmallRegion, {"LOCAL_WRITE", "REMOTE_WRITE"});
      add("_other", kSmallRegion, {"LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE"});
      regions.back()["domain"] = "other";
      add("_bad", kSmallRegion, {"LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"});
      regions.back()["reads"] = plan_.host_fault;
      add("_unlisted", kSmallRegion, {"LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"});
      regions.back()["list_reads"] = plan_.host_fault;
      add("_win", plan_.pairs.size() * kWindowPart, {"LOCAL_WRITE"});
      add("_late", kWindowPart, {"LOCAL_WRITE"});  // for windows, which memory with atomics has not
      regions.back()["reads"] = plan_.host_fault;
    }
    setup["regions"] = std::move(regions);
  }

  void put(json step) { program_.steps.push_back({plan_.batch, std::move(step)}); }
  void wait(std::uint64_t us) { put({{"host", "A"}, {"do", "wait"}, {"us", us}}); }

  /// Datagrams to groups, as long as it is known of all queue pairs what they receive.
  bool add_group_batch() {
    const auto unknown = [](const PlannedPair& pair) { return pair.dead || pair.attacked; };
    if (plan_.groups.empty() || std::any_of(plan_.pairs.begin(), plan_.pairs.end(), unknown) || !plan_.chance(0.4))
      return false;
    for (auto& step : draw_members(plan_)) put(std::move(step));
    auto drawn = draw_group_sends(plan_, plan_.below(2), plan_.below(plan_.pairs.size()), plan_.between(1, 4));
    for (auto& step : drawn.receives) put(std::move(step));
    wait(3);
    for (auto& step : drawn.requests) put(std::move(step));
    return true;
  }

  void add_batch() {
    if (plan_.service == ProgramService::kEthernet) {
      for (auto& step : draw_ethernet(plan_)) put(std::move(step));
      return;
    }
    if (add_group_batch()) return;
    if (plan_.srq && plan_.chance(0.3)) change_shared_queue();
    std::vector<std::vector<json>> queues;  // each in its order
    std::vector<json> receives, late, faults;
    for (std::size_t qp = 0; qp < plan_.pairs.size(); ++qp) {
      auto& pair = plan_.pairs[qp];
      // A shared receive queue gives its Receives to whoever comes first: one queue pair at a time.
      if (!plan_.chance(0.8) || (plan_.srq && !queues.empty())) continue;
      if (pair.attacked) {
        if (pair.dead && plan_.chance(0.8)) begin_anew(qp);
        pair.dead = true;
        for (auto& step : draw_frames(plan_, qp, plan_.between(1, 8))) put(std::move(step));
        continue;
      }
      if (pair.dead && revive(qp)) continue;
      add_pair(qp, queues, receives, late, faults);
    }
    if (plan_.chance(0.05)) queues.push_back({resize()});
    for (auto& step : receives) put(std::move(step));
    wait(3);
    for (auto& step : faults) put(std::move(step));
    while (!queues.empty()) {
      auto& queue = queues[plan_.below(queues.size())];
      put(std::move(queue.front()));
      queue.erase(queue.begin());
      if (!late.empty() && plan_.chance(0.3)) {
        wait(plan_.between(1, 60));
        put(std::move(late.front()));
        late.erase(late.begin());
      }
      std::erase_if(queues, [](const auto& one) { return one.empty(); });
    }
    for (auto& step : late) put(std::move(step));
  }

  /// Where Receives come late it is a matter of time how few there have been.
  void change_shared_queue() {
    const char* const host = host_letter(plan_.below(2));
    json modify = {{"host", host}, {"do", "modify_srq"}};
    if (plan_.chance(0.5)) modify["depth"] = plan_.between(1024, 4096);
    const bool limits = plan_.rnr_retry != 7;
    if (limits) modify["threshold"] = plan_.between(1, 12);
    if (limits && plan_.chance(0.7))
      put({{"host", host}, {"do", "notify"}, {"queue", "shared"}, {"name", "n" + std::to_string(plan_.batch)}});
    if (modify.size() > 2) put(std::move(modify));
  }

  json resize() {
    return {{"host", plan_.chance(0.5) ? "A" : "B"},
            {"do", "resize_cq"},
            {"queue", plan_.chance(0.5) ? "initiator" : "receive"},
            {"depth", plan_.between(2000, 4000)}};
  }

  void add_pair(std::size_t qp, std::vector<std::vector<json>>& queues, std::vector<json>& receives,
                std::vector<json>& late, std::vector<json>& faults) {
    auto& pair = plan_.pairs[qp];
    const std::size_t first = plan_.below(2), count = plan_.between(1, 8);
    // Where messages get lost nobody knows which of them meets what is wrong.
    const bool certain = !plan_.faults || plan_.service == ProgramService::kRc;
    const bool fails = certain && !plan_.scenario && !pair.dead && plan_.rnr_retry != 7 &&
                       pair.must_live != plan_.batch && plan_.chance(0.15);
    // What a failed queue pair had taken of a shared queue is open, so nobody knows what is left in it.
    over_ = over_ || (fails && plan_.srq);
    const bool unread = fails && plan_.chance(0.2);
    const bool one_way = pair.dead || fails || plan_.srq || plan_.chance(0.5);
    // Others give up some time, and times are free.
    const bool comes_late =
        !pair.dead && !fails && plan_.service == ProgramService::kRc && plan_.rnr_retry == 7 && plan_.chance(0.35);
    for (std::size_t i = 0; i < (one_way ? 1u : 2u); ++i) {
      const std::size_t host = i == 0 ? first : 1 - first;
      auto drawn = pair.dead ? draw_blind(plan_, host, qp, std::min<std::size_t>(count, 3))
                   : unread  ? draw_unread(plan_, host, qp, count)
                   : fails   ? draw_failure(plan_, host, qp, count)
                             : draw_requests(plan_, host, qp, count);
      for (auto& step : drawn.receives) (comes_late ? late : receives).push_back(std::move(step));
      if (plan_.faults && !plan_.scenario && !pair.dead && !fails) add_faults(host, qp, drawn, faults);
      if (!pair.dead && !fails && plan_.chance(0.06) && plan_.service == ProgramService::kRc)
        hold(host, qp, drawn.requests);
      queues.push_back(std::move(drawn.requests));
    }
  }

  /// The requests are posted while the send queue stands still (SQD).
  void hold(std::size_t host, std::size_t qp, std::vector<json>& requests) {
    const auto to = [&](const char* state) {
      return json{{"host", host_letter(host)}, {"do", "modify"}, {"qp", qp + 1}, {"to", state}};
    };
    json stop = to("SQD");
    if (plan_.chance(0.5)) stop["notify"] = true;
    requests.insert(requests.begin(), std::move(stop));
    requests.push_back(to("RTS"));
  }

  void add_faults(std::size_t host, std::size_t qp, const PlannedRequests& drawn, std::vector<json>& faults) {
    static const std::vector<const char*> kReliable = {"drop",    "drop",  "duplicate", "reorder",
                                                       "corrupt", "delay", "truncate",  "ecn"};
    static const std::vector<const char*> kUnreliable = {"drop", "duplicate", "corrupt", "ecn"};
    static const std::vector<const char*> kAnswers = {"Acknowledge",        "ReadResponseOnly", "ReadResponseFirst",
                                                      "ReadResponseMiddle", "ReadResponseLast", "AtomicAcknowledge"};
    const bool reliable = plan_.service == ProgramService::kRc;
    const std::uint32_t packets = (drawn.end_psn - drawn.first_psn) & 0xffffff;
    if (packets == 0 || plan_.service == ProgramService::kUd) return;
    for (std::size_t i = 0; i < plan_.between(1, 3); ++i) {
      json step = {{"do", "fault"}, {"qp", qp + 1}, {"fault", plan_.one_of(reliable ? kReliable : kUnreliable)}};
      const bool answer = reliable && plan_.chance(0.35);
      step["host"] = host_letter(answer ? 1 - host : host);
      if (!reliable || plan_.chance(0.85)) step["psn"] = (drawn.first_psn + plan_.below(packets)) & 0xffffff;
      if (answer) step["opcode"] = plan_.one_of(kAnswers);
      step["nth"] = plan_.chance(0.8) ? 1 : plan_.between(1, 3);
      if (reliable && plan_.chance(0.2)) step["count"] = 2;
      const std::string fault = step["fault"];
      if (fault == "corrupt") step["bit"] = plan_.between(8 * 14, 8 * 54 - 1);
      if (fault == "reorder" || fault == "duplicate") step["frames"] = reliable ? plan_.between(1, 4) : 0;
      if (fault == "delay") step["ns"] = plan_.between(100, 30'000);
      faults.push_back(std::move(step));
    }
  }

  /// What is done with a pair on which something has failed, if not requests; then it gives true.
  bool revive(std::size_t qp) {
    auto& pair = plan_.pairs[qp];
    give_rings_back(pair);
    if (plan_.service == ProgramService::kRc) {
      if (pair.area + 1 >= plan_.areas || plan_.chance(0.4)) return false;
      begin_anew(qp);
      return true;
    }
    for (std::size_t host = 0; host < 2; ++host) {
      if (std::exchange(pair.stopped[host], false))
        put({{"host", host_letter(host)}, {"do", "modify"}, {"qp", qp + 1}, {"to", "RTS"}});
    }
    pair.dead = false;
    return true;
  }

  void give_rings_back(PlannedPair& pair) {
    for (auto& step : std::exchange(pair.unread, json::array())) put(std::move(step));
  }

  void begin_anew(std::size_t qp) {
    auto& pair = plan_.pairs[qp];
    for (const char* const what : {"reset", "RTR", "RTS"}) {
      for (std::size_t host = 0; host < 2; ++host) {
        json step = {{"host", host_letter(host)}, {"qp", qp + 1}};
        if (what[1] == 'e')
          step["do"] = what;
        else
          step.update({{"do", "modify"}, {"to", what}});
        put(std::move(step));
      }
    }
    const bool attacked = pair.attacked;
    const std::size_t area = attacked ? pair.area : pair.area + 1;
    pair = PlannedPair{};
    pair.area = area;
    pair.attacked = attacked;
  }

  ProgramLimits limits_;
  ProgramPlan plan_;
  RandomProgram program_;
  bool over_ = false;
};

}  // namespace

RandomProgram make_program(std::uint64_t seed, const ProgramLimits& limits) { return Maker(seed, limits).make(); }

}  // namespace rnic::testbench
