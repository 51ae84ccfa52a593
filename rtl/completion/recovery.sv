`default_nettype none
`include "assert.svh"

/// Makes the send queue of a QP go back to the oldest packet that the peer may not have
/// (go-back-N): for a NAK, a gap among the responses, an RNR NAK, or a timer. Packets are made
/// again from the WQEs in host memory.
///
/// Works on one QP at a time, and only while retire is idle (retire_idle_i): hold_o keeps retire
/// from starting. It borrows the send context through the client of retire, finds the WQE that
/// holds the PSN in the in-flight table, and sets the execution state back to it: WQE, PSN, offset
/// in the message; the WQE buffer is emptied, a fetch under way is disowned, Reads whose data is
/// awaited will be asked for again from the first byte that has not come. The next packet says that
/// it is the first of a new try (turned): the send path drops what is behind a packet that failed,
/// and only in the order of the packets can it be known what is not. So it is after a fault of a
/// WQE that has retired, too, whether or not there is anything to send again. wake_valid_o gives
/// QP acq_index_o a turn.
///
/// Retries without progress are counted; when none is left, fail_* has the command that fails the
/// WQE (InfiniBand specification 9.9.2.1). An RNR NAK is counted apart; 7 means no limit
/// (9.7.5.2.8). A NAK that names the PSN to which the QP went back already says nothing new, and
/// neither does an expiry that is out of date (stands_i, while the context is held).
///
/// A refusal does not go back. It belongs to the WQE that holds its PSN, and says that those before
/// it have been executed, also those that are still to be sent again; but a Read or an atomic among
/// them has no answer yet, and is repeated first: then the refusal says nothing (9.7.5.2.3). Found,
/// the WQE is failed through fail_*; one that is still to be sent again is marked in the context as
/// if it had been sent, with a fault, so that nothing of it is. So it is with an RNR NAK of what is
/// still to be sent again: found, it makes the queue wait where it is, or fails the WQE when no
/// retry is left (decisions 75).
///
/// clear: ready when nothing of any QP is under way and the timer of clear_qp_i is stopped.
module recovery (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    // From retire: a pulse, only while hold_o is low
    input  wire logic                   cmd_valid_i,
    input  wire rnic_pkg::recover_cmd_t cmd_data_i,
    input  wire logic                   expired_valid_i,
    output logic                        expired_ready_o,
    input  wire logic [7:0]             expired_qp_i,
    // The expiry accepted last is not out of date
    input  wire logic                   stands_i,
    // The QP has to wait; it has gone back for another reason; pulses. tries: from now on
    output logic                        wait_valid_o,
    output logic                        stop_valid_o,
    output logic [7:0]                  wait_qp_o,
    output logic [17:0]                 wait_units_o,
    output logic [3:0]                  wait_tries_o,
    output logic                        hold_o,
    input  wire logic                   retire_idle_i,
    output logic                        acq_valid_o,
    input  wire logic                   acq_ready_i,
    output logic [7:0]                  acq_index_o,
    input  wire logic                   ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t    ctx_data_i,
    output logic                        rel_valid_o,
    input  wire logic                   rel_ready_i,
    output logic                        rel_write_o,
    output rnic_pkg::send_ctx_t         rel_data_o,
    // In-flight table of retire: WQE index, one cycle before its entry
    output logic                        slot_en_o,
    output logic [15:0]                 slot_index_o,
    input  wire logic                   slot_is_read_i,
    input  wire logic [23:0]            slot_first_i,
    input  wire logic [23:0]            slot_last_i,
    output logic                        fail_valid_o,
    input  wire logic                   fail_ready_i,
    output rnic_pkg::retire_cmd_t       fail_data_o,
    output logic                        wake_valid_o,
    input  wire logic                   clear_valid_i,
    output logic                        clear_ready_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // Idle     waits for work, and for retire to be idle
  // Wait     for the context
  // Judge    anything to do?
  // Search   the entry of WQE idx_q is being read
  // Compare  it is here
  // Release  gives the context back
  // Fail     hands over the command that fails the WQE
  typedef enum logic [2:0] {
    StIdle,
    StWait,
    StJudge,
    StSearch,
    StCompare,
    StRelease,
    StFail
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::recover_cmd_t work_q;
  rnic_pkg::send_ctx_t ctx_q, back, failing;
  logic work_valid_q, take_timer, live, open, known, again, exhausted, rnr_exhausted, go_back;
  logic is_timer, is_rnr, is_fault, is_refusal, wait_over, change_q, gone_q, in_table, here;
  logic put_off, looks_ahead, waits;
  logic outdated;
  logic blocked, belongs, refused, whole, unsent;
  logic [15:0] idx_q;
  logic [15:0] since, to_sent;
  logic [23:0] psn, behind, ahead, to_last, from_first, to_max;

  // ---- Work -------------------------------------------------------------------------------------
  // An expiry waits until retire is idle, and keeps it so: a command under way may end in work.
  assign take_timer      = !work_valid_q && expired_valid_i && retire_idle_i && !clear_valid_i;
  assign expired_ready_o = take_timer;
  assign hold_o          = work_valid_q ? state_q != StFail : expired_valid_i && !clear_valid_i;
  assign clear_ready_o   = !work_valid_q && !cmd_valid_i && retire_idle_i;

  always_ff @(posedge clk_i) begin
    if (cmd_valid_i) begin
      work_q       <= cmd_data_i;
      work_valid_q <= 1'b1;
    end else if (take_timer) begin
      work_q       <= '0;
      work_q.qp    <= expired_qp_i;
      work_q.cause <= rnic_pkg::RecoverCauseTimer;
      work_valid_q <= 1'b1;
    end else if (state_d == StIdle && state_q != StIdle) begin
      work_valid_q <= 1'b0;
    end
    if (!rst_ni) work_valid_q <= 1'b0;
  end

  // ---- Judgement --------------------------------------------------------------------------------
  assign is_timer = work_q.cause == rnic_pkg::RecoverCauseTimer;
  assign is_rnr   = work_q.cause == rnic_pkg::RecoverCauseRnr;
  assign is_fault = work_q.cause == rnic_pkg::RecoverCauseFault;
  assign is_refusal = work_q.cause == rnic_pkg::RecoverCauseRefused;

  // The PSN of a command may have been acknowledged since.
  assign behind = work_q.psn - ctx_q.una_psn;
  assign psn    = (is_timer || is_fault || (behind[23] && !is_refusal)) ? ctx_q.una_psn :
                                                                          work_q.psn;
  assign ahead  = psn - ctx_q.next_psn;
  assign open   = ahead[23];
  assign live   = ctx_q.in_use && (ctx_q.state == rnic_pkg::QpStateRts ||
                                   ctx_q.state == rnic_pkg::QpStateSqd);
  assign known  = behind[23] || (!is_rnr && ctx_q.recovering && ctx_q.rec_psn == psn);

  // An expiry that was on its way here when the QP was acknowledged something, went back or was
  // told to wait is none any more.
  assign outdated      = is_timer && !stands_i;
  assign wait_over     = is_timer && ctx_q.rnr_wait && !outdated;
  assign again         = live && open && !outdated && !wait_over &&
                         !(ctx_q.rnr_wait && !is_fault) && (is_timer || is_fault || !known) &&
                         !is_refusal;
  assign exhausted     = again && !is_rnr && !is_fault && ctx_q.retry_left == '0;
  assign rnr_exhausted = again && is_rnr && ctx_q.rnr_left == '0;
  assign go_back       = again && !exhausted && !rnr_exhausted;

  // An RNR NAK of what is still to be sent again.
  assign put_off     = live && is_rnr && !open && to_max[23] && !behind[23] && !ctx_q.rnr_wait;
  assign looks_ahead = is_refusal || put_off;

  // ---- Search: the WQE that holds psn -----------------------------------------------------------
  logic [3:0] log_mtu;
  logic [23:0] first, packets;
  logic is_read;
  assign slot_en_o    = state_q == StSearch;
  assign slot_index_o = idx_q;
  assign log_mtu      = 4'd7 + 4'(ctx_q.mtu);
  assign in_table     = idx_q != ctx_q.exec_idx;
  assign to_last      = slot_last_i - psn;
  assign here         = !whole || !to_last[23];
  assign is_read      = in_table && slot_is_read_i;
  assign first        = in_table ? slot_first_i : ctx_q.next_psn - 24'(ctx_q.msg_off >> log_mtu);
  assign packets      = psn - first;
  // A refusal may name a WQE that was sent before the queue went back: its entry is still there.
  assign to_sent      = idx_q - ctx_q.sent_idx;
  assign whole        = looks_ahead ? to_sent[15] : in_table;
  assign from_first   = psn - slot_first_i;
  assign to_max       = psn - ctx_q.max_psn;
  assign blocked      = looks_ahead && !here && slot_is_read_i;
  assign belongs      = whole ? !from_first[23] : !behind[23] && to_max[23];
  assign refused      = state_q == StCompare && looks_ahead && here && belongs;
  assign waits        = refused && put_off && ctx_q.rnr_left != '0;
  assign unsent       = !ahead[23];
  // Behind a WQE that has failed nothing is sent any more.
  assign since        = idx_q - ctx_q.fault_idx;

  recovery_ctx u_ctx (
      .work_i     (work_q),
      .ctx_i      (ctx_q),
      .index_i    (idx_q),
      .psn_i      (psn),
      .packets_i  (packets),
      .is_read_i  (is_read),
      .whole_i    (whole),
      .last_psn_i (slot_last_i),
      .back_o     (back),
      .failing_o  (failing)
  );

  // ---- Control ----------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (acq_valid_o && acq_ready_i) state_d = StWait;
      StWait:    if (ctx_valid_i) state_d = StJudge;
      StJudge:   state_d = go_back || put_off || (is_refusal && live) ? StSearch : StRelease;
      StSearch:  state_d = StCompare;
      StCompare: state_d = here || blocked ? StRelease : StSearch;
      StRelease: if (rel_ready_i) state_d = gone_q ? StFail : StIdle;
      StFail:    if (fail_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  logic found;
  assign found = state_q == StCompare && here && !looks_ahead && !(ctx_q.fault && !since[15]);
  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (ctx_valid_i) begin
      ctx_q    <= ctx_data_i;
      idx_q    <= ctx_data_i.retire_idx;
      change_q <= 1'b0;
      gone_q   <= 1'b0;
    end
    if (state_q == StJudge) begin
      gone_q <= exhausted || rnr_exhausted;
      if (live && wait_over) begin
        ctx_q.rnr_wait <= 1'b0;
        change_q       <= 1'b1;
      end
      if (live && is_fault) begin
        ctx_q.turned <= 1'b1;
        change_q     <= 1'b1;
      end
    end
    if (state_q == StCompare && !here) idx_q <= idx_q + 1'b1;
    if (found) begin
      ctx_q    <= back;
      change_q <= 1'b1;
    end
    if (waits) begin
      ctx_q.rnr_wait <= 1'b1;
      ctx_q.rnr_left <= ctx_q.rnr_left - 3'(ctx_q.rnr_retry != '1);
      change_q       <= 1'b1;
    end else if (refused) begin
      gone_q <= 1'b1;
      if (unsent) begin
        ctx_q    <= failing;
        change_q <= 1'b1;
      end
    end
    if (!rst_ni) state_q <= StIdle;
  end

  assign acq_valid_o    = state_q == StIdle && work_valid_q && retire_idle_i;
  assign acq_index_o    = work_q.qp;
  assign rel_valid_o    = state_q == StRelease;
  assign rel_write_o    = change_q;
  assign rel_data_o     = ctx_q;
  assign wake_valid_o   = rel_valid_o && rel_ready_i && change_q;

  assign wait_valid_o = (found && is_rnr) || waits;
  assign stop_valid_o = found && !is_rnr;
  assign wait_qp_o    = work_q.qp;
  assign wait_tries_o = found ? back.tries : ctx_q.tries;
  rnr_timer u_rnr_timer (
      .code_i (work_q.syndrome[4:0]),
      .units_o(wait_units_o)
  );

  assign fail_valid_o = state_q == StFail;
  always_comb begin
    fail_data_o         = '0;
    fail_data_o.qp      = work_q.qp;
    fail_data_o.command = rnic_pkg::RetireCommandFail;
    fail_data_o.psn     = psn;
    fail_data_o.status  = rnic_pkg::CqeStatusRetryExcErr;
    if (!is_timer) fail_data_o.syndrome = rnic_pkg::AethSyndromeNakPsn;
    if (is_refusal || is_rnr) begin
      fail_data_o.status   = failing.fault_status;
      fail_data_o.syndrome = failing.fault_syndrome;
    end
  end

  always_comb begin
    event_o = '0;
    if (found) begin
      event_o[rnic_pkg::CounterSequenceRetries] = !is_timer && !is_rnr;
      event_o[rnic_pkg::CounterAckTimeouts]     = is_timer;
    end
    event_o[rnic_pkg::CounterRnrRetries] = wait_valid_o;
    event_o[rnic_pkg::CounterRetriesExhausted] = fail_valid_o && fail_ready_i && !is_refusal;
  end

  logic unused_bits;
  assign unused_bits = ^{behind[22:0], ahead[22:0], to_last[22:0], since[14:0], to_sent[14:0],
                         from_first[22:0], to_max[22:0]};

  `ASSERT(RoomForCommand, !cmd_valid_i || !work_valid_q)
  `ASSERT_HOLD(FailHold, fail_valid_o, fail_ready_i, fail_data_o)
  `ASSERT(InWindow, state_q != StCompare || idx_q - ctx_q.retire_idx <= rnic_pkg::SqWindow[15:0])
endmodule

`default_nettype wire
