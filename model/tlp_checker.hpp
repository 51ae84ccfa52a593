#pragma once

#include <bitset>
#include <cstdint>
#include <stdexcept>

#include "model/pcie.hpp"

namespace rnic::model {

/// A TLP that no root complex has to accept: on a real machine a fatal error, here an error in the NIC.
class PcieProtocolError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Checks the TLPs of a NIC against the rules of the PCI Express base specification, chapter 2.2 and 2.3.
class TlpChecker {
 public:
  /// Throws PcieProtocolError, naming the rule, when `request` is malformed, exceeds a limit of `config`, or reuses the
  /// tag of an outstanding read. Without `messages` an address is an address, also one of interrupt messages.
  void check_request(const DmaRequest& request, const PcieConfig& config, bool messages = true);
  /// Takes note of a completion; the last of a read frees its tag.
  void note_completion(const DmaCompletion& completion);
  /// A read will not be answered (to its end): its tag is free, because the NIC may use it again after its time-out
  /// (base specification 2.8), of which nothing is known here.
  void forget(std::uint16_t tag) { outstanding_.reset(tag); }
  void reset() { outstanding_.reset(); }
  [[nodiscard]] std::size_t outstanding_reads() const { return outstanding_.count(); }

 private:
  static constexpr std::size_t kTags = 1024;  ///< 10-bit tags
  std::bitset<kTags> outstanding_;
};

}  // namespace rnic::model
