`default_nettype none

/// What becomes of the work of queue pairs: packets that have been placed, acknowledgements,
/// losses, errors, receive doorbells. Out come commands for the responder, entries for CQs
/// (item_*), retired records, and errors of queue pairs with all that is flushed.
///
/// rx_post turns each rx_done_t into responder commands, receive CQEs, retire commands, QP errors.
/// retire_path pops finished WQEs of a QP in order, and makes a send queue go back when packets
/// are lost. error_path sets both contexts of a QP to ERR, flushes what is posted, and makes its
/// events. rq_doorbell moves the producer index of a receive queue.
///
/// An entry that is offered while its place is kept (item_kept_i) is taken in some cycles whatever
/// else waits; rx_post and retire borrow a context only then. A flush holds no context while it
/// offers one. qp_reset clears recovery first, which may still have a failure to report, then the
/// errors of the QP, when everything of it has left the stages (stage_*).
module qp_completion (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic [63:0]               cycles_i,
    output rnic_pkg::rest_t                timers_rest_o,
    input  wire logic                      done_valid_i,
    output logic                           done_ready_o,
    input  wire rnic_pkg::rx_done_t        done_data_i,
    input  wire logic                      tx_fault_valid_i,
    output logic                           tx_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t       tx_fault_data_i,
    input  wire logic                      retire_cmd_valid_i,
    output logic                           retire_cmd_ready_o,
    input  wire rnic_pkg::retire_cmd_t     retire_cmd_data_i,
    input  wire logic                      inflight_valid_i,
    input  wire rnic_pkg::inflight_t       inflight_data_i,
    input  wire logic                      flush_req_valid_i,
    output logic                           flush_req_ready_o,
    input  wire logic [7:0]                flush_req_qp_i,
    input  wire logic                      qp_error_valid_i,
    output logic                           qp_error_ready_o,
    input  wire rnic_pkg::qp_error_t       qp_error_data_i,
    // Packets that have entered and left the receive engine
    input  wire logic [19:0]               rx_entered_i,
    input  wire logic [19:0]               rx_left_i,
    output logic                           srq_error_valid_o,
    output logic [7:0]                     srq_error_srq_o,
    // Send queue drained in SQD; first packet in RTR; pulses
    input  wire logic                      drained_valid_i,
    input  wire logic [7:0]                drained_qp_i,
    input  wire logic                      established_valid_i,
    input  wire logic [7:0]                established_qp_i,
    output logic                           rsp_cmd_valid_o,
    input  wire logic                      rsp_cmd_ready_i,
    output rnic_pkg::rsp_cmd_t             rsp_cmd_data_o,
    output logic                           mem_op_valid_o,
    input  wire logic                      mem_op_ready_i,
    output rnic_pkg::mem_op_t              mem_op_data_o,
    input  wire logic                      mem_op_rsp_valid_i,
    output logic                           mem_op_rsp_ready_o,
    input  wire rnic_pkg::mem_op_rsp_t     mem_op_rsp_data_i,
    // Windows of QPs that have failed; unbinding: such a QP may still have some
    output logic                           unbind_mem_op_valid_o,
    input  wire logic                      unbind_mem_op_ready_i,
    output rnic_pkg::mem_op_t              unbind_mem_op_data_o,
    input  wire logic                      unbind_mem_op_rsp_valid_i,
    output logic                           unbinding_o,
    // rx_post: what waits behind an invalidation may go on; a pulse
    output logic                           invalidation_over_o,
    output logic                           sq_wake_valid_o,
    output logic [7:0]                     sq_wake_qp_o,
    // As in qp_timer: a QP begins to send; a packet that asks for an answer has left; Read data has
    // come
    input  wire logic                      begun_valid_i,
    input  wire logic [7:0]                begun_qp_i,
    input  wire logic                      left_valid_i,
    output logic                           left_ready_o,
    input  wire rnic_pkg::timer_event_t    left_data_i,
    input  wire logic                      timer_valid_i,
    input  wire rnic_pkg::timer_event_t    timer_data_i,
    // The queue pair of recovery's events
    output logic [7:0]                     recovery_qp_o,
    input  wire logic                      rq_doorbell_valid_i,
    output logic                           rq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       rq_doorbell_data_i,
    output logic [1:0]                     send_acq_valid_o,
    input  wire logic [1:0]                send_acq_ready_i,
    output logic [2*8-1:0]                 send_acq_index_o,
    input  wire logic [1:0]                send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_data_i,
    output logic [1:0]                     send_rel_valid_o,
    input  wire logic [1:0]                send_rel_ready_i,
    output logic [1:0]                     send_rel_write_o,
    output logic [2*rnic_pkg::SendCtxBits-1:0] send_rel_data_o,
    output logic [2:0]                     recv_acq_valid_o,
    input  wire logic [2:0]                recv_acq_ready_i,
    output logic [3*8-1:0]                 recv_acq_index_o,
    input  wire logic [2:0]                recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_data_i,
    output logic [2:0]                     recv_rel_valid_o,
    input  wire logic [2:0]                recv_rel_ready_i,
    output logic [2:0]                     recv_rel_write_o,
    output logic [3*rnic_pkg::RecvCtxBits-1:0] recv_rel_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic                           flushing_o,
    // Entries for CQs, and events in their order: 0 retire, 1 rx_post, 2 flush
    input  wire logic [2:0]                item_kept_i,
    output logic [2:0]                     item_valid_o,
    input  wire logic [2:0]                item_ready_i,
    output logic [2:0]                     item_is_event_o,
    output logic [3*rnic_pkg::CqeReqBits-1:0] item_data_o,
    // Their way: 0 they have been taken, 1 written, each in and out
    input  wire logic [1:0]                stage_enter_i,
    input  wire logic [1:0]                stage_leave_i,
    // A QP whose CQ has overrun
    input  wire logic                      dead_valid_i,
    input  wire logic [7:0]                dead_qp_i,
    // One that may be on a CQ that has overrun
    input  wire logic                      probe_valid_i,
    output logic                           probe_ready_o,
    input  wire logic [7:0]                probe_qp_i,
    input  wire logic [7:0]                probe_cqn_i,
    // Retired records
    output logic                           record_valid_o,
    input  wire logic                      record_ready_i,
    output rnic_pkg::dma_wr_t              record_data_o,
    input  wire logic                      record_done_i,
    // A receive doorbell has come, has been refused; pulses
    output logic                           rq_taken_o,
    output logic                           rq_refused_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned SendBits = rnic_pkg::SendCtxBits;
  localparam int unsigned RecvBits = rnic_pkg::RecvCtxBits;
  localparam int unsigned CqeBits = rnic_pkg::CqeReqBits;

  // Errors: 0 retire, 1 rx_post, 2 send path, 3 host. Stages through which a QP's work passes:
  // 0 retire commands, 1 records, and outside CQEs and their writes.
  logic [2:0] error_valid, error_ready;
  logic [1:0] enter, leave, failing;
  rnic_pkg::retire_cmd_t post_retire;
  rnic_pkg::qp_error_t retire_error, post_error, fault_error;

  logic post_busy, post_invalidated, post_refused, post_retire_valid, post_retire_ready;
  logic clear_valid, clear_ready, unused_kept;
  logic [rnic_pkg::NumCounters-1:0] retire_event;
  logic [7:0] post_busy_qp, open_qp;
  logic open, open_clear;
  logic [15:0] open_tag;

  // The flush holds no context.
  assign unused_kept          = item_kept_i[2];
  assign item_is_event_o[1:0] = 2'b00;

  rx_post u_rx_post (
      .clk_i, .rst_ni,
      .done_valid_i, .done_ready_o, .done_data_i,
      .acq_valid_o(recv_acq_valid_o[0]), .acq_ready_i(recv_acq_ready_i[0]),
      .acq_index_o(recv_acq_index_o[0+:8]),
      .ctx_valid_i(recv_ctx_valid_i[0]), .ctx_data_i(recv_ctx_data_i),
      .rel_valid_o(recv_rel_valid_o[0]), .rel_ready_i(recv_rel_ready_i[0]),
      .rel_write_o(recv_rel_write_o[0]), .rel_data_o(recv_rel_data_o[0+:RecvBits]),
      .cqe_kept_i(item_kept_i[1]),
      .cqe_valid_o(item_valid_o[1]), .cqe_ready_i(item_ready_i[1]),
      .cqe_data_o(item_data_o[CqeBits+:CqeBits]),
      .rsp_cmd_valid_o, .rsp_cmd_ready_i, .rsp_cmd_data_o,
      .retire_valid_o(post_retire_valid), .retire_ready_i(post_retire_ready),
      .retire_data_o(post_retire),
      .open_qp_i(open_qp), .open_o(open),
      .open_tag_o(open_tag), .open_clear_i(open_clear),
      .srq_error_valid_o, .srq_error_srq_o,
      .failing_o(failing[1]),
      .error_valid_o(error_valid[1]), .error_ready_i(error_ready[1]), .error_data_o(post_error),
      .mem_op_valid_o, .mem_op_ready_i, .mem_op_data_o,
      .mem_op_rsp_valid_i, .mem_op_rsp_ready_o, .mem_op_rsp_data_i,
      .clear_valid_i(clear_valid), .clear_qp_i(qp_reset_qp_i),
      .invalidated_o(post_invalidated), .refused_o(post_refused), .invalidation_over_o,
      .busy_o(post_busy), .busy_qp_o(post_busy_qp)
  );

  retire_path u_retire (
      .clk_i, .rst_ni, .cycles_i, .timers_rest_o,
      .inflight_valid_i, .inflight_data_i,
      .cmd_valid_i({retire_cmd_valid_i, post_retire_valid}),
      .cmd_ready_o({retire_cmd_ready_o, post_retire_ready}),
      .cmd_data_i({retire_cmd_data_i, post_retire}),
      .tx_fault_valid_i, .tx_fault_ready_o, .tx_fault_data_i,
      .acq_valid_o(send_acq_valid_o[0]), .acq_ready_i(send_acq_ready_i[0]),
      .acq_index_o(send_acq_index_o[0+:8]),
      .ctx_valid_i(send_ctx_valid_i[0]), .ctx_data_i(send_ctx_data_i),
      .rel_valid_o(send_rel_valid_o[0]), .rel_ready_i(send_rel_ready_i[0]),
      .rel_write_o(send_rel_write_o[0]), .rel_data_o(send_rel_data_o[0+:SendBits]),
      .cqe_kept_i(item_kept_i[0]),
      .cqe_valid_o(item_valid_o[0]), .cqe_ready_i(item_ready_i[0]),
      .cqe_data_o(item_data_o[0+:CqeBits]),
      .failing_o(failing[0]), .error_valid_o({error_valid[2], error_valid[0]}),
      .error_ready_i({error_ready[2], error_ready[0]}), .error_data_o({fault_error, retire_error}),
      .record_valid_o, .record_ready_i, .record_data_o,
      .sq_wake_valid_o, .sq_wake_qp_o,
      .begun_valid_i, .begun_qp_i,
      .left_valid_i, .left_ready_o, .left_data_i,
      .timer_valid_i, .timer_data_i,
      .recovery_qp_o,
      .clear_valid_i(clear_valid), .clear_ready_o(clear_ready), .clear_qp_i(qp_reset_qp_i),
      .stage_enter_o(enter[0]), .stage_leave_o(leave[0]), .event_o(retire_event)
  );

  // A qp_reset clears recovery first, which may still have a failure to report.
  logic cleared_q;
  assign clear_valid = qp_reset_valid_i && !cleared_q;
  always_ff @(posedge clk_i) begin
    if (clear_valid && clear_ready) cleared_q <= 1'b1;
    if (qp_reset_ready_o) cleared_q <= 1'b0;
    if (!rst_ni) cleared_q <= 1'b0;
  end
  assign enter[1] = record_valid_o && record_ready_i;
  assign leave[1] = record_done_i;

  logic rq_flush_valid, rq_flush_ready;
  logic [7:0] rq_flush_qp;

  rq_doorbell u_rq_doorbell (
      .clk_i, .rst_ni,
      .doorbell_valid_i(rq_doorbell_valid_i), .doorbell_ready_o(rq_doorbell_ready_o),
      .doorbell_data_i(rq_doorbell_data_i),
      .acq_valid_o(recv_acq_valid_o[2]), .acq_ready_i(recv_acq_ready_i[2]),
      .acq_index_o(recv_acq_index_o[16+:8]),
      .ctx_valid_i(recv_ctx_valid_i[2]), .ctx_data_i(recv_ctx_data_i),
      .rel_valid_o(recv_rel_valid_o[2]), .rel_ready_i(recv_rel_ready_i[2]),
      .rel_write_o(recv_rel_write_o[2]), .rel_data_o(recv_rel_data_o[2*RecvBits+:RecvBits]),
      .flush_valid_o(rq_flush_valid), .flush_ready_i(rq_flush_ready), .flush_qp_o(rq_flush_qp),
      .event_taken_o(rq_taken_o), .event_refused_o(rq_refused_o)
  );

  error_path u_errors (
      .clk_i, .rst_ni,
      .error_valid_i({qp_error_valid_i, error_valid}),
      .error_ready_o({qp_error_ready_o, error_ready}),
      .error_data_i({qp_error_data_i, fault_error, post_error, retire_error}),
      .failing_i(failing != '0), .dead_valid_i, .dead_qp_i,
      .probe_valid_i, .probe_ready_o, .probe_qp_i, .probe_cqn_i,
      .drained_valid_i, .drained_qp_i,
      .established_valid_i, .established_qp_i,
      .flush_valid_i({flush_req_valid_i, rq_flush_valid}),
      .flush_ready_o({flush_req_ready_o, rq_flush_ready}),
      .flush_qp_i({flush_req_qp_i, rq_flush_qp}),
      .send_acq_valid_o(send_acq_valid_o[1]), .send_acq_ready_i(send_acq_ready_i[1]),
      .send_acq_index_o(send_acq_index_o[8+:8]),
      .send_ctx_valid_i(send_ctx_valid_i[1]), .send_ctx_data_i,
      .send_rel_valid_o(send_rel_valid_o[1]), .send_rel_ready_i(send_rel_ready_i[1]),
      .send_rel_write_o(send_rel_write_o[1]), .send_rel_data_o(send_rel_data_o[SendBits+:SendBits]),
      .recv_acq_valid_o(recv_acq_valid_o[1]), .recv_acq_ready_i(recv_acq_ready_i[1]),
      .recv_acq_index_o(recv_acq_index_o[8+:8]),
      .recv_ctx_valid_i(recv_ctx_valid_i[1]), .recv_ctx_data_i,
      .recv_rel_valid_o(recv_rel_valid_o[1]), .recv_rel_ready_i(recv_rel_ready_i[1]),
      .recv_rel_write_o(recv_rel_write_o[1]), .recv_rel_data_o(recv_rel_data_o[RecvBits+:RecvBits]),
      .rx_entered_i, .rx_left_i,
      .open_qp_o(open_qp), .open_i(open),
      .open_tag_i(open_tag), .open_clear_o(open_clear),
      .mem_op_valid_o(unbind_mem_op_valid_o), .mem_op_ready_i(unbind_mem_op_ready_i),
      .mem_op_data_o(unbind_mem_op_data_o), .mem_op_rsp_valid_i(unbind_mem_op_rsp_valid_i),
      .unbinding_o,
      .cqe_valid_o(item_valid_o[2]), .cqe_ready_i(item_ready_i[2]),
      .cqe_is_event_o(item_is_event_o[2]),
      .cqe_data_o(item_data_o[2*CqeBits+:CqeBits]),
      .qp_reset_valid_i(qp_reset_valid_i && cleared_q), .qp_reset_ready_o, .qp_reset_qp_i,
      .flushing_o, .stage_enter_i({enter[1], stage_enter_i, enter[0]}),
      .stage_leave_i({leave[1], stage_leave_i, leave[0]}),
      .receive_busy_i(post_busy), .receive_busy_qp_i(post_busy_qp)
  );

  always_comb begin
    event_o                                    = retire_event;
    event_o[rnic_pkg::CounterRetiredRecords]   = enter[1];
    event_o[rnic_pkg::CounterMemoryOps]        = post_invalidated;
    event_o[rnic_pkg::CounterMemoryOpsRefused] = post_refused;
  end
endmodule

`default_nettype wire
