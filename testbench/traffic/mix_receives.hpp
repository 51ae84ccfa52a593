#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "model/random.hpp"
#include "testbench/traffic/mix_side.hpp"

namespace rnic::testbench {

/// The buffers of one receive queue, shared or not, posted again and again. The id of a Receive is the number of its
/// buffer.
class MixReceives {
 public:
  using Post = std::function<Result<void>(const umd::ReceiveRequest&)>;

  /// Throws EndpointError.
  MixReceives(MixSide& side, std::size_t count, std::size_t bytes, Post post);

  /// Posts some of the buffers that are free, or all; each in one to three segments.
  void refill(model::Random& random, bool all);
  /// The buffer of a Receive that has completed; nothing when it was not posted.
  [[nodiscard]] std::span<const std::uint8_t> taken(std::uint64_t id);
  /// It may be posted again.
  void give_back(std::uint64_t id) { free_.push_back(static_cast<std::size_t>(id)); }

 private:
  struct Buffer {
    std::span<std::uint8_t> memory;
    bool posted = false;
  };

  MixSide& side_;
  const Post post_;
  std::vector<Buffer> buffers_;
  std::vector<std::size_t> free_;
};

}  // namespace rnic::testbench
