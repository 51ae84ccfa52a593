#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "testbench/wire_check/queue_pair.hpp"

namespace rnic::wire_check {

/// A Requester or Responder of a queue pair across RESET and RTR. What the former incarnation had begun may leave when
/// the new one has begun, in front of the first packet of the new one. The wire does not show which packet that is: all
/// that explain what was seen are kept, and a packet is wrong when none explains it.
template <typename Role>
class Incarnations {
 public:
  [[nodiscard]] bool exists() const { return former_ || !fresh_.empty() || !current_.empty(); }

  /// Its queue pair is made ready anew. `leaves`: its packets may still leave.
  void end(bool leaves) {
    if (former_) {
      former_->distrust();  // that of either incarnation
    } else if (!current_.empty()) {
      former_ = std::move(current_.front());
      if (current_.size() > 1) former_->distrust();
    }
    current_.clear();
    fresh_.clear();
    if (!leaves) former_.reset();
  }
  /// The present incarnation begins, as this one or as another that begins with it.
  void begin(Role role) { add(former_ ? fresh_ : current_, std::move(role)); }
  /// What the former incarnation had begun has left, or never will.
  void settle() {
    former_.reset();
    for (Role& role : std::exchange(fresh_, {})) add(current_, std::move(role));
  }

  void sent(const Packet& packet, const Moment& now) {
    if (!former_ && current_.size() == 1) return current_.front().sent(packet, now);
    std::vector<Role> possible;
    for (const Role& role : current_) try_as(role, packet, now, possible);
    for (const Role& role : fresh_) try_as(role, packet, now, possible);
    std::vector<Role> former;
    if (former_) try_as(*former_, packet, now, former);
    if (possible.empty() && former.empty()) {
      if (current_.empty() && fresh_.empty()) return former_->sent(packet, now);
      possible.push_back(current_.empty() ? std::move(fresh_.front()) : std::move(current_.front()));
      possible.front().sent(packet, now);
    }
    current_ = std::move(possible);
    if (!former.empty()) {
      former_ = std::move(former.front());
    } else {
      former_.reset();
      fresh_.clear();
    }
  }

  /// Does it to all that may be the present incarnation.
  template <typename Action>
  void for_present(Action action) {
    for (Role& role : current_) action(role);
    for (Role& role : fresh_) action(role);
  }

 private:
  static void add(std::vector<Role>& roles, Role role) {
    if (std::find(roles.begin(), roles.end(), role) == roles.end()) roles.push_back(std::move(role));
  }
  /// What it has become by sending the packet, if it may.
  static void try_as(Role role, const Packet& packet, const Moment& now, std::vector<Role>& possible) {
    bool right = true;
    const ComplainOf quiet = [&right](const Packet&, const std::string&) { right = false; };
    const ComplainOf* const aloud = role.complain_to(quiet);
    role.sent(packet, now);
    role.complain_to(*aloud);
    if (right) add(possible, std::move(role));
  }

  std::optional<Role> former_;  ///< Of which there may be packets
  std::vector<Role> fresh_;     ///< The present one, before its first packet, as long as those of the former may leave
  std::vector<Role> current_;   ///< The present one: what it may have become
};

}  // namespace rnic::wire_check
