rnic_rtl_test(${CMAKE_CURRENT_SOURCE_DIR}/responder_output_harness.sv)
rnic_rtl_test(${RTL}/rsp/rsp_atomic.sv)
rnic_rtl_test(${RTL}/rsp/rsp_due.sv)
