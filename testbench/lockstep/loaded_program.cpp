#include "testbench/lockstep/loaded_program.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "testbench/tool/tool_files.hpp"

namespace rnic::testbench {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> folders() {
  std::vector<fs::path> all{tool_prefix() / "bin"};
  const char* const path = std::getenv("PATH");
  std::istringstream words(path != nullptr ? path : "");
  for (std::string folder; std::getline(words, folder, ':');) all.emplace_back(folder);
  return all;
}

fs::path file_of(const std::string& name) {
  const std::string file = name.ends_with(".so") ? name : name + ".so";
  std::error_code none;
  if (name.find('/') != std::string::npos) {
    if (fs::is_regular_file(file, none)) return fs::absolute(file);
  } else {
    for (const auto& folder : folders())
      if (fs::is_regular_file(folder / file, none)) return fs::absolute(folder / file);
  }
  throw LoadError(fmt::format("there is no '{}': a program for lockstep is a file of this name", file));
}

/// The same file once more, under a name that the loader does not know.
std::string copy_of(const fs::path& file) {
  const int descriptor = memfd_create(file.filename().c_str(), MFD_CLOEXEC);
  const std::string copy = fmt::format("/proc/self/fd/{}", descriptor);
  std::ofstream to(copy, std::ios::binary);
  to << std::ifstream(file, std::ios::binary).rdbuf();
  to.flush();
  if (descriptor < 0 || !to) throw LoadError(fmt::format("no room for a copy of '{}'", file.string()));
  return copy;
}

void* load(const fs::path& file) {
  static std::set<fs::path> loaded;
  std::error_code none;
  const bool first = loaded.insert(fs::canonical(file, none)).second;
  void* const handle = dlopen(first ? file.c_str() : copy_of(file).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw LoadError(dlerror());
  return handle;
}

}  // namespace

LoadedProgram::LoadedProgram(std::vector<std::string> command) : command_(std::move(command)) {
  for (auto& word : command_) words_.push_back(word.data());
  words_.push_back(nullptr);
  const fs::path file = file_of(name());
  void* const handle = load(file);
  main_ = reinterpret_cast<Main>(dlsym(handle, "main"));
  consumer_ = reinterpret_cast<decltype(consumer_)>(dlsym(handle, "NdkConsumerMain"));
  if (main_ == nullptr && consumer_ == nullptr)
    throw LoadError(fmt::format("'{}' has neither main nor NdkConsumerMain", file.string()));
}

int LoadedProgram::run() { return main_(static_cast<int>(command_.size()), words_.data()); }

int LoadedProgram::run(NDK_ADAPTER* adapter, const SOCKADDR* own) {
  return consumer_(adapter, own, static_cast<int>(command_.size()), words_.data());
}

}  // namespace rnic::testbench
