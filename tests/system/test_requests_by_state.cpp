// Every request of every service with every answer, and in every state in which it can be posted (InfiniBand
// specification 9.7.5, 9.9.2, 10.3.1, 11.6.2); every transition to RESET and ERR (10.3.1). RNIC_SEED=n replays a
// failure.
#include "tests/system/requester_lab.hpp"

using namespace rnic;
using namespace rnic::test;

TEST_CASE("a request of RC ends as its answer says, whatever it asks for (9.7.5.2, 9.9.2, 11.6.2)") {
  struct Case {
    std::uint8_t syndrome;
    CqeStatus status;
  };
  constexpr std::array kCases = {Case{0x61, CqeStatus::kRemInvReqErr}, Case{0x62, CqeStatus::kRemAccessErr},
                                 Case{0x63, CqeStatus::kRemOpErr}, Case{0x21, CqeStatus::kRnrRetryExcErr}};
  with_lab("answers", [&](RequesterLab& lab) {
    for (const WqeOpcode opcode : kRcRequests) {
      for (const auto& [syndrome, status] : kCases) {
        INFO("request " << static_cast<int>(opcode) << ", syndrome " << static_cast<int>(syndrome));
        const auto qp = lab.open(QpType::kRc, QpState::kRts);
        lab.post(*qp, opcode);
        lab.post(*qp, opcode);
        lab.pass(5'000);
        lab.answer(*qp, 0x11, roce::aeth(syndrome, 0));
        CHECK(lab.status() == status);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a request of RC without an answer, or with a wrong one (9.7.6.1.3, 9.9.2.4)") {
  with_lab("no_answer", [](RequesterLab& lab) {
    for (const WqeOpcode opcode : kRcRequests) {
      INFO("request " << static_cast<int>(opcode));
      auto qp = lab.open(QpType::kRc, QpState::kRts, 1);
      lab.post(*qp, opcode);
      CHECK(lab.status() == CqeStatus::kRetryExcErr);
      must(qp->close());
      if (!reads(opcode) && !changes(opcode)) continue;
      qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, opcode);
      lab.pass(5'000);
      if (reads(opcode)) {
        lab.answer(*qp, 0x10, roce::aeth(0x1f, 1), 12);  // longer than what was asked for
      } else {
        lab.answer(*qp, 0x10, roce::aeth(0x1f, 1), 8);  // of a Read
      }
      CHECK(lab.status() == CqeStatus::kBadRespErr);
      must(qp->close());
    }
  });
}

TEST_CASE("memory that may not be used, and requests behind it, of every service (10.3.1.7, 10.3.1.8, 11.6.2)") {
  with_lab("own_fault", [](RequesterLab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        auto qp = lab.open(type, QpState::kRts);
        lab.post(*qp, opcode, {.wrong_key = 1});
        lab.post(*qp, opcode);
        // A Read places nothing before its answer is there, and then only finds what it may not write (9.9.2.4).
        lab.pass(5'000);
        if (reads(opcode) || changes(opcode)) lab.accept(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kLocProtErr);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
        // Where the queue has stopped before.
        qp = lab.open(type, type == QpType::kRc ? QpState::kErr : QpState::kSqe);
        lab.post(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kLocProtErr);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a datagram is one packet: a longer one is a local length error (9.8.3, 11.6.2)") {
  with_lab("datagrams", [](RequesterLab& lab) {
    for (const WqeOpcode opcode : requests(QpType::kUd)) {
      const auto qp = lab.open(QpType::kUd, QpState::kRts);
      lab.post(*qp, opcode, {.bytes = kMtu});
      CHECK(lab.status() == CqeStatus::kSuccess);
      lab.post(*qp, opcode, {.bytes = kMtu + 1});
      CHECK(lab.status() == CqeStatus::kLocLenErr);
      must(qp->close());
    }
  });
}

TEST_CASE("requests that are posted together go round the end of the ring in their order (10.8.3.3)") {
  with_lab("ring", [](RequesterLab& lab) {
    const auto qp = lab.open(QpType::kUc, QpState::kRts);
    const auto frames = [&] { return lab.world.wire().statistics(0).frames; };
    for (const std::size_t count : {5U, 6U, 7U, 5U, 6U}) {
      const auto before = frames();
      for (std::size_t i = 0; i < count; ++i)
        lab.post(*qp, WqeOpcode::kWrite, {.offset = i, .silent = i + 1 < count, .defer = i + 1 < count});
      CHECK(lab.status() == CqeStatus::kSuccess);
      CHECK(frames() - before == count);
    }
    must(qp->close());
  });
}

TEST_CASE("what is posted to a queue pair that the kernel has ended is flushed, of every service (10.3.1.8)") {
  with_lab("ended", [](RequesterLab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        const auto qp = lab.open(type, QpState::kRts);
        must(qp->kernel_qp().to_error());
        lab.post(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
      if (type == QpType::kUd) continue;
      for (const WqeOpcode opcode : kMemoryRequests) {
        const auto qp = lab.open(type, QpState::kRts);
        must(qp->kernel_qp().to_error());
        lab.post_memory(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("requests of every length and alignment are cut as the path MTU says (9.4, 9.7.2)") {
  with_lab("lengths", [](RequesterLab& lab) {
    for (std::size_t i = 0; i < UnreliableSide::kBytes; ++i)
      lab.a.memory[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
    for (const QpType type : {QpType::kRc, QpType::kUc}) {
      for (const WqeOpcode opcode : requests(type)) {
        if (changes(opcode) || reads(opcode)) continue;
        const auto qp = lab.open(type, QpState::kRts);
        std::uint32_t psn = kPsn;
        for (const std::size_t bytes :
             {std::size_t{0}, std::size_t{8}, std::size_t{kMtu}, std::size_t{2 * kMtu}, std::size_t{2 * kMtu + 100}}) {
          for (const std::size_t offset : {0, 4, 7}) {
            for (const bool silent : {false, true}) {
              INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode) << ", " << bytes
                           << " bytes from " << offset);
              const bool inline_data = bytes == 8 && offset == 0 && silent;
              const auto packets = std::max<std::size_t>(1, (bytes + kMtu - 1) / kMtu);
              const auto before = lab.world.wire().statistics(0).frames;
              lab.post(*qp, opcode, {.offset = offset, .bytes = bytes, .silent = silent, .inline_data = inline_data});
              lab.pass(5'000);
              CHECK(lab.world.wire().statistics(0).frames - before == packets);
              psn += static_cast<std::uint32_t>(packets);
              if (type == QpType::kRc) lab.answer(*qp, 0x11, roce::aeth(0x1f, 0), 0, psn - 1);
              if (!silent) CHECK(lab.status() == CqeStatus::kSuccess);
              lab.pass(3'000);
            }
          }
        }
        must(qp->close());
      }
    }
  });
}

TEST_CASE("what is posted in SQD begins when the queue pair goes on (10.3.1.5)") {
  with_lab("drained", [](RequesterLab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        const auto qp = lab.open(type, QpState::kSqd);
        const auto frames = lab.world.wire().statistics(0).frames;
        lab.post(*qp, opcode);
        lab.pass(5'000);
        CHECK(lab.world.wire().statistics(0).frames == frames);
        must(qp->resume());
        lab.pass(5'000);
        CHECK(lab.world.wire().statistics(0).frames == frames + 1);
        if (type == QpType::kRc) lab.accept(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kSuccess);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("a Read or an atomic that was started before SQD ends in it (10.3.1.5)") {
  with_lab("ends_in_sqd", [](RequesterLab& lab) {
    for (const WqeOpcode opcode : {WqeOpcode::kRead, WqeOpcode::kFetchAdd}) {
      const auto qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, opcode);
      lab.pass(5'000);
      must(qp->drain(false));
      lab.accept(*qp, opcode);
      CHECK(lab.status() == CqeStatus::kSuccess);
      must(qp->close());
    }
  });
}

TEST_CASE(
    "responses of a Read are taken in SQD; one that comes early says that others are lost (9.7.5.1.4, 10.3.1.5)") {
  struct Response {
    std::uint8_t opcode;
    std::uint32_t place;
  };
  constexpr std::array kThree = {Response{0x0d, 0}, Response{0x0e, 1}, Response{0x0f, 2}};
  const auto give = [](RequesterLab& lab, umd::QueuePair& qp, const Response& response, std::uint32_t first) {
    lab.answer(qp, response.opcode, response.opcode == 0x0e ? roce::Bytes{} : roce::aeth(0x1f, 1), kMtu,
               first + response.place);
    lab.pass(3'000);
  };
  with_lab("responses_in_sqd", [&](RequesterLab& lab) {
    auto qp = lab.open(QpType::kRc, QpState::kRts);
    lab.post(*qp, WqeOpcode::kRead, {.bytes = 3 * kMtu});
    lab.pass(5'000);
    must(qp->drain(false));
    for (const auto& response : kThree) give(lab, *qp, response, kPsn);
    CHECK(lab.status() == CqeStatus::kSuccess);
    must(qp->close());
    // Behind a Send that nobody has acknowledged, which each of them does (9.7.5.1.3) that is the next response.
    for (const auto& response : kThree) {
      qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, WqeOpcode::kSend);
      lab.post(*qp, WqeOpcode::kRead, {.bytes = 3 * kMtu});
      lab.pass(5'000);
      must(qp->drain(false));
      INFO("first comes " << response.place);
      give(lab, *qp, response, kPsn + 1);
      for (const auto& again : kThree)
        if (again.place != 0 || response.place != 0) give(lab, *qp, again, kPsn + 1);
      CHECK(lab.status() == CqeStatus::kSuccess);
      CHECK(lab.status() == CqeStatus::kSuccess);
      must(qp->close());
    }
    for (const WqeOpcode opcode : {WqeOpcode::kRead, WqeOpcode::kFetchAdd}) {
      qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, WqeOpcode::kSend);
      lab.post(*qp, opcode);
      lab.pass(5'000);
      must(qp->drain(false));
      lab.answer(*qp, reads(opcode) ? 0x10 : 0x12, roce::aeth(0x1f, 1), 8, kPsn + 1);
      CHECK(lab.status() == CqeStatus::kSuccess);
      CHECK(lab.status() == CqeStatus::kSuccess);
      must(qp->close());
    }
  });
}

TEST_CASE("a request that cannot be read completes with a fatal error, of every service (11.6.2)") {
  with_lab("unread", [](RequesterLab& lab) {
    for (const QpType type : kAllTypes) {
      for (const WqeOpcode opcode : requests(type)) {
        if (reads(opcode) || changes(opcode)) continue;
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        const auto qp = lab.open(type, QpState::kRts);
        lab.a.endpoint.host().root_complex().arm(
            {.fault = model::PcieFault::kCompleterAbort,
             .match = {.access = model::PcieAccess::kDmaRead, .address = lab.a.at(0), .bytes = 8}});
        lab.post(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kFatalErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("from every state to RESET and to ERR, and the others that go nowhere else (10.3.1)") {
  with_lab("transitions", [](RequesterLab& lab) {
    for (const QpType type : kAllTypes) {
      for (const QpState from : {QpState::kReset, QpState::kInit, QpState::kRtr, QpState::kRts, QpState::kSqd,
                                 QpState::kSqe, QpState::kErr}) {
        if (from == QpState::kSqe && type == QpType::kRc) continue;
        for (const QpState next : {QpState::kReset, QpState::kErr, from}) {
          if (next == from && (from == QpState::kRtr || from == QpState::kSqe)) continue;
          INFO("type " << static_cast<int>(type) << ", from " << static_cast<int>(from) << " to "
                       << static_cast<int>(next));
          const auto qp = lab.open(type, from == QpState::kErr ? QpState::kRts : from);
          auto& kernel = qp->kernel_qp();
          if (from == QpState::kErr) must(kernel.to_error());
          must(kernel.modify(next, {}, lab.connection(type)));
          CHECK(must(kernel.query()).state == static_cast<std::uint8_t>(next));
          if (from == QpState::kSqd && next == QpState::kSqd) must(kernel.resume());
          lab.forget();
          must(qp->close());
        }
      }
    }
  });
}
