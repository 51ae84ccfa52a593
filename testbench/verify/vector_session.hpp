#pragma once

#include <array>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/endpoint.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// A vector's expectation was not met; what() says which.
class VectorFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// The objects that one vector works on, and its steps. Used in a thread of simulated time.
class VectorSession {
 public:
  VectorSession(Host& a, Host& b, const VectorSetup& setup);
  ~VectorSession();

  /// Throws VectorFailure.
  void run(const VectorStep& step);

 private:
  struct Side {
    std::unique_ptr<Endpoint> endpoint;
    ComPtr<IND2CompletionQueue> initiator_cq, receive_cq;
    ComPtr<IND2QueuePair> qp;
  };
  struct Region {
    std::size_t host = 0;
    std::uint8_t* memory = nullptr;
    std::uint64_t size = 0;
    ComPtr<IND2MemoryRegion> region;
    UINT32 local_token = 0, remote_token = 0;  ///< Kept after Deregister, to try them
  };
  struct Notification {
    IND2CompletionQueue* cq = nullptr;
    OVERLAPPED overlapped{};
    HRESULT status = 0;
  };

  void add_region(const VectorRegion& spec);
  void post(const VectorStep& step);
  void complete(const VectorStep& step);
  void no_completion(const VectorStep& step);
  void notify(const VectorStep& step);
  void notified(const VectorStep& step, bool expected);
  void memory(const VectorStep& step);
  void register_region(const VectorStep& step);
  void deregister_region(const VectorStep& step);
  [[nodiscard]] std::vector<ND2_SGE> sges(const VectorStep& step);
  [[nodiscard]] UINT32 token(const VectorPlace& place, bool remote);
  [[nodiscard]] std::uint64_t address(const VectorPlace& place);
  [[nodiscard]] Region& region(const std::string& name);
  [[nodiscard]] IND2CompletionQueue& cq(const VectorStep& step);
  void expect_status(const VectorStep& step, HRESULT status) const;

  std::array<Side, 2> sides_;
  std::map<std::string, Region> regions_;
  std::map<std::string, Notification> notifications_;
};

}  // namespace rnic::testbench
