rnic_rtl_test(${RTL}/xlate/xlate.sv)
rnic_rtl_test(${RTL}/xlate/mem_op.sv)
rnic_rtl_test(${RTL}/top/xlate_share.sv)
target_sources(test_xlate PRIVATE test_xlate_keys.cpp)
