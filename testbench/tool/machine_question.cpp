#include "testbench/tool/machine_question.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <span>

#include "driver/remote/machine_socket.hpp"
#include "driver/remote/protocol.hpp"
#include "testbench/tool/report.hpp"

namespace rnic::testbench {

std::optional<remote::Descriptor> find_machine(const std::string& socket) {
  auto found = remote::connect_to_machine(socket);
  if (found) return std::move(found->socket);
  if (found.error() == Error::kAccessViolation)
    throw UsageError(fmt::format("what listens at '{}' is not this user's alone: rnic does not speak to it", socket));
  return {};
}

void no_machine(const std::string& folder) {
  throw UsageError(fmt::format("no machine listens in '{}' (rnic serve --dir)", folder));
}

nlohmann::ordered_json ask_machine(const std::string& folder, const std::string& question) {
  const std::string line = question + "\n";
  const auto machine = find_machine(folder + "/control");
  if (!machine || !remote::send_all(machine->get(), std::as_bytes(std::span(line)))) no_machine(folder);
  std::string text;
  std::array<char, 4096> piece;
  ssize_t got = 0;
  while ((got = read(machine->get(), piece.data(), piece.size())) > 0)
    text.append(piece.data(), static_cast<std::size_t>(got));
  auto answer = nlohmann::ordered_json::parse(text, nullptr, false);
  if (answer.is_discarded()) throw UsageError("the machine has gone, or did not answer");
  return answer;
}

}  // namespace rnic::testbench
