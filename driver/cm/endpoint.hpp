#pragma once

#include "driver/cm/manager.hpp"

namespace rnic::cm {

/// What a consumer has: bound, listening, or one side of a connection.
struct Manager::Endpoint {
  EndpointId id{};
  bool owned = true;
  Facts facts;
  bool bound{};  ///< The port is its own, not that of the listener to which the request came
  Gid bound_to{};
  // Listeners.
  std::uint32_t backlog{};
  std::uint8_t services{};  ///< Bits of Service
  std::uint32_t waiting{};  ///< Requests that have not been taken
  // Its connection.
  std::uint64_t service_id{};
  std::uint32_t local_id{};  ///< 0: it has none
  std::uint32_t remote_id{};
  std::uint64_t transaction{};
  std::uint64_t answer_ns{};    ///< In which the peer answers
  std::uint64_t linger_ns{};    ///< How long its TimeWait lasts
  std::uint64_t asked_until{};  ///< Of a request: how long its peer may say it again
  bool remembered{};            ///< It is waited for in TimeWait
  std::optional<Mad> last;      ///< The message that was sent last
  About last_of_peer{};         ///< What a MRA or REJ of ours is about
  std::uint8_t retries_left{};
  bool answered{};                  ///< SIDR REQ of a peer: `last` is the answer
  std::optional<ConnectSpec> wish;  ///< Of the active side, without its data
  PrivateData<92> request_data{};
  PrivateData<216> ask_data{};
  AcceptSpec answer{};  ///< Of the passive side, without its data
  PrivateData<196> answer_data{};

  std::deque<Event> incoming;  ///< Of a listener
  std::vector<Event> events;   ///< Room is there for all that may come
  Timers::node_type timer;     ///< Not in the set while it is not running
  std::uint64_t due = kNever;
};

}  // namespace rnic::cm
