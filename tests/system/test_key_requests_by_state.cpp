// Binds, invalidations and fast registrations in every state in which they can be posted (InfiniBand specification
// 10.3.1, 10.6.7, 11.6.2). RNIC_SEED=n replays a failure.
#include "tests/system/requester_lab.hpp"

using namespace rnic;
using namespace rnic::test;

TEST_CASE(
    "in ERR and SQE, and behind a failure, requests about keys are flushed like the others (10.3.1.7, 10.3.1.8)") {
  with_lab("keys_flushed", [](RequesterLab& lab) {
    for (const QpType type : {QpType::kRc, QpType::kUc}) {
      for (const WqeOpcode opcode : kMemoryRequests) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        auto qp = lab.open(type, QpState::kRts);
        lab.post(*qp, WqeOpcode::kSend, {.wrong_key = 1});
        lab.post_memory(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kLocProtErr);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
        qp = lab.open(type, type == QpType::kRc ? QpState::kErr : QpState::kSqe);
        lab.post_memory(*qp, opcode);
        CHECK(lab.status() == CqeStatus::kLocProtErr);
        CHECK(lab.status() == CqeStatus::kWrFlushErr);
        must(qp->close());
      }
    }
  });
}

TEST_CASE("requests about keys that are refused, and the memory that they cannot be read from (10.6.7.2, 11.6.2)") {
  with_lab("keys_refused", [](RequesterLab& lab) {
    for (const QpType type : {QpType::kRc, QpType::kUc}) {
      for (const WqeOpcode opcode : kMemoryRequests) {
        INFO("type " << static_cast<int>(type) << ", request " << static_cast<int>(opcode));
        auto qp = lab.open(type, QpState::kRts);
        lab.post_memory(*qp, opcode);
        const auto status = lab.status();
        CHECK((status == CqeStatus::kLocProtErr || status == CqeStatus::kLocQpOpErr));
        must(qp->close());
        qp = lab.open(type, QpState::kRts);
        lab.post_memory(*qp, opcode, true);
        lab.a.endpoint.host().root_complex().arm(
            {.fault = model::PcieFault::kCompleterAbort, .match = {.access = model::PcieAccess::kDmaRead}});
        qp->ring_deferred();
        CHECK(lab.status() == CqeStatus::kFatalErr);
        must(qp->close());
      }
    }
    for (const WqeOpcode opcode : {WqeOpcode::kRead, WqeOpcode::kCompareSwap, WqeOpcode::kFetchAdd}) {
      const auto qp = lab.open(QpType::kRc, QpState::kRts);
      lab.post(*qp, opcode, {.defer = true});
      lab.a.endpoint.host().root_complex().arm(
          {.fault = model::PcieFault::kCompleterAbort, .match = {.access = model::PcieAccess::kDmaRead}});
      qp->ring_deferred();
      CHECK(lab.status() == CqeStatus::kFatalErr);
      must(qp->close());
    }
  });
}

TEST_CASE(
    "binds, an invalidation and a fast registration wait in SQD, and are done when it goes on (10.3.1.5, 10.6.7)") {
  with_lab("keys_drained", [](RequesterLab& lab) {
    for (const QpType type : {QpType::kRc, QpType::kUc}) {
      INFO("type " << static_cast<int>(type));
      for (const QpState state : {QpState::kRts, QpState::kSqd}) {
        const auto window1 = must(lab.a.process->create_mw({.type = hw::MptType::kWindow1}));
        const auto window2 = must(lab.a.process->create_mw({.type = hw::MptType::kWindow2}));
        const auto region = must(lab.a.process->create_fast_mr({.max_pages = 4}));
        const umd::WindowRange range{.region_key = lab.windows->key(), .address = lab.a.at(0), .length = 4096};
        const std::vector<std::uint64_t> pages(4, 0x1000);
        const auto qp = lab.open(type, state);
        must(umd::post_bind(*qp, *window1, range, {}));
        must(umd::post_bind(*qp, *window2, range, {}));
        must(qp->post_memory(umd::invalidate_request(window2->key(), {})));
        must(umd::post_fast_register(*qp, *region, {.pages = pages, .length = 100, .base = 0x10000}, {}));
        if (state == QpState::kSqd) {
          lab.pass(5'000);
          umd::Completion none;
          CHECK(lab.a.cq->poll({&none, 1}) == 0);
          must(qp->resume());
        }
        for (int i = 0; i < 4; ++i) CHECK(lab.status() == CqeStatus::kSuccess);
        // In silence.
        must(umd::post_bind(*qp, *window2, range, {.silent = true}));
        must(qp->post_memory(umd::invalidate_request(window2->key(), {.silent = true})));
        must(qp->post_memory(umd::invalidate_request(region->key(), {.silent = true})));
        must(umd::post_fast_register(*qp, *region, {.pages = pages, .length = 100, .base = 0x10000}, {.silent = true}));
        must(umd::post_bind(*qp, *window1, {.region_key = lab.windows->key()}, {}));
        CHECK(lab.status() == CqeStatus::kSuccess);
        must(qp->close());
      }
    }
  });
}
