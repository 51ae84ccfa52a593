#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "driver/ndk/ndkpi.h"
#include "driver/ndk/worker.hpp"

namespace rnic::ndk {

/// How long the objects of the interface live. Each has a hold of its consumer, one of each object that needs it, and
/// one of each request that is under way on it. Close gives up the consumer's; with the last hold the object ends, on
/// the worker: its end is told, and then those that it needed may end (NDKPI Object Lifetime Requirements).
class Object {
 public:
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  void hold() { holds_.fetch_add(1, std::memory_order_relaxed); }
  /// Without holds the object is no more, soon.
  void release() {
    if (holds_.fetch_sub(1, std::memory_order_acq_rel) == 1) worker_.submit(end_);
  }
  [[nodiscard]] std::uint32_t holds() const { return holds_.load(std::memory_order_acquire); }
  [[nodiscard]] Worker& worker() const { return worker_; }

  /// NDK_FN_CLOSE_OBJECT. Once. Needs no memory.
  NTSTATUS close(NDK_FN_CLOSE_COMPLETION completion, PVOID context) {
    close_completion_ = completion;
    close_context_ = context;
    begin_close();
    release();
    return STATUS_PENDING;
  }

 protected:
  explicit Object(Worker& worker) : worker_(worker), end_(*this) {}
  virtual ~Object() = default;

  /// `parent` lives as long as this object. At most four.
  void need(Object& parent) {
    parent.hold();
    parents_[parent_count_++] = &parent;
  }
  /// What does not wait for the last hold: nothing more is begun. Where Close is called; needs no memory.
  virtual void begin_close() {}
  /// On the worker: gives back what the device and the kernel driver have of it. Nothing is called afterwards.
  virtual void end() {}

 private:
  class End final : public Work {
   public:
    explicit End(Object& object) : object_(object) {}
    void run() override { object_.finish(); }

   private:
    Object& object_;
  };

  void finish() {
    end();
    const auto parents = parents_;
    const std::size_t count = parent_count_;
    const auto completion = close_completion_;
    PVOID const context = close_context_;
    delete this;
    if (completion != nullptr) completion(context);
    for (std::size_t i = 0; i < count; ++i) parents[i]->release();
  }

  Worker& worker_;
  End end_;
  std::atomic<std::uint32_t> holds_{1};
  std::array<Object*, 4> parents_{};
  std::size_t parent_count_{};
  NDK_FN_CLOSE_COMPLETION close_completion_{};
  PVOID close_context_{};
};

/// A request of the consumer that is under way on an object: holds it, and completes once.
class Request {
 public:
  Request() = default;
  Request(Object& object, NDK_FN_REQUEST_COMPLETION completion, PVOID context)
      : object_(&object), completion_(completion), context_(context) {}

  [[nodiscard]] explicit operator bool() const { return object_ != nullptr; }
  /// Tells the consumer, and lets go of the object. On the worker.
  void complete(NTSTATUS status) {
    Object* const object = std::exchange(object_, nullptr);
    if (object == nullptr) return;
    if (completion_ != nullptr) completion_(context_, status);
    object->release();
  }

 private:
  Object* object_{};
  NDK_FN_REQUEST_COMPLETION completion_{};
  PVOID context_{};
};

/// Does `body` (which returns a status) for a request on `object`, on the worker. Returns STATUS_PENDING, or
/// STATUS_INSUFFICIENT_RESOURCES: nothing will be done, and nobody called.
template <typename Body>
NTSTATUS pend(Object& object, NDK_FN_REQUEST_COMPLETION completion, PVOID context, Body&& body) {
  object.hold();
  Request request(object, completion, context);
  if (object.worker().call([request, body = std::forward<Body>(body)]() mutable { request.complete(body()); }))
    return STATUS_PENDING;
  object.release();
  return STATUS_INSUFFICIENT_RESOURCES;
}

/// The same for a creation: `body` takes a place for the header of the new object, and returns a status.
template <typename Body>
NTSTATUS pend_creation(Object& parent, NDK_FN_CREATE_COMPLETION completion, PVOID context, Body&& body) {
  parent.hold();
  const bool given = parent.worker().call([&parent, completion, context, body = std::forward<Body>(body)]() mutable {
    NDK_OBJECT_HEADER* header = nullptr;
    const NTSTATUS status = body(header);
    completion(context, status, header);
    parent.release();
  });
  if (given) return STATUS_PENDING;
  parent.release();
  return STATUS_INSUFFICIENT_RESOURCES;
}

/// What makes an object of the interface of a class: `Face` is its struct.
template <typename Face, typename Self>
class ObjectOf : public Face, public Object {
 public:
  static Self& of(Face* face) { return *static_cast<Self*>(face); }
  static const Self& of(const Face* face) { return *static_cast<const Self*>(face); }
  static Self& of(NDK_OBJECT_HEADER* header) { return of(reinterpret_cast<Face*>(header)); }
  [[nodiscard]] NDK_OBJECT_HEADER* header() { return &this->Face::Header; }

 protected:
  template <typename Dispatch>
  ObjectOf(Worker& worker, NDK_OBJECT_TYPE type, const Dispatch& dispatch)
      : Face{.Header = {.Version = NDK_VERSION_1_2, .ObjectType = type, .Reserved = {}}, .Dispatch = &dispatch},
        Object(worker) {}

 public:
  /// For the tables.
  static NTSTATUS close_object(NDK_OBJECT_HEADER* header, NDK_FN_CLOSE_COMPLETION completion, PVOID context) {
    return of(header).close(completion, context);
  }
};

/// No extension is defined.
inline NTSTATUS query_extension(NDK_OBJECT_HEADER*, const GUID*, NDK_VERSION, NDK_EXTENSION_INTERFACE*) {
  return STATUS_NOT_SUPPORTED;
}

}  // namespace rnic::ndk
