#pragma once

#include <utility>

namespace rnic::testbench {

/// Owns one reference of a NetworkDirect object.
template <typename T>
class ComPtr {
 public:
  ComPtr() = default;
  explicit ComPtr(T* owned) : object_(owned) {}
  ComPtr(ComPtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  ComPtr& operator=(ComPtr&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~ComPtr() { reset(); }

  /// Gives the reference back; the number that is left.
  unsigned release() { return object_ ? std::exchange(object_, nullptr)->Release() : 0; }
  void reset() {
    if (object_) std::exchange(object_, nullptr)->Release();
  }
  [[nodiscard]] T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// For the last parameter of a Create function.
  void** put() {
    reset();
    return reinterpret_cast<void**>(&object_);
  }

 private:
  T* object_ = nullptr;
};

}  // namespace rnic::testbench
