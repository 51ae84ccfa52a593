`default_nettype none
`include "assert.svh"

/// Makes Ethernet frames of IP packets: pads the payload to 4 bytes, appends the ICRC, prepends the
/// Ethernet header, pads to 60 bytes. A raw frame is one already, but for the padding to 60 bytes.
///
/// packet stream: IP packets without ICRC, packed, zero past the last byte. frame stream:
/// destination MAC and event bits (as in tx_build) of each packet, offered when its first beat is
/// or before; what the timer is to know of it comes out with its last word. The output is written
/// to a packet_buffer with room for room_i words: the pipe inside does not stop, so a packet beat
/// is taken only while there is room for all that may be in it.
/// commit_o comes with the last word; drop_o instead for a packet with err.
module tx_frame #(
    parameter int unsigned RoomBits = 9
) (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [47:0]               port_mac_i,
    input  wire logic                      frame_valid_i,
    output logic                           frame_ready_o,
    input  wire logic                      frame_raw_i,
    input  wire logic [47:0]               frame_mac_i,
    input  wire logic [4:0]                frame_count_i,
    input  wire logic                      frame_asks_i,
    input  wire rnic_pkg::timer_event_t    frame_left_i,
    input  wire logic                      packet_valid_i,
    output logic                           packet_ready_o,
    input  wire rnic_pkg::payload_beat_t   packet_data_i,
    input  wire logic [RoomBits-1:0]       room_i,
    output logic                           out_valid_o,
    output logic [511:0]                   out_data_o,
    output logic [6:0]                     out_bytes_o,
    output logic                           out_last_o,
    output logic                           out_asks_o,
    output rnic_pkg::timer_event_t         out_left_o,
    output logic                           commit_o,
    output logic                           drop_o,
    output logic [4:0]                     sent_o
);
  /// Bytes around an IP packet: Ethernet header and ICRC.
  localparam logic [6:0] Around = 7'd18;
  /// Cycles of the ICRC.
  localparam int unsigned Delay = 4;
  localparam int unsigned BeatBits = 512 + 7 + 5 + 3;

  // ---- In ----
  // gap_q: the packet that was just taken gives one line more than it has itself, in this cycle.
  logic room_q, gap_q, first_q, take;
  logic [4:0] words;

  // The line that ends a packet with err may be empty; the ICRC then takes it for a full one.
  assign words = (packet_data_i.last && !packet_data_i.err) ?
      packet_data_i.bytes[6:2] + 5'(packet_data_i.bytes[1:0] != '0) : 5'd16;
  assign packet_ready_o = room_q && !gap_q;
  assign take           = packet_valid_i && packet_ready_o;

  always_ff @(posedge clk_i) begin
    room_q <= room_i >= RoomBits'(4 * Delay);
    gap_q  <= take && packet_data_i.last && {words, 2'b00} > 7'd64 - Around;
    if (take) first_q <= packet_data_i.last;
    if (!rst_ni) begin
      room_q  <= 1'b0;
      gap_q   <= 1'b0;
      first_q <= 1'b1;
    end
  end

  logic [31:0] crc;
  logic crc_valid;
  icrc u_icrc (
      .clk_i,
      .rst_ni,
      .in_valid_i (take),
      .in_data_i  (packet_data_i.data),
      .in_last_i  (packet_data_i.last),
      .in_words_i (words),
      .out_valid_o(crc_valid),
      .out_crc_o  (crc)
  );

  // ---- The lines wait for the ICRC ----
  logic [Delay-1:0] valid_q;
  logic [BeatBits-1:0] beat_q[Delay];
  always_ff @(posedge clk_i) begin
    beat_q[0] <= {first_q, packet_data_i.last, packet_data_i.err, packet_data_i.bytes, words,
                  packet_data_i.data};
    for (int unsigned i = 1; i < Delay; i++) beat_q[i] <= beat_q[i-1];
    valid_q <= {valid_q[Delay-2:0], take};
    if (!rst_ni) valid_q <= '0;
  end

  // ---- Out ----
  // The ICRC goes into the word after the last. All moves up by 14 lanes, behind the Ethernet
  // header or the end of the line before.
  logic valid, first, last, err, raw;
  logic [4:0] beat_words;
  logic [6:0] beat_bytes;
  logic [511:0] data, joined;
  logic [6:0] total;

  assign valid = valid_q[Delay-1];
  assign {first, last, err, beat_bytes, beat_words, data} = beat_q[Delay-1];
  assign total = raw ? beat_bytes : {beat_words, 2'b00} + Around;

  always_comb begin
    joined = data;
    for (int unsigned i = 0; i < 16; i++) begin
      if (last && beat_words == 5'(i)) joined[32*i+:32] = crc;
    end
  end

  rnic_pkg::eth_header_t eth;
  logic [111:0] eth_lanes, carry_q;
  logic [47:0] mac;
  logic [4:0] count;
  logic frame_valid, extra, extra_q;
  logic [6:0] extra_bytes_q;
  logic [31:0] extra_crc_q;

  logic [5:0] unused_count;
  stream_fifo #(
      .Width(55 + rnic_pkg::TimerEventBits),
      .Depth(16)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .in_valid_i (frame_valid_i),
      .in_ready_o (frame_ready_o),
      .in_data_i  ({frame_asks_i, frame_left_i, frame_count_i, frame_raw_i, frame_mac_i}),
      .out_valid_o(frame_valid),
      .out_ready_i(commit_o || drop_o),
      .out_data_o ({out_asks_o, out_left_o, count, raw, mac}),
      .count_o    (unused_count)
  );

  always_comb begin
    eth.dest      = mac;
    eth.source    = port_mac_i;
    eth.ethertype = (data[7:4] == 4'd6) ? rnic_pkg::EtherTypeIpv6[15:0] :
        rnic_pkg::EtherTypeIpv4[15:0];
    for (int unsigned i = 0; i < 14; i++) eth_lanes[8*i+:8] = eth[8*(13-i)+:8];
  end

  assign extra       = valid && last && !err && total > 7'd64;
  assign out_valid_o = valid || extra_q;
  assign out_last_o  = extra_q || (last && !extra);
  assign out_data_o  = extra_q ? {368'd0, extra_crc_q, carry_q} :
      raw ? data : {joined[399:0], first ? eth_lanes : carry_q};
  assign commit_o    = extra_q || (valid && last && !err && !extra);
  assign drop_o      = valid && last && err;
  assign sent_o      = commit_o ? count : '0;

  always_comb begin
    out_bytes_o = 7'd64;
    if (extra_q) out_bytes_o = extra_bytes_q;
    else if (out_last_o) out_bytes_o = (first && total < 7'd60) ? 7'd60 : total;
  end

  always_ff @(posedge clk_i) begin
    if (valid) carry_q <= joined[511:400];
    extra_q       <= extra;
    extra_bytes_q <= total - 7'd64;
    extra_crc_q   <= crc;
    if (!rst_ni) extra_q <= 1'b0;
  end

  `ASSERT(CrcInTime, !(valid && last && !err) || crc_valid)
  `ASSERT(FrameInTime, !(valid && first) || frame_valid)
  `ASSERT(OneAtATime, !(valid && extra_q))
endmodule

`default_nettype wire
