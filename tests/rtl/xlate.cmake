rnic_rtl_test(${RTL}/xlate/xlate.sv)
