#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace rnic::testbench {

/// What a driver may do with memory that it shares with the device, and when (docs/host_interface.md, Ownership).
enum class OwnershipRule : std::uint8_t {
  kDoorbellBeforeWqe,
  kWrittenBehindDoorbell,
  kSlotOverwritten,
  kRingOverrun,
  kProducerBack,
  kConsumerAhead,
  kConsumerBack,
  kEntryOverwritten,
  kEntryReadUnordered,
  kRingNotZeroed,
  kObjectNotThere,
};

struct OwnershipRuleText {
  std::string_view name;  ///< By which it is told
  std::string_view says;
  std::string_view section;  ///< Of docs/host_interface.md
};

inline constexpr std::array<OwnershipRuleText, 11> kOwnershipRules{{
    {"doorbell-before-wqe", "a WQE is in its slot when its doorbell is rung", "Ownership, wqe_index"},
    {"written-behind-doorbell", "what a doorbell has handed over is not written any more", "Ownership"},
    {"slot-overwritten", "a slot is the device's until its WQE has retired or its command is complete", "Ownership"},
    {"ring-overrun", "a producer index counts no more than there are slots", "Rings, Ownership"},
    {"producer-back", "a producer index does not go back", "Ownership"},
    {"consumer-ahead", "an entry is there when its phase is that of the pass, and not before", "cqe, eqe, Ownership"},
    {"consumer-back", "a consumer index does not go back", "Ownership"},
    {"entry-overwritten", "an entry that was given back is the device's until it is written again", "Ownership"},
    {"entry-read-unordered", "the phase is read first, and the rest behind a barrier for loads", "Ownership"},
    {"ring-not-zeroed", "a ring that the device writes is zeroed before it is handed over", "Rings"},
    {"object-not-there", "a doorbell is for an object whose creation is complete", "Ownership"},
}};

[[nodiscard]] constexpr const OwnershipRuleText& text_of(OwnershipRule rule) {
  return kOwnershipRules.at(static_cast<std::size_t>(rule));
}

}  // namespace rnic::testbench
