#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "model/config_space.hpp"
#include "testbench/guest/guest_function.hpp"
#include "testbench/guest/ownership_checker.hpp"
#include "testbench/host.hpp"
#include "testbench/server/call_threads.hpp"

namespace rnic::testbench {

/// The NIC of a host as a function on a guest's PCI bus: its configuration space, and the guest's accesses as TLPs of
/// the host's root complex.
///
/// What the configuration space does not let through is answered as by a bus on which nobody is: reads give ones,
/// writes go nowhere, and both are counted.
class GuestNic : public GuestFunction {
 public:
  /// Both outlive it. The NIC sees the configuration space from `power_on` on. `tell` gets a line when the driver
  /// breaks a rule for the first time.
  GuestNic(Host& host, CallThreads& calls, OwnershipChecker::Tell tell);
  GuestNic(const GuestNic&) = delete;
  GuestNic& operator=(const GuestNic&) = delete;
  ~GuestNic() override;

  /// As a machine begins, or ends: nothing is left of the guest before.
  void power_on();

  // GuestFunction
  [[nodiscard]] std::uint32_t config_read(std::size_t offset, std::size_t bytes) override;
  void config_write(std::size_t offset, std::uint32_t value, std::size_t bytes) override;
  void write(std::uint64_t address, std::uint64_t value, std::size_t bytes) override;
  void read(std::uint64_t address, std::size_t bytes, std::function<void(std::uint64_t)> done) override;
  void set_memory(const std::vector<model::Iommu::Window>& windows) override;
  void reset() override { power_on(); }

  [[nodiscard]] OwnershipChecker& checker() { return checker_; }

  [[nodiscard]] const model::ConfigSpace& config() const { return config_; }
  /// Accesses that have met nobody.
  [[nodiscard]] std::uint64_t unsupported() const { return unsupported_; }

 private:
  /// Within BAR0; nothing: not there, or not in one page of it.
  [[nodiscard]] std::optional<std::uint64_t> offset_of(std::uint64_t address, std::size_t bytes);
  [[nodiscard]] std::optional<std::uint64_t> request(std::uint64_t offset, std::size_t bytes);
  void reset_nic();
  void apply();

  Host& host_;
  CallThreads& calls_;
  model::ConfigSpace config_;
  OwnershipChecker checker_;
  std::uint64_t unsupported_ = 0;
};

}  // namespace rnic::testbench
