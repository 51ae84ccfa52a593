#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <wdm.h>

#include <ndkconsumer.h>

/// What a consumer of the kernel provider interface begins with: a protection domain, a completion queue, a queue pair,
/// and a connection of it. Calls that are pending are waited for, as at PASSIVE_LEVEL they may be. Everything that
/// fails ends the consumer with one line on the error output, and exit code 1.
namespace examples {

[[noreturn]] void fail(const std::string& what);
/// STATUS_SUCCESS, or the end.
void require_status(NTSTATUS status, const char* what);
/// Microseconds of the machine's time.
[[nodiscard]] double kernel_now_us();

/// A call that completes by a callback.
class Completion {
 public:
  Completion() { KeInitializeEvent(&event_, SynchronizationEvent, FALSE); }
  Completion(const Completion&) = delete;
  Completion& operator=(const Completion&) = delete;

  /// NDK_FN_REQUEST_COMPLETION, NDK_FN_CREATE_COMPLETION, NDK_FN_CLOSE_COMPLETION, NDK_FN_DISCONNECT_EVENT_CALLBACK,
  /// with the object as context.
  static VOID done(PVOID self, NTSTATUS status);
  static VOID made(PVOID self, NTSTATUS status, NDK_OBJECT_HEADER* object);
  static VOID closed(PVOID self) { done(self, STATUS_SUCCESS); }

  /// What became of a call that has answered `status`.
  NTSTATUS wait(NTSTATUS status = STATUS_PENDING);
  [[nodiscard]] NDK_OBJECT_HEADER* object() const { return object_; }

 private:
  KEVENT event_;
  NTSTATUS status_ = STATUS_PENDING;
  NDK_OBJECT_HEADER* object_ = nullptr;
};

/// Memory of whole pages with a region over all of it.
struct KernelMemory {
  std::uint8_t* bytes = nullptr;
  NDK_MR* region = nullptr;
  UINT32 token = 0;  ///< Of this side

  [[nodiscard]] NDK_SGE part(std::size_t offset, std::size_t length) const;
};

class KernelSession {
 public:
  /// Requests of each kind find room for `depth`, completions for all of them.
  KernelSession(NDK_ADAPTER* adapter, ULONG depth);
  /// Closes what is open.
  ~KernelSession();
  KernelSession(const KernelSession&) = delete;
  KernelSession& operator=(const KernelSession&) = delete;

  [[nodiscard]] NDK_QP* pair() { return qp_; }
  [[nodiscard]] NDK_PD* domain() { return pd_; }
  [[nodiscard]] NDK_ADAPTER* adapter() { return adapter_; }

  [[nodiscard]] KernelMemory allocate(std::size_t bytes, ULONG flags);
  void release(KernelMemory& memory);

  /// Server: takes one connection at this address.
  void accept(const SOCKADDR* own, ULONG bytes);
  void connect(const SOCKADDR* own, const SOCKADDR* peer, ULONG bytes);
  /// Waits until the connection has ended, as it does when a request fails.
  void wait_for_end();

  /// The next completion, by polling; it was a success.
  NDK_RESULT_EX poll();
  /// The same; it may be a failure.
  NDK_RESULT_EX poll_any();

  /// A Create call, finished; `what` names it. The call gets the callback, its context, and where the object goes.
  template <typename Object, typename Call>
  static Object* make(const char* what, Call&& call) {
    Completion completion;
    Object* made = nullptr;
    require_status(completion.wait(call(Completion::made, &completion, &made)), what);
    return completion.object() != nullptr ? reinterpret_cast<Object*>(completion.object()) : made;
  }
  /// A call with a request completion, finished.
  template <typename Call>
  static void finish(const char* what, Call&& call) {
    Completion completion;
    require_status(completion.wait(call(Completion::done, &completion)), what);
  }
  static void close(NDK_OBJECT_HEADER* object, NDK_FN_CLOSE_OBJECT call);

 private:
  static VOID asked(PVOID self, NDK_CONNECTOR* connector);

  NDK_ADAPTER* const adapter_;
  NDK_PD* pd_ = nullptr;
  NDK_CQ* cq_ = nullptr;
  NDK_QP* qp_ = nullptr;
  NDK_LISTENER* listener_ = nullptr;
  NDK_CONNECTOR* connector_ = nullptr;
  KEVENT asked_;
  Completion left_;  ///< The peer has ended the connection
};

}  // namespace examples
