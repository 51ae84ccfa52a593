#pragma once

#include <cstdint>
#include <functional>

#include "driver/nd2/ndspi.h"
#include "testbench/verify/vector_reader.hpp"

/// Names of docs/vectors.md that more than one part of a vector uses.
namespace rnic::testbench {

template <typename E>
constexpr std::int64_t number_of(E value) {
  return static_cast<std::int64_t>(value);
}
/// Numbers of what stands in a list, by the name that `name` gives each.
template <typename List, typename Name = std::identity>
VectorReader::Names numbered(const List& list, Name name = {}) {
  VectorReader::Names names;
  for (std::size_t i = 0; i < list.size(); ++i) names[name(list[i])] = static_cast<std::int64_t>(i);
  return names;
}
inline const VectorReader::Names kRequestKinds = {{"Send", number_of(umd::RequestKind::kSend)},
                                                  {"Write", number_of(umd::RequestKind::kWrite)},
                                                  {"Read", number_of(umd::RequestKind::kRead)},
                                                  {"CompareSwap", number_of(umd::RequestKind::kCompareSwap)},
                                                  {"FetchAdd", number_of(umd::RequestKind::kFetchAdd)},
                                                  {"Receive", number_of(umd::RequestKind::kReceive)},
                                                  {"ReceiveWrite", number_of(umd::RequestKind::kReceiveWrite)},
                                                  {"Bind", number_of(umd::RequestKind::kBind)},
                                                  {"Invalidate", number_of(umd::RequestKind::kInvalidate)},
                                                  {"FastRegister", number_of(umd::RequestKind::kFastRegister)}};
inline const VectorReader::Names kStatuses = {
    {"ND_SUCCESS", ND_SUCCESS},
    {"ND_PENDING", ND_PENDING},
    {"ND_TIMEOUT", ND_TIMEOUT},
    {"ND_BUFFER_OVERFLOW", ND_BUFFER_OVERFLOW},
    {"ND_DEVICE_BUSY", ND_DEVICE_BUSY},
    {"ND_NO_MORE_ENTRIES", ND_NO_MORE_ENTRIES},
    {"ND_ACCESS_VIOLATION", ND_ACCESS_VIOLATION},
    {"ND_INVALID_PARAMETER", ND_INVALID_PARAMETER},
    {"ND_INVALID_DEVICE_REQUEST", ND_INVALID_DEVICE_REQUEST},
    {"ND_DATA_OVERRUN", ND_DATA_OVERRUN},
    {"ND_INSUFFICIENT_RESOURCES", ND_INSUFFICIENT_RESOURCES},
    {"ND_IO_TIMEOUT", ND_IO_TIMEOUT},
    {"ND_NOT_SUPPORTED", ND_NOT_SUPPORTED},
    {"ND_INTERNAL_ERROR", ND_INTERNAL_ERROR},
    {"ND_INVALID_PARAMETER_3", ND_INVALID_PARAMETER_3},
    {"ND_INVALID_PARAMETER_4", ND_INVALID_PARAMETER_4},
    {"ND_INVALID_PARAMETER_2", ND_INVALID_PARAMETER_2},
    {"ND_INVALID_PARAMETER_6", ND_INVALID_PARAMETER_6},
    {"ND_CANCELED", ND_CANCELED},
    {"ND_REMOTE_ERROR", ND_REMOTE_ERROR},
    {"ND_INVALID_BUFFER_SIZE", ND_INVALID_BUFFER_SIZE},
    {"ND_CONNECTION_INVALID", ND_CONNECTION_INVALID},
    {"ND_INVALID_DEVICE_STATE", ND_INVALID_DEVICE_STATE},
    {"ND_INVALID_PARAMETER_1", ND_INVALID_PARAMETER_1},
    {"ND_INVALID_PARAMETER_5", ND_INVALID_PARAMETER_5},
    {"ND_NO_MEMORY", ND_NO_MEMORY},
    {"ND_DEVICE_REMOVED", ND_DEVICE_REMOVED},
    {"ND_INVALID_HANDLE", ND_INVALID_HANDLE},
    {"ND_CONNECTION_REFUSED", ND_CONNECTION_REFUSED},
    {"ND_CONNECTION_ABORTED", ND_CONNECTION_ABORTED},
    {"ND_CONNECTION_ACTIVE", ND_CONNECTION_ACTIVE},
    {"ND_NETWORK_UNREACHABLE", ND_NETWORK_UNREACHABLE},
    {"ND_HOST_UNREACHABLE", ND_HOST_UNREACHABLE},
    {"ND_SHARING_VIOLATION", ND_SHARING_VIOLATION},
    {"ND_INVALID_ADDRESS", ND_INVALID_ADDRESS},
    // NTSTATUS values that NetworkDirect has no names for.
    {"STATUS_BAD_NETWORK_NAME", static_cast<std::int32_t>(0xC00000CC)},
    {"STATUS_ADDRESS_ALREADY_ASSOCIATED", static_cast<std::int32_t>(0xC0000238)},
    {"E_NOINTERFACE", E_NOINTERFACE},
    {"E_POINTER", E_POINTER}};
inline constexpr std::uint32_t kRemoteAtomic = 1u << 31;  // not a flag of NetworkDirect, which has no atomics
inline const VectorReader::Names kRegionFlags = {{"LOCAL_WRITE", ND_MR_FLAG_ALLOW_LOCAL_WRITE},
                                                 {"REMOTE_READ", ND_MR_FLAG_ALLOW_REMOTE_READ},
                                                 {"REMOTE_WRITE", ND_MR_FLAG_ALLOW_REMOTE_WRITE},
                                                 {"READ_SINK", ND_MR_FLAG_RDMA_READ_SINK}};
inline const VectorReader::Names kAtomicFlags = {{"LOCAL_WRITE", ND_MR_FLAG_ALLOW_LOCAL_WRITE},
                                                 {"REMOTE_READ", ND_MR_FLAG_ALLOW_REMOTE_READ},
                                                 {"REMOTE_WRITE", ND_MR_FLAG_ALLOW_REMOTE_WRITE},
                                                 {"READ_SINK", ND_MR_FLAG_RDMA_READ_SINK},
                                                 {"REMOTE_ATOMIC", kRemoteAtomic}};
inline const VectorReader::Names kCqeStatuses = {{"Success", number_of(hw::CqeStatus::kSuccess)},
                                                 {"LocLenErr", number_of(hw::CqeStatus::kLocLenErr)},
                                                 {"LocQpOpErr", number_of(hw::CqeStatus::kLocQpOpErr)},
                                                 {"LocProtErr", number_of(hw::CqeStatus::kLocProtErr)},
                                                 {"WrFlushErr", number_of(hw::CqeStatus::kWrFlushErr)},
                                                 {"BadRespErr", number_of(hw::CqeStatus::kBadRespErr)},
                                                 {"RemInvReqErr", number_of(hw::CqeStatus::kRemInvReqErr)},
                                                 {"RemAccessErr", number_of(hw::CqeStatus::kRemAccessErr)},
                                                 {"RemOpErr", number_of(hw::CqeStatus::kRemOpErr)},
                                                 {"RetryExcErr", number_of(hw::CqeStatus::kRetryExcErr)},
                                                 {"RnrRetryExcErr", number_of(hw::CqeStatus::kRnrRetryExcErr)},
                                                 {"FatalErr", number_of(hw::CqeStatus::kFatalErr)}};
inline const VectorReader::Names kEvents = {{"CqError", number_of(hw::EqeType::kCqError)},
                                            {"QpFatal", number_of(hw::EqeType::kQpFatal)},
                                            {"QpRequestError", number_of(hw::EqeType::kQpRequestError)},
                                            {"QpAccessError", number_of(hw::EqeType::kQpAccessError)},
                                            {"CommEstablished", number_of(hw::EqeType::kCommEstablished)},
                                            {"SqDrained", number_of(hw::EqeType::kSqDrained)},
                                            {"DeviceFatal", number_of(hw::EqeType::kDeviceFatal)},
                                            {"PortActive", number_of(hw::EqeType::kPortActive)},
                                            {"PortError", number_of(hw::EqeType::kPortError)},
                                            {"SrqError", number_of(hw::EqeType::kSrqError)},
                                            {"SrqLimit", number_of(hw::EqeType::kSrqLimit)},
                                            {"LastWqeReached", number_of(hw::EqeType::kLastWqeReached)}};
inline const VectorReader::Names kHosts = {{"A", 0}, {"B", 1}};
/// How a host may answer each DMA read of some memory (PCI Express base specification 2.2.9, 2.7.2, 2.8), as scenarios
/// name it.
inline const VectorReader::Names kReadFaults = [] {
  VectorReader::Names names;
  for (const auto fault :
       {model::PcieFault::kUnsupportedRequest, model::PcieFault::kCompleterAbort, model::PcieFault::kPoisoned,
        model::PcieFault::kTimeout, model::PcieFault::kWrongBoundary, model::PcieFault::kWrongByteCount,
        model::PcieFault::kWrongLowerAddress, model::PcieFault::kTooMuchData, model::PcieFault::kTooLittleData,
        model::PcieFault::kUnknownTag})
    names.emplace(model::name(fault), static_cast<std::int64_t>(fault));
  return names;
}();
/// Ranges of Device Control 2 (7.5.3.16).
inline const VectorReader::Names kCompletionTimeouts = {
    {"A1", number_of(hw::CompletionTimeoutRange::kA1)}, {"A2", number_of(hw::CompletionTimeoutRange::kA2)},
    {"B1", number_of(hw::CompletionTimeoutRange::kB1)}, {"B2", number_of(hw::CompletionTimeoutRange::kB2)},
    {"C1", number_of(hw::CompletionTimeoutRange::kC1)}, {"C2", number_of(hw::CompletionTimeoutRange::kC2)}};
inline const VectorReader::Names kFills = {{"zero", 0}, {"pattern", 1}};

}  // namespace rnic::testbench
