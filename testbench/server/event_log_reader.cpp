#include "testbench/server/event_log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "driver/remote/doorbell_ring.hpp"
#include "driver/remote/protocol.hpp"
#include "model/process_memory.hpp"
#include "testbench/server/outside/frame_socket.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint64_t kMost32 = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint64_t kMostProcess = std::numeric_limits<std::int32_t>::max();
constexpr std::uint64_t kMostDwords = 1024;  ///< Of a TLP
constexpr std::uint64_t kLastTime = std::uint64_t{1} << 62;

std::uint32_t get32(const char* from) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<std::uint8_t>(from[i])} << (8 * i);
  return value;
}

}  // namespace

EventLogReader::EventLogReader(const std::string& path) : path_(path), file_(path, std::ios::binary) {
  if (!file_) throw EventLogError(fmt::format("{}: cannot be read", path_));
  read_header();
}

void EventLogReader::damaged(const std::string& what) const {
  throw EventLogError(fmt::format("{}: the event log is damaged in the piece at byte {}: {}", path_, piece_at_, what));
}

void EventLogReader::read_header() {
  std::array<char, kEventLogMagic.size() + 8> head{};
  if (!file_.read(head.data(), head.size()) || !std::equal(kEventLogMagic.begin(), kEventLogMagic.end(), head.begin()))
    throw EventLogError(fmt::format("{}: is no event log (rnic serve --log)", path_));
  const std::uint32_t version = get32(head.data() + kEventLogMagic.size());
  if (version != kEventLogVersion)
    throw EventLogError(
        fmt::format("{}: is an event log of version {}, this reads version {}", path_, version, kEventLogVersion));
  const std::uint32_t size = get32(head.data() + kEventLogMagic.size() + 4);
  std::array<char, 4> check{};
  std::string text(std::min(size, kMostLogHeader), ' ');
  if (size > kMostLogHeader || !file_.read(text.data(), size) || !file_.read(check.data(), check.size()) ||
      get32(check.data()) != log_checksum(octets(text), log_checksum(octets(head))))
    damaged("its header");
  piece_at_ = head.size() + text.size() + check.size();
  try {
    const auto json = nlohmann::json::parse(text);
    json.at("arguments").get_to(header_.arguments);
    json.at("files").get_to(header_.files);
    json.at("version").get_to(header_.version);
    json.at("build").get_to(header_.build);
    json.at("slice_ps").get_to(header_.slice_ps);
  } catch (const nlohmann::json::exception&) {
    damaged("its header says not what it should");
  }
  constexpr std::uint64_t kLongestSlice = 1'000'000'000;
  if (header_.slice_ps == 0 || header_.slice_ps > kLongestSlice) damaged("its header has no slices");
}

/// The next piece of the file, whole. False: there is none.
bool EventLogReader::read_piece() {
  piece_at_ += piece_.empty() ? 0 : 8 + piece_.size();
  next_ = 0;
  piece_.clear();
  std::array<char, 8> head{};
  file_.read(head.data(), head.size());
  if (file_.gcount() == 0) return false;
  cut_off_ = file_.gcount() != static_cast<std::streamsize>(head.size());
  if (cut_off_) return false;
  const std::uint32_t size = get32(head.data());
  if (size == 0 || size > kMostLogPiece) damaged(fmt::format("it has {} bytes", size));
  // Not all at once: what a damaged length says may not be there.
  constexpr std::size_t kStep = std::size_t{1} << 16;
  while (piece_.size() < size) {
    const std::size_t had = piece_.size(), step = std::min<std::size_t>(kStep, size - had);
    piece_.resize(had + step);
    file_.read(reinterpret_cast<char*>(piece_.data() + had), static_cast<std::streamsize>(step));
    cut_off_ = file_.gcount() != static_cast<std::streamsize>(step);
    if (!cut_off_) continue;
    piece_.clear();
    return false;
  }
  if (get32(head.data() + 4) != log_checksum(piece_, log_checksum(octets(head).first(4)))) damaged("checksum");
  return true;
}

std::uint64_t EventLogReader::number() {
  std::uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (next_ == piece_.size()) damaged("a record is not whole");
    const std::uint8_t byte = piece_[next_++];
    value |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return value;
  }
  damaged("a number without end");
}

std::uint64_t EventLogReader::number(std::uint64_t most, const char* what) {
  const std::uint64_t value = number();
  if (value > most) damaged(fmt::format("{} {}", what, value));
  return value;
}

std::vector<std::uint8_t> EventLogReader::bytes(std::uint64_t count) {
  if (count > piece_.size() - next_) damaged("a record is not whole");
  const auto from = piece_.begin() + static_cast<std::ptrdiff_t>(next_);
  next_ += count;
  return {from, from + static_cast<std::ptrdiff_t>(count)};
}

void EventLogReader::read_record() {
  LogRecord record;
  record.kind = static_cast<LogKind>(number(0xFF, "kind"));
  time_ps_ += number(kLastTime - time_ps_, "time");
  record.time_ps = time_ps_;
  const auto host = [&] { record.host = number(WorldOptions::kMostHosts - 1, "host"); };
  const auto session = [&] {
    if (sessions_ == 0) damaged("a connection that there is not");
    record.session = number(sessions_ - 1, "connection");
  };
  const auto dma = [&] {
    host();
    record.address = number();
    record.length = number(kMostDwords, "dwords");
    record.checksum = number(kMost32, "checksum");
    const std::uint64_t how = number(static_cast<std::uint64_t>(LogPlace::kProcess) << 1 | 1, "place");
    record.place = static_cast<LogPlace>(how >> 1);
    record.good = (how & 1) != 0;
  };
  switch (record.kind) {
    case LogKind::kAttach:
      host();
      record.process = number(kMostProcess, "process");
      record.session = sessions_++;
      break;
    case LogKind::kDetach: session(); break;
    case LogKind::kDoorbell:
      session();
      record.address = number(kMost32, "offset");
      record.data = bytes(number(sizeof(remote::Doorbell::data), "size"));
      break;
    case LogKind::kRequest:
      session();
      record.code = number(kMost32, "kind of request");
      record.number = number(kMost32, "request");
      record.client = number(kMost32, "client");
      record.data = bytes(number(remote::kMostFrameBytes, "size"));
      break;
    case LogKind::kLook: record.flag = number(1, "flag") != 0; break;
    case LogKind::kRest: record.length = number(kLastTime - time_ps_, "rest"); break;
    case LogKind::kFinish: break;
    case LogKind::kFailed:
    case LogKind::kEnd: record.data = bytes(number(kMostLogPiece, "size")); break;
    case LogKind::kFrame:
      record.socket = number(WorldOptions::kMostHosts - 1, "socket");
      record.data = bytes(number(kMostOutsideFrameBytes, "size"));
      break;
    case LogKind::kReach:
      host();
      record.process = number(kMostProcess, "process");
      record.address = number();
      record.length = number();
      record.flag = number(1, "flag") != 0;
      record.code = number(static_cast<std::uint64_t>(model::ProcessMemory::Reach::kForbidden), "answer");
      break;
    case LogKind::kDmaRead:
      dma();
      if (record.place != LogPlace::kOwn && record.good) record.data = bytes(record.length * 4);
      break;
    case LogKind::kDmaWrite: dma(); break;
    case LogKind::kAnswer:
      session();
      record.number = number(kMost32, "request");
      record.checksum = number(kMost32, "checksum");
      record.good = number(1, "flag") != 0;
      break;
    default: damaged(fmt::format("a record of kind {}", static_cast<unsigned>(record.kind)));
  }
  record_ = std::move(record);
}

const LogRecord* EventLogReader::peek() {
  if (record_) return &*record_;
  if (next_ == piece_.size() && !read_piece()) return nullptr;
  read_record();
  return &*record_;
}

LogRecord EventLogReader::take() {
  ++taken_;
  LogRecord record = std::move(*record_);
  record_.reset();
  return record;
}

}  // namespace rnic::testbench
