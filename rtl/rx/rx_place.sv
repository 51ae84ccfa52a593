`default_nettype none
`include "assert.svh"

/// Place and done stages: takes plans in wire order, and their payload; writes it; says when each
/// packet is done.
///
/// walk -> translation -> collect -> write -> scatter_align -> DMA write, each working on another
/// packet, with rx_done behind. The piece FIFO holds more than the 33 pieces that one packet can
/// have, because a packet's pieces wait there for its verdict. A packet is taken only when the done
/// stage has a place for it: what has been translated can then be written and handed back although
/// done_ready_i is low. clear_valid_i: faults of the QP
/// clear_qp_i are forgotten. fault_event_o: a packet of QP fault_qp_o had no place. left_o pulses
/// for every plan that has left.
module rx_place (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      plan_valid_i,
    output logic                           plan_ready_o,
    input  wire rnic_pkg::rx_plan_t        plan_data_i,
    input  wire logic                      payload_valid_i,
    output logic                           payload_ready_o,
    input  wire rnic_pkg::payload_beat_t   payload_data_i,
    output logic                           xlate_req_valid_o,
    input  wire logic                      xlate_req_ready_i,
    output rnic_pkg::xlate_req_t           xlate_req_data_o,
    input  wire logic                      xlate_rsp_valid_i,
    output logic                           xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t      xlate_rsp_data_i,
    output logic                           xlate_retire_valid_o,
    output logic                           xlate_retire_epoch_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           wr_valid_o,
    input  wire logic                      wr_ready_i,
    output rnic_pkg::dma_wr_t              wr_data_o,
    input  wire logic                      wr_done_i,
    output logic                           done_valid_o,
    input  wire logic                      done_ready_i,
    output rnic_pkg::rx_done_t             done_data_o,
    output logic                           left_o,
    input  wire logic                      clear_valid_i,
    input  wire logic [7:0]                clear_qp_i,
    output logic                           fault_event_o,
    output logic [7:0]                     fault_qp_o
);
  localparam int unsigned RunBits = 17;  // end, overflow, bad WQE, last, length
  localparam int unsigned PacketBits = rnic_pkg::RxDoneBits + 1;  // has payload
  localparam int unsigned VerdictBits = rnic_pkg::RxDoneBits + 8;  // has payload, write, pieces

  // ---- Packets inside ----
  localparam int unsigned MaxPackets = 64;  // places of u_done
  logic [6:0] inside_q;
  logic place_free, plan_in_valid, walk_ready;
  assign place_free    = inside_q != MaxPackets[6:0];
  assign plan_in_valid = plan_valid_i && place_free;
  assign plan_ready_o  = walk_ready && place_free;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + 7'(plan_in_valid && walk_ready) - 7'(left_o);
    if (!rst_ni) inside_q <= '0;
  end

  // ---- Walk ----
  logic walk_req_valid, walk_req_ready, run_in_valid, run_in_ready;
  logic packet_in_valid, packet_in_ready;
  rnic_pkg::xlate_req_t walk_req;
  logic [RunBits-1:0] run_in, run;
  logic [PacketBits-1:0] packet_in, packet;
  rx_place_walk u_walk (
      .clk_i,
      .rst_ni,
      .plan_valid_i        (plan_in_valid),
      .plan_ready_o        (walk_ready),
      .plan_data_i,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .xlate_valid_o       (walk_req_valid),
      .xlate_ready_i       (walk_req_ready),
      .xlate_data_o        (walk_req),
      .run_valid_o         (run_in_valid),
      .run_ready_i         (run_in_ready),
      .run_end_o           (run_in[16]),
      .run_overflow_o      (run_in[15]),
      .run_bad_wqe_o       (run_in[14]),
      .run_last_o          (run_in[13]),
      .run_length_o        (run_in[12:0]),
      .packet_valid_o      (packet_in_valid),
      .packet_ready_i      (packet_in_ready),
      .packet_data_o       (packet_in[PacketBits-1:1]),
      .packet_has_payload_o(packet_in[0])
  );
  skid_buffer #(
      .Width(rnic_pkg::XlateReqBits)
  ) u_requests (
      .clk_i,
      .rst_ni,
      .in_valid_i (walk_req_valid),
      .in_ready_o (walk_req_ready),
      .in_data_i  (walk_req),
      .out_valid_o(xlate_req_valid_o),
      .out_ready_i(xlate_req_ready_i),
      .out_data_o (xlate_req_data_o)
  );

  logic run_valid, run_ready, packet_valid, packet_ready;
  logic [7:0] unused_run_count;
  logic [5:0] unused_packet_count;
  stream_fifo #(
      .Width(RunBits),
      .Depth(64)
  ) u_runs (
      .clk_i,
      .rst_ni,
      .in_valid_i (run_in_valid),
      .in_ready_o (run_in_ready),
      .in_data_i  (run_in),
      .out_valid_o(run_valid),
      .out_ready_i(run_ready),
      .out_data_o (run),
      .count_o    (unused_run_count[7:0])
  );
  stream_fifo #(
      .Width(PacketBits),
      .Depth(16)
  ) u_packets (
      .clk_i,
      .rst_ni,
      .in_valid_i (packet_in_valid),
      .in_ready_o (packet_in_ready),
      .in_data_i  (packet_in),
      .out_valid_o(packet_valid),
      .out_ready_i(packet_ready),
      .out_data_o (packet),
      .count_o    (unused_packet_count)
  );

  // ---- Collect ----
  logic piece_in_valid, piece_in_ready, piece_valid, piece_ready;
  logic verdict_in_valid, verdict_in_ready, verdict_valid, verdict_ready;
  rnic_pkg::scatter_piece_t piece_in, piece;
  logic [VerdictBits-1:0] verdict_in, verdict;
  rx_place_collect u_collect (
      .clk_i,
      .rst_ni,
      .run_valid_i          (run_valid),
      .run_ready_o          (run_ready),
      .run_end_i            (run[16]),
      .run_overflow_i       (run[15]),
      .run_bad_wqe_i        (run[14]),
      .run_last_i           (run[13]),
      .run_length_i         (run[12:0]),
      .packet_valid_i       (packet_valid),
      .packet_ready_o       (packet_ready),
      .packet_data_i        (packet[PacketBits-1:1]),
      .packet_has_payload_i (packet[0]),
      .xlate_rsp_valid_i,
      .xlate_rsp_ready_o,
      .xlate_rsp_data_i,
      .piece_valid_o        (piece_in_valid),
      .piece_ready_i        (piece_in_ready),
      .piece_data_o         (piece_in),
      .verdict_valid_o      (verdict_in_valid),
      .verdict_ready_i      (verdict_in_ready),
      .verdict_data_o       (verdict_in[VerdictBits-1:8]),
      .verdict_has_payload_o(verdict_in[7]),
      .verdict_write_o      (verdict_in[6]),
      .verdict_pieces_o     (verdict_in[5:0]),
      .clear_valid_i,
      .clear_qp_i,
      .fault_event_o,
      .fault_qp_o
  );
  logic [7:0] unused_piece_count;
  logic [5:0] unused_verdict_count;
  stream_fifo #(
      .Width(rnic_pkg::ScatterPieceBits),
      .Depth(64)
  ) u_pieces (
      .clk_i,
      .rst_ni,
      .in_valid_i (piece_in_valid),
      .in_ready_o (piece_in_ready),
      .in_data_i  (piece_in),
      .out_valid_o(piece_valid),
      .out_ready_i(piece_ready),
      .out_data_o (piece),
      .count_o    (unused_piece_count)
  );
  stream_fifo #(
      .Width(VerdictBits),
      .Depth(16)
  ) u_verdicts (
      .clk_i,
      .rst_ni,
      .in_valid_i (verdict_in_valid),
      .in_ready_o (verdict_in_ready),
      .in_data_i  (verdict_in),
      .out_valid_o(verdict_valid),
      .out_ready_i(verdict_ready),
      .out_data_o (verdict),
      .count_o    (unused_verdict_count)
  );

  // ---- Write ----
  logic scatter_piece_valid, scatter_piece_ready, scatter_payload_valid, scatter_payload_ready;
  rnic_pkg::scatter_piece_t scatter_piece;
  rnic_pkg::payload_beat_t scatter_payload;
  logic done_valid, done_ready, issued_valid, issued_ready, issued_epoch, issued_write;
  rnic_pkg::rx_done_t done;
  logic [5:0] done_pieces;
  rx_place_write u_write (
      .clk_i,
      .rst_ni,
      .verdict_valid_i        (verdict_valid),
      .verdict_ready_o        (verdict_ready),
      .verdict_data_i         (verdict[VerdictBits-1:8]),
      .verdict_has_payload_i  (verdict[7]),
      .verdict_write_i        (verdict[6]),
      .verdict_pieces_i       (verdict[5:0]),
      .piece_valid_i          (piece_valid),
      .piece_ready_o          (piece_ready),
      .piece_data_i           (piece),
      .payload_valid_i,
      .payload_ready_o,
      .payload_data_i,
      .scatter_piece_valid_o  (scatter_piece_valid),
      .scatter_piece_ready_i  (scatter_piece_ready),
      .scatter_piece_data_o   (scatter_piece),
      .scatter_payload_valid_o(scatter_payload_valid),
      .scatter_payload_ready_i(scatter_payload_ready),
      .scatter_payload_data_o (scatter_payload),
      .packet_valid_o         (done_valid),
      .packet_ready_i         (done_ready),
      .packet_data_o          (done),
      .packet_pieces_o        (done_pieces),
      .issued_valid_o         (issued_valid),
      .issued_ready_i         (issued_ready),
      .issued_epoch_o         (issued_epoch),
      .issued_write_o         (issued_write)
  );
  scatter_align u_align (
      .clk_i,
      .rst_ni,
      .piece_valid_i  (scatter_piece_valid),
      .piece_ready_o  (scatter_piece_ready),
      .piece_data_i   (scatter_piece),
      .payload_valid_i(scatter_payload_valid),
      .payload_ready_o(scatter_payload_ready),
      .payload_data_i (scatter_payload),
      .wr_valid_o,
      .wr_ready_i,
      .wr_data_o
  );

  // ---- Done ----
  rx_place_done #(
      .MaxPackets(MaxPackets)
  ) u_done (
      .clk_i,
      .rst_ni,
      .packet_valid_i (done_valid),
      .packet_ready_o (done_ready),
      .packet_data_i  (done),
      .packet_pieces_i(done_pieces),
      .issued_valid_i (issued_valid),
      .issued_ready_o (issued_ready),
      .issued_epoch_i (issued_epoch),
      .issued_write_i (issued_write),
      .wr_done_i,
      .xlate_retire_valid_o,
      .xlate_retire_epoch_o,
      .done_valid_o,
      .done_ready_i,
      .done_data_o,
      .left_o
  );

  `ASSERT(DoneHasPlace, done_ready)
endmodule

`default_nettype wire
