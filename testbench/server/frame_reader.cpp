#include "testbench/server/frame_reader.hpp"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rnic::testbench {

FrameReader::Came FrameReader::receive(int socket) {
  std::array<std::byte, sizeof(remote::FrameHeader) + remote::kMostFrameBytes> piece;
  const ssize_t got = recv(socket, piece.data(), piece.size(), 0);
  if (got < 0 && errno == EINTR) return Came::kSome;
  if (got < 0 && errno == EAGAIN) return Came::kAll;
  if (got <= 0) return Came::kEnd;
  bytes_.insert(bytes_.end(), piece.begin(), piece.begin() + got);
  return Came::kSome;
}

std::optional<remote::FrameHeader> FrameReader::header() const {
  remote::FrameHeader header;
  if (bytes_.size() < sizeof header) return {};
  std::memcpy(&header, bytes_.data(), sizeof header);
  return header;
}

bool FrameReader::too_long() const {
  const auto next = header();
  return next && next->bytes > remote::kMostFrameBytes;
}

std::optional<RequestFrame> FrameReader::next() {
  const auto first = header();
  if (!first || too_long()) return {};
  const std::size_t size = sizeof *first + first->bytes;
  if (bytes_.size() < size) return {};
  const auto begin = bytes_.begin(), end = begin + static_cast<std::ptrdiff_t>(size);
  RequestFrame frame{*first, {begin + sizeof *first, end}};
  bytes_.erase(begin, end);
  return frame;
}

}  // namespace rnic::testbench
