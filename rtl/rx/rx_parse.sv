`default_nettype none
`include "assert.svh"

/// Reads the headers of each packet and cuts it to its IP length.
///
/// Input: beats of rx_front_strip. Output, a cycle later: the same beats; lanes past the IP packet
/// are zero. out_words_o of a beat are part of the packet (none: trailing bytes of the frame only),
/// out_end_o marks the beat with the last of them.
///
/// From the first beat of a frame on: payload_words_o, where the payload starts, and
/// payload_length_o (0 when the frame is bad). In front of the payload of a datagram (grh_o) goes
/// its GRH, of ten words: payload_words_o is ten less, payload_length_o 40 more, and ipv6_o says of
/// which header it is made. With the beat that has out_last_o: the packet's fields, and the verdict
/// on all but checksum and ICRC. other_o: not RoCEv2, or not for this port. bad_o: RoCEv2, but its
/// lengths or fields are wrong, or its tag has the reserved VID (IEEE 802.1Q 9.6). checksum_o: sum
/// of the IPv4 header, to be folded to ones; IPv6: ones. congestion_o: a congestion notification,
/// unless bad_o.
module rx_parse (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                in_valid_i,
    input  wire logic                in_first_i,
    input  wire logic                in_last_i,
    input  wire logic                in_err_i,
    input  wire logic [6:0]          in_bytes_i,
    input  wire logic [511:0]        in_data_i,
    input  wire logic                in_ipv4_i,
    input  wire logic                in_ipv6_i,
    // To the MAC of the multicast group to which the IP packet goes
    input  wire logic                in_group_i,
    // With a VLAN tag, which says
    input  wire logic                in_vlan_i,
    input  wire logic [15:0]         in_tci_i,
    output logic                     out_valid_o,
    output logic                     out_first_o,
    output logic                     out_last_o,
    output logic                     out_end_o,
    output logic [4:0]               out_words_o,
    output logic [511:0]             out_data_o,
    output logic [4:0]               payload_words_o,
    output logic [12:0]              payload_length_o,
    output logic                     grh_o,
    output logic                     ipv6_o,
    output logic                     other_o,
    output logic                     bad_o,
    output logic                     congestion_o,
    output logic [19:0]              checksum_o,
    output rnic_pkg::rx_desc_t       desc_o
);
  /// The largest path MTU.
  localparam logic [16:0] MaxPayload = 17'd4096;
  /// IP protocol number.
  localparam logic [7:0] Udp = 8'd17;

  // ---- Fields of the first beat: structs have the first byte on the wire at the top ----
  logic [511:0] top_first;
  rnic_pkg::ipv4_header_t ipv4;
  rnic_pkg::ipv6_header_t ipv6;
  rnic_pkg::udp_header_t udp;
  rnic_pkg::bth_t bth;
  logic [191:0] ext;
  logic [127:0] source_ip, dest_ip;
  logic [16:0] total;
  logic known, reth, aeth, atomic, deth, immediate, congestion, roce, fields_right;
  logic original, empty;
  logic [2:0] ext_words;

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) top_first[8*i+:8] = in_data_i[8*(63-i)+:8];
    ipv4 = top_first[511-:160];
    ipv6 = top_first[511-:320];
    udp  = in_ipv6_i ? top_first[191-:64] : top_first[351-:64];
    bth  = in_ipv6_i ? top_first[127-:96] : top_first[287-:96];
    ext  = in_ipv6_i ? {top_first[31:0], 160'd0} : top_first[191:0];
    for (int unsigned i = 0; i < 16; i++) begin
      source_ip[8*i+:8] = ipv6.source[8*(15-i)+:8];
      dest_ip[8*i+:8]   = ipv6.dest[8*(15-i)+:8];
    end
    if (!in_ipv6_i) begin
      source_ip = {in_data_i[8*12+:32], 16'hffff, 80'd0};
      dest_ip   = {in_data_i[8*16+:32], 16'hffff, 80'd0};
    end
  end

  rx_parse_opcode u_opcode (
      .opcode_i   (bth.opcode),
      .known_o    (known),
      .ext_words_o(ext_words),
      .reth_o     (reth),
      .aeth_o     (aeth),
      .atomic_o   (atomic),
      .deth_o     (deth),
      .immediate_o(immediate),
      .original_o (original),
      .empty_o    (empty),
      .congestion_o(congestion)
  );

  assign total = in_ipv6_i ? {1'b0, ipv6.payload_length} + 17'd40 : {1'b0, ipv4.total_length};
  assign roce = udp.dest_port == rnic_pkg::RoceUdpPort[15:0] &&
      ((in_ipv4_i && ipv4.protocol == Udp) || (in_ipv6_i && ipv6.next_header == Udp));

  // No IPv4 options, no fragments; the only BTH version is 0 (9.2.4).
  logic ipv4_right, udp_right, tag_right;
  assign ipv4_right = ipv4.version == 4'd4 && ipv4.ihl == 4'd5 && !ipv4.flags[0] &&
      ipv4.fragment_offset == '0;
  assign udp_right = {1'b0, udp.length} + (in_ipv6_i ? 17'd40 : 17'd20) == total;
  assign tag_right = !in_vlan_i || in_tci_i[11:0] != rnic_pkg::ReservedVid[11:0];
  assign fields_right = known && bth.version == '0 && udp_right && tag_right &&
      (in_ipv6_i ? ipv6.version == 4'd6 : ipv4_right);

  logic [19:0] sum;
  always_comb begin
    sum = '0;
    for (int unsigned i = 0; i < 10; i++) sum = sum + {4'd0, ipv4[16*i+:16]};
  end

  // ---- What is left of the IP packet in this beat ----
  logic [16:0] left, left_q, left_next;
  logic short_frame;
  logic [6:0] part;
  logic [511:0] cut;

  assign left        = in_first_i ? total : left_q;
  assign left_next   = (left > 17'd64) ? left - 17'd64 : '0;
  assign short_frame = {10'd0, in_bytes_i} < left;
  assign part        = short_frame ? in_bytes_i : left[6:0];

  always_comb begin
    for (int unsigned i = 0; i < 64; i++) cut[8*i+:8] = (7'(i) < part) ? in_data_i[8*i+:8] : 8'd0;
  end

  // ---- Registers: the beat, and what the first beats of the frame said ----
  logic valid_q, first_q, last_q, err_q, short_q, end_q, second_q;
  logic [4:0] words_q;
  logic [511:0] data_q;
  logic roce_q, fields_right_q, ipv6_q, reth_q, atomic_q, deth_q, immediate_q, congestion_q;
  logic original_q, empty_q;
  logic [1:0] pad_q;
  logic [4:0] payload_words_q;
  logic [16:0] total_q;
  logic [19:0] sum_q;
  rnic_pkg::rx_desc_t desc_q;

  always_ff @(posedge clk_i) begin
    valid_q <= in_valid_i;
    if (in_valid_i) begin
      first_q  <= in_first_i;
      second_q <= in_first_i && !in_last_i;
      last_q   <= in_last_i;
      err_q    <= in_err_i;
      short_q  <= short_frame;
      end_q    <= left <= 17'd64 || in_last_i;
      words_q  <= part[6:2] + 5'(part[1:0] != '0);
      data_q   <= cut;
      left_q   <= left_next;
    end
    if (in_valid_i && in_first_i) begin
      roce_q             <= roce;
      fields_right_q     <= fields_right;
      ipv6_q             <= in_ipv6_i;
      reth_q             <= reth;
      atomic_q           <= atomic;
      deth_q             <= deth;
      immediate_q        <= immediate;
      congestion_q       <= congestion;
      original_q         <= original;
      empty_q            <= empty;
      pad_q              <= bth.pad_count;
      payload_words_q    <= (in_ipv6_i ? 5'd15 : 5'd10) + {2'd0, ext_words};
      total_q            <= total;
      sum_q              <= in_ipv6_i ? 20'h0ffff : sum;
      desc_q.opcode      <= bth.opcode;
      desc_q.parked      <= 1'b0;
      desc_q.l3_ok       <= 1'b0;
      desc_q.l4_ok       <= 1'b0;
      desc_q.multicast   <= in_group_i && deth && bth.dest_qpn == rnic_pkg::MulticastQpn[23:0];
      desc_q.solicited   <= bth.solicited;
      desc_q.ack_req     <= bth.ack_req;
      desc_q.pkey        <= bth.pkey;
      desc_q.dest_qpn    <= bth.dest_qpn;
      desc_q.psn         <= bth.psn;
      desc_q.va          <= (reth || atomic) ? ext[191:128] : '0;
      desc_q.rkey        <= (reth || atomic) ? ext[127:96] : '0;
      desc_q.dma_length  <= reth ? ext[95:64] : '0;
      desc_q.swap_add    <= atomic ? ext[95:32] : '0;
      desc_q.compare     <= atomic ? {ext[31:0], 32'd0} : '0;
      desc_q.immediate   <= !immediate ? '0 : reth ? ext[63:32] :
          deth ? ext[127:96] : ext[191:160];
      desc_q.qkey        <= deth ? ext[191:160] : '0;
      desc_q.source_qpn  <= deth ? ext[151:128] : '0;
      desc_q.syndrome    <= aeth ? ext[191:184] : '0;
      desc_q.msn         <= aeth ? ext[183:160] : '0;
      desc_q.ipv6        <= in_ipv6_i;
      desc_q.vlan        <= in_vlan_i;
      desc_q.vlan_tci    <= in_vlan_i ? in_tci_i : '0;
      // Known one cycle later; desc_o has it.
      desc_q.payload_length <= '0;
      desc_q.source_ip   <= source_ip;
      desc_q.dest_ip     <= dest_ip;
    end
    // Behind an IPv6 header only the first word of a RETH, AtomicETH or DETH is in the first beat,
    // behind an IPv4 header all but the last word of an AtomicETH.
    if (in_valid_i && second_q && ipv6_q && reth_q) begin
      {desc_q.va[31:0], desc_q.rkey, desc_q.dma_length} <= top_first[511-:96];
      desc_q.immediate <= immediate_q ? top_first[415-:32] : '0;
    end
    if (in_valid_i && second_q && ipv6_q && deth_q) begin
      desc_q.source_qpn <= top_first[503-:24];
      desc_q.immediate  <= immediate_q ? top_first[479-:32] : '0;
    end
    if (in_valid_i && second_q && atomic_q) begin
      if (ipv6_q) begin
        {desc_q.va[31:0], desc_q.rkey, desc_q.swap_add, desc_q.compare} <= top_first[511-:192];
      end else begin
        desc_q.compare[31:0] <= top_first[511-:32];
      end
    end
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      second_q <= 1'b0;
    end
  end

  // ---- Lengths: headers, ICRC and padding must fit, and the rest is payload, where there may be
  // some. An AtomicAckETH is a header: an atomic ACK must have room for all of it. ----
  logic [17:0] payload;
  logic lengths_right, unused_bits;
  assign payload = {1'b0, total_q} - {11'd0, payload_words_q, 2'd0} - 18'd4 - {16'd0, pad_q};
  assign lengths_right = total_q[1:0] == '0 && !payload[17] && payload[16:0] <= MaxPayload &&
      (!empty_q || payload[12:0] == '0) && (!original_q || payload[12:3] != '0);

  assign out_valid_o      = valid_q;
  assign out_first_o      = first_q;
  assign out_last_o       = last_q;
  assign out_end_o        = end_q;
  assign out_words_o      = words_q;
  assign out_data_o       = data_q;
  assign grh_o            = deth_q;
  assign ipv6_o           = ipv6_q;
  assign payload_words_o  = payload_words_q - (deth_q ? 5'd10 : 5'd0);
  always_comb begin
    payload_length_o = '0;
    if (roce_q && fields_right_q && lengths_right) begin
      payload_length_o = payload[12:0] + (deth_q ? rnic_pkg::GrhBytes[12:0] : 13'd0);
    end
  end
  assign other_o          = !roce_q;
  assign bad_o            = !fields_right_q || !lengths_right || short_q || err_q;
  assign congestion_o     = congestion_q;
  assign checksum_o       = sum_q;

  always_comb begin
    desc_o                = desc_q;
    desc_o.payload_length = payload_length_o;
  end
  assign unused_bits = (^bth) ^ (^udp) ^ (^ipv4) ^ (^ipv6) ^ (^desc_q.payload_length);
endmodule

`default_nettype wire
