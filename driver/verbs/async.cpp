// Asynchronous events, as a program asks for them and acknowledges them.
#include "driver/unnoticed.hpp"
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {

void wait_for_acknowledgements(pthread_mutex_t& mutex, pthread_cond_t& cond, const std::uint32_t& acknowledged,
                               std::uint32_t given) {
  const Uncancelled uncancelled;  // half an object would be left
  pthread_mutex_lock(&mutex);
  while (acknowledged != given) pthread_cond_wait(&cond, &mutex);
  pthread_mutex_unlock(&mutex);
}

namespace {

enum class Of : std::uint8_t { kCq, kQp, kSrq, kPort };

Of object_of(ibv_event_type type) {
  switch (type) {
    case IBV_EVENT_CQ_ERR: return Of::kCq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED: return Of::kQp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED: return Of::kSrq;
    default: return Of::kPort;
  }
}

void count_given(const ibv_async_event& event) {
  switch (object_of(event.event_type)) {
    case Of::kCq: ++Cq::of(event.element.cq).async_events; break;
    case Of::kQp: ++Qp::of(event.element.qp).async_events; break;
    case Of::kSrq: ++Srq::of(event.element.srq).async_events; break;
    case Of::kPort: break;
  }
}

void acknowledge(pthread_mutex_t& mutex, pthread_cond_t& cond, std::uint32_t& acknowledged) {
  pthread_mutex_lock(&mutex);
  ++acknowledged;
  pthread_cond_signal(&cond);
  pthread_mutex_unlock(&mutex);
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

int ibv_get_async_event(ibv_context* face, ibv_async_event* event) {
  pthread_testcancel();  // as `read` of what is there
  auto& context = Context::of(face);
  for (;;) {
    context.process->take_events();
    if (context.events.take(*event, count_given)) return 0;
    if (!context.process->usable()) {
      errno = EIO;
      return -1;
    }
    if (const int error = context.events.descriptor().wait(); error != 0) {
      errno = error;
      return -1;
    }
  }
}

void ibv_ack_async_event(ibv_async_event* event) {
  switch (object_of(event->event_type)) {
    case Of::kCq: {
      ibv_cq& cq = *event->element.cq;
      return acknowledge(cq.mutex, cq.cond, cq.async_events_completed);
    }
    case Of::kQp: {
      ibv_qp& qp = *event->element.qp;
      return acknowledge(qp.mutex, qp.cond, qp.events_completed);
    }
    case Of::kSrq: {
      ibv_srq& srq = *event->element.srq;
      return acknowledge(srq.mutex, srq.cond, srq.events_completed);
    }
    case Of::kPort: return;
  }
}

}  // extern "C"
