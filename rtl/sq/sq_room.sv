`default_nettype none
`include "assert.svh"

/// Room in a packet queue for turns that make several packets, of which two may be under way.
///
/// take_i: a turn begins, allowed while room_o; it may make one packet. more_o: the turn that has
/// put in the last piece of its packet in this cycle may make one more. give_i: a turn is over. So
/// whoever makes packets finds room for them, and never waits with a context in hand.
/// desc_*_i, piece_*_i: one goes into the queue, or out of it.
module sq_room #(
    parameter int unsigned DescDepth = 16,
    parameter int unsigned PieceDepth = 64,
    parameter int unsigned PiecesPerPacket = 16,
    localparam int unsigned CountBits = $clog2(PieceDepth) + 3
) (
    input  wire logic clk_i,
    input  wire logic rst_ni,
    input  wire logic take_i,
    input  wire logic give_i,
    input  wire logic desc_in_i,
    input  wire logic desc_out_i,
    input  wire logic piece_in_i,
    input  wire logic piece_out_i,
    output logic      room_o,
    output logic      more_o
);
  logic [1:0] turns_q;
  logic [CountBits-1:0] descs_q, pieces_q, descs, pieces;

  // What is inside and promised. The piece of this cycle, the last of its packet, is not counted
  // yet, and its turn may go on.
  assign descs  = descs_q + CountBits'(turns_q);
  assign pieces = pieces_q + CountBits'(turns_q) * CountBits'(PiecesPerPacket) + 1'b1;
  assign more_o = descs <= CountBits'(DescDepth) && pieces <= CountBits'(PieceDepth);
  assign room_o = !turns_q[1] && descs < CountBits'(DescDepth) &&
                  pieces <= CountBits'(PieceDepth - PiecesPerPacket);

  always_ff @(posedge clk_i) begin
    turns_q  <= turns_q + 2'(take_i) - 2'(give_i);
    descs_q  <= descs_q + CountBits'(desc_in_i) - CountBits'(desc_out_i);
    pieces_q <= pieces_q + CountBits'(piece_in_i) - CountBits'(piece_out_i);
    if (!rst_ni) begin
      turns_q  <= '0;
      descs_q  <= '0;
      pieces_q <= '0;
    end
  end

  `ASSERT(TakeWithRoom, !take_i || room_o)
  `ASSERT(GiveWhatIsTaken, !give_i || turns_q != '0)
  `ASSERT(Fits, descs_q <= CountBits'(DescDepth) && pieces_q <= CountBits'(PieceDepth))
endmodule

`default_nettype wire
