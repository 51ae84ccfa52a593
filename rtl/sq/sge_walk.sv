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
    input  wire logic [2:0]             header_segments_i,
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
  logic active_q, inline_q;
  logic [2:0] header_q;
  logic [4:0] segment_q, start_segment;
  logic [31:0] offset_q, available;
  logic [12:0] left_q, take;
  logic [5:0] lane;
  logic exhausts, next_line, unused_slot;
  rnic_pkg::wqe_data_t sge;

  // Position in the WQE in units of 16 bytes: 4 to a line.
  assign start_segment = 5'(header_segments_i) + (inline_i ? 5'd0 : sge_index_i);
  assign unused_slot   = ^start_segment[1:0];
  assign sge           = line_i[{segment_q[1:0], 7'd0}+:128];
  assign lane          = {segment_q[1:0], 4'd0};

  // What the segment (or line) still has, against what the packet still wants.
  assign available = inline_q ? 32'd64 - 32'(lane) : sge.length - offset_q;
  assign exhausts  = available <= 32'(left_q);
  assign take      = exhausts ? available[12:0] : left_q;

  assign done_o        = active_q && available >= 32'(left_q);
  assign piece_valid_o = active_q && available != '0;
  always_comb begin
    piece_data_o             = '0;
    piece_data_o.inline_data = inline_q;
    piece_data_o.last        = done_o;
    piece_data_o.length      = take;
    piece_data_o.pd          = pd_i;
    piece_data_o.access      = rnic_pkg::AccessLocalRead;
    piece_data_o.data        = line_i;
    if (inline_q) begin
      piece_data_o.offset = lane;
    end else begin
      piece_data_o.key = sge.lkey;
      piece_data_o.va  = sge.va + 64'(offset_q);
    end
  end

  assign next_line = active_q && !done_o && (inline_q || segment_q[1:0] == 2'd3);
  assign rd_en_o   = start_i || next_line;
  assign rd_line_o = start_i ? start_segment[4:2] : segment_q[4:2] + 1'b1;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      inline_q  <= inline_i;
      header_q  <= header_segments_i;
      segment_q <= start_segment;
      offset_q  <= inline_i ? '0 : sge_offset_i;
      left_q    <= payload_i;
    end else if (active_q) begin
      left_q <= left_q - available[12:0];
      if (inline_q) begin
        segment_q <= {segment_q[4:2] + 1'b1, 2'd0};
      end else if (exhausts) begin
        segment_q <= segment_q + 1'b1;
        offset_q  <= '0;
      end else begin
        offset_q <= offset_q + 32'(left_q);
      end
    end
    active_q <= start_i || (active_q && !done_o);
    if (!rst_ni) active_q <= 1'b0;
  end

  assign sge_index_o  = segment_q - 5'(header_q);
  assign sge_offset_o = offset_q;

  `ASSERT(NotTwice, !start_i || !active_q)
  `ASSERT(InWqe, !active_q || inline_q || segment_q < 5'd20)
endmodule

`default_nettype wire
