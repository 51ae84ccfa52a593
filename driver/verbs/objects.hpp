#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "driver/spin_lock.hpp"
#include "driver/umd/address_handle.hpp"
#include "driver/umd/completion_queue.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "driver/umd/memory_request.hpp"
#include "driver/umd/process_context.hpp"
#include "driver/umd/protection_domain.hpp"
#include "driver/umd/queue_pair.hpp"
#include "driver/umd/shared_receive_queue.hpp"
#include "driver/verbs/async_events.hpp"
#include "driver/verbs/devices.hpp"
#include "driver/verbs/errors.hpp"

// What stands behind the structures of verbs.h. Each begins with the structure that the program sees, so its address is
// that of the object.

namespace rnic::verbs {

inline constexpr std::uint8_t kPort = 1;
inline constexpr const char* kFirmwareVersion = "0.1.0";

/// `flag` of an API if it is set.
constexpr unsigned flag_if(bool set, unsigned flag) { return set ? flag : 0; }

/// How many others refer to an object.
using Users = std::atomic<std::uint32_t>;

struct Context {
  verbs_context face{};  ///< First; the program holds the address of its last member
  Device* device{};
  std::shared_ptr<umd::ProcessContext> process;
  AsyncEvents events;
  std::shared_ptr<AsyncSink> device_sink;
  /// The GID that a UD queue pair has beside number 0: the first IPv4 address, or 0.
  std::uint16_t second_sgid{};

  static Context& of(ibv_context* context) {
    return *reinterpret_cast<Context*>(reinterpret_cast<std::byte*>(context) - offsetof(verbs_context, context));
  }
};

/// Fills the table of functions that verbs.h calls.
void set_operations(verbs_context& context);

struct Pd {
  ibv_pd face{};
  std::unique_ptr<umd::ProtectionDomain> own;  ///< Null: a parent domain
  Pd* parent_of{};                             ///< Of a parent domain: that which it stands for
  Users users{};

  static Pd& of(ibv_pd* pd) { return *reinterpret_cast<Pd*>(pd); }
  [[nodiscard]] calls::Handle handle() const { return own != nullptr ? own->handle() : parent_of->own->handle(); }
  /// Two domains that are the same for the device.
  [[nodiscard]] bool is(const Pd& other) const { return handle() == other.handle(); }
};

struct Td {
  ibv_td face{};
};

struct Mr {
  ibv_mr face{};
  std::unique_ptr<umd::KernelMr> region;

  static Mr& of(ibv_mr* mr) { return *reinterpret_cast<Mr*>(mr); }
};

struct Mw {
  ibv_mw face{};
  std::unique_ptr<umd::KernelMw> window;

  static Mw& of(ibv_mw* mw) { return *reinterpret_cast<Mw*>(mw); }
};

struct Ah {
  ibv_ah face{};
  umd::AddressHandle core;

  static const Ah& of(const ibv_ah* ah) { return *reinterpret_cast<const Ah*>(ah); }
};

struct Cq;

/// A completion channel. Its events stay in the kernel driver until they are asked for.
struct Channel {
  ibv_comp_channel face{};
  calls::Handle handle{};
  WaitDescriptor descriptor;
  std::mutex mutex;
  std::map<std::uint32_t, Cq*> queues;  ///< By number

  static Channel& of(ibv_comp_channel* channel) { return *reinterpret_cast<Channel*>(channel); }
};

struct Cq {
  ibv_cq_ex face{};
  std::shared_ptr<umd::CompletionQueue> core;
  std::shared_ptr<AsyncSink> sink;
  std::uint32_t completion_events{};  ///< Given to the program; guarded by the channel's mutex
  std::uint32_t async_events{};       ///< The same; guarded by that of the queue of the context
  std::uint32_t clock_mhz{};
  bool single_threaded{};
  std::mutex poll_lock;        ///< From start_poll to end_poll
  umd::Completion completion;  ///< The one that read_* are about

  static Cq& of(ibv_cq* cq) { return *reinterpret_cast<Cq*>(cq); }
  static Cq& of(ibv_cq_ex* cq) { return *reinterpret_cast<Cq*>(cq); }
  [[nodiscard]] ibv_cq* as_cq() { return ibv_cq_ex_to_cq(&face); }
};

struct Srq {
  ibv_srq face{};
  std::shared_ptr<umd::SharedReceiveQueue> core;
  std::shared_ptr<AsyncSink> sink;
  std::uint32_t async_events{};

  static Srq& of(ibv_srq* srq) { return *reinterpret_cast<Srq*>(srq); }
};

/// A request that is being built by the ibv_wr_* functions.
struct PendingSend {
  ibv_send_wr request{};
  ibv_sge segment{};                     ///< Of a request with one, and of inline data
  std::vector<ibv_sge> segments{};       ///< Of one with several
  std::vector<std::byte> inline_data{};  ///< Copied when the program named it
};

struct Qp {
  ibv_qp_ex face{};
  std::uint32_t number{};  ///< face's, as it was made
  std::shared_ptr<umd::QueuePair> core;
  std::shared_ptr<AsyncSink> sink;
  std::uint32_t async_events{};
  hw::QpType type{};
  bool signal_all{};
  bool extended{};                  ///< Has ibv_wr_* functions
  std::uint64_t send_operations{};  ///< IBV_QP_EX_WITH_*
  SpinLock batch_lock;              ///< From wr_start to wr_complete or wr_abort
  std::vector<PendingSend> batch;   ///< Requests since wr_start are the first `batch_size`; the rest is room
  std::size_t batch_size{};
  PendingSend* pending{};  ///< The last of them, which the setters are about; none once something was wrong
  int batch_error{};       ///< The first thing that was wrong since wr_start

  static Qp& of(ibv_qp* qp) { return *reinterpret_cast<Qp*>(qp); }
  static Qp& of(ibv_qp_ex* qp) { return *reinterpret_cast<Qp*>(qp); }
};

/// Waits until the program has acknowledged as many events as it was given (ibv_ack_cq_events, ibv_ack_async_event).
void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& cond, const std::uint32_t& acknowledged,
                               std::uint32_t given);

/// Of a face that begins to live, or ends.
template <typename Face>
void begin_face(Face& face) {
  pthread_mutex_init(&face.mutex, nullptr);
  pthread_cond_init(&face.cond, nullptr);
}
template <typename Face>
void end_face(Face& face) {
  pthread_cond_destroy(&face.cond);
  pthread_mutex_destroy(&face.mutex);
}

/// The station to which frames for the GID go. Errors: kNotFound, those of the call.
[[nodiscard]] Result<std::uint64_t> station_of(Context& context, const ibv_gid& gid);
/// Places of the GID table of the port, with those that are empty.
[[nodiscard]] std::uint32_t gid_table_length(const calls::QueryPort::Answer& port);
/// An entry of it. Errors: kNotFound (empty).
[[nodiscard]] Result<ibv_gid> gid_at(KernelPort& port, std::uint32_t index);
/// VID of the VLAN that an own address is of; 0: of none.
[[nodiscard]] Result<std::uint16_t> vlan_at(KernelPort& port, std::uint32_t index);
/// The priority of a VLAN tag has three bits, a service level four: the low ones are it.
[[nodiscard]] constexpr std::uint8_t priority_of(std::uint8_t sl) { return sl & 7; }
[[nodiscard]] bool is_ipv4_mapped(const ibv_gid& gid);

// The operations of the table, by the file that has them.

// pd.cpp, mr.cpp, mw.cpp
ibv_td* alloc_td(ibv_context* context, ibv_td_init_attr* attributes);
int dealloc_td(ibv_td* td);
ibv_pd* alloc_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes);
ibv_mw* alloc_mw(ibv_pd* pd, ibv_mw_type type);
int dealloc_mw(ibv_mw* mw);
int bind_mw(ibv_qp* qp, ibv_mw* mw, ibv_mw_bind* bind);
/// What a bind opens. Errors: kInvalidParameter (rights, or a region of another domain).
[[nodiscard]] Result<umd::WindowRange> window_range(const ibv_mw& mw, const ibv_mw_bind_info& info);

// device_attributes.cpp
int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attributes, std::size_t length);
int query_device_ex(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attributes,
                    std::size_t length);
int query_rt_values(ibv_context* context, ibv_values_ex* values);

// cq.cpp, poll.cpp
ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes);
int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes);
int req_notify_cq(ibv_cq* cq, int solicited_only);
int poll_cq(ibv_cq* cq, int count, ibv_wc* completions);
void set_poll_operations(ibv_cq_ex& cq);

// srq.cpp
int get_srq_num(ibv_srq* srq, std::uint32_t* number);
int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad);
ibv_srq* create_srq_ex(ibv_context* context, ibv_srq_init_attr_ex* attributes);

// qp.cpp, post.cpp, post_batch.cpp
[[nodiscard]] ibv_qp_cap capacity_of(const Qp& qp);
ibv_qp* create_qp_ex(ibv_context* context, ibv_qp_init_attr_ex* attributes);
int post_send(ibv_qp* qp, ibv_send_wr* request, ibv_send_wr** bad);
int post_recv(ibv_qp* qp, ibv_recv_wr* request, ibv_recv_wr** bad);
void set_batch_operations(ibv_qp_ex& qp);

}  // namespace rnic::verbs
