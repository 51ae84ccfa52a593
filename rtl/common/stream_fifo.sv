`default_nettype none
`include "assert.svh"

/// FIFO of a stream: Depth words (a power of two, at least 2) in a RAM behind an output register.
/// Two cycles from input to output when empty, one word a cycle. `count_o` is the number of words
/// inside, output register included.
module stream_fifo #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddrBits = $clog2(Depth)
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             in_valid_i,
    output logic                  in_ready_o,
    input  wire logic [Width-1:0] in_data_i,
    output logic                  out_valid_o,
    input  wire logic             out_ready_i,
    output logic [Width-1:0]      out_data_o,
    output logic [AddrBits+1:0]   count_o
);
  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $fatal(1, "stream_fifo: Depth must be a power of two of at least 2");
  end

  logic [AddrBits:0] wr_q, rd_q;
  logic [AddrBits:0] stored;
  logic push, fetch, out_valid_q;
  logic [Width-1:0] mem[Depth];
  logic [Width-1:0] out_q;

  assign stored      = wr_q - rd_q;
  assign in_ready_o  = stored != (AddrBits + 1)'(Depth);
  assign push        = in_valid_i && in_ready_o;
  assign fetch       = stored != '0 && (!out_valid_q || out_ready_i);
  assign out_valid_o = out_valid_q;
  assign out_data_o  = out_q;
  assign count_o     = {1'b0, stored} + (AddrBits + 2)'(out_valid_q);

  always_ff @(posedge clk_i) begin
    if (push) mem[wr_q[AddrBits-1:0]] <= in_data_i;
    if (fetch) out_q <= mem[rd_q[AddrBits-1:0]];
    if (push) wr_q <= wr_q + 1'b1;
    if (fetch) rd_q <= rd_q + 1'b1;
    out_valid_q <= fetch || (out_valid_q && !out_ready_i);
    if (!rst_ni) begin
      wr_q        <= '0;
      rd_q        <= '0;
      out_valid_q <= 1'b0;
    end
  end

  `ASSERT(FullBehindOutput, in_ready_o || out_valid_q)
  `ASSERT(NotOverfull, stored <= (AddrBits + 1)'(Depth))
  `ASSERT_HOLD(InHold, in_valid_i, in_ready_o, in_data_i)
  `ASSERT_HOLD(OutHold, out_valid_o, out_ready_i, out_data_o)

  `COVER(Full, !in_ready_o)
  `COVER(Waits, in_valid_i && !in_ready_o)
  `COVER(Emptied, out_valid_q && out_ready_i && stored == '0 && !push)
  `COVER(InAndOut, push && out_valid_q && out_ready_i)
endmodule

`default_nettype wire
