// SystemC tells AddressSanitizer when it switches between the stacks of its threads, but gives no bounds for the stack
// it was started on. Errors would then be reported for frames there that an exception has left. This stands before the
// sanitizer's own function and fills the bounds in.
#include <dlfcn.h>
#include <pthread.h>

#include <cstddef>

namespace {

using StartSwitch = void (*)(void**, const void*, std::size_t);

struct Bounds {
  void* bottom = nullptr;
  std::size_t bytes = 0;
  Bounds() {
    pthread_attr_t attributes;
    if (pthread_getattr_np(pthread_self(), &attributes) != 0) return;
    pthread_attr_getstack(&attributes, &bottom, &bytes);
    pthread_attr_destroy(&attributes);
  }
};

}  // namespace

/// Named on the linker's command line, because nothing else asks for this file.
extern "C" {
extern const char rnic_systemc_sanitizer;
const char rnic_systemc_sanitizer = 0;
}

extern "C" void __sanitizer_start_switch_fiber(void** fake_stack, const void* bottom, std::size_t bytes) {
  static const auto next = reinterpret_cast<StartSwitch>(dlsym(RTLD_NEXT, "__sanitizer_start_switch_fiber"));
  static const Bounds main_stack;
  if (bottom == nullptr || bytes == 0) return next(fake_stack, main_stack.bottom, main_stack.bytes);
  next(fake_stack, bottom, bytes);
}
