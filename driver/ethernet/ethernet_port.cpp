#include "driver/ethernet/ethernet_port.hpp"

#include <algorithm>

namespace rnic::ethernet {

unsigned group_bit(std::uint64_t mac) {
  constexpr std::uint32_t kPolynomial = 0x04C11DB7;  // IEEE 802.3 clause 3.2.9
  std::uint32_t crc = ~0U;
  for (unsigned bit = 0; bit < 48; ++bit) {
    const unsigned byte = 5 - bit / 8;  // the first on the wire is the highest of the number
    const bool one = (mac >> (8 * byte + bit % 8) & 1) != 0;
    crc = crc << 1 ^ (one != (crc >> 31 != 0) ? kPolynomial : 0);
  }
  return crc >> 26;
}

Result<std::unique_ptr<EthernetPort>> EthernetPort::open(kmd::KernelDevice& kernel, Receiver receiver) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<EthernetPort>> {
    std::unique_ptr<EthernetPort> port(new EthernetPort(kernel, std::move(receiver)));
    if (auto begun = port->begin(); !begun) return begun.error();
    return port;
  });
}

Result<void> EthernetPort::begin() {
  auto process = umd::ProcessContext::open_for_management(kernel_.kernel_node());
  if (!process) return process.error();
  process_ = process.take();
  buffers_.resize(kReceives + kSends);
  auto region = process_->create_mr(
      {.address = buffers_.front().bytes.data(), .length = buffers_.size() * sizeof(Buffer), .local_write = true});
  if (!region) return region.error();
  region_ = region.take();
  auto cq = umd::CompletionQueue::create(process_, kReceives + kSends);
  if (!cq) return cq.error();
  cq_ = cq.take();
  signal_.emplace(*process_, cq_);
  auto qp = umd::QueuePair::create_idle(
      process_,
      {.send_cq = cq_, .receive_cq = cq_, .type = hw::QpType::kRawPacket, .capacity = {kSends, kReceives, 1, 1, 0}});
  if (!qp) return qp.error();
  qp_ = qp.take();
  for (std::uint64_t i = 0; i < kReceives; ++i) {
    if (auto posted = post_receive(i); !posted) return posted;
  }
  for (std::uint64_t i = 0; i < kSends; ++i) free_.push_back(kReceives + i);
  if (auto connected = qp_->connect({}); !connected) return connected;
  receive_also({});
  return {};
}

EthernetPort::~EthernetPort() {
  if (qp_ && process_->alive()) kernel_.receive_ethernet({});
  qp_.reset();
  signal_.reset();
  cq_.reset();
  region_.reset();
}

void EthernetPort::receive_also(kmd::EthernetReceive what) {
  what.qpn = qpn();
  what.enable = true;
  kernel_.receive_ethernet(what);
}

umd::Segment EthernetPort::segment(std::uint64_t number, std::size_t bytes) {
  return {.address = reinterpret_cast<std::uint64_t>(buffers_[number].bytes.data()),
          .length = static_cast<std::uint32_t>(bytes),
          .key = region_->key()};
}

Result<void> EthernetPort::post_receive(std::uint64_t number) {
  const umd::Segment whole = segment(number, kMaxFrameBytes);
  return qp_->post_receive({.id = number, .segments = {&whole, 1}});
}

Result<void> EthernetPort::send(std::span<const std::uint8_t> frame, bool ip_csum) {
  if (frame.size() < kHeaderBytes || frame.size() > kMaxFrameBytes) return Error::kInvalidParameter;
  if (free_.empty()) return Error::kQueueFull;
  const std::uint64_t number = free_.back();
  std::copy(frame.begin(), frame.end(), buffers_[number].bytes.begin());
  const umd::Segment data = segment(number, frame.size());
  umd::SendRequest request;
  request.opcode = hw::WqeOpcode::kSend;
  request.id = number;
  request.segments = {&data, 1};
  request.ip_csum = ip_csum;
  if (auto posted = qp_->post_send(request); !posted) return posted;
  free_.pop_back();
  return {};
}

bool EthernetPort::poll() {
  std::array<umd::Completion, 32> batch;
  bool any = false;
  for (std::size_t got = batch.size(); got == batch.size();) {
    got = cq_->poll(batch);
    for (const auto& completion : std::span(batch).first(got)) {
      any = true;
      const bool good = completion.status == hw::CqeStatus::kSuccess;
      if (!good) ++counters_.failed;
      if (completion.id >= kReceives) {
        if (good) ++counters_.sent;
        free_.push_back(completion.id);
        continue;
      }
      if (good) {
        ++counters_.received;
        receiver_(std::span(buffers_[completion.id].bytes).first(completion.byte_count),
                  {.l3_ok = completion.l3_ok, .l4_ok = completion.l4_ok});
      }
      static_cast<void>(post_receive(completion.id).ok());
    }
  }
  return any;
}

}  // namespace rnic::ethernet
