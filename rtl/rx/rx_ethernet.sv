`default_nettype none
`include "assert.svh"

/// Ethernet frames that are no RoCEv2 packets for this port, for the RawPacket QP of PortEthernet.
///
/// Sees every frame that rx_front sees, from the same cycle on, and hears from it what the frame
/// is: other_valid_i comes once a frame, in order, at least a cycle and at most 14 after its last
/// beat, with other_i when it is not RoCEv2 or not for this port. A frame that passes the filter
/// (ethernet_i; host interface, Ethernet) leaves when all of it is here: its descriptor, of the
/// reserved opcode that stands for raw frames and with what its checksums are, and its bytes. One
/// that is longer than MaxFrameBytes is lost, and so is one for which the buffer (64 KiB, 512
/// frames) has no room, a pulse on lost_o; taken_o: a frame is in the buffer.
module rx_ethernet (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    input  wire logic [47:0]                  port_mac_i,
    input  wire rnic_pkg::ethernet_t          ethernet_i,
    input  wire logic                         enable_i,
    input  wire logic                         eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t        eth_rx_data_i,
    input  wire logic                         other_valid_i,
    input  wire logic                         other_i,
    output logic                              desc_valid_o,
    input  wire logic                         desc_ready_i,
    output rnic_pkg::rx_desc_t                desc_data_o,
    output logic                              payload_valid_o,
    input  wire logic                         payload_ready_i,
    output rnic_pkg::payload_beat_t           payload_data_o,
    output logic                              busy_o,
    output logic                              taken_o,
    output logic                              lost_o
);
  localparam int unsigned Lines = 1024;
  localparam int unsigned Frames = 512;
  /// Lines that wait for a verdict, and verdicts that wait for their line.
  localparam int unsigned Waiting = 16;
  localparam logic [6:0] HeaderBytes = rnic_pkg::EthHeaderBytes[6:0];
  localparam logic [7:0] RawOpcode = {1'b0, rnic_pkg::QpTypeRawPacket,
                                      rnic_pkg::RcOpcodeSendOnly[4:0]};

  // ---- Lines wait until rx_front has judged their frame ----
  // skip_q: the frame that is coming in is ignored, by rx_front too.
  logic first_in_q, skip_q, skip, line_valid, line_ready, line_in_ready, last, err, verdict_valid,
      verdict_ready, verdict_in_ready, other;
  logic [6:0] bytes;
  logic [511:0] data;
  logic [$clog2(Waiting)+1:0] waiting, unused_verdicts;
  assign skip = first_in_q ? !enable_i : skip_q;

  always_ff @(posedge clk_i) begin
    if (eth_rx_valid_i) begin
      first_in_q <= eth_rx_data_i.last;
      skip_q     <= skip;
    end
    if (!rst_ni) begin
      first_in_q <= 1'b1;
      skip_q     <= 1'b0;
    end
  end

  stream_fifo #(
      .Width(521),
      .Depth(Waiting)
  ) u_lines (
      .clk_i,
      .rst_ni,
      .in_valid_i (eth_rx_valid_i && !skip),
      .in_ready_o (line_in_ready),
      .in_data_i  ({eth_rx_data_i.err, eth_rx_data_i.last, eth_rx_data_i.bytes,
                    eth_rx_data_i.data}),
      .out_valid_o(line_valid),
      .out_ready_i(line_ready),
      .out_data_o ({err, last, bytes, data}),
      .count_o    (waiting)
  );

  stream_fifo #(
      .Width(1),
      .Depth(Waiting)
  ) u_verdicts (
      .clk_i,
      .rst_ni,
      .in_valid_i (other_valid_i),
      .in_ready_o (verdict_in_ready),
      .in_data_i  (other_i),
      .out_valid_o(verdict_valid),
      .out_ready_i(verdict_ready),
      .out_data_o (other),
      .count_o    (unused_verdicts)
  );

  // ---- Its checksums: summed as the lines come, known before the frame is taken ----
  logic summed, summed_l3_ok, summed_l4_ok, sum_in_ready, sum_valid, l3_ok, l4_ok;
  logic [$clog2(Waiting)+1:0] unused_sums;
  rnic_pkg::ip_sums_t unused_values;
  eth_checksum u_checksum (
      .clk_i,
      .rst_ni,
      .in_valid_i (eth_rx_valid_i && !skip),
      .in_data_i  (eth_rx_data_i.data),
      .in_bytes_i (eth_rx_data_i.bytes),
      .in_last_i  (eth_rx_data_i.last),
      .in_drop_i  (1'b0),
      .out_valid_o(summed),
      .out_l3_ok_o(summed_l3_ok),
      .out_l4_ok_o(summed_l4_ok),
      .out_sums_o (unused_values)
  );
  stream_fifo #(
      .Width(2),
      .Depth(Waiting)
  ) u_sums (
      .clk_i,
      .rst_ni,
      .in_valid_i (summed),
      .in_ready_o (sum_in_ready),
      .in_data_i  ({summed_l3_ok, summed_l4_ok}),
      .out_valid_o(sum_valid),
      .out_ready_i(verdict_ready && verdict_valid),
      .out_data_o ({l3_ok, l4_ok}),
      .count_o    (unused_sums)
  );

  // ---- For whom the frame is, by its first line ----
  logic first_q, wanted, wanted_d, wanted_q, long_q, full_q, full, too_long, ends, commit;
  logic [12:0] length_q, length;
  rnic_pkg::eth_header_t eth;
  logic group, in_groups, ours;

  always_comb begin : header
    for (int unsigned i = 0; i < 14; i++) eth[8*(13-i)+:8] = data[8*i+:8];
  end

  // CRC-32 of an address, most significant bit first; each byte begins with its low bit.
  function automatic logic [5:0] hash(input logic [47:0] address);
    logic [31:0] crc;
    crc = '1;
    for (int unsigned i = 0; i < 48; i++) begin
      crc = {crc[30:0], 1'b0} ^ ({32{crc[31] ^ address[40 - 8*(i/8) + i%8]}} & 32'h04c11db7);
    end
    hash = crc[31:26];
  endfunction

  assign group     = eth.dest[40] && eth.dest != '1;
  assign in_groups = ethernet_i.all_groups || ethernet_i.groups[hash(eth.dest)];
  assign ours      = eth.dest == port_mac_i || eth.dest == '1 || (group && in_groups);
  assign wanted_d  = ethernet_i.enable && (ours || ethernet_i.promiscuous) &&
      !(eth.dest[40] && eth.source == port_mac_i) && (!last || bytes >= HeaderBytes);
  assign wanted    = first_q ? wanted_d : wanted_q;
  assign length    = (first_q ? '0 : length_q) + 13'(bytes);
  assign too_long  = (!first_q && long_q) || length > rnic_pkg::MaxFrameBytes[12:0];

  // ---- Into the buffer ----
  logic buffer_ready, frame_ready, good;
  logic [$clog2(Lines):0] room;
  logic [$clog2(Frames)+1:0] frames;
  assign line_ready    = !last || (verdict_valid && sum_valid);
  assign ends          = line_valid && last && verdict_valid && sum_valid;
  assign verdict_ready = line_valid && last && sum_valid;
  assign full          = (!first_q && full_q) || (line_valid && line_ready && !buffer_ready);
  assign good          = ends && wanted && other && !err;
  assign commit        = good && !full && !too_long && frame_ready;
  assign taken_o       = commit;
  assign lost_o        = good && !commit;

  always_ff @(posedge clk_i) begin
    if (line_valid && line_ready) begin
      first_q  <= last;
      wanted_q <= wanted;
      full_q   <= full;
      long_q   <= too_long;
      length_q <= length;
    end
    if (!rst_ni) first_q <= 1'b1;
  end

  packet_buffer #(
      .Width(520),
      .Depth(Lines)
  ) u_payload (
      .clk_i,
      .rst_ni,
      // A frame that is too long leaves no more than the longest in the buffer.
      .in_valid_i (line_valid && line_ready && wanted && !too_long),
      .in_ready_o (buffer_ready),
      .in_data_i  ({last, bytes, data}),
      .commit_i   (commit),
      .drop_i     (ends && !commit),
      .room_o     (room),
      .out_valid_o(payload_valid_o),
      .out_ready_i(payload_ready_i),
      .out_data_o ({payload_data_o.last, payload_data_o.bytes, payload_data_o.data})
  );
  assign payload_data_o.err = 1'b0;

  logic [12:0] out_length;
  logic out_l3_ok, out_l4_ok;
  stream_fifo #(
      .Width(15),
      .Depth(Frames)
  ) u_frames (
      .clk_i,
      .rst_ni,
      .in_valid_i (commit),
      .in_ready_o (frame_ready),
      .in_data_i  ({l3_ok, l4_ok, length}),
      .out_valid_o(desc_valid_o),
      .out_ready_i(desc_ready_i),
      .out_data_o ({out_l3_ok, out_l4_ok, out_length}),
      .count_o    (frames)
  );

  // The QP of the moment in which the frame was taken, or a later one: QPN and type are checked.
  logic [23:0] qpn_q;
  always_ff @(posedge clk_i) begin
    if (frames != '0 && (!desc_valid_o || desc_ready_i)) qpn_q <= ethernet_i.qpn;
  end
  always_comb begin : descriptor
    desc_data_o                = '0;
    desc_data_o.opcode         = RawOpcode;
    desc_data_o.dest_qpn       = qpn_q;
    desc_data_o.payload_length = out_length;
    desc_data_o.l3_ok          = out_l3_ok;
    desc_data_o.l4_ok          = out_l4_ok;
  end

  assign busy_o = waiting != '0 || frames != '0 || room != ($clog2(Lines) + 1)'(Lines);

  logic unused_bits;
  assign unused_bits = ^eth.ethertype;

  `ASSERT(LineRoom, line_in_ready)
  `ASSERT(VerdictRoom, verdict_in_ready)
  `ASSERT(SumRoom, sum_in_ready)
  `ASSERT_HOLD(DescHold, desc_valid_o, desc_ready_i, desc_data_o)
  `ASSERT_HOLD(PayloadHold, payload_valid_o, payload_ready_i, payload_data_o)
endmodule

`default_nettype wire
