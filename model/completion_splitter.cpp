#include "model/completion_splitter.hpp"

#include <algorithm>
#include <utility>

namespace rnic::model {

CompletionSplitter::CompletionSplitter(const RootComplexOptions& options)
    : boundary_(options.read_completion_boundary),
      max_payload_(options.config.max_payload),
      split_probability_(options.split_probability),
      random_(options.seed, "completion_splitter"),
      forger_(options.seed, "completion_splitter/forged") {}

std::optional<DmaCompletion> CompletionSplitter::next(ReadJob& job) {
  if (job.await) std::exchange(job.await, {})(job);
  DmaCompletion completion;
  completion.status = job.status;
  completion.tag = job.tag;
  completion.byte_count = static_cast<std::uint16_t>(job.left);
  completion.lower_address = static_cast<std::uint16_t>(job.address & 0xFFF);
  const bool error = job.status != CompletionStatus::kSuccess;
  std::uint64_t end =
      error && job.fault_address <= job.address ? job.address + job.left : cut(job.address, job.address + job.left);
  const bool faulty = job.fault_address < end;
  if (faulty && (error || job.lost)) {
    job.left = 0;
    if (job.lost) return std::nullopt;
    return completion;
  }
  if (faulty && job.late != 0) return std::nullopt;
  const auto forged = faulty ? std::exchange(job.forged, std::nullopt) : std::nullopt;
  if (forged == PcieFault::kWrongBoundary) end = forged_end(job, end);
  if (forged == PcieFault::kTooMuchData || forged == PcieFault::kTooLittleData) end = job.address + job.left;
  completion.status = CompletionStatus::kSuccess;
  const std::uint64_t first_dword = job.address & ~3ULL;
  const std::size_t bytes = ((end + 3) & ~3ULL) - first_dword;
  const auto from = job.data.begin() + static_cast<std::ptrdiff_t>(job.sent_dword_bytes);
  completion.data.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
  if (faulty && job.poisoned) {
    completion.poisoned = true;
    job.poisoned = false;
    for (auto& byte : completion.data) byte = static_cast<std::uint8_t>(~byte);
  }
  job.sent_dword_bytes += bytes;
  job.left -= static_cast<std::uint32_t>(end - job.address);
  job.address = end;
  if (forged) {
    completion.forged = {job.tag, job.left == 0};
    forge(completion, *forged);
  }
  return completion;
}

/// A dword boundary before `end`, not at a multiple of 64; `end` if there is none.
std::uint64_t CompletionSplitter::forged_end(const ReadJob& job, std::uint64_t end) {
  constexpr std::uint64_t kLine = 64;
  std::vector<std::uint64_t> ends;
  for (std::uint64_t at = (job.address & ~3ULL) + 4; at < end; at += 4) {
    if (at % kLine != 0) ends.push_back(at);
  }
  return ends.empty() ? end : ends[forger_.below(ends.size())];
}

void CompletionSplitter::forge(DmaCompletion& completion, PcieFault fault) {
  constexpr std::uint64_t kMostBytes = 512, kMostDwords = 16, kLowerAddresses = 128, kGenerations = 16;
  auto& data = completion.data;
  switch (fault) {
    case PcieFault::kWrongByteCount: {
      const auto right = completion.byte_count;
      // As often as not as if it were the last.
      if (forger_.chance(0.5))
        completion.byte_count = static_cast<std::uint16_t>(data.size() - completion.lower_address % 4);
      while (completion.byte_count == right)
        completion.byte_count = static_cast<std::uint16_t>(1 + forger_.below(kMostBytes));
      break;
    }
    case PcieFault::kWrongLowerAddress:
      completion.lower_address ^= static_cast<std::uint16_t>(1 + forger_.below(kLowerAddresses - 1));
      break;
    case PcieFault::kTooMuchData:
      for (std::uint64_t left = 4 * (1 + forger_.below(kMostDwords)); left != 0; --left)
        data.push_back(static_cast<std::uint8_t>(forger_.next()));
      break;
    case PcieFault::kTooLittleData: data.resize(4 * forger_.below(data.size() / 4)); break;
    case PcieFault::kUnknownTag:
      // Above the six bits that tell the NIC's reads of one time apart, so that it is that of no other.
      completion.tag ^= static_cast<std::uint16_t>((1 + forger_.below(kGenerations - 1)) << 6);
      break;
    default: break;
  }
}

std::uint64_t CompletionSplitter::cut(std::uint64_t start, std::uint64_t end) {
  const std::uint64_t first = start - start % boundary_ + boundary_;
  std::uint64_t last = (start & ~3ULL) + max_payload_;
  last -= last % boundary_;
  if (last >= end) last = (end + boundary_ - 1) / boundary_ * boundary_;
  if (random_.chance(split_probability_)) last = first + random_.below((last - first) / boundary_ + 1) * boundary_;
  return std::min(last, end);
}

}  // namespace rnic::model
