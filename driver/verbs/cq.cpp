// Completion queues: making, changing and ending them.
#include "driver/costs.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

constexpr std::uint64_t kFields = std::uint64_t{IBV_WC_STANDARD_FLAGS} | IBV_WC_EX_WITH_CVLAN |
                                  IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;

struct CqRequest {
  std::uint32_t entries{};
  void* context{};
  ibv_comp_channel* channel{};
};

Result<std::unique_ptr<Cq>> make_cq(ibv_context* face, const CqRequest& request) {
  auto& context = Context::of(face);
  Channel* const channel = request.channel != nullptr ? &Channel::of(request.channel) : nullptr;
  auto cq = std::make_unique<Cq>();
  auto core = umd::CompletionQueue::create(context.process, request.entries, channel != nullptr ? channel->handle : 0);
  if (!core) return core.error();
  cq->core = core.take();
  cq->sink = std::make_shared<AsyncSink>(context.events, cq->as_cq());
  cq->clock_mhz = context.process->limits().clock_mhz;
  ibv_cq_ex& of = cq->face;
  of.context = face;
  of.channel = request.channel;
  of.cq_context = request.context;
  of.handle = cq->core->kernel_cq().handle();
  of.cqe = static_cast<int>(request.entries);  // there is room for more (decisions 37)
  context.process->events().subscribe(EventTable::Of::kCq, cq->core->cqn(), cq->sink);
  if (channel != nullptr) {
    const std::lock_guard lock(channel->mutex);
    channel->queues[cq->core->cqn()] = cq.get();
    ++channel->face.refcnt;
  }
  begin_face(of);
  return cq;
}

/// A queue that becomes smaller than what is on its way to it is refused, as one that holds too much is: what the
/// device has begun has this long to come. Programs reckon with a device that is done before they ask.
void wait_for_what_comes(umd::ProcessContext& process, umd::CompletionQueue& queue) {
  constexpr std::uint64_t kOnItsWayNs = 20'000;
  // The answer comes behind the doorbells that were rung before.
  if (!queue.kernel_cq().query()) return;
  Machine& machine = process.machine();
  const std::uint64_t start = machine.now_ns();
  while (machine.now_ns() - start < kOnItsWayNs && !machine.removed()) machine.elapse(cost::kAdminPollNs);
}

/// Nothing of it comes any more; what the program has been given, it acknowledges.
void leave(Cq& cq) {
  Context::of(cq.face.context).process->events().unsubscribe(EventTable::Of::kCq, cq.core->cqn());
  cq.sink->stop();
  std::uint32_t given = 0;
  if (cq.face.channel != nullptr) {
    auto& channel = Channel::of(cq.face.channel);
    const std::lock_guard lock(channel.mutex);
    channel.queues.erase(cq.core->cqn());
    --channel.face.refcnt;
    given = cq.completion_events;
  }
  wait_for_acknowledgements(cq.face.mutex, cq.face.cond, cq.face.comp_events_completed, given);
  wait_for_acknowledgements(cq.face.mutex, cq.face.cond, cq.face.async_events_completed, cq.async_events);
}

}  // namespace

ibv_cq_ex* create_cq_ex(ibv_context* context, ibv_cq_init_attr_ex* attributes) {
  constexpr std::uint32_t kFlags = IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
  const bool with_flags = (attributes->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0;
  if ((attributes->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) != 0) return refuse(EINVAL);
  if ((attributes->wc_flags & ~kFields) != 0) return refuse(EOPNOTSUPP);
  if (with_flags && (attributes->flags & ~kFlags) != 0) return refuse(EOPNOTSUPP);
  if (attributes->comp_vector >= static_cast<std::uint32_t>(context->num_comp_vectors)) return refuse(EINVAL);
  return or_null([&]() -> ibv_cq_ex* {
    auto cq = make_cq(context, {attributes->cqe, attributes->cq_context, attributes->channel});
    if (!cq) return refuse(cq.error());
    (*cq)->single_threaded = with_flags && (attributes->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0;
    set_poll_operations((*cq)->face);
    return &cq->release()->face;
  });
}

int modify_cq(ibv_cq* cq, ibv_modify_cq_attr* attributes) {
  if (attributes->attr_mask != IBV_CQ_ATTR_MODERATE) return EINVAL;
  return errno_of(Cq::of(cq).core->moderate(attributes->moderate.cq_count, attributes->moderate.cq_period));
}

/// An event that would go nowhere is not asked for.
int req_notify_cq(ibv_cq* cq, int solicited_only) {
  if (cq->channel == nullptr) return 0;
  Cq::of(cq).core->arm(solicited_only != 0 ? hw::CqArm::kSolicited : hw::CqArm::kAny);
  return 0;
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_cq* ibv_create_cq(ibv_context* context, int entries, void* cq_context, ibv_comp_channel* channel, int comp_vector) {
  if (entries <= 0 || comp_vector < 0 || comp_vector >= context->num_comp_vectors) return refuse(EINVAL);
  return or_null([&]() -> ibv_cq* {
    auto cq = make_cq(context, {static_cast<std::uint32_t>(entries), cq_context, channel});
    return cq ? cq->release()->as_cq() : refuse(cq.error());
  });
}

int ibv_resize_cq(ibv_cq* face, int entries) {
  if (entries <= 0) return EINVAL;
  auto& core = *Cq::of(face).core;
  if (entries < face->cqe) wait_for_what_comes(*Context::of(face->context).process, core);
  if (const int error = errno_of(core.resize(static_cast<std::uint32_t>(entries))); error != 0) return error;
  face->cqe = entries;
  return 0;
}

int ibv_destroy_cq(ibv_cq* face) {
  auto& cq = Cq::of(face);
  if (const int error = errno_of(cq.core->kernel_cq().destroy()); error != 0) return error;
  leave(cq);
  end_face(cq.face);
  delete &cq;
  return 0;
}

}  // extern "C"
