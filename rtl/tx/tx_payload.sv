`default_nettype none
`include "assert.svh"

/// The payload side of the send path: pieces become packets, each behind its header.
///
/// tx_gather cuts each piece at pages, has it translated and asks for its bytes; gather_join takes
/// headers, inline bytes and what was read in the order of the packets, and says which packets
/// fail; gather_align makes runs of bytes packets without gaps. tx_kill remembers whose packets
/// are dropped behind one that failed.
///
/// desc: a packet begins, with its QP and whether it has payload. accepted: a pulse, a packet has
/// entered the merge. head: the header of the oldest packet. frame: a packet begins that nothing
/// has killed, and its bytes come on packet, with err when the rest of its payload cannot be had.
/// dropped: a pulse, a packet was dropped. tx_fault, qp_reset: as of tx_path.
module tx_payload (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  desc_valid_i,
    output logic                       desc_ready_o,
    input  wire logic [7:0]            desc_qp_i,
    input  wire logic                  desc_payload_i,
    input  wire logic                  piece_valid_i,
    output logic                       piece_ready_o,
    input  wire rnic_pkg::sg_piece_t   piece_data_i,
    output logic                       xlate_req_valid_o,
    input  wire logic                  xlate_req_ready_i,
    output rnic_pkg::xlate_req_t       xlate_req_data_o,
    input  wire logic                  xlate_rsp_valid_i,
    output logic                       xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t  xlate_rsp_data_i,
    output logic                       rd_req_valid_o,
    input  wire logic                  rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t      rd_req_data_o,
    input  wire logic                  accepted_i,
    input  wire logic                  qp_reset_valid_i,
    output logic                       qp_reset_ready_o,
    input  wire logic [7:0]            qp_reset_qp_i,
    input  wire logic                  head_valid_i,
    output logic                       head_ready_o,
    input  wire logic [703:0]          head_bytes_i,
    input  wire logic [6:0]            head_length_i,
    input  wire rnic_pkg::tx_fault_t   head_fault_i,
    input  wire logic [23:0]           head_last_psn_i,
    input  wire logic                  head_tell_i,
    input  wire logic                  head_quiet_i,
    input  wire logic                  head_turned_i,
    input  wire logic                  rd_rsp_valid_i,
    output logic                       rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t rd_rsp_data_i,
    output logic                       xlate_retire_valid_o,
    output logic                       xlate_retire_epoch_o,
    output logic                       frame_valid_o,
    input  wire logic                  frame_ready_i,
    output logic                       dropped_o,
    output logic                       sent_valid_o,
    output logic [7:0]                 sent_qp_o,
    output logic [23:0]                sent_psn_o,
    output logic                       tx_fault_valid_o,
    input  wire logic                  tx_fault_ready_i,
    output rnic_pkg::tx_fault_t        tx_fault_data_o,
    output logic                       packet_valid_o,
    input  wire logic                  packet_ready_i,
    output rnic_pkg::payload_beat_t    packet_data_o
);
  logic order_valid, order_ready, order_inline, order_read, order_last, inline_valid, inline_ready,
      result_valid, result_ready, result_epoch, packet_out, killed, kill, revive, run_valid,
      run_ready;
  logic [6:0] inline_bytes;
  logic [5:0] inline_offset;
  logic [511:0] inline_data;
  logic [3:0] result_status;
  logic [8:0] kill_index;
  rnic_pkg::dma_rd_rsp_t run;

  tx_gather u_gather (
      .clk_i,
      .rst_ni,
      .desc_valid_i   (desc_valid_i),
      .desc_ready_o   (desc_ready_o),
      .desc_qp_i      (desc_qp_i),
      .desc_payload_i (desc_payload_i),
      .piece_valid_i  (piece_valid_i),
      .piece_ready_o  (piece_ready_o),
      .piece_data_i   (piece_data_i),
      .xlate_req_valid_o,
      .xlate_req_ready_i,
      .xlate_req_data_o,
      .xlate_rsp_valid_i,
      .xlate_rsp_ready_o,
      .xlate_rsp_data_i,
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .order_valid_o  (order_valid),
      .order_ready_i  (order_ready),
      .order_inline_o (order_inline),
      .order_read_o   (order_read),
      .order_last_o   (order_last),
      .inline_valid_o (inline_valid),
      .inline_ready_i (inline_ready),
      .inline_bytes_o (inline_bytes),
      .inline_offset_o(inline_offset),
      .inline_data_o  (inline_data),
      .result_valid_o (result_valid),
      .result_ready_i (result_ready),
      .result_status_o(result_status),
      .result_epoch_o (result_epoch)
  );

  tx_kill u_kill (
      .clk_i,
      .rst_ni,
      .packet_in_i (accepted_i),
      .packet_out_i(packet_out),
      .index_i     (kill_index),
      .killed_o    (killed),
      .kill_i      (kill),
      .revive_i    (revive),
      .qp_reset_valid_i,
      .qp_reset_ready_o,
      .qp_reset_qp_i
  );

  gather_join u_join (
      .clk_i,
      .rst_ni,
      .order_valid_i  (order_valid),
      .order_ready_o  (order_ready),
      .order_inline_i (order_inline),
      .order_read_i   (order_read),
      .order_last_i   (order_last),
      .head_valid_i   (head_valid_i),
      .head_ready_o   (head_ready_o),
      .head_bytes_i   (head_bytes_i),
      .head_length_i  (head_length_i),
      .head_fault_i   (head_fault_i),
      .head_last_psn_i,
      .head_tell_i    (head_tell_i),
      .head_quiet_i   (head_quiet_i),
      .head_turned_i,
      .inline_valid_i (inline_valid),
      .inline_ready_o (inline_ready),
      .inline_bytes_i (inline_bytes),
      .inline_offset_i(inline_offset),
      .inline_data_i  (inline_data),
      .result_valid_i (result_valid),
      .result_ready_o (result_ready),
      .result_status_i(result_status),
      .result_epoch_i (result_epoch),
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .xlate_retire_valid_o,
      .xlate_retire_epoch_o,
      .frame_valid_o  (frame_valid_o),
      .frame_ready_i  (frame_ready_i),
      .run_valid_o    (run_valid),
      .run_ready_i    (run_ready),
      .run_data_o     (run),
      .kill_index_o   (kill_index),
      .killed_i       (killed),
      .kill_o         (kill),
      .revive_o       (revive),
      .packet_out_o   (packet_out),
      .dropped_o      (dropped_o),
      .sent_valid_o,
      .sent_qp_o,
      .sent_psn_o,
      .fault_valid_o  (tx_fault_valid_o),
      .fault_ready_i  (tx_fault_ready_i),
      .fault_data_o   (tx_fault_data_o)
  );

  gather_align u_align (
      .clk_i,
      .rst_ni,
      .in_valid_i (run_valid),
      .in_ready_o (run_ready),
      .in_data_i  (run),
      .out_valid_o(packet_valid_o),
      .out_ready_i(packet_ready_i),
      .out_data_o (packet_data_o)
  );

  `ASSERT_HOLD(PacketHold, packet_valid_o, packet_ready_i, packet_data_o)
endmodule

`default_nettype wire
