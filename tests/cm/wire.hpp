#pragma once

#include <functional>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "driver/cm/manager.hpp"

namespace rnic::test {

/// Two hosts, each with a manager, a wire between their QP1s, and a clock that goes to whatever is next.
class CmWire {
 public:
  static constexpr std::uint64_t kDelayNs = 1000;

  struct Sent {
    std::uint64_t at{};
    cm::Gid from{};
    cm::Gid to{};
    cm::Mad mad{};
  };

  explicit CmWire(std::uint64_t seed, const cm::Config& config = {});

  [[nodiscard]] static cm::Gid gid(int host, std::uint8_t network = 0);
  cm::Manager& operator[](int host) { return *hosts_[static_cast<std::size_t>(host)]->manager; }
  [[nodiscard]] std::uint64_t now() const { return now_; }

  /// Whether a message is lost. By default none is.
  std::function<bool(const Sent&)> lose = [](const Sent&) { return false; };
  std::vector<Sent> log;
  bool keep_log = true;

  /// Puts a datagram on the wire.
  void inject(const cm::Gid& from, const cm::Gid& to, const cm::Mad& mad) {
    on_its_way_.emplace(now_, Sent{now_, from, to, mad});
  }
  /// Until nothing is under way, and for `ns` beyond: timers run, too.
  void run(std::uint64_t ns = 0);
  /// Until nothing waits for anything.
  void run_out();
  /// Endpoints that have been told of something, in order.
  std::vector<cm::EndpointId> told[2];

  /// Messages of one kind that were sent, lost ones too.
  [[nodiscard]] std::size_t count(cm::Attribute attribute) const;

 private:
  struct Host final : cm::Manager::Surroundings {
    Host(CmWire& wire, int number) : of(wire), index(number) {}
    void send(const cm::Gid& local, const cm::Gid& remote, const cm::Mad& mad) override;
    void tell(cm::EndpointId endpoint) override { of.told[index].push_back(endpoint); }
    std::uint64_t random() override { return of.random_(); }
    bool is_own(const cm::Gid& address) override { return address == gid(index) || address == gid(index, 1); }
    /// Of the default partition.
    bool is_in_partition(std::uint16_t pkey) override { return (pkey & 0x7FFF) == 0x7FFF; }
    CmWire& of;
    int index;
    std::unique_ptr<cm::Manager> manager;
  };
  bool step(std::uint64_t until);

  std::mt19937_64 random_;
  std::uint64_t now_ = 1'000'000;
  std::multimap<std::uint64_t, Sent> on_its_way_;
  std::vector<std::unique_ptr<Host>> hosts_;
};

}  // namespace rnic::test
