#pragma once

#include "model/reference/qp.hpp"
#include "model/reference/transfer.hpp"

namespace rnic::reference {

class Nic;

/// The requester side of queue pairs (InfiniBand specification 9.4, 9.7.3, 9.8.2, 9.8.3): begins requests in the order
/// of posting, sends their packets, takes the answers, retires in order, and goes back when something is lost.
class Requester {
 public:
  explicit Requester(Nic& nic) : nic_(nic) {}

  /// Both engines of a queue pair run until it is gone.
  Task<Done> send(QpPtr qp);
  Task<Done> take_responses(QpPtr qp);

  /// Entries for what has ended; then those of a flush, once the queue pair is in ERR or SQE.
  void retire(Qp& qp);
  /// No ACK has come in time (9.7.6.1.3).
  void timed_out(Qp& qp);
  /// In SQD, and nothing is left of what was begun: told once (10.3.1.5).
  void look_drained(Qp& qp);

 private:
  enum class Step : std::uint8_t { Rest, Packets, Fetch, Begin, Flush };
  [[nodiscard]] Step next(Qp& qp);
  Task<Done> fetch(QpPtr qp);
  [[nodiscard]] bool may_begin(Qp& qp, const SendWqe& wqe);
  Task<Done> begin(QpPtr qp);
  Task<Done> operate_memory(QpPtr qp);
  Task<Done> send_packets(QpPtr qp);
  void send_one(const QpPtr& qp, Request& request, std::uint32_t psn, const Bytes& data, std::size_t from);
  void has_left(const QpPtr& qp, const Packet& packet, std::uint32_t end, std::uint64_t life, bool awaited);
  void fail(Qp& qp, Request& request, Status status, std::uint8_t syndrome);
  [[nodiscard]] Request* holder(Qp& qp, std::uint32_t psn);
  void flush(Qp& qp);

  // Recovery.
  void acknowledge(Qp& qp, const Packet& packet);
  [[nodiscard]] bool acknowledge_before(Qp& qp, std::uint32_t end);
  Task<Done> take_data(QpPtr qp, Packet packet);
  [[nodiscard]] bool fits(const Qp& qp, const Request& request, const Packet& packet) const;
  void credits(Qp& qp, const Packet& packet);
  void missing(Qp& qp, std::uint32_t psn);
  void progress(Qp& qp);
  bool retry(Qp& qp, std::uint32_t psn);
  void go_back(Qp& qp, std::uint32_t psn);
  void wait_for_receive(Qp& qp, std::uint32_t psn, std::uint8_t syndrome);
  void start_timer(Qp& qp);

  Nic& nic_;
};

/// Time that an RNR NAK names (table 45).
[[nodiscard]] Time rnr_time(std::uint8_t code);
/// Receive WQEs that a credit code stands for (table 46), and the code of the most that are not more than `wqes`.
[[nodiscard]] std::uint32_t credits_of(std::uint8_t code);
[[nodiscard]] std::uint8_t credit_code(std::uint32_t wqes);

}  // namespace rnic::reference
