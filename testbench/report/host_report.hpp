#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>

#include "testbench/nic_counters.hpp"
#include "testbench/report/shared_figures.hpp"

namespace rnic::testbench {

/// What a report counts of one host.
class HostReport final : public LifeSink {
 public:
  HostReport(SharedFigures& shared, unsigned host, const Flights& flights, double pcie_gbytes)
      : shared_(shared), host_(host), flights_(flights), pcie_gbytes_(pcie_gbytes) {}

  void request_begins(Request& request) override;
  void request_ends(Request& request) override;
  void send_begins(Packet&) override {}
  void send_ends(Packet&) override {}
  void receive_begins(Packet&) override {}
  void receive_ends(Packet&) override {}
  void packet_over(Packet& packet) override { shared_.packets.at(packet.host).over(packet); }
  void packet_received(Packet& packet) override;
  void frame(const Frame& frame, Packet* packet) override;
  void stall_over(std::uint8_t qp, StallReason reason, std::uint64_t from, std::uint64_t to,
                  const Request* request) override;
  void wait_over(WaitKind what, std::uint64_t from, std::uint64_t to) override;
  void tlb_missed(std::uint64_t) override {}
  void tlp(const model::TlpSeen& tlp, std::uint64_t at) override;
  void counted(hw::Counter counter) override { ++counters_[static_cast<std::size_t>(counter)]; }
  [[nodiscard]] BlockUsage* usage() override { return &shared_.usage.at(host_); }

  /// {"host", "packets", "stalls", "waits", "engines", "streams", "counters", "trouble"}; what did not happen is not
  /// there.
  [[nodiscard]] nlohmann::ordered_json json() const;

 private:
  struct Waits {
    std::uint64_t count = 0, total_ps = 0, longest_ps = 0;
    void add(std::uint64_t ps);
    [[nodiscard]] nlohmann::ordered_json json() const;
  };
  /// Whether it is one of SharedFigures::requests.
  [[nodiscard]] bool counts(const Request& request) const;

  static constexpr auto kReasons = static_cast<std::size_t>(StallReason::kCount);

  SharedFigures& shared_;
  unsigned host_;
  Flights flights_;
  double pcie_gbytes_;
  std::map<std::uint8_t, std::array<Waits, kReasons>> stalls_;  ///< By queue pair
  std::array<Waits, static_cast<std::size_t>(WaitKind::kCount)> waits_{};
  NicCounters counters_{};
};

}  // namespace rnic::testbench
