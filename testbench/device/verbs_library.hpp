#pragma once

#include <infiniband/verbs.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace rnic::testbench {

/// There is no libibverbs, no such device, or it cannot be used; what() says why.
class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// libibverbs.so.1 as the loader finds it (LD_LIBRARY_PATH first), so that the tool starts on machines without one, and
/// takes the one that `rnic exec` puts in front. What verbs.h has inline (posting, polling, windows) is not here.
struct VerbsLibrary {
  /// Loads it once. Throws DeviceError.
  static const VerbsLibrary& get();

  /// Names of the devices of this machine.
  [[nodiscard]] std::vector<std::string> device_names() const;
  /// Throws DeviceError, which names the devices that there are.
  [[nodiscard]] ibv_context* open(const std::string& name) const;

  decltype(ibv_get_device_list)* get_device_list = look_up<decltype(ibv_get_device_list)>("ibv_get_device_list");
  decltype(ibv_free_device_list)* free_device_list = look_up<decltype(ibv_free_device_list)>("ibv_free_device_list");
  decltype(ibv_get_device_name)* get_device_name = look_up<decltype(ibv_get_device_name)>("ibv_get_device_name");
  decltype(ibv_open_device)* open_device = look_up<decltype(ibv_open_device)>("ibv_open_device");
  decltype(ibv_close_device)* close_device = look_up<decltype(ibv_close_device)>("ibv_close_device");
  decltype(ibv_query_device)* query_device = look_up<decltype(ibv_query_device)>("ibv_query_device");
  decltype(ibv_query_port)* query_port = look_up<decltype(ibv_query_port)>("ibv_query_port");
  decltype(ibv_query_gid)* query_gid = look_up<decltype(ibv_query_gid)>("ibv_query_gid");
  decltype(ibv_alloc_pd)* alloc_pd = look_up<decltype(ibv_alloc_pd)>("ibv_alloc_pd");
  decltype(ibv_dealloc_pd)* dealloc_pd = look_up<decltype(ibv_dealloc_pd)>("ibv_dealloc_pd");
  decltype(ibv_reg_mr)* reg_mr = look_up<decltype(ibv_reg_mr)>("ibv_reg_mr");
  decltype(ibv_dereg_mr)* dereg_mr = look_up<decltype(ibv_dereg_mr)>("ibv_dereg_mr");
  decltype(ibv_create_cq)* create_cq = look_up<decltype(ibv_create_cq)>("ibv_create_cq");
  decltype(ibv_destroy_cq)* destroy_cq = look_up<decltype(ibv_destroy_cq)>("ibv_destroy_cq");
  decltype(ibv_resize_cq)* resize_cq = look_up<decltype(ibv_resize_cq)>("ibv_resize_cq");
  decltype(ibv_create_srq)* create_srq = look_up<decltype(ibv_create_srq)>("ibv_create_srq");
  decltype(ibv_destroy_srq)* destroy_srq = look_up<decltype(ibv_destroy_srq)>("ibv_destroy_srq");
  decltype(ibv_modify_srq)* modify_srq = look_up<decltype(ibv_modify_srq)>("ibv_modify_srq");
  decltype(ibv_create_qp)* create_qp = look_up<decltype(ibv_create_qp)>("ibv_create_qp");
  decltype(ibv_destroy_qp)* destroy_qp = look_up<decltype(ibv_destroy_qp)>("ibv_destroy_qp");
  decltype(ibv_modify_qp)* modify_qp = look_up<decltype(ibv_modify_qp)>("ibv_modify_qp");
  decltype(ibv_query_qp)* query_qp = look_up<decltype(ibv_query_qp)>("ibv_query_qp");
  decltype(ibv_create_ah)* create_ah = look_up<decltype(ibv_create_ah)>("ibv_create_ah");
  decltype(ibv_destroy_ah)* destroy_ah = look_up<decltype(ibv_destroy_ah)>("ibv_destroy_ah");
  decltype(ibv_attach_mcast)* attach_mcast = look_up<decltype(ibv_attach_mcast)>("ibv_attach_mcast");
  decltype(ibv_detach_mcast)* detach_mcast = look_up<decltype(ibv_detach_mcast)>("ibv_detach_mcast");
  decltype(ibv_get_async_event)* get_async_event = look_up<decltype(ibv_get_async_event)>("ibv_get_async_event");
  decltype(ibv_ack_async_event)* ack_async_event = look_up<decltype(ibv_ack_async_event)>("ibv_ack_async_event");
  decltype(ibv_wc_status_str)* wc_status_str = look_up<decltype(ibv_wc_status_str)>("ibv_wc_status_str");
  decltype(ibv_event_type_str)* event_type_str = look_up<decltype(ibv_event_type_str)>("ibv_event_type_str");

 private:
  VerbsLibrary() = default;
  /// Throws DeviceError.
  static void* symbol(const char* name);
  template <typename Function>
  static Function* look_up(const char* name) {
    return reinterpret_cast<Function*>(symbol(name));
  }
};

}  // namespace rnic::testbench
