#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "model/random.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/traffic/traffic_arena.hpp"
#include "testbench/traffic/traffic_report.hpp"

namespace rnic::testbench {

/// One direction of a connected pair: makes random requests on one queue pair, with the Receives they need at the
/// other, and checks what comes of them.
class TrafficStream {
 public:
  struct Ends {
    std::string name;  ///< In messages
    TrafficArena& source;
    TrafficArena& sink;
    IND2QueuePair& requester;
    IND2QueuePair& responder;
    std::uint32_t inline_bytes;
    std::uint32_t most_sges;
  };

  TrafficStream(const Ends& ends, const TrafficOptions& options, std::uint64_t seed, TrafficReport& report);

  /// Plans, posts and checks what is due. Lets time pass in driver calls.
  void step();
  /// A result of the requester's initiator queue, and of the responder's receive queue.
  void on_request(const ND2_RESULT& result);
  void on_receive(const ND2_RESULT& result);
  /// A result of the responder's initiator queue: of a Bind or Invalidate for a window of this stream.
  void on_window(const ND2_RESULT& result);
  /// Everything planned is done and given back, or the stream is broken.
  [[nodiscard]] bool finished() const { return broken_ || (!may_plan() && works_.empty()); }

 private:
  /// A segment of memory, of a region of its own or of the arena's. Remote: maybe with a window, bound on the
  /// responder's queue pair.
  struct Segment {
    TrafficArena::Piece piece;
    ComPtr<IND2MemoryRegion> region;
    ComPtr<IND2MemoryWindow> window;
  };
  /// The life of a request's window.
  enum class WindowState : std::uint8_t { kNone, kToBind, kBinding, kBound, kInvalidating, kInvalid };
  /// One request: where its bytes come from and where they must be in the end, piece by piece.
  struct Work {
    TrafficKind kind{};
    ULONG flags{};
    std::size_t bytes{};
    std::vector<Segment> local;    ///< Of the request
    std::vector<Segment> receive;  ///< Of the peer's Receive; may be longer than the message
    std::vector<Segment> remote;   ///< Write and Read: one
    std::uint64_t post_ns{};       ///< Not before
    std::uint64_t receive_ns{};    ///< Not before
    bool posted{}, requested{};    ///< requested: done at the requester
    bool received{};               ///< Done at the responder, as far as it reports
    WindowState window{};
    std::uint64_t done_ns{};  ///< When it had completed
    std::uint64_t look_ns{};  ///< When what it wrote is looked for
    [[nodiscard]] bool silent() const { return (flags & ND_OP_FLAG_SILENT_SUCCESS) != 0; }
    [[nodiscard]] bool is_send() const { return kind == TrafficKind::kSend || kind == TrafficKind::kInlineSend; }
    [[nodiscard]] bool is_write() const { return !is_send() && kind != TrafficKind::kRead; }
    [[nodiscard]] bool is_inline() const {
      return kind == TrafficKind::kInlineSend || kind == TrafficKind::kInlineWrite;
    }
  };

  [[nodiscard]] bool may_plan() const {
    return !report_.stopping && (options_.requests == 0 || planned_ < options_.requests);
  }
  [[nodiscard]] std::uint64_t now() { return ends_.source.endpoint().device().now_ns(); }
  [[nodiscard]] Work& work(std::uint64_t number) { return works_[static_cast<std::size_t>(number - first_)]; }
  void plan();
  bool allocate(Work& work);
  bool cut(TrafficArena& arena, std::vector<Segment>& list, std::size_t bytes);
  void register_segment(TrafficArena& arena, Segment& segment, ULONG rights);
  void spoil(Work& work);
  void plant(Work& work);
  void add_window(Segment& segment);
  [[nodiscard]] bool bind(Work& work, std::uint64_t number);
  [[nodiscard]] bool close_window(Work& work, std::uint64_t number);
  void post_receives();
  void post_requests();
  [[nodiscard]] HRESULT post(const Work& work, std::uint64_t number);
  void request_done(std::uint64_t number);
  [[nodiscard]] static std::optional<std::string> difference(const Work& work, std::uint64_t number);
  void check(const Work& work, std::uint64_t number);
  void give_back(Work& work);
  void settle();
  void watch();
  void wrong(const std::string& text);

  const Ends ends_;
  const TrafficOptions& options_;
  model::Random random_;
  TrafficReport& report_;
  std::deque<Work> works_;  ///< Planned and not given back; their numbers start at first_
  std::uint64_t first_ = 0, planned_ = 0, posted_ = 0, requested_ = 0;
  std::deque<std::uint64_t> receives_to_post_, receives_posted_;
  std::uint32_t silent_run_ = 0;
  std::uint64_t next_post_ns_ = 0;
  std::uint64_t last_progress_ns_ = 0;
  bool broken_ = false;
};

}  // namespace rnic::testbench
