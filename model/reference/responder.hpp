#pragma once

#include "model/reference/qp.hpp"
#include "model/reference/transfer.hpp"

namespace rnic::reference {

class Nic;

/// The responder side of queue pairs: takes requests in the order in which they came, executes them in the order of
/// their PSNs, and answers (InfiniBand specification 9.7.4, 9.7.5, 9.8.2.1, 9.9.3).
class Responder {
 public:
  explicit Responder(Nic& nic);

  /// Both engines of a queue pair run until it is gone.
  Task<Done> take_requests(QpPtr qp);
  Task<Done> answer(QpPtr qp);

 private:
  // Reliable connections.
  Task<Done> take_reliable(QpPtr qp, Packet packet);
  [[nodiscard]] bool in_sequence(const Qp& qp, std::uint8_t kind) const;
  [[nodiscard]] bool allowed(const Qp& qp, std::uint8_t kind) const;
  [[nodiscard]] bool right_length(const Qp& qp, const Packet& packet) const;
  Task<Done> read(QpPtr qp, Packet packet);
  Task<Done> atomic(QpPtr qp, Packet packet);
  Task<Done> message(QpPtr qp, Packet packet);
  Task<Moved> place(QpPtr qp, const Packet& packet);
  static void placed(Qp& qp, const Packet& packet);
  void repeat(Qp& qp, const Packet& packet);
  void refuse(Qp& qp, std::uint8_t syndrome, Status cause);
  void count_held(Qp& qp);
  void invalid(Qp& qp);
  void queue_ack(Qp& qp, std::uint32_t psn);
  void not_ready(Qp& qp);

  // Unreliable connections and datagrams.
  Task<Done> take_unreliable(QpPtr qp, Packet packet);
  Task<Done> take_datagram(QpPtr qp, Packet packet);
  static void drop_message(Qp& qp, std::uint8_t kind);

  // Receive WQEs.
  enum class Taken : std::uint8_t { Yes, None, Failed };
  /// Takes the next one for qp.receive. `has_bytes`: of the message, some go to its buffers.
  Task<Taken> take_receive(QpPtr qp, bool has_bytes);
  /// Its entry; `fill` what there is to say of the message.
  void complete(Qp& qp, Status status, const Packet& packet, std::uint32_t bytes, std::uint8_t syndrome = 0);
  void local_failure(Qp& qp, const Packet& packet, Status status, std::uint8_t syndrome);
  void flush(Qp& qp);

  // Answers.
  Task<Done> answer_read(QpPtr qp);
  Task<Done> send_answer(QpPtr qp, Packet packet);

  Nic& nic_;
  bool atomic_busy_ = false;  ///< One atomic at a time, of all queue pairs (9.4.5)
  Signal atomic_free_;
};

/// Nothing: it is not the one of this index, so that nothing in it counts.
[[nodiscard]] std::optional<Receive> decode_receive(const Bytes& bytes, std::uint16_t index, bool shared,
                                                    std::uint32_t pd);

}  // namespace rnic::reference
