#include "testbench/traffic/mix_lane.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "testbench/cqe_status_text.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint32_t kLaneInline = 128, kLaneSegments = 4, kLaneSilent = 3;
constexpr std::size_t kWriteSlots = 16;
constexpr std::uint64_t kGapNs = 3'000;
/// So long after the last request of a lane without acknowledgements nothing more arrives.
constexpr std::uint64_t kQuietNs = 40'000;
/// Messages behind the newest one of which no more is kept.
constexpr std::uint64_t kRemembered = 1'000;
constexpr std::uint32_t kQkey = 0x1234'5678;

hw::WqeOpcode request_opcode(std::uint8_t what) {
  constexpr hw::WqeOpcode kOpcodes[] = {hw::WqeOpcode::kSend,           hw::WqeOpcode::kSendImmediate,
                                        hw::WqeOpcode::kSendInvalidate, hw::WqeOpcode::kWriteImmediate,
                                        hw::WqeOpcode::kWrite,          hw::WqeOpcode::kRead};
  return kOpcodes[what];
}

}  // namespace

MixLane::MixLane(const Spec& spec, const TrafficOptions& options, std::uint64_t seed, TrafficReport& report)
    : spec_(spec), options_(options), random_(seed), report_(report) {
  const auto make = [&](MixSide& side, bool sink) {
    umd::QueuePair::Spec qp{.send_cq = side.cq(),
                            .receive_cq = side.cq(),
                            .shared_receives = sink ? spec.shared : nullptr,
                            .type = spec.type,
                            .capacity = {.send_depth = kWindow,
                                         .receive_depth = kReceives,
                                         .send_segments = kLaneSegments,
                                         .receive_segments = kLaneSegments,
                                         .inline_bytes = kLaneInline}};
    qp.context = this;
    qp.fast_register = sink && spec.fast;
    return require_success(umd::QueuePair::create_idle(side.process(), qp), "creating a queue pair");
  };
  source_ = make(spec.from, false);
  sink_ = make(spec.to, true);
  for (std::size_t i = 0; i < kWindow; ++i) slots_.push_back(spec.from.take(kMostBytes));
  if (spec.type == hw::QpType::kUd) {
    const std::uint32_t mtu = spec.connection.mtu;
    require_success(source_->connect(datagram_attributes(spec.from.endpoint(), kQkey, mtu)),
                    "RTS of a datagram queue pair");
    require_success(sink_->connect(datagram_attributes(spec.to.endpoint(), kQkey, mtu)),
                    "RTS of a datagram queue pair");
    address_ = require_success(umd::AddressHandle::create(address_of(spec.to.endpoint(), spec.connection.ipv6)),
                               "creating an address handle");
  } else {
    connect_pair(spec.from.endpoint(), *source_, spec.to.endpoint(), *sink_, spec.connection);
    for (std::size_t i = 0; i < kWriteSlots; ++i) write_slots_.push_back(spec.to.take(kMostBytes));
  }
  if (reliable()) {
    for (std::size_t i = 0; i < kKeys; ++i) keys_.emplace_back(spec.to, *sink_, spec.fast && i % 2 == 0);
  }
  if (spec.receives == nullptr) {
    own_receives_ = std::make_unique<MixReceives>(
        spec.to, kReceives, kReceiveBytes,
        [this](const umd::ReceiveRequest& request) { return sink_->post_receive(request); });
    own_receives_->refill(random_, true);
  }
  last_progress_ns_ = spec.from.now();
}

MixLane::~MixLane() {
  static_cast<void>(source_->close().ok());
  static_cast<void>(sink_->close().ok());
}

void MixLane::step() {
  if (broken_) return;
  if (own_receives_) own_receives_->refill(random_, true);
  step_keys();
  // Silent requests that nothing follows would never be known to be done.
  const bool silent_end = !outstanding_.empty() && outstanding_.back().silent;
  if (planned_.empty() && (!report_.stopping || silent_end)) plan();
  if (spec_.from.now() >= next_post_ns_) post();
  watch();
}

/// Keys that are closed are opened again; those whose last message has come are closed.
void MixLane::step_keys() {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i].state() == MixKey::State::kIdle && !report_.stopping && random_.chance(0.05) &&
        keys_[i].open(random_, i))
      last_progress_ns_ = spec_.from.now();
    if (keys_[i].state() == MixKey::State::kOpen) plan_key(keys_[i]);
  }
  while (!closing_.empty() &&
         keys_[closing_.front().first].message_came(closing_.front().second, closing_.front().first, report_))
    closing_.pop_front();
}

void MixLane::plan() {
  Request next;
  const auto dice = random_.below(10);
  const bool datagram = spec_.type == hw::QpType::kUd;
  next.what = dice < 5 ? What::kSend : dice < 7 || datagram ? What::kSendImmediate : What::kWriteImmediate;
  const std::size_t most = datagram ? spec_.connection.mtu : kMostBytes;
  // Without acknowledgements its number says which message it is; the others come in order.
  const std::size_t least = reliable() ? 0 : 8;
  next.inline_data = random_.chance(0.3);
  next.bytes = least + random_.below((next.inline_data      ? kLaneInline
                                      : random_.chance(0.5) ? std::min<std::size_t>(most, 600)
                                                            : most) -
                                     least + 1);
  next.silent = !report_.stopping && silent_run_ < kLaneSilent && random_.chance(0.3);
  silent_run_ = next.silent ? silent_run_ + 1 : 0;
  planned_.push_back(next);
}

/// A Write through the key, sometimes a Read of the same bytes, and the message that lets the owner close it, or closes
/// it.
void MixLane::plan_key(MixKey& key) {
  const std::size_t bytes = std::min(key.memory().size(), kMostBytes - random_.below(kMostBytes));
  const std::uint64_t offset = random_.below(key.memory().size() - bytes + 1);
  const bool read = random_.chance(0.5);
  key.use(read ? 3 : 2);
  planned_.push_back(
      {.what = What::kWrite, .bytes = bytes, .silent = random_.chance(0.3), .key = &key, .offset = offset});
  if (read) planned_.push_back({.what = What::kRead, .bytes = bytes, .key = &key, .offset = offset});
  // A Read must have its data before its key may end (InfiniBand specification 10.8.3.3): the fence waits for it.
  planned_.push_back({.what = random_.chance(0.6) ? What::kSendInvalidate : What::kSend,
                      .bytes = random_.below(kMostBytes + 1),
                      .fence = read,
                      .key = &key,
                      .offset = offset,
                      .key_bytes = bytes});
  silent_run_ = 0;
}

void MixLane::post() {
  if (planned_.empty() || outstanding_.size() >= kWindow) return;
  Request next = planned_.front();
  next.number = posted_;
  // The Read behind a Write fetches what that has written.
  next.contents = next.what == What::kRead ? posted_ - 1 : posted_;
  const auto memory = slot(next.number).first(next.bytes);
  if (next.what == What::kRead)
    std::fill(memory.begin(), memory.end(), MixSide::kUntouched);
  else
    fill_message(memory, spec_.number, next.contents);
  const auto posted = post_send(next);
  if (!posted.ok() && posted.error() == Error::kQueueFull) return;
  require_success(posted, "posting a request");
  if (next.what != What::kWrite && next.what != What::kRead) {
    Expected expected{.bytes = next.bytes, .what = next.what, .key = next.key};
    if (next.key != nullptr) {
      // In front of it is the Write, or the Read and the Write.
      expected.offset = next.offset;
      expected.key_bytes = next.key_bytes;
      expected.contents = posted_ - (next.fence ? 2 : 1);
    }
    expected_.emplace(posted_, expected);
    if (!reliable()) {
      ++(spec_.type == hw::QpType::kUc ? report_.mix.unreliable_sent : report_.mix.datagrams_sent);
      if (expected_.size() > kRemembered) expected_.erase(expected_.begin());
    }
  }
  planned_.pop_front();
  outstanding_.push_back(next);
  if (outstanding_.size() == 1) last_progress_ns_ = spec_.from.now();
  ++posted_;
  next_post_ns_ = spec_.from.now() + random_.below(kGapNs);
}

Result<void> MixLane::post_send(const Request& request) {
  const auto memory = slot(request.number);
  const auto address = reinterpret_cast<std::uint64_t>(memory.data());
  const std::size_t first = request.what == What::kRead ? request.bytes : random_.below(request.bytes + 1);
  const umd::Segment segments[] = {
      {address, static_cast<std::uint32_t>(first), spec_.from.key()},
      {address + first, static_cast<std::uint32_t>(request.bytes - first), spec_.from.key()}};
  umd::SendRequest send{
      .opcode = request_opcode(static_cast<std::uint8_t>(request.what)), .id = request.number, .segments = segments};
  send.silent = request.silent;
  send.fence = request.fence;
  send.inline_data = request.inline_data;
  send.immediate = static_cast<std::uint32_t>(request.number);
  if (request.what == What::kSendInvalidate) send.immediate = request.key->key();
  if (request.what == What::kWrite || request.what == What::kRead) {
    send.remote_address = request.key->address() + request.offset;
    send.remote_key = request.key->key();
  } else if (request.what == What::kWriteImmediate) {
    send.remote_address = reinterpret_cast<std::uint64_t>(write_slots_[request.number % kWriteSlots].data());
    send.remote_key = spec_.to.key();
  }
  if (address_) {
    send.address = &*address_;
    send.dest_qpn = sink_->qpn();
    send.qkey = kQkey;
  }
  return source_->post_send(send);
}

void MixLane::on_source(const umd::Completion& completion) {
  if (broken_) return;
  const auto next = [&] { return !outstanding_.empty() && outstanding_.front().number == completion.id; };
  while (!outstanding_.empty() && outstanding_.front().silent && !next())
    complete(outstanding_.front()), outstanding_.pop_front();
  if (completion.status != hw::CqeStatus::kSuccess)
    return wrong(fmt::format("request {}: {}", completion.id, cqe_status_text(completion.status)));
  if (!next()) return wrong(fmt::format("completion of request {} out of order", completion.id));
  if (outstanding_.front().silent)
    return wrong(fmt::format("completion of request {}, which is silent", completion.id));
  complete(outstanding_.front());
  outstanding_.pop_front();
  last_progress_ns_ = spec_.from.now();
}

void MixLane::complete(const Request& request) {
  ++report_.mix.requests;
  if (request.what == What::kRead)
    check(slot(request.number).first(request.bytes), request.contents, "Read", request.number);
  if (request.key != nullptr) request.key->used(report_);
}

void MixLane::on_sink(const umd::Completion& completion) {
  if (broken_) return;
  last_progress_ns_ = spec_.from.now();
  if (completion.kind == umd::RequestKind::kReceive || completion.kind == umd::RequestKind::kReceiveWrite)
    return arrived(completion);
  if (completion.status != hw::CqeStatus::kSuccess)
    return wrong(fmt::format("memory operation of key {}: {}", completion.id, cqe_status_text(completion.status)));
  if (completion.id >= keys_.size() || !keys_[completion.id].on_request(completion.kind, report_))
    wrong(fmt::format("memory operation of key {}: none of that kind is under way", completion.id));
}

void MixLane::arrived(const umd::Completion& completion) {
  auto& receives = own_receives_ ? *own_receives_ : *spec_.receives;
  const auto buffer = receives.taken(completion.id);
  if (buffer.empty()) return wrong(fmt::format("Receive {} completes and is not posted", completion.id));
  if (completion.status != hw::CqeStatus::kSuccess)
    return wrong(fmt::format("Receive: {}", cqe_status_text(completion.status)));
  std::uint64_t number = 0;
  auto found = expected_.begin();
  if (!reliable()) {
    const std::size_t head = completion.grh ? hw::kGrhBytes : 0;
    if (completion.kind == umd::RequestKind::kReceiveWrite)
      number = completion.immediate;
    else
      std::memcpy(&number, buffer.data() + head, sizeof number);
    found = expected_.find(number);
  }
  if (found == expected_.end()) return wrong(fmt::format("a message came that was not sent (number {})", number));
  number = found->first;
  arrived_in(number, found->second, completion, buffer);
  if (reliable()) expected_.erase(found);
  receives.give_back(completion.id);
}

void MixLane::arrived_in(std::uint64_t number, Expected& expected, const umd::Completion& completion,
                         std::span<const std::uint8_t> buffer) {
  const bool write = expected.what == What::kWriteImmediate, datagram = spec_.type == hw::QpType::kUd;
  const std::size_t head = datagram ? hw::kGrhBytes : 0;
  if (write != (completion.kind == umd::RequestKind::kReceiveWrite))
    return wrong(fmt::format("message {}: another kind of Receive", number));
  if (completion.byte_count != expected.bytes + head)
    return wrong(fmt::format("message {}: {} bytes, sent were {}", number, completion.byte_count, expected.bytes));
  if (completion.with_immediate != (write || expected.what == What::kSendImmediate))
    return wrong(fmt::format("message {}: immediate data are there, or are not", number));
  if (completion.with_immediate && completion.immediate != static_cast<std::uint32_t>(number))
    return wrong(fmt::format("message {}: immediate data {:#x}", number, completion.immediate));
  const bool invalidated = expected.what == What::kSendInvalidate;
  if (completion.with_invalidate != invalidated)
    return wrong(fmt::format("message {}: an invalidated key is there, or is not", number));
  if (invalidated && completion.immediate != expected.key->key())
    return wrong(fmt::format("message {}: invalidated key {:#x}", number, completion.immediate));
  if (completion.grh != datagram || (datagram && completion.source_qpn != source_->qpn()))
    return wrong(fmt::format("message {}: GRH or source", number));
  if (write)
    check(std::span<const std::uint8_t>(write_slots_[number % kWriteSlots]).first(expected.bytes), number, "Write",
          number);
  else
    check(buffer.subspan(head, expected.bytes), number, "SEND", number);
  // A message that broke off may have left its bytes behind a later, shorter one.
  const auto rest = buffer.subspan(write ? 0 : head + expected.bytes);
  if (reliable() &&
      std::any_of(rest.begin(), rest.end(), [](std::uint8_t byte) { return byte != MixSide::kUntouched; }))
    wrong(fmt::format("message {}: bytes behind it have changed", number));
  ++expected.arrivals;
  if (reliable()) {
    ++report_.mix.shared_receives;
  } else {
    auto& counts = report_.mix;
    if (expected.arrivals > 1)
      ++counts.repeated;
    else
      ++(datagram ? counts.datagrams_received : counts.unreliable_received);
  }
  if (expected.key == nullptr || broken_) return;
  check(expected.key->memory().subspan(expected.offset, expected.key_bytes), expected.contents, "Write through a key",
        number);
  const auto place = std::find_if(keys_.begin(), keys_.end(), [&](const MixKey& key) { return &key == expected.key; });
  closing_.emplace_back(static_cast<std::size_t>(place - keys_.begin()), invalidated);
}

void MixLane::check(std::span<const std::uint8_t> message, std::uint64_t contents, const char* what,
                    std::uint64_t number) {
  const auto at = compare_message(message, spec_.number, contents);
  if (at != message.size())
    wrong(fmt::format("{} of message {}, {} bytes: byte {} is {:#04x}", what, number, message.size(), at, message[at]));
}

bool MixLane::finished() {
  if (broken_) return true;
  if (!report_.stopping || !planned_.empty() || !outstanding_.empty() || !closing_.empty()) return false;
  if (std::any_of(keys_.begin(), keys_.end(), [](const MixKey& key) { return key.state() != MixKey::State::kIdle; }))
    return false;
  return reliable() ? expected_.empty() : spec_.from.now() - last_progress_ns_ > kQuietNs;
}

void MixLane::watch() {
  const bool keys_wait =
      std::any_of(keys_.begin(), keys_.end(), [](const MixKey& key) { return key.state() != MixKey::State::kIdle; });
  if (outstanding_.empty() && !keys_wait && (!reliable() || expected_.empty())) {
    if (!report_.stopping) last_progress_ns_ = spec_.from.now();
    return;
  }
  if (spec_.from.now() - last_progress_ns_ < options_.hang_ns) return;
  report_.hung += std::max<std::uint64_t>(outstanding_.size(), 1);
  report_.note(fmt::format("{}: no completion for {} us, {} requests outstanding, {} messages have not come",
                           spec_.name, options_.hang_ns / 1000, outstanding_.size(), expected_.size()));
  broken_ = true;
}

void MixLane::wrong(const std::string& text) {
  ++report_.wrong;
  report_.note(fmt::format("{}: {}", spec_.name, text));
  broken_ = true;
}

}  // namespace rnic::testbench
