`default_nettype none
`include "assert.svh"

/// Takes the Ethernet header off: frames in, the same frames from byte 14 on out, or from byte 18
/// on when they have a VLAN tag (IEEE 802.1Q 9), with what the header said.
///
/// Every frame gives at least one beat (bytes 0 for one that ends with or inside its header) and
/// exactly one with last. bytes counts what the frame really has; lanes past it are zero. ipv4_o
/// and ipv6_o, with the first beat: the frame is for this port, or for the multicast group to which
/// its IP packet goes (group_o), and its EtherType, behind the tag if it has one, is that of IPv4
/// or IPv6: a second tag is neither. The MAC of a group has the last bits of its address (RFC 1112
/// 6.4, RFC 2464 7). vlan_o: it has a tag, and tci_o is what the tag says. A frame that begins
/// while enable_i is low is ignored altogether.
module rx_front_strip (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic [47:0]             port_mac_i,
    input  wire logic                    enable_i,
    input  wire logic                    in_valid_i,
    input  wire rnic_pkg::frame_beat_t   in_data_i,
    output logic                         out_valid_o,
    output logic                         out_first_o,
    output logic                         out_last_o,
    output logic                         out_err_o,
    output logic [6:0]                   out_bytes_o,
    output logic [511:0]                 out_data_o,
    output logic                         out_ipv4_o,
    output logic                         out_ipv6_o,
    output logic                         out_group_o,
    output logic                         out_vlan_o,
    output logic [15:0]                  out_tci_o
);
  localparam logic [6:0] EthBytes = rnic_pkg::EthHeaderBytes[6:0];
  localparam logic [6:0] TaggedBytes = EthBytes + rnic_pkg::VlanTagBytes[6:0];

  // ---- The line that comes in ----
  // first_q: it begins a frame. skip_q: the frame that is coming in is ignored.
  logic first_q, skip_q, skip, take, ours, is_ipv4, is_ipv6, ipv4_group, ipv6_group, has_tag;
  logic [511:0] in_lanes;
  // From byte 12 on, the tag left out
  logic [335:0] lanes;
  logic [15:0] ethertype;
  logic [31:0] ipv4_dest, ipv6_last;
  rnic_pkg::eth_header_t eth;

  assign skip = first_q ? !enable_i : skip_q;
  assign take = in_valid_i && !skip;
  assign ours = eth.dest == port_mac_i;

  // Nothing but zeros behind the last byte.
  assign in_lanes = in_data_i.data & ~({512{1'b1}} << {in_data_i.bytes, 3'b0});
  always_comb begin
    for (int unsigned i = 0; i < 14; i++) eth[8*(13-i)+:8] = in_lanes[8*i+:8];
    ethertype = {lanes[7:0], lanes[15:8]};
    for (int unsigned i = 0; i < 4; i++) begin
      ipv4_dest[8*(3-i)+:8] = lanes[8*(18+i)+:8];
      ipv6_last[8*(3-i)+:8] = lanes[8*(38+i)+:8];
    end
  end
  assign has_tag    = eth.ethertype == rnic_pkg::EtherTypeVlan[15:0];
  assign lanes      = has_tag ? in_lanes[8*16+:336] : in_lanes[8*12+:336];
  assign is_ipv4    = ethertype == rnic_pkg::EtherTypeIpv4[15:0];
  assign is_ipv6    = ethertype == rnic_pkg::EtherTypeIpv6[15:0];
  assign ipv4_group = is_ipv4 && ipv4_dest[31:28] == 4'he &&
      eth.dest == {24'h01005e, 1'b0, ipv4_dest[22:0]};
  assign ipv6_group = is_ipv6 && lanes[8*26+:8] == 8'hff && eth.dest == {16'h3333, ipv6_last};

  // ---- The line before it (held_) ----
  // Goes out when its end is known: with the next line, or at once when it is the last.
  logic held_valid_q, held_first_q, held_last_q, held_err_q, held_ipv4_q, held_ipv6_q,
      held_group_q, held_vlan_q;
  logic send, finishes;
  logic [6:0] held_bytes_q, header;
  logic [15:0] held_tci_q;
  logic unused_bits;
  logic [511:0] held_q;

  // The line that comes in has nothing beyond the bytes that complete the one before.
  assign header   = held_vlan_q ? TaggedBytes : EthBytes;
  assign finishes = take && !first_q && in_data_i.last && in_data_i.bytes <= header;
  assign send     = held_valid_q && (held_last_q || take);

  always_ff @(posedge clk_i) begin
    if (in_valid_i) begin
      first_q <= in_data_i.last;
      skip_q  <= skip;
    end
    if (take) begin
      held_first_q <= first_q;
      held_last_q  <= in_data_i.last;
      held_err_q   <= in_data_i.err;
      held_bytes_q <= in_data_i.bytes;
      held_q       <= in_lanes;
      if (first_q) begin
        held_ipv4_q  <= (ours && is_ipv4) || ipv4_group;
        held_ipv6_q  <= (ours && is_ipv6) || ipv6_group;
        held_group_q <= ipv4_group || ipv6_group;
        held_vlan_q  <= has_tag;
        held_tci_q   <= {in_lanes[8*14+:8], in_lanes[8*15+:8]};
      end
    end
    held_valid_q <= take ? !finishes : (held_valid_q && !held_last_q);
    if (!rst_ni) begin
      first_q      <= 1'b1;
      skip_q       <= 1'b0;
      held_valid_q <= 1'b0;
    end
  end

  logic [511:0] data;
  logic [6:0] bytes;
  logic [143:0] next;
  assign next = held_last_q ? 144'd0 : in_lanes[143:0];
  assign data = held_vlan_q ? {next, held_q[511:144]} : {next[111:0], held_q[511:112]};
  always_comb begin
    bytes = 7'd64;
    if (held_last_q) bytes = (held_bytes_q > header) ? held_bytes_q - header : '0;
    else if (finishes) bytes = 7'd64 - header + in_data_i.bytes;
  end
  assign unused_bits = ^{held_q[111:0], eth.source, ipv4_dest[27:23], lanes};

  always_ff @(posedge clk_i) begin
    out_valid_o <= send;
    if (send) begin
      out_first_o <= held_first_q;
      out_last_o  <= held_last_q || finishes;
      out_err_o   <= held_last_q ? held_err_q : in_data_i.err;
      out_bytes_o <= bytes;
      out_data_o  <= data;
      out_ipv4_o  <= held_ipv4_q;
      out_ipv6_o  <= held_ipv6_q;
      out_group_o <= held_group_q;
      out_vlan_o  <= held_vlan_q;
      out_tci_o   <= held_tci_q;
    end
    if (!rst_ni) out_valid_o <= 1'b0;
  end

  `ASSERT(WholeLines, !in_valid_i || in_data_i.last || in_data_i.bytes == 7'd64)
  `ASSERT(LineBytes, !in_valid_i || (in_data_i.bytes != '0 && in_data_i.bytes <= 7'd64))
endmodule

`default_nettype wire
