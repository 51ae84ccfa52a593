`default_nettype none
`include "assert.svh"

/// Send path: descriptors and pieces in, frames out.
///
/// Merges requests (source 0) and the responder's packets (source 1) a packet at a time. Gathers
/// payload: each piece is cut at pages, translated, read by DMA, and packed; several packets are
/// under way at once, in order. Builds Ethernet, with a VLAN tag where the path has one, IPv4
/// (identification 0, DF) or IPv6, UDP (checksum 0 on IPv4 and IPv6, as annex A17 allows), BTH and
/// extended headers, pads, appends the ICRC. A frame starts on the wire only when all of it is
/// there, and then has no gap other than by eth_tx_ready_i; frames are padded to 60 bytes. A raw
/// frame gets the checksums that it asks for. A payload that cannot be had (translation refused,
/// DMA error) drops the packet, reports tx_fault once, and drops all later packets of that side of
/// that QP until qp_reset or a descriptor with turned. A descriptor with tell is reported there
/// too, when its packet has left (UC, UD: its message is done). A request with ack_req is reported
/// on left_* when the port has taken the last word of its frame (tx_port). reach: what a QP has
/// sent (tx_sent), a cycle after reach_rd_en_i. busy_o: something moves inside.
module tx_path (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           busy_o,
    // Frames may begin
    input  wire logic                      enable_i,
    input  wire logic [47:0]               port_mac_i,
    input  wire logic [1:0]                desc_valid_i,
    output logic [1:0]                     desc_ready_o,
    input  wire logic [2*rnic_pkg::TxDescBits-1:0] desc_data_i,
    input  wire logic [1:0]                piece_valid_i,
    output logic [1:0]                     piece_ready_o,
    input  wire logic [2*rnic_pkg::SgPieceBits-1:0] piece_data_i,
    output logic                           xlate_req_valid_o,
    input  wire logic                      xlate_req_ready_i,
    output rnic_pkg::xlate_req_t           xlate_req_data_o,
    input  wire logic                      xlate_rsp_valid_i,
    output logic                           xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t      xlate_rsp_data_i,
    output logic                           xlate_retire_valid_o,
    output logic                           xlate_retire_epoch_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    // Path table: data one cycle after path_rd_en_o
    output logic                           path_rd_en_o,
    output logic [7:0]                     path_rd_qp_o,
    input  wire rnic_pkg::path_t           path_rd_data_i,
    output logic                           tx_fault_valid_o,
    input  wire logic                      tx_fault_ready_i,
    output rnic_pkg::tx_fault_t            tx_fault_data_o,
    output logic                           eth_tx_valid_o,
    input  wire logic                      eth_tx_ready_i,
    output rnic_pkg::frame_beat_t          eth_tx_data_o,
    // A packet that asks for an answer has left the port
    output logic                           left_valid_o,
    input  wire logic                      left_ready_i,
    output rnic_pkg::timer_event_t         left_data_o,
    input  wire logic                      reach_rd_en_i,
    input  wire logic [7:0]                reach_rd_qp_i,
    output rnic_pkg::reach_t               reach_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  /// Size of the frame buffer: three frames of 4 KiB.
  localparam int unsigned FrameWords = 256;
  /// Payload that is being fetched: 2.6 us of DMA latency at 100 Gbit/s. More would only stand in
  /// the way of what is asked for next (go-back, another queue pair).
  localparam int unsigned PayloadAhead = 32768;

  // ---- Two sources become one ----
  logic accepted, desc_valid, desc_ready, build_ready, gather_ready, piece_valid, piece_ready;
  rnic_pkg::tx_desc_t desc;
  rnic_pkg::sg_piece_t piece;

  tx_merge u_merge (
      .clk_i,
      .rst_ni,
      .desc_valid_i,
      .desc_ready_o,
      .desc_data_i,
      .piece_valid_i,
      .piece_ready_o,
      .piece_data_i,
      .accepted_o   (accepted),
      .desc_valid_o (desc_valid),
      .desc_ready_i (desc_ready),
      .desc_data_o  (desc),
      .piece_valid_o(piece_valid),
      .piece_ready_i(piece_ready),
      .piece_data_o (piece)
  );

  // ---- A descriptor goes to the header and to the payload ----
  logic head_valid, head_ready;
  logic [703:0] head_bytes;
  logic [6:0] head_length;
  logic [47:0] head_mac;
  logic [15:0] head_tci;
  logic [4:0] head_count;
  rnic_pkg::tx_fault_t head_fault;
  logic head_vlan, head_raw, head_csum, head_tell, head_quiet, head_turned, head_asks;
  rnic_pkg::timer_event_t head_left;

  logic few;
  logic [12:0] head_payload;
  payload_limit #(
      .Limit(PayloadAhead)
  ) u_ahead (
      .clk_i,
      .rst_ni,
      .in_valid_i (desc_valid && desc_ready),
      .in_bytes_i (desc.payload_length),
      .out_valid_i(head_valid && head_ready),
      .out_bytes_i(head_payload),
      .below_o    (few)
  );

  assign desc_ready = build_ready && gather_ready && few;

  tx_build u_build (
      .clk_i,
      .rst_ni,
      .desc_valid_i (desc_valid && gather_ready && few),
      .desc_ready_o (build_ready),
      .desc_data_i  (desc),
      .path_rd_en_o,
      .path_rd_qp_o,
      .path_rd_data_i,
      .head_valid_o (head_valid),
      .head_ready_i (head_ready),
      .head_bytes_o (head_bytes),
      .head_length_o(head_length),
      .head_raw_o   (head_raw),
      .head_csum_o  (head_csum),
      .head_mac_o   (head_mac),
      .head_vlan_o  (head_vlan),
      .head_tci_o   (head_tci),
      .head_count_o (head_count),
      .head_fault_o (head_fault),
      .head_tell_o  (head_tell),
      .head_quiet_o (head_quiet),
      .head_turned_o(head_turned),
      .head_payload_o(head_payload),
      .head_asks_o  (head_asks),
      .head_left_o  (head_left)
  );

  // ---- Header and payload become packets ----
  logic frame_valid, frame_ready, packet_valid, packet_ready, dropped, request_valid;
  logic [7:0] request_qp;
  logic [23:0] request_psn;
  rnic_pkg::payload_beat_t packet;

  tx_payload u_payload (
      .clk_i, .rst_ni,
      .desc_valid_i(desc_valid && build_ready && few), .desc_ready_o(gather_ready),
      .desc_qp_i(desc.qp),
      .desc_payload_i(desc.payload_length != '0),
      .piece_valid_i(piece_valid), .piece_ready_o(piece_ready), .piece_data_i(piece),
      .xlate_req_valid_o, .xlate_req_ready_i, .xlate_req_data_o,
      .xlate_rsp_valid_i, .xlate_rsp_ready_o, .xlate_rsp_data_i,
      .rd_req_valid_o, .rd_req_ready_i, .rd_req_data_o,
      .accepted_i(accepted),
      .qp_reset_valid_i, .qp_reset_ready_o, .qp_reset_qp_i,
      .head_valid_i(head_valid), .head_ready_o(head_ready),
      .head_bytes_i(head_bytes), .head_length_i(head_length), .head_fault_i(head_fault),
      .head_last_psn_i(head_left.psn),
      .head_tell_i(head_tell), .head_quiet_i(head_quiet), .head_turned_i(head_turned),
      .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i,
      .xlate_retire_valid_o, .xlate_retire_epoch_o,
      .frame_valid_o(frame_valid), .frame_ready_i(frame_ready),
      .dropped_o(dropped),
      .sent_valid_o(request_valid), .sent_qp_o(request_qp), .sent_psn_o(request_psn),
      .tx_fault_valid_o, .tx_fault_ready_i, .tx_fault_data_o,
      .packet_valid_o(packet_valid), .packet_ready_i(packet_ready), .packet_data_o(packet)
  );

  tx_sent u_sent (
      .clk_i,
      .rst_ni,
      .sent_valid_i (request_valid),
      .sent_qp_i    (request_qp),
      .sent_psn_i   (request_psn),
      .clear_valid_i(qp_reset_ready_o),
      .clear_qp_i   (qp_reset_qp_i),
      .rd_en_i      (reach_rd_en_i),
      .rd_qp_i      (reach_rd_qp_i),
      .rd_data_o    (reach_data_o)
  );

  // ---- Packets become frames, sent when they are whole ----
  logic word_valid, word_last, word_asks, word_csum, commit, drop, port_busy;
  rnic_pkg::timer_event_t word_left;
  logic [511:0] word_data;
  logic [6:0] word_bytes;
  logic [4:0] sent;
  logic [$clog2(FrameWords):0] room;

  tx_frame #(
      .RoomBits($clog2(FrameWords) + 1)
  ) u_frame (
      .clk_i,
      .rst_ni,
      .port_mac_i,
      .frame_valid_i (frame_valid),
      .frame_ready_o (frame_ready),
      .frame_raw_i   (head_raw),
      .frame_csum_i  (head_csum),
      .frame_mac_i   (head_mac),
      .frame_vlan_i  (head_vlan),
      .frame_tci_i   (head_tci),
      .frame_count_i (head_count),
      .frame_asks_i  (head_asks),
      .frame_left_i  (head_left),
      .packet_valid_i(packet_valid),
      .packet_ready_o(packet_ready),
      .packet_data_i (packet),
      .room_i        (room),
      .out_valid_o   (word_valid),
      .out_data_o    (word_data),
      .out_bytes_o   (word_bytes),
      .out_last_o    (word_last),
      .out_asks_o    (word_asks),
      .out_csum_o    (word_csum),
      .out_left_o    (word_left),
      .commit_o      (commit),
      .drop_o        (drop),
      .sent_o        (sent)
  );

  tx_port #(
      .Words(FrameWords)
  ) u_port (
      .clk_i,
      .rst_ni,
      .busy_o    (port_busy),
      .enable_i,
      .in_valid_i(word_valid),
      .in_data_i (word_data),
      .in_bytes_i(word_bytes),
      .in_last_i (word_last),
      .in_asks_i (word_asks),
      .in_csum_i (word_csum),
      .in_left_i (word_left),
      .commit_i  (commit),
      .drop_i    (drop),
      .room_o    (room),
      .left_valid_o,
      .left_ready_i,
      .left_data_o,
      .eth_tx_valid_o,
      .eth_tx_ready_i,
      .eth_tx_data_o
  );

  assign busy_o = port_busy || word_valid || (desc_valid && desc_ready) ||
      (piece_valid && piece_ready) || (head_valid && head_ready) ||
      (frame_valid && frame_ready) || (packet_valid && packet_ready);

  always_comb begin
    event_o                                  = '0;
    event_o[rnic_pkg::CounterTxFrames]        = eth_tx_valid_o && eth_tx_ready_i &&
        eth_tx_data_o.last;
    event_o[rnic_pkg::CounterTxRequests]      = sent[0];
    event_o[rnic_pkg::CounterTxReadResponses] = sent[1];
    event_o[rnic_pkg::CounterTxAcks]          = sent[2];
    event_o[rnic_pkg::CounterTxNaks]          = sent[3];
    event_o[rnic_pkg::CounterTxRnrNaks]       = sent[4];
    event_o[rnic_pkg::CounterTxDropped]       = dropped;
  end

  `ASSERT_HOLD(XlateReqHold, xlate_req_valid_o, xlate_req_ready_i, xlate_req_data_o)
  `ASSERT_HOLD(RdReqHold, rd_req_valid_o, rd_req_ready_i, rd_req_data_o)
  `ASSERT_HOLD(FaultHold, tx_fault_valid_o, tx_fault_ready_i, tx_fault_data_o)
  `ASSERT_HOLD(EthHold, eth_tx_valid_o, eth_tx_ready_i, eth_tx_data_o)
endmodule

`default_nettype wire
