#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "model/pcie.hpp"
#include "model/random.hpp"
#include "model/root_complex_options.hpp"
#include "model/time.hpp"

namespace rnic::model {

/// A DMA read that memory answers, and how much of it has been sent.
struct ReadJob {
  CompletionStatus status{};
  std::uint16_t tag{};
  std::uint64_t address{};         ///< First byte not sent yet
  std::uint32_t left{};            ///< Bytes not sent yet; 0: the job is done
  std::vector<std::uint8_t> data;  ///< Dwords from that of the first byte on
  std::size_t sent_dword_bytes{};  ///< Bytes of `data` before the dword of `address`
  /// What is wrong (`status` or one of these) is so from the completion on that would carry this byte.
  std::uint64_t fault_address{};
  bool poisoned{};                    ///< That completion is poisoned
  bool lost{};                        ///< That completion, and all after it, never come
  Picoseconds late{};                 ///< They come so much later
  std::optional<PcieFault> forged{};  ///< That completion is wrong as this says
  /// Memory that takes its time has still to give status and data: called before they are looked at. Empty: it has.
  std::function<void(ReadJob&)> await{};
};

/// Cuts the answer to a read into completion TLPs (base specification 2.3.1.1): each ends at the end of the request or
/// at a multiple of the read completion boundary, and carries at most the maximum payload.
class CompletionSplitter {
 public:
  explicit CompletionSplitter(const RootComplexOptions& options);

  void set_max_payload(std::size_t bytes) { max_payload_ = bytes; }
  /// The next TLP of a job that is not done; empty when the rest of it is lost, which ends the job, or late, which does
  /// not. An error status takes one TLP and ends the job.
  [[nodiscard]] std::optional<DmaCompletion> next(ReadJob& job);

 private:
  [[nodiscard]] std::uint64_t cut(std::uint64_t start, std::uint64_t end);
  [[nodiscard]] std::uint64_t forged_end(const ReadJob& job, std::uint64_t end);
  void forge(DmaCompletion& completion, PcieFault fault);

  std::size_t boundary_;
  std::size_t max_payload_;
  double split_probability_;
  Random random_;
  Random forger_;  ///< Of what is wrong on purpose
};

}  // namespace rnic::model
