`default_nettype none
`include "assert.svh"

/// Done stage: packets in wire order, each when all its writes have been handed to PCIe.
///
/// Hands every translation back exactly once: that of a written piece when its write is done, that
/// of a piece that was thrown away when its turn comes; whether or not the packet can be handed
/// over: what takes the packets may wait for translations to be handed back (an invalidation).
/// wr_done_i cannot wait, so it is counted. Packets with action None end here. left_o: a packet has
/// left the engine.
module rx_done (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   packet_valid_i,
    output logic                        packet_ready_o,
    input  wire rnic_pkg::rx_done_t     packet_data_i,
    input  wire logic [5:0]             packet_pieces_i,
    input  wire logic                   issued_valid_i,
    output logic                        issued_ready_o,
    input  wire logic                   issued_epoch_i,
    input  wire logic                   issued_write_i,
    input  wire logic                   wr_done_i,
    output logic                        retire_valid_o,
    output logic                        retire_epoch_o,
    output logic                        done_valid_o,
    input  wire logic                   done_ready_i,
    output rnic_pkg::rx_done_t          done_data_o,
    output logic                        left_o
);
  // seen_q: retired pieces of packets that have not left: at most 64 packets of 33 pieces.
  // written_q: writes done whose piece is not retired yet.
  logic [11:0] seen_q;
  logic [8:0] written_q;
  logic complete, retire, use_written, silent;

  assign complete       = seen_q >= 12'(packet_pieces_i);
  assign issued_ready_o = !issued_write_i || written_q != 9'd0;
  assign retire         = issued_valid_i && issued_ready_o;
  assign use_written    = retire && issued_write_i;

  assign silent         = packet_data_i.action == rnic_pkg::RxActionNone;
  assign done_valid_o   = packet_valid_i && complete && !silent;
  assign done_data_o    = packet_data_i;
  assign packet_ready_o = complete && (silent || done_ready_i);
  assign left_o         = packet_valid_i && packet_ready_o;

  always_ff @(posedge clk_i) begin
    retire_valid_o <= retire;
    retire_epoch_o <= issued_epoch_i;
    seen_q         <= seen_q + 12'(retire) - (left_o ? 12'(packet_pieces_i) : 12'd0);
    written_q      <= written_q + 9'(wr_done_i) - 9'(use_written);
    if (!rst_ni) begin
      retire_valid_o <= 1'b0;
      seen_q         <= 12'd0;
      written_q      <= 9'd0;
    end
  end

  `ASSERT_HOLD(DoneHold, done_valid_o, done_ready_i, done_data_o)
  `ASSERT(PiecesCounted, !(&seen_q))
  `ASSERT(WritesCounted, !(&written_q && wr_done_i))
endmodule

`default_nettype wire
