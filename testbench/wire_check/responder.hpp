#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "testbench/wire_check/queue_pair.hpp"

namespace rnic::wire_check {

/// The answers of one queue pair, as the wire has them: what may be acknowledged, refused and sent as the data of a
/// Read, given what has come (InfiniBand specification 9.7.4, 9.7.5.1, 9.7.5.2). What has come its NIC may yet have
/// dropped, so the PSN that it expects is known from above only, until it says it.
class Responder {
 public:
  /// `complain` outlives it.
  Responder(const Attributes& attributes, const ComplainOf& complain);

  void change(const Attributes& attributes) { attributes_ = attributes; }
  /// A request has come.
  void received(const Packet& packet);
  /// An answer has left.
  void sent(const Packet& packet, const Moment& now);
  void distrust() { distrusted_ = true; }

  /// From now on it complains there; gives where it did before.
  const ComplainOf* complain_to(const ComplainOf& complain) { return std::exchange(complain_, &complain); }
  [[nodiscard]] bool operator==(const Responder&) const = default;

 private:
  /// A Read or an atomic that has come.
  struct Asked {
    std::uint32_t psn{}, span = 1;
    std::uint32_t length{};
    bool atomic{};
    [[nodiscard]] bool operator==(const Asked&) const = default;
  };
  struct End {
    std::uint32_t psn{}, msn{};
    [[nodiscard]] bool operator==(const End&) const = default;
  };

  void check_acknowledge(const Packet& packet, Picoseconds now);
  void check_msn(const Packet& packet, std::uint32_t before);
  void check_data(const Packet& packet);
  [[nodiscard]] std::ptrdiff_t times_come(std::uint32_t psn) const;
  void go_back(std::uint32_t psn);

  void complain(const Packet& packet, const std::string& what) const { (*complain_)(packet, what); }

  Attributes attributes_;
  const ComplainOf* complain_;
  std::uint32_t expected_;            ///< PSN, if all that came was taken
  std::uint32_t beyond_;              ///< Behind the last PSN that has come
  std::uint32_t msn_ = 0;             ///< Messages, if all that came was taken
  std::deque<End> ends_;              ///< Of messages, the newest
  std::deque<std::uint32_t> came_;    ///< PSNs that have come since the newest refusal, the newest
  std::deque<Asked> asked_;           ///< The newest
  std::optional<Asked> giving_;       ///< Whose data is being sent
  std::uint32_t given_ = 0;           ///< Responses of it
  std::optional<std::uint32_t> gap_;  ///< A NAK has asked for this PSN, which has not come since
  Picoseconds refused_ = 0;           ///< When a NAK ended the connection; 0: none has
  bool distrusted_ = false;
};

}  // namespace rnic::wire_check
