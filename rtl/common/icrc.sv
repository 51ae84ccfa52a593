`default_nettype none
`include "assert.svh"

/// ICRC of a RoCEv2 packet, 64 bytes a cycle (InfiniBand specification 7.8.1, annex A17.3.3).
///
/// The message is the IP packet from the first byte of its IP header, which is lane 0 of the first
/// beat; only the last beat is partial (in_words_i 32-bit words: the covered part of every RoCE
/// packet is a multiple of 4 bytes). Lanes past the last word must be zero. The fields that change
/// on the way are masked here, so the message must reach to the end of the BTH. No back-pressure: a
/// beat in every cycle is fine.
///
/// out_valid_o and out_crc_o come four cycles after the last beat: out_crc_o[7:0] is the first ICRC
/// byte on the wire. When the message includes a right ICRC, out_crc_o is the residue 32'h2144df1c.
///
/// Zero lanes after the last word are counted like data by the fixed block matrix; the register is
/// then wound back over them.
module icrc (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic         in_valid_i,
    input  wire logic [511:0] in_data_i,
    input  wire logic         in_last_i,
    input  wire logic [4:0]   in_words_i,
    output logic              out_valid_o,
    output logic [31:0]       out_crc_o
);
  /// Register after the eight bytes of ones that stand for the link header (A17.3.3).
  localparam logic [31:0] Start = 32'hdebb20e3;

  logic first_q, ipv6;
  logic [511:0] masked;

  // Fields that count as ones. IPv4: type of service, time to live, checksum. IPv6: traffic class,
  // flow label, hop limit. Both: UDP checksum, and the BTH byte with FECN and BECN.
  assign ipv6 = in_data_i[7:4] == 4'd6;
  always_comb begin
    masked = in_data_i;
    if (first_q && ipv6) begin
      masked[3:0]      = '1;
      masked[31:8]     = '1;
      masked[8*7+:8]   = '1;
      masked[8*46+:16] = '1;
      masked[8*52+:8]  = '1;
    end else if (first_q) begin
      masked[8*1+:8]   = '1;
      masked[8*8+:8]   = '1;
      masked[8*10+:16] = '1;
      masked[8*26+:16] = '1;
      masked[8*32+:8]  = '1;
    end
  end

  logic [255:0] partial_q;
  logic valid1_q, first1_q, last1_q, last2_q, last3_q, last4_q;
  logic [3:0] rewind1_q, rewind2_q;
  logic [1:0] rewind3_q;
  logic [31:0] block, state_q, word3_q, word4_q;

  // The register after the block is the sum of what its groups and the register before it
  // contribute.
  always_comb begin
    block = '0;
    for (int unsigned i = 0; i < 8; i++) block = block ^ partial_q[32*i+:32];
  end

  `include "icrc_matrix.svh"

  function automatic logic [31:0] rewind12(input logic [31:0] value, input logic [1:0] words);
    rewind12 = words[0] ? icrc_rewind4(value) : value;
    rewind12 = words[1] ? icrc_rewind8(rewind12) : rewind12;
  endfunction
  function automatic logic [31:0] rewind48(input logic [31:0] value, input logic [1:0] words);
    rewind48 = words[0] ? icrc_rewind16(value) : value;
    rewind48 = words[1] ? icrc_rewind32(rewind48) : rewind48;
  endfunction

  always_ff @(posedge clk_i) begin
    if (in_valid_i) begin
      partial_q <= icrc_block(masked);
      first1_q  <= first_q;
      rewind1_q <= 4'd0 - in_words_i[3:0];
      first_q   <= in_last_i;
    end
    if (valid1_q) state_q <= block ^ icrc_advance(first1_q ? Start : state_q);
    if (last2_q) word3_q <= rewind12(state_q, rewind2_q[1:0]);
    if (last3_q) word4_q <= rewind48(word3_q, rewind3_q);
    rewind2_q <= rewind1_q;
    rewind3_q <= rewind2_q[3:2];
    valid1_q  <= in_valid_i;
    last1_q   <= in_valid_i && in_last_i;
    last2_q   <= last1_q;
    last3_q   <= last2_q;
    last4_q   <= last3_q;
    if (!rst_ni) begin
      first_q  <= 1'b1;
      valid1_q <= 1'b0;
      last1_q  <= 1'b0;
      last2_q  <= 1'b0;
      last3_q  <= 1'b0;
      last4_q  <= 1'b0;
    end
  end

  assign out_valid_o = last4_q;
  assign out_crc_o   = ~word4_q;

  logic unused_words;
  assign unused_words = in_words_i[4];

  `ASSERT(WordsInRange, !in_valid_i || (in_words_i != '0 && in_words_i <= 5'd16))
  `ASSERT(WholeBlocks, !in_valid_i || in_last_i || in_words_i == 5'd16)
endmodule

`default_nettype wire
