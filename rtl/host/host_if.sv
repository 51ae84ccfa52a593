`default_nettype none
`include "assert.svh"

/// Host interface: register page, UAR pages, MSI-X, counters, admin queue.
///
/// Doorbells and WQE windows pass on what was written with the UAR it came through; the owners of the objects check it.
/// Until device_enable_o, doorbells are dropped. The admin queue fetches 128-byte commands one by one (RdClient), executes them
/// through the context managers, and writes 64-byte completions (WrClient); an optional MSI-X message follows.
///
/// Creating or resetting a QP: its contexts are written, then qp_reset_valid_o is held until qp_reset_ready_i: every block
/// drops what it keeps about that QP. DestroyQp and ModifyQp to RESET first move the QP to the error state (qp_error_t, quiet),
/// wait until its contexts show that it is flushed and `drain` has passed once, and then clear it.
/// `drain`: drain_valid_o is held until drain_ready_i, which says that every DMA whose translation or WQE was
/// accepted before the request has been issued. DestroyMr clears the MPT entry, then drains, then completes.
module host_if (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      contexts_ready_i,
    // Register page
    input  wire logic                      reg_req_valid_i,
    output logic                           reg_req_ready_o,
    input  wire rnic_pkg::reg_req_t        reg_req_data_i,
    output logic                           reg_rsp_valid_o,
    output logic [63:0]                    reg_rsp_data_o,
    output logic                           device_enable_o,
    output logic [47:0]                    port_mac_o,
    output logic [63:0]                    cycles_o,
    input  wire logic [rnic_pkg::NumCounters-1:0] event_i,
    // UAR
    input  wire logic                      uar_req_valid_i,
    output logic                           uar_req_ready_o,
    input  wire rnic_pkg::uar_req_t        uar_req_data_i,
    output logic                           sq_doorbell_valid_o,
    input  wire logic                      sq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            sq_doorbell_data_o,
    output logic                           rq_doorbell_valid_o,
    input  wire logic                      rq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            rq_doorbell_data_o,
    output logic                           cq_doorbell_valid_o,
    input  wire logic                      cq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            cq_doorbell_data_o,
    output logic                           eq_doorbell_valid_o,
    input  wire logic                      eq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            eq_doorbell_data_o,
    output logic                           wqe_push_valid_o,
    input  wire logic                      wqe_push_ready_i,
    output rnic_pkg::wqe_push_t            wqe_push_data_o,
    // MSI-X: cfg from the root complex; one message request per accepted vector number
    input  wire logic                      cfg_msix_enable_i,
    input  wire logic                      cfg_msix_mask_i,
    input  wire logic                      msix_valid_i,
    output logic                           msix_ready_o,
    input  wire logic [7:0]                msix_vector_i,
    // DMA: one read client (commands), two write clients (completions, MSI-X)
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           admin_wr_valid_o,
    input  wire logic                      admin_wr_ready_i,
    output rnic_pkg::dma_wr_t              admin_wr_data_o,
    input  wire logic                      admin_wr_done_i,
    output logic                           msix_wr_valid_o,
    input  wire logic                      msix_wr_ready_i,
    output rnic_pkg::dma_wr_t              msix_wr_data_o,
    input  wire logic                      msix_wr_done_i,
    // Context managers: bit 0 send, 1 receive, 2 CQ, 3 EQ. One index bus for all; data buses apart.
    output logic [3:0]                     acq_valid_o,
    input  wire logic [3:0]                acq_ready_i,
    output logic [7:0]                     acq_index_o,
    input  wire logic [3:0]                ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_i,
    input  wire rnic_pkg::cq_ctx_t         cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t         eq_ctx_i,
    output logic [3:0]                     rel_valid_o,
    input  wire logic [3:0]                rel_ready_i,
    output logic                           rel_write_o,
    output rnic_pkg::send_ctx_t            send_ctx_o,
    output rnic_pkg::recv_ctx_t            recv_ctx_o,
    output rnic_pkg::cq_ctx_t              cq_ctx_o,
    output rnic_pkg::eq_ctx_t              eq_ctx_o,
    // Path table write
    output logic                           path_wr_valid_o,
    output logic [7:0]                     path_wr_qp_o,
    output rnic_pkg::path_t                path_wr_data_o,
    // MPT: read (mpt_rsp_valid_i later) or write one entry
    output logic                           mpt_req_valid_o,
    input  wire logic                      mpt_req_ready_i,
    output logic                           mpt_req_write_o,
    output logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index_o,
    output rnic_pkg::mpt_t                 mpt_req_data_o,
    input  wire logic                      mpt_rsp_valid_i,
    input  wire rnic_pkg::mpt_t            mpt_rsp_data_i,
    output logic                           drain_valid_o,
    input  wire logic                      drain_ready_i,
    output logic                           qp_reset_valid_o,
    input  wire logic                      qp_reset_ready_i,
    output logic [7:0]                     qp_reset_qp_o,
    output logic                           qp_error_valid_o,
    input  wire logic                      qp_error_ready_i,
    output rnic_pkg::qp_error_t            qp_error_data_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
