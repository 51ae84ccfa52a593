#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "testbench/server/event_log.hpp"

namespace rnic::test {

/// An event log in a file of its own, which goes with it.
class LogFile {
 public:
  LogFile();
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;
  ~LogFile();

  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string bytes() const;
  void write(const std::string& bytes) const;
  /// A log of one piece, whose checksums are right whatever is in it.
  void write_piece(const testbench::EventLogHeader& header, const std::vector<std::uint8_t>& records) const;
  /// The same behind what there is.
  void append_piece(const std::vector<std::uint8_t>& records) const;
  /// Changes a byte of what is in the pieces, which `at` counts round and round, and sets the checksum right.
  void spoil(std::size_t at, std::uint8_t mask) const;
  /// Puts another header in front of the pieces.
  void set_header(const testbench::EventLogHeader& header) const;
  /// Replaces the first `from` in a piece by `to`, of the same length, and sets the checksum right. False: there is
  /// none.
  bool change(const std::string& from, const std::string& to) const;

 private:
  std::string path_;
};

}  // namespace rnic::test
