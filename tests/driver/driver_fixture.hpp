#pragma once

#include <array>
#include <memory>
#include <vector>

#include "driver/kmd/kernel_device.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/queue_pair.hpp"
#include "driver/umd/waiting.hpp"
#include "tests/driver/fake_device.hpp"

namespace rnic::test {

/// A fake device brought up, and a process on it.
struct DriverFixture {
  explicit DriverFixture(std::uint64_t seed = 1) : device(seed) {
    kernel = kmd::KernelDevice::open(device).take();
    process = umd::ProcessContext::open(kernel->node()).take();
    device.commands.clear();
  }

  std::shared_ptr<umd::CompletionQueue> make_cq(std::uint32_t entries = 100) {
    return umd::CompletionQueue::create(process, entries).take();
  }

  std::shared_ptr<umd::QueuePair> make_qp(const std::shared_ptr<umd::CompletionQueue>& cq,
                                          umd::QueueCapacity capacity = {8, 8, 4, 4, 64}) {
    return umd::QueuePair::create_idle(process,
                                       {.send_cq = cq, .receive_cq = cq, .capacity = capacity, .context = this})
        .take();
  }

  std::shared_ptr<umd::QueuePair> make_connected_qp(const std::shared_ptr<umd::CompletionQueue>& cq,
                                                    umd::QueueCapacity capacity = {8, 8, 4, 4, 64}) {
    auto qp = make_qp(cq, capacity);
    if (!qp->connect({}).ok()) return nullptr;
    return qp;
  }

  static umd::SendRequest write_request(std::uint64_t id) {
    static const umd::Segment segment{.address = 0x1000, .length = 64, .key = 7};
    return {.opcode = hw::WqeOpcode::kWrite,
            .id = id,
            .segments = std::span(&segment, 1),
            .remote_address = 0x2000,
            .remote_key = 9};
  }

  std::vector<umd::Completion> drain(umd::CompletionQueue& cq) {
    std::vector<umd::Completion> all;
    std::array<umd::Completion, 7> batch;
    for (;;) {
      const std::size_t got = cq.poll(batch);
      all.insert(all.end(), batch.begin(), batch.begin() + static_cast<std::ptrdiff_t>(got));
      if (got < batch.size()) return all;
    }
  }

  FakeDevice device;
  std::unique_ptr<kmd::KernelDevice> kernel;
  std::shared_ptr<umd::ProcessContext> process;
};

}  // namespace rnic::test
