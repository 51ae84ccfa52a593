#include "testbench/tool/machine_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>

#include "testbench/tool/machine_question.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/tool_files.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

std::string socket_of(const std::string& folder, unsigned host) { return fmt::format("{}/host{}", folder, host); }

std::string own_folder() {
  std::string name = (std::filesystem::temp_directory_path() / "rnic-exec.XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) throw UsageError("cannot make a folder for the machine");
  return name;
}

}  // namespace

bool MachineProcess::listens(const std::string& folder) { return find_machine(folder + "/control").has_value(); }

MachineProcess MachineProcess::at(const std::string& folder) {
  if (!listens(folder)) no_machine(folder);
  return MachineProcess(folder);
}

MachineProcess MachineProcess::start(const std::vector<std::string>& arguments, const std::string& plan) {
  MachineProcess machine(own_folder());
  Pipe ready;
  const remote::Descriptor silence(open("/dev/null", O_WRONLY | O_CLOEXEC));
  ChildOptions options;
  options.command = {(tool_prefix() / "bin/rnic").string(),
                     "serve",
                     "--dir",
                     machine.folder_,
                     "--ready-fd",
                     std::to_string(ready.write_end.get()),
                     "--quiet",
                     "--exec",
                     plan};
  options.command.insert(options.command.end(), arguments.begin(), arguments.end());
  options.output = silence.get();
  options.keeps = ready.write_end.get();
  options.own_group = true;
  machine.own_.emplace(options);
  ready.write_end = {};
  char byte{};
  ssize_t got = 0;
  while ((got = read(ready.read_end.get(), &byte, 1)) < 0 && errno == EINTR) {
  }
  if (got != 1) throw UsageError("the machine did not begin");
  return machine;
}

MachineProcess::~MachineProcess() {
  if (own_) end();
}

std::string MachineProcess::socket(unsigned host) const {
  const std::string path = socket_of(folder_, host);
  if (!find_machine(path)) throw UsageError(fmt::format("the machine has no host {}", host));
  return path;
}

std::vector<std::pair<std::string, std::string>> MachineProcess::environment(unsigned host) const {
  const auto library = tool_prefix() / "lib";
  if (!std::filesystem::exists(library / "libibverbs.so.1"))
    print_error(fmt::format("no libibverbs.so.1 in '{}': the program finds that of the system", library.string()));
  std::string path = library.string();
  if (const char* before = std::getenv("LD_LIBRARY_PATH"); before != nullptr && *before != 0)
    path += std::string(":") + before;
  std::vector<std::pair<std::string, std::string>> all{{"RNIC_HOST", socket(host)}, {"LD_LIBRARY_PATH", path}};
  if (simulated_clock_) {
    std::string preload = (library / "librnic_clock.so").string();
    if (!std::filesystem::exists(preload))
      throw UsageError(
          fmt::format("--clock simulated needs '{}', which is missing: build the target rnic_clock", preload));
    if (const char* before = std::getenv("LD_PRELOAD"); before != nullptr && *before != 0)
      preload += std::string(":") + before;
    all.emplace_back("LD_PRELOAD", preload);
  }
  return all;
}

nlohmann::ordered_json MachineProcess::ask(const std::string& question) const { return ask_machine(folder_, question); }

int MachineProcess::end() {
  if (!own_) return 0;
  own_->signal(SIGTERM);
  const int code = own_->wait();
  own_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
  return code;
}

}  // namespace rnic::testbench
