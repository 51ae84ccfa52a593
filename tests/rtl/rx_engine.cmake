rnic_rtl_test(${RTL}/rx/scatter_align.sv)
rnic_rtl_test(${RTL}/rx/rx_place.sv)
