#pragma once

#include <memory>
#include <utility>

#include "driver/umd/process_context.hpp"

namespace rnic::umd {

/// Owns an object of the kernel driver, by its handle. Keeps the context.
class KernelObject {
 public:
  KernelObject(const KernelObject&) = delete;
  KernelObject& operator=(const KernelObject&) = delete;

  [[nodiscard]] calls::Handle handle() const { return handle_; }

  /// Destroys it now; the destructor then does nothing. Errors: kBusy (others refer to it; it stays), those of the
  /// admin queue. Succeeds when the device has failed.
  [[nodiscard]] Result<void> destroy() { return destroy(false); }
  /// The same, and what would make it busy is given up with it (calls::Destroy, when_unbound).
  [[nodiscard]] Result<void> destroy_with_ties() { return destroy(true); }

  /// Makes the object and what stands for it in the process: `Object(context, answer)`, and its begin(), which may
  /// fail.
  template <typename Object, typename Request>
  static Result<std::unique_ptr<Object>> make(ProcessContext& context, const Request& request) {
    return or_out_of_memory([&]() -> Result<std::unique_ptr<Object>> {
      // Room first: what the kernel driver has made must not be lost.
      std::unique_ptr<Object> object(new Object(context.shared_from_this()));
      auto answer = context.call(request);
      if (!answer) return answer.error();
      if (auto begun = object->begin(request, *answer); !begun) return begun.error();
      return object;
    });
  }

 protected:
  KernelObject(std::shared_ptr<ProcessContext> context, calls::ObjectKind kind)
      : context_(std::move(context)), kind_(kind) {}
  ~KernelObject() {
    // What others still refer to goes with the client.
    static_cast<void>(destroy(kind_ == calls::ObjectKind::kMr || kind_ == calls::ObjectKind::kQp).ok());
  }

  void is(calls::Handle handle) { handle_ = handle; }
  [[nodiscard]] ProcessContext& context() const { return *context_; }
  [[nodiscard]] const std::shared_ptr<ProcessContext>& shared_context() const { return context_; }
  [[nodiscard]] calls::ObjectKind kind() const { return kind_; }

 private:
  Result<void> destroy(bool when_unbound) {
    if (handle_ == 0) return {};
    auto done = context_->call(
        calls::Destroy{.object = handle_, .kind = static_cast<std::uint8_t>(kind_), .when_unbound = when_unbound});
    if (!done) return done.error();
    handle_ = 0;
    return {};
  }

  const std::shared_ptr<ProcessContext> context_;
  const calls::ObjectKind kind_;
  calls::Handle handle_{};
};

}  // namespace rnic::umd
