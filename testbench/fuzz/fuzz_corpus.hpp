#pragma once

#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/fuzz/frame_fuzzer.hpp"

namespace rnic::testbench {

/// A corpus file that cannot be read, in words.
class CorpusError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// One file of the corpus: frames that belong together, in the order in which they were sent.
struct CorpusEntry {
  struct Frame {
    std::size_t host = 0;  ///< To which it goes
    FuzzFrame frame;
  };
  std::string note;        ///< What it is about, or what went wrong
  std::uint64_t seed = 0;  ///< Of the run that found it; 0: made by hand
  std::vector<Frame> frames;
  std::vector<std::string> actions;  ///< What the attacking processes did before; for readers, not replayed
  /// Of a violation that was found just now, not in the file: when, simulated time since the reset, and how many frames
  /// its run was to send.
  std::uint64_t at_ns = 0, run_frames = 0;
};

/// All *.json files of `folder`, by name. Throws CorpusError, naming the file.
std::vector<CorpusEntry> read_corpus(const std::filesystem::path& folder);
/// Writes `entry` to a new file of `folder` and returns its path. Throws CorpusError.
std::filesystem::path write_corpus(const std::filesystem::path& folder, const CorpusEntry& entry);

}  // namespace rnic::testbench
