// What the fuzzer concludes from the answers of a queue pair, and from none; no NIC is simulated.
#include <catch2/catch.hpp>
#include <optional>
#include <string>

#include "testbench/fuzz/answer_check.hpp"

using namespace rnic::testbench;

namespace {

constexpr std::uint8_t kAccess = 1 << 2;
constexpr std::uint64_t kNow = 2'000;
constexpr std::uint8_t kAck = 0x1f, kRnrNak = 0x21, kNakPsn = 0x60, kNakInvalid = 0x61, kNakAccess = 0x62,
                       kNakOperation = 0x63;

FrameVerdict good(std::uint32_t psn, std::uint64_t at_ns = 1'000) {
  return {.psn = psn, .takes = true, .opcode = 0x0a, .at_ns = at_ns};
}

FrameVerdict forbidden(std::uint32_t psn, std::uint64_t at_ns = 1'000) {
  return {.psn = psn, .naks = kAccess, .opcode = 0x0a, .at_ns = at_ns};
}

bool says(const std::optional<std::string>& complaint, const char* what) {
  return complaint && complaint->find(what) != std::string::npos;
}

}  // namespace

TEST_CASE("a refusal is one that a request with its PSN can earn (9.7.5.2)") {
  AnswerCheck check;
  check.begin(100, 0);
  check.request(good(100));
  check.request(forbidden(101));
  CHECK_FALSE(check.answer(100, kAck, kNow));
  SECTION("the right one") { CHECK_FALSE(check.answer(101, kNakAccess, kNow)); }
  SECTION("another one") {
    CHECK(says(check.answer(101, kNakInvalid, kNow), "which no request with this PSN can earn"));
  }
  SECTION("out of sequence it is an invalid one") {
    auto middle = good(102);
    middle.wants = FrameVerdict::Inside::kWrite;
    check.request(good(101));
    check.request(middle);
    CHECK_FALSE(check.answer(102, kNakInvalid, kNow));
  }
  SECTION("of a packet that is none of a builder's nothing is said") {
    check.request({.psn = 101, .wild = true, .at_ns = 1'000});
    CHECK_FALSE(check.answer(101, kNakInvalid, kNow));
  }
  SECTION("NAKs that end nothing may come for any of them") {
    CHECK_FALSE(check.answer(101, kNakPsn, kNow));
    CHECK_FALSE(check.answer(101, kRnrNak, kNow));
  }
}

TEST_CASE("what is acknowledged could be executed") {
  AnswerCheck check;
  check.begin(0xfffffe, 0);
  check.request(good(0xfffffe));
  check.request(forbidden(0xffffff));
  check.request(good(0));
  CHECK_FALSE(check.answer(0xfffffe, kAck, kNow));
  SECTION("by an ACK") { CHECK(says(check.answer(0, kAck, kNow), "must be refused")); }
  SECTION("by a refusal of one behind it") { CHECK(says(check.answer(0, kNakInvalid, kNow), "PSN 16777215: taken")); }
  SECTION("by the device's word") { CHECK(says(check.expects(1, 65'000, 66'000), "must be refused")); }
  SECTION("by its word while the refusal may be under way") {
    CHECK_FALSE(check.expects(1, 5'000, 6'000));
    CHECK_FALSE(check.answer(0xffffff, kNakAccess, kNow));
  }
  SECTION("not when another one with its PSN may be") {
    check.request(good(0xffffff));
    CHECK_FALSE(check.answer(0, kAck, kNow));
  }
  SECTION("a Read has the PSNs of its responses") {
    auto read = good(0xffffff);
    read.psns = 3;
    check.request(read);
    check.request(forbidden(1));
    CHECK_FALSE(check.answer(1, kAck, kNow));
  }
  SECTION("what came long before it began is not its own") {
    check.begin(0xffffff, 100'000);
    check.request(good(0xffffff, 101'000));
    CHECK_FALSE(check.answer(0xffffff, kAck, kNow));
  }
}

TEST_CASE("what is expected for long has not come") {
  AnswerCheck check;
  check.begin(7, 0);
  CHECK_FALSE(check.expects(7, 1'000, 2'000));
  auto request = GENERATE(good(7, 10'000), forbidden(7, 10'000));
  SECTION("there is time for an answer") {
    check.request(request);
    CHECK_FALSE(check.expects(7, 60'000, 61'000));
  }
  SECTION("and no more") {
    check.request(request);
    CHECK(says(check.expects(7, 80'000, 81'000), "neither taken nor refused"));
  }
  SECTION("one that waits for a Receive") {
    request.waits = true;
    check.request(request);
    CHECK_FALSE(check.expects(7, 80'000, 81'000));
  }
  SECTION("one that the wire has lost") {
    request.arrives = false;
    check.request(request);
    CHECK_FALSE(check.expects(7, 80'000, 81'000));
  }
  SECTION("one behind a Read that may be a duplicate, for as long as its responses take (9.7.5.1.3, 9.7.4)") {
    FrameVerdict read{.psn = 0xffff00, .psns = GENERATE(64U, 1'000'000U), .takes = true, .opcode = 0x0c};
    read.at_ns = 9'000;
    check.request(read);
    check.request(request);
    const auto wrong = check.expects(7, 80'000, 81'000);
    CHECK(wrong.has_value() == (read.psns == 64));
    check.begin(7, 200'000);
    CHECK_FALSE(check.expects(7, 210'000, 211'000));
    request.at_ns = 220'000;
    check.request(request);
    CHECK(says(check.expects(7, 290'000, 291'000), "neither taken nor refused"));
  }
  SECTION("one that came before it was known to be expected") {
    request.at_ns = 1'500;
    check.request(request);
    CHECK_FALSE(check.expects(7, 80'000, 81'000));
  }
}

TEST_CASE("an answer to a request of before leaves when the queue pair has begun anew") {
  // A WRITE with a wrong key earns its NAK; the queue pair is reset, and what others send fills the wire meanwhile.
  AnswerCheck check;
  check.begin(100, 0);
  check.request(good(100, 1'000));
  check.request(forbidden(101, 2'000));
  check.request(good(102, 3'000));
  const std::uint64_t late = 33'000;
  SECTION("its refusal, whatever is expected now") {
    check.begin(GENERATE(101U, 500U, 0x900000U), 30'000);
    CHECK_FALSE(check.answer(101, kNakAccess, late));
  }
  SECTION("of a request of now with the same PSN, too") {
    check.begin(101, 30'000);
    check.request(good(101, 31'000));
    CHECK_FALSE(check.answer(101, kNakAccess, late));
    CHECK(says(check.answer(101, kNakOperation, late), "which no request with this PSN can earn"));
  }
  SECTION("its acknowledge, which says nothing of what is taken now") {
    check.begin(99, 30'000);
    check.request(forbidden(99, 31'000));
    CHECK_FALSE(check.answer(100, kAck, late));
    CHECK_FALSE(check.answer(100, kRnrNak, late));
    check.request(good(100, late));
    check.request(good(101, late));
    CHECK(says(check.answer(101, kAck, 100'000), "PSN 99: taken"));
  }
  SECTION("an acknowledge of what is known of neither") {
    check.begin(0x900000, 30'000);
    check.request(forbidden(0x900000, 31'000));
    CHECK_FALSE(check.answer(80, kAck, late));
    CHECK(says(check.answer(0x900000, kAck, late), "PSN 9437184: taken"));
  }
  SECTION("not one that neither has earned") {
    check.begin(101, 30'000);
    CHECK(says(check.answer(101, kNakInvalid, late), "which no request with this PSN can earn"));
  }
  SECTION("and not for long") {
    check.begin(101, 30'000);
    check.request(good(101, 31'000));
    CHECK(says(check.answer(101, kNakAccess, 70'000), "which no request with this PSN can earn"));
  }
}

TEST_CASE("answers of a slow wire may be later") {
  AnswerCheck check(600'000);
  check.begin(7, 0);
  CHECK_FALSE(check.expects(7, 1'000, 2'000));
  check.request(forbidden(7, 10'000));
  SECTION("there is time for an answer") { CHECK_FALSE(check.expects(7, 600'000, 601'000)); }
  SECTION("and no more") { CHECK(says(check.expects(7, 620'000, 621'000), "neither taken nor refused")); }
  SECTION("of before") {
    check.begin(7, 400'000);
    check.request(good(7, 401'000));
    CHECK_FALSE(check.answer(7, kNakAccess, 500'000));
    CHECK(says(check.answer(7, kNakAccess, 700'000), "which no request with this PSN can earn"));
  }
}
