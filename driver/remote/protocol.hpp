#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "driver/generated/kernel_calls.hpp"
#include "driver/remote/descriptor.hpp"

/// What travels over the socket between a process and its host (docs/server.md). All numbers are in the order of the
/// processor that both run on.
namespace rnic::remote {

inline constexpr std::uint32_t kMagic = 0x43494E52;  // "RNIC"
inline constexpr std::uint32_t kProtocolVersion = 2;

enum class FrameKind : std::uint32_t {
  kHello = 1,   ///< The first: Hello; Welcome comes back, with the connection's memory and the bell
  kOpen,        ///< Makes a client; its number is in the answer's header
  kClose,       ///< Ends a client
  kCall,        ///< A kernel call of a client, as it is; its answer comes back
  kMap,         ///< calls::MemoryRange of a client; MapAnswer comes back, with the memory
  kDescriptor,  ///< calls::Handle of a channel of a client; its descriptor comes back
};

struct FrameHeader {
  std::uint32_t bytes{};  ///< Behind the header
  FrameKind kind{};
  std::uint32_t number{};  ///< The answer repeats it
  std::uint32_t client{};  ///< Of whose calls it is
};

struct AnswerFrameHeader {
  std::uint32_t bytes{};  ///< Behind the header
  calls::Status status{};
  std::uint16_t reserved{};
  std::uint32_t number{};
  std::uint32_t client{};
};

/// More than a client that is not of the kernel can say.
inline constexpr std::uint32_t kMostFrameBytes = 4096;
/// Descriptors beside one answer.
inline constexpr std::size_t kMostDescriptors = 2;

/// What a connection is for.
enum class Purpose : std::uint32_t {
  kDevice = 0,  ///< Clients of the kernel driver
  kClock,       ///< It reads the time of the machine: it has no clients, and `rnic ps` does not list it
};

struct Hello {
  std::uint32_t magic = kMagic;
  std::uint32_t version = kProtocolVersion;
  std::uint32_t calls_version = calls::kVersion;
  Purpose purpose = Purpose::kDevice;
};

/// Beside it: the memory of the connection (ConnectionMemory), and the bell, an eventfd that a process writes when it
/// has left a doorbell for a machine that sleeps.
struct Welcome {
  std::uint32_t version = kProtocolVersion;  ///< The machine's; with kVersionMismatch all that there is
  std::uint32_t calls_version = calls::kVersion;
  std::uint64_t memory_bytes{};
};

/// Beside it the memory, unless it is in that of the connection.
struct MapAnswer {
  std::uint64_t offset{};
  std::uint64_t bytes{};
  std::uint32_t in_connection{};
  std::uint32_t reserved{};
};

using Descriptors = std::array<Descriptor, kMostDescriptors>;

/// Sends `bytes`, with the descriptors of `beside` that there are (their numbers, at most kMostDescriptors). False:
/// the other side is gone, or does not take all of it at once from a socket that does not wait.
[[nodiscard]] bool send_all(int socket, std::span<const std::byte> bytes, std::span<const int> beside = {});
/// Receives exactly `bytes` from a socket that waits; descriptors that come with them go to `beside`, those that have
/// no room are closed. False: the other side is gone.
[[nodiscard]] bool receive_all(int socket, std::span<std::byte> bytes, Descriptors& beside);

}  // namespace rnic::remote
