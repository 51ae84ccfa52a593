`default_nettype none

/// The responder's packets that are ready for the send path (packet_queue): each a descriptor and
/// at most one piece. room_o promises places for a whole packet; there is none while much payload
/// waits. Inline a piece has at most the 8 bytes of an AtomicAckETH, so the rest of its data (the
/// highest bits) is not kept and comes out as zero.
module rsp_packets (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    output logic                      room_o,
    input  wire logic                 desc_valid_i,
    input  wire rnic_pkg::tx_desc_t   desc_data_i,
    input  wire logic                 piece_valid_i,
    input  wire rnic_pkg::sg_piece_t  piece_data_i,
    output logic                      desc_valid_o,
    input  wire logic                 desc_ready_i,
    output rnic_pkg::tx_desc_t        desc_data_o,
    output logic                      piece_valid_o,
    input  wire logic                 piece_ready_i,
    output rnic_pkg::sg_piece_t       piece_data_o,
    // As of packet_queue: what is here at mark_i has left when drained_o says so
    input  wire logic                 mark_i,
    output logic                      drained_o
);
  localparam int unsigned PieceBits = rnic_pkg::SgPieceBits - 448;

  logic [rnic_pkg::SgPieceBits-1:0] piece_bits;
  logic [PieceBits-1:0] piece_queued;
  logic unused_data;
  assign piece_bits   = piece_data_i;
  assign unused_data  = ^piece_bits[rnic_pkg::SgPieceBits-1:PieceBits];
  assign piece_data_o = {448'd0, piece_queued};

  logic room, few;
  assign room_o = room && few;
  packet_queue #(
      .PieceWidth     (PieceBits),
      .PieceDepth     (16),
      .PiecesPerPacket(1)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .room_o(room),
      .few_o (few),
      .desc_valid_i,
      .desc_data_i,
      .piece_valid_i,
      .piece_data_i(piece_bits[PieceBits-1:0]),
      .desc_valid_o,
      .desc_ready_i,
      .desc_data_o,
      .piece_valid_o,
      .piece_ready_i,
      .piece_data_o(piece_queued),
      .mark_i,
      .drained_o
  );
endmodule

`default_nettype wire
