#include <catch2/catch.hpp>
#include <functional>

#include "model/tlp_checker.hpp"

using namespace rnic::model;
using Catch::Matchers::Contains;

namespace {

DmaRequest write_of(std::size_t bytes) {
  return {TlpKind::kMemoryWrite,
          0x1000,
          static_cast<std::uint16_t>(bytes / 4),
          0xF,
          static_cast<std::uint8_t>(bytes > 4 ? 0xF : 0),
          0,
          std::vector<std::uint8_t>(bytes)};
}
DmaRequest read_of(std::size_t bytes) {
  DmaRequest request = write_of(bytes);
  request.kind = TlpKind::kMemoryRead;
  request.data.clear();
  return request;
}

}  // namespace

TEST_CASE("well-formed TLPs pass") {
  TlpChecker checker;
  const PcieConfig config;
  checker.check_request(write_of(256), config);
  checker.check_request(write_of(4), config);
  checker.check_request(read_of(512), config);
  auto partial = write_of(8);
  partial.first_be = 0b0101;  // a quadword may have holes
  partial.last_be = 0b1001;
  checker.check_request(partial, config);
  auto none = write_of(4);
  none.first_be = 0;
  checker.check_request(none, config);
  CHECK(checker.outstanding_reads() == 1);
}

TEST_CASE("each rule has a TLP that breaks it") {
  const struct {
    const char* rule;
    DmaRequest request;
    std::function<void(DmaRequest&)> spoil;
  } rows[] = {
      {"dword aligned", write_of(64), [](auto& r) { r.address += 2; }},
      {"1 to 1024 dwords", read_of(64), [](auto& r) { r.length_dw = 0; }},
      {"4 KiB", write_of(64), [](auto& r) { r.address = 0x1FC4; }},
      {"byte enables of zero", write_of(4), [](auto& r) { r.last_be = 1; }},
      {"needs byte enables", write_of(8), [](auto& r) { r.first_be = 0; }},
      {"hole", write_of(16), [](auto& r) { r.first_be = 0b0111; }},
      {"hole", write_of(16), [](auto& r) { r.last_be = 0b0101; }},
      {"hole", write_of(8),
       [](auto& r) {
         r.address += 4;
         r.first_be = 0b0101;
       }},
      {"maximum payload", write_of(260), [](auto&) {}},
      {"length of the header", write_of(64), [](auto& r) { r.data.pop_back(); }},
      {"maximum read request", read_of(516), [](auto&) {}},
      {"ten bits", read_of(4), [](auto& r) { r.tag = 1024; }},
      {"neither", write_of(4), [](auto& r) { r.kind = TlpKind::kMessage; }},
  };
  for (const auto& row : rows) {
    TlpChecker checker;
    DmaRequest request = row.request;
    row.spoil(request);
    INFO(row.rule);
    CHECK_THROWS_WITH(checker.check_request(request, PcieConfig{}), Contains(row.rule));
  }
  PcieConfig off;
  off.bus_master = false;
  CHECK_THROWS_WITH(TlpChecker().check_request(write_of(4), off), Contains("bus mastering"));
}

TEST_CASE("a tag is free again after the last completion of its read") {
  TlpChecker checker;
  const PcieConfig config;
  checker.check_request(read_of(128), config);
  CHECK_THROWS_WITH(checker.check_request(read_of(4), config), Contains("outstanding"));
  checker.note_completion({CompletionStatus::kSuccess, false, 0, 128, 0, std::vector<std::uint8_t>(64)});
  CHECK_THROWS_AS(checker.check_request(read_of(4), config), PcieProtocolError);
  checker.note_completion({CompletionStatus::kSuccess, false, 0, 64, 64, std::vector<std::uint8_t>(64)});
  checker.check_request(read_of(128), config);
  checker.note_completion({CompletionStatus::kUnsupportedRequest, false, 0, 128, 0, {}});
  checker.check_request(read_of(128), config);
}
