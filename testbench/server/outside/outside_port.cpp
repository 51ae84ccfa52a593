#include "testbench/server/outside/outside_port.hpp"

#include <sys/timerfd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "model/mac_table.hpp"
#include "model/time.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kHeaderBytes = 14, kMacBytes = 6;
/// As much as a port of the switch.
constexpr std::size_t kMostWaitingBytes = std::size_t{1} << 20;
/// Of frames that wait for their moment to begin.
constexpr std::size_t kMostArrivedBytes = std::size_t{64} << 10;
/// How far ahead of the cable frames may be; more of them wait in the socket.
constexpr model::Picoseconds kMostAhead = 100'000'000;
/// Until there is another look whether the socket has room, and whether a peer is there.
constexpr long kRoomNs = 1'000'000, kPeerNs = 200'000'000;

remote::Descriptor new_clock() {
  remote::Descriptor clock(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
  if (!clock) throw std::system_error(errno, std::generic_category(), "timerfd_create");
  return clock;
}

std::uint64_t destination_of(const std::vector<std::uint8_t>& frame) {
  std::uint64_t mac = 0;
  for (std::size_t i = 0; i < kMacBytes; ++i) mac = mac << 8 | frame[i];
  return mac;
}

}  // namespace

std::array<std::pair<const char*, std::uint64_t>, 7> named(const OutsideCounts& counts) {
  return {{{"frames_in", counts.in},
           {"too_short", counts.too_short},
           {"too_long", counts.too_long},
           {"foreign", counts.foreign},
           {"frames_out", counts.out},
           {"bad", counts.bad},
           {"lost", counts.lost}}};
}

OutsidePort::OutsidePort(End end, std::set<std::uint64_t> stations) : end_(end), stations_(std::move(stations)) {
  end_.wire.set_listener(end_.port, *this);
}

OutsidePort::~OutsidePort() { close(); }

void OutsidePort::open(const FrameSocketOptions& options, Poller& poller,
                       std::function<void(std::span<const std::uint8_t>)> coming,
                       std::function<void(const std::string&)> log) {
  options_ = options;
  coming_ = std::move(coming);
  socket_ = FrameSocket::open(
      options, poller, [this] { readable_ = true; }, std::move(log));
  clock_ = new_clock();
  clock_watch_ = poller.add(clock_.get(), [this] { ring(); });
  poller_ = &poller;
  readable_ = true;
  looking_ = socket_->tend();
  set_clock();
}

void OutsidePort::close() {
  if (poller_ != nullptr) poller_->remove(clock_.get(), clock_watch_);
  poller_ = nullptr;
  socket_.reset();
  waiting_.clear();
  waiting_bytes_ = 0;
  arrived_.clear();
  arrived_bytes_ = 0;
}

bool OutsidePort::room() const {
  return arrived_bytes_ < kMostArrivedBytes && end_.wire.direction(end_.port).free_at() <= model::now_ps() + kMostAhead;
}

bool OutsidePort::take() {
  bool any = receive_all();
  for (; !arrived_.empty() && arrived_.front().begins <= model::now_ps(); arrived_.pop_front()) {
    const auto& frame = arrived_.front().frame;
    arrived_bytes_ -= frame.size();
    coming_(frame);
    inject(frame);
    any = true;
  }
  return any;
}

bool OutsidePort::receive_all() {
  if (socket_ == nullptr || !readable_ || !room()) return false;
  bool any = false;
  std::vector<std::uint8_t> frame;
  while (room()) {
    if (!socket_->receive(frame)) {
      readable_ = false;
      break;
    }
    if (admit(frame)) {
      arrived_bytes_ += frame.size();
      arrived_.push_back({model::now_ps() + kBehind, std::move(frame)});
      frame = {};
    }
    any = true;
  }
  if (!looking_) {
    // A peer that has gone is looked for again.
    looking_ = socket_->tend();
    if (looking_) set_clock();
  }
  return any;
}

bool OutsidePort::admit(const std::vector<std::uint8_t>& frame) {
  if (frame.size() < kHeaderBytes) {
    ++counts_.too_short;
    return false;
  }
  if (frame.size() > kMostOutsideFrameBytes) {
    ++counts_.too_long;
    return false;
  }
  const std::uint64_t to = destination_of(frame);
  if (!model::is_group_address(to) && !stations_.contains(to)) {
    ++counts_.foreign;
    return false;
  }
  ++counts_.in;
  return true;
}

void OutsidePort::frame_came() {
  model::FrameBeat beat;
  while (end_.wire.port(end_.port).receive(beat)) {
    leaving_.insert(leaving_.end(), beat.data.begin(), beat.data.begin() + beat.bytes);
    if (!beat.last) continue;
    auto frame = std::exchange(leaving_, {});
    if (beat.err) {
      ++counts_.bad;
    } else {
      leave(std::move(frame));
    }
  }
}

void OutsidePort::leave(std::vector<std::uint8_t> frame) {
  if (socket_ == nullptr || waiting_bytes_ + frame.size() > kMostWaitingBytes) {
    ++counts_.lost;
    return;
  }
  waiting_bytes_ += frame.size();
  waiting_.push_back(std::move(frame));
  send_waiting();
}

void OutsidePort::send_waiting() {
  while (!waiting_.empty()) {
    const auto sending = socket_->send(waiting_.front());
    if (sending == FrameSocket::Sending::kLater) return set_clock();
    ++(sending == FrameSocket::Sending::kDone ? counts_.out : counts_.lost);
    waiting_bytes_ -= waiting_.front().size();
    waiting_.pop_front();
  }
}

void OutsidePort::ring() {
  std::uint64_t times = 0;
  if (read(clock_.get(), &times, sizeof times) != sizeof times) return;
  if (looking_) looking_ = socket_->tend();
  send_waiting();
  set_clock();
}

void OutsidePort::set_clock() {
  itimerspec when{};
  if (looking_) when.it_value.tv_nsec = kPeerNs;
  if (!waiting_.empty()) when.it_value.tv_nsec = kRoomNs;
  timerfd_settime(clock_.get(), 0, &when, nullptr);
}

}  // namespace rnic::testbench
