#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "driver/remote/descriptor.hpp"
#include "driver/result.hpp"

namespace rnic::remote {

/// A connection with a machine, and the process that listens there: 0 where this process cannot see it.
struct MachineSocket {
  Descriptor socket;
  pid_t machine{};
};

/// Connects to a socket of a machine of the same user. Nothing is sent. Errors: kDeviceNotFound (nobody listens at
/// `path`), kAccessViolation (folder, socket or the process behind it are another user's, or others may write there),
/// kOutOfResources (no descriptor is free).
[[nodiscard]] Result<MachineSocket> connect_to_machine(const std::string& path);

/// An error of it, or of what follows, in words.
[[nodiscard]] std::string_view why_no_machine(Error error);

/// Whether `descriptor` is memory of at least `bytes` whose size cannot change any more: who maps it can always reach
/// all of it.
[[nodiscard]] bool keeps_its_size(int descriptor, std::size_t bytes);

}  // namespace rnic::remote
