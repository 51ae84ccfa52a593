#pragma once

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "driver/device.hpp"
#include "driver/generated/host_interface.hpp"

namespace rnic::test {

/// A device in memory for tests of the driver's own logic. It answers admin commands at once, keeps what the driver
/// wrote, flushes as the host interface says, and writes the CQEs and EQEs that a test asks for. It moves no data.
class FakeDevice final : public Device {
 public:
  explicit FakeDevice(std::uint64_t seed = 1);

  // Device
  std::uint64_t read64(std::uint64_t offset) override;
  void write64(std::uint64_t offset, std::uint64_t value) override;
  void write_burst64(std::uint64_t offset, std::span<const std::uint8_t, 64> data) override;
  Result<DmaBuffer> dma_alloc(std::size_t bytes) override;
  void dma_free(const DmaBuffer& buffer) override;
  Result<std::vector<std::uint64_t>> map_pages(const void* p, std::size_t length, bool writable) override;
  void unmap_pages(const void* p, std::size_t length, std::span<const std::uint64_t> iovas) override;
  Result<std::vector<std::uint64_t>> map_process_pages(std::int32_t process, std::uint64_t address, std::size_t length,
                                                       bool writable) override;
  void unmap_process_pages(std::int32_t process, std::uint64_t address, std::size_t length,
                           std::span<const std::uint64_t> iovas) override;
  std::uint64_t wake_count() override;
  void wake() override;
  bool wait(std::uint64_t seen, std::uint64_t timeout_ns) override;
  bool removed() override;
  void reset_function() override;
  void report(DeviceOddity oddity, std::uint32_t number) override;
  MsixMessage msix_message(std::uint32_t vector) override;
  void elapse(std::uint64_t ns) override;
  std::uint64_t now_ns() override;
  std::uint64_t random64() override;

  // Scripting
  std::map<std::uint64_t, std::uint64_t> registers;
  hw::AdminCapabilities capabilities;
  bool admin_hangs = false;
  std::atomic<bool> gone = false;        ///< Every read answers all ones; nobody says so
  std::atomic<bool> taken_away = false;  ///< The machine knows that it is gone; see take_away
  bool threads = false;                  ///< Real threads: time is real, and waits block
  unsigned resets = 0;                   ///< Calls of reset_function
  bool cqes_late = false;                ///< CQEs are on their way until release_cqes
  std::deque<hw::AdminStatus> next_status;
  std::size_t dma_allocations_left = ~std::size_t{0};
  std::function<void()> on_time;  ///< Called when time passes, without the device's lock

  /// Memory that map_pages refuses: all of it, or for writing.
  const void* unmapped = nullptr;
  const void* read_only = nullptr;
  bool has_processes = false;  ///< Memory of other processes may be mapped, too

  // What the driver did
  struct Write {
    std::uint64_t offset{};
    std::uint64_t value{};
  };
  std::vector<Write> doorbells;  ///< Writes to UAR pages but the window, in order
  std::vector<std::array<std::uint8_t, 64>> window;
  std::vector<hw::AdminCommand> commands;

  struct Queue {
    std::uint64_t base{};
    unsigned log_depth{};
    std::uint32_t produced{};
    std::uint32_t origin{};
    hw::AdminModifyCq moderation{};
    std::uint32_t consumed{};
    hw::CqArm arm{};
    std::uint8_t eqn{};
    std::uint8_t vector{};
    std::uint8_t uar{};
  };
  struct Pair {
    hw::AdminCreateQp create;
    hw::AdminModifyQp last_modify;
    hw::QpState state{};
    std::array<std::uint32_t, hw::kQpCounters> counters{};
    std::uint16_t sq_producer{};
    std::uint16_t sq_done{};
    std::uint16_t rq_producer{};
    std::uint16_t rq_done{};
  };
  std::map<std::uint32_t, Queue> event_queues;
  std::map<std::uint32_t, Queue> completion_queues;
  std::map<std::uint32_t, Pair> pairs;
  std::map<std::array<std::uint8_t, 16>, std::set<std::uint32_t>> multicast_groups;  ///< QPNs, by address
  struct SharedQueue {
    hw::AdminCreateSrq create;
    hw::AdminModifySrq last_modify;
    std::uint16_t producer{};
    std::uint16_t head{};
  };
  std::map<std::uint32_t, SharedQueue> shared_queues;
  std::map<std::uint32_t, hw::AdminCreateMr> regions;           ///< By key
  std::map<std::uint32_t, hw::AdminCreateMw> windows;           ///< By index of the key
  std::map<std::uint32_t, hw::AdminCreateFastMr> fast_regions;  ///< By index of the key
  std::map<std::uint32_t, std::uint32_t> bound;  ///< Window that is bound, region it is bound to: indexes
  std::size_t mapped_pages = 0;
  std::map<std::int32_t, std::set<std::uint64_t>> process_pages;  ///< Mapped of other processes: their addresses

  std::vector<std::pair<DeviceOddity, std::uint32_t>> oddities;  ///< Reported

  // What the device does
  void write_cqe(std::uint32_t cqn, hw::Cqe cqe);
  void release_cqes();
  void write_eqe(std::uint32_t eqn, hw::Eqe eqe);
  /// The oldest send request that is not done ends with `status`, and its CQE is written.
  void finish_send(std::uint32_t qpn, hw::CqeStatus status = hw::CqeStatus::kSuccess);
  /// The oldest `count` send requests retire without a CQE.
  void finish_silently(std::uint32_t qpn, unsigned count);
  void write_retired_record(std::uint32_t qpn);
  void finish_receive(std::uint32_t qpn, std::uint32_t bytes, hw::CqeStatus status = hw::CqeStatus::kSuccess,
                      bool solicited = false, std::optional<std::uint32_t> datagram_from = {},
                      std::optional<std::uint16_t> tag = std::nullopt);
  /// A message of `qpn` takes the next request of its shared receive queue; its tag, which a CQE must bring back.
  std::uint16_t take_shared(std::uint32_t qpn);
  void finish_shared(std::uint32_t qpn, std::uint16_t tag, std::uint32_t bytes,
                     hw::CqeStatus status = hw::CqeStatus::kSuccess);
  void raise(std::uint32_t vector);
  /// While admin_hangs: answers the oldest command after all, if there is one.
  void answer_one_command();
  /// The calling thread is in a function of a device: what it allocates there is not the driver's.
  [[nodiscard]] static bool inside();
  /// Gone, and the machine says so to whoever waits.
  void take_away();

  /// Slot of a ring as the driver wrote it.
  [[nodiscard]] std::vector<std::uint8_t> send_wqe(std::uint32_t qpn, std::uint16_t index);
  [[nodiscard]] std::vector<std::uint8_t> receive_wqe(std::uint32_t qpn, std::uint16_t index);
  [[nodiscard]] std::uint8_t* pointer(std::uint64_t iova);
  [[nodiscard]] std::size_t live_allocations();

 private:
  void power_on();
  void run_admin(std::uint16_t producer);
  bool masked(std::uint32_t vector);
  hw::AdminStatus execute(const hw::AdminCommand& command, std::array<std::uint8_t, 48>& result);
  hw::AdminStatus change_group(const hw::AdminCommand& command);
  hw::AdminStatus resize(std::uint32_t cqn, const hw::AdminResizeCq& body, std::array<std::uint8_t, 48>& result);
  hw::AdminStatus create_key(const hw::AdminCommand& command);
  hw::AdminStatus destroy_key(const hw::AdminCommand& command);
  hw::AdminStatus query_key(std::uint32_t key, std::array<std::uint8_t, 48>& result);
  hw::AdminStatus modify(std::uint32_t qpn, const hw::AdminModifyQp& body);
  void flush(std::uint32_t qpn);
  void doorbell(std::uint32_t uar, std::uint32_t offset, std::uint64_t value);

  std::recursive_mutex mutex_;
  std::mt19937_64 random_;
  std::uint64_t now_ = 0;
  std::uint64_t next_iova_ = 0x10'0000'0000;
  struct Allocation {
    std::unique_ptr<std::uint8_t[]> storage;
    std::uint8_t* aligned{};
    std::size_t size{};
  };
  std::map<std::uint64_t, Allocation> memory_;
  std::condition_variable_any woken_;
  std::uint64_t wake_count_ = 0;
  std::uint16_t admin_consumer_ = 0;
  std::uint16_t admin_producer_ = 0;
  std::deque<std::pair<std::uint8_t*, std::array<std::uint8_t, 64>>> late_cqes_;
};

}  // namespace rnic::test
