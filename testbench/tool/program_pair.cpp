#include "testbench/tool/program_pair.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>

#include "testbench/tool/report.hpp"
#include "testbench/tool/terminal.hpp"

namespace rnic::testbench {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

/// A server that listens nowhere is given so long to be ready in its own way.
constexpr milliseconds kPatienceToListen{15'000};
/// A server gets so long to end when its client has.
constexpr milliseconds kPatienceToEnd{10'000};
constexpr milliseconds kLook{50};

/// The process and those that it has started.
std::set<pid_t> family_of(pid_t process) {
  std::set<pid_t> family{process};
  std::vector<pid_t> left{process};
  while (!left.empty()) {
    const pid_t one = left.back();
    left.pop_back();
    std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", one));
    for (pid_t child = 0; children >> child;) {
      if (family.insert(child).second) left.push_back(child);
    }
  }
  return family;
}

/// Inodes of the TCP sockets in the process's network that listen.
std::set<std::string> listening_inodes(pid_t process) {
  std::set<std::string> inodes;
  for (const char* file : {"tcp", "tcp6"}) {
    std::ifstream table(fmt::format("/proc/{}/net/{}", process, file));
    std::string line;
    std::getline(table, line);
    while (std::getline(table, line)) {
      // sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
      std::istringstream fields(line);
      std::vector<std::string> words;
      for (std::string word; fields >> word;) words.push_back(word);
      if (words.size() > 9 && words[3] == "0A") inodes.insert(words[9]);
    }
  }
  return inodes;
}

bool listens_at_tcp(pid_t process) {
  const auto inodes = listening_inodes(process);
  if (inodes.empty()) return false;
  for (const pid_t one : family_of(process)) {
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator(fmt::format("/proc/{}/fd", one), gone)) {
      const std::string target = std::filesystem::read_symlink(entry.path(), gone).string();
      constexpr std::string_view kSocket = "socket:[";
      if (target.starts_with(kSocket) &&
          inodes.contains(target.substr(kSocket.size(), target.size() - kSocket.size() - 1)))
        return true;
    }
  }
  return false;
}

/// Whether the process, or one that it has started, waits for connections of the connection manager.
bool listens_on(const MachineProcess& machine, unsigned host, pid_t process) {
  const auto family = family_of(process);
  const auto answer = machine.ask("ps");
  const auto& all = answer.at("hosts").at(host).at("processes");
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return one.at("listening_endpoints").template get<unsigned>() != 0 &&
           family.contains(one.at("process").template get<pid_t>());
  });
}

/// A program of the pair, with its lines on their way to standard output and into a file.
class Member {
 public:
  Member(const std::string& name, const std::string& folder) : name_(name) {
    if (!folder.empty()) log_.open(folder + "/" + name + ".log");
  }

  void start(const std::vector<std::string>& command, const MachineProcess& machine, unsigned host) {
    Pipe output;
    lines_ = std::move(output.read_end);
    ChildOptions options;
    options.command = command;
    options.environment = machine.environment(host);
    options.output = options.errors = output.write_end.get();
    child_.emplace(options);
  }
  [[nodiscard]] bool started() const { return child_.has_value(); }
  [[nodiscard]] bool runs() { return child_ && !child_->ended(); }
  [[nodiscard]] ChildProcess& child() { return *child_; }
  [[nodiscard]] int descriptor() const { return lines_.get(); }

  /// What has come of its output.
  void take() {
    std::array<char, 4096> piece;
    const ssize_t got = read(lines_.get(), piece.data(), piece.size());
    if (got > 0) text_.append(piece.data(), static_cast<std::size_t>(got));
    if (got == 0) {
      lines_ = {};
      if (!text_.empty()) text_ += '\n';
    }
    for (std::size_t end = 0; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) {
      const std::string line = text_.substr(0, end);
      fmt::print("{} | {}\n", name_, line);
      if (log_.is_open()) log_ << line << '\n';
    }
    std::fflush(stdout);
  }

 private:
  const std::string name_;
  std::ofstream log_;
  std::optional<ChildProcess> child_;
  remote::Descriptor lines_;
  std::string text_;
};

/// Takes the output of both until `done`, or `limit`.
template <typename Done>
void follow(std::array<Member, 2>& members, std::optional<milliseconds> limit, Done done) {
  const auto end = Clock::now() + limit.value_or(milliseconds(0));
  while (!done() && (!limit || Clock::now() < end)) {
    std::array<pollfd, 2> what{};
    for (std::size_t i = 0; i < what.size(); ++i)
      what[i] = {.fd = members[i].descriptor(), .events = POLLIN, .revents = 0};
    if (poll(what.data(), what.size(), static_cast<int>(kLook.count())) <= 0) continue;
    for (std::size_t i = 0; i < what.size(); ++i) {
      if (what[i].revents != 0) members[i].take();
    }
  }
}

bool mentions(const std::vector<std::string>& arguments, const std::string& option) {
  return std::any_of(arguments.begin(), arguments.end(),
                     [&](const auto& one) { return one == option || one.starts_with(option + "="); });
}

}  // namespace

void ProgramPair::make_folder(std::vector<std::string>& arguments) {
  std::error_code error;
  if (!folder.empty()) {
    std::filesystem::create_directories(folder, error);
    if (error) throw UsageError(fmt::format("cannot make the folder '{}': {}", folder, error.message()));
  }
  for (unsigned number = 1; folder.empty(); ++number) {
    const std::string name = fmt::format("rnic_pair_{}", number);
    if (std::filesystem::create_directory(name, error)) folder = name;
    if (error) throw UsageError(fmt::format("cannot make the folder '{}': {}", name, error.message()));
  }
  for (const auto& [option, file] : {std::pair{"--pcap", "wire.pcap"}, std::pair{"--timeline", "timeline.json"},
                                     std::pair{"--report", "report.html"}, std::pair{"--json", "figures.json"}}) {
    if (mentions(arguments, option)) continue;
    arguments.push_back(option);
    arguments.push_back(folder + "/" + file);
  }
}

std::vector<RunProgram> ProgramPair::programs() const {
  return {{.role = "server", .host = 0, .command = server}, {.role = "client", .host = 1, .command = client}};
}

std::vector<RunProgram> ProgramPair::run(const MachineProcess& machine) const {
  std::array<Member, 2> members{Member("server", folder), Member("client", folder)};
  auto& [first, second] = members;
  bool ended_by_us = false;
  first.start(server, machine, 0);
  follow(members, kPatienceToListen, [&] {
    const pid_t process = first.child().process();
    return !first.runs() || listens_at_tcp(process) || listens_on(machine, 0, process);
  });
  if (first.runs()) {
    second.start(client, machine, 1);
    follow(members, {}, [&] { return !second.runs(); });
    follow(members, kPatienceToEnd, [&] { return !first.runs(); });
    if (first.runs()) {
      ended_by_us = true;
      fmt::print("rnic: the client has ended and the server has not: rnic ends the server\n");
      first.child().signal(SIGTERM);
      follow(members, kPatienceToEnd, [&] { return !first.runs(); });
      first.child().signal(SIGKILL);
    }
  } else {
    fmt::print("{} the server has ended before it listened\n", toned("rnic:", Tone::kBad));
  }
  for (auto& member : members) {
    while (member.descriptor() >= 0) member.take();
  }
  std::vector<RunProgram> ran = programs();
  for (std::size_t i = 0; i < ran.size(); ++i) {
    if (!members[i].started()) continue;
    ran[i].process = members[i].child().process();
    ran[i].code = members[i].child().wait();
  }
  // Ended by us is no success of a server whose client has failed.
  ran[0].ended_by_us = ended_by_us;
  return ran;
}

}  // namespace rnic::testbench
