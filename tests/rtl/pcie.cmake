rnic_rtl_test(${RTL}/pcie/dma_read.sv -GClients=5 -GPayload=4 -GTimeoutCycles=3000)
