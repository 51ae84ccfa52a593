#pragma once

#include "driver/generated/host_interface.hpp"

namespace rnic {

/// Receives the events of one object, and kDeviceFatal, once, when the device has failed or is gone: nothing comes from
/// it any more then. Called without locks and without letting time pass.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const hw::Eqe& eqe) = 0;
};

}  // namespace rnic
