#include <catch2/catch.hpp>

#include <string>

#include "testbench/server/machine_file.hpp"

using namespace rnic;
using testbench::MachineDescription;
using testbench::MachineFileError;

// Machine files: docs/machine_file.md.

namespace {

MachineDescription read(const std::string& text) {
  MachineDescription machine;
  testbench::InputFiles files;
  testbench::parse_machine(text, "m.toml", ".", machine, files);
  return machine;
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const MachineFileError& error) {
    return error.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("an empty machine file is the default machine") {
  const auto machine = read("");
  CHECK(machine.world.hosts == 2);
  CHECK_FALSE(machine.world.has_switch());
  CHECK(machine.gids_of(0) == std::vector<kmd::Gid>{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 10, 0, 0, 1}});
  CHECK(machine.gids_of(3).at(0).at(15) == 4);
}

TEST_CASE("a host may be a guest's") {
  const auto machine = read("[[host]]\n[[host]]\nguest = true\n[[host]]\nguest = false\n");
  CHECK(machine.guests == std::set<std::size_t>{1});
  CHECK(error_of("[[host]]\nguest = 1\n") != "none");
}

TEST_CASE("a machine file says what hosts, wire and PCI Express are") {
  const auto machine = read(R"(
seed = 42
[wire]
rate_gbps = 25
delay_ns = 1500.5
[pcie]
generation = 3
lanes = 8
payload = 128
[switch]
latency_ns = 300
[[host]]
[[host]]
gids = ["192.168.7.2", "2001:db8::5"]
wire = {rate_gbps = 10}
[[host]]
pcie = {read_ns = 900}
)");
  const auto& world = machine.world;
  CHECK(world.seed == 42);
  CHECK(world.hosts == 3);
  CHECK(world.has_switch());
  CHECK(world.wire.rate_gbps == 25);
  CHECK(world.wire.delay_ns == 1500.5);
  CHECK(world.ethernet_switch.latency_ns == 300);
  CHECK(world.host.root_complex.config.max_payload == 128);
  CHECK(world.host.root_complex.bandwidth_gbytes == Approx(7.88).epsilon(0.01));
  CHECK_FALSE(world.each_host[0]);
  CHECK(world.each_host[2]->root_complex.read_latency_ns == 900);
  CHECK(world.each_host[2]->root_complex.config.max_payload == 128);
  CHECK(world.each_wire[1]->rate_gbps == 10);
  CHECK(world.each_wire[1]->delay_ns == 1500.5);
  const auto gids = machine.gids_of(1);
  REQUIRE(gids.size() == 2);
  CHECK(gids[0] == kmd::Gid{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xFF, 192, 168, 7, 2});
  CHECK(gids[1] == kmd::Gid{0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5});
}

TEST_CASE("a machine file wires ports to sockets") {
  const auto one = read("[[socket]]\ndatagram = \"/run/port\"\npeer = \"guest/../net\"\n");
  CHECK(one.world.hosts == 1);
  CHECK(one.world.free_ends == 1);
  CHECK_FALSE(one.world.has_switch());
  REQUIRE(one.sockets.size() == 1);
  CHECK(one.sockets[0].describe() == "datagrams at /run/port, to net");
  const auto more = read("hosts = 2\n[[socket]]\nlisten = \"127.0.0.1:5000\"\n[[socket]]\nconnect = \"./s\"\n");
  CHECK(more.world.hosts == 2);
  CHECK(more.world.has_switch());
  REQUIRE(more.sockets.size() == 2);
  CHECK(more.sockets[0].describe() == "listens at 127.0.0.1:5000");
  CHECK(more.sockets[1].describe() == "connects to s");
  CHECK(read("[[host]]\n[[host]]\n[[socket]]\nlisten = \"./a\"\n").world.hosts == 2);
}

TEST_CASE("what is wrong with a socket is an error that names its line") {
  CHECK(error_of("[[socket]]\n") == "m.toml:1: socket[0].socket: has one of datagram, listen and connect");
  CHECK(error_of("[[socket]]\nlisten = \"./a\"\nconnect = \"./b\"\n") ==
        "m.toml:1: socket[0].socket: has one of datagram, listen and connect");
  CHECK(error_of("[[socket]]\ndatagram = \"./a\"\n") == "m.toml:1: socket[0].peer: datagram needs it: where frames go");
  CHECK(error_of("[[socket]]\nlisten = \"./a\"\npeer = \"./b\"\n") == "m.toml:3: socket[0].peer: is for datagram");
  CHECK(error_of("[[socket]]\ndatagram = \"./a\"\npeer = \"127.0.0.1:1\"\n") ==
        "m.toml:3: socket[0].peer: is of another kind than datagram: both are paths, or both addresses");
  for (const std::string wrong :
       {"name", "10.0.0.1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:70000", "10.0.0.1:80x", "host.example:80", ""}) {
    CHECK(error_of("[[socket]]\nlisten = \"" + wrong + "\"\n") ==
          "m.toml:2: socket[0].listen: '" + wrong +
              "' is neither a path with a slash in it, of at most 107 bytes, nor an IPv4 address with a port "
              "(127.0.0.1:5000)");
  }
  CHECK(error_of("[[socket]]\nlisten = \"/" + std::string(107, 'a') + "\"\n").starts_with("m.toml:2: "));
  CHECK(error_of("[[socket]]\nlisten = \"./a\"\nmtu = 3\n") == "m.toml:3: socket[0].mtu: there is no such key");
  CHECK(error_of("hosts = 16\n[[socket]]\nlisten = \"./a\"\n") ==
        "m.toml:1: hosts: there are more than 16 with the sockets");
}

TEST_CASE("what is wrong in a machine file is an error that names its line") {
  CHECK(error_of("seed = 1\n\nsped = 2\n") == "m.toml:3: sped: there is no such key");
  CHECK(error_of("[wire]\nrate_gbps = 10\nrate = 3\n") == "m.toml:3: wire.rate: there is no such key");
  CHECK(error_of("[wire]\nrate_gbps = \"fast\"\n") == "m.toml:2: wire.rate_gbps: is no number");
  CHECK(error_of("[wire]\nrate_gbps = 1000\n") == "m.toml:2: wire.rate_gbps: is 1000, which is not from 0.1 to 400");
  CHECK(error_of("hosts = 17\n") == "m.toml:1: hosts: is 17, which is not from 2 to 16");
  CHECK(error_of("hosts = 2.5\n") == "m.toml:1: hosts: is no whole number");
  CHECK(error_of("seed = -1\n").starts_with("m.toml:1: seed: is -1"));
  CHECK(error_of("hosts = 2\n[[host]]\n[[host]]\n[[host]]\n") ==
        "m.toml:1: hosts: is 2, and there are 3 tables [[host]]");
  CHECK(error_of("[[host]]\n\n[[host]]\ngids = [\"10.0.0.300\"]\n") ==
        "m.toml:4: host[1].gids: '10.0.0.300' is no IPv4 or IPv6 address");
  CHECK(error_of("[[host]]\ngids = [7]\n") == "m.toml:2: host[0].gids: has something in it that is no text");
  CHECK(error_of("[[host]]\nwire = {rate_gbps = 10}\n") ==
        "m.toml:2: host[0].wire: a cable of its own a host has only with a switch");
  CHECK(error_of("[host]\n") == "m.toml:1: host: is no list of tables: write [[host]]");
  CHECK(error_of("[pcie]\npayload = 200\n") ==
        "m.toml:2: pcie.payload: is 200, which is none of 128, 256, 512, 1024, 2048, 4096");
  CHECK(error_of("[pcie]\nlanes = 4\n") == "m.toml:2: pcie.lanes: needs the other of generation and lanes");
  CHECK(error_of("faults = \"nothing.json\"\n").starts_with("m.toml:1: faults: "));
  CHECK(error_of("seed = \n").starts_with("m.toml:1: "));
  MachineDescription machine;
  testbench::InputFiles files;
  machine.world.seed = 7;
  CHECK_THROWS_AS(testbench::parse_machine("seed = 8\nx = 1\n", "m.toml", ".", machine, files), MachineFileError);
  CHECK(machine.world.seed == 7);
  CHECK_THROWS_WITH(testbench::load_machine("no_such_file.toml", machine, files), "no_such_file.toml: cannot be read");
}

TEST_CASE("a machine file says what MTU the ports have") {
  CHECK(read("").mtu == 0);
  CHECK(read("mtu = 1024").mtu == 1024);
  CHECK(error_of("mtu = 1500") != "none");
}

TEST_CASE("a machine file says what the NIC of each host is") {
  using testbench::NicKind;
  CHECK_FALSE(read("").world.nics[0]);
  const auto one = read("nic = \"model\"\n[[host]]\n[[host]]\nnic = \"rtl\"\n").world.nics;
  CHECK(one[0] == NicKind::kModel);
  CHECK(one[1] == NicKind::kRtl);
  const auto mixed = read("[[host]]\n[[host]]\nnic = \"model\"\n").world.nics;
  CHECK_FALSE(mixed[0]);
  CHECK(mixed[1] == NicKind::kModel);
  CHECK(error_of("[[host]]\nnic = \"vhdl\"\n") ==
        "m.toml:2: host[0].nic: 'vhdl' is none of rtl, model (the reference NIC)");
}

TEST_CASE("a machine file says what a process may have; what it does not say is a part of the device") {
  const Limits device{
      .max_qp = 254, .max_cq = 256, .max_mr = 32767, .uar_count = 128, .max_srq = 256, .max_multicast_groups = 16};
  const auto otherwise = read("").quota.on(device);
  CHECK(otherwise.objects == kmd::ObjectQuota{127, 8192, 1U << 16, 16384, 128, 128, 1024, 256, 4096});
  CHECK(otherwise.contexts == 64);
  CHECK(otherwise.multicast_groups == 8);
  CHECK(otherwise.group_members == 16);
  CHECK(otherwise.pinned_bytes == std::uint64_t{4} << 30);
  CHECK(otherwise.ring_bytes == std::uint64_t{256} << 20);
  const auto said = read(R"(
[quota]
opens = 1
queue_pairs = 2
completion_queues = 3
shared_receive_queues = 4
memory_regions = 5
memory_windows = 6
protection_domains = 7
channels = 8
endpoints = 12
multicast_groups = 9
group_members = 13
pinned_mb = 10
rings_mb = 11
)")
                        .quota.on(device);
  CHECK(said.objects == kmd::ObjectQuota{2, 6, 1U << 16, 5, 4, 3, 7, 8, 12});
  CHECK(said.contexts == 1);
  CHECK(said.multicast_groups == 9);
  CHECK(said.group_members == 13);
  CHECK(said.pinned_bytes == std::uint64_t{10} << 20);
  CHECK(said.ring_bytes == std::uint64_t{11} << 20);
  CHECK(error_of("[quota]\nqueue_pairs = 0") == "m.toml:2: quota.queue_pairs: is 0, which is not from 1 to 4294967296");
  CHECK(error_of("[quota]\nqps = 1") == "m.toml:2: quota.qps: there is no such key");
}
