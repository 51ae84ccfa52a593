#include "driver/umd/queue_pair.hpp"

#include <algorithm>

#include "driver/costs.hpp"
#include "driver/ring_size.hpp"
#include "driver/umd/post_send.hpp"

namespace rnic::umd {
namespace {

bool within(const QueueCapacity& wanted, const Limits& limits) {
  return wanted.send_depth <= limits.max_queue_depth && wanted.receive_depth <= limits.max_queue_depth &&
         wanted.send_segments <= limits.max_sge && wanted.receive_segments <= limits.max_sge &&
         wanted.inline_bytes <= limits.max_inline;
}

}  // namespace

Result<std::shared_ptr<QueuePair>> QueuePair::create(std::shared_ptr<ProcessContext> process, const Spec& spec) {
  if (!within(spec.capacity, process->limits())) return Error::kInvalidParameter;
  if (!process->usable()) return Error::kDeviceFailed;
  QueueCapacity granted = spec.capacity;
  // The network stack asks for what it uses: the smaller its WQEs, the more of them the NIC holds.
  if (spec.type != hw::QpType::kRawPacket) granted.send_segments = std::max(granted.send_segments, kMinSegments);
  granted.receive_segments = std::max(granted.receive_segments, kMinSegments);
  return or_out_of_memory([&]() -> Result<std::shared_ptr<QueuePair>> {
    std::shared_ptr<QueuePair> qp(new QueuePair(std::move(process), spec, granted));
    if (auto built = qp->build(spec); !built) return built.error();
    qp->process_->events().subscribe(EventTable::Of::kQp, qp->qpn(), qp);
    // What failed since has told its sinks already.
    if (!qp->process_->alive()) return Error::kDeviceFailed;
    return qp;
  });
}

Result<void> QueuePair::build(const Spec& spec) {
  const unsigned sq_log_depth = ring_log_depth(granted_.send_depth);
  const unsigned rq_log_depth = ring_log_depth(granted_.receive_depth);
  const unsigned sq_log_stride = SendQueue::log_stride_for(granted_.send_segments, granted_.inline_bytes, type_);
  const unsigned rq_log_stride = ReceiveQueue::log_stride_for(granted_.receive_segments);
  auto kernel_qp = process_->create_qp({.pd = spec.pd,
                                        .send_cq = send_cq_->kernel_cq().handle(),
                                        .receive_cq = receive_cq_->kernel_cq().handle(),
                                        .sq_log_depth = sq_log_depth,
                                        .sq_log_stride = sq_log_stride,
                                        .rq_log_depth = rq_log_depth,
                                        .rq_log_stride = rq_log_stride,
                                        .srq = shared_receives_ ? shared_receives_->kernel_srq().handle() : 0,
                                        .fast_register = spec.fast_register,
                                        .type = type_,
                                        .general_service = spec.general_service});
  if (!kernel_qp) return kernel_qp.error();
  kernel_qp_ = kernel_qp.take();
  const std::uint32_t max_message = process_->limits().max_message;
  send_ = std::make_unique<SendQueue>(*process_, SendQueue::Layout{.type = type_,
                                                                   .qpn = qpn(),
                                                                   .ring = kernel_qp_->send_ring(),
                                                                   .log_depth = sq_log_depth,
                                                                   .log_stride = sq_log_stride,
                                                                   .retired_record = kernel_qp_->retired_record(),
                                                                   .depth = granted_.send_depth,
                                                                   .max_segments = granted_.send_segments,
                                                                   .max_inline = granted_.inline_bytes,
                                                                   .max_message = max_message});
  if (shared_receives_) {
    shared_receives_->attach(receive_cq_);
    on_shared_receives_ = true;
  } else {
    receive_ = std::make_unique<ReceiveQueue>(*process_, ReceiveQueue::Layout{.qpn = qpn(),
                                                                              .ring = kernel_qp_->receive_ring(),
                                                                              .log_depth = rq_log_depth,
                                                                              .log_stride = rq_log_stride,
                                                                              .depth = granted_.receive_depth,
                                                                              .max_segments = granted_.receive_segments,
                                                                              .max_message = max_message});
  }
  send_cq_->attach(qpn(), send_.get(), nullptr, spec.context);
  receive_cq_->attach(qpn(), nullptr, receive_source(), spec.context);
  return {};
}

Result<std::shared_ptr<QueuePair>> QueuePair::create_idle(std::shared_ptr<ProcessContext> process, const Spec& spec) {
  auto qp = create(std::move(process), spec);
  if (!qp) return qp;
  if (auto idle = (*qp)->to_idle({}); !idle) return idle.error();
  return qp;
}

QueuePair::~QueuePair() {
  if (!leave({.groups_too = true}) && kernel_qp_ != nullptr) leave_queues({});
}

Result<void> QueuePair::post_send(const SendRequest& request) { return post_here(request); }

Result<void> QueuePair::post_memory(const MemoryRequest& request) {
  process_->machine().elapse(cost::kPostSendNs);
  if (!process_->alive() || state() != State::kConnected) return refuse_to_post();
  const auto posted = send_->post(request);
  return posted.ok() || posted.error() != Error::kQueueFull ? posted : post_after_decoding(request);
}

/// Completions that nobody has reaped may have freed slots.
template <typename Request>
[[gnu::noinline]] Result<void> QueuePair::post_after_decoding(const Request& request) {
  send_cq_->decode();
  return send_->post(request);
}

template Result<void> QueuePair::post_after_decoding(const SendRequest& request);

Result<void> QueuePair::refuse_to_post() {
  if (!process_->alive()) return Error::kDeviceFailed;
  send_->ring_deferred();
  return Error::kInvalidState;
}

Result<void> QueuePair::post_receive(const ReceiveRequest& request) {
  process_->machine().elapse(cost::kPostReceiveNs);
  if (receive_ == nullptr) return Error::kNotSupported;
  if (!process_->alive()) return Error::kDeviceFailed;
  if (state() < State::kIdle) return Error::kInvalidState;
  const auto posted = receive_->post(request);
  if (posted.ok() || posted.error() != Error::kQueueFull) return posted;
  receive_cq_->decode();
  return receive_->post(request);
}

/// All but the last hold their doorbell back.
Result<void> QueuePair::post_sends(std::span<const SendRequest> requests, std::size_t& posted) {
  posted = 0;
  process_->machine().elapse(requests.size() * cost::kPostSendNs);
  if (!process_->alive() || state() != State::kConnected) return refuse_to_post();
  auto done = send_->post(requests, posted);
  if (done.ok() || done.error() != Error::kQueueFull) return done;
  send_cq_->decode();
  return send_->post(requests, posted);
}

Result<void> QueuePair::post_receives(std::span<const ReceiveRequest> requests, std::size_t& posted) {
  for (posted = 0; posted < requests.size(); ++posted) {
    ReceiveRequest request = requests[posted];
    request.defer = request.defer || posted + 1 != requests.size();
    // What is refused rings for those before.
    if (auto done = post_receive(request); !done) return done;
  }
  return {};
}

bool QueuePair::has_room(std::size_t requests) {
  const auto room = [&] { return send_->outstanding() + requests <= granted_.send_depth; };
  if (room()) return true;
  send_cq_->decode();
  return room();
}

void QueuePair::ring_deferred() {
  process_->machine().elapse(cost::kDoorbellNs);
  send_->ring_deferred();
  ring_receives();
}

ReceiveSource* QueuePair::receive_source() const {
  if (shared_receives_) return shared_receives_.get();
  return receive_.get();
}

void QueuePair::ring_receives() {
  if (receive_ != nullptr) receive_->ring_deferred();
}

void QueuePair::decode() {
  send_cq_->decode();
  receive_cq_->decode();
}

void QueuePair::on_event(const hw::Eqe& eqe) {
  switch (static_cast<hw::EqeType>(eqe.event_type)) {
    case hw::EqeType::kQpFatal:
    case hw::EqeType::kQpRequestError:
    case hw::EqeType::kQpAccessError:
    case hw::EqeType::kDeviceFatal: failed_.store(true); break;
    case hw::EqeType::kLastWqeReached: last_wqe_reached_.store(true); break;
    default: break;
  }
  if (on_event_) on_event_(eqe);
}

}  // namespace rnic::umd
