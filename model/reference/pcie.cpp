#include "model/reference/pcie.hpp"

#include <algorithm>

#include "model/reference/nic.hpp"

namespace rnic::reference {
namespace {

constexpr std::size_t kPage = 4096, kReadBytes = 512, kBoundary = 64;

/// Dwords and byte enables that cover `bytes` at `address` (2.2.5).
DmaTlp covering(std::uint64_t address, std::size_t bytes) {
  DmaTlp tlp;
  const unsigned before = address & 3;
  const unsigned after = static_cast<unsigned>(-(address + bytes) & 3);
  tlp.address = address - before;
  tlp.dwords = static_cast<std::uint16_t>((before + bytes + after) / 4);
  const auto first = static_cast<std::uint8_t>(0xf << before & 0xf), last = static_cast<std::uint8_t>(0xf >> after);
  tlp.first_be = tlp.dwords == 1 ? first & last : first;
  tlp.last_be = tlp.dwords == 1 ? 0 : last;
  return tlp;
}

/// The middle of each range (docs/host_interface.md, CompletionTimeoutRange).
Time completion_timeout(std::uint8_t range) {
  switch (range) {
    case 1: return 75 * kMicrosecond;
    case 2: return 5500 * kMicrosecond;
    case 5: return 35500 * kMicrosecond;
    case 6: return 137500 * kMicrosecond;
    case 9: return 580000 * kMicrosecond;
    case 10: return 2250000 * kMicrosecond;
    default: return 30000 * kMicrosecond;
  }
}

}  // namespace

Clock& Pcie::clock() { return nic_.clock; }

void Pcie::write(std::uint64_t address, const Bytes& data) {
  for (std::size_t done = 0; done < data.size();) {
    const std::uint64_t at = address + done;
    const std::size_t bytes = std::min(
        {data.size() - done, nic_.settings.max_payload - at % 4, kPage - static_cast<std::size_t>(at % kPage)});
    DmaTlp tlp = covering(at, bytes);
    tlp.write = true;
    tlp.data.resize(tlp.dwords * std::size_t{4});
    std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(done), bytes,
                tlp.data.begin() + static_cast<std::ptrdiff_t>(at - tlp.address));
    out.push_back(std::move(tlp));
    ++writes_;
    nic_.count(Count::DmaWrites);
    done += bytes;
  }
}

std::shared_ptr<DmaRead> Pcie::begin(std::uint64_t address, std::size_t bytes) {
  auto read = std::make_shared<DmaRead>(clock());
  read->data.resize(bytes);
  const std::size_t most = std::min(kReadBytes, nic_.settings.max_read_request);
  for (std::size_t done = 0; done < bytes;) {
    const std::uint64_t at = address + done;
    const std::size_t part =
        std::min({bytes - done, most - static_cast<std::size_t>(at % 4), kPage - static_cast<std::size_t>(at % kPage)});
    waiting_.push_back({read, done, at, part, 0, std::nullopt});
    ++read->missing;
    done += part;
  }
  issue();
  return read;
}

Task<std::optional<Bytes>> Pcie::finish(std::shared_ptr<DmaRead> read) {
  while (read->missing != 0) co_await read->over.wait();
  if (read->failed) co_return std::nullopt;
  co_return std::move(read->data);
}

/// Of 32 tags, or 256 with Extended Tag Field Enable, the one that has rested longest. The tag of a read that was given
/// up rests until the last of its completions comes, which would be taken for one of another read (2.2.6.2), or until
/// it will not come any more.
bool Pcie::take_tag() {
  const std::uint16_t tags = nic_.settings.extended_tags ? 256 : 32;
  for (std::uint16_t i = 0; i < tags; ++i) {
    next_tag_ = static_cast<std::uint16_t>((next_tag_ + 1) % tags);
    if (pieces_.count(next_tag_) != 0) continue;
    const auto lost = lost_.find(next_tag_);
    if (lost != lost_.end() && counted() < lost->second + quarantine()) continue;
    if (lost != lost_.end()) lost_.erase(lost);
    return true;
  }
  return false;
}

Time Pcie::quarantine() const { return 16 * completion_timeout(timeout_range); }

/// Gives tags to reads that wait.
void Pcie::issue() {
  while (!waiting_.empty() && take_tag()) {
    DmaTlp tlp = covering(waiting_.front().address, waiting_.front().bytes);
    tlp.tag = next_tag_;
    out.push_back(tlp);
    pieces_.emplace(next_tag_, std::move(waiting_.front()));
    waiting_.pop_front();
    nic_.count(Count::DmaReads);
  }
  if (!waiting_.empty() && !watch_.runs()) retime();  // No tag, and maybe nothing under way
}

void Pcie::end(std::uint16_t tag, bool failed) {
  const auto read = pieces_.at(tag).read;
  pieces_.erase(tag);
  read->failed = read->failed || failed;
  if (--read->missing == 0) read->over.raise();
  issue();
}

/// Completions of one read come in order, say how many bytes are left (2.2.9), and end with it or at a read completion
/// boundary (2.3.1.1). One that fits no read of ours is dropped (2.3.2).
void Pcie::answer(const DmaAnswer& answer) {
  const bool is_last = answer.data.empty() || answer.byte_count <= answer.data.size() - (answer.lower_address & 3);
  const auto it = pieces_.find(answer.tag);
  if (it == pieces_.end()) {
    if (is_last && lost_.erase(answer.tag) != 0) issue();
    return;
  }
  if (!it->second.since) return;
  Piece& piece = it->second;
  if (!answer.good) {
    nic_.count(Count::DmaReadErrors);
    if (!is_last) lost_.insert_or_assign(answer.tag, counted());
    return end(answer.tag, true);
  }
  const std::uint64_t at = piece.address + piece.come;
  const std::size_t skip = at & 3;
  const std::size_t left = piece.bytes - piece.come;
  if (answer.byte_count != left || (answer.lower_address & 0x7f) != (at & 0x7f) || answer.data.size() <= skip) return;
  const std::size_t whole = (skip + left + 3) / 4 * 4;
  const bool is_cut = answer.data.size() < whole && (at - skip + answer.data.size()) % kBoundary == 0;
  if (answer.data.size() != whole && !is_cut) return;
  const std::size_t bytes = std::min(left, answer.data.size() - skip);
  std::copy_n(answer.data.begin() + static_cast<std::ptrdiff_t>(skip), bytes,
              piece.read->data.begin() + static_cast<std::ptrdiff_t>(piece.offset + piece.come));
  piece.come += bytes;
  if (piece.come == piece.bytes) end(answer.tag, false);
}

/// Time in which time-outs run.
Time Pcie::counted() {
  if (!stopped_) counted_ += clock().now() - counted_at_;
  counted_at_ = clock().now();
  return counted_;
}

Task<Done> Pcie::written() {
  const std::uint64_t mine = writes_;
  while (writes_left_ < mine) co_await write_left_.wait();
  co_return Done{};
}

void Pcie::left(const DmaTlp& tlp) {
  if (tlp.write) {
    ++writes_left_;
    write_left_.raise();
    return;
  }
  const auto it = pieces_.find(tlp.tag);
  if (it == pieces_.end()) return;
  it->second.since = counted();
  if (pieces_.size() == 1 || !watch_.runs()) retime();
}

void Pcie::retime() {
  (void)counted();
  stopped_ = nic_.settings.completion_timeout_disable;
  std::optional<Time> oldest;
  for (const auto& [tag, piece] : pieces_)
    if (piece.since && (!oldest || *piece.since < *oldest)) oldest = piece.since;
  std::optional<Time> end;
  if (oldest) end = *oldest + completion_timeout(timeout_range);
  if (!waiting_.empty())
    for (const auto& [tag, since] : lost_)
      if (const Time free = since + quarantine(); !end || free < *end) end = free;
  if (!end || stopped_) return watch_.stop();
  const Time left = *end > counted_ ? *end - counted_ : 0;
  watch_.set(clock().now() + left);
}

void Pcie::expire() {
  const Time now = counted(), limit = completion_timeout(timeout_range);
  std::vector<std::uint16_t> late;
  for (const auto& [tag, piece] : pieces_)
    if (piece.since && now - *piece.since >= limit) late.push_back(tag);
  for (const std::uint16_t tag : late) {
    nic_.count(Count::DmaReadTimeouts);
    lost_.insert_or_assign(tag, now);
    end(tag, true);
  }
  issue();
  retime();
}

}  // namespace rnic::reference
