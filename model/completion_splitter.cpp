#include "model/completion_splitter.hpp"

#include <algorithm>

namespace rnic::model {

CompletionSplitter::CompletionSplitter(const RootComplexOptions& options)
    : boundary_(options.read_completion_boundary),
      max_payload_(options.config.max_payload),
      split_probability_(options.split_probability),
      random_(options.seed, "completion_splitter") {}

DmaCompletion CompletionSplitter::next(ReadJob& job) {
  DmaCompletion completion;
  completion.status = job.status;
  completion.tag = job.tag;
  completion.byte_count = static_cast<std::uint16_t>(job.left);
  completion.lower_address = static_cast<std::uint16_t>(job.address & 0xFFF);
  if (job.status != CompletionStatus::kSuccess) {
    job.left = 0;
    return completion;
  }
  const std::uint64_t end = cut(job.address, job.address + job.left);
  const std::uint64_t first_dword = job.address & ~3ULL;
  const std::size_t bytes = ((end + 3) & ~3ULL) - first_dword;
  const auto from = job.data.begin() + static_cast<std::ptrdiff_t>(job.sent_dword_bytes);
  completion.data.assign(from, from + static_cast<std::ptrdiff_t>(bytes));
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
