#pragma once

#include "driver/nd2/nddef.h"
#include "driver/nd2/ndstatus.h"
#include "driver/nd2/ndtypes.h"

// Interfaces of the NetworkDirect version 2 service provider. The order of the functions and the identifiers are the
// binary interface. All functions return an HRESULT of ndstatus.h unless shown otherwise; "overlapped" functions pend
// and complete through the OVERLAPPED's event or the overlapped file's completion port.

inline constexpr IID IID_IND2Overlapped{
    0xABF72719, 0xB016, 0x4A40, {0xA6, 0xF7, 0x62, 0x27, 0x91, 0xA7, 0x04, 0x4C}};
inline constexpr IID IID_IND2CompletionQueue{
    0x20CC445E, 0x64A0, 0x4CBB, {0xAA, 0x75, 0xF6, 0xA7, 0x25, 0x1F, 0xDA, 0x9E}};
inline constexpr IID IID_IND2SharedReceiveQueue{
    0xAABD67DC, 0x459A, 0x4DB1, {0x82, 0x6B, 0x56, 0xCF, 0xCC, 0x27, 0x88, 0x83}};
inline constexpr IID IID_IND2MemoryWindow{
    0x070FE1F5, 0x0AB5, 0x4361, {0x88, 0xDB, 0x97, 0x4B, 0xA7, 0x04, 0xD4, 0xB9}};
inline constexpr IID IID_IND2MemoryRegion{
    0x55DFEA2F, 0xBC56, 0x4982, {0x8A, 0x45, 0x03, 0x01, 0xBE, 0x46, 0xC4, 0x13}};
inline constexpr IID IID_IND2QueuePair{
    0xEEF2F332, 0xB75D, 0x4063, {0xBC, 0xE3, 0x3A, 0x0B, 0xAD, 0x2D, 0x02, 0xCE}};
inline constexpr IID IID_IND2Connector{
    0x7DD615C4, 0x6B4C, 0x4866, {0x95, 0x0C, 0xF3, 0xB1, 0xD2, 0x5A, 0x53, 0x02}};
inline constexpr IID IID_IND2Listener{
    0x65D23D83, 0x3A57, 0x4E02, {0x86, 0xA4, 0x35, 0x01, 0x65, 0xC2, 0xD1, 0x30}};
inline constexpr IID IID_IND2Adapter{
    0xD89C798C, 0x4823, 0x4D69, {0x84, 0x6C, 0xDF, 0xDC, 0xCF, 0xF9, 0xE5, 0xF3}};
inline constexpr IID IID_IND2Provider{
    0x49EAE6C1, 0x76C4, 0x46D0, {0x80, 0x03, 0x5C, 0x2E, 0xAA, 0x2C, 0x9A, 0x8E}};

class IND2Overlapped : public IUnknown {
 public:
  virtual HRESULT CancelOverlappedRequests() = 0;
  /// The request's status: ND_PENDING while it is not finished (with `wait`, blocks; needs an event then).
  virtual HRESULT GetOverlappedResult(OVERLAPPED* pOverlapped, BOOL wait) = 0;

 protected:
  ~IND2Overlapped() = default;
};

class IND2CompletionQueue : public IND2Overlapped {
 public:
  virtual HRESULT GetNotifyAffinity(USHORT* pGroup, KAFFINITY* pAffinity) = 0;
  virtual HRESULT Resize(ULONG queueDepth) = 0;
  virtual HRESULT Notify(ULONG type, OVERLAPPED* pOverlapped) = 0;
  virtual ULONG GetResults(ND2_RESULT results[], ULONG nResults) = 0;

 protected:
  ~IND2CompletionQueue() = default;
};

class IND2SharedReceiveQueue : public IND2Overlapped {
 public:
  virtual HRESULT GetNotifyAffinity(USHORT* pGroup, KAFFINITY* pAffinity) = 0;
  virtual HRESULT Modify(ULONG queueDepth, ULONG notifyThreshold) = 0;
  virtual HRESULT Notify(OVERLAPPED* pOverlapped) = 0;
  virtual HRESULT Receive(VOID* requestContext, const ND2_SGE sge[], ULONG nSge) = 0;

 protected:
  ~IND2SharedReceiveQueue() = default;
};

class IND2MemoryWindow : public IUnknown {
 public:
  virtual UINT32 GetRemoteToken() = 0;

 protected:
  ~IND2MemoryWindow() = default;
};

class IND2MemoryRegion : public IND2Overlapped {
 public:
  virtual HRESULT Register(const VOID* pBuffer, SIZE_T cbBuffer, ULONG flags, OVERLAPPED* pOverlapped) = 0;
  virtual HRESULT Deregister(OVERLAPPED* pOverlapped) = 0;
  /// Host order; 0 while nothing is registered.
  virtual UINT32 GetLocalToken() = 0;
  /// Network order, opaque; 0 while nothing is registered.
  virtual UINT32 GetRemoteToken() = 0;

 protected:
  ~IND2MemoryRegion() = default;
};

class IND2QueuePair : public IUnknown {
 public:
  virtual HRESULT Flush() = 0;
  virtual HRESULT Send(VOID* requestContext, const ND2_SGE sge[], ULONG nSge, ULONG flags) = 0;
  virtual HRESULT Receive(VOID* requestContext, const ND2_SGE sge[], ULONG nSge) = 0;
  virtual HRESULT Bind(VOID* requestContext, IUnknown* pMemoryRegion, IUnknown* pMemoryWindow,
                       const VOID* pBuffer, SIZE_T cbBuffer, ULONG flags) = 0;
  virtual HRESULT Invalidate(VOID* requestContext, IUnknown* pMemoryWindow, ULONG flags) = 0;
  virtual HRESULT Read(VOID* requestContext, const ND2_SGE sge[], ULONG nSge, UINT64 remoteAddress,
                       UINT32 remoteToken, ULONG flags) = 0;
  virtual HRESULT Write(VOID* requestContext, const ND2_SGE sge[], ULONG nSge, UINT64 remoteAddress,
                        UINT32 remoteToken, ULONG flags) = 0;

 protected:
  ~IND2QueuePair() = default;
};

class IND2Connector : public IND2Overlapped {
 public:
  virtual HRESULT Bind(const sockaddr* pAddress, ULONG cbAddress) = 0;
  virtual HRESULT Connect(IUnknown* pQueuePair, const sockaddr* pDestAddress, ULONG cbDestAddress,
                          ULONG inboundReadLimit, ULONG outboundReadLimit, const VOID* pPrivateData,
                          ULONG cbPrivateData, OVERLAPPED* pOverlapped) = 0;
  virtual HRESULT CompleteConnect(OVERLAPPED* pOverlapped) = 0;
  virtual HRESULT Accept(IUnknown* pQueuePair, ULONG inboundReadLimit, ULONG outboundReadLimit,
                         const VOID* pPrivateData, ULONG cbPrivateData, OVERLAPPED* pOverlapped) = 0;
  virtual HRESULT Reject(const VOID* pPrivateData, ULONG cbPrivateData) = 0;
  virtual HRESULT GetReadLimits(ULONG* pInboundReadLimit, ULONG* pOutboundReadLimit) = 0;
  virtual HRESULT GetPrivateData(VOID* pPrivateData, ULONG* pcbPrivateData) = 0;
  virtual HRESULT GetLocalAddress(sockaddr* pAddress, ULONG* pcbAddress) = 0;
  virtual HRESULT GetPeerAddress(sockaddr* pAddress, ULONG* pcbAddress) = 0;
  virtual HRESULT NotifyDisconnect(OVERLAPPED* pOverlapped) = 0;
  virtual HRESULT Disconnect(OVERLAPPED* pOverlapped) = 0;

 protected:
  ~IND2Connector() = default;
};

class IND2Listener : public IND2Overlapped {
 public:
  virtual HRESULT Bind(const sockaddr* pAddress, ULONG cbAddress) = 0;
  virtual HRESULT Listen(ULONG backlog) = 0;
  virtual HRESULT GetLocalAddress(sockaddr* pAddress, ULONG* pcbAddress) = 0;
  virtual HRESULT GetConnectionRequest(IUnknown* pConnector, OVERLAPPED* pOverlapped) = 0;

 protected:
  ~IND2Listener() = default;
};

class IND2Adapter : public IUnknown {
 public:
  virtual HRESULT CreateOverlappedFile(HANDLE* phOverlappedFile) = 0;
  virtual HRESULT Query(ND2_ADAPTER_INFO* pInfo, ULONG* pcbInfo) = 0;
  virtual HRESULT QueryAddressList(SOCKET_ADDRESS_LIST* pAddressList, ULONG* pcbAddressList) = 0;
  virtual HRESULT CreateCompletionQueue(REFIID iid, HANDLE hOverlappedFile, ULONG queueDepth, USHORT group,
                                        KAFFINITY affinity, VOID** ppCompletionQueue) = 0;
  virtual HRESULT CreateMemoryRegion(REFIID iid, HANDLE hOverlappedFile, VOID** ppMemoryRegion) = 0;
  virtual HRESULT CreateMemoryWindow(REFIID iid, VOID** ppMemoryWindow) = 0;
  virtual HRESULT CreateSharedReceiveQueue(REFIID iid, HANDLE hOverlappedFile, ULONG queueDepth,
                                           ULONG maxRequestSge, ULONG notifyThreshold, USHORT group,
                                           KAFFINITY affinity, VOID** ppSharedReceiveQueue) = 0;
  virtual HRESULT CreateQueuePair(REFIID iid, IUnknown* pReceiveCompletionQueue,
                                  IUnknown* pInitiatorCompletionQueue, VOID* context, ULONG receiveQueueDepth,
                                  ULONG initiatorQueueDepth, ULONG maxReceiveRequestSge,
                                  ULONG maxInitiatorRequestSge, ULONG inlineDataSize, VOID** ppQueuePair) = 0;
  virtual HRESULT CreateQueuePairWithSrq(REFIID iid, IUnknown* pReceiveCompletionQueue,
                                         IUnknown* pInitiatorCompletionQueue, IUnknown* pSharedReceiveQueue,
                                         VOID* context, ULONG initiatorQueueDepth, ULONG maxInitiatorRequestSge,
                                         ULONG inlineDataSize, VOID** ppQueuePair) = 0;
  virtual HRESULT CreateConnector(REFIID iid, HANDLE hOverlappedFile, VOID** ppConnector) = 0;
  virtual HRESULT CreateListener(REFIID iid, HANDLE hOverlappedFile, VOID** ppListener) = 0;

 protected:
  ~IND2Adapter() = default;
};

class IND2Provider : public IUnknown {
 public:
  virtual HRESULT QueryAddressList(SOCKET_ADDRESS_LIST* pAddressList, ULONG* pcbAddressList) = 0;
  virtual HRESULT ResolveAddress(const sockaddr* pAddress, ULONG cbAddress, UINT64* pAdapterId) = 0;
  virtual HRESULT OpenAdapter(REFIID iid, UINT64 adapterId, VOID** ppAdapter) = 0;

 protected:
  ~IND2Provider() = default;
};
