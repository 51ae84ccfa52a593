#include "testbench/tool/linux_files.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <span>

#include "testbench/tool/child_process.hpp"
#include "testbench/tool/report.hpp"
#include "testbench/tool/sha256.hpp"

namespace rnic::testbench {
namespace {

constexpr int kMissingCode = 77;
constexpr std::size_t kKeyDigits = 12;

/// Guests of other scripts are others.
std::string linux_cache() {
  Sha256 sum;
  for (const std::string_view text : {kPrepareLinux, kLinuxInit})
    sum.add({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()});
  const char* const named = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::filesystem::path cache = named != nullptr && *named != 0 ? named : home != nullptr ? home : "/tmp";
  if (named == nullptr || *named == 0) cache /= ".cache";
  return cache / "rnic" / "linux" / sum.finish().substr(0, kKeyDigits);
}

void write_script(const std::string& path, std::string_view text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (!file) throw UsageError(fmt::format("cannot write '{}'", path));
}

}  // namespace

LinuxFiles make_linux_files(const std::string& version, const std::string& folder) {
  const std::string cache = linux_cache(), script = folder + "/prepare.sh", init = folder + "/init";
  write_script(script, kPrepareLinux);
  write_script(init, kLinuxInit);
  Pipe answer;
  ChildOptions options;
  options.command = {"bash", script, cache, init};
  if (!version.empty()) options.command.push_back(version);
  options.output = answer.write_end.get();
  ChildProcess child(options);
  answer.write_end = {};
  std::string made;
  std::array<char, 256> piece;
  ssize_t got = 0;
  while ((got = read(answer.read_end.get(), piece.data(), piece.size())) > 0)
    made.append(piece.data(), static_cast<std::size_t>(got));
  const int code = child.wait();
  if (code == kMissingCode) throw MissingError("there is no Linux guest: see above");
  while (!made.empty() && made.back() == '\n') made.pop_back();
  if (code != 0 || made.empty()) throw UsageError("the Linux guest cannot be made");
  const std::string at = cache + "/" + made;
  return {at + "/vmlinuz", at + "/initrd", at + "/modules"};
}

std::string shell_quoted(const std::string& argument) {
  std::string quoted = "'";
  for (const char character : argument) {
    if (character == '\'') {
      quoted += "'\\''";
    } else {
      quoted += character;
    }
  }
  return quoted + "'";
}

}  // namespace rnic::testbench
