#pragma once

#include <cstdint>
#include <memory>

#include "driver/remote/descriptor.hpp"
#include "testbench/guest/guest_function.hpp"
#include "testbench/guest/guest_memory.hpp"
#include "testbench/guest/interrupt_line.hpp"
#include "testbench/guest/proxy_reader.hpp"

namespace rnic::testbench {

/// What a link has carried.
struct GuestFigures {
  std::uint64_t config_accesses = 0;
  std::uint64_t writes = 0;  ///< To the BAR
  std::uint64_t reads = 0;
  std::uint64_t interrupts = 0;
  std::uint64_t resets = 0;       ///< Of the guest's machine
  std::uint64_t memory_maps = 0;  ///< Times that the guest's memory was told
  std::uint64_t memory_bytes = 0;
};

/// One guest and its way to a function: what QEMU asks for is done in the order in which it asks, and answered: writes
/// at once, reads when the function has answered. While a read waits nothing behind it is looked at. Nothing here waits
/// for the guest.
class GuestLink : public std::enable_shared_from_this<GuestLink> {
 public:
  /// `function` outlives it. The socket does not wait.
  GuestLink(remote::Descriptor socket, GuestFunction& function);
  /// Gives the function back without the guest's memory.
  ~GuestLink();
  GuestLink(const GuestLink&) = delete;
  GuestLink& operator=(const GuestLink&) = delete;

  /// Does what has come. False: the guest has ended. Throws GuestLinkError when it does what no guest does; the link is
  /// to be ended then.
  bool take();
  /// The function's interrupt message.
  void interrupt(std::uint64_t address, std::uint32_t data);

  [[nodiscard]] int descriptor() const { return socket_.get(); }
  [[nodiscard]] InterruptLine& interrupts() { return interrupts_; }
  [[nodiscard]] const GuestFigures& figures() const { return figures_; }

 private:
  void act(ProxyMessage& message);
  void sync_memory(const ProxyMessage& message);
  void access_config(const ProxyMessage& message);
  void access_bar(const ProxyMessage& message);
  void answer(std::uint64_t value);

  remote::Descriptor socket_;
  GuestFunction& function_;
  ProxyReader reader_;
  InterruptLine interrupts_;
  std::unique_ptr<GuestMemory> memory_;
  GuestFigures figures_;
  bool reading_ = false;  ///< The guest waits for what it reads
  bool deaf_ = false;     ///< It does not take its answers
};

}  // namespace rnic::testbench
