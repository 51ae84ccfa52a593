`default_nettype none
`include "assert.svh"

/// Completion queues: their contexts, the CQE writer, CQ doorbells, and the events of both on one
/// stream to the EQ engine; the timers of event moderation. The event of an entry is offered only
/// after the write of the entry has been accepted by wr.
module cq_engine (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     ready_o,
    input  wire logic [63:0]         cycles_i,
    output rnic_pkg::rest_t          timers_rest_o,
    // CQEs, and events of QPs (is_event: `opcode` is the EqeType), in order
    input  wire logic                item_valid_i,
    output logic                     item_ready_o,
    input  wire logic                item_is_event_i,
    input  wire rnic_pkg::cqe_req_t  item_data_i,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    input  wire logic                admin_acq_valid_i,
    output logic                     admin_acq_ready_o,
    input  wire logic [7:0]          admin_acq_index_i,
    output logic                     admin_ctx_valid_o,
    output rnic_pkg::cq_ctx_t        admin_ctx_data_o,
    input  wire logic                admin_rel_valid_i,
    output logic                     admin_rel_ready_o,
    input  wire logic                admin_rel_write_i,
    input  wire rnic_pkg::cq_ctx_t   admin_rel_data_i,
    // wr: as cqe_writer
    input  wire logic                wr_kept_i,
    output logic                     wr_valid_o,
    input  wire logic                wr_ready_i,
    output rnic_pkg::dma_wr_t        wr_data_o,
    output logic                     eqe_valid_o,
    input  wire logic                eqe_ready_i,
    output rnic_pkg::eqe_req_t       eqe_data_o,
    // A QP whose CQE an overrun CQ has lost; always taken
    output logic                     qp_dead_valid_o,
    output logic [7:0]               qp_dead_qp_o,
    // QPs that may be of a CQ that has overrun: as overrun_sweep
    output logic                     probe_valid_o,
    input  wire logic                probe_ready_i,
    output logic [7:0]               probe_qp_o,
    output logic [7:0]               probe_cqn_o,
    output logic                     event_cqe_o,
    output logic                     event_flushed_o,
    output logic                     event_overrun_o,
    output logic                     event_doorbell_o,
    output logic                     event_refused_o
);
  localparam int unsigned Width = rnic_pkg::CqCtxBits;
  localparam int unsigned EqeReqBits = rnic_pkg::EqeReqBits;

  // Context clients and event sources: 0 CQE writer, 1 doorbells, 2 admin queue (no events).
  logic [2:0] acq_valid, acq_ready, ctx_valid, rel_valid, rel_ready, rel_write;
  logic [7:0] writer_index, doorbell_index;
  rnic_pkg::cq_ctx_t ctx_data, writer_data, doorbell_data;
  logic [1:0] eqe_valid, eqe_ready;
  rnic_pkg::eqe_req_t writer_eqe, doorbell_eqe;
  logic unused_last, unused_source;
  logic [1:0] timer_valid;
  logic [15:0] timer_cqn;
  logic [31:0] timer_period;
  logic expired_valid, expired_ready;
  logic [7:0] expired_cqn;

  assign acq_valid[2]      = admin_acq_valid_i;
  assign rel_valid[2]      = admin_rel_valid_i;
  assign rel_write[2]      = admin_rel_write_i;
  assign admin_acq_ready_o = acq_ready[2];
  assign admin_ctx_valid_o = ctx_valid[2];
  assign admin_ctx_data_o  = ctx_data;
  assign admin_rel_ready_o = rel_ready[2];

  logic [2:0] unused_contended;
  ctx_manager #(
      .Width  (Width),
      .Entries(2 ** rnic_pkg::CqIndexBits),
      .Clients(3)
  ) u_contexts (
      .clk_i,
      .rst_ni,
      .ready_o,
      .acq_valid_i(acq_valid),
      .acq_ready_o(acq_ready),
      .acq_index_i({admin_acq_index_i, doorbell_index, writer_index}),
      .ctx_valid_o(ctx_valid),
      .ctx_data_o (ctx_data),
      .rel_valid_i(rel_valid),
      .rel_ready_o(rel_ready),
      .rel_write_i(rel_write),
      .rel_data_i ({admin_rel_data_i, doorbell_data, writer_data}),
      .contended_o(unused_contended)
  );

  cqe_writer u_writer (
      .clk_i,
      .rst_ni,
      .cycles_i,
      .item_valid_i,
      .item_ready_o,
      .item_is_event_i,
      .item_data_i,
      .acq_valid_o    (acq_valid[0]),
      .acq_ready_i    (acq_ready[0]),
      .acq_index_o    (writer_index),
      .ctx_valid_i    (ctx_valid[0]),
      .ctx_data_i     (ctx_data),
      .rel_valid_o    (rel_valid[0]),
      .rel_ready_i    (rel_ready[0]),
      .rel_write_o    (rel_write[0]),
      .rel_data_o     (writer_data),
      .wr_kept_i,
      .wr_valid_o,
      .wr_ready_i,
      .wr_data_o,
      .eqe_valid_o    (eqe_valid[0]),
      .eqe_ready_i    (eqe_ready[0]),
      .eqe_data_o     (writer_eqe),
      .timer_valid_o  (timer_valid[0]),
      .timer_cqn_o    (timer_cqn[7:0]),
      .timer_period_o (timer_period[15:0]),
      .qp_dead_valid_o,
      .qp_dead_qp_o,
      .event_cqe_o,
      .event_flushed_o,
      .event_overrun_o
  );

  cq_doorbell u_doorbell (
      .clk_i,
      .rst_ni,
      .doorbell_valid_i,
      .doorbell_ready_o,
      .doorbell_data_i,
      .expired_valid_i(expired_valid),
      .expired_ready_o(expired_ready),
      .expired_cqn_i  (expired_cqn),
      .acq_valid_o    (acq_valid[1]),
      .acq_ready_i    (acq_ready[1]),
      .acq_index_o    (doorbell_index),
      .ctx_valid_i    (ctx_valid[1]),
      .ctx_data_i     (ctx_data),
      .rel_valid_o    (rel_valid[1]),
      .rel_ready_i    (rel_ready[1]),
      .rel_write_o    (rel_write[1]),
      .rel_data_o     (doorbell_data),
      .eqe_valid_o    (eqe_valid[1]),
      .eqe_ready_i    (eqe_ready[1]),
      .eqe_data_o     (doorbell_eqe),
      .timer_valid_o  (timer_valid[1]),
      .timer_cqn_o    (timer_cqn[15:8]),
      .timer_period_o (timer_period[31:16]),
      .event_taken_o  (event_doorbell_o),
      .event_refused_o
  );

  // What the admin queue holds: one at a time.
  logic [7:0] admin_index_q;
  always_ff @(posedge clk_i) if (acq_valid[2] && acq_ready[2]) admin_index_q <= admin_acq_index_i;

  overrun_sweep u_sweep (
      .clk_i,
      .rst_ni,
      .overrun_valid_i(event_overrun_o),
      .overrun_cqn_i  (item_data_i.cqn),
      .cleared_valid_i(rel_valid[2] && rel_ready[2] && rel_write[2] && !admin_rel_data_i.overrun),
      .cleared_cqn_i  (admin_index_q),
      .probe_valid_o,
      .probe_ready_i,
      .probe_qp_o,
      .probe_cqn_o
  );

  cq_timer u_timer (
      .clk_i,
      .rst_ni,
      .cycles_i,
      .rest_o         (timers_rest_o),
      .start_valid_i  (timer_valid),
      .start_cqn_i    (timer_cqn),
      .start_period_i (timer_period),
      .expired_valid_o(expired_valid),
      .expired_ready_i(expired_ready),
      .expired_cqn_o  (expired_cqn)
  );

  stream_arbiter #(
      .N    (2),
      .Width(EqeReqBits)
  ) u_events (
      .clk_i,
      .rst_ni,
      .in_valid_i  (eqe_valid),
      .in_ready_o  (eqe_ready),
      .in_last_i   (2'b11),
      .in_data_i   ({doorbell_eqe, writer_eqe}),
      .out_valid_o (eqe_valid_o),
      .out_ready_i (eqe_ready_i),
      .out_last_o  (unused_last),
      .out_data_o  (eqe_data_o),
      .out_source_o(unused_source)
  );
endmodule

`default_nettype wire
