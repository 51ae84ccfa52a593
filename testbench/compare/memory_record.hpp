#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "testbench/verify/vector_session.hpp"

namespace rnic::testbench {

/// Bytes of a block of MemoryRecord::changes.
inline constexpr std::size_t kHashedBytes = 256;

/// What is in the memory of a program's regions, but for what the specification leaves open (Freedom::kFailedMemory).
class MemoryRecord {
 public:
  MemoryRecord(VectorSession& session, const VectorSetup& setup);

  /// What is in these bytes of a region says nothing from now on; what of them lies outside of it is no matter.
  void leave_open(const std::string& region, std::int64_t offset, std::uint64_t length);

  /// {region: {number of a block of kHashedBytes: hash}}: the blocks that have changed since the last call.
  [[nodiscard]] nlohmann::json changes();
  /// {region: what is in it, in hexadecimal digits, with "??" for an open byte}.
  [[nodiscard]] nlohmann::json bytes();

 private:
  struct Span {
    const std::uint8_t* first;
    std::size_t bytes;
  };

  [[nodiscard]] static std::uint64_t hash_but(const std::vector<Span>& open, const std::uint8_t* first,
                                              std::size_t count);

  VectorSession& session_;
  std::vector<std::string> names_;  ///< Of regions with memory of their own
  std::vector<Span> open_;
  std::map<std::string, std::vector<std::uint64_t>> hashes_;
};

}  // namespace rnic::testbench
