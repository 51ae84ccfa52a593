// The steps of a VectorSession that go past the driver: commands of the admin queue, bytes of WQEs, and writes to UAR
// pages, to the register that enables the device, and to the configuration space.
#include "testbench/verify/vector_session.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "driver/nd2/shared_receive_queue.hpp"
#include "driver/umd/send_queue.hpp"
#include "testbench/generated/raw_commands.hpp"

namespace rnic::testbench {
namespace {

using Free = VectorNumber::Free;

constexpr std::uint64_t kPage = 4096;

/// Bits `bit` on of a body.
void put_bits(std::span<std::uint8_t> body, unsigned bit, unsigned width, std::uint64_t value) {
  for (unsigned i = 0; i < width && i < 64; ++i) {
    auto& byte = body[(bit + i) / 8];
    const auto mask = static_cast<std::uint8_t>(1u << (bit + i) % 8);
    byte = static_cast<std::uint8_t>((value >> i & 1) != 0 ? byte | mask : byte & ~mask);
  }
}

std::uint64_t word_of(std::span<const std::uint8_t> bytes) {
  std::uint64_t word = 0;
  std::memcpy(&word, bytes.data(), sizeof word);
  return word;
}

/// Of a byte that may be any one nothing is wanted.
bool fits(const std::optional<std::uint8_t>& wanted, std::uint8_t is) { return !wanted || *wanted == is; }

/// The command that says whether there is an object of this kind.
hw::AdminOpcode query_of(Free free) {
  switch (free) {
    case Free::kQueue: return hw::AdminOpcode::kQueryCq;
    case Free::kSharedQueue: return hw::AdminOpcode::kQuerySrq;
    case Free::kEventQueue: return hw::AdminOpcode::kQueryEq;
    case Free::kKey: return hw::AdminOpcode::kQueryMr;
    default: return hw::AdminOpcode::kQueryQp;
  }
}

}  // namespace

/// Asks the NIC, for its kernel driver draws the numbers.
std::uint32_t VectorSession::free_number(const VectorStep& step, Free free) {
  const auto query = query_of(free);
  const unsigned shift = free == Free::kKey ? 8 : 0;
  auto& admin = side(step).endpoint->kernel().admin();
  for (std::uint32_t index = 2; index < (free == Free::kEventQueue ? 32u : 256u); ++index) {
    if (!admin.execute(query, index << shift, kmd::AdminQueue::Body{}).ok()) return index << shift;
  }
  throw VectorFailure(fmt::format("{}: all numbers are taken", step.text));
}

std::uint64_t VectorSession::number_of(const VectorStep& step, const VectorNumber& number) {
  auto& here = side(step);
  if (number.free != Free::kNothing) return free_number(step, number.free);
  if (!number.of) return number.value;
  switch (*number.of) {
    case VectorObject::kQueuePair: return here.pairs.at(number.qp).core().qpn() ^ number.value;
    case VectorObject::kInitiatorQueue: return here.initiator_core->cqn() ^ number.value;
    case VectorObject::kReceiveQueue: return here.receive_core->cqn() ^ number.value;
    case VectorObject::kSharedQueue:
      return static_cast<nd2::SharedReceiveQueue&>(*here.srq).core()->srqn() ^ number.value;
    case VectorObject::kProtectionDomain: return domain_of(step, number.name) ^ number.value;
    case VectorObject::kMemory: return device_address(step, number.name) ^ number.value;
    default: return region(number.name).local_token ^ number.value;
  }
}

std::uint32_t VectorSession::domain_of(const VectorStep& step, const std::string& name) {
  const auto state =
      side(step).endpoint->kernel().admin().execute(hw::AdminOpcode::kQueryMr, region(name).local_token, {});
  if (!state) throw VectorFailure(fmt::format("{}: region \"{}\" is not there", step.text, name));
  return hw::AdminMrState::decode(*state).pd;
}

/// Through a mapping of its own, beside that of a registration, from its first use to the end of the vector.
std::uint64_t VectorSession::device_address(const VectorStep& step, const std::string& name) {
  auto& of = region(name);
  if (of.host != step.host || of.memory == nullptr)
    throw VectorFailure(fmt::format("{}: host {} has no memory of region \"{}\"", step.text, "AB"[step.host], name));
  if (!of.device_address)
    of.device_address = world_.host(of.host).iommu().map_range(of.memory, of.size, model::Iommu::Rights::kReadWrite);
  return *of.device_address;
}

/// The fields of a right command, those of the step put over them.
void VectorSession::admin(const VectorStep& step) {
  const auto& command = step.command;
  const auto& layout = hw::kAdminBodies[command.body];
  const auto number = static_cast<std::uint32_t>(number_of(step, command.number));
  auto& here = side(step);
  const std::map<std::string_view, std::uint64_t> right = {
      {"base", kPage},
      {"log_depth", 4},
      {"log_stride", 6},
      {"uar", here.process->uar()},
      {"pd", 1},
      {"va", kPage},
      {"length", kPage},
      {"page_list", kPage},
      {"log_page", 12},
      {"window_type", static_cast<std::uint64_t>(hw::MptType::kWindow1)},
      {"max_pages", 16},
      {"sq_base", kPage},
      {"rq_base", kPage},
      {"retired_address", kPage},
      {"send_cqn", here.initiator_core->cqn()},
      {"receive_cqn", here.receive_core->cqn()},
      {"sq_log_depth", 4},
      {"sq_log_stride", 7},
      {"rq_log_depth", 4},
      {"rq_log_stride", 6},
      {"mgid", 0x02ff},
  };
  kmd::AdminQueue::Body body{};
  for (const auto& field : layout.fields) {
    const auto given = command.fields.find(std::string(field.name));
    const auto usual = right.find(field.name);
    const std::uint64_t value = given != command.fields.end() ? number_of(step, given->second)
                                : usual != right.end()        ? usual->second
                                                              : 0;
    put_bits(body, field.bit, field.width, value);
  }
  const auto answer =
      here.endpoint->kernel().admin().execute(static_cast<hw::AdminOpcode>(layout.opcode), number, body);
  const auto expected = kmd::AdminQueue::map_status(command.status);
  const bool success = command.status == hw::AdminStatus::kSuccess;
  if (answer.ok() && success) {
    if (std::equal(command.result.begin(), command.result.end(), answer->begin(), fits)) return;
    throw VectorFailure(fmt::format("{}: the result of {} is {:02x}", step.text, layout.name, fmt::join(*answer, "")));
  }
  if (!answer.ok() && !success && answer.error() == expected) return;
  throw VectorFailure(fmt::format("{}: {} is answered with {}, expected {}", step.text, layout.name,
                                  answer.ok() ? "success" : describe(answer.error()),
                                  hw::kAdminStatusNames.at(static_cast<std::size_t>(command.status))));
}

/// The slot of the newest that was posted; one that was deferred the NIC has not seen.
std::span<std::uint8_t> VectorSession::newest_wqe(const VectorStep& step) {
  auto& qp = pair(step).core();
  const auto stride = std::size_t{1} << umd::SendQueue::log_stride_for(qp.granted().send_segments,
                                                                       qp.granted().inline_bytes, qp.type());
  const std::span<std::uint8_t> ring(qp.kernel_qp().send_ring(), qp.kernel_qp().send_ring_bytes());
  std::optional<std::size_t> newest;
  std::uint16_t newest_index = 0;
  for (std::size_t at = 0; at + stride <= ring.size(); at += stride) {
    const auto control = hw::WqeControl::decode(ring.subspan(at).first<hw::WqeControl::kBytes>());
    if (control.qpn != qp.qpn()) continue;
    if (newest && static_cast<std::int16_t>(control.wqe_index - newest_index) < 0) continue;
    newest = at;
    newest_index = control.wqe_index;
  }
  if (!newest) throw VectorFailure(fmt::format("{}: nothing has been posted", step.text));
  return ring.subspan(*newest, stride);
}

/// That of its receive queue, or of the shared one.
std::span<std::uint8_t> VectorSession::newest_receive(const VectorStep& step) {
  const bool shared = step.queue == VectorQueue::kShared;
  // A slot that has not been written looks like the first one without segments.
  if (!(shared ? side(step).srq_has_receive : pair(step).has_receive))
    throw VectorFailure(fmt::format("{}: no Receive has been posted", step.text));
  std::size_t stride = 0;
  std::span<std::uint8_t> ring;
  if (shared) {
    const auto& srq = static_cast<nd2::SharedReceiveQueue&>(*side(step).srq).core()->kernel_srq();
    stride = std::size_t{1} << srq.log_stride();
    ring = {srq.ring(), stride << srq.log_depth()};
  } else {
    auto& qp = pair(step).core();
    stride = std::size_t{1} << umd::ReceiveQueue::log_stride_for(qp.granted().receive_segments);
    ring = {qp.kernel_qp().receive_ring(), qp.kernel_qp().receive_ring_bytes()};
  }
  std::size_t newest = 0;
  std::uint16_t newest_index = 0;
  for (std::size_t at = 0; at + stride <= ring.size(); at += stride) {
    const auto head = hw::WqeReceive::decode(ring.subspan(at).first<hw::WqeReceive::kBytes>());
    // A slot that has not been written is not that of its index, but for the first.
    if (head.wqe_index % (ring.size() / stride) != at / stride) continue;
    if (static_cast<std::int16_t>(head.wqe_index - newest_index) < 0) continue;
    newest = at;
    newest_index = head.wqe_index;
  }
  return ring.subspan(newest, stride);
}

void VectorSession::spoil_wqe(const VectorStep& step) {
  const auto wqe = step.queue == VectorQueue::kInitiator ? newest_wqe(step) : newest_receive(step);
  for (const auto& [byte, value] : step.spoil) {
    if (byte >= wqe.size())
      throw VectorFailure(fmt::format("{}: the WQE has a slot of {} bytes", step.text, wqe.size()));
    wqe[byte] = value;
  }
}

/// Offset of the page in BAR0.
std::uint64_t VectorSession::uar_page(const VectorStep& step) {
  const std::uint64_t own = side(step).process->uar();
  switch (step.uar_write.page) {
    case VectorUarWrite::Page::kOwn: return own * hw::kUarPageBytes;
    case VectorUarWrite::Page::kKernel: return std::uint64_t{hw::kKernelUar} * hw::kUarPageBytes;
    default: return (own + 1) * hw::kUarPageBytes;  // the last that was given away
  }
}

void VectorSession::doorbell(const VectorStep& step) {
  const auto& write = step.uar_write;
  const auto& layout = hw::kDoorbellWords[write.word];
  std::array<std::uint8_t, 64> line{};
  const auto word = std::span(line).subspan(layout.offset);
  for (const auto& field : layout.fields) {
    const auto given = write.fields.find(std::string(field.name));
    if (given != write.fields.end()) put_bits(word, field.bit, field.width, number_of(step, given->second));
  }
  auto& device = side(step).endpoint->device();
  const auto page = uar_page(step);
  write.line ? device.write_burst64(page, line) : device.write64(page + layout.offset, word_of(word));
}

void VectorSession::push_wqe(const VectorStep& step) {
  const auto wqe = newest_wqe(step);
  std::array<std::uint8_t, hw::kUarWqeWindowBytes> image{};
  std::copy_n(wqe.begin(), std::min(wqe.size(), image.size()), image.begin());
  auto& device = side(step).endpoint->device();
  window_write_barrier();
  for (const auto& piece : step.uar_write.pieces) {
    const auto at = uar_page(step) + hw::uar::kWqeWindow + piece.at;
    const auto bytes = std::span(image).subspan(piece.at);
    if (piece.bytes == 64) {
      device.write_burst64(at, bytes.first<64>());
    } else if (piece.bytes == 8) {
      device.write64(at, word_of(bytes));
    } else {
      world_.host(step.host).root_complex().post({.kind = model::TlpKind::kMemoryWrite,
                                                  .address = at,
                                                  .length_dw = static_cast<std::uint16_t>(piece.bytes / 4),
                                                  .first_be = 0xf,
                                                  .last_be = 0xf,
                                                  .data = {bytes.begin(), bytes.begin() + piece.bytes}});
    }
    window_flush_barrier();
  }
}

/// Reads it back, so that it holds when the step is over (host interface, Quiescing).
void VectorSession::enable(const VectorStep& step) {
  auto& device = side(step).endpoint->device();
  device.write64(hw::reg::kDeviceControl, step.enable ? 1 : 0);
  (void)device.read64(hw::reg::kDeviceControl);
  side(step).disabled = !step.enable;
}

void VectorSession::configure(const VectorStep& step) {
  auto& root_complex = world_.host(step.host).root_complex();
  auto config = root_complex.config();
  auto& first_config = side(step).first_config;
  if (!first_config) first_config = config;
  const auto set = [&](const char* name, bool& field) {
    if (const auto it = step.settings.find(name); it != step.settings.end()) field = it->second;
  };
  set("bus_master", config.bus_master);
  set("completion_timeout_disable", config.completion_timeout_disable);
  set("extended_tags", config.extended_tags);
  set("msix_enable", config.msix_enable);
  set("msix_mask", config.msix_mask);
  root_complex.set_config(config);
}

void VectorSession::credits(const VectorStep& step) {
  model::CreditKinds withheld;
  for (const std::uint8_t kind : step.withheld) withheld.set(static_cast<model::CreditKind>(kind), true);
  std::optional<model::Picoseconds> duration;
  if (step.within_ns != 0) duration = model::from_ns(static_cast<double>(step.within_ns));
  world_.host(step.host).root_complex().hold(step.to_nic ? model::PcieWay::kToNic : model::PcieWay::kToHost, withheld,
                                             duration);
}

void VectorSession::restore_function(std::size_t host) {
  auto& root_complex = world_.host(host).root_complex();
  for (const auto way : {model::PcieWay::kToHost, model::PcieWay::kToNic}) root_complex.hold(way, {});
  auto& side = sides_.at(host);
  if (side.first_config) root_complex.set_config(*side.first_config);
  if (side.disabled) side.endpoint->device().write64(hw::reg::kDeviceControl, 1);
}

void VectorSession::tlp(const VectorStep& step) {
  using Kind = VectorTlp::Kind;
  const auto& tlp = step.tlp;
  auto& root_complex = world_.host(step.host).root_complex();
  model::HostRequest request{.kind = model::TlpKind::kMemoryWrite,
                             .poisoned = tlp.poisoned,
                             .address = (tlp.registers ? 0 : uar_page(step)) + tlp.at,
                             .length_dw = tlp.dwords,
                             .first_be = tlp.first_be,
                             .last_be = tlp.last_be,
                             .data = tlp.write};
  if (tlp.kind == Kind::kWrite) return root_complex.post(std::move(request));
  request.kind = tlp.kind == Kind::kRead ? model::TlpKind::kMemoryRead : model::TlpKind::kOther;
  const auto completion = root_complex.request(std::move(request));
  if (!completion) throw VectorFailure(fmt::format("{}: no completion came", step.text));
  const auto status_name = [](model::CompletionStatus status) {
    switch (status) {
      case model::CompletionStatus::kSuccess: return "Success";
      case model::CompletionStatus::kUnsupportedRequest: return "UnsupportedRequest";
      default: return "CompleterAbort";
    }
  };
  const auto expected = tlp.refused ? model::CompletionStatus::kUnsupportedRequest : model::CompletionStatus::kSuccess;
  if (completion->status != expected)
    throw VectorFailure(fmt::format("{}: completed with {}, expected {}", step.text, status_name(completion->status),
                                    status_name(expected)));
  if (tlp.refused) return;
  const bool same =
      std::equal(tlp.answer.begin(), tlp.answer.end(), completion->data.begin(), completion->data.end(), fits);
  if (!same) throw VectorFailure(fmt::format("{}: answered with {:02x}", step.text, fmt::join(completion->data, "")));
}

}  // namespace rnic::testbench
