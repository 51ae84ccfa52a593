#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "model/reference/clock.hpp"
#include "model/reference/numbers.hpp"
#include "model/reference/outside.hpp"

namespace rnic::reference {

class Nic;

/// What a completion queue entry says.
struct Completion {
  Status status{};
  std::uint8_t opcode{};
  std::uint16_t wqe_index{};
  std::uint32_t qpn{};
  bool is_receive{}, solicited{}, with_imm{}, with_invalidate{}, grh{}, l3_ok{}, l4_ok{};
  std::uint32_t byte_count{}, immediate{};
  std::uint16_t retired_index{};
  std::uint8_t syndrome{};
  std::uint32_t source_qpn{};
  std::optional<std::uint16_t> tag;  ///< VLAN tag of a datagram
};

/// Completion queue (InfiniBand specification 10.2.6, 11.5.2.2). Indexes have 24 bits.
struct Cq {
  std::uint32_t number{};
  std::uint64_t base{};
  std::uint8_t log_depth{}, eqn{}, uar{};
  std::uint32_t producer{}, consumer{};
  std::uint32_t origin{};  ///< Index of the first entry in the ring (ResizeCq)
  Arm arm{};
  std::uint32_t told{};       ///< Entries that an event has told of
  std::uint32_t solicited{};  ///< One past the newest solicited or failed entry
  bool overrun{};
  std::uint16_t count{}, period{};  ///< Moderation
  bool due{};                       ///< An event waits for them
  std::uint64_t life{};             ///< Tells a timer of an earlier one apart
  unsigned users{};                 ///< Queue pairs
};

/// Where an event comes from: of each source at most one entry is in an EQ that the host has not consumed.
enum class Source : std::uint8_t { Cq, Qp, Srq, Device, Port };
using SourceKey = std::pair<Source, std::uint32_t>;

struct EventEntry {
  Event type{};
  std::uint32_t number{}, detail{};
};

struct Eq {
  std::uint64_t base{};
  std::uint8_t log_depth{}, vector{};
  std::uint32_t producer{}, consumer{};
  std::map<SourceKey, std::uint32_t> there;             ///< Index of the entry
  std::map<SourceKey, std::deque<EventEntry>> waiting;  ///< For its consumption
};

/// Shared receive queue (10.2.9).
struct Srq {
  std::uint32_t number{};
  std::uint64_t base{};
  std::uint32_t pd{};
  std::uint8_t log_depth{}, log_stride{}, eqn{}, uar{};
  std::uint16_t limit{}, producer{}, head{};
  bool error{};
  unsigned users{};
};

/// Completion queues, event queues, shared receive queues, and interrupts.
class Queues {
 public:
  explicit Queues(Nic& nic) : nic_(nic) {}

  /// By whole number; null: there is none.
  [[nodiscard]] Cq* cq(std::uint32_t number);
  [[nodiscard]] Srq* srq(std::uint32_t number);

  /// Writes an entry. One too many is an overrun: it ends the queue and its queue pairs (10.2.6.1, decisions 26, 55).
  void complete(std::uint32_t cqn, const Completion& completion);
  void event(std::uint8_t eqn, SourceKey source, EventEntry entry);
  /// Fewer WQEs are left than the limit (11.6.3.3).
  void look_at_limit(Srq& srq);

  bool cq_doorbell(std::uint32_t number, Arm arm, std::uint32_t consumer, std::uint8_t uar);
  bool eq_doorbell(std::uint32_t number, std::uint32_t consumer);
  bool srq_doorbell(std::uint32_t number, std::uint16_t producer, std::uint8_t uar);
  void moderate(Cq& cq, std::uint16_t count, std::uint16_t period);

  std::map<std::uint32_t, Cq> cqs;  ///< By index
  std::map<std::uint32_t, Srq> srqs;
  std::map<std::uint32_t, Eq> eqs;

 private:
  void look_at_arm(Cq& cq);
  void fire(Cq& cq, Event type);
  void write(Eq& eq, SourceKey source, const EventEntry& entry);

  Nic& nic_;
  std::uint64_t lives_ = 0;
};

/// MSI-X table and pending bits (PCI Express base specification 7.7.2).
class Interrupts {
 public:
  explicit Interrupts(Nic& nic) : nic_(nic) {
    for (std::size_t i = 1; i < table.size(); i += 2) table[i] = std::uint64_t{1} << 32;
  }
  /// Behind all that is written by now.
  void owe(std::uint8_t vector);
  /// Something of mask or enable has changed.
  void look();
  [[nodiscard]] std::uint64_t pending() const { return pending_; }

  std::array<std::uint64_t, 2 * kVectors> table{};  ///< Address; {control, data}: masked at first

 private:
  Task<Done> raise(std::uint8_t vector);

  Nic& nic_;
  std::uint64_t pending_ = 0;
};

}  // namespace rnic::reference
