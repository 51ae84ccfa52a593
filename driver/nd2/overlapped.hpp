#pragma once

#include <list>
#include <memory>

#include "driver/kernel_calls/kernel_port.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/nd2/ndstatus.h"
#include "driver/nd2/ndtypes.h"

namespace rnic::nd2 {

/// An overlapped request: prepared, begun (it pends from then on), and then completed exactly once (decisions 34).
class OverlappedRequest {
 public:
  /// Takes everything that completing will need; the OVERLAPPED is not touched, so it is as it was if the call that was
  /// asked for fails at once. ND_SUCCESS, ND_INVALID_PARAMETER (no OVERLAPPED), ND_INVALID_HANDLE (hEvent is no event).
  /// Throws std::bad_alloc.
  [[nodiscard]] static HRESULT prepare(OVERLAPPED* overlapped, std::shared_ptr<OverlappedFile> file,
                                       OverlappedRequest& request);

  /// Marks the OVERLAPPED pending and resets its event.
  void begin();

  /// Stores the status, posts to the port unless bit 0 of hEvent is set, sets the event: all of it is there for whoever
  /// sees a part of it, and the OVERLAPPED and its event are not touched afterwards, because the client may reuse them
  /// then (decisions 60). Needs no memory.
  void complete(HRESULT status);

  /// It is that of this OVERLAPPED.
  [[nodiscard]] bool is(const OVERLAPPED* overlapped) const { return overlapped_ == overlapped; }

 private:
  OVERLAPPED* overlapped_{};
  std::shared_ptr<Event> event_;
  std::shared_ptr<OverlappedFile> file_;
  CompletionPort::Packets packet_;  ///< The one that goes to the port
};

/// Requests that pend on one object, oldest first. A request moves from list to list without memory.
using OverlappedRequests = std::list<OverlappedRequest>;

/// OverlappedRequest::prepare, for a list.
[[nodiscard]] HRESULT prepare_request(OVERLAPPED* overlapped, std::shared_ptr<OverlappedFile> file,
                                      OverlappedRequests& request);

/// Moves the request of `one` from list to list; with null, all. In their order, and without memory.
void take_requests(OverlappedRequests& from, const OVERLAPPED* one, OverlappedRequests& to);

/// GetOverlappedResult of every object.
[[nodiscard]] HRESULT overlapped_result(DeviceNode& node, OVERLAPPED* overlapped, bool wait);

}  // namespace rnic::nd2
