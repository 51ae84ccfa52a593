`default_nettype none
`include "assert.svh"

/// One client's requests in the DMA read engine, from the first TLP to the last beat.
///
/// Counts, for each request, the TLPs that are on their way. When the oldest has been issued whole
/// and all its TLPs have ended, its lines are read from the client's ring in order; a request with
/// an error gives one empty beat instead and its lines are skipped.
/// `want_o` asks for the read port of the reorder buffer, for the line `line_o`; the line is back
/// the cycle after `grant_i`.
module dma_read_queue #(
    parameter int unsigned Requests = 32,
    parameter int unsigned LineBits = 10,
    parameter logic [LineBits-1:0] RingBase = '0,
    parameter logic [LineBits-1:0] RingLast = {LineBits{1'b1}},
    localparam int unsigned RidBits = $clog2(Requests)
) (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    output logic                     can_begin_o,
    input  wire logic                issue_i,
    input  wire logic                issue_first_i,
    input  wire logic                issue_last_i,
    input  wire logic [RidBits-1:0]  issue_rid_i,
    input  wire logic [5:0]          issue_offset_i,
    input  wire logic [12:0]         issue_length_i,
    input  wire logic                finish_i,
    input  wire logic [RidBits-1:0]  finish_rid_i,
    input  wire logic                finish_err_i,
    output logic                     want_o,
    input  wire logic                grant_i,
    output logic [LineBits-1:0]      line_o,
    output logic [6:0]               freed_lines_o,   // With grant: lines that are given back
    input  wire logic [511:0]        line_data_i,
    output logic                     rd_rsp_valid_o,
    input  wire logic                rd_rsp_ready_i,
    output rnic_pkg::dma_rd_rsp_t    rd_rsp_data_o
);
  localparam int unsigned OutDepth = 4;

  // ---- TLPs of each request that are on their way -----------------------------------------------
  // A request of 65 lines is 34 TLPs of two lines at most.
  logic [5:0] pending_q[Requests];
  logic [Requests-1:0] issued_q, err_q;
  logic [RidBits:0] count_q;
  logic same, retire;

  assign same        = issue_i && finish_i && issue_rid_i == finish_rid_i;
  assign can_begin_o = count_q < (RidBits + 1)'(Requests);
  always_ff @(posedge clk_i) begin
    if (issue_i && !same) begin
      pending_q[issue_rid_i] <= issue_first_i ? 6'd1 : pending_q[issue_rid_i] + 6'd1;
    end
    if (finish_i && !same) pending_q[finish_rid_i] <= pending_q[finish_rid_i] - 6'd1;
    if (issue_i) issued_q[issue_rid_i] <= issue_last_i;
    if (issue_i && issue_first_i) err_q[issue_rid_i] <= 1'b0;
    if (finish_i && finish_err_i) err_q[finish_rid_i] <= 1'b1;
    count_q <= count_q + {{RidBits{1'b0}}, issue_i && issue_first_i} - {{RidBits{1'b0}}, retire};
    if (!rst_ni) count_q <= '0;
  end

  // ---- The oldest request -----------------------------------------------------------------------
  logic head_valid, first_q, complete, failed, last, unused_ready;
  logic [5:0] head_offset, offset;
  logic [12:0] head_length, left, left_q, padded;
  logic [5:0] unused_padded;
  logic [6:0] bytes, room, requests_count;
  logic [RidBits-1:0] head_q;
  logic [LineBits-1:0] line_q, line_next, to_end;
  logic [2:0] credit_q;

  stream_fifo #(
      .Width(19),
      .Depth(Requests)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .in_valid_i (issue_i && issue_first_i),
      .in_ready_o (unused_ready),
      .in_data_i  ({issue_offset_i, issue_length_i}),
      .out_valid_o(head_valid),
      .out_ready_i(retire),
      .out_data_o ({head_offset, head_length}),
      .count_o    (requests_count)
  );

  assign failed        = err_q[head_q];
  assign offset        = first_q ? head_offset : '0;
  assign left          = first_q ? head_length : left_q;
  assign room          = 7'd64 - {1'b0, offset};
  assign last          = failed || left <= {6'd0, room};
  assign bytes         = last ? left[6:0] : room;
  assign unused_padded = padded[5:0];
  assign padded        = head_length + {7'd0, head_offset} + 13'd63;
  assign freed_lines_o = failed ? padded[12:6] : 7'd1;
  assign complete      = issued_q[head_q] && pending_q[head_q] == '0;
  assign want_o        = head_valid && complete && credit_q != '0;
  assign retire        = grant_i && last;
  assign line_o        = line_q;
  assign to_end        = RingLast - line_q;
  assign line_next     = {{LineBits - 7{1'b0}}, freed_lines_o} > to_end ?
      RingBase + {{LineBits - 7{1'b0}}, freed_lines_o} - to_end - LineBits'(1) :
      line_q + {{LineBits - 7{1'b0}}, freed_lines_o};

  // The beat that goes with the line, a cycle later.
  logic push_q, push_ready, last_q, err_beat_q;
  logic [5:0] offset_q;
  logic [6:0] bytes_q;
  rnic_pkg::dma_rd_rsp_t beat;
  logic [$clog2(OutDepth)+1:0] out_count;

  always_ff @(posedge clk_i) begin
    push_q     <= grant_i;
    offset_q   <= failed ? '0 : offset;
    bytes_q    <= failed ? '0 : bytes;
    last_q     <= last;
    err_beat_q <= failed;
    if (grant_i) begin
      first_q <= last;
      left_q  <= left - {6'd0, bytes};
      line_q  <= line_next;
      if (last) head_q <= head_q + 1'b1;
    end
    // As many beats as the output takes without being emptied.
    credit_q <= credit_q - {2'd0, grant_i} + {2'd0, rd_rsp_valid_o && rd_rsp_ready_i};
    if (!rst_ni) begin
      push_q   <= 1'b0;
      first_q  <= 1'b1;
      head_q   <= '0;
      line_q   <= RingBase;
      credit_q <= 3'(OutDepth);
    end
  end

  always_comb begin
    beat.data   = line_data_i;
    beat.offset = offset_q;
    beat.bytes  = bytes_q;
    beat.last   = last_q;
    beat.err    = err_beat_q;
  end

  stream_fifo #(
      .Width(rnic_pkg::DmaRdRspBits),
      .Depth(OutDepth)
  ) u_out (
      .clk_i,
      .rst_ni,
      .in_valid_i (push_q),
      .in_ready_o (push_ready),
      .in_data_i  (beat),
      .out_valid_o(rd_rsp_valid_o),
      .out_ready_i(rd_rsp_ready_i),
      .out_data_o (rd_rsp_data_o),
      .count_o    (out_count)
  );

  `ASSERT(CreditForEach, {1'b0, credit_q} + 4'(push_q) + out_count == 4'(OutDepth))
  `ASSERT(CountedRequests, requests_count == 7'(count_q) && count_q <= (RidBits + 1)'(Requests))
  `ASSERT(OutputHasRoom, !push_q || push_ready)
  `ASSERT(GrantWasWanted, !grant_i || want_o)
endmodule

`default_nettype wire
