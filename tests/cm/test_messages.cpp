// Messages of the connection manager, byte by byte as the tables of the InfiniBand specification lay them out (volume
// 1, 12.6, 12.8, 12.11, 13.4.2), and the header of annex A11.
#include <catch2/catch.hpp>
#include <random>

#include "driver/cm/ip_service.hpp"
#include "driver/cm/message.hpp"

using namespace rnic::cm;

namespace {

/// Bytes that are not 0, by their place in the datagram.
struct Bytes {
  std::size_t at;
  std::vector<std::uint8_t> values;
};

Mad mad_of(std::uint8_t attribute, const std::vector<Bytes>& parts) {
  Mad mad{};
  // Base version 1, class 7, class version 2, method 3; transaction ID; attribute.
  const std::vector<Bytes> header{
      {0, {1, 7, 2, 3}}, {8, {0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18}}, {17, {attribute}}};
  for (const auto* list : {&header, &parts}) {
    for (const auto& part : *list)
      std::copy(part.values.begin(), part.values.end(), mad.begin() + static_cast<long>(part.at));
  }
  return mad;
}

constexpr std::uint64_t kTransaction = 0x1112131415161718;

template <std::size_t Room>
PrivateData<Room> ramp() {
  PrivateData<Room> data;
  for (std::size_t i = 0; i < Room; ++i) data[i] = static_cast<std::uint8_t>(i + 1);
  return data;
}
template <std::size_t Room>
Bytes ramp_at(std::size_t at) {
  const auto data = ramp<Room>();
  return {at, {data.begin(), data.end()}};
}

Gid gid_of(std::uint8_t first) {
  Gid gid;
  for (std::size_t i = 0; i < gid.size(); ++i) gid[i] = static_cast<std::uint8_t>(first + i);
  return gid;
}
Bytes gid_at(std::size_t at, std::uint8_t first) {
  const Gid gid = gid_of(first);
  return {at, {gid.begin(), gid.end()}};
}

template <typename Body>
void both_ways(const Body& body, const Mad& mad) {
  const Message message{kTransaction, body};
  CHECK(encode(message) == mad);
  const auto read = decode(mad);
  REQUIRE(read.message);
  CHECK(*read.message == message);
}

}  // namespace

TEST_CASE("REQ (12.6.5)") {
  Req req;
  req.local_id = 0xA1A2A3A4;
  req.service_id = 0x0000000001061CE7;  // port 7399
  req.ca_guid = 0xB1B2B3B4B5B6B7B8;
  req.qkey = 0xC1C2C3C4;
  req.qpn = 0xD1D2D3;
  req.responder_resources = 0x10;
  req.eecn = 0xE1E2E3;
  req.initiator_depth = 0x0F;
  req.remote_eecn = 0xF1F2F3;
  req.remote_response_timeout = 0b10011;
  req.service = Service::kUc;
  req.flow_control = true;
  req.psn = 0x212223;
  req.local_response_timeout = 0b10110;
  req.retry_count = 0b101;
  req.pkey = 0x8001;
  req.path_mtu = 5;
  req.rdc_exists = false;
  req.rnr_retry = 0b110;
  req.max_retries = 0b1111;
  req.srq = true;
  req.extended_service = 0b001;
  req.primary = {.local_lid = 0x3132,
                 .remote_lid = 0x3334,
                 .local_gid = gid_of(0x40),
                 .remote_gid = gid_of(0x60),
                 .flow_label = 0x81828,
                 .packet_rate = 0b100010,
                 .traffic_class = 0x84,
                 .hop_limit = 0x85,
                 .service_level = 0x9,
                 .subnet_local = true,
                 .ack_timeout = 0b01110};
  req.alternate = {.local_lid = 0x5152,
                   .remote_lid = 0x5354,
                   .local_gid = gid_of(0xA0),
                   .remote_gid = gid_of(0xC0),
                   .flow_label = 0x00001,
                   .packet_rate = 1,
                   .traffic_class = 2,
                   .hop_limit = 3,
                   .service_level = 4,
                   .subnet_local = false,
                   .ack_timeout = 5};
  req.data = ramp<92>();
  both_ways(req, mad_of(0x10, {{24, {0xA1, 0xA2, 0xA3, 0xA4}},
                               {32, {0, 0, 0, 0, 0x01, 0x06, 0x1C, 0xE7}},
                               {40, {0xB1, 0xB2, 0xB3, 0xB4, 0xB5, 0xB6, 0xB7, 0xB8}},
                               {52, {0xC1, 0xC2, 0xC3, 0xC4}},
                               {56, {0xD1, 0xD2, 0xD3, 0x10}},
                               {60, {0xE1, 0xE2, 0xE3, 0x0F}},
                               {64, {0xF1, 0xF2, 0xF3, 0b10011'01'1}},
                               {68, {0x21, 0x22, 0x23, 0b10110'101}},
                               {72, {0x80, 0x01, 0b0101'0'110, 0b1111'1'001}},
                               {76, {0x31, 0x32, 0x33, 0x34}},
                               gid_at(80, 0x40),
                               gid_at(96, 0x60),
                               {112, {0x81, 0x82, 0x80, 0b00'100010, 0x84, 0x85, 0b1001'1'000, 0b01110'000}},
                               {120, {0x51, 0x52, 0x53, 0x54}},
                               gid_at(124, 0xA0),
                               gid_at(140, 0xC0),
                               {156, {0x00, 0x00, 0x10, 1, 2, 3, 0x40, 5 << 3}},
                               ramp_at<92>(164)}));
}

TEST_CASE("MRA (12.6.6)") {
  both_ways(Mra{.local_id = 0x01020304,
                .remote_id = 0x05060708,
                .about = About::kRep,
                .service_timeout = 0b10101,
                .data = ramp<222>()},
            mad_of(0x11, {{24, {1, 2, 3, 4, 5, 6, 7, 8, 0b01'000000, 0b10101'000}}, ramp_at<222>(34)}));
}

TEST_CASE("REJ (12.6.7)") {
  both_ways(
      Rej{.local_id = 0x01020304,
          .remote_id = 0x05060708,
          .about = About::kOther,
          .info_length = 72,
          .reason = Reason::kConsumer,
          .info = ramp<72>(),
          .data = ramp<148>()},
      mad_of(0x12, {{24, {1, 2, 3, 4, 5, 6, 7, 8, 0b10'000000, 72 << 1, 0, 28}}, ramp_at<72>(36), ramp_at<148>(108)}));
}

TEST_CASE("REP (12.6.8)") {
  both_ways(Rep{.local_id = 0x01020304,
                .remote_id = 0x05060708,
                .qkey = 0x090A0B0C,
                .qpn = 0x0D0E0F,
                .eecn = 0x101112,
                .psn = 0x131415,
                .responder_resources = 0x16,
                .initiator_depth = 0x17,
                .target_ack_delay = 0b11001,
                .failover = 0b10,
                .flow_control = true,
                .rnr_retry = 0b111,
                .srq = true,
                .ca_guid = 0x2122232425262728,
                .data = ramp<196>()},
            mad_of(0x13, {{24, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 0, 0x10, 0x11, 0x12, 0}},
                          {44, {0x13, 0x14, 0x15, 0, 0x16, 0x17, 0b11001'10'1, 0b111'1'0000}},
                          {52, {0x21, 0x22, 0x23, 0x24, 0x25, 0x26, 0x27, 0x28}},
                          ramp_at<196>(60)}));
}

TEST_CASE("RTU, DREQ, DREP (12.6.9 to 12.6.11)") {
  const Bytes ids{24, {1, 2, 3, 4, 5, 6, 7, 8}};
  both_ways(Rtu{.local_id = 0x01020304, .remote_id = 0x05060708, .data = ramp<224>()},
            mad_of(0x14, {ids, ramp_at<224>(32)}));
  both_ways(Dreq{.local_id = 0x01020304, .remote_id = 0x05060708, .remote_qpn = 0x0A0B0C, .data = ramp<220>()},
            mad_of(0x15, {ids, {32, {0x0A, 0x0B, 0x0C}}, ramp_at<220>(36)}));
  both_ways(Drep{.local_id = 0x01020304, .remote_id = 0x05060708, .data = ramp<224>()},
            mad_of(0x16, {ids, ramp_at<224>(32)}));
}

TEST_CASE("LAP and APR (12.8)") {
  const Bytes ids{24, {1, 2, 3, 4, 5, 6, 7, 8}};
  both_ways(Lap{.local_id = 0x01020304,
                .remote_id = 0x05060708,
                .remote_qpn = 0x0A0B0C,
                .remote_response_timeout = 0b10010,
                .data = ramp<168>()},
            mad_of(0x19, {ids, {36, {0x0A, 0x0B, 0x0C, 0b10010'000}}, ramp_at<168>(88)}));
  both_ways(Apr{.local_id = 0x01020304,
                .remote_id = 0x05060708,
                .info_length = 3,
                .status = Apr::kNotSupported,
                .info = ramp<72>(),
                .data = ramp<148>()},
            mad_of(0x1A, {ids, {32, {3, 2}}, ramp_at<72>(36), ramp_at<148>(108)}));
}

TEST_CASE("SIDR REQ and SIDR REP (12.11)") {
  both_ways(SidrReq{.request_id = 0x01020304, .pkey = 0xFFFF, .service_id = 0x0000000001111234, .data = ramp<216>()},
            mad_of(0x17, {{24, {1, 2, 3, 4, 0xFF, 0xFF, 0, 0, 0, 0, 0, 0, 0x01, 0x11, 0x12, 0x34}}, ramp_at<216>(40)}));
  both_ways(SidrRep{.request_id = 0x01020304,
                    .status = SidrRep::Status::kNoQp,
                    .info_length = 5,
                    .qpn = 0x0A0B0C,
                    .service_id = 0x0000000001111234,
                    .qkey = 0x01234567,
                    .info = ramp<72>(),
                    .data = ramp<136>()},
            mad_of(0x18, {{24, {1, 2, 3, 4, 3, 5, 0, 0, 0x0A, 0x0B, 0x0C, 0}},
                          {36, {0, 0, 0, 0, 0x01, 0x11, 0x12, 0x34}},
                          {44, {0x01, 0x23, 0x45, 0x67}},
                          ramp_at<72>(48),
                          ramp_at<136>(120)}));
}

TEST_CASE("reserved fields are sent as 0 and not looked at (13.4.7)") {
  Mad mad = encode({kTransaction, Rtu{.local_id = 1, .remote_id = 2}});
  mad[4] = mad[5] = mad[6] = mad[7] = mad[18] = mad[19] = 0xFF;  // status, class specific, reserved
  CHECK(decode(mad).message);
  Mad req = encode({kTransaction, Req{.local_id = 9}});
  for (const std::size_t at : {28, 29, 30, 31, 48, 49, 50, 51}) req[at] = 0xFF;
  req[24 + 91] |= 0xC0;
  req[24 + 94] |= 0x07;
  REQUIRE(decode(req).message);
  CHECK(std::get<Req>(decode(req).message->body) == Req{.local_id = 9});
}

TEST_CASE("what is no message is named") {
  const Mad good = encode({kTransaction, Mra{}});
  const auto lie = [&](std::size_t at, std::uint8_t value) {
    Mad mad = good;
    mad[at] = value;
    const auto read = decode(mad);
    CHECK_FALSE(read.message);
    return read.lie;
  };
  CHECK(lie(0, 2) == Lie::kNoClass);
  CHECK(lie(1, 3) == Lie::kNoClass);  // subnet administration
  CHECK(lie(2, 1) == Lie::kClassVersion);
  CHECK(lie(3, 0x83) == Lie::kMethod);
  CHECK(lie(3, 0x01) == Lie::kMethod);
  CHECK(lie(16, 1) == Lie::kAttribute);
  CHECK(lie(17, 0x0F) == Lie::kAttribute);
  CHECK(lie(17, 0x1B) == Lie::kAttribute);
  CHECK(lie(17, 0x01) == Lie::kAttribute);  // ClassPortInfo
  CHECK(lie(23, 1) == Lie::kAttribute);     // modifier
  CHECK(lie(32, 0xC0) == Lie::kField);      // MRA about a message that there is not
  CHECK(decode(std::span(good).first(255)).lie == Lie::kLength);
  CHECK(decode({}).lie == Lie::kLength);
  Mad rej = encode({kTransaction, Rej{}});
  rej[33] = 73 << 1;
  CHECK(decode(rej).lie == Lie::kField);
  Mad sidr = encode({kTransaction, SidrRep{}});
  sidr[28] = 6;
  CHECK(decode(sidr).lie == Lie::kField);
}

TEST_CASE("any bytes are read without harm, and what is read is written the same") {
  std::mt19937_64 random(20);
  for (int i = 0; i < 20'000; ++i) {
    Mad mad;
    for (auto& byte : mad) byte = static_cast<std::uint8_t>(random());
    mad[0] = 1;
    mad[1] = 7;
    mad[2] = 2;
    mad[3] = 3;
    mad[16] = 0;
    mad[17] = static_cast<std::uint8_t>(0x10 + random() % 12);
    for (const std::size_t at : {20, 21, 22, 23}) mad[at] = 0;
    const auto read = decode(mad);
    if (!read.message) continue;
    const auto again = decode(encode(*read.message));
    REQUIRE(again.message);
    CHECK(*again.message == *read.message);
  }
}

TEST_CASE("the header of IP services (A11.4)") {
  CHECK(service_id_of(PortSpace::kTcp, 7174) == 0x0000000001061C06);
  CHECK(service_id_of(PortSpace::kUdp, 1) == 0x0000000001110001);
  CHECK(port_of(0x0000000001061C06) == ServicePort{PortSpace::kTcp, 7174});
  CHECK_FALSE(port_of(0x0000000001071C06));
  CHECK_FALSE(port_of(0x1000000001061C06));
  Gid v4{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1}, other = v4;
  other[15] = 2;
  const IpHeader header{.source_port = 0xC123, .source = v4, .destination = other};
  std::array<std::uint8_t, 36> bytes{0x00, 0x40, 0xC1, 0x23};
  bytes[16] = bytes[32] = 10;
  bytes[19] = 1;
  bytes[35] = 2;
  CHECK(encode(header) == bytes);
  CHECK(read_ip_header(bytes) == header);
  const IpHeader six{.source_port = 1, .source = gid_of(0x20), .destination = gid_of(0x30)};
  const auto of_six = encode(six);
  CHECK(of_six[1] == 0x60);
  CHECK(of_six[4] == 0x20);
  CHECK(of_six[20] == 0x30);
  CHECK(read_ip_header(of_six) == six);
  bytes[0] = 0x10;  // major version 1
  CHECK_FALSE(read_ip_header(bytes));
  bytes[0] = 0;
  bytes[1] = 0x50;
  CHECK_FALSE(read_ip_header(bytes));
  CHECK_FALSE(read_ip_header(std::span(bytes).first(35)));
}
