`default_nettype none
`include "assert.svh"

/// The frames that wait for the port: a frame is offered when all of it is here, and then without a
/// gap. While enable_i is 0 none begins. One that asks for an answer is reported on left_* when the
/// port has taken its last word. One with in_csum_i gets its checksums on the way out: they are
/// known when all of it is here, and stand in its first two words. busy_o: one waits for them.
///
/// Whoever takes the reports takes one in four cycles at least, and requests come slower than that
/// on average; as many as there are words in the buffer may leave in a row.
module tx_port #(
    parameter int unsigned Words = 256,
    localparam int unsigned RoomBits = $clog2(Words) + 1
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    output logic                        busy_o,
    input  wire logic                   enable_i,
    input  wire logic                   in_valid_i,
    input  wire logic [511:0]           in_data_i,
    input  wire logic [6:0]             in_bytes_i,
    input  wire logic                   in_last_i,
    // With every word
    input  wire logic                   in_csum_i,
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
  logic in_ready, asks, csum, left, left_ready, frame_valid, open, inside_q, first_q, second_q;
  logic takes, sums_in_valid, sums_in_ready, sums_valid, unused_l3_ok, unused_l4_ok;
  rnic_pkg::ip_sums_t sums_in, sums;
  logic [511:0] data, patched;
  logic [RoomBits:0] unused_sums_count;
  rnic_pkg::timer_event_t left_data;
  logic [RoomBits:0] unused_left_count;

  packet_buffer #(
      .Width(522 + rnic_pkg::TimerEventBits),
      .Depth(Words)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o (in_ready),
      .in_data_i  ({in_csum_i, in_asks_i, in_left_i, in_last_i, in_bytes_i, in_data_i}),
      .commit_i,
      .drop_i,
      .room_o,
      .out_valid_o(frame_valid),
      .out_ready_i(eth_tx_ready_i && open),
      .out_data_o ({csum, asks, left_data, eth_tx_data_o.last, eth_tx_data_o.bytes, data})
  );
  assign eth_tx_data_o.err = 1'b0;

  // ---- Checksums, in the order of the frames ----
  eth_checksum u_checksum (
      .clk_i,
      .rst_ni,
      .in_valid_i (in_valid_i && in_csum_i),
      .in_data_i,
      .in_bytes_i,
      .in_last_i,
      .in_drop_i  (drop_i),
      .out_valid_o(sums_in_valid),
      .out_l3_ok_o(unused_l3_ok),
      .out_l4_ok_o(unused_l4_ok),
      .out_sums_o (sums_in)
  );
  stream_fifo #(
      .Width(rnic_pkg::IpSumsBits),
      .Depth(Words)
  ) u_sums (
      .clk_i,
      .rst_ni,
      .in_valid_i (sums_in_valid),
      .in_ready_o (sums_in_ready),
      .in_data_i  (sums_in),
      .out_valid_o(sums_valid),
      .out_ready_i(takes && eth_tx_data_o.last && csum),
      .out_data_o (sums),
      .count_o    (unused_sums_count)
  );
  always_comb begin : patch
    patched = data;
    for (int unsigned w = 0; w < 32; w++) begin
      if (csum && first_q && sums.l3 && sums.l3_word == 5'(w)) begin
        patched[16*w+:16] = sums.l3_value;
      end
      if (csum && (sums.l4_word[5] ? second_q : first_q) && sums.l4 &&
          sums.l4_word[4:0] == 5'(w)) begin
        patched[16*w+:16] = sums.l4_value;
      end
    end
  end
  assign eth_tx_data_o.data = patched;

  // A frame that has been offered is sent to its end.
  assign open           = (enable_i || inside_q) && (sums_valid || !csum);
  assign eth_tx_valid_o = frame_valid && open;
  assign takes          = eth_tx_valid_o && eth_tx_ready_i;
  assign busy_o         = frame_valid && csum && !sums_valid;
  always_ff @(posedge clk_i) begin
    if (eth_tx_valid_o) inside_q <= !(eth_tx_ready_i && eth_tx_data_o.last);
    if (takes) begin
      first_q  <= eth_tx_data_o.last;
      second_q <= first_q && !eth_tx_data_o.last;
    end
    if (!rst_ni) begin
      inside_q <= 1'b0;
      first_q  <= 1'b1;
      second_q <= 1'b0;
    end
  end

  assign left = takes && eth_tx_data_o.last && asks;
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

  `ASSERT(RoomForWord, in_ready)
  `ASSERT(RoomForLeft, !left || left_ready)
  `ASSERT(RoomForSums, sums_in_ready)
  `ASSERT_HOLD(LeftHold, left_valid_o, left_ready_i, left_data_o)
endmodule

`default_nettype wire
