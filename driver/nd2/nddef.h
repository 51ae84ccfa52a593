#pragma once

#include <cstddef>

#include "driver/nd2/ndtypes.h"

// Constants and structures of the NetworkDirect version 2 interface. The order of fields is the binary interface.

inline constexpr ULONG ND_VERSION_1 = 0x1;
inline constexpr ULONG ND_VERSION_2 = 0x20000;

inline constexpr ULONG ND_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED = 0x00000001;
inline constexpr ULONG ND_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED = 0x00000004;
inline constexpr ULONG ND_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED = 0x00000008;
inline constexpr ULONG ND_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED = 0x00000100;
inline constexpr ULONG ND_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED = 0x00010000;

inline constexpr ULONG ND_CQ_NOTIFY_ERRORS = 0;
inline constexpr ULONG ND_CQ_NOTIFY_ANY = 1;
inline constexpr ULONG ND_CQ_NOTIFY_SOLICITED = 2;

inline constexpr ULONG ND_MR_FLAG_ALLOW_LOCAL_WRITE = 0x00000001;
inline constexpr ULONG ND_MR_FLAG_ALLOW_REMOTE_READ = 0x00000002;
inline constexpr ULONG ND_MR_FLAG_ALLOW_REMOTE_WRITE = 0x00000005;  // contains ALLOW_LOCAL_WRITE
inline constexpr ULONG ND_MR_FLAG_RDMA_READ_SINK = 0x00000008;
inline constexpr ULONG ND_MR_FLAG_DO_NOT_SECURE_VM = 0x80000000;

inline constexpr ULONG ND_OP_FLAG_SILENT_SUCCESS = 0x00000001;
inline constexpr ULONG ND_OP_FLAG_READ_FENCE = 0x00000002;
inline constexpr ULONG ND_OP_FLAG_SEND_AND_SOLICIT_EVENT = 0x00000004;
inline constexpr ULONG ND_OP_FLAG_ALLOW_READ = 0x00000008;
inline constexpr ULONG ND_OP_FLAG_ALLOW_WRITE = 0x00000010;
inline constexpr ULONG ND_OP_FLAG_INLINE = 0x00000020;

// Addresses that NdQueryAddressList leaves out.
inline constexpr DWORD ND_QUERY_EXCLUDE_EMULATOR_ADDRESSES = 1;
inline constexpr DWORD ND_QUERY_EXCLUDE_NDv1_ADDRESSES = 2;
inline constexpr DWORD ND_QUERY_EXCLUDE_NDv2_ADDRESSES = 4;

enum ND2_REQUEST_TYPE {
  Nd2RequestTypeReceive,
  Nd2RequestTypeSend,
  Nd2RequestTypeBind,
  Nd2RequestTypeInvalidate,
  Nd2RequestTypeRead,
  Nd2RequestTypeWrite
};

/// Limits of an adapter (IND2Adapter::Query). Hardware limits, exact; not what is free at present.
struct ND2_ADAPTER_INFO {
  ULONG InfoVersion;
  UINT16 VendorId;
  UINT16 DeviceId;
  UINT64 AdapterId;
  SIZE_T MaxRegistrationSize;
  SIZE_T MaxWindowSize;
  ULONG MaxInitiatorSge;
  ULONG MaxReceiveSge;
  ULONG MaxReadSge;
  ULONG MaxTransferLength;
  ULONG MaxInlineDataSize;
  ULONG MaxInboundReadLimit;
  ULONG MaxOutboundReadLimit;
  ULONG MaxReceiveQueueDepth;
  ULONG MaxInitiatorQueueDepth;
  ULONG MaxSharedReceiveQueueDepth;
  ULONG MaxCompletionQueueDepth;
  ULONG InlineRequestThreshold;
  ULONG LargeRequestThreshold;
  ULONG MaxCallerData;
  ULONG MaxCalleeData;
  ULONG AdapterFlags;
};

/// Local memory of a request.
struct ND2_SGE {
  void* Buffer;
  ULONG BufferLength;
  UINT32 MemoryRegionToken;
};

/// A finished request. BytesTransferred is meaningful for Receive only.
struct ND2_RESULT {
  HRESULT Status;
  ULONG BytesTransferred;
  void* QueuePairContext;
  void* RequestContext;
  ND2_REQUEST_TYPE RequestType;
};

static_assert(sizeof(ND2_ADAPTER_INFO) == 96);
static_assert(offsetof(ND2_ADAPTER_INFO, VendorId) == 4 && offsetof(ND2_ADAPTER_INFO, AdapterId) == 8);
static_assert(offsetof(ND2_ADAPTER_INFO, MaxRegistrationSize) == 16);
static_assert(offsetof(ND2_ADAPTER_INFO, MaxInitiatorSge) == 32);
static_assert(offsetof(ND2_ADAPTER_INFO, MaxReceiveQueueDepth) == 60);
static_assert(offsetof(ND2_ADAPTER_INFO, MaxCompletionQueueDepth) == 72);
static_assert(offsetof(ND2_ADAPTER_INFO, AdapterFlags) == 92);
static_assert(sizeof(ND2_SGE) == 16 && offsetof(ND2_SGE, MemoryRegionToken) == 12);
static_assert(sizeof(ND2_RESULT) == 32 && offsetof(ND2_RESULT, RequestType) == 24);
