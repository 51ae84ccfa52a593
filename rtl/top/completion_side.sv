`default_nettype none

/// The completion side: what has ended, and who is told. It keeps the CQs, EQs and SRQs.
///
/// Inside: completion retires WQEs, repairs what was lost, writes CQEs, EQEs and MSI-X vectors and
/// flushes queue pairs that have failed; srq_engine keeps the shared receive queues; qp_event_taps
/// tells the counters of each QP.
///
/// - rx_done from the receive side, in wire order; cpl_fault, sq_retire, inflight, flush_req from
///   the send side; qp_error from the host: what has happened to a QP. Places for CQEs and EQEs
///   are kept before a context is borrowed, so nobody waits with one for our own requests to
///   leave.
/// - rsp_cmd: what the responder must answer, in PSN order for each QP.
/// - sq_wake: a pulse, the send queue may be able to go on. invalidation_over: a pulse, a peer's
///   invalidation is done, and what waits behind it may go on.
/// - begun, left, rx_timer: what starts and stops the timer of each QP.
/// - rq_db, cq_db, eq_db, srq_db: the host rings; taken within the time of some context turns.
/// - cpl_send, cpl_recv: two clients of the send contexts, three of the receive contexts; rx_srq:
///   the receive side's client of the SRQ contexts. admin_*: the admin queue's clients of the
///   contexts of 0 CQs, 1 EQs, 2 SRQs.
/// - rx_mem_op: what peers invalidate. unbind_mem_op: the windows of queue pairs that have failed
///   are unbound; unbinding: one may still have some. cpl_wr: 0 CQEs and EQEs, 1 retired records.
///   msix: an EQE has been written, its vector.
/// - device_eqe, drained, established: events for the EQ.
/// - qp_event: what the counters of a QP are told (qp_event_taps); rx_qp_event, place_fault and
///   rsp_desc_sent are where they come from outside.
/// - cpl_reset: forget a QP. qp_flushing: as flushing_i of host_if.
///
/// completion_ready_o: the contexts of all queues are cleared.
module completion_side (
    input  wire logic                                        clk_i,
    input  wire logic                                        rst_ni,
    input  wire logic                                        clk_open_i,
    output logic                                             awake_o,
    input  wire logic [63:0]                                 cycles_i,
    output rnic_pkg::rest_t                                  cpl_rest_o,
    input  wire logic                                        rx_done_valid_i,
    output logic                                             rx_done_ready_o,
    input  wire rnic_pkg::rx_done_t                          rx_done_data_i,
    input  wire logic                                        cpl_fault_valid_i,
    output logic                                             cpl_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t                         cpl_fault_data_i,
    input  wire logic                                        sq_retire_valid_i,
    output logic                                             sq_retire_ready_o,
    input  wire rnic_pkg::retire_cmd_t                       sq_retire_data_i,
    input  wire logic                                        inflight_valid_i,
    input  wire rnic_pkg::inflight_t                         inflight_data_i,
    input  wire logic                                        flush_req_valid_i,
    output logic                                             flush_req_ready_o,
    input  wire logic [7:0]                                  flush_req_qp_i,
    input  wire logic                                        qp_error_valid_i,
    output logic                                             qp_error_ready_o,
    input  wire rnic_pkg::qp_error_t                         qp_error_data_i,
    input  wire logic [19:0]                                 rx_entered_i,
    input  wire logic [19:0]                                 rx_left_i,
    input  wire logic                                        drained_valid_i,
    input  wire logic [7:0]                                  drained_qp_i,
    input  wire logic                                        established_valid_i,
    input  wire logic [7:0]                                  established_qp_i,
    input  wire logic                                        device_eqe_valid_i,
    output logic                                             device_eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t                          device_eqe_data_i,
    output logic                                             rsp_cmd_valid_o,
    input  wire logic                                        rsp_cmd_ready_i,
    output rnic_pkg::rsp_cmd_t                               rsp_cmd_data_o,
    output logic                                             rx_mem_op_valid_o,
    input  wire logic                                        rx_mem_op_ready_i,
    output rnic_pkg::mem_op_t                                rx_mem_op_data_o,
    input  wire logic                                        rx_mem_op_rsp_valid_i,
    output logic                                             rx_mem_op_rsp_ready_o,
    output logic                                             unbind_mem_op_valid_o,
    input  wire logic                                        unbind_mem_op_ready_i,
    output rnic_pkg::mem_op_t                                unbind_mem_op_data_o,
    input  wire logic                                        unbind_mem_op_rsp_valid_i,
    output logic                                             unbinding_o,
    input  wire rnic_pkg::mem_op_rsp_t                       mem_op_rsp_data_i,
    output logic                                             invalidation_over_o,
    output logic                                             sq_wake_valid_o,
    output logic [7:0]                                       sq_wake_qp_o,
    input  wire logic                                        begun_valid_i,
    input  wire logic [7:0]                                  begun_qp_i,
    input  wire logic                                        left_valid_i,
    output logic                                             left_ready_o,
    input  wire rnic_pkg::timer_event_t                      left_data_i,
    input  wire logic                                        rx_timer_valid_i,
    input  wire rnic_pkg::timer_event_t                      rx_timer_data_i,
    input  wire logic                                        rq_db_valid_i,
    output logic                                             rq_db_ready_o,
    input  wire rnic_pkg::doorbell_t                         rq_db_data_i,
    input  wire logic                                        cq_db_valid_i,
    output logic                                             cq_db_ready_o,
    input  wire rnic_pkg::doorbell_t                         cq_db_data_i,
    input  wire logic                                        eq_db_valid_i,
    output logic                                             eq_db_ready_o,
    input  wire rnic_pkg::doorbell_t                         eq_db_data_i,
    output logic [1:0]                                       cpl_send_acq_valid_o,
    input  wire logic [1:0]                                  cpl_send_acq_ready_i,
    output logic [2*8-1:0]                                   cpl_send_acq_index_o,
    input  wire logic [1:0]                                  cpl_send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t                         send_ctx_i,
    output logic [1:0]                                       cpl_send_rel_valid_o,
    input  wire logic [1:0]                                  cpl_send_rel_ready_i,
    output logic [2*rnic_pkg::SendCtxBits-1:0]               cpl_send_rel_data_o,
    output logic [1:0]                                       cpl_send_rel_write_o,
    output logic [2:0]                                       cpl_recv_acq_valid_o,
    input  wire logic [2:0]                                  cpl_recv_acq_ready_i,
    output logic [3*8-1:0]                                   cpl_recv_acq_index_o,
    input  wire logic [2:0]                                  cpl_recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t                         recv_ctx_i,
    output logic [2:0]                                       cpl_recv_rel_valid_o,
    input  wire logic [2:0]                                  cpl_recv_rel_ready_i,
    output logic [3*rnic_pkg::RecvCtxBits-1:0]               cpl_recv_rel_data_o,
    output logic [2:0]                                       cpl_recv_rel_write_o,
    input  wire logic [2:0]                                  admin_acq_valid_i,
    output logic [2:0]                                       admin_acq_ready_o,
    input  wire logic [7:0]                                  admin_acq_index_i,
    output logic [2:0]                                       admin_ctx_valid_o,
    output rnic_pkg::cq_ctx_t                                cq_ctx_o,
    output rnic_pkg::eq_ctx_t                                eq_ctx_o,
    input  wire logic [2:0]                                  admin_rel_valid_i,
    output logic [2:0]                                       admin_rel_ready_o,
    input  wire logic                                        admin_rel_write_i,
    input  wire rnic_pkg::cq_ctx_t                           admin_cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t                           admin_eq_ctx_i,
    output logic [1:0]                                       cpl_wr_valid_o,
    input  wire logic [1:0]                                  cpl_wr_ready_i,
    output logic [2*rnic_pkg::DmaWrBits-1:0]                 cpl_wr_data_o,
    input  wire logic [1:0]                                  cpl_wr_done_i,
    output logic                                             msix_valid_o,
    input  wire logic                                        msix_ready_i,
    output logic [7:0]                                       msix_vector_o,
    input  wire logic                                        cpl_reset_valid_i,
    output logic                                             cpl_reset_ready_o,
    input  wire logic [7:0]                                  qp_reset_qp_i,
    output logic                                             qp_flushing_o,
    output logic [rnic_pkg::NumCounters-1:0]                 ev_cpl_o,
    input  wire logic                                        srq_db_valid_i,
    output logic                                             srq_db_ready_o,
    input  wire rnic_pkg::doorbell_t                         srq_db_data_i,
    input  wire logic                                        rx_srq_acq_valid_i,
    output logic                                             rx_srq_acq_ready_o,
    input  wire logic [7:0]                                  rx_srq_acq_index_i,
    output logic                                             rx_srq_ctx_valid_o,
    output rnic_pkg::srq_ctx_t                               srq_ctx_o,
    input  wire logic                                        rx_srq_rel_valid_i,
    output logic                                             rx_srq_rel_ready_o,
    input  wire rnic_pkg::srq_ctx_t                          rx_srq_rel_data_i,
    input  wire logic                                        rx_srq_rel_write_i,
    input  wire rnic_pkg::srq_ctx_t                          admin_srq_ctx_i,
    input  wire logic [7:0]                                  srq_limit_i,
    input  wire logic                                        srq_limit_valid_i,
    input  wire logic [rnic_pkg::QpCounters-1:0]             rx_qp_event_i,
    input  wire logic [7:0]                                  rx_qp_event_qp_i,
    input  wire logic                                        place_fault_i,
    input  wire logic [7:0]                                  place_fault_qp_i,
    input  wire logic                                        rsp_desc_sent_i,
    input  wire rnic_pkg::tx_desc_t                          rsp_desc_data_i,
    output logic [5*rnic_pkg::QpCounters-1:0]                qp_event_o,
    output logic [5*8-1:0]                                   qp_event_qp_o,
    output logic                                             completion_ready_o
);
  logic queues_ready, srq_error_valid, srq_eqe_valid, srq_eqe_ready, srq_taken, srq_refused,
      srq_ready;
  logic [7:0] srq_error, recovery_qp;
  rnic_pkg::eqe_req_t srq_eqe_data;

  logic queues_awake, srq_awake;
  assign awake_o = queues_awake || srq_awake;
  logic srq_clk;
  room_clock u_srq_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(srq_clk), .awake_o(srq_awake),
      .stir_i(|{!srq_ready, srq_db_valid_i, rx_srq_acq_valid_i, rx_srq_ctx_valid_o,
          rx_srq_rel_valid_i, admin_acq_valid_i[2], admin_ctx_valid_o[2], admin_rel_valid_i[2],
          srq_limit_valid_i, srq_error_valid, srq_eqe_valid, srq_taken, srq_refused})
  );

  completion u_completion (
      .clk_i, .rst_ni, .clk_open_i, .awake_o(queues_awake),
      .ready_o(queues_ready), .cycles_i, .rest_o(cpl_rest_o),
      .done_valid_i(rx_done_valid_i), .done_ready_o(rx_done_ready_o), .done_data_i(rx_done_data_i),
      .tx_fault_valid_i(cpl_fault_valid_i), .tx_fault_ready_o(cpl_fault_ready_o),
      .tx_fault_data_i(cpl_fault_data_i),
      .retire_cmd_valid_i(sq_retire_valid_i), .retire_cmd_ready_o(sq_retire_ready_o),
      .retire_cmd_data_i(sq_retire_data_i),
      .inflight_valid_i, .inflight_data_i,
      .flush_req_valid_i, .flush_req_ready_o, .flush_req_qp_i,
      .qp_error_valid_i, .qp_error_ready_o, .qp_error_data_i,
      .rx_entered_i, .rx_left_i,
      .srq_error_valid_o(srq_error_valid), .srq_error_srq_o(srq_error),
      .srq_eqe_valid_i(srq_eqe_valid), .srq_eqe_ready_o(srq_eqe_ready),
      .srq_eqe_data_i(srq_eqe_data),
      .srq_taken_i(srq_taken), .srq_refused_i(srq_refused),
      .drained_valid_i, .drained_qp_i,
      .established_valid_i, .established_qp_i,
      .device_eqe_valid_i, .device_eqe_ready_o, .device_eqe_data_i,
      .rsp_cmd_valid_o, .rsp_cmd_ready_i, .rsp_cmd_data_o,
      .mem_op_valid_o(rx_mem_op_valid_o), .mem_op_ready_i(rx_mem_op_ready_i),
      .mem_op_data_o(rx_mem_op_data_o),
      .mem_op_rsp_valid_i(rx_mem_op_rsp_valid_i), .mem_op_rsp_ready_o(rx_mem_op_rsp_ready_o),
      .unbind_mem_op_valid_o, .unbind_mem_op_ready_i, .unbind_mem_op_data_o,
      .unbind_mem_op_rsp_valid_i, .unbinding_o,
      .mem_op_rsp_data_i,
      .invalidation_over_o, .sq_wake_valid_o, .sq_wake_qp_o,
      .begun_valid_i, .begun_qp_i,
      .left_valid_i, .left_ready_o, .left_data_i,
      .timer_valid_i(rx_timer_valid_i), .timer_data_i(rx_timer_data_i),
      .recovery_qp_o(recovery_qp),
      .rq_doorbell_valid_i(rq_db_valid_i), .rq_doorbell_ready_o(rq_db_ready_o),
      .rq_doorbell_data_i(rq_db_data_i),
      .cq_doorbell_valid_i(cq_db_valid_i), .cq_doorbell_ready_o(cq_db_ready_o),
      .cq_doorbell_data_i(cq_db_data_i),
      .eq_doorbell_valid_i(eq_db_valid_i), .eq_doorbell_ready_o(eq_db_ready_o),
      .eq_doorbell_data_i(eq_db_data_i),
      .send_acq_valid_o(cpl_send_acq_valid_o), .send_acq_ready_i(cpl_send_acq_ready_i),
      .send_acq_index_o(cpl_send_acq_index_o),
      .send_ctx_valid_i(cpl_send_ctx_valid_i), .send_ctx_data_i(send_ctx_i),
      .send_rel_valid_o(cpl_send_rel_valid_o), .send_rel_ready_i(cpl_send_rel_ready_i),
      .send_rel_write_o(cpl_send_rel_write_o), .send_rel_data_o(cpl_send_rel_data_o),
      .recv_acq_valid_o(cpl_recv_acq_valid_o), .recv_acq_ready_i(cpl_recv_acq_ready_i),
      .recv_acq_index_o(cpl_recv_acq_index_o),
      .recv_ctx_valid_i(cpl_recv_ctx_valid_i), .recv_ctx_data_i(recv_ctx_i),
      .recv_rel_valid_o(cpl_recv_rel_valid_o), .recv_rel_ready_i(cpl_recv_rel_ready_i),
      .recv_rel_write_o(cpl_recv_rel_write_o), .recv_rel_data_o(cpl_recv_rel_data_o),
      .admin_acq_valid_i(admin_acq_valid_i[1:0]), .admin_acq_ready_o(admin_acq_ready_o[1:0]),
      .admin_acq_index_i,
      .admin_ctx_valid_o(admin_ctx_valid_o[1:0]),
      .admin_cq_ctx_o(cq_ctx_o),
      .admin_eq_ctx_o(eq_ctx_o),
      .admin_rel_valid_i(admin_rel_valid_i[1:0]), .admin_rel_ready_o(admin_rel_ready_o[1:0]),
      .admin_rel_write_i,
      .admin_cq_ctx_i,
      .admin_eq_ctx_i,
      .wr_valid_o(cpl_wr_valid_o), .wr_ready_i(cpl_wr_ready_i), .wr_data_o(cpl_wr_data_o),
      .wr_done_i(cpl_wr_done_i),
      .msix_valid_o, .msix_ready_i,
      .msix_vector_o,
      .qp_reset_valid_i(cpl_reset_valid_i), .qp_reset_ready_o(cpl_reset_ready_o), .qp_reset_qp_i,
      .flushing_o(qp_flushing_o), .event_o(ev_cpl_o)
  );

  srq_engine u_srq_engine (
      .clk_i(srq_clk), .rst_ni,
      .ready_o(srq_ready),
      .doorbell_valid_i(srq_db_valid_i), .doorbell_ready_o(srq_db_ready_o),
      .doorbell_data_i(srq_db_data_i),
      .acq_valid_i({rx_srq_acq_valid_i, admin_acq_valid_i[2]}),
      .acq_ready_o({rx_srq_acq_ready_o, admin_acq_ready_o[2]}),
      .acq_index_i({rx_srq_acq_index_i, admin_acq_index_i}),
      .ctx_valid_o({rx_srq_ctx_valid_o, admin_ctx_valid_o[2]}), .ctx_data_o(srq_ctx_o),
      .rel_valid_i({rx_srq_rel_valid_i, admin_rel_valid_i[2]}),
      .rel_ready_o({rx_srq_rel_ready_o, admin_rel_ready_o[2]}),
      .rel_write_i({rx_srq_rel_write_i, admin_rel_write_i}),
      .rel_data_i({rx_srq_rel_data_i, admin_srq_ctx_i}),
      .limit_valid_i(srq_limit_valid_i), .limit_srq_i(srq_limit_i),
      .error_valid_i(srq_error_valid), .error_srq_i(srq_error),
      .eqe_valid_o(srq_eqe_valid), .eqe_ready_i(srq_eqe_ready), .eqe_data_o(srq_eqe_data),
      .event_taken_o(srq_taken), .event_refused_o(srq_refused)
  );

  qp_event_taps u_qp_events (
      .rx_event_i(rx_qp_event_i), .rx_qp_i(rx_qp_event_qp_i), .place_fault_i,
      .place_qp_i(place_fault_qp_i),
      .rsp_desc_i(rsp_desc_sent_i), .rsp_desc_data_i,
      .tx_fault_i(cpl_fault_valid_i && cpl_fault_ready_o), .tx_fault_data_i(cpl_fault_data_i),
      .event_i(ev_cpl_o), .recovery_qp_i(recovery_qp),
      .qp_event_o, .qp_event_qp_o
  );

  assign completion_ready_o = queues_ready && srq_ready;
endmodule

`default_nettype wire
