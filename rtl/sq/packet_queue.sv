`default_nettype none
`include "assert.svh"

/// Output queue of an engine that makes packets while it holds a context: a descriptor a packet,
/// and its pieces.
///
/// `room_o` promises a whole packet (one descriptor, PiecesPerPacket pieces), so that the engine
/// never waits for the wire with a context in hand. few_o: less than PayloadLimit bytes wait. No
/// engine should begin a packet without: what waits here can't be taken back when the peer asks for
/// something else, and what another queue pair has to say waits behind it. `drained_o`: everything
/// that was inside at the last `mark_i` has left.
module packet_queue #(
    parameter int unsigned PieceWidth = 8,
    parameter int unsigned PieceDepth = 32,
    parameter int unsigned PiecesPerPacket = 16,
    localparam int unsigned DescDepth = 16,
    localparam int unsigned DescWidth = rnic_pkg::TxDescBits,
    localparam int unsigned PayloadLimit = 8192,
    localparam int unsigned DescCountBits = $clog2(DescDepth) + 2,
    localparam int unsigned PieceCountBits = $clog2(PieceDepth) + 2
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    output logic                       room_o,
    output logic                       few_o,
    input  wire logic                  desc_valid_i,
    input  wire rnic_pkg::tx_desc_t    desc_data_i,
    input  wire logic                  piece_valid_i,
    input  wire logic [PieceWidth-1:0] piece_data_i,
    output logic                       desc_valid_o,
    input  wire logic                  desc_ready_i,
    output rnic_pkg::tx_desc_t         desc_data_o,
    output logic                       piece_valid_o,
    input  wire logic                  piece_ready_i,
    output logic [PieceWidth-1:0]      piece_data_o,
    input  wire logic                  mark_i,
    output logic                       drained_o
);
  logic desc_ready, piece_ready, desc_pop, piece_pop;
  logic [DescCountBits-1:0] desc_count, desc_left_q;
  logic [PieceCountBits-1:0] piece_count, piece_left_q;

  stream_fifo #(
      .Width(DescWidth),
      .Depth(DescDepth)
  ) u_desc (
      .clk_i,
      .rst_ni,
      .in_valid_i (desc_valid_i),
      .in_ready_o (desc_ready),
      .in_data_i  (desc_data_i),
      .out_valid_o(desc_valid_o),
      .out_ready_i(desc_ready_i),
      .out_data_o (desc_data_o),
      .count_o    (desc_count)
  );
  stream_fifo #(
      .Width(PieceWidth),
      .Depth(PieceDepth)
  ) u_piece (
      .clk_i,
      .rst_ni,
      .in_valid_i (piece_valid_i),
      .in_ready_o (piece_ready),
      .in_data_i  (piece_data_i),
      .out_valid_o(piece_valid_o),
      .out_ready_i(piece_ready_i),
      .out_data_o (piece_data_o),
      .count_o    (piece_count)
  );

  payload_limit #(
      .Limit(PayloadLimit)
  ) u_payload (
      .clk_i,
      .rst_ni,
      .in_valid_i  (desc_valid_i),
      .in_bytes_i  (desc_data_i.payload_length),
      .out_valid_i (desc_pop),
      .out_bytes_i (desc_data_o.payload_length),
      .below_o     (few_o)
  );
  assign room_o = desc_count < DescCountBits'(DescDepth) &&
                  piece_count <= PieceCountBits'(PieceDepth - PiecesPerPacket);

  assign desc_pop  = desc_valid_o && desc_ready_i;
  assign piece_pop = piece_valid_o && piece_ready_i;
  assign drained_o = desc_left_q == '0 && piece_left_q == '0;
  always_ff @(posedge clk_i) begin
    if (mark_i) begin
      desc_left_q  <= desc_count - DescCountBits'(desc_pop);
      piece_left_q <= piece_count - PieceCountBits'(piece_pop);
    end else begin
      if (desc_pop && desc_left_q != '0) desc_left_q <= desc_left_q - 1'b1;
      if (piece_pop && piece_left_q != '0) piece_left_q <= piece_left_q - 1'b1;
    end
    if (!rst_ni) begin
      desc_left_q  <= '0;
      piece_left_q <= '0;
    end
  end

  `ASSERT(NeverFull, desc_ready && piece_ready)

  `COVER(NoRoom, !room_o)
  `COVER(Enough, !few_o)
endmodule

`default_nettype wire
