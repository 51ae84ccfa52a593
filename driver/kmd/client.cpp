#include "driver/kmd/client.hpp"

#include <cstring>

#include "driver/costs.hpp"

namespace rnic::kmd {
namespace {

// Beside the one of the client that all of them share.
constexpr calls::ObjectKind kInOrder[] = {
    calls::ObjectKind::kEndpoint, calls::ObjectKind::kQp, calls::ObjectKind::kMw,
    calls::ObjectKind::kFastMr,   calls::ObjectKind::kMr, calls::ObjectKind::kSrq,
    calls::ObjectKind::kCq,       calls::ObjectKind::kPd, calls::ObjectKind::kChannel};

calls::Status status_of(const Result<void>& done) {
  return done.ok() ? calls::Status::kSuccess : static_cast<calls::Status>(static_cast<int>(done.error()) + 1);
}

void write_header(std::span<std::byte> answer, std::size_t size, calls::Status status) {
  const calls::AnswerHeader header{
      .size = static_cast<std::uint32_t>(size), .version = calls::kVersion, .status = status};
  if (answer.size() >= sizeof header) std::memcpy(answer.data(), &header, sizeof header);
}

}  // namespace

/// The events of the device and its port, for one client.
class Client::DeviceSource final : public EventSource {
 public:
  DeviceSource(Machine& machine, const void* reader, const std::shared_ptr<EventChannel>& channel)
      : EventSource({hw::EqeType::kDeviceFatal, hw::EqeType::kPortActive, hw::EqeType::kPortError}, machine, reader,
                    channel, channel) {
    name(0, 1);
  }
};

Client::Client(KernelDevice& kernel, bool trusted, const AddressSpace& memory, std::shared_ptr<Account> account)
    : kernel_(kernel),
      trusted_(trusted),
      memory_(memory),
      life_(kernel.life()),
      account_(std::move(account)),
      handles_(account_),
      open_lock_(kernel.device()) {}

Result<std::unique_ptr<Client>> Client::create(KernelDevice& kernel, bool trusted, const AddressSpace& memory,
                                               std::shared_ptr<Account> account) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<Client>> {
    if (account == nullptr) account = std::make_shared<Account>(kernel.options().quota);
    std::unique_ptr<Client> client(new Client(kernel, trusted, memory, std::move(account)));
    auto place = client->handles_.reserve(calls::ObjectKind::kChannel);
    if (!place) return place.error();
    auto channel = std::make_shared<ClientChannel>(kernel.device());
    client->first_channel_ = channel->channel;
    client->first_channel_handle_ = place->handle();
    place->fill(std::move(channel));
    client->device_events_ = std::make_shared<DeviceSource>(kernel.device(), client.get(), client->first_channel_);
    kernel.events().subscribe_device(client->device_events_);
    return client;
  });
}

Client::~Client() { close(); }

void Client::call(std::span<const std::byte> message, std::span<std::byte> answer) {
  calls::RequestHeader header;
  if (message.size() < sizeof header)
    return write_header(answer, sizeof(calls::AnswerHeader), calls::Status::kInvalidParameter);
  std::memcpy(&header, message.data(), sizeof header);
  const auto refuse = [&] { write_header(answer, sizeof(calls::AnswerHeader), calls::Status::kDeviceFailed); };
  // The end of a call under way wakes who closes the client, and everybody else. Who looks for events whenever he is
  // woken would wake himself.
  if (closed_) return refuse();
  const UnderWay under_way(*this);
  if (closed_) return refuse();
  if (header.call != calls::Call::kReadEvents) kernel_.device().elapse(cost::kControlCallNs);
  auto status = calls::Status::kInvalidParameter;
  if (header.version != calls::kVersion) {
    status = calls::Status::kVersionMismatch;
  } else if (header.size == message.size()) {
    const auto take_it = [&]<typename Request>(std::type_identity<Request>) { return take<Request>(message, answer); };
    status = calls::with_call(header.call, calls::Status::kNotSupported, take_it);
  }
  if (status != calls::Status::kSuccess) write_header(answer, sizeof(calls::AnswerHeader), status);
}

template <typename Request>
calls::Status Client::take(std::span<const std::byte> message, std::span<std::byte> answer) {
  if (message.size() < sizeof(Request) || answer.size() < sizeof(typename Request::Answer))
    return calls::Status::kInvalidParameter;
  Request request;
  std::memcpy(&request, message.data(), sizeof request);
  const auto array = calls::array_of(request);
  if (array.count > Request::kMostWords || (array.count != 0 && array.offset != sizeof request) ||
      message.size() != sizeof request + array.count * sizeof(std::uint64_t) || !well_formed(request))
    return calls::Status::kInvalidParameter;
  if (device_failed(Request::kCall)) return calls::Status::kDeviceFailed;
  typename Request::Answer reply;
  const auto done = or_out_of_memory([&]() -> Result<void> {
    if constexpr (Request::kMostWords != 0) {
      std::vector<std::uint64_t> words(array.count);
      if (array.count != 0) std::memcpy(words.data(), message.data() + array.offset, array.count * sizeof words[0]);
      return perform(request, words, reply);
    } else {
      return perform(request, reply);
    }
  });
  if (!done) return status_of(done);
  reply.header = {.size = sizeof reply, .version = calls::kVersion, .status = calls::Status::kSuccess};
  std::memcpy(answer.data(), &reply, sizeof reply);
  return calls::Status::kSuccess;
}

/// What gives something back succeeds without a device, and what has happened can still be read.
bool Client::device_failed(calls::Call call) {
  if (call == calls::Call::kDestroy || call == calls::Call::kReadEvents || call == calls::Call::kQueryDevice ||
      call == calls::Call::kAdoptCqRing || call == calls::Call::kReleaseFastMr ||
      call == calls::Call::kTakeConnectionEvent)
    return false;
  return !kernel_.usable(*life_);
}

Result<void> Client::destroy(const std::shared_ptr<ClientObject>& object, bool when_unbound) {
  const SleepLock::Guard guard(object->lock());
  Result<void> done = guard ? object->destroy(when_unbound) : Result<void>(Error::kDeviceFailed);
  if (done) {
    handles_.end(*object);
  } else {
    handles_.stay(*object);
  }
  return done;
}

Result<void> Client::perform(const calls::Destroy& m, calls::Destroy::Answer&) {
  // The first channel is the client's as long as it lives.
  if (m.object == first_channel_handle_) return Error::kBusy;
  auto object = handles_.begin_end(m.object, static_cast<calls::ObjectKind>(m.kind));
  if (!object) return object.error();
  return destroy(object.take(), m.when_unbound != 0);
}

void Client::close() {
  if (closed_.exchange(true)) return;
  for (;;) {
    const std::uint64_t seen = kernel_.device().wake_count();
    if (calls_ == 0) break;
    // A thread that can wait no more is being ended, and so are those that are inside.
    if (!kernel_.device().wait(seen, kForever)) break;
  }
  for (const auto kind : kInOrder) {
    while (const auto object = handles_.next_to_end(kind)) {
      const SleepLock::Guard guard(object->lock());
      if (guard && object->destroy(true)) handles_.end(*object);
    }
  }
  if (uar_ && *uar_ != hw::kKernelUar) kernel_.release_uar(*uar_);
  uar_.reset();
  uar_charge_ = {};
}

std::shared_ptr<EventChannel> Client::channel(calls::Handle handle) {
  auto found = handles_.find(handle, calls::ObjectKind::kChannel);
  if (!found) return nullptr;
  return static_cast<ClientChannel&>(**found).channel;
}

}  // namespace rnic::kmd
