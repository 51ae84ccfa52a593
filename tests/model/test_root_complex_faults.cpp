#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <vector>

#include "tests/model/root_complex_machine.hpp"

using namespace rnic::model;
using Catch::Matchers::Contains;

namespace {

std::size_t index(PcieFault fault) { return static_cast<std::size_t>(fault); }
std::uint64_t hits(PcieFault fault) { return machine().rc.faults()[index(fault)]; }

PcieRule rule(PcieFault fault, std::uint64_t nth = 1, PcieMatch match = {}) {
  PcieRule rule;
  rule.fault = fault;
  rule.match = match;
  rule.nth = nth;
  return rule;
}
PcieMatch match(PcieAccess access, std::uint32_t min_bytes = 0, std::optional<std::uint64_t> address = {}) {
  return {access, min_bytes, address};
}

RootComplexOptions with(const PcieRule& rule) {
  RootComplexOptions options;
  options.faults.rules = {rule};
  return options;
}

/// The completion that comes within 2 us; nothing else.
std::optional<DmaCompletion> completion_or_none() {
  DmaCompletion completion;
  for (int i = 0; i < 2000; ++i) {
    if (machine().rc.take_dma_completion(completion)) return completion;
    wait_ns(1);
  }
  return std::nullopt;
}

std::uint64_t host_address(std::size_t offset) { return reinterpret_cast<std::uint64_t>(machine().buffer) + offset; }

}  // namespace

TEST_CASE("an exact read of so many bytes is refused, aborted, poisoned or lost") {
  for (const auto fault :
       {PcieFault::kUnsupportedRequest, PcieFault::kCompleterAbort, PcieFault::kPoisoned, PcieFault::kTimeout}) {
    machine().reset(with(rule(fault, 2, match(PcieAccess::kDmaRead, 100))));
    run([&] {
      for (std::uint32_t i = 0; i < 6; ++i) {
        const std::uint32_t bytes = i % 2 == 0 ? 64 : 128;  // the second of 128 bytes is the fourth of all
        read(machine().iova, bytes, 7);
        const auto got = completion_or_none();
        if (i != 3) {
          REQUIRE(got);
          CHECK(got->status == CompletionStatus::kSuccess);
          CHECK_FALSE(got->poisoned);
          CHECK(got->data == std::vector<std::uint8_t>(machine().buffer, machine().buffer + bytes));
        } else if (fault == PcieFault::kTimeout) {
          CHECK_FALSE(got);
          CHECK(machine().rc.statistics().last_withheld > 0);
        } else if (fault == PcieFault::kPoisoned) {
          REQUIRE(got);
          CHECK(got->poisoned);
          CHECK(got->status == CompletionStatus::kSuccess);
          REQUIRE(got->data.size() == bytes);
          for (std::size_t at = 0; at < bytes; ++at)
            CHECK(got->data[at] == static_cast<std::uint8_t>(~Machine::pattern(at)));
        } else {
          REQUIRE(got);
          CHECK(got->status == (fault == PcieFault::kCompleterAbort ? CompletionStatus::kCompleterAbort
                                                                    : CompletionStatus::kUnsupportedRequest));
          CHECK(got->data.empty());
          CHECK(got->byte_count == bytes);
        }
      }
    });
    CHECK(hits(fault) == 1);
    CHECK(machine().iommu.fault_count() == 0);
    CHECK(machine().rc.outstanding_reads() == 0);
  }
}

TEST_CASE("a read may go wrong after its first completions") {
  for (const auto fault : {PcieFault::kCompleterAbort, PcieFault::kPoisoned, PcieFault::kTimeout}) {
    auto late = rule(fault);
    late.after_bytes = 256;
    machine().reset(with(late));
    run([&] {
      read(machine().iova, 512, 1);
      const auto first = completion_or_none();
      REQUIRE(first);
      CHECK(first->status == CompletionStatus::kSuccess);
      CHECK_FALSE(first->poisoned);
      CHECK(first->data == std::vector<std::uint8_t>(machine().buffer, machine().buffer + 256));
      const auto second = completion_or_none();
      REQUIRE(second.has_value() == (fault != PcieFault::kTimeout));
      if (second) {
        CHECK(second->byte_count == 256);
        CHECK(second->lower_address == (first->lower_address + 256) % 4096);
        CHECK(second->poisoned == (fault == PcieFault::kPoisoned));
        CHECK((second->status == CompletionStatus::kCompleterAbort) == (fault == PcieFault::kCompleterAbort));
      }
      CHECK_FALSE(completion_or_none());
      read(machine().iova, 64, 1);  // the tag may be used again
      CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
    });
  }
}

TEST_CASE("an answer comes late; until then its tag is not free") {
  for (const std::uint32_t after : {0U, 256U}) {
    auto late = rule(PcieFault::kLate);
    late.late_ns = 5000;
    late.after_bytes = after;
    machine().reset(with(late));
    run([&] {
      const Picoseconds start = now_ps();
      read(machine().iova, 512, 1);
      if (after != 0) CHECK(next_completion().byte_count == 512);
      CHECK_FALSE(completion_or_none());
      CHECK_THROWS_AS(read(machine().iova, 512, 1), PcieProtocolError);
      read(machine().iova, 64, 2);  // others go on
      CHECK(next_completion().tag == 2);
      std::uint32_t left = 512 - after;
      while (left != 0) {
        const auto completion = next_completion();
        CHECK(completion.byte_count == left);
        const std::size_t from = 512 - left;
        CHECK(completion.data ==
              std::vector<std::uint8_t>(machine().buffer + from, machine().buffer + from + completion.data.size()));
        left -= static_cast<std::uint32_t>(completion.data.size());
      }
      CHECK(now_ps() - start > 5'000'000);
      CHECK(now_ps() - start < 6'000'000);
      read(machine().iova, 64, 1);
      CHECK(next_completion().tag == 1);
    });
    CHECK(hits(PcieFault::kLate) == 1);
  }
}

TEST_CASE("a completion is wrong in one way, at its place, and the others of its read are right") {
  using enum PcieFault;
  for (const auto fault :
       {kWrongBoundary, kWrongByteCount, kWrongLowerAddress, kTooMuchData, kTooLittleData, kUnknownTag}) {
    for (const std::uint32_t after : {0U, 300U}) {
      INFO(name(fault) << " after " << after);
      for (std::uint64_t seed = 1; seed <= 20; ++seed) {
        auto wrong = rule(fault);
        wrong.after_bytes = after;
        auto options = with(wrong);
        options.seed = seed;
        machine().reset(options);
        run([&] {
          read(machine().iova, 512, 5);
          std::uint32_t at = 0;  // what the completions so far were made of
          bool met = false;
          for (std::optional<DmaCompletion> got; (got = completion_or_none());) {
            const auto size = static_cast<std::uint32_t>(got->data.size());
            const std::vector<std::uint8_t> right(machine().buffer + at,
                                                  machine().buffer + at + std::min(size, 512 - at));
            const bool same_data = got->data == right;
            if (!got->forged) {
              CHECK(got->tag == 5);
              CHECK(got->byte_count == 512 - at);
              CHECK(got->lower_address % 128 == (machine().iova + at) % 128);
              CHECK(same_data);
              CHECK(((at + size) % 64 == 0));
              at += size;
              continue;
            }
            CHECK_FALSE(met);
            met = true;
            CHECK(got->forged->tag == 5);
            CHECK(at <= after);
            CHECK((got->tag != 5) == (fault == kUnknownTag));
            CHECK((got->tag & 63) == 5);
            CHECK((got->byte_count != 512 - at) == (fault == kWrongByteCount));
            CHECK((got->lower_address % 128 != (machine().iova + at) % 128) == (fault == kWrongLowerAddress));
            CHECK((size > 512 - at) == (fault == kTooMuchData));
            if (fault == kTooLittleData) CHECK(size < 512 - at);
            if (fault == kWrongBoundary) CHECK((at + size) % 64 != 0);
            const bool last = fault == kTooMuchData || fault == kTooLittleData;
            CHECK(got->forged->last == (last || at + size == 512));
            at = got->forged->last ? 512 : at + size;
          }
          CHECK(met);
          CHECK(at == 512);
          read(machine().iova, 64, 5);
          CHECK(next_completion().tag == 5);
        });
        CHECK(hits(fault) == 1);
        CHECK(machine().rc.outstanding_reads() == 0);
      }
    }
  }
}

TEST_CASE("the next read that touches an address, armed in the middle of a run") {
  machine().reset();
  run([] {
    read(machine().iova + 1000, 100);
    CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
    machine().rc.arm(rule(PcieFault::kCompleterAbort, 1, match(PcieAccess::kDmaRead, 0, host_address(1050))));
    for (const std::uint64_t at : {950, 1051, 4096 + 1000}) {
      read(machine().iova + at, 100);
      CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
    }
    read(machine().iova + 1000, 50);
    CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
    read(machine().iova + 1000, 51);
    CHECK(completion_or_none()->status == CompletionStatus::kCompleterAbort);
    read(machine().iova + 1000, 51);
    CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
    CHECK_THROWS_AS(machine().rc.arm(rule(PcieFault::kPoisoned, 1, match(PcieAccess::kDmaWrite))),
                    std::invalid_argument);
  });
}

TEST_CASE("faults by chance: each about as often as asked, reads that suffer none stay right, a seed repeats them") {
  RootComplexOptions options;
  options.reorder_probability = 0.3;
  options.split_probability = 0.3;
  auto& faults = options.faults;
  faults.timeout = faults.unsupported_request = faults.completer_abort = faults.poisoned = 0.05;
  faults.partial = 0.5;
  const auto round = [&](std::uint64_t seed) {
    options.seed = seed;
    machine().reset(options);
    std::vector<unsigned> outcome;
    run([&] {
      for (std::uint16_t i = 0; i < 1000; ++i) {
        read(machine().iova + i % 512, 400, i % 1024);
        wait_ns(100);
      }
      for (DmaCompletion completion; machine().rc.take_dma_completion(completion);) {
        outcome.push_back(completion.tag * 16u + static_cast<unsigned>(completion.status) * 2u + completion.poisoned);
        if (completion.status != CompletionStatus::kSuccess || completion.poisoned) continue;
        const std::size_t start = (400 - completion.byte_count + completion.tag % 512u) & ~3u;
        const std::vector<std::uint8_t> expected(machine().buffer + start,
                                                 machine().buffer + start + completion.data.size());
        // The ends of a read that are not aligned have bytes that were not enabled.
        for (std::size_t at = 4; at + 4 < expected.size(); ++at) REQUIRE(completion.data[at] == expected[at]);
      }
    });
    return outcome;
  };
  const auto first = round(1);
  for (const auto fault :
       {PcieFault::kUnsupportedRequest, PcieFault::kCompleterAbort, PcieFault::kPoisoned, PcieFault::kTimeout}) {
    CHECK(hits(fault) > 25);
    CHECK(hits(fault) < 80);
  }
  CHECK(round(1) == first);
  CHECK(round(2) != first);
}

TEST_CASE("back-pressure by chance and at given times; nothing is lost") {
  RootComplexOptions options;
  options.faults.back_pressure = 1;
  options.faults.back_pressure_ns = 300;
  machine().reset(options);
  run([] {
    std::set<Picoseconds> waits;
    for (int i = 0; i < 50; ++i) {
      read(machine().iova, 64, 1);
      const Picoseconds start = now_ps();
      while (!machine().rc.can_request()) wait_ns(1);
      waits.insert(now_ps() - start);
      CHECK(now_ps() - start <= 301'000);
      CHECK(completion_or_none());
    }
    CHECK(waits.size() > 20);
  });
  options.faults = {};
  options.faults.stalls = {{100, 50}, {400, 10}};
  machine().reset(options);
  run([] {
    for (int i = 0; i < 600; ++i) {
      CHECK(machine().rc.can_request() == !((i >= 100 && i < 150) || (i >= 400 && i < 410)));
      wait_ns(1);
    }
  });
}

TEST_CASE("a page is unmapped before the nth access to it, or at a time; its owner may still unmap it") {
  for (const auto access : {PcieAccess::kDmaRead, PcieAccess::kDmaWrite}) {
    machine().reset(with(rule(PcieFault::kUnmap, 3, match(access, 0, host_address(4096 + 8)))));
    const auto pages = machine().iommu.map_pages(machine().buffer + 4096, 4096, Iommu::Rights::kReadWrite);
    run([&] {
      for (int i = 0; i < 5; ++i) {
        const auto address = pages[0] + (i == 1 ? 512u : 0u);  // another place of the page does not count
        if (access == PcieAccess::kDmaRead) {
          read(address, 64);
          CHECK(completion_or_none()->status ==
                (i < 3 ? CompletionStatus::kSuccess : CompletionStatus::kUnsupportedRequest));
        } else {
          machine().rc.dma_request(write_of(address, 64, static_cast<std::uint8_t>(i)));
          wait_ns(400);
          CHECK(machine().rc.statistics().dropped_writes == static_cast<std::uint64_t>(i < 3 ? 0 : i - 2));
        }
      }
      if (access == PcieAccess::kDmaWrite) CHECK(machine().buffer[4096] == 2);
      read(machine().iova + 4096, 64);  // another mapping of the same page goes on
      CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
    });
    CHECK(hits(PcieFault::kUnmap) == 1);
    CHECK(machine().iommu.fault_log().front().reason == Iommu::Reason::kRevoked);
    machine().iommu.unmap_pages(pages);
  }
  auto timed = rule(PcieFault::kUnmap, 1, match(PcieAccess::kDmaRead, 0, host_address(0)));
  timed.at_ns = 2000;
  machine().reset(with(timed));
  run([] {
    for (const auto expected : {CompletionStatus::kSuccess, CompletionStatus::kUnsupportedRequest}) {
      read(machine().iova + 100, 64);
      CHECK(completion_or_none()->status == expected);
      read(machine().iova + 4096, 64);
      CHECK(completion_or_none()->status == CompletionStatus::kSuccess);
      wait_ns(2000);
    }
  });
  CHECK(hits(PcieFault::kUnmap) == 1);
}

TEST_CASE("host reads get lost or are refused, as often as one likes; host writes are poisoned") {
  RootComplexOptions options;
  options.mmio_timeout_ns = 3000;
  auto lost = rule(PcieFault::kTimeout, 1, match(PcieAccess::kHostRead));
  lost.count = 50;  // more than there are tags
  options.faults.rules = {lost, rule(PcieFault::kUnsupportedRequest, 51, match(PcieAccess::kHostRead, 0, 0x24)),
                          rule(PcieFault::kPoisoned, 2, match(PcieAccess::kHostWrite))};
  machine().reset(options);
  machine().runner.add("nic", [] {
    for (const bool poisoned : {false, true, false}) {
      const HostRequest tlp = next_request();
      CHECK(tlp.kind == TlpKind::kMemoryWrite);
      CHECK(tlp.poisoned == poisoned);
      CHECK(tlp.data == std::vector<std::uint8_t>(8, poisoned ? 0xEE : 0x11));
    }
    const HostRequest good = next_request();
    machine().rc.host_completion({CompletionStatus::kSuccess, good.tag, good.requester, 8, 0x20,
                                  std::vector<std::uint8_t>(8, 0x22), good.handling});
  });
  run([] {
    for (int i = 0; i < 51; ++i) {
      const Picoseconds start = now_ps();
      CHECK(machine().device.read64(0x20) == ~0ULL);
      CHECK(now_ps() - start == (i < 50 ? 3'000'000 : 500'000));
    }
    for (int i = 0; i < 3; ++i) machine().device.write64(0x1000, 0x1111111111111111);
    CHECK(machine().device.read64(0x20) == 0x2222222222222222);
  });
  CHECK(hits(PcieFault::kTimeout) == 50);
  CHECK(hits(PcieFault::kUnsupportedRequest) == 1);
  CHECK(hits(PcieFault::kPoisoned) == 1);
}

TEST_CASE("options that are out of range or do not go together are refused, by name") {
  const auto refused = [](const char* what, auto&& spoil) {
    RootComplexOptions options;
    spoil(options.faults);
    CHECK_THROWS_WITH(machine().rc.reset(options), Contains(what));
  };
  refused("timeout", [](auto& f) { f.timeout = -1; });
  refused("partial", [](auto& f) { f.partial = 2; });
  refused("back_pressure_ns", [](auto& f) { f.back_pressure_ns = -1; });
  refused("stall", [](auto& f) { f.stalls = {{-1, 1}}; });
  refused("nth", [](auto& f) { f.rules = {rule(PcieFault::kTimeout, 0)}; });
  refused("timeout does not happen to a dma_write",
          [](auto& f) { f.rules = {rule(PcieFault::kTimeout, 1, match(PcieAccess::kDmaWrite))}; });
  refused("unmap does not happen to a host_read",
          [](auto& f) { f.rules = {rule(PcieFault::kUnmap, 1, match(PcieAccess::kHostRead))}; });
  refused("late does not happen to a host_read",
          [](auto& f) { f.rules = {rule(PcieFault::kLate, 1, match(PcieAccess::kHostRead))}; });
  refused("late_ns", [](auto& f) {
    f.rules = {rule(PcieFault::kLate)};
    f.rules[0].late_ns = 0;
  });
  refused("at_ns", [](auto& f) {
    f.rules = {rule(PcieFault::kUnmap)};
    f.rules[0].at_ns = 5;
  });
  refused("after_bytes", [](auto& f) {
    f.rules = {rule(PcieFault::kTimeout, 1, match(PcieAccess::kHostRead))};
    f.rules[0].after_bytes = 4;
  });
}
