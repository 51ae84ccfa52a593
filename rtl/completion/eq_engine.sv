`default_nettype none
`include "assert.svh"

/// Event queues: their contexts, the EQE writer, EQ doorbells. wr_vector_o belongs to the write
/// beside it: the MSI-X vector to ask for once that write is done. ci_*: for event_gate.
module eq_engine (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     ready_o,
    input  wire logic [63:0]         cycles_i,
    input  wire logic                eqe_valid_i,
    output logic                     eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t  eqe_data_i,
    output logic                     eqe_written_o,
    output logic [23:0]              eqe_index_o,
    // A consumer index has moved, or the whole EQ is another (made, destroyed); pulses
    output logic                     ci_valid_o,
    output logic                     ci_renew_o,
    output logic [4:0]               ci_eqn_o,
    output logic [23:0]              ci_index_o,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    input  wire logic                admin_acq_valid_i,
    output logic                     admin_acq_ready_o,
    input  wire logic [4:0]          admin_acq_index_i,
    output logic                     admin_ctx_valid_o,
    output rnic_pkg::eq_ctx_t        admin_ctx_data_o,
    input  wire logic                admin_rel_valid_i,
    output logic                     admin_rel_ready_o,
    input  wire logic                admin_rel_write_i,
    input  wire rnic_pkg::eq_ctx_t   admin_rel_data_i,
    input  wire logic                wr_kept_i,
    output logic                     wr_valid_o,
    input  wire logic                wr_ready_i,
    output rnic_pkg::dma_wr_t        wr_data_o,
    output logic [7:0]               wr_vector_o,
    output logic                     event_eqe_o,
    output logic                     event_overrun_o,
    output logic                     event_refused_o
);
  localparam int unsigned Width = rnic_pkg::EqCtxBits;

  // Context clients: 0 EQE writer, 1 doorbells, 2 admin queue.
  logic [2:0] acq_valid, acq_ready, ctx_valid, rel_valid, rel_ready, rel_write;
  logic [4:0] writer_index, doorbell_index;
  rnic_pkg::eq_ctx_t ctx_data, writer_data, doorbell_data;

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
      .Entries(2 ** rnic_pkg::EqIndexBits),
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

  logic [4:0] admin_index_q;
  assign ci_renew_o = rel_valid[2] && rel_ready[2] && rel_write[2];
  assign ci_valid_o = ci_renew_o || (rel_valid[1] && rel_ready[1] && rel_write[1]);
  assign ci_eqn_o   = ci_renew_o ? admin_index_q : doorbell_index;
  assign ci_index_o = ci_renew_o ? admin_rel_data_i.ci : doorbell_data.ci;
  always_ff @(posedge clk_i) begin
    if (acq_valid[2] && acq_ready[2]) admin_index_q <= admin_acq_index_i;
  end

  eqe_writer u_writer (
      .clk_i,
      .rst_ni,
      .cycles_i,
      .eqe_valid_i,
      .eqe_ready_o,
      .eqe_data_i,
      .eqe_written_o,
      .eqe_index_o,
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
      .wr_vector_o,
      .event_eqe_o,
      .event_overrun_o
  );

  eq_doorbell u_doorbell (
      .clk_i,
      .rst_ni,
      .doorbell_valid_i,
      .doorbell_ready_o,
      .doorbell_data_i,
      .acq_valid_o    (acq_valid[1]),
      .acq_ready_i    (acq_ready[1]),
      .acq_index_o    (doorbell_index),
      .ctx_valid_i    (ctx_valid[1]),
      .ctx_data_i     (ctx_data),
      .rel_valid_o    (rel_valid[1]),
      .rel_ready_i    (rel_ready[1]),
      .rel_write_o    (rel_write[1]),
      .rel_data_o     (doorbell_data),
      .event_refused_o
  );
endmodule

`default_nettype wire
