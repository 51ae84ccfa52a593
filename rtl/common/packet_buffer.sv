`default_nettype none
`include "assert.svh"

/// FIFO of packets of words: the words of a packet come out only after its commit_i; drop_i forgets
/// them.
///
/// commit_i and drop_i include the word written in their cycle. in_ready_o is low when no word
/// fits; a word offered then is lost, which is for the writer to remember until its drop_i. Output:
/// a register; two cycles from commit to the first word, then a word in every cycle. room_o: words
/// that still fit.
module packet_buffer #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned AddrBits = $clog2(Depth)
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             in_valid_i,
    output logic                  in_ready_o,
    input  wire logic [Width-1:0] in_data_i,
    input  wire logic             commit_i,
    input  wire logic             drop_i,
    output logic [AddrBits:0]     room_o,
    output logic                  out_valid_o,
    input  wire logic             out_ready_i,
    output logic [Width-1:0]      out_data_o
);
  if (Depth < 2 || (Depth & (Depth - 1)) != 0) begin : gen_bad_depth
    $fatal(1, "packet_buffer: Depth must be a power of two of at least 2");
  end

  // wr_q: next word to write. end_q: end of the committed packets. rd_q: next word to read.
  logic [AddrBits:0] wr_q, wr_next, end_q, rd_q;
  logic push, fetch, out_valid_q;

  assign room_o      = (AddrBits + 1)'(Depth) - (wr_q - rd_q);
  assign in_ready_o  = room_o != '0;
  assign push        = in_valid_i && in_ready_o;
  assign wr_next     = wr_q + (AddrBits + 1)'(push);
  assign fetch       = end_q != rd_q && (!out_valid_q || out_ready_i);
  assign out_valid_o = out_valid_q;

  always_ff @(posedge clk_i) begin
    wr_q <= drop_i ? end_q : wr_next;
    if (commit_i) end_q <= wr_next;
    if (fetch) rd_q <= rd_q + 1'b1;
    out_valid_q <= fetch || (out_valid_q && !out_ready_i);
    if (!rst_ni) begin
      wr_q        <= '0;
      end_q       <= '0;
      rd_q        <= '0;
      out_valid_q <= 1'b0;
    end
  end

  ram_1r1w #(
      .Width(Width),
      .Depth(Depth)
  ) u_ram (
      .clk_i,
      .wr_en_i  (push),
      .wr_addr_i(wr_q[AddrBits-1:0]),
      .wr_data_i(in_data_i),
      .rd_en_i  (fetch),
      .rd_addr_i(rd_q[AddrBits-1:0]),
      .rd_data_o(out_data_o)
  );

  `ASSERT(CommitOrDrop, !(commit_i && drop_i))
  `ASSERT(NotOverfull, room_o <= (AddrBits + 1)'(Depth))
  `ASSERT_HOLD(OutHold, out_valid_o, out_ready_i, out_data_o)

  `COVER(Full, !in_ready_o)
  `COVER(Waits, in_valid_i && !in_ready_o)
  `COVER(Emptied, out_valid_q && out_ready_i && end_q == rd_q)
  `COVER(Dropped, drop_i && wr_next != end_q)
endmodule

`default_nettype wire
