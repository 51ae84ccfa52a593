// What providers of rdma-core (libmlx5, libefa) and librdmacm need to load. Their devices are not ours: they register
// in vain, and their commands are refused.
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstdint>

#include "driver/verbs/kernel_port.hpp"
#include "driver/verbs/objects.hpp"

#define RNIC_REFUSED_COMMAND(name) \
  int name() { return EOPNOTSUPP; }

namespace {

void* refuse_provider() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

extern "C" {

rnic::KernelPort* rnic_kernel_port(ibv_context* context) { return &rnic::verbs::Context::of(context).process->port(); }

bool verbs_allow_disassociate_destroy = false;

void verbs_register_driver_34(const void*) {}
__attribute__((symver("ibv_register_driver@IBVERBS_1.1"))) void ibv_register_driver_of_1_1(const char*, void*) {}
void* verbs_open_device(ibv_device*, void*) { return refuse_provider(); }
void* _verbs_init_and_alloc_context(ibv_device*, int, std::size_t, void*, std::uint32_t) { return refuse_provider(); }
void verbs_uninit_context(void*) {}
void verbs_set_ops(void*, const void*) {}
void verbs_init_cq(ibv_cq*, ibv_context*, ibv_comp_channel*, void*) {}
void __verbs_log(void*, std::uint32_t, const char*, ...) {}
int execute_ioctl(ibv_context*, void*) { return EOPNOTSUPP; }
unsigned __ioctl_final_num_attrs(unsigned count, void*) { return count; }
int ibv_read_ibdev_sysfs_file(char*, std::size_t, void*, const char*, ...) {
  errno = ENOENT;
  return -1;
}

RNIC_REFUSED_COMMAND(ibv_cmd_advise_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_alloc_dm)
RNIC_REFUSED_COMMAND(ibv_cmd_alloc_mw)
RNIC_REFUSED_COMMAND(ibv_cmd_alloc_pd)
RNIC_REFUSED_COMMAND(ibv_cmd_attach_mcast)
RNIC_REFUSED_COMMAND(ibv_cmd_close_xrcd)
RNIC_REFUSED_COMMAND(ibv_cmd_create_ah)
RNIC_REFUSED_COMMAND(ibv_cmd_create_counters)
RNIC_REFUSED_COMMAND(ibv_cmd_create_cq)
RNIC_REFUSED_COMMAND(ibv_cmd_create_cq_ex)
RNIC_REFUSED_COMMAND(ibv_cmd_create_flow)
RNIC_REFUSED_COMMAND(ibv_cmd_create_flow_action_esp)
RNIC_REFUSED_COMMAND(ibv_cmd_create_qp)
RNIC_REFUSED_COMMAND(ibv_cmd_create_qp_ex2)
RNIC_REFUSED_COMMAND(ibv_cmd_create_qp_ex)
RNIC_REFUSED_COMMAND(ibv_cmd_create_rwq_ind_table)
RNIC_REFUSED_COMMAND(ibv_cmd_create_srq)
RNIC_REFUSED_COMMAND(ibv_cmd_create_srq_ex)
RNIC_REFUSED_COMMAND(ibv_cmd_create_wq)
RNIC_REFUSED_COMMAND(ibv_cmd_dealloc_mw)
RNIC_REFUSED_COMMAND(ibv_cmd_dealloc_pd)
RNIC_REFUSED_COMMAND(ibv_cmd_dereg_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_ah)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_counters)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_cq)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_flow)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_flow_action)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_qp)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_rwq_ind_table)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_srq)
RNIC_REFUSED_COMMAND(ibv_cmd_destroy_wq)
RNIC_REFUSED_COMMAND(ibv_cmd_detach_mcast)
RNIC_REFUSED_COMMAND(ibv_cmd_free_dm)
RNIC_REFUSED_COMMAND(ibv_cmd_get_context)
RNIC_REFUSED_COMMAND(ibv_cmd_modify_cq)
RNIC_REFUSED_COMMAND(ibv_cmd_modify_flow_action_esp)
RNIC_REFUSED_COMMAND(ibv_cmd_modify_qp)
RNIC_REFUSED_COMMAND(ibv_cmd_modify_qp_ex)
RNIC_REFUSED_COMMAND(ibv_cmd_modify_srq)
RNIC_REFUSED_COMMAND(ibv_cmd_modify_wq)
RNIC_REFUSED_COMMAND(ibv_cmd_open_qp)
RNIC_REFUSED_COMMAND(ibv_cmd_open_xrcd)
RNIC_REFUSED_COMMAND(ibv_cmd_poll_cq)
RNIC_REFUSED_COMMAND(ibv_cmd_post_recv)
RNIC_REFUSED_COMMAND(ibv_cmd_post_send)
RNIC_REFUSED_COMMAND(ibv_cmd_post_srq_recv)
RNIC_REFUSED_COMMAND(ibv_cmd_query_context)
RNIC_REFUSED_COMMAND(ibv_cmd_query_device_any)
RNIC_REFUSED_COMMAND(ibv_cmd_query_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_query_port)
RNIC_REFUSED_COMMAND(ibv_cmd_query_qp)
RNIC_REFUSED_COMMAND(ibv_cmd_query_srq)
RNIC_REFUSED_COMMAND(ibv_cmd_read_counters)
RNIC_REFUSED_COMMAND(ibv_cmd_reg_dm_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_reg_dmabuf_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_reg_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_req_notify_cq)
RNIC_REFUSED_COMMAND(ibv_cmd_rereg_mr)
RNIC_REFUSED_COMMAND(ibv_cmd_resize_cq)

}  // extern "C"
