#include <catch2/catch.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <csignal>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#include "testbench/server/helped_memory.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/silent_memory.hpp"

using namespace rnic;
using testbench::HelpedMemory;
using testbench::MemoryHelpers;
using Reach = HelpedMemory::Reach;
using Clock = std::chrono::steady_clock;

// Memory of processes that a machine reaches by helpers, which may be kept waiting in its stead.

namespace {

constexpr std::size_t kPage = 4096, kPages = 4;

/// A child with some pages of a pattern, none behind them, which then does what it is told.
struct Child {
  std::uint8_t* const memory = static_cast<std::uint8_t*>(
      mmap(nullptr, (kPages + 1) * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  std::array<int, 2> ready{};
  pid_t process;

  explicit Child(const std::function<int(std::uint8_t*)>& then = {}) {
    REQUIRE(pipe(ready.data()) == 0);
    process = test::in_child([&] {
      munmap(memory + kPages * kPage, kPage);
      for (std::size_t i = 0; i < kPages * kPage; ++i) memory[i] = static_cast<std::uint8_t>(i * 7);
      const int code = then ? then(memory) : 0;
      if (write(ready[1], &code, sizeof code) != sizeof code) return 1;
      for (;;) pause();
    });
  }
  /// What it has come to.
  [[nodiscard]] int code() const {
    int told = -1;
    REQUIRE(read(ready[0], &told, sizeof told) == sizeof told);
    return told;
  }
  ~Child() {
    kill(process, SIGKILL);
    test::exit_of(process);
    close(ready[0]);
    close(ready[1]);
    munmap(memory, (kPages + 1) * kPage);
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(memory) + offset; }
};

model::DmaRequest write_of(std::size_t bytes) {
  model::DmaRequest request;
  request.kind = model::TlpKind::kMemoryWrite;
  request.length_dw = static_cast<std::uint16_t>(bytes / 4);
  request.first_be = request.last_be = 0xF;
  request.data.assign(bytes, 0xEE);
  return request;
}

bool good(HelpedMemory& memory, const std::shared_ptr<HelpedMemory::Access>& access) {
  memory.finish(*access);
  return access->good;
}

}  // namespace

TEST_CASE("accesses that are under way together are answered in their order") {
  MemoryHelpers helpers;
  Child child;
  REQUIRE(child.code() == 0);
  HelpedMemory memory(helpers.start(child.process));
  REQUIRE(memory.opened() == Reach::kYes);
  CHECK(memory.reach(child.at(0), kPages * kPage, true) == Reach::kYes);
  CHECK(memory.reach(child.at(0), kPages * kPage + 1, false) == Reach::kNo);
  // More than can be under way.
  std::vector<std::shared_ptr<HelpedMemory::Access>> reads;
  for (std::size_t i = 0; i < 300; ++i) {
    if (i == 150) CHECK(good(memory, memory.write(child.at(0), write_of(kPage))));
    reads.push_back(memory.read(child.at(i), 64));
  }
  for (std::size_t i = reads.size(); i-- > 0;) {
    CAPTURE(i);
    REQUIRE(good(memory, reads[i]));
    REQUIRE(reads[i]->data.size() == 64);
    CHECK(reads[i]->data[5] == (i >= 150 ? 0xEE : static_cast<std::uint8_t>((i + 5) * 7)));
  }
  CHECK_FALSE(good(memory, memory.read(child.at(kPages * kPage), 64)));
  CHECK_FALSE(good(memory, memory.read(child.at(0), std::size_t{1} << 20)));
  CHECK(good(memory, memory.read(child.at(0), 4)));
  CHECK(memory.lost().empty());
}

TEST_CASE("a process that has ended, or is another program, has lost its memory") {
  MemoryHelpers helpers;
  auto ended = std::make_unique<Child>();
  REQUIRE(ended->code() == 0);
  HelpedMemory memory(helpers.start(ended->process));
  REQUIRE(memory.opened() == Reach::kYes);
  const auto at = ended->at(0);
  ended.reset();
  CHECK_FALSE(good(memory, memory.read(at, 64)));
  CHECK_FALSE(memory.lost().empty());
  CHECK(memory.reach(at, 1, false) == Reach::kNo);

  std::array<int, 2> go{};
  REQUIRE(pipe(go.data()) == 0);
  const pid_t process = test::in_child([&] {
    char byte{};
    if (read(go[0], &byte, 1) != 1) return 1;
    execl("/bin/sleep", "sleep", "100", static_cast<char*>(nullptr));
    return 2;
  });
  HelpedMemory old(helpers.start(process));
  REQUIRE(old.opened() == Reach::kYes);
  const auto here = reinterpret_cast<std::uint64_t>(&go);
  CHECK(good(old, old.read(here, sizeof go)));
  REQUIRE(write(go[1], "x", 1) == 1);
  for (int i = 0; i < 1000 && old.lost().empty(); ++i) {
    static_cast<void>(good(old, old.read(here, 4)));
    usleep(2'000);
  }
  CHECK_FALSE(old.lost().empty());
  kill(process, SIGKILL);
  test::exit_of(process);
  close(go[0]);
  close(go[1]);
}

TEST_CASE("of a process that there is not nothing is there") {
  MemoryHelpers helpers;
  HelpedMemory none(helpers.start(0x7FFF'FFF0));
  CHECK(none.opened() == Reach::kNo);
  CHECK(none.reach(0x1000, 1, false) == Reach::kNo);
}

TEST_CASE("memory that never answers is given up, and that of others is not") {
  MemoryHelpers helpers;
  Child silent([](std::uint8_t* memory) { return test::silence(memory, 2 * kPage); });
  Child other;
  if (silent.code() != 0) {
    WARN("this user may not keep the kernel waiting (userfaultfd)");
    return;
  }
  REQUIRE(other.code() == 0);
  HelpedMemory lost(helpers.start(silent.process)), well(helpers.start(other.process));
  CHECK(good(lost, lost.read(silent.at(2 * kPage), 64)));
  const auto begin = Clock::now();
  const auto first = lost.read(silent.at(0), 64), second = lost.read(silent.at(2 * kPage), 64);
  CHECK_FALSE(good(lost, first));
  CHECK_FALSE(good(lost, second));
  const double waited = std::chrono::duration<double>(Clock::now() - begin).count();
  CHECK(waited > 0.9);
  CHECK(waited < 5);
  CHECK_FALSE(lost.lost().empty());
  // From then on nobody waits.
  for (int i = 0; i < 1000; ++i) CHECK_FALSE(good(lost, lost.write(silent.at(2 * kPage), write_of(64))));
  CHECK(std::chrono::duration<double>(Clock::now() - begin).count() < waited + 1);
  CHECK(good(well, well.read(other.at(0), 64)));
}

TEST_CASE("helpers end with their machine") {
  auto helpers = std::make_unique<MemoryHelpers>();
  Child child;
  REQUIRE(child.code() == 0);
  HelpedMemory memory(helpers->start(child.process));
  REQUIRE(memory.opened() == Reach::kYes);
  helpers.reset();
  bool still = true;
  for (int i = 0; i < 1000 && still; ++i) {
    still = good(memory, memory.read(child.at(0), 4));
    usleep(2'000);
  }
  CHECK_FALSE(still);
}
