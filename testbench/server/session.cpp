#include "testbench/server/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>
#include <utility>

#include "driver/remote/status.hpp"
#include "testbench/server/host_server.hpp"

namespace rnic::testbench {
namespace {

/// Of one process. One that has more waits with the others, in its socket.
constexpr std::size_t kMostCalls = 16;

std::span<const std::byte> bytes_of(const auto& structure) { return std::as_bytes(std::span(&structure, 1)); }

/// The body of a frame, if it has the size.
template <typename Structure>
std::optional<Structure> read_body(const RequestFrame& frame) {
  Structure structure;
  if (frame.body.size() != sizeof structure) return {};
  std::memcpy(&structure, frame.body.data(), sizeof structure);
  return structure;
}

}  // namespace

std::shared_ptr<Session> Session::open(HostServer& host, Listener::Peer peer) {
  std::shared_ptr<Session> session(new Session(host, std::move(peer)));
  // The poller keeps it no longer than it is watched.
  Poller& poller = host.poller();
  session->socket_watch_ = poller.add(session->socket_.get(), [own = session.get()] { own->socket_readable_ = true; });
  session->process_watch_ = poller.add(session->process_end_.get(), [own = session.get()] { own->end(""); });
  session->bell_watch_ = poller.add(session->bell_.get(), [bell = session->bell_.get()] {
    eventfd_t count{};
    static_cast<void>(eventfd_read(bell, &count));
  });
  return session;
}

Session::Session(HostServer& host, Listener::Peer peer)
    : host_(host),
      process_(peer.number),
      account_(host.account_of(peer.number)),
      socket_(std::move(peer.socket)),
      process_end_(std::move(peer.process)),
      bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      memory_descriptor_(memfd_create("rnic_connection", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  const auto fail = [] { throw std::system_error(errno, std::generic_category(), "no room for a process"); };
  // Sealed, for the process could cut off what this one looks at.
  if (!bell_ || !memory_descriptor_ || ftruncate(memory_descriptor_.get(), sizeof *memory_) != 0 ||
      fcntl(memory_descriptor_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    fail();
  void* const memory = mmap(nullptr, sizeof *memory_, PROT_READ | PROT_WRITE, MAP_SHARED, memory_descriptor_.get(), 0);
  if (memory == MAP_FAILED) fail();
  memory_ = static_cast<remote::ConnectionMemory*>(memory);
}

Session::~Session() { munmap(memory_, sizeof *memory_); }

bool Session::own_page(std::uint64_t offset, std::uint32_t bytes) const {
  if (offset % bytes != 0) return false;
  for (const auto& [number, one] : clients_) {
    const auto uar = one->client != nullptr ? one->client->uar() : std::nullopt;
    if (uar && offset / hw::kUarPageBytes == *uar) return true;
  }
  return false;
}

bool Session::take_doorbells() {
  if (ended_) return false;
  remote::Doorbell doorbell;
  // No more than the ring holds: a process that writes faster than this takes must not hold up the others.
  std::size_t taken = 0;
  for (; taken < remote::DoorbellRing::kSlots && memory_->doorbells.take(next_ticket_, doorbell); ++taken) {
    ++next_ticket_;
    const bool burst = doorbell.bytes == sizeof doorbell.data;
    if ((!burst && doorbell.bytes != sizeof doorbell.data[0]) || !own_page(doorbell.offset, doorbell.bytes)) {
      end(fmt::format("a doorbell of {} bytes at {:#x}, which is no place of its own", doorbell.bytes,
                      doorbell.offset));
      return true;
    }
    if (burst) {
      std::array<std::uint8_t, sizeof doorbell.data> data;
      std::memcpy(data.data(), doorbell.data.data(), sizeof doorbell.data);
      host_.device().write_burst64(doorbell.offset, data);
    } else {
      host_.device().write64(doorbell.offset, doorbell.data[0]);
    }
  }
  if (taken == 0) return false;
  doorbells_made_ += taken;
  memory_->doorbells.taken();
  return true;
}

bool Session::take_requests() {
  bool any = false;
  while (!ended_ && calls_ < kMostCalls) {
    auto frame = frames_.next();
    if (!frame) {
      if (frames_.too_long()) end("a request longer than any is");
      if (ended_ || !socket_readable_) break;
      const auto came = frames_.receive(socket_.get());
      if (came == FrameReader::Came::kEnd) end("");
      socket_readable_ = came == FrameReader::Came::kSome;
      continue;
    }
    any = true;
    // What the process rang before it asked has left before the question is heard.
    take_doorbells();
    if (!ended_) perform(*frame);
  }
  return any;
}

void Session::perform(const RequestFrame& frame) {
  if (!greeted_) return greet(frame);
  switch (frame.header.kind) {
    case remote::FrameKind::kOpen: return open_client(frame.header.number);
    case remote::FrameKind::kClose: return close_client(frame.header.number, frame.header.client);
    case remote::FrameKind::kCall: return call(frame);
    case remote::FrameKind::kMap: return map(frame);
    case remote::FrameKind::kDescriptor: return give_descriptor(frame);
    case remote::FrameKind::kHello: break;
  }
  end(fmt::format("a request of kind {}, which there is not", static_cast<std::uint32_t>(frame.header.kind)));
}

void Session::greet(const RequestFrame& frame) {
  const auto hello = read_body<remote::Hello>(frame);
  if (frame.header.kind != remote::FrameKind::kHello || !hello || hello->magic != remote::kMagic)
    return end("it does not begin as a client of this machine does");
  remote::Welcome welcome;
  if (hello->version != remote::kProtocolVersion || hello->calls_version != calls::kVersion) {
    answer(frame.header.number, calls::Status::kVersionMismatch, bytes_of(welcome));
    return end(fmt::format("it speaks version {}.{}, this is {}.{}", hello->version, hello->calls_version,
                           remote::kProtocolVersion, calls::kVersion));
  }
  greeted_ = true;
  welcome.memory_bytes = sizeof *memory_;
  const std::array beside{memory_descriptor_.get(), bell_.get()};
  answer(frame.header.number, calls::Status::kSuccess, bytes_of(welcome), beside);
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

void Session::open_client(std::uint32_t number) {
  std::uint32_t free = 0;
  while (clients_.contains(free)) ++free;
  if (free >= remote::kMostClients) return answer(number, calls::Status::kOutOfResources);
  auto one = std::make_shared<OneClient>();
  clients_.emplace(free, one);
  memory_->status[free].store(0);
  run([this, number, free, one] {
    Result<std::unique_ptr<kmd::Client>> made = Error::kDeviceFailed;
    if (const auto well = host_.kernel().recover(); well) {
      made = kmd::Client::create(host_.kernel(), false, {AddressSpace::Kind::kProcess, process_}, account_);
    } else {
      made = well.error();
    }
    if (!made) {
      clients_.erase(free);
      return answer(number, remote::status_of(made.error()));
    }
    one->client = made.take();
    // The process has gone meanwhile, and so has what close_all had to do.
    if (ended_) return close_all();
    answer(number, calls::Status::kSuccess, {}, {}, free);
  });
}

void Session::close_client(std::uint32_t number, std::uint32_t which) {
  const auto one = client(which);
  if (one == nullptr) return answer(number, calls::Status::kNotFound);
  run([this, number, which, one] {
    one->client->close();
    // Two threads may close at once.
    if (const auto found = clients_.find(which); found != clients_.end() && found->second == one) clients_.erase(found);
    answer(number, calls::Status::kSuccess);
  });
}

void Session::call(RequestFrame frame) {
  const auto one = client(frame.header.client);
  if (one == nullptr) return answer(frame.header.number, calls::Status::kNotFound);
  ++calls_made_;
  run([this, one, request = std::move(frame)] {
    std::array<std::byte, remote::kMostFrameBytes> buffer{};
    one->client->call(request.body, buffer);
    calls::AnswerHeader header;
    std::memcpy(&header, buffer.data(), sizeof header);
    answer(request.header.number, calls::Status::kSuccess, std::span(buffer).first(header.size));
  });
}

void Session::map(const RequestFrame& frame) {
  const auto range = read_body<calls::MemoryRange>(frame);
  const auto one = client(frame.header.client);
  const std::uint32_t number = frame.header.number;
  if (!range) return answer(number, calls::Status::kInvalidParameter);
  if (one == nullptr) return answer(number, calls::Status::kNotFound);
  auto memory = one->client->map(*range);
  if (!memory) return answer(number, remote::status_of(memory.error()));
  remote::MapAnswer where{.offset = 0, .bytes = range->bytes};
  try {
    if (const auto shared = host_.share(memory->get(), range->bytes, *this)) {
      where.offset = shared->offset;
      const std::array beside{shared->descriptor};
      return answer(number, calls::Status::kSuccess, bytes_of(where), beside);
    }
  } catch (const std::system_error&) {
    return answer(number, calls::Status::kOutOfResources);
  }
  // Not DMA memory: the word that says whether the device has failed, of which the connection has a copy.
  one->status = memory.take();
  where.in_connection = 1;
  const auto* const word = &memory_->status[frame.header.client];
  where.offset = static_cast<std::uint64_t>(reinterpret_cast<const std::byte*>(word) -
                                            reinterpret_cast<const std::byte*>(memory_));
  wake();
  answer(number, calls::Status::kSuccess, bytes_of(where));
}

void Session::give_descriptor(const RequestFrame& frame) {
  const auto handle = read_body<calls::Handle>(frame);
  const auto one = client(frame.header.client);
  const std::uint32_t number = frame.header.number;
  if (!handle) return answer(number, calls::Status::kInvalidParameter);
  if (one == nullptr) return answer(number, calls::Status::kNotFound);
  std::erase_if(one->pipes, [&](const auto& old) { return one->client->channel(old.first) == nullptr; });
  auto channel = one->client->channel(*handle);
  if (channel == nullptr) return answer(number, calls::Status::kNotFound);
  auto& pipe = one->pipes[*handle];
  if (pipe == nullptr) {
    auto opened = EventPipe::open(std::move(channel));
    if (!opened) {
      one->pipes.erase(*handle);
      return answer(number, remote::status_of(opened.error()));
    }
    pipe = opened.take();
  }
  const std::array beside{pipe->descriptor()};
  answer(number, calls::Status::kSuccess, {}, beside);
}

void Session::answer(std::uint32_t number, calls::Status status, std::span<const std::byte> body,
                     std::span<const int> beside, std::uint32_t which) {
  if (ended_) return;
  const remote::AnswerFrameHeader header{.bytes = static_cast<std::uint32_t>(body.size()),
                                         .status = status,
                                         .reserved = 0,
                                         .number = number,
                                         .client = which};
  std::vector<std::byte> frame(sizeof header + body.size());
  std::memcpy(frame.data(), &header, sizeof header);
  if (!body.empty()) std::memcpy(frame.data() + sizeof header, body.data(), body.size());
  // There is always room for the answers of a process that waits for them.
  if (!remote::send_all(socket_.get(), frame, beside)) end("it does not take its answers");
}

void Session::wake() {
  for (const auto& [number, one] : clients_) {
    if (one->status == nullptr) continue;
    std::uint32_t word{};
    std::memcpy(&word, one->status.get(), sizeof word);
    memory_->status[number].store(word);
  }
  memory_->wakes.advance();
}

void Session::show(std::uint64_t now_ns, std::uint64_t still_since) {
  remote::MachineClock& clock = memory_->clock;
  const std::uint32_t sequence = clock.sequence.load(std::memory_order_relaxed) | 1u;
  clock.sequence.store(sequence, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  clock.now_ns.store(now_ns, std::memory_order_relaxed);
  clock.still_since.store(still_since, std::memory_order_relaxed);
  clock.sequence.store(sequence + 1, std::memory_order_release);
  if (std::exchange(written_, false)) memory_->writes.advance();
}

bool Session::fall_asleep() {
  memory_->asleep.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return memory_->doorbells.waits(next_ticket_);
}

void Session::end(const std::string& why) {
  if (std::exchange(ended_, true)) return;
  if (!why.empty()) host_.log(fmt::format("process {}: connection ended: {}", process_, why));
  host_.poller().remove(socket_.get(), socket_watch_);
  host_.poller().remove(process_end_.get(), process_watch_);
  host_.poller().remove(bell_.get(), bell_watch_);
  socket_ = {};
  run([this] { close_all(); });
}

std::vector<std::shared_ptr<kmd::Client>> Session::clients() const {
  std::vector<std::shared_ptr<kmd::Client>> all;
  for (const auto& [number, one] : clients_) {
    if (one->client != nullptr) all.push_back(one->client);
  }
  return all;
}

void Session::say_goodbye() {
  memory_->gone.store(1);
  memory_->writes.advance();
  memory_->doorbells.taken();
  wake();
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
