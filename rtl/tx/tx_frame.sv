`default_nettype none
`include "assert.svh"

/// Makes Ethernet frames of IP packets: pads the payload to 4 bytes, appends the ICRC, prepends the
/// Ethernet header, with a VLAN tag if the packet has one (IEEE 802.1Q 9), pads to 60 bytes. A raw
/// frame is one already, but for the padding to 60 bytes.
///
/// packet stream: IP packets without ICRC, packed, zero past the last byte. frame stream:
/// destination MAC, tag (none for a raw frame) and event bits (as in tx_build) of each packet,
/// offered when its first beat is or before; what the timer is to know of it comes out with its
/// last word, and that checksums are to be put into it with every word. The output is written to a
/// packet_buffer with room for room_i words: the pipe inside does not stop, so a packet beat is
/// taken only while there is room for all that may be in it.
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
    input  wire logic                      frame_csum_i,
    input  wire logic [47:0]               frame_mac_i,
    input  wire logic                      frame_vlan_i,
    input  wire logic [15:0]               frame_tci_i,
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
    output logic                           out_csum_o,
    output rnic_pkg::timer_event_t         out_left_o,
    output logic                           commit_o,
    output logic                           drop_o,
    output logic [4:0]                     sent_o
);
  /// Bytes around an IP packet: Ethernet header and ICRC, and the tag.
  localparam logic [6:0] Around = 7'd18;
  localparam logic [6:0] Tag = rnic_pkg::VlanTagBytes[6:0];
  /// Cycles of the ICRC.
  localparam int unsigned Delay = 4;
  localparam int unsigned BeatBits = 512 + 7 + 5 + 3;

  // ---- In ----
  // ended_q: the last beat of a packet was just taken. gap: it gives one line more than it has
  // itself, in this cycle. tags_q: which of the packets up to then have a tag, oldest at tag_out_q.
  logic room_q, ended_q, gap, first_q, take;
  logic [4:0] words, words_q, tag_in_q, tag_out_q;
  logic [31:0] tags_q;

  // The line that ends a packet with err may be empty; the ICRC then takes it for a full one.
  assign words = (packet_data_i.last && !packet_data_i.err) ?
      packet_data_i.bytes[6:2] + 5'(packet_data_i.bytes[1:0] != '0) : 5'd16;
  assign gap            = ended_q &&
      {words_q, 2'b00} > 7'd64 - Around - (tags_q[tag_out_q] ? Tag : '0);
  assign packet_ready_o = room_q && !gap;
  assign take           = packet_valid_i && packet_ready_o;

  always_ff @(posedge clk_i) begin
    room_q <= room_i >= RoomBits'(4 * Delay);
    ended_q <= take && packet_data_i.last;
    if (take) begin
      first_q <= packet_data_i.last;
      words_q <= words;
    end
    if (frame_valid_i && frame_ready_o) begin
      tags_q[tag_in_q] <= frame_vlan_i;
      tag_in_q         <= tag_in_q + 1'b1;
    end
    if (ended_q) tag_out_q <= tag_out_q + 1'b1;
    if (!rst_ni) begin
      room_q    <= 1'b0;
      ended_q   <= 1'b0;
      first_q   <= 1'b1;
      tag_in_q  <= '0;
      tag_out_q <= '0;
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
  // The ICRC goes into the word after the last. All moves up by 14 lanes, or by 18 with a tag,
  // behind the Ethernet header or the end of the line before.
  logic valid, first, last, err, raw, vlan;
  logic [4:0] beat_words;
  logic [6:0] beat_bytes;
  logic [511:0] data, joined;
  logic [399:0] body;
  logic [6:0] total;

  assign valid = valid_q[Delay-1];
  assign {first, last, err, beat_bytes, beat_words, data} = beat_q[Delay-1];
  assign total = raw ? beat_bytes : {beat_words, 2'b00} + Around + (vlan ? Tag : '0);

  always_comb begin
    joined = data;
    for (int unsigned i = 0; i < 16; i++) begin
      if (last && beat_words == 5'(i)) joined[32*i+:32] = crc;
    end
  end

  rnic_pkg::eth_header_t eth;
  rnic_pkg::vlan_tag_t tag;
  // Without a tag 14 bytes of it count
  logic [143:0] eth_lanes, carry_q, front;
  logic [15:0] tci;
  logic [47:0] mac;
  logic [4:0] count;
  logic frame_valid, extra, extra_q;
  logic [6:0] extra_bytes_q;
  logic [31:0] extra_crc_q;

  logic [5:0] unused_count;
  stream_fifo #(
      .Width(73 + rnic_pkg::TimerEventBits),
      .Depth(16)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .in_valid_i (frame_valid_i),
      .in_ready_o (frame_ready_o),
      .in_data_i  ({frame_asks_i, frame_left_i, frame_count_i, frame_csum_i, frame_raw_i,
                    frame_vlan_i, frame_tci_i, frame_mac_i}),
      .out_valid_o(frame_valid),
      .out_ready_i(commit_o || drop_o),
      .out_data_o ({out_asks_o, out_left_o, count, out_csum_o, raw, vlan, tci, mac}),
      .count_o    (unused_count)
  );

  always_comb begin
    eth.dest      = mac;
    eth.source    = port_mac_i;
    eth.ethertype = (data[7:4] == 4'd6) ? rnic_pkg::EtherTypeIpv6[15:0] :
        rnic_pkg::EtherTypeIpv4[15:0];
    {tag.pcp, tag.dei, tag.vid} = tci;
    tag.tpid = rnic_pkg::EtherTypeVlan[15:0];
    eth_lanes = '0;
    for (int unsigned i = 0; i < 14; i++) eth_lanes[8*i+:8] = eth[8*(13-i)+:8];
    if (vlan) begin
      for (int unsigned i = 0; i < 4; i++) eth_lanes[8*(12+i)+:8] = tag[8*(3-i)+:8];
      eth_lanes[143:128] = {eth.ethertype[7:0], eth.ethertype[15:8]};
    end
  end

  assign extra       = valid && last && !err && total > 7'd64;
  assign out_valid_o = valid || extra_q;
  assign out_last_o  = extra_q || (last && !extra);
  assign front      = (first && !extra_q) ? eth_lanes : carry_q;
  assign body        = extra_q ? {368'd0, extra_crc_q} : joined[399:0];
  assign out_data_o  = raw ? data :
      vlan ? {body[367:0], front} : {body, front[111:0]};
  assign commit_o    = extra_q || (valid && last && !err && !extra);
  assign drop_o      = valid && last && err;
  assign sent_o      = commit_o ? count : '0;

  always_comb begin
    out_bytes_o = 7'd64;
    if (extra_q) out_bytes_o = extra_bytes_q;
    else if (out_last_o) out_bytes_o = (first && total < 7'd60) ? 7'd60 : total;
  end

  always_ff @(posedge clk_i) begin
    if (valid) carry_q <= vlan ? joined[511:368] : {32'd0, joined[511:400]};
    extra_q       <= extra;
    extra_bytes_q <= total - 7'd64;
    extra_crc_q   <= crc;
    if (!rst_ni) extra_q <= 1'b0;
  end

  `ASSERT(CrcInTime, !(valid && last && !err) || crc_valid)
  `ASSERT(FrameInTime, !(valid && first) || frame_valid)
  `ASSERT(TagInTime, !ended_q || tag_in_q != tag_out_q)
  `ASSERT(OneAtATime, !(valid && extra_q))
  `ASSERT(RoomForFrame, frame_ready_o)
endmodule

`default_nettype wire
