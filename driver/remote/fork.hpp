#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "driver/result.hpp"

namespace rnic::remote {

/// Something that a child of fork lets go of before fork returns in it. The child has one thread; what it calls there
/// must not wait for others. Thread safe.
class ForkHook {
 public:
  /// Hooks run in the order in which they were made. Throws std::bad_alloc.
  explicit ForkHook(std::function<void()> in_child);
  ForkHook(const ForkHook&) = delete;
  ForkHook& operator=(const ForkHook&) = delete;
  ~ForkHook();

 private:
  std::list<std::function<void()>>::iterator place_;
};

/// Memory that this process and its machine both have. A child of fork gets a copy of its own at the same place: what
/// it does there reaches neither the machine nor its parent.
class SharedMapping {
 public:
  /// Maps `bytes` of what `descriptor` stands for; `offset` is a multiple of a page. Errors: kOutOfMemory.
  static Result<std::shared_ptr<SharedMapping>> map(int descriptor, std::uint64_t offset, std::size_t bytes);
  SharedMapping(const SharedMapping&) = delete;
  SharedMapping& operator=(const SharedMapping&) = delete;
  ~SharedMapping();

  [[nodiscard]] std::uint8_t* data() const { return data_; }
  /// In a child: it has its copy. False: there was no memory for one, and nothing is there any more.
  [[nodiscard]] bool is_copy() const { return is_copy_; }

 private:
  SharedMapping(std::uint8_t* data, std::size_t bytes) : data_(data), bytes_(bytes), hook_([this] { copy(); }) {}
  void copy() noexcept;

  std::uint8_t* const data_;
  const std::size_t bytes_;
  bool is_copy_ = false;
  const ForkHook hook_;
};

}  // namespace rnic::remote
