`default_nettype none

/// What the first 64 bytes of an Ethernet frame say of its IP packet, for its checksums (host
/// interface, Ethernet). Combinational.
///
/// ip_o, l4_o: there is an IP header, and a TCP or UDP segment behind it, as far as these bytes
/// tell; whether the packet ends within the frame, at byte end_o, and whether the length in the UDP
/// header fits, is for others to see. Only with ip_o the rest means something: tagged_o an IEEE
/// 802.1Q tag, ipv4_o, udp_o, protocol_o, and of what the IP header leaves l4_at_o, its first byte,
/// and l4_length_o.
module eth_ip_header (
    input  wire logic [511:0] line_i,
    output logic              ip_o,
    output logic              l4_o,
    output logic              tagged_o,
    output logic              ipv4_o,
    output logic              udp_o,
    output logic [7:0]        protocol_o,
    output logic [6:0]        l4_at_o,
    output logic [15:0]       l4_length_o,
    output logic [16:0]       end_o
);
  /// IP protocol numbers.
  localparam logic [7:0] Tcp = 8'd6, Udp = 8'd17;
  /// Bytes of a TCP and a UDP header.
  localparam logic [15:0] TcpBytes = 16'd20, UdpBytes = 16'd8;
  localparam logic [6:0] Ipv6Bytes = 7'd40;
  localparam int unsigned At = 8 * rnic_pkg::EthHeaderBytes;

  `include "swap16.svh"

  // The headers, first byte at the top, as structs have it.
  logic [6:0] ip_at, head_bytes;
  logic [15:0] ether_type, behind_tag, ipv6_length, ipv4_length;
  logic [319:0] lanes, top_first;
  rnic_pkg::ipv4_header_t ipv4;
  rnic_pkg::ipv6_header_t ipv6;
  logic is_ipv4, is_ipv6, ipv4_ok, is_tcp, is_udp, fragment;

  assign ether_type = swap16(line_i[At-16+:16]);
  assign behind_tag = swap16(line_i[At+16+:16]);
  assign tagged_o   = ether_type == rnic_pkg::EtherTypeVlan[15:0];
  assign ip_at      = rnic_pkg::EthHeaderBytes[6:0] + (tagged_o ? 7'd4 : 7'd0);
  assign lanes      = tagged_o ? line_i[At+32+:320] : line_i[At+:320];
  always_comb begin : order
    for (int unsigned i = 0; i < 40; i++) top_first[8*i+:8] = lanes[8*(39-i)+:8];
  end
  assign ipv4 = top_first[319:160];
  assign ipv6 = top_first;

  assign is_ipv4 = (tagged_o ? behind_tag : ether_type) == rnic_pkg::EtherTypeIpv4[15:0];
  assign is_ipv6 = (tagged_o ? behind_tag : ether_type) == rnic_pkg::EtherTypeIpv6[15:0];
  assign ipv4_ok = ipv4.version == 4'd4 && ipv4.ihl >= 4'd5 &&
                   ipv4.total_length >= {10'd0, ipv4.ihl, 2'b00};
  assign ip_o    = is_ipv4 ? ipv4_ok : is_ipv6 && ipv6.version == 4'd6;
  assign ipv4_o  = is_ipv4;

  assign head_bytes  = is_ipv4 ? {1'b0, ipv4.ihl, 2'b00} : Ipv6Bytes;
  assign ipv4_length = ipv4.total_length - {10'd0, ipv4.ihl, 2'b00};
  assign ipv6_length = ipv6.payload_length;
  assign l4_at_o     = ip_at + head_bytes;
  assign l4_length_o = is_ipv4 ? ipv4_length : ipv6_length;
  assign end_o       = {10'd0, l4_at_o} + {1'b0, l4_length_o};

  // Don't fragment is bit 1 of the flags; more fragments bit 0.
  assign fragment   = is_ipv4 && (ipv4.flags[0] || ipv4.fragment_offset != '0);
  assign protocol_o = is_ipv4 ? ipv4.protocol : ipv6.next_header;
  assign is_tcp     = protocol_o == Tcp && l4_length_o >= TcpBytes;
  assign is_udp     = protocol_o == Udp && l4_length_o >= UdpBytes;
  assign udp_o      = protocol_o == Udp;
  assign l4_o       = ip_o && !fragment && (is_tcp || is_udp);

  logic unused_bits;
  assign unused_bits = ^{line_i, ipv4, ipv6};
endmodule

`default_nettype wire
