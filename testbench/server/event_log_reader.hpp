#pragma once

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "testbench/server/event_log.hpp"

namespace rnic::testbench {

/// Reads an event log (docs/event_log.md), piece by piece. What it gives is of a whole piece, whose checksum is right.
class EventLogReader {
 public:
  /// Throws EventLogError: the file cannot be read, is no event log, one of another version, or damaged in its header.
  explicit EventLogReader(const std::string& path);
  EventLogReader(const EventLogReader&) = delete;
  EventLogReader& operator=(const EventLogReader&) = delete;

  [[nodiscard]] const EventLogHeader& header() const { return header_; }
  [[nodiscard]] const std::string& path() const { return path_; }

  /// The next record, which stays the next until it is taken; null: there is none. Throws EventLogError where the log
  /// is damaged.
  [[nodiscard]] const LogRecord* peek();
  /// Precondition: peek has given one.
  LogRecord take();
  /// So many were taken.
  [[nodiscard]] std::uint64_t taken() const { return taken_; }
  /// Behind the last record: the file ends within a piece.
  [[nodiscard]] bool cut_off() const { return cut_off_; }

 private:
  [[noreturn]] void damaged(const std::string& what) const;
  void read_header();
  [[nodiscard]] bool read_piece();
  void read_record();
  [[nodiscard]] std::uint64_t number();
  [[nodiscard]] std::uint64_t number(std::uint64_t most, const char* what);
  [[nodiscard]] std::vector<std::uint8_t> bytes(std::uint64_t count);

  const std::string path_;
  std::ifstream file_;
  EventLogHeader header_;
  std::uint64_t piece_at_ = 0;  ///< In the file
  std::vector<std::uint8_t> piece_;
  std::size_t next_ = 0;  ///< In the piece
  std::optional<LogRecord> record_;
  std::uint64_t time_ps_ = 0;
  std::uint64_t sessions_ = 0;
  std::uint64_t taken_ = 0;
  bool cut_off_ = false;
};

}  // namespace rnic::testbench
