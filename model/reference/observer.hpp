#pragma once

#include <cstdint>

#include "model/reference/qp.hpp"
#include "model/reference/queues.hpp"

namespace rnic::reference {

/// Reports what happens inside a NIC while it happens, for figures and diagnoses (docs/reference_nic.md). It changes
/// nothing: a NIC does the same with an observer and without.
class Observer {
 public:
  virtual ~Observer() = default;

  /// A request has its PSNs.
  virtual void begins(const Qp& qp, const Request& request) = 0;
  /// It ends, with or without an entry.
  virtual void retires(const Qp& qp, const Request& request) = 0;
  /// A packet goes to the port. `request`: whose it is; null: an answer of the responder.
  virtual void sends(const Qp& qp, const Packet& packet, const Request* request) = 0;
  /// The responder (of a response: the requester) of a queue pair begins with a packet, and is done with it.
  virtual void takes(const Packet& packet) = 0;
  virtual void taken(const Qp& qp, bool response) = 0;
  /// No queue pair takes the packet, and `why` counts it.
  virtual void drops(const Packet& packet, Count why) = 0;
  /// An entry is written to `cq`, whose producer index is behind it, at `address`.
  virtual void completes(const Cq& cq, std::uint64_t address, const Completion& entry) = 0;
  /// RESET, or the queue pair is destroyed.
  virtual void resets(const Qp& qp) = 0;
  virtual void counts(Count counter) = 0;
  /// The same event, of a queue pair.
  virtual void counts(const Qp& qp, Count counter) = 0;
};

}  // namespace rnic::reference
