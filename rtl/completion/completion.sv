`default_nettype none
`include "assert.svh"

/// Completion: what follows a placed packet, retirement in order, error state and flush, CQs, EQs.
///
/// rx_post turns each rx_done_t into responder commands, receive CQEs, retire commands, QP errors.
/// retire pops finished WQEs of a QP in order from the in-flight table: a CQE for each that is not silent, the retired index in every CQE; when silent
/// WQEs have retired and no CQE follows (16 in a row, or the queue is then empty), a retired_record is written. A failed WQE gets its CQE even if
/// silent, once all before it have retired, and then the QP goes to the error state.
/// qp_error sets both contexts to ERR, writes a QpFatal event (unless quiet) and flushes: a CQE WrFlushErr for every posted send WQE from retire_idx on and every receive WQE
/// from rq_done on, silent or not, in order; doorbells that come later (flush_req) are flushed as well.
/// The CQ engine checks for overrun (a CQ that is exactly full is legal), writes the CQE, and makes the event that an arm asks for: an arm fires at once for entries newer
/// than the last event. An overrun stops the CQ, makes a CqError event, and puts the QP that hit it in the error state.
/// The EQ engine writes the EQE, then asks for the MSI-X message. A full EQ loses the event and counts it.
/// Receive doorbells are taken here: rq_pi, and flush_req for a QP in the error state.
/// Send context clients: 0 retire, 1 qp_error and flush. Receive context clients: 0 rx_post, 1 qp_error and flush, 2 receive doorbells.
/// CQ and EQ contexts live here; the admin queue has a client of each (bit 0 CQ, bit 1 EQ of the admin_* vectors).
module completion (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           ready_o,
    input  wire logic [63:0]               cycles_i,
    input  wire logic                      done_valid_i,
    output logic                           done_ready_o,
    input  wire rnic_pkg::rx_done_t        done_data_i,
    input  wire logic                      tx_fault_valid_i,
    output logic                           tx_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t       tx_fault_data_i,
    input  wire logic                      retire_cmd_valid_i,
    output logic                           retire_cmd_ready_o,
    input  wire rnic_pkg::retire_cmd_t     retire_cmd_data_i,
    input  wire logic                      inflight_valid_i,
    input  wire rnic_pkg::inflight_t       inflight_data_i,
    input  wire logic                      flush_req_valid_i,
    output logic                           flush_req_ready_o,
    input  wire logic [7:0]                flush_req_qp_i,
    input  wire logic                      qp_error_valid_i,
    output logic                           qp_error_ready_o,
    input  wire rnic_pkg::qp_error_t       qp_error_data_i,
    output logic                           rsp_cmd_valid_o,
    input  wire logic                      rsp_cmd_ready_i,
    output rnic_pkg::rsp_cmd_t             rsp_cmd_data_o,
    output logic                           sq_wake_valid_o,
    output logic [7:0]                     sq_wake_qp_o,
    input  wire logic                      rq_doorbell_valid_i,
    output logic                           rq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       rq_doorbell_data_i,
    input  wire logic                      cq_doorbell_valid_i,
    output logic                           cq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       cq_doorbell_data_i,
    input  wire logic                      eq_doorbell_valid_i,
    output logic                           eq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       eq_doorbell_data_i,
    output logic [1:0]                     send_acq_valid_o,
    input  wire logic [1:0]                send_acq_ready_i,
    output logic [2*8-1:0]                 send_acq_index_o,
    input  wire logic [1:0]                send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_data_i,
    output logic [1:0]                     send_rel_valid_o,
    input  wire logic [1:0]                send_rel_ready_i,
    output logic [1:0]                     send_rel_write_o,
    output logic [2*rnic_pkg::SendCtxBits-1:0] send_rel_data_o,
    output logic [2:0]                     recv_acq_valid_o,
    input  wire logic [2:0]                recv_acq_ready_i,
    output logic [3*8-1:0]                 recv_acq_index_o,
    input  wire logic [2:0]                recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_data_i,
    output logic [2:0]                     recv_rel_valid_o,
    input  wire logic [2:0]                recv_rel_ready_i,
    output logic [2:0]                     recv_rel_write_o,
    output logic [3*rnic_pkg::RecvCtxBits-1:0] recv_rel_data_o,
    // Admin queue's clients of the CQ (0) and EQ (1) contexts
    input  wire logic [1:0]                admin_acq_valid_i,
    output logic [1:0]                     admin_acq_ready_o,
    input  wire logic [7:0]                admin_acq_index_i,
    output logic [1:0]                     admin_ctx_valid_o,
    output rnic_pkg::cq_ctx_t              admin_cq_ctx_o,
    output rnic_pkg::eq_ctx_t              admin_eq_ctx_o,
    input  wire logic [1:0]                admin_rel_valid_i,
    output logic [1:0]                     admin_rel_ready_o,
    input  wire logic                      admin_rel_write_i,
    input  wire rnic_pkg::cq_ctx_t         admin_cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t         admin_eq_ctx_i,
    // DMA writes: bit 0 CQEs and EQEs, bit 1 retired records
    output logic [1:0]                     wr_valid_o,
    input  wire logic [1:0]                wr_ready_i,
    output logic [2*rnic_pkg::DmaWrBits-1:0] wr_data_o,
    input  wire logic [1:0]                wr_done_i,
    output logic                           msix_valid_o,
    input  wire logic                      msix_ready_i,
    output logic [7:0]                     msix_vector_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
endmodule

`default_nettype wire
