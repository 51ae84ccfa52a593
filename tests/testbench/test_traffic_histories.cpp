// What the checkers of shared memory take for possible, and what they do not.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "testbench/traffic/cell_history.hpp"
#include "testbench/traffic/word_history.hpp"

using rnic::testbench::CellHistory;
using rnic::testbench::WordHistory;

namespace {

using Operation = WordHistory::Operation;

/// Lane `lane`, request `number`, under way from `posted` to `completed`, finds `before` and leaves `after`.
Operation change(std::uint64_t before, std::uint64_t after, std::uint32_t lane, std::uint64_t number,
                 std::uint64_t posted, std::uint64_t completed) {
  return {before, after, lane, number, false, posted, completed};
}

Operation look(std::uint64_t found, std::uint32_t lane, std::uint64_t number, std::uint64_t posted,
               std::uint64_t completed) {
  return {found, std::nullopt, lane, number, false, posted, completed};
}

}  // namespace

TEST_CASE("operations on a word that one order explains are right, in whatever order they are heard of") {
  WordHistory word(10);
  CHECK_FALSE(word.add(change(15, 18, 2, 0, 1, 9)));
  CHECK(word.without_place() == 1);
  CHECK_FALSE(word.add(look(18, 3, 0, 2, 8)));
  CHECK_FALSE(word.add(change(10, 15, 1, 0, 3, 7)));
  CHECK(word.without_place() == 0);
  CHECK(word.value() == 18);
  // Under way at the same time as what replaced it.
  CHECK_FALSE(word.add(look(10, 3, 1, 6, 10)));
  // A sum that wraps.
  CHECK_FALSE(word.add(change(18, 18 - 20, 1, 2, 11, 12)));
  CHECK_FALSE(word.add(change(18 - 20, 3, 1, 3, 13, 14)));
}

TEST_CASE("operations on a word that no order explains are wrong") {
  WordHistory word(10);
  REQUIRE_FALSE(word.add(change(10, 15, 1, 0, 1, 5)));
  REQUIRE_FALSE(word.add(change(15, 20, 1, 1, 2, 6)));
  SECTION("two find the same value") { CHECK(word.add(change(10, 13, 2, 0, 1, 9))); }
  SECTION("two find the same value, whose place is not known") {
    CHECK_FALSE(word.add(change(99, 13, 2, 0, 1, 9)));
    CHECK(word.add(change(99, 14, 3, 0, 1, 9)));
  }
  SECTION("a value that nobody left") {
    CHECK_FALSE(word.add(change(19, 21, 2, 0, 1, 9)));
    CHECK(word.without_place() == 1);
  }
  SECTION("one that had completed before what it found was posted") {
    CHECK_FALSE(word.add(change(20, 30, 2, 0, 50, 60)));
    CHECK(word.add(change(30, 31, 3, 0, 40, 45)));
  }
  SECTION("a look at what was replaced before it was posted") { CHECK(word.add(look(10, 2, 0, 7, 9))); }
  SECTION("a look at what its own queue pair had replaced before") { CHECK(word.add(look(15, 1, 2, 3, 9))); }
  SECTION("an atomic that finds what its own queue pair left after it; a Read may") {
    CHECK_FALSE(word.add(change(20, 30, 2, 5, 7, 20)));
    CHECK(word.add(look(30, 2, 4, 6, 19)));
    auto read = look(30, 2, 4, 6, 19);
    read.is_read = true;
    CHECK_FALSE(word.add(read));
  }
  SECTION("a change that stands before one that was posted before it") {
    CHECK_FALSE(word.add(change(20, 30, 2, 1, 7, 20)));
    CHECK(word.add(change(30, 40, 2, 0, 7, 20)));
  }
  SECTION("a change behind a Read that was posted after it had completed") {
    CHECK_FALSE(word.add(look(20, 2, 0, 30, 40)));
    CHECK(word.add(change(20, 30, 3, 0, 10, 20)));
  }
}

TEST_CASE("a read of a cell may find what a write wrote, until that is certainly replaced") {
  CellHistory cell;
  CHECK_FALSE(cell.read(0, 1, 2, true));
  cell.posted(1, 1, 10);
  cell.posted(2, 2, 11);
  SECTION("writes that are under way may come in any order") {
    CHECK_FALSE(cell.read(0, 12, 13, false));
    CHECK_FALSE(cell.read(2, 14, 15, false));
    CHECK_FALSE(cell.read(1, 16, 17, false));
  }
  SECTION("what nobody wrote") { CHECK(cell.read(3, 12, 13, true)); }
  SECTION("what was there before an acknowledged write") {
    cell.acknowledged(1, 20);
    CHECK(cell.read(0, 21, 22, true));
    CHECK_FALSE(cell.read(0, 19, 22, true));  // posted before
    CHECK_FALSE(cell.read(2, 21, 22, true));
  }
  SECTION("what was there before a write that was seen") {
    CHECK_FALSE(cell.read(1, 12, 13, true));
    CHECK(cell.read(0, 14, 15, true));
  }
  SECTION("a write that was acknowledged before a later one was posted") {
    cell.acknowledged(1, 20);
    cell.posted(3, 3, 21);
    CHECK_FALSE(cell.read(1, 22, 23, true));
    cell.acknowledged(3, 24);
    CHECK(cell.read(1, 25, 26, true));
    CHECK_FALSE(cell.read(2, 25, 26, true));  // may have come last
  }
  SECTION("a write in front of an acknowledged one of the same queue pair") {
    cell.posted(3, 1, 12);
    cell.acknowledged(3, 20);
    CHECK(cell.read(1, 21, 22, true));
  }
  SECTION("of a part that was seen nothing follows for the rest") {
    CHECK_FALSE(cell.read(1, 12, 13, false));
    CHECK_FALSE(cell.read(0, 14, 15, false));
  }
}
