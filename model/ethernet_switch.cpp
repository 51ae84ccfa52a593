#include "model/ethernet_switch.hpp"

#include <algorithm>
#include <numeric>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace rnic::model {
namespace {

constexpr std::size_t kMacBytes = 6;

std::uint64_t mac_at(std::span<const std::uint8_t> frame, std::size_t offset) {
  const auto bytes = frame.subspan(offset, kMacBytes);
  return std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0},
                         [](std::uint64_t mac, std::uint8_t byte) { return mac << 8 | byte; });
}

/// Addresses for protocols between neighbours, PAUSE frames among them: never relayed (table 7-10).
bool is_reserved(std::uint64_t mac) { return mac >> 4 == 0x0180'C200'0000 >> 4; }

const EthernetSwitchOptions& checked(const EthernetSwitchOptions& options) {
  constexpr double kLongestNs = 1e15;
  if (!(options.latency_ns >= 0 && options.latency_ns <= kLongestNs))
    throw std::invalid_argument("latency_ns of the switch is not from 0 to 1e15");
  if (!(options.ageing_ns > 0 && options.ageing_ns <= kLongestNs))
    throw std::invalid_argument("ageing_ns of the switch is not above 0 and at most 1e15");
  if (options.buffer_bytes < kMinFrameBytes)
    throw std::invalid_argument("buffer_bytes of the switch has no room for the smallest frame of 60 bytes");
  return options;
}

}  // namespace

/// One port: its cable, the frame that comes, and the queue of those that go out.
class EthernetSwitch::Port : public WireListener {
 public:
  Port(EthernetSwitch& owner, std::size_t index, const WireOptions& wire)
      : number(index), cable(("cable" + std::to_string(index)).c_str(), wire), owner_(owner) {
    cable.set_listener(1, *this);
  }

  [[nodiscard]] bool link_up() { return cable.port(1).link_up(); }
  [[nodiscard]] std::size_t waiting() const { return queue_.size(); }

  void frame_came() override { owner_.serve(); }

  /// Takes what has come.
  void collect() {
    FrameBeat beat;
    while (cable.port(1).receive(beat)) {
      coming_.insert(coming_.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
      if (beat.last) owner_.take(*this, std::exchange(coming_, {}), beat.err);
    }
  }

  void link_changed() override {
    if (link_up()) return;
    owner_.table_.forget(number);
    advance();
    // The one that leaves is on the cable already.
    const std::size_t leaving = leaving_until_ ? 1 : 0;
    for (; queue_.size() > leaving; queue_.pop_back()) {
      ++statistics.unsent;
      bytes_ -= queue_.back().frame->size();
    }
  }

  /// The frame goes out here, if there is room for it.
  void send(const Bytes& frame) {
    if (!link_up()) {
      ++statistics.unsent;
      return;
    }
    advance();  // what has left by now makes room
    if (bytes_ + frame->size() > owner_.options_.buffer_bytes) {
      ++statistics.overflow;
      return;
    }
    queue_.push_back({frame, now_ps() + from_ns(owner_.options_.latency_ns)});
    bytes_ += frame->size();
    statistics.most_bytes = std::max(statistics.most_bytes, bytes_);
    advance();
  }

  /// Forgets what has left, starts what can leave, and asks to be called when there is more to do.
  void advance() {
    while (!queue_.empty()) {
      const auto& first = queue_.front();
      const Picoseconds next = leaving_until_.value_or(first.ready);
      if (next > now_ps()) return owner_.serve_at(next);
      if (leaving_until_) {
        leaving_until_.reset();
        bytes_ -= first.frame->size();
        queue_.pop_front();
      } else {
        for_each_beat(*first.frame, false, [this](const FrameBeat& beat) { cable.port(1).transmit(beat); });
        leaving_until_ = cable.direction(1).free_at();
        ++statistics.sent;
      }
    }
  }

  void reset(const WireOptions& wire) {
    cable.reset(wire);
    statistics = {};
    coming_.clear();
    queue_.clear();
    bytes_ = 0;
    leaving_until_.reset();
  }

  const std::size_t number;
  Wire cable;
  EthernetSwitchStatistics statistics;

 private:
  struct Waiting {
    Bytes frame;
    Picoseconds ready;
  };

  EthernetSwitch& owner_;
  std::vector<std::uint8_t> coming_;
  std::deque<Waiting> queue_;
  std::size_t bytes_ = 0;                     ///< Of all in the queue
  std::optional<Picoseconds> leaving_until_;  ///< The first of them leaves, until then
};

EthernetSwitch::EthernetSwitch(const sc_core::sc_module_name& name, const std::vector<WireOptions>& cables,
                               const EthernetSwitchOptions& options)
    : sc_module(name), options_(checked(options)), table_(from_ns(options.ageing_ns)) {
  if (cables.size() < kMinPorts || cables.size() > kMaxPorts)
    throw std::invalid_argument("a switch has 2 to 16 ports, not " + std::to_string(cables.size()));
  for (const auto& wire : cables) ports_.push_back(std::make_unique<Port>(*this, ports_.size(), wire));
  SC_HAS_PROCESS(EthernetSwitch);
  SC_METHOD(serve);
  sensitive << serve_event_.event();
  dont_initialize();
  SC_METHOD(report);
  sensitive << report_event_;
  dont_initialize();
}

EthernetSwitch::~EthernetSwitch() = default;

Wire& EthernetSwitch::cable(std::size_t index) { return ports_.at(index)->cable; }

const EthernetSwitchStatistics& EthernetSwitch::statistics(std::size_t index) const {
  return ports_.at(index)->statistics;
}

std::uint64_t EthernetSwitch::waiting() const {
  return std::accumulate(ports_.begin(), ports_.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const auto& port) { return sum + port->waiting(); });
}

void EthernetSwitch::set_tap(Tap tap) {
  tap_ = std::move(tap);
  seen_.clear();
  for (auto& port : ports_) {
    const std::size_t number = port->number;
    port->cable.set_tap(tap_ ? [this, number](const FrameRecord& record) { saw(number, record); } : Wire::Tap{});
  }
}

void EthernetSwitch::reset(const std::vector<WireOptions>& cables, const EthernetSwitchOptions& options) {
  if (cables.size() != ports_.size())
    throw std::invalid_argument("a switch of " + std::to_string(ports_.size()) + " ports cannot get " +
                                std::to_string(cables.size()) + " cables");
  options_ = checked(options);
  table_ = MacTable(from_ns(options.ageing_ns));
  for (std::size_t i = 0; i < ports_.size(); ++i) ports_[i]->reset(cables[i]);
  serve_event_.cancel();
  report_event_.cancel();
  seen_.clear();
}

void EthernetSwitch::take(Port& in, std::vector<std::uint8_t>&& bytes, bool bad) {
  auto& counts = in.statistics;
  if (bad || !in.link_up()) {
    ++(bad ? counts.bad : counts.late);
    return;
  }
  ++counts.received;
  const std::uint64_t to = mac_at(bytes, 0);
  table_.learn(mac_at(bytes, kMacBytes), in.number, now_ps());
  const auto frame = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  if (is_reserved(to)) {
    ++counts.reserved;
  } else if (is_group_address(to)) {
    ++counts.group;
    flood(in, frame);
  } else if (const auto out = table_.find(to, now_ps()); !out) {
    ++counts.flooded;
    flood(in, frame);
  } else if (*out == in.number) {
    ++counts.filtered;
  } else {
    ports_[*out]->send(frame);
  }
}

void EthernetSwitch::flood(const Port& in, const Bytes& frame) {
  for (auto& out : ports_) {
    if (out->number != in.number) out->send(frame);
  }
}

/// All ports in their order: which of several events of the same time the kernel serves first must not matter.
void EthernetSwitch::serve() {
  for (auto& port : ports_) port->collect();
  for (auto& port : ports_) port->advance();
}

void EthernetSwitch::saw(std::size_t port, const FrameRecord& record) {
  seen_.emplace(2 * port + record.from, record);
  report_event_.notify(sc_core::SC_ZERO_TIME);  // the other cables have told theirs by then
}

void EthernetSwitch::report() {
  for (const auto& [place, record] : std::exchange(seen_, {})) tap_(place / 2, record);
}

}  // namespace rnic::model
