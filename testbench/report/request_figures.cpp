#include "testbench/report/request_figures.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "model/time.hpp"
#include "testbench/timeline/life_names.hpp"

namespace rnic::testbench {
namespace {

/// `quantile`: nanoseconds, of a permille.
nlohmann::ordered_json latency_json(const Sketch& latency,
                                    const std::function<std::uint64_t(std::uint64_t)>& quantile) {
  auto buckets = nlohmann::ordered_json::array();
  for (const auto& bucket : latency.buckets()) buckets.push_back({bucket.from, bucket.to, bucket.count});
  return {{"count", latency.count()},     {"min_ns", latency.least()},
          {"median_ns", quantile(500)},   {"p90_ns", quantile(900)},
          {"p99_ns", quantile(990)},      {"p999_ns", quantile(999)},
          {"max_ns", latency.most()},     {"mean_ns", latency.count() == 0 ? 0 : latency.sum() / latency.count()},
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

/// In rising order of latency.
std::vector<const RequestFigures::Kept*> RequestFigures::sorted(const Kind& kind) {
  std::vector<const Kept*> order;
  for (const auto& one : kind.kept) order.push_back(&one);
  std::stable_sort(order.begin(), order.end(), [](auto* a, auto* b) { return a->latency_ns < b->latency_ns; });
  return order;
}

/// The request at this permille of all by latency, by nearest rank; of more than are kept the one that is nearest to
/// it.
const RequestFigures::Kept& RequestFigures::request_at(const Kind& kind, const std::vector<const Kept*>& order,
                                                       std::uint64_t permille) {
  if (kind.latency_ns.count() == order.size()) return *order[(order.size() * permille + 999) / 1000 - 1];
  const std::uint64_t wanted = kind.latency_ns.quantile(permille);
  const auto distance = [wanted](const Kept* one) {
    return std::max(one->latency_ns, wanted) - std::min(one->latency_ns, wanted);
  };
  return **std::min_element(order.begin(), order.end(), [&](auto* a, auto* b) { return distance(a) < distance(b); });
}

nlohmann::ordered_json RequestFigures::median_json(const Kind& kind, const Kept& middle, std::uint64_t epoch_ps) {
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
          {"loopback", request.last_sent.taken != 0 && request.last_sent.wire_end == 0},
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
      // The median is the latency of the request that is shown for it, so that one run has one median.
      const auto order = sorted(kind);
      const Kept& middle = request_at(kind, order, 500);
      const bool all_kept = kind.latency_ns.count() == order.size();
      one["latency"] = latency_json(kind.latency_ns, [&](std::uint64_t permille) {
        return all_kept || permille == 500 ? request_at(kind, order, permille).latency_ns
                                           : kind.latency_ns.quantile(permille);
      });
      one["median"] = median_json(kind, middle, epoch_ps);
    }
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace rnic::testbench
