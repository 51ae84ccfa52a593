rnic_rtl_test(${RTL}/rx/rx_front.sv)
target_compile_definitions(test_rx_front PRIVATE RNIC_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
rnic_rtl_test(${RTL}/rx/rx_park.sv)
