#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <set>

#include "model/reference/clock.hpp"
#include "model/reference/memory.hpp"
#include "model/reference/packet.hpp"

namespace rnic::reference {

/// Scatter/gather entry.
struct Segment {
  std::uint64_t va{};
  std::uint32_t bytes{}, key{};
};

/// A send WQE, decoded.
struct SendWqe {
  std::uint8_t opcode{};
  bool silent{}, fence{}, solicited{}, inline_data{}, ip_csum{};
  std::uint16_t index{};
  std::uint32_t qpn{}, immediate{}, length{};
  std::uint64_t va{};  ///< At the peer
  std::uint32_t rkey{};
  std::uint64_t swap_add{}, compare{};
  std::vector<Segment> segments;
  Bytes data;  ///< Inline
  BindRequest bind;
  FastRequest fast;
  Path path;  ///< Datagram
  bool second_source{};
  std::uint32_t dest_qpn{}, qkey{};

  /// Of service `type`; false: it is malformed. `bytes` is the slot, `index` and `qpn` what it must say.
  bool decode(const Bytes& bytes, QpType type, std::uint16_t index, std::uint32_t qpn);
  [[nodiscard]] bool is_read() const { return opcode == wqe::Read; }
  [[nodiscard]] bool is_atomic() const { return opcode == wqe::CompareSwap || opcode == wqe::FetchAdd; }
  [[nodiscard]] bool is_memory() const {
    return opcode == wqe::BindWindow1 || opcode == wqe::BindWindow2 || opcode == wqe::LocalInvalidate ||
           opcode == wqe::FastRegister;
  }
  /// Executed, it leaves a key that opens nothing.
  [[nodiscard]] bool takes_away() const {
    return opcode == wqe::LocalInvalidate || (opcode == wqe::BindWindow1 && bind.length == 0);
  }
  [[nodiscard]] bool is_send() const { return (opcode & 0xf) == wqe::Send; }
  [[nodiscard]] bool is_write() const { return (opcode & 0xf) == wqe::Write; }
  /// It takes a receive WQE of the peer.
  [[nodiscard]] bool takes_receive() const { return is_send() || opcode == wqe::WriteImmediate; }
};

/// A request that has begun and not retired.
struct Request {
  SendWqe wqe;
  std::uint32_t first_psn{}, packets{};  ///< Those of a Read: of its responses
  std::uint32_t ssn{};                   ///< As the peer's MSN counts it (9.7.7.1)
  std::uint32_t answered{};              ///< Responses that have been placed
  std::set<std::uint32_t> starts;        ///< Read: PSNs at which the newest and older requests for it began
  bool done{};
  Status failed{};
  std::uint8_t syndrome{};

  [[nodiscard]] bool holds(std::uint32_t psn) const { return ahead(psn, first_psn) < packets; }
  [[nodiscard]] std::uint32_t end() const { return (first_psn + packets) & kMask24; }
  [[nodiscard]] bool awaits_data() const { return (wqe.is_read() || wqe.is_atomic()) && !done; }
};

/// A receive WQE that a message has taken.
struct Receive {
  std::uint16_t name{};  ///< Index, or tag of an SRQ
  bool read{};           ///< Not needed where no bytes go to it
  bool malformed{};      ///< It is the right one, and its segments cannot be
  std::uint32_t pd{};
  std::vector<Segment> segments;
};

/// What the responder has to send, in the order of its PSNs.
struct Answer {
  enum class Kind : std::uint8_t { Ack, Nak, Read, Atomic } kind{};
  std::uint32_t psn{}, msn{};
  std::uint8_t syndrome{};  ///< Nak
  std::uint64_t va{};       ///< Read
  std::uint32_t rkey{}, length{};
  std::uint64_t original{};         ///< Atomic
  bool again{};                     ///< A repeated one
  std::uint32_t sent{}, packets{};  ///< Read: responses that have gone; those that shall
};

/// What ModifyQp gives (11.2.5.2).
struct QpAttributes {
  std::uint8_t path_mtu = 1, max_dest_rd_atomic{}, max_rd_atomic{}, min_rnr_timer{}, ack_timeout{};
  std::uint8_t retry_count{}, rnr_retry{};
  bool remote_write{}, remote_read{}, remote_atomic{};
  std::uint16_t pkey{};
  std::uint32_t qkey{}, dest_qpn{};
  Path path;
};

/// A queue pair: what was created, its attributes, and the state of both of its sides.
struct Qp {
  /// `timed_out`: no ACK has come in time.
  Qp(Clock& clock, std::function<void(Qp&)> timed_out)
      : ack_timer(clock, [this, timed_out = std::move(timed_out)] { timed_out(*this); }),
        send_signal(clock),
        request_signal(clock),
        response_signal(clock),
        answer_signal(clock),
        rest_signal(clock) {}

  // As created.
  std::uint32_t number{}, pd{};
  std::uint64_t sq_base{}, rq_base{}, retired_address{};
  std::uint8_t uar{}, sq_log_depth{}, sq_log_stride{}, rq_log_depth{}, rq_log_stride{};
  std::uint32_t send_cqn{}, receive_cqn{}, srqn{};
  bool fast_register{}, use_srq{};
  QpType type{};

  QpState state{};
  QpAttributes a;
  std::uint64_t life = 0;  ///< Of RESET to RESET: what was begun in another one is void
  bool gone{}, leaving{};  ///< DestroyQp is done; RESET or DestroyQp is under way
  unsigned busy{};         ///< Engines that have not come to rest
  std::array<std::uint32_t, kQpCounters> counters{};

  // Requester.
  std::uint16_t sq_producer{}, sq_next{}, sq_retired{};
  std::map<std::uint16_t, Bytes> fetched;  ///< WQEs: read ahead, or written to the window
  std::deque<Request> requests;            ///< In flight
  std::uint32_t next_psn{};                ///< Of the next request
  std::uint32_t send_psn{};                ///< Of the next packet; behind next_psn in a message and when sent again
  std::uint32_t una_psn{};                 ///< Oldest not acknowledged
  std::uint32_t sent_psn{};                ///< One past the newest that has left
  std::uint32_t ssn{}, limit_ssn{};        ///< Requests begun; those that credits allow (9.7.7.2)
  bool limited{};                          ///< The peer counts its receive WQEs
  std::uint64_t try_no{};                  ///< Counts going back: packets made before are void
  std::optional<std::uint32_t> went_back;  ///< To this PSN, and nothing has left since
  std::optional<std::uint32_t> gap;        ///< The response that is missing has been asked for again
  std::uint8_t retries{}, rnr_retries{};   ///< Left
  bool rnr_wait{};
  Deadline ack_timer;
  bool drain_notify{};
  bool first_only{};  ///< The first packet of a SEND beyond the credits is all that goes

  // Responder.
  std::uint16_t rq_producer{}, rq_head{}, rq_done{};
  std::uint32_t rq_psn{}, msn{};
  bool nak_sent{};           ///< A gap or an RNR NAK is outstanding
  std::uint8_t open_kind{};  ///< Of the message under way: op::SendFirst or op::WriteFirst
  bool open{};
  std::uint64_t write_va{};
  std::uint32_t write_key{}, write_left{}, message_bytes{};
  bool broken{};                                   ///< UC: the rest of a message is dropped
  std::optional<Receive> receive;                  ///< Taken and not completed
  bool receive_for_write{};                        ///< By an RDMA WRITE with immediate data
  std::optional<std::uint32_t> executed;           ///< PSN of the newest executed SEND or WRITE
  std::map<std::uint32_t, std::uint64_t> atomics;  ///< Results by PSN
  std::deque<std::uint32_t> atomic_order;
  std::deque<Packet> requests_in, responses_in;
  std::deque<Answer> answers;
  unsigned reads_open{};  ///< Reads and atomics of the peer that have no answer yet
  bool last_wqe_told{}, told_established{};

  Signal send_signal, request_signal, response_signal, answer_signal, rest_signal;

  /// Of RawPacket: the longest frame.
  [[nodiscard]] std::size_t mtu() const {
    return type == QpType::RawPacket ? kMaxFrame : std::size_t{128} << a.path_mtu;
  }
  [[nodiscard]] std::uint8_t index() const { return static_cast<std::uint8_t>(number % kQps); }
  /// Takes and serves packets.
  [[nodiscard]] bool receives() const { return state >= QpState::Rtr && state <= QpState::Sqe; }
};
using QpPtr = std::shared_ptr<Qp>;

/// While it lives an engine of the queue pair is at work.
class AtWork {
 public:
  explicit AtWork(const QpPtr& qp) : qp_(qp) { ++qp_->busy; }
  ~AtWork() {
    if (--qp_->busy == 0) qp_->rest_signal.raise();
  }
  AtWork(const AtWork&) = delete;

 private:
  QpPtr qp_;
};

}  // namespace rnic::reference
