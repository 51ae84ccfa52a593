#include "testbench/server/socket_session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "driver/remote/outside_time.hpp"
#include "testbench/server/event_log_writer.hpp"
#include "testbench/server/helped_memory.hpp"
#include "testbench/server/host_server.hpp"

namespace rnic::testbench {
namespace {

/// Of one process. One that has more waits with the others, in its socket.
constexpr std::size_t kMostCalls = 16;
/// Of one process, before it is another's turn.
constexpr std::size_t kMostFrames = 64;

/// Time outside that counts as that of the begin of simulated time, for all processes of all hosts alike.
struct Beginning {
  std::uint64_t monotonic_ns = remote::outside_clock_ns(CLOCK_MONOTONIC);
  std::uint64_t realtime_ns = remote::outside_clock_ns(CLOCK_REALTIME);
};

const Beginning& beginning() {
  static const Beginning begin;
  return begin;
}

}  // namespace

std::shared_ptr<SocketSession> SocketSession::open(HostServer& host, Listener::Peer peer, EventLogWriter* log) {
  std::shared_ptr<SocketSession> session(new SocketSession(host, std::move(peer)));
  // The poller keeps it no longer than it is watched.
  Poller& poller = host.poller();
  session->socket_watch_ = poller.add(session->socket_.get(), [own = session.get()] { own->socket_readable_ = true; });
  session->process_watch_ = poller.add(session->process_end_.get(), [own = session.get()] { own->hang_up(""); });
  // Each ring is announced, and nobody reads them: whether a read waits is the process's to say (fcntl), too.
  session->bell_watch_ = poller.add(session->bell_.get(), [] {});
  session->log_ = log;
  if (log != nullptr) session->number_ = log->attach(host.host().index(), session->process());
  return session;
}

SocketSession::SocketSession(HostServer& host, Listener::Peer peer)
    : Session(host, peer.number),
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
  const Beginning& begin = beginning();
  memory_->monotonic_begin_ns = begin.monotonic_ns;
  memory_->realtime_begin_ns = begin.realtime_ns;
  show_simulated(host.simulated());
}

SocketSession::~SocketSession() { munmap(memory_, sizeof *memory_); }

bool SocketSession::take() {
  if (helped_ != nullptr && !helped_->lost().empty()) hang_up(helped_->lost());
  const bool rang = take_doorbells();
  return take_requests() || rang;
}

/// Makes TLPs of the doorbells that wait. Returns whether there were any.
bool SocketSession::take_doorbells() {
  remote::Doorbell doorbell;
  // No more than the ring holds: a process that writes faster than this takes must not hold up the others.
  std::size_t taken = 0;
  for (; !ended() && taken < remote::DoorbellRing::kSlots && memory_->doorbells.take(next_ticket_, doorbell); ++taken) {
    ++next_ticket_;
    if (log_ != nullptr) log_->doorbell(number_, doorbell);
    ring(doorbell);
  }
  if (taken != 0) memory_->doorbells.taken();
  return taken != 0;
}

/// Answers what requests have come, as far as not too many calls are under way. Returns whether there were any.
bool SocketSession::take_requests() {
  std::size_t taken = 0;
  while (!ended() && calls_under_way() < kMostCalls && taken < kMostFrames) {
    auto frame = frames_.next();
    if (!frame) {
      if (frames_.too_long()) hang_up("a request longer than any is");
      if (ended() || !socket_readable_) break;
      const auto came = frames_.receive(socket_.get());
      if (came == FrameReader::Came::kEnd) hang_up("");
      socket_readable_ = came == FrameReader::Came::kSome;
      continue;
    }
    ++taken;
    // What the process rang before it asked has left before the question is heard.
    take_doorbells();
    if (ended()) break;
    if (!greeted_) {
      greet(*frame);
      continue;
    }
    if (log_ != nullptr) log_->request(number_, frame->header, frame->body);
    perform(*frame);
  }
  more_ = taken == kMostFrames;
  return taken != 0;
}

void SocketSession::greet(const RequestFrame& frame) {
  const auto hello = read_body<remote::Hello>(frame);
  if (frame.header.kind != remote::FrameKind::kHello || !hello || hello->magic != remote::kMagic)
    return hang_up("it does not begin as a client of this machine does");
  remote::Welcome welcome;
  Answer answer{.to = frame.header, .status = calls::Status::kSuccess, .body = bytes_of(welcome), .beside = {}};
  if (hello->version != remote::kProtocolVersion || hello->calls_version != calls::kVersion) {
    answer.status = calls::Status::kVersionMismatch;
    static_cast<void>(send(answer));
    return hang_up(fmt::format("it speaks version {}.{}, this is {}.{}", hello->version, hello->calls_version,
                               remote::kProtocolVersion, calls::kVersion));
  }
  greeted_ = true;
  purpose_ = hello->purpose;
  welcome.memory_bytes = sizeof *memory_;
  const std::array beside{memory_descriptor_.get(), bell_.get()};
  answer.beside = beside;
  if (!send(answer)) hang_up("it does not take its answers");
}

bool SocketSession::send(const Answer& answer) {
  const remote::AnswerFrameHeader header{.bytes = static_cast<std::uint32_t>(answer.body.size()),
                                         .status = answer.status,
                                         .reserved = 0,
                                         .number = answer.to.number,
                                         .client = answer.client};
  std::vector<std::byte> frame(sizeof header + answer.body.size());
  std::memcpy(frame.data(), &header, sizeof header);
  if (!answer.body.empty()) std::memcpy(frame.data() + sizeof header, answer.body.data(), answer.body.size());
  // There is always room for the answers of a process that waits for them.
  const bool taken = remote::send_all(socket_.get(), frame, answer.beside);
  if (log_ != nullptr && (!taken || of_kernel(answer.to.kind)) && answer.to.kind != remote::FrameKind::kHello)
    log_->answer(number_, answer.to.number, checksum_of(answer.status, answer.client, answer.body), taken);
  return taken;
}

/// The process ends the connection, and not what it asked for.
void SocketSession::hang_up(const std::string& why) {
  if (ended()) return;
  if (log_ != nullptr) log_->detach(number_);
  end(why);
}

std::shared_ptr<model::ProcessMemory> SocketSession::reach_memory() {
  auto helper = host().start_helper(process());
  if (helper == nullptr) return nullptr;
  auto memory = std::make_shared<HelpedMemory>(std::move(helper));
  if (memory->opened() != HelpedMemory::Reach::kYes) return nullptr;
  // What was opened by number is that of this process if it is still there.
  pollfd what{.fd = process_end_.get(), .events = POLLIN, .revents = 0};
  if (poll(&what, 1, 0) == 0) helped_ = memory;
  return helped_;
}

void SocketSession::disconnect() {
  Poller& poller = host().poller();
  poller.remove(socket_.get(), socket_watch_);
  poller.remove(process_end_.get(), process_watch_);
  poller.remove(bell_.get(), bell_watch_);
  socket_ = {};
}

void SocketSession::show(std::uint64_t now_ns, std::uint64_t still_since) {
  memory_->clock.set(now_ns, still_since);
  if (std::exchange(written_, false)) memory_->writes.advance();
}

bool SocketSession::fall_asleep() {
  memory_->asleep.store(1);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return more_ || memory_->doorbells.waits(next_ticket_);
}

void SocketSession::say_goodbye() {
  memory_->gone.store(1);
  memory_->writes.advance();
  memory_->doorbells.taken();
  wake();
}

}  // namespace rnic::testbench
