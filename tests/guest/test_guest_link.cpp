#include <catch2/catch.hpp>

#include <fcntl.h>
#include <sys/socket.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "testbench/guest/guest_link.hpp"
#include "testbench/guest/guest_link_error.hpp"
#include "tests/guest/fake_qemu.hpp"

using namespace rnic;
using test::FakeInterrupts;
using test::FakeMemory;
using test::FakeQemu;
using testbench::GuestLink;
using testbench::GuestLinkError;
using testbench::proxy::BarAccess;
using testbench::proxy::Command;
using testbench::proxy::ConfigAccess;
using testbench::proxy::SyncMemory;

// The link between a guest's QEMU and a function: docs/guest.md.

namespace {

/// Notes what it is asked; it answers reads when the test says so.
struct NotedFunction : testbench::GuestFunction {
  std::uint32_t config_read(std::size_t offset, std::size_t bytes) override {
    notes.push_back("config read " + std::to_string(offset) + " " + std::to_string(bytes));
    return 0xA1B2'C3D4;
  }
  void config_write(std::size_t offset, std::uint32_t value, std::size_t bytes) override {
    notes.push_back("config write " + std::to_string(offset) + " " + std::to_string(value) + " " +
                    std::to_string(bytes));
  }
  void write(std::uint64_t address, std::uint64_t value, std::size_t bytes) override {
    notes.push_back("write " + std::to_string(address) + " " + std::to_string(value) + " " + std::to_string(bytes));
  }
  void read(std::uint64_t address, std::size_t bytes, std::function<void(std::uint64_t)> done) override {
    notes.push_back("read " + std::to_string(address) + " " + std::to_string(bytes));
    reads.push_back(std::move(done));
  }
  void set_memory(const std::vector<model::Iommu::Window>& all) override { windows = all; }
  void reset() override { notes.emplace_back("reset"); }

  std::vector<std::string> take() { return std::exchange(notes, {}); }

  std::vector<std::string> notes;
  std::vector<std::function<void(std::uint64_t)>> reads;
  std::vector<model::Iommu::Window> windows;
};

struct Linked {
  Linked() : Linked(test::socket_pair()) {}
  explicit Linked(std::pair<remote::Descriptor, remote::Descriptor> ends)
      : qemu(std::move(ends.first)), link(std::make_shared<GuestLink>(std::move(ends.second), function)) {
    fcntl(link->descriptor(), F_SETFL, O_NONBLOCK);
  }
  NotedFunction function;
  FakeQemu qemu;
  std::shared_ptr<GuestLink> link;

  /// What ends the link.
  std::string error() {
    try {
      link->take();
    } catch (const GuestLinkError& error) {
      return error.what();
    }
    return "none";
  }
};

using Notes = std::vector<std::string>;

}  // namespace

TEST_CASE("accesses to the configuration space are answered at once") {
  Linked linked;
  linked.qemu.send(Command::kConfigRead, ConfigAccess{4, 0, 2});
  CHECK(linked.link->take());
  CHECK(linked.qemu.answer() == 0xA1B2'C3D4);
  linked.qemu.send(Command::kConfigWrite, ConfigAccess{16, 0xFFFF'FFFF, 4});
  linked.qemu.send(Command::kConfigWrite, ConfigAccess{5, 0xFFFF'FF07, 1});
  CHECK(linked.link->take());
  CHECK(linked.qemu.answer() == 0);
  CHECK(linked.qemu.answer() == 0);
  CHECK(linked.function.take() == Notes{"config read 4 2", "config write 16 4294967295 4", "config write 5 7 1"});
  CHECK(linked.link->figures().config_accesses == 3);
}

TEST_CASE("behind the 256 bytes of every function there is nothing") {
  Linked linked;
  linked.qemu.send(Command::kConfigRead, ConfigAccess{256, 0, 4});
  linked.qemu.send(Command::kConfigRead, ConfigAccess{255, 0, 2});
  linked.qemu.send(Command::kConfigWrite, ConfigAccess{0xFFFF'FFFC, 1, 4});
  CHECK(linked.link->take());
  CHECK(linked.qemu.answer() == 0xFFFF'FFFF);
  CHECK(linked.qemu.answer() == 0xFFFF);
  CHECK(linked.qemu.answer() == 0);
  CHECK(linked.function.take().empty());
}

TEST_CASE("writes are posted: answered at once, in order, and before a read behind them is asked") {
  Linked linked;
  std::vector<std::byte> together;
  for (const auto& message : {FakeQemu::message(Command::kBarWrite, BarAccess{0x1000, 0x1122'3344'5566'7788, 8, 1, {}}),
                              FakeQemu::message(Command::kBarWrite, BarAccess{0x1008, 0x1FF, 1, 1, {}}),
                              FakeQemu::message(Command::kBarRead, BarAccess{0x1010, 0, 4, 1, {}}),
                              FakeQemu::message(Command::kBarWrite, BarAccess{0x1018, 3, 2, 1, {}})})
    together.insert(together.end(), message.begin(), message.end());
  linked.qemu.send(together);  // all in one piece
  CHECK(linked.link->take());
  CHECK(linked.function.take() == Notes{"write 4096 1234605616436508552 8", "write 4104 255 1", "read 4112 4"});
  CHECK(linked.qemu.answer() == 0);
  CHECK(linked.qemu.answer() == 0);
  CHECK_FALSE(linked.qemu.answered());

  CHECK(linked.link->take());  // the read is still under way: what is behind it waits
  CHECK(linked.function.take().empty());
  linked.function.reads.at(0)(0xFFFF'FFFF'0000'0009);
  CHECK(linked.qemu.answer() == 9);
  CHECK(linked.link->take());
  CHECK(linked.function.take() == Notes{"write 4120 3 2"});
  CHECK(linked.qemu.answer() == 0);
  CHECK(linked.link->figures().reads == 1);
  CHECK(linked.link->figures().writes == 3);
}

TEST_CASE("a message may come byte by byte") {
  Linked linked;
  for (const std::byte one : FakeQemu::message(Command::kBarWrite, BarAccess{0x2000, 5, 4, 1, {}})) {
    CHECK(linked.function.notes.empty());
    linked.qemu.send(std::span(&one, 1));
    CHECK(linked.link->take());
  }
  CHECK(linked.function.take() == Notes{"write 8192 5 4"});
  CHECK(linked.qemu.answer() == 0);
}

TEST_CASE("a reset is the function's, and answered") {
  Linked linked;
  linked.qemu.send(FakeQemu::message(Command::kReset));
  CHECK(linked.link->take());
  CHECK(linked.qemu.answer() == 0);
  CHECK(linked.function.take() == Notes{"reset"});
}

TEST_CASE("the guest's memory is reached through what comes beside the message, and the newest holds") {
  Linked linked;
  const FakeMemory memory(64 << 10), other(16 << 10);
  SyncMemory regions;
  regions.address = {0, 0x10'0000};
  regions.bytes = {0x8000, 0x4000};
  regions.offset = {0x8000, 0};
  const std::array both{memory.descriptor(), other.descriptor()};
  linked.qemu.send(Command::kSyncMemory, regions, both);
  CHECK(linked.link->take());
  CHECK_FALSE(linked.qemu.answered());
  REQUIRE(linked.function.windows.size() == 2);
  CHECK(linked.function.windows[1].address == 0x10'0000);
  linked.function.windows[0].host[3] = 0x5A;
  linked.function.windows[1].host[0x3FFF] = 0xA5;
  CHECK(memory.data()[0x8003] == 0x5A);
  CHECK(other.data()[0x3FFF] == 0xA5);
  CHECK(linked.link->figures().memory_bytes == 0xC000);

  linked.qemu.lend(other, 0);
  linked.qemu.send(FakeQemu::message(Command::kSetIrq));
  CHECK(linked.link->take());
  REQUIRE(linked.function.windows.size() == 1);
  CHECK(linked.function.windows[0].host[0x3FFF] == 0xA5);
  CHECK(linked.link->figures().memory_maps == 2);
  linked.link.reset();
  CHECK(linked.function.windows.empty());
}

TEST_CASE("memory that cannot be lent ends the link") {
  const FakeMemory good(16 << 10), open(16 << 10, false);
  struct Case {
    std::uint64_t address, bytes, offset;
    const FakeMemory& memory;
    std::string why;
  };
  const std::vector<Case> cases{{0x100, 0x1000, 0, good, "whole pages"},
                                {0, 0x1800, 0, good, "whole pages"},
                                {0, 0, 0, good, "whole pages"},
                                {~std::uint64_t{0xFFF}, 0x2000, 0, good, "whole pages"},
                                {0, 0x4000, 0x1000, good, "longer than its file"},
                                {0, 0x4000, 0, open, "not sealed"}};
  for (const auto& one : cases) {
    INFO(one.why);
    Linked linked;
    SyncMemory regions;
    regions.address[0] = one.address;
    regions.bytes[0] = one.bytes;
    regions.offset[0] = one.offset;
    const int descriptor = one.memory.descriptor();
    linked.qemu.send(Command::kSyncMemory, regions, std::span(&descriptor, 1));
    CHECK_THAT(linked.error(), Catch::Contains(one.why));
    CHECK(linked.function.windows.empty());
  }
  Linked linked;
  SyncMemory regions;
  regions.bytes[0] = 0x1000;
  const int no_file = linked.qemu.socket();
  linked.qemu.send(Command::kSyncMemory, regions, std::span(&no_file, 1));
  CHECK_THAT(linked.error(), Catch::Contains("no file"));
}

TEST_CASE("what no guest says ends the link, with a word") {
  const auto check = [](const std::vector<std::byte>& bytes, const std::string& why) {
    INFO(why);
    Linked linked;
    linked.qemu.send(bytes);
    CHECK_THAT(linked.error(), Catch::Contains(why));
    CHECK(linked.function.take().empty());
  };
  const std::vector<std::byte> none;
  check(FakeQemu::bytes_of(8, none), "command 8");
  check(FakeQemu::bytes_of(-1, none), "command -1");
  check(FakeQemu::bytes_of(1, std::vector<std::byte>(8)), "command 1");
  check(FakeQemu::bytes_of(3, std::vector<std::byte>(16)), "16 bytes, not 12");
  check(FakeQemu::bytes_of(7, std::vector<std::byte>(8)), "8 bytes, not 0");
  check(FakeQemu::message(Command::kConfigRead, ConfigAccess{0, 0, 3}), "access of 3 bytes");
  check(FakeQemu::message(Command::kConfigWrite, ConfigAccess{0, 0, -4}), "access of -4 bytes");
  check(FakeQemu::message(Command::kConfigRead, ConfigAccess{0, 0, 8}), "access of 8 bytes");
  check(FakeQemu::message(Command::kBarRead, BarAccess{0x1000, 0, 0, 1, {}}), "access of 0 bytes");
  check(FakeQemu::message(Command::kBarWrite, BarAccess{0x1000, 0, 16, 1, {}}), "access of 16 bytes");
  check(FakeQemu::message(Command::kBarWrite, BarAccess{0x1000, 0, 4, 0, {}}), "I/O space");
  // A length of which not a byte has come yet is not waited for.
  const testbench::proxy::Header endless{4, 0, ~std::uint64_t{0}};
  const auto bytes = std::as_bytes(std::span(&endless, 1));
  check({bytes.begin(), bytes.end()}, "18446744073709551615 bytes, not 24");
}

TEST_CASE("descriptors where none belong, or too many, end the link, and are closed") {
  const FakeMemory memory(4096);
  {
    Linked linked;
    const int descriptor = memory.descriptor();
    linked.qemu.send(Command::kConfigRead, ConfigAccess{0, 0, 4}, std::span(&descriptor, 1));
    CHECK_THAT(linked.error(), Catch::Contains("descriptors come with a message of command 3"));
  }
  Linked linked;
  const std::vector<int> many(9, memory.descriptor());
  linked.qemu.send(Command::kSyncMemory, SyncMemory{}, many);
  CHECK_THAT(linked.error(), Catch::Contains("more descriptors"));
}

TEST_CASE("the end of the guest is seen, also in the middle of a message") {
  for (const std::size_t bytes : {0u, 7u, 16u, 20u}) {
    Linked linked;
    const auto message = FakeQemu::message(Command::kConfigRead, ConfigAccess{0, 0, 4});
    if (bytes != 0) linked.qemu.send(std::span(message).first(bytes));
    CHECK(linked.link->take());
    linked.qemu.close();
    CHECK_FALSE(linked.link->take());
  }
}

TEST_CASE("an answer to a guest that has gone meanwhile is nobody's") {
  Linked linked;
  linked.qemu.send(Command::kBarRead, BarAccess{0x1000, 0, 4, 1, {}});
  CHECK(linked.link->take());
  linked.link.reset();
  linked.function.reads.at(0)(1);
  CHECK(linked.qemu.ended());
}

TEST_CASE("a guest that does not take its answers is sent away") {
  Linked linked;
  const int least = 1;
  setsockopt(linked.link->descriptor(), SOL_SOCKET, SO_SNDBUF, &least, sizeof least);
  const auto ask = FakeQemu::message(Command::kConfigRead, ConfigAccess{0, 0, 4});
  std::string error = "none";
  for (unsigned i = 0; i < 10'000 && error == "none"; ++i) {
    linked.qemu.send(ask);
    error = linked.error();
  }
  CHECK_THAT(error, Catch::Contains("does not take its answers"));
}

TEST_CASE("interrupts are lines of the test protocol, those from before the guest listens too") {
  Linked linked;
  auto [ours, theirs] = test::socket_pair();
  FakeInterrupts peer(std::move(theirs));
  linked.link->interrupt(0xFEE0'1000, 0x4021);
  linked.link->interrupts().connect(std::move(ours));
  CHECK(linked.link->take());
  CHECK(peer.line() == "writel 0xfee01000 0x4021");
  linked.link->interrupt(0xFEE0'0000, 0x31);
  CHECK(peer.line() == "writel 0xfee00000 0x31");
  CHECK(linked.link->interrupts().unanswered() == 2);
  peer.answer();
  peer.answer("O");
  CHECK(linked.link->take());
  CHECK(linked.link->interrupts().unanswered() == 1);
  peer.answer("K\n");
  CHECK(linked.link->take());
  CHECK(linked.link->interrupts().unanswered() == 0);
  CHECK(linked.link->figures().interrupts == 2);
}

TEST_CASE("interrupts to a guest that stands still are one each, and come when it goes on") {
  Linked linked;
  auto [ours, theirs] = test::socket_pair();
  FakeInterrupts peer(std::move(theirs));
  linked.link->interrupts().connect(std::move(ours));
  constexpr std::size_t kAtOnce = testbench::InterruptLine::kMostUnanswered;
  for (std::size_t i = 0; i < 10'000; ++i) linked.link->interrupt(0xFEE0'0000, i % 2 == 0 ? 7 : 8);
  CHECK(linked.link->interrupts().unanswered() == kAtOnce);
  CHECK(linked.link->interrupts().waiting() == 2);
  for (std::size_t i = 0; i < kAtOnce; ++i) {
    REQUIRE(peer.line());
    peer.answer();
  }
  CHECK(linked.link->take());
  CHECK(peer.line() == "writel 0xfee00000 0x7");
  CHECK(peer.line() == "writel 0xfee00000 0x8");
  CHECK(linked.link->interrupts().waiting() == 0);
}

TEST_CASE("a wrong answer to an interrupt, one too many, or none any more ends the link") {
  for (const std::string text : {"FAIL Unknown command\n", "OK\nOK\n", "OK 1\n"}) {
    Linked linked;
    auto [ours, theirs] = test::socket_pair();
    const FakeInterrupts peer(std::move(theirs));
    linked.link->interrupts().connect(std::move(ours));
    linked.link->interrupt(0xFEE0'0000, 7);
    peer.answer(text);
    CHECK_THAT(linked.error(), Catch::Contains("is answered with"));
  }
  Linked linked;
  auto [ours, theirs] = test::socket_pair();
  linked.link->interrupts().connect(std::move(ours));
  theirs = remote::Descriptor();
  CHECK_FALSE(linked.link->take());
}

TEST_CASE("a guest that takes no interrupts keeps no more of them than a limit") {
  Linked linked;
  for (std::uint32_t i = 0; i < testbench::InterruptLine::kMostWaiting; ++i) linked.link->interrupt(0xFEE0'0000, i);
  CHECK_THROWS_AS(linked.link->interrupt(0xFEE0'0000, ~0u), GuestLinkError);
}
