`default_nettype none
`include "assert.svh"

/// Set of QPs that wait for something, served in the order in which they joined. Joining never
/// waits: a QP that is already a member stays where it is, so the queue behind it always has room.
/// A QP has left the set when it is handed out; one that joins from then on is handed out once
/// more.
module qp_set (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       join_valid_i,
    input  wire logic [7:0] join_qp_i,
    output logic            out_valid_o,
    input  wire logic       out_ready_i,
    output logic [7:0]      out_qp_o,
    input  wire logic [7:0] query_qp_i,
    output logic            query_member_o
);
  localparam int unsigned NumQps = 2 ** rnic_pkg::QpIndexBits;

  logic [NumQps-1:0] member_q;
  logic push, push_ready, pop;
  logic [9:0] unused_count;

  assign push = join_valid_i && !member_q[join_qp_i];
  assign pop = out_valid_o && out_ready_i;
  assign query_member_o = member_q[query_qp_i];

  // A QP that joins in the cycle in which it leaves is served after that cycle, so it need not
  // queue again.
  always_ff @(posedge clk_i) begin
    if (push) member_q[join_qp_i] <= 1'b1;
    if (pop) member_q[out_qp_o] <= 1'b0;
    if (!rst_ni) member_q <= '0;
  end

  stream_fifo #(
      .Width(8),
      .Depth(NumQps)
  ) u_order (
      .clk_i,
      .rst_ni,
      .in_valid_i (push),
      .in_ready_o (push_ready),
      .in_data_i  (join_qp_i),
      .out_valid_o,
      .out_ready_i,
      .out_data_o (out_qp_o),
      .count_o    (unused_count)
  );

  `ASSERT(AlwaysRoom, !push || push_ready)
endmodule

`default_nettype wire
