#include "session.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace examples {
namespace {

constexpr USHORT kPort = 54400;

const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }

template <typename Object>
void drop(Object*& object) {
  if (object != nullptr) object->Release();
  object = nullptr;
}

/// Its name; of a status without one the number.
std::string status_name(HRESULT status) {
  switch (status) {
    case ND_ACCESS_VIOLATION: return "ND_ACCESS_VIOLATION";
    case ND_BUFFER_OVERFLOW: return "ND_BUFFER_OVERFLOW";
    case ND_CANCELED: return "ND_CANCELED";
    case ND_CONNECTION_ABORTED: return "ND_CONNECTION_ABORTED";
    case ND_CONNECTION_ACTIVE: return "ND_CONNECTION_ACTIVE";
    case ND_CONNECTION_INVALID: return "ND_CONNECTION_INVALID";
    case ND_CONNECTION_REFUSED: return "ND_CONNECTION_REFUSED";
    case ND_DATA_OVERRUN: return "ND_DATA_OVERRUN";
    case ND_DEVICE_BUSY: return "ND_DEVICE_BUSY";
    case ND_DEVICE_NOT_READY: return "ND_DEVICE_NOT_READY";
    case ND_DEVICE_REMOVED: return "ND_DEVICE_REMOVED";
    case ND_HOST_UNREACHABLE: return "ND_HOST_UNREACHABLE";
    case ND_INSUFFICIENT_RESOURCES: return "ND_INSUFFICIENT_RESOURCES";
    case ND_INTERNAL_ERROR: return "ND_INTERNAL_ERROR";
    case ND_INVALID_ADDRESS: return "ND_INVALID_ADDRESS";
    case ND_INVALID_BUFFER_SIZE: return "ND_INVALID_BUFFER_SIZE";
    case ND_INVALID_DEVICE_REQUEST: return "ND_INVALID_DEVICE_REQUEST";
    case ND_INVALID_DEVICE_STATE: return "ND_INVALID_DEVICE_STATE";
    case ND_INVALID_HANDLE: return "ND_INVALID_HANDLE";
    case ND_INVALID_PARAMETER: return "ND_INVALID_PARAMETER";
    case ND_IO_TIMEOUT: return "ND_IO_TIMEOUT";
    case ND_NETWORK_UNREACHABLE: return "ND_NETWORK_UNREACHABLE";
    case ND_NOT_SUPPORTED: return "ND_NOT_SUPPORTED";
    case ND_NO_MEMORY: return "ND_NO_MEMORY";
    case ND_NO_MORE_ENTRIES: return "ND_NO_MORE_ENTRIES";
    case ND_REMOTE_ERROR: return "ND_REMOTE_ERROR";
    case ND_SHARING_VIOLATION: return "ND_SHARING_VIOLATION";
    case ND_TIMEOUT: return "ND_TIMEOUT";
    default: break;
  }
  char text[32];
  std::snprintf(text, sizeof text, "status %#010x", static_cast<unsigned>(status));
  return text;
}

}  // namespace

void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::fflush(stdout);
  std::_Exit(1);
}

void require(HRESULT status, const char* what) {
  if (status == ND_SUCCESS) return;
  fail(what + (": " + status_name(status)));
}

double now_us() {
  LARGE_INTEGER count{}, frequency{};
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&frequency);
  return static_cast<double>(count.QuadPart) * 1e6 / static_cast<double>(frequency.QuadPart);
}

sockaddr_in address_of(const std::string& text, USHORT port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  if (inet_pton(AF_INET, text.c_str(), &address.sin_addr) != 1) fail(text + " is no IPv4 address");
  return address;
}

Session::Session(const sockaddr_in& own, ULONG depth) : depth_(depth) {
  require(NdOpenAdapter(IID_IND2Adapter, generic(own), sizeof own, reinterpret_cast<void**>(&adapter_)),
          "NdOpenAdapter");
  limits_.InfoVersion = ND_VERSION_2;
  ULONG bytes = sizeof limits_;
  require(adapter_->Query(&limits_, &bytes), "IND2Adapter::Query");
  require(adapter_->CreateOverlappedFile(&file_), "CreateOverlappedFile");
  request_.hEvent = CreateEvent(nullptr, FALSE, FALSE, nullptr);
  require(
      adapter_->CreateCompletionQueue(IID_IND2CompletionQueue, file_, 2 * depth, 0, 0, reinterpret_cast<void**>(&cq_)),
      "CreateCompletionQueue");
}

Session::~Session() {
  drop(listener_);
  drop(connector_);
  drop(pair_);
  drop(cq_);
  drop(adapter_);
  CloseHandle(file_);
  CloseHandle(request_.hEvent);
}

void Session::finish(IND2Overlapped* object, HRESULT status, const char* what) {
  require(status == ND_PENDING ? object->GetOverlappedResult(&request_, TRUE) : status, what);
}

Memory Session::allocate(std::size_t bytes, ULONG flags) {
  void* const pages = VirtualAlloc(nullptr, bytes, MEM_RESERVE | MEM_COMMIT, PAGE_READWRITE);
  if (pages == nullptr) fail("VirtualAlloc: error " + std::to_string(GetLastError()));
  Memory memory{{static_cast<std::uint8_t*>(pages), bytes}, nullptr};
  require(adapter_->CreateMemoryRegion(IID_IND2MemoryRegion, file_, reinterpret_cast<void**>(&memory.region)),
          "CreateMemoryRegion");
  finish(memory.region, memory.region->Register(memory.bytes.data(), memory.bytes.size(), flags, &request_),
         "Register");
  return memory;
}

void Session::release(Memory& memory) {
  finish(memory.region, memory.region->Deregister(&request_), "Deregister");
  drop(memory.region);
  VirtualFree(memory.bytes.data(), 0, MEM_RELEASE);
}

void Session::begin() {
  drop(connector_);
  drop(pair_);
  require(adapter_->CreateQueuePair(IID_IND2QueuePair, cq_, cq_, nullptr, depth_, depth_, 1, 1,
                                    limits_.MaxInlineDataSize, reinterpret_cast<void**>(&pair_)),
          "CreateQueuePair");
  require(adapter_->CreateConnector(IID_IND2Connector, file_, reinterpret_cast<void**>(&connector_)),
          "CreateConnector");
}

void Session::listen(const sockaddr_in& own) {
  require(adapter_->CreateListener(IID_IND2Listener, file_, reinterpret_cast<void**>(&listener_)), "CreateListener");
  require(listener_->Bind(generic(own), sizeof own), "IND2Listener::Bind");
  require(listener_->Listen(0), "Listen");
}

Greeting Session::accept(const Greeting& told) {
  finish(listener_, listener_->GetConnectionRequest(connector_, &request_), "GetConnectionRequest");
  Greeting heard;
  char data[64];
  ULONG bytes = sizeof data;
  require(connector_->GetPrivateData(data, &bytes), "GetPrivateData");
  std::memcpy(&heard, data, std::min<std::size_t>(bytes, sizeof heard));
  finish(connector_,
         connector_->Accept(pair_, limits_.MaxInboundReadLimit, limits_.MaxOutboundReadLimit, &told, sizeof told,
                            &request_),
         "Accept");
  return heard;
}

Greeting Session::connect(const sockaddr_in& own, const sockaddr_in& peer, const Greeting& told) {
  require(connector_->Bind(generic(own), sizeof own), "IND2Connector::Bind");
  finish(connector_,
         connector_->Connect(pair_, generic(peer), sizeof peer, limits_.MaxInboundReadLimit,
                             limits_.MaxOutboundReadLimit, &told, sizeof told, &request_),
         "Connect");
  Greeting heard;
  char data[256];
  ULONG bytes = sizeof data;
  require(connector_->GetPrivateData(data, &bytes), "GetPrivateData");
  std::memcpy(&heard, data, std::min<std::size_t>(bytes, sizeof heard));
  finish(connector_, connector_->CompleteConnect(&request_), "CompleteConnect");
  return heard;
}

void Session::wait_for_end() {
  finish(connector_, connector_->NotifyDisconnect(&request_), "NotifyDisconnect");
  leave();
}

void Session::disconnect() {
  if (listener_ != nullptr) return wait_for_end();
  leave();
}

void Session::leave() {
  finish(connector_, connector_->Disconnect(&request_), "Disconnect");
  // What was outstanding is flushed.
  ND2_RESULT result{};
  while (cq_->GetResults(&result, 1) != 0) continue;
}

ND2_RESULT Session::poll_any() {
  ND2_RESULT result{};
  while (cq_->GetResults(&result, 1) == 0) continue;
  return result;
}

ND2_RESULT Session::poll() {
  const ND2_RESULT result = poll_any();
  require(result.Status, "a request");
  return result;
}

ND2_RESULT Session::poll(ND2_REQUEST_TYPE kind) {
  for (;;) {
    const ND2_RESULT result = poll();
    if (result.RequestType == kind) return result;
  }
}

ND2_RESULT Session::wait(ND2_REQUEST_TYPE kind) {
  for (;;) {
    ND2_RESULT result{};
    // What has completed since nothing was found is notified of at once.
    while (cq_->GetResults(&result, 1) == 0) finish(cq_, cq_->Notify(ND_CQ_NOTIFY_ANY, &request_), "Notify");
    require(result.Status, "a request");
    if (result.RequestType == kind) return result;
  }
}

Arguments read_arguments(int count, char* arguments[], const char* what, const Arguments& defaults,
                         const std::string& other) {
  Arguments to = defaults;
  std::string role;
  CLI::App program(what);
  program.add_option("role", role, "server or client")->required()->check(CLI::IsMember({"server", "client"}));
  program.add_option("address", to.address, "The server's IPv4 address")->required();
  const auto number = [&](const char* name, std::uint32_t& value, std::uint32_t most, const char* text) {
    if (value != 0) program.add_option(name, value, text)->check(CLI::Range(1u, most))->capture_default_str();
  };
  number("--size", to.size, 1u << 24, "Bytes of a message");
  number("--count", to.count, 10'000'000, "How often");
  number("--depth", to.depth, 128, "Requests under way");
  if (!other.empty()) program.add_flag("--" + other, to.other, "The other way: " + other);
  try {
    program.parse(count, arguments);
  } catch (const CLI::ParseError& error) {
    std::exit(program.exit(error) == 0 ? 0 : 2);
  }
  to.server = role == "server";
  return to;
}

sockaddr_in server_address(const Arguments& arguments) { return address_of(arguments.address, kPort); }

sockaddr_in client_address(const Arguments& arguments) {
  const sockaddr_in peer = server_address(arguments);
  sockaddr_in own{};
  SIZE_T bytes = sizeof own;
  require(NdResolveAddress(generic(peer), sizeof peer, reinterpret_cast<sockaddr*>(&own), &bytes), "NdResolveAddress");
  return own;
}

}  // namespace examples
