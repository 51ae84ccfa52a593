#pragma once

#include <cstdint>

namespace rnic {

/// Queue pairs 0 and 1 are the management interfaces (InfiniBand specification 10.2.4.1); RoCE has no 0.
inline constexpr std::uint32_t kGeneralServiceQpn = 1;
inline constexpr std::uint32_t kGeneralServiceQkey = 0x80010000;
/// In place of a queue pair: the members of a multicast group (9.8.3).
inline constexpr std::uint32_t kMulticastQpn = 0xFFFFFF;
/// Whether it is the number of a queue pair of a client.
[[nodiscard]] constexpr bool is_client_qpn(std::uint32_t qpn) {
  return qpn > kGeneralServiceQpn && qpn < kMulticastQpn;
}
/// A Q_Key with this bit belongs to privileged software (10.2.5): a process sends with such a one only if its queue
/// pair has it.
inline constexpr std::uint32_t kPrivilegedQkey = 0x80000000;

}  // namespace rnic
