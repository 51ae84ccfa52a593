#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <systemc>

#include "model/pcie.hpp"
#include "model/time.hpp"

namespace rnic::model {

/// Tags of the host's non-posted requests, and the threads that wait for their completions.
///
/// The completions of a read are put together, and must be what 2.2.9 and 2.3.1.1 of the base specification ask for: in
/// order, with the byte count that is left and the address where they begin, each but the last to a multiple of 128,
/// all with the traffic class and the attributes of the request.
///
/// A request that was given up keeps its tag until its last completion comes after all, so that a late completion is
/// never taken for that of a later request (2.8).
class MmioTags {
 public:
  static constexpr std::size_t kTags = 32;

  /// A tag for one request, of the bytes `range`, sent with `handling`, given back at the end of its scope. Takes one
  /// from a SystemC thread; waits while none is free.
  class Lease {
   public:
    Lease(MmioTags& tags, const ByteRange& range, TlpHandling handling = {});
    ~Lease();
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    [[nodiscard]] std::uint16_t tag() const { return tag_; }
    /// Waits for the completion with all of the data, at most `timeout`. Null when the time is over. The completion
    /// lives as long as the lease.
    [[nodiscard]] const HostCompletion* wait(Picoseconds timeout);

   private:
    MmioTags& tags_;
    std::uint16_t tag_;
    std::uint64_t epoch_;
  };

  enum class Taken : std::uint8_t {
    kByItsRequest,
    kTooLate,   ///< The request was given up
    kByNobody,  ///< No request has that tag
  };
  /// Hands a completion to its request. Throws PcieProtocolError, naming the rule, for one that does not fit.
  Taken complete(HostCompletion completion);
  /// Forgets all requests.
  void reset();

 private:
  enum class State : std::uint8_t { kFree, kWaiting, kDone, kAbandoned };
  struct Slot {
    State state = State::kFree;
    ByteRange left;  ///< What is still to come
    TlpHandling handling;
    HostCompletion completion;
    sc_core::sc_event event;
  };
  std::array<Slot, kTags> slots_;
  sc_core::sc_event freed_;
  std::uint64_t epoch_ = 0;
};

}  // namespace rnic::model
