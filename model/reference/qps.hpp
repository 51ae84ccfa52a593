#pragma once

#include <map>

#include "model/reference/qp.hpp"

namespace rnic::reference {

class Nic;

/// The queue pairs: their lives from CreateQp to DestroyQp, and their states (InfiniBand specification 10.3).
class Qps {
 public:
  explicit Qps(Nic& nic) : nic_(nic) {}

  /// By whole number; null: there is none.
  [[nodiscard]] QpPtr find(std::uint32_t number) const;

  AdminStatus create(std::uint32_t number, const Bytes& body);
  Task<AdminStatus> destroy(std::uint32_t number);
  Task<AdminStatus> modify(std::uint32_t number, Bytes body);
  [[nodiscard]] Bytes state(const Qp& qp) const;

  /// The queue pair is in ERR from now on. `answers`: what its responder has to say is still said.
  void fail(Qp& qp, bool answers = false);
  /// A request has failed: ERR, or SQE on UC and UD (10.3.1.6).
  void send_failed(Qp& qp);
  void event(Qp& qp, Event event, std::uint32_t detail = 0);
  /// The first packet in RTR (11.6.3.1).
  void established(Qp& qp);
  /// Ends the queue pairs of a completion queue, the one whose entry was lost first (decisions 55).
  void cq_failed(std::uint32_t cqn, std::uint32_t first);

  /// Of the register, or by a WQE of a window; counted, taken or not.
  bool send_doorbell(std::uint32_t number, std::uint16_t producer, std::uint8_t uar);
  bool receive_doorbell(std::uint32_t number, std::uint16_t producer, std::uint8_t uar);

 private:
  Task<Done> reset(QpPtr qp);
  void release(const Qp& qp);

  Nic& nic_;
  std::map<std::uint32_t, QpPtr> qps_;  ///< By index
};

}  // namespace rnic::reference
