#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <utility>

#include "driver/nd2/ndspi.h"

namespace rnic::nd2 {

/// Objects of all classes, of clients or held by others (DllCanUnloadNow).
inline std::atomic<std::size_t> live_objects{};

/// IUnknown for an implementation of `Interface`.
///
/// The client's references are counted apart from the object's life: the last Release returns 0 and calls
/// on_final_release, while other objects may still hold the object by shared_ptr. So clients may release parents
/// before children.
///
/// `Self` has: kInterface, the IID of `Interface`; on_final_release().
template <typename Interface, typename Self>
class ComObject : public Interface, public std::enable_shared_from_this<Self> {
 public:
  ComObject() { ++live_objects; }
  ComObject(const ComObject&) = delete;
  ComObject& operator=(const ComObject&) = delete;
  virtual ~ComObject() { --live_objects; }

  HRESULT QueryInterface(REFIID iid, void** object) override {
    if (object == nullptr) return E_POINTER;
    *object = nullptr;
    if (iid == class_iid()) {
      *object = static_cast<Self*>(this);
    } else if (iid == IID_IUnknown || iid == Self::kInterface ||
               (std::is_base_of_v<IND2Overlapped, Interface> && iid == IID_IND2Overlapped)) {
      *object = static_cast<Interface*>(this);
    } else {
      return E_NOINTERFACE;
    }
    this->AddRef();
    return S_OK;
  }

  ULONG AddRef() override { return references_.fetch_add(1) + 1; }

  ULONG Release() override {
    const ULONG left = references_.fetch_sub(1) - 1;
    if (left == 0) {
      const std::shared_ptr<Self> self = std::move(self_);
      self->on_final_release();
    }
    return left;
  }

  /// Gives `object` to the client with one reference. The interface asked for must be `Interface` or IUnknown.
  static HRESULT hand_out(std::shared_ptr<Self> object, REFIID iid, void** to) {
    if (to == nullptr) return E_POINTER;
    *to = nullptr;
    if (iid != Self::kInterface && iid != IID_IUnknown) return E_NOINTERFACE;
    Self& self = *object;
    self.references_ = 1;
    self.self_ = std::move(object);
    *to = static_cast<Interface*>(&self);
    return ND_SUCCESS;
  }

  /// The IID by which the driver finds the implementation behind an IUnknown of a client. It holds an address that
  /// belongs to this class alone, so no two classes can have the same.
  static IID class_iid() {
    static const char own = 0;
    const auto address = reinterpret_cast<std::uintptr_t>(&own);
    IID iid{0x7C0D0D63, 0x2E1C, 0x4E0B, {}};
    std::memcpy(iid.Data4, &address, sizeof address);
    return iid;
  }

  /// The implementation behind a client's interface pointer; null if it is of another class or another provider.
  static std::shared_ptr<Self> find(IUnknown* unknown) {
    void* object = nullptr;
    if (unknown == nullptr || FAILED(unknown->QueryInterface(class_iid(), &object))) return nullptr;
    auto self = static_cast<Self*>(object)->shared_from_this();
    unknown->Release();
    return self;
  }

 private:
  std::atomic<ULONG> references_{0};
  std::shared_ptr<Self> self_;
};

/// Runs the body of an API function. Lack of memory becomes its status for that (decisions 59); the driver throws
/// nothing else, and what else passes belongs to whoever ends the thread (the unwinding of a thread that is cancelled,
/// or of a simulated one).
template <typename Body>
HRESULT guarded(Body&& body, HRESULT no_memory = ND_INSUFFICIENT_RESOURCES) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return no_memory;
  }
}

}  // namespace rnic::nd2
