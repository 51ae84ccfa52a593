// Completion channels and the events of completion queues.
#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

/// Destroys the channel of the kernel driver with it.
void end_channel(Context& context, const Channel& channel) {
  if (channel.handle == 0) return;
  const auto kind = static_cast<std::uint8_t>(calls::ObjectKind::kChannel);
  static_cast<void>(context.process->call(calls::Destroy{.object = channel.handle, .kind = kind}).ok());
}

/// Takes one event of a queue that the program has; it may be acknowledged from now on. Null: there is none. Errors:
/// those of the call.
Result<Cq*> next_event(Context& context, Channel& channel) {
  const std::lock_guard lock(channel.mutex);
  for (;;) {
    const auto read = context.process->call(calls::ReadEvents{.channel = channel.handle, .most = 1});
    if (!read) return read.error();
    if (read->count == 0) return nullptr;
    const calls::Event& event = read->events[0];
    const auto found = channel.queues.find(event.number);
    const bool completion = event.type == static_cast<std::uint8_t>(hw::EqeType::kCompletion);
    if (!completion || found == channel.queues.end()) continue;
    ++found->second->completion_events;
    return found->second;
  }
}

}  // namespace
}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_comp_channel* ibv_create_comp_channel(ibv_context* face) {
  return or_null([&]() -> ibv_comp_channel* {
    auto& context = Context::of(face);
    auto channel = std::make_unique<Channel>();
    const auto made = context.process->call(rnic::calls::CreateChannel{});
    if (!made) return refuse(made.error());
    channel->handle = made->channel;
    auto opened = channel->descriptor.open();
    if (opened) {
      auto descriptor = context.process->port().descriptor(made->channel);
      opened = descriptor ? channel->descriptor.add(*descriptor) : descriptor.error();
    }
    if (!opened) {
      end_channel(context, *channel);
      return refuse(opened.error());
    }
    channel->face = {.context = face, .fd = channel->descriptor.get(), .refcnt = 0};
    return &channel.release()->face;
  });
}

int ibv_destroy_comp_channel(ibv_comp_channel* face) {
  auto& channel = Channel::of(face);
  {
    const std::lock_guard lock(channel.mutex);
    if (face->refcnt != 0) return EBUSY;
  }
  end_channel(Context::of(face->context), channel);
  delete &channel;
  return 0;
}

int ibv_get_cq_event(ibv_comp_channel* face, ibv_cq** cq, void** cq_context) {
  pthread_testcancel();  // as `read` of what is there
  auto& channel = Channel::of(face);
  for (;;) {
    const auto next = next_event(Context::of(face->context), channel);
    int error = next ? 0 : errno_of(next.error());
    if (next && *next != nullptr) {
      *cq = (*next)->as_cq();
      *cq_context = (*cq)->cq_context;
      return 0;
    }
    if (error == 0) error = channel.descriptor.wait();
    if (error != 0) {
      errno = error;
      return -1;
    }
  }
}

void ibv_ack_cq_events(ibv_cq* cq, unsigned count) {
  pthread_mutex_lock(&cq->mutex);
  cq->comp_events_completed += count;
  pthread_cond_signal(&cq->cond);
  pthread_mutex_unlock(&cq->mutex);
}

}  // extern "C"
