#include "testbench/tool/bench_loss.hpp"

#include "testbench/tool/bench_pairs.hpp"
#include "testbench/tool/bench_streams.hpp"

namespace rnic::testbench {
namespace {

WorldOptions with_loss(const WorldOptions& options, const std::vector<model::WireRule>& rules,
                       std::size_t from_host = 0) {
  WorldOptions lossy = options;
  lossy.wire.delay_ns = kLossDelayNs;
  lossy.wire.faults[from_host].rules = rules;
  return lossy;
}

}  // namespace

model::WireRule drop(std::optional<std::uint8_t> opcode, std::uint64_t nth) {
  model::WireRule rule;
  rule.fault = model::WireFault::kDrop;
  rule.match.opcode = opcode;
  rule.nth = nth;
  return rule;
}

double goodput_with_loss(World& world, const WorldOptions& options, Transfer::Direction direction, std::uint64_t each) {
  std::vector<model::WireRule> rules;
  for (std::uint64_t nth = each / 2; nth <= kBenchBufferBytes / kBenchMtu; nth += each) rules.push_back(drop({}, nth));
  return goodput_fraction(world, with_loss(options, rules, direction == Transfer::Direction::kRead ? 1 : 0), direction,
                          nullptr);
}

double write_time(World& world, const WorldOptions& options, const std::vector<model::WireRule>& rules) {
  constexpr std::uint64_t kMessage = 64 << 10;
  std::uint64_t nanoseconds = 0;
  ConnectParameters connection{kBenchMtu};
  connection.ack_timeout = 2;  // 16 us: what the last packet waits for
  with_pairs(
      world, with_loss(options, rules), 1, 1, 4, 0, kMessage,
      [&](Pairs& pairs) {
        world.add_app(0, "write", [&](Host&) {
          Transfer transfer(*pairs.side(0).endpoint, *pairs.side(0).cqs[0], {pairs.side(0).qps[0].get()}, 4);
          nanoseconds = transfer.run(Transfer::Direction::kWrite, pairs.range(0, 0, kMessage), kMessage);
        });
      },
      connection);
  return static_cast<double>(nanoseconds);
}

}  // namespace rnic::testbench
