#include <catch2/catch.hpp>

#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "testbench/server/event_log_reader.hpp"
#include "testbench/server/event_log_writer.hpp"
#include "tests/server/log_file.hpp"

using namespace rnic;
using namespace rnic::testbench;
using test::LogFile;

// The file of an event log: docs/event_log.md.

namespace {

EventLogHeader some_header() {
  return {.arguments = {"--seed", "7", "m.toml"},
          .files = {{"m.toml", "[wire]\nrate_gbps = 25\n"}},
          .version = "1.2",
          .build = "abc",
          .slice_ps = 100'000};
}

/// A log with a record of every kind.
void write_some(const std::string& path) {
  EventLogWriter log(path, some_header());
  const auto session = log.attach(1, 4711);
  remote::Doorbell doorbell{.offset = 0x3008, .bytes = 8, .data = {0x0123456789ABCDEF}};
  log.doorbell(session, doorbell);
  doorbell.bytes = 64;
  for (std::size_t i = 0; i < doorbell.data.size(); ++i) doorbell.data[i] = i;
  log.doorbell(session, doorbell);
  doorbell.bytes = 5'000;
  log.doorbell(session, doorbell);
  log.write_out();
  const std::array<std::byte, 5> body{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}};
  log.request(session, {.bytes = 5, .kind = remote::FrameKind::kCall, .number = 9, .client = 2}, body);
  log.reach(1, 4711, 0x7FFF'1234'5000, 70'000, true, model::ProcessMemory::Reach::kNo);
  model::DmaRequest request{.kind = model::TlpKind::kMemoryRead,
                            .address = 0x4000'1230'0004,
                            .length_dw = 2,
                            .first_be = 0xF,
                            .last_be = 0x3,
                            .tag = 5,
                            .data = {}};
  const std::array<std::uint8_t, 8> data{8, 7, 6, 5, 4, 3, 2, 1};
  log.dma_read(0, request, LogPlace::kOwn, true, data);
  log.dma_read(0, request, LogPlace::kShared, true, data);
  log.dma_read(1, request, LogPlace::kProcess, false, data);
  request.data.assign(data.begin(), data.end());
  log.dma_write(1, request, LogPlace::kProcess, true);
  log.answer(session, 9, 0x89ABCDEF, false);
  log.write_out();
  log.look(true);
  log.rest(123'456'789'012);
  log.frame(3, std::vector<std::uint8_t>{1, 2, 3});
  log.detach(session);
  log.finish();
  log.failed("what went wrong");
  log.end("{}");
}

/// Everything that can be read, and whether the reader says that it is damaged.
struct Reading {
  std::vector<LogRecord> records;
  std::string error;
  bool cut_off = false;
};

Reading read_all(const std::string& path) {
  Reading reading;
  try {
    EventLogReader log(path);
    while (log.peek() != nullptr) reading.records.push_back(log.take());
    CHECK(log.peek() == nullptr);
    reading.cut_off = log.cut_off();
  } catch (const EventLogError& error) {
    reading.error = error.what();
  }
  return reading;
}

}  // namespace

TEST_CASE("the checksum of an event log is the CRC-32 of IEEE 802.3") {
  const std::string digits = "123456789";
  CHECK(log_checksum(octets(digits)) == 0xCBF43926);  // the check value of its definition
  CHECK(log_checksum({}) == 0);
  // In pieces of any length, which are taken eight bytes at a time.
  const std::string text = "The quick brown fox jumps over the lazy dog";
  for (std::size_t first = 0; first <= text.size(); ++first)
    CHECK(log_checksum(octets(text.substr(first)), log_checksum(octets(text.substr(0, first)))) == 0x414FA339);
}

TEST_CASE("what is written to an event log is read again") {
  const LogFile file;
  write_some(file.path());
  EventLogReader log(file.path());
  CHECK(log.header().arguments == some_header().arguments);
  CHECK(log.header().files == some_header().files);
  CHECK(log.header().version == "1.2");
  CHECK(log.header().build == "abc");
  CHECK(log.header().slice_ps == 100'000);
  const auto next = [&](LogKind kind) {
    REQUIRE(log.peek() != nullptr);
    REQUIRE(log.peek()->kind == kind);
    return log.take();
  };
  const auto attach = next(LogKind::kAttach);
  CHECK((attach.host == 1 && attach.process == 4711 && attach.session == 0));
  const auto word = next(LogKind::kDoorbell);
  CHECK(word.address == 0x3008);
  CHECK(word.data == std::vector<std::uint8_t>{0xEF, 0xCD, 0xAB, 0x89, 0x67, 0x45, 0x23, 0x01});
  const auto burst = next(LogKind::kDoorbell);
  CHECK((burst.data.size() == 64 && burst.data[56] == 7));
  CHECK(next(LogKind::kDoorbell).data.empty());
  const auto request = next(LogKind::kRequest);
  CHECK((request.code == 4 && request.number == 9 && request.client == 2));
  CHECK(request.data == std::vector<std::uint8_t>{1, 2, 3, 4, 5});
  const auto reach = next(LogKind::kReach);
  CHECK((reach.process == 4711 && reach.address == 0x7FFF'1234'5000 && reach.length == 70'000));
  CHECK((reach.flag && reach.code == 1));
  const auto own = next(LogKind::kDmaRead);
  CHECK((own.address == 0x4000'1230'0004 && own.length == 2 && own.good && own.data.empty()));
  const auto ring = next(LogKind::kDmaRead);
  CHECK((ring.place == LogPlace::kShared && ring.good && ring.checksum == own.checksum));
  CHECK(ring.data == std::vector<std::uint8_t>{8, 7, 6, 5, 4, 3, 2, 1});
  const auto gone = next(LogKind::kDmaRead);
  CHECK((gone.host == 1 && gone.place == LogPlace::kProcess && !gone.good && gone.data.empty()));
  const auto write = next(LogKind::kDmaWrite);
  CHECK((write.place == LogPlace::kProcess && write.good && write.checksum != own.checksum));
  const auto answer = next(LogKind::kAnswer);
  CHECK((answer.number == 9 && answer.checksum == 0x89ABCDEF && !answer.good));
  CHECK(next(LogKind::kLook).flag);
  CHECK(next(LogKind::kRest).length == 123'456'789'012);
  const auto frame = next(LogKind::kFrame);
  CHECK((frame.socket == 3 && frame.data == std::vector<std::uint8_t>{1, 2, 3}));
  CHECK(next(LogKind::kDetach).session == 0);
  next(LogKind::kFinish);
  const auto failed = next(LogKind::kFailed);
  CHECK(std::string(failed.data.begin(), failed.data.end()) == "what went wrong");
  next(LogKind::kEnd);
  CHECK(log.peek() == nullptr);
  CHECK_FALSE(log.cut_off());
  CHECK(log.taken() == 18);
}

TEST_CASE("an event log that is cut off anywhere is read as far as its whole pieces go") {
  const LogFile file;
  write_some(file.path());
  const std::string whole = file.bytes();
  const std::size_t all = read_all(file.path()).records.size();
  std::size_t before = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    file.write(whole.substr(0, size));
    const Reading reading = read_all(file.path());
    CAPTURE(size, reading.error);
    CHECK(reading.records.size() < all);
    CHECK(reading.records.size() >= before);
    before = reading.records.size();
    if (reading.error.empty()) continue;
    // No piece of it is there yet.
    CHECK(before == 0);
    const bool clear = reading.error.find("is no event log") != std::string::npos ||
                       reading.error.find("damaged") != std::string::npos;
    CHECK(clear);
  }
  CHECK(before > 10);
}

TEST_CASE("a byte of an event log that has changed is noticed") {
  const LogFile file;
  write_some(file.path());
  const std::string whole = file.bytes();
  const auto all = read_all(file.path()).records;
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int mask : {0x01, 0x80, 0xFF}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ mask);
      file.write(changed);
      const Reading reading = read_all(file.path());
      CAPTURE(at, mask);
      CHECK((!reading.error.empty() || reading.cut_off));
      CHECK(reading.records.size() < all.size());
    }
  }
}

TEST_CASE("records that no machine writes are refused") {
  const LogFile file;
  const auto error_of = [&](std::vector<std::uint8_t> record) {
    file.write_piece(some_header(), record);
    return read_all(file.path()).error;
  };
  const std::string damaged = "the event log is damaged in the piece at byte ";
  const auto refused = [&](const std::vector<std::uint8_t>& record, const std::string& what) {
    const std::string error = error_of(record);
    CAPTURE(error);
    CHECK(error.find(damaged) != std::string::npos);
    CHECK(error.ends_with(what));
  };
  CHECK(error_of({7, 0}).empty());
  refused({11, 0}, "a record of kind 11");
  refused({0, 0}, "a record of kind 0");
  refused({1, 0}, "a record is not whole");
  refused({1, 0, 16, 1}, "host 16");
  refused({2, 0, 0}, "a connection that there is not");
  refused({1, 0, 0, 1, 2, 0, 1}, "connection 1");
  refused({1, 0, 0, 1, 3, 0, 0, 0, 65}, "size 65");
  refused({1, 0, 0, 1, 3, 0, 0, 0, 9}, "a record is not whole");
  refused({5, 0, 2}, "flag 2");
  refused({6, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0}, "time 18446744073709551615");
  refused({6, 0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0}, "a number without end");
  refused({10, 0, 16, 0}, "socket 16");
  refused({10, 0, 0, 0xBB, 0x46}, "size 9019");
  refused({10, 0, 0, 2, 1}, "a record is not whole");
  refused({17, 0, 0, 0, 0x81, 0x08, 0, 0}, "dwords 1025");
  refused({17, 0, 0, 0, 2, 0, 3, 1, 2}, "a record is not whole");
  refused({17, 0, 0, 0, 2, 0, 6}, "place 6");
}

TEST_CASE("what is no event log, or one of another version, is said to be so") {
  const LogFile file;
  CHECK(read_all("/no/such/file").error == "/no/such/file: cannot be read");
  CHECK(read_all("/tmp").error.find("is no event log") != std::string::npos);
  file.write("a capture, or a recipe for soup");
  CHECK(read_all(file.path()).error == file.path() + ": is no event log (rnic serve --log)");
  write_some(file.path());
  std::string bytes = file.bytes();
  bytes[8] = 2;
  file.write(bytes);
  CHECK(read_all(file.path()).error == file.path() + ": is an event log of version 2, this reads version 1");
  CHECK_THROWS_AS(EventLogWriter("/no/such/folder/log", some_header()), EventLogError);
}

TEST_CASE("a disk without room ends an event log and no more") {
  EventLogWriter log("/dev/null", some_header());
  CHECK(log.failure().empty());
  CHECK_THROWS_WITH(EventLogWriter("/dev/full", some_header()),
                    "/dev/full: the event log ends here: No space left on device");
}
