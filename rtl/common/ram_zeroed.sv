`default_nettype none
`include "assert.svh"

/// ram_1r1w in which every word reads as zero after reset until it is written: which words have
/// been written is a bit each (mark), apart from the words. Words of 2^MarkAddrBits marks are
/// cleared one a cycle after reset, so the RAM is ready in as many cycles however deep it is;
/// nothing is written before ready_o.
module ram_zeroed #(
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 1024,
    parameter int unsigned MarkAddrBits = 8,
    localparam int unsigned AddrBits = $clog2(Depth)
) (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     ready_o,
    input  wire logic                wr_en_i,
    input  wire logic [AddrBits-1:0] wr_addr_i,
    input  wire logic [Width-1:0]    wr_data_i,
    input  wire logic                rd_en_i,
    input  wire logic [AddrBits-1:0] rd_addr_i,
    output logic [Width-1:0]         rd_data_o
);
  localparam int unsigned LaneBits = AddrBits - MarkAddrBits;
  localparam int unsigned Lanes = 1 << LaneBits;

  logic [Width-1:0] word;
  ram_1r1w #(
      .Width(Width),
      .Depth(Depth)
  ) u_words (
      .clk_i,
      .wr_en_i,
      .wr_addr_i,
      .wr_data_i,
      .rd_en_i,
      .rd_addr_i,
      .rd_data_o(word)
  );

  // ---- Marks: two copies, one for reads, one for setting a mark. It is set in the cycle after the
  // write of its word: the marks around it are here then ----------------------------------------
  logic clearing_q, set_q, mark_wr;
  logic [MarkAddrBits-1:0] clear_q, set_row_q, last_row_q, mark_row;
  logic [LaneBits-1:0] set_lane_q;
  logic [Lanes-1:0] read_marks, old_marks, last_marks_q, new_marks, mark_data;
  logic last_q;
  assign mark_wr  = clearing_q || set_q;
  assign mark_row = clearing_q ? clear_q : set_row_q;
  // A row that was written a cycle ago is not in old_marks yet.
  assign new_marks = ((last_q && last_row_q == set_row_q) ? last_marks_q : old_marks)
      | ({{Lanes - 1{1'b0}}, 1'b1} << set_lane_q);
  assign mark_data = clearing_q ? '0 : new_marks;

  ram_1r1w #(
      .Width(Lanes),
      .Depth(1 << MarkAddrBits)
  ) u_read_marks (
      .clk_i,
      .wr_en_i  (mark_wr),
      .wr_addr_i(mark_row),
      .wr_data_i(mark_data),
      .rd_en_i,
      .rd_addr_i(rd_addr_i[AddrBits-1:LaneBits]),
      .rd_data_o(read_marks)
  );
  ram_1r1w #(
      .Width(Lanes),
      .Depth(1 << MarkAddrBits)
  ) u_old_marks (
      .clk_i,
      .wr_en_i  (mark_wr),
      .wr_addr_i(mark_row),
      .wr_data_i(mark_data),
      .rd_en_i  (wr_en_i),
      .rd_addr_i(wr_addr_i[AddrBits-1:LaneBits]),
      .rd_data_o(old_marks)
  );

  // ---- Read: a mark that is being set in the cycle of the read counts ---------------------------
  logic [LaneBits-1:0] rd_lane_q;
  logic fresh_q;
  always_ff @(posedge clk_i) begin
    if (rd_en_i) begin
      rd_lane_q <= rd_addr_i[LaneBits-1:0];
      fresh_q   <= set_q && rd_addr_i == {set_row_q, set_lane_q};
    end
    set_q        <= wr_en_i;
    set_row_q    <= wr_addr_i[AddrBits-1:LaneBits];
    set_lane_q   <= wr_addr_i[LaneBits-1:0];
    last_q       <= set_q;
    last_row_q   <= set_row_q;
    last_marks_q <= new_marks;
    if (clearing_q) clear_q <= clear_q + 1'b1;
    if (clear_q == '1) clearing_q <= 1'b0;
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q    <= '0;
      set_q      <= 1'b0;
      last_q     <= 1'b0;
    end
  end
  assign rd_data_o = (fresh_q || read_marks[rd_lane_q]) ? word : '0;
  assign ready_o   = !clearing_q;

  `ASSERT(WrittenWhenReady, !wr_en_i || ready_o)
endmodule

`default_nettype wire
