`default_nettype none
`include "assert.svh"

/// Completion: what follows a placed packet, retirement in order, error state and flush, CQs, EQs.
///
/// qp_completion has what belongs to queue pairs, queue_engines what belongs to CQs and EQs.
///
/// rx_post turns each rx_done_t into responder commands, receive CQEs, retire commands, QP errors.
/// For a SEND with invalidate it first has the key invalidated (mem_op_*).
/// Recovery makes a send queue go back when packets are lost or not ready to be taken.
/// retire pops finished WQEs of a QP in order from the in-flight table: a CQE for each that is not
/// silent, the retired index in every CQE; when silent WQEs have retired and no CQE follows (16 in
/// a row, or the queue is then empty), a retired_record is written. A failed WQE gets its CQE even
/// if silent, once all before it have retired, and then the QP goes to the error state.
/// error_path sets both contexts to ERR, writes an event (unless quiet) and flushes: a CQE
/// WrFlushErr for every posted send WQE from retire_idx on and every receive WQE from rq_done on,
/// silent or not, in order; doorbells that come later (flush_req) are flushed as well. It also
/// makes the events of QPs that are not errors: drained_*, established_*.
/// The CQ engine checks for overrun (a CQ that is exactly full is legal), writes the CQE, and makes
/// the event that an arm asks for: an arm fires at once for entries newer than the last event. An
/// overrun stops the CQ, makes a CqError event, and puts the QP that hit it in the error state.
/// The EQ engine writes the EQE, then asks for the MSI-X message. A full EQ loses the event and
/// counts it. Receive doorbells are taken here: rq_pi, and a flush for a QP in the error state.
/// Events of SRQs (srq_eqe_*) pass through to the EQ engine, refused and taken SRQ doorbells are
/// counted here.
/// Send context clients: 0 retire, 1 error and flush. Receive context clients: 0 rx_post, 1 error
/// and flush, 2 receive doorbells. CQ and EQ contexts live here; the admin queue has a client of
/// each (bit 0 CQ, bit 1 EQ of the admin_* vectors).
module completion (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      clk_open_i,
    output logic                           awake_o,
    output logic                           ready_o,
    input  wire logic [63:0]               cycles_i,
    output rnic_pkg::rest_t                rest_o,
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
    input  wire logic                      srq_eqe_valid_i,
    output logic                           srq_eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t        srq_eqe_data_i,
    input  wire logic                      srq_taken_i,
    input  wire logic                      srq_refused_i,
    // Send queue drained in SQD; first packet in RTR; pulses
    input  wire logic                      drained_valid_i,
    input  wire logic [7:0]                drained_qp_i,
    input  wire logic                      established_valid_i,
    input  wire logic [7:0]                established_qp_i,
    // Events of the device and of the port
    input  wire logic                      device_eqe_valid_i,
    output logic                           device_eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t        device_eqe_data_i,
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
    input  wire logic                      cq_doorbell_valid_i,
    output logic                           cq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       cq_doorbell_data_i,
    input  wire logic                      eq_doorbell_valid_i,
    output logic                           eq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       eq_doorbell_data_i,
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
    // Admin queue's clients of the CQ (0) and EQ (1) contexts
    input  wire logic [1:0]                admin_acq_valid_i,
    output logic [1:0]                     admin_acq_ready_o,
    input  wire logic [7:0]                admin_acq_index_i,
    output logic [1:0]                     admin_ctx_valid_o,
    output rnic_pkg::cq_ctx_t              admin_cq_ctx_o,
    output rnic_pkg::eq_ctx_t              admin_eq_ctx_o,
    input  wire logic [1:0]                admin_rel_valid_i,
    output logic [1:0]                     admin_rel_ready_o,
    input  wire logic                      admin_rel_write_i,
    input  wire rnic_pkg::cq_ctx_t         admin_cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t         admin_eq_ctx_i,
    // DMA writes: bit 0 CQEs and EQEs, bit 1 retired records
    output logic [1:0]                     wr_valid_o,
    input  wire logic [1:0]                wr_ready_i,
    output logic [2*rnic_pkg::DmaWrBits-1:0] wr_data_o,
    input  wire logic [1:0]                wr_done_i,
    output logic                           msix_valid_o,
    input  wire logic                      msix_ready_i,
    output logic [7:0]                     msix_vector_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic                           flushing_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned WrBits = rnic_pkg::DmaWrBits;

  logic [2:0] item_kept, item_valid, item_ready, item_is_event;
  logic [3*rnic_pkg::CqeReqBits-1:0] item_data;
  logic [1:0] enter, leave;
  logic dead_valid, probe_valid, probe_ready, rq_taken, rq_refused;
  logic [7:0] dead_qp, probe_qp, probe_cqn;
  logic [rnic_pkg::NumCounters-1:0] qp_event, queue_event;

  rnic_pkg::rest_t timers_rest, queues_rest;
  rest_join u_rest (.cycles_i, .a_i(timers_rest), .b_i(queues_rest), .rest_o);

  // ---- Rooms: a deadline that has come is work --------------------------------------------------
  logic qp_awake, queues_awake, timers_due, queues_due;
  logic [42:0] timers_left, queues_left;
  logic [19:0] rx_left_q;
  assign awake_o     = qp_awake || queues_awake;
  assign timers_left = timers_rest.deadline - cycles_i[42:0];
  assign queues_left = queues_rest.deadline - cycles_i[42:0];
  assign timers_due  = timers_rest.busy || (timers_rest.timed && $signed(timers_left) <= 0);
  assign queues_due  = queues_rest.busy || (queues_rest.timed && $signed(queues_left) <= 0);
  always_ff @(posedge clk_i) rx_left_q <= rx_left_i;
  logic qp_clk;
  room_clock u_qp_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(qp_clk), .awake_o(qp_awake),
      .stir_i(|{timers_due, done_valid_i, tx_fault_valid_i, retire_cmd_valid_i, inflight_valid_i,
          flush_req_valid_i, qp_error_valid_i, rx_left_i != rx_left_q, srq_error_valid_o,
          drained_valid_i, established_valid_i, rsp_cmd_valid_o, mem_op_valid_o,
          mem_op_rsp_valid_i, unbind_mem_op_valid_o, unbind_mem_op_rsp_valid_i, unbinding_o,
          sq_wake_valid_o, begun_valid_i, left_valid_i, timer_valid_i,
          rq_doorbell_valid_i, send_acq_valid_o, send_ctx_valid_i, send_rel_valid_o,
          recv_acq_valid_o, recv_ctx_valid_i, recv_rel_valid_o, qp_reset_valid_i, wr_valid_o[1],
          wr_done_i[1], item_valid, enter, leave, dead_valid, probe_valid, rq_taken, rq_refused})
  );

  logic queues_clk;
  room_clock u_queues_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(queues_clk), .awake_o(queues_awake),
      .stir_i(|{!ready_o, queues_due, item_valid, srq_eqe_valid_i, cq_doorbell_valid_i,
          eq_doorbell_valid_i, admin_acq_valid_i, admin_ctx_valid_o, admin_rel_valid_i,
          wr_valid_o[0], wr_done_i[0], msix_valid_o, device_eqe_valid_i, dead_valid, probe_valid,
          enter, leave, srq_refused_i, rq_refused})
  );

  qp_completion u_qp (
      .clk_i(qp_clk), .rst_ni, .cycles_i, .timers_rest_o(timers_rest),
      .done_valid_i, .done_ready_o, .done_data_i,
      .tx_fault_valid_i, .tx_fault_ready_o, .tx_fault_data_i,
      .retire_cmd_valid_i, .retire_cmd_ready_o, .retire_cmd_data_i,
      .inflight_valid_i, .inflight_data_i,
      .flush_req_valid_i, .flush_req_ready_o, .flush_req_qp_i,
      .qp_error_valid_i, .qp_error_ready_o, .qp_error_data_i,
      .rx_entered_i, .rx_left_i,
      .srq_error_valid_o, .srq_error_srq_o,
      .drained_valid_i, .drained_qp_i,
      .established_valid_i, .established_qp_i,
      .rsp_cmd_valid_o, .rsp_cmd_ready_i, .rsp_cmd_data_o,
      .mem_op_valid_o, .mem_op_ready_i, .mem_op_data_o,
      .mem_op_rsp_valid_i, .mem_op_rsp_ready_o, .mem_op_rsp_data_i,
      .unbind_mem_op_valid_o, .unbind_mem_op_ready_i, .unbind_mem_op_data_o,
      .unbind_mem_op_rsp_valid_i, .unbinding_o,
      .invalidation_over_o, .sq_wake_valid_o, .sq_wake_qp_o,
      .begun_valid_i, .begun_qp_i,
      .left_valid_i, .left_ready_o, .left_data_i,
      .timer_valid_i, .timer_data_i,
      .recovery_qp_o,
      .rq_doorbell_valid_i, .rq_doorbell_ready_o, .rq_doorbell_data_i,
      .send_acq_valid_o, .send_acq_ready_i, .send_acq_index_o,
      .send_ctx_valid_i, .send_ctx_data_i,
      .send_rel_valid_o, .send_rel_ready_i, .send_rel_write_o, .send_rel_data_o,
      .recv_acq_valid_o, .recv_acq_ready_i, .recv_acq_index_o,
      .recv_ctx_valid_i, .recv_ctx_data_i,
      .recv_rel_valid_o, .recv_rel_ready_i, .recv_rel_write_o, .recv_rel_data_o,
      .qp_reset_valid_i, .qp_reset_ready_o, .qp_reset_qp_i,
      .flushing_o,
      .record_valid_o(wr_valid_o[1]), .record_ready_i(wr_ready_i[1]),
      .record_data_o(wr_data_o[WrBits+:WrBits]), .record_done_i(wr_done_i[1]),
      .item_kept_i(item_kept),
      .item_valid_o(item_valid), .item_ready_i(item_ready),
      .item_is_event_o(item_is_event),
      .item_data_o(item_data),
      .stage_enter_i(enter), .stage_leave_i(leave),
      .dead_valid_i(dead_valid), .dead_qp_i(dead_qp),
      .probe_valid_i(probe_valid), .probe_ready_o(probe_ready),
      .probe_qp_i(probe_qp), .probe_cqn_i(probe_cqn),
      .rq_taken_o(rq_taken), .rq_refused_o(rq_refused), .event_o(qp_event)
  );

  queue_engines u_queues (
      .clk_i(queues_clk), .rst_ni,
      .ready_o, .cycles_i, .rest_o(queues_rest), .item_kept_o(item_kept),
      .item_valid_i(item_valid), .item_ready_o(item_ready),
      .item_is_event_i(item_is_event),
      .item_data_i(item_data),
      .srq_eqe_valid_i, .srq_eqe_ready_o, .srq_eqe_data_i,
      .cq_doorbell_valid_i, .cq_doorbell_ready_o, .cq_doorbell_data_i,
      .eq_doorbell_valid_i, .eq_doorbell_ready_o, .eq_doorbell_data_i,
      .admin_acq_valid_i, .admin_acq_ready_o, .admin_acq_index_i,
      .admin_ctx_valid_o,
      .admin_cq_ctx_o,
      .admin_eq_ctx_o,
      .admin_rel_valid_i, .admin_rel_ready_o, .admin_rel_write_i,
      .admin_cq_ctx_i,
      .admin_eq_ctx_i,
      .wr_valid_o(wr_valid_o[0]), .wr_ready_i(wr_ready_i[0]), .wr_data_o(wr_data_o[0+:WrBits]),
      .wr_done_i(wr_done_i[0]),
      .msix_valid_o, .msix_ready_i,
      .msix_vector_o,
      .device_eqe_valid_i, .device_eqe_ready_o, .device_eqe_data_i,
      .dead_valid_o(dead_valid), .dead_qp_o(dead_qp),
      .probe_valid_o(probe_valid), .probe_ready_i(probe_ready),
      .probe_qp_o(probe_qp), .probe_cqn_o(probe_cqn),
      .stage_enter_o(enter), .stage_leave_o(leave), .refused_i({srq_refused_i, rq_refused}),
      .event_o(queue_event)
  );

  // A doorbell of each kind in one cycle: the SRQ's is counted in the next.
  logic taken_left_q;
  always_ff @(posedge clk_i) begin
    taken_left_q <= (taken_left_q && rq_taken) || srq_taken_i;
    if (!rst_ni) taken_left_q <= 1'b0;
  end

  always_comb begin
    event_o                                    = queue_event | qp_event;
    event_o[rnic_pkg::CounterReceiveDoorbells] = rq_taken || taken_left_q;
  end
endmodule

`default_nettype wire
