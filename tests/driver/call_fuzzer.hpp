#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/kernel_calls/kernel_port.hpp"
#include "tests/generated/kernel_calls_probe.hpp"

namespace rnic::test {

/// A client that means harm: asks for everything with handles, numbers, sizes and orders that are its own, others',
/// gone or invented. What it was answered it keeps, and asks with.
class CallFuzzer {
 public:
  /// What an answer has given it, by name of the field: numbers as the device knows them.
  struct Given {
    std::set<std::uint32_t> pds, cqns, srqns, qpns, keys;
    std::uint32_t uar{};
  };

  CallFuzzer(KernelPort& port, std::uint64_t seed) : port_(port), random_(seed) {}

  /// Handles that others have: numbers like any other to the kernel driver.
  void knows(std::uint32_t handle) { strange_.push_back(handle); }
  /// Memory of its own, to register.
  void has(std::uint64_t address, std::uint64_t bytes) { memory_ = {address, bytes}; }

  /// Address of its host.
  void lives_at(const std::array<std::uint8_t, 16>& address) { address_ = address; }

  /// One call. Returns what is wrong with the answer itself; empty: nothing.
  std::string step();

  [[nodiscard]] const Given& given() const { return given_; }
  /// Calls that succeeded, by their probe.
  [[nodiscard]] std::span<const std::uint64_t> successes() const { return successes_; }
  /// Ranges of shared memory that were answered; for who tries to map others.
  [[nodiscard]] const std::vector<calls::MemoryRange>& ranges() const { return ranges_; }

 private:
  [[nodiscard]] bool chance(unsigned in) { return random_() % in == 0; }
  [[nodiscard]] std::uint32_t pick(const std::vector<std::uint32_t>& from) {
    return from.empty() ? 0 : from[random_() % from.size()];
  }
  [[nodiscard]] std::uint32_t handle_for(std::string_view field);
  [[nodiscard]] std::uint64_t number_for(const CallField& field);
  void fill(const CallProbe& probe, std::vector<std::byte>& message);
  void make_transition(std::vector<std::byte>& message);
  void make_end(std::vector<std::byte>& message);
  template <typename Request>
  void make_region(std::vector<std::byte>& message);
  template <typename Request>
  void make_group(std::vector<std::byte>& message);
  void make_connection_call(calls::Call call, std::vector<std::byte>& message);
  void note(const CallProbe& probe, std::span<const std::byte> message, std::span<const std::byte> answer);

  KernelPort& port_;
  std::mt19937_64 random_;
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> own_;  ///< Handles, by the field that takes them
  struct Pair {
    hw::QpType type{};
    hw::QpState state{};
  };
  std::map<std::uint32_t, Pair> pairs_;  ///< As it knows them, by handle
  std::vector<std::uint32_t> strange_, gone_;
  std::pair<std::uint64_t, std::uint64_t> memory_;
  std::array<std::uint8_t, 16> address_{};
  std::vector<calls::MemoryRange> ranges_;
  std::array<std::uint64_t, kCallProbes.size()> successes_{};
  Given given_;
};

}  // namespace rnic::test
