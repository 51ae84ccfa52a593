// The processor's counter, and the functions of the C library by which a program could take SIGSEGV from it.
#include "driver/clock/tsc_trap.hpp"

#include <elf.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>

#include "driver/clock/program_clock.hpp"
#include "driver/clock/real.hpp"

namespace rnic::clock {
namespace {

/// What the program wants done at SIGSEGV. Written by one that calls sigaction, read in the handler: the copy that is
/// valid is the one of `g_which`.
struct sigaction g_program[2];
std::atomic<unsigned> g_which{};
std::atomic<bool> g_traps{};

const struct sigaction& action_of_program() { return g_program[g_which.load(std::memory_order_acquire)]; }
void set_action_of_program(const struct sigaction& action) {
  const unsigned next = 1 - g_which.load();
  g_program[next] = action;
  g_which.store(next, std::memory_order_release);
}

#if defined(__x86_64__)

/// The kernel's code in this process (vDSO) reads the counter for the system's own time.
struct Range {
  std::uintptr_t begin = 0, end = 0;
};
Range g_vdso;

Range find_vdso() {
  const std::uintptr_t base = getauxval(AT_SYSINFO_EHDR);
  if (base == 0) return {};
  const auto* const header = reinterpret_cast<const ElfW(Ehdr)*>(base);
  const auto* const segments = reinterpret_cast<const ElfW(Phdr)*>(base + header->e_phoff);
  Range range{base, base};
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    if (segments[i].p_type == PT_LOAD) range.end = base + segments[i].p_offset + segments[i].p_memsz;
  }
  return range;
}

std::uint64_t counter_of_processor() {
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
  std::uint32_t low = 0, high = 0;
  asm volatile("rdtsc" : "=a"(low), "=d"(high));
  prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  return std::uint64_t{high} << 32 | low;
}

/// Does what the instruction that was refused is for. False: it was another one.
bool emulate(ucontext_t& context) {
  constexpr unsigned char kRdtsc[] = {0x0f, 0x31};
  constexpr unsigned char kRdtscp[] = {0x0f, 0x01, 0xf9};
  auto& registers = context.uc_mcontext.gregs;
  const auto at = static_cast<std::uintptr_t>(registers[REG_RIP]);
  const bool plain = std::memcmp(reinterpret_cast<const void*>(at), kRdtsc, sizeof kRdtsc) == 0;
  if (!plain && std::memcmp(reinterpret_cast<const void*>(at), kRdtscp, sizeof kRdtscp) != 0) return false;
  const bool systems = at >= g_vdso.begin && at < g_vdso.end;
  ProgramClock* const clock = systems ? nullptr : ProgramClock::get();
  const std::uint64_t ticks = clock != nullptr ? clock->ticks() : counter_of_processor();
  registers[REG_RAX] = static_cast<greg_t>(ticks & 0xffffffff);
  registers[REG_RDX] = static_cast<greg_t>(ticks >> 32);
  if (!plain) {
    unsigned processor = 0, node = 0;
    syscall(SYS_getcpu, &processor, &node, nullptr);
    registers[REG_RCX] = static_cast<greg_t>(node << 12 | processor);
  }
  registers[REG_RIP] += plain ? sizeof kRdtsc : sizeof kRdtscp;
  return true;
}

/// A fault of the program, as it would have been without this handler.
void pass_on(int signal, siginfo_t* info, void* context) {
  const struct sigaction action = action_of_program();
  const bool sent = info->si_code <= 0;
  if (sent && (action.sa_flags & SA_SIGINFO) == 0 && action.sa_handler == SIG_IGN) return;
  if ((action.sa_flags & SA_SIGINFO) == 0 && (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
    struct sigaction end {};
    end.sa_handler = SIG_DFL;
    RNIC_REAL(sigaction)(SIGSEGV, &end, nullptr);
    // The instruction fails once more, behind this; what was sent is sent once more.
    if (sent) raise(SIGSEGV);
    return;
  }
  if ((action.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) set_action_of_program({});
  sigset_t mask = action.sa_mask;
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&mask, SIGSEGV);
  RNIC_REAL(pthread_sigmask)(SIG_BLOCK, &mask, nullptr);
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  action.sa_handler(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  const int error = errno;
  const bool refused = info->si_code == SI_KERNEL && emulate(*static_cast<ucontext_t*>(context));
  errno = error;
  if (!refused) pass_on(signal, info, context);
}

/// Go names itself in a note of its programs.
int finds_go(dl_phdr_info* info, std::size_t, void* found) {
  for (unsigned i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_NOTE) continue;
    const auto* at = reinterpret_cast<const char*>(info->dlpi_addr + segment.p_vaddr);
    const char* const end = at + segment.p_memsz;
    while (at + sizeof(ElfW(Nhdr)) <= end) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      if (note.n_namesz == sizeof "Go" && std::memcmp(at + sizeof note, "Go", sizeof "Go") == 0)
        *static_cast<bool*>(found) = true;
      at += sizeof note + (note.n_namesz + 3) / 4 * 4 + (note.n_descsz + 3) / 4 * 4;
    }
  }
  return 1;  // the program comes first
}

#endif

/// A fault whose signal is blocked is the end of the process.
sigset_t without_fault(const sigset_t& set) {
  sigset_t rest = set;
  if (g_traps.load(std::memory_order_relaxed)) sigdelset(&rest, SIGSEGV);
  return rest;
}

}  // namespace

void trap_counter() {
#if defined(__x86_64__)
  bool go = false;
  dl_iterate_phdr(finds_go, &go);
  if (go) return;
  g_vdso = find_vdso();
  struct sigaction before {};
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  // Another rdtsc may be refused in a handler of the program that this one calls.
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  if (RNIC_REAL(sigaction)(SIGSEGV, &action, &before) != 0) return;
  set_action_of_program(before);
  sigset_t fault;
  sigemptyset(&fault);
  sigaddset(&fault, SIGSEGV);
  RNIC_REAL(pthread_sigmask)(SIG_UNBLOCK, &fault, nullptr);
  // What the handler calls is looked up now.
  pollfd nothing{};
  poll(&nothing, 0, 0);
  g_traps.store(prctl(PR_SET_TSC, PR_TSC_SIGSEGV) == 0);
#endif
}

CounterFree::CounterFree() {
#if defined(__x86_64__)
  if (!g_traps.load(std::memory_order_relaxed)) return;
  prctl(PR_GET_TSC, &before_);
  prctl(PR_SET_TSC, PR_TSC_ENABLE);
#endif
}

CounterFree::~CounterFree() {
#if defined(__x86_64__)
  const int error = errno;
  if (before_ == PR_TSC_SIGSEGV) prctl(PR_SET_TSC, PR_TSC_SIGSEGV);
  errno = error;
#endif
}

}  // namespace rnic::clock

using namespace rnic::clock;

extern "C" {

int sigaction(int signal, const struct sigaction* action, struct sigaction* before) noexcept {
  if (!g_traps.load(std::memory_order_relaxed)) return RNIC_REAL(sigaction)(signal, action, before);
  if (signal == SIGSEGV) {
    const struct sigaction was = action_of_program();
    if (action != nullptr) set_action_of_program(*action);
    if (before != nullptr) *before = was;
    return 0;
  }
  if (action == nullptr) return RNIC_REAL(sigaction)(signal, action, before);
  struct sigaction with_fault = *action;
  with_fault.sa_mask = without_fault(action->sa_mask);
  return RNIC_REAL(sigaction)(signal, &with_fault, before);
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  return sigaction(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
}

int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  if (set == nullptr || how == SIG_UNBLOCK) return RNIC_REAL(sigprocmask)(how, set, before);
  const sigset_t rest = without_fault(*set);
  return RNIC_REAL(sigprocmask)(how, &rest, before);
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  if (set == nullptr || how == SIG_UNBLOCK) return RNIC_REAL(pthread_sigmask)(how, set, before);
  const sigset_t rest = without_fault(*set);
  return RNIC_REAL(pthread_sigmask)(how, &rest, before);
}

}  // extern "C"
