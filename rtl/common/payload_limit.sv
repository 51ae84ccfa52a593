`default_nettype none
`include "assert.svh"

/// Payload between two points of a path: what passes the first is added, what passes the second is
/// taken away. below_o: less than Limit bytes are between them. A packet has at most 4096; two more
/// may come after below_o has gone.
module payload_limit #(
    parameter int unsigned Limit = 8192
) (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        in_valid_i,
    input  wire logic [12:0] in_bytes_i,
    input  wire logic        out_valid_i,
    input  wire logic [12:0] out_bytes_i,
    output logic             below_o
);
  localparam int unsigned Bits = $clog2(Limit + 3 * 4096);
  logic [Bits-1:0] between_q, added, taken;
  assign added   = in_valid_i ? Bits'(in_bytes_i) : '0;
  assign taken   = out_valid_i ? Bits'(out_bytes_i) : '0;
  assign below_o = between_q < Bits'(Limit);

  always_ff @(posedge clk_i) begin
    between_q <= between_q + added - taken;
    if (!rst_ni) between_q <= '0;
  end

  `ASSERT(OnlyWhatIsThere, !out_valid_i || taken <= between_q)
  `ASSERT(TwoMore, !in_valid_i || between_q < Bits'(Limit + 2 * 4096))
endmodule

`default_nettype wire
