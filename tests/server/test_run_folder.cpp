#include <catch2/catch.hpp>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>

#include "driver/remote/attach.hpp"
#include "driver/remote/descriptor.hpp"
#include "driver/remote/machine_socket.hpp"
#include "tests/server/server_process.hpp"
#include "tests/server/tool.hpp"

using namespace rnic;
using test::contains;
using test::ServerProcess;
using test::Tool;

// Who speaks to a machine speaks to one of the same user, and to no other: docs/server.md.

namespace {

/// Somebody who listens where a machine would, and counts what is said to him. `user` 0: as the caller.
class Pretender {
 public:
  explicit Pretender(const std::string& folder, uid_t user = 0) : folder_(folder) {
    std::filesystem::create_directory(folder);
    if (user != 0 && chown(folder.c_str(), user, user) != 0) return;
    int ready[2];
    if (pipe(ready) != 0) return;
    process_ = test::in_child([&] {
      if (user != 0 && (setgid(user) != 0 || setuid(user) != 0)) return 1;
      umask(0);
      const remote::Descriptor control = listener("control"), host = listener("host0");
      if (write(ready[1], "x", 1) != 1) return 1;
      for (;;) {
        pollfd what[2] = {{control.get(), POLLIN, 0}, {host.get(), POLLIN, 0}};
        poll(what, 2, -1);
        for (const auto& one : what) {
          if ((one.revents & POLLIN) == 0) continue;
          const remote::Descriptor peer(accept(one.fd, nullptr, nullptr));
          char byte{};
          if (read(peer.get(), &byte, 1) == 1) return 7;  // it has been told something
        }
      }
    });
    char byte{};
    began_ = read(ready[0], &byte, 1) == 1;
    close(ready[0]);
    close(ready[1]);
  }
  ~Pretender() {
    if (process_ > 0) static_cast<void>(heard());
  }
  [[nodiscard]] bool began() const { return began_; }
  /// Ends him.
  [[nodiscard]] bool heard() {
    kill(process_, SIGKILL);
    const int code = test::exit_of(process_);
    process_ = -1;
    return code == 7;
  }

 private:
  [[nodiscard]] remote::Descriptor listener(const std::string& name) const {
    remote::Descriptor own(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    (folder_ + "/" + name).copy(address.sun_path, sizeof address.sun_path - 1);
    if (bind(own.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 || listen(own.get(), 5) != 0)
      _exit(1);
    return own;
  }

  const std::string folder_;
  pid_t process_ = -1;
  bool began_ = false;
};

void refuses(Tool& tool, const std::string& folder, Pretender& pretender) {
  CHECK(remote::attach(folder + "/host0").error() == Error::kAccessViolation);
  for (const auto& arguments : {std::vector<std::string>{"exec", "--dir", folder, "--", "true"},
                                {"ps", "--dir", folder},
                                {"stat", "--dir", folder}}) {
    const auto outcome = tool.run(arguments);
    INFO(outcome.output);
    CHECK(outcome.code == 2);
    CHECK(contains(outcome.output, "not this user's alone"));
  }
  CHECK_FALSE(pretender.heard());
}

}  // namespace

TEST_CASE("a folder to which others may write is no machine's") {
  Tool tool;
  const std::string folder = tool.folder() + "/open";
  Pretender pretender(folder);
  REQUIRE(pretender.began());
  REQUIRE(chmod(folder.c_str(), 0777) == 0);
  refuses(tool, folder, pretender);
}

TEST_CASE("nothing is said to a machine of another user") {
  if (geteuid() != 0) return;  // who else could be one
  Tool tool;
  const std::string folder = tool.folder() + "/theirs";
  REQUIRE(chmod(tool.folder().c_str(), 0755) == 0);
  Pretender pretender(folder, 65534);
  REQUIRE(pretender.began());
  refuses(tool, folder, pretender);
}

TEST_CASE("nor to a process of another user behind a socket that is the own one's") {
  if (geteuid() != 0) return;
  Tool tool;
  const std::string folder = tool.folder() + "/theirs";
  REQUIRE(chmod(tool.folder().c_str(), 0755) == 0);
  Pretender pretender(folder, 65534);
  REQUIRE(pretender.began());
  for (const auto& name : {"", "/control", "/host0"}) {
    REQUIRE(chown((folder + name).c_str(), 0, 0) == 0);
    REQUIRE(chmod((folder + name).c_str(), 0700) == 0);
  }
  refuses(tool, folder, pretender);
}

TEST_CASE("memory that could become shorter is not looked at") {
  const remote::Descriptor memory(memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(ftruncate(memory.get(), 8192) == 0);
  CHECK_FALSE(remote::keeps_its_size(memory.get(), 8192));
  REQUIRE(fcntl(memory.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
  CHECK(remote::keeps_its_size(memory.get(), 8192));
  CHECK_FALSE(remote::keeps_its_size(memory.get(), 8193));
  const remote::Descriptor file(open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  CHECK_FALSE(remote::keeps_its_size(file.get(), 1));
}
