rnic_rtl_test(${RTL}/rx/scatter_align.sv)
rnic_rtl_test(${RTL}/rx/rx_place.sv)
rnic_rtl_test(${RTL}/rx/rx_done_flush.sv)
# The engine needs its context managers: its test runs a harness that holds both.
rnic_rtl_test(${CMAKE_CURRENT_SOURCE_DIR}/rx_engine_harness.sv)
