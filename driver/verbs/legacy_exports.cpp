// Versions of functions that programs linked before 2007 ask for, with structures of another layout. Such a program
// finds no device; what it can only call with one is refused.
#include <cerrno>
#include <cstdint>
#include <cstdlib>

#define RNIC_LEGACY(name) __attribute__((symver(#name "@IBVERBS_1.0"))) name##_of_1_0

namespace {

int refuse() {
  errno = EOPNOTSUPP;
  return EOPNOTSUPP;
}

void* refuse_null() {
  errno = EOPNOTSUPP;
  return nullptr;
}

}  // namespace

extern "C" {

void** RNIC_LEGACY(ibv_get_device_list)(int* count) {
  if (count != nullptr) *count = 0;
  return static_cast<void**>(std::calloc(1, sizeof(void*)));
}

void RNIC_LEGACY(ibv_free_device_list)(void** list) { std::free(list); }

void RNIC_LEGACY(ibv_ack_async_event)(void*) {}
void RNIC_LEGACY(ibv_ack_cq_events)(void*) {}
void* RNIC_LEGACY(ibv_alloc_pd)(void*) { return refuse_null(); }
int RNIC_LEGACY(ibv_attach_mcast)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_close_device)(void*) { return refuse(); }
void* RNIC_LEGACY(ibv_create_ah)(void*) { return refuse_null(); }
void* RNIC_LEGACY(ibv_create_cq)(void*) { return refuse_null(); }
void* RNIC_LEGACY(ibv_create_qp)(void*) { return refuse_null(); }
void* RNIC_LEGACY(ibv_create_srq)(void*) { return refuse_null(); }
int RNIC_LEGACY(ibv_dealloc_pd)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_dereg_mr)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_destroy_ah)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_destroy_cq)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_destroy_qp)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_destroy_srq)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_detach_mcast)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_get_async_event)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_get_cq_event)(void*) { return refuse(); }
std::uint64_t RNIC_LEGACY(ibv_get_device_guid)(void*) { return 0; }
void* RNIC_LEGACY(ibv_get_device_name)(void*) { return refuse_null(); }
int RNIC_LEGACY(ibv_modify_qp)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_modify_srq)(void*) { return refuse(); }
void* RNIC_LEGACY(ibv_open_device)(void*) { return refuse_null(); }
int RNIC_LEGACY(ibv_query_device)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_query_gid)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_query_pkey)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_query_port)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_query_qp)(void*) { return refuse(); }
int RNIC_LEGACY(ibv_query_srq)(void*) { return refuse(); }
void* RNIC_LEGACY(ibv_reg_mr)(void*) { return refuse_null(); }
int RNIC_LEGACY(ibv_resize_cq)(void*) { return refuse(); }

}  // extern "C"
