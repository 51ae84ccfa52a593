#include "testbench/report/run_report.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "model/time.hpp"
#include "testbench/timeline/life_names.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {
namespace {

/// Queue pairs with a separate series, of each receiver.
constexpr std::size_t kSeries = 8;

bool is_payload(SeriesKind kind) { return kind == SeriesKind::kPayload || kind == SeriesKind::kLoopback; }

std::uint64_t picoseconds(double ns) {
  return static_cast<std::uint64_t>(std::llround(ns * static_cast<double>(model::kPicosecondsPerNanosecond)));
}

}  // namespace

std::vector<LifeSink*> RunReport::begin(const WorldOptions& options, std::uint64_t epoch_ps) {
  shared_ = std::make_unique<SharedFigures>();
  shared_->is_program = is_program_;
  hosts_.clear();
  links_.clear();
  cycles_.clear();
  epoch_ps_ = epoch_ps;
  end_ps_.reset();
  std::vector<LifeSink*> sinks;
  for (std::size_t i = 0; i < options.hosts; ++i) {
    const HostOptions host = options.each_host.at(i).value_or(options.host);
    const model::WireOptions wire =
        options.has_switch() ? options.each_wire.at(i).value_or(options.wire) : options.wire;
    const model::RootComplexOptions& root = host.root_complex;
    links_.push_back({wire.rate_gbps, root.bandwidth_gbytes, host.nic.clock_period});
    const Flights flights{picoseconds(wire.delay_ns), picoseconds(root.read_latency_ns / 2)};
    hosts_.push_back(std::make_unique<HostReport>(*shared_, static_cast<unsigned>(i), flights, root.bandwidth_gbytes));
    sinks.push_back(hosts_.back().get());
  }
  return sinks;
}

void RunReport::only(std::function<bool(unsigned, std::uint8_t)> is_program) {
  is_program_ = std::move(is_program);
  if (shared_) shared_->is_program = is_program_;
}

void RunReport::end(std::uint64_t now_ps, const std::vector<std::uint64_t>& cycles) {
  end_ps_ = now_ps;
  cycles_ = cycles;
}

/// The largest series of payload that a host accepted, from the wire and in loopback, and the rest in one each.
nlohmann::ordered_json RunReport::series_json() const {
  const TimeSeries& series = shared_->series;
  const auto bins = [&](const TimeSeries::Bins& all) {
    return std::vector<std::uint64_t>(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(series.used()));
  };
  auto payload = nlohmann::ordered_json::array(), links = nlohmann::ordered_json::array();
  const auto add_payload = [&](std::size_t to, SeriesKind kind) {
    std::vector<std::pair<std::uint64_t, std::uint32_t>> order;
    for (const auto& [key, amounts] : series.all()) {
      const SeriesName name = SeriesName::of(key);
      if (name.kind == kind && name.to == to)
        order.emplace_back(std::accumulate(amounts.begin(), amounts.end(), std::uint64_t{0}), key);
    }
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
    const std::size_t separate = order.size() <= kSeries ? order.size() : kSeries - 1;
    std::sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(separate),
              [](const auto& a, const auto& b) { return a.second < b.second; });
    const auto add = [&](const TimeSeries::Bins& amounts) -> nlohmann::ordered_json& {
      payload.push_back({{"to", host_letter(static_cast<unsigned>(to))},
                         {"loopback", kind == SeriesKind::kLoopback},
                         {"bytes", bins(amounts)}});
      return payload.back();
    };
    for (std::size_t i = 0; i < separate; ++i) {
      const SeriesName name = SeriesName::of(order[i].second);
      auto& one = add(series.all().at(order[i].second));
      if (name.host == SeriesName::kOutside) continue;
      one["host"] = host_letter(name.host);
      one["qp"] = name.qp;
    }
    if (separate == order.size()) return;
    TimeSeries::Bins rest{};
    for (std::size_t i = separate; i < order.size(); ++i) {
      const auto& more = series.all().at(order[i].second);
      for (std::size_t bin = 0; bin < rest.size(); ++bin) rest[bin] += more[bin];
    }
    add(rest)["others"] = order.size() - separate;
  };
  for (std::size_t to = 0; to < hosts_.size(); ++to) {
    add_payload(to, SeriesKind::kPayload);
    add_payload(to, SeriesKind::kLoopback);
  }
  for (const auto& [key, amounts] : series.all()) {
    const SeriesName name = SeriesName::of(key);
    if (is_payload(name.kind)) continue;
    const char* kind = name.kind == SeriesKind::kWire ? "wire" : name.kind == SeriesKind::kToNic ? "to NIC" : "to host";
    links.push_back({{"link", kind}, {"host", host_letter(name.host)}, {"bytes", bins(amounts)}});
  }
  return {
      {"from_ns", (series.origin_ps() - std::min(series.origin_ps(), epoch_ps_)) / model::kPicosecondsPerNanosecond},
      {"bin_ns", static_cast<double>(series.width_ps()) / static_cast<double>(model::kPicosecondsPerNanosecond)},
      {"payload", std::move(payload)},
      {"links", std::move(links)}};
}

nlohmann::ordered_json RunReport::links_json() const {
  auto all = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < links_.size(); ++i) {
    all.push_back({{"host", host_letter(static_cast<unsigned>(i))},
                   {"wire_gbps", links_[i].wire_gbps},
                   {"pcie_gbps", 8 * links_[i].pcie_gbytes},
                   {"clock_period_ps", links_[i].clock_period_ps},
                   {"cycles", i < cycles_.size() ? cycles_[i] : 0}});
  }
  return all;
}

nlohmann::ordered_json RunReport::json() const {
  if (!shared_) return nullptr;
  const WorkTime& work = shared_->work;
  const std::uint64_t now = end_ps_.value_or(model::now_ps());
  const auto since = [this](std::uint64_t ps) {
    return (ps - std::min(ps, epoch_ps_)) / model::kPicosecondsPerNanosecond;
  };
  auto hosts = nlohmann::ordered_json::array();
  std::uint64_t frames = 0;
  for (const auto& host : hosts_) hosts.push_back(host->json());
  for (const auto& packets : shared_->packets) frames += packets.frames();
  nlohmann::ordered_json json = {{"end_ns", since(now)},
                                 {"work",
                                  {{"from_ns", since(work.first_ps())},
                                   {"to_ns", since(work.last_ps())},
                                   {"ns", work.total_ps(now) / model::kPicosecondsPerNanosecond}}},
                                 {"frames", frames},
                                 {"links", links_json()},
                                 {"requests", shared_->requests.json(epoch_ps_)},
                                 {"series", series_json()},
                                 {"hosts", std::move(hosts)}};
  if (is_program_) json["other_requests"] = shared_->other_requests.json(epoch_ps_);
  return json;
}

}  // namespace rnic::testbench
