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

void Downstream::hold(const CreditKinds& kinds, Picoseconds now) {
  advance(now);
  held_ = kinds;
  held_since_ = now;
  plan();
}

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

std::optional<Picoseconds> Downstream::next_arrival() const {
  Picoseconds next = next_start_;
  if (!arriving_requests_.empty()) next = std::min(next, arriving_requests_.front().time);
  if (!arriving_completions_.empty()) next = std::min(next, arriving_completions_.front().time);
  return next == kNever ? std::nullopt : std::optional(next);
}

/// The first that does not wait for credits, unless it stands behind a posted one that does; else their number.
std::size_t Downstream::next_request() const {
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    const CreditKind kind = credit_kind(requests_[i].packet.kind);
    if (!held_.has(kind)) return i;
    if (kind == CreditKind::kPosted) break;
  }
  return requests_.size();
}

/// A posted request that was there when the memory answered, and still waits, is not passed.
bool Downstream::may_go(const Timed<ReadJob>& job) const {
  if (held_.empty()) return true;
  if (held_.has(CreditKind::kCompletion)) return false;
  return !held_.has(CreditKind::kPosted) ||
         std::none_of(requests_.begin(), requests_.end(), [&](const Timed<HostRequest>& request) {
           return credit_kind(request.packet.kind) == CreditKind::kPosted && request.time <= job.time;
         });
}

void Downstream::plan() {
  const std::size_t request = next_request();
  Picoseconds earliest = request == requests_.size() ? kNever : requests_[request].time;
  for (const auto& job : jobs_) {
    if (may_go(job)) earliest = std::min(earliest, job.time);
  }
  next_start_ = earliest == kNever ? kNever : std::max({earliest, line_.free_at(), held_since_});
}

void Downstream::advance(Picoseconds now) {
  // Strictly before now: whatever else is pushed at `now` must still have its chance.
  while (next_start_ < now) {
    const Picoseconds start = next_start_;
    const std::size_t request = next_request();
    if (request != requests_.size() && requests_[request].time <= start) {
      const std::size_t bytes = requests_[request].packet.data.size();
      last_request_ = std::max(last_request_, arrival(start, bytes));
      arriving_requests_.push_back({last_request_, std::move(requests_[request].packet)});
      requests_.erase(requests_.begin() + static_cast<std::ptrdiff_t>(request));
    } else {
      const std::size_t index = choose_job(start);
      if (auto completion = splitter_.next(jobs_[index].packet)) {
        const Picoseconds own = arrival(start, completion->data.size());
        last_completion_ = std::max({last_completion_, last_request_, own});
        arriving_completions_.push_back({last_completion_, std::move(*completion)});
      } else if (jobs_[index].packet.left != 0) {
        jobs_[index].time = start + std::exchange(jobs_[index].packet.late, 0);
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
    if (jobs_[i].time > start || !may_go(jobs_[i])) continue;
    if (ready++ == 0) oldest = i;
  }
  if (ready < 2 || !random_.chance(options_.reorder_probability)) return oldest;
  std::uint64_t skip = random_.below(ready);
  for (std::size_t i = oldest;; ++i) {
    if (jobs_[i].time <= start && may_go(jobs_[i]) && skip-- == 0) return i;
  }
}

}  // namespace rnic::model
