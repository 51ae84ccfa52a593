`default_nettype none
`include "assert.svh"

/// Two-entry stream buffer: cuts the path from ready to valid and ready. Full throughput, one cycle
/// of latency.
module skid_buffer #(
    parameter int unsigned Width = 8
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             in_valid_i,
    output logic                  in_ready_o,
    input  wire logic [Width-1:0] in_data_i,
    output logic                  out_valid_o,
    input  wire logic             out_ready_i,
    output logic [Width-1:0]      out_data_o
);
  logic [Width-1:0] out_q, spare_q;
  logic out_valid_q, spare_valid_q;

  assign in_ready_o  = !spare_valid_q;
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;

  always_ff @(posedge clk_i) begin
    if (out_ready_i || !out_valid_q) begin
      if (spare_valid_q || in_valid_i) out_q <= spare_valid_q ? spare_q : in_data_i;
      out_valid_q   <= spare_valid_q || in_valid_i;
      spare_valid_q <= 1'b0;
    end else if (in_valid_i && in_ready_o) begin
      spare_q       <= in_data_i;
      spare_valid_q <= 1'b1;
    end
    if (!rst_ni) begin
      out_valid_q   <= 1'b0;
      spare_valid_q <= 1'b0;
    end
  end

  `ASSERT_HOLD(InHold, in_valid_i, in_ready_o, in_data_i)
  `ASSERT_HOLD(OutHold, out_valid_o, out_ready_i, out_data_o)

  `COVER(Full, !in_ready_o)
  `COVER(Waits, in_valid_i && !in_ready_o)
endmodule

`default_nettype wire
