#pragma once

#include "driver/win32/types.h"

// The base of interfaces that are shaped like those of COM. There is nothing else of COM here.

inline constexpr IID IID_IUnknown{0x00000000, 0x0000, 0x0000, {0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};

/// Base of all interfaces. No virtual destructor: the order of virtual functions is the binary interface, and objects
/// end with their last Release.
class IUnknown {
 public:
  virtual HRESULT QueryInterface(REFIID iid, void** object) = 0;
  virtual ULONG AddRef() = 0;
  virtual ULONG Release() = 0;

 protected:
  ~IUnknown() = default;
};
