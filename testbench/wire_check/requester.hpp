#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "testbench/wire_check/queue_pair.hpp"

namespace rnic::wire_check {

/// The requests of one queue pair, as the wire has them: what may be sent, and what again and when (InfiniBand
/// specification 9.7.2, 9.7.3.1, 9.7.5.1.4, 9.7.6). It knows what has left its NIC and what has come to it, nothing
/// else; what only the NIC can know (that it has dropped an answer, that its timer runs) it takes for possible.
class Requester {
 public:
  /// `complain` outlives it.
  Requester(const Attributes& attributes, const ComplainOf& complain);

  /// Attributes that change while it sends: time-out, Read limit, path.
  void change(const Attributes& attributes) { attributes_ = attributes; }
  /// A request has left.
  void sent(const Packet& packet, const Moment& now);
  /// A response has come.
  void received(const Packet& packet, Moment now);
  /// Its send queue goes on after an error. Of an unreliable service: a message may have ended in its middle, and PSNs
  /// that it was to have are left out or not (10.3.1.7 does not say).
  void resume() { resumed_ = true; }
  /// Somebody else sends in the peer's name: nothing is judged any more.
  void distrust() { distrusted_ = true; }

  /// From now on it complains there; gives where it did before.
  const ComplainOf* complain_to(const ComplainOf& complain) { return std::exchange(complain_, &complain); }
  [[nodiscard]] bool operator==(const Requester&) const = default;

 private:
  /// A packet that has been sent and is not acknowledged. A Read has the PSNs of its responses.
  struct Sent {
    Operation operation{};
    std::uint32_t psn{}, span = 1;
    std::uint64_t va{};
    std::uint32_t rkey{}, length{};
    std::size_t bytes{};
    std::uint32_t got = 0;  ///< Of a Read: responses that have come in order
    Picoseconds at{};       ///< When it was sent last
    [[nodiscard]] bool operator==(const Sent&) const = default;

    [[nodiscard]] bool awaits_data() const {
      return operation == Operation::kReadRequest || operation == Operation::kCompareSwap ||
             operation == Operation::kFetchAdd;
    }
  };
  /// Why the requester may go back to a PSN.
  struct Reason {
    std::uint32_t psn{};
    Picoseconds came{}, not_before{};
    const char* what{};
    [[nodiscard]] bool operator==(const Reason&) const = default;
  };

  /// A response that has come, whatever it says.
  struct Answer {
    std::uint32_t psn{};
    Moment came;
    [[nodiscard]] bool operator==(const Answer&) const = default;
  };

  /// The time-out of a packet that has been acknowledged, as the NIC perhaps did not know yet, or was sent again for
  /// another reason.
  struct Expiry {
    std::uint32_t psn{};
    Picoseconds at{};
    Moment noted;
    [[nodiscard]] bool operator==(const Expiry&) const = default;
  };

  void begin(const Packet& packet, Picoseconds now);
  void check_message(const Packet& packet);
  void repeat(const Packet& packet, Moment now);
  void unreliable(const Packet& packet);
  void check_same(const Packet& packet, const Sent& before);
  [[nodiscard]] bool may_go_back(std::uint32_t psn, const Sent& target, Moment now);
  [[nodiscard]] std::uint32_t oldest() const { return window_.empty() ? next_ : window_.front().psn; }
  /// The first PSN of which no acknowledgement and no response has come.
  [[nodiscard]] std::uint32_t missing() const;
  [[nodiscard]] static Sent* holder(std::deque<Sent>& among, std::uint32_t psn);
  [[nodiscard]] bool goes_on(std::uint32_t psn) const;
  [[nodiscard]] Picoseconds time_out() const;
  void note_expiry(const Sent& sent, const Moment& now);
  void retire();
  bool acknowledge_before(std::uint32_t psn, const Moment& now);
  void take_response(const Packet& packet, const Moment& now);
  void refuse(const Packet& packet, const Moment& now);

  void complain(const Packet& packet, const std::string& what) const { (*complain_)(packet, what); }

  Attributes attributes_;
  const ComplainOf* complain_;
  std::deque<Sent> window_;
  std::deque<Sent> past_;   ///< The newest that are acknowledged: the NIC may have dropped what says so
  std::uint32_t next_;      ///< PSN of the next packet that is new
  std::uint32_t cursor_;    ///< PSN behind the newest packet
  bool open_ = false;       ///< The newest new packet did not end its message
  Operation last_{};        ///< Its operation
  std::uint64_t left_ = 0;  ///< Of an open WRITE, bytes to come
  std::vector<Reason> reasons_;
  std::deque<Expiry> expiries_;    ///< The newest
  std::deque<Answer> answers_;     ///< Those that may move the NIC still, and the newest
  Picoseconds refused_ = 0;        ///< When a fatal NAK came; 0: none has
  std::size_t after_refusal_ = 0;  ///< Bytes of payload sent since then
  bool resumed_ = false;
  bool distrusted_ = false;
};

}  // namespace rnic::wire_check
