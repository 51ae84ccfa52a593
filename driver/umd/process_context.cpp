#include "driver/umd/process_context.hpp"

#include <array>

#include "driver/umd/kernel_cq.hpp"
#include "driver/umd/kernel_fast_mr.hpp"
#include "driver/umd/kernel_mr.hpp"
#include "driver/umd/kernel_mw.hpp"
#include "driver/umd/kernel_qp.hpp"
#include "driver/umd/kernel_srq.hpp"
#include "driver/umd/protection_domain.hpp"

namespace rnic::umd {
namespace {

constexpr std::uint32_t kGivenUp = 1;
constexpr unsigned kVainPolls = 64;  // after which a thread that only polls looks for events
constexpr std::uint32_t kMostEvents = std::tuple_size_v<decltype(calls::ReadEvents::Answer::events)>;

}  // namespace

Result<std::shared_ptr<ProcessContext>> ProcessContext::open(DeviceNode& node, bool kernel_uar) {
  return or_out_of_memory([&]() -> Result<std::shared_ptr<ProcessContext>> {
    auto port = node.open();
    if (!port) return port.error();
    std::shared_ptr<ProcessContext> context(new ProcessContext(node, port.take()));
    if (auto begun = context->begin(kernel_uar); !begun) return begun.error();
    node.takers().add(context);
    return context;
  });
}

Result<void> ProcessContext::begin(bool kernel_uar) {
  const auto opened = port_->call(calls::OpenContext{.kernel_uar = kernel_uar});
  if (!opened) return opened.error();
  auto status = port_->map(opened->status);
  if (!status) return status.error();
  status_memory_ = status.take();
  status_ = reinterpret_cast<const std::uint32_t*>(status_memory_.get());
  uar_ = opened->uar;
  page_ = std::uint64_t{uar_} * hw::kUarPageBytes;
  channel_ = opened->channel;
  if (auto queried = query_limits(); !queried) return queried;
  const auto pd = port_->call(calls::AllocPd{});
  if (!pd) return pd.error();
  pd_ = pd->pd;
  pd_number_ = pd->number;
  return {};
}

Result<void> ProcessContext::query_limits() {
  const auto device = port_->call(calls::QueryDevice{});
  if (!device) return device.error();
  mac_ = device->mac;
  limits_ = {.vendor_id = device->vendor_id,
             .device_id = device->device_id,
             .max_qp = device->max_qp,
             .max_cq = device->max_cq,
             .max_eq = device->max_eq,
             .max_mr = device->max_mr,
             .max_queue_depth = device->max_queue_depth,
             .max_cq_depth = device->max_cq_depth,
             .max_eq_depth = device->max_eq_depth,
             .max_sge = device->max_sge,
             .max_inline = device->max_inline,
             .max_rd_atomic = device->max_rd_atomic,
             .max_mtu = device->max_mtu,
             .uar_count = device->uar_count,
             .msix_vectors = device->msix_vectors,
             .max_message = device->max_message,
             .clock_mhz = device->clock_mhz,
             .max_region = device->max_region,
             .max_mw = device->max_mw,
             .window_type1 = device->window_type1 != 0,
             .window_type2 = device->window_type2 != 0,
             .max_fast_pages = device->max_fast_pages,
             .max_srq = device->max_srq,
             .max_srq_depth = device->max_srq_depth,
             .max_multicast_groups = device->max_multicast_groups};
  return {};
}

bool ProcessContext::usable() {
  if (alive() && !machine_.removed()) return true;
  take_events();
  return false;
}

void ProcessContext::give_up() {
  status_ = &kGivenUp;
  events_.tell_everybody({.event_type = static_cast<std::uint8_t>(hw::EqeType::kDeviceFatal), .number = 1});
  machine_.wake();
}

unsigned ProcessContext::take_events() {
  ++handing_out_;
  const unsigned taken = hand_out_events();
  --handing_out_;
  // Who found the device failed waits for what was on its way here. Nobody else is woken: who waits for events of a
  // device that has failed would go round for ever.
  if (handing_awaited_.exchange(false)) machine_.wake();
  return taken;
}

bool ProcessContext::handing_out() {
  if (handing_out_ == 0) return false;
  handing_awaited_ = true;
  return handing_out_ != 0;
}

unsigned ProcessContext::hand_out_events() {
  unsigned taken = 0;
  for (;;) {
    const auto read = port_->call(calls::ReadEvents{.channel = channel_, .most = kMostEvents});
    if (!read) return taken;
    for (std::uint32_t i = 0; i < read->count; ++i) {
      const calls::Event& event = read->events[i];
      const bool connection = event.type == static_cast<std::uint8_t>(calls::KernelEvent::kConnection);
      const hw::Eqe eqe{.event_type = event.type,
                        .number = connection ? event.object : event.number,
                        .detail = event.detail,
                        .timestamp = event.timestamp};
      if (connection)
        events_.tell(EventTable::Of::kEndpoint, eqe);
      else if (event.type == static_cast<std::uint8_t>(calls::KernelEvent::kRegion))
        events_.tell(EventTable::Of::kRegion, eqe);
      else if (!events_.hand_out(eqe))
        events_.tell_everybody(eqe);
    }
    taken += read->count;
    if (read->count < kMostEvents) return taken;
  }
}

void ProcessContext::look_for_events() {
  work();
  if ((vain_polls_.fetch_add(1, std::memory_order_relaxed) + 1) % kVainPolls != 0) return;
  take_events();
  work();
}

void ProcessContext::check_device() { static_cast<void>(call(calls::CheckDevice{}).ok()); }

Result<std::unique_ptr<ProtectionDomain>> ProcessContext::alloc_pd() {
  return KernelObject::make<ProtectionDomain>(*this, calls::AllocPd{});
}

Result<std::unique_ptr<KernelCq>> ProcessContext::create_cq(std::uint32_t entries, calls::Handle channel,
                                                            std::uint64_t affinity) {
  return KernelObject::make<KernelCq>(*this,
                                      calls::CreateCq{.channel = channel, .entries = entries, .affinity = affinity});
}

Result<std::unique_ptr<KernelSrq>> ProcessContext::create_srq(const SrqSpec& spec) {
  return KernelObject::make<KernelSrq>(*this,
                                       calls::CreateSrq{.affinity = spec.affinity,
                                                        .pd = pd_or_first(spec.pd),
                                                        .log_depth = static_cast<std::uint8_t>(spec.log_depth),
                                                        .log_stride = static_cast<std::uint8_t>(spec.log_stride)});
}

Result<std::unique_ptr<KernelQp>> ProcessContext::create_qp(const QpSpec& spec) {
  return KernelObject::make<KernelQp>(*this,
                                      calls::CreateQp{.pd = pd_or_first(spec.pd),
                                                      .send_cq = spec.send_cq,
                                                      .receive_cq = spec.receive_cq,
                                                      .srq = spec.srq,
                                                      .type = static_cast<std::uint8_t>(spec.type),
                                                      .sq_log_depth = static_cast<std::uint8_t>(spec.sq_log_depth),
                                                      .sq_log_stride = static_cast<std::uint8_t>(spec.sq_log_stride),
                                                      .rq_log_depth = static_cast<std::uint8_t>(spec.rq_log_depth),
                                                      .rq_log_stride = static_cast<std::uint8_t>(spec.rq_log_stride),
                                                      .fast_register = spec.fast_register,
                                                      .general_service = spec.general_service});
}

Result<std::unique_ptr<KernelMr>> ProcessContext::create_mr(const MrSpec& spec) {
  const auto address = reinterpret_cast<std::uintptr_t>(spec.address);
  return KernelObject::make<KernelMr>(*this, calls::RegisterMr{.address = address,
                                                               .length = spec.length,
                                                               .iova = spec.iova.value_or(address),
                                                               .pd = pd_or_first(spec.pd),
                                                               .local_write = spec.local_write,
                                                               .read_sink = spec.read_sink,
                                                               .remote_read = spec.remote_read,
                                                               .remote_write = spec.remote_write,
                                                               .remote_atomic = spec.remote_atomic,
                                                               .window_bind = spec.window_bind});
}

Result<std::unique_ptr<KernelMr>> ProcessContext::begin_mr(const MrSpec& spec, std::uint32_t number) {
  const auto address = reinterpret_cast<std::uintptr_t>(spec.address);
  return KernelObject::make<KernelMr>(*this, calls::BeginRegisterMr{.address = address,
                                                                    .length = spec.length,
                                                                    .iova = spec.iova.value_or(address),
                                                                    .pd = pd_or_first(spec.pd),
                                                                    .number = number,
                                                                    .local_write = spec.local_write,
                                                                    .read_sink = spec.read_sink,
                                                                    .remote_read = spec.remote_read,
                                                                    .remote_write = spec.remote_write,
                                                                    .remote_atomic = spec.remote_atomic,
                                                                    .window_bind = spec.window_bind});
}

Result<std::unique_ptr<KernelMw>> ProcessContext::create_mw(const MwSpec& spec) {
  return KernelObject::make<KernelMw>(
      *this, calls::CreateMw{.pd = pd_or_first(spec.pd), .type = static_cast<std::uint8_t>(spec.type)});
}

Result<std::unique_ptr<KernelFastMr>> ProcessContext::create_fast_mr(const FastMrSpec& spec) {
  return KernelObject::make<KernelFastMr>(*this, calls::CreateFastMr{.pd = pd_or_first(spec.pd),
                                                                     .max_pages = spec.max_pages,
                                                                     .remote_access = spec.remote_access,
                                                                     .window_bind = spec.window_bind});
}

}  // namespace rnic::umd
