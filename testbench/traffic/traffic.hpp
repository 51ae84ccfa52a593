#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "testbench/endpoint.hpp"
#include "testbench/traffic/traffic_arena.hpp"
#include "testbench/traffic/traffic_mix.hpp"
#include "testbench/traffic/traffic_report.hpp"
#include "testbench/traffic/traffic_share.hpp"
#include "testbench/traffic/traffic_stream.hpp"

namespace rnic::testbench {

/// Random work on connected queue pairs between two hosts, in both directions, everything checked: every request
/// completes once, in posting order, with success; every byte arrives; no byte beside it changes (InfiniBand
/// specification volume 1, 9.5, 10.8.3.3).
///
/// Made and destroyed in a thread of simulated time. Each thread number below threads() is run by an application of its
/// own.
class Traffic {
 public:
  /// Makes the queue pairs and connects them. Path MTU, IP version, Read limit and queue depths differ from pair to
  /// pair. Throws EndpointError.
  Traffic(Endpoint& a, Endpoint& b, const TrafficOptions& options, std::uint64_t seed);
  ~Traffic();
  Traffic(const Traffic&) = delete;
  Traffic& operator=(const Traffic&) = delete;

  [[nodiscard]] std::size_t threads() const {
    return groups_.size() + mixes_.size() + TrafficShare::kThreads * shares_.size();
  }
  /// Works until `requests` of each direction are done, stop was called, or something is wrong; what was posted is
  /// waited for. A driver call that fails is reported as wrong.
  void run(std::size_t thread);
  /// No new work.
  void stop() { report_.stopping = true; }
  [[nodiscard]] bool stopping() const { return report_.stopping; }

  /// To be called when the work is done, over links that lose and delay nothing: recovery hides what the NICs
  /// themselves lose, so every retransmission, NAK, time-out and drop of a queue pair, and everything that a port
  /// dropped, is wrong. RNR NAKs are not, where Receives may come late. Throws EndpointError.
  void check_orderly();

  /// What happened so far. strays are counted as wrong when the arenas are looked at, at the end of the last thread.
  [[nodiscard]] const TrafficReport& report() const { return report_; }

  /// For attackers: a queue pair of host `host` and how it is connected, 0 to options.pairs - 1; the memory of a host.
  [[nodiscard]] IND2QueuePair& qp(std::size_t pair, std::size_t host) { return *pairs_.at(pair).ends[host].qp; }
  [[nodiscard]] const ConnectParameters& connection(std::size_t pair) const { return pairs_.at(pair).connection; }
  [[nodiscard]] TrafficArena& arena(std::size_t host) { return *arenas_.at(host); }

 private:
  /// Pairs that one thread serves, and the completion queues that they share.
  struct Group {
    struct Side {
      ComPtr<IND2CompletionQueue> initiator_cq, receive_cq;
    };
    std::array<Side, 2> sides;
    std::vector<std::size_t> pairs;
  };
  struct Pair {
    struct End {
      ComPtr<IND2QueuePair> qp;
      std::unique_ptr<TrafficStream> stream;  ///< Its requests
      std::uint64_t seed = 0;                 ///< Of them
    };
    std::array<End, 2> ends;
    ConnectParameters connection;
    std::uint32_t depth = 0;  ///< Of its initiator queues
  };

  void plan();
  void make_pair(Group& group, std::size_t number);
  void work(std::size_t thread);
  void take_results(Group& group, std::size_t host);
  void finish();

  std::array<Endpoint*, 2> endpoints_;
  const TrafficOptions options_;
  model::Random random_;
  std::array<std::unique_ptr<TrafficArena>, 2> arenas_;
  std::deque<Group> groups_;
  std::vector<Pair> pairs_;
  TrafficReport report_;
  std::vector<std::unique_ptr<TrafficMix>> mixes_;
  std::vector<std::unique_ptr<TrafficShare>> shares_;
  std::size_t running_ = 0, groups_done_ = 0;
};

}  // namespace rnic::testbench
