#include "testbench/tool/failure_folder.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <stdexcept>

namespace rnic::testbench {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
/// What led to the failure, and what came of it.
constexpr std::uint64_t kBeforeNs = 20'000, kAfterNs = 2'000;

std::vector<std::string>& remembered() {
  static std::vector<std::string> arguments;
  return arguments;
}

void run(const std::vector<std::string>& arguments, const std::filesystem::path& log) {
  std::vector<char*> argv;
  std::string program = "rnic";
  argv.push_back(program.data());
  std::vector<std::string> copies = arguments;
  for (auto& one : copies) argv.push_back(one.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0666);
  posix_spawn_file_actions_adddup2(&files, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = 0;
  const int error = posix_spawn(&child, kThisProgram, &files, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&files);
  if (error != 0) throw std::runtime_error("cannot be run again");
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 1)
    throw std::runtime_error(fmt::format("run again, it did not fail: see {}", log.string()));
}

/// `name` without what a folder's name should not have.
std::string as_file_name(std::string name) {
  for (auto& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '.') c = '_';
  }
  return name;
}

}  // namespace

std::string quoted(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 || std::string_view("-_./:,=+").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), plain)) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

void remember_command_line(int argc, char** argv) { remembered().assign(argv, argv + argc); }

std::vector<std::string> command_line(const std::vector<std::string>& without) {
  std::vector<std::string> out = {"--pcap",  "--trace", "--trace-window", "--trace-scope", "--trace-mark",
                                  "--json",  "--junit", "--failures",     "--timeline",    "--timeline-window",
                                  "--report"};
  out.insert(out.end(), without.begin(), without.end());
  std::vector<std::string> kept;
  const auto& all = remembered();
  for (std::size_t i = 1; i < all.size(); ++i) {
    // What follows are programs with options of their own.
    if (all[i] == "--") {
      kept.insert(kept.end(), all.begin() + static_cast<std::ptrdiff_t>(i), all.end());
      break;
    }
    const std::string name = all[i].substr(0, all[i].find('='));
    if (std::find(out.begin(), out.end(), name) == out.end())
      kept.push_back(all[i]);
    else if (name == all[i])
      ++i;  // its value
  }
  return kept;
}

std::string command_text(const std::vector<std::string>& without) {
  std::string line = "rnic";
  for (const auto& argument : command_line(without)) line += ' ' + quoted(argument);
  return line;
}

void FailureFolder::add_option(CLI::App& command) {
  command
      .add_option("--failures", folder_,
                  "Folder for what failed runs leave: capture, last microseconds of waves, command; '' for nothing")
      ->type_name("FOLDER")
      ->capture_default_str();
}

std::filesystem::path FailureFolder::of(const std::string& name) const {
  return std::filesystem::path(folder_) / as_file_name(name);
}

std::filesystem::path FailureFolder::leave(const std::string& name, std::vector<std::string> arguments,
                                           std::uint64_t failed_ns) {
  if (!wanted()) return {};
  ++left_;
  const auto folder = of(name);
  try {
    std::filesystem::create_directories(folder);
    const std::uint64_t from = failed_ns - std::min(failed_ns, kBeforeNs);
    const std::vector<std::string> files = {"--pcap",         (folder / "wire.pcap").string(),
                                            "--trace",        (folder / "waves.fst").string(),
                                            "--trace-window", fmt::format("{}:{}", from, failed_ns + kAfterNs),
                                            "--trace-mark",   std::to_string(failed_ns),
                                            "--failures",     ""};
    arguments.insert(arguments.end(), files.begin(), files.end());
    std::ofstream command(folder / "command");
    command << quoted(remembered().front());
    for (const auto& one : arguments) command << ' ' << quoted(one);
    command << '\n';
    command.close();
    std::fflush(nullptr);
    run(arguments, folder / "log");
    fmt::print("  failed at {} ns; wire.pcap, waves.fst of {} ns to {} ns, log and command are in {}\n", failed_ns,
               from, failed_ns + kAfterNs, folder.string());
  } catch (const std::exception& error) {
    fmt::print("  {}: {}\n", folder.string(), error.what());
  }
  std::fflush(stdout);
  return folder;
}

}  // namespace rnic::testbench
