#include "driver/result.hpp"

namespace rnic {

std::string_view describe(Error error) {
  switch (error) {
    case Error::kInvalidParameter: return "invalid parameter";
    case Error::kAccessViolation: return "memory is not accessible";
    case Error::kOutOfMemory: return "out of memory";
    case Error::kOutOfResources: return "out of device resources";
    case Error::kQueueFull: return "queue is full";
    case Error::kTooManySegments: return "too many scatter/gather entries";
    case Error::kMessageTooLong: return "message is too long";
    case Error::kInvalidState: return "not legal in the present state";
    case Error::kBusy: return "object is in use";
    case Error::kTooSmall: return "more is there than would fit";
    case Error::kNotFound: return "no such object";
    case Error::kExists: return "object exists";
    case Error::kNotSupported: return "not supported";
    case Error::kTimeout: return "device did not answer in time";
    case Error::kDeviceNotFound: return "device not recognized";
    case Error::kVersionMismatch: return "unknown version of a register block";
    case Error::kDeviceFailed: return "device failed";
  }
  return "unknown error";
}

}  // namespace rnic
