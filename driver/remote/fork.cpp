#include "driver/remote/fork.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <cstring>
#include <mutex>

namespace rnic::remote {
namespace {

/// Never destroyed: objects of a program that ends leave in no order.
struct Hooks {
  std::mutex mutex;
  std::list<std::function<void()>> all;
};

Hooks& hooks() {
  static auto* const all = [] {
    // Nobody changes the list while a process is made, and the lock is free in both afterwards.
    pthread_atfork([] { hooks().mutex.lock(); }, [] { hooks().mutex.unlock(); },
                   [] {
                     for (const auto& hook : hooks().all) hook();
                     hooks().mutex.unlock();
                   });
    return new Hooks;
  }();
  return *all;
}

}  // namespace

ForkHook::ForkHook(std::function<void()> in_child) {
  Hooks& those = hooks();
  const std::lock_guard lock(those.mutex);
  place_ = those.all.insert(those.all.end(), std::move(in_child));
}

ForkHook::~ForkHook() {
  const std::lock_guard lock(hooks().mutex);
  hooks().all.erase(place_);
}

Result<std::shared_ptr<SharedMapping>> SharedMapping::map(int descriptor, std::uint64_t offset, std::size_t bytes) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, static_cast<off_t>(offset));
  if (at == MAP_FAILED) return Error::kOutOfMemory;
  auto mapping = or_out_of_memory([&]() -> Result<std::shared_ptr<SharedMapping>> {
    return std::shared_ptr<SharedMapping>(new SharedMapping(static_cast<std::uint8_t*>(at), bytes));
  });
  if (!mapping) munmap(at, bytes);
  return mapping;
}

SharedMapping::~SharedMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void SharedMapping::copy() noexcept {
  void* const own = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (own != MAP_FAILED) {
    std::memcpy(own, data_, bytes_);
    is_copy_ = mremap(own, bytes_, bytes_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) != MAP_FAILED;
    if (is_copy_) return;
    munmap(own, bytes_);
  }
  munmap(data_, bytes_);
}

}  // namespace rnic::remote
