#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "testbench/fuzz/answer_check.hpp"
#include "testbench/fuzz/frame_fuzzer.hpp"
#include "testbench/fuzz/fuzz_process.hpp"
#include "testbench/fuzz/fuzz_run.hpp"
#include "testbench/fuzz/wqe_fuzzer.hpp"
#include "testbench/traffic/traffic.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// One run of the fuzzer on a world that is as new. Host h has a victim's endpoint, and an attacker's process whose
/// queue pairs are connected to those of the attacker's process on the other host: the sacrifice.
class FuzzEpisode {
 public:
  struct Spec {
    std::uint64_t seed = 1, frames = 0;
    PlantedFault planted = PlantedFault::kNone;
  };
  FuzzEpisode(World& world, const Spec& spec, const std::vector<CorpusEntry>& corpus, FuzzReport& report,
              std::function<void(std::uint64_t)> progress);
  ~FuzzEpisode();
  FuzzEpisode(const FuzzEpisode&) = delete;
  FuzzEpisode& operator=(const FuzzEpisode&) = delete;

  /// What is found goes to the report.
  void run();

 private:
  static constexpr std::size_t kPairs = FuzzProcess::kQps, kPairsPerKeeper = 4;  ///< Of the attackers

  struct Side {
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<FuzzProcess> process;
    std::unique_ptr<FrameFuzzer> frames;  ///< Towards this host
    std::unique_ptr<WqeFuzzer> wqes;
    /// Queue pairs of this host: first the sacrificed, then the victims', then multicast groups.
    std::vector<FuzzTarget> targets;
    std::array<AnswerCheck, kPairs> answers;  ///< Of its queue pairs
  };

  void set_up();
  void for_each_side(const std::function<void(Side&)>& task);
  void connect(std::size_t pair);
  void connect_side(std::size_t pair, std::size_t host, std::uint32_t send_psn, std::uint32_t receive_psn);
  [[nodiscard]] calls::QueryQp::Answer query(std::size_t pair, std::size_t host);
  /// Looks whether a sacrificed connection lives, and learns its PSNs; makes it anew when it has failed.
  void refresh(std::size_t pair, bool anew);
  [[nodiscard]] bool failed(std::size_t pair) const {
    return !sides_[0].targets[pair].alive || !sides_[1].targets[pair].alive;
  }
  [[nodiscard]] FuzzTarget target_of(std::size_t host, std::uint32_t qpn, const ConnectParameters& parameters);
  [[nodiscard]] FuzzTarget group_of(std::size_t host, const kmd::Gid& group);
  void inject(std::size_t host);
  void send(std::size_t host, FuzzFrame frame);
  void replay();
  void attack(std::size_t host);
  void keep(std::size_t first);
  void monitor();
  void watch(const model::FrameRecord& record);
  void look_for_secrets(const model::FrameRecord& record);
  void note_request(const model::FrameRecord& record);
  void judge_answer(std::size_t pair, std::size_t host, const std::optional<std::string>& wrong);
  void learn(const model::FrameRecord& record);
  void read_counters();
  void violation(const std::string& text);
  /// Adds an application. What leaves it is a violation, upon which the others end of themselves: none is stopped
  /// inside the driver.
  void add_app(std::size_t host, const std::string& name, std::function<void()> body);
  /// Runs the applications that were added. False: there was a violation.
  bool simulate();

  World& world_;
  const std::uint64_t seed_, frames_;
  const PlantedFault planted_;
  const std::vector<CorpusEntry>& corpus_;
  FuzzReport& report_;
  std::function<void(std::uint64_t)> progress_;
  model::Random random_;
  const double byte_ns_;  ///< Of the frames of one injector: the others have the other half of the wire
  std::array<Side, 2> sides_;
  std::unique_ptr<Traffic> victims_;
  std::deque<CorpusEntry::Frame> history_;
  std::uint64_t sent_ = 0;
  std::size_t injecting_ = 0;
  bool failed_ = false, done_ = false;
};

}  // namespace rnic::testbench
