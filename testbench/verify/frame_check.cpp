#include "testbench/verify/frame_check.hpp"

#include <Vicrc.h>
#include <Vrx_front.h>
#include <fmt/format.h>
#include <verilated.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>

#include "testbench/generated/rtl_streams.hpp"
#include "testbench/roce_frame.hpp"

namespace rnic::testbench {
namespace {

constexpr std::size_t kBeat = 64;

template <typename Model>
void tick(Model& model) {
  model.clk_i = 0;
  model.eval();
  model.clk_i = 1;
  model.eval();
}

/// The receive front end, fed with one frame after the other.
class Parser {
 public:
  explicit Parser(std::span<const std::uint8_t> mac) : dut_(std::make_unique<Vrx_front>(&context_)) {
    dut_->eth_rx_valid_i = 0;
    dut_->desc_ready_i = 1;
    dut_->payload_ready_i = 1;
    dut_->enable_i = 1;
    dut_->port_mac_i = 0;
    for (const auto byte : mac.first(6)) dut_->port_mac_i = dut_->port_mac_i << 8 | byte;
    dut_->rst_ni = 0;
    for (int i = 0; i < 4; ++i) tick(*dut_);
    dut_->rst_ni = 1;
  }
  ~Parser() {
    Verilated::threadContextp(&context_);  // a model leaves the context of its thread
    dut_->final();
  }

  /// The descriptor of the packet, or nothing when the frame was dropped.
  std::optional<rtl::RxDesc> feed(std::span<const std::uint8_t> frame) {
    constexpr int kLatency = 60;
    std::optional<rtl::RxDesc> found;
    for (std::size_t at = 0; at < frame.size() + kBeat * kLatency; at += kBeat) {
      dut_->eth_rx_valid_i = at < frame.size();
      if (at < frame.size()) {
        rtl::FrameBeat beat;
        const auto part = frame.subspan(at, std::min(kBeat, frame.size() - at));
        std::copy(part.begin(), part.end(), beat.data.begin());
        beat.bytes = static_cast<std::uint8_t>(part.size());
        beat.last = at + kBeat >= frame.size();
        std::array<std::uint8_t, rtl::FrameBeat::kBytes> raw{};
        beat.encode(raw);
        std::memcpy(&dut_->eth_rx_data_i, raw.data(), raw.size());
      }
      dut_->clk_i = 0;
      dut_->eval();
      if (dut_->desc_valid_o) {
        std::array<std::uint8_t, rtl::RxDesc::kBytes> raw{};
        std::memcpy(raw.data(), &dut_->desc_data_o, raw.size());
        found = rtl::RxDesc::decode(raw);
      }
      dut_->clk_i = 1;
      dut_->eval();
    }
    return found;
  }

 private:
  VerilatedContext context_;
  std::unique_ptr<Vrx_front> dut_;
};

/// ICRC of an IP packet (without its ICRC) by the RTL's engine, as on the wire.
std::array<std::uint8_t, 4> engine_icrc(std::span<const std::uint8_t> packet) {
  VerilatedContext context;
  Vicrc dut(&context);
  dut.in_valid_i = 0;
  dut.rst_ni = 0;
  for (int i = 0; i < 4; ++i) tick(dut);
  dut.rst_ni = 1;
  std::array<std::uint8_t, 4> result{};
  for (std::size_t at = 0; at < packet.size() + 10 * kBeat; at += kBeat) {
    const bool valid = at < packet.size();
    dut.in_valid_i = valid;
    std::memset(&dut.in_data_i, 0, kBeat);
    if (valid) {
      const auto part = packet.subspan(at, std::min(kBeat, packet.size() - at));
      std::memcpy(&dut.in_data_i, part.data(), part.size());
      dut.in_last_i = at + kBeat >= packet.size();
      dut.in_words_i = static_cast<CData>(part.size() / 4);
    }
    dut.clk_i = 0;
    dut.eval();
    if (dut.out_valid_o) std::memcpy(result.data(), &dut.out_crc_o, 4);
    dut.clk_i = 1;
    dut.eval();
  }
  Verilated::threadContextp(&context);  // a model leaves the context of its thread
  dut.final();
  return result;
}

std::map<std::string, std::uint64_t> fields(const rtl::RxDesc& d) {
  return {{"opcode", d.opcode},
          {"solicited", d.solicited},
          {"ack_req", d.ack_req},
          {"pkey", d.pkey},
          {"dest_qpn", d.dest_qpn},
          {"psn", d.psn},
          {"payload_length", d.payload_length},
          {"va", d.va},
          {"rkey", d.rkey},
          {"dma_length", d.dma_length},
          {"swap_add", d.swap_add},
          {"compare", d.compare},
          {"immediate", d.immediate},
          {"syndrome", d.syndrome},
          {"msn", d.msn},
          {"qkey", d.qkey},
          {"source_qpn", d.source_qpn},
          {"ipv6", d.ipv6},
          {"vlan", d.vlan},
          {"vlan_tci", d.vlan_tci}};
}

/// True for the bits that change on the way and are not covered (InfiniBand specification annex A17.3.3): `at` counts
/// from the IP header.
bool uncovered(std::size_t at, unsigned bit, bool ipv6) {
  const std::size_t bth = ipv6 ? 48 : 28;
  if (at == bth - 2 || at == bth - 1 || at == bth + 4) return true;  // UDP checksum; FECN, BECN
  if (ipv6) return (at == 0 && bit < 4) || (at >= 1 && at <= 3) || at == 7;
  return at == 1 || at == 8 || at == 10 || at == 11;
}

}  // namespace

VectorOutcome check_frame(const Vector& vector) {
  const std::span<const std::uint8_t> frame = vector.frame;
  if (frame.size() < roce::kEthernetBytes + 20 + 8 + 12 + roce::kIcrcBytes)
    throw VectorError(fmt::format("{}: \"frame\" is too short for a RoCEv2 frame", vector.file.string()));
  const std::size_t ip = roce::ethernet_bytes(frame);
  const bool ipv6 = frame[ip] >> 4 == 6;
  Parser parser(frame);

  const auto desc = parser.feed(frame);
  if (!desc) return {false, "the parser dropped the frame", 0};
  const auto seen = fields(*desc);
  for (const auto& [name, value] : vector.header) {
    const auto it = seen.find(name);
    if (it == seen.end())
      throw VectorError(fmt::format("{}, header: no field \"{}\" in rx_desc", vector.file.string(), name));
    if (it->second != value) return {false, fmt::format("{} is {:#x}, expected {:#x}", name, it->second, value), 0};
  }

  const auto packet = frame.subspan(ip, frame.size() - ip - roce::kIcrcBytes);
  const auto icrc = engine_icrc(packet);
  if (!std::equal(icrc.begin(), icrc.end(), frame.end() - roce::kIcrcBytes)) {
    return {false,
            fmt::format("ICRC {:02x}{:02x}{:02x}{:02x} differs from the frame's", icrc[0], icrc[1], icrc[2], icrc[3]),
            0};
  }

  const std::size_t headers = (ipv6 ? 40u : 20u) + 8 + 12 + 28;
  std::vector<std::uint8_t> broken(frame.begin(), frame.end());
  for (std::size_t at = ip; at < frame.size(); ++at) {
    for (unsigned bit = 0; bit < 8; ++bit) {
      if (uncovered(at - ip, bit, ipv6) || (at - ip >= headers && bit != at % 8)) continue;
      broken[at] ^= static_cast<std::uint8_t>(1u << bit);
      if (parser.feed(broken))
        return {false, fmt::format("the frame passes with bit {} of byte {} flipped", bit, at), 0};
      broken[at] ^= static_cast<std::uint8_t>(1u << bit);
    }
  }
  return {true, "", 0};
}

}  // namespace rnic::testbench
