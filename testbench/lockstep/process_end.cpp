// What programs that were loaded (rnic lockstep) find in the place of exit and its kin: their own end, not the tool's.
#include <cstdlib>

#include "testbench/nd2_programs.hpp"

namespace {

[[noreturn]] void end_program(int code) {
  static_cast<void>(rnic::testbench::Nd2Programs::exit(code));
  std::_Exit(code);
}

}  // namespace

extern "C" {

// Names that the linker makes (--wrap).
[[noreturn]] void __wrap_exit(int code);
[[noreturn]] void __wrap__exit(int code);
[[noreturn]] void __wrap__Exit(int code);
[[noreturn]] void __wrap_quick_exit(int code);

void __wrap_exit(int code) { end_program(code); }
void __wrap__exit(int code) { end_program(code); }
void __wrap__Exit(int code) { end_program(code); }
void __wrap_quick_exit(int code) { end_program(code); }
}
