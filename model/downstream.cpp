#include "model/downstream.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rnic::model {
namespace {

constexpr Picoseconds kNever = std::numeric_limits<Picoseconds>::max();

template <typename Queue, typename Packet>
bool take(Queue& queue, Packet& packet, Picoseconds now) {
  if (queue.empty() || queue.front().time > now) return false;
  packet = std::move(queue.front().packet);
  queue.pop_front();
  return true;
}

}  // namespace

Downstream::Downstream(const RootComplexOptions& options)
    : options_(options),
      half_latency_(from_ns(options.read_latency_ns / 2)),
      random_(options.seed, "downstream"),
      jitter_(options.seed, "downstream/jitter"),
      splitter_(options),
      line_(options.bandwidth_gbytes),
      next_start_(kNever) {}

void Downstream::push_request(HostRequest request, Picoseconds now) {
  advance(now);
  requests_.push_back({now, std::move(request)});
  plan();
}

void Downstream::push_read(ReadJob job, Picoseconds now) {
  advance(now);
  Picoseconds ready = now;
  if (random_.chance(options_.reorder_probability)) ready += random_.below(from_ns(options_.reorder_window_ns) + 1);
  jobs_.push_back({ready, std::move(job)});
  plan();
}

bool Downstream::take_request(HostRequest& request, Picoseconds now) {
  if (next_start_ < now) advance(now);
  return take(arriving_requests_, request, now);
}

bool Downstream::take_completion(DmaCompletion& completion, Picoseconds now) {
  if (next_start_ < now) advance(now);
  return take(arriving_completions_, completion, now);
}

void Downstream::plan() {
  Picoseconds earliest = requests_.empty() ? kNever : requests_.front().time;
  for (const auto& job : jobs_) earliest = std::min(earliest, job.time);
  next_start_ = earliest == kNever ? kNever : std::max(earliest, line_.free_at());
}

void Downstream::advance(Picoseconds now) {
  // Strictly before now: whatever else is pushed at `now` must still have its chance.
  while (next_start_ < now) {
    const Picoseconds start = next_start_;
    if (!requests_.empty() && requests_.front().time <= start) {
      const std::size_t bytes = requests_.front().packet.data.size();
      last_request_ = std::max(last_request_, arrival(start, bytes));
      arriving_requests_.push_back({last_request_, std::move(requests_.front().packet)});
      requests_.pop_front();
    } else {
      const std::size_t index = choose_job(start);
      if (auto completion = splitter_.next(jobs_[index].packet)) {
        const Picoseconds own = arrival(start, completion->data.size());
        last_completion_ = std::max({last_completion_, last_request_, own});
        arriving_completions_.push_back({last_completion_, std::move(*completion)});
      }
      if (jobs_[index].packet.left == 0) jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(index));
    }
    plan();
  }
}

Picoseconds Downstream::arrival(Picoseconds start, std::size_t payload_bytes) {
  return line_.send(start, payload_bytes) + half_latency_ + jitter_.below(from_ns(options_.jitter_ns) + 1);
}

std::size_t Downstream::choose_job(Picoseconds start) {
  std::size_t ready = 0, oldest = jobs_.size();
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (jobs_[i].time > start) continue;
    if (ready++ == 0) oldest = i;
  }
  if (ready < 2 || !random_.chance(options_.reorder_probability)) return oldest;
  std::uint64_t skip = random_.below(ready);
  for (std::size_t i = oldest;; ++i) {
    if (jobs_[i].time <= start && skip-- == 0) return i;
  }
}

}  // namespace rnic::model
