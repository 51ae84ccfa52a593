#include "testbench/tool/status_line.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

namespace rnic::testbench {
namespace {

constexpr std::uint64_t kPeriodNs = 500'000'000;

}  // namespace

StatusLine::StatusLine(MachineServer& server) : server_(server), terminal_(isatty(STDERR_FILENO) != 0) {
  if (terminal_) server.look_now_and_then(kPeriodNs, [this] { show(); });
}

StatusLine::~StatusLine() {
  if (!terminal_) return;
  server_.look_now_and_then(0, {});
  std::fputs("\r\033[K", stderr);
}

void StatusLine::show() {
  World& world = server_.world();
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    const auto plug = world.plug(i);
    bytes += plug.wire.statistics(plug.end).bytes;
  }
  std::size_t processes = 0;
  std::uint64_t calls = 0, doorbells = 0;
  for (const auto& host : server_.hosts()) {
    for (const auto& session : host->sessions()) {
      if (session->ended()) continue;
      const auto figures = session->figures();
      ++processes;
      calls += figures.calls;
      doorbells += figures.doorbells;
    }
  }
  const std::uint64_t now = world.now_ns(), passed = now - shown_ns_;
  const double gbps = passed == 0 ? 0 : 8.0 * static_cast<double>(bytes - shown_bytes_) / static_cast<double>(passed);
  fmt::print(stderr, "\r\033[K  {:.6f} s simulated, {} process{}, {} calls, {} doorbells, wire {:.1f} Gbit/s{}",
             static_cast<double>(now) * 1e-9, processes, processes == 1 ? "" : "es", calls, doorbells, gbps,
             server_.paused() ? ", paused"
             : passed == 0    ? ", still"
                              : "");
  std::fflush(stderr);
  shown_ns_ = now;
  shown_bytes_ = bytes;
}

}  // namespace rnic::testbench
