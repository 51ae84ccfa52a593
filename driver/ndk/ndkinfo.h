#pragma once

#include "driver/ndk/ndktypes.h"

// What an adapter of the Network Direct kernel provider interface says of itself.

struct NDK_VERSION {
  USHORT Major;
  USHORT Minor;
};

enum NDK_RDMA_TECHNOLOGY {
  NdkUndefined = 0,
  NdkiWarp = 1,
  NdkInfiniBand = 2,
  NdkRoCE = 3,
  NdkRoCEv2 = 4,
  NdkMaxTechnology = 5,
};

inline constexpr ULONG NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED = 0x1;
inline constexpr ULONG NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED = 0x2;
inline constexpr ULONG NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED = 0x4;
inline constexpr ULONG NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED = 0x8;
inline constexpr ULONG NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED = 0x10;
inline constexpr ULONG NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED = 0x100;
inline constexpr ULONG NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED = 0x10000;

/// Lengths are in bytes, depths in requests.
struct NDK_ADAPTER_INFO {
  NDK_VERSION Version;
  UINT32 VendorId;
  UINT32 DeviceId;
  SIZE_T MaxRegistrationSize;
  SIZE_T MaxWindowSize;
  ULONG FRMRPageCount;  ///< Pages of a fast registration with which most of them can be had; not the most pages
  ULONG MaxInitiatorRequestSge;
  ULONG MaxReceiveRequestSge;
  ULONG MaxReadRequestSge;
  ULONG MaxTransferLength;
  ULONG MaxInlineDataSize;
  ULONG MaxInboundReadLimit;
  ULONG MaxOutboundReadLimit;
  ULONG MaxReceiveQueueDepth;
  ULONG MaxInitiatorQueueDepth;
  ULONG MaxSrqDepth;
  ULONG MaxCqDepth;
  ULONG LargeRequestThreshold;
  ULONG MaxCallerData;
  ULONG MaxCalleeData;
  ULONG AdapterFlags;
  NDK_RDMA_TECHNOLOGY RdmaTechnology;
};

static_assert(offsetof(NDK_ADAPTER_INFO, MaxRegistrationSize) == 0x10 &&
              offsetof(NDK_ADAPTER_INFO, FRMRPageCount) == 0x20 &&
              offsetof(NDK_ADAPTER_INFO, MaxTransferLength) == 0x30);
static_assert(offsetof(NDK_ADAPTER_INFO, RdmaTechnology) == 0x60 && sizeof(NDK_ADAPTER_INFO) == 0x68);
