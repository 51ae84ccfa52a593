#include "driver/cm/message.hpp"

#include <type_traits>

namespace rnic::cm {
namespace {

// The header of every management datagram (13.4.2), and what the class has of it (16.7).
constexpr std::size_t kHeaderBytes = 24;
constexpr std::uint8_t kBaseVersion = 1;
constexpr std::uint8_t kClass = 0x07;  // Communication Management
constexpr std::uint8_t kClassVersion = 2;
constexpr std::uint8_t kSend = 0x03;  // method ComMgtSend, no response bit

/// Puts fields into the data of a datagram.
class Writer {
 public:
  explicit Writer(Mad& mad) : data_(mad.data() + kHeaderBytes) {}

  /// `bit` counts from the most significant one of the byte.
  template <typename T>
  void operator()(const T& field, std::size_t byte, unsigned bit, unsigned width) {
    auto value = static_cast<std::uint64_t>(field);
    for (unsigned i = 0; i < width; ++i, value >>= 1) {
      const std::size_t at = byte * 8 + bit + width - 1 - i;
      if ((value & 1) != 0) data_[at / 8] |= static_cast<std::uint8_t>(0x80U >> at % 8);
    }
  }
  template <std::size_t Bytes>
  void operator()(const std::array<std::uint8_t, Bytes>& field, std::size_t byte) {
    std::copy(field.begin(), field.end(), data_ + byte);
  }

 private:
  std::uint8_t* data_;
};

/// Takes them out.
class Reader {
 public:
  explicit Reader(std::span<const std::uint8_t> mad) : data_(mad.subspan(kHeaderBytes)) {}

  template <typename T>
  void operator()(T& field, std::size_t byte, unsigned bit, unsigned width) {
    std::uint64_t value = 0;
    for (std::size_t at = byte * 8 + bit; at < byte * 8 + bit + width; ++at)
      value = value << 1 | (data_[at / 8] >> (7 - at % 8) & 1U);
    field = static_cast<T>(value);
  }
  template <std::size_t Bytes>
  void operator()(std::array<std::uint8_t, Bytes>& field, std::size_t byte) {
    std::copy_n(data_.begin() + static_cast<std::ptrdiff_t>(byte), Bytes, field.begin());
  }

 private:
  std::span<const std::uint8_t> data_;
};

// Layouts: field, byte behind the header, bit of it from the top, bits. Each is read and written by the same lines.

/// Path of a REQ, which begins at `at` (table of REQ message contents).
template <typename Field, typename Path>
void lay_out_path(Field& f, Path& p, std::size_t at) {
  f(p.local_lid, at, 0, 16);
  f(p.remote_lid, at + 2, 0, 16);
  f(p.local_gid, at + 4);
  f(p.remote_gid, at + 20);
  f(p.flow_label, at + 36, 0, 20);
  f(p.packet_rate, at + 39, 2, 6);
  f(p.traffic_class, at + 40, 0, 8);
  f(p.hop_limit, at + 41, 0, 8);
  f(p.service_level, at + 42, 0, 4);
  f(p.subnet_local, at + 42, 4, 1);
  f(p.ack_timeout, at + 43, 0, 5);
}

template <typename Body, typename Field, typename M>
void lay_out(Field& f, M& m) {
  if constexpr (std::is_same_v<Body, Req>) {
    f(m.local_id, 0, 0, 32);
    f(m.service_id, 8, 0, 64);
    f(m.ca_guid, 16, 0, 64);
    f(m.qkey, 28, 0, 32);
    f(m.qpn, 32, 0, 24);
    f(m.responder_resources, 35, 0, 8);
    f(m.eecn, 36, 0, 24);
    f(m.initiator_depth, 39, 0, 8);
    f(m.remote_eecn, 40, 0, 24);
    f(m.remote_response_timeout, 43, 0, 5);
    f(m.service, 43, 5, 2);
    f(m.flow_control, 43, 7, 1);
    f(m.psn, 44, 0, 24);
    f(m.local_response_timeout, 47, 0, 5);
    f(m.retry_count, 47, 5, 3);
    f(m.pkey, 48, 0, 16);
    f(m.path_mtu, 50, 0, 4);
    f(m.rdc_exists, 50, 4, 1);
    f(m.rnr_retry, 50, 5, 3);
    f(m.max_retries, 51, 0, 4);
    f(m.srq, 51, 4, 1);
    f(m.extended_service, 51, 5, 3);
    lay_out_path(f, m.primary, 52);
    lay_out_path(f, m.alternate, 96);
    f(m.data, 140);
  } else if constexpr (std::is_same_v<Body, SidrReq>) {
    f(m.request_id, 0, 0, 32);
    f(m.pkey, 4, 0, 16);
    f(m.service_id, 8, 0, 64);
    f(m.data, 16);
  } else if constexpr (std::is_same_v<Body, SidrRep>) {
    f(m.request_id, 0, 0, 32);
    f(m.status, 4, 0, 8);
    f(m.info_length, 5, 0, 8);
    f(m.qpn, 8, 0, 24);
    f(m.service_id, 12, 0, 64);
    f(m.qkey, 20, 0, 32);
    f(m.info, 24);
    f(m.data, 96);
  } else {
    f(m.local_id, 0, 0, 32);
    f(m.remote_id, 4, 0, 32);
    if constexpr (std::is_same_v<Body, Mra>) {
      f(m.about, 8, 0, 2);
      f(m.service_timeout, 9, 0, 5);
      f(m.data, 10);
    } else if constexpr (std::is_same_v<Body, Rej>) {
      f(m.about, 8, 0, 2);
      f(m.info_length, 9, 0, 7);
      f(m.reason, 10, 0, 16);
      f(m.info, 12);
      f(m.data, 84);
    } else if constexpr (std::is_same_v<Body, Rep>) {
      f(m.qkey, 8, 0, 32);
      f(m.qpn, 12, 0, 24);
      f(m.eecn, 16, 0, 24);
      f(m.psn, 20, 0, 24);
      f(m.responder_resources, 24, 0, 8);
      f(m.initiator_depth, 25, 0, 8);
      f(m.target_ack_delay, 26, 0, 5);
      f(m.failover, 26, 5, 2);
      f(m.flow_control, 26, 7, 1);
      f(m.rnr_retry, 27, 0, 3);
      f(m.srq, 27, 3, 1);
      f(m.ca_guid, 28, 0, 64);
      f(m.data, 36);
    } else if constexpr (std::is_same_v<Body, Dreq>) {
      f(m.remote_qpn, 8, 0, 24);
      f(m.data, 12);
    } else if constexpr (std::is_same_v<Body, Lap>) {
      f(m.remote_qpn, 12, 0, 24);
      f(m.remote_response_timeout, 15, 0, 5);
      f(m.data, 64);
    } else if constexpr (std::is_same_v<Body, Apr>) {
      f(m.info_length, 8, 0, 8);
      f(m.status, 9, 0, 8);
      f(m.info, 12);
      f(m.data, 84);
    } else {
      f(m.data, 8);
    }
  }
}

/// Whether its fields have values that there are. What a consumer or a queue pair may refuse is not judged here.
template <typename Body>
bool is_sound(const Body& m) {
  constexpr std::uint8_t kMostInfo = 72;
  if constexpr (std::is_same_v<Body, Mra>) return m.about <= About::kOther;
  if constexpr (std::is_same_v<Body, Rej>) return m.about <= About::kOther && m.info_length <= kMostInfo;
  if constexpr (std::is_same_v<Body, Apr>) return m.info_length <= kMostInfo;
  if constexpr (std::is_same_v<Body, SidrRep>)
    return m.info_length <= kMostInfo && m.status <= SidrRep::Status::kUnsupportedVersion;
  return true;
}

template <typename Body>
Decoded read_body(std::uint64_t transaction, std::span<const std::uint8_t> mad) {
  Body body;
  Reader reader(mad);
  lay_out<Body>(reader, body);
  if (!is_sound(body)) return {.lie = Lie::kField};
  return {.message = Message{transaction, body}};
}

std::uint64_t number_at(std::span<const std::uint8_t> mad, std::size_t at, std::size_t bytes) {
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < bytes; ++i) number = number << 8 | mad[at + i];
  return number;
}

}  // namespace

Mad encode(const Message& message) {
  Mad mad{};
  std::visit(
      [&]<typename Body>(const Body& body) {
        mad[0] = kBaseVersion;
        mad[1] = kClass;
        mad[2] = kClassVersion;
        mad[3] = kSend;
        for (unsigned i = 0; i < 8; ++i) mad[8 + i] = static_cast<std::uint8_t>(message.transaction >> 8 * (7 - i));
        mad[16] = static_cast<std::uint8_t>(static_cast<unsigned>(Body::kAttribute) >> 8);
        mad[17] = static_cast<std::uint8_t>(Body::kAttribute);
        Writer writer(mad);
        lay_out<Body>(writer, body);
      },
      message.body);
  return mad;
}

Decoded decode(std::span<const std::uint8_t> mad) {
  if (mad.size() != kMadBytes) return {.lie = Lie::kLength};
  if (mad[0] != kBaseVersion || mad[1] != kClass) return {.lie = Lie::kNoClass};
  if (mad[2] != kClassVersion) return {.lie = Lie::kClassVersion};
  if (mad[3] != kSend) return {.lie = Lie::kMethod};
  const std::uint64_t transaction = number_at(mad, 8, 8);
  if (number_at(mad, 20, 4) != 0) return {.lie = Lie::kAttribute};
  switch (static_cast<Attribute>(number_at(mad, 16, 2))) {
    case Attribute::kReq: return read_body<Req>(transaction, mad);
    case Attribute::kMra: return read_body<Mra>(transaction, mad);
    case Attribute::kRej: return read_body<Rej>(transaction, mad);
    case Attribute::kRep: return read_body<Rep>(transaction, mad);
    case Attribute::kRtu: return read_body<Rtu>(transaction, mad);
    case Attribute::kDreq: return read_body<Dreq>(transaction, mad);
    case Attribute::kDrep: return read_body<Drep>(transaction, mad);
    case Attribute::kSidrReq: return read_body<SidrReq>(transaction, mad);
    case Attribute::kSidrRep: return read_body<SidrRep>(transaction, mad);
    case Attribute::kLap: return read_body<Lap>(transaction, mad);
    case Attribute::kApr: return read_body<Apr>(transaction, mad);
  }
  return {.lie = Lie::kAttribute};
}

}  // namespace rnic::cm
