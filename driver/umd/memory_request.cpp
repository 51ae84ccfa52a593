#include "driver/umd/memory_request.hpp"

namespace rnic::umd {
namespace {

MemoryRequest request_for(hw::WqeOpcode opcode, std::uint32_t key, const MemoryOptions& options) {
  MemoryRequest request;
  request.opcode = opcode;
  request.key = key;
  request.id = options.id;
  request.silent = options.silent;
  request.fence = options.fence;
  request.defer = options.defer;
  return request;
}

}  // namespace

Result<void> post_bind(QueuePair& qp, KernelMw& window, const WindowRange& range, const MemoryOptions& options,
                       std::uint32_t key) {
  const bool type1 = window.type() == hw::MptType::kWindow1;
  auto request = request_for(type1 ? hw::WqeOpcode::kBindWindow1 : hw::WqeOpcode::kBindWindow2,
                             key != 0 ? key : window.draw_key(), options);
  request.region_key = range.region_key;
  request.address = range.address;
  request.length = range.length;
  request.remote_read = range.remote_read;
  request.remote_write = range.remote_write;
  request.remote_atomic = range.remote_atomic;
  const auto& keys = window.keys();
  request.watch = keys;
  keys->posted(request.key);
  auto posted = qp.post_memory(request);
  if (!posted) keys->refused(request.key);
  return posted;
}

MemoryRequest fast_register_request(const FastRegistration& prepared, const FastRange& range,
                                    const MemoryOptions& options) {
  auto request = request_for(hw::WqeOpcode::kFastRegister, prepared.key, options);
  request.address = range.base;
  request.length = range.length;
  request.local_write = range.local_write;
  request.read_sink = range.read_sink;
  request.remote_read = range.remote_read;
  request.remote_write = range.remote_write;
  request.remote_atomic = range.remote_atomic;
  request.page_list = prepared.page_list;
  request.page_count = prepared.page_count;
  if (prepared.inline_list) request.pages = range.pages;
  request.log_page = prepared.log_page;
  request.first_offset = range.first_offset;
  return request;
}

MemoryRequest invalidate_request(std::uint32_t key, const MemoryOptions& options) {
  return request_for(hw::WqeOpcode::kLocalInvalidate, key, options);
}

Result<void> post_fast_register(QueuePair& qp, KernelFastMr& region, const FastRange& range,
                                const MemoryOptions& options) {
  const auto prepared = region.prepare(range, qp.inline_pages());
  if (!prepared) return prepared.error();
  const auto request = fast_register_request(*prepared, range, options);
  auto posted = qp.post_memory(request);
  if (posted) {
    region.register_posted(prepared->key);
  } else {
    static_cast<void>(region.release(prepared->key).ok());
  }
  return posted;
}

Result<void> post_invalidate(QueuePair& qp, std::uint32_t key, const MemoryOptions& options) {
  return qp.post_memory(invalidate_request(key, options));
}

}  // namespace rnic::umd
