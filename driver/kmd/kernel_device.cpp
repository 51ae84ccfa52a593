#include "driver/kmd/kernel_device.hpp"

#include <algorithm>
#include <bit>

#include "driver/bits.hpp"
#include "driver/costs.hpp"
#include "driver/kmd/connection_service.hpp"
#include "driver/kmd/kernel_mr.hpp"
#include "driver/kmd/local_node.hpp"
#include "driver/mmio.hpp"

namespace rnic::kmd {
namespace {

constexpr std::uint64_t kReadyTimeoutNs = 10'000'000;
constexpr std::uint64_t kQuietPollNs = 1000;
constexpr std::uint64_t kMaxRegionBytes = 1ULL << 47;  // admin_create_mr.length
// Of each CQ, QP and SRQ, of the device and of its port at most one entry is in an event queue that has not been
// consumed (the device keeps the next back): with 256 of each of the three, 770. So this many are never all in use,
// whatever processes do.
constexpr unsigned kLogEqDepth = 11;
// What names a queue to the device and in its events: a late one of a queue that is gone fits no other.
constexpr unsigned kCqTagBits = 24 - hw::kCqIndexBits;
constexpr unsigned kSrqTagBits = 24 - hw::kSrqIndexBits;
constexpr std::uint32_t kReservedQps = 2;  // The management interfaces, QPN 0 and 1
constexpr unsigned kPdTagBits = 12;
constexpr std::uint32_t kPdCount = 4096;
constexpr unsigned kKeyTagBits = 8;
constexpr std::uint32_t kReservedKeys = 1;  // The datagrams' region of the host's own agent: whatever others register
constexpr std::uint32_t kFirstUserUar = hw::kKernelUar + 1;

}  // namespace

Result<std::unique_ptr<KernelDevice>> KernelDevice::open(Device& device, const KernelOptions& options) {
  return or_out_of_memory([&]() -> Result<std::unique_ptr<KernelDevice>> {
    auto registers = RegisterMap::discover(device);
    if (!registers) return registers.error();
    std::unique_ptr<KernelDevice> kernel(new KernelDevice(device, *registers, options));
    if (auto done = kernel->bring_up(); !done) return done.error();
    return kernel;
  });
}

KernelDevice::KernelDevice(Device& device, const RegisterMap& registers, const KernelOptions& options)
    : device_(device), registers_(registers), options_(options), pool_(device), reset_lock_(device) {}

Result<void> KernelDevice::bring_up() {
  auto begun = begin_life();
  if (!begun) return begun.error();
  life_ = begun.take();
  port_tables_ = std::make_unique<PortTables>(mac_);
  for (const auto& gid : options_.gids) {
    if (auto added = port_tables_->add_gid(gid); !added) return added.error();
  }
  connections_ = std::make_unique<ConnectionService>(*this);
  node_ = std::make_unique<LocalNode>(*this, false, takers_);
  kernel_node_ = std::make_unique<LocalNode>(*this, true, takers_);
  return {};
}

Result<std::shared_ptr<DeviceLife>> KernelDevice::begin_life() {
  auto life = std::make_shared<DeviceLife>(device_, registers_, AdminQueue::timeout_for(options_.completion_timeout),
                                           options_.event_queues <= AdminQueue::kVector);
  Result<void> started;
  try {
    started = start(*life);
  } catch (const std::bad_alloc&) {
    started = Error::kOutOfMemory;
  }
  if (started) return life;
  // The device may know the rings of this life.
  stop();
  if (life->admin.failed()) device_.reset_function();
  return started.error();
}

Result<void> KernelDevice::start(DeviceLife& life) {
  if (auto ready = wait_ready(); !ready) return ready;
  const std::uint64_t mac_register = registers_.port(hw::reg::kPortMac);
  if (options_.mac != 0) device_.write64(mac_register, hw::RegPortMac{.mac = options_.mac}.word());
  const bool first = mac_ == 0;
  if (first) mac_ = hw::RegPortMac::from_word(device_.read64(mac_register)).mac;
  device_.write64(registers_.identity(hw::reg::kCompletionTimeout),
                  hw::RegCompletionTimeout{.range = static_cast<std::uint8_t>(options_.completion_timeout)}.word());
  if (auto started = life.admin.start(); !started) return started;
  device_.write64(registers_.identity(hw::reg::kDeviceControl), hw::RegDeviceControl{.enable = 1}.word());
  if (qps_ == nullptr) {
    if (auto queried = query_limits(life); !queried) return queried;
    make_pools();
  }
  return create_event_queues(life);
}

/// While what it hears changes it hears nothing.
void KernelDevice::receive_ethernet(const EthernetReceive& what) {
  const std::uint64_t control = registers_.port(hw::reg::kPortEthernet);
  device_.write64(control, hw::RegPortEthernet{}.word());
  device_.write64(registers_.port(hw::reg::kPortGroups), hw::RegPortGroups{.groups = what.groups}.word());
  if (what.enable) {
    const hw::RegPortEthernet wanted{
        .qpn = what.qpn, .enable = 1, .all_groups = what.all_groups, .promiscuous = what.promiscuous};
    device_.write64(control, wanted.word());
  }
  // Not posted: when it has been answered, the device has seen the writes.
  static_cast<void>(device_.read64(control));
}

/// Numbers stay with their owners from one life of the device to the next.
void KernelDevice::make_pools() {
  cqs_ = std::make_unique<NumberPool>(device_, limits_.max_cq, 0, kCqTagBits);
  srqs_ = std::make_unique<NumberPool>(device_, limits_.max_srq, 0, kSrqTagBits);
  own_mrs_ = std::make_unique<NumberPool>(device_, kReservedKeys, 0, kKeyTagBits);
  mrs_ = std::make_unique<NumberPool>(device_, limits_.max_mr + kReservedKeys, kReservedKeys, kKeyTagBits);
  lines_ = std::make_unique<LinePool>(limits_.list_lines);
  uars_ = std::make_unique<NumberPool>(device_, limits_.uar_count + 1, kFirstUserUar, 0);
  pds_ = std::make_unique<NumberPool>(device_, kPdCount, 0, kPdTagBits);
  qps_ = std::make_unique<NumberPool>(device_, limits_.max_qp + kReservedQps, kReservedQps, options_.qp_tag_bits);
}

void KernelDevice::stop() {
  device_.write64(registers_.identity(hw::reg::kDeviceControl), hw::RegDeviceControl{.enable = 0}.word());
  // Not posted: when the read has been answered, the device has seen the write and touches memory no more.
  static_cast<void>(device_.read64(registers_.identity(hw::reg::kDeviceControl)));
  // Reads that it has asked for may not be answered yet: until then what they read must stay. It gives each up in time.
  const std::uint64_t end = device_.now_ns() + AdminQueue::timeout_for(options_.completion_timeout);
  const auto quiet = [this] {
    return hw::RegDeviceStatus::from_word(device_.read64(registers_.identity(hw::reg::kDeviceStatus))).quiet != 0;
  };
  while (!quiet() && device_.now_ns() < end) device_.elapse(kQuietPollNs);
}

KernelDevice::~KernelDevice() {
  if (life_ == nullptr) return;
  reap_orphans();
  for (auto& queue : life_->event_queues)
    static_cast<void>(destroy(*life_, hw::AdminOpcode::kDestroyEq, queue->eqn()).ok());
  stop();
}

std::shared_ptr<DeviceLife> KernelDevice::life() {
  const std::lock_guard lock(life_mutex_);
  return life_;
}

bool KernelDevice::usable(DeviceLife& life) {
  if (life.alive() && device_.removed()) fail(life);
  return life.alive();
}

void KernelDevice::fail(DeviceLife& life) {
  if (life.failed.exchange(1) != 0) return;
  life.admin.fail();
  life.admin.tell();
  for (auto& queue : life.event_queues) queue->close();
  events_.tell_everybody({.event_type = static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal), .number = 1});
  device_.wake();
}

void KernelDevice::quiesce(DeviceLife& life) {
  fail(life);
  // A thread that can wait no more sees no device any more either.
  const SleepLock::Guard guard(reset_lock_);
  if (!guard || life.quiet) return;
  device_.reset_function();
  life.quiet = true;
}

Result<void> KernelDevice::recover() {
  return or_out_of_memory([&]() -> Result<void> {
    const auto old = life();
    if (usable(*old)) return {};
    quiesce(*old);
    const SleepLock::Guard guard(reset_lock_);
    if (!guard) return Error::kDeviceFailed;
    if (life() != old) return {};
    if (device_.removed()) return Error::kDeviceFailed;
    auto next = begin_life();
    if (!next) return next.error();
    const std::lock_guard lock(life_mutex_);
    life_ = next.take();
    return {};
  });
}

Result<AdminQueue::Reply> KernelDevice::execute(DeviceLife& life, hw::AdminOpcode opcode, std::uint32_t number,
                                                const AdminQueue::Body& body) {
  Error error = Error::kDeviceFailed;
  if (life.alive()) {
    auto reply = life.admin.execute(opcode, number, body);
    if (reply || (life.alive() && !life.admin.failed())) return reply;
    error = reply.error();
  }
  quiesce(life);
  return error;
}

void KernelDevice::execute(DeviceLife& life, std::span<const AdminQueue::Command> commands,
                           std::span<Result<AdminQueue::Reply>> answers) {
  std::fill(answers.begin(), answers.end(), Error::kDeviceFailed);
  if (life.alive()) life.admin.execute(commands, answers);
  if (!life.alive() || life.admin.failed()) quiesce(life);
}

Result<void> KernelDevice::execute_later(DeviceLife& life, const AdminQueue::Command& command,
                                         std::shared_ptr<AdminQueue::Later> later) {
  if (life.alive() && life.admin.execute_later(command, std::move(later))) return {};
  quiesce(life);
  return Error::kDeviceFailed;
}

Result<void> KernelDevice::destroy(DeviceLife& life, hw::AdminOpcode opcode, std::uint32_t number) {
  auto reply = execute(life, opcode, number, AdminQueue::Body{});
  if (reply) return {};
  if (life.alive()) return reply.error();
  quiesce(life);  // another thread may have found the failure, and not have reset the device yet
  return {};
}

void KernelDevice::check_health(DeviceLife& life) {
  const std::uint64_t status = device_.read64(registers_.identity(hw::reg::kDeviceStatus));
  life.admin.tell();
  if (status == ~0ULL || hw::RegDeviceStatus::from_word(status).fatal != 0 || life.admin.failed()) fail(life);
}

Result<void> KernelDevice::wait_ready() {
  const std::uint64_t deadline = device_.now_ns() + kReadyTimeoutNs;
  for (;;) {
    const auto status = hw::RegDeviceStatus::from_word(device_.read64(registers_.identity(hw::reg::kDeviceStatus)));
    if (status.fatal != 0) return Error::kDeviceFailed;
    if (status.ready != 0) return {};
    if (device_.now_ns() >= deadline) return Error::kTimeout;
    device_.elapse(cost::kReadyPollNs);
  }
}

Result<void> KernelDevice::query_limits(DeviceLife& life) {
  auto reply = life.admin.execute(hw::AdminOpcode::kQueryCapabilities, 0, AdminQueue::Body{});
  if (!reply) return reply.error();
  const auto caps = hw::AdminCapabilities::decode(*reply);
  limits_ = {.vendor_id = registers_.vendor_id(),
             .device_id = registers_.device_id(),
             .max_qp = (1U << caps.log_max_qp) - kReservedQps,
             .max_cq = 1U << caps.log_max_cq,
             .max_eq = 1U << caps.log_max_eq,
             .max_mr = (1U << caps.log_max_mr) - kReservedKeys,
             .max_queue_depth = 1U << caps.log_max_queue_depth,
             .max_cq_depth = 1U << caps.log_max_cq_depth,
             .max_eq_depth = 1U << caps.log_max_eq_depth,
             .max_sge = caps.max_sge,
             .max_inline = caps.max_inline,
             .max_rd_atomic = caps.max_rd_atomic,
             .max_mtu = options_.mtu != 0 ? std::min<std::uint32_t>(options_.mtu, caps.max_mtu) : caps.max_mtu,
             .uar_count = caps.uar_count,
             .msix_vectors = caps.msix_vectors,
             .max_message = caps.max_message,
             .clock_mhz = caps.clock_mhz,
             .max_region = kMaxRegionBytes,
             .max_mw = caps.window_type1 != 0 || caps.window_type2 != 0 ? (1U << caps.log_max_mw) - kReservedKeys : 0,
             .window_type1 = caps.window_type1 != 0,
             .window_type2 = caps.window_type2 != 0,
             .max_fast_pages = caps.max_fast_pages,
             .max_srq = caps.log_max_srq_depth != 0 ? 1U << caps.log_max_srq : 0,
             .max_srq_depth = caps.log_max_srq_depth != 0 ? 1U << caps.log_max_srq_depth : 0,
             .max_multicast_groups = caps.max_multicast_groups,
             .list_lines = caps.list_lines};
  return {};
}

Result<void> KernelDevice::create_event_queues(DeviceLife& life) {
  const std::uint32_t most = std::min({options_.event_queues, limits_.msix_vectors, limits_.max_eq});
  if (most == 0) return Error::kInvalidParameter;
  std::vector<AdminQueue::Command> commands;
  for (std::uint32_t eqn = 0; eqn < most; ++eqn) {
    auto command = add_event_queue(life, eqn);
    if (!command) return command.error();
    commands.push_back(command.take());
  }
  std::vector<Result<AdminQueue::Reply>> answers(most, Error::kDeviceFailed);
  life.admin.execute(commands, answers);
  for (const auto& answer : answers) {
    if (!answer) return answer.error();
  }
  return {};
}

/// Gives the command that tells the device.
Result<AdminQueue::Command> KernelDevice::add_event_queue(DeviceLife& life, std::uint32_t eqn) {
  const auto message = device_.msix_message(eqn);
  const std::uint64_t entry = hw::reg::kMsixTable + 16ULL * eqn;
  device_.write64(entry, message.address);
  device_.write64(entry + 8, message.data);  // vector control 0: not masked

  const unsigned log_depth = std::min<unsigned>(kLogEqDepth, std::bit_width(limits_.max_eq_depth) - 1);
  auto ring = DmaMemory::allocate(device_, hw::Eqe::kBytes << log_depth);
  if (!ring) return ring.error();
  auto queue = std::make_unique<EventQueue>(device_, eqn, eqn, log_depth, ring.take());
  hw::AdminCreateEq body;
  body.base = queue->base();
  body.log_depth = static_cast<std::uint8_t>(log_depth);
  body.msix_vector = static_cast<std::uint8_t>(eqn);
  // In the list first: its ring is given back with all that the device knows of this life.
  life.event_queues.push_back(std::move(queue));
  AdminQueue::Command command{.opcode = hw::AdminOpcode::kCreateEq, .number = eqn, .body = {}};
  body.encode(command.body);
  return command;
}

Result<std::uint32_t> KernelDevice::acquire_uar() {
  auto number = uars_->acquire();
  if (!number) return number.error();
  return number->index;
}

void KernelDevice::release_uar(std::uint32_t uar) { uars_->release(uar); }

Result<std::uint32_t> KernelDevice::acquire_pd() {
  auto number = pds_->acquire();
  if (!number) return number.error();
  return (number->tag << (24 - kPdTagBits)) | number->index;
}

KernelDevice::Held KernelDevice::held() {
  return {.qps = qps_->in_use(),
          .cqs = cqs_->in_use(),
          .srqs = srqs_ != nullptr ? srqs_->in_use() : 0,
          .regions = mrs_->in_use() + own_mrs_->in_use(),
          .lines = lines_->in_use(),
          .contexts = uars_->in_use(),
          .domains = pds_->in_use()};
}

void KernelDevice::release_pd(std::uint32_t pd) { pds_->release(pd % kPdCount); }

std::uint32_t KernelDevice::random_psn() { return static_cast<std::uint32_t>(device_.random64()) & 0xFFFFFFU; }

std::uint32_t KernelDevice::next_eqn(const DeviceLife& life, std::uint64_t& affinity) {
  const std::uint32_t turn = next_eq_.fetch_add(1);
  const auto count = static_cast<unsigned>(life.event_queues.size());
  const std::uint64_t all = bits::mask(count);
  std::uint64_t wanted = (affinity & all) != 0 ? affinity & all : all;
  for (unsigned skip = turn % static_cast<unsigned>(std::popcount(wanted)); skip != 0; --skip) wanted &= wanted - 1;
  const auto chosen = static_cast<unsigned>(std::countr_zero(wanted));
  affinity = 1ULL << chosen;
  return life.event_queues[chosen]->eqn();
}

bool KernelDevice::link_up() {
  return hw::RegPortStatus::from_word(device_.read64(registers_.port(hw::reg::kPortStatus))).link_up != 0;
}

Result<std::uint64_t> KernelDevice::counter(hw::Counter which) {
  if (!registers_.has_counters()) return Error::kNotSupported;
  return device_.read64(hw::reg::kCounterBase + 8 * static_cast<std::uint64_t>(which));
}

}  // namespace rnic::kmd
