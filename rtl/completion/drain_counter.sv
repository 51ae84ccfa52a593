`default_nettype none
`include "assert.svh"

/// Tells when everything that was inside a first-in first-out stage at `start_i` has left it.
/// `drained_o` is valid from the cycle after start_i.
module drain_counter #(
    parameter int unsigned Bits = 8
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic enter_i,
    input  wire logic leave_i,
    input  wire logic start_i,
    output logic      drained_o
);
  logic [Bits-1:0] inside_q, inside_d, left_q;

  assign inside_d = inside_q + Bits'(enter_i) - Bits'(leave_i);
  assign drained_o = left_q == '0;

  always_ff @(posedge clk_i) begin
    inside_q <= inside_d;
    if (start_i) left_q <= inside_d;
    else if (leave_i && left_q != '0) left_q <= left_q - 1'b1;
    if (!rst_ni) begin
      inside_q <= '0;
      left_q   <= '0;
    end
  end

  `ASSERT(NoUnderflow, !(leave_i && !enter_i && inside_q == '0))
  `ASSERT(NoOverflow, !(enter_i && !leave_i && inside_q == '1))
endmodule

`default_nettype wire
