#pragma once

#include <cstdint>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace rnic::testbench {

/// Part of the simulated time, nanoseconds.
struct TimelineWindow {
  std::uint64_t from_ns = 0, to_ns = std::numeric_limits<std::uint64_t>::max();
};

/// A file of Chrome trace events ("JSON Array Format" of the Trace Event Format), which Perfetto, chrome://tracing and
/// speedscope open. Written as the events come, in any order of time. Times are picoseconds of simulated time; in the
/// file they are microseconds since `epoch_ps`, with nanoseconds behind the point.
class TraceFile {
 public:
  /// What a viewer shows as one line: a thread of a process.
  struct Track {
    unsigned process{}, thread{};
  };
  enum class Flow : char { kStart = 's', kStep = 't', kEnd = 'f' };

  /// Throws std::runtime_error when the file cannot be written. Events that do not touch `window` are left out.
  TraceFile(const std::string& path, const TimelineWindow& window, std::uint64_t epoch_ps);

  void name_process(unsigned process, std::string_view name);
  /// The track of this name; `order` says where it stands among those of its process.
  Track track(unsigned process, const std::string& name, unsigned order);

  // `args` is the inside of a JSON object. `name` needs no escapes.
  void slice(Track track, std::uint64_t from_ps, std::uint64_t to_ps, std::string_view name, std::string_view args);
  void instant(Track track, std::uint64_t at_ps, std::string_view name, std::string_view args);
  /// An arrow goes from one event with `id` to the next in time; each binds to the slice that is there.
  void flow(Flow kind, Track track, std::uint64_t at_ps, std::uint64_t id);

  /// Throws std::runtime_error when something could not be written.
  void close();

  /// Nanoseconds since `epoch_ps`.
  [[nodiscard]] std::uint64_t ns(std::uint64_t ps) const { return ps < epoch_ps_ ? 0 : (ps - epoch_ps_) / 1000; }

 private:
  [[nodiscard]] bool outside(std::uint64_t from_ps, std::uint64_t to_ps) const;
  void event(std::string_view text);

  std::string path_;
  std::ofstream file_;
  TimelineWindow window_;
  std::uint64_t epoch_ps_;
  bool first_ = true;
  std::map<std::pair<unsigned, std::string>, unsigned> tracks_;
};

}  // namespace rnic::testbench
