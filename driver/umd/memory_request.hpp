#pragma once

#include <cstdint>

#include "driver/umd/kernel_fast_mr.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "driver/umd/queue_pair.hpp"

namespace rnic::umd {

/// What all requests about keys have.
struct MemoryOptions {
  std::uint64_t id{};  ///< Comes back in the completion
  bool silent{};
  bool fence{};
  bool defer{};
};

/// What a bind opens to the peer. All false: a window through which nothing may be done.
struct WindowRange {
  std::uint32_t region_key{};  ///< Local key of a region of the same protection domain
  std::uint64_t address{};
  std::uint64_t length{};  ///< Bytes; a type 1 window is unbound by 0
  bool remote_read{};
  bool remote_write{};   ///< Needs local_write of the region
  bool remote_atomic{};  ///< Needs local_write of the region
};

/// Posts the bind of a window, under a new key, which is window.key() when this returns success; the device accepts it
/// once the request has executed (decisions 17). `key`: of the window's index, with a tag that the caller has chosen;
/// 0: one that the window draws. Errors: those of QueuePair::post_memory; the window's key is then as it was.
[[nodiscard]] Result<void> post_bind(QueuePair& qp, KernelMw& window, const WindowRange& range,
                                     const MemoryOptions& options, std::uint32_t key = 0);

/// The request of a registration that has been prepared, and of an invalidation: for who posts them with more than
/// post_fast_register and post_invalidate say. The pages of an inline list are those of `range`, still when it is
/// posted.
[[nodiscard]] MemoryRequest fast_register_request(const FastRegistration& prepared, const FastRange& range,
                                                  const MemoryOptions& options);
[[nodiscard]] MemoryRequest invalidate_request(std::uint32_t key, const MemoryOptions& options);

/// Posts a fast registration, under a new key, which is region.key() when this returns success. The queue pair must
/// have been made with fast_register, or the request completes with LocQpOpErr. Errors: those of KernelFastMr::prepare
/// and QueuePair::post_memory; the region is then as it was. After success its page list is in use until
/// KernelFastMr::release.
[[nodiscard]] Result<void> post_fast_register(QueuePair& qp, KernelFastMr& region, const FastRange& range,
                                              const MemoryOptions& options);

/// Posts the invalidation of the key of a type 2B window or of a fast registration. Errors: those of
/// QueuePair::post_memory.
[[nodiscard]] Result<void> post_invalidate(QueuePair& qp, std::uint32_t key, const MemoryOptions& options);

}  // namespace rnic::umd
