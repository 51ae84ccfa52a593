`default_nettype none
`include "assert.svh"

/// Seeks the place in a WQE's data segments where a message goes on, and walks the pieces of a
/// packet: sge_seek and sge_walk on one read port of the WQE buffer. A walk starts at the place
/// that the walk before it has reached when carries_i, else at sge_index_i, sge_offset_i.
module sq_pieces (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic [2:0]             header_segments_i,
    input  wire logic                   seek_i,
    input  wire logic [31:0]            seek_offset_i,
    output logic                        seek_done_o,
    output logic [4:0]                  seek_sge_o,
    output logic [31:0]                 seek_sge_offset_o,
    input  wire logic                   walk_i,
    input  wire logic                   carries_i,
    input  wire logic [4:0]             sge_index_i,
    input  wire logic [31:0]            sge_offset_i,
    input  wire logic                   inline_i,
    input  wire logic [12:0]            payload_i,
    input  wire logic [23:0]            pd_i,
    output logic                        walk_done_o,
    output logic [4:0]                  walk_sge_o,
    output logic [31:0]                 walk_sge_offset_o,
    output logic                        piece_valid_o,
    output rnic_pkg::sg_piece_t         piece_data_o,
    output logic                        rd_en_o,
    output logic [2:0]                  rd_line_o,
    input  wire logic [511:0]           line_i
);
  logic seek_rd, walk_rd;
  logic [2:0] seek_line, walk_line;
  sge_seek u_seek (
      .clk_i,
      .rst_ni,
      .start_i     (seek_i),
      .header_segments_i,
      .offset_i    (seek_offset_i),
      .rd_en_o     (seek_rd),
      .rd_line_o   (seek_line),
      .line_i,
      .done_o      (seek_done_o),
      .sge_index_o (seek_sge_o),
      .sge_offset_o(seek_sge_offset_o)
  );
  sge_walk u_walk (
      .clk_i,
      .rst_ni,
      .start_i     (walk_i),
      .inline_i,
      .header_segments_i,
      .sge_index_i (carries_i ? walk_sge_o : sge_index_i),
      .sge_offset_i(carries_i ? walk_sge_offset_o : sge_offset_i),
      .payload_i,
      .pd_i,
      .rd_en_o     (walk_rd),
      .rd_line_o   (walk_line),
      .line_i,
      .piece_valid_o,
      .piece_data_o,
      .done_o      (walk_done_o),
      .sge_index_o (walk_sge_o),
      .sge_offset_o(walk_sge_offset_o)
  );
  assign rd_en_o   = seek_rd || walk_rd;
  assign rd_line_o = seek_rd ? seek_line : walk_line;

  `ASSERT(OneAtATime, !(seek_rd && walk_rd))
endmodule

`default_nettype wire
