// Steps that go past the driver: commands of the admin queue, bytes of WQEs, writes to UAR pages, TLPs, and settings
// of the function.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "driver/kmd/admin_queue.hpp"
#include "testbench/generated/raw_commands.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using Names = VectorReader::Names;
using Free = VectorNumber::Free;

const Names kOf = {{"queue_pair", number_of(VectorObject::kQueuePair)},
                   {"initiator_queue", number_of(VectorObject::kInitiatorQueue)},
                   {"receive_queue", number_of(VectorObject::kReceiveQueue)},
                   {"shared_queue", number_of(VectorObject::kSharedQueue)},
                   {"region", number_of(VectorObject::kRegion)},
                   {"protection_domain", number_of(VectorObject::kProtectionDomain)},
                   {"memory", number_of(VectorObject::kMemory)}};
/// Those that a region has, which is named.
constexpr std::array kOfRegions = {VectorObject::kRegion, VectorObject::kProtectionDomain, VectorObject::kMemory};
const Names kFree = {{"queue_pair", number_of(Free::kQueuePair)},
                     {"queue", number_of(Free::kQueue)},
                     {"shared_queue", number_of(Free::kSharedQueue)},
                     {"event_queue", number_of(Free::kEventQueue)},
                     {"key", number_of(Free::kKey)}};

/// The longest slot of a ring (limits of the host interface).
constexpr std::uint32_t kMaxWqeBytes = 512;

/// A number, or {"of": OBJECT, "xor"} or {"free": KIND}; of `bits` bits.
VectorNumber read_number(VectorReader& holder, const VectorSetup& setup, const char* key, unsigned bits) {
  VectorNumber number;
  if (!holder.need(key).is_object()) {
    number.value = holder.number<std::uint64_t>(key);
    if (bits < 64 && number.value >> bits != 0) holder.fail(fmt::format("\"{}\" has {} bits", key, bits));
    return number;
  }
  VectorReader from = holder.object(key);
  if (from.find("free")) {
    number.free = static_cast<Free>(from.name("free", kFree));
  } else {
    number.of = static_cast<VectorObject>(from.name("of", kOf));
    if (number.of == VectorObject::kQueuePair) number.qp = read_qp(from, setup, "qp");
    if (std::find(kOfRegions.begin(), kOfRegions.end(), *number.of) != kOfRegions.end())
      number.name = from.text("name");
    if (number.of == VectorObject::kSharedQueue && !setup.srq) from.fail("the setup has no \"srq\"");
    number.value = from.number<std::uint32_t>("xor", 0);
  }
  from.finish();
  return number;
}

/// "fields": those of a layout by their names. The addresses have more bits than a number: their lower half is what it
/// says, and the upper half is nothing.
void read_fields(VectorReader& from, const VectorSetup& setup, std::span<const hw::CommandField> layout,
                 std::map<std::string, VectorNumber>& to) {
  if (!from.find("fields")) return;
  VectorReader fields = from.object("fields");
  for (const auto& field : layout) {
    const std::string key(field.name);
    if (fields.find(key.c_str()))
      to[key] = read_number(fields, setup, key.c_str(), std::min<unsigned>(field.width, 64));
  }
  fields.finish();
}

using Page = VectorUarWrite::Page;
const Names kPages = {
    {"own", number_of(Page::kOwn)}, {"kernel", number_of(Page::kKernel)}, {"other", number_of(Page::kOther)}};

void read_page(VectorReader& from, VectorUarWrite& to) {
  to.page = static_cast<Page>(from.name("page", kPages, number_of(Page::kOwn)));
}

}  // namespace

void read_admin_step(VectorReader& from, const VectorSetup& setup, VectorStep& to) {
  static const Names kOpcodes = numbered(hw::kAdminBodies, [](const hw::AdminBody& body) { return body.name; });
  static const Names kAdminStatuses = numbered(hw::kAdminStatusNames);
  auto& command = to.command;
  command.body = static_cast<std::size_t>(from.name("opcode", kOpcodes));
  command.number = read_number(from, setup, "number", 32);
  command.status = static_cast<hw::AdminStatus>(from.name("status", kAdminStatuses));
  read_fields(from, setup, hw::kAdminBodies[command.body].fields, command.fields);
  if (!from.find("result")) return;
  if (command.status != hw::AdminStatus::kSuccess) from.fail("\"result\" is of a command that succeeds");
  command.result = read_pattern_bytes(from, from.text("result"));
  if (command.result.size() > std::tuple_size_v<kmd::AdminQueue::Reply>)
    from.fail(fmt::format("a result has {} bytes", std::tuple_size_v<kmd::AdminQueue::Reply>));
}

void read_spoil_step(VectorReader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
  to.queue = static_cast<VectorQueue>(from.name("queue", kAllQueues, 0));
  if (to.queue == VectorQueue::kReceive && setup.srq) from.fail("the queue pairs have no receive queue of their own");
  if (to.queue == VectorQueue::kShared && !setup.srq) from.fail("the setup has no \"srq\"");
  const auto& list = from.list(from.need("set"), "set");
  if (list.empty()) from.fail("\"set\" names no byte");
  for (std::size_t i = 0; i < list.size(); ++i) {
    VectorReader one = from.element(list[i], "set", i);
    const auto byte = one.number<std::uint32_t>("byte");
    if (byte >= kMaxWqeBytes) one.fail(fmt::format("a WQE has at most {} bytes", kMaxWqeBytes));
    to.spoil.emplace_back(byte, one.number<std::uint8_t>("value"));
    one.finish();
  }
}

void read_doorbell_step(VectorReader& from, const VectorSetup& setup, VectorStep& to) {
  static const Names kRegisters = numbered(hw::kDoorbellWords, [](const hw::DoorbellWord& word) { return word.name; });
  auto& write = to.uar_write;
  write.word = static_cast<std::size_t>(from.name("register", kRegisters));
  read_fields(from, setup, hw::kDoorbellWords[write.word].fields, write.fields);
  read_page(from, write);
  // A store of a processor: one word, or a line that has been combined.
  const auto bytes = from.number<std::uint32_t>("bytes", 8);
  if (bytes != 8 && bytes != 64) from.fail("\"bytes\" is 8 or 64");
  write.line = bytes != 8;
}

void read_push_step(VectorReader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
  read_page(from, to.uar_write);
  const auto& list = from.list(from.need("pieces"), "pieces");
  if (list.empty()) from.fail("\"pieces\" names none");
  for (std::size_t i = 0; i < list.size(); ++i) {
    VectorReader one = from.element(list[i], "pieces", i);
    VectorUarWrite::Piece piece{.at = one.number<std::uint32_t>("at"), .bytes = one.number<std::uint32_t>("bytes", 8)};
    if (!std::has_single_bit(piece.bytes) || piece.bytes < 8 || piece.bytes > 64)
      one.fail("\"bytes\" is 8, 16, 32 or 64");
    if (piece.at % piece.bytes != 0 || piece.at >= hw::kUarWqeWindowBytes)
      one.fail(fmt::format("\"at\" is a multiple of \"bytes\", below {}", hw::kUarWqeWindowBytes));
    to.uar_write.pieces.push_back(piece);
    one.finish();
  }
}

void read_configure_step(VectorReader& from, VectorStep& to) {
  for (const char* const key :
       {"bus_master", "completion_timeout_disable", "extended_tags", "msix_enable", "msix_mask"})
    if (from.find(key)) to.settings[key] = from.boolean(key, false);
  if (to.settings.empty()) from.fail("it sets nothing");
}

void read_credits_step(VectorReader& from, VectorStep& to) {
  static const Names kKinds = {{"posted", 0}, {"non_posted", 1}, {"completions", 2}};  // of model::CreditKind
  to.to_nic = from.name("to", {{"host", 0}, {"nic", 1}}, 0) == 1;
  for (const auto& kind : from.list(from.need("withheld"), "withheld"))
    to.withheld.push_back(static_cast<std::uint8_t>(from.to_name(kind, "withheld", kKinds)));
  if (!from.find("for_us")) return;
  to.within_ns = from.microseconds("for_us");
  if (to.within_ns == 0) from.fail("\"for_us\" is at least 1");
}

void read_tlp_step(VectorReader& from, VectorStep& to) {
  using Kind = VectorTlp::Kind;
  constexpr std::uint16_t kMostDwords = 64;  // of the smallest maximum payload that the hosts have
  auto& tlp = to.tlp;
  if (from.find("page")) {
    Names pages = kPages;
    constexpr std::int64_t kRegisters = -1;
    pages["registers"] = kRegisters;
    const auto page = from.name("page", pages);
    tlp.registers = page == kRegisters;
    if (!tlp.registers) to.uar_write.page = static_cast<Page>(page);
  }
  tlp.at = from.number<std::uint32_t>("at");
  if (tlp.at % 4 != 0) from.fail("\"at\" is a multiple of 4");
  if (from.find("write")) {
    tlp.write = read_known_bytes(from, "write");
    if (tlp.write.size() % 4 != 0 || tlp.write.size() > 4u * kMostDwords)
      from.fail(fmt::format("\"write\" has whole dwords, at most {}", kMostDwords));
    tlp.dwords = static_cast<std::uint16_t>(tlp.write.size() / 4);
    tlp.poisoned = from.boolean("poisoned", false);
  } else {
    tlp.kind = from.find("dwords") ? Kind::kRead : Kind::kOther;
    if (tlp.kind == Kind::kRead) tlp.dwords = from.number<std::uint16_t>("dwords");
    if (tlp.dwords == 0 || tlp.dwords > kMostDwords) from.fail(fmt::format("\"dwords\" is 1 to {}", kMostDwords));
    const auto answer = from.text("answer");
    tlp.refused = answer == "UnsupportedRequest";
    if (tlp.kind == Kind::kOther && !tlp.refused)
      from.fail("such a request has no other answer than UnsupportedRequest");
    if (!tlp.refused) tlp.answer = read_pattern_bytes(from, answer);
    if (!tlp.refused && tlp.answer.size() != 4u * tlp.dwords) from.fail("\"answer\" has as many bytes as the dwords");
  }
  const bool one = tlp.dwords == 1;
  tlp.first_be = from.number_up_to<std::uint8_t>("first_be", 0xf, 0xf);
  tlp.last_be = one ? 0 : from.number_up_to<std::uint8_t>("last_be", 0xf, 0xf);
  if (one && from.find("last_be")) from.fail("a request of one dword has no \"last_be\" (PCI Express 2.2.5)");
  if (!one && (tlp.first_be == 0 || tlp.last_be == 0))
    from.fail("first and last of several dwords have a byte enabled (PCI Express 2.2.5)");
}

}  // namespace rnic::testbench
