#include <catch2/catch.hpp>
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/model/root_complex_machine.hpp"

using namespace rnic::model;
using namespace sc_core;

TEST_CASE("a DMA read takes the read latency and the time of its packets on the link") {
  machine().reset();
  run([] {
    const Picoseconds start = now_ps();
    read(machine().iova + 128, 64, 7);
    const DmaCompletion completion = next_completion();
    const double expected = 500 + link_ns(24) + link_ns(24 + 64);
    CHECK(static_cast<double>(now_ps() - start) / 1000 == Approx(expected).margin(0.15));
    CHECK(completion.tag == 7);
    CHECK(completion.byte_count == 64);
    CHECK(completion.lower_address == 128);
    CHECK(completion.data == std::vector<std::uint8_t>(machine().buffer + 128, machine().buffer + 192));
  });
}

TEST_CASE("a DMA write is visible after half of it") {
  machine().reset();
  run([] {
    machine().rc.dma_request(write_of(machine().iova, 64, 0xCC));
    wait_ns(250);
    CHECK(machine().buffer[0] == Machine::pattern(0));
    wait_ns(link_ns(88) + 0.1);
    CHECK(machine().buffer[0] == 0xCC);
    CHECK(machine().buffer[63] == 0xCC);
    CHECK(machine().buffer[64] == Machine::pattern(64));
  });
}

TEST_CASE("only enabled bytes are written") {
  machine().reset();
  run([] {
    for (std::uint32_t offset = 0; offset < 6; ++offset) {
      for (std::uint32_t length = 1; length < 20; ++length) {
        std::memset(machine().buffer, 0, 64);
        machine().rc.dma_request(write_of(machine().iova + offset, length, 0xCC));
        wait_ns(300);
        for (std::uint32_t i = 0; i < 64; ++i)
          CHECK((machine().buffer[i] == 0xCC) == (i >= offset && i < offset + length));
      }
    }
    DmaRequest holes = write_of(machine().iova + 1024, 8, 0xCC);
    holes.first_be = 0b0101;
    holes.last_be = 0b0000 | 0b1010;
    machine().rc.dma_request(holes);
    wait_ns(300);
    for (std::uint32_t i = 0; i < 8; ++i)
      CHECK((machine().buffer[1024 + i] == 0xCC) == (i == 0 || i == 2 || i == 5 || i == 7));
  });
}

TEST_CASE("byte enables of a read say what its completion counts") {
  machine().reset();
  run([] {
    read(machine().iova + 0x103, 6);
    const DmaCompletion completion = next_completion();
    CHECK(completion.byte_count == 6);
    CHECK(completion.lower_address == 0x103);
    REQUIRE(completion.data.size() == 12);
    for (std::size_t i = 3; i < 9; ++i) CHECK(completion.data[i] == Machine::pattern(0x100 + i));
    CHECK(completion.data[0] == 0xA5);  // not enabled
    CHECK(completion.data[9] == 0xA5);
    DmaRequest flush = request(TlpKind::kMemoryRead, machine().iova, 4);  // zero-length read
    flush.first_be = 0;
    machine().rc.dma_request(flush);
    CHECK(next_completion().byte_count == 1);
  });
}

TEST_CASE("completions are cut at the maximum payload, reads of many tags arrive whole and in order") {
  machine().reset();
  run([] {
    for (std::uint16_t tag = 0; tag < 8; ++tag) read(machine().iova + tag * 512, 512, tag);
    const Collected all = collect(8);
    CHECK(all.packets == 16);
    CHECK(all.order == std::vector<unsigned>{0, 1, 2, 3, 4, 5, 6, 7});
    CHECK(all.done == all.order);
    for (unsigned tag = 0; tag < 8; ++tag) {
      CHECK(all.data.at(tag) ==
            std::vector<std::uint8_t>(machine().buffer + tag * 512, machine().buffer + (tag + 1) * 512));
    }
  });
}

TEST_CASE("with reordering tags overtake each other and data stays right; a seed repeats it") {
  RootComplexOptions options;
  options.reorder_probability = 0.5;
  options.split_probability = 0.5;
  const auto round = [&](std::uint64_t seed) {
    options.seed = seed;
    machine().reset(options);
    Collected all;
    run([&] {
      for (std::uint16_t tag = 0; tag < 30; ++tag) read(machine().iova + tag * 517 % 3584, 1 + tag * 17, tag);
      all = collect(30);
    });
    for (std::size_t tag = 0; tag < 30; ++tag) {
      const std::uint8_t* from = machine().buffer + tag * 517 % 3584;
      CHECK(all.data.at(static_cast<unsigned>(tag)) == std::vector<std::uint8_t>(from, from + 1 + tag * 17));
    }
    return all;
  };
  const Collected first = round(3);
  CHECK_FALSE(std::is_sorted(first.order.begin(), first.order.end()));
  CHECK(first.order != first.done);  // completions of different reads are mixed
  const Collected again = round(3);
  CHECK(again.done == first.done);
  CHECK(again.packets == first.packets);
  CHECK(round(4).done != first.done);
}

TEST_CASE("results do not depend on how often the NIC looks") {
  RootComplexOptions options;
  options.reorder_probability = 0.5;
  options.split_probability = 0.5;
  std::vector<std::vector<unsigned>> orders;
  for (const int step : {4, 4000}) {
    machine().reset(options);
    run([&] {
      for (std::uint16_t tag = 0; tag < 20; ++tag) {
        read(machine().iova, 400, tag);
        wait_ns(4);
      }
      std::vector<unsigned> tags;
      for (int t = 0; t < 8000; t += step) {
        wait_ns(step);
        DmaCompletion completion;
        while (machine().rc.take_dma_completion(completion))
          tags.push_back(completion.tag * 10000u + completion.byte_count);
      }
      orders.push_back(tags);
    });
  }
  CHECK(orders[0].size() >= 40);
  CHECK(orders[0] == orders[1]);
}

TEST_CASE("a read never passes an earlier write") {
  RootComplexOptions options;
  options.reorder_probability = 1;
  machine().reset(options);
  run([] {
    for (std::uint8_t i = 1; i < 50; ++i) {
      machine().rc.dma_request(write_of(machine().iova + 64, 64, i));
      read(machine().iova + 64, 64);
      machine().rc.dma_request(write_of(machine().iova + 64, 64, 0xEE));
      CHECK(next_completion().data == std::vector<std::uint8_t>(64, i));
    }
  });
}

TEST_CASE("posted writes may pass a read, which then sees them, and its completion still comes (2.4.1)") {
  RootComplexOptions options;
  options.pass_probability = 1;
  options.reorder_window_ns = 1'000;
  bool passed = false, not_passed = false;
  for (options.seed = 1; options.seed <= 20; ++options.seed) {
    machine().reset(options);
    run([&] {
      read(machine().iova, 4, 1);
      wait_ns(100);
      machine().rc.dma_request(write_of(machine().iova, 4, 0xCC));
      const DmaCompletion completion = next_completion();
      const bool late = completion.data[0] == 0xCC;
      CHECK((late || completion.data[0] == Machine::pattern(0)));
      (late ? passed : not_passed) = true;
    });
  }
  CHECK(passed);
  CHECK(not_passed);
}

TEST_CASE("an interrupt comes after the writes before it") {
  machine().reset();
  run([] {
    const auto message = machine().device.msix_message(5);
    DmaRequest signal = request(TlpKind::kMemoryWrite, message.address, 4);
    std::memcpy(signal.data.data(), &message.data, 4);
    for (int i = 0; i < 16; ++i) machine().rc.dma_request(write_of(machine().iova + i * 256, 256, 0x77));
    machine().rc.dma_request(signal);
    CHECK(machine().interrupts.wait(5, sc_core::sc_time(1000, sc_core::SC_NS)));
    for (std::size_t i = 0; i < 4096; ++i) CHECK(machine().buffer[i] == 0x77);
    CHECK_FALSE(machine().interrupts.wait(5, sc_core::sc_time(10, sc_core::SC_NS)));
    CHECK(machine().rc.statistics().interrupts == 1);
    CHECK(machine().iommu.fault_count() == 0);
  });
}

TEST_CASE("DMA to what is not mapped: Unsupported Request, or dropped and counted") {
  machine().reset();
  run([] {
    read(0x5000, 64, 3);
    const DmaCompletion completion = next_completion();
    CHECK(completion.status == CompletionStatus::kUnsupportedRequest);
    CHECK(completion.tag == 3);
    CHECK(completion.data.empty());
    const auto read_only = machine().iommu.map_pages(machine().buffer, 1, Iommu::Rights::kRead).front();
    machine().rc.dma_request(write_of(read_only, 64, 0xCC));
    wait_ns(300);
    CHECK(machine().buffer[0] == Machine::pattern(0));
    CHECK(machine().rc.statistics().unsupported_reads == 1);
    CHECK(machine().rc.statistics().dropped_writes == 1);
    CHECK(machine().iommu.fault_count() == 2);
  });
}

TEST_CASE("DMA reads are limited by the bandwidth of the link") {
  machine().reset();
  run([] {
    constexpr int kReads = 512;
    int sent = 0, done = 0;
    std::vector<std::uint16_t> free_tags(64);
    for (std::uint16_t i = 0; i < 64; ++i) free_tags[i] = i;
    Picoseconds first = 0;
    while (done < kReads) {
      while (sent < kReads && !free_tags.empty() && machine().rc.can_request()) {
        read(machine().iova + (sent % 8) * 512, 512, free_tags.back());
        free_tags.pop_back();
        ++sent;
      }
      DmaCompletion completion;
      while (machine().rc.take_dma_completion(completion)) {
        if (first == 0) first = now_ps();
        if (completion.byte_count > 256) continue;
        free_tags.push_back(completion.tag);
        ++done;
      }
      wait_ns(4);
    }
    // 512 bytes and two headers each.
    const double ns = static_cast<double>(now_ps() - first) / 1000;
    CHECK(ns == Approx(kReads * link_ns(512 + 48)).epsilon(0.02));
  });
}

TEST_CASE("MMIO writes arrive after half the latency, whole and in order") {
  machine().reset();
  run([] {
    const Picoseconds start = now_ps();
    machine().device.write64(0x1008, 0x1122334455667788);
    std::array<std::uint8_t, 64> burst{};
    for (std::size_t i = 0; i < 64; ++i) burst[i] = static_cast<std::uint8_t>(i);
    machine().device.write_burst64(0x1040, burst);
    CHECK(now_ps() == start);  // posted
    const HostRequest first = next_request();
    CHECK(static_cast<double>(now_ps() - start) / 1000 == Approx(250 + link_ns(32)).margin(0.15));
    CHECK(first.kind == TlpKind::kMemoryWrite);
    CHECK(first.address == 0x1008);
    CHECK(first.length_dw == 2);
    CHECK(first.first_be == 0xF);
    CHECK(first.last_be == 0xF);
    CHECK(first.data == std::vector<std::uint8_t>{0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11});
    const HostRequest second = next_request();
    CHECK(second.length_dw == 16);
    CHECK(second.data == std::vector<std::uint8_t>(burst.begin(), burst.end()));
  });
}

TEST_CASE("an MMIO read waits for its completion, which pushes earlier DMA writes before it") {
  machine().reset();
  machine().runner.add("nic", [] {
    const HostRequest tlp = next_request();
    CHECK(tlp.kind == TlpKind::kMemoryRead);
    machine().rc.dma_request(write_of(machine().iova, 4, 0x99));
    machine().rc.host_completion({CompletionStatus::kSuccess,
                                  tlp.tag,
                                  tlp.requester,
                                  8,
                                  static_cast<std::uint8_t>(tlp.address & 0x7F),
                                  {1, 2, 3, 4, 5, 6, 7, 8},
                                  tlp.handling});
  });
  run([] {
    const Picoseconds start = now_ps();
    CHECK(machine().device.read64(0x20) == 0x0807060504030201);
    CHECK(machine().buffer[0] == 0x99);
    CHECK(static_cast<double>(now_ps() - start) / 1000 == Approx(500).margin(5));
  });
}

TEST_CASE("a long MMIO read may be answered in parts, each but the last to a multiple of 128 bytes (2.3.1.1)") {
  MmioTags tags;
  const auto part = [](std::uint16_t tag, unsigned left, unsigned lower, std::size_t bytes, std::uint8_t value) {
    return HostCompletion{CompletionStatus::kSuccess,
                          tag,
                          0,
                          static_cast<std::uint16_t>(left),
                          static_cast<std::uint8_t>(lower),
                          std::vector<std::uint8_t>(bytes, value)};
  };
  // Bytes 0x1041 to 0x1110, whole dwords.
  MmioTags::Lease lease(tags, {0x1041, 0xd0});
  const auto tag = lease.tag();
  CHECK_THROWS_AS(tags.complete(part(tag, 0xd1, 0x41, 64, 0)), PcieProtocolError);
  CHECK_THROWS_AS(tags.complete(part(tag, 0xd0, 0x40, 64, 0)), PcieProtocolError);
  CHECK_THROWS_AS(tags.complete(part(tag, 0xd0, 0x41, 60, 0)), PcieProtocolError);
  CHECK_THROWS_AS(tags.complete(part(tag, 0xd0, 0x41, 0, 0)), PcieProtocolError);
  CHECK_THROWS_AS(tags.complete(part(tag, 0xd0, 0x41, 0xd8, 0)), PcieProtocolError);
  CHECK(tags.complete(part(tag, 0xd0, 0x41, 64, 1)) == MmioTags::Taken::kByItsRequest);
  CHECK_THROWS_AS(tags.complete(part(tag, 0xd0, 0x41, 64, 1)), PcieProtocolError);
  CHECK_THROWS_AS(tags.complete(part(tag, 0x91, 0, 64, 2)), PcieProtocolError);  // the boundary is not 64
  CHECK(tags.complete(part(tag, 0x91, 0, 128, 2)) == MmioTags::Taken::kByItsRequest);
  CHECK(tags.complete(part(tag, 0x11, 0, 20, 3)) == MmioTags::Taken::kByItsRequest);
  CHECK(tags.complete(part(tag, 0x11, 0, 20, 3)) == MmioTags::Taken::kByNobody);
  const auto* whole = lease.wait(0);
  REQUIRE(whole != nullptr);
  std::vector<std::uint8_t> expected(64, 1);
  expected.resize(192, 2);
  expected.resize(212, 3);
  CHECK(whole->data == expected);
}

TEST_CASE("a completion has traffic class and attributes of its request, also one with an error (2.2.9)") {
  MmioTags tags;
  const TlpHandling asked{5, 0b011};
  const auto answer = [](std::uint16_t tag, CompletionStatus status, TlpHandling handling) {
    const bool data = status == CompletionStatus::kSuccess;
    return HostCompletion{status, tag, 0, 8, 0, std::vector<std::uint8_t>(data ? 8 : 0, 1), handling};
  };
  for (const auto status : {CompletionStatus::kSuccess, CompletionStatus::kUnsupportedRequest}) {
    MmioTags::Lease lease(tags, {0x1000, 8}, asked);
    for (const TlpHandling wrong : {TlpHandling{4, 0b011}, TlpHandling{0, 0b011}, TlpHandling{5, 0b010},
                                    TlpHandling{5, 0b001}, TlpHandling{5, 0b111}, TlpHandling{}}) {
      CHECK_THROWS_WITH(tags.complete(answer(lease.tag(), status, wrong)), Catch::Contains("2.2.9"));
    }
    CHECK(tags.complete(answer(lease.tag(), status, asked)) == MmioTags::Taken::kByItsRequest);
    CHECK(lease.wait(0) != nullptr);
  }
}

TEST_CASE("reads of the host have every traffic class and every attribute, as the seed says") {
  constexpr int kReads = 100;
  const auto draw = [](std::uint64_t seed) {
    RootComplexOptions options;
    options.seed = seed;
    machine().reset(options);
    auto drawn = std::make_shared<std::vector<TlpHandling>>();
    machine().runner.add("nic", [drawn] {
      for (int i = 0; i < kReads; ++i) {
        const HostRequest tlp = next_request();
        drawn->push_back(tlp.handling);
        machine().rc.host_completion({CompletionStatus::kSuccess, tlp.tag, tlp.requester, 8, 0,
                                      std::vector<std::uint8_t>(8, 0x22), tlp.handling});
      }
    });
    run([] {
      for (int i = 0; i < kReads; ++i) CHECK(machine().device.read64(0) == 0x2222222222222222);
    });
    return *drawn;
  };
  const auto first = draw(1);
  unsigned classes = 0, attributes = 0;
  for (const auto& handling : first) classes |= 1u << handling.traffic_class, attributes |= 1u << handling.attributes;
  CHECK(classes == 0xFF);
  CHECK(attributes == 0xFF);
  CHECK(draw(1) == first);
  CHECK(draw(2) != first);
}

TEST_CASE("MMIO reads that fail: error completion, no completion, late completion") {
  RootComplexOptions options;
  options.mmio_timeout_ns = 2000;
  machine().reset(options);
  machine().runner.add("nic", [] {
    const HostRequest refused = next_request();
    machine().rc.host_completion(
        {CompletionStatus::kUnsupportedRequest, refused.tag, refused.requester, 8, 0, {}, refused.handling});
    const HostRequest late = next_request();
    wait_ns(3000);
    const std::vector<std::uint8_t> data(8, 0x11);
    machine().rc.host_completion({CompletionStatus::kSuccess, late.tag, late.requester, 8, 0, data, late.handling});
    const HostRequest good = next_request();
    CHECK(good.tag != late.tag);
    machine().rc.host_completion({CompletionStatus::kSuccess, good.tag, good.requester, 8, 0,
                                  std::vector<std::uint8_t>(8, 0x22), good.handling});
  });
  run([] {
    CHECK(machine().device.read64(0) == ~0ULL);
    const Picoseconds start = now_ps();
    CHECK(machine().device.read64(0) == ~0ULL);
    CHECK(now_ps() - start == 2'000'000);
    CHECK(machine().device.read64(0) == 0x2222222222222222);
    CHECK(machine().rc.statistics().late_completions == 1);
    CHECK(machine().rc.statistics().unexpected_completions == 0);
  });
}

TEST_CASE("a completion of a DMA read never passes an earlier MMIO write") {
  machine().reset();
  run([] {
    for (double gap = 245; gap < 256; gap += 0.25) {
      read(machine().iova, 64);
      wait_ns(gap);
      const auto sampled = machine().rc.statistics().dma_reads;
      machine().device.write64(0x1000, 1);
      const bool earlier = machine().rc.statistics().dma_reads == sampled;
      DmaCompletion completion;
      HostRequest tlp;
      bool completed = false, written = false;
      while (!completed || !written) {
        wait_ns(0.1);
        if (machine().rc.take_host_request(tlp)) written = true;
        if (machine().rc.take_dma_completion(completion)) {
          completed = true;
          if (earlier && gap < 250) CHECK(written);
        }
      }
    }
  });
}

TEST_CASE("the TLM socket refuses what is no single TLP") {
  machine().reset();
  run([] {
    std::array<std::uint8_t, 512> data{};
    const auto status = [&](std::uint64_t address, unsigned length, std::uint8_t* enables = nullptr) {
      tlm::tlm_generic_payload payload;
      payload.set_command(tlm::TLM_WRITE_COMMAND);
      payload.set_address(address);
      payload.set_data_ptr(data.data());
      payload.set_data_length(length);
      payload.set_byte_enable_ptr(enables);
      sc_time delay(8, SC_NS);
      machine().device.mmio->b_transport(payload, delay);
      return payload.get_response_status();
    };
    std::uint8_t enable = 0xFF;
    CHECK(status(0xFFC, 8) == tlm::TLM_BURST_ERROR_RESPONSE);
    CHECK(status(0, 512) == tlm::TLM_BURST_ERROR_RESPONSE);
    CHECK(status(0, 0) == tlm::TLM_BURST_ERROR_RESPONSE);
    CHECK(status(0, 4, &enable) == tlm::TLM_BYTE_ENABLE_ERROR_RESPONSE);
    const Picoseconds start = now_ps();
    CHECK(status(0x13, 2) == tlm::TLM_OK_RESPONSE);
    CHECK(now_ps() - start == 8000);  // the annotated delay
    const HostRequest tlp = next_request();
    CHECK(tlp.address == 0x10);
    CHECK(tlp.length_dw == 2);
    CHECK(tlp.first_be == 0b1000);
    CHECK(tlp.last_be == 0b0001);
  });
}

TEST_CASE("malformed DMA TLPs, options out of range, and a new configuration") {
  machine().reset();
  CHECK_THROWS_AS(machine().rc.dma_request(write_of(machine().iova, 512, 0)), PcieProtocolError);
  PcieConfig config;
  config.max_payload = 512;
  machine().rc.set_config(config);
  machine().rc.dma_request(write_of(machine().iova, 512, 0));
  RootComplexOptions options;
  options.read_completion_boundary = 32;
  CHECK_THROWS_AS(machine().rc.reset(options), std::invalid_argument);
  options = {};
  options.config.max_payload = 100;
  CHECK_THROWS_AS(machine().rc.reset(options), std::invalid_argument);
}
