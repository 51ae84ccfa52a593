#pragma once

#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "testbench/server/listener.hpp"
#include "testbench/server/poller.hpp"

namespace rnic::testbench {

class MachineServer;

/// What a machine has, host by host, as `rnic ps` and `rnic stat` get it. On a thread of simulated time, which passes
/// when there are to be counters. Those of the NICs are of one moment, `simulated_ns`; those of queue pairs are read
/// after it.
[[nodiscard]] nlohmann::ordered_json machine_json(MachineServer& server, bool counters);

/// The control socket of a machine, beside those of the hosts. A question is a line: "ps" or "stat" (machine_json),
/// "figures" (what the processes did, MachineServerOptions::figures), or "run JSON" (what `rnic exec` reports of its
/// programs, MachineServerOptions::run). The answer is a JSON object, and the end of the connection.
/// When there are too many, the one that has been silent for longest is closed.
class Overseers {
 public:
  /// Throws as Listener.
  Overseers(MachineServer& server, const std::string& path);
  Overseers(const Overseers&) = delete;
  Overseers& operator=(const Overseers&) = delete;
  ~Overseers();

 private:
  struct One {
    Listener::Peer peer;
    Poller::Watch watch{};
    std::string question;
    bool looked_for = false;  ///< Its answer takes simulated time, and is on its way
    std::string answer;       ///< What of it has not left
  };

  void accept();
  [[nodiscard]] bool make_room();
  void changed(const std::shared_ptr<One>& one);
  void hear(const std::shared_ptr<One>& one);
  void look(const std::shared_ptr<One>& one);
  [[nodiscard]] std::optional<std::string> answer(const std::string& question);
  void say(const std::shared_ptr<One>& one, std::string answer);
  void send(const std::shared_ptr<One>& one);
  void forget(const std::shared_ptr<One>& one);

  MachineServer& server_;
  Listener listener_;
  Poller::Watch watch_;
  std::list<std::shared_ptr<One>> all_;  ///< The oldest first
};

}  // namespace rnic::testbench
