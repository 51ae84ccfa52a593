#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <string>

#include "driver/nd2/ndspi.h"

// The binary interface: identifiers, sizes, values, and the order of the virtual functions.

namespace {

std::string text(const GUID& id) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%08X-%04X-%04X-%02X%02X-%02X%02X%02X%02X%02X%02X", id.Data1, id.Data2, id.Data3,
                id.Data4[0], id.Data4[1], id.Data4[2], id.Data4[3], id.Data4[4], id.Data4[5], id.Data4[6], id.Data4[7]);
  return buffer;
}

/// Calls virtual function number `slot` as a client compiled elsewhere does: by its place in the table.
template <typename... Args>
HRESULT call(IUnknown* object, std::size_t slot, Args... args) {
  using Function = HRESULT (*)(void*, Args...);
  auto* const* table = *reinterpret_cast<void***>(object);
  Function function;
  static_assert(sizeof function == sizeof(void*));
  std::memcpy(&function, &table[slot], sizeof function);
  return function(object, args...);
}

// Each function of these answers its place in the table.
#define SLOT(number, name, ...) \
  HRESULT name(__VA_ARGS__) override { return number; }
#define UNKNOWN_SLOTS                                           \
  HRESULT QueryInterface(REFIID, void**) override { return 0; } \
  ULONG AddRef() override { return 1; }                         \
  ULONG Release() override { return 2; }
#define OVERLAPPED_SLOTS \
  UNKNOWN_SLOTS          \
  SLOT(3, CancelOverlappedRequests) SLOT(4, GetOverlappedResult, OVERLAPPED*, BOOL)

struct CompletionQueueSlots final : IND2CompletionQueue {
  OVERLAPPED_SLOTS
  SLOT(5, GetNotifyAffinity, USHORT*, KAFFINITY*)
  SLOT(6, Resize, ULONG)
  SLOT(7, Notify, ULONG, OVERLAPPED*)
  ULONG GetResults(ND2_RESULT*, ULONG) override { return 8; }
};
struct SharedReceiveQueueSlots final : IND2SharedReceiveQueue {
  OVERLAPPED_SLOTS
  SLOT(5, GetNotifyAffinity, USHORT*, KAFFINITY*)
  SLOT(6, Modify, ULONG, ULONG)
  SLOT(7, Notify, OVERLAPPED*)
  SLOT(8, Receive, void*, const ND2_SGE*, ULONG)
};
struct MemoryWindowSlots final : IND2MemoryWindow {
  UNKNOWN_SLOTS
  UINT32 GetRemoteToken() override { return 3; }
};
struct MemoryRegionSlots final : IND2MemoryRegion {
  OVERLAPPED_SLOTS
  SLOT(5, Register, const void*, SIZE_T, ULONG, OVERLAPPED*)
  SLOT(6, Deregister, OVERLAPPED*)
  UINT32 GetLocalToken() override { return 7; }
  UINT32 GetRemoteToken() override { return 8; }
};
struct QueuePairSlots final : IND2QueuePair {
  UNKNOWN_SLOTS
  SLOT(3, Flush)
  SLOT(4, Send, void*, const ND2_SGE*, ULONG, ULONG)
  SLOT(5, Receive, void*, const ND2_SGE*, ULONG)
  SLOT(6, Bind, void*, IUnknown*, IUnknown*, const void*, SIZE_T, ULONG)
  SLOT(7, Invalidate, void*, IUnknown*, ULONG)
  SLOT(8, Read, void*, const ND2_SGE*, ULONG, UINT64, UINT32, ULONG)
  SLOT(9, Write, void*, const ND2_SGE*, ULONG, UINT64, UINT32, ULONG)
};
struct ConnectorSlots final : IND2Connector {
  OVERLAPPED_SLOTS
  SLOT(5, Bind, const sockaddr*, ULONG)
  SLOT(6, Connect, IUnknown*, const sockaddr*, ULONG, ULONG, ULONG, const void*, ULONG, OVERLAPPED*)
  SLOT(7, CompleteConnect, OVERLAPPED*)
  SLOT(8, Accept, IUnknown*, ULONG, ULONG, const void*, ULONG, OVERLAPPED*)
  SLOT(9, Reject, const void*, ULONG)
  SLOT(10, GetReadLimits, ULONG*, ULONG*)
  SLOT(11, GetPrivateData, void*, ULONG*)
  SLOT(12, GetLocalAddress, sockaddr*, ULONG*)
  SLOT(13, GetPeerAddress, sockaddr*, ULONG*)
  SLOT(14, NotifyDisconnect, OVERLAPPED*)
  SLOT(15, Disconnect, OVERLAPPED*)
};
struct ListenerSlots final : IND2Listener {
  OVERLAPPED_SLOTS
  SLOT(5, Bind, const sockaddr*, ULONG)
  SLOT(6, Listen, ULONG)
  SLOT(7, GetLocalAddress, sockaddr*, ULONG*)
  SLOT(8, GetConnectionRequest, IUnknown*, OVERLAPPED*)
};
struct AdapterSlots final : IND2Adapter {
  UNKNOWN_SLOTS
  SLOT(3, CreateOverlappedFile, HANDLE*)
  SLOT(4, Query, ND2_ADAPTER_INFO*, ULONG*)
  SLOT(5, QueryAddressList, SOCKET_ADDRESS_LIST*, ULONG*)
  SLOT(6, CreateCompletionQueue, REFIID, HANDLE, ULONG, USHORT, KAFFINITY, void**)
  SLOT(7, CreateMemoryRegion, REFIID, HANDLE, void**)
  SLOT(8, CreateMemoryWindow, REFIID, void**)
  SLOT(9, CreateSharedReceiveQueue, REFIID, HANDLE, ULONG, ULONG, ULONG, USHORT, KAFFINITY, void**)
  SLOT(10, CreateQueuePair, REFIID, IUnknown*, IUnknown*, void*, ULONG, ULONG, ULONG, ULONG, ULONG, void**)
  SLOT(11, CreateQueuePairWithSrq, REFIID, IUnknown*, IUnknown*, IUnknown*, void*, ULONG, ULONG, ULONG, void**)
  SLOT(12, CreateConnector, REFIID, HANDLE, void**)
  SLOT(13, CreateListener, REFIID, HANDLE, void**)
};
struct ProviderSlots final : IND2Provider {
  UNKNOWN_SLOTS
  SLOT(3, QueryAddressList, SOCKET_ADDRESS_LIST*, ULONG*)
  SLOT(4, ResolveAddress, const sockaddr*, ULONG, UINT64*)
  SLOT(5, OpenAdapter, REFIID, UINT64, void**)
};

/// Every slot from `first` on answers its number. The arguments do not matter: none is looked at.
template <typename Slots>
void check_slots(int first, int count) {
  Slots object;
  for (int slot = first; slot < first + count; ++slot) {
    CHECK(call(&object, static_cast<std::size_t>(slot), 0UL, 0UL, 0UL, 0UL, 0UL) == slot);
  }
}

}  // namespace

TEST_CASE("interface identifiers") {
  CHECK(text(IID_IUnknown) == "00000000-0000-0000-C000-000000000046");
  CHECK(text(IID_IND2Overlapped) == "ABF72719-B016-4A40-A6F7-622791A7044C");
  CHECK(text(IID_IND2CompletionQueue) == "20CC445E-64A0-4CBB-AA75-F6A7251FDA9E");
  CHECK(text(IID_IND2SharedReceiveQueue) == "AABD67DC-459A-4DB1-826B-56CFCC278883");
  CHECK(text(IID_IND2MemoryWindow) == "070FE1F5-0AB5-4361-88DB-974BA704D4B9");
  CHECK(text(IID_IND2MemoryRegion) == "55DFEA2F-BC56-4982-8A45-0301BE46C413");
  CHECK(text(IID_IND2QueuePair) == "EEF2F332-B75D-4063-BCE3-3A0BAD2D02CE");
  CHECK(text(IID_IND2Connector) == "7DD615C4-6B4C-4866-950C-F3B1D25A5302");
  CHECK(text(IID_IND2Listener) == "65D23D83-3A57-4E02-86A4-350165C2D130");
  CHECK(text(IID_IND2Adapter) == "D89C798C-4823-4D69-846C-DFDCCFF9E5F3");
  CHECK(text(IID_IND2Provider) == "49EAE6C1-76C4-46D0-8003-5C2EAA2C9A8E");
}

TEST_CASE("order of the virtual functions") {
  check_slots<CompletionQueueSlots>(1, 8);
  check_slots<SharedReceiveQueueSlots>(1, 8);
  check_slots<MemoryWindowSlots>(1, 3);
  check_slots<MemoryRegionSlots>(1, 8);
  check_slots<QueuePairSlots>(1, 9);
  check_slots<ConnectorSlots>(1, 15);
  check_slots<ListenerSlots>(1, 8);
  check_slots<AdapterSlots>(1, 13);
  check_slots<ProviderSlots>(1, 5);
}

TEST_CASE("structures") {
  CHECK(sizeof(ND2_ADAPTER_INFO) == 96);
  CHECK(sizeof(ND2_RESULT) == 32);
  CHECK(sizeof(ND2_SGE) == 16);
  CHECK(sizeof(OVERLAPPED) == 32);
  CHECK(offsetof(OVERLAPPED, Pointer) == 16);
  CHECK(offsetof(ND2_ADAPTER_INFO, MaxWindowSize) == 24);
  CHECK(offsetof(ND2_ADAPTER_INFO, MaxTransferLength) == 44);
  CHECK(offsetof(ND2_ADAPTER_INFO, MaxInlineDataSize) == 48);
  CHECK(offsetof(ND2_ADAPTER_INFO, MaxInboundReadLimit) == 52);
  CHECK(offsetof(ND2_ADAPTER_INFO, MaxInitiatorQueueDepth) == 64);
  CHECK(offsetof(ND2_ADAPTER_INFO, MaxCalleeData) == 88);
  CHECK(offsetof(ND2_RESULT, BytesTransferred) == 4);
  CHECK(offsetof(ND2_RESULT, QueuePairContext) == 8);
  CHECK(offsetof(ND2_RESULT, RequestContext) == 16);
  CHECK(sizeof(ULONG) == 4);
  CHECK(sizeof(HRESULT) == 4);
}

TEST_CASE("status codes: severity decides, and two successes are not zero") {
  CHECK(SUCCEEDED(ND_SUCCESS));
  CHECK(SUCCEEDED(ND_PENDING));
  CHECK(SUCCEEDED(ND_TIMEOUT));
  CHECK(FAILED(ND_BUFFER_OVERFLOW));
  CHECK(FAILED(ND_CANCELED));
  CHECK(static_cast<std::uint32_t>(ND_NO_MORE_ENTRIES) == 0x8000001A);
  CHECK(static_cast<std::uint32_t>(ND_CONNECTION_INVALID) == 0xC000023A);
  CHECK(static_cast<std::uint32_t>(ND_IO_TIMEOUT) == 0xC00000B5);
  CHECK(static_cast<std::uint32_t>(ND_REMOTE_ERROR) == 0xC000013D);
  CHECK(ND_INVALID_PARAMETER_10 - ND_INVALID_PARAMETER_1 == 9);
  CHECK(Nd2RequestTypeReceive == 0);
  CHECK(Nd2RequestTypeSend == 1);
  CHECK(Nd2RequestTypeRead == 4);
  CHECK(Nd2RequestTypeWrite == 5);
}
