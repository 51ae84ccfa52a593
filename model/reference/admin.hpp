#pragma once

#include "model/reference/clock.hpp"
#include "model/reference/numbers.hpp"
#include "model/reference/outside.hpp"

namespace rnic::reference {

class Nic;

/// The admin queue: commands of the kernel driver, executed one after the other (docs/host_interface.md).
class Admin {
 public:
  explicit Admin(Nic& nic);

  /// Runs as long as the NIC.
  Task<Done> run();
  void configure(std::uint64_t config);
  void doorbell(std::uint16_t producer);
  /// `enable` may have changed.
  void look() { rung_.raise(); }
  [[nodiscard]] std::uint64_t config() const { return config_; }
  [[nodiscard]] std::uint16_t producer() const { return producer_; }
  [[nodiscard]] bool fatal() const { return fatal_; }

  std::uint64_t command_base = 0, completion_base = 0;

 private:
  struct Outcome {
    AdminStatus status{};
    Bytes result;  ///< Up to 48 bytes
  };
  Task<Outcome> execute(std::uint8_t opcode, std::uint32_t number, Bytes body);
  [[nodiscard]] Bytes capabilities() const;
  AdminStatus create_eq(std::uint32_t number, const Bytes& body);
  AdminStatus create_cq(std::uint32_t number, const Bytes& body);
  Outcome resize_cq(std::uint32_t number, const Bytes& body);
  AdminStatus create_srq(std::uint32_t number, const Bytes& body);
  AdminStatus modify_srq(std::uint32_t number, const Bytes& body);
  AdminStatus create_mr(std::uint32_t number, const Bytes& body);
  Outcome query_mr(std::uint32_t number);
  Outcome query_counters(std::uint32_t number, const Bytes& body);

  Nic& nic_;
  Signal rung_;
  std::uint64_t config_ = 0;
  std::uint16_t producer_ = 0, consumer_ = 0;
  std::uint64_t ring_ = 0;  ///< Counts the writes of AdminConfig
  bool fatal_ = false;
};

}  // namespace rnic::reference
