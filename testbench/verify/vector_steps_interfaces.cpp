// The steps of a vector about the interfaces of NetworkDirect: what their queries give, references, arguments.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "testbench/verify/vector_names.hpp"
#include "testbench/verify/vector_step_parts.hpp"

namespace rnic::testbench {
namespace {

using Names = VectorReader::Names;
using Reader = VectorReader;

const Names kObjects = {
    {"adapter", number_of(VectorObject::kAdapter)},
    {"queue_pair", number_of(VectorObject::kQueuePair)},
    {"initiator_queue", number_of(VectorObject::kInitiatorQueue)},
    {"receive_queue", number_of(VectorObject::kReceiveQueue)},
    {"shared_queue", number_of(VectorObject::kSharedQueue)},
    {"region", number_of(VectorObject::kRegion)},
    {"window", number_of(VectorObject::kWindow)},
};

const std::map<std::string, IID>& interfaces() {
  static const std::map<std::string, IID> kInterfaces = {
      {"IUnknown", IID_IUnknown},
      {"IND2Overlapped", IID_IND2Overlapped},
      {"IND2Adapter", IID_IND2Adapter},
      {"IND2CompletionQueue", IID_IND2CompletionQueue},
      {"IND2SharedReceiveQueue", IID_IND2SharedReceiveQueue},
      {"IND2MemoryRegion", IID_IND2MemoryRegion},
      {"IND2MemoryWindow", IID_IND2MemoryWindow},
      {"IND2QueuePair", IID_IND2QueuePair},
  };
  return kInterfaces;
}

/// An object by its name ("region", "window"), its number ("queue_pair"), or alone.
void read_object(Reader& from, const VectorSetup& setup, VectorStep& to, std::initializer_list<VectorObject> known) {
  to.object = static_cast<VectorObject>(from.name("object", kObjects));
  if (std::find(known.begin(), known.end(), to.object) == known.end())
    from.fail("\"object\" is none that this step is about");
  if (to.object == VectorObject::kQueuePair) to.qp = read_qp(from, setup, "qp");
  if (to.object == VectorObject::kRegion) to.name = from.text("name");
  if (to.object == VectorObject::kWindow) to.window = from.text("name");
  if (to.object == VectorObject::kSharedQueue && !setup.srq) from.fail("the setup has no \"srq\"");
}

/// Names of ND2_ADAPTER_INFO, and of bits of its AdapterFlags.
const std::set<std::string, std::less<>> kFields = {"VendorId",
                                                    "DeviceId",
                                                    "AdapterId",
                                                    "MaxRegistrationSize",
                                                    "MaxWindowSize",
                                                    "MaxInitiatorSge",
                                                    "MaxReceiveSge",
                                                    "MaxReadSge",
                                                    "MaxTransferLength",
                                                    "MaxInlineDataSize",
                                                    "MaxInboundReadLimit",
                                                    "MaxOutboundReadLimit",
                                                    "MaxReceiveQueueDepth",
                                                    "MaxInitiatorQueueDepth",
                                                    "MaxSharedReceiveQueueDepth",
                                                    "MaxCompletionQueueDepth",
                                                    "InlineRequestThreshold",
                                                    "LargeRequestThreshold",
                                                    "MaxCallerData",
                                                    "MaxCalleeData",
                                                    "InOrderDma",
                                                    "CqResize"};

/// What fields must be: a number, or a range.
void read_fields(Reader& from, VectorStep& to) {
  if (!from.find("fields")) return;
  Reader fields = from.object("fields");
  for (const auto& [name, value] : from.need("fields").items()) {
    if (!kFields.contains(name)) fields.fail(fmt::format("no field \"{}\"", name));
    if (value.is_number()) {
      const auto exact = fields.number<std::uint64_t>(name.c_str());
      to.fields[name] = {exact, exact};
      continue;
    }
    Reader range = fields.object(name.c_str());
    auto& bounds = to.fields[name];
    bounds.least = range.number<std::uint64_t>("at_least", bounds.least);
    bounds.most = range.number<std::uint64_t>("at_most", bounds.most);
    range.finish();
  }
}

void read_query_adapter(Reader& from, VectorStep& to) {
  to.value = from.number<std::uint32_t>("version");
  to.size = from.number<std::uint32_t>("size", sizeof(ND2_ADAPTER_INFO));
  if (const auto* needs = from.find("needs")) to.needs = from.to_number<std::uint32_t>(*needs, "needs");
  read_null(from, to, {{"info", 0}, {"size", 0}});
  read_fields(from, to);
  to.status = read_status(from);
}

}  // namespace

void read_null(Reader& from, VectorStep& to, const Names& arguments) {
  if (!from.find("null")) return;
  static_cast<void>(from.name("null", arguments));
  to.null = from.text("null");
}

void read_interface_step(Reader& from, const VectorSetup& setup, VectorStep& to) {
  using Object = VectorObject;
  switch (to.kind) {
    case StepKind::kQueryAdapter: return read_query_adapter(from, to);
    case StepKind::kGetResults:
      to.queue = static_cast<VectorQueue>(from.name("queue", kQueues, 0));
      to.size = from.number<std::uint32_t>("ask");
      read_results(from, setup, to);
      if (to.results.size() > to.size) from.fail("\"results\" are more than \"ask\"");
      for (const auto& result : to.results)
        if (!result.cqe_statuses.empty()) from.fail("GetResults gives statuses of NetworkDirect");
      return;
    case StepKind::kQueryAffinity:
      to.queue = static_cast<VectorQueue>(from.name("queue", kAllQueues, 0));
      if (to.queue == VectorQueue::kShared && !setup.srq) from.fail("the setup has no \"srq\"");
      read_null(from, to, {{"group", 0}, {"affinity", 0}});
      if (const auto* group = from.find("group")) to.value = from.to_number<std::uint16_t>(*group, "group");
      to.status = read_status(from);
      return;
    case StepKind::kQueryInterface: {
      read_object(from, setup, to,
                  {Object::kAdapter, Object::kQueuePair, Object::kInitiatorQueue, Object::kReceiveQueue,
                   Object::kSharedQueue, Object::kRegion, Object::kWindow});
      const auto it = interfaces().find(from.text("interface"));
      if (it == interfaces().end()) from.fail(fmt::format("no interface \"{}\"", from.text("interface")));
      to.interface = it->second;
      read_null(from, to, {{"object", 0}});
      to.status = read_status(from);
      return;
    }
    case StepKind::kRelease:
      return read_object(from, setup, to,
                         {Object::kQueuePair, Object::kInitiatorQueue, Object::kReceiveQueue, Object::kRegion});
    default:
      return read_object(from, setup, to,
                         {Object::kInitiatorQueue, Object::kReceiveQueue, Object::kSharedQueue, Object::kRegion});
  }
}

}  // namespace rnic::testbench
