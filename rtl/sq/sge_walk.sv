`default_nettype none
`include "assert.svh"

/// Walks the data of one packet through its WQE in the WQE buffer and makes the sg_piece_t run: one
/// data segment a cycle, or for inline data one line a cycle. Segments of length 0 are passed over.
///
/// start_i gives the place to start from: data segment sge_index_i, sge_offset_i bytes into it. In
/// the cycle of done_o the last piece is made; from the next cycle on sge_index_o and sge_offset_o
/// say where the next packet starts. Reads lines by number in the WQE (rd_line_o); the line is on
/// line_i in the next cycle and stays. payload_i is at least 1.
module sge_walk (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   start_i,
    input  wire logic                   inline_i,
    input  wire logic [1:0]             header_segments_i,
    input  wire logic [4:0]             sge_index_i,
    input  wire logic [31:0]            sge_offset_i,
    input  wire logic [12:0]            payload_i,
    input  wire logic [23:0]            pd_i,
    output logic                        rd_en_o,
    output logic [2:0]                  rd_line_o,
    input  wire logic [511:0]           line_i,
    output logic                        piece_valid_o,
    output rnic_pkg::sg_piece_t         piece_data_o,
    output logic                        done_o,
    output logic [4:0]                  sge_index_o,
    output logic [31:0]                 sge_offset_o
);
  logic active_q;
  logic [4:0] index_q, index_d, segment, start_segment;
  logic unused_slot;
  logic [31:0] offset_q, offset_d, available, take;
  logic [12:0] left_q;
  logic [5:0] lane;
  rnic_pkg::wqe_data_t sge;

  // Position in the WQE in units of 16 bytes: 4 to a line.
  assign start_segment = 5'(header_segments_i) + (inline_i ? 5'd0 : sge_index_i);
  assign unused_slot   = ^start_segment[1:0];
  assign segment       = 5'(header_segments_i) + index_q;
  assign sge           = line_i[{segment[1:0], 7'd0}+:128];
  assign lane          = {segment[1:0], 4'd0};
  assign available     = inline_i ? 32'd64 - 32'(lane) : sge.length - offset_q;
  assign take          = available < 32'(left_q) ? available : 32'(left_q);

  assign done_o        = active_q && take == 32'(left_q);
  assign piece_valid_o = active_q && take != '0;
  always_comb begin
    piece_data_o             = '0;
    piece_data_o.inline_data = inline_i;
    piece_data_o.last        = done_o;
    piece_data_o.length      = take[12:0];
    piece_data_o.pd          = pd_i;
    piece_data_o.access      = rnic_pkg::AccessLocalRead;
    piece_data_o.data        = line_i;
    if (inline_i) begin
      piece_data_o.offset = lane;
    end else begin
      piece_data_o.key = sge.lkey;
      piece_data_o.va  = sge.va + 64'(offset_q);
    end
  end

  // Inline data goes on at the start of the next line.
  logic next_line;
  always_comb begin
    index_d  = index_q;
    offset_d = offset_q;
    if (inline_i) begin
      index_d = index_q + 5'd4 - 5'(segment[1:0]);
    end else if (take == available) begin
      index_d  = index_q + 1'b1;
      offset_d = '0;
    end else begin
      offset_d = offset_q + take;
    end
    next_line = active_q && !done_o && (inline_i || segment[1:0] == 2'd3);
  end

  assign rd_en_o   = start_i || next_line;
  assign rd_line_o = start_i ? start_segment[4:2] : segment[4:2] + 1'b1;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      index_q  <= inline_i ? '0 : sge_index_i;
      offset_q <= sge_offset_i;
      left_q   <= payload_i;
    end else if (active_q) begin
      index_q  <= index_d;
      offset_q <= offset_d;
      left_q   <= left_q - take[12:0];
    end
    active_q <= start_i || (active_q && !done_o);
    if (!rst_ni) active_q <= 1'b0;
  end

  assign sge_index_o  = index_q;
  assign sge_offset_o = offset_q;

  `ASSERT(NotTwice, !start_i || !active_q)
  `ASSERT(InWqe, !active_q || inline_i || index_q < rnic_pkg::MaxSge[4:0])
endmodule

`default_nettype wire
