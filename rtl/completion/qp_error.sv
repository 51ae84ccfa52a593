`default_nettype none
`include "assert.svh"

/// Puts QPs in the error state and plans their flush.
///
/// Five kinds of work, in turn: an error (with its cause), a QP whose CQE an overrun CQ has lost,
/// a QP in the error state with WQEs to flush, a QP of which the host is to be told something
/// (notice, EqeType) and nothing else, a QP that may be of an overrun CQ (probe): it is looked at,
/// and if it is of that CQ and not in ERR yet, its turn begins again as that of a lost CQE. Each
/// turn borrows the send context, then the receive context; an error sets both to ERR, and every
/// side in ERR gives up some of its WQEs as a job to the flush block. What is left joins the
/// flush queue again, so that a long queue does not hold up another QP. A send queue with a memory
/// operation under way is not flushed: the send queue asks for that when it is over; nor is one
/// whose memory operation is over and has not retired: retire completes it and asks. The event is
/// asked for when the receive side was not in ERR yet: it is only ever set here, while retire sets
/// the send side by itself. What failed a request of the QP has its CQE and needs no event (told;
/// InfiniBand specification 11.6.3.2). An error with send_only, and a QP in SQE in the flush
/// queue, flush the send queue of a QP whose receive side goes on; it stays in SQE. An error of a
/// QP in RESET is stale, unless the host asks (quiet). Only a QP that a request of its peer has put
/// in the error state (responder) still answers what came before (silent).
///
/// Receive WQEs are given up only when the packets of the QP that were in the receive engine have
/// left it (rx_mark, rx_gone): before that, it may still write to their buffers. Until then the QP
/// joins the flush queue again and again. A QP on an SRQ has one WQE at most, of a message that did
/// not end; the LastWqeReached event follows it, unless the QP goes away (its UAR is gone).
module qp_error (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                error_valid_i,
    output logic                     error_ready_o,
    input  wire rnic_pkg::qp_error_t error_data_i,
    input  wire logic                dead_valid_i,
    output logic                     dead_ready_o,
    input  wire logic [7:0]          dead_qp_i,
    input  wire logic                probe_valid_i,
    output logic                     probe_ready_o,
    input  wire logic [7:0]          probe_qp_i,
    input  wire logic [7:0]          probe_cqn_i,
    input  wire logic                flush_valid_i,
    output logic                     flush_ready_o,
    input  wire logic [7:0]          flush_qp_i,
    input  wire logic                notice_valid_i,
    output logic                     notice_ready_o,
    input  wire logic [7:0]          notice_qp_i,
    input  wire logic [7:0]          notice_type_i,
    output logic                     again_valid_o,
    input  wire logic                again_ready_i,
    output logic [7:0]               again_qp_o,
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
    // Packets that have entered and left the receive engine; the SRQ's WQE that a QP has left open
    input  wire logic [19:0]         rx_entered_i,
    input  wire logic [19:0]         rx_left_i,
    output logic [7:0]               open_qp_o,
    input  wire logic                open_i,
    input  wire logic [15:0]         open_tag_i,
    output logic                     open_clear_o,
    // Job of the flush block
    output logic                     job_valid_o,
    input  wire logic                job_ready_i,
    output logic [7:0]               job_qp_o,
    output logic [23:0]              job_qpn_o,
    output logic                     job_event_o,
    output logic [7:0]               job_event_type_o,
    output logic [7:0]               job_status_o,
    output logic [7:0]               job_send_cqn_o,
    output logic [15:0]              job_send_first_o,
    output logic [4:0]               job_send_count_o,
    output logic [7:0]               job_recv_cqn_o,
    output logic [15:0]              job_recv_first_o,
    output logic [4:0]               job_recv_count_o,
    output logic                     job_last_o,
    // busy_qp_o has failed by itself: a pulse, when both contexts say so. Failing: that may come
    output logic                     failed_o,
    output logic                     failing_o,
    output logic                     busy_o,
    output logic [7:0]               busy_qp_o
);
  // Idle         takes work
  // SendAcquire  asks for the send context
  // SendWait     for it
  // SendRelease  gives it back
  // RecvAcquire  asks for the receive context
  // RecvWait     for it
  // RecvRelease  gives it back
  // Job          hands the job over, and puts the QP back in the flush queue when there is more
  typedef enum logic [2:0] {
    StIdle,
    StSendAcquire,
    StSendWait,
    StSendRelease,
    StRecvAcquire,
    StRecvWait,
    StRecvRelease,
    StJob
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::qp_error_t work, work_q;
  rnic_pkg::send_ctx_t send_q, restarted;
  rnic_pkg::recv_ctx_t recv_q;
  logic [4:0] grant;
  logic [7:0] notice_type_q, probe_cqn_q;
  logic probe_q, probe_hit;
  logic exists, is_notice_q, is_error_q, send_err, recv_err, take, more;
  logic job_sent_q, again_sent_q, gone_q;
  logic [15:0] recv_first;
  logic [19:0] mark, mark_q, ahead;
  logic [4:0] send_count, recv_count;

  rr_arbiter #(
      .N(5)
  ) u_choice (
      .clk_i,
      .rst_ni,
      .request_i({probe_valid_i, notice_valid_i, flush_valid_i, dead_valid_i, error_valid_i}),
      .advance_i(state_q == StIdle),
      .grant_o  (grant)
  );
  assign take          = state_q == StIdle && grant != '0;
  assign error_ready_o = state_q == StIdle && grant[0];
  assign dead_ready_o  = state_q == StIdle && grant[1];
  assign flush_ready_o = state_q == StIdle && grant[2];
  assign notice_ready_o = state_q == StIdle && grant[3];
  assign probe_ready_o  = state_q == StIdle && grant[4];

  always_comb begin
    work        = '0;
    work.status = rnic_pkg::CqeStatusFatalErr;
    if (grant[0]) work = error_data_i;
    if (grant[1]) work.qp = dead_qp_i;
    if (grant[2]) begin
      work.qp     = flush_qp_i;
      work.status = rnic_pkg::CqeStatusWrFlushErr;
      work.quiet  = 1'b1;
    end
    if (grant[3]) {work.qp, work.status, work.quiet} = {notice_qp_i, 8'd0, 1'b1};
    if (grant[4]) work.qp = probe_qp_i;
  end
  assign probe_hit = (send_q.in_use && send_q.cqn == probe_cqn_q &&
                      send_q.state != rnic_pkg::QpStateErr) ||
      (recv_q.in_use && recv_q.cqn == probe_cqn_q && recv_q.state != rnic_pkg::QpStateErr);

  qp_error_sides u_sides (
      .send_i      (send_q),
      .recv_i      (recv_q),
      .is_error_i  (is_error_q),
      .quiet_i     (work_q.quiet),
      .gone_i      (gone_q),
      .open_i,
      .send_err_o  (send_err),
      .recv_err_o  (recv_err),
      .send_count_o(send_count),
      .recv_count_o(recv_count),
      .more_o      (more)
  );
  assign recv_first = recv_q.srq ? open_tag_i : recv_q.rq_done;
  // Packets that came before the QP was in the error state are in the count of this moment.
  assign mark       = (recv_ctx_data_i.state == rnic_pkg::QpStateErr) ? recv_ctx_data_i.rx_mark
                                                                      : rx_entered_i;
  assign ahead     = mark - rx_left_i;

  sq_restart u_restart (
      .ctx_i  (send_q),
      .index_i(send_q.pi),
      .ctx_o  (restarted)
  );
  always_comb begin
    send_rel_data_o                = restarted;
    if (send_q.state != rnic_pkg::QpStateSqe || is_error_q) begin
      send_rel_data_o.state = rnic_pkg::QpStateErr;
    end
    send_rel_data_o.retire_idx     = send_q.retire_idx + {11'd0, send_count};
    send_rel_data_o.rd_outstanding = '0;
    send_rel_data_o.silent_run     = '0;
    recv_rel_data_o                = recv_q;
    recv_rel_data_o.state          = rnic_pkg::QpStateErr;
    recv_rel_data_o.rx_mark        = mark_q;
    recv_rel_data_o.rx_gone        = gone_q;
    if (recv_q.state != rnic_pkg::QpStateErr) recv_rel_data_o.silent = !work_q.responder;
    if (!recv_q.srq) recv_rel_data_o.rq_done = recv_q.rq_done + {11'd0, recv_count};
    recv_rel_data_o.rq_head        = recv_q.rq_pi;
  end

  assign send_acq_valid_o = state_q == StSendAcquire;
  assign send_acq_index_o = work_q.qp;
  assign send_rel_valid_o = state_q == StSendRelease;
  assign send_rel_write_o = send_err && !probe_q;
  assign recv_acq_valid_o = state_q == StRecvAcquire;
  assign recv_acq_index_o = work_q.qp;
  assign recv_rel_valid_o = state_q == StRecvRelease;
  assign recv_rel_write_o = recv_err && !probe_q;

  assign job_valid_o      = state_q == StJob && !job_sent_q;
  assign job_qp_o         = work_q.qp;
  assign job_qpn_o        = send_q.qpn;
  assign exists           = send_q.in_use && send_q.state != rnic_pkg::QpStateReset;
  assign job_event_o      = is_notice_q ? exists :
                            recv_err && recv_q.state != rnic_pkg::QpStateErr && !work_q.quiet &&
                            !work_q.told;
  always_comb begin
    job_event_type_o = rnic_pkg::EqeTypeQpFatal;
    if (work_q.responder && work_q.status == rnic_pkg::CqeStatusRemInvReqErr) begin
      job_event_type_o = rnic_pkg::EqeTypeQpRequestError;
    end
    if (work_q.responder && work_q.status == rnic_pkg::CqeStatusRemAccessErr) begin
      job_event_type_o = rnic_pkg::EqeTypeQpAccessError;
    end
    if (is_notice_q) job_event_type_o = notice_type_q;
  end
  assign job_status_o     = work_q.status;
  assign job_send_cqn_o   = send_q.cqn;
  assign job_send_first_o = send_q.retire_idx;
  assign job_send_count_o = send_count;
  assign job_recv_cqn_o   = recv_q.cqn;
  assign job_recv_first_o = recv_first;
  assign job_recv_count_o = recv_count;
  assign job_last_o       = recv_err && recv_q.srq && gone_q && !recv_q.rx_gone &&
                            recv_q.uar != '0;
  assign open_qp_o        = work_q.qp;
  assign open_clear_o     = job_valid_o && job_ready_i && recv_q.srq && recv_count != '0;
  assign again_valid_o    = state_q == StJob && more && !again_sent_q;
  assign again_qp_o       = work_q.qp;
  assign busy_o           = state_q != StIdle;
  assign failing_o        = busy_o && (is_error_q || probe_q);
  assign busy_qp_o        = work_q.qp;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (take) state_d = StSendAcquire;
      StSendAcquire: if (send_acq_ready_i) state_d = StSendWait;
      StSendWait: if (send_ctx_valid_i) state_d = StSendRelease;
      StSendRelease: if (send_rel_ready_i) state_d = StRecvAcquire;
      StRecvAcquire: if (recv_acq_ready_i) state_d = StRecvWait;
      StRecvWait: if (recv_ctx_valid_i) state_d = StRecvRelease;
      StRecvRelease: begin
        if (recv_rel_ready_i) state_d = !probe_q ? StJob : probe_hit ? StSendAcquire : StIdle;
      end
      StJob:
      if ((job_sent_q || job_ready_i) && (again_sent_q || again_ready_i || !more)) begin
        state_d = StIdle;
      end
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (take) begin
      work_q     <= work;
      is_error_q <= grant[1] || (grant[0] && !work.send_only);
      is_notice_q <= grant[3];
      notice_type_q <= notice_type_i;
      probe_q       <= grant[4];
      probe_cqn_q   <= probe_cqn_i;
    end
    if (send_ctx_valid_i) send_q <= send_ctx_data_i;
    if (probe_q && state_q == StRecvRelease && recv_rel_ready_i) begin
      {probe_q, is_error_q} <= 2'b01;
    end
    if (recv_ctx_valid_i) begin
      recv_q <= recv_ctx_data_i;
      mark_q <= mark;
      gone_q <= recv_ctx_data_i.rx_gone || ahead == '0 || ahead[19];
    end
    job_sent_q   <= state_q == StJob && (job_sent_q || job_ready_i);
    again_sent_q <= state_q == StJob && (again_sent_q || (again_valid_o && again_ready_i));
    if (state_q == StIdle) begin
      job_sent_q   <= 1'b0;
      again_sent_q <= 1'b0;
    end
    failed_o     <= recv_rel_valid_o && recv_rel_ready_i && recv_rel_write_o && is_error_q &&
                    recv_q.state != rnic_pkg::QpStateErr && !work_q.quiet;
    if (!rst_ni) {state_q, failed_o} <= {StIdle, 1'b0};
  end

  logic unused_bits;
  assign unused_bits = work_q.send_only;

  `ASSERT_HOLD(AgainHold, again_valid_o, again_ready_i, again_qp_o)
endmodule

`default_nettype wire
