`default_nettype none
`include "assert.svh"

/// Finds the QPs of a CQ that has overrun (decisions 55: all of them end, also those that need no
/// entry there): names every QP to qp_error, which looks at its contexts, one after the other.
///
/// overrun: a CQ has overrun; cleared: it is gone, or a new one has its place, so that what is left
/// of its sweep would hit QPs of another. Both are pulses and never wait. CQs are swept in the
/// order in which they overran; a sweep ends early when its CQ is cleared, behind the QP that is
/// offered then (making a CQ and a QP on it takes longer than that).
module overrun_sweep (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       overrun_valid_i,
    input  wire logic [7:0] overrun_cqn_i,
    input  wire logic       cleared_valid_i,
    input  wire logic [7:0] cleared_cqn_i,
    output logic            probe_valid_o,
    input  wire logic       probe_ready_i,
    output logic [7:0]      probe_qp_o,
    output logic [7:0]      probe_cqn_o
);
  localparam int unsigned NumCqs = 2 ** rnic_pkg::CqIndexBits;
  localparam logic [7:0] LastQp = '1;

  // The sweep of a CQ in the queue is still wanted
  logic [NumCqs-1:0] wanted_q;
  logic next_valid, take, busy_q, advance, unused_member;
  logic [7:0] next_cqn;

  // A set of indexes, here of CQs.
  qp_set u_waiting (
      .clk_i,
      .rst_ni,
      .join_valid_i  (overrun_valid_i),
      .join_qp_i     (overrun_cqn_i),
      .out_valid_o   (next_valid),
      .out_ready_i   (take),
      .out_qp_o      (next_cqn),
      .query_qp_i    (8'd0),
      .query_member_o(unused_member)
  );

  assign take          = next_valid && !busy_q;
  assign advance       = probe_valid_o && probe_ready_i;
  assign probe_valid_o = busy_q;

  always_ff @(posedge clk_i) begin
    if (take) begin
      busy_q      <= wanted_q[next_cqn];
      probe_cqn_o <= next_cqn;
      probe_qp_o  <= '0;
    end
    if (advance) begin
      probe_qp_o <= probe_qp_o + 1'b1;
      if (probe_qp_o == LastQp || !wanted_q[probe_cqn_o]) busy_q <= 1'b0;
    end
    if (overrun_valid_i) wanted_q[overrun_cqn_i] <= 1'b1;
    if (cleared_valid_i) wanted_q[cleared_cqn_i] <= 1'b0;
    if (!rst_ni) begin
      busy_q   <= 1'b0;
      wanted_q <= '0;
    end
  end

  `ASSERT_HOLD(ProbeHold, probe_valid_o, probe_ready_i, {probe_qp_o, probe_cqn_o})
  `ASSERT(OneAtATime, !(overrun_valid_i && cleared_valid_i && overrun_cqn_i == cleared_cqn_i))
endmodule

`default_nettype wire
