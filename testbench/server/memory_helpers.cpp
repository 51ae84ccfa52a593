#include "testbench/server/memory_helpers.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <fstream>
#include <span>
#include <string>
#include <system_error>
#include <utility>

#include "driver/remote/protocol.hpp"
#include "model/memory_file.hpp"

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kForLong = 3'600'000'000'000;
/// So often a helper looks for the next request before it sleeps: those of one message follow each other.
constexpr int kHelperLooks = 1000;

MemoryChannel* map_channel(int memory) {
  void* const at = mmap(nullptr, sizeof(MemoryChannel), PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return at == MAP_FAILED ? nullptr : static_cast<MemoryChannel*>(at);
}

std::uint32_t perform(const model::MemoryFile& memory, MemoryChannel::Slot& slot) {
  using Kind = MemoryChannel::Slot::Kind;
  const auto data = std::span(slot.data).first(std::min<std::uint64_t>(slot.length, slot.data.size()));
  switch (slot.kind) {
    case Kind::kRead: return memory.read(slot.address, data) ? 1 : 0;
    case Kind::kWrite: return memory.write(slot.address, data, {slot.length_dw, slot.first_be, slot.last_be}) ? 1 : 0;
    case Kind::kReach: break;
  }
  return static_cast<std::uint32_t>(memory.reach(slot.address, slot.length, slot.writable != 0));
}

/// With the process that has made it ends this one, however that ends.
void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);
}

[[noreturn]] void help(MemoryChannel& channel, std::int32_t process) {
  const model::MemoryFile memory(process);
  channel.opened = static_cast<std::uint32_t>(memory.opened());
  channel.answered.advance();
  for (std::uint32_t next = 0;; ++next) {
    for (int i = 0; i < kHelperLooks && channel.asked.count.load() == next; ++i) __builtin_ia32_pause();
    while (channel.asked.count.load() == next) channel.asked.wait(next, kForLong);
    MemoryChannel::Slot& slot = channel.slot(next);
    slot.answer = perform(memory, slot);
    slot.ended = slot.answer != 1 && memory.ended() ? 1 : 0;
    channel.answered.advance();
  }
}

/// What the maker says of a helper that it has made; beside it the process.
struct Made {
  pid_t number{};
};

void make(int socket) {
  const pid_t self = getpid();
  std::int32_t process{};
  remote::Descriptors memory;
  if (!remote::receive_all(socket, std::as_writable_bytes(std::span(&process, 1)), memory)) _exit(0);
  Made made{.number = fork()};
  if (made.number == 0) {
    end_with(self);
    prctl(PR_SET_NAME, "rnic-memory");
    MemoryChannel* const channel = map_channel(memory[0].get());
    close(socket);
    if (channel == nullptr) _exit(1);
    memory[0] = {};
    help(*channel, process);
  }
  const remote::Descriptor handle(made.number < 0 ? -1 : static_cast<int>(syscall(SYS_pidfd_open, made.number, 0)));
  const std::array beside{handle.get()};
  if (!remote::send_all(socket, std::as_bytes(std::span(&made, 1)),
                        handle ? std::span<const int>(beside) : std::span<const int>()))
    _exit(0);
}

/// Has nothing of the process of which it is a copy but the socket.
[[noreturn]] void make_helpers(int socket, pid_t machine) {
  end_with(machine);
  prctl(PR_SET_NAME, "rnic-helpers");
  const int nothing = open("/dev/null", O_RDWR);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) dup2(nothing, standard);
  constexpr int kOwn = STDERR_FILENO + 1;
  if (socket != kOwn) dup2(socket, kOwn);
  close_range(kOwn + 1, UINT_MAX, 0);
  // Nobody asks how they ended.
  std::signal(SIGCHLD, SIG_IGN);
  for (;;) make(kOwn);
}

}  // namespace

MemoryHelpers::MemoryHelpers() {
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw std::system_error(errno, std::generic_category(), "socketpair");
  socket_ = remote::Descriptor(ends[0]);
  const remote::Descriptor other(ends[1]);
  const pid_t machine = getpid();
  maker_ = fork();
  if (maker_ < 0) throw std::system_error(errno, std::generic_category(), "fork");
  if (maker_ == 0) make_helpers(other.get(), machine);
}

MemoryHelpers::~MemoryHelpers() {
  kill(maker_, SIGKILL);
  waitpid(maker_, nullptr, 0);
}

std::unique_ptr<MemoryHelpers::Helper> MemoryHelpers::start(std::int32_t process) {
  const remote::Descriptor memory(memfd_create("rnic_memory_channel", MFD_CLOEXEC));
  if (!memory || ftruncate(memory.get(), sizeof(MemoryChannel)) != 0) return nullptr;
  std::unique_ptr<Helper> helper(new Helper);
  helper->channel_ = map_channel(memory.get());
  const std::array beside{memory.get()};
  Made made;
  remote::Descriptors handle;
  if (helper->channel_ == nullptr || !remote::send_all(socket_.get(), std::as_bytes(std::span(&process, 1)), beside) ||
      !remote::receive_all(socket_.get(), std::as_writable_bytes(std::span(&made, 1)), handle) || !handle[0])
    return nullptr;
  helper->number_ = made.number;
  helper->process_ = std::move(handle[0]);
  return helper;
}

MemoryHelpers::Helper::~Helper() {
  end();
  if (channel_ != nullptr) munmap(channel_, sizeof *channel_);
}

bool MemoryHelpers::Helper::blocked() const {
  std::ifstream file("/proc/" + std::to_string(number_) + "/stat");
  std::string line;
  std::getline(file, line);
  const auto name_end = line.rfind(") ");
  return name_end != std::string::npos && line[name_end + 2] != 'R';
}

bool MemoryHelpers::Helper::ended() const {
  pollfd what{.fd = process_.get(), .events = POLLIN, .revents = 0};
  return !process_ || poll(&what, 1, 0) != 0;
}

void MemoryHelpers::Helper::end() {
  if (process_) syscall(SYS_pidfd_send_signal, process_.get(), SIGKILL, nullptr, 0);
  process_ = {};
}

}  // namespace rnic::testbench
