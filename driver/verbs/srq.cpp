// Shared receive queues.
#include "driver/verbs/objects.hpp"
#include "driver/verbs/post_list.hpp"

namespace rnic::verbs {

int get_srq_num(ibv_srq* srq, std::uint32_t* number) {
  *number = Srq::of(srq).core->srqn();
  return 0;
}

int post_srq_recv(ibv_srq* srq, ibv_recv_wr* request, ibv_recv_wr** bad) {
  return post_receives(*Srq::of(srq).core, request, bad);
}

/// The basic kind is made by ibv_create_srq; there are no others.
ibv_srq* create_srq_ex(ibv_context*, ibv_srq_init_attr_ex*) { return refuse(EOPNOTSUPP); }

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_srq* ibv_create_srq(ibv_pd* pd_face, ibv_srq_init_attr* attributes) {
  return or_null([&]() -> ibv_srq* {
    auto& context = Context::of(pd_face->context);
    auto& pd = Pd::of(pd_face);
    auto srq = std::make_unique<Srq>();
    auto core = rnic::umd::SharedReceiveQueue::create(context.process, attributes->attr.max_wr,
                                                      attributes->attr.max_sge, pd.handle());
    if (!core) return refuse(core.error());
    srq->core = core.take();
    srq->sink = std::make_shared<AsyncSink>(context.events, &srq->face);
    context.process->events().subscribe(rnic::EventTable::Of::kSrq, srq->core->srqn(), srq->sink);
    ibv_srq& face = srq->face;
    face.context = pd_face->context;
    face.srq_context = attributes->srq_context;
    face.pd = pd_face;
    face.handle = srq->core->kernel_srq().handle();
    begin_face(face);
    attributes->attr.max_wr = srq->core->depth();
    attributes->attr.max_sge = srq->core->max_segments();
    ++pd.users;
    return &srq.release()->face;
  });
}

int ibv_modify_srq(ibv_srq* face, ibv_srq_attr* attributes, int mask) {
  auto& core = *Srq::of(face).core;
  if ((mask & ~(IBV_SRQ_MAX_WR | IBV_SRQ_LIMIT)) != 0) return EINVAL;
  const bool resize = (mask & IBV_SRQ_MAX_WR) != 0;
  const bool limit = (mask & IBV_SRQ_LIMIT) != 0;
  if (limit && attributes->srq_limit > (resize ? attributes->max_wr : core.depth())) return EINVAL;
  if (resize) {
    if (const int error = errno_of(core.resize(attributes->max_wr)); error != 0) return error;
  }
  return limit ? errno_of(core.arm(static_cast<std::uint16_t>(attributes->srq_limit))) : 0;
}

int ibv_query_srq(ibv_srq* face, ibv_srq_attr* attributes) {
  auto& core = *Srq::of(face).core;
  const auto is = core.kernel_srq().query();
  if (!is) return errno_of(is.error());
  *attributes = {.max_wr = core.depth(), .max_sge = core.max_segments(), .srq_limit = is->limit};
  return 0;
}

int ibv_destroy_srq(ibv_srq* face) {
  auto& srq = Srq::of(face);
  if (const int error = errno_of(srq.core->kernel_srq().destroy()); error != 0) return error;
  Context::of(face->context).process->events().unsubscribe(rnic::EventTable::Of::kSrq, srq.core->srqn());
  srq.sink->stop();
  wait_for_acknowledgements(face->mutex, face->cond, face->events_completed, srq.async_events);
  end_face(*face);
  --Pd::of(face->pd).users;
  delete &srq;
  return 0;
}

}  // extern "C"
