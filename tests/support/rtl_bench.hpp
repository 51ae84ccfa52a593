#pragma once

#include <verilated.h>

#include <array>
#include <bitset>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

/// Bench for the unit test of one Verilated block: a clock, stream drivers and monitors with random back-pressure, one
/// seed.
namespace rnic::test {

/// Number of an enumerator, as a port has it.
template <typename E>
constexpr auto raw(E e) {
  return static_cast<std::underlying_type_t<E>>(e);
}

/// Seed of a random test: RNIC_SEED, else `fallback`. Printed, so that a failure can be replayed with RNIC_SEED=value.
inline std::uint64_t seed(std::uint64_t fallback = 1) {
  const char* text = std::getenv("RNIC_SEED");
  const std::uint64_t value = text ? std::strtoull(text, nullptr, 0) : fallback;
  std::printf("seed %llu (replay: RNIC_SEED=%llu)\n", static_cast<unsigned long long>(value),
              static_cast<unsigned long long>(value));
  return value;
}

/// Verilated port from bytes and back: CData to QData, VlWide.
template <typename Port>
void port_from_bytes(Port& port, std::span<const std::uint8_t> bytes) {
  std::memset(&port, 0, sizeof port);
  std::memcpy(&port, bytes.data(), std::min(sizeof port, bytes.size()));
}
template <typename Port>
void port_to_bytes(const Port& port, std::span<std::uint8_t> bytes) {
  std::memset(bytes.data(), 0, bytes.size());
  std::memcpy(bytes.data(), &port, std::min(sizeof port, bytes.size()));
}
/// Bit `index` of a port of any width.
template <typename Port>
bool port_bit(const Port& port, std::size_t index) {
  return reinterpret_cast<const std::uint8_t*>(&port)[index / 8] >> (index % 8) & 1;
}
/// All bits of a port of any width.
template <typename Port, std::size_t kBits>
void set_port_bits(Port& port, const std::bitset<kBits>& bits) {
  std::array<std::uint8_t, sizeof(Port)> raw{};
  for (std::size_t i = 0; i < kBits; ++i) raw[i / 8] = static_cast<std::uint8_t>(raw[i / 8] | bits[i] << (i % 8));
  port_from_bytes(port, raw);
}
/// A struct of rtl_streams.hpp or host_interface.hpp into a port and out of it.
template <typename T, typename Port>
void put(Port& port, const T& value) {
  std::array<std::uint8_t, T::kBytes> raw{};
  value.encode(raw);
  port_from_bytes(port, raw);
}
template <typename T, typename Port>
T get(const Port& port) {
  std::array<std::uint8_t, T::kBytes> raw{};
  port_to_bytes(port, raw);
  return T::decode(raw);
}
/// Bits [index*width, (index+1)*width) of a flat multi-client port.
template <typename T, typename Port>
T get_slice(const Port& port, std::size_t index) {
  std::vector<std::uint8_t> all(sizeof port);
  std::memcpy(all.data(), &port, sizeof port);
  std::array<std::uint8_t, T::kBytes> raw{};
  for (std::size_t bit = 0; bit < T::kBits; ++bit) {
    const std::size_t from = index * T::kBits + bit;
    if (all[from / 8] >> (from % 8) & 1) raw[bit / 8] |= static_cast<std::uint8_t>(1u << (bit % 8));
  }
  return T::decode(raw);
}
template <typename T, typename Port>
void put_slice(Port& port, std::size_t index, const T& value) {
  std::array<std::uint8_t, T::kBytes> raw{};
  value.encode(raw);
  auto* all = reinterpret_cast<std::uint8_t*>(&port);
  for (std::size_t bit = 0; bit < T::kBits; ++bit) {
    const std::size_t to = index * T::kBits + bit;
    const auto one = static_cast<std::uint8_t>(1u << (to % 8));
    all[to / 8] =
        static_cast<std::uint8_t>((raw[bit / 8] >> (bit % 8) & 1) ? (all[to / 8] | one) : (all[to / 8] & ~one));
  }
}

/// Something that takes part in every clock cycle: drives inputs before the edge, looks at settled outputs before the
/// edge.
struct Agent {
  virtual ~Agent() = default;
  virtual void drive() = 0;
  virtual void sample() = 0;
};

/// A model with clk_i and rst_ni, its agents, and a random generator.
template <typename Model>
class Bench {
 public:
  explicit Bench(std::uint64_t seed_value) : rng(seed_value), context_(std::make_unique<VerilatedContext>()) {
    context_->randReset(2);
    context_->randSeed(static_cast<int>(seed_value % 0x7fffffff) + 1);
    dut = std::make_unique<Model>(context_.get());
    if constexpr (requires(Model & model) { model.clk_open_i; }) dut->clk_open_i = 0;
  }
  ~Bench() {
    dut->final();
    dut.reset();  // before its context
  }

  void add(Agent& agent) { agents_.push_back(&agent); }
  void reset(int cycles = 5) {
    dut->rst_ni = 0;
    for (int i = 0; i < cycles; ++i) tick(false);
    dut->rst_ni = 1;
  }
  void tick(bool agents = true) {
    show_time();
    if (agents)
      for (auto* agent : agents_) agent->drive();
    dut->clk_i = 0;
    dut->eval();
    if (agents)
      for (auto* agent : agents_) agent->sample();
    dut->clk_i = 1;
    dut->eval();
    ++cycle;
    show_time();
  }
  /// The time of a block goes on with the clock; a test that lets the clock stand still moves `cycle` alone.
  void show_time() {
    if constexpr (requires(Model & model) { model.cycles_i; }) dut->cycles_i = cycle;
    if constexpr (requires(Model & model) { model.time_i; }) dut->time_i = cycle;
  }
  /// Ticks until `done`; fails the test after `limit` cycles.
  void run_until(const std::function<bool()>& done, std::uint64_t limit, const std::string& what = "condition") {
    const std::uint64_t end = cycle + limit;
    while (!done()) {
      if (cycle >= end) FAIL("no " << what << " within " << limit << " cycles");
      tick();
    }
  }
  void run(std::uint64_t cycles) {
    for (std::uint64_t i = 0; i < cycles; ++i) tick();
  }
  bool chance(double probability) { return std::uniform_real_distribution<>(0, 1)(rng) < probability; }
  std::uint64_t uniform(std::uint64_t low, std::uint64_t high) {
    return std::uniform_int_distribution<std::uint64_t>(low, high)(rng);
  }

  std::mt19937_64 rng;
  std::unique_ptr<Model> dut;
  std::uint64_t cycle = 0;

 private:
  std::unique_ptr<VerilatedContext> context_;
  std::vector<Agent*> agents_;
};

/// Feeds queued items into a stream: offers one with probability `rate` a cycle and holds it until accepted.
template <typename T>
class Source : public Agent {
 public:
  /// `set` writes the payload port, `valid` is the valid port, `ready` reads the ready port.
  Source(std::function<void(bool)> valid, std::function<bool()> ready, std::function<void(const T&)> set,
         std::mt19937_64& rng, double offers = 1.0)
      : rate(offers), valid_(std::move(valid)), ready_(std::move(ready)), set_(std::move(set)), rng_(rng) {}
  void push(T item) { items.push_back(std::move(item)); }
  bool idle() const { return items.empty(); }
  void drive() override {
    if (!offering_ && !items.empty() && std::uniform_real_distribution<>(0, 1)(rng_) < rate) {
      set_(items.front());
      offering_ = true;
    }
    valid_(offering_);
  }
  void sample() override {
    if (offering_ && ready_()) {
      items.pop_front();
      offering_ = false;
      ++accepted;
    }
  }
  std::deque<T> items;
  double rate;
  std::uint64_t accepted = 0;

 private:
  std::function<void(bool)> valid_;
  std::function<bool()> ready_;
  std::function<void(const T&)> set_;
  std::mt19937_64& rng_;
  bool offering_ = false;
};

/// Takes items from a stream, ready with probability `rate` a cycle; fails the test when valid drops or the payload
/// changes before acceptance.
template <typename T>
class Sink : public Agent {
 public:
  Sink(std::function<bool()> valid, std::function<void(bool)> ready, std::function<T()> read, std::mt19937_64& rng,
       double acceptance = 1.0)
      : rate(acceptance), valid_(std::move(valid)), ready_(std::move(ready)), read_(std::move(read)), rng_(rng) {}
  void drive() override {
    taking_ = std::uniform_real_distribution<>(0, 1)(rng_) < rate;
    ready_(taking_);
  }
  void sample() override {
    const bool offered = valid_();
    if (waiting_ && !offered) FAIL("valid dropped before the item was accepted");
    if (offered) {
      T item = read_();
      if (waiting_ && !(item == held_)) FAIL("payload changed before the item was accepted");
      held_ = item;
      if (taking_) {
        items.push_back(item);
        if (on_item) on_item(items.back());
      }
    }
    waiting_ = offered && !taking_;
  }
  std::deque<T> items;
  std::function<void(const T&)> on_item;
  double rate;

 private:
  std::function<bool()> valid_;
  std::function<void(bool)> ready_;
  std::function<T()> read_;
  std::mt19937_64& rng_;
  T held_{};
  bool taking_ = false, waiting_ = false;
};

// Streams of a Verilated model by port name: valid `name##_valid_i`, ready `name##_ready_o`, payload `name##_data_i`,
// and the mirror image.
#define RNIC_SOURCE(variable, Type, bench, name, rate)                                                    \
  ::rnic::test::Source<Type> variable(                                                                    \
      [&](bool v) { (bench).dut->name##_valid_i = v; }, [&] { return (bench).dut->name##_ready_o != 0; }, \
      [&](const Type& item) { ::rnic::test::put((bench).dut->name##_data_i, item); }, (bench).rng, rate); \
  (bench).add(variable)
#define RNIC_SINK(variable, Type, bench, name, rate)                                                      \
  ::rnic::test::Sink<Type> variable(                                                                      \
      [&] { return (bench).dut->name##_valid_o != 0; }, [&](bool r) { (bench).dut->name##_ready_i = r; }, \
      [&] { return ::rnic::test::get<Type>((bench).dut->name##_data_o); }, (bench).rng, rate);            \
  (bench).add(variable)

}  // namespace rnic::test
