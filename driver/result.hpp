#pragma once

#include <cstdint>
#include <new>
#include <string_view>
#include <utility>
#include <variant>

namespace rnic {

/// What can go wrong inside the driver. Each API face maps this enum to its own codes in one table.
enum class Error : std::uint8_t {
  kInvalidParameter,  ///< An argument is out of range
  kAccessViolation,   ///< Memory is not mapped, or not writable
  kOutOfMemory,       ///< No host memory or DMA address space
  kOutOfResources,    ///< No free object of that kind on the device
  kQueueFull,         ///< The ring holds as many requests as it was granted
  kTooManySegments,   ///< More scatter/gather entries than the queue was granted
  kMessageTooLong,    ///< More bytes than the device, or the inline space of the queue, can carry
  kInvalidState,      ///< Not legal in the present state of the object
  kBusy,              ///< Other objects refer to it
  kTooSmall,          ///< More is there than would fit
  kNotFound,          ///< No such object
  kExists,            ///< The number is taken
  kNotSupported,      ///< The device or the driver has no such feature
  kTimeout,           ///< The device did not answer in time
  kDeviceNotFound,    ///< Not this kind of device, or a register block is missing
  kVersionMismatch,   ///< A register block has a version the driver does not know
  kDeviceFailed,      ///< The device reports a fatal error, or broke the protocol
};

[[nodiscard]] std::string_view describe(Error error);

/// Value or error. Errors are returned, never thrown: no exception may cross an API of the driver.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, error) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  /// Precondition of value(), * and ->: ok(). Precondition of error(): !ok().
  [[nodiscard]] T& value() { return *std::get_if<0>(&state_); }
  [[nodiscard]] const T& value() const { return *std::get_if<0>(&state_); }
  [[nodiscard]] T take() { return std::move(value()); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }
  [[nodiscard]] Error error() const { return *std::get_if<1>(&state_); }

 private:
  std::variant<T, Error> state_;
};

/// Success or error.
template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(error) {}

  [[nodiscard]] bool ok() const { return error_ == kNone; }
  explicit operator bool() const { return ok(); }
  /// Precondition: !ok().
  [[nodiscard]] Error error() const { return error_; }

 private:
  static constexpr auto kNone = static_cast<Error>(0xFF);

  Error error_ = kNone;  ///< One byte, so that it travels in a register
};

/// Runs `body`, which returns a Result; a lack of memory inside becomes kOutOfMemory.
template <typename Body>
auto or_out_of_memory(Body&& body) -> decltype(body()) {
  try {
    return std::forward<Body>(body)();
  } catch (const std::bad_alloc&) {
    return Error::kOutOfMemory;
  }
}

}  // namespace rnic
