`default_nettype none

/// Checks that every packet must pass before its opcode matters (InfiniBand specification 9.6.1),
/// one cycle after its inputs are stable. At most one output is set.
///
/// The QP must exist with all 24 bits of the QPN, the packet must come from the QP's peer and be
/// for the address that the QP uses (annex A17: the IP addresses stand for the GIDs), in the VLAN
/// of its path (no tag and a priority tag: in none), the P_Key must match (10.9.3: the low 15 bits
/// are equal and not zero, and one side at least is a full member), and the QP must be of the
/// packet's transport service, in a state that takes such packets: RTS and SQD, for requests RTR
/// too. In SQE only the send side has stopped, and the receive side is in RTS. A datagram may come
/// from anywhere and any VLAN, to either address of its QP or to a group that the QP is attached
/// to, with the QP's Q_Key (10.2.5).
/// An Ethernet frame has no peer, P_Key or Q_Key; a RawPacket QP has none either.
module rx_check_peer (
    input  wire logic               clk_i,
    input  wire rnic_pkg::rx_desc_t desc_i,
    input  wire rnic_pkg::path_t    path_i,
    input  wire logic               is_response_i,
    input  wire logic               in_use_i,
    input  wire logic [23:0]        qpn_i,
    input  wire logic [1:0]         qp_type_i,
    input  wire logic [31:0]        qkey_i,
    input  wire logic [2:0]         state_i,
    // This side of the QP has failed and only waits for the error state
    input  wire logic               killed_i,
    output logic                    no_qp_o,
    output logic                    bad_peer_o,
    output logic                    bad_qkey_o,
    output logic                    bad_state_o
);
  localparam logic [95:0] Ipv4Prefix = {16'hFFFF, 80'd0};

  logic exists, is_ud, is_raw, address_ok, own_ok, pkey_ok, peer_ok, qkey_ok, class_ok, state_ok,
      vlan_ok;
  logic [11:0] vid, path_vid;

  assign exists = in_use_i && qpn_i == desc_i.dest_qpn;
  assign is_ud  = qp_type_i == rnic_pkg::QpTypeUd;
  assign is_raw = qp_type_i == rnic_pkg::QpTypeRawPacket ||
      desc_i.opcode[6:5] == rnic_pkg::QpTypeRawPacket;

  // An IPv4 address is the last four bytes; the bytes before it are a constant prefix.
  assign address_ok = path_i.dest_ip[127:96] == desc_i.source_ip[127:96]
      && path_i.source_ip[127:96] == desc_i.dest_ip[127:96]
      && (!desc_i.ipv6 || (path_i.dest_ip[95:0] == desc_i.source_ip[95:0]
                           && path_i.source_ip[95:0] == desc_i.dest_ip[95:0]));
  // VID 0 is that of a priority tag (IEEE 802.1Q 9.6).
  assign vid      = desc_i.vlan ? desc_i.vlan_tci[11:0] : '0;
  assign path_vid = path_i.vlan ? path_i.vlan_id : '0;
  assign vlan_ok  = vid == path_vid;
  assign own_ok  = desc_i.multicast
      || ((desc_i.dest_ip == path_i.source_ip || desc_i.dest_ip == path_i.dest_ip)
          && desc_i.ipv6 == (desc_i.dest_ip[95:0] != Ipv4Prefix));
  assign pkey_ok = path_i.pkey[14:0] == desc_i.pkey[14:0] && desc_i.pkey[14:0] != '0
      && (path_i.pkey[15] || desc_i.pkey[15]);
  assign peer_ok = is_raw ||
      (pkey_ok && (is_ud ? own_ok : path_i.ipv6 == desc_i.ipv6 && address_ok && vlan_ok));
  assign qkey_ok = !is_ud || desc_i.opcode[6:5] != rnic_pkg::QpTypeUd || desc_i.qkey == qkey_i;

  // Bits 7:5 of the opcode are the transport service.
  assign class_ok = desc_i.opcode[7:5] == {1'b0, qp_type_i};
  assign state_ok = class_ok && !killed_i && (state_i == rnic_pkg::QpStateRts
                    || state_i == rnic_pkg::QpStateSqd
                    || (state_i == rnic_pkg::QpStateRtr && !is_response_i));

  always_ff @(posedge clk_i) begin
    no_qp_o     <= !exists;
    bad_peer_o  <= exists && !peer_ok;
    bad_qkey_o  <= exists && peer_ok && !qkey_ok;
    bad_state_o <= exists && peer_ok && qkey_ok && !state_ok;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, desc_i.solicited, desc_i.ack_req, desc_i.psn, desc_i.payload_length,
      desc_i.va, desc_i.rkey, desc_i.dma_length, desc_i.swap_add, desc_i.compare,
      desc_i.immediate, desc_i.syndrome, desc_i.msn, desc_i.opcode[4:0],
      desc_i.source_qpn, desc_i.parked, path_i.dest_qpn, path_i.traffic_class, path_i.hop_limit,
      path_i.udp_source_port, path_i.flow_label, path_i.dest_mac, path_i.pcp,
      desc_i.vlan_tci[15:12], desc_i.l3_ok, desc_i.l4_ok};
endmodule

`default_nettype wire
