#include "model/completion_splitter.hpp"

#include <algorithm>

namespace rnic::model {

CompletionSplitter::CompletionSplitter(const RootComplexOptions& options)
    : boundary_(options.read_completion_boundary),
      max_payload_(options.config.max_payload),
      split_probability_(options.split_probability),
      random_(options.seed, "completion_splitter") {}

std::optional<DmaCompletion> CompletionSplitter::next(ReadJob& job) {
  DmaCompletion completion;
  completion.status = job.status;
  completion.tag = job.tag;
  completion.byte_count = static_cast<std::uint16_t>(job.left);
  completion.lower_address = static_cast<std::uint16_t>(job.address & 0xFFF);
  const bool error = job.status != CompletionStatus::kSuccess;
  const std::uint64_t end =
      error && job.fault_address <= job.address ? job.address + job.left : cut(job.address, job.address + job.left);
  const bool faulty = job.fault_address < end;
  if (faulty && (error || job.lost)) {
    job.left = 0;
    if (job.lost) return std::nullopt;
    return completion;
  }
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
  return completion;
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
