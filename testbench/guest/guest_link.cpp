#include "testbench/guest/guest_link.hpp"

#include <fmt/format.h>

#include <span>
#include <utility>

#include "driver/remote/protocol.hpp"
#include "model/config_space.hpp"
#include "testbench/guest/guest_link_error.hpp"

namespace rnic::testbench {
namespace {

using proxy::Command;

bool is_power(std::uint32_t bytes, std::uint32_t most) {
  return bytes == 1 || bytes == 2 || bytes == 4 || (bytes == 8 && most == 8);
}

std::uint64_t low(std::uint64_t value, std::size_t bytes) {
  return bytes == 8 ? value : value & ((std::uint64_t{1} << 8 * bytes) - 1);
}

}  // namespace

GuestLink::GuestLink(remote::Descriptor socket, GuestFunction& function)
    : socket_(std::move(socket)), function_(function), reader_(socket_.get()) {}

GuestLink::~GuestLink() { function_.set_memory({}); }

bool GuestLink::take() {
  if (!interrupts_.tend()) return false;
  while (!reading_) {
    if (deaf_) throw GuestLinkError("the guest does not take its answers");
    ProxyMessage message;
    switch (reader_.take(message)) {
      case ProxyReader::Got::kMessage: act(message); break;
      case ProxyReader::Got::kNothing: return true;
      case ProxyReader::Got::kGone: return false;
    }
  }
  return true;
}

void GuestLink::interrupt(std::uint64_t address, std::uint32_t data) {
  ++figures_.interrupts;
  interrupts_.raise(address, data);
}

void GuestLink::act(ProxyMessage& message) {
  switch (message.command) {
    case Command::kSyncMemory: return sync_memory(message);
    case Command::kConfigRead:
    case Command::kConfigWrite: return access_config(message);
    case Command::kBarRead:
    case Command::kBarWrite: return access_bar(message);
    case Command::kReset:
      ++figures_.resets;
      function_.reset();
      return answer(0);
    case Command::kSetIrq:  // of INTx, which the function has not
    case Command::kAnswer: return;
  }
}

void GuestLink::sync_memory(const ProxyMessage& message) {
  auto memory = std::make_unique<GuestMemory>(message.as<proxy::SyncMemory>(), message.descriptors);
  function_.set_memory(memory->windows());
  memory_ = std::move(memory);
  ++figures_.memory_maps;
  figures_.memory_bytes = memory_->bytes();
}

void GuestLink::access_config(const ProxyMessage& message) {
  const auto access = message.as<proxy::ConfigAccess>();
  const auto bytes = static_cast<std::uint32_t>(access.bytes);
  if (!is_power(bytes, 4))
    throw GuestLinkError(
        fmt::format("an access of {} bytes to the configuration space at {:#x}", access.bytes, access.offset));
  ++figures_.config_accesses;
  const bool read = message.command == Command::kConfigRead;
  // There is no more behind the 256 bytes of every function than where nothing is.
  if (access.offset > model::ConfigSpace::kBytes - bytes) return answer(read ? low(~std::uint64_t{0}, bytes) : 0);
  if (read) return answer(function_.config_read(access.offset, bytes));
  function_.config_write(access.offset, static_cast<std::uint32_t>(low(access.value, bytes)), bytes);
  answer(0);
}

void GuestLink::access_bar(const ProxyMessage& message) {
  const auto access = message.as<proxy::BarAccess>();
  if (!is_power(access.bytes, 8))
    throw GuestLinkError(fmt::format("an access of {} bytes to the BAR at {:#x}", access.bytes, access.address));
  if (access.memory == 0)
    throw GuestLinkError(fmt::format("an access to I/O space at {:#x}, which the function has not", access.address));
  if (message.command == Command::kBarWrite) {
    ++figures_.writes;
    function_.write(access.address, low(access.value, access.bytes), access.bytes);
    return answer(0);
  }
  ++figures_.reads;
  reading_ = true;
  function_.read(access.address, access.bytes, [weak = weak_from_this(), bytes = access.bytes](std::uint64_t value) {
    const auto link = weak.lock();
    if (link == nullptr) return;
    link->reading_ = false;
    link->answer(low(value, bytes));
  });
}

/// The guest waits for each answer, so there is room for it.
void GuestLink::answer(std::uint64_t value) {
  proxy::Answer message;
  message.value = value;
  if (!remote::send_all(socket_.get(), std::as_bytes(std::span(&message, 1)))) deaf_ = true;
}

}  // namespace rnic::testbench
