#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "driver/umd/queue_pair.hpp"
#include "model/random.hpp"
#include "testbench/traffic/mix_key.hpp"
#include "testbench/traffic/mix_receives.hpp"
#include "testbench/traffic/mix_side.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// Random messages of one queue pair to one on the other host, all of them checked.
///
/// RC: every message arrives once and in order, every request completes; between them Writes and Reads through keys
/// that the other end opens, and SENDs that invalidate them. UC: what is reported has arrived whole (InfiniBand
/// specification 9.8.2); UD: the same of datagrams (9.8.3). What the wire loses is lost, and what it repeats may come
/// twice.
class MixLane {
 public:
  struct Spec {
    std::string name;      ///< In messages
    std::uint32_t number;  ///< Differs from lane to lane
    hw::QpType type = hw::QpType::kRc;
    MixSide& from;
    MixSide& to;
    std::shared_ptr<umd::SharedReceiveQueue> shared;  ///< RC: where Receives come from
    MixReceives* receives;                            ///< Its buffers; null: the lane has its own
    bool fast;                                        ///< Keys are fast registrations too
    ConnectParameters connection;
  };
  static constexpr std::size_t kMostBytes = 5'000, kWindow = 8, kKeys = 2;
  static constexpr std::size_t kReceives = 24, kReceiveBytes = kMostBytes + hw::kGrhBytes;
  /// Memory that a lane takes of each side, at most.
  static constexpr std::size_t kSideBytes =
      (kWindow + kReceives) * (kReceiveBytes + 64) + 16 * (kMostBytes + 64) + kKeys * 5 * 4096;

  /// Makes and connects the queue pairs. Throws EndpointError.
  MixLane(const Spec& spec, const TrafficOptions& options, std::uint64_t seed, TrafficReport& report);
  ~MixLane();
  MixLane(const MixLane&) = delete;
  MixLane& operator=(const MixLane&) = delete;

  /// Plans and posts what is due. Lets time pass in driver calls.
  void step();
  /// A completion of source(), or of sink(); both carry the lane as their context.
  void on_source(const umd::Completion& completion);
  void on_sink(const umd::Completion& completion);
  [[nodiscard]] umd::QueuePair& source() { return *source_; }
  [[nodiscard]] umd::QueuePair& sink() { return *sink_; }
  [[nodiscard]] bool finished();

 private:
  enum class What : std::uint8_t { kSend, kSendImmediate, kSendInvalidate, kWriteImmediate, kWrite, kRead };
  struct Request {
    What what{};
    std::size_t bytes{};
    bool silent{}, fence{}, inline_data{};
    MixKey* key{};
    std::uint64_t offset{};     ///< In the memory of the key
    std::uint64_t key_bytes{};  ///< The message behind a Write: what that has written
    std::uint64_t number{};
    std::uint64_t contents{};  ///< The message whose bytes these are; kRead: those that must come
  };
  /// A message that the other end should hear of.
  struct Expected {
    std::size_t bytes{};
    What what{};
    MixKey* key{};
    std::uint64_t offset{}, key_bytes{}, contents{};  ///< What was written through the key before
    std::uint32_t arrivals{};
  };

  [[nodiscard]] bool reliable() const { return spec_.type == hw::QpType::kRc; }
  [[nodiscard]] std::span<std::uint8_t> slot(std::uint64_t number) { return slots_[number % kWindow]; }
  void plan();
  void plan_key(MixKey& key);
  void post();
  void step_keys();
  [[nodiscard]] Result<void> post_send(const Request& request);
  void complete(const Request& request);
  void arrived(const umd::Completion& completion);
  void arrived_in(std::uint64_t number, Expected& expected, const umd::Completion& completion,
                  std::span<const std::uint8_t> buffer);
  void check(std::span<const std::uint8_t> message, std::uint64_t contents, const char* what, std::uint64_t number);
  void watch();
  void wrong(const std::string& text);

  const Spec spec_;
  const TrafficOptions& options_;
  model::Random random_;
  TrafficReport& report_;
  std::unique_ptr<MixReceives> own_receives_;
  std::shared_ptr<umd::QueuePair> source_, sink_;
  std::optional<umd::AddressHandle> address_;
  std::vector<std::span<std::uint8_t>> slots_, write_slots_;
  std::deque<MixKey> keys_;
  std::deque<Request> planned_, outstanding_;
  std::map<std::uint64_t, Expected> expected_;        ///< By number; RC: those that have not come
  std::deque<std::pair<std::size_t, bool>> closing_;  ///< Keys whose last message has come
  std::uint64_t posted_ = 0, next_post_ns_ = 0, last_progress_ns_ = 0;
  std::uint32_t silent_run_ = 0;
  bool broken_ = false;
};

}  // namespace rnic::testbench
