#include "testbench/server/event_log_writer.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "model/time.hpp"

namespace rnic::testbench {
namespace {

/// In front of each piece: its length, and the checksum of length and piece.
constexpr std::size_t kPieceHead = 8;
/// A slice that meets more is written in several pieces.
constexpr std::size_t kFullPiece = std::size_t{1} << 20;

void put32(std::uint8_t* to, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

}  // namespace

std::uint32_t checksum_of(const model::DmaRequest& request) {
  std::array<std::uint8_t, 12> head{};
  put32(head.data(), static_cast<std::uint32_t>(request.address));
  put32(head.data() + 4, static_cast<std::uint32_t>(request.address >> 32));
  put32(head.data() + 8, std::uint32_t{request.length_dw} | std::uint32_t{request.first_be} << 16 |
                             std::uint32_t{request.last_be} << 24);
  return log_checksum(request.data, log_checksum(head));
}

std::uint32_t checksum_of(calls::Status status, std::uint32_t client, std::span<const std::byte> body) {
  std::array<std::uint8_t, 8> head{};
  put32(head.data(), static_cast<std::uint32_t>(status));
  put32(head.data() + 4, client);
  return log_checksum(octets(body), log_checksum(head));
}

EventLogWriter::EventLogWriter(const std::string& path, const EventLogHeader& header)
    : path_(path), file_(open(path.c_str(), O_CREAT | O_WRONLY | O_TRUNC | O_CLOEXEC, 0600)) {
  if (!file_) throw EventLogError(fmt::format("{}: cannot be written: {}", path, std::strerror(errno)));
  const std::string text = nlohmann::json{
      {"arguments", header.arguments},
      {"files", header.files},
      {"version", header.version},
      {"build", header.build},
      {"slice_ps",
       header.slice_ps}}.dump();
  std::array<std::uint8_t, kEventLogMagic.size() + 8> head{};
  std::memcpy(head.data(), kEventLogMagic.data(), kEventLogMagic.size());
  put32(head.data() + kEventLogMagic.size(), kEventLogVersion);
  put32(head.data() + kEventLogMagic.size() + 4, static_cast<std::uint32_t>(text.size()));
  std::array<std::uint8_t, 4> check{};
  put32(check.data(), log_checksum(octets(text), log_checksum(head)));
  write(head);
  write(octets(text));
  write(check);
  if (!failure_.empty()) throw EventLogError(failure_);
  piece_.resize(kPieceHead);
}

void EventLogWriter::write(std::span<const std::uint8_t> data) {
  while (failure_.empty() && !data.empty()) {
    const ssize_t written = ::write(file_.get(), data.data(), data.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      failure_ = fmt::format("{}: the event log ends here: {}", path_, std::strerror(errno));
      return;
    }
    data = data.subspan(static_cast<std::size_t>(written));
  }
}

void EventLogWriter::write_out() {
  if (piece_.size() == kPieceHead) return;
  put32(piece_.data(), static_cast<std::uint32_t>(piece_.size() - kPieceHead));
  const std::span<const std::uint8_t> whole(piece_);
  put32(piece_.data() + 4, log_checksum(whole.subspan(kPieceHead), log_checksum(whole.first(4))));
  write(piece_);
  piece_.resize(kPieceHead);
}

void EventLogWriter::number(std::uint64_t value) {
  constexpr std::uint64_t kMore = 0x80;
  for (; value >= kMore; value >>= 7) piece_.push_back(static_cast<std::uint8_t>(value | kMore));
  piece_.push_back(static_cast<std::uint8_t>(value));
}

void EventLogWriter::bytes(std::span<const std::uint8_t> data) {
  number(data.size());
  piece_.insert(piece_.end(), data.begin(), data.end());
}

void EventLogWriter::begin(LogKind kind) {
  if (piece_.size() > kFullPiece) write_out();
  piece_.push_back(static_cast<std::uint8_t>(kind));
  const std::uint64_t now = model::now_ps();
  number(now - std::exchange(last_ps_, now));
}

std::uint64_t EventLogWriter::attach(std::size_t host, std::int32_t process) {
  begin(LogKind::kAttach);
  number(host);
  number(static_cast<std::uint64_t>(process));
  return sessions_++;
}

void EventLogWriter::detach(std::uint64_t session) {
  begin(LogKind::kDetach);
  number(session);
}

void EventLogWriter::doorbell(std::uint64_t session, const remote::Doorbell& doorbell) {
  begin(LogKind::kDoorbell);
  number(session);
  number(doorbell.offset);
  // Of one with a size that there is not, nothing counts but that.
  const bool known = doorbell.bytes == sizeof doorbell.data || doorbell.bytes == sizeof doorbell.data[0];
  const auto data = std::as_bytes(std::span(doorbell.data));
  bytes(octets(data.first(known ? doorbell.bytes : 0)));
}

void EventLogWriter::request(std::uint64_t session, const remote::FrameHeader& header,
                             std::span<const std::byte> body) {
  begin(LogKind::kRequest);
  number(session);
  number(static_cast<std::uint64_t>(header.kind));
  number(header.number);
  number(header.client);
  bytes(octets(body));
}

void EventLogWriter::frame(std::size_t socket, std::span<const std::uint8_t> data) {
  begin(LogKind::kFrame);
  number(socket);
  bytes(data);
}

void EventLogWriter::look(bool counters) {
  begin(LogKind::kLook);
  number(counters ? 1 : 0);
}

void EventLogWriter::rest(std::uint64_t ps) {
  begin(LogKind::kRest);
  number(ps);
}

void EventLogWriter::finish() { begin(LogKind::kFinish); }

void EventLogWriter::failed(const std::string& why) {
  begin(LogKind::kFailed);
  bytes(octets(why));
  write_out();
}

void EventLogWriter::end(const std::string& figures) {
  begin(LogKind::kEnd);
  bytes(octets(figures));
  write_out();
}

void EventLogWriter::reach(std::size_t host, std::int32_t process, std::uint64_t address, std::uint64_t length,
                           bool writable, model::ProcessMemory::Reach answer) {
  begin(LogKind::kReach);
  number(host);
  number(static_cast<std::uint64_t>(process));
  number(address);
  number(length);
  number(writable ? 1 : 0);
  number(static_cast<std::uint64_t>(answer));
}

void EventLogWriter::dma_read(std::size_t host, const model::DmaRequest& request, LogPlace place, bool good,
                              std::span<const std::uint8_t> data) {
  begin(LogKind::kDmaRead);
  number(host);
  number(request.address);
  number(request.length_dw);
  number(checksum_of(request));
  number(static_cast<std::uint64_t>(place) << 1 | (good ? 1 : 0));
  if (place != LogPlace::kOwn && good) piece_.insert(piece_.end(), data.begin(), data.end());
}

void EventLogWriter::dma_write(std::size_t host, const model::DmaRequest& request, LogPlace place, bool good) {
  begin(LogKind::kDmaWrite);
  number(host);
  number(request.address);
  number(request.length_dw);
  number(checksum_of(request));
  number(static_cast<std::uint64_t>(place) << 1 | (good ? 1 : 0));
}

void EventLogWriter::answer(std::uint64_t session, std::uint32_t number_of_it, std::uint32_t checksum, bool taken) {
  begin(LogKind::kAnswer);
  number(session);
  number(number_of_it);
  number(checksum);
  number(taken ? 1 : 0);
}

}  // namespace rnic::testbench
