rnic_rtl_test(${RTL}/rx/scatter_align.sv)
rnic_rtl_test(${RTL}/rx/rx_place.sv)
rnic_rtl_test(${RTL}/rx/rx_done_flush.sv)
# The engine needs its context managers: its test runs a harness that holds both.
add_executable(test_rx_engine ${PROJECT_SOURCE_DIR}/tests/rtl/test_rx_engine.cpp)
target_link_libraries(test_rx_engine PRIVATE rnic_options catch_main)
rnic_verilate(test_rx_engine ${PROJECT_SOURCE_DIR}/tests/rtl/rx_engine_harness.sv)
add_test(NAME rtl/rx_engine COMMAND test_rx_engine)
rnic_label(rtl/rx_engine rtl 300)
