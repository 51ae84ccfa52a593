rnic_rtl_test(${RTL}/pcie/dma_read.sv -GClients=5 -GPayload=4)
rnic_rtl_test(${RTL}/pcie/dma_req_mux.sv -GWrClients=2)
rnic_rtl_test(${RTL}/pcie/dma_write.sv -GClients=3)
rnic_rtl_test(${RTL}/pcie/pcie_edge.sv -GRdClients=3 -GWrClients=2)
