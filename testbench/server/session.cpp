#include "testbench/server/session.hpp"

#include <fmt/format.h>

#include <array>
#include <system_error>
#include <utility>

#include "driver/remote/connection_memory.hpp"
#include "driver/remote/status.hpp"
#include "testbench/server/host_server.hpp"

namespace rnic::testbench {

Session::Session(HostServer& host, std::int32_t process)
    : host_(host), process_(process), account_(host.account_of(process)), record_(host.book().begin(process)) {}

Session::~Session() {
  if (memory_ != 0) host_.host().iommu().remove_process(memory_);
}

/// That which the process had when it opened its first client, and no other: a program that takes its place, or gets
/// its number, has none of its regions.
AddressSpace Session::find_memory() {
  if (memory_ == 0) memory_ = host_.host().iommu().add_process(reach_memory());
  return {AddressSpace::Kind::kProcess, memory_};
}

bool Session::own_page(std::uint64_t offset, std::uint32_t bytes) const {
  if (offset % bytes != 0) return false;
  for (const auto& [number, one] : clients_) {
    const auto uar = one->client != nullptr ? one->client->uar() : std::nullopt;
    if (uar && offset / hw::kUarPageBytes == *uar) return true;
  }
  return false;
}

void Session::ring(const remote::Doorbell& doorbell) {
  const bool burst = doorbell.bytes == sizeof doorbell.data;
  if ((!burst && doorbell.bytes != sizeof doorbell.data[0]) || !own_page(doorbell.offset, doorbell.bytes))
    return end(
        fmt::format("a doorbell of {} bytes at {:#x}, which is no place of its own", doorbell.bytes, doorbell.offset));
  ++doorbells_made_;
  if (burst) {
    std::array<std::uint8_t, sizeof doorbell.data> data;
    std::memcpy(data.data(), doorbell.data.data(), sizeof doorbell.data);
    host_.device().write_burst64(doorbell.offset, data);
  } else {
    host_.device().write64(doorbell.offset, doorbell.data[0]);
  }
}

void Session::perform(const RequestFrame& frame) {
  switch (frame.header.kind) {
    case remote::FrameKind::kOpen: return open_client(frame.header);
    case remote::FrameKind::kClose: return close_client(frame.header);
    case remote::FrameKind::kCall: return call(frame);
    case remote::FrameKind::kMap: return map(frame);
    case remote::FrameKind::kDescriptor: return give_descriptor(frame);
    case remote::FrameKind::kHello: break;
  }
  end(fmt::format("a request of kind {}, which there is not", static_cast<std::uint32_t>(frame.header.kind)));
}

void Session::run(std::function<void()> job) {
  ++calls_;
  host_.calls().run([self = shared_from_this(), one = std::move(job)] {
    one();
    --self->calls_;
  });
}

std::shared_ptr<Session::OneClient> Session::client(std::uint32_t number) {
  const auto found = clients_.find(number);
  return found == clients_.end() || found->second->client == nullptr ? nullptr : found->second;
}

void Session::open_client(const remote::FrameHeader& header) {
  std::uint32_t free = 0;
  while (clients_.contains(free)) ++free;
  if (free >= remote::kMostClients) return answer(header, calls::Status::kOutOfResources);
  auto one = std::make_shared<OneClient>();
  clients_.emplace(free, one);
  show_status(free, 0);
  run([this, header, free, one] {
    Result<std::unique_ptr<kmd::Client>> made = Error::kDeviceFailed;
    if (const auto well = host_.kernel().recover(); well) {
      made = kmd::Client::create(host_.kernel(), false, find_memory(), account_);
    } else {
      made = well.error();
    }
    if (!made) {
      clients_.erase(free);
      return answer(header, remote::status_of(made.error()));
    }
    one->client = made.take();
    // The process has gone meanwhile, and so has what close_all had to do.
    if (ended_) return close_all();
    answer(header, calls::Status::kSuccess, {}, {}, free);
  });
}

void Session::close_client(const remote::FrameHeader& header) {
  const auto one = client(header.client);
  if (one == nullptr) return answer(header, calls::Status::kNotFound);
  run([this, header, one] {
    one->client->close();
    // Two threads may close at once.
    const auto found = clients_.find(header.client);
    if (found != clients_.end() && found->second == one) clients_.erase(found);
    answer(header, calls::Status::kSuccess);
  });
}

void Session::call(RequestFrame frame) {
  const auto one = client(frame.header.client);
  if (one == nullptr) return answer(frame.header, calls::Status::kNotFound);
  ++calls_made_;
  run([this, one, request = std::move(frame)] {
    std::array<std::byte, remote::kMostFrameBytes> buffer{};
    one->client->call(request.body, buffer);
    calls::AnswerHeader header;
    std::memcpy(&header, buffer.data(), sizeof header);
    const auto answered = std::span(buffer).first(header.size);
    host_.book().called(*record_, request.header.client, request.body, answered);
    answer(request.header, calls::Status::kSuccess, answered);
  });
}

void Session::map(const RequestFrame& frame) {
  const auto range = read_body<calls::MemoryRange>(frame);
  const auto one = client(frame.header.client);
  if (!range) return answer(frame.header, calls::Status::kInvalidParameter);
  if (one == nullptr) return answer(frame.header, calls::Status::kNotFound);
  auto memory = one->client->map(*range);
  if (!memory) return answer(frame.header, remote::status_of(memory.error()));
  remote::MapAnswer where{.offset = 0, .bytes = range->bytes};
  try {
    if (const auto shared = host_.share(memory->get(), range->bytes, *this)) {
      where.offset = shared->offset;
      const std::array beside{shared->descriptor};
      return answer(frame.header, calls::Status::kSuccess, bytes_of(where), beside);
    }
  } catch (const std::system_error&) {
    return answer(frame.header, calls::Status::kOutOfResources);
  }
  // Not DMA memory: the word that says whether the device has failed, of which the connection has a copy.
  one->status = memory.take();
  where.in_connection = 1;
  where.offset = offsetof(remote::ConnectionMemory, status) + frame.header.client * sizeof(std::uint32_t);
  wake();
  answer(frame.header, calls::Status::kSuccess, bytes_of(where));
}

void Session::give_descriptor(const RequestFrame& frame) {
  const auto handle = read_body<calls::Handle>(frame);
  const auto one = client(frame.header.client);
  if (!handle) return answer(frame.header, calls::Status::kInvalidParameter);
  if (one == nullptr) return answer(frame.header, calls::Status::kNotFound);
  std::erase_if(one->pipes, [&](const auto& old) { return one->client->channel(old.first) == nullptr; });
  auto channel = one->client->channel(*handle);
  if (channel == nullptr) return answer(frame.header, calls::Status::kNotFound);
  auto& pipe = one->pipes[*handle];
  if (pipe == nullptr) {
    auto opened = EventPipe::open(std::move(channel));
    if (!opened) {
      one->pipes.erase(*handle);
      return answer(frame.header, remote::status_of(opened.error()));
    }
    pipe = opened.take();
  }
  const std::array beside{pipe->descriptor()};
  answer(frame.header, calls::Status::kSuccess, {}, beside);
}

void Session::answer(const remote::FrameHeader& to, calls::Status status, std::span<const std::byte> body,
                     std::span<const int> beside, std::uint32_t which) {
  if (ended_) return;
  if (!send({.to = to, .status = status, .body = body, .beside = beside, .client = which}))
    end("it does not take its answers");
}

void Session::wake() {
  for (const auto& [number, one] : clients_) {
    if (one->status == nullptr) continue;
    std::uint32_t word{};
    std::memcpy(&word, one->status.get(), sizeof word);
    show_status(number, word);
  }
  rouse();
}

void Session::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  if (!why.empty()) host_.log(fmt::format("process {}: connection ended: {}", process_, why));
  disconnect();
  run([this] { close_all(); });
}

std::vector<std::shared_ptr<kmd::Client>> Session::clients() const {
  std::vector<std::shared_ptr<kmd::Client>> all;
  for (const auto& [number, one] : clients_) {
    if (one->client != nullptr) all.push_back(one->client);
  }
  return all;
}

void Session::close_all() {
  // Kept until its calls have ended; those that open a client close it themselves.
  for (const auto& [number, one] : std::map(clients_)) {
    if (one->client == nullptr) continue;
    one->pipes.clear();
    one->client->close();
    clients_.erase(number);
  }
}

}  // namespace rnic::testbench
