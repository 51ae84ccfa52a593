`default_nettype none

/// send_queue with the send contexts behind it; host_* is a sixth client of them, for the test.
module send_queue_harness (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           contexts_ready_o,
    input  wire logic                      host_acq_valid_i,
    output logic                           host_acq_ready_o,
    input  wire logic [7:0]                host_acq_index_i,
    output logic                           host_ctx_valid_o,
    output rnic_pkg::send_ctx_t            host_ctx_data_o,
    input  wire logic                      host_rel_valid_i,
    output logic                           host_rel_ready_o,
    input  wire rnic_pkg::send_ctx_t       host_rel_data_i,
    input  wire logic                      sq_doorbell_valid_i,
    output logic                           sq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       sq_doorbell_data_i,
    input  wire logic                      wqe_push_valid_i,
    output logic                           wqe_push_ready_o,
    input  wire rnic_pkg::wqe_push_t       wqe_push_data_i,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    output logic                           inflight_valid_o,
    output rnic_pkg::inflight_t            inflight_data_o,
    output logic                           retire_cmd_valid_o,
    input  wire logic                      retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t          retire_cmd_data_o,
    output logic                           mem_op_valid_o,
    input  wire logic                      mem_op_ready_i,
    output rnic_pkg::mem_op_t              mem_op_data_o,
    input  wire logic                      mem_op_rsp_valid_i,
    output logic                           mem_op_rsp_ready_o,
    input  wire rnic_pkg::mem_op_rsp_t     mem_op_rsp_data_i,
    output logic                           mem_list_valid_o,
    input  wire logic                      mem_list_ready_i,
    output rnic_pkg::mem_list_t            mem_list_data_o,
    output logic                           flush_req_valid_o,
    input  wire logic                      flush_req_ready_i,
    output logic [7:0]                     flush_req_qp_o,
    input  wire logic                      sq_wake_valid_i,
    input  wire logic [7:0]                sq_wake_qp_i,
    input  wire logic                      host_wake_valid_i,
    input  wire logic [7:0]                host_wake_qp_i,
    output logic                           drained_valid_o,
    output logic [7:0]                     drained_qp_o,
    input  wire logic                      read_slot_en_i,
    input  wire logic [11:0]               read_slot_addr_i,
    output rnic_pkg::read_slot_t           read_slot_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic                         begun_valid_o,
    output logic [7:0]                   begun_qp_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  logic [4:0] acq_valid, acq_ready, ctx_valid, rel_valid, rel_ready, rel_write;
  logic [5*8-1:0] acq_index;
  logic [5*rnic_pkg::SendCtxBits-1:0] rel_data;
  rnic_pkg::send_ctx_t ctx_data;

  assign host_ctx_data_o = ctx_data;
  logic [5:0] contended;
  ctx_manager #(
      .Width  (rnic_pkg::SendCtxBits),
      .Entries(256),
      .Clients(6)
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
      .contended_o(contended)
  );

  logic unused_bits;
  assign unused_bits = ^{contended[5:4], contended[1:0]};

  logic unused_busy;
  send_queue u_send_queue (
      .busy_o     (unused_busy),
      .acq_valid_o(acq_valid),
      .acq_ready_i(acq_ready),
      .acq_index_o(acq_index),
      .ctx_valid_i(ctx_valid),
      .ctx_data_i (ctx_data),
      .contended_i(contended[3:2]),
      .rel_valid_o(rel_valid),
      .rel_ready_i(rel_ready),
      .rel_write_o(rel_write),
      .rel_data_o (rel_data),
      .*
  );
endmodule

`default_nettype wire
