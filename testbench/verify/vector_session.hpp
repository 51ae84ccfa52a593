#pragma once

#include <fmt/format.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "driver/kmd/kernel_mr.hpp"
#include "driver/umd/kernel_fast_mr.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/protection_domain.hpp"
#include "driver/nd2/status.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/queue_pair.hpp"
#include "testbench/endpoint.hpp"
#include "testbench/management_thread.hpp"
#include "testbench/nic_counters.hpp"
#include "testbench/verify/vector.hpp"
#include "testbench/verify/vector_packets.hpp"
#include "testbench/world.hpp"

namespace rnic::testbench {

/// A context of a vector as the applications of NetworkDirect have them.
inline void* context_pointer(std::uint64_t context) {
  return reinterpret_cast<void*>(static_cast<std::uintptr_t>(context));
}

/// A vector's expectation was not met; what() says which.
class VectorFailure : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What the driver gave; throws VectorFailure for an error.
template <typename T>
T take_or_fail(Result<T> result, const std::string& what) {
  if (!result.ok()) throw VectorFailure(fmt::format("{}: {}", what, describe(result.error())));
  return result.take();
}

/// Status that NetworkDirect has for what a call below it gave: of control, of posting.
inline HRESULT control_status(const Result<void>& done) {
  return done.ok() ? ND_SUCCESS : nd2::control_status(done.error());
}
inline HRESULT posting_status(const Result<void>& posted) {
  return posted.ok() ? ND_SUCCESS : nd2::posting_status(posted.error());
}

/// The remote right alone; the flag of NetworkDirect includes that to write locally.
inline constexpr ULONG kRemoteWriteBit = ND_MR_FLAG_ALLOW_REMOTE_WRITE & ~ND_MR_FLAG_ALLOW_LOCAL_WRITE;

/// The objects that one vector works on, and its steps. Used in a thread of simulated time.
class VectorSession {
 public:
  /// Both must outlive it.
  VectorSession(World& world, const Vector& vector);
  ~VectorSession();

  /// Throws VectorFailure.
  void run(const VectorStep& step);

  /// Throws VectorFailure for a completion or an event that no step has taken.
  void expect_nothing_left();

  /// Of all queue pairs, connected or not.
  [[nodiscard]] const PacketNumbers& numbers() const { return numbers_; }
  /// The packets with the R_Keys of the regions that they name.
  [[nodiscard]] VectorPacket resolved(VectorPacket packet) const;
  [[nodiscard]] PacketPatterns resolved(PacketPatterns patterns) const;

  // For who records what comes instead of expecting it.
  [[nodiscard]] Endpoint& endpoint(std::size_t host) { return *sides_.at(host).endpoint; }
  [[nodiscard]] umd::QueuePair& queue_pair(std::size_t host, std::size_t qp) {
    return sides_.at(host).pairs.at(qp).core();
  }
  /// The queue of a host for what its initiator queues complete, or for its Receives.
  [[nodiscard]] umd::CompletionQueue& completions(std::size_t host, VectorQueue queue) {
    return queue == VectorQueue::kReceive ? *sides_.at(host).receive_core : *sides_.at(host).initiator_core;
  }
  /// Path MTU of the queue pairs of a host, bytes.
  [[nodiscard]] std::uint32_t mtu(std::size_t host) const { return setup_.hosts.at(host).mtu; }
  /// The asynchronous events of a host since the last call, oldest first.
  [[nodiscard]] std::deque<hw::Eqe> take_events(std::size_t host);
  /// Memory of a region, or of a fast registration.
  [[nodiscard]] std::span<const std::uint8_t> bytes_of(const std::string& name) const;
  /// Which window or region has this remote key (host order); empty: none.
  [[nodiscard]] std::string name_of_key(std::uint32_t key) const;

 private:
  /// NetworkDirect's, or one below it: of a type that NetworkDirect has not.
  struct Pair {
    ComPtr<IND2QueuePair> face;
    std::shared_ptr<umd::QueuePair> below;
    umd::QpConnection connection;
    bool has_receive = false;  ///< One has been posted to its own queue

    [[nodiscard]] umd::QueuePair& core() const { return below ? *below : core_of(*face); }
  };
  struct Side {
    std::unique_ptr<Endpoint> endpoint;
    std::unique_ptr<ManagementThread> management;  ///< With `connections` alone
    std::shared_ptr<umd::ProcessContext> process;
    ComPtr<IND2CompletionQueue> initiator_cq, receive_cq;  ///< None for QP1, which is no process's
    std::shared_ptr<umd::CompletionQueue> initiator_core, receive_core;
    ComPtr<IND2SharedReceiveQueue> srq;
    bool srq_has_receive = false;                   ///< One has been posted
    std::optional<model::PcieConfig> first_config;  ///< If steps have changed it
    bool disabled = false;                          ///< By a step
    std::vector<Pair> pairs;
    std::map<std::uint64_t, std::uint64_t> counters;  ///< Those of the steps, at the start, by hw::Counter
    std::optional<NicCounters> all_counters;          ///< At the start, for a step with `no_other`
    std::deque<hw::Eqe> events;                       ///< Of queues, queue pairs and the port; not of completions
    std::vector<std::unique_ptr<umd::ProtectionDomain>> domains;  ///< More than that of the process
  };
  /// Keeps events for a side, and passes them on to the driver's object.
  struct Recorder final : EventSink {
    Recorder(std::deque<hw::Eqe>& to, std::function<void(const hw::Eqe&)> next)
        : events(to), pass_on(std::move(next)) {}
    void on_event(const hw::Eqe& eqe) override;
    std::deque<hw::Eqe>& events;
    std::function<void(const hw::Eqe&)> pass_on;
  };
  struct Region {
    std::size_t host = 0;
    std::uint8_t* memory = nullptr;
    std::uint64_t size = 0;
    std::uint64_t pattern = 0;          ///< What its bytes are with the fill `pattern`
    std::optional<std::uint64_t> base;  ///< Virtual address, when it is not that of the memory
    ComPtr<IND2MemoryRegion> region;
    std::unique_ptr<umd::KernelMr>
        kernel_region;  ///< Instead, where NetworkDirect has none: of atomics, of another domain, of QP1
    std::unique_ptr<kmd::KernelMr> listed_region;    ///< Instead: of the kernel driver, which knows its page list
    std::unique_ptr<umd::KernelFastMr> fast_region;  ///< Instead
    std::vector<std::uint64_t> pages;                ///< Of fast_region
    std::map<std::uint64_t, std::uint32_t> ending;   ///< Of fast_region: key that the request of a context ends
    std::optional<std::uint64_t> device_address;     ///< Of the memory, where steps have asked for it
    UINT32 local_token = 0, remote_token = 0;        ///< Kept after Deregister, to try them
  };
  struct Window {
    ComPtr<IND2MemoryWindow> window;
    UINT32 token = 0, stale_token = 0;  ///< Remote ones, of the newest bind and of the one before
  };
  struct Notification {
    IND2Overlapped* object = nullptr;  ///< None when it has been released
    OVERLAPPED overlapped{};
    HRESULT status = 0;
  };

  /// Side by side.
  void for_each_host(const std::function<void(std::size_t)>& task);
  void add_side(std::size_t host);
  void close_side(std::size_t host);
  Pair make_pair(std::size_t host, std::size_t index);
  void watch_pair(std::size_t host, Pair& pair);
  void connect();
  umd::QpConnection connection_of(std::size_t host, std::size_t index);
  void reset(const VectorStep& step);
  void make(const VectorStep& step);
  void watch_events(std::size_t host);
  void read_counters(const std::vector<VectorStep>& steps, std::size_t host);
  void make_memory();
  void add_region(const VectorRegion& spec);
  void post(const VectorStep& step);
  HRESULT post_to_core(const VectorStep& step, const std::vector<ND2_SGE>& list);
  HRESULT post_receive(const VectorStep& step, const std::vector<ND2_SGE>& list);
  HRESULT flush(const VectorStep& step);
  void complete(const VectorStep& step);
  /// Take a result, and what is expected of it out of `all`; false when there is none. Throw VectorFailure when it is
  /// another one.
  bool take_result(const VectorStep& step, std::size_t number, std::vector<VectorResult>& all);
  bool take_completion(const VectorStep& step, std::size_t number, std::vector<VectorResult>& all);
  /// The page list of a registration is not in use any more when the request that ends it has completed.
  void release_list(std::size_t host, const umd::Completion& result);
  /// The first that is expected of the queue pair of which there is a result: those of different queue pairs may come
  /// in any order.
  static VectorResult next_of(std::vector<VectorResult>& expected, const std::function<bool(std::size_t)>& is_of);
  void no_completion(const VectorStep& step);
  void notify(const VectorStep& step);
  void notified(const VectorStep& step, bool expected);
  void memory(const VectorStep& step);
  void memory_bytes(const VectorStep& step);
  void untouched_memory(const VectorStep& step);
  /// What byte i of the range of a step is.
  using Expectation = std::function<std::uint8_t(std::uint64_t)>;
  void expect_bytes(const VectorStep& step, const std::vector<Expectation>& expectations);
  void store(const VectorStep& step);
  void revoke(const VectorStep& step);
  void ring_reads(const VectorStep& step);
  void add_listed_region(const VectorRegion& spec);
  void fault(const VectorStep& step);
  [[nodiscard]] std::vector<std::uint8_t> frame_of(const VectorStep& step);
  void frame(const VectorStep& step);
  void receive_ethernet(const VectorStep& step);
  [[nodiscard]] std::uint64_t way_ns(std::size_t to) const;
  void counter(const VectorStep& step);
  static void no_other_counter(const Side& side, const VectorStep& step);
  void state(const VectorStep& step);
  void bind(const VectorStep& step);
  HRESULT bind_unchecked(const VectorStep& step);
  void invalidate(const VectorStep& step);
  void modify(const VectorStep& step);
  HRESULT change_state(Pair& pair, hw::QpState next, bool notify);
  void event(const VectorStep& step);
  void no_event(const VectorStep& step);
  [[nodiscard]] std::string describe_event(std::size_t host, const hw::Eqe& eqe) const;
  void resize_cq(const VectorStep& step);
  void admin(const VectorStep& step);
  [[nodiscard]] std::uint64_t number_of(const VectorStep& step, const VectorNumber& number);
  /// Of the first byte of the region's memory. Throws VectorFailure for one of the other host.
  [[nodiscard]] std::uint64_t device_address(const VectorStep& step, const std::string& region);
  [[nodiscard]] std::uint32_t domain_of(const VectorStep& step, const std::string& region);
  [[nodiscard]] std::uint32_t free_number(const VectorStep& step, VectorNumber::Free free);
  [[nodiscard]] std::span<std::uint8_t> newest_wqe(const VectorStep& step);
  [[nodiscard]] std::span<std::uint8_t> newest_receive(const VectorStep& step);
  void spoil_wqe(const VectorStep& step);
  [[nodiscard]] std::uint64_t uar_page(const VectorStep& step);
  void doorbell(const VectorStep& step);
  void push_wqe(const VectorStep& step);
  void enable(const VectorStep& step);
  void configure(const VectorStep& step);
  void credits(const VectorStep& step);
  /// What steps have taken from the function it gets back, for else the driver could not end.
  void restore_function(std::size_t host);
  void tlp(const VectorStep& step);
  void fast_register(const VectorStep& step);
  void end_registration(const VectorStep& step);
  void query_adapter(const VectorStep& step);
  void query_affinity(const VectorStep& step);
  void query_interface(const VectorStep& step);
  void release(const VectorStep& step);
  void cancel(const VectorStep& step);
  void get_results(const VectorStep& step);
  void end_device(const VectorStep& step);
  void restart_device(const VectorStep& step);
  void add_management();
  /// Made with their first use.
  [[nodiscard]] IND2Connector& connector(const VectorStep& step, const std::string& name);
  [[nodiscard]] IND2Listener& listener(const VectorStep& step);
  /// An overlapped call of `object`, of whose end a step `notified` hears. Throws VectorFailure.
  void begin(const VectorStep& step, IND2Overlapped& object, const std::function<HRESULT(OVERLAPPED*)>& call);
  void bind_address(const VectorStep& step);
  void get_request(const VectorStep& step);
  void connect_to(const VectorStep& step);
  void accept(const VectorStep& step);
  void reject(const VectorStep& step);
  void change_connection(const VectorStep& step);
  void query_connection(const VectorStep& step);
  void query_private_data(const VectorStep& step);
  void query_read_limits(const VectorStep& step);
  void query_address(const VectorStep& step);
  [[nodiscard]] IUnknown& object(const VectorStep& step);
  [[nodiscard]] IND2Overlapped& overlapped_object(const VectorStep& step);
  /// Throws VectorFailure unless the result is the one expected.
  void check_result(const VectorStep& step, std::size_t number, const ND2_RESULT& result,
                    const VectorResult& expected) const;
  [[nodiscard]] Window& window(const VectorStep& step);
  void register_region(const VectorStep& step);
  void deregister_region(const VectorStep& step);
  [[nodiscard]] std::vector<ND2_SGE> sges(const VectorStep& step);
  [[nodiscard]] UINT32 token(const VectorPlace& place, bool remote);
  /// Of a window, or a region.
  [[nodiscard]] UINT32 remote_token(const std::string& name) const;
  [[nodiscard]] std::uint64_t address(const VectorPlace& place);
  [[nodiscard]] Region& region(const std::string& name);
  [[nodiscard]] const Region& region(const std::string& name) const { return regions_.at(name); }
  [[nodiscard]] Side& side(const VectorStep& step) { return sides_[step.host]; }
  [[nodiscard]] Pair& pair(const VectorStep& step) { return side(step).pairs.at(step.qp); }
  [[nodiscard]] umd::CompletionQueue& core_cq(const VectorStep& step);
  /// Throw VectorFailure for QP1, which NetworkDirect does not know.
  [[nodiscard]] IND2CompletionQueue& cq(const VectorStep& step);
  [[nodiscard]] IND2QueuePair& face(const VectorStep& step);
  void expect_status(const VectorStep& step, HRESULT status) const;
  void expect_call(const VectorStep& step, HRESULT status) const;

  World& world_;
  const VectorSetup& setup_;
  const bool ipv6_;
  PacketNumbers numbers_;
  std::array<Side, 2> sides_;
  std::vector<Pair> gone_;  ///< Closed, and others are in their places; their completions may still be polled
  std::map<std::string, Region> regions_;
  std::map<std::string, Window> windows_;  ///< Behind the regions, which they must leave first
  std::map<std::string, ComPtr<IND2Connector>> connectors_;
  std::map<std::string, ComPtr<IND2Listener>> listeners_;
  std::map<std::string, Notification> notifications_;
  std::vector<std::shared_ptr<Recorder>> recorders_;
};

}  // namespace rnic::testbench
