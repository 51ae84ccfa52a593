#include <catch2/catch.hpp>

#include <linux/sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <vector>

#include "model/host_memory.hpp"
#include "model/iommu.hpp"
#include "model/memory_file.hpp"
#include "tests/server/server_process.hpp"

using namespace rnic;
using model::Iommu;
using model::MemoryFile;
using Reach = MemoryFile::Reach;

// Memory of other processes, as a device of this one reaches it.

namespace {

constexpr std::size_t kPage = 4096;

/// A child with pages of its own: of pattern, read-only, without any right, none. It changes nothing by itself.
struct Child {
  std::uint8_t* memory;
  std::array<int, 2> pipe_ends{};
  pid_t process;

  Child() {
    memory = static_cast<std::uint8_t*>(
        mmap(nullptr, 6 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    REQUIRE(pipe(pipe_ends.data()) == 0);
    process = test::in_child([this] {
      for (std::size_t i = 0; i < 3 * kPage; ++i) memory[i] = static_cast<std::uint8_t>(i + i / kPage);
      mprotect(memory + 2 * kPage, kPage, PROT_READ);
      mprotect(memory + 3 * kPage, kPage, PROT_NONE);
      munmap(memory + 4 * kPage, kPage);
      char byte = 0;
      if (write(pipe_ends[1], &byte, 1) != 1) return 1;
      for (;;) pause();
    });
    char byte{};
    REQUIRE(read(pipe_ends[0], &byte, 1) == 1);
  }
  ~Child() {
    kill(process, SIGKILL);
    test::exit_of(process);
    close(pipe_ends[0]);
    close(pipe_ends[1]);
    munmap(memory, 6 * kPage);
  }
  [[nodiscard]] std::uint64_t at(std::size_t offset) const { return reinterpret_cast<std::uint64_t>(memory) + offset; }
};

model::DmaRequest write_of(std::size_t dwords, std::uint8_t first_be, std::uint8_t last_be) {
  model::DmaRequest request;
  request.kind = model::TlpKind::kMemoryWrite;
  request.length_dw = static_cast<std::uint16_t>(dwords);
  request.first_be = first_be;
  request.last_be = last_be;
  for (std::size_t i = 0; i < 4 * dwords; ++i) request.data.push_back(static_cast<std::uint8_t>(0xC0 + i));
  return request;
}

bool write_to(const MemoryFile& memory, std::uint64_t address, const model::DmaRequest& request) {
  return memory.write(address, request.data, {request.length_dw, request.first_be, request.last_be});
}

}  // namespace

TEST_CASE("reads and writes reach memory of another process, and not this one's") {
  Child child;
  const MemoryFile memory(child.process);
  std::array<std::uint8_t, 32> bytes{};
  REQUIRE(memory.read(child.at(kPage - 16), bytes));
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const std::size_t at = kPage - 16 + i;
    CHECK(bytes[i] == static_cast<std::uint8_t>(at + at / kPage));
  }
  // Only what the byte enables of the request say.
  REQUIRE(write_to(memory, child.at(64), write_of(3, 0b1100, 0b0101)));
  std::array<std::uint8_t, 12> after{};
  REQUIRE(memory.read(child.at(64), after));
  CHECK(after == std::array<std::uint8_t, 12>{64, 65, 0xC2, 0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 73, 0xCA, 75});
  CHECK(child.memory[66] == 0);  // here
  CHECK(write_to(memory, child.at(64), write_of(1, 0, 0)));
}

TEST_CASE("what the process does not have, or may not change, is refused") {
  Child child;
  const MemoryFile memory(child.process);
  std::array<std::uint8_t, 8> bytes{};
  CHECK(memory.read(child.at(2 * kPage), bytes));
  CHECK_FALSE(memory.read(child.at(3 * kPage), bytes));
  CHECK_FALSE(memory.read(child.at(4 * kPage), bytes));
  CHECK_FALSE(write_to(memory, child.at(2 * kPage), write_of(1, 0xF, 0)));
  CHECK_FALSE(write_to(memory, child.at(4 * kPage), write_of(1, 0xF, 0)));
  CHECK(memory.reach(child.at(0), 2 * kPage, true) == Reach::kYes);
  CHECK(memory.reach(child.at(1), 3 * kPage - 1, false) == Reach::kYes);
  CHECK(memory.reach(child.at(1), 3 * kPage - 1, true) == Reach::kNo);
  CHECK(memory.reach(child.at(2 * kPage), kPage + 1, false) == Reach::kNo);
  CHECK(memory.reach(child.at(4 * kPage), 1, false) == Reach::kNo);
  CHECK(memory.reach(child.at(5 * kPage), kPage, true) == Reach::kYes);  // never used
  CHECK(memory.reach(~std::uint64_t{0} - 10, 100, false) == Reach::kNo);
}

TEST_CASE("memory of a process that has ended is not there") {
  auto child = std::make_unique<Child>();
  const pid_t process = child->process;
  const std::uint64_t at = child->at(0);
  const MemoryFile memory(process);
  CHECK_FALSE(memory.ended());
  child.reset();
  std::array<std::uint8_t, 8> bytes{};
  CHECK_FALSE(memory.read(at, bytes));
  CHECK(memory.ended());
  CHECK(memory.reach(at, 8, false) == Reach::kNo);
  CHECK(MemoryFile(process).opened() == Reach::kNo);
}

TEST_CASE("the IOMMU says whose memory a device address is") {
  Iommu iommu(1);
  std::array<std::uint8_t, 8> own{};
  const auto mine = iommu.map_pages(own.data(), own.size(), Iommu::Rights::kReadWrite);
  const auto process = iommu.add_process(nullptr);
  const auto theirs = iommu.map_process_pages(process, 0x7000'0000'1234, 2 * kPage, Iommu::Rights::kRead);
  CHECK(mine.size() >= 1);
  REQUIRE(theirs.size() == 3);
  CHECK(iommu.locate(mine[0], Iommu::Access::kWrite).process == 0);
  const auto place = iommu.locate(theirs[1] + 5, Iommu::Access::kRead);
  CHECK(place.process == process);
  CHECK(reinterpret_cast<std::uint64_t>(place.at) == 0x7000'0000'2005);
  CHECK(iommu.locate(theirs[0], Iommu::Access::kWrite).at == nullptr);
  CHECK(iommu.fault_count() == 1);
  iommu.gone(theirs[0], Iommu::Access::kRead);
  CHECK(iommu.fault_count() == 2);
  CHECK(iommu.gone_count() == 1);
  CHECK(iommu.fault_log().back().reason == Iommu::Reason::kGone);
  iommu.unmap_process_pages(theirs);
  CHECK(iommu.locate(theirs[1], Iommu::Access::kRead).at == nullptr);
}

TEST_CASE("a process that has the number of one that has ended has nothing of its memory") {
  auto child = std::make_unique<Child>();
  const pid_t process = child->process;
  const MemoryFile memory(process);
  std::array<std::uint8_t, 8> bytes{};
  CHECK(memory.read(child->at(0), bytes));
  const std::uint64_t at = child->at(0);
  std::uint8_t* const place = child->memory;
  child.reset();
  clone_args next{};
  next.exit_signal = SIGCHLD;
  next.set_tid = reinterpret_cast<std::uint64_t>(&process);
  next.set_tid_size = 1;
  const auto again = static_cast<pid_t>(syscall(SYS_clone3, &next, sizeof next));
  if (again == 0) {
    mmap(place, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (;;) pause();
  }
  if (again < 0) {
    WARN("this user may not choose numbers of processes");
    return;
  }
  REQUIRE(again == process);
  CHECK_FALSE(memory.read(at, bytes));
  CHECK_FALSE(write_to(memory, at, write_of(1, 0xF, 0)));
  CHECK(memory.ended());
  kill(again, SIGKILL);
  test::exit_of(again);
}

TEST_CASE("a large mapping of a process goes at once, and its places later") {
  Iommu iommu(1);
  const auto process = iommu.add_process(nullptr);
  const auto mapping = iommu.new_mapping();
  std::vector<std::uint64_t> iovas;
  constexpr std::uint64_t kPart = 1000;
  for (std::uint64_t i = 0; i < 3; ++i) {
    const auto part = iommu.map_process_pages(process, i * kPart * kPage, kPart * kPage, Iommu::Rights::kRead, mapping);
    iovas.insert(iovas.end(), part.begin(), part.end());
  }
  CHECK(iommu.mapped_pages() == 3 * kPart);
  CHECK_THROWS_AS(iommu.unmap_process_pages(std::span(iovas).first(kPart)), std::invalid_argument);
  CHECK(iommu.locate(iovas[2500], Iommu::Access::kRead).process == process);
  iommu.unmap_process_pages(iovas);
  CHECK(iommu.mapped_pages() == 0);
  for (const std::uint64_t iova : iovas) {
    CHECK(iommu.locate(iova, Iommu::Access::kRead).at == nullptr);
    CHECK(iommu.peek(iova) == nullptr);
  }
  CHECK_THROWS_AS(iommu.unmap_process_pages(iovas), std::invalid_argument);
  const auto next = iommu.map_process_pages(process, 0, kPart * kPage, Iommu::Rights::kRead);
  CHECK(iommu.mapped_pages() == kPart);
  for (const std::uint64_t iova : next) CHECK(iommu.locate(iova, Iommu::Access::kRead).process == process);
}

TEST_CASE("host memory that is shared stays where it is, and others see it") {
  model::HostMemory memory(60, 64 * kPage);
  auto* const bytes = static_cast<std::uint8_t*>(memory.allocate(2 * kPage));
  bytes[kPage + 3] = 42;
  CHECK_FALSE(memory.share(&memory));
  CHECK_FALSE(memory.share(bytes + 2 * kPage));  // the guard page
  const auto shared = memory.share(bytes + kPage);
  REQUIRE(shared);
  CHECK(shared->offset == kPage);
  CHECK(memory.share(bytes)->descriptor == shared->descriptor);
  auto* const other =
      static_cast<std::uint8_t*>(mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_SHARED, shared->descriptor, 0));
  REQUIRE(other != MAP_FAILED);
  CHECK(other[kPage + 3] == 42);
  other[5] = 17;
  CHECK(bytes[5] == 17);
  CHECK(ftruncate(shared->descriptor, 0) != 0);  // nobody can cut it off
  memory.release(bytes);
  CHECK(memory.used() == 0);
  CHECK(other[5] == 17);  // what is mapped stays
  // The next one that has the place has nothing of it.
  auto* const next = static_cast<std::uint8_t*>(memory.allocate(2 * kPage));
  CHECK(next == bytes);
  CHECK(next[5] == 0);
  next[6] = 1;
  CHECK(other[6] == 0);
  munmap(other, 2 * kPage);
}
