// The steps of a VectorSession about connectors and listeners. Both are made with their first use.
#include <fmt/format.h>
#include <netinet/in.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>

#include "driver/kmd/port_tables.hpp"
#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {
namespace {

using Address = VectorConnection::Address;

constexpr std::uint8_t kUnwritten = 0x5A;
constexpr std::uint8_t kNobody = 99;  // no host has so high a number

/// An address of an API's caller.
struct SocketBytes {
  sockaddr_storage storage{};
  ULONG bytes{};
  [[nodiscard]] const sockaddr* generic() const { return reinterpret_cast<const sockaddr*>(&storage); }
};

SocketBytes socket_address(const std::array<std::uint8_t, 16>& ip, bool ipv6, std::uint16_t port) {
  SocketBytes to;
  if (ipv6) {
    auto& in6 = reinterpret_cast<sockaddr_in6&>(to.storage);
    in6.sin6_family = AF_INET6;
    in6.sin6_port = htons(port);
    std::memcpy(&in6.sin6_addr, ip.data(), ip.size());
    to.bytes = sizeof in6;
  } else {
    auto& in = reinterpret_cast<sockaddr_in&>(to.storage);
    in.sin_family = AF_INET;
    in.sin_port = htons(port);
    std::memcpy(&in.sin_addr, ip.data() + 12, sizeof in.sin_addr);
    to.bytes = sizeof in;
  }
  return to;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6 ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                                             : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

/// The address at which a host's QP1 answers: of IPv6 the link-local one.
std::array<std::uint8_t, 16> answering_address(Endpoint& endpoint, bool ipv6) {
  return ipv6 ? kmd::link_local_gid(mac_of(endpoint)) : ip_of(endpoint, false);
}

SocketBytes address_of(const VectorConnection& connection, Endpoint& own, Endpoint& peer, bool ipv6) {
  std::array<std::uint8_t, 16> ip{};
  switch (connection.address) {
    case Address::kPeer: ip = answering_address(peer, ipv6); break;
    case Address::kOwn: ip = answering_address(own, ipv6); break;
    case Address::kAny: break;
    case Address::kLoopback:
      if (!ipv6) ip[12] = 127;
      ip[15] = 1;
      break;
    case Address::kNobody:
      ip = ip_of(peer, ipv6);
      ip[15] = kNobody;
      break;
    case Address::kForeign:
      ipv6 = !ipv6;
      ip = answering_address(peer, ipv6);
      break;
    case Address::kNoFamily: break;
  }
  auto address = socket_address(ip, ipv6, connection.port);
  if (connection.address == Address::kNoFamily) address.storage.ss_family = AF_UNIX;
  if (connection.short_address) --address.bytes;
  return address;
}

/// What a call is given for private data: the text, or an address where nothing is.
const void* data_of(const VectorConnection& connection) {
  constexpr std::uintptr_t kNowhere = 16;
  return connection.bad_data ? reinterpret_cast<const void*>(kNowhere) : connection.data.data();
}

}  // namespace

/// Agents on QP1 and neighbours, as a host has them whose network is up.
void VectorSession::add_management() {
  for (std::size_t host = 0; host < sides_.size(); ++host) {
    auto& own = *sides_[host].endpoint;
    auto& peer = *sides_[1 - host].endpoint;
    for (const bool ipv6 : {false, true}) {
      require_success(own.kernel().port_tables().add_neighbour(ip_of(peer, ipv6), mac_of(peer)), "a neighbour");
    }
    sides_[host].management = std::make_unique<ManagementThread>(own.kernel(), own.host().device());
  }
}

IND2Connector& VectorSession::connector(const VectorStep& step, const std::string& name) {
  auto& made = connectors_[name];
  auto& endpoint = *side(step).endpoint;
  if (!made)
    require_success(endpoint.adapter().CreateConnector(IID_IND2Connector, endpoint.file(), made.put()),
                    "CreateConnector");
  return *made;
}

IND2Listener& VectorSession::listener(const VectorStep& step) {
  auto& made = listeners_[step.connection.object];
  auto& endpoint = *side(step).endpoint;
  if (!made)
    require_success(endpoint.adapter().CreateListener(IID_IND2Listener, endpoint.file(), made.put()), "CreateListener");
  return *made;
}

void VectorSession::begin(const VectorStep& step, IND2Overlapped& object,
                          const std::function<HRESULT(OVERLAPPED*)>& call) {
  auto [it, added] = notifications_.try_emplace(step.name);
  if (!added) throw VectorFailure(fmt::format("{}: a second notification \"{}\"", step.text, step.name));
  auto& notification = it->second;
  notification.overlapped = sides_[step.host].endpoint->open_event();
  notification.object = &object;
  notification.status = call(step.null != "overlapped" ? &notification.overlapped : nullptr);
  if (step.call) return expect_call(step, notification.status);
  if (FAILED(notification.status))
    throw VectorFailure(fmt::format("{}: the call returned {}", step.text, status_name(notification.status)));
}

void VectorSession::bind_address(const VectorStep& step) {
  const auto address = address_of(step.connection, *side(step).endpoint, *sides_[1 - step.host].endpoint, ipv6_);
  const sockaddr* const at = step.null == "address" ? nullptr : address.generic();
  expect_status(step, step.connection.is_listener ? listener(step).Bind(at, address.bytes)
                                                  : connector(step, step.connection.object).Bind(at, address.bytes));
}

void VectorSession::get_request(const VectorStep& step) {
  auto& on = listener(step);
  IND2Connector* const with = step.null == "connector" ? nullptr : &connector(step, step.connection.connector);
  begin(step, on, [&](OVERLAPPED* overlapped) { return on.GetConnectionRequest(with, overlapped); });
}

void VectorSession::connect_to(const VectorStep& step) {
  const auto& c = step.connection;
  auto& from = connector(step, c.object);
  const auto to = address_of(c, *side(step).endpoint, *sides_[1 - step.host].endpoint, ipv6_);
  begin(step, from, [&](OVERLAPPED* overlapped) {
    return from.Connect(step.null == "queue_pair" ? nullptr : &face(step),
                        step.null == "address" ? nullptr : to.generic(), to.bytes, c.inbound, c.outbound, data_of(c),
                        static_cast<ULONG>(c.data.size()), overlapped);
  });
}

void VectorSession::accept(const VectorStep& step) {
  const auto& c = step.connection;
  auto& on = connector(step, c.object);
  begin(step, on, [&](OVERLAPPED* overlapped) {
    return on.Accept(step.null == "queue_pair" ? nullptr : &face(step), c.inbound, c.outbound, data_of(c),
                     static_cast<ULONG>(c.data.size()), overlapped);
  });
}

void VectorSession::reject(const VectorStep& step) {
  const auto& c = step.connection;
  expect_status(step, connector(step, c.object).Reject(data_of(c), static_cast<ULONG>(c.data.size())));
}

void VectorSession::change_connection(const VectorStep& step) {
  auto& of = connector(step, step.connection.object);
  begin(step, of, [&](OVERLAPPED* overlapped) {
    switch (step.kind) {
      case StepKind::kCompleteConnect: return of.CompleteConnect(overlapped);
      case StepKind::kDisconnect: return of.Disconnect(overlapped);
      default: return of.NotifyDisconnect(overlapped);
    }
  });
}

void VectorSession::query_connection(const VectorStep& step) {
  using What = VectorConnection::What;
  switch (step.connection.what) {
    case What::kPrivateData: return query_private_data(step);
    case What::kReadLimits: return query_read_limits(step);
    default: return query_address(step);
  }
}

/// What does not fit is cut; the rest of the room stays as it was.
void VectorSession::query_private_data(const VectorStep& step) {
  const auto& c = step.connection;
  std::array<std::uint8_t, 256> data{};
  data.fill(kUnwritten);
  ULONG bytes = c.room.value_or(static_cast<std::uint32_t>(data.size()));
  const ULONG room = std::min<ULONG>(bytes, static_cast<ULONG>(data.size()));
  expect_status(step, connector(step, c.object).GetPrivateData(data.data(), step.null == "size" ? nullptr : &bytes));
  if (step.needs && bytes != *step.needs)
    throw VectorFailure(fmt::format("{}: {} bytes, expected {}", step.text, bytes, *step.needs));
  const bool copied = step.status == ND_SUCCESS || step.status == ND_BUFFER_OVERFLOW;
  const std::size_t there = copied ? std::min<std::size_t>(room, bytes) : 0;
  for (std::size_t i = 0; i < data.size(); ++i) {
    const std::uint8_t padded = i < c.data.size() ? static_cast<std::uint8_t>(c.data[i]) : std::uint8_t{0};
    const std::uint8_t expected = i < there ? padded : kUnwritten;
    if (data[i] != expected)
      throw VectorFailure(fmt::format("{}: byte {} is {:#04x}, expected {:#04x}", step.text, i, data[i], expected));
  }
}

void VectorSession::query_read_limits(const VectorStep& step) {
  const auto& c = step.connection;
  ULONG inbound = ~0U, outbound = ~0U;
  expect_status(step, connector(step, c.object)
                          .GetReadLimits(step.null == "inbound" ? nullptr : &inbound,
                                         step.null == "outbound" ? nullptr : &outbound));
  if (step.status != ND_SUCCESS) return;
  const bool right =
      (step.null == "inbound" || inbound == c.inbound) && (step.null == "outbound" || outbound == c.outbound);
  if (!right)
    throw VectorFailure(fmt::format("{}: inbound {}, outbound {}, expected {} and {}", step.text, inbound, outbound,
                                    c.inbound, c.outbound));
}

/// A port that the vector does not name is one of the ephemeral ones.
void VectorSession::query_address(const VectorStep& step) {
  constexpr std::uint16_t kFirstEphemeral = 49152;
  const auto& c = step.connection;
  const auto expected = address_of(c, *side(step).endpoint, *sides_[1 - step.host].endpoint, ipv6_);
  sockaddr_storage given;
  std::memset(&given, kUnwritten, sizeof given);
  const sockaddr_storage before = given;
  ULONG bytes = c.room.value_or(sizeof given);
  ULONG* const size = step.null == "size" ? nullptr : &bytes;
  auto* const to = reinterpret_cast<sockaddr*>(&given);
  const bool local = c.what == VectorConnection::What::kLocalAddress;
  HRESULT status{};
  if (c.is_listener)
    status = listener(step).GetLocalAddress(to, size);
  else
    status = local ? connector(step, c.object).GetLocalAddress(to, size)
                   : connector(step, c.object).GetPeerAddress(to, size);
  expect_status(step, status);
  if (step.needs && bytes != *step.needs)
    throw VectorFailure(fmt::format("{}: {} bytes, expected {}", step.text, bytes, *step.needs));
  if (step.status != ND_SUCCESS) {
    if (std::memcmp(&given, &before, sizeof given) != 0)
      throw VectorFailure(fmt::format("{}: it failed, and the address has changed", step.text));
    return;
  }
  const std::uint16_t port = port_of(given);
  const auto wanted = c.port != 0 ? expected : [&] {
    auto with_port = c;
    with_port.port = port;
    return address_of(with_port, *side(step).endpoint, *sides_[1 - step.host].endpoint, ipv6_);
  }();
  if (bytes != wanted.bytes || std::memcmp(&given, &wanted.storage, bytes) != 0 ||
      (c.port == 0 && port < kFirstEphemeral))
    throw VectorFailure(fmt::format("{}: another address, with port {}", step.text, port));
}

}  // namespace rnic::testbench
