// Functions of the C library that start a program: with the processor's counter as the processor has it (CounterFree).
#include <spawn.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "driver/clock/program_clock.hpp"
#include "driver/clock/real.hpp"
#include "driver/clock/tsc_trap.hpp"

using namespace rnic::clock;

namespace {

/// The arguments of execl and the like, from the first on, with the null at their end.
std::vector<char*> arguments_of(const char* first, va_list* rest) {
  std::vector<char*> all{const_cast<char*>(first)};
  while (all.back() != nullptr) all.push_back(va_arg(*rest, char*));
  return all;
}

}  // namespace

// Before anything of the program.
[[gnu::constructor]] static void begin() {
  if (ProgramClock::get() != nullptr) trap_counter();
}

extern "C" {

int execve(const char* path, char* const arguments[], char* const environment[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(execve)(path, arguments, environment);
}
int execv(const char* path, char* const arguments[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(execv)(path, arguments);
}
int execvp(const char* file, char* const arguments[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(execvp)(file, arguments);
}
int execvpe(const char* file, char* const arguments[], char* const environment[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(execvpe)(file, arguments, environment);
}
int fexecve(int file, char* const arguments[], char* const environment[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(fexecve)(file, arguments, environment);
}
int execl(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const auto arguments = arguments_of(first, &rest);
  va_end(rest);
  return execv(path, arguments.data());
}
int execlp(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const auto arguments = arguments_of(first, &rest);
  va_end(rest);
  return execvp(file, arguments.data());
}
int execle(const char* path, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const auto arguments = arguments_of(first, &rest);
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return execve(path, arguments.data(), environment);
}

int posix_spawn(pid_t* process, const char* path, const posix_spawn_file_actions_t* actions,
                const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(posix_spawn)(process, path, actions, attributes, arguments, environment);
}
int posix_spawnp(pid_t* process, const char* file, const posix_spawn_file_actions_t* actions,
                 const posix_spawnattr_t* attributes, char* const arguments[], char* const environment[]) noexcept {
  const CounterFree free;
  return RNIC_REAL(posix_spawnp)(process, file, actions, attributes, arguments, environment);
}

int system(const char* command) {
  const CounterFree free;
  return RNIC_REAL(system)(command);
}
FILE* popen(const char* command, const char* mode) {
  const CounterFree free;
  return RNIC_REAL(popen)(command, mode);
}

}  // extern "C"
