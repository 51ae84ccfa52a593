#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/iommu.hpp"
#include "model/memory_witness.hpp"
#include "model/pcie.hpp"
#include "testbench/guest/late_entries.hpp"
#include "testbench/guest/ownership_rule.hpp"
#include "testbench/guest/shared_objects.hpp"

namespace rnic::testbench {

/// What an OwnershipChecker has seen, since its guest has come.
struct OwnershipFigures {
  std::uint64_t doorbells = 0;  ///< Looked at
  std::uint64_t slots = 0;      ///< Handed over by them: WQEs, commands
  std::uint64_t entries = 0;    ///< Written by the device: CQEs, EQEs, admin completions
  std::array<std::uint64_t, kOwnershipRules.size()> broken{};
};

/// Watches the TLPs between a driver and its device, and says which rule of docs/host_interface.md, Ownership, the
/// driver breaks. It learns where rings are from the admin commands that the device reads and answers, looks at the
/// memory when something is handed over and when it comes back, and has no part in either's affairs.
///
/// It takes the processor that rings a doorbell to stand still until `request` has returned, and what it wrote before
/// to be in memory: so it is with a guest of one processor, which waits for the answer to its store.
class OwnershipChecker : public model::MemoryWitness {
 public:
  using Tell = std::function<void(const std::string&)>;

  /// `memory` is as the device reaches it, and outlives this. `tell` gets a line for the first time that a rule is
  /// broken.
  OwnershipChecker(const model::Iommu& memory, Tell tell);

  /// Another guest: figures begin anew, and each rule is told again.
  void begin();
  /// The device was reset, and has nothing any more.
  void reset();
  /// What the driver sends to the device.
  void request(const model::HostRequest& request);
  /// Memory is about to be another.
  void memory_changes() { late_.bring(); }

  /// From now on an entry's phase is there before the rest of it (LateEntries). The driver is to have barriers that
  /// the device sees: reads of it.
  void set_late_entries(bool late) { late_entries_ = late; }
  /// A read of the device is about to be answered, or an interrupt to come.
  void barrier() { late_.bring(); }

  [[nodiscard]] const OwnershipFigures& figures() const { return figures_; }

  // MemoryWitness
  [[nodiscard]] bool read(const model::DmaRequest& request, const model::Iommu::Place& from,
                          std::vector<std::uint8_t>& data, const std::function<bool()>& memory) override;
  [[nodiscard]] bool write(const model::DmaRequest& request, const model::Iommu::Place& to,
                           const std::function<bool()>& memory) override;
  [[nodiscard]] model::ProcessMemory::Reach reach(std::int32_t process, std::uint64_t address, std::uint64_t length,
                                                  bool writable,
                                                  const std::function<model::ProcessMemory::Reach()>& memory) override;

 private:
  /// A ring as messages name it: made into words when there is something to tell.
  struct RingName {
    const char* what;
    std::optional<std::uint32_t> number{};
    [[nodiscard]] std::string text() const;
  };
  /// A queue whose producer index a doorbell carries.
  struct Posting {
    RingName name;
    PostedRing& ring;
    std::function<bool(std::uint16_t index, const std::uint8_t* slot)> in_place;
  };
  /// Of the window of a UAR: how far a WQE has come.
  struct Window {
    bool begun = false, disordered = false;
    std::size_t next = 0, size = 0;
    std::uint32_t qpn = 0;
    std::uint16_t index = 0;
  };
  struct AdminQueue {
    std::uint64_t command_base = 0, completion_base = 0, config = 0, doorbell = 0;
    std::optional<PostedRing> commands;
    std::optional<EntryQueue> completions;
    std::uint64_t handed_over = 0;                             ///< Commands
    std::unordered_map<std::uint16_t, hw::AdminCommand> read;  ///< By the device, and not answered
  };

  void write_register(const model::HostRequest& request);
  void configure_admin();
  void admin_doorbell(std::uint16_t producer);
  void doorbell(std::uint8_t uar, std::uint64_t offset, std::uint64_t value);
  void window(std::uint8_t uar, std::size_t offset, const std::vector<std::uint8_t>& piece);
  void send_doorbell(std::uint8_t uar, std::uint32_t qpn, std::uint16_t producer);
  void receive_doorbell(std::uint8_t uar, std::uint32_t qpn, std::uint16_t producer);
  void srq_doorbell(std::uint8_t uar, std::uint32_t srqn, std::uint16_t producer);
  void cq_doorbell(std::uint8_t uar, std::uint32_t cqn, std::uint32_t consumer);
  void eq_doorbell(std::uint32_t eqn, std::uint32_t consumer);
  void unknown(hw::AdminOpcode creation, const char* what, std::uint32_t number);

  void post(const Posting& posting, std::uint16_t producer);
  void overrun(const Posting& posting, std::uint16_t producer);
  void consume(const RingName& name, EntryQueue& queue, std::uint32_t consumer);

  void read_slots(const RingName& name, PostedRing& ring, std::uint64_t offset, std::size_t bytes);
  void read_command(std::uint16_t index);
  void retire(const RingName& name, PostedRing& ring, std::uint16_t index);
  [[nodiscard]] bool write_entry(std::uint64_t address, const model::DmaRequest& request);
  void write_admin_completion(const model::DmaRequest& request);
  void write_cqe(std::uint32_t cqn, const model::DmaRequest& request);
  void write_next(const RingName& name, EntryQueue& queue, std::uint64_t address);
  void retire_shared(SharedSrq& srq, std::uint32_t srqn, std::uint16_t tag);

  [[nodiscard]] const std::uint8_t* at(std::uint64_t address) const { return memory_.peek(address); }
  void tell(OwnershipRule rule, const std::string& what);

  const model::Iommu& memory_;
  const Tell tell_;
  bool enabled_ = false;
  bool late_entries_ = false;
  LateEntries late_;
  AdminQueue admin_;
  SharedObjects objects_;
  std::map<std::uint8_t, Window> windows_;  ///< By UAR
  OwnershipFigures figures_;
};

}  // namespace rnic::testbench
