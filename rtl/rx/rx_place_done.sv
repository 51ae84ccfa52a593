`default_nettype none

/// The done stage: packets whose verdict is there wait for their writes, in wire order (rx_done).
///
/// MaxPackets packets may wait here, as many as rx_place takes, so that a place is never missing
/// for one; and 128 pieces that have been issued: the next waits until a write is done, which
/// depends on nothing here. left_o pulses for every packet that leaves, with an rx_done_t or
/// without.
module rx_place_done #(
    parameter int unsigned MaxPackets = 64
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    // Packets, with the writes of each
    input  wire logic               packet_valid_i,
    output logic                    packet_ready_o,
    input  wire rnic_pkg::rx_done_t packet_data_i,
    input  wire logic [5:0]         packet_pieces_i,
    // A piece has been written, or dropped
    input  wire logic               issued_valid_i,
    output logic                    issued_ready_o,
    input  wire logic               issued_epoch_i,
    input  wire logic               issued_write_i,
    input  wire logic               wr_done_i,
    output logic                    xlate_retire_valid_o,
    output logic                    xlate_retire_epoch_o,
    output logic                    done_valid_o,
    input  wire logic               done_ready_i,
    output rnic_pkg::rx_done_t      done_data_o,
    output logic                    left_o
);
  localparam int unsigned DoneBits = rnic_pkg::RxDoneBits + 6;  // pieces

  logic done_valid, done_ready, issued_valid, issued_ready;
  logic [DoneBits-1:0] done;
  logic [7:0] unused_done_count;
  logic [1:0] issued;
  logic [8:0] unused_issued_count;

  stream_fifo #(
      .Width(DoneBits),
      .Depth(MaxPackets)
  ) u_packets (
      .clk_i,
      .rst_ni,
      .in_valid_i (packet_valid_i),
      .in_ready_o (packet_ready_o),
      .in_data_i  ({packet_data_i, packet_pieces_i}),
      .out_valid_o(done_valid),
      .out_ready_i(done_ready),
      .out_data_o (done),
      .count_o    (unused_done_count)
  );

  stream_fifo #(
      .Width(2),
      .Depth(128)
  ) u_issued (
      .clk_i,
      .rst_ni,
      .in_valid_i (issued_valid_i),
      .in_ready_o (issued_ready_o),
      .in_data_i  ({issued_epoch_i, issued_write_i}),
      .out_valid_o(issued_valid),
      .out_ready_i(issued_ready),
      .out_data_o (issued),
      .count_o    (unused_issued_count)
  );

  rx_done u_done (
      .clk_i,
      .rst_ni,
      .packet_valid_i (done_valid),
      .packet_ready_o (done_ready),
      .packet_data_i  (done[DoneBits-1:6]),
      .packet_pieces_i(done[5:0]),
      .issued_valid_i (issued_valid),
      .issued_ready_o (issued_ready),
      .issued_epoch_i (issued[1]),
      .issued_write_i (issued[0]),
      .wr_done_i,
      .retire_valid_o (xlate_retire_valid_o),
      .retire_epoch_o (xlate_retire_epoch_o),
      .done_valid_o,
      .done_ready_i,
      .done_data_o,
      .left_o
  );
endmodule

`default_nettype wire
