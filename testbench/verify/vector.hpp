#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "driver/generated/host_interface.hpp"
#include "driver/nd2/ndtypes.h"
#include "driver/umd/kernel_qp.hpp"
#include "driver/umd/request.hpp"
#include "model/pcie_faults.hpp"
#include "model/wire_faults.hpp"
#include "testbench/verify/vector_error.hpp"
#include "testbench/verify/vector_step.hpp"

/// Test vectors in memory, as docs/vectors.md describes their files.
namespace rnic::testbench {

struct VectorRegion {
  std::size_t host = 0;  ///< 0: A, 1: B
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t flags = 0;  ///< ND_MR_FLAG_*
  bool pattern = false;     ///< Filled with the pattern; otherwise zero
  bool remote_atomic = false;
  bool other_domain = false;                              ///< In a protection domain of its own
  std::string memory_of;                                  ///< Region whose memory it is, too; its own if empty
  std::optional<model::PcieFault> reads{}, list_reads{};  ///< What each DMA read of its memory, of its page list meets
};

/// Receive queues that all queue pairs of a host share.
struct VectorSrq {
  std::uint32_t depth = 16, sge = 4, threshold = 0;
  bool other_domain = false;  ///< The queue pairs are in another protection domain than their queue
};

/// Of a VLAN tag (IEEE 802.1Q 9.6).
inline constexpr std::uint16_t kReservedVid = 0xfff, kHighestVid = kReservedVid - 1;
inline constexpr std::uint8_t kHighestPriority = 7;

/// What the queue pairs of one host are made and connected with.
struct VectorHostSetup {
  std::uint32_t mtu = 1024;
  std::uint32_t initiator_depth = 16, receive_depth = 16, initiator_sge = 4, receive_sge = 4, inline_size = 64;
  std::uint32_t initiator_reads = 4,
                responder_reads = 4;  ///< Outstanding Reads and atomics: its own, those of its peer
  std::uint32_t cq_depth = 64;
  std::optional<std::uint64_t> pinned_quota, ring_quota;  ///< Bytes that the kernel driver lets the host's client have
  std::uint8_t ack_timeout = 8, retry_count = 7, rnr_retry = 6, min_rnr_timer = 4;
  bool remote_read = true, remote_write = true, remote_atomic = true;  ///< What the peer may do
  std::optional<std::uint32_t> first_psn;                              ///< Of its requests
  std::uint16_t pkey = 0xffff;
  std::uint8_t traffic_class = 0, hop_limit = 64;
  std::uint32_t flow_label = 0, qkey = 0x11223344;
  std::uint16_t vlan = 0;  ///< VID of the VLAN of its address; 0: none
  std::uint8_t sl = 0;     ///< Service level: the priority in the tag
};

struct VectorSetup {
  hw::QpType type = hw::QpType::kRc;
  /// Queue pairs that only the kernel driver may have.
  [[nodiscard]] bool is_kernels() const { return general_service || type == hw::QpType::kRawPacket; }
  bool general_service = false;  ///< QP1 of the kernel drivers; type UD
  bool fast_register = false;    ///< The queue pairs take fast registrations
  std::size_t queue_pairs = 1;   ///< Of each host
  std::optional<VectorSrq> srq;
  bool one_cq = false;  ///< Initiator and receive queues of a host have the same completion queue
  bool connected = true;
  bool connections = false;  ///< Connected by connectors, in the steps
  bool ipv6 = false;
  bool iommu_faults = false;       ///< DMA that the IOMMU refuses is part of the vector
  bool split_completions = false;  ///< Answers to DMA reads come in pieces
  bool ordinary_world = false;     ///< What it says hangs on times and orders of the ordinary machines and wire
  std::optional<double> link_gbps, link_delay_ns;
  hw::CompletionTimeoutRange completion_timeout = hw::CompletionTimeoutRange::kDefault;
  std::array<VectorHostSetup, 2> hosts;
  std::vector<VectorRegion> regions;
};

/// A packet on the wire, or what is expected of one.
struct VectorPacket {
  std::string text;
  std::size_t from = 0;
  std::map<std::string, std::uint64_t> fields;  ///< "opcode", and others of docs/vectors.md
  std::string rkey_of;  ///< Region or window whose remote token stands in the RETH, AtomicETH or IETH
  bool lost = false;
};

/// What is expected at one place of a list of packets.
struct PacketPattern {
  enum class Kind : std::uint8_t {
    kPacket,
    kEither,  ///< One of several lists
    kMixed,   ///< All of several lists: each in its order, in whatever order among each other
  };
  Kind kind = Kind::kPacket;
  VectorPacket packet;
  std::vector<std::vector<PacketPattern>> lists;
  std::string open_by;  ///< kEither: the clause that leaves it open
};
using PacketPatterns = std::vector<PacketPattern>;

struct Vector {
  std::filesystem::path file;
  std::string document, clause, rule;
  VectorSetup setup;
  std::vector<VectorStep> steps;
  std::optional<PacketPatterns> packets;                      ///< Of both directions, in order
  std::array<std::optional<PacketPatterns>, 2> packets_from;  ///< Of one direction
  std::vector<VectorPacket> no_packets;                       ///< None such may be among them
  std::vector<std::uint8_t> frame;                            ///< Frame vectors only
  std::map<std::string, std::uint64_t> header;                ///< Frame vectors only: fields of rx_desc
};

/// How a vector ended.
struct VectorOutcome {
  bool passed = false;
  std::string message;             ///< Why it failed
  std::uint64_t simulated_ns = 0;  ///< Of its steps
  std::uint64_t set_up_ns = 0;     ///< Of what is made before the first of them
  std::uint64_t cycles = 0;        ///< Of a NIC, from its reset until all is torn down
  std::uint64_t failed_ns = 0;     ///< When it failed, since the reset; 0 for one that needs no simulation
  bool stopped = false;            ///< The simulation reported an error, and cannot go on in this process
  bool malformed = false;          ///< It says nothing that can be run: `message`
  double wall_seconds = 0;         ///< That it took on the machine that simulates
};

/// Reads one file. Throws VectorError.
Vector load_vector(const std::filesystem::path& file);
/// Reads the text of one; `file` is its name in messages. Throws VectorError.
Vector parse_vector(const std::string& text, const std::filesystem::path& file);

/// The list of clauses in a folder of vectors; it is no vector.
inline constexpr const char* kClauseFile = "clauses.json";

/// The files of the vectors: those that are named, and those in folders that are (recursively, *.json but kClauseFile
/// and kStatementFile, sorted by path). Throws VectorError when a folder has none.
std::vector<std::filesystem::path> vector_files(const std::vector<std::filesystem::path>& paths);

/// All vectors of the given files and folders (recursively, *.json but kClauseFile and kStatementFile, sorted by path).
/// Throws VectorError, also when a path does not exist or no vector is found.
std::vector<Vector> load_vectors(const std::vector<std::filesystem::path>& paths);

/// Byte i of the pattern of that number: never 0, and no two places are alike for longer than by chance, so that bytes
/// of another place, packet or region show.
constexpr std::uint8_t pattern_byte(std::uint64_t pattern, std::uint64_t i) {
  std::uint64_t mixed = (pattern + i + 1) * 0x9e3779b97f4a7c15;
  mixed = (mixed ^ mixed >> 29) * 0xbf58476d1ce4e5b9;
  return static_cast<std::uint8_t>(1 + (mixed >> 32) % 255);
}
/// Number of the pattern of a region.
std::uint64_t region_pattern(std::size_t host, const std::string& region);
/// Number of the pattern that a hand-made frame of host `sender`, to a queue pair of its peer, carries.
std::uint64_t payload_pattern(std::size_t sender, std::size_t qp, std::uint32_t psn);

/// Name of a status value (ND_SUCCESS ...), or its number.
std::string status_name(std::int32_t status);
/// Names of docs/vectors.md, Steps.
std::string kind_name(umd::RequestKind kind);
std::string cqe_status_name(hw::CqeStatus status);
std::string event_name(hw::EqeType type);

}  // namespace rnic::testbench
