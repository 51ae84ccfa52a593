#pragma once

#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver/kmd/kernel_mr.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_packets.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// A vector's expectation was not met; what() says which.
class VectorFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The objects that one vector works on, and its steps. Used in a thread of simulated time.
class VectorSession {
 public:
  VectorSession(World& world, const VectorSetup& setup);
  ~VectorSession();

  /// Throws VectorFailure.
  void run(const VectorStep& step);

  /// First PSN of each host's requests; 0 when the queue pairs were not connected.
  [[nodiscard]] const FirstPsns& first_psns() const { return first_psns_; }

 private:
  struct Side {
    std::unique_ptr<Endpoint> endpoint;
    ComPtr<IND2CompletionQueue> initiator_cq, receive_cq;
    ComPtr<IND2QueuePair> qp;
    std::vector<std::uint64_t> counters;  ///< At the start
  };
  struct Region {
    std::size_t host = 0;
    std::uint8_t* memory = nullptr;
    std::uint64_t size = 0;
    ComPtr<IND2MemoryRegion> region;
    std::unique_ptr<kmd::KernelMr> atomic_region;  ///< Instead, for memory of atomics
    UINT32 local_token = 0, remote_token = 0;  ///< Kept after Deregister, to try them
  };
  struct Window {
    ComPtr<IND2MemoryWindow> window;
    UINT32 token = 0, stale_token = 0;  ///< Remote ones, of the newest bind and of the one before
  };
  struct Notification {
    IND2CompletionQueue* cq = nullptr;
    OVERLAPPED overlapped{};
    HRESULT status = 0;
  };

  void add_region(const VectorRegion& spec);
  void post(const VectorStep& step);
  HRESULT post_to_core(const VectorStep& step, const std::vector<ND2_SGE>& list);
  void complete(const VectorStep& step);
  /// Takes a result; false when there is none. Throws VectorFailure when it is another one than `expected`.
  bool take_result(const VectorStep& step, std::size_t number, const VectorResult& expected);
  bool take_completion(const VectorStep& step, std::size_t number, const VectorResult& expected);
  void no_completion(const VectorStep& step);
  void notify(const VectorStep& step);
  void notified(const VectorStep& step, bool expected);
  void memory(const VectorStep& step);
  void store(const VectorStep& step);
  void fault(const VectorStep& step);
  void frame(const VectorStep& step);
  void counter(const VectorStep& step);
  void state(const VectorStep& step);
  void bind(const VectorStep& step);
  void invalidate(const VectorStep& step);
  [[nodiscard]] Window& window(const VectorStep& step);
  void register_region(const VectorStep& step);
  void deregister_region(const VectorStep& step);
  [[nodiscard]] std::vector<ND2_SGE> sges(const VectorStep& step);
  [[nodiscard]] UINT32 token(const VectorPlace& place, bool remote);
  [[nodiscard]] std::uint64_t address(const VectorPlace& place);
  [[nodiscard]] Region& region(const std::string& name);
  [[nodiscard]] IND2CompletionQueue& cq(const VectorStep& step);
  void expect_status(const VectorStep& step, HRESULT status) const;

  World& world_;
  ConnectParameters parameters_;
  FirstPsns first_psns_{};
  std::array<Side, 2> sides_;
  std::map<std::string, Region> regions_;
  std::map<std::string, Window> windows_;  ///< Behind the regions, which they must leave first
  std::map<std::string, Notification> notifications_;
};

}  // namespace rnic::testbench
