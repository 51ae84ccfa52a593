`default_nettype none

/// responder_output with the receive contexts behind it; host_* is a second client of them, for the
/// test.
module responder_output_harness (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           contexts_ready_o,
    input  wire logic                      host_acq_valid_i,
    output logic                           host_acq_ready_o,
    input  wire logic [7:0]                host_acq_index_i,
    output logic                           host_ctx_valid_o,
    output rnic_pkg::recv_ctx_t            host_ctx_data_o,
    input  wire logic                      host_rel_valid_i,
    output logic                           host_rel_ready_o,
    input  wire rnic_pkg::recv_ctx_t       host_rel_data_i,
    input  wire logic                      cmd_valid_i,
    output logic                           cmd_ready_o,
    input  wire rnic_pkg::rsp_cmd_t        cmd_data_i,
    input  wire logic                      tx_fault_valid_i,
    output logic                           tx_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t       tx_fault_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    output logic                           atomic_fault_valid_o,
    input  wire logic                      atomic_fault_ready_i,
    output rnic_pkg::tx_fault_t            atomic_fault_data_o,
    output logic                           xlate_req_valid_o,
    input  wire logic                      xlate_req_ready_i,
    output rnic_pkg::xlate_req_t           xlate_req_data_o,
    input  wire logic                      xlate_rsp_valid_i,
    output logic                           xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t      xlate_rsp_data_i,
    output logic                           xlate_retire_valid_o,
    output logic                           xlate_retire_epoch_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           wr_valid_o,
    input  wire logic                      wr_ready_i,
    output rnic_pkg::dma_wr_t              wr_data_o,
    input  wire logic                      wr_done_i,
    output logic                           atomic_over_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  logic acq_valid, acq_ready, ctx_valid, rel_valid, rel_ready, rel_write;
  logic [7:0] acq_index;
  rnic_pkg::recv_ctx_t ctx_data, rel_data;

  assign host_ctx_data_o = ctx_data;
  logic [1:0] unused_contended;
  ctx_manager #(
      .Width  (rnic_pkg::RecvCtxBits),
      .Entries(256),
      .Clients(2)
  ) u_contexts (
      .clk_i,
      .rst_ni,
      .ready_o    (contexts_ready_o),
      .acq_valid_i({host_acq_valid_i, acq_valid}),
      .acq_ready_o({host_acq_ready_o, acq_ready}),
      .acq_index_i({host_acq_index_i, acq_index}),
      .ctx_valid_o({host_ctx_valid_o, ctx_valid}),
      .ctx_data_o (ctx_data),
      .rel_valid_i({host_rel_valid_i, rel_valid}),
      .rel_ready_o({host_rel_ready_o, rel_ready}),
      .rel_write_i({1'b1, rel_write}),
      .rel_data_i ({host_rel_data_i, rel_data}),
      .contended_o(unused_contended)
  );

  logic unused_busy;
  responder_output u_responder_output (
      .busy_o     (unused_busy),
      .acq_valid_o(acq_valid),
      .acq_ready_i(acq_ready),
      .acq_index_o(acq_index),
      .ctx_valid_i(ctx_valid),
      .ctx_data_i (ctx_data),
      .rel_valid_o(rel_valid),
      .rel_ready_i(rel_ready),
      .rel_write_o(rel_write),
      .rel_data_o (rel_data),
      .*
  );
endmodule

`default_nettype wire
