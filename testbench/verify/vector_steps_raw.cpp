// Steps that go past the driver: commands of the admin queue, and bytes of WQEs.
#include <fmt/format.h>

#include <algorithm>

#include "testbench/generated/admin_bodies.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using Names = VectorReader::Names;
using Of = VectorNumber::Of;
using Free = VectorNumber::Free;

const Names kOf = {{"queue_pair", number_of(Of::kQueuePair)},
                   {"initiator_queue", number_of(Of::kInitiatorQueue)},
                   {"receive_queue", number_of(Of::kReceiveQueue)},
                   {"shared_queue", number_of(Of::kSharedQueue)},
                   {"region", number_of(Of::kRegion)}};
const Names kFree = {{"queue_pair", number_of(Free::kQueuePair)},
                     {"queue", number_of(Free::kQueue)},
                     {"shared_queue", number_of(Free::kSharedQueue)},
                     {"event_queue", number_of(Free::kEventQueue)},
                     {"key", number_of(Free::kKey)}};
const Names kAdminStatuses = {{"Success", number_of(hw::AdminStatus::kSuccess)},
                              {"BadOpcode", number_of(hw::AdminStatus::kBadOpcode)},
                              {"BadParameter", number_of(hw::AdminStatus::kBadParameter)},
                              {"BadNumber", number_of(hw::AdminStatus::kBadNumber)},
                              {"Exists", number_of(hw::AdminStatus::kExists)},
                              {"BadState", number_of(hw::AdminStatus::kBadState)},
                              {"InUse", number_of(hw::AdminStatus::kInUse)},
                              {"TooSmall", number_of(hw::AdminStatus::kTooSmall)},
                              {"NoGroup", number_of(hw::AdminStatus::kNoGroup)},
                              {"NotAttached", number_of(hw::AdminStatus::kNotAttached)}};

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
    number.of = static_cast<Of>(from.name("of", kOf));
    if (number.of == Of::kQueuePair) number.qp = read_qp(from, setup, "qp");
    if (number.of == Of::kRegion) number.name = from.text("name");
    if (number.of == Of::kSharedQueue && !setup.srq) from.fail("the setup has no \"srq\"");
    number.value = from.number<std::uint32_t>("xor", 0);
  }
  from.finish();
  return number;
}

}  // namespace

void read_admin_step(VectorReader& from, const VectorSetup& setup, VectorStep& to) {
  static const Names kOpcodes = [] {
    Names names;
    for (std::size_t i = 0; i < hw::kAdminBodies.size(); ++i)
      names[hw::kAdminBodies[i].name] = static_cast<std::int64_t>(i);
    return names;
  }();
  auto& command = to.command;
  command.body = static_cast<std::size_t>(from.name("opcode", kOpcodes));
  command.number = read_number(from, setup, "number", 32);
  command.status = static_cast<hw::AdminStatus>(from.name("status", kAdminStatuses));
  if (!from.find("fields")) return;
  VectorReader fields = from.object("fields");
  for (const auto& field : hw::kAdminBodies[command.body].fields) {
    const std::string key(field.name);
    // The addresses have more bits than a number: their lower half is what it says, and the upper half is nothing.
    if (fields.find(key.c_str()))
      command.fields[key] = read_number(fields, setup, key.c_str(), std::min<unsigned>(field.width, 64));
  }
  fields.finish();
}

void read_spoil_step(VectorReader& from, const VectorSetup& setup, VectorStep& to) {
  to.qp = read_qp(from, setup, "qp");
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

}  // namespace rnic::testbench
