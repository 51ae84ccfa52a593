#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "testbench/generated/rtl_streams.hpp"
#include "tests/support/rtl_bench.hpp"

/// What the tests of rtl/completion share: context managers and DMA writes as seen by the blocks under test.
namespace rnic::test {

/// Looks at settled outputs once a cycle.
class Monitor : public Agent {
 public:
  explicit Monitor(std::function<void()> look) : look_(std::move(look)) {}
  void drive() override {}
  void sample() override { look_(); }

 private:
  std::function<void()> look_;
};

/// A context manager (rtl/common/ctx_manager.sv) in C++: the test reads and writes contexts directly, as one more
/// client. Add it to the bench after everything that drives inputs: it looks at the settled requests of the block.
template <typename T>
class ContextModel : public Agent {
 public:
  struct Ports {
    std::function<std::uint32_t()> acq_valid, rel_valid, rel_write;
    std::function<unsigned(unsigned)> acq_index;
    std::function<T(unsigned)> rel_data;
    std::function<void(std::uint32_t)> acq_ready, ctx_valid, rel_ready;
    std::function<void(const T&)> ctx_data;
    std::function<void()> settle;
  };
  ContextModel(unsigned clients, Ports ports, std::mt19937_64& rng)
      : contexts(256), clients_(clients), ports_(std::move(ports)), rng_(rng) {}

  /// Whether no client holds the context; only then may the test touch it.
  bool is_free(unsigned index) const {
    for (const auto& c : clients_)
      if (c.held && c.index == index) return false;
    return true;
  }
  bool idle() const {
    for (const auto& c : clients_)
      if (c.held) return false;
    return true;
  }
  void drive() override {
    std::uint32_t valid = 0;
    for (unsigned i = 0; i < clients_.size(); ++i) {
      auto& c = clients_[i];
      if (c.held && c.delay == 1) {
        valid |= 1u << i;
        ports_.ctx_data(contexts[c.index]);
      }
      if (c.held && c.delay > 0) --c.delay;
    }
    ports_.ctx_valid(valid);
    ports_.acq_ready(0);
    ports_.rel_ready(0);
    ports_.settle();
    acq_ = rel_ = 0;
    const bool stall = std::uniform_real_distribution<>(0, 1)(rng_) < stall_rate;
    const std::uint32_t asking = ports_.acq_valid(), releasing = ports_.rel_valid();
    for (unsigned k = 0; k < clients_.size() && !stall; ++k) {
      const unsigned i = (k + first_) % clients_.size();
      if (!acq_ && (asking >> i & 1) && !clients_[i].held && is_free(ports_.acq_index(i))) acq_ = 1u << i;
      if (!rel_ && (releasing >> i & 1)) rel_ = 1u << i;
    }
    first_ = (first_ + 1) % static_cast<unsigned>(clients_.size());
    ports_.acq_ready(acq_);
    ports_.rel_ready(rel_);
  }
  void sample() override {
    const std::uint32_t asking = ports_.acq_valid(), releasing = ports_.rel_valid(), write = ports_.rel_write();
    for (unsigned i = 0; i < clients_.size(); ++i) {
      auto& c = clients_[i];
      if ((asking & acq_) >> i & 1) c = {true, ports_.acq_index(i), 2};
      if (releasing >> i & 1) {
        if (!c.held || c.delay > 0) FAIL("a client releases a context that it does not hold");
        if (rel_ >> i & 1) {
          if (write >> i & 1) {
            contexts[c.index] = ports_.rel_data(i);
            if (on_write) on_write(i, c.index);
          }
          c.held = false;
        }
      }
    }
  }

  std::vector<T> contexts;
  double stall_rate = 0;
  std::function<void(unsigned client, unsigned index)> on_write;

 private:
  struct Client {
    bool held = false;
    unsigned index = 0;
    int delay = 0;  // cycles until ctx_valid
  };
  std::vector<Client> clients_;
  Ports ports_;
  std::mt19937_64& rng_;
  std::uint32_t acq_ = 0, rel_ = 0;
  unsigned first_ = 0;
};

/// A client of a context manager (rtl/common/ctx_manager.sv): takes its turns one after the other, each when it likes,
/// and keeps the context for some cycles. Turns of several clients are under way at the same time.
template <typename T>
class ContextClient : public Agent {
 public:
  struct Ports {
    std::function<void(bool)> acq_valid, rel_valid, rel_write;
    std::function<void(unsigned)> acq_index;
    std::function<void(const T&)> rel_data;
    std::function<bool()> acq_ready, ctx_valid, rel_ready;
    std::function<T()> ctx_data;
  };
  /// `use` changes the context and says whether it is written back.
  struct Turn {
    unsigned index = 0;
    std::function<bool(T&)> use;
  };
  ContextClient(Ports ports, std::mt19937_64& rng) : ports_(std::move(ports)), rng_(rng) {}
  void push(unsigned index, std::function<bool(T&)> use = {}) { turns_.push_back({index, std::move(use)}); }
  bool idle() const { return turns_.empty() && pause_ == 0; }
  void drive() override {
    if (state_ == State::kIdle && pause_ > 0) --pause_;
    if (state_ == State::kIdle && pause_ == 0 && !turns_.empty() && chance(rate)) {
      ports_.acq_index(turns_.front().index);
      state_ = State::kAcquire;
    }
    if (state_ == State::kHold && hold_-- == 0) state_ = State::kRelease;
    ports_.acq_valid(state_ == State::kAcquire);
    ports_.rel_valid(state_ == State::kRelease);
  }
  void sample() override {
    if (ports_.ctx_valid() != (state_ == State::kWait && ++waited_ == 2)) FAIL("a context comes after two cycles");
    if (state_ == State::kAcquire && ports_.acq_ready()) {
      state_ = State::kWait;
      waited_ = 0;
    } else if (state_ == State::kWait && ports_.ctx_valid()) {
      T ctx = ports_.ctx_data();
      const bool write = turns_.front().use && turns_.front().use(ctx);
      ports_.rel_data(ctx);
      ports_.rel_write(write);
      hold_ = std::uniform_int_distribution<int>(0, max_hold)(rng_);
      state_ = State::kHold;
    } else if (state_ == State::kRelease && ports_.rel_ready()) {
      if (on_release) on_release(turns_.front().index);
      turns_.pop_front();
      ++turns;
      pause_ = pause;
      state_ = State::kIdle;
    }
  }
  double rate = 1;     ///< Begins a turn
  int max_hold = 4;    ///< Cycles between the context and its release
  int pause = 0;       ///< Cycles between two turns, at least
  unsigned turns = 0;  ///< Done
  std::function<void(unsigned index)> on_release;

 private:
  enum class State { kIdle, kAcquire, kWait, kHold, kRelease };
  bool chance(double p) { return std::uniform_real_distribution<>(0, 1)(rng_) < p; }
  Ports ports_;
  std::mt19937_64& rng_;
  std::deque<Turn> turns_;
  State state_ = State::kIdle;
  int hold_ = 0, pause_ = 0, waited_ = 0;
};

/// Bytes of a single-beat write, taken from their lanes.
inline std::vector<std::uint8_t> written(const rtl::DmaWr& write) {
  std::vector<std::uint8_t> bytes(write.length);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = write.data[(write.addr + i) % 64];
  return bytes;
}
template <typename T>
T written_as(const rtl::DmaWr& write) {
  REQUIRE(write.length == T::kBytes);
  REQUIRE(write.last == 1);
  const auto bytes = written(write);
  std::array<std::uint8_t, T::kBytes> raw{};
  std::copy(bytes.begin(), bytes.end(), raw.begin());
  return T::decode(raw);
}
template <typename T, typename Value>
std::uint64_t value_of(const Value& v) {
  std::array<std::uint8_t, Value::kBytes> raw{};
  v.encode(raw);
  T out{};
  std::memcpy(&out, raw.data(), sizeof out);
  return out;
}
/// A doorbell as the host interface passes it on.
template <typename Value>
rtl::Doorbell ring(unsigned uar, const Value& v) {
  rtl::Doorbell d;
  d.uar = static_cast<std::uint8_t>(uar);
  d.value = value_of<std::uint64_t>(v);
  return d;
}

}  // namespace rnic::test
