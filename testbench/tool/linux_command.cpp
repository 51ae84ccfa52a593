#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "testbench/tool/child_process.hpp"
#include "testbench/tool/commands.hpp"
#include "testbench/tool/exec_run.hpp"
#include "testbench/tool/linux_files.hpp"
#include "testbench/tool/machine_process.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

constexpr int kMissing = 77;
constexpr const char* kQemu = "qemu-system-x86_64";

struct LinuxArguments {
  unsigned host = 0;
  std::string kernel;
  std::string folder;
  std::string console;
  std::string append;
  unsigned memory_mb = 512;
  bool gdb = false;
  std::vector<std::string> serve;    ///< Arguments for the machine's own command
  std::vector<std::string> program;  ///< As it stands behind "--"; none: a shell
};

/// A folder of the guest's and ours, which goes with this.
class SharedFolder {
 public:
  SharedFolder() : path_((std::filesystem::temp_directory_path() / "rnic-linux.XXXXXX").string()) {
    if (mkdtemp(path_.data()) == nullptr) throw UsageError("cannot make a folder for the guest");
  }
  ~SharedFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  SharedFolder(const SharedFolder&) = delete;
  SharedFolder& operator=(const SharedFolder&) = delete;
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  std::string path_;
};

MachineProcess find_guest_machine(const LinuxArguments& arguments, const ExecRun& planned) {
  if (!arguments.folder.empty()) {
    if (!arguments.serve.empty())
      throw UsageError(
          fmt::format("'{}' is for a machine that begins, and --dir names one that runs", arguments.serve.front()));
    return MachineProcess::at(arguments.folder);
  }
  std::vector<std::string> serve = arguments.serve;
  serve.insert(serve.end(), {"--guest", std::to_string(arguments.host)});
  return MachineProcess::start(serve, planned.plan());
}

/// Where the guest's device comes to. Throws UsageError when none can come now.
remote::Descriptor connect_device(const MachineProcess& machine, unsigned host, const std::string& path) {
  const auto hosts = machine.ask("ps").at("hosts");
  if (host >= hosts.size()) throw UsageError(fmt::format("the machine has no host {}", host));
  if (!hosts[host].contains("guest"))
    throw UsageError(fmt::format("host {} is not a guest's (rnic serve --guest {})", host, host));
  if (hosts[host]["guest"]["running"].get<bool>()) throw UsageError(fmt::format("host {} has a guest already", host));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  remote::Descriptor device(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool fits = path.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, path.data(), path.size());
  if (!fits || connect(device.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    throw UsageError(fmt::format("nobody listens at '{}'", path));
  return device;
}

std::vector<std::string> qemu_line(const LinuxArguments& arguments, const LinuxFiles& files, const std::string& shared,
                                   const std::string& console, const std::string& socket, int device) {
  const std::string memory = fmt::format("{}M", arguments.memory_mb);
  const bool shell = arguments.program.empty();
  std::vector<std::string> line{kQemu, "-accel", "tcg", "-m", memory, "-machine", "q35,memory-backend=ram"};
  const auto add = [&](const char* option, const std::string& value) { line.insert(line.end(), {option, value}); };
  add("-object", fmt::format("memory-backend-memfd,id=ram,size={},share=on", memory));
  line.insert(line.end(), {"-nodefaults", "-nographic", "-no-reboot"});
  add("-serial", "file:" + console);
  add("-kernel", files.kernel);
  add("-initrd", files.initrd);
  add("-append",
      fmt::format("console=ttyS0 panic=-1 no_timer_check{} {}", arguments.gdb ? " nokaslr" : "", arguments.append));
  // In a shell Ctrl-C is the guest's.
  add("-chardev", fmt::format("stdio,id=user,signal={}", shell ? "off" : "on"));
  add("-device", "virtio-serial-pci");
  add("-device", "virtconsole,chardev=user");
  add("-virtfs", "local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap");
  add("-virtfs", fmt::format("local,path={},mount_tag=modules,security_model=none,readonly=on", files.modules));
  add("-virtfs", fmt::format("local,path={},mount_tag=shared,security_model=none", shared));
  add("-qtest", fmt::format("unix:{}.interrupts", socket));
  add("-qtest-log", "/dev/null");
  if (arguments.gdb) add("-gdb", "tcp:127.0.0.1:1234");
  add("-device", fmt::format("x-pci-proxy-dev,fd={}", device));
  return line;
}

bool in_path(const std::string& program) {
  const char* const path = std::getenv("PATH");
  const std::string all = path == nullptr ? "" : path;
  for (std::size_t begin = 0; begin <= all.size();) {
    const std::size_t end = std::min(all.find(':', begin), all.size());
    std::error_code ignored;
    if (std::filesystem::exists(all.substr(begin, end - begin) + "/" + program, ignored)) return true;
    begin = end + 1;
  }
  return false;
}

/// What the guest runs: the program, from the folder that we are in.
void write_program(const LinuxArguments& arguments, const std::string& file) {
  if (arguments.program.empty()) return;
  std::ofstream script(file);
  script << "cd " << shell_quoted(std::filesystem::current_path().string()) << " 2>/dev/null\nexec";
  for (const auto& word : arguments.program) script << ' ' << shell_quoted(word);
  script << '\n';
}

/// Of the kernel's messages in this file: what it says of its own failure, or its last line.
std::string last_words(const std::string& console) {
  constexpr std::array<const char*, 8> kFailures = {"BUG",
                                                    "WARNING:",
                                                    "Oops",
                                                    "general protection fault",
                                                    "blocked for more than",
                                                    "self-detected stall",
                                                    "detected stalls",
                                                    "Kernel panic"};
  constexpr std::size_t kLines = 300;
  const auto tells = [&](const std::string& text) {
    return std::any_of(kFailures.begin(), kFailures.end(),
                       [&](const char* words) { return text.find(words) != std::string::npos; });
  };
  std::ifstream log(console);
  std::string last, told;
  std::size_t lines = 0;
  for (std::string text; std::getline(log, text);) {
    if (!text.empty()) last = text + '\n';
    if ((lines != 0 || tells(text)) && lines < kLines) {
      ++lines;
      told += text + '\n';
    }
  }
  return told.empty() ? last : told;
}

/// Boots, and waits for the end. The exit code of what ran in the guest; 1: it has none.
int run_guest(const LinuxArguments& arguments, MachineProcess& machine, const LinuxFiles& files) {
  const SharedFolder shared;
  const std::string socket = fmt::format("{}/guest{}", machine.folder(), arguments.host);
  const std::string console = arguments.console.empty() ? shared.path() + "/console" : arguments.console;
  write_program(arguments, shared.path() + "/command");
  remote::Descriptor device = connect_device(machine, arguments.host, socket);
  ChildOptions options;
  options.command = qemu_line(arguments, files, shared.path(), console, socket, device.get());
  options.keeps = device.get();
  options.ends_with_us = true;
  std::signal(SIGINT, SIG_IGN);
  std::signal(SIGQUIT, SIG_IGN);
  ChildProcess qemu(options);
  device = {};
  const int code = qemu.wait();
  int outcome = -1;
  std::ifstream(shared.path() + "/exit") >> outcome;
  if (outcome >= 0) return outcome;
  print_error(fmt::format("the guest has ended before its program had (QEMU: {}), its kernel's last words:\n{}", code,
                          last_words(console)));
  return 1;
}

int run_linux_command(const LinuxArguments& arguments) {
  try {
    if (!in_path(kQemu)) throw MissingError(fmt::format("{} is missing (Debian's package qemu-system-x86)", kQemu));
    LinuxFiles files;
    {
      const SharedFolder scripts;
      files = make_linux_files(arguments.kernel, scripts.path());
    }
    const std::vector<std::string> shell{"sh"};
    RunProgram program{.role = "", .host = arguments.host, .command = arguments.program};
    if (program.command.empty()) program.command = shell;
    MachineProcess machine = find_guest_machine(arguments, ExecRun({program}, "linux"));
    program.code = run_guest(arguments, machine, files);
    program.process = 0;  // of the guest's, where the machine sees none
    if (machine.own()) ExecRun({program}, "linux").tell(machine);
    const int machine_code = machine.end();
    return program.code != 0 ? program.code : machine_code;
  } catch (const MissingError& error) {
    print_error(error.what());
    return kMissing;
  }
}

}  // namespace

void add_linux_command(CLI::App& tool, std::vector<std::string> program, std::function<int()>& action) {
  auto arguments = std::make_shared<LinuxArguments>();
  arguments->program = std::move(program);
  auto* command = add_command(
      tool, "linux",
      ", and with this machine's files, and run a program there: rnic linux [options] -- PROGRAM ARGS; without one, a "
      "shell. Without --dir it starts a machine, for which all options of rnic serve may be given");
  command->add_option("--host", arguments->host, "Host whose processor and memory the guest is")->capture_default_str();
  command->add_option("--kernel", arguments->kernel,
                      "Version of Debian's kernel, such as 6.1.0-56-amd64 [default: that of linux-image-amd64]");
  command->add_option("--dir", arguments->folder, "Folder of the sockets of a machine that runs");
  command->add_option("--console", arguments->console, "File for the kernel's messages");
  command->add_option("--append", arguments->append, "More for the kernel's command line, such as slub_debug=FZP");
  command->add_option("--memory", arguments->memory_mb, "Of the guest, MiB")
      ->check(CLI::Range(128u, 2048u))
      ->capture_default_str();
  command->add_flag("--gdb", arguments->gdb, "The kernel can be debugged: target remote localhost:1234");
  command->allow_extras();
  command->callback([arguments, command, &action] {
    arguments->serve = command->remaining();
    action = [arguments] { return run_linux_command(*arguments); };
  });
}

}  // namespace rnic::testbench
