`default_nettype none
`include "assert.svh"

/// Errors, flushes and resets: gathers the causes of errors, puts QPs in the error state, makes the
/// CQEs of their flush, makes the events of QPs, has the windows of failed QPs unbound, and tells
/// when nothing of a QP is left.
///
/// The CQ engine and the flush requests join sets that always have room: the CQ engine must never
/// wait for this block, because this block waits for the CQ engine and for contexts whose holders
/// do.
module error_path (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    // Errors (qp_error_t): 0 retire, 1 rx_post, 2 send path, 3 host
    input  wire logic [3:0]          error_valid_i,
    output logic [3:0]               error_ready_o,
    input  wire logic [4*rnic_pkg::QpErrorBits-1:0] error_data_i,
    // An error is on its way to error_valid_i, its CQE may be on its way to the host
    input  wire logic                failing_i,
    // QPs whose CQE was lost to an overrun; always taken
    input  wire logic                dead_valid_i,
    input  wire logic [7:0]          dead_qp_i,
    // QPs that may be of a CQ that has overrun: as overrun_sweep
    input  wire logic                probe_valid_i,
    output logic                     probe_ready_o,
    input  wire logic [7:0]          probe_qp_i,
    input  wire logic [7:0]          probe_cqn_i,
    // QPs whose send queue is drained (SQD), and to which the first packet has come (RTR): events
    input  wire logic                drained_valid_i,
    input  wire logic [7:0]          drained_qp_i,
    input  wire logic                established_valid_i,
    input  wire logic [7:0]          established_qp_i,
    // QPs in the error state with new WQEs: 0 receive doorbells, 1 send queue
    input  wire logic [1:0]          flush_valid_i,
    output logic [1:0]               flush_ready_o,
    input  wire logic [15:0]         flush_qp_i,
    output logic                     send_acq_valid_o,
    input  wire logic                send_acq_ready_i,
    output logic [7:0]               send_acq_index_o,
    input  wire logic                send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t send_ctx_data_i,
    output logic                     send_rel_valid_o,
    input  wire logic                send_rel_ready_i,
    output logic                     send_rel_write_o,
    output rnic_pkg::send_ctx_t      send_rel_data_o,
    output logic                     recv_acq_valid_o,
    input  wire logic                recv_acq_ready_i,
    output logic [7:0]               recv_acq_index_o,
    input  wire logic                recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t recv_ctx_data_i,
    output logic                     recv_rel_valid_o,
    input  wire logic                recv_rel_ready_i,
    output logic                     recv_rel_write_o,
    output rnic_pkg::recv_ctx_t      recv_rel_data_o,
    // As in qp_error
    input  wire logic [19:0]         rx_entered_i,
    input  wire logic [19:0]         rx_left_i,
    output logic [7:0]               open_qp_o,
    input  wire logic                open_i,
    input  wire logic [15:0]         open_tag_i,
    output logic                     open_clear_o,
    output logic                     cqe_valid_o,
    input  wire logic                cqe_ready_i,
    output logic                     cqe_is_event_o,
    output rnic_pkg::cqe_req_t       cqe_data_o,
    // Windows of QPs that have failed; unbinding: such a QP may still have some
    output logic                     mem_op_valid_o,
    input  wire logic                mem_op_ready_i,
    output rnic_pkg::mem_op_t        mem_op_data_o,
    input  wire logic                mem_op_rsp_valid_i,
    output logic                     unbinding_o,
    // QP reset, and what it must wait for: the stages retire commands (0), CQEs (1), their writes
    // (2), retired records (3), and the packet that rx_post works on
    input  wire logic                qp_reset_valid_i,
    output logic                     qp_reset_ready_o,
    input  wire logic [7:0]          qp_reset_qp_i,
    // Something of qp_reset_qp_i waits here or is under way, whether it is reset or not
    output logic                     flushing_o,
    input  wire logic [3:0]          stage_enter_i,
    input  wire logic [3:0]          stage_leave_i,
    input  wire logic                receive_busy_i,
    input  wire logic [7:0]          receive_busy_qp_i
);
  localparam int unsigned ErrorBits = rnic_pkg::QpErrorBits;

  logic error_valid, error_ready, unused_error_last, unused_flush_last;
  logic [1:0] unused_error_source, unused_flush_source;
  rnic_pkg::qp_error_t error_data;
  logic dead_valid, dead_ready, dead_member;
  logic drained_valid, drained_member, established_valid, established_member, notice_ready;
  logic [7:0] drained_qp, established_qp, job_event_type;
  logic [7:0] dead_qp;
  logic again_valid, again_ready, join_valid, flush_valid, flush_ready, flush_member;
  logic [7:0] again_qp, join_qp, flush_qp;
  logic job_valid, job_ready, job_last, job_event, error_busy, flush_busy, reset_busy;
  logic error_enter, error_leave, failed, failing, unbind_busy, unbind_member;
  logic [7:0] job_qp, job_status, job_send_cqn, job_recv_cqn, error_busy_qp, flush_busy_qp;
  logic [23:0] job_qpn;
  logic [15:0] job_send_first, job_recv_first;
  logic [4:0] job_send_count, job_recv_count;

  stream_arbiter #(
      .N    (4),
      .Width(ErrorBits)
  ) u_errors (
      .clk_i,
      .rst_ni,
      .in_valid_i  (error_valid_i),
      .in_ready_o  (error_ready_o),
      .in_last_i   (4'b1111),
      .in_data_i   (error_data_i),
      .out_valid_o (error_valid),
      .out_ready_i (error_ready),
      .out_last_o  (unused_error_last),
      .out_data_o  (error_data),
      .out_source_o(unused_error_source)
  );

  qp_set u_dead (
      .clk_i,
      .rst_ni,
      .join_valid_i  (dead_valid_i),
      .join_qp_i     (dead_qp_i),
      .out_valid_o   (dead_valid),
      .out_ready_i   (dead_ready),
      .out_qp_o      (dead_qp),
      .query_qp_i    (qp_reset_qp_i),
      .query_member_o(dead_member)
  );

  qp_set u_drained (
      .clk_i,
      .rst_ni,
      .join_valid_i  (drained_valid_i),
      .join_qp_i     (drained_qp_i),
      .out_valid_o   (drained_valid),
      .out_ready_i   (notice_ready && drained_valid),
      .out_qp_o      (drained_qp),
      .query_qp_i    (qp_reset_qp_i),
      .query_member_o(drained_member)
  );

  qp_set u_established (
      .clk_i,
      .rst_ni,
      .join_valid_i  (established_valid_i),
      .join_qp_i     (established_qp_i),
      .out_valid_o   (established_valid),
      .out_ready_i   (notice_ready && !drained_valid),
      .out_qp_o      (established_qp),
      .query_qp_i    (qp_reset_qp_i),
      .query_member_o(established_member)
  );

  stream_arbiter #(
      .N    (3),
      .Width(8)
  ) u_flushes (
      .clk_i,
      .rst_ni,
      .in_valid_i  ({again_valid, flush_valid_i}),
      .in_ready_o  ({again_ready, flush_ready_o}),
      .in_last_i   (3'b111),
      .in_data_i   ({again_qp, flush_qp_i}),
      .out_valid_o (join_valid),
      .out_ready_i (1'b1),
      .out_last_o  (unused_flush_last),
      .out_data_o  (join_qp),
      .out_source_o(unused_flush_source)
  );

  qp_set u_flush_set (
      .clk_i,
      .rst_ni,
      .join_valid_i  (join_valid),
      .join_qp_i     (join_qp),
      .out_valid_o   (flush_valid),
      .out_ready_i   (flush_ready),
      .out_qp_o      (flush_qp),
      .query_qp_i    (qp_reset_qp_i),
      .query_member_o(flush_member)
  );

  qp_error u_error (
      .clk_i, .rst_ni,
      .error_valid_i(error_valid), .error_ready_o(error_ready), .error_data_i(error_data),
      .dead_valid_i(dead_valid), .dead_ready_o(dead_ready), .dead_qp_i(dead_qp),
      .probe_valid_i, .probe_ready_o, .probe_qp_i, .probe_cqn_i,
      .flush_valid_i(flush_valid), .flush_ready_o(flush_ready), .flush_qp_i(flush_qp),
      .notice_valid_i(drained_valid || established_valid), .notice_ready_o(notice_ready),
      .notice_qp_i(drained_valid ? drained_qp : established_qp),
      .notice_type_i(drained_valid ? rnic_pkg::EqeTypeSqDrained : rnic_pkg::EqeTypeCommEstablished),
      .again_valid_o(again_valid), .again_ready_i(again_ready), .again_qp_o(again_qp),
      .send_acq_valid_o, .send_acq_ready_i, .send_acq_index_o,
      .send_ctx_valid_i, .send_ctx_data_i,
      .send_rel_valid_o, .send_rel_ready_i, .send_rel_write_o, .send_rel_data_o,
      .recv_acq_valid_o, .recv_acq_ready_i, .recv_acq_index_o,
      .recv_ctx_valid_i, .recv_ctx_data_i,
      .recv_rel_valid_o, .recv_rel_ready_i, .recv_rel_write_o, .recv_rel_data_o,
      .rx_entered_i, .rx_left_i,
      .open_qp_o, .open_i, .open_tag_i, .open_clear_o,
      .job_valid_o(job_valid), .job_ready_i(job_ready),
      .job_qp_o(job_qp), .job_qpn_o(job_qpn),
      .job_event_o(job_event), .job_event_type_o(job_event_type), .job_status_o(job_status),
      .job_send_cqn_o(job_send_cqn), .job_send_first_o(job_send_first),
      .job_send_count_o(job_send_count),
      .job_recv_cqn_o(job_recv_cqn), .job_recv_first_o(job_recv_first),
      .job_recv_count_o(job_recv_count),
      .job_last_o(job_last),
      .failed_o(failed), .failing_o(failing), .busy_o(error_busy), .busy_qp_o(error_busy_qp)
  );

  qp_unbind u_unbind (
      .clk_i,
      .rst_ni,
      .failed_valid_i(failed),
      .failed_qp_i   (error_busy_qp),
      .mem_op_valid_o,
      .mem_op_ready_i,
      .mem_op_data_o,
      .mem_op_rsp_valid_i,
      .query_qp_i    (qp_reset_qp_i),
      .query_busy_o  (unbind_member),
      .busy_o        (unbind_busy)
  );
  assign unbinding_o = failing_i || error_valid_i[2:0] != '0 || error_valid || dead_valid_i ||
                       dead_valid || probe_valid_i || failing || unbind_busy;

  flush u_flush (
      .clk_i,
      .rst_ni,
      .job_valid_i     (job_valid),
      .job_ready_o     (job_ready),
      .job_qp_i        (job_qp),
      .job_qpn_i       (job_qpn),
      .job_event_i     (job_event),
      .job_event_type_i(job_event_type),
      .job_status_i    (job_status),
      .job_send_cqn_i  (job_send_cqn),
      .job_send_first_i(job_send_first),
      .job_send_count_i(job_send_count),
      .job_recv_cqn_i  (job_recv_cqn),
      .job_recv_first_i(job_recv_first),
      .job_recv_count_i(job_recv_count),
      .job_last_i      (job_last),
      .cqe_valid_o,
      .cqe_ready_i,
      .cqe_is_event_o,
      .cqe_data_o,
      .busy_o          (flush_busy),
      .busy_qp_o       (flush_busy_qp)
  );

  assign reset_busy = dead_member || flush_member || drained_member || established_member ||
                      unbind_member ||
                      (join_valid && join_qp == qp_reset_qp_i) ||
                      (error_busy && error_busy_qp == qp_reset_qp_i) ||
                      (flush_busy && flush_busy_qp == qp_reset_qp_i);

  assign flushing_o  = reset_busy;
  assign error_enter = (error_valid_i & error_ready_o) != '0;
  assign error_leave = error_valid && error_ready;

  qp_drain u_drain (
      .clk_i,
      .rst_ni,
      .qp_reset_valid_i,
      .qp_reset_ready_o,
      .enter_i       ({stage_enter_i[3:1], error_enter, stage_enter_i[0]}),
      .leave_i       ({stage_leave_i[3:1], error_leave, stage_leave_i[0]}),
      .receive_busy_i(receive_busy_i && receive_busy_qp_i == qp_reset_qp_i),
      .error_busy_i  (reset_busy)
  );
endmodule

`default_nettype wire
