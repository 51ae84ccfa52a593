rnic_rtl_test(${PROJECT_SOURCE_DIR}/tests/generated/host_interface_probe.sv)
