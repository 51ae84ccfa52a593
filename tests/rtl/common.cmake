rnic_rtl_test(${RTL}/common/ctx_manager.sv -GWidth=40 -GEntries=16 -GClients=4)
