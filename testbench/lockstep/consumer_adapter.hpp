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
  /// What the consumer has left is taken back; it calls nobody any more.
  ~ConsumerAdapter();
  ConsumerAdapter(const ConsumerAdapter&) = delete;
  ConsumerAdapter& operator=(const ConsumerAdapter&) = delete;

  [[nodiscard]] NDK_ADAPTER* get() { return adapter_.get(); }
  /// Endpoints at which it listens for connections. Throws std::bad_alloc.
  [[nodiscard]] std::uint32_t listening() { return client().listening(); }

 private:
  [[nodiscard]] kmd::Client& client();

  Device& device_;
  std::unique_ptr<ndk::Adapter> adapter_;
  std::optional<KernelThread> thread_;
};

}  // namespace rnic::testbench
