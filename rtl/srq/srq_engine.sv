`default_nettype none
`include "assert.svh"

/// Shared receive queues: their contexts, doorbells and events.
///
/// An SRQ is a ring of receive WQEs that are taken in order, by any QP on it, and finish in any
/// order: a WQE says in its CQE with which tag it was posted, not where it stood. The receive
/// engine borrows the context to take a WQE (rx_*), while it holds that of the QP: nobody who holds
/// the context of an SRQ waits for another one. It tells when the limit was hit (limit_*) and
/// the completion block when a WQE could not be read (error_*). The admin queue's client: what it
/// has written is looked at, whether a limit is due.
module srq_engine (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     ready_o,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    // Clients: 0 admin queue, 1 receive engine
    input  wire logic [1:0]          acq_valid_i,
    output logic [1:0]               acq_ready_o,
    input  wire logic [15:0]         acq_index_i,
    output logic [1:0]               ctx_valid_o,
    output rnic_pkg::srq_ctx_t       ctx_data_o,
    input  wire logic [1:0]          rel_valid_i,
    output logic [1:0]               rel_ready_o,
    input  wire logic [1:0]          rel_write_i,
    input  wire logic [2*rnic_pkg::SrqCtxBits-1:0] rel_data_i,
    input  wire logic                limit_valid_i,
    input  wire logic [7:0]          limit_srq_i,
    input  wire logic                error_valid_i,
    input  wire logic [7:0]          error_srq_i,
    output logic                     eqe_valid_o,
    input  wire logic                eqe_ready_i,
    output rnic_pkg::eqe_req_t       eqe_data_o,
    output logic                     event_taken_o,
    output logic                     event_refused_o
);
  localparam int unsigned Width = rnic_pkg::SrqCtxBits;

  // Context clients: 0 admin queue, 1 receive engine, 2 doorbells, 3 events.
  logic [3:0] acq_ready, ctx_valid, rel_ready;
  logic [1:0] acq_valid, rel_valid, rel_write;
  logic [7:0] doorbell_index, event_index, admin_index_q;
  rnic_pkg::srq_ctx_t doorbell_data, event_data;
  logic look_q, look_ready;

  logic [3:0] unused_contended;
  ctx_manager #(
      .Width  (Width),
      .Entries(2 ** rnic_pkg::SrqIndexBits),
      .Clients(4)
  ) u_contexts (
      .clk_i,
      .rst_ni,
      .ready_o,
      .acq_valid_i({acq_valid, acq_valid_i}),
      .acq_ready_o(acq_ready),
      .acq_index_i({event_index, doorbell_index, acq_index_i}),
      .ctx_valid_o(ctx_valid),
      .ctx_data_o,
      .rel_valid_i({rel_valid, rel_valid_i}),
      .rel_ready_o(rel_ready),
      .rel_write_i({rel_write, rel_write_i}),
      .rel_data_i ({event_data, doorbell_data, rel_data_i}),
      .contended_o(unused_contended)
  );
  assign acq_ready_o = acq_ready[1:0];
  assign ctx_valid_o = ctx_valid[1:0];
  assign rel_ready_o = rel_ready[1:0];

  srq_doorbell u_doorbell (
      .clk_i,
      .rst_ni,
      .doorbell_valid_i,
      .doorbell_ready_o,
      .doorbell_data_i,
      .acq_valid_o(acq_valid[0]),
      .acq_ready_i(acq_ready[2]),
      .acq_index_o(doorbell_index),
      .ctx_valid_i(ctx_valid[2]),
      .ctx_data_i (ctx_data_o),
      .rel_valid_o(rel_valid[0]),
      .rel_ready_i(rel_ready[2]),
      .rel_write_o(rel_write[0]),
      .rel_data_o (doorbell_data),
      .event_taken_o,
      .event_refused_o
  );

  srq_events u_events (
      .clk_i,
      .rst_ni,
      .limit_valid_i,
      .limit_srq_i,
      .look_valid_i(look_q),
      .look_ready_o(look_ready),
      .look_srq_i  (admin_index_q),
      .error_valid_i,
      .error_srq_i,
      .acq_valid_o (acq_valid[1]),
      .acq_ready_i (acq_ready[3]),
      .acq_index_o (event_index),
      .ctx_valid_i (ctx_valid[3]),
      .ctx_data_i  (ctx_data_o),
      .rel_valid_o (rel_valid[1]),
      .rel_ready_i (rel_ready[3]),
      .rel_write_o (rel_write[1]),
      .rel_data_o  (event_data),
      .eqe_valid_o,
      .eqe_ready_i,
      .eqe_data_o
  );

  // The admin queue's next command comes many cycles later.
  always_ff @(posedge clk_i) begin
    if (acq_valid_i[0] && acq_ready_o[0]) admin_index_q <= acq_index_i[7:0];
    if (rel_valid_i[0] && rel_ready_o[0] && rel_write_i[0]) look_q <= 1'b1;
    else if (look_ready) look_q <= 1'b0;
    if (!rst_ni) look_q <= 1'b0;
  end

  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
endmodule

`default_nettype wire
