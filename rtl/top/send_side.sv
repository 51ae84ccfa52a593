`default_nettype none
`include "assert.svh"

/// The send side: everything that leaves on the wire.
///
/// Inside: send_queue makes requests of WQEs, responder_output makes ACKs, NAKs, Read responses
/// and results of atomics; tx_path gathers their payload and makes frames of both.
///
/// - sq_db, wqe_push: the host rings; taken within the time of some context turns.
/// - sq_*: the send queue's five clients of the send contexts. rsp_*: the responder's client of
///   the receive contexts.
/// - send_rd, send_wr, send_xlate, sq_mem_op, sq_mem_list: clients of the memory side.
/// - inflight: the PSNs of a WQE, before its last packet; always taken. sq_retire: WQEs that fail
///   before anything of them is sent. flush_req: a QP in the error state has something to flush.
/// - begun: a pulse, a packet of a QP is made of which nothing else is unacknowledged. left: a
///   packet that asks for an answer has left the port. drained: a pulse, the queue of a QP in SQD
///   is drained and the host wants to know.
/// - sq_wake, host_wake: a pulse, the QP may be able to go on.
/// - rsp_cmd: what the responder is to answer, in PSN order for each QP. atomic_over: a pulse, an
///   atomic has been answered. rsp_desc_sent: a pulse for each packet that the responder has
///   handed over, with rsp_desc_data.
/// - cpl_fault: a packet that could not be sent, with what was wrong, after the responder has been
///   told when it was the responder's.
/// - read_slot: the Read that a response belongs to, read from the ring of the send queue: the
///   data comes a cycle after en.
/// - rx_reach: what the QP of rx_path_rd has sent, a cycle after en.
/// - send_reset: forget a QP: 0 send queue and 1 responder first, then 2 the send path, which may
///   still get packets of it until they have.
/// - eth_tx: frames without a gap; valid stays from the first beat of a frame to its last. None
///   begins while device_enable_i is 0.
module send_side (
    input  wire logic                                        clk_i,
    input  wire logic                                        rst_ni,
    input  wire logic                                        clk_open_i,
    input  wire logic                                        moved_i,
    output logic                                             awake_o,
    input  wire logic                                        sq_db_valid_i,
    output logic                                             sq_db_ready_o,
    input  wire rnic_pkg::doorbell_t                         sq_db_data_i,
    input  wire logic                                        wqe_push_valid_i,
    output logic                                             wqe_push_ready_o,
    input  wire rnic_pkg::wqe_push_t                         wqe_push_data_i,
    output logic [4:0]                                       sq_acq_valid_o,
    input  wire logic [4:0]                                  sq_acq_ready_i,
    output logic [5*8-1:0]                                   sq_acq_index_o,
    input  wire logic [4:0]                                  sq_ctx_valid_i,
    input  wire logic [1:0]                                  sq_contended_i,
    input  wire rnic_pkg::send_ctx_t                         send_ctx_i,
    output logic [4:0]                                       sq_rel_valid_o,
    input  wire logic [4:0]                                  sq_rel_ready_i,
    output logic [5*rnic_pkg::SendCtxBits-1:0]               sq_rel_data_o,
    output logic [4:0]                                       sq_rel_write_o,
    output logic                                             sq_mem_op_valid_o,
    input  wire logic                                        sq_mem_op_ready_i,
    output rnic_pkg::mem_op_t                                sq_mem_op_data_o,
    input  wire logic                                        sq_mem_op_rsp_valid_i,
    output logic                                             sq_mem_op_rsp_ready_o,
    input  wire rnic_pkg::mem_op_rsp_t                       mem_op_rsp_data_i,
    output logic                                             sq_mem_list_valid_o,
    input  wire logic                                        sq_mem_list_ready_i,
    output rnic_pkg::mem_list_t                              sq_mem_list_data_o,
    output logic [2:0]                                       send_rd_req_valid_o,
    input  wire logic [2:0]                                  send_rd_req_ready_i,
    output logic [3*rnic_pkg::DmaRdReqBits-1:0]              send_rd_req_data_o,
    input  wire logic [2:0]                                  send_rd_rsp_valid_i,
    output logic [2:0]                                       send_rd_rsp_ready_o,
    input  wire logic [3*rnic_pkg::DmaRdRspBits-1:0]         send_rd_rsp_data_i,
    output logic                                             inflight_valid_o,
    output rnic_pkg::inflight_t                              inflight_data_o,
    output logic                                             sq_retire_valid_o,
    input  wire logic                                        sq_retire_ready_i,
    output rnic_pkg::retire_cmd_t                            sq_retire_data_o,
    output logic                                             flush_req_valid_o,
    input  wire logic                                        flush_req_ready_i,
    output logic [7:0]                                       flush_req_qp_o,
    input  wire logic                                        sq_wake_valid_i,
    input  wire logic [7:0]                                  sq_wake_qp_i,
    input  wire logic                                        host_wake_valid_i,
    input  wire logic [7:0]                                  host_wake_qp_i,
    output logic                                             drained_valid_o,
    output logic [7:0]                                       drained_qp_o,
    output logic                                             begun_valid_o,
    output logic [7:0]                                       begun_qp_o,
    output rnic_pkg::read_slot_t                             read_slot_data_o,
    input  wire logic                                        read_slot_en_i,
    input  wire logic [11:0]                                 read_slot_addr_i,
    input  wire logic [2:0]                                  send_reset_valid_i,
    output logic [2:0]                                       send_reset_ready_o,
    input  wire logic [7:0]                                  qp_reset_qp_i,
    output logic                                             cpl_fault_valid_o,
    input  wire logic                                        cpl_fault_ready_i,
    output rnic_pkg::tx_fault_t                              cpl_fault_data_o,
    input  wire logic                                        rsp_cmd_valid_i,
    output logic                                             rsp_cmd_ready_o,
    input  wire rnic_pkg::rsp_cmd_t                          rsp_cmd_data_i,
    output logic                                             rsp_acq_valid_o,
    input  wire logic                                        rsp_acq_ready_i,
    output logic [7:0]                                       rsp_acq_index_o,
    input  wire logic                                        rsp_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t                         recv_ctx_i,
    output logic                                             rsp_rel_valid_o,
    input  wire logic                                        rsp_rel_ready_i,
    output rnic_pkg::recv_ctx_t                              rsp_rel_data_o,
    output logic                                             rsp_rel_write_o,
    output rnic_pkg::tx_desc_t                               rsp_desc_data_o,
    output logic [1:0]                                       send_xlate_req_valid_o,
    input  wire logic [1:0]                                  send_xlate_req_ready_i,
    output logic [2*rnic_pkg::XlateReqBits-1:0]              send_xlate_req_data_o,
    input  wire logic [1:0]                                  send_xlate_rsp_valid_i,
    output logic [1:0]                                       send_xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t                        rx_xlate_rsp_data_i,
    output logic [1:0]                                       send_xlate_retire_valid_o,
    output logic [1:0]                                       send_xlate_retire_epoch_o,
    output logic                                             send_wr_valid_o,
    input  wire logic                                        send_wr_ready_i,
    output rnic_pkg::dma_wr_t                                send_wr_data_o,
    input  wire logic                                        send_wr_done_i,
    output logic                                             atomic_over_o,
    input  wire logic                                        device_enable_i,
    input  wire logic [47:0]                                 port_mac_i,
    input  wire rnic_pkg::xlate_rsp_t                        tx_xlate_rsp_data_i,
    output logic                                             tx_path_rd_en_o,
    output logic [7:0]                                       tx_path_rd_qp_o,
    input  wire rnic_pkg::path_t                             tx_path_data_i,
    input  wire logic                                        rx_path_rd_en_i,
    input  wire logic [7:0]                                  rx_path_rd_qp_i,
    output rnic_pkg::reach_t                                 rx_reach_data_o,
    output logic                                             eth_tx_valid_o,
    input  wire logic                                        eth_tx_ready_i,
    output rnic_pkg::frame_beat_t                            eth_tx_data_o,
    output logic                                             left_valid_o,
    input  wire logic                                        left_ready_i,
    output rnic_pkg::timer_event_t                           left_data_o,
    output logic                                             rsp_desc_sent_o,
    output logic [rnic_pkg::NumCounters-1:0]                 ev_send_o
);
  logic [1:0] desc_valid, desc_ready, piece_valid, piece_ready, fault_valid, fault_ready;
  rnic_pkg::tx_desc_t sq_desc;
  rnic_pkg::sg_piece_t sq_piece, rsp_piece;
  logic [rnic_pkg::NumCounters-1:0] ev_sq, ev_rsp, ev_tx;
  rnic_pkg::tx_fault_t atomic_fault, path_fault;
  logic tx_fault_valid, tx_fault_ready, unused_fault_last, unused_fault_source, rsp_fault_valid,
      rsp_fault_ready, rsp_told_q;

  logic sq_awake, rsp_awake, tx_awake, sq_busy, rsp_busy, tx_busy;
  assign awake_o = sq_awake || rsp_awake || tx_awake;
  logic sq_clk;
  room_clock u_sq_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(sq_clk), .awake_o(sq_awake),
      .stir_i(|{sq_busy, sq_db_valid_i, wqe_push_valid_i, sq_acq_valid_o, sq_ctx_valid_i,
          sq_rel_valid_o, sq_contended_i, sq_mem_op_valid_o, sq_mem_op_rsp_valid_i,
          send_rd_req_valid_o[0], send_rd_rsp_valid_i[0], desc_valid[0], piece_valid[0],
          inflight_valid_o, sq_retire_valid_o, flush_req_valid_o, sq_wake_valid_i,
          host_wake_valid_i, drained_valid_o, begun_valid_o, read_slot_en_i,
          send_reset_valid_i[0], sq_mem_list_valid_o})
  );

  logic rsp_clk;
  room_clock u_rsp_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(rsp_clk), .awake_o(rsp_awake),
      .stir_i(|{rsp_busy, rsp_cmd_valid_i, rsp_fault_valid, rsp_acq_valid_o, rsp_ctx_valid_i,
          rsp_rel_valid_o, desc_valid[1], piece_valid[1], fault_valid[1],
          send_xlate_req_valid_o[1], send_xlate_rsp_valid_i[1], send_xlate_retire_valid_o[1],
          send_rd_req_valid_o[1], send_rd_rsp_valid_i[1], send_wr_valid_o, send_wr_done_i,
          atomic_over_o, send_reset_valid_i[1]})
  );

  logic tx_clk;
  room_clock u_tx_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(tx_clk), .awake_o(tx_awake),
      .stir_i(|{tx_busy, desc_valid, piece_valid, send_xlate_req_valid_o[0],
          send_xlate_rsp_valid_i[0], send_xlate_retire_valid_o[0], send_rd_req_valid_o[2],
          send_rd_rsp_valid_i[2], tx_path_rd_en_o, fault_valid[0], eth_tx_valid_o, left_valid_o,
          rx_path_rd_en_i, send_reset_valid_i[2], moved_i})
  );

  send_queue u_send_queue (
      .clk_i(sq_clk), .rst_ni, .busy_o(sq_busy), .sq_doorbell_valid_i(sq_db_valid_i),
      .sq_doorbell_ready_o(sq_db_ready_o), .sq_doorbell_data_i(sq_db_data_i), .wqe_push_valid_i,
      .wqe_push_ready_o, .wqe_push_data_i, .acq_valid_o(sq_acq_valid_o),
      .acq_ready_i(sq_acq_ready_i), .acq_index_o(sq_acq_index_o), .ctx_valid_i(sq_ctx_valid_i),
      .ctx_data_i(send_ctx_i), .contended_i(sq_contended_i), .rel_valid_o(sq_rel_valid_o),
      .rel_ready_i(sq_rel_ready_i), .rel_write_o(sq_rel_write_o), .rel_data_o(sq_rel_data_o),
      .mem_op_valid_o(sq_mem_op_valid_o), .mem_op_ready_i(sq_mem_op_ready_i),
      .mem_op_data_o(sq_mem_op_data_o), .mem_op_rsp_valid_i(sq_mem_op_rsp_valid_i),
      .mem_op_rsp_ready_o(sq_mem_op_rsp_ready_o), .mem_op_rsp_data_i,
      .mem_list_valid_o(sq_mem_list_valid_o), .mem_list_ready_i(sq_mem_list_ready_i),
      .mem_list_data_o(sq_mem_list_data_o),
      .rd_req_valid_o(send_rd_req_valid_o[0]), .rd_req_ready_i(send_rd_req_ready_i[0]),
      .rd_req_data_o(send_rd_req_data_o[0+:rnic_pkg::DmaRdReqBits]),
      .rd_rsp_valid_i(send_rd_rsp_valid_i[0]), .rd_rsp_ready_o(send_rd_rsp_ready_o[0]),
      .rd_rsp_data_i(send_rd_rsp_data_i[0+:rnic_pkg::DmaRdRspBits]), .desc_valid_o(desc_valid[0]),
      .desc_ready_i(desc_ready[0]), .desc_data_o(sq_desc), .piece_valid_o(piece_valid[0]),
      .piece_ready_i(piece_ready[0]), .piece_data_o(sq_piece), .inflight_valid_o,
      .inflight_data_o, .retire_cmd_valid_o(sq_retire_valid_o),
      .retire_cmd_ready_i(sq_retire_ready_i), .retire_cmd_data_o(sq_retire_data_o),
      .flush_req_valid_o, .flush_req_ready_i, .flush_req_qp_o, .sq_wake_valid_i, .sq_wake_qp_i,
      .host_wake_valid_i, .host_wake_qp_i, .drained_valid_o, .drained_qp_o, .begun_valid_o,
      .begun_qp_o, .read_slot_en_i, .read_slot_addr_i, .read_slot_data_o,
      .qp_reset_valid_i(send_reset_valid_i[0]), .qp_reset_ready_o(send_reset_ready_o[0]),
      .qp_reset_qp_i, .event_o(ev_sq)
  );

  // A fault of a responder's packet goes to the responder and to the completion side, one after the
  // other.
  stream_arbiter #(.N (2), .Width(rnic_pkg::TxFaultBits)) u_faults (
      .clk_i, .rst_ni, .in_valid_i(fault_valid), .in_ready_o(fault_ready), .in_last_i(2'b11),
      .in_data_i({atomic_fault, path_fault}), .out_valid_o(tx_fault_valid),
      .out_ready_i(tx_fault_ready), .out_last_o(unused_fault_last), .out_data_o(cpl_fault_data_o),
      .out_source_o(unused_fault_source)
  );

  assign rsp_fault_valid = tx_fault_valid && cpl_fault_data_o.responder && !rsp_told_q;
  assign cpl_fault_valid_o = tx_fault_valid && (!cpl_fault_data_o.responder || rsp_told_q);
  assign tx_fault_ready  = cpl_fault_valid_o && cpl_fault_ready_i;

  always_ff @(posedge clk_i) begin
    if (rsp_fault_valid && rsp_fault_ready) rsp_told_q <= 1'b1;
    if (tx_fault_ready) rsp_told_q <= 1'b0;
    if (!rst_ni) rsp_told_q <= 1'b0;
  end

  responder_output u_responder_output (
      .clk_i(rsp_clk), .rst_ni, .busy_o(rsp_busy), .cmd_valid_i(rsp_cmd_valid_i),
      .cmd_ready_o(rsp_cmd_ready_o), .cmd_data_i(rsp_cmd_data_i),
      .tx_fault_valid_i(rsp_fault_valid), .tx_fault_ready_o(rsp_fault_ready),
      .tx_fault_data_i(cpl_fault_data_o), .acq_valid_o(rsp_acq_valid_o),
      .acq_ready_i(rsp_acq_ready_i), .acq_index_o(rsp_acq_index_o), .ctx_valid_i(rsp_ctx_valid_i),
      .ctx_data_i(recv_ctx_i), .rel_valid_o(rsp_rel_valid_o), .rel_ready_i(rsp_rel_ready_i),
      .rel_write_o(rsp_rel_write_o), .rel_data_o(rsp_rel_data_o), .desc_valid_o(desc_valid[1]),
      .desc_ready_i(desc_ready[1]), .desc_data_o(rsp_desc_data_o), .piece_valid_o(piece_valid[1]),
      .piece_ready_i(piece_ready[1]), .piece_data_o(rsp_piece),
      .atomic_fault_valid_o(fault_valid[1]), .atomic_fault_ready_i(fault_ready[1]),
      .atomic_fault_data_o(atomic_fault), .xlate_req_valid_o(send_xlate_req_valid_o[1]),
      .xlate_req_ready_i(send_xlate_req_ready_i[1]),
      .xlate_req_data_o(send_xlate_req_data_o[rnic_pkg::XlateReqBits+:rnic_pkg::XlateReqBits]),
      .xlate_rsp_valid_i(send_xlate_rsp_valid_i[1]), .xlate_rsp_ready_o(send_xlate_rsp_ready_o[1]),
      .xlate_rsp_data_i(rx_xlate_rsp_data_i), .xlate_retire_valid_o(send_xlate_retire_valid_o[1]),
      .xlate_retire_epoch_o(send_xlate_retire_epoch_o[1]), .rd_req_valid_o(send_rd_req_valid_o[1]),
      .rd_req_ready_i(send_rd_req_ready_i[1]),
      .rd_req_data_o(send_rd_req_data_o[rnic_pkg::DmaRdReqBits+:rnic_pkg::DmaRdReqBits]),
      .rd_rsp_valid_i(send_rd_rsp_valid_i[1]), .rd_rsp_ready_o(send_rd_rsp_ready_o[1]),
      .rd_rsp_data_i(send_rd_rsp_data_i[rnic_pkg::DmaRdRspBits+:rnic_pkg::DmaRdRspBits]),
      .wr_valid_o(send_wr_valid_o), .wr_ready_i(send_wr_ready_i), .wr_data_o(send_wr_data_o),
      .wr_done_i(send_wr_done_i), .atomic_over_o, .qp_reset_valid_i(send_reset_valid_i[1]),
      .qp_reset_ready_o(send_reset_ready_o[1]), .qp_reset_qp_i, .event_o(ev_rsp)
  );

  assign rsp_desc_sent_o = desc_valid[1] && desc_ready[1];

  tx_path u_tx_path (
      .clk_i(tx_clk), .rst_ni, .busy_o(tx_busy), .enable_i(device_enable_i), .port_mac_i,
      .desc_valid_i(desc_valid), .desc_ready_o(desc_ready),
      .desc_data_i({rsp_desc_data_o, sq_desc}), .piece_valid_i(piece_valid),
      .piece_ready_o(piece_ready), .piece_data_i({rsp_piece, sq_piece}),
      .xlate_req_valid_o(send_xlate_req_valid_o[0]),
      .xlate_req_ready_i(send_xlate_req_ready_i[0]),
      .xlate_req_data_o(send_xlate_req_data_o[0+:rnic_pkg::XlateReqBits]),
      .xlate_rsp_valid_i(send_xlate_rsp_valid_i[0]),
      .xlate_rsp_ready_o(send_xlate_rsp_ready_o[0]), .xlate_rsp_data_i(tx_xlate_rsp_data_i),
      .xlate_retire_valid_o(send_xlate_retire_valid_o[0]),
      .xlate_retire_epoch_o(send_xlate_retire_epoch_o[0]),
      .rd_req_valid_o(send_rd_req_valid_o[2]), .rd_req_ready_i(send_rd_req_ready_i[2]),
      .rd_req_data_o(send_rd_req_data_o[2*rnic_pkg::DmaRdReqBits+:rnic_pkg::DmaRdReqBits]),
      .rd_rsp_valid_i(send_rd_rsp_valid_i[2]), .rd_rsp_ready_o(send_rd_rsp_ready_o[2]),
      .rd_rsp_data_i(send_rd_rsp_data_i[2*rnic_pkg::DmaRdRspBits+:rnic_pkg::DmaRdRspBits]),
      .path_rd_en_o(tx_path_rd_en_o), .path_rd_qp_o(tx_path_rd_qp_o),
      .path_rd_data_i(tx_path_data_i), .tx_fault_valid_o(fault_valid[0]),
      .tx_fault_ready_i(fault_ready[0]), .tx_fault_data_o(path_fault), .eth_tx_valid_o,
      .eth_tx_ready_i, .eth_tx_data_o, .left_valid_o, .left_ready_i, .left_data_o,
      .reach_rd_en_i(rx_path_rd_en_i), .reach_rd_qp_i(rx_path_rd_qp_i),
      .reach_data_o(rx_reach_data_o), .qp_reset_valid_i(send_reset_valid_i[2]),
      .qp_reset_ready_o(send_reset_ready_o[2]), .qp_reset_qp_i, .event_o(ev_tx)
  );

  assign ev_send_o = ev_sq | ev_rsp | ev_tx;

  `ASSERT_HOLD(FaultHold, cpl_fault_valid_o, cpl_fault_ready_i, cpl_fault_data_o)
endmodule

`default_nettype wire
