#pragma once

#include "driver/nd2/ndspi.h"

// Helpers of NetworkDirect: from an address of this host to an adapter. All of them need NdStartup first, and answer
// ND_DEVICE_NOT_READY without. Addresses are IPv4 or IPv6; their ports are of no account. What is said of parameters is
// said by position: ND_INVALID_PARAMETER_n, for a null pointer or too few bytes.
//
// Devices: in a process of its own that of the host whose socket RNIC_HOST names (`rnic exec` sets it); in a simulated
// machine those of the host on which the calling thread runs.

/// Version 1 of the interface. No provider here has it.
struct INDAdapter;

extern "C" {

/// Counts. ND_SUCCESS, also when there is no device; ND_NO_MEMORY.
HRESULT NdStartup();
/// Takes one NdStartup back. What was opened stays open. ND_SUCCESS, ND_DEVICE_NOT_READY.
HRESULT NdCleanup();
/// Forgets which devices there are: the next call looks anew. What was opened stays open.
VOID NdFlushProviders();

/// The addresses by which adapters can be had, without those that `flags` (ND_QUERY_EXCLUDE_...) leave out. ND_SUCCESS
/// (with the bytes used; 0 if there are no addresses); ND_BUFFER_OVERFLOW (with the bytes needed; null is a buffer of
/// none); ND_INVALID_PARAMETER_1 (other flags), _3; ND_NO_MEMORY.
HRESULT NdQueryAddressList(DWORD flags, SOCKET_ADDRESS_LIST* list, SIZE_T* bytes);
/// The local address from which `remote` is reached, with port 0. ND_SUCCESS; ND_BUFFER_OVERFLOW (with the bytes
/// needed); ND_INVALID_ADDRESS (of another family, or none at all); ND_NETWORK_UNREACHABLE (no device has an address of
/// the family); ND_UNSUCCESSFUL (a device does not answer); ND_INVALID_PARAMETER_1, _2, _4; ND_NO_MEMORY.
HRESULT NdResolveAddress(const sockaddr* remote, SIZE_T remote_bytes, sockaddr* local, SIZE_T* local_bytes);
/// Whether an adapter can be had by this address. ND_SUCCESS, ND_INVALID_ADDRESS, ND_INVALID_PARAMETER_1, _2,
/// ND_NO_MEMORY.
HRESULT NdCheckAddress(const sockaddr* address, SIZE_T bytes);
/// Opens the adapter that has this address. ND_SUCCESS; ND_INVALID_ADDRESS; ND_INVALID_PARAMETER_2, _3; E_POINTER;
/// E_NOINTERFACE; those of IND2Provider::OpenAdapter.
HRESULT NdOpenAdapter(REFIID iid, const sockaddr* address, SIZE_T bytes, VOID** adapter);
/// ND_INVALID_ADDRESS: no adapter of version 1 has it. ND_INVALID_PARAMETER_1, _2; E_POINTER.
HRESULT NdOpenV1Adapter(const sockaddr* address, SIZE_T bytes, INDAdapter** adapter);

/// What the library of a provider exports: for CLSID_RnicProvider, IID_IND2Provider or IID_IUnknown. ND_SUCCESS,
/// CLASS_E_CLASSNOTAVAILABLE, E_NOINTERFACE (also for IClassFactory, which is version 1's way), E_POINTER,
/// ND_NO_MEMORY. Needs no NdStartup.
HRESULT DllGetClassObject(REFCLSID class_id, REFIID iid, VOID** provider);
/// S_FALSE while any object is there.
HRESULT DllCanUnloadNow();
}

inline constexpr CLSID CLSID_RnicProvider{0x4E4A1B52, 0x6C1D, 0x4C7E, {0x9B, 0x0D, 0x27, 0xE5, 0x51, 0xA8, 0x3F, 0x60}};
inline constexpr HRESULT CLASS_E_CLASSNOTAVAILABLE = static_cast<HRESULT>(0x80040111);
