`default_nettype none
`include "assert.svh"

/// Round-robin choice among N requests. `grant_o` is one-hot (or zero) and combinational; the
/// priority moves past the winner when `advance_i` says that the grant was used.
module rr_arbiter #(
    parameter int unsigned N = 4
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic [N-1:0] request_i,
    input  wire logic         advance_i,
    output logic [N-1:0]      grant_o
);
  // mask_q: requesters after the last winner. Lowest set bit of x is x & (~x + 1).
  logic [N-1:0] mask_q, masked, low_masked, low_all;

  assign masked     = request_i & mask_q;
  assign low_masked = masked & (~masked + N'(1));
  assign low_all    = request_i & (~request_i + N'(1));
  assign grant_o    = (masked != '0) ? low_masked : low_all;

  always_ff @(posedge clk_i) begin
    if (advance_i && grant_o != '0) mask_q <= ~(grant_o | (grant_o - N'(1)));
    if (!rst_ni) mask_q <= '1;
  end

  `ASSERT(OneHot, $onehot0(grant_o))
  `ASSERT(OnlyRequested, (grant_o & ~request_i) == '0)
  `ASSERT(WorkConserving, (grant_o != '0) == (request_i != '0))

  // a waits while b has its turn. Of many alike (interrupt vectors) it does not matter which.
  `COVER_ORDERED(Conflict, (N > 16 ? 0 : N), advance_i && request_i[a] && grant_o[b])
endmodule

`default_nettype wire
