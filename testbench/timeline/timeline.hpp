#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "model/wire_direction.hpp"
#include "testbench/timeline/host_timeline.hpp"
#include "testbench/timeline/life_writer.hpp"
#include "testbench/timeline/run_observer.hpp"
#include "testbench/timeline/trace_file.hpp"

namespace rnic::testbench {

class Host;

/// Watches hosts, their NICs and the network between them, and tells what becomes of each work request and each packet
/// (docs/timeline.md): writes it to a file, or has observers hear it, or both. It disturbs nothing; what is over is
/// told and forgotten.
class Timeline {
 public:
  /// Watches `hosts`, of a world of `options` that began at `epoch_ps`, from now on: it takes the taps of their root
  /// complexes. Throws std::runtime_error when the file cannot be written, or a NIC does not show what is needed.
  Timeline(const WorldOptions& options, std::uint64_t epoch_ps, std::vector<Host*> hosts);
  ~Timeline();
  Timeline(const Timeline&) = delete;
  Timeline& operator=(const Timeline&) = delete;

  /// A host has sent this frame, which is number `number` in a capture of the wire.
  void frame(const model::FrameRecord& record, std::uint64_t number);
  /// Watches no longer, and tells what there is. Throws std::runtime_error when the file could not be written.
  void close();

 private:
  [[nodiscard]] std::size_t receiver_of(const model::FrameRecord& record) const;

  std::unique_ptr<TraceFile> file_;                   ///< Or none
  std::vector<std::unique_ptr<LifeWriter>> writers_;  ///< To it, of each host
  std::vector<RunObserver*> observers_;
  std::vector<Host*> hosts_;
  std::vector<std::unique_ptr<HostTimeline>> lives_;
};

}  // namespace rnic::testbench
