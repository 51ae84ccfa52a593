`default_nettype none
`include "assert.svh"

/// The checksums of Ethernet frames: IPv4 header, TCP, UDP (host interface, Ethernet; RFC 1071).
///
/// Takes a line of a frame in any cycle, byte 0 of the frame in lane 0 of its first line; what is
/// past the last byte of the last line means nothing. For each frame, in order, out_valid_o is a
/// pulse 7 cycles after its last line, with what both directions want: out_l3_ok_o and out_l4_ok_o,
/// the checksums in the frame are there and right; out_sums_o, those that belong into it. A frame
/// whose last line comes with in_drop_i gives nothing.
///
/// All is summed as 16-bit words of lanes, low byte first: the sum of RFC 1071 is the same in
/// either order of bytes, once each word is turned.
module eth_checksum (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             in_valid_i,
    input  wire logic [511:0]     in_data_i,
    input  wire logic [6:0]       in_bytes_i,
    input  wire logic             in_last_i,
    input  wire logic             in_drop_i,
    output logic                  out_valid_o,
    output logic                  out_l3_ok_o,
    output logic                  out_l4_ok_o,
    output rnic_pkg::ip_sums_t    out_sums_o
);
  /// 16-bit words of a line, and of the Ethernet header.
  localparam int unsigned Words = 32;
  localparam int unsigned IpWord = rnic_pkg::EthHeaderBytes / 2;
  localparam int unsigned TagWords = 2;
  /// What is known of a frame behind its last line: l3, l4, udp, tagged, protocol, length of the
  /// segment, word of its checksum, both checksums that are in the frame.
  localparam int unsigned InfoBits = 4 + 8 + 16 + 6 + 16 + 16;

  `include "swap16.svh"
  // One's complement: what is carried out comes in again at the bottom. Of at most 2^16 + 2^2.
  function automatic logic [15:0] fold(input logic [16:0] sum);
    fold = sum[15:0] + {15'd0, sum[16]};
  endfunction
  function automatic logic [17:0] sum_of_4(input logic [63:0] words);
    sum_of_4 = {2'd0, words[15:0]} + {2'd0, words[31:16]} + {2'd0, words[47:32]} +
               {2'd0, words[63:48]};
  endfunction

  // ---- a: a line is here, and what the first line of its frame says ----
  logic head_ip, head_l4, head_tagged, head_ipv4, head_udp;
  logic [7:0] head_protocol;
  logic [6:0] head_l4_at;
  logic [15:0] head_l4_length;
  logic [16:0] head_end, rest;
  eth_ip_header u_header (
      .line_i     (in_data_i),
      .ip_o       (head_ip),
      .l4_o       (head_l4),
      .tagged_o   (head_tagged),
      .ipv4_o     (head_ipv4),
      .udp_o      (head_udp),
      .protocol_o (head_protocol),
      .l4_at_o    (head_l4_at),
      .l4_length_o(head_l4_length),
      .end_o      (head_end)
  );

  // a_rest_q: bytes from the beginning of this line to the end of the IP packet. a_from_q: lane in
  // which the segment begins, above 63 if in a later line.
  logic first_q, second_q, a_valid_q, a_first_q, a_second_q, a_last_q, a_drop_q;
  logic a_ip_q, a_l4_q, a_tagged_q, a_ipv4_q, a_udp_q;
  logic [7:0] a_protocol_q;
  logic [6:0] a_bytes_q, a_l4_at_q, a_from_q, second_from;
  logic [15:0] a_length_q;
  logic [16:0] a_rest_q;
  logic [511:0] a_data_q;
  assign rest        = first_q ? head_end : (a_rest_q > 17'd64) ? a_rest_q - 17'd64 : '0;
  assign second_from = a_l4_at_q[6] ? {1'b0, a_l4_at_q[5:0]} : '0;

  always_ff @(posedge clk_i) begin
    a_valid_q <= in_valid_i;
    if (in_valid_i) begin
      first_q    <= in_last_i;
      second_q   <= first_q && !in_last_i;
      a_data_q   <= in_data_i;
      a_bytes_q  <= in_bytes_i;
      a_last_q   <= in_last_i;
      a_drop_q   <= in_drop_i;
      a_first_q  <= first_q;
      a_second_q <= second_q;
      a_rest_q   <= rest;
      a_from_q   <= first_q ? head_l4_at : second_q ? second_from : '0;
      if (first_q) begin
        a_ip_q       <= head_ip;
        a_l4_q       <= head_l4;
        a_tagged_q   <= head_tagged;
        a_ipv4_q     <= head_ipv4;
        a_udp_q      <= head_udp;
        a_protocol_q <= head_protocol;
        a_l4_at_q    <= head_l4_at;
        a_length_q   <= head_l4_length;
      end
    end
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      first_q   <= 1'b1;
      second_q  <= 1'b0;
    end
  end

  // ---- b: sums of four words. The pseudo header takes the addresses from the first line. ----
  logic [511:0] l3_lanes, l4_lanes;
  logic fits, takes_l3, takes_addresses, takes_low, takes_high;
  assign fits = a_rest_q <= {10'd0, a_bytes_q};

  always_comb begin : lanes
    for (int unsigned w = 0; w < Words; w++) begin
      takes_l3 = (a_first_q && w >= (a_tagged_q ? IpWord + TagWords : IpWord) &&
                  2 * w < 32'(a_l4_at_q)) || (a_second_q && 2 * w + 64 < 32'(a_l4_at_q));
      if (a_ipv4_q) begin
        takes_addresses = a_first_q && w >= (a_tagged_q ? IpWord + TagWords + 6 : IpWord + 6) &&
                          w < (a_tagged_q ? IpWord + TagWords + 10 : IpWord + 10);
      end else begin
        takes_addresses = a_first_q && w >= (a_tagged_q ? IpWord + TagWords + 4 : IpWord + 4) &&
                          w < (a_tagged_q ? IpWord + TagWords + 20 : IpWord + 20);
      end
      takes_low  = takes_addresses ||
                   (2 * w >= 32'(a_from_q) && 2 * w < 32'(a_rest_q));
      takes_high = takes_addresses ||
                   (2 * w >= 32'(a_from_q) && 2 * w + 1 < 32'(a_rest_q));
      l3_lanes[16*w+:16] = takes_l3 ? a_data_q[16*w+:16] : '0;
      l4_lanes[16*w+:16] = {takes_high ? a_data_q[16*w+8+:8] : 8'd0,
                            takes_low ? a_data_q[16*w+:8] : 8'd0};
    end
  end

  // Words of the segment's checksum and of the length in a UDP header, counted from the first line.
  logic [6:0] l4_sum_at, udp_length_at;
  logic [5:0] b_word_q;
  assign l4_sum_at     = a_l4_at_q + (a_udp_q ? 7'd6 : 7'd16);
  assign udp_length_at = a_l4_at_q + 7'd4;

  logic b_valid_q, b_first_q, b_end_q, b_l3_q, b_l4_q, b_udp_q, b_tagged_q;
  logic [7:0] b_protocol_q;
  logic [15:0] b_length_q, b_l3_field_q, b_l4_field_q, b_udp_length_q;
  logic [17:0] b_l3_sum_q[8], b_l4_sum_q[8];
  always_ff @(posedge clk_i) begin
    b_valid_q <= a_valid_q;
    b_end_q   <= a_valid_q && a_last_q && !a_drop_q;
    if (a_valid_q) begin
      for (int unsigned i = 0; i < 8; i++) begin
        b_l3_sum_q[i] <= sum_of_4(l3_lanes[64*i+:64]);
        b_l4_sum_q[i] <= sum_of_4(l4_lanes[64*i+:64]);
      end
      b_first_q    <= a_first_q;
      b_l3_q       <= a_ip_q && a_ipv4_q && fits;
      b_l4_q       <= a_l4_q && fits;
      b_udp_q      <= a_udp_q;
      b_tagged_q   <= a_tagged_q;
      b_protocol_q <= a_protocol_q;
      b_length_q   <= a_length_q;
      b_word_q     <= l4_sum_at[6:1];
      if (a_first_q) begin
        b_l3_field_q <= a_tagged_q ? a_data_q[16*(IpWord+TagWords+5)+:16]
                                   : a_data_q[16*(IpWord+5)+:16];
      end
      if (l4_sum_at[6] ? a_second_q : a_first_q) begin
        b_l4_field_q <= a_data_q[{l4_sum_at[5:1], 4'd0}+:16];
      end
      if (udp_length_at[6] ? a_second_q : a_first_q) begin
        b_udp_length_q <= a_data_q[{udp_length_at[5:1], 4'd0}+:16];
      end
    end
    if (!rst_ni) begin
      b_valid_q <= 1'b0;
      b_end_q   <= 1'b0;
    end
  end

  // ---- c: sums of half a line ----
  logic c_valid_q, c_first_q, c_end_q, udp_length_ok;
  logic [19:0] c_l3_sum_q[2], c_l4_sum_q[2];
  logic [InfoBits-1:0] c_info_q, d_info_q, e_info_q, f_info_q;
  assign udp_length_ok = !b_udp_q || swap16(b_udp_length_q) == b_length_q;
  always_ff @(posedge clk_i) begin
    c_valid_q <= b_valid_q;
    c_end_q   <= b_end_q;
    if (b_valid_q) begin
      for (int unsigned i = 0; i < 2; i++) begin
        c_l3_sum_q[i] <= {2'd0, b_l3_sum_q[4*i]} + {2'd0, b_l3_sum_q[4*i+1]} +
                         {2'd0, b_l3_sum_q[4*i+2]} + {2'd0, b_l3_sum_q[4*i+3]};
        c_l4_sum_q[i] <= {2'd0, b_l4_sum_q[4*i]} + {2'd0, b_l4_sum_q[4*i+1]} +
                         {2'd0, b_l4_sum_q[4*i+2]} + {2'd0, b_l4_sum_q[4*i+3]};
      end
      c_first_q <= b_first_q;
      c_info_q  <= {b_l3_q, b_l4_q && udp_length_ok, b_udp_q, b_tagged_q, b_protocol_q, b_length_q,
                    b_word_q, b_l3_field_q, b_l4_field_q};
    end
    if (!rst_ni) begin
      c_valid_q <= 1'b0;
      c_end_q   <= 1'b0;
    end
  end

  // ---- d: sums of all lines so far, of at most 4096 bytes ----
  logic d_end_q;
  logic [27:0] d_l3_sum_q, d_l4_sum_q;
  always_ff @(posedge clk_i) begin
    d_end_q <= c_end_q;
    if (c_valid_q) begin
      d_l3_sum_q <= (c_first_q ? '0 : d_l3_sum_q) + {8'd0, c_l3_sum_q[0]} + {8'd0, c_l3_sum_q[1]};
      d_l4_sum_q <= (c_first_q ? '0 : d_l4_sum_q) + {8'd0, c_l4_sum_q[0]} + {8'd0, c_l4_sum_q[1]};
      d_info_q   <= c_info_q;
    end
    if (!rst_ni) d_end_q <= 1'b0;
  end

  // ---- e: protocol and length of the pseudo header; f: sixteen bits ----
  logic e_end_q, f_end_q;
  logic [7:0] d_protocol;
  logic [15:0] d_length, f_l3_sum_q, f_l4_sum_q;
  logic [17:0] e_l3_sum_q, e_l4_sum_q;
  assign {d_protocol, d_length} = d_info_q[InfoBits-5-:24];
  always_ff @(posedge clk_i) begin
    e_end_q    <= d_end_q;
    e_info_q   <= d_info_q;
    e_l3_sum_q <= {2'd0, d_l3_sum_q[15:0]} + {6'd0, d_l3_sum_q[27:16]};
    e_l4_sum_q <= {2'd0, d_l4_sum_q[15:0]} + {6'd0, d_l4_sum_q[27:16]} +
                  {2'd0, d_protocol, 8'd0} + {2'd0, swap16(d_length)};
    f_end_q    <= e_end_q;
    f_info_q   <= e_info_q;
    f_l3_sum_q <= fold({1'b0, e_l3_sum_q[15:0]} + {15'd0, e_l3_sum_q[17:16]});
    f_l4_sum_q <= fold({1'b0, e_l4_sum_q[15:0]} + {15'd0, e_l4_sum_q[17:16]});
    if (!rst_ni) begin
      e_end_q <= 1'b0;
      f_end_q <= 1'b0;
    end
  end

  // ---- Out. Without the checksum that is in it a sum is not 0, so it comes out as it is. ----
  logic l3, l4, udp, with_tag;
  logic [5:0] word;
  logic [15:0] l3_field, l4_field, l3_value, l4_value;
  assign {l3, l4, udp, with_tag} = f_info_q[InfoBits-1-:4];
  assign {word, l3_field, l4_field} = f_info_q[37:0];
  assign l3_value = ~fold({1'b0, f_l3_sum_q} + {1'b0, ~l3_field});
  assign l4_value = ~fold({1'b0, f_l4_sum_q} + {1'b0, ~l4_field});

  always_ff @(posedge clk_i) begin
    out_valid_o         <= f_end_q;
    out_l3_ok_o         <= l3 && f_l3_sum_q == '1;
    out_l4_ok_o         <= l4 && f_l4_sum_q == '1 && !(udp && l4_field == '0);
    out_sums_o.l3       <= l3;
    out_sums_o.l3_word  <= with_tag ? 5'(IpWord + TagWords + 5) : 5'(IpWord + 5);
    out_sums_o.l3_value <= l3_value;
    out_sums_o.l4       <= l4;
    out_sums_o.l4_word  <= word;
    // RFC 768: 0 would say that there is none.
    out_sums_o.l4_value <= (udp && l4_value == '0) ? '1 : l4_value;
    if (!rst_ni) out_valid_o <= 1'b0;
  end

  logic unused_bits;
  assign unused_bits = ^{l4_sum_at[0], udp_length_at[0], f_info_q[InfoBits-5-:24]};

  `ASSERT(SegmentInTwoLines, !a_valid_q || !a_l4_q || a_l4_at_q <= 7'd78)
endmodule

`default_nettype wire
