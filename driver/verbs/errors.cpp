#include "driver/verbs/errors.hpp"

namespace rnic::verbs {

int errno_of(Error error) {
  switch (error) {
    case Error::kInvalidParameter:
    case Error::kTooManySegments:
    case Error::kMessageTooLong:
    case Error::kInvalidState:
    case Error::kTooSmall:
    case Error::kNotFound: return EINVAL;
    case Error::kAccessViolation: return EFAULT;
    case Error::kOutOfMemory:
    case Error::kOutOfResources:
    case Error::kQueueFull: return ENOMEM;
    case Error::kBusy: return EBUSY;
    case Error::kExists: return EEXIST;
    case Error::kNotSupported: return EOPNOTSUPP;
    case Error::kTimeout: return ETIMEDOUT;
    case Error::kDeviceNotFound: return ENODEV;
    case Error::kVersionMismatch: return EPROTONOSUPPORT;
    case Error::kDeviceFailed: return EIO;
  }
  return EIO;
}

}  // namespace rnic::verbs
