#include "testbench/server/overseers.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

#include "testbench/server/event_log_writer.hpp"
#include "testbench/server/machine_server.hpp"

namespace rnic::testbench {
namespace {

using Json = nlohmann::ordered_json;

/// Of people who look at once.
constexpr std::size_t kMostOverseers = 16;
constexpr std::size_t kMostQuestion = 256 << 10;
constexpr std::string_view kRun = "run ";

std::string name_of(std::int32_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

const char* name_of(hw::QpType type) {
  switch (type) {
    case hw::QpType::kRc: return "RC";
    case hw::QpType::kUc: return "UC";
    case hw::QpType::kRawPacket: return "RAW_PACKET";
    case hw::QpType::kUd: return "UD";
  }
  return "?";
}

const char* name_of(hw::QpState state) {
  constexpr std::array kNames{"RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"};
  const auto index = static_cast<std::size_t>(state);
  return index < kNames.size() ? kNames[index] : "?";
}

template <typename Counts, typename Names>
Json counts_json(const Counts& counts, const Names& names) {
  Json json = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (counts[i] != 0) json[std::string(names[i])] = counts[i];
  }
  return json;
}

Json process_json(const Session& session, bool counters) {
  const auto figures = session.figures();
  Json json{{"process", session.process()},
            {"name", name_of(session.process())},
            {"clients", figures.clients},
            {"calls", figures.calls},
            {"doorbells", figures.doorbells},
            {"pinned_bytes", session.account().used(kmd::Account::Of::kPinnedBytes)},
            {"ring_bytes", session.account().used(kmd::Account::Of::kRingBytes)},
            {"multicast_groups", session.account().multicast_groups()}};
  const std::array<std::pair<const char*, calls::ObjectKind>, 8> kinds{
      {{"queue_pairs", calls::ObjectKind::kQp},
       {"completion_queues", calls::ObjectKind::kCq},
       {"shared_receive_queues", calls::ObjectKind::kSrq},
       {"memory_regions", calls::ObjectKind::kMr},
       {"memory_windows", calls::ObjectKind::kMw},
       {"protection_domains", calls::ObjectKind::kPd},
       {"channels", calls::ObjectKind::kChannel},
       {"endpoints", calls::ObjectKind::kEndpoint}}};
  for (const auto& [name, kind] : kinds) json[name] = 0;
  json["listening_endpoints"] = 0;
  Json pairs = Json::array();
  for (const auto& client : session.clients()) {
    for (const auto& [name, kind] : kinds) json[name] = json[name].get<std::uint32_t>() + client->count(kind);
    json["listening_endpoints"] = json["listening_endpoints"].get<std::uint32_t>() + client->listening();
    if (!counters) continue;
    for (const auto& pair : client->queue_pairs())
      pairs.push_back({{"qpn", pair.qpn},
                       {"type", name_of(pair.type)},
                       {"state", name_of(pair.state)},
                       {"counters", counts_json(pair.counters.counts, hw::kQpCounterNames)}});
  }
  if (counters) json["pairs"] = std::move(pairs);
  return json;
}

/// The event counters of every NIC at one moment of simulated time, so that one can be compared with another.
std::vector<Json> counters_of_all(World& world) {
  std::vector<Json> all;
  for (std::size_t i = 0; i < world.hosts(); ++i) {
    const auto counts = world.host(i).nic().counts();
    all.push_back(counts ? counts_json(*counts, hw::kCounterNames) : Json::object());
  }
  return all;
}

Json ownership_json(const OwnershipFigures& figures) {
  Json json{{"doorbells", figures.doorbells},
            {"slots", figures.slots},
            {"entries", figures.entries},
            {"broken", Json::object()}};
  for (std::size_t i = 0; i < figures.broken.size(); ++i) {
    if (figures.broken.at(i) != 0) json["broken"][std::string(kOwnershipRules.at(i).name)] = figures.broken.at(i);
  }
  return json;
}

Json guest_json(GuestHost& host) {
  Json guest{{"running", host.figures() != nullptr}, {"guests", host.guests()}};
  const auto& root = host.host().root_complex().statistics();
  guest["unsupported_accesses"] = host.nic().unsupported();
  guest["dma_faults"] = root.dropped_writes + root.unsupported_reads;
  guest["ownership"] = ownership_json(host.nic().checker().figures());
  if (const GuestFigures* const figures = host.figures()) {
    guest["memory_bytes"] = figures->memory_bytes;
    guest["config_accesses"] = figures->config_accesses;
    guest["writes"] = figures->writes;
    guest["reads"] = figures->reads;
    guest["interrupts"] = figures->interrupts;
    guest["resets"] = figures->resets;
  }
  return {{"name", host.host().basename()}, {"processes", Json::array()}, {"guest", std::move(guest)}};
}

Json host_json(HostServer& host, bool counters) {
  Json json{{"name", host.host().basename()}, {"processes", Json::array()}};
  const auto sessions = host.sessions();  // they may end while time passes
  for (const auto& session : sessions) {
    if (!session->ended() && !session->only_reads_time()) json["processes"].push_back(process_json(*session, counters));
  }
  return json;
}

Json socket_json(const OutsidePort& socket) {
  Json json{{"socket", socket.options().describe()}};
  for (const auto& [name, count] : named(socket.counts())) json["counters"][name] = count;
  return json;
}

}  // namespace

nlohmann::ordered_json machine_json(MachineServer& server, bool counters) {
  Json json{{"simulated_ns", server.world().now_ns()}, {"paused", server.paused()}, {"hosts", Json::array()}};
  const auto counted = counters ? counters_of_all(server.world()) : std::vector<Json>();
  auto host = server.hosts().begin();
  auto guest = server.guests().begin();
  for (std::size_t i = 0; i < server.world().hosts(); ++i) {
    const bool is_guest = guest != server.guests().end() && (*guest)->host().index() == i;
    json["hosts"].push_back(is_guest ? guest_json(**guest++) : host_json(**host++, counters));
    if (counters) json["hosts"].back()["counters"] = counted[i];
  }
  for (const auto& socket : server.sockets()) json["sockets"].push_back(socket_json(*socket));
  return json;
}

Overseers::Overseers(MachineServer& server, const std::string& path)
    : server_(server), listener_(path), watch_(server.poller().add(listener_.descriptor(), [this] { accept(); })) {}

Overseers::~Overseers() {
  server_.poller().remove(listener_.descriptor(), watch_);
  while (!all_.empty()) forget(std::shared_ptr<One>(all_.front()));
}

void Overseers::accept() {
  while (auto peer = listener_.accept()) {
    if (!peer->process || !make_room()) continue;
    auto one = std::make_shared<One>();
    one->peer = std::move(*peer);
    one->watch = server_.poller().add_both_ways(one->peer.socket.get(), [this, weak = std::weak_ptr(one)] {
      if (const auto here = weak.lock()) changed(here);
    });
    all_.push_back(std::move(one));
  }
}

/// False: all that are there wait for the machine.
bool Overseers::make_room() {
  if (all_.size() < kMostOverseers) return true;
  const auto oldest = std::find_if(all_.begin(), all_.end(), [](const auto& one) { return !one->looked_for; });
  if (oldest == all_.end()) return false;
  forget(std::shared_ptr<One>(*oldest));
  return true;
}

void Overseers::changed(const std::shared_ptr<One>& one) {
  if (one->looked_for) return;
  if (one->answer.empty()) {
    hear(one);
  } else {
    send(one);
  }
}

void Overseers::hear(const std::shared_ptr<One>& one) {
  for (;;) {
    std::array<char, 4096> piece;
    const ssize_t got = recv(one->peer.socket.get(), piece.data(), piece.size(), 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got > 0) one->question.append(piece.data(), static_cast<std::size_t>(got));
    if (got <= 0 || one->question.size() > kMostQuestion) return forget(one);
    if (!one->question.ends_with('\n')) continue;
    one->question.pop_back();
    if (one->question == "ps" || one->question == "stat") return look(one);
    auto text = answer(one->question);
    return text ? say(one, std::move(*text)) : forget(one);
  }
}

void Overseers::say(const std::shared_ptr<One>& one, std::string answer) {
  one->looked_for = false;
  one->answer = std::move(answer);
  send(one);
}

/// As much as the socket takes; the rest when it takes more.
void Overseers::send(const std::shared_ptr<One>& one) {
  while (!one->answer.empty()) {
    const ssize_t sent = ::send(one->peer.socket.get(), one->answer.data(), one->answer.size(), MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && errno == EAGAIN) return;
    if (sent < 0) break;
    one->answer.erase(0, static_cast<std::size_t>(sent));
  }
  forget(one);
}

/// Of what needs no simulated time; nothing: there is no such question.
std::optional<std::string> Overseers::answer(const std::string& question) {
  const MachineServerOptions& options = server_.options();
  if (question == "figures" && options.figures) return options.figures().dump() + "\n";
  if (!question.starts_with(kRun) || !options.run) return {};
  auto run = Json::parse(question.substr(kRun.size()), nullptr, false);
  if (!run.is_object()) return {};
  options.run(std::move(run));
  return "{}\n";
}

void Overseers::look(const std::shared_ptr<One>& one) {
  const bool counters = one->question == "stat";
  one->looked_for = true;
  if (server_.event_log() != nullptr) server_.event_log()->look(counters);
  // What a queue pair has counted takes simulated time to read.
  server_.calls().run([this, server = &server_, weak = std::weak_ptr(one), counters] {
    std::string text = machine_json(*server, counters).dump() + "\n";
    // Nobody is there any more when the machine has ended meanwhile.
    if (const auto here = weak.lock()) say(here, std::move(text));
  });
}

void Overseers::forget(const std::shared_ptr<One>& one) {
  server_.poller().remove(one->peer.socket.get(), one->watch);
  all_.remove(one);
}

}  // namespace rnic::testbench
