rnic_rtl_test(${RTL}/pcie/dma_read.sv -GClients=6 -GPayload=5)
rnic_rtl_test(${RTL}/pcie/dma_req_mux.sv -GWrClients=2)
rnic_rtl_test(${RTL}/pcie/dma_write.sv -GClients=6)
rnic_rtl_test(${RTL}/pcie/pcie_edge.sv -GRdClients=3 -GWrClients=2)
