// The steps of a vector about connectors and listeners of NetworkDirect.
#include <fmt/format.h>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using Names = VectorReader::Names;
using Reader = VectorReader;
using Address = VectorConnection::Address;

constexpr std::size_t kMostData = 1 << 20;  ///< Far more than a message of the connection manager holds

const Names kAddresses = {{"peer", number_of(Address::kPeer)},         {"own", number_of(Address::kOwn)},
                          {"any", number_of(Address::kAny)},           {"loopback", number_of(Address::kLoopback)},
                          {"nobody", number_of(Address::kNobody)},     {"foreign", number_of(Address::kForeign)},
                          {"no_family", number_of(Address::kNoFamily)}};

void read_address(Reader& from, VectorStep& to, Address fallback) {
  to.connection.address = static_cast<Address>(from.name("address", kAddresses, number_of(fallback)));
  to.connection.port = from.number<std::uint16_t>("port", 0);
  to.connection.short_address = from.boolean("short_address", false);
}

/// Private data: text, or a number of bytes of it, or a pointer to nothing.
void read_data(Reader& from, VectorStep& to) {
  if (const auto* data = from.find("data")) {
    if (!data->is_string()) from.fail("\"data\" must be a string");
    to.connection.data = data->get<std::string>();
  }
  if (from.find("data_bytes")) {
    const auto bytes = from.number<std::size_t>("data_bytes");
    if (bytes > kMostData) from.fail(fmt::format("\"data_bytes\" is at most {}", kMostData));
    to.connection.data.assign(bytes, 'x');
  }
  to.connection.bad_data = from.boolean("bad_data", false);
}

void read_limits(Reader& from, VectorStep& to) {
  to.connection.inbound = from.number<std::uint32_t>("inbound", 4);
  to.connection.outbound = from.number<std::uint32_t>("outbound", 4);
}

/// An overlapped call: the notification that it is, and what it returns by itself.
void read_request(Reader& from, VectorStep& to) {
  to.name = from.text("request");
  read_call(from, to);
}

void read_query(Reader& from, VectorStep& to) {
  using What = VectorConnection::What;
  to.connection.what = static_cast<What>(from.name("what", {{"private_data", number_of(What::kPrivateData)},
                                                            {"read_limits", number_of(What::kReadLimits)},
                                                            {"local_address", number_of(What::kLocalAddress)},
                                                            {"peer_address", number_of(What::kPeerAddress)}}));
  to.status = read_status(from);
  read_null(from, to, {{"size", 0}, {"inbound", 0}, {"outbound", 0}});
  if (const auto* room = from.find("room")) to.connection.room = from.to_number<std::uint32_t>(*room, "room");
  if (const auto* needs = from.find("needs")) to.needs = from.to_number<std::uint32_t>(*needs, "needs");
  switch (to.connection.what) {
    case What::kPrivateData: return read_data(from, to);
    case What::kReadLimits: return read_limits(from, to);
    default: return read_address(from, to, to.connection.what == What::kLocalAddress ? Address::kOwn : Address::kPeer);
  }
}

}  // namespace

void read_connection_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  if (!setup.connections) from.fail("the setup has no \"connections\"");
  to.connection.object = from.text("name");
  switch (to.kind) {
    case StepKind::kBindAddress:
      to.connection.is_listener = from.boolean("listener", false);
      read_address(from, to, Address::kOwn);
      read_null(from, to, {{"address", 0}});
      to.status = read_status(from);
      return;
    case StepKind::kListen:
      to.connection.is_listener = true;
      to.connection.backlog = from.number<std::uint32_t>("backlog", 0);
      to.status = read_status(from);
      return;
    case StepKind::kGetRequest:
      to.connection.is_listener = true;
      to.connection.connector = from.text("connector");
      read_null(from, to, {{"connector", 0}, {"overlapped", 0}});
      return read_request(from, to);
    case StepKind::kConnect:
      to.qp = read_qp(from, setup, "qp");
      read_address(from, to, Address::kPeer);
      read_limits(from, to);
      read_data(from, to);
      read_null(from, to, {{"queue_pair", 0}, {"address", 0}, {"overlapped", 0}});
      return read_request(from, to);
    case StepKind::kAccept:
      to.qp = read_qp(from, setup, "qp");
      read_limits(from, to);
      read_data(from, to);
      read_null(from, to, {{"queue_pair", 0}, {"overlapped", 0}});
      return read_request(from, to);
    case StepKind::kReject:
      read_data(from, to);
      to.status = read_status(from);
      return;
    case StepKind::kQueryConnection:
      to.connection.is_listener = from.boolean("listener", false);
      read_query(from, to);
      if (to.connection.is_listener && to.connection.what != VectorConnection::What::kLocalAddress)
        from.fail("a listener has a \"local_address\" alone");
      return;
    default:  // kCompleteConnect, kDisconnect, kNotifyDisconnect
      read_null(from, to, {{"overlapped", 0}});
      return read_request(from, to);
  }
}

}  // namespace rnic::testbench
