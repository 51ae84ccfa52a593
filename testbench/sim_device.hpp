#pragma once

#include <tlm>
#include <tlm_utils/simple_initiator_socket.h>

#include <cstdint>
#include <functional>
#include <string>
#include <systemc>
#include <utility>
#include <vector>

#include "driver/device.hpp"
#include "model/host_memory.hpp"
#include "model/interrupt_controller.hpp"
#include "model/iommu.hpp"
#include "model/memory_order.hpp"
#include "model/memory_witness.hpp"
#include "model/random.hpp"
#include "model/time.hpp"

namespace rnic::testbench {

/// The device as the driver sees it in a simulated host: registers through the TLM socket `mmio`, memory of the host
/// behind its IOMMU, interrupts, and simulated time.
///
/// Time passes in read64 (the round trip), wait, elapse, map_process_pages and reset_function, and nowhere else. Where
/// none can pass, because the applications are to stop, the calling thread is being unwound, or it is no SystemC thread
/// at all, the device counts as gone: read64 gives all ones, removed is true, wait is over at once, and now_ns advances
/// by what it and elapse were asked for, so that loops with a time limit end.
///
/// An application that is to stop, and goes on to ask for time all the same, gets a Stopped out of wait or elapse; none
/// comes out of a destructor of the driver, whose loops all have a limit.
///
/// Memory of other processes (map_process_pages; numbers are those of Iommu::add_process) is looked at when it is
/// mapped, a piece at a time, and reached when the device does; one that the system keeps from us is kNotSupported.
///
/// Memory outside of HostMemory (stack, heap) may be mapped too, but its addresses differ from run to run.
class SimDevice : public sc_core::sc_module, public Device {
 public:
  tlm_utils::simple_initiator_socket<SimDevice> mmio;

  SimDevice(const sc_core::sc_module_name& name, model::HostMemory& memory, model::Iommu& iommu,
            model::InterruptController& interrupts, std::uint64_t seed);

  // Device
  [[nodiscard]] std::uint64_t read64(std::uint64_t offset) override;
  void write64(std::uint64_t offset, std::uint64_t value) override;
  void write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) override;
  [[nodiscard]] Result<DmaBuffer> dma_alloc(std::size_t bytes) override;
  void dma_free(const DmaBuffer& buffer) override;
  [[nodiscard]] Result<std::vector<std::uint64_t>> map_pages(const void* p, std::size_t length, bool writable) override;
  void unmap_pages(const void* p, std::size_t length, std::span<const std::uint64_t> iovas) override;
  [[nodiscard]] Result<std::vector<std::uint64_t>> map_process_pages(std::int32_t process, std::uint64_t address,
                                                                     std::size_t length, bool writable) override;
  void unmap_process_pages(std::int32_t process, std::uint64_t address, std::size_t length,
                           std::span<const std::uint64_t> iovas) override;
  [[nodiscard]] std::uint64_t wake_count() override { return interrupts_.wake_count(); }
  void wake() override {
    interrupts_.wake();
    happen();
  }
  [[nodiscard]] bool wait(std::uint64_t seen, std::uint64_t timeout_ns) override;
  [[nodiscard]] bool removed() override;
  void reset_function() override;
  void report(DeviceOddity oddity, std::uint32_t number) override;
  [[nodiscard]] MsixMessage msix_message(std::uint32_t vector) override;
  void elapse(std::uint64_t ns) override;
  [[nodiscard]] std::uint64_t now_ns() override;
  [[nodiscard]] std::uint64_t random64() override { return random_.next(); }

  /// Chance that a burst leaves the processor in pieces of 8, 16 and 32 bytes, in any order, as a write-combining
  /// buffer may that is flushed before it is full. All of them have left when write_burst64 returns: the driver's flush
  /// barrier follows at once.
  void set_write_combining_split(double chance) { combining_split_ = chance; }

  /// What resets the function of the device: the machine's own, which lets no time pass, and how long it then takes.
  void set_function_reset(std::function<void()> reset, std::uint64_t takes_ns);

  /// Out of an application that does not end by itself. Not a std::exception, so that it is not taken for a failure.
  struct Stopped {};
  /// From now on no time passes, and every wait that is under way ends, so that applications come to their end by their
  /// own way, destructors and all. Until go_on.
  void stop();
  void go_on() { stopping_ = false; }

  /// Memory is shared with the device in this order from now on. It outlives the device.
  void set_memory_order(model::MemoryOrder& order) { order_ = &order; }
  /// `witness` is asked what memory a process has. It outlives the device. Null: nobody.
  void set_memory_witness(model::MemoryWitness* witness) { witness_ = witness; }
  /// What a polling program knows when it looks: of what has happened by then it finds everything.
  struct Look {
    model::Picoseconds at = 0;
    std::uint64_t happened = 0;
  };
  [[nodiscard]] Look look() const { return {model::now_ps() - begun_, happened_}; }
  /// As a program that found nothing at `look`, lets `step_ns` pass, and looks again, and so on: the time of the next
  /// look that may find something, or that is at `end_ns` or later. Looks before which nothing has happened (DMA writes
  /// to the host's memory, interrupts, wakes) are left out. Of a host with a weak memory order none is.
  void look_again(const Look& look, std::uint64_t step_ns, std::uint64_t end_ns = kForever);
  /// Something has happened that a polling program may find.
  void happen();

  /// `observer` is told of each write64 before it leaves: offset and value. Empty: nobody.
  void observe_writes(std::function<void(std::uint64_t, std::uint64_t)> observer) { observer_ = std::move(observer); }

  /// `forbidden` is told of a process whose memory the system does not let this one reach. Empty: nobody.
  void observe_forbidden(std::function<void(std::int32_t)> forbidden) { forbidden_ = std::move(forbidden); }

  /// What the driver did that no correct driver does (freed or unmapped what it does not have), in words.
  [[nodiscard]] const std::vector<std::string>& misuse() const { return misuse_; }

  /// What the driver reported of its device, in words.
  [[nodiscard]] const std::vector<std::string>& oddities() const { return oddities_; }

  /// Until when the last of the waits in elapse of at least `time` lasts. An application that asked for one is not
  /// stuck before; one that polls is.
  void set_long_sleep(model::Picoseconds time) { long_sleep_ = time; }
  [[nodiscard]] model::Picoseconds asleep_until() const { return asleep_until_; }

  /// Starts again: time from zero, random numbers from `seed`.
  void reset(std::uint64_t seed);

 private:
  struct Piece {
    std::size_t offset, bytes;
  };
  [[nodiscard]] std::vector<Piece> pieces_of_burst();
  [[nodiscard]] bool time_can_pass() const;
  void skip(std::uint64_t ns);
  [[nodiscard]] Result<void> reach(std::int32_t process, std::uint64_t address, std::uint64_t bytes, bool writable);
  [[nodiscard]] tlm::tlm_response_status transport(tlm::tlm_command command, std::uint64_t offset, std::uint8_t* data,
                                                   unsigned length);

  model::HostMemory& memory_;
  model::Iommu& iommu_;
  model::InterruptController& interrupts_;
  model::MemoryOrder* order_ = nullptr;
  model::MemoryWitness* witness_ = nullptr;
  std::function<void(std::uint64_t, std::uint64_t)> observer_;
  std::function<void(std::int32_t)> forbidden_;
  std::function<void()> function_reset_;
  std::uint64_t function_reset_ns_ = 0;
  model::Random random_;
  model::Random combining_;
  double combining_split_ = 0;
  model::Picoseconds epoch_ = 0;
  model::Picoseconds long_sleep_ = ~model::Picoseconds{0};
  model::Picoseconds asleep_until_ = 0;
  std::uint64_t skipped_ns_ = 0;  ///< Asked for where no time could pass
  bool stopping_ = false;
  std::uint64_t skips_ = 0;  ///< While stopping, since a Stopped was thrown
  sc_core::sc_event stop_event_;
  std::uint64_t happened_ = 0;
  model::Picoseconds begun_ = 0;    ///< So much of the calling program's next elapse has passed (look_again)
  unsigned looking_ = 0;            ///< Programs that wait for it
  sc_core::sc_event happen_event_;  ///< Also when applications are to stop
  std::vector<std::string> misuse_;
  std::vector<std::string> oddities_;
};

}  // namespace rnic::testbench
