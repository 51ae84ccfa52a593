`default_nettype none
`include "assert.svh"

/// Receive front end: frames in, packets with a right ICRC out.
///
/// Frames cannot be held up (a MAC gives no back-pressure): when the buffer (at least 128 KiB of
/// payload, 2048 packets) cannot take a whole frame it is dropped and counted. Checks: destination
/// MAC (ours, or that of the multicast group to which the packet goes), one VLAN tag at most and
/// not of the reserved VID, EtherType, IP version and header length, no fragments, IPv4 header
/// checksum, UDP port and length against the frame, BTH version 0, pad count, an opcode of RC, UC
/// or UD whose extended headers fit, payload not above 4096 bytes, ICRC. A packet leaves only when
/// all of it is known to be good: first rx_desc_t, then (payload_length > 0) its payload, packed,
/// padding and ICRC removed.
/// The payload of a datagram starts with its GRH: 40 bytes, its IPv6 header, or 20 zeros and its
/// IPv4 header (annex A17.4.5.1). A congestion notification is counted and goes no further: nothing
/// here slows down.
/// other_valid_o: a frame has been judged, in the order of the wire, 5 to 8 cycles after its last
/// beat; other_o: it is not RoCEv2, or not for this port. A frame that begins while enable_i is low
/// is not judged.
module rx_front (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [47:0]               port_mac_i,
    input  wire logic                      enable_i,
    input  wire logic                      eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t     eth_rx_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::rx_desc_t             desc_data_o,
    output logic                           payload_valid_o,
    input  wire logic                      payload_ready_i,
    output rnic_pkg::payload_beat_t        payload_data_o,
    output logic                           other_valid_o,
    output logic                           other_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  /// Payload lines of the buffer (128 KiB) and packets in it.
  localparam int unsigned PayloadLines = 2048;
  localparam int unsigned Packets = 2048;
  /// Cycles from the last beat of a packet to its ICRC; the verdict waits for it.
  localparam int unsigned Delay = 4;
  /// What icrc gives for a packet that ends with its own ICRC.
  localparam logic [31:0] Residue = 32'h2144df1c;

  // ---- Ethernet header off; IP, UDP and BTH read ----
  logic ip_valid, ip_first, ip_last, ip_err, ip_ipv4, ip_ipv6, ip_group, ip_vlan;
  logic [15:0] ip_tci;
  logic [6:0] ip_bytes;
  logic [511:0] ip_data;

  rx_front_strip u_strip (
      .clk_i,
      .rst_ni,
      .port_mac_i,
      .enable_i,
      .in_valid_i (eth_rx_valid_i),
      .in_data_i  (eth_rx_data_i),
      .out_valid_o(ip_valid),
      .out_first_o(ip_first),
      .out_last_o (ip_last),
      .out_err_o  (ip_err),
      .out_bytes_o(ip_bytes),
      .out_data_o (ip_data),
      .out_ipv4_o (ip_ipv4),
      .out_ipv6_o (ip_ipv6),
      .out_group_o(ip_group),
      .out_vlan_o (ip_vlan),
      .out_tci_o  (ip_tci)
  );

  logic beat_valid, beat_first, beat_last, beat_end, other, bad;
  logic [4:0] beat_words, payload_words;
  logic [511:0] beat_data;
  logic [12:0] payload_length;
  logic grh, ipv6, congestion;
  logic [19:0] checksum;
  rnic_pkg::rx_desc_t desc;

  rx_parse u_parse (
      .clk_i,
      .rst_ni,
      .in_valid_i      (ip_valid),
      .in_first_i      (ip_first),
      .in_last_i       (ip_last),
      .in_err_i        (ip_err),
      .in_bytes_i      (ip_bytes),
      .in_data_i       (ip_data),
      .in_ipv4_i       (ip_ipv4),
      .in_ipv6_i       (ip_ipv6),
      .in_group_i      (ip_group),
      .in_vlan_i       (ip_vlan),
      .in_tci_i        (ip_tci),
      .out_valid_o     (beat_valid),
      .out_first_o     (beat_first),
      .out_last_o      (beat_last),
      .out_end_o       (beat_end),
      .out_words_o     (beat_words),
      .out_data_o      (beat_data),
      .payload_words_o (payload_words),
      .payload_length_o(payload_length),
      .grh_o           (grh),
      .ipv6_o          (ipv6),
      .other_o         (other),
      .bad_o           (bad),
      .congestion_o    (congestion),
      .checksum_o      (checksum),
      .desc_o          (desc)
  );

  // ---- ICRC, payload and verdict side by side: four cycles each, so that they end together ----
  logic crc_valid, crc_right, crc_right_q;
  logic [31:0] crc;

  icrc u_icrc (
      .clk_i,
      .rst_ni,
      .in_valid_i (beat_valid && beat_words != '0),
      .in_data_i  (beat_data),
      .in_last_i  (beat_end),
      .in_words_i (beat_words),
      .out_valid_o(crc_valid),
      .out_crc_o  (crc)
  );

  // The ICRC may be known before the frame ends: bytes may follow the IP packet.
  assign crc_right = crc_valid ? crc == Residue : crc_right_q;
  always_ff @(posedge clk_i) crc_right_q <= crc_right;

  logic line_valid, line_last;
  logic [6:0] line_bytes;
  logic [511:0] line_data;

  rx_front_align u_align (
      .clk_i,
      .rst_ni,
      .in_valid_i      (beat_valid),
      .in_first_i      (beat_first),
      .in_last_i       (beat_last),
      .in_data_i       (beat_data),
      .payload_words_i (payload_words),
      .payload_length_i(payload_length),
      .grh_i           (grh),
      .ipv6_i          (ipv6),
      .out_valid_o     (line_valid),
      .out_last_o      (line_last),
      .out_bytes_o     (line_bytes),
      .out_data_o      (line_data)
  );

  // The checksum is folded on the way: the sum of a right IPv4 header is all ones (RFC 1071).
  logic [Delay-1:0] end_q, other_q, bad_q, congestion_q;
  logic [16:0] folded_q;
  logic [rnic_pkg::RxDescBits-1:0] desc_q[Delay];
  always_ff @(posedge clk_i) begin
    desc_q[0] <= desc;
    for (int unsigned i = 1; i < Delay; i++) desc_q[i] <= desc_q[i-1];
    end_q    <= {end_q[Delay-2:0], beat_valid && beat_last};
    other_q  <= {other_q[Delay-2:0], other};
    congestion_q <= {congestion_q[Delay-2:0], congestion};
    folded_q <= {1'b0, checksum[15:0]} + {13'd0, checksum[19:16]};
    bad_q    <= {bad_q[Delay-2:1], bad_q[0] || folded_q[15:0] + {15'd0, folded_q[16]} != '1, bad};
    if (!rst_ni) end_q <= '0;
  end

  assign other_valid_o = end_q[Delay-1];
  assign other_o       = other_q[Delay-1];

  // ---- Verdict and buffer ----
  logic verdict, right, good, commit, drop, lost, lost_q, line_ready, desc_ready;
  logic [$clog2(PayloadLines):0] unused_room;
  logic [$clog2(Packets)+1:0] unused_count;
  assign verdict = end_q[Delay-1];
  assign right   = verdict && !other_q[Delay-1] && !bad_q[Delay-1] && crc_right;
  assign good    = right && !congestion_q[Delay-1];
  assign lost    = lost_q || (line_valid && !line_ready);
  assign commit  = good && !lost && desc_ready;
  assign drop    = verdict && !commit;

  always_ff @(posedge clk_i) begin
    lost_q <= lost && !verdict;
    if (!rst_ni) lost_q <= 1'b0;
  end

  packet_buffer #(
      .Width(520),
      .Depth(PayloadLines)
  ) u_payload (
      .clk_i,
      .rst_ni,
      .in_valid_i (line_valid),
      .in_ready_o (line_ready),
      .in_data_i  ({line_last, line_bytes, line_data}),
      .commit_i   (commit),
      .drop_i     (drop),
      .room_o     (unused_room),
      .out_valid_o(payload_valid_o),
      .out_ready_i(payload_ready_i),
      .out_data_o ({payload_data_o.last, payload_data_o.bytes, payload_data_o.data})
  );
  assign payload_data_o.err = 1'b0;

  stream_fifo #(
      .Width(rnic_pkg::RxDescBits),
      .Depth(Packets)
  ) u_descs (
      .clk_i,
      .rst_ni,
      .in_valid_i (commit),
      .in_ready_o (desc_ready),
      .in_data_i  (desc_q[Delay-1]),
      .out_valid_o(desc_valid_o),
      .out_ready_i(desc_ready_i),
      .out_data_o (desc_data_o),
      .count_o    (unused_count)
  );

  always_comb begin
    event_o                                = '0;
    event_o[rnic_pkg::CounterRxFrames]     = verdict;
    event_o[rnic_pkg::CounterRxRoce]       = commit;
    event_o[rnic_pkg::CounterRxNotRoce]    = verdict && other_q[Delay-1];
    event_o[rnic_pkg::CounterRxMalformed]  = verdict && !other_q[Delay-1] && bad_q[Delay-1];
    event_o[rnic_pkg::CounterRxBadIcrc]    = verdict && !other_q[Delay-1] && !bad_q[Delay-1] &&
        !crc_right;
    event_o[rnic_pkg::CounterRxOverflow]   = good && !commit;
    event_o[rnic_pkg::CounterRxCongestion] = right && congestion_q[Delay-1];
  end

  `ASSERT_HOLD(DescHold, desc_valid_o, desc_ready_i, desc_data_o)
  `ASSERT_HOLD(PayloadHold, payload_valid_o, payload_ready_i, payload_data_o)
endmodule

`default_nettype wire
