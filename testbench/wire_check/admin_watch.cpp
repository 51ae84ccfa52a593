#include "testbench/wire_check/admin_watch.hpp"

#include <algorithm>
#include <utility>

namespace rnic::wire_check {
namespace {

constexpr std::uint64_t kCommandBase = 0x88, kCompletionBase = 0x90, kConfig = 0x98, kDoorbell = 0xa0, kEnd = 0x200;
constexpr std::size_t kCommandBytes = 128, kCompletionBytes = 64, kHeadBytes = 8;

std::uint64_t little(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | bytes[i];
  return value;
}

}  // namespace

std::uint64_t AdminCommand::field(std::size_t at, std::size_t bytes) const {
  return little(std::span(body).subspan(at, bytes));
}

AdminWatch::AdminWatch(ReadMemory memory, Done done, std::function<void()> reset)
    : memory_(std::move(memory)), done_(std::move(done)), reset_(std::move(reset)) {}

std::uint64_t AdminWatch::reg(std::uint64_t offset) const {
  std::uint64_t value = 0;
  for (std::uint64_t i = 8; i-- > 0;) {
    const auto it = registers_.find(offset + i);
    value = value << 8 | (it == registers_.end() ? 0 : it->second);
  }
  return value;
}

void AdminWatch::written(std::uint64_t offset, std::span<const std::uint8_t> data, const std::vector<bool>& enabled) {
  if (offset >= kEnd) return;
  bool config = false, doorbell = false;
  for (std::size_t i = 0; i < data.size(); ++i) {
    if (!enabled.at(i)) continue;
    const std::uint64_t at = offset + i;
    registers_[at] = data[i];
    config = config || (at >= kConfig && at < kConfig + 8);
    doorbell = doorbell || (at >= kDoorbell && at < kDoorbell + 8);
  }
  if (config) configure();
  if (doorbell) posted();
}

/// Both rings begin anew; so does a driver, with a NIC that was reset before.
void AdminWatch::configure() {
  producer_ = 0;
  answered_ = 0;
  posted_.clear();
  configured_ = true;
  reset_();
}

void AdminWatch::posted() {
  if (!configured_) return;
  catch_up();
  const auto until = static_cast<std::uint16_t>(reg(kDoorbell));
  const std::uint32_t depth = 1u << (reg(kConfig) & 0xf);
  if (static_cast<std::uint16_t>(until - producer_) > depth) return;  // no ring is that long
  for (; producer_ != until; ++producer_) {
    const auto bytes = memory_(reg(kCommandBase) + producer_ % depth * kCommandBytes, kCommandBytes);
    if (bytes.empty()) continue;
    const std::span all(bytes);
    Posted next;
    next.id = static_cast<std::uint16_t>(little(all.subspan(2, 2)));
    next.command.opcode = bytes[0];
    next.command.number = static_cast<std::uint32_t>(little(all.subspan(4, 4)));
    next.command.body.assign(bytes.begin() + kHeadBytes, bytes.end());
    posted_.push_back(std::move(next));
  }
}

void AdminWatch::catch_up() {
  const std::uint32_t depth = 1u << (reg(kConfig) & 0xf);
  while (!posted_.empty()) {
    const auto bytes = memory_(reg(kCompletionBase) + answered_ % depth * kCompletionBytes, kCompletionBytes);
    if (bytes.empty()) return;
    const bool phase = (bytes.back() & 1) != 0, expected = answered_ / depth % 2 == 0;
    if (phase != expected) return;
    ++answered_;
    const auto id = static_cast<std::uint16_t>(little(std::span(bytes).subspan(2, 2)));
    const auto it = std::find_if(posted_.begin(), posted_.end(), [&](const Posted& p) { return p.id == id; });
    if (it == posted_.end()) continue;
    const AdminCommand command = std::move(it->command);
    posted_.erase(it);
    if (bytes[0] == 0) done_(command);
  }
}

}  // namespace rnic::wire_check
