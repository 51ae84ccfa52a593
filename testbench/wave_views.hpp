#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace rnic::testbench {

/// Signals in an FST file that is closed. 0 for a file that cannot be read, too.
[[nodiscard]] std::size_t traced_signals(const std::filesystem::path& fst);

/// The time at which viewers open the waves.
struct WaveMark {
  std::uint64_t at_ps = 0;
  bool is_end = false;  ///< What matters is in front of it (a failure), not behind it (the first work request)
};

/// Writes what waveform viewers open beside the FST file `fst`, which is closed: waves.gtkw for GTKWave
/// (`gtkwave waves.fst waves.gtkw`), with a folder waves.names, and waves.sucl for Surfer
/// (`surfer -c waves.sucl waves.fst`). Both show the signals along the way of a request in groups, states by name,
/// around the mark; GTKWave also shows the fields of descriptors. Signals that the file does not have are left out. A
/// file that cannot be written is left out too: the waves are complete without it.
void write_wave_views(const std::filesystem::path& fst, const WaveMark& mark);

}  // namespace rnic::testbench
