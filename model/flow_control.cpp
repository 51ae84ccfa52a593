#include "model/flow_control.hpp"

#include <algorithm>
#include <stdexcept>

#include "model/tlp_checker.hpp"

namespace rnic::model {
namespace {

std::uint64_t units(std::size_t bytes) { return (bytes + kCreditBytes - 1) / kCreditBytes; }

}  // namespace

void check(const CreditOptions& options, std::size_t max_payload) {
  const auto require = [](bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
  };
  for (const CreditLimit& limit : options.limits)
    require(!limit.headers || *limit.headers > 0, "header credits are 0: no TLP could ever leave");
  const auto fits = [&](CreditKind kind, std::size_t bytes) {
    return !options.of(kind).data || *options.of(kind).data >= units(bytes);
  };
  require(fits(CreditKind::kPosted, max_payload), "posted data credits are less than the maximum payload (2.6.1)");
  require(fits(CreditKind::kCompletion, kNicCompletionBytes), "completion data credits are less than a completion");
  require(options.return_ns >= 0, "return_ns of credits is negative");
}

CreditCounter::CreditCounter(const CreditOptions& options)
    : options_(options),
      limited_(std::any_of(options.limits.begin(), options.limits.end(),
                           [](const CreditLimit& limit) { return limit.headers || limit.data; })) {}

void CreditCounter::collect(CreditKind kind, Picoseconds now) const {
  const auto index = static_cast<std::size_t>(kind);
  auto& returns = returns_[index];
  for (; !returns.empty() && returns.front().time <= now; returns.pop_front()) {
    used_[index].headers -= returns.front().count.headers;
    used_[index].data -= returns.front().count.data;
  }
}

bool CreditCounter::enough(CreditKind kind, std::size_t bytes, Picoseconds now) const {
  if (!limited_) return true;
  collect(kind, now);
  const auto& limit = options_.of(kind);
  const Count& used = used_[static_cast<std::size_t>(kind)];
  if (limit.headers && used.headers + 1 > *limit.headers) return false;
  return !limit.data || used.data + units(bytes) <= *limit.data;
}

void CreditCounter::spend(CreditKind kind, std::size_t bytes, Picoseconds now, Picoseconds sent) {
  if (!limited_) return;
  if (!enough(kind, bytes, now)) throw PcieProtocolError("a TLP that its receiver has no credits for (2.6.1.2)");
  const auto index = static_cast<std::size_t>(kind);
  const Count count{1, units(bytes)};
  used_[index].headers += count.headers;
  used_[index].data += count.data;
  // TLPs of a direction end one after the other.
  returns_[index].push_back({sent + from_ns(options_.return_ns), count});
}

}  // namespace rnic::model
