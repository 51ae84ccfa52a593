#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

/// Test vectors in memory, as docs/vectors.md describes their files.
namespace rnic::testbench {

/// A vector file that is not what docs/vectors.md says; what() names the file and the place.
class VectorError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct VectorRegion {
  std::size_t host = 0;  ///< 0: A, 1: B
  std::string name;
  std::uint64_t size = 0;
  std::uint32_t flags = 0;  ///< ND_MR_FLAG_*
  bool pattern = false;     ///< Filled with the pattern; otherwise zero
};

struct VectorSetup {
  bool connected = true;
  std::uint32_t mtu = 1024;
  bool ipv6 = false;
  std::uint32_t initiator_depth = 16, receive_depth = 16, initiator_sge = 4, receive_sge = 4, inline_size = 64;
  std::uint32_t read_limit = 4, cq_depth = 64;
  std::vector<VectorRegion> regions;
};

/// How the token of a place differs from the token of its region.
enum class TokenChange : std::uint8_t { kNone, kCorruptIndex, kCorruptTag, kOther };

/// Bytes of a region: an SGE, or the remote side of a Read or Write.
struct VectorPlace {
  std::string region;
  std::int64_t offset = 0;
  std::uint32_t length = 0;
  TokenChange token = TokenChange::kNone;
  std::string token_of;                    ///< kOther: region whose token is used
  std::optional<std::uint64_t> address;    ///< Replaces the region's address
};

struct VectorResult {
  std::uint32_t type = 0;  ///< ND2_REQUEST_TYPE
  std::uint64_t context = 0;
  std::int32_t status = 0;
  std::optional<std::uint32_t> bytes;
};

enum class StepKind : std::uint8_t {
  kSend, kReceive, kWrite, kRead, kFlush, kComplete, kNoCompletion, kNotify, kNotified, kNotNotified, kMemory, kRegister, kDeregister, kWait,
};

struct VectorStep {
  StepKind kind = StepKind::kWait;
  std::string text;  ///< What the file calls it, for messages: "step 3 (send)"
  std::size_t host = 0;
  std::uint64_t context = 0;
  std::vector<VectorPlace> sge;
  VectorPlace remote;
  std::uint32_t flags = 0;  ///< ND_OP_FLAG_*, ND_MR_FLAG_* or ND_CQ_NOTIFY_*
  std::int32_t status = 0;  ///< What the call returns, or what the notification ends with
  bool receive_queue = false;
  std::vector<VectorResult> results;
  std::uint64_t within_ns = 0;
  std::string name;  ///< Notification, or region
  std::uint64_t offset = 0, length = 0, size = 0;
  std::optional<VectorPlace> equals;
  bool pattern = false;  ///< kMemory with fill
  enum class Buffer : std::uint8_t { kValid, kNull, kUnmapped } buffer = Buffer::kValid;
};

struct Vector {
  std::filesystem::path file;
  std::string document, clause, rule;
  VectorSetup setup;
  std::vector<VectorStep> steps;
  std::optional<std::vector<std::string>> packets;
  std::vector<std::uint8_t> frame;               ///< Frame vectors only
  std::map<std::string, std::uint64_t> header;   ///< Frame vectors only: fields of rx_desc
};

/// How a vector ended.
struct VectorOutcome {
  bool passed = false;
  std::string message;  ///< Why it failed
  std::uint64_t simulated_ns = 0;
};

/// Reads one file. Throws VectorError.
Vector load_vector(const std::filesystem::path& file);

/// All vectors of the given files and folders (recursively, *.json, sorted by path). Throws VectorError, also when a path does not
/// exist or no vector is found.
std::vector<Vector> load_vectors(const std::vector<std::filesystem::path>& paths);

/// Byte i of the pattern fill of a host (docs/vectors.md, Setup).
constexpr std::uint8_t pattern_byte(std::size_t host, std::uint64_t i) {
  return static_cast<std::uint8_t>(i * 7 + 13 + host * 101);
}

/// Name of a status value (ND_SUCCESS ...), or its number.
std::string status_name(std::int32_t status);

}  // namespace rnic::testbench
