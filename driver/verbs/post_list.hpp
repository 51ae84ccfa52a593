#pragma once

#include "driver/verbs/objects.hpp"

namespace rnic::verbs {

/// A negative count is one that is too large.
[[nodiscard]] inline umd::SegmentList segments_of(const ibv_sge* list, int count) {
  static_assert(offsetof(ibv_sge, addr) == offsetof(umd::Segment, address) &&
                offsetof(ibv_sge, length) == offsetof(umd::Segment, length) &&
                offsetof(ibv_sge, lkey) == offsetof(umd::Segment, key));
  return umd::SegmentList::of(list, static_cast<std::size_t>(count));
}

/// Posts each request of a list to `queue`; all but the last hold their doorbell back, and when one is refused it is
/// rung for those before. Returns an errno; then `bad` is the one that was refused, and none behind it is posted.
template <typename Queue, typename Request, typename Post>
[[gnu::always_inline]] inline int post_each(Queue& queue, Request* request, Request** bad, Post&& post) {
  for (; request != nullptr; request = request->next) {
    if (const int error = post(*request, request->next != nullptr); error != 0) [[unlikely]] {
      queue.ring_deferred();
      *bad = request;
      return error;
    }
  }
  return 0;
}

/// On a queue pair, or a shared receive queue.
template <typename Queue>
int post_receives(Queue& queue, ibv_recv_wr* first, ibv_recv_wr** bad) {
  return post_each(queue, first, bad, [&](const ibv_recv_wr& request, bool defer) {
    const umd::ReceiveRequest receive{
        .id = request.wr_id, .segments = segments_of(request.sg_list, request.num_sge), .defer = defer};
    if constexpr (requires { queue.post_receive(receive); }) {
      return errno_of(queue.post_receive(receive));
    } else {
      return errno_of(queue.post(receive));
    }
  });
}

}  // namespace rnic::verbs
