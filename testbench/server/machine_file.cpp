#include "testbench/server/machine_file.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>

#include "testbench/limits/limits.hpp"
#include "testbench/scenario.hpp"

namespace rnic::testbench {
namespace {

constexpr double kMostGbps = 400, kMostNs = 1e9;

/// 10.0.0.1 for host 0.
kmd::Gid default_gid(std::size_t host) {
  return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, static_cast<std::uint8_t>(host + 1)};
}

kmd::Gid read_gid(const TomlTable& table, const std::string& text) {
  kmd::Gid gid{};
  constexpr std::size_t kMappedAt = 12;
  if (inet_pton(AF_INET6, text.c_str(), gid.data()) == 1) return gid;
  gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF};
  if (inet_pton(AF_INET, text.c_str(), gid.data() + kMappedAt) != 1)
    table.fail("gids", fmt::format("'{}' is no IPv4 or IPv6 address", text));
  return gid;
}

void read_wire(TomlTable table, model::WireOptions& wire) {
  table.number("rate_gbps", wire.rate_gbps, 0.1, kMostGbps);
  table.number("delay_ns", wire.delay_ns, 0, kMostNs);
  table.finish();
}

void read_switch(TomlTable table, model::EthernetSwitchOptions& options) {
  std::uint64_t buffer = options.buffer_bytes;
  table.number("latency_ns", options.latency_ns, 0, kMostNs);
  table.number("buffer_bytes", buffer, 2048, std::uint64_t{1} << 30);
  table.finish();
  options.buffer_bytes = buffer;
}

void read_pcie(TomlTable table, model::RootComplexOptions& options) {
  const std::vector<std::uint64_t> sizes{128, 256, 512, 1024, 2048, 4096};
  std::uint64_t generation = 0, lanes = 0, payload = options.config.max_payload,
                read_request = options.config.max_read_request, boundary = options.read_completion_boundary;
  table.one_of("generation", generation, {1, 2, 3, 4, 5});
  table.one_of("lanes", lanes, {1, 2, 4, 8, 16});
  table.one_of("payload", payload, sizes);
  table.one_of("read_request", read_request, sizes);
  table.one_of("boundary", boundary, {64, 128});
  table.number("read_ns", options.read_latency_ns, 1, 1e6);
  table.number("jitter_ns", options.jitter_ns, 0, 1e6);
  table.number("reorder", options.reorder_probability, 0, 1);
  table.number("split", options.split_probability, 0, 1);
  if ((generation == 0) != (lanes == 0))
    table.fail(generation == 0 ? "lanes" : "generation", "needs the other of generation and lanes");
  table.finish();
  if (generation != 0)
    options.bandwidth_gbytes = pcie_gbytes(static_cast<unsigned>(generation), static_cast<unsigned>(lanes));
  options.config.max_payload = payload;
  options.config.max_read_request = read_request;
  options.read_completion_boundary = boundary;
}

void read_quota(TomlTable table, ProcessQuota& quota) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  const auto read = [&](const char* key, ProcessQuota::Number& to) {
    std::uint64_t number = to.value_or(0);  // 0 is no limit to live with
    table.number(key, number, 1, kMost);
    if (number != 0) to = number;
  };
  read("opens", quota.opens);
  read("queue_pairs", quota.queue_pairs);
  read("completion_queues", quota.completion_queues);
  read("shared_receive_queues", quota.shared_receive_queues);
  read("memory_regions", quota.memory_regions);
  read("memory_windows", quota.memory_windows);
  read("protection_domains", quota.protection_domains);
  read("channels", quota.channels);
  read("endpoints", quota.endpoints);
  read("multicast_groups", quota.multicast_groups);
  read("group_members", quota.group_members);
  read("pinned_mb", quota.pinned_mb);
  read("rings_mb", quota.rings_mb);
  table.finish();
}

/// What a host's NIC is; nothing: the table does not say.
std::optional<NicKind> read_nic(TomlTable& table) {
  const auto text = table.text("nic");
  if (!text) return {};
  if (*text == "rtl") return NicKind::kRtl;
  if (*text == "model") return NicKind::kModel;
  table.fail("nic", fmt::format("'{}' is none of rtl, model (the reference NIC)", *text));
}

void read_hosts(std::vector<TomlTable> hosts, MachineDescription& machine) {
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    TomlTable& host = hosts[i];
    std::vector<kmd::Gid> gids{default_gid(i)};
    if (const auto texts = host.texts("gids")) {
      gids.clear();
      for (const auto& text : *texts) gids.push_back(read_gid(host, text));
    }
    machine.gids.push_back(std::move(gids));
    if (const auto nic = read_nic(host)) machine.world.nics.at(i) = nic;
    bool guest = false;
    host.boolean("guest", guest);
    if (guest) machine.guests.insert(i);
    if (auto pcie = host.table("pcie")) {
      HostOptions own = machine.world.host;
      read_pcie(std::move(*pcie), own.root_complex);
      machine.world.each_host.at(i) = own;
    }
    if (auto wire = host.table("wire")) {
      if (!machine.world.has_switch()) host.fail("wire", "a cable of its own a host has only with a switch");
      model::WireOptions own = machine.world.wire;
      read_wire(std::move(*wire), own);
      machine.world.each_wire.at(i) = own;
    }
    host.finish();
  }
}

/// Exactly one of `datagram` (with `peer`), `listen`, `connect`.
FrameSocketOptions read_socket(TomlTable& table, const std::filesystem::path& folder) {
  using Kind = FrameSocketOptions::Kind;
  const auto address = [&](std::string_view key) -> std::optional<SocketAddress> {
    const auto text = table.text(key);
    if (!text) return {};
    const auto read = SocketAddress::read(*text, folder);
    if (!read)
      table.fail(key,
                 fmt::format("'{}' is neither a path with a slash in it, of at most 107 bytes, nor an IPv4 address "
                             "with a port (127.0.0.1:5000)",
                             *text));
    return read;
  };
  const auto datagram = address("datagram"), peer = address("peer"), listen = address("listen"),
             connect = address("connect");
  if (int{datagram.has_value()} + int{listen.has_value()} + int{connect.has_value()} != 1)
    table.fail("socket", "has one of datagram, listen and connect");
  if (datagram.has_value() != peer.has_value())
    table.fail("peer", datagram ? "datagram needs it: where frames go" : "is for datagram");
  if (datagram && datagram->family() != peer->family())
    table.fail("peer", "is of another kind than datagram: both are paths, or both addresses");
  if (datagram) return {Kind::kDatagram, *datagram, *peer};
  if (listen) return {Kind::kListen, *listen, {}};
  return {Kind::kConnect, {}, *connect};
}

void read_sockets(std::vector<TomlTable> sockets, const std::filesystem::path& folder, MachineDescription& machine) {
  machine.sockets.clear();
  for (auto& socket : sockets) {
    machine.sockets.push_back(read_socket(socket, folder));
    socket.finish();
  }
}

void read_machine(TomlTable root, const std::filesystem::path& folder, MachineDescription& machine, InputFiles& files) {
  WorldOptions& world = machine.world;
  root.number("seed", world.seed, 0, ~std::uint64_t{0} >> 1);
  auto hosts = root.tables("host");
  auto sockets = root.tables("socket");
  // One host beside a socket is a machine; without a socket, and without a word, there are two.
  const std::uint64_t fewest = sockets.empty() ? 2 : 1;
  std::uint64_t count = std::max<std::uint64_t>(sockets.empty() ? world.hosts : 1, hosts.size());
  root.number("hosts", count, fewest, WorldOptions::kMostHosts);
  if (count + sockets.size() > WorldOptions::kMostHosts)
    root.fail(hosts.size() > 1 ? "host" : "hosts", fmt::format("there are more than {}{}", WorldOptions::kMostHosts,
                                                               sockets.empty() ? "" : " with the sockets"));
  if (hosts.size() > count)
    root.fail("hosts", fmt::format("is {}, and there are {} tables [[host]]", count, hosts.size()));
  world.hosts = count;
  if (const auto nic = read_nic(root)) world.nics.fill(nic);
  root.one_of("mtu", machine.mtu, {256, 512, 1024, 2048, 4096});
  world.free_ends = sockets.size();
  if (auto table = root.table("switch")) {
    world.switched = true;
    read_switch(std::move(*table), world.ethernet_switch);
  }
  if (auto wire = root.table("wire")) read_wire(std::move(*wire), world.wire);
  if (auto pcie = root.table("pcie")) read_pcie(std::move(*pcie), world.host.root_complex);
  if (const auto faults = root.text("faults")) {
    try {
      load_scenario(folder / *faults, world, files);
    } catch (const ScenarioError& error) {
      root.fail("faults", error.what());
    }
  }
  if (auto quota = root.table("quota")) read_quota(std::move(*quota), machine.quota);
  read_hosts(std::move(hosts), machine);
  read_sockets(std::move(sockets), folder, machine);
  root.finish();
}

}  // namespace

std::vector<kmd::Gid> MachineDescription::gids_of(std::size_t host) const {
  return host < gids.size() ? gids[host] : std::vector<kmd::Gid>{default_gid(host)};
}

void parse_machine(const std::string& text, const std::string& name, const std::filesystem::path& folder,
                   MachineDescription& machine, InputFiles& files) {
  MachineDescription read = machine;
  try {
    const toml::table table = toml::parse(text, name);
    read_machine(TomlTable(table, name, ""), folder, read, files);
  } catch (const toml::parse_error& error) {
    throw MachineFileError(fmt::format("{}:{}: {}", name, error.source().begin.line, error.description()));
  }
  machine = std::move(read);
}

void load_machine(const std::filesystem::path& file, MachineDescription& machine, InputFiles& files) {
  const auto text = files.read(file);
  if (!text) throw MachineFileError(fmt::format("{}: cannot be read", file.string()));
  parse_machine(*text, file.string(), file.parent_path(), machine, files);
}

}  // namespace rnic::testbench
