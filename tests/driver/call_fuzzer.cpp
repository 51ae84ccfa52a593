#include "tests/driver/call_fuzzer.hpp"

#include <algorithm>
#include <cstring>

#include "driver/qp_transition.hpp"

namespace rnic::test {
namespace {

constexpr std::byte kCanary{0xC5};
constexpr std::size_t kMostHandles = 64;

template <typename T>
T load(std::span<const std::byte> from, std::size_t offset = 0) {
  T value;
  std::memcpy(&value, from.data() + offset, sizeof value);
  return value;
}

template <typename T>
void store(std::vector<std::byte>& to, std::size_t offset, const T& value) {
  std::memcpy(to.data() + offset, &value, sizeof value);
}

/// Kinds as handle_for knows them; what a completion queue or any object is called in a field.
std::string_view kind_of_field(std::string_view field) {
  return field == "send_cq" || field == "receive_cq" ? std::string_view("cq") : field;
}

}  // namespace

std::uint32_t CallFuzzer::handle_for(std::string_view field) {
  const unsigned how = random_() % 20;
  if (how == 0) return pick(strange_);
  if (how == 1) return pick(gone_);
  if (how == 2) return static_cast<std::uint32_t>(random_() >> random_() % 64);
  if (how == 3 && !own_.empty())
    return pick(std::next(own_.begin(), static_cast<long>(random_() % own_.size()))->second);
  if (field == "srq" && how < 12) return 0;
  if (field == "object")
    return own_.empty() ? 0 : pick(std::next(own_.begin(), static_cast<long>(random_() % own_.size()))->second);
  const auto found = own_.find(kind_of_field(field));
  return found == own_.end() ? 0 : pick(found->second);
}

std::uint64_t CallFuzzer::number_for(const CallField& field) {
  const bool usual = !chance(10);
  if (field.name == "address" || field.name == "iova")
    return usual ? memory_.first + random_() % memory_.second : random_() >> random_() % 64;
  // Nothing that a machine could not do: a region of 2^40 bytes is refused by its memory, which this one does not have.
  if (field.name == "length") return usual ? 1 + random_() % memory_.second : chance(2) ? 0 : ~0ULL >> random_() % 16;
  if (usual && field.name.ends_with("log_depth")) return random_() % 5;
  if (usual && field.name.ends_with("log_stride")) return 6 + random_() % 3;
  if (usual && field.name == "entries") return 1 + random_() % 64;
  if (usual && (field.name.ends_with("_index") || field.name == "index")) return random_() % 4;
  if (field.name == "max_pages") return usual ? 1 + random_() % 16 : random_();
  // A message is refused for one field that is out of its range, and some have twenty.
  if (!chance(100)) return field.limit == ~0ULL ? random_() >> random_() % 64 : random_() % (field.limit + 1);
  switch (random_() % 4) {
    case 0: return 0;
    case 1: return field.limit;
    case 2: return field.limit + 1;
    default: return random_() >> random_() % 64;
  }
}

void CallFuzzer::fill(const CallProbe& probe, std::vector<std::byte>& message) {
  for (const auto& field : probe.fields) {
    std::uint64_t value = 0;
    switch (field.kind) {
      case CallField::Kind::kHandle: value = handle_for(field.name); break;
      case CallField::Kind::kBool: value = chance(200) ? random_() : random_() % 2; break;
      case CallField::Kind::kReserved: value = chance(200) ? random_() : 0; break;
      case CallField::Kind::kNumber: value = number_for(field); break;
      case CallField::Kind::kBytes:
        for (std::size_t i = 0; i < field.bytes; ++i)
          store(message, field.offset + i, static_cast<std::byte>(random_()));
        if (chance(2))
          store(message, field.offset, std::array<std::uint8_t, 12>{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF});
        continue;
      case CallField::Kind::kArray: {
        const auto count = static_cast<std::uint32_t>(random_() % 8);
        message.resize(message.size() + (chance(10) ? random_() % 64 : count * sizeof(std::uint64_t)));
        const std::uint32_t at =
            chance(10) ? static_cast<std::uint32_t>(random_()) : static_cast<std::uint32_t>(probe.request_bytes);
        store(message, field.offset, calls::ArrayPlace{at, chance(10) ? static_cast<std::uint32_t>(random_()) : count});
        continue;
      }
    }
    std::memcpy(message.data() + field.offset, &value, std::min<std::size_t>(field.bytes, sizeof value));
  }
}

/// A change of state that is legal more often than chance would have it.
void CallFuzzer::make_transition(std::vector<std::byte>& message) {
  auto request = load<calls::ModifyQp>(message);
  const auto& pair = pairs_[request.qp];
  constexpr hw::QpState kNext[] = {hw::QpState::kInit, hw::QpState::kRtr, hw::QpState::kRts, hw::QpState::kSqd};
  const auto at = static_cast<std::size_t>(pair.state);
  const auto to = at < 4 && !chance(4) ? kNext[at] : static_cast<hw::QpState>(random_() % 7);
  const auto transition = qp_transition(pair.state, to, pair.type);
  request.next_state = static_cast<std::uint8_t>(to);
  request.mask = transition.required | (static_cast<QpAttributes>(random_()) & transition.optional);
  request.attributes.cur_state = static_cast<std::uint8_t>(pair.state);
  store(message, 0, request);
}

/// Of something that it has, by its kind.
void CallFuzzer::make_end(std::vector<std::byte>& message) {
  constexpr std::pair<const char*, calls::ObjectKind> kKinds[] = {{"qp", calls::ObjectKind::kQp},
                                                                  {"mw", calls::ObjectKind::kMw},
                                                                  {"fast_mr", calls::ObjectKind::kFastMr},
                                                                  {"mr", calls::ObjectKind::kMr},
                                                                  {"cq", calls::ObjectKind::kCq},
                                                                  {"srq", calls::ObjectKind::kSrq},
                                                                  {"pd", calls::ObjectKind::kPd},
                                                                  {"channel", calls::ObjectKind::kChannel},
                                                                  {"endpoint", calls::ObjectKind::kEndpoint}};
  auto request = load<calls::Destroy>(message);
  const auto& [name, kind] = kKinds[random_() % std::size(kKinds)];
  request.object = handle_for(name);
  request.kind = static_cast<std::uint8_t>(kind);
  store(message, 0, request);
}

/// A region at an address that fits its memory.
template <typename Request>
void CallFuzzer::make_region(std::vector<std::byte>& message) {
  auto request = load<Request>(message);
  request.iova = request.address + (random_() >> 20) * 4096;
  request.local_write |= request.remote_write | request.remote_atomic;
  store(message, 0, request);
}

/// One of few groups, so that a queue pair is in it already, or still.
template <typename Request>
void CallFuzzer::make_group(std::vector<std::byte>& message) {
  auto request = load<Request>(message);
  request.gid = {0xFF, 0x15};
  request.gid[15] = random_() % 20;
  store(message, 0, request);
}

/// Few ports of its own host, so that its endpoints find each other.
void CallFuzzer::make_connection_call(calls::Call call, std::vector<std::byte>& message) {
  constexpr std::uint16_t kPorts = 4;
  const auto port = static_cast<std::uint16_t>(1 + random_() % kPorts);
  if (call == calls::Call::kCreateEndpoint) {
    auto request = load<calls::CreateEndpoint>(message);
    request.port_space = chance(3) ? 0x0111 : 0x0106;
    store(message, 0, request);
  } else if (call == calls::Call::kBindEndpoint) {
    auto request = load<calls::BindEndpoint>(message);
    request.address = chance(2) ? address_ : decltype(address_){};
    request.port = port;
    store(message, 0, request);
  } else if (call == calls::Call::kResolveAddress) {
    auto request = load<calls::ResolveAddress>(message);
    request.local = {};
    request.remote = address_;
    request.remote_port = port;
    store(message, 0, request);
  } else if (call == calls::Call::kConnect) {
    auto request = load<calls::Connect>(message);
    request.data_length = static_cast<std::uint8_t>(random_() % 57);
    store(message, 0, request);
  } else if (call == calls::Call::kAccept) {
    auto request = load<calls::Accept>(message);
    request.data_length = static_cast<std::uint8_t>(random_() % 137);
    request.endpoint = pick(own_["incoming"]);
    store(message, 0, request);
  } else if (call == calls::Call::kTakeConnectionEvent) {
    auto request = load<calls::TakeConnectionEvent>(message);
    request.endpoint = pick(own_[chance(2) ? "listening" : "endpoint"]);
    store(message, 0, request);
  } else if (call == calls::Call::kEstablish) {
    // One that has asked: of all others it would nearly always be refused.
    auto request = load<calls::Establish>(message);
    request.endpoint = pick(own_["asked"]);
    store(message, 0, request);
  }
}

std::string CallFuzzer::step() {
  const std::size_t which = random_() % kCallProbes.size();
  const CallProbe& probe = kCallProbes[which];
  std::vector<std::byte> message(probe.request_bytes);
  fill(probe, message);
  if (probe.call == calls::Call::kModifyQp && !chance(4)) make_transition(message);
  if (probe.call == calls::Call::kDestroy && !chance(4)) make_end(message);
  if (probe.call == calls::Call::kRegisterMr && !chance(4)) make_region<calls::RegisterMr>(message);
  if (probe.call == calls::Call::kReregisterMr && !chance(4)) make_region<calls::ReregisterMr>(message);
  if (probe.call == calls::Call::kBeginRegisterMr && !chance(4)) make_region<calls::BeginRegisterMr>(message);
  if (probe.call == calls::Call::kAttachMulticast && !chance(4)) make_group<calls::AttachMulticast>(message);
  if (probe.call == calls::Call::kDetachMulticast && !chance(4)) make_group<calls::DetachMulticast>(message);
  if (!chance(4)) make_connection_call(probe.call, message);
  calls::RequestHeader header{
      .size = static_cast<std::uint32_t>(message.size()), .version = calls::kVersion, .call = probe.call};
  if (chance(50)) message.resize(random_() % (message.size() + 40));
  if (!chance(50)) header.size = static_cast<std::uint32_t>(message.size());
  if (chance(50)) header.version = static_cast<std::uint16_t>(random_());
  if (chance(50)) header.call = static_cast<calls::Call>(random_());
  std::memcpy(message.data(), &header, std::min(message.size(), sizeof header));

  constexpr std::size_t kGuard = 64;
  const std::size_t room = chance(50) ? random_() % probe.answer_bytes : probe.answer_bytes;
  std::vector<std::byte> answer(room + kGuard, kCanary);
  port_.call(message, std::span(answer).first(room));
  if (std::any_of(answer.begin() + static_cast<std::ptrdiff_t>(room), answer.end(),
                  [](std::byte b) { return b != kCanary; }))
    return "an answer is longer than its room";
  if (room < sizeof(calls::AnswerHeader) || message.size() < sizeof header) return {};
  const auto answered = load<calls::AnswerHeader>(answer);
  if (answered.version != calls::kVersion) return "an answer of another version";
  if (answered.status > calls::Status::kDeviceFailed) return "an unknown status";
  if (answered.status != calls::Status::kSuccess)
    return answered.size == sizeof answered ? "" : "a refusal with an answer";
  const auto asked = std::find_if(kCallProbes.begin(), kCallProbes.end(),
                                  [&](const CallProbe& other) { return other.call == header.call; });
  if (asked == kCallProbes.end()) return "a call that there is not has succeeded";
  if (answered.size != asked->answer_bytes || room < asked->answer_bytes) return "an answer of the wrong size";
  ++successes_[static_cast<std::size_t>(asked - kCallProbes.begin())];
  note(*asked, message, answer);
  return {};
}

void CallFuzzer::note(const CallProbe& probe, std::span<const std::byte> message, std::span<const std::byte> answer) {
  const auto own = [&](const char* kind, std::uint32_t handle) {
    auto& handles = own_[kind];
    handles.push_back(handle);
    if (handles.size() > kMostHandles) handles.erase(handles.begin() + static_cast<long>(random_() % handles.size()));
  };
  const auto shares = [&](const calls::MemoryRange& range) {
    ranges_.push_back(range);
    if (ranges_.size() > kMostHandles) ranges_.erase(ranges_.begin());
  };
  switch (probe.call) {
    case calls::Call::kOpenContext: given_.uar = load<calls::OpenContext::Answer>(answer).uar; break;
    case calls::Call::kAllocPd: {
      const auto a = load<calls::AllocPd::Answer>(answer);
      given_.pds.insert(a.number);
      own("pd", a.pd);
      break;
    }
    case calls::Call::kCreateChannel: own("channel", load<calls::CreateChannel::Answer>(answer).channel); break;
    case calls::Call::kCreateCq: {
      const auto a = load<calls::CreateCq::Answer>(answer);
      given_.cqns.insert(a.cqn);
      shares(a.ring);
      own("cq", a.cq);
      break;
    }
    case calls::Call::kCreateSrq: {
      const auto a = load<calls::CreateSrq::Answer>(answer);
      given_.srqns.insert(a.srqn);
      shares(a.ring);
      own("srq", a.srq);
      break;
    }
    case calls::Call::kCreateQp: {
      const auto a = load<calls::CreateQp::Answer>(answer);
      given_.qpns.insert(a.qpn);
      pairs_[a.qp] = {static_cast<hw::QpType>(load<calls::CreateQp>(message).type), hw::QpState::kReset};
      shares(a.send_ring);
      own("qp", a.qp);
      break;
    }
    case calls::Call::kRegisterMr: {
      const auto a = load<calls::RegisterMr::Answer>(answer);
      given_.keys.insert(a.key);
      own("mr", a.mr);
      break;
    }
    case calls::Call::kBeginRegisterMr: {
      const auto a = load<calls::BeginRegisterMr::Answer>(answer);
      given_.keys.insert(a.key);
      own("mr", a.mr);
      break;
    }
    case calls::Call::kCreateMw: own("mw", load<calls::CreateMw::Answer>(answer).mw); break;
    case calls::Call::kCreateFastMr: own("fast_mr", load<calls::CreateFastMr::Answer>(answer).fast_mr); break;
    case calls::Call::kCreateEndpoint: own("endpoint", load<calls::CreateEndpoint::Answer>(answer).endpoint); break;
    case calls::Call::kListen: own("listening", load<calls::Listen>(message).endpoint); break;
    case calls::Call::kConnect: own("asked", load<calls::Connect>(message).endpoint); break;
    case calls::Call::kTakeConnectionEvent: {
      const auto incoming = load<calls::TakeConnectionEvent::Answer>(answer).incoming;
      if (incoming != 0) own("endpoint", incoming), own("incoming", incoming);
      break;
    }
    case calls::Call::kModifyQp: {
      const auto m = load<calls::ModifyQp>(message);
      pairs_[m.qp].state = static_cast<hw::QpState>(m.next_state);
      break;
    }
    case calls::Call::kDestroy: {
      const auto handle = load<calls::Destroy>(message).object;
      for (auto& [kind, handles] : own_) std::erase(handles, handle);
      gone_.push_back(handle);
      if (gone_.size() > kMostHandles) gone_.erase(gone_.begin());
      break;
    }
    default: break;
  }
}

}  // namespace rnic::test
