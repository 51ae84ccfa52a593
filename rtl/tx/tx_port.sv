`default_nettype none
`include "assert.svh"

/// The frames that wait for the port: a frame is offered when all of it is here, and then without a
/// gap. While enable_i is 0 none begins. One that asks for an answer is reported on left_* when the
/// port has taken its last word.
///
/// Whoever takes the reports takes one in four cycles at least, and requests come slower than that
/// on average; as many as there are words in the buffer may leave in a row.
module tx_port #(
    parameter int unsigned Words = 256,
    localparam int unsigned RoomBits = $clog2(Words) + 1
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   enable_i,
    input  wire logic                   in_valid_i,
    input  wire logic [511:0]           in_data_i,
    input  wire logic [6:0]             in_bytes_i,
    input  wire logic                   in_last_i,
    // With the last word
    input  wire logic                   in_asks_i,
    input  wire rnic_pkg::timer_event_t in_left_i,
    input  wire logic                   commit_i,
    input  wire logic                   drop_i,
    output logic [RoomBits-1:0]         room_o,
    output logic                        left_valid_o,
    input  wire logic                   left_ready_i,
    output rnic_pkg::timer_event_t      left_data_o,
    output logic                        eth_tx_valid_o,
    input  wire logic                   eth_tx_ready_i,
    output rnic_pkg::frame_beat_t       eth_tx_data_o
);
  logic in_ready, asks, left, left_ready, frame_valid, open, inside_q;
  rnic_pkg::timer_event_t left_data;
  logic [RoomBits:0] unused_left_count;

  packet_buffer #(
      .Width(521 + rnic_pkg::TimerEventBits),
      .Depth(Words)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o (in_ready),
      .in_data_i  ({in_asks_i, in_left_i, in_last_i, in_bytes_i, in_data_i}),
      .commit_i,
      .drop_i,
      .room_o,
      .out_valid_o(frame_valid),
      .out_ready_i(eth_tx_ready_i && open),
      .out_data_o ({asks, left_data, eth_tx_data_o.last, eth_tx_data_o.bytes,
                    eth_tx_data_o.data})
  );
  assign eth_tx_data_o.err = 1'b0;

  // A frame that has been offered is sent to its end.
  assign open           = enable_i || inside_q;
  assign eth_tx_valid_o = frame_valid && open;
  always_ff @(posedge clk_i) begin
    if (eth_tx_valid_o) inside_q <= !(eth_tx_ready_i && eth_tx_data_o.last);
    if (!rst_ni) inside_q <= 1'b0;
  end

  assign left = eth_tx_valid_o && eth_tx_ready_i && eth_tx_data_o.last && asks;
  stream_fifo #(
      .Width(rnic_pkg::TimerEventBits),
      .Depth(Words)
  ) u_left (
      .clk_i,
      .rst_ni,
      .in_valid_i (left),
      .in_ready_o (left_ready),
      .in_data_i  (left_data),
      .out_valid_o(left_valid_o),
      .out_ready_i(left_ready_i),
      .out_data_o (left_data_o),
      .count_o    (unused_left_count)
  );

  `ASSERT(RoomForWord, !in_valid_i || in_ready)
  `ASSERT(RoomForLeft, !left || left_ready)
  `ASSERT_HOLD(LeftHold, left_valid_o, left_ready_i, left_data_o)
endmodule

`default_nettype wire
