#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "driver/kmd/client.hpp"
#include "driver/ndk/adapter.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/kernel_thread.hpp"

namespace rnic::testbench {

/// An adapter of the Network Direct kernel provider interface with its thread, for a consumer that may end without
/// having closed what it has opened. Made and destroyed in a thread of simulated time.
class ConsumerAdapter {
 public:
  /// Throws EndpointError. `endpoint` outlives it.
  explicit ConsumerAdapter(Endpoint& endpoint);
  /// close(), if nobody has.
  ~ConsumerAdapter();
  ConsumerAdapter(const ConsumerAdapter&) = delete;
  ConsumerAdapter& operator=(const ConsumerAdapter&) = delete;

  /// The consumer has ended: what it has left is taken back. Threads of it that are inside a call come out of it, so
  /// they must still go on, and find that it is refused.
  void close();

  [[nodiscard]] NDK_ADAPTER* get() { return adapter_.get(); }
  /// Endpoints at which it listens for connections. Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t listening() { return client().listening(); }

 private:
  [[nodiscard]] kmd::Client& client();

  Device& device_;
  std::unique_ptr<ndk::Adapter> adapter_;
  std::optional<KernelThread> thread_;
  bool closed_{};
  bool left_{};  ///< Objects of the consumer, when it was closed
};

}  // namespace rnic::testbench
