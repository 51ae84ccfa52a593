#include "model/reference/transfer.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

/// The part of `segments` that holds bytes [offset, offset + bytes).
std::vector<Segment> part_of(const std::vector<Segment>& segments, std::uint64_t offset, std::uint64_t bytes) {
  std::vector<Segment> part;
  for (const Segment& segment : segments) {
    if (bytes == 0) break;
    if (offset >= segment.bytes) {
      offset -= segment.bytes;
      continue;
    }
    const std::uint64_t taken = std::min(bytes, segment.bytes - offset);
    part.push_back({segment.va + offset, static_cast<std::uint32_t>(taken), segment.key});
    offset = 0;
    bytes -= taken;
  }
  return part;
}

void refuse(Moved& moved, Xlate status) {
  moved.xlate = status;
  moved.status = status == Xlate::PageListError ? Status::FatalErr : Status::LocProtErr;
}

}  // namespace

Task<Moved> gather(Nic& nic, std::vector<Segment> segments, std::uint64_t offset, std::size_t bytes, Access access) {
  Moved moved;
  std::vector<std::shared_ptr<DmaRead>> reads;
  for (const Segment& segment : part_of(segments, offset, bytes)) {
    access.key = segment.key;
    access.va = segment.va;
    access.bytes = segment.bytes;
    Translation translation = co_await nic.memory.translate(access);
    if (translation.status != Xlate::Ok) {
      refuse(moved, translation.status);
      break;
    }
    for (const Piece& piece : translation.pieces) reads.push_back(nic.pcie.begin(piece.address, piece.bytes));
    moved.uses.push_back(translation.use);
    moved.uses.push_back(translation.region_use);
  }
  for (const auto& read : reads) {
    auto data = co_await Pcie::finish(read);
    if (!data) {  // before what could not be translated, if anything
      moved.status = Status::FatalErr;
      moved.xlate = Xlate::Ok;
      co_return moved;
    }
    moved.bytes.insert(moved.bytes.end(), data->begin(), data->end());
  }
  co_return moved;
}

Task<Moved> scatter(Nic& nic, std::vector<Segment> segments, std::uint64_t offset, Bytes data, Access access) {
  Moved moved;
  const auto part = part_of(segments, offset, data.size());
  std::uint64_t room = 0;
  for (const Segment& segment : part) room += segment.bytes;
  if (room < data.size()) {
    moved.status = Status::LocLenErr;
    co_return moved;
  }
  std::size_t done = 0;
  for (const Segment& segment : part) {
    access.key = segment.key;
    access.va = segment.va;
    access.bytes = segment.bytes;
    Translation translation = co_await nic.memory.translate(access);
    if (translation.status != Xlate::Ok) {
      refuse(moved, translation.status);
      co_return moved;
    }
    for (const Piece& piece : translation.pieces) {
      const auto from = data.begin() + static_cast<std::ptrdiff_t>(done);
      nic.pcie.write(piece.address, Bytes(from, from + static_cast<std::ptrdiff_t>(piece.bytes)));
      done += piece.bytes;
    }
  }
  co_return moved;
}

}  // namespace rnic::reference
