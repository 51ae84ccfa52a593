#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "driver/nd2/ndstatus.h"

namespace rnic::nd2 {

/// A status that a call of NetworkDirect or its kernel interface returns, for messages to people.
struct StatusName {
  HRESULT status;
  const char* name;
  const char* meaning;
};
inline constexpr std::array<StatusName, 49> kStatusNames = {
    {{ND_SUCCESS, "ND_SUCCESS", "success"},
     {ND_TIMEOUT, "ND_TIMEOUT", "the wait ended before anything happened"},
     {ND_PENDING, "ND_PENDING", "not complete yet"},
     {ND_BUFFER_OVERFLOW, "ND_BUFFER_OVERFLOW", "the buffer is too small"},
     {ND_DEVICE_BUSY, "ND_DEVICE_BUSY", "the object is in use"},
     {ND_NO_MORE_ENTRIES, "ND_NO_MORE_ENTRIES", "the queue is full"},
     {ND_UNSUCCESSFUL, "ND_UNSUCCESSFUL", "the call failed"},
     {ND_ACCESS_VIOLATION, "ND_ACCESS_VIOLATION", "an address, key or right is wrong"},
     {ND_INVALID_HANDLE, "ND_INVALID_HANDLE", "the handle or object does not exist"},
     {ND_INVALID_PARAMETER, "ND_INVALID_PARAMETER", "a parameter is wrong"},
     {ND_INVALID_DEVICE_REQUEST, "ND_INVALID_DEVICE_REQUEST", "the request is not valid here"},
     {ND_NO_MEMORY, "ND_NO_MEMORY", "no memory is left"},
     {ND_INVALID_PARAMETER_MIX, "ND_INVALID_PARAMETER_MIX", "parameters contradict each other"},
     {ND_DATA_OVERRUN, "ND_DATA_OVERRUN", "the data is longer than allowed"},
     {ND_SHARING_VIOLATION, "ND_SHARING_VIOLATION", "the address is in use"},
     {ND_INSUFFICIENT_RESOURCES, "ND_INSUFFICIENT_RESOURCES", "no resources are left"},
     {ND_DEVICE_NOT_READY, "ND_DEVICE_NOT_READY", "the device is not ready"},
     {ND_IO_TIMEOUT, "ND_IO_TIMEOUT", "the peer did not answer, all retries are used up"},
     {ND_NOT_SUPPORTED, "ND_NOT_SUPPORTED", "not supported"},
     {ND_INTERNAL_ERROR, "ND_INTERNAL_ERROR", "an internal error"},
     {ND_INVALID_PARAMETER_1, "ND_INVALID_PARAMETER_1", "parameter 1 is wrong"},
     {ND_INVALID_PARAMETER_2, "ND_INVALID_PARAMETER_2", "parameter 2 is wrong"},
     {ND_INVALID_PARAMETER_3, "ND_INVALID_PARAMETER_3", "parameter 3 is wrong"},
     {ND_INVALID_PARAMETER_4, "ND_INVALID_PARAMETER_4", "parameter 4 is wrong"},
     {ND_INVALID_PARAMETER_5, "ND_INVALID_PARAMETER_5", "parameter 5 is wrong"},
     {ND_INVALID_PARAMETER_6, "ND_INVALID_PARAMETER_6", "parameter 6 is wrong"},
     {ND_INVALID_PARAMETER_7, "ND_INVALID_PARAMETER_7", "parameter 7 is wrong"},
     {ND_INVALID_PARAMETER_8, "ND_INVALID_PARAMETER_8", "parameter 8 is wrong"},
     {ND_INVALID_PARAMETER_9, "ND_INVALID_PARAMETER_9", "parameter 9 is wrong"},
     {ND_INVALID_PARAMETER_10, "ND_INVALID_PARAMETER_10", "parameter 10 is wrong"},
     {ND_CANCELED, "ND_CANCELED", "canceled, or flushed because the queue pair is in the error state"},
     {ND_REMOTE_ERROR, "ND_REMOTE_ERROR", "the peer could not execute the request"},
     {ND_INVALID_ADDRESS, "ND_INVALID_ADDRESS", "no device has this address"},
     {ND_INVALID_DEVICE_STATE, "ND_INVALID_DEVICE_STATE", "the object is in the wrong state"},
     {ND_INVALID_BUFFER_SIZE, "ND_INVALID_BUFFER_SIZE", "the size is wrong"},
     {ND_TOO_MANY_ADDRESSES, "ND_TOO_MANY_ADDRESSES", "too many addresses"},
     {ND_ADDRESS_ALREADY_EXISTS, "ND_ADDRESS_ALREADY_EXISTS", "the address is in use"},
     {ND_CONNECTION_REFUSED, "ND_CONNECTION_REFUSED", "the peer refused the connection"},
     {ND_CONNECTION_INVALID, "ND_CONNECTION_INVALID", "there is no connection"},
     {ND_CONNECTION_ACTIVE, "ND_CONNECTION_ACTIVE", "a connection exists"},
     {ND_NETWORK_UNREACHABLE, "ND_NETWORK_UNREACHABLE", "the network cannot be reached"},
     {ND_HOST_UNREACHABLE, "ND_HOST_UNREACHABLE", "the host cannot be reached"},
     {ND_CONNECTION_ABORTED, "ND_CONNECTION_ABORTED", "the connection was aborted"},
     {ND_DEVICE_REMOVED, "ND_DEVICE_REMOVED", "the device failed or was removed"},
     // Of COM and Windows, which NetworkDirect calls return too.
     {static_cast<HRESULT>(0xC00000CC), "STATUS_BAD_NETWORK_NAME", "no such name on the network"},
     {static_cast<HRESULT>(0xC0000238), "STATUS_ADDRESS_ALREADY_ASSOCIATED", "the address is in use"},
     {static_cast<HRESULT>(0x80004002), "E_NOINTERFACE", "the object does not have this interface"},
     {static_cast<HRESULT>(0x80004003), "E_POINTER", "a pointer is null"},
     {static_cast<HRESULT>(0x80040111), "CLASS_E_CLASSNOTAVAILABLE", "no such class"}}};

/// "ND_DEVICE_REMOVED"; of a status without a name its number: "status 0xc0001234".
inline std::string status_name(HRESULT status) {
  const auto* const it = std::find_if(kStatusNames.begin(), kStatusNames.end(),
                                      [status](const StatusName& one) { return one.status == status; });
  if (it != kStatusNames.end()) return it->name;
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "status %#010x", static_cast<unsigned>(status));
  return text.data();
}

/// "ND_DEVICE_REMOVED (the device failed or was removed)".
inline std::string describe_status(HRESULT status) {
  const auto* const it = std::find_if(kStatusNames.begin(), kStatusNames.end(),
                                      [status](const StatusName& one) { return one.status == status; });
  return status_name(status) + (it == kStatusNames.end() ? "" : std::string(" (") + it->meaning + ")");
}

}  // namespace rnic::nd2
