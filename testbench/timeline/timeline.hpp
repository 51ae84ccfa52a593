#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "model/wire_direction.hpp"
#include "testbench/timeline/host_timeline.hpp"
#include "testbench/timeline/trace_file.hpp"

namespace rnic::testbench {

class Host;

/// Watches hosts, their NICs and the network between them, and writes what becomes of each work request and each packet
/// (docs/timeline.md). It disturbs nothing; what is over is written and forgotten.
class Timeline {
 public:
  /// Watches `hosts` from now on: it takes the taps of their root complexes. Throws std::runtime_error when the file
  /// cannot be written, or a NIC does not show what is needed.
  Timeline(const std::string& path, const TimelineWindow& window, std::uint64_t epoch_ps, std::vector<Host*> hosts);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// A host has sent this frame.
  void frame(const model::FrameRecord& record);
  /// Watches no longer, and writes what there is. Throws std::runtime_error when the file could not be written.
  void close();

 private:
  [[nodiscard]] std::size_t receiver_of(const model::FrameRecord& record) const;

  TraceFile file_;
  std::vector<Host*> hosts_;
  std::vector<std::unique_ptr<HostTimeline>> lives_;
};

}  // namespace rnic::testbench
