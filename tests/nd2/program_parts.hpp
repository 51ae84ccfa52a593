#pragma once

#include <cstdio>
#include <cstdlib>
#include <utility>

#include <windows.h>

#include <winsock2.h>

#include <ws2tcpip.h>

#include <ndspi.h>
#include <ndsupport.h>

/// What programs to the published interfaces share: each ends at the first call that fails, with its name and status.
namespace program_parts {

inline void require(HRESULT status, const char* what) {
  if (status == ND_SUCCESS) return;
  std::printf("%s: %#010x\n", what, static_cast<unsigned>(status));
  std::fflush(stdout);
  std::_Exit(1);
}

inline sockaddr_in address_of(const char* text, USHORT port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  inet_pton(AF_INET, text, &address.sin_addr);
  return address;
}
inline const sockaddr* generic(const sockaddr_in& address) { return reinterpret_cast<const sockaddr*>(&address); }
/// From which a peer is reached, with port 0.
inline sockaddr_in own_address_for(const sockaddr_in& peer) {
  sockaddr_in own{};
  SIZE_T bytes = sizeof own;
  require(NdResolveAddress(generic(peer), sizeof peer, reinterpret_cast<sockaddr*>(&own), &bytes), "NdResolveAddress");
  return own;
}

/// A reference.
template <typename T>
class Owned {
 public:
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { end(); }
  void end() {
    T* const object = std::exchange(object_, nullptr);
    if (object != nullptr && object->Release() != 0) require(E_FAIL, "the last Release");
  }
  void** put() { return reinterpret_cast<void**>(&object_); }
  T* operator->() const { return object_; }
  T* get() const { return object_; }

 private:
  T* object_ = nullptr;
};

struct File {
  explicit File(IND2Adapter* of) { require(of->CreateOverlappedFile(&handle), "CreateOverlappedFile"); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() { CloseHandle(handle); }
  HANDLE handle = nullptr;
};

}  // namespace program_parts
