`default_nettype none

/// Where a packet goes: the path of its QP, or for a datagram what its WQE says, from an address of
/// the QP. Combinational.
///
/// The source address decides between IPv4 and IPv6: an IPv4 address is ::ffff:a.b.c.d (RFC 4291
/// 2.5.5.2). The UDP source port of a datagram comes from its flow label (annex A17.4.3.1 leaves it
/// to the sender): so packets of one flow take one way through the network.
module tx_route (
    input  wire rnic_pkg::tx_desc_t desc_i,
    input  wire rnic_pkg::path_t    path_i,
    output rnic_pkg::path_t         path_o
);
  localparam logic [95:0] Ipv4Prefix = {16'hFFFF, 80'd0};

  rnic_pkg::wqe_address_t address;
  logic [127:0] source_ip;
  assign address   = desc_i.address;
  assign source_ip = address.second_source ? path_i.dest_ip : path_i.source_ip;

  always_comb begin
    path_o = path_i;
    if (desc_i.opcode[6:5] == rnic_pkg::QpTypeUd) begin
      path_o.ipv6            = source_ip[95:0] != Ipv4Prefix;
      path_o.dest_qpn        = address.dest_qpn;
      path_o.traffic_class   = address.traffic_class;
      path_o.hop_limit       = address.hop_limit;
      path_o.udp_source_port = {2'b11, address.flow_label[13:0] ^
                                {8'd0, address.flow_label[19:14]}};
      path_o.flow_label      = address.flow_label[19:0];
      path_o.dest_mac        = address.dest_mac;
      path_o.vlan            = address.vlan;
      path_o.vlan_id         = address.vlan_id;
      path_o.pcp             = address.pcp;
      path_o.source_ip       = source_ip;
      path_o.dest_ip         = address.dest_ip;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{desc_i, address};
endmodule

`default_nettype wire
