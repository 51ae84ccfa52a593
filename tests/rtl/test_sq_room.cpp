#include <Vsq_room.h>

#include "tests/support/rtl_bench.hpp"

// rtl/sq/sq_room.sv: turns begin and go on only with room for a packet, whatever leaves the queue meanwhile.
using namespace rnic::test;

namespace {

constexpr unsigned kDescs = 16, kPieces = 64, kPerPacket = 16;

/// A turn in the second stage: a descriptor, then pieces, then perhaps another packet. One more may have begun.
struct Turns {
  explicit Turns(Bench<Vsq_room>& b) : bench(b) {}

  /// Sets the inputs of this cycle, and checks what the room that was promised is worth.
  void drive() {
    auto& dut = *bench.dut;
    dut.desc_in_i = dut.piece_in_i = dut.give_i = dut.take_i = 0;
    dut.desc_out_i = descs > 0 && bench.chance(out_rate);
    dut.piece_out_i = pieces > 0 && bench.chance(out_rate);
    bool last = false;
    if (making && !desc_made) {
      dut.desc_in_i = 1;
      desc_made = true;
      left = static_cast<unsigned>(bench.chance(0.3) ? longest : bench.uniform(0, longest));
      if (left == 0) last = true;
    } else if (making && bench.chance(0.9)) {
      dut.piece_in_i = 1;
      last = --left == 0;
    }
    dut.eval();
    const bool ends_with_piece = last && dut.piece_in_i;
    if (last) {
      if (ends_with_piece && dut.more_o && bench.chance(0.7)) {
        desc_made = false;
        ++went_on;
      } else {
        dut.give_i = 1;
        making = false;
        --turns;
      }
    } else if (!making && waiting > 0 && bench.chance(0.8)) {
      --waiting;
      making = true;
      desc_made = false;
    }
    if (dut.room_o && bench.chance(0.6)) {
      dut.take_i = 1;
      ++taken;
      ++turns;
      ++waiting;
    }
    descs += dut.desc_in_i - dut.desc_out_i;
    pieces += dut.piece_in_i - dut.piece_out_i;
    REQUIRE(turns <= 2);
    REQUIRE(descs <= static_cast<int>(kDescs));
    REQUIRE(pieces <= static_cast<int>(kPieces));
    most_descs = std::max(most_descs, descs);
    most_pieces = std::max(most_pieces, pieces);
  }

  Bench<Vsq_room>& bench;
  double out_rate = 1;
  unsigned longest = kPerPacket;  // packet, in pieces
  bool making = false, desc_made = false;
  unsigned left = 0;
  int descs = 0, pieces = 0, turns = 0, waiting = 0, taken = 0, went_on = 0, most_descs = 0, most_pieces = 0;
};

}  // namespace

TEST_CASE("sq_room: whoever has begun finds room for a packet, and nothing overflows", "[rtl]") {
  Bench<Vsq_room> bench(seed());
  auto& dut = *bench.dut;
  dut.take_i = dut.give_i = dut.desc_in_i = dut.desc_out_i = dut.piece_in_i = dut.piece_out_i = 0;
  bench.reset();
  Turns turns(bench);
  for (int step = 0; step < 200000; ++step) {
    if (step % 1000 == 0)
      turns.out_rate = std::array{1.0, 0.05, 0.3, 0.0, 0.6}[static_cast<std::size_t>(step / 1000 % 5)];
    if (step % 10000 == 0) turns.longest = std::array{kPerPacket, 1u, 3u}[static_cast<std::size_t>(step / 10000 % 3)];
    turns.drive();
    bench.tick();
  }
  CHECK(turns.taken > 1000);
  CHECK(turns.went_on > 1000);
  CHECK(turns.most_descs == static_cast<int>(kDescs));
  CHECK(turns.most_pieces > static_cast<int>(kPieces - kPerPacket));
  // Nothing leaves: at last nothing begins; then all leaves, and two begin at once.
  turns.out_rate = 0;
  for (int i = 0; i < 200; ++i) turns.drive(), bench.tick();
  const int before = turns.taken;
  for (int i = 0; i < 50; ++i) turns.drive(), bench.tick();
  CHECK(turns.taken == before);
  turns.out_rate = 1;
  for (int i = 0; i < 300; ++i) turns.drive(), bench.tick();
  CHECK(turns.taken > before);
}
