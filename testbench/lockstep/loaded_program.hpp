#pragma once

#include <stdexcept>
#include <string>
#include <vector>

#include "driver/ndk/ndkconsumer.h"

namespace rnic::testbench {

/// A program cannot be had.
class LoadError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A program in the form in which this process can load it (cmake/RnicNd2Program.cmake): NAME.so, with its main, or, of
/// a consumer of the kernel interface, NdkConsumerMain. Each has variables of its own, also where two come from one
/// file. It stays loaded to the end of this process.
class LoadedProgram {
 public:
  /// `command` is the program's name and its arguments. A name without a slash is looked for beside this tool and then
  /// in the folders of PATH. Throws LoadError.
  explicit LoadedProgram(std::vector<std::string> command);

  [[nodiscard]] const std::string& name() const { return command_.front(); }
  [[nodiscard]] bool of_kernel() const { return main_ == nullptr; }
  /// Runs main with the arguments.
  int run();
  /// The same of one of the kernel.
  int run(NDK_ADAPTER* adapter, const SOCKADDR* own);

 private:
  using Main = int (*)(int, char**);

  std::vector<std::string> command_;
  std::vector<char*> words_;
  Main main_ = nullptr;
  decltype(&NdkConsumerMain) consumer_ = nullptr;
};

}  // namespace rnic::testbench
