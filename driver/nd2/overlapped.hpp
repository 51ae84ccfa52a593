#pragma once

#include <deque>
#include <memory>
#include <mutex>

#include "driver/kmd/kernel_device.hpp"
#include "driver/nd2/handles.hpp"
#include "driver/nd2/ndstatus.h"
#include "driver/nd2/ndtypes.h"

namespace rnic::nd2 {

/// An overlapped request under way: from begin to exactly one complete (decisions 34).
class OverlappedRequest {
 public:
  /// Marks the OVERLAPPED pending and resets its event. ND_SUCCESS, ND_INVALID_PARAMETER (no OVERLAPPED),
  /// ND_INVALID_HANDLE (hEvent is no event).
  [[nodiscard]] static HRESULT begin(OVERLAPPED* overlapped, std::shared_ptr<OverlappedFile> file,
                                     OverlappedRequest& request);

  /// Stores the status, posts to the port unless bit 0 of hEvent is set, sets the event. The OVERLAPPED is not touched
  /// once its status can be seen, because the client may then reuse it.
  void complete(HRESULT status);

 private:
  OVERLAPPED* overlapped_{};
  std::shared_ptr<Event> event_;
  std::shared_ptr<OverlappedFile> file_;
};

/// GetOverlappedResult of every object.
[[nodiscard]] HRESULT overlapped_result(kmd::KernelDevice& kernel, OVERLAPPED* overlapped, bool wait);

}  // namespace rnic::nd2
