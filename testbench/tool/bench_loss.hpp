#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "testbench/tool/transfer.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// The wire of the figures with loss: 10 us there and back.
inline constexpr double kLossDelayNs = 5'000;

/// Frame number `nth` of those with this opcode is lost.
model::WireRule drop(std::optional<std::uint8_t> opcode, std::uint64_t nth);

/// Of the frames in which the data of `direction` travels, every `each`th is lost, from the middle of the first `each`
/// on: share of what the wire allows. Throws as with_pairs; so does the other.
double goodput_with_loss(World& world, const WorldOptions& options, Transfer::Direction direction, std::uint64_t each);
/// How long a 64 KiB Write takes with the loss that `rules` say, nanoseconds.
double write_time(World& world, const WorldOptions& options, const std::vector<model::WireRule>& rules);

}  // namespace rnic::testbench
