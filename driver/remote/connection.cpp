#include "driver/remote/connection.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "driver/remote/machine_socket.hpp"
#include "driver/unnoticed.hpp"

namespace rnic::remote {
Result<std::shared_ptr<Connection>> Connection::open(const std::string& path, Purpose purpose) {
  const Unnoticed unnoticed;
  return or_out_of_memory([&]() -> Result<std::shared_ptr<Connection>> {
    auto connected = connect_to_machine(path);
    if (!connected) return connected.error();
    Descriptor socket = std::move(connected->socket);
    struct {
      FrameHeader header{.bytes = sizeof(Hello), .kind = FrameKind::kHello, .number = 0, .client = 0};
      Hello hello;
    } request;
    request.hello.purpose = purpose;
    AnswerFrameHeader header;
    Welcome welcome;
    Descriptors beside;
    if (!send_all(socket.get(), std::as_bytes(std::span(&request, 1))) ||
        !receive_all(socket.get(), std::as_writable_bytes(std::span(&header, 1)), beside))
      return Error::kDeviceNotFound;
    if (header.status == calls::Status::kVersionMismatch) return Error::kVersionMismatch;
    if (header.status != calls::Status::kSuccess || header.bytes != sizeof welcome ||
        !receive_all(socket.get(), std::as_writable_bytes(std::span(&welcome, 1)), beside))
      return Error::kDeviceNotFound;
    if (welcome.version != kProtocolVersion || welcome.calls_version != calls::kVersion ||
        welcome.memory_bytes != sizeof(ConnectionMemory))
      return Error::kVersionMismatch;
    if (!beside[0] || !beside[1]) return Error::kOutOfResources;
    if (!keeps_its_size(beside[0].get(), sizeof(ConnectionMemory))) return Error::kDeviceNotFound;
    // Where the system lets only a parent reach into a process (Yama), this machine may all the same, and no other
    // process. A system that does not know the request does not restrict it either.
    if (purpose == Purpose::kDevice && connected->machine > 0) prctl(PR_SET_PTRACER, connected->machine, 0, 0, 0);
    auto mapping = SharedMapping::map(beside[0].get(), 0, sizeof(ConnectionMemory));
    if (!mapping) return mapping.error();
    return std::shared_ptr<Connection>(new Connection(std::move(socket), std::move(beside[1]), mapping.take()));
  });
}

Connection::Connection(Descriptor socket, Descriptor bell, std::shared_ptr<SharedMapping> mapping)
    : socket_(std::move(socket)),
      bell_(std::move(bell)),
      inode_(inode_of(socket_)),
      mapping_(std::move(mapping)),
      memory_(*reinterpret_cast<ConnectionMemory*>(mapping_->data())),
      process_(getpid()),
      hook_([this] { leave_to_parent(); }) {}

Connection::~Connection() {
  if (has_its_descriptors()) return;
  socket_.release();
  bell_.release();
}

Connection::Inode Connection::inode_of(const Descriptor& descriptor) {
  const Unnoticed unnoticed;
  struct stat of {};
  if (fstat(descriptor.get(), &of) != 0) return {};
  return {.device = of.st_dev, .number = of.st_ino};
}

/// Who closes one descriptor that is not his closes all.
bool Connection::has_its_descriptors() const { return inode_of(socket_) == inode_; }

/// In a child, behind the mapping's own hook: its copy says that the machine has ended. The socket would keep the
/// parent's connection when the parent is another program or none.
void Connection::leave_to_parent() {
  if (has_its_descriptors()) {
    socket_ = {};
    bell_ = {};
  }
  broken_.store(true);
  if (!mapping_->is_copy()) return;
  memory_.gone.store(1);
  memory_.asleep.store(0);
  for (auto& word : memory_.status) word.store(1);
}

Connection::Answer Connection::request(FrameKind kind, std::uint32_t client, std::span<const std::byte> message,
                                       std::span<std::byte> body) {
  Answer none;
  if (message.size() > kMostFrameBytes) {
    none.status = calls::Status::kInvalidParameter;
    return none;
  }
  const Unnoticed unnoticed;
  if (getpid() != process_ || look_whether_lost()) return none;
  Pending mine{.body = body, .answer = {}};
  FrameHeader header{.bytes = static_cast<std::uint32_t>(message.size()), .kind = kind, .number = 0, .client = client};
  {
    const std::lock_guard lock(mutex_);
    header.number = ++last_number_;
    pending_.emplace(header.number, &mine);
  }
  std::array<std::byte, sizeof header + kMostFrameBytes> frame;
  std::memcpy(frame.data(), &header, sizeof header);
  if (!message.empty()) std::memcpy(frame.data() + sizeof header, message.data(), message.size());
  {
    const std::lock_guard lock(send_mutex_);
    if (!send_all(socket_.get(), std::span(frame).first(sizeof header + message.size()))) break_up();
  }
  std::unique_lock lock(mutex_);
  wait_for(lock, mine);
  pending_.erase(header.number);
  return std::move(mine.answer);
}

void Connection::wait_for(std::unique_lock<std::mutex>& lock, const Pending& mine) {
  while (!mine.there && !broken_.load()) {
    if (somebody_reads_) {
      changed_.wait(lock);
      continue;
    }
    somebody_reads_ = true;
    lock.unlock();
    const bool well = receive_one();
    lock.lock();
    somebody_reads_ = false;
    if (!well) break_up();
    changed_.notify_all();
  }
}

/// Reads one answer and gives it to whom it is for. False: there will be no more.
bool Connection::receive_one() {
  AnswerFrameHeader header;
  Descriptors beside;
  if (!receive_all(socket_.get(), std::as_writable_bytes(std::span(&header, 1)), beside)) return false;
  std::array<std::byte, kMostFrameBytes> body;
  if (header.bytes > body.size()) return false;
  const auto whole = std::span(body).first(header.bytes);
  if (!receive_all(socket_.get(), whole, beside)) return false;
  const std::lock_guard lock(mutex_);
  const auto found = pending_.find(header.number);
  if (found == pending_.end()) return true;
  Pending& waits = *found->second;
  waits.answer = {.status = header.status,
                  .client = header.client,
                  .bytes = std::min(whole.size(), waits.body.size()),
                  .descriptors = std::move(beside)};
  std::copy_n(whole.begin(), waits.answer.bytes, waits.body.begin());
  waits.there = true;
  return true;
}

/// Every wait of the process ends, those for a connection that broke without a word too.
void Connection::break_up() {
  if (broken_.exchange(true)) return;
  memory_.wakes.advance();
  memory_.writes.advance();
}

bool Connection::look_whether_gone() {
  if (look_whether_lost()) return true;
  const Unnoticed unnoticed;
  pollfd what{.fd = socket_.get(), .events = POLLRDHUP, .revents = 0};
  if (poll(&what, 1, 0) == 1 && (what.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0) break_up();
  return gone();
}

bool Connection::look_whether_lost() {
  if (!gone() && !has_its_descriptors()) break_up();
  return gone();
}

void Connection::ring_bell() {
  const Unnoticed unnoticed;
  if (!look_whether_lost()) static_cast<void>(eventfd_write(bell_.get(), 1));
}

}  // namespace rnic::remote
