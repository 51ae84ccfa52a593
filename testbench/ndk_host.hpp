#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <stdexcept>

#include "driver/ndk/adapter.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/kernel_thread.hpp"

namespace rnic::testbench {

/// An adapter of the Network Direct kernel provider interface on a simulated host, with its thread; and calls of it
/// that wait for their callbacks, as a consumer at PASSIVE_LEVEL may. Made and destroyed in a thread of simulated time,
/// and everything that was made on it is closed before.
class NdkHost {
 public:
  /// Throws EndpointError.
  explicit NdkHost(Endpoint& endpoint);
  NdkHost(const NdkHost&) = delete;
  NdkHost& operator=(const NdkHost&) = delete;
  /// What was closed has ended.
  ~NdkHost();

  [[nodiscard]] Endpoint& endpoint() { return endpoint_; }
  [[nodiscard]] NDK_ADAPTER* adapter() { return adapter_.get(); }
  [[nodiscard]] ndk::Adapter& core() { return *adapter_; }

  static constexpr std::uint64_t kPatienceNs = 60'000'000'000;

  /// A call with a RequestCompletion: `call` gets the callback and its context. The final status.
  template <typename Call>
  NTSTATUS finish(Call&& call) {
    Outcome outcome{.device = &endpoint_.device()};
    const NTSTATUS status = call(completed, &outcome);
    return status == STATUS_PENDING ? wait(outcome) : status;
  }
  /// A call with a CreateCompletion; `made` is the object, or null.
  template <typename Face, typename Call>
  NTSTATUS create(Face*& made, Call&& call) {
    Outcome outcome{.device = &endpoint_.device()};
    made = nullptr;
    NTSTATUS status = call(created, &outcome, &made);
    if (status == STATUS_PENDING) {
      status = wait(outcome);
      made = reinterpret_cast<Face*>(outcome.object);
    }
    return status;
  }
  /// The same, which must succeed. Throws EndpointError.
  template <typename Face, typename Call>
  Face* make(Call&& call) {
    Face* made = nullptr;
    require_success(create(made, std::forward<Call>(call)), "creation");
    return made;
  }
  /// Closes an object, and waits for its end. Throws EndpointError.
  template <typename Face>
  void close(Face* object, NDK_FN_CLOSE_OBJECT fn) {
    Outcome outcome{.device = &endpoint_.device()};
    if (fn(&object->Header, closed, &outcome) == STATUS_PENDING) static_cast<void>(wait(outcome));
  }
  void close(NDK_PD* object) { close(object, object->Dispatch->NdkClosePd); }
  void close(NDK_CQ* object) { close(object, object->Dispatch->NdkCloseCq); }
  void close(NDK_QP* object) { close(object, object->Dispatch->NdkCloseQp); }
  void close(NDK_MR* object) { close(object, object->Dispatch->NdkCloseMr); }
  void close(NDK_MW* object) { close(object, object->Dispatch->NdkCloseMw); }
  void close(NDK_SRQ* object) { close(object, object->Dispatch->NdkCloseSrq); }
  void close(NDK_CONNECTOR* object) { close(object, object->Dispatch->NdkCloseConnector); }
  void close(NDK_LISTENER* object) { close(object, object->Dispatch->NdkCloseListener); }

  /// Waits on the machine until `done`. False: it is not, after `limit_ns`.
  bool wait_until(const std::function<bool()>& done, std::uint64_t limit_ns = kPatienceNs);

 private:
  struct Outcome {
    Device* device{};
    bool done{};
    NTSTATUS status{};
    NDK_OBJECT_HEADER* object{};
  };
  static void completed(PVOID context, NTSTATUS status);
  static void created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER* object);
  static void closed(PVOID context);
  /// Throws EndpointError: no callback came.
  NTSTATUS wait(const Outcome& outcome);

  Endpoint& endpoint_;
  std::unique_ptr<ndk::Adapter> adapter_;
  KernelThread thread_;
};

}  // namespace rnic::testbench
