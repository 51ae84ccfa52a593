#pragma once

#include <cstdint>

/// What the processor's own work costs in simulated time. A driver call charges its figure once, through
/// Device::elapse, before it touches the device; on hardware elapse does nothing. Order of magnitude: a server
/// processor at 3 GHz with warm caches.
namespace rnic::cost {

inline constexpr std::uint64_t kPostSendNs = 25;      ///< Check, build and publish one send request
inline constexpr std::uint64_t kPostReceiveNs = 20;   ///< The same for a receive request
inline constexpr std::uint64_t kDoorbellNs = 5;       ///< Ring a doorbell that was held back
inline constexpr std::uint64_t kPollNs = 10;          ///< Look at a completion queue
inline constexpr std::uint64_t kPollEntryNs = 5;      ///< Each entry taken from it
inline constexpr std::uint64_t kArmNs = 20;           ///< Ask for a completion event
inline constexpr std::uint64_t kControlCallNs = 200;  ///< Enter the kernel driver
inline constexpr std::uint64_t kInterruptNs = 500;  ///< Interrupt, or call of another thread, to the thread that waited
inline constexpr std::uint64_t kEventNs = 20;       ///< Each event taken from an event queue
inline constexpr std::uint64_t kPinPageNs = 50;     ///< Pin and map one page of application memory

inline constexpr std::uint64_t kAdminPollNs = 250;      ///< Between two looks at the admin completion ring
inline constexpr std::uint64_t kReadyPollNs = 1'000;    ///< Between two looks at DeviceStatus
inline constexpr std::uint64_t kAdminSleepNs = 50'000;  ///< The same for a command that takes long
inline constexpr std::uint64_t kHealthNs =
    100'000'000;  ///< Between two looks at the health of a device that says nothing

}  // namespace rnic::cost
