#pragma once

#include "driver/ndk/ndkinfo.h"

// The Network Direct kernel provider interface, with its published names, values and parameters: objects, each with a
// table of what can be done with it. docs/ndk.md says what this provider does with each.

inline constexpr NDK_VERSION NDK_VERSION_1_1{1, 1};
inline constexpr NDK_VERSION NDK_VERSION_1_2{1, 2};

inline constexpr ULONG NDK_OP_FLAG_SILENT_SUCCESS = 0x00000001;
inline constexpr ULONG NDK_OP_FLAG_READ_FENCE = 0x00000002;
inline constexpr ULONG NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT = 0x00000004;
inline constexpr ULONG NDK_OP_FLAG_ALLOW_REMOTE_READ = 0x00000008;
inline constexpr ULONG NDK_OP_FLAG_ALLOW_LOCAL_WRITE = 0x00000010;
inline constexpr ULONG NDK_OP_FLAG_ALLOW_REMOTE_WRITE = 0x00000030;  ///< With ALLOW_LOCAL_WRITE
inline constexpr ULONG NDK_OP_FLAG_INLINE = 0x00000040;
inline constexpr ULONG NDK_OP_FLAG_RDMA_READ_SINK = 0x00000080;
inline constexpr ULONG NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE = 0x00000100;
inline constexpr ULONG NDK_OP_FLAG_DEFER = 0x00000200;

inline constexpr ULONG NDK_MR_FLAG_ALLOW_LOCAL_READ = 0x00000000;
inline constexpr ULONG NDK_MR_FLAG_ALLOW_LOCAL_WRITE = 0x00000001;
inline constexpr ULONG NDK_MR_FLAG_ALLOW_REMOTE_READ = 0x00000002;
inline constexpr ULONG NDK_MR_FLAG_ALLOW_REMOTE_WRITE = 0x00000005;  ///< With ALLOW_LOCAL_WRITE
inline constexpr ULONG NDK_MR_FLAG_RDMA_READ_SINK = 0x00000008;

inline constexpr ULONG NDK_CQ_NOTIFY_ERRORS = 0;
inline constexpr ULONG NDK_CQ_NOTIFY_ANY = 1;
inline constexpr ULONG NDK_CQ_NOTIFY_SOLICITED = 2;

enum NDK_OBJECT_TYPE {
  NdkObjectTypeUndefined = 0,
  NdkObjectTypeAdapter = 1,
  NdkObjectTypeQp = 2,
  NdkObjectTypeCq = 3,
  NdkObjectTypeMr = 4,
  NdkObjectTypeMw = 5,
  NdkObjectTypePd = 6,
  NdkObjectTypeSharedEndpoint = 7,
  NdkObjectTypeConnector = 8,
  NdkObjectTypeListener = 9,
  NdkObjectTypeSrq = 10,
  NdkObjectTypeMax = 11,
};

enum NDK_OPERATION_TYPE : ULONG {
  NdkOperationTypeReceive = 1,
  NdkOperationTypeReceiveAndInvalidate = 32769,
  NdkOperationTypeSend = 2,
  NdkOperationTypeFastRegister = 4,
  NdkOperationTypeBind = 8,
  NdkOperationTypeInvalidate = 16,
  NdkOperationTypeRead = 32,
  NdkOperationTypeWrite = 64,
};

/// The consumer's to fill; a provider leaves it alone.
struct NDK_OBJECT_HEADER_RESERVED_BLOCK {
  PVOID rf[4];
};

struct NDK_OBJECT_HEADER {
  NDK_VERSION Version;
  NDK_OBJECT_TYPE ObjectType;
  NDK_OBJECT_HEADER_RESERVED_BLOCK Reserved;
};

/// Address by which the adapter knows a place in memory.
using NDK_LOGICAL_ADDRESS = UINT64;

/// Logical address mapping: pages of PAGE_SIZE bytes, aligned to it; they need not follow each other.
struct NDK_LOGICAL_ADDRESS_MAPPING {
  PVOID AdapterContext;  ///< The provider's
  ULONG AdapterPageCount;
  NDK_LOGICAL_ADDRESS AdapterPageArray[1];
};

struct NDK_SGE {
  union {
    PVOID VirtualAddress;
    NDK_LOGICAL_ADDRESS LogicalAddress;  ///< With the privileged token
  };
  ULONG Length;
  UINT32 MemoryRegionToken;
};
static_assert(sizeof(NDK_SGE) == 16);

struct NDK_RESULT {
  NTSTATUS Status;
  ULONG BytesTransferred;  ///< Receives
  PVOID QPContext;
  PVOID RequestContext;
};

struct NDK_RESULT_EX {
  NTSTATUS Status;
  ULONG BytesTransferred;  ///< Receives
  PVOID QPContext;
  PVOID RequestContext;
  NDK_OPERATION_TYPE Type;
  ULONG ProviderErrorCode;                 ///< 0 on success
  ULONG_PTR TypeSpecificCompletionOutput;  ///< ReceiveAndInvalidate: the token
};
static_assert(sizeof(NDK_RESULT) == 24 && sizeof(NDK_RESULT_EX) == 40);

struct NDK_EXTENSION_INTERFACE {
  NDK_VERSION Version;
  const void* Dispatch;
};

struct NDK_ADAPTER_DISPATCH;
struct NDK_PD_DISPATCH;
struct NDK_MR_DISPATCH;
struct NDK_MW_DISPATCH;
struct NDK_QP_DISPATCH;
struct NDK_CQ_DISPATCH;
struct NDK_SRQ_DISPATCH;
struct NDK_CONNECTOR_DISPATCH;
struct NDK_LISTENER_DISPATCH;
struct NDK_SHARED_ENDPOINT_DISPATCH;

struct NDK_ADAPTER {
  NDK_OBJECT_HEADER Header;
  const NDK_ADAPTER_DISPATCH* Dispatch;
};
struct NDK_PD {
  NDK_OBJECT_HEADER Header;
  const NDK_PD_DISPATCH* Dispatch;
};
struct NDK_MR {
  NDK_OBJECT_HEADER Header;
  const NDK_MR_DISPATCH* Dispatch;
};
struct NDK_MW {
  NDK_OBJECT_HEADER Header;
  const NDK_MW_DISPATCH* Dispatch;
};
struct NDK_QP {
  NDK_OBJECT_HEADER Header;
  const NDK_QP_DISPATCH* Dispatch;
};
struct NDK_CQ {
  NDK_OBJECT_HEADER Header;
  const NDK_CQ_DISPATCH* Dispatch;
};
struct NDK_SRQ {
  NDK_OBJECT_HEADER Header;
  const NDK_SRQ_DISPATCH* Dispatch;
};
struct NDK_CONNECTOR {
  NDK_OBJECT_HEADER Header;
  const NDK_CONNECTOR_DISPATCH* Dispatch;
};
struct NDK_LISTENER {
  NDK_OBJECT_HEADER Header;
  const NDK_LISTENER_DISPATCH* Dispatch;
};
struct NDK_SHARED_ENDPOINT {
  NDK_OBJECT_HEADER Header;
  const NDK_SHARED_ENDPOINT_DISPATCH* Dispatch;
};

// Callbacks of the consumer.
using NDK_FN_REQUEST_COMPLETION = VOID (*)(PVOID Context, NTSTATUS Status);
using NDK_FN_CREATE_COMPLETION = VOID (*)(PVOID Context, NTSTATUS Status, NDK_OBJECT_HEADER* pNdkObject);
using NDK_FN_CLOSE_COMPLETION = VOID (*)(PVOID Context);
using NDK_FN_CQ_NOTIFICATION_CALLBACK = VOID (*)(PVOID CqNotificationContext, NTSTATUS CqStatus);
using NDK_FN_SRQ_NOTIFICATION_CALLBACK = VOID (*)(PVOID SrqNotificationContext, NTSTATUS SrqStatus);
using NDK_FN_CONNECT_EVENT_CALLBACK = VOID (*)(PVOID ConnectEventContext, NDK_CONNECTOR* pNdkConnector);
using NDK_FN_DISCONNECT_EVENT_CALLBACK = VOID (*)(PVOID DisconnectEventContext);

// What a provider has for every object.
using NDK_FN_CLOSE_OBJECT = NTSTATUS (*)(NDK_OBJECT_HEADER* pNdkObject, NDK_FN_CLOSE_COMPLETION CloseCompletion,
                                         PVOID RequestContext);
using NDK_FN_QUERY_EXTENSION_INTERFACE = NTSTATUS (*)(NDK_OBJECT_HEADER* pNdkObject, const GUID* ExtensionInterfaceID,
                                                      NDK_VERSION ExtensionInterfaceVersion,
                                                      NDK_EXTENSION_INTERFACE* pExtensionInterface);

// Adapter.
using NDK_FN_QUERY_ADAPTER_INFO = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, NDK_ADAPTER_INFO* pInfo, ULONG* pBufferSize);
using NDK_FN_CREATE_CQ = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, ULONG CqDepth,
                                      NDK_FN_CQ_NOTIFICATION_CALLBACK CqNotification, PVOID CqNotificationContext,
                                      GROUP_AFFINITY* Affinity, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                      PVOID RequestContext, NDK_CQ** ppNdkCq);
using NDK_FN_CREATE_PD = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                      PVOID RequestContext, NDK_PD** ppNdkPd);
using NDK_FN_CREATE_SHARED_ENDPOINT = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, const SOCKADDR* pAddress,
                                                   ULONG AddressLength, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                                   PVOID RequestContext, NDK_SHARED_ENDPOINT** ppNdkSharedEndpoint);
using NDK_FN_CREATE_CONNECTOR = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                             PVOID RequestContext, NDK_CONNECTOR** ppNdkConnector);
using NDK_FN_CREATE_LISTENER = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, NDK_FN_CONNECT_EVENT_CALLBACK ConnectEvent,
                                            PVOID ConnectEventContext, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                            PVOID RequestContext, NDK_LISTENER** ppNdkListener);
using NDK_FN_BUILD_LAM = NTSTATUS (*)(NDK_ADAPTER* pNdkAdapter, MDL* Mdl, SIZE_T Length,
                                      NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext,
                                      NDK_LOGICAL_ADDRESS_MAPPING* pNdkLAM, ULONG* pLAMSize, ULONG* pFBO);
using NDK_FN_RELEASE_LAM = VOID (*)(NDK_ADAPTER* pNdkAdapter, NDK_LOGICAL_ADDRESS_MAPPING* pNdkLAM);

struct NDK_ADAPTER_DISPATCH {
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_QUERY_ADAPTER_INFO NdkQueryAdapterInfo;
  NDK_FN_CREATE_CQ NdkCreateCq;
  NDK_FN_CREATE_PD NdkCreatePd;
  NDK_FN_CREATE_SHARED_ENDPOINT NdkCreateSharedEndpoint;
  NDK_FN_CREATE_CONNECTOR NdkCreateConnector;
  NDK_FN_CREATE_LISTENER NdkCreateListener;
  NDK_FN_BUILD_LAM NdkBuildLAM;
  NDK_FN_RELEASE_LAM NdkReleaseLAM;
};

// Protection domain.
using NDK_FN_CREATE_MR = NTSTATUS (*)(NDK_PD* pNdkPd, BOOLEAN FastRegister, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                      PVOID RequestContext, NDK_MR** ppNdkMr);
using NDK_FN_CREATE_MW = NTSTATUS (*)(NDK_PD* pNdkPd, NDK_FN_CREATE_COMPLETION CreateCompletion, PVOID RequestContext,
                                      NDK_MW** ppNdkMw);
using NDK_FN_CREATE_SRQ = NTSTATUS (*)(NDK_PD* pNdkPd, ULONG SrqDepth, ULONG MaxReceiveRequestSge,
                                       ULONG NotifyThreshold, NDK_FN_SRQ_NOTIFICATION_CALLBACK SrqNotification,
                                       PVOID SrqNotificationContext, GROUP_AFFINITY* Affinity,
                                       NDK_FN_CREATE_COMPLETION CreateCompletion, PVOID RequestContext,
                                       NDK_SRQ** ppNdkSrq);
using NDK_FN_CREATE_QP = NTSTATUS (*)(NDK_PD* pNdkPd, NDK_CQ* pReceiveCq, NDK_CQ* pInitiatorCq, PVOID QPContext,
                                      ULONG ReceiveQueueDepth, ULONG InitiatorQueueDepth, ULONG MaxReceiveRequestSge,
                                      ULONG MaxInitiatorRequestSge, ULONG InlineDataSize,
                                      NDK_FN_CREATE_COMPLETION CreateCompletion, PVOID RequestContext,
                                      NDK_QP** ppNdkQp);
using NDK_FN_CREATE_QP_WITH_SRQ = NTSTATUS (*)(NDK_PD* pNdkPd, NDK_CQ* pReceiveCq, NDK_CQ* pInitiatorCq, NDK_SRQ* pSrq,
                                               PVOID QPContext, ULONG InitiatorQueueDepth, ULONG MaxInitiatorRequestSge,
                                               ULONG InlineDataSize, NDK_FN_CREATE_COMPLETION CreateCompletion,
                                               PVOID RequestContext, NDK_QP** ppNdkQp);
using NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN = VOID (*)(NDK_PD* pNdkPd, UINT32* pToken);

struct NDK_PD_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkClosePd;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_CREATE_MR NdkCreateMr;
  NDK_FN_CREATE_MW NdkCreateMw;
  NDK_FN_CREATE_SRQ NdkCreateSrq;
  NDK_FN_CREATE_QP NdkCreateQp;
  NDK_FN_CREATE_QP_WITH_SRQ NdkCreateQpWithSrq;
  NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN NdkGetPrivilegedMemoryRegionToken;
};

// Memory region.
using NDK_FN_REGISTER_MR = NTSTATUS (*)(NDK_MR* pNdkMr, MDL* Mdl, SIZE_T Length, ULONG Flags,
                                        NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext);
using NDK_FN_DEREGISTER_MR = NTSTATUS (*)(NDK_MR* pNdkMr, NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                          PVOID RequestContext);
using NDK_FN_INITIALIZE_FAST_REGISTER_MR = NTSTATUS (*)(NDK_MR* pMr, ULONG AdapterPageCount, BOOLEAN AllowRemoteAccess,
                                                        NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                                        PVOID RequestContext);
using NDK_FN_GET_REMOTE_TOKEN_FROM_MR = UINT32 (*)(NDK_MR* pNdkMr);
using NDK_FN_GET_LOCAL_TOKEN_FROM_MR = UINT32 (*)(NDK_MR* pNdkMr);

struct NDK_MR_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseMr;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_REGISTER_MR NdkRegisterMr;
  NDK_FN_DEREGISTER_MR NdkDeregisterMr;
  NDK_FN_INITIALIZE_FAST_REGISTER_MR NdkInitializeFastRegisterMr;
  NDK_FN_GET_REMOTE_TOKEN_FROM_MR NdkGetRemoteTokenFromMr;
  NDK_FN_GET_LOCAL_TOKEN_FROM_MR NdkGetLocalTokenFromMr;
};

// Memory window.
using NDK_FN_GET_REMOTE_TOKEN_FROM_MW = UINT32 (*)(NDK_MW* pNdkMw);

struct NDK_MW_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseMw;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_GET_REMOTE_TOKEN_FROM_MW NdkGetRemoteTokenFromMw;
};

// Queue pair.
using NDK_FN_FLUSH = VOID (*)(NDK_QP* pNdkQp);
using NDK_FN_SEND = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, const NDK_SGE* pSgl, ULONG nSge, ULONG Flags);
using NDK_FN_RECEIVE = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, const NDK_SGE* pSgl, ULONG nSge);
using NDK_FN_BIND = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, NDK_MR* pMr, NDK_MW* pMw,
                                 const void* VirtualAddress, SIZE_T Length, ULONG Flags);
using NDK_FN_FAST_REGISTER = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, NDK_MR* pMr, ULONG AdapterPageCount,
                                          const NDK_LOGICAL_ADDRESS* AdapterPageArray, ULONG FBO, SIZE_T Length,
                                          PVOID BaseVirtualAddress, ULONG Flags);
using NDK_FN_INVALIDATE = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, NDK_OBJECT_HEADER* pNdkMrOrMw,
                                       ULONG Flags);
using NDK_FN_READ = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, const NDK_SGE* pSgl, ULONG nSge,
                                 UINT64 RemoteAddress, UINT32 RemoteToken, ULONG Flags);
using NDK_FN_WRITE = NDK_FN_READ;
using NDK_FN_SEND_AND_INVALIDATE = NTSTATUS (*)(NDK_QP* pNdkQp, PVOID RequestContext, const NDK_SGE* pSgl, ULONG nSge,
                                                ULONG Flags, UINT32 RemoteMrToken);

struct NDK_QP_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseQp;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_FLUSH NdkFlush;
  NDK_FN_SEND NdkSend;
  NDK_FN_RECEIVE NdkReceive;
  NDK_FN_BIND NdkBind;
  NDK_FN_FAST_REGISTER NdkFastRegister;
  NDK_FN_INVALIDATE NdkInvalidate;
  NDK_FN_READ NdkRead;
  NDK_FN_WRITE NdkWrite;
  NDK_FN_SEND_AND_INVALIDATE NdkSendAndInvalidate;
};

// Completion queue.
using NDK_FN_RESIZE_CQ = NTSTATUS (*)(NDK_CQ* pNdkCq, ULONG CqDepth, NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                      PVOID RequestContext);
using NDK_FN_ARM_CQ = VOID (*)(NDK_CQ* pNdkCq, ULONG TriggerType);
using NDK_FN_GET_CQ_RESULTS = ULONG (*)(NDK_CQ* pNdkCq, NDK_RESULT Results[], ULONG nResults);
using NDK_FN_GET_CQ_RESULTS_EX = ULONG (*)(NDK_CQ* pNdkCq, NDK_RESULT_EX Results[], ULONG nResults);
using NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION = NTSTATUS (*)(NDK_CQ* pNdkCq, ULONG ModerationInterval,
                                                            ULONG ModerationCount);

struct NDK_CQ_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseCq;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_RESIZE_CQ NdkResizeCq;
  NDK_FN_ARM_CQ NdkArmCq;
  NDK_FN_GET_CQ_RESULTS NdkGetCqResults;
  NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION NdkControlCqInterruptModeration;
  NDK_FN_GET_CQ_RESULTS_EX NdkGetCqResultsEx;
};

// Shared receive queue.
using NDK_FN_MODIFY_SRQ = NTSTATUS (*)(NDK_SRQ* pNdkSrq, ULONG SrqDepth, ULONG NotifyThreshold,
                                       NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext);
using NDK_FN_SRQ_RECEIVE = NTSTATUS (*)(NDK_SRQ* pNdkSrq, PVOID RequestContext, const NDK_SGE* pSgl, ULONG nSge);

struct NDK_SRQ_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseSrq;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_MODIFY_SRQ NdkModifySrq;
  NDK_FN_SRQ_RECEIVE NdkSrqReceive;
};

// Connector.
using NDK_FN_CONNECT = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector, NDK_QP* pNdkQp, const SOCKADDR* pSrcAddress,
                                    ULONG SrcAddressLength, const SOCKADDR* pDestAddress, ULONG DestAddressLength,
                                    ULONG InboundReadLimit, ULONG OutboundReadLimit, const void* pPrivateData,
                                    ULONG PrivateDataLength, NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                    PVOID RequestContext);
using NDK_FN_CONNECT_WITH_SHARED_ENDPOINT = NTSTATUS (*)(
    NDK_CONNECTOR* pNdkConnector, NDK_QP* pNdkQp, NDK_SHARED_ENDPOINT* pNdkSharedEndpoint, const SOCKADDR* pDestAddress,
    ULONG DestAddressLength, ULONG InboundReadLimit, ULONG OutboundReadLimit, const void* pPrivateData,
    ULONG PrivateDataLength, NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext);
using NDK_FN_COMPLETE_CONNECT = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector,
                                             NDK_FN_DISCONNECT_EVENT_CALLBACK DisconnectEvent,
                                             PVOID DisconnectEventContext, NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                             PVOID RequestContext);
using NDK_FN_ACCEPT = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector, NDK_QP* pNdkQp, ULONG InboundReadLimit,
                                   ULONG OutboundReadLimit, const void* pPrivateData, ULONG PrivateDataLength,
                                   NDK_FN_DISCONNECT_EVENT_CALLBACK DisconnectEvent, PVOID DisconnectEventContext,
                                   NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext);
using NDK_FN_REJECT = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector, const void* pPrivateData, ULONG PrivateDataLength,
                                   NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext);
using NDK_FN_GET_CONNECTION_DATA = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector, ULONG* pInboundReadLimit,
                                                ULONG* pOutboundReadLimit, PVOID pPrivateData,
                                                ULONG* pPrivateDataLength);
using NDK_FN_GET_LOCAL_ADDRESS = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector, PSOCKADDR pAddress, ULONG* pAddressLength);
using NDK_FN_GET_PEER_ADDRESS = NDK_FN_GET_LOCAL_ADDRESS;
using NDK_FN_DISCONNECT = NTSTATUS (*)(NDK_CONNECTOR* pNdkConnector, NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                       PVOID RequestContext);

struct NDK_CONNECTOR_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseConnector;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_CONNECT NdkConnect;
  NDK_FN_CONNECT_WITH_SHARED_ENDPOINT NdkConnectWithSharedEndpoint;
  NDK_FN_COMPLETE_CONNECT NdkCompleteConnect;
  NDK_FN_ACCEPT NdkAccept;
  NDK_FN_REJECT NdkReject;
  NDK_FN_GET_CONNECTION_DATA NdkGetConnectionData;
  NDK_FN_GET_LOCAL_ADDRESS NdkGetLocalAddress;
  NDK_FN_GET_PEER_ADDRESS NdkGetPeerAddress;
  NDK_FN_DISCONNECT NdkDisconnect;
};

// Listener.
using NDK_FN_LISTEN = NTSTATUS (*)(NDK_LISTENER* pNdkListener, const SOCKADDR* pAddress, ULONG AddressLength,
                                   NDK_FN_REQUEST_COMPLETION RequestCompletion, PVOID RequestContext);
using NDK_FN_GET_LISTENER_LOCAL_ADDRESS = NTSTATUS (*)(NDK_LISTENER* pNdkListener, PSOCKADDR pAddress,
                                                       ULONG* pAddressLength);
using NDK_FN_CONTROL_CONNECT_EVENTS = VOID (*)(NDK_LISTENER* pNdkListener, BOOLEAN Pause);

struct NDK_LISTENER_DISPATCH {
  NDK_FN_CLOSE_OBJECT NdkCloseListener;
  NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtensionInterface;
  NDK_FN_LISTEN NdkListen;
  NDK_FN_GET_LISTENER_LOCAL_ADDRESS NdkGetLocalAddress;
  NDK_FN_CONTROL_CONNECT_EVENTS NdkControlConnectEvents;
};
