#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "testbench/device/verbs_library.hpp"
#include "testbench/verify/vector.hpp"

namespace rnic::testbench {

/// The device lacks something optional that a vector is about; what() says what.
class DeviceLacks : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A step did not come out as the vector says; what() says which.
class DeviceDisagrees : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// How long by the clock on the wall is waited for what must come, and for what must not.
struct DeviceTimes {
  std::chrono::milliseconds patience{10'000};
  std::chrono::milliseconds settle{20};
};

/// The objects that a vector of the grade `verbs` works on, on devices of libibverbs, and its steps. Two hosts are two
/// contexts, of two devices or of one, whose port then sends to itself.
class DeviceSession {
 public:
  /// `devices`: of host A, and of host B. `vector` must outlive it. Throws DeviceError, DeviceLacks, DeviceDisagrees.
  DeviceSession(const std::array<std::string, 2>& devices, const Vector& vector, DeviceTimes times);
  ~DeviceSession();
  DeviceSession(const DeviceSession&) = delete;
  DeviceSession& operator=(const DeviceSession&) = delete;

  /// Throws DeviceLacks, DeviceDisagrees.
  void run(const VectorStep& step);
  /// Throws DeviceDisagrees for a completion or an event that no step has taken.
  void expect_nothing_left();

 private:
  template <typename T>
  using Owned = std::unique_ptr<T, int (*)(T*)>;

  /// What a queue pair is connected with; `modify` changes it.
  struct Attributes {
    std::uint8_t ack_timeout, retry_count, rnr_retry, min_rnr_timer, traffic_class, hop_limit;
    std::uint32_t flow_label, qkey, send_psn, receive_psn;
    bool remote_read, remote_write, remote_atomic;
  };
  struct Pair {
    Owned<ibv_qp> qp{nullptr, nullptr};
    std::uint32_t qpn = 0;
    Attributes now{};
  };
  struct Side {
    Owned<ibv_context> context{nullptr, nullptr};
    ibv_device_attr limits{};
    ibv_mtu active_mtu{};
    std::array<ibv_gid, 2> gid{};  ///< IPv4, IPv6
    std::array<int, 2> gid_index{-1, -1};
    Owned<ibv_pd> pd{nullptr, nullptr}, other_pd{nullptr, nullptr};
    Owned<ibv_cq> initiator_cq{nullptr, nullptr}, receive_cq{nullptr, nullptr};  ///< No receive_cq: it is the same
    Owned<ibv_srq> srq{nullptr, nullptr};
    std::vector<Owned<ibv_ah>> handles;
    std::vector<Pair> pairs;
    std::deque<ibv_async_event> events;
  };
  struct Region {
    std::size_t host = 0;
    std::shared_ptr<std::uint8_t> memory;
    std::uint64_t size = 0, pattern = 0;
    Owned<ibv_mr> mr{nullptr, nullptr};
    std::uint32_t local_key = 0, remote_key = 0;  ///< Kept when it is deregistered, to try them
  };
  struct Window {
    Owned<ibv_mw> mw{nullptr, nullptr};
    std::uint32_t key = 0, stale_key = 0;
  };
  struct Request {
    umd::RequestKind kind{};
    std::uint64_t context = 0;
  };

  void add_side(std::size_t host, const std::string& device);
  void find_gids(Side& side, const std::string& device);
  void add_region(const VectorRegion& spec);
  void register_memory(Region& region, std::uint32_t flags, bool atomic, ibv_pd* pd);
  [[nodiscard]] Attributes attributes_of(std::size_t host, std::size_t index) const;
  void make_pair(std::size_t host, std::size_t index);
  /// Errno of ibv_modify_qp.
  int change_state(std::size_t host, std::size_t index, ibv_qp_state next, int more = 0, bool notify = false);
  void connect();

  void post(const VectorStep& step);
  void post_receive(const VectorStep& step, std::vector<ibv_sge>& list);
  void aim(const VectorStep& step, ibv_send_wr& request);
  [[nodiscard]] Window& window(const VectorStep& step);
  void bind(const VectorStep& step);
  void invalidate(const VectorStep& step);
  /// Remembers a request; its wr_id.
  std::uint64_t note(umd::RequestKind kind, std::uint64_t context);
  [[nodiscard]] std::vector<ibv_sge> sges(const VectorStep& step);
  [[nodiscard]] std::uint32_t key(const VectorPlace& place, bool remote);
  [[nodiscard]] std::uint64_t address(const VectorPlace& place);
  [[nodiscard]] std::uint32_t remote_key(const std::string& name);

  void complete(const VectorStep& step);
  void check(const VectorStep& step, std::size_t number, const ibv_wc& wc, const VectorResult& expected);
  [[nodiscard]] std::string describe(const ibv_wc& wc) const;
  void no_completion(const VectorStep& step);
  void memory(const VectorStep& step);
  /// Empty, or what is not as the step says.
  [[nodiscard]] std::string memory_difference(const VectorStep& step);
  void store(const VectorStep& step);
  void state(const VectorStep& step);
  void event(const VectorStep& step);
  void no_event(const VectorStep& step);
  void take_events(Side& side);

  void modify(const VectorStep& step);
  void register_region(const VectorStep& step);
  void modify_srq(const VectorStep& step);
  void change_group(const VectorStep& step);
  void resize_cq(const VectorStep& step);

  /// Throws DeviceDisagrees unless the call has failed exactly if the step says so.
  void expect_call(const VectorStep& step, const char* function, int error) const;
  bool wait_until(const std::function<bool()>& done, std::chrono::nanoseconds limit) const;
  [[nodiscard]] Side& side(const VectorStep& step) { return sides_.at(step.host); }
  [[nodiscard]] Pair& pair(const VectorStep& step) { return side(step).pairs.at(step.qp); }
  [[nodiscard]] ibv_cq* cq(const VectorStep& step);

  const VerbsLibrary& verbs_;
  const Vector& vector_;
  const VectorSetup& setup_;
  const DeviceTimes times_;
  std::mt19937 random_{1};
  bool with_windows_ = false;
  std::array<std::vector<std::uint32_t>, 2> first_psn_;
  std::vector<Request> requests_;
  std::array<Side, 2> sides_;
  std::map<std::string, Region> regions_;
  std::map<std::string, Window> windows_;
};

}  // namespace rnic::testbench
