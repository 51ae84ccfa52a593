`default_nettype none
`include "assert.svh"

/// Gives the contexts of a judged packet back: that of its side of its QP (unless keep_i), and that
/// of an SRQ (with_srq_i). Both at once; busy_o until both are gone. limit_valid_o: the SRQ went
/// back with its limit hit.
module rx_check_release (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    // What was decided; a pulse, while busy_o is low. The receive context is in the low bits
    input  wire logic                   decide_i,
    input  wire logic                   keep_i,
    input  wire logic                   is_response_i,
    input  wire logic                   lane_i,
    input  wire logic                   write_i,
    input  wire logic [rnic_pkg::SendCtxBits-1:0] ctx_i,
    input  wire logic                   with_srq_i,
    input  wire logic                   srq_write_i,
    input  wire logic [7:0]             srqn_i,
    input  wire rnic_pkg::srq_ctx_t     srq_ctx_i,
    output logic                        busy_o,
    output logic [1:0]                  send_rel_valid_o,
    input  wire logic [1:0]             send_rel_ready_i,
    output logic [1:0]                  send_rel_write_o,
    output rnic_pkg::send_ctx_t         send_rel_data_o,
    output logic [1:0]                  recv_rel_valid_o,
    input  wire logic [1:0]             recv_rel_ready_i,
    output logic [1:0]                  recv_rel_write_o,
    output rnic_pkg::recv_ctx_t         recv_rel_data_o,
    output logic                        srq_rel_valid_o,
    input  wire logic                   srq_rel_ready_i,
    output logic                        srq_rel_write_o,
    output rnic_pkg::srq_ctx_t          srq_rel_data_o,
    output logic                        limit_valid_o,
    output logic [7:0]                  limit_srq_o
);
  // due_q, srq_due_q: still to be given back.
  logic due_q, srq_due_q, response_q, lane_q, write_q, done, srq_done;
  logic [rnic_pkg::SendCtxBits-1:0] ctx_q;

  assign busy_o   = due_q || srq_due_q;
  assign done     = response_q ? send_rel_ready_i[lane_q] : recv_rel_ready_i[lane_q];
  assign srq_done = srq_due_q && srq_rel_ready_i;

  always_ff @(posedge clk_i) begin
    if (decide_i) begin
      response_q      <= is_response_i;
      lane_q          <= lane_i;
      write_q         <= write_i;
      ctx_q           <= ctx_i;
      srq_rel_write_o <= srq_write_i;
      srq_rel_data_o  <= srq_ctx_i;
      limit_srq_o     <= srqn_i;
    end
    due_q     <= decide_i ? !keep_i : due_q && !done;
    srq_due_q <= decide_i ? with_srq_i : srq_due_q && !srq_done;
    if (!rst_ni) begin
      due_q     <= 1'b0;
      srq_due_q <= 1'b0;
    end
  end

  always_comb begin : lanes
    send_rel_valid_o         = 2'b00;
    recv_rel_valid_o         = 2'b00;
    send_rel_valid_o[lane_q] = due_q && response_q;
    recv_rel_valid_o[lane_q] = due_q && !response_q;
  end
  assign send_rel_write_o = {2{write_q}};
  assign recv_rel_write_o = {2{write_q}};
  assign send_rel_data_o  = ctx_q;
  assign recv_rel_data_o  = ctx_q[rnic_pkg::RecvCtxBits-1:0];
  assign srq_rel_valid_o  = srq_due_q;
  assign limit_valid_o    = srq_done && srq_rel_write_o && srq_rel_data_o.limit_hit;

  `ASSERT(OneAtATime, !decide_i || !busy_o)
  `ASSERT(OneGivesBack, $onehot0({send_rel_valid_o, recv_rel_valid_o}))
endmodule

`default_nettype wire
