/// A program that loads the library that it is given, as a plugin would, uses the device, unloads the library and
/// makes a process; several times. Exit code 0: all is well.
/// usage: server_unloading LIBRARY
#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

namespace {

void must(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

template <typename Function>
Function* find(void* library, const char* name) {
  void* const found = dlsym(library, name);
  must(found != nullptr, name);
  return reinterpret_cast<Function*>(found);
}

void use(void* library) {
  int count = 0;
  ibv_device** const list = find<ibv_device**(int*)>(library, "ibv_get_device_list")(&count);
  must(list != nullptr && count == 1, "a device");
  ibv_context* const context = find<ibv_context*(ibv_device*)>(library, "ibv_open_device")(list[0]);
  must(context != nullptr, "ibv_open_device");
  find<void(ibv_device**)>(library, "ibv_free_device_list")(list);
  must(find<int(ibv_context*)>(library, "ibv_close_device")(context) == 0, "ibv_close_device");
}

void make_process() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  int status = -1;
  must(waitpid(child, &status, 0) == child && status == 0, "a child");
}

}  // namespace

int main(int argc, char** argv) {
  must(argc == 2, "one argument");
  for (int round = 0; round < 3; ++round) {
    void* const library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    must(library != nullptr, "dlopen");
    use(library);
    make_process();
    must(dlclose(library) == 0, "dlclose");
    make_process();
  }
  return 0;
}
