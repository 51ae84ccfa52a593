#include <catch2/catch.hpp>

#include <atomic>
#include <thread>

#include "driver/umd/kernel_mr.hpp"
#include "tests/driver/driver_fixture.hpp"

using namespace rnic;
using test::DriverFixture;

// Objects are used by several threads at once (decisions 30). Run under a thread sanitizer to see data races; here they
// show as lost, doubled or misordered completions.

TEST_CASE("several posters, one device, several pollers") {
  constexpr int kPosters = 3;
  constexpr std::uint64_t kEach = 3000;
  DriverFixture fixture;
  fixture.device.threads = true;  // time passes without a lock, which would order what the threads do
  auto cq = fixture.make_cq(1000);
  auto qp = fixture.make_connected_qp(cq, {32, 32, 4, 4, 0});
  std::atomic<std::uint64_t> posted{0};
  std::atomic<std::uint64_t> reaped{0};
  std::atomic<bool> ordered{true};
  std::vector<std::atomic<int>> seen(kPosters * kEach);
  std::vector<std::thread> threads;
  for (std::uint64_t poster = 0; poster < kPosters; ++poster) {
    threads.emplace_back([&, poster] {
      for (std::uint64_t i = 0; i < kEach;) {
        if (qp->post_send(DriverFixture::write_request(poster * kEach + i)).ok()) {
          ++i;
          ++posted;
        } else {
          std::this_thread::yield();
        }
      }
    });
  }
  threads.emplace_back([&] {
    for (std::uint64_t done = 0; done < kPosters * kEach;) {
      if (done < posted.load() && done - reaped.load() < 1000) {
        fixture.device.finish_send(qp->qpn());
        ++done;
      } else {
        std::this_thread::yield();
      }
    }
  });
  for (int poller = 0; poller < 2; ++poller) {
    threads.emplace_back([&] {
      std::array<umd::Completion, 4> batch;
      while (reaped.load() < kPosters * kEach) {
        const std::size_t got = cq->poll(batch);
        for (std::size_t i = 0; i < got; ++i) {
          ++seen[batch[i].id];
          // Within a batch the requests of one poster keep their order.
          for (std::size_t k = 0; k < i; ++k) {
            if (batch[k].id / kEach == batch[i].id / kEach && batch[k].id > batch[i].id) ordered = false;
          }
        }
        reaped += got;
        if (got == 0) std::this_thread::yield();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(ordered);
  for (const auto& count : seen) REQUIRE(count == 1);
}

TEST_CASE("an entry that the device writes while a thread polls is read behind its phase") {
  DriverFixture fixture;
  fixture.device.threads = true;
  auto cq = fixture.make_cq();
  auto qp = fixture.make_connected_qp(cq);
  for (std::uint64_t id = 0; id < 100; ++id) {
    REQUIRE(qp->post_send(DriverFixture::write_request(id)).ok());
    std::thread device([&] { fixture.device.finish_send(qp->qpn()); });
    umd::Completion completion;
    while (cq->poll(std::span(&completion, 1)) == 0) std::this_thread::yield();
    CHECK(completion.id == id);
    device.join();
  }
}

TEST_CASE("receives posted while an idle queue pair is flushed are neither lost nor doubled") {
  DriverFixture fixture;
  auto cq = fixture.make_cq(1000);
  auto qp = fixture.make_qp(cq, {8, 64, 4, 4, 0});
  constexpr std::uint64_t kCount = 300;
  std::vector<int> seen(kCount);
  const auto reap = [&] {
    for (const auto& completion : fixture.drain(*cq)) ++seen[completion.id];
  };
  std::atomic<bool> done{false};
  std::atomic<bool> failed{false};
  std::atomic<std::uint64_t> posted{0};
  std::thread poster([&] {
    for (std::uint64_t id = 0; id < kCount && !failed;) {
      if (qp->post_receive({.id = id}).ok()) {
        posted = ++id;
      } else {
        std::this_thread::yield();
      }
    }
    done = true;
  });
  // What was posted before the flush that went before; posts since then may have filled the queue, and count as news.
  std::uint64_t before = 0;
  while (!done && !failed) {
    while (posted == before && !done) std::this_thread::yield();
    before = posted;
    failed = !qp->flush().ok();
    reap();
  }
  poster.join();
  REQUIRE_FALSE(failed);
  CHECK(qp->flush().ok());
  reap();
  for (const int count : seen) REQUIRE(count == 1);
}

TEST_CASE("control calls of several threads") {
  DriverFixture fixture;
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&] {
      std::array<std::uint8_t, 10'000> memory{};
      for (int i = 0; i < 50; ++i) {
        auto cq = umd::CompletionQueue::create(fixture.process, 10);
        auto region = fixture.process->create_mr({.address = memory.data(), .length = memory.size()});
        if (!cq || !region) {
          ++failures;
          continue;
        }
        auto qp = fixture.make_connected_qp(*cq);
        if (qp == nullptr || !qp->post_receive({.id = 1}).ok()) ++failures;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  CHECK(failures == 0);
  CHECK(fixture.device.pairs.empty());
  CHECK(fixture.device.completion_queues.empty());
  CHECK(fixture.device.regions.empty());
  CHECK(fixture.device.mapped_pages == 0);
}
