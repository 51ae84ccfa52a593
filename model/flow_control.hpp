#pragma once

#include <array>
#include <bitset>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <initializer_list>
#include <optional>

#include "model/pcie.hpp"
#include "model/time.hpp"

namespace rnic::model {

/// TLPs that have credits of their own (base specification 2.6.1).
enum class CreditKind : std::uint8_t { kPosted, kNonPosted, kCompletion };
inline constexpr std::size_t kCreditKinds = 3;

/// A set of them.
class CreditKinds {
 public:
  CreditKinds() = default;
  CreditKinds(std::initializer_list<CreditKind> kinds) {
    for (const CreditKind kind : kinds) set(kind, true);
  }
  void set(CreditKind kind, bool in) { set_.set(static_cast<std::size_t>(kind), in); }
  [[nodiscard]] bool has(CreditKind kind) const { return set_.test(static_cast<std::size_t>(kind)); }
  [[nodiscard]] bool empty() const { return set_.none(); }
  bool operator==(const CreditKinds&) const = default;

 private:
  std::bitset<kCreditKinds> set_;
};

[[nodiscard]] constexpr CreditKind credit_kind(TlpKind kind) {
  return kind == TlpKind::kMemoryWrite || kind == TlpKind::kMessage ? CreditKind::kPosted : CreditKind::kNonPosted;
}

/// Bytes of payload that one data credit is for (base specification 2.6.1).
inline constexpr std::size_t kCreditBytes = 16;
/// The most that a completion of the NIC carries: it cuts at the boundary of an endpoint (2.3.1.1).
inline constexpr std::size_t kNicCompletionBytes = 128;

/// What the receiver of the NIC's TLPs advertises for one kind; empty is infinite.
struct CreditLimit {
  std::optional<std::uint32_t> headers{};  ///< One for each TLP
  std::optional<std::uint32_t> data{};     ///< In units of kCreditBytes
};

struct CreditOptions {
  std::array<CreditLimit, kCreditKinds> limits{};  ///< By CreditKind
  /// From the end of a TLP on the link until its credits are back at the NIC.
  double return_ns = 100;

  [[nodiscard]] CreditLimit& of(CreditKind kind) { return limits[static_cast<std::size_t>(kind)]; }
  [[nodiscard]] const CreditLimit& of(CreditKind kind) const { return limits[static_cast<std::size_t>(kind)]; }
};

/// Throws std::invalid_argument when a limit is below what one TLP may need.
void check(const CreditOptions& options, std::size_t max_payload);

/// Counts credits of one receiver. Worked out when somebody looks, so how often that is changes nothing.
class CreditCounter {
 public:
  explicit CreditCounter(const CreditOptions& options);

  /// Without limits nothing ever waits for credits.
  [[nodiscard]] bool limited() const { return limited_; }
  /// A TLP with so much payload may be sent. `now` never goes back.
  [[nodiscard]] bool enough(CreditKind kind, std::size_t bytes, Picoseconds now) const;
  /// It is sent; its link time ends at `sent`. Throws PcieProtocolError when there are not enough.
  void spend(CreditKind kind, std::size_t bytes, Picoseconds now, Picoseconds sent);

 private:
  struct Count {
    std::uint64_t headers = 0, data = 0;
  };
  struct Return {
    Picoseconds time;
    Count count;
  };
  void collect(CreditKind kind, Picoseconds now) const;

  CreditOptions options_;
  bool limited_ = false;
  mutable std::array<Count, kCreditKinds> used_{};
  mutable std::array<std::deque<Return>, kCreditKinds> returns_;
};

}  // namespace rnic::model
