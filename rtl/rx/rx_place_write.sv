`default_nettype none
`include "assert.svh"

/// Carries out the verdict of each packet, in order: lets pieces and payload through to the scatter
/// block, or throws them away.
///
/// The result of an atomic comes most significant byte first and is turned round.
///
/// Every packet is told to rx_done before its pieces (packet_*), and every piece as it passes or is
/// thrown away (issued_*).
module rx_place_write (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      verdict_valid_i,
    output logic                           verdict_ready_o,
    input  wire rnic_pkg::rx_done_t        verdict_data_i,
    input  wire logic                      verdict_has_payload_i,
    input  wire logic                      verdict_write_i,
    input  wire logic [5:0]                verdict_pieces_i,
    input  wire logic                      piece_valid_i,
    output logic                           piece_ready_o,
    input  wire rnic_pkg::scatter_piece_t  piece_data_i,
    input  wire logic                      payload_valid_i,
    output logic                           payload_ready_o,
    input  wire rnic_pkg::payload_beat_t   payload_data_i,
    // To scatter_align
    output logic                           scatter_piece_valid_o,
    input  wire logic                      scatter_piece_ready_i,
    output rnic_pkg::scatter_piece_t       scatter_piece_data_o,
    output logic                           scatter_payload_valid_o,
    input  wire logic                      scatter_payload_ready_i,
    output rnic_pkg::payload_beat_t        scatter_payload_data_o,
    // To rx_done
    output logic                           packet_valid_o,
    input  wire logic                      packet_ready_i,
    output rnic_pkg::rx_done_t             packet_data_o,
    output logic [5:0]                     packet_pieces_o,
    output logic                           issued_valid_o,
    input  wire logic                      issued_ready_i,
    output logic                           issued_epoch_o,
    output logic                           issued_write_o
);
  // pieces_q pieces and (payload_q) a packet of payload are still to pass, or to go if !write_q.
  logic write_q, payload_q, turn_q, busy, take, has_pieces, way_clear, piece_passes, payload_passes;
  logic [5:0] pieces_q;
  assign busy = has_pieces || payload_q;

  assign verdict_ready_o = !busy && packet_ready_i;
  assign take            = verdict_valid_i && verdict_ready_o;
  assign packet_valid_o  = verdict_valid_i && !busy;
  assign packet_data_o   = verdict_data_i;
  assign packet_pieces_o = verdict_pieces_i;

  // A piece goes when its record and, if written, the scatter block can take it.
  assign has_pieces            = pieces_q != 6'd0;
  assign way_clear             = !write_q || scatter_piece_ready_i;
  assign scatter_piece_valid_o = piece_valid_i && has_pieces && write_q && issued_ready_i;
  assign issued_valid_o        = piece_valid_i && has_pieces && way_clear;
  assign piece_ready_o         = has_pieces && issued_ready_i && way_clear;
  assign piece_passes          = piece_valid_i && piece_ready_o;
  assign scatter_piece_data_o  = piece_data_i;
  assign issued_epoch_o        = piece_data_i.epoch;
  assign issued_write_o        = write_q;

  assign scatter_payload_valid_o = payload_valid_i && payload_q && write_q;
  assign payload_ready_o         = payload_q && (!write_q || scatter_payload_ready_i);
  assign payload_passes          = payload_valid_i && payload_ready_o;
  always_comb begin
    scatter_payload_data_o = payload_data_i;
    for (int unsigned i = 0; i < 8; i++) begin
      if (turn_q) scatter_payload_data_o.data[8*i+:8] = payload_data_i.data[8*(7-i)+:8];
    end
  end

  always_ff @(posedge clk_i) begin
    if (take) begin
      write_q   <= verdict_write_i;
      turn_q    <= verdict_data_i.atomic;
      pieces_q  <= verdict_pieces_i;
      payload_q <= verdict_has_payload_i;
    end else begin
      if (piece_passes) pieces_q <= pieces_q - 6'd1;
      if (payload_passes && payload_data_i.last) payload_q <= 1'b0;
    end
    if (!rst_ni) begin
      pieces_q  <= 6'd0;
      payload_q <= 1'b0;
    end
  end

  `ASSERT(LastPieceIsLast, !(scatter_piece_valid_o && (pieces_q == 6'd1) != piece_data_i.last))
  `ASSERT(NoBrokenPayload, !(payload_passes && payload_data_i.err))
endmodule

`default_nettype wire
