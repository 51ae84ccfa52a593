#include "driver/umd/kernel_fast_mr.hpp"

#include <cstring>
#include <vector>

namespace rnic::umd {

Result<FastRegistration> KernelFastMr::prepare(const FastRange& range, std::uint32_t inline_pages) {
  if (range.pages.size() > calls::PrepareFastMr::kMostWords) return Error::kInvalidParameter;
  return or_out_of_memory([&]() -> Result<FastRegistration> {
    std::vector<std::byte> message(sizeof(calls::PrepareFastMr) + range.pages.size_bytes());
    const calls::PrepareFastMr request{
        .header = {.size = static_cast<std::uint32_t>(message.size()),
                   .version = calls::kVersion,
                   .call = calls::PrepareFastMr::kCall},
        .length = range.length,
        .base = range.base,
        .pages = {.offset = sizeof request, .count = static_cast<std::uint32_t>(range.pages.size())},
        .fast_mr = handle(),
        .first_offset = range.first_offset,
        .inline_pages = inline_pages,
        .local_write = range.local_write,
        .read_sink = range.read_sink,
        .remote_read = range.remote_read,
        .remote_write = range.remote_write,
        .remote_atomic = range.remote_atomic};
    std::memcpy(message.data(), &request, sizeof request);
    if (!range.pages.empty())
      std::memcpy(message.data() + sizeof request, range.pages.data(), range.pages.size_bytes());
    const auto answer = context().port().answer_to<calls::PrepareFastMr>(message);
    if (!answer) return answer.error();
    return FastRegistration{.key = answer->key,
                            .page_list = answer->page_list,
                            .page_count = answer->page_count,
                            .log_page = answer->log_page,
                            .inline_list = answer->inline_list != 0};
  });
}

Result<void> KernelFastMr::release(std::uint32_t key) {
  const auto done = context().call(calls::ReleaseFastMr{.fast_mr = handle(), .key = key});
  return done ? Result<void>() : done.error();
}

Result<calls::QueryKey::Answer> KernelFastMr::query() {
  return context().call(calls::QueryKey{.object = handle(), .kind = static_cast<std::uint8_t>(kind())});
}

}  // namespace rnic::umd
