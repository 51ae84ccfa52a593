#pragma once

#include <atomic>
#include <string_view>

namespace rnic::verbs {

/// Prints `text` as a hint to standard error, the first time that it is called with this flag: for errors that say what
/// Linux says, and whose usual reason on a machine is another one. RNIC_HINTS=0 in the environment switches hints off.
/// errno stays as it is.
void hint(std::atomic_flag& given, std::string_view text) noexcept;

/// The same for an address without a GRH, which no RoCE port takes (InfiniBand specification annex A17.4.1).
void hint_at_grh() noexcept;

}  // namespace rnic::verbs
