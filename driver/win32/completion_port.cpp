#include "driver/win32/completion_port.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace rnic::win32 {

/// For which port the calling thread works; a thread that ends works no more.
struct CompletionPort::Work {
  ~Work() { end(); }
  void begin(std::shared_ptr<CompletionPort> of) { port = std::move(of); }
  void end() {
    if (port != nullptr) std::exchange(port, nullptr)->end_work();
  }
  std::shared_ptr<CompletionPort> port;

  static Work& of_this_thread() {
    static thread_local Work own;
    return own;
  }
};

/// A thread's place among those who wait: in front.
class CompletionPort::Place {
 public:
  Place(CompletionPort& port, Waiter& waiter) : port_(port) {
    std::list<Waiter*> place{&waiter};
    const std::lock_guard lock(port_.mutex_);
    place_ = place.begin();
    port_.waiting_.splice(port_.waiting_.begin(), place);
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;
  // Others stand in front of packets now that they could not take before.
  ~Place() {
    const std::lock_guard lock(port_.mutex_);
    port_.waiting_.erase(place_);
    port_.wake_waiting();
  }

  /// With the port's lock held: among the first of those who wait.
  [[nodiscard]] bool within(std::size_t first) const {
    auto ahead = port_.waiting_.begin();
    for (; first != 0; --first, ++ahead) {
      if (ahead == port_.waiting_.end()) return false;
      if (ahead == place_) return true;
    }
    return false;
  }

 private:
  CompletionPort& port_;
  std::list<Waiter*>::iterator place_;
};

/// How many threads may take a packet now.
std::size_t CompletionPort::takeable() const {
  if (most_threads_ == 0) return packets_.size();
  return std::min<std::size_t>(packets_.size(), most_threads_ > working_ ? most_threads_ - working_ : 0);
}

void CompletionPort::wake_waiting() {
  std::size_t left = closed_ ? std::numeric_limits<std::size_t>::max() : takeable();
  for (auto waiter = waiting_.begin(); waiter != waiting_.end() && left != 0; ++waiter, --left) (*waiter)->wake();
}

void CompletionPort::post(const Packet& packet) {
  post(Packets{packet}, [] {});
}

std::optional<CompletionPort::Packet> CompletionPort::try_take() {
  const std::lock_guard lock(mutex_);
  if (packets_.empty()) return std::nullopt;
  const Packet packet = packets_.front();
  packets_.pop_front();
  return packet;
}

Waited CompletionPort::take_some(std::size_t most, Packets& taken, std::uint64_t timeout_ns) {
  Work::of_this_thread().end();
  taken.clear();
  const bool counts = most_threads_ != 0 && surroundings().threads_are_separate();
  Waiter& waiter = own_ != nullptr ? *own_ : surroundings().waiter();
  Waited waited{};
  {
    const Place place(*this, waiter);
    const auto take = [&] {
      const std::lock_guard lock(mutex_);
      if (closed_) return true;
      if (!place.within(takeable())) return false;
      const auto end = std::next(packets_.begin(), static_cast<std::ptrdiff_t>(std::min(most, packets_.size())));
      taken.splice(taken.end(), packets_, packets_.begin(), end);
      if (counts) ++working_;
      return true;
    };
    waited = waiter.wait_until(take, timeout_ns);
  }
  if (counts && !taken.empty()) Work::of_this_thread().begin(shared_from_this());
  return waited;
}

std::optional<CompletionPort::Packet> CompletionPort::take(std::uint64_t timeout_ns) {
  Packets taken;
  if (take_some(1, taken, timeout_ns) != Waited::kDone || taken.empty()) return std::nullopt;
  return taken.front();
}

void CompletionPort::on_handle_closed() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    wake_waiting();
  }
  if (own_ != nullptr) own_->wake();
}

void CompletionPort::begin_work() {
  const std::lock_guard lock(mutex_);
  ++working_;
}

void CompletionPort::end_work() {
  {
    const std::lock_guard lock(mutex_);
    --working_;
    wake_waiting();
  }
  if (own_ != nullptr) own_->wake();
}

// A thread that has waited goes on with its packet, even if that is one thread more than the limit.
CompletionPort::Pause::Pause() : port_(std::exchange(Work::of_this_thread().port, nullptr)) {
  if (port_ != nullptr) port_->end_work();
}

CompletionPort::Pause::~Pause() {
  if (port_ == nullptr) return;
  port_->begin_work();
  Work::of_this_thread().begin(std::move(port_));
}

// Those that are gone make room for those that come.
void OverlappedFile::add(std::weak_ptr<Cancellable> source) {
  const std::lock_guard lock(sources_mutex_);
  if (sources_.size() == sources_.capacity()) std::erase_if(sources_, [](const auto& one) { return one.expired(); });
  sources_.push_back(std::move(source));
}

bool OverlappedFile::cancel(const OVERLAPPED* one) {
  std::vector<std::weak_ptr<Cancellable>> sources;
  {
    const std::lock_guard lock(sources_mutex_);
    sources = sources_;
  }
  bool any = false;
  for (const auto& source : sources) {
    if (const auto there = source.lock(); there != nullptr) any = there->cancel(one) || any;
  }
  return any;
}

bool OverlappedFile::bind(std::shared_ptr<CompletionPort> port, std::uintptr_t key) {
  const std::lock_guard lock(mutex_);
  if (port_ != nullptr) return false;
  port_ = std::move(port);
  key_ = key;
  return true;
}

}  // namespace rnic::win32
