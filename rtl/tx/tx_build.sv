`default_nettype none
`include "assert.svh"

/// Header of each packet: IPv4 or IPv6, UDP, BTH and extended headers, from its descriptor and the
/// path of its QP (tx_route). An AtomicAckETH comes as payload.
///
/// head_bytes_o: lane 0 is the first byte of the IP header, head_length_o (40 to 88) bytes. With it
/// go what the stages behind need: the destination MAC, whether it has a VLAN tag and what that
/// says (head_tci_o: PCP, DEI 0, VID), the event it counts as when sent (bit 0 request, 1 Read
/// response, 2 ACK, 3 NAK, 4 RNR NAK), and the tx_fault_t to report when its payload fails (status
/// to be filled in), whether it tells when it leaves, whether what failed before it bars it not,
/// how much payload it has, whether it asks for an answer and what the timer is to know of it
/// then. A raw frame (head_raw_o) has a header of no bytes: it is all payload, into which with
/// head_csum_o checksums are to be put. Packets keep their order; Depth may wait.
module tx_build #(
    parameter int unsigned Depth = 32
) (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                desc_valid_i,
    output logic                     desc_ready_o,
    input  wire rnic_pkg::tx_desc_t  desc_data_i,
    output logic                     path_rd_en_o,
    output logic [7:0]               path_rd_qp_o,
    input  wire rnic_pkg::path_t     path_rd_data_i,
    output logic                     head_valid_o,
    input  wire logic                head_ready_i,
    output logic [703:0]             head_bytes_o,
    output logic [6:0]               head_length_o,
    output logic                     head_raw_o,
    output logic                     head_csum_o,
    output logic [47:0]              head_mac_o,
    output logic                     head_vlan_o,
    output logic [15:0]              head_tci_o,
    output logic [4:0]               head_count_o,
    output rnic_pkg::tx_fault_t      head_fault_o,
    output logic                     head_tell_o,
    output logic                     head_quiet_o,
    output logic                     head_turned_o,
    output logic [12:0]              head_payload_o,
    output logic                     head_asks_o,
    output rnic_pkg::timer_event_t   head_left_o
);
  localparam int unsigned FaultBits = rnic_pkg::TxFaultBits;
  localparam int unsigned Width = 704 + 7 + 2 + 48 + 1 + 16 + 5 + FaultBits + 3 + 1 +
                                  rnic_pkg::TimerEventBits + 13;
  localparam int unsigned CountBits = $clog2(Depth) + 2;

  // ---- Stage a: the path is being read. Stage b: all that the header needs is in registers. ----
  logic a_valid_q, b_valid_q, a_reth, a_aeth, a_atomic, a_immediate, a_deth;
  logic b_reth_q, b_aeth_q, b_atomic_q, b_deth_q;
  logic [4:0] a_ext_length, b_ext_length_q;
  rnic_pkg::tx_desc_t a_desc_q, b_desc_q;
  rnic_pkg::path_t a_path, b_path_q;
  logic [15:0] a_udp_length, b_udp_length_q;
  logic [10:0] payload_words;
  logic [19:0] b_sum_q;
  logic [CountBits-1:0] waiting;
  logic fifo_ready;

  // Two packets may be on their way to the FIFO.
  assign desc_ready_o = waiting < CountBits'(Depth - 2);
  assign path_rd_en_o = desc_valid_i && desc_ready_o;
  assign path_rd_qp_o = desc_data_i.qp;

  tx_route u_route (
      .desc_i(a_desc_q),
      .path_i(path_rd_data_i),
      .path_o(a_path)
  );

  // The low five bits of the opcode say what the packet is, the others of which transport service.
  always_comb begin
    a_deth = a_desc_q.opcode[6:5] == rnic_pkg::QpTypeUd;
    a_reth = 1'b0;
    a_aeth = 1'b0;
    a_atomic = 1'b0;
    a_immediate = 1'b0;
    unique case ({3'd0, a_desc_q.opcode[4:0]})
      rnic_pkg::RcOpcodeWriteFirst,
      rnic_pkg::RcOpcodeWriteOnly,
      rnic_pkg::RcOpcodeReadRequest: a_reth = 1'b1;
      rnic_pkg::RcOpcodeWriteOnlyImmediate: {a_reth, a_immediate} = 2'b11;
      rnic_pkg::RcOpcodeSendLastImmediate,
      rnic_pkg::RcOpcodeSendOnlyImmediate,
      rnic_pkg::RcOpcodeSendLastInvalidate,
      rnic_pkg::RcOpcodeSendOnlyInvalidate,
      rnic_pkg::RcOpcodeWriteLastImmediate: a_immediate = 1'b1;
      rnic_pkg::RcOpcodeCompareSwap,
      rnic_pkg::RcOpcodeFetchAdd: a_atomic = 1'b1;
      rnic_pkg::RcOpcodeReadResponseFirst,
      rnic_pkg::RcOpcodeReadResponseLast,
      rnic_pkg::RcOpcodeReadResponseOnly,
      rnic_pkg::RcOpcodeAtomicAcknowledge,
      rnic_pkg::RcOpcodeAcknowledge: a_aeth = 1'b1;
      default: ;
    endcase
  end

  assign a_ext_length = a_atomic ? 5'd28 :
      {a_reth, a_deth, 3'd0} | {2'd0, a_aeth || a_immediate, 2'b00};

  // UDP header, BTH, extended headers, payload padded to 4 bytes, ICRC.
  assign payload_words = a_desc_q.payload_length[12:2] + 11'(a_desc_q.payload_length[1:0] != '0);
  assign a_udp_length  = 16'd24 + {11'd0, a_ext_length} +
      {3'd0, payload_words, 2'b00};

  // ---- IPv4 header checksum (RFC 791): constants are version and length, DF, protocol ----
  `include "swap16.svh"
  logic [19:0] sum;
  logic [16:0] folded;
  logic [15:0] checksum;
  assign sum = 20'h4500 + 20'h4000 + 20'h0011 + {12'd0, a_path.traffic_class} +
      {4'd0, a_udp_length + 16'd20} + {4'd0, a_path.hop_limit, 8'd0} +
      {4'd0, swap16(a_path.source_ip[96+:16])} +
      {4'd0, swap16(a_path.source_ip[112+:16])} +
      {4'd0, swap16(a_path.dest_ip[96+:16])} +
      {4'd0, swap16(a_path.dest_ip[112+:16])};
  assign folded   = {1'b0, b_sum_q[15:0]} + {13'd0, b_sum_q[19:16]};
  assign checksum = ~(folded[15:0] + {15'd0, folded[16]});

  always_ff @(posedge clk_i) begin
    a_desc_q       <= desc_data_i;
    b_desc_q       <= a_desc_q;
    b_path_q       <= a_path;
    b_udp_length_q <= a_udp_length;
    b_reth_q       <= a_reth;
    b_aeth_q       <= a_aeth;
    b_atomic_q     <= a_atomic;
    b_deth_q       <= a_deth;
    b_ext_length_q <= a_ext_length;
    b_sum_q        <= sum;
    a_valid_q      <= path_rd_en_o;
    b_valid_q      <= a_valid_q;
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
    end
  end

  // ---- Headers: structs have the first byte on the wire at the top ----
  rnic_pkg::ipv4_header_t ipv4;
  rnic_pkg::ipv6_header_t ipv6;
  rnic_pkg::udp_header_t udp;
  rnic_pkg::bth_t bth;
  rnic_pkg::reth_t reth;
  rnic_pkg::deth_t deth;
  logic [127:0] source_ip, dest_ip;
  rnic_pkg::atomic_eth_t atomic;
  logic [223:0] ext;
  logic [703:0] top_first, bytes;
  logic [6:0] length;
  logic [4:0] count;
  logic raw, vlan;
  logic [15:0] tci;
  rnic_pkg::tx_fault_t fault;
  logic asks;
  rnic_pkg::timer_event_t left;

  always_comb begin
    for (int unsigned i = 0; i < 16; i++) begin
      source_ip[8*i+:8] = b_path_q.source_ip[8*(15-i)+:8];
      dest_ip[8*i+:8]   = b_path_q.dest_ip[8*(15-i)+:8];
    end
    ipv4                 = '0;
    ipv4.version         = 4'd4;
    ipv4.ihl             = 4'd5;
    ipv4.tos             = b_path_q.traffic_class;
    ipv4.total_length    = b_udp_length_q + 16'd20;
    ipv4.flags           = 3'b010;
    ipv4.ttl             = b_path_q.hop_limit;
    ipv4.protocol        = 8'd17;
    ipv4.checksum        = checksum;
    ipv4.source          = source_ip[31:0];
    ipv4.dest            = dest_ip[31:0];
    ipv6                 = '0;
    ipv6.version         = 4'd6;
    ipv6.traffic_class   = b_path_q.traffic_class;
    ipv6.flow_label      = b_path_q.flow_label;
    ipv6.payload_length  = b_udp_length_q;
    ipv6.next_header     = 8'd17;
    ipv6.hop_limit       = b_path_q.hop_limit;
    ipv6.source          = source_ip;
    ipv6.dest            = dest_ip;
    udp                  = '0;
    udp.source_port      = b_path_q.udp_source_port;
    udp.dest_port        = rnic_pkg::RoceUdpPort[15:0];
    udp.length           = b_udp_length_q;
    bth                  = '0;
    bth.opcode           = b_desc_q.opcode;
    bth.solicited        = b_desc_q.solicited;
    // A queue pair without automatic path migration is in the state Migrated (17.2.8).
    bth.migreq           = 1'b1;
    bth.pad_count        = 2'd0 - b_desc_q.payload_length[1:0];
    bth.pkey             = b_path_q.pkey;
    bth.dest_qpn         = b_path_q.dest_qpn;
    bth.ack_req          = b_desc_q.ack_req;
    bth.psn              = b_desc_q.psn;
    reth.va              = b_desc_q.va;
    reth.rkey            = b_desc_q.rkey;
    reth.dma_length      = b_desc_q.dma_length;
    deth                 = '0;
    deth.qkey            = b_desc_q.qkey;
    deth.source_qpn      = b_desc_q.source_qpn;
    atomic.va            = b_desc_q.va;
    atomic.rkey          = b_desc_q.rkey;
    atomic.swap_add      = b_desc_q.swap_add;
    atomic.compare       = b_desc_q.compare;
    if (b_atomic_q) ext = atomic;
    else if (b_deth_q) ext = {deth, b_desc_q.immediate, 128'd0};
    else if (b_reth_q) ext = {reth, b_desc_q.immediate, 64'd0};
    else if (b_aeth_q) ext = {b_desc_q.syndrome, b_desc_q.msn, 192'd0};
    else ext = {b_desc_q.immediate, 192'd0};
    top_first            = b_path_q.ipv6 ? {ipv6, udp, bth, ext} : {ipv4, udp, bth, ext, 160'd0};
    for (int unsigned i = 0; i < 88; i++) bytes[8*i+:8] = top_first[8*(87-i)+:8];
    raw      = b_desc_q.opcode[6:5] == rnic_pkg::QpTypeRawPacket;
    // The path of a RawPacket QP means nothing.
    vlan     = b_path_q.vlan && !raw;
    tci      = {b_path_q.pcp, 1'b0, b_path_q.vlan_id};
    length   = raw ? '0 : (b_path_q.ipv6 ? 7'd60 : 7'd40) + {2'd0, b_ext_length_q};
    count[0] = !b_desc_q.responder && !raw;
    count[1] = b_desc_q.responder && b_desc_q.opcode != rnic_pkg::RcOpcodeAcknowledge;
    count[2] = b_desc_q.responder && !count[1] && b_desc_q.syndrome[6:5] == 2'b00;
    count[3] = b_desc_q.responder && !count[1] && b_desc_q.syndrome[6];
    count[4] = b_desc_q.responder && !count[1] && b_desc_q.syndrome[6:5] == 2'b01;

    fault           = '0;
    fault.qp        = b_desc_q.qp;
    fault.responder = b_desc_q.responder;
    fault.psn       = b_desc_q.psn;
    fault.wqe_idx   = b_desc_q.wqe_idx;

    asks          = b_desc_q.ack_req && !b_desc_q.responder;
    left.qp       = b_desc_q.qp;
    left.exponent = b_desc_q.ack_timeout;
    left.psn      = b_desc_q.last_psn;
    left.tries    = b_desc_q.tries;
  end

  stream_fifo #(
      .Width(Width),
      .Depth(Depth)
  ) u_heads (
      .clk_i,
      .rst_ni,
      .in_valid_i (b_valid_q),
      .in_ready_o (fifo_ready),
      .in_data_i  ({b_desc_q.payload_length, asks, left, b_desc_q.turned, b_desc_q.quiet,
                     b_desc_q.tell, fault, count, vlan, tci, b_path_q.dest_mac,
                     b_desc_q.ip_csum, raw, length, bytes}),
      .out_valid_o(head_valid_o),
      .out_ready_i(head_ready_i),
      .out_data_o ({head_payload_o, head_asks_o, head_left_o, head_turned_o, head_quiet_o,
                     head_tell_o, head_fault_o, head_count_o, head_vlan_o, head_tci_o,
                     head_mac_o, head_csum_o, head_raw_o,
                     head_length_o, head_bytes_o}),
      .count_o    (waiting)
  );

  logic unused_bits;
  assign unused_bits = ^b_desc_q.address;

  `ASSERT(RoomForHead, fifo_ready)
endmodule

`default_nettype wire
