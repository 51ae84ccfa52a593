#include "tests/server/log_file.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "testbench/server/event_log_writer.hpp"

namespace rnic::test {
namespace {

std::string four_bytes(std::uint32_t value) {
  std::string text;
  for (unsigned i = 0; i < 4; ++i) text += static_cast<char>(value >> (8 * i));
  return text;
}

std::uint32_t word_at(const std::string& text, std::size_t at) {
  std::uint32_t value = 0;
  for (unsigned i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<std::uint8_t>(text[at + i])} << (8 * i);
  return value;
}

/// Of the first piece.
std::size_t pieces_at(const std::string& bytes) { return 16 + word_at(bytes, 12) + 4; }

/// `bytes`, in which the piece at `at` has changed.
std::string with_checksum(std::string bytes, std::size_t at) {
  const std::string size = bytes.substr(at, 4), piece = bytes.substr(at + 8, word_at(bytes, at));
  const auto sum = testbench::log_checksum(testbench::octets(piece), testbench::log_checksum(testbench::octets(size)));
  return bytes.replace(at + 4, 4, four_bytes(sum));
}

}  // namespace

LogFile::LogFile() {
  std::string name = (std::filesystem::temp_directory_path() / "rnic_test_log.XXXXXX").string();
  const int file = mkstemp(name.data());
  if (file < 0) throw std::runtime_error("no file for an event log");
  close(file);
  path_ = name;
}

LogFile::~LogFile() {
  std::error_code ignored;
  std::filesystem::remove(path_, ignored);
}

std::string LogFile::bytes() const {
  std::ifstream in(path_, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void LogFile::write(const std::string& bytes) const { std::ofstream(path_, std::ios::binary) << bytes; }

void LogFile::write_piece(const testbench::EventLogHeader& header, const std::vector<std::uint8_t>& records) const {
  { const testbench::EventLogWriter head(path_, header); }
  append_piece(records);
}

void LogFile::append_piece(const std::vector<std::uint8_t>& records) const {
  std::string whole = bytes();
  const std::size_t at = whole.size();
  whole += four_bytes(static_cast<std::uint32_t>(records.size())) + four_bytes(0);
  whole.append(records.begin(), records.end());
  write(with_checksum(std::move(whole), at));
}

void LogFile::spoil(std::size_t at, std::uint8_t mask) const {
  std::string whole = bytes();
  const std::size_t first = pieces_at(whole);
  std::size_t spoiled = first + at % (whole.size() - first), piece = first;
  while (piece + 8 + word_at(whole, piece) <= spoiled) piece += 8 + word_at(whole, piece);
  spoiled = std::max(spoiled, piece + 8);
  whole[spoiled] = static_cast<char>(whole[spoiled] ^ mask);
  write(with_checksum(std::move(whole), piece));
}

void LogFile::set_header(const testbench::EventLogHeader& header) const {
  const std::string old = bytes();
  { const testbench::EventLogWriter head(path_, header); }
  write(bytes() + old.substr(pieces_at(old)));
}

bool LogFile::change(const std::string& from, const std::string& to) const {
  std::string whole = bytes();
  for (std::size_t at = pieces_at(whole); at < whole.size(); at += 8 + word_at(whole, at)) {
    const std::size_t found = whole.find(from, at + 8);
    if (found == std::string::npos) return false;
    if (found + from.size() > at + 8 + word_at(whole, at)) continue;
    whole.replace(found, to.size(), to);
    write(with_checksum(std::move(whole), at));
    return true;
  }
  return false;
}

}  // namespace rnic::test
