#include "testbench/report/request_figures.hpp"

#include <algorithm>
#include <utility>

#include "model/time.hpp"
#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

nlohmann::ordered_json latency_json(const Sketch& latency) {
  auto buckets = nlohmann::ordered_json::array();
  for (const auto& bucket : latency.buckets()) buckets.push_back({bucket.from, bucket.to, bucket.count});
  return {{"count", latency.count()},           {"min_ns", latency.least()},
          {"median_ns", latency.quantile(500)}, {"p90_ns", latency.quantile(900)},
          {"p99_ns", latency.quantile(990)},    {"p999_ns", latency.quantile(999)},
          {"max_ns", latency.most()},           {"mean_ns", latency.count() == 0 ? 0 : latency.sum() / latency.count()},
          {"buckets", std::move(buckets)}};
}

}  // namespace

void RequestFigures::add(const Request& request, const Flights& flights) {
  Kind& kind = kinds_[std::string(request_name(request)) + (request.silent ? ", silent" : "")];
  ++kind.count;
  kind.repeated += request.repeated;
  kind.bytes += request.length;
  if (request.status != 0) {
    ++kind.failed;
    return;
  }
  const std::uint64_t end = request.when(request.silent ? Stage::kRetired : Stage::kPolled);
  if (end == 0) {
    ++kind.unfinished;
    return;
  }
  const auto times = waterfall(request, flights);
  if (times.empty()) return;
  const std::uint64_t latency =
      end / model::kPicosecondsPerNanosecond - times.front().from / model::kPicosecondsPerNanosecond;
  kind.latency_ns.add(latency);
  kind.steps.resize(steps_of(request).size());
  for (const auto& step : times)
    kind.steps[step.step].add(step.to / model::kPicosecondsPerNanosecond -
                              step.from / model::kPicosecondsPerNanosecond);
  keep(kind, request, flights, latency);
}

/// Each has the same chance to be kept (Vitter's algorithm R).
void RequestFigures::keep(Kind& kind, const Request& request, const Flights& flights, std::uint64_t latency_ns) {
  if (kind.kept.size() < kKept) {
    kind.kept.push_back({latency_ns, request, flights});
    return;
  }
  const std::uint64_t place = random_.below(kind.latency_ns.count());
  if (place < kKept) kind.kept[place] = {latency_ns, request, flights};
}

std::uint64_t RequestFigures::requests() const {
  std::uint64_t all = 0;
  for (const auto& [name, kind] : kinds_) all += kind.count;
  return all;
}

nlohmann::ordered_json RequestFigures::median_json(const Kind& kind, std::uint64_t epoch_ps) {
  std::vector<const Kept*> order;
  for (const auto& one : kind.kept) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->latency_ns < b->latency_ns; });
  const Kept& middle = *order[(order.size() + 1) / 2 - 1];
  const Request& request = middle.request;
  const auto ns = [epoch_ps](std::uint64_t ps) {
    return ps / model::kPicosecondsPerNanosecond - epoch_ps / model::kPicosecondsPerNanosecond;
  };
  const auto steps = steps_of(request);
  auto parts = nlohmann::ordered_json::array();
  for (const auto& [step, from, to] : waterfall(request, middle.flights)) {
    parts.push_back({{"step", steps[step].name},
                     {"place", name(steps[step].place)},
                     {"from_ns", ns(from)},
                     {"ns", ns(to) - ns(from)},
                     {"median_ns", kind.steps[step].quantile(500)},
                     {"p99_ns", kind.steps[step].quantile(990)}});
  }
  return {{"host", host_letter(request.host)},
          {"qp", request.qp},
          {"wqe", request.index},
          {"bytes", request.length},
          {"packets", request.packets},
          {"repeated", request.repeated},
          {"posted_ns", ns(request.when(Stage::kPosted))},
          {"latency_ns", middle.latency_ns},
          {"of", kind.kept.size()},
          {"steps", std::move(parts)}};
}

nlohmann::ordered_json RequestFigures::json(std::uint64_t epoch_ps) const {
  auto all = nlohmann::ordered_json::array();
  for (const auto& [name, kind] : kinds_) {
    nlohmann::ordered_json one = {{"kind", name},
                                  {"count", kind.count},
                                  {"failed", kind.failed},
                                  {"unfinished", kind.unfinished},
                                  {"repeated_packets", kind.repeated},
                                  {"bytes", kind.bytes}};
    if (!kind.kept.empty()) {
      one["latency"] = latency_json(kind.latency_ns);
      one["median"] = median_json(kind, epoch_ps);
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace rnic::testbench
