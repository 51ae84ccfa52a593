#include "model/tlp_checker.hpp"

#include <bit>
#include <sstream>

#include "model/interrupt_controller.hpp"

namespace rnic::model {
namespace {

bool contiguous(std::uint8_t enables) {
  const unsigned shifted = enables == 0 ? 0 : enables >> std::countr_zero(enables);
  return std::has_single_bit(shifted + 1u);
}

[[noreturn]] void fail(const DmaRequest& request, const char* rule) {
  std::ostringstream text;
  text << "malformed DMA " << (request.kind == TlpKind::kMemoryWrite ? "write" : "read") << " TLP (address 0x"
       << std::hex << request.address << std::dec << ", " << request.length_dw << " dwords, byte enables " << std::hex
       << unsigned{request.first_be} << '/' << unsigned{request.last_be} << std::dec << ", tag " << request.tag
       << "): " << rule;
  throw PcieProtocolError(text.str());
}

}  // namespace

void TlpChecker::check_request(const DmaRequest& request, const PcieConfig& config, bool messages) {
  const auto require = [&](bool ok, const char* rule) {
    if (!ok) fail(request, rule);
  };
  const std::size_t bytes = std::size_t{request.length_dw} * 4;
  require(config.bus_master, "bus mastering is off (7.5.1.1.3)");
  require(request.kind == TlpKind::kMemoryRead || request.kind == TlpKind::kMemoryWrite,
          "neither memory read nor memory write");
  require(request.address % 4 == 0, "address is not dword aligned (2.2.4.1)");
  require(request.length_dw >= 1 && request.length_dw <= 1024, "length is not 1 to 1024 dwords (2.2.2)");
  require(request.address % kPageBytes + bytes <= kPageBytes, "crosses a 4 KiB boundary (2.2.7)");
  require(request.first_be <= 0xF && request.last_be <= 0xF, "byte enables are not four bits (2.2.5)");
  if (request.length_dw == 1) {
    require(request.last_be == 0, "one dword needs last byte enables of zero (2.2.5)");
  } else {
    require(request.first_be != 0 && request.last_be != 0, "more than one dword needs byte enables (2.2.5)");
    const bool quadword = request.length_dw == 2 && request.address % 8 == 0;
    require(quadword || ((request.first_be & 8) && contiguous(request.first_be) && (request.last_be & 1) &&
                         contiguous(request.last_be)),
            "byte enables have a hole (2.2.5)");
  }
  if (messages && InterruptController::is_message(request.address)) {
    require(request.kind == TlpKind::kMemoryWrite && request.length_dw == 1 && request.first_be == 0xF,
            "an interrupt message is a write of one dword (6.1.4)");
  }
  if (request.kind == TlpKind::kMemoryWrite) {
    require(bytes <= config.max_payload, "exceeds the maximum payload (2.2.2)");
    require(request.data.size() == bytes, "payload does not have the length of the header (2.2.2)");
    return;
  }
  require(bytes <= config.max_read_request, "exceeds the maximum read request (2.2.7)");
  require(request.tag < kTags, "tag is not ten bits (2.2.6.2)");
  require(config.extended_tags || request.tag < 32,
          "tag of more than five bits without Extended Tag Field Enable (2.2.6.2)");
  require(!outstanding_[request.tag], "tag of an outstanding read (2.2.6.2)");
  outstanding_[request.tag] = true;
}

void TlpChecker::note_completion(const DmaCompletion& completion) {
  if (completion.forged) {
    if (completion.forged->last) outstanding_[completion.forged->tag] = false;
    return;
  }
  const bool last = completion.status != CompletionStatus::kSuccess ||
                    (completion.lower_address & 3u) + completion.byte_count <= completion.data.size();
  if (last && completion.tag < kTags) outstanding_[completion.tag] = false;
}

}  // namespace rnic::model
