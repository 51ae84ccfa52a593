#include "testbench/tool/machine_question.hpp"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <span>

#include "driver/remote/protocol.hpp"
#include "testbench/tool/report.hpp"

namespace rnic::testbench {

nlohmann::ordered_json ask_machine(const std::string& folder, const std::string& question) {
  const std::string path = folder + "/control", line = question + "\n";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const remote::Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const bool fits = path.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, path.data(), path.size());
  if (!fits || connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      !remote::send_all(socket.get(), std::as_bytes(std::span(line))))
    throw UsageError(fmt::format("no machine listens in '{}' (rnic serve --dir)", folder));
  std::string text;
  std::array<char, 4096> piece;
  ssize_t got = 0;
  while ((got = read(socket.get(), piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<std::size_t>(got));
  auto answer = nlohmann::ordered_json::parse(text, nullptr, false);
  if (answer.is_discarded()) throw UsageError("the machine has gone, or did not answer");
  return answer;
}

}  // namespace rnic::testbench
