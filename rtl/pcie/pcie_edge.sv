`default_nettype none
`include "assert.svh"

/// PCIe edge: TLP streams outside, register accesses, doorbell writes, DMA clients inside.
///
/// Host requests: 4- and 8-byte reads and writes of page 0 (dword byte enables) become reg_req; 8-byte aligned 8-byte writes
/// to a UAR page, and 64-byte aligned 64-byte writes to its WQE window, become uar_req; reads of a UAR page give zero.
/// Anything else: a non-posted request is completed as Unsupported Request, a posted one is dropped; both are counted.
/// Poisoned writes are dropped and counted likewise.
///
/// DMA reads: client i asks with rd_req (dma_rd_req_t) and gets its data in the order of its requests; clients are independent
/// (data of one that does not take it never holds up another: each has its own output, its own ring in the reorder buffer and
/// a reserve of tags). Client RdPayload has the largest ring.
/// 64 tags, one read TLP each, of at most min(cfg maximum read request, 512 bytes), never across 4 KiB. Completions of different
/// tags may come in any order, those of one tag in order, split anywhere at the read completion boundary. An error status, a
/// poisoned completion, a wrong length or a time-out (CompletionTimeoutCycles) makes the whole request err; a tag whose read
/// timed out is not used again until its late completions can be told apart.
///
/// DMA writes: client i sends dma_wr_t beats; wr_done_o[i] pulses when the last TLP of a request has been accepted by dma_req.
/// Writes are cut at the maximum payload and at 4 KiB. Reads and writes leave in one stream; a read that a client asks for
/// after wr_done of a write leaves behind that write.
/// Nothing leaves dma_req while cfg_bus_master_i is 0.
module pcie_edge #(
    parameter int unsigned RdClients = 5,
    parameter int unsigned WrClients = 5,
    parameter int unsigned RdPayload = RdClients - 1,
    parameter int unsigned CompletionTimeoutCycles = 12_500_000
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    // Limits, as the root complex configured them: 128 << value bytes.
    input  wire logic [2:0]               cfg_max_payload_i,
    input  wire logic [2:0]               cfg_max_read_req_i,
    input  wire logic                     cfg_bus_master_i,
    // TLPs
    input  wire logic                     host_req_valid_i,
    output logic                          host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t  host_req_hdr_i,
    input  wire logic [511:0]             host_req_data_i,
    input  wire logic                     host_req_last_i,
    output logic                          host_cpl_valid_o,
    input  wire logic                     host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t       host_cpl_hdr_o,
    output logic [511:0]                  host_cpl_data_o,
    output logic                          dma_req_valid_o,
    input  wire logic                     dma_req_ready_i,
    output rnic_pkg::dma_req_hdr_t        dma_req_hdr_o,
    output logic [511:0]                  dma_req_data_o,
    output logic                          dma_req_last_o,
    input  wire logic                     dma_cpl_valid_i,
    output logic                          dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t   dma_cpl_hdr_i,
    input  wire logic [511:0]             dma_cpl_data_i,
    input  wire logic                     dma_cpl_last_i,
    // Register page; reg_rsp_valid_i answers each read, in order, at any time after it was accepted.
    output logic                          reg_req_valid_o,
    input  wire logic                     reg_req_ready_i,
    output rnic_pkg::reg_req_t            reg_req_data_o,
    input  wire logic                     reg_rsp_valid_i,
    input  wire logic [63:0]              reg_rsp_data_i,
    // UAR writes
    output logic                          uar_req_valid_o,
    input  wire logic                     uar_req_ready_i,
    output rnic_pkg::uar_req_t            uar_req_data_o,
    // DMA read clients (dma_rd_req_t, dma_rd_rsp_t)
    input  wire logic [RdClients-1:0]     rd_req_valid_i,
    output logic [RdClients-1:0]          rd_req_ready_o,
    input  wire logic [RdClients*rnic_pkg::DmaRdReqBits-1:0] rd_req_data_i,
    output logic [RdClients-1:0]          rd_rsp_valid_o,
    input  wire logic [RdClients-1:0]     rd_rsp_ready_i,
    output logic [RdClients*rnic_pkg::DmaRdRspBits-1:0] rd_rsp_data_o,
    // DMA write clients (dma_wr_t)
    input  wire logic [WrClients-1:0]     wr_valid_i,
    output logic [WrClients-1:0]          wr_ready_o,
    input  wire logic [WrClients*rnic_pkg::DmaWrBits-1:0] wr_data_i,
    output logic [WrClients-1:0]          wr_done_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
