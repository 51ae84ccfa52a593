#include "kernel_session.hpp"

#include <cstdio>
#include <cstdlib>

namespace examples {
namespace {

constexpr ULONG kTag = 0x7845644E;  // "NdEx"
constexpr ULONG kReads = 16;        ///< Under way, each way

/// Its name; of a status without one the number.
std::string status_name(NTSTATUS status) {
  switch (status) {
    case STATUS_ACCESS_VIOLATION: return "STATUS_ACCESS_VIOLATION";
    case STATUS_ADDRESS_ALREADY_ASSOCIATED: return "STATUS_ADDRESS_ALREADY_ASSOCIATED";
    case STATUS_ADDRESS_ALREADY_EXISTS: return "STATUS_ADDRESS_ALREADY_EXISTS";
    case STATUS_BAD_NETWORK_NAME: return "STATUS_BAD_NETWORK_NAME";
    case STATUS_BUFFER_OVERFLOW: return "STATUS_BUFFER_OVERFLOW";
    case STATUS_BUFFER_TOO_SMALL: return "STATUS_BUFFER_TOO_SMALL";
    case STATUS_CANCELLED: return "STATUS_CANCELLED";
    case STATUS_CONNECTION_ABORTED: return "STATUS_CONNECTION_ABORTED";
    case STATUS_CONNECTION_ACTIVE: return "STATUS_CONNECTION_ACTIVE";
    case STATUS_CONNECTION_DISCONNECTED: return "STATUS_CONNECTION_DISCONNECTED";
    case STATUS_CONNECTION_INVALID: return "STATUS_CONNECTION_INVALID";
    case STATUS_CONNECTION_REFUSED: return "STATUS_CONNECTION_REFUSED";
    case STATUS_DATA_ERROR: return "STATUS_DATA_ERROR";
    case STATUS_DATA_OVERRUN: return "STATUS_DATA_OVERRUN";
    case STATUS_DEVICE_BUSY: return "STATUS_DEVICE_BUSY";
    case STATUS_DEVICE_NOT_READY: return "STATUS_DEVICE_NOT_READY";
    case STATUS_DEVICE_REMOVED: return "STATUS_DEVICE_REMOVED";
    case STATUS_HOST_UNREACHABLE: return "STATUS_HOST_UNREACHABLE";
    case STATUS_IMPLEMENTATION_LIMIT: return "STATUS_IMPLEMENTATION_LIMIT";
    case STATUS_INSUFFICIENT_RESOURCES: return "STATUS_INSUFFICIENT_RESOURCES";
    case STATUS_INTERNAL_ERROR: return "STATUS_INTERNAL_ERROR";
    case STATUS_INVALID_ADDRESS: return "STATUS_INVALID_ADDRESS";
    case STATUS_INVALID_BUFFER_SIZE: return "STATUS_INVALID_BUFFER_SIZE";
    case STATUS_INVALID_DEVICE_REQUEST: return "STATUS_INVALID_DEVICE_REQUEST";
    case STATUS_INVALID_DEVICE_STATE: return "STATUS_INVALID_DEVICE_STATE";
    case STATUS_INVALID_HANDLE: return "STATUS_INVALID_HANDLE";
    case STATUS_INVALID_PARAMETER: return "STATUS_INVALID_PARAMETER";
    case STATUS_INVALID_PARAMETER_MIX: return "STATUS_INVALID_PARAMETER_MIX";
    case STATUS_IO_TIMEOUT: return "STATUS_IO_TIMEOUT";
    case STATUS_NETWORK_UNREACHABLE: return "STATUS_NETWORK_UNREACHABLE";
    case STATUS_NOT_SUPPORTED: return "STATUS_NOT_SUPPORTED";
    case STATUS_NO_MEMORY: return "STATUS_NO_MEMORY";
    case STATUS_NO_MORE_ENTRIES: return "STATUS_NO_MORE_ENTRIES";
    case STATUS_REMOTE_RESOURCES: return "STATUS_REMOTE_RESOURCES";
    case STATUS_SHARING_VIOLATION: return "STATUS_SHARING_VIOLATION";
    case STATUS_TIMEOUT: return "STATUS_TIMEOUT";
    case STATUS_TOO_MANY_ADDRESSES: return "STATUS_TOO_MANY_ADDRESSES";
    case STATUS_UNSUCCESSFUL: return "STATUS_UNSUCCESSFUL";
    default: break;
  }
  char text[32];
  std::snprintf(text, sizeof text, "status %#010x", static_cast<unsigned>(status));
  return text;
}

}  // namespace

void fail(const std::string& what) {
  std::fprintf(stderr, "%s\n", what.c_str());
  std::_Exit(1);
}

void require_status(NTSTATUS status, const char* what) {
  if (status == STATUS_SUCCESS) return;
  fail(what + (": " + status_name(status)));
}

double kernel_now_us() {
  LARGE_INTEGER frequency{};
  const LARGE_INTEGER count = KeQueryPerformanceCounter(&frequency);
  return static_cast<double>(count.QuadPart) * 1e6 / static_cast<double>(frequency.QuadPart);
}

VOID Completion::done(PVOID context, NTSTATUS status) {
  auto& self = *static_cast<Completion*>(context);
  self.status_ = status;
  KeSetEvent(&self.event_, IO_NO_INCREMENT, FALSE);
}

VOID Completion::made(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER* object) {
  static_cast<Completion*>(context)->object_ = object;
  done(context, status);
}

NTSTATUS Completion::wait(NTSTATUS status) {
  if (status != STATUS_PENDING) return status;
  const NTSTATUS waited = KeWaitForSingleObject(&event_, Executive, KernelMode, FALSE, nullptr);
  return waited == STATUS_SUCCESS ? status_ : waited;
}

NDK_SGE KernelMemory::part(std::size_t offset, std::size_t length) const {
  NDK_SGE sge{};
  sge.VirtualAddress = bytes + offset;
  sge.Length = static_cast<ULONG>(length);
  sge.MemoryRegionToken = token;
  return sge;
}

KernelSession::KernelSession(NDK_ADAPTER* adapter, ULONG depth) : adapter_(adapter) {
  KeInitializeEvent(&asked_, SynchronizationEvent, FALSE);
  pd_ = make<NDK_PD>("NdkCreatePd", [&](auto callback, auto context, auto out) {
    return adapter_->Dispatch->NdkCreatePd(adapter_, callback, context, out);
  });
  cq_ = make<NDK_CQ>("NdkCreateCq", [&](auto callback, auto context, auto out) {
    return adapter_->Dispatch->NdkCreateCq(
        adapter_, 2 * depth, [](PVOID, NTSTATUS) {}, nullptr, nullptr, callback, context, out);
  });
  NDK_ADAPTER_INFO info{};
  ULONG bytes = sizeof info;
  require_status(adapter_->Dispatch->NdkQueryAdapterInfo(adapter_, &info, &bytes), "NdkQueryAdapterInfo");
  qp_ = make<NDK_QP>("NdkCreateQp", [&](auto callback, auto context, auto out) {
    return pd_->Dispatch->NdkCreateQp(pd_, cq_, cq_, nullptr, depth, depth, 1, 1, info.MaxInlineDataSize, callback,
                                      context, out);
  });
}

KernelSession::~KernelSession() {
  if (connector_ != nullptr) close(&connector_->Header, connector_->Dispatch->NdkCloseConnector);
  if (listener_ != nullptr) close(&listener_->Header, listener_->Dispatch->NdkCloseListener);
  close(&qp_->Header, qp_->Dispatch->NdkCloseQp);
  close(&cq_->Header, cq_->Dispatch->NdkCloseCq);
  close(&pd_->Header, pd_->Dispatch->NdkClosePd);
}

void KernelSession::close(NDK_OBJECT_HEADER* object, NDK_FN_CLOSE_OBJECT call) {
  Completion completion;
  require_status(completion.wait(call(object, Completion::closed, &completion)), "a Close");
}

KernelMemory KernelSession::allocate(std::size_t bytes, ULONG flags) {
  const std::size_t whole = (bytes + PAGE_SIZE - 1) / PAGE_SIZE * PAGE_SIZE;
  KernelMemory memory;
  memory.bytes = static_cast<std::uint8_t*>(ExAllocatePool2(POOL_FLAG_NON_PAGED, whole, kTag));
  if (memory.bytes == nullptr) fail("ExAllocatePool2: no memory");
  memory.region = make<NDK_MR>("NdkCreateMr", [&](auto callback, auto context, auto out) {
    return pd_->Dispatch->NdkCreateMr(pd_, FALSE, callback, context, out);
  });
  MDL mdl = mdl_of(memory.bytes, static_cast<ULONG>(whole));
  finish("NdkRegisterMr", [&](auto callback, auto context) {
    return memory.region->Dispatch->NdkRegisterMr(memory.region, &mdl, whole, flags, callback, context);
  });
  memory.token = memory.region->Dispatch->NdkGetLocalTokenFromMr(memory.region);
  return memory;
}

void KernelSession::release(KernelMemory& memory) {
  finish("NdkDeregisterMr", [&](auto callback, auto context) {
    return memory.region->Dispatch->NdkDeregisterMr(memory.region, callback, context);
  });
  close(&memory.region->Header, memory.region->Dispatch->NdkCloseMr);
  ExFreePoolWithTag(memory.bytes, kTag);
}

VOID KernelSession::asked(PVOID context, NDK_CONNECTOR* connector) {
  auto& self = *static_cast<KernelSession*>(context);
  self.connector_ = connector;
  KeSetEvent(&self.asked_, IO_NO_INCREMENT, FALSE);
}

void KernelSession::accept(const SOCKADDR* own, ULONG bytes) {
  listener_ = make<NDK_LISTENER>("NdkCreateListener", [&](auto callback, auto context, auto out) {
    return adapter_->Dispatch->NdkCreateListener(adapter_, asked, this, callback, context, out);
  });
  finish("NdkListen", [&](auto callback, auto context) {
    return listener_->Dispatch->NdkListen(listener_, own, bytes, callback, context);
  });
  require_status(KeWaitForSingleObject(&asked_, Executive, KernelMode, FALSE, nullptr), "waiting for a connection");
  finish("NdkAccept", [&](auto callback, auto context) {
    return connector_->Dispatch->NdkAccept(connector_, qp_, kReads, kReads, nullptr, 0, Completion::closed, &left_,
                                           callback, context);
  });
}

void KernelSession::connect(const SOCKADDR* own, const SOCKADDR* peer, ULONG bytes) {
  connector_ = make<NDK_CONNECTOR>("NdkCreateConnector", [&](auto callback, auto context, auto out) {
    return adapter_->Dispatch->NdkCreateConnector(adapter_, callback, context, out);
  });
  finish("NdkConnect", [&](auto callback, auto context) {
    return connector_->Dispatch->NdkConnect(connector_, qp_, own, bytes, peer, bytes, kReads, kReads, nullptr, 0,
                                            callback, context);
  });
  finish("NdkCompleteConnect", [&](auto callback, auto context) {
    return connector_->Dispatch->NdkCompleteConnect(connector_, Completion::closed, &left_, callback, context);
  });
}

void KernelSession::wait_for_end() {
  require_status(left_.wait(), "waiting for the end of the connection");
  finish("NdkDisconnect", [&](auto callback, auto context) {
    return connector_->Dispatch->NdkDisconnect(connector_, callback, context);
  });
}

NDK_RESULT_EX KernelSession::poll_any() {
  NDK_RESULT_EX result{};
  while (cq_->Dispatch->NdkGetCqResultsEx(cq_, &result, 1) == 0) continue;
  return result;
}

NDK_RESULT_EX KernelSession::poll() {
  const NDK_RESULT_EX result = poll_any();
  require_status(result.Status, "a request");
  return result;
}

}  // namespace examples
