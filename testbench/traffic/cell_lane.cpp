#include "testbench/traffic/cell_lane.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace rnic::testbench {
namespace {

constexpr unsigned kVersionShift = 16;

}  // namespace

SharedCells::SharedCells(MixSide& host) : host_(host) {
  for (std::size_t i = 0; i < kPlaces; ++i) {
    const auto room = host.take((kWords[i] + 1) * kWord);
    const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(room.data()) % kWord;
    places_[i] = room.subspan((kWord - unaligned) % kWord, kWords[i] * kWord);
    fill(places_[i], 0);
    histories_.emplace_back();
  }
}

void SharedCells::fill(std::span<std::uint8_t> record, std::uint64_t version) {
  for (std::size_t word = 0; word * kWord < record.size(); ++word) {
    const std::uint64_t value = version << kVersionShift | word;
    std::memcpy(record.data() + word * kWord, &value, kWord);
  }
}

std::optional<std::string> SharedCells::judge(std::size_t place, std::span<const std::uint8_t> found,
                                              std::uint64_t posted, std::uint64_t moment) {
  std::optional<std::uint64_t> last;
  for (std::size_t word = 0; word * kWord < found.size(); ++word) {
    std::uint64_t value = 0;
    std::memcpy(&value, found.data() + word * kWord, kWord);
    if ((value & ((1U << kVersionShift) - 1)) != word)
      return fmt::format("word {} of place {}: {:#x}, which nobody wrote there", word, place, value);
    const std::uint64_t version = value >> kVersionShift;
    if (last == version) continue;
    last = version;
    if (const auto text = histories_[place].read(version, posted, moment, kWords[place] == 1))
      return fmt::format("word {} of place {}: {}", word, place, *text);
  }
  return std::nullopt;
}

void CellLane::next(bool /*last*/) {
  const std::size_t place = random().below(SharedCells::kPlaces);
  if (random().chance(0.5))
    write(place);
  else
    read(place);
}

void CellLane::write(std::size_t place) {
  const auto version = cells_.new_version();
  const auto there = cells_.place(place);
  Request request{.memory = slot(there.size())};
  SharedCells::fill(request.memory, version);
  request.send.opcode = hw::WqeOpcode::kWrite;
  request.send.remote_address = reinterpret_cast<std::uint64_t>(there.data());
  request.send.remote_key = cells_.key();
  request.send.inline_data = there.size() <= kShareInline && random().chance(0.3);
  request.about_to_post = [this, place, version](umd::SendRequest&, std::uint64_t moment) {
    cells_.history(place).posted(version, spec().number, moment);
  };
  request.done = [this, place, version](std::uint64_t moment) {
    cells_.history(place).acknowledged(version, moment);
    ++report().share.cell_writes;
    plant(place, version);
  };
  plan(std::move(request));
}

void CellLane::read(std::size_t place) {
  const auto there = cells_.place(place);
  Request request{.memory = slot(there.size())};
  std::memset(request.memory.data(), MixSide::kUntouched, request.memory.size());
  request.send.opcode = hw::WqeOpcode::kRead;
  request.send.remote_address = reinterpret_cast<std::uint64_t>(there.data());
  request.send.remote_key = cells_.key();
  const auto posted = std::make_shared<std::uint64_t>();
  request.about_to_post = [posted](umd::SendRequest&, std::uint64_t moment) { *posted = moment; };
  request.done = [this, place, posted, memory = request.memory](std::uint64_t moment) {
    ++report().share.cell_reads;
    if (const auto text = cells_.judge(place, memory, *posted, moment)) wrong("a Read found " + *text);
  };
  plan(std::move(request));
}

/// An acknowledged Write may be on its way through PCI Express: the answer to a read of a register comes behind it.
void CellLane::look() {
  const std::size_t place = random().below(SharedCells::kPlaces);
  auto& device = spec().to.side.endpoint().device();
  const auto begun = clock().next(now());
  static_cast<void>(device.read64(hw::reg::kPortStatus));
  ++report().share.cell_looks;
  if (const auto text = cells_.judge(place, cells_.place(place), begun, clock().next(now())))
    wrong("the processor found " + *text);
}

void CellLane::plant(std::size_t place, std::uint64_t version) {
  const auto there = cells_.place(place);
  if (SharedCells::kWords[place] != 1 || report().share.cell_writes < 40) return;
  if (options_.planted == PlantedSoakFault::kStaleCell) SharedCells::fill(there, version > 100 ? version - 100 : 0);
  if (options_.planted == PlantedSoakFault::kTornCell) there[3] ^= 1;
}

}  // namespace rnic::testbench
