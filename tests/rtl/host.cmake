rnic_rtl_test(${RTL}/host/counter_bank.sv)
rnic_rtl_test(${RTL}/host/bar_regs.sv)
rnic_rtl_test(${RTL}/host/msix.sv)
rnic_rtl_test(${RTL}/host/uar_pages.sv)
