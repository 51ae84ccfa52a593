#include "testbench/tool/machine_programs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "driver/result.hpp"
#include "testbench/tool/diagnosis.hpp"

namespace rnic::testbench {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kReceive = "Receive";

const char* type_name(hw::QpType type) {
  switch (type) {
    case hw::QpType::kRc: return "RC";
    case hw::QpType::kUc: return "UC";
    case hw::QpType::kUd: return "UD";
    case hw::QpType::kRawPacket: return "raw packet";
  }
  return "?";
}

double gbps(std::uint64_t bytes, std::uint64_t ns) {
  constexpr double kBits = 8;
  return ns == 0 ? 0 : kBits * static_cast<double>(bytes) / static_cast<double>(ns);
}

Json kinds_json(const QueuePairWork& work) {
  auto all = Json::array();
  for (const auto& [name, kind] : work.kinds) {
    all.push_back({{"kind", name},
                   {"count", kind.count},
                   {"bytes", kind.bytes},
                   {"failed", kind.failed},
                   {"flushed", kind.flushed},
                   {"unfinished", kind.unfinished}});
  }
  return all;
}

void add_latency(Json& json, const Sketch& latency) {
  constexpr std::uint64_t kMedian = 500, kNinetyNine = 990;
  if (latency.count() == 0) return;
  json["latency_median_ns"] = latency.quantile(kMedian);
  json["latency_p99_ns"] = latency.quantile(kNinetyNine);
}

Json objects_json(const ProcessRecord& process) {
  constexpr std::array<std::pair<const char*, calls::ObjectKind>, 6> kShown{
      {{"queue pairs", calls::ObjectKind::kQp},
       {"completion queues", calls::ObjectKind::kCq},
       {"shared receive queues", calls::ObjectKind::kSrq},
       {"memory regions", calls::ObjectKind::kMr},
       {"memory windows", calls::ObjectKind::kMw},
       {"connection endpoints", calls::ObjectKind::kEndpoint}}};
  Json json = Json::object();
  for (const auto& [name, kind] : kShown) {
    if (const auto found = process.created.find(kind); found != process.created.end()) json[name] = found->second;
  }
  return json;
}

Json refused_json(const ProcessRecord& process) {
  auto all = Json::array();
  for (const auto& [what, count] : process.refused) {
    const auto& [call, status] = what;
    const auto error = static_cast<Error>(static_cast<unsigned>(status) - 1);
    all.push_back({{"call", std::string(rnic::testbench::name_of(call))},
                   {"error", std::string(describe(error))},
                   {"count", count}});
  }
  return all;
}

/// What all queue pairs of a process did together.
struct Together {
  Sketch latency{Sketch::kLatencyStepBits};
  std::uint64_t requests = 0, succeeded = 0, bytes = 0, from_ns = 0, to_ns = 0;

  void add(const QueuePairWork& work) {
    for (const auto& [name, kind] : work.kinds) requests += name == kReceive ? 0 : kind.count;
    if (work.latency_ns.count() == 0) return;
    from_ns = succeeded == 0 ? work.from_ns : std::min(from_ns, work.from_ns);
    to_ns = std::max(to_ns, work.to_ns);
    succeeded += work.latency_ns.count();
    bytes += work.bytes;
    latency.add(work.latency_ns);
  }
};

Json process_json(const ProcessRecord& process, HostServer& host, const QueuePairFigures& figures,
                  const MachineServer& server) {
  const auto number = static_cast<unsigned>(host.host().index());
  const auto& sessions = host.sessions();
  const bool connected = std::any_of(sessions.begin(), sessions.end(),
                                     [&](const auto& one) { return &one->record() == &process && !one->over(); });
  Json json{{"process", process.process},
            {"name", process.name},
            {"host", number},
            {"ancestors", process.ancestors},
            {"connected", connected},
            {"objects", objects_json(process)},
            {"calls", process.calls},
            {"refused_calls", refused_json(process)}};
  Together together;
  auto pairs = Json::array(), diagnoses = Json::array();
  for (const auto& pair : process.queue_pairs) {
    Json one{{"qpn", pair.qpn}, {"type", type_name(pair.type)}};
    if (const auto work = figures.find(number, pair.qpn)) {
      together.add(*work);
      one["requests"] = kinds_json(*work);
      one["bytes"] = work->bytes;
      one["repeated_packets"] = work->repeated;
      one["goodput_gbps"] = gbps(work->bytes, work->to_ns - work->from_ns);
      one["from_ns"] = work->from_ns;
      one["to_ns"] = work->to_ns;
      add_latency(one, work->latency_ns);
      if (work->failure)
        diagnoses.push_back({{"at_ns", work->failure->ended_ns},
                             {"receive", work->failure->receive},
                             {"text", diagnose(*work->failure, process.name, number, pair.qpn, server)}});
    }
    pairs.push_back(std::move(one));
  }
  std::stable_sort(diagnoses.begin(), diagnoses.end(),
                   [](const Json& a, const Json& b) { return a.at("at_ns") < b.at("at_ns"); });
  json["requests"] = together.requests;
  json["succeeded"] = together.succeeded;
  json["bytes"] = together.bytes;
  json["goodput_gbps"] = gbps(together.bytes, together.to_ns - together.from_ns);
  add_latency(json, together.latency);
  json["queue_pairs"] = std::move(pairs);
  json["diagnoses"] = std::move(diagnoses);
  return json;
}

}  // namespace

void MachinePrograms::observe(WorldOptions& options) {
  observed_ = true;
  options.observers.push_back(&figures_);
}

nlohmann::ordered_json MachinePrograms::figures(const MachineServer& server) const {
  Json json{{"observed", observed_}, {"processes", Json::array()}};
  for (const auto& host : server.hosts()) {
    const auto& all = host->book().all();
    std::size_t skipped = all.size() - std::min(all.size(), kMostTold / server.hosts().size() + 1);
    for (const auto& process : all) {
      if (skipped != 0) {
        --skipped;
        continue;
      }
      if (process->calls == 0) continue;
      Json one = process_json(*process, *host, figures_, server);
      one.erase("queue_pairs");
      auto& diagnoses = one.at("diagnoses");
      while (diagnoses.size() > 1) diagnoses.erase(diagnoses.size() - 1);
      json["processes"].push_back(std::move(one));
    }
  }
  return json;
}

void MachinePrograms::fill(ReportFile& report, const MachineServer& server) const {
  report.set("programs", run_ ? run_->value("programs", Json::array()) : Json::array());
  auto all = Json::array();
  for (const auto& host : server.hosts()) {
    for (const auto& process : host->book().all()) {
      if (process->calls != 0) all.push_back(process_json(*process, *host, figures_, server));
    }
  }
  report.set("processes", all);
  for (const auto& process : all) {
    if (process.at("succeeded").get<std::uint64_t>() == 0) continue;
    const std::string group =
        fmt::format("{} on host{}", process.at("name").get<std::string>(), process.at("host").get<unsigned>());
    report.add_figure(group, "goodput", process.at("goodput_gbps"), "Gbit/s");
    report.add_figure(group, "latency, median", process.at("latency_median_ns"), "ns");
    report.add_figure(group, "latency, 99 %", process.at("latency_p99_ns"), "ns");
    report.add_figure(group, "requests", process.at("requests"));
    report.add_figure(group, "bytes", process.at("bytes"));
  }
  if (!run_) return;
  const std::string command = run_->value("command", "exec");
  std::string title;
  for (const auto& program : run_->value("programs", Json::array())) {
    const auto words = program.value("command", std::vector<std::string>());
    if (words.empty()) continue;
    title += (title.empty() ? "rnic " + command + ": " : " and ") + fs::path(words.front()).filename().string();
  }
  report.set("command", command);
  report.set("title", title);
  report.set("command_line", run_->value("command_line", std::string()));
  if (ended()) report.set_outcome(run_->value("good", false), run_->value("text", std::string()));
}

}  // namespace rnic::testbench
