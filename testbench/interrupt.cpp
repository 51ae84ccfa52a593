#include "testbench/interrupt.hpp"

#include <csignal>

namespace rnic::testbench {
namespace {

volatile std::sig_atomic_t g_interrupted = 0;

void note(int) { g_interrupted = 1; }

}  // namespace

void catch_interrupts() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

bool interrupted() { return g_interrupted != 0; }

}  // namespace rnic::testbench
