#include "testbench/traffic/atomic_lane.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace rnic::testbench {

AtomicWords::AtomicWords(MixSide& host) : host_(host) {
  constexpr std::size_t kWord = sizeof(std::uint64_t);
  const auto room = host.take((kWords + 1) * kWord);
  const std::size_t unaligned = reinterpret_cast<std::uintptr_t>(room.data()) % kWord;
  words_ = room.subspan((kWord - unaligned) % kWord, kWords * kWord);
  for (std::size_t i = 0; i < kWords; ++i) {
    guesses_[i] = load(i);
    histories_.emplace_back(guesses_[i]);
  }
}

std::uint64_t AtomicWords::load(std::size_t word) const {
  std::uint64_t value = 0;
  std::memcpy(&value, words_.data() + word * sizeof value, sizeof value);
  return value;
}

void AtomicWords::store(std::size_t word, std::uint64_t value) {
  std::memcpy(words_.data() + word * sizeof value, &value, sizeof value);
}

std::optional<std::string> AtomicWords::check_end() const {
  for (std::size_t i = 0; i < kWords; ++i) {
    if (histories_[i].without_place() != 0)
      return fmt::format("word {}: {} operations found what nobody had left there", i, histories_[i].without_place());
    if (load(i) != histories_[i].value())
      return fmt::format("word {} is {:#x}, and its atomics left {:#x}", i, load(i), histories_[i].value());
  }
  return std::nullopt;
}

void AtomicLane::next(bool /*last*/) {
  const std::size_t word = random().below(AtomicWords::kWords);
  const auto dice = random().below(10);
  const What what = dice == 0 ? What::kRead : word < AtomicWords::kSwapWords || dice < 4 ? What::kSwap : What::kAdd;
  constexpr hw::WqeOpcode kOpcodes[] = {hw::WqeOpcode::kFetchAdd, hw::WqeOpcode::kCompareSwap, hw::WqeOpcode::kRead};
  Request request{.memory = slot(sizeof(std::uint64_t))};
  request.send.opcode = kOpcodes[static_cast<std::size_t>(what)];
  request.send.remote_address = words_.address(word);
  request.send.remote_key = words_.key();
  // Carries into every bit, and little sums; a sum of 0 is a look.
  if (what == What::kAdd)
    request.send.swap_add = random().chance(0.1) ? 0 : random().chance(0.5) ? random().next() : 1 + random().below(300);
  if (what == What::kSwap) request.send.swap_add = random().next();
  request.send.fence = random().chance(0.1);
  const auto memory = request.memory;
  std::memset(memory.data(), MixSide::kUntouched, memory.size());
  // What both ends of the request know of it, for as long as it is under way.
  const auto mine = std::make_shared<std::pair<umd::SendRequest, std::uint64_t>>(request.send, 0);
  request.about_to_post = [this, what, word, mine](umd::SendRequest& send, std::uint64_t moment) {
    if (what == What::kSwap) send.compare = random().chance(0.9) ? words_.guess(word) : random().next();
    *mine = {send, moment};
  };
  request.done = [this, what, word, mine, memory, number = number()](std::uint64_t moment) {
    std::uint64_t found = 0;
    std::memcpy(&found, memory.data(), sizeof found);
    done(what, word, mine->first, number, found, mine->second, moment);
  };
  plan(std::move(request));
}

void AtomicLane::done(What what, std::size_t word, const umd::SendRequest& send, std::uint64_t number,
                      std::uint64_t found, std::uint64_t posted, std::uint64_t completed) {
  auto& counts = report().share;
  WordHistory::Operation operation{.before = found,
                                   .after = std::nullopt,
                                   .lane = spec().number,
                                   .number = number,
                                   .is_read = what == What::kRead,
                                   .posted = posted,
                                   .completed = completed};
  if (what == What::kAdd) operation.after = found + send.swap_add;
  if (what == What::kSwap && found == send.compare) operation.after = send.swap_add;
  words_.guess(word) = operation.after.value_or(found);
  if (const auto text = words_.history(word).add(operation)) return wrong(fmt::format("word {}: {}", word, *text));
  ++(what == What::kAdd ? counts.adds : what == What::kSwap ? counts.swaps : counts.word_reads);
  counts.swapped += what == What::kSwap && operation.after;
  if (options_.planted == PlantedSoakFault::kLostAdd && what == What::kAdd && counts.adds >= 20)
    words_.store(word, words_.load(word) - send.swap_add);
}

}  // namespace rnic::testbench
