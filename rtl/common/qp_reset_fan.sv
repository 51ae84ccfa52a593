`default_nettype none
`include "assert.svh"

/// Hands one request to N blocks and answers when every block has answered. Each block sees its
/// request until its own ready.
module qp_reset_fan #(
    parameter int unsigned N = 2
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         in_valid_i,
    output logic              in_ready_o,
    output logic [N-1:0]      out_valid_o,
    input  wire logic [N-1:0] out_ready_i
);
  logic [N-1:0] done_q;
  logic answer_q;

  assign out_valid_o = (in_valid_i && !answer_q) ? ~done_q : '0;
  assign in_ready_o  = answer_q;

  always_ff @(posedge clk_i) begin
    done_q   <= (answer_q || !in_valid_i) ? '0 : done_q | (out_valid_o & out_ready_i);
    answer_q <= in_valid_i && !answer_q && (&(done_q | (out_valid_o & out_ready_i)));
    if (!rst_ni) begin
      done_q   <= '0;
      answer_q <= 1'b0;
    end
  end

  `ASSERT(InHeld, !answer_q || in_valid_i)
endmodule

`default_nettype wire
