#include "testbench/server/process_book.hpp"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <sstream>

#include "model/time.hpp"

namespace rnic::testbench {
namespace {

using calls::Call;
using calls::ObjectKind;

std::int32_t parent_of(std::int32_t process) {
  // "PID (NAME) STATE PPID ...", and the name may have anything in it.
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string line;
  std::getline(file, line);
  const std::size_t name_end = line.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream rest(line.substr(name_end + 1));
  char state{};
  std::int32_t parent = 0;
  rest >> state >> parent;
  return parent;
}

std::vector<std::int32_t> ancestors_of(std::int32_t process) {
  constexpr std::size_t kMostGenerations = 64;
  std::vector<std::int32_t> all;
  for (std::int32_t one = parent_of(process); one > 1 && all.size() < kMostGenerations; one = parent_of(one))
    all.push_back(one);
  return all;
}

std::string comm_of(std::int32_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

template <typename Structure>
std::optional<Structure> read_as(std::span<const std::byte> bytes) {
  Structure structure;
  if (bytes.size() < sizeof structure) return {};
  std::memcpy(&structure, bytes.data(), sizeof structure);
  return structure;
}

struct Created {
  Call call;
  ObjectKind kind;
};
constexpr std::array kCreating{Created{Call::kCreateQp, ObjectKind::kQp},
                               Created{Call::kCreateCq, ObjectKind::kCq},
                               Created{Call::kCreateSrq, ObjectKind::kSrq},
                               Created{Call::kAllocPd, ObjectKind::kPd},
                               Created{Call::kRegisterMr, ObjectKind::kMr},
                               Created{Call::kBeginRegisterMr, ObjectKind::kMr},
                               Created{Call::kCreateMw, ObjectKind::kMw},
                               Created{Call::kCreateFastMr, ObjectKind::kFastMr},
                               Created{Call::kCreateEndpoint, ObjectKind::kEndpoint},
                               Created{Call::kCreateChannel, ObjectKind::kChannel}};

template <typename Request>
RegionRecord region_of(const Request& request, const typename Request::Answer& answer, std::uint32_t client) {
  return {.handle = answer.mr,
          .client = client,
          .key = answer.key,
          .iova = request.iova,
          .length = request.length,
          .pd = request.pd,
          .remote_read = request.remote_read != 0,
          .remote_write = request.remote_write != 0,
          .remote_atomic = request.remote_atomic != 0,
          .gone_ps = {}};
}

template <typename Record>
void add(std::list<Record>& all, const Record& one) {
  all.push_back(one);
  if (all.size() > ProcessRecord::kMostObjects) all.pop_front();
}

template <typename Record>
Record* find_present(std::list<Record>& all, std::uint32_t client, calls::Handle handle) {
  const auto found = std::find_if(all.rbegin(), all.rend(), [&](const Record& one) {
    return one.client == client && one.handle == handle && !one.gone_ps;
  });
  return found == all.rend() ? nullptr : &*found;
}

template <typename Record>
void destroyed(std::list<Record>& all, std::uint32_t client, calls::Handle handle) {
  if (Record* const one = find_present(all, client, handle)) one->gone_ps = model::now_ps();
}

/// The same region under another key: the one before is gone.
void reregister(ProcessRecord& record, std::uint32_t client, const calls::ReregisterMr& request, std::uint32_t key) {
  RegionRecord* const before = find_present(record.regions, client, request.mr);
  if (before == nullptr) return;
  RegionRecord now = *before;
  before->gone_ps = model::now_ps();
  now.key = key;
  if (request.change_translation != 0) {
    now.iova = request.iova;
    now.length = request.length;
  }
  if (request.change_pd != 0) now.pd = request.pd;
  if (request.change_access != 0) {
    now.remote_read = request.remote_read != 0;
    now.remote_write = request.remote_write != 0;
    now.remote_atomic = request.remote_atomic != 0;
  }
  add(record.regions, now);
}

}  // namespace

std::string_view name_of(Call call) {
  switch (call) {
    case Call::kOpenContext: return "open_context";
    case Call::kAllocPd: return "alloc_pd";
    case Call::kCreateCq: return "create_cq";
    case Call::kResizeCq: return "resize_cq";
    case Call::kCreateSrq: return "create_srq";
    case Call::kCreateQp: return "create_qp";
    case Call::kModifyQp: return "modify_qp";
    case Call::kAttachMulticast: return "attach_multicast";
    case Call::kDetachMulticast: return "detach_multicast";
    case Call::kRegisterMr: return "register_mr";
    case Call::kBeginRegisterMr: return "begin_register_mr";
    case Call::kReregisterMr: return "reregister_mr";
    case Call::kCreateMw: return "create_mw";
    case Call::kCreateFastMr: return "create_fast_mr";
    case Call::kCreateChannel: return "create_channel";
    case Call::kDestroy: return "destroy";
    case Call::kResolveGid: return "resolve_gid";
    case Call::kCreateEndpoint: return "create_endpoint";
    case Call::kBindEndpoint: return "bind_endpoint";
    case Call::kListen: return "listen";
    case Call::kResolveAddress: return "resolve_address";
    case Call::kResolveRoute: return "resolve_route";
    case Call::kConnect: return "connect";
    case Call::kAccept: return "accept";
    case Call::kJoinGroup: return "join_group";
    default: return {};
  }
}

std::shared_ptr<ProcessRecord> ProcessBook::begin(std::int32_t process) {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& one) { return one->process == process; });
  auto record = found != all_.end() ? *found : std::make_shared<ProcessRecord>();
  if (found == all_.end()) {
    record->process = process;
    record->ancestors = ancestors_of(process);
    if (all_.size() >= kMost) all_.pop_front();
    all_.push_back(record);
  }
  // It may have become another program since.
  record->name = comm_of(process);
  return record;
}

void ProcessBook::called(ProcessRecord& record, std::uint32_t client, std::span<const std::byte> call,
                         std::span<const std::byte> answer) {
  const auto header = read_as<calls::RequestHeader>(call);
  const auto result = read_as<calls::AnswerHeader>(answer);
  if (!header || !result) return;
  ++record.calls;
  if (result->status != calls::Status::kSuccess) {
    if (!name_of(header->call).empty()) ++record.refused[{header->call, result->status}];
    return;
  }
  for (const auto& one : kCreating) {
    if (one.call == header->call) ++record.created[one.kind];
  }
  const auto with = [&]<typename Request>(auto&& use) {
    const auto request = read_as<Request>(call);
    const auto made = read_as<typename Request::Answer>(answer);
    if (request && made) use(*request, *made);
  };
  switch (header->call) {
    case Call::kCreateQp:
      with.template operator()<calls::CreateQp>([&](const auto& request, const auto& made) {
        indices_.set(made.qpn & 0xff);
        if (record.queue_pairs.size() < ProcessRecord::kMostObjects)
          record.queue_pairs.push_back({made.qpn, static_cast<hw::QpType>(request.type), client, request.pd});
      });
      break;
    case Call::kRegisterMr:
      with.template operator()<calls::RegisterMr>(
          [&](const auto& request, const auto& made) { add(record.regions, region_of(request, made, client)); });
      break;
    case Call::kBeginRegisterMr:
      with.template operator()<calls::BeginRegisterMr>(
          [&](const auto& request, const auto& made) { add(record.regions, region_of(request, made, client)); });
      break;
    case Call::kCreateMw:
      with.template operator()<calls::CreateMw>([&](const auto& request, const auto& made) {
        add(record.windows, {.handle = made.mw,
                             .client = client,
                             .key = made.key,
                             .pd = request.pd,
                             .type = static_cast<hw::MptType>(request.type),
                             .gone_ps = {}});
      });
      break;
    case Call::kReregisterMr:
      with.template operator()<calls::ReregisterMr>(
          [&](const auto& request, const auto& made) { reregister(record, client, request, made.key); });
      break;
    case Call::kDestroy:
      with.template operator()<calls::Destroy>([&](const auto& request, const auto&) {
        const auto kind = static_cast<ObjectKind>(request.kind);
        if (kind == ObjectKind::kMr) destroyed(record.regions, client, request.object);
        if (kind == ObjectKind::kMw) destroyed(record.windows, client, request.object);
      });
      break;
    default: break;
  }
}

}  // namespace rnic::testbench
