#pragma once

#include <cstdint>

namespace rnic::umd {

/// Is told what became of requests about a key, also of those that make no completion: by the send queue, when it next
/// has a reason to look. Called with the queue's lock held; needs no memory, lets no time pass.
class KeyWatch {
 public:
  KeyWatch() = default;
  KeyWatch(const KeyWatch&) = delete;
  KeyWatch& operator=(const KeyWatch&) = delete;
  virtual ~KeyWatch() = default;

  /// The request has executed.
  virtual void accepted(std::uint32_t key) = 0;
  /// It has failed or was flushed.
  virtual void refused(std::uint32_t key) = 0;
};

}  // namespace rnic::umd
