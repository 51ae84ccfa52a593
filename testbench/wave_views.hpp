#pragma once

#include <cstddef>
#include <filesystem>

namespace rnic::testbench {

/// Signals in an FST file that is closed. 0 for a file that cannot be read, too.
[[nodiscard]] std::size_t traced_signals(const std::filesystem::path& fst);

/// Writes what waveform viewers open beside the FST file `fst`, which is closed: waves.gtkw for GTKWave
/// (`gtkwave waves.fst waves.gtkw`) and waves.sucl for Surfer (`surfer -c waves.sucl waves.fst`). Both show the signals
/// along the way of a request, in groups; those that the file has not are left out. A file that cannot be written is
/// left out too: the waves are there without it.
void write_wave_views(const std::filesystem::path& fst);

}  // namespace rnic::testbench
