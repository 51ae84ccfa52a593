#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <vector>

#include "driver/cm/message.hpp"
#include "driver/cm/port_space.hpp"
#include "driver/cm/state_table.hpp"
#include "driver/fresh_numbers.hpp"
#include "driver/result.hpp"

namespace rnic::cm {

/// 4.096 us * 2^n (12.7).
[[nodiscard]] constexpr std::uint64_t time_ns(std::uint8_t code) { return 4096ULL << code; }

struct Config {
  std::uint64_t guid{};                  ///< Of the channel adapter
  std::uint8_t response_timeout = 16;    ///< In which a message is answered: 268 ms
  std::uint8_t max_retries = 15;         ///< Of a message that is not answered
  std::uint8_t packet_lifetime = 14;     ///< 67 ms; TimeWait is twice that
  std::uint8_t longest_wait = 22;        ///< What a MRA may ask for, at most: 17 s
  std::uint8_t consumer_time = 22;       ///< What a MRA of ours asks for when the consumer has not answered a request
  std::uint8_t ready_time = 18;          ///< And when a queue pair is not ready yet: 1.1 s, in which a RTU may be lost
  std::uint32_t max_endpoints = 65'536;  ///< Of all consumers, those of TimeWait among them
  std::uint32_t max_remembered = 4'096;  ///< Answers that wait for all repetitions of their request, at a time
  unsigned id_bits = 32;                 ///< Of a communication ID, 32 at most
  std::uint8_t max_mtu = 5;              ///< Of the port, as ibv_mtu
};

/// What happened to an endpoint.
enum class EventType : std::uint8_t {
  kNone,
  kAddressResolved,
  kAddressError,
  kRouteResolved,
  kConnectRequest,   ///< Of a listener: another endpoint has come (`incoming`)
  kConnectResponse,  ///< The peer has accepted
  kEstablished,      ///< Passive: the peer is ready; datagrams: the peer has said which queue pair serves
  kRejected,         ///< By the peer, with `reason`
  kUnreachable,      ///< No answer
  kDisconnected,
  kTimeWaitExit,
  kDeviceRemoved,
  kGroupJoined,  ///< Of the owner's making
};

struct Event {
  EventType type{};
  bool datagram{};         ///< kConnectRequest: a SIDR REQ
  std::uint16_t reason{};  ///< Reason of a REJ, or status of a SIDR REP
  EndpointId incoming{};
  std::uint8_t data_length{};
  PrivateData<224> data{};  ///< Behind the header of annex A11
};

/// What comes with an input of the state table.
struct Details {
  Event event{};                         ///< For the consumer, if it is told
  std::span<const std::uint8_t> data{};  ///< For the peer, in a refusal
  std::uint64_t wait_ns{};               ///< That a MRA asks for
};

/// What the sides of a connection know of each other.
struct Facts {
  State state{};
  bool listening{};
  bool active{};
  Service service{};
  PortSpace space = PortSpace::kTcp;
  Gid local{};
  Gid remote{};
  std::uint16_t local_port{};
  std::uint16_t remote_port{};
  std::uint32_t local_qpn{};
  std::uint32_t receive_psn{};  ///< The first that the peer sends
  std::uint32_t remote_qpn{};
  std::uint32_t send_psn{};  ///< The first that it asks for
  std::uint32_t qkey{};      ///< Of the peer's queue pair, datagrams
  /// As the peer has said: how many Reads it takes at a time, and how many it will send.
  std::uint8_t responder_resources{};
  std::uint8_t initiator_depth{};
  std::uint8_t retry_count{};
  std::uint8_t rnr_retry{};  ///< That the peer asks for
  std::uint8_t path_mtu{};
  std::uint8_t ack_timeout{};
  std::uint8_t traffic_class{};
  std::uint8_t hop_limit{};
  std::uint32_t flow_label{};
  std::uint16_t pkey{};
  bool flow_control{};
  bool srq{};
};

/// A wish for a connection. The queue pair is the consumer's.
struct ConnectSpec {
  PortSpace space = PortSpace::kTcp;  ///< Of an endpoint that is not bound yet
  Gid local{};
  Gid remote{};
  std::uint16_t remote_port{};
  Service service{};
  std::uint32_t qpn{};
  std::uint32_t receive_psn{};
  std::uint8_t responder_resources{};
  std::uint8_t initiator_depth{};
  std::uint8_t retry_count = 7;
  std::uint8_t rnr_retry = 7;
  std::uint8_t path_mtu = 3;
  std::uint8_t ack_timeout = 14;
  std::uint8_t traffic_class{};
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label{};
  std::uint16_t pkey = 0xFFFF;
  bool flow_control = true;
  bool srq{};
  std::span<const std::uint8_t> data{};  ///< At most kMostConnectData
};

struct AcceptSpec {
  std::uint32_t qpn{};
  std::uint32_t receive_psn{};
  std::uint32_t qkey{};  ///< Datagrams
  std::uint8_t responder_resources{};
  std::uint8_t initiator_depth{};
  std::uint8_t rnr_retry = 7;
  bool flow_control = true;
  bool srq{};
  std::span<const std::uint8_t> data{};  ///< At most kMostAcceptData, datagrams kMostDatagramAcceptData
};

inline constexpr std::size_t kMostConnectData = 92 - IpHeader::kBytes;
inline constexpr std::size_t kMostAskData = 216 - IpHeader::kBytes;
inline constexpr std::size_t kMostAcceptData = 196;
inline constexpr std::size_t kMostDatagramAcceptData = 136;
inline constexpr std::size_t kMostRejectData = 148;

/// Those of which a queue pair may be connected, as bits.
inline constexpr std::uint8_t kEveryService =
    1U << static_cast<unsigned>(Service::kRc) | 1U << static_cast<unsigned>(Service::kUc);

/// What has come and gone, for who looks after it.
struct Counters {
  std::uint64_t received{};    ///< Datagrams, all of them
  std::uint64_t sent{};        ///< Those repeated among them
  std::uint64_t repeated{};    ///< No answer had come
  std::uint64_t malformed{};   ///< Dropped: no message of the connection manager
  std::uint64_t unfounded{};   ///< Dropped: of no connection, or not of this peer, or with addresses that are not so
  std::uint64_t unexpected{};  ///< Dropped: duplicates, and what has no meaning where the connection is
  std::uint64_t refused{};     ///< Requests that no consumer was asked about
  std::uint64_t no_memory{};   ///< Dropped: nothing was there to keep them in
};

/// The connection manager: endpoints, their connections, timers. It knows no device and no threads: what comes (a
/// datagram, a wish, a moment) is a call, what goes is a call of its Surroundings. docs/connection_manager.md says what
/// holds. Not thread safe.
class Manager {
 public:
  /// Who carries out what follows. Called in the middle of calls of the manager, which it must not call.
  class Surroundings {
   public:
    virtual ~Surroundings() = default;
    /// May lose it, as a wire may.
    virtual void send(const Gid& local, const Gid& remote, const Mad& mad) = 0;
    /// Events wait for the owner of an endpoint.
    virtual void tell(EndpointId endpoint) = 0;
    [[nodiscard]] virtual std::uint64_t random() = 0;
    /// Whether it is an address of this port.
    [[nodiscard]] virtual bool is_own(const Gid& gid) = 0;
    /// Whether this port may speak to a peer that has this P_Key.
    [[nodiscard]] virtual bool is_in_partition(std::uint16_t pkey) = 0;
  };
  static constexpr std::uint32_t kMostBacklog = 1024;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};

  /// `surroundings` outlives it.
  Manager(const Config& config, Surroundings& surroundings);
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager();

  // Wishes. Errors of all: kNotFound (no such endpoint), kInvalidState (the table has no such wish where it is).

  /// Errors: kOutOfResources, kOutOfMemory.
  [[nodiscard]] Result<EndpointId> create();
  /// It is told nothing any more. What is under way is ended with the peer, as the table says.
  void destroy(EndpointId id, std::uint64_t now);
  /// An address of this port or, all zero, each of them. Errors: kNotFound also for an address of nobody, those of
  /// PortNumbers.
  [[nodiscard]] Result<std::uint16_t> bind(EndpointId id, PortSpace space, const Gid& address, std::uint16_t port);
  /// `backlog`: requests that may wait to be taken; 0 or more than kMostBacklog: so many. `services`: queue pairs that
  /// may ask for a connection, by bits of Service.
  [[nodiscard]] Result<void> listen(EndpointId id, std::uint32_t backlog, std::uint8_t services = kEveryService);
  /// A port is bound if none is. Errors: kInvalidParameter (a field is out of range, multicast, data too long),
  /// kNotFound (the local address or the P_Key is not the port's), kBusy (the consumer has not taken what it was told,
  /// or the queue pair is in use), those of bind.
  [[nodiscard]] Result<void> connect(EndpointId id, const ConnectSpec& spec, std::uint64_t now);
  /// The same of a datagram service: which queue pair serves it.
  [[nodiscard]] Result<void> ask(EndpointId id, const ConnectSpec& spec, std::uint64_t now);
  [[nodiscard]] Result<void> accept(EndpointId id, const AcceptSpec& spec, std::uint64_t now);
  [[nodiscard]] Result<void> reject(EndpointId id, std::span<const std::uint8_t> data, std::uint64_t now);
  /// The active side's queue pair may send.
  [[nodiscard]] Result<void> establish(EndpointId id, std::uint64_t now);
  [[nodiscard]] Result<void> disconnect(EndpointId id, std::uint64_t now);
  /// The queue pair of a connection has had a packet of its peer (11.6.3.1).
  void communication_established(std::uint32_t qpn, std::uint64_t now);
  /// An event of the owner's making. Errors: kBusy (too many wait).
  [[nodiscard]] Result<void> post(EndpointId id, const Event& event);
  /// The oldest event; type kNone if none waits. An incoming endpoint is the caller's from then on.
  [[nodiscard]] Event take_event(EndpointId id);
  [[nodiscard]] bool has_events(EndpointId id) const;
  [[nodiscard]] Result<Facts> facts(EndpointId id) const;
  /// Whether a connection has that queue pair of this host, also in TimeWait: no other queue pair may get its number.
  [[nodiscard]] bool remembers(std::uint32_t qpn) const { return by_qpn_.contains(qpn); }

  // What comes.

  /// A datagram that came to QP1 of `local` from QP1 of `remote`.
  void receive(const Gid& local, const Gid& remote, std::span<const std::uint8_t> mad, std::uint64_t now);
  /// Does what is due.
  void run_timers(std::uint64_t now);
  /// When something will be; kNever: nothing waits for time.
  [[nodiscard]] std::uint64_t next_deadline() const;
  /// The device is gone: all connections are over, and nothing is sent. Listeners stay.
  void lose_device();

  [[nodiscard]] const Counters& counters() const { return counters_; }
  /// Entries of every table: what is left when a connection is over is a leak.
  struct Held {
    std::size_t endpoints{}, ids{}, peers{}, requests{}, queue_pairs{}, timers{}, ports{};
    bool operator==(const Held&) const = default;
  };
  [[nodiscard]] Held held() const {
    return {endpoints_.size(),  by_local_id_.size(), by_peer_id_.size() + by_peer_qpn_.size(),
            by_request_.size(), by_qpn_.size(),      timers_.size(),
            ports_.size()};
  }
  /// How many there are, those without an owner among them.
  [[nodiscard]] std::size_t endpoints() const { return endpoints_.size(); }

 private:
  struct Endpoint;
  struct Timer {
    std::uint64_t at{};
    EndpointId of{};
    auto operator<=>(const Timer&) const = default;
  };
  using Timers = std::set<Timer>;
  /// A number of a peer: a communication ID, a queue pair, or the ID of a SIDR REQ.
  struct PeerKey {
    Gid gid{};
    std::uint32_t number{};
    auto operator<=>(const PeerKey&) const = default;
  };
  using Peers = std::map<PeerKey, EndpointId>;

  [[nodiscard]] Endpoint* find(EndpointId id) const;
  [[nodiscard]] Endpoint* find_local(std::uint32_t communication_id) const;
  [[nodiscard]] Endpoint* find_peer(const Peers& peers, const Gid& gid, std::uint32_t number) const;
  /// The endpoint of both IDs, if the message comes from its peer.
  [[nodiscard]] Endpoint* find_pair(const Gid& local, const Gid& remote, std::uint32_t own_id, std::uint32_t peer_id);
  Result<Endpoint*> make_endpoint();
  [[nodiscard]] Result<void> check(const Endpoint& endpoint, const ConnectSpec& spec, std::size_t most_data) const;
  /// A port, an ID, and what the sides know. Throws std::bad_alloc, and has then changed nothing but the port.
  [[nodiscard]] Result<void> begin(Endpoint& endpoint, const ConnectSpec& spec);
  /// The peer has begun anew with a queue pair of which an older connection is known. False: that one is over, and the
  /// request may be looked at.
  bool is_stale(Endpoint& older, std::uint64_t now);
  [[nodiscard]] std::uint32_t draw_id();
  /// Whether it is a path MTU, and not above that of the port.
  [[nodiscard]] bool is_mtu(std::uint8_t mtu) const {
    return mtu >= 1 && mtu <= std::min<std::uint8_t>(config_.max_mtu, 5);
  }

  /// Follows the line of the table; false: there is none.
  bool apply(Endpoint& endpoint, Input input, std::uint64_t now, const Details& details = {});
  void act(Endpoint& endpoint, const Rule& rule, const Details& details, std::uint64_t now);
  template <typename Body>
  void say(Endpoint& endpoint, const Body& body);
  void say_at_once(const Gid& local, const Gid& remote, const Message& message);
  /// When TimeWait, which begins in the state `from` or anew, is over.
  [[nodiscard]] std::uint64_t linger_until(Endpoint& endpoint, State from, std::uint64_t now);
  void start_timer(Endpoint& endpoint, std::uint64_t at);
  void stop_timer(Endpoint& endpoint);
  void tell(Endpoint& endpoint, const Event& event);
  /// Its numbers mean nothing any more. Gone: an endpoint without an owner is deleted.
  void end_connection(Endpoint& endpoint);
  void forget(Endpoint& endpoint);
  void release_port(Endpoint& endpoint);

  void take(const Gid& local, const Gid& remote, const Message& message, const Req& req, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Mra& mra, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Rej& rej, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Rep& rep, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Rtu& rtu, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Dreq& dreq, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Drep& drep, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const SidrReq& req, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const SidrRep& rep, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Lap& lap, std::uint64_t now);
  void take(const Gid& local, const Gid& remote, const Message& message, const Apr& apr, std::uint64_t now);
  /// For a message that was found to be of this endpoint.
  void take_known(Endpoint* endpoint, Input input, std::uint64_t now, const Details& details = {});
  void refuse(const Gid& local, const Gid& remote, const Message& message, std::uint32_t peer_id, About about,
              Reason reason);
  void refuse(const Gid& local, const Gid& remote, const Message& message, const SidrReq& req, SidrRep::Status status);
  /// A new endpoint for a request to a listener; its numbers are known from then on.
  Endpoint* take_request(Endpoint& listener, const Gid& local, const Gid& remote, const Message& message,
                         const IpHeader& header, std::span<const std::uint8_t> data, bool datagram);
  [[nodiscard]] Endpoint* listener_for(std::uint64_t service_id, const Gid& local) const;

  const Config config_;
  Surroundings& around_;
  std::unordered_map<EndpointId, std::unique_ptr<Endpoint>> endpoints_;
  EndpointId last_id_{};
  const FreshNumbers ids_;  ///< A peer may keep an ID for longer than this side does
  std::uint64_t ids_drawn_{};
  std::unordered_map<std::uint32_t, EndpointId> by_local_id_;
  Peers by_peer_id_;                                      ///< Connections by the peer's communication ID
  Peers by_peer_qpn_;                                     ///< By its queue pair
  Peers by_request_;                                      ///< Datagram services: by the ID of the SIDR REQ
  std::unordered_map<std::uint32_t, EndpointId> by_qpn_;  ///< Connections by the own queue pair
  Timers timers_;
  PortNumbers ports_;
  std::uint32_t remembered_{};  ///< Endpoints
  Counters counters_;
};

}  // namespace rnic::cm
