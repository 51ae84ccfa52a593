#include "tests/driver/failing_memory.hpp"

#include <cstdlib>
#include <new>

#include "tests/driver/fake_device.hpp"

namespace {

thread_local bool t_counting = false;
thread_local unsigned t_count = 0;    ///< Allocations of the driver since counting began
thread_local unsigned t_fail_at = 0;  ///< Which of them fails; 0: none

bool fails() {
  if (!t_counting || rnic::test::FakeDevice::inside()) return false;
  return ++t_count == t_fail_at;
}

}  // namespace

void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return fails() ? nullptr : std::malloc(bytes != 0 ? bytes : 1);
}
void* operator new(std::size_t bytes) {
  void* const memory = operator new(bytes, std::nothrow);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, const std::nothrow_t&) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace rnic::test {

FailingMemory::FailingMemory(unsigned fail_at) {
  t_count = 0;
  t_fail_at = fail_at;
  t_counting = true;
}

FailingMemory::~FailingMemory() { t_counting = false; }

unsigned FailingMemory::count() { return t_count; }

}  // namespace rnic::test
