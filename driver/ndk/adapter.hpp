#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/kmd/kernel_device.hpp"
#include "driver/ndk/logical_memory.hpp"
#include "driver/ndk/object.hpp"
#include "driver/ndk/status.hpp"
#include "driver/umd/key_watch.hpp"
#include "driver/umd/process_context.hpp"

/// The Network Direct kernel provider interface (docs/ndk.md). A consumer is kernel code: what it opens is a client of
/// the kernel's own, and the pages that it names are the device's.
namespace rnic::ndk {

class FastKeys;
class EndpointUser;

/// NDK_ADAPTER. Somebody gives it a thread (run), on which everything is done that takes time, and from which every
/// callback of the consumer comes; so those of one object never overlap.
class Adapter final : public ObjectOf<NDK_ADAPTER, Adapter> {
 public:
  /// Errors: those of ProcessContext::open. Lets time pass. `kernel` outlives it.
  static Result<std::unique_ptr<Adapter>> open(kmd::KernelDevice& kernel);
  /// Everything that was opened on it has been closed, and nobody is in run() any more.
  ~Adapter() override;

  /// Works until stop(). On a thread of its own; lets time pass.
  void run();
  /// From any thread; run() returns soon.
  void stop();
  [[nodiscard]] bool running() const { return running_; }
  /// Nothing of the consumer is left on it.
  [[nodiscard]] bool idle() const { return holds() == 1; }

  [[nodiscard]] kmd::KernelDevice& kernel() { return kernel_; }
  [[nodiscard]] const std::shared_ptr<umd::ProcessContext>& context() const { return context_; }
  [[nodiscard]] LogicalMemory& logical_memory() { return *logical_memory_; }
  [[nodiscard]] const NDK_ADAPTER_INFO& info() const { return info_; }

  /// Who is told that a key of this index has been invalidated; null: nobody. Needs no memory.
  void watch_key(std::uint32_t key, std::shared_ptr<FastKeys> keys);
  /// For an invalidation of the key; null: of no fast-register region. Needs no memory.
  [[nodiscard]] std::shared_ptr<umd::KeyWatch> watch_of(std::uint32_t key);
  /// A peer has invalidated it. Needs no memory.
  void invalidated(std::uint32_t key);

  /// Events of an endpoint of the connection manager go to `user` on the worker; null: to nobody. On the worker. Throws
  /// std::bad_alloc.
  void subscribe(calls::Handle endpoint, EndpointUser* user);
  /// Channel of the endpoints.
  [[nodiscard]] calls::Handle channel() const { return channel_; }

 private:
  Adapter(kmd::KernelDevice& kernel, std::shared_ptr<umd::ProcessContext> context, std::unique_ptr<Worker> worker);
  bool take_connection_events();

  static NTSTATUS query_info(NDK_ADAPTER* adapter, NDK_ADAPTER_INFO* info, ULONG* size);
  static NTSTATUS create_shared_endpoint(NDK_ADAPTER*, const SOCKADDR*, ULONG, NDK_FN_CREATE_COMPLETION, PVOID,
                                         NDK_SHARED_ENDPOINT**);
  static NTSTATUS build_lam(NDK_ADAPTER* adapter, MDL* mdl, SIZE_T length, NDK_FN_REQUEST_COMPLETION completion,
                            PVOID context, NDK_LOGICAL_ADDRESS_MAPPING* lam, ULONG* size, ULONG* fbo);
  static VOID release_lam(NDK_ADAPTER* adapter, NDK_LOGICAL_ADDRESS_MAPPING* lam);
  static const NDK_ADAPTER_DISPATCH kDispatch;

  kmd::KernelDevice& kernel_;
  const std::shared_ptr<umd::ProcessContext> context_;
  const std::unique_ptr<Worker> own_worker_;
  NDK_ADAPTER_INFO info_;
  calls::Handle channel_{};
  std::unique_ptr<LogicalMemory> logical_memory_;
  SpinLock keys_lock_;
  std::vector<std::shared_ptr<FastKeys>> keys_;  ///< By index of the key
  std::map<calls::Handle, EndpointUser*> endpoints_;
  std::atomic<bool> stop_ = false;
  std::atomic<bool> running_ = false;
};

/// Has an endpoint of the connection manager.
class EndpointUser {
 public:
  /// On the worker.
  virtual void on_connection_event(const calls::TakeConnectionEvent::Answer& event) = 0;

 protected:
  ~EndpointUser() = default;
};

/// What an MDL chain describes, if it is one piece of memory of at least `length` bytes.
[[nodiscard]] Result<void*> memory_of(const MDL* mdl, SIZE_T length);

}  // namespace rnic::ndk
