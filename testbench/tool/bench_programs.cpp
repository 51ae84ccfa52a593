#include "testbench/tool/bench_programs.hpp"

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "testbench/tool/child_process.hpp"
#include "testbench/tool/machine_process.hpp"
#include "testbench/tool/tool_files.hpp"

namespace rnic::testbench {
namespace {

/// The program on a host, whose standard output is read here.
class Program {
 public:
  Program(const MachineProcess& machine, unsigned host, std::vector<std::string> arguments) {
    Pipe output;
    output_ = std::move(output.read_end);
    ChildOptions options;
    options.command = {(tool_prefix() / "bin/verbs_writes").string()};
    options.command.insert(options.command.end(), arguments.begin(), arguments.end());
    options.environment = machine.environment(host);
    options.output = output.write_end.get();
    options.own_group = true;
    child_.emplace(options);
  }

  /// Its next line; empty when it has ended.
  [[nodiscard]] std::string line() {
    std::string text;
    for (char c{}; read(output_.get(), &c, 1) == 1 && c != '\n';) text += c;
    return text;
  }
  void end() {
    if (child_->wait() != 0) throw std::runtime_error("verbs_writes has failed on a machine of its own");
  }

 private:
  remote::Descriptor output_;
  std::optional<ChildProcess> child_;
};

}  // namespace

ProgramTimes time_programs() {
  const MachineProcess machine = MachineProcess::start({}, "");
  Program target(machine, 0, {"target"});
  Program writer(machine, 1, {"write", target.line()});
  ProgramTimes times;
  std::istringstream(writer.line()) >> times.us_per_small_write >> times.mb_per_s;
  writer.end();
  target.end();
  return times;
}

}  // namespace rnic::testbench
