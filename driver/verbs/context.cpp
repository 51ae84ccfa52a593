// Contexts: opening and closing a device, and the table of functions that verbs.h calls.
#include <cstring>

#include "driver/verbs/objects.hpp"

namespace rnic::verbs {
namespace {

std::uint16_t first_ipv4(KernelPort& port) {
  const auto tables = port.call(calls::QueryPort{});
  for (std::uint16_t i = 0; tables && i < tables->gids; ++i) {
    if (const auto gid = gid_at(port, i); gid && is_ipv4_mapped(*gid)) return i;
  }
  return 0;
}

Result<void> begin(Context& context) {
  auto descriptor = context.process->port().descriptor(context.process->channel());
  if (!descriptor) return descriptor.error();
  if (auto opened = context.events.open(*descriptor); !opened) return opened;
  context.device_sink = std::make_shared<AsyncSink>(context.events, nullptr);
  context.process->events().subscribe_device(context.device_sink);
  context.second_sgid = first_ipv4(context.process->port());
  return {};
}

}  // namespace

void set_operations(verbs_context& table) {
  ibv_context_ops& ops = table.context.ops;
  ops.alloc_mw = alloc_mw;
  ops.bind_mw = bind_mw;
  ops.dealloc_mw = dealloc_mw;
  ops.poll_cq = poll_cq;
  ops.req_notify_cq = req_notify_cq;
  ops.post_srq_recv = post_srq_recv;
  ops.post_send = post_send;
  ops.post_recv = post_recv;
  table.query_port = query_port;
  table.query_device_ex = query_device_ex;
  table.query_rt_values = query_rt_values;
  table.alloc_td = alloc_td;
  table.dealloc_td = dealloc_td;
  table.alloc_parent_domain = alloc_parent_domain;
  table.create_cq_ex = create_cq_ex;
  table.modify_cq = modify_cq;
  table.create_srq_ex = create_srq_ex;
  table.get_srq_num = get_srq_num;
  table.create_qp_ex = create_qp_ex;
}

}  // namespace rnic::verbs

using namespace rnic::verbs;

extern "C" {

ibv_context* ibv_open_device(ibv_device* device) {
  return or_null([&]() -> ibv_context* {
    rnic::DeviceNode* const node = node_of(Device::of(device));
    if (node == nullptr) return refuse(ENODEV);
    auto process = rnic::umd::ProcessContext::open(*node);
    if (!process) return refuse(process.error());
    auto context = std::make_unique<Context>();
    context->device = &Device::of(device);
    context->process = process.take();
    if (auto begun = begin(*context); !begun) return refuse(begun.error());
    verbs_context& table = context->face;
    table.sz = sizeof table;
    set_operations(table);
    ibv_context& face = table.context;
    face.device = device;
    face.cmd_fd = -1;
    face.async_fd = context->events.descriptor().get();
    face.num_comp_vectors = 1;
    face.abi_compat = __VERBS_ABI_IS_EXTENDED;
    pthread_mutex_init(&face.mutex, nullptr);
    return &context.release()->face.context;
  });
}

int ibv_close_device(ibv_context* face) {
  const std::unique_ptr<Context> context(&Context::of(face));
  context->device_sink->stop();
  pthread_mutex_destroy(&face->mutex);
  return 0;
}

}  // extern "C"
