`default_nettype none
`include "assert.svh"

/// Retires send WQEs in posting order. Keeps the in-flight table: for each QP, SqWindow slots with
/// the WQEs whose last packet has been handed to transmission.
///
/// A command borrows the send context, walks from the oldest WQE on, one a cycle, and gives the
/// context back. CQEs are handed over during the walk, so that those of a QP stay in order with its
/// flush. A failed WQE ends the walk and puts the send side in the error state at once; the other
/// side and the flush follow through the error stream. On UC and UD it is the state SQE, which
/// stops the send queue alone (InfiniBand specification 10.3.1.6). Retired-index records: after 16
/// silent WQEs, or when the queue is empty, unless a CQE has told the host (decisions: "a slot is
/// free when its request has retired"). Commands for a QP that does not exist, or is in RESET, SQE
/// or the error state, do nothing, but for one thing: a memory operation that has been executed
/// (mem_done) completes with success whatever has become of the QP, so that no key is valid whose
/// WQE was flushed; then the flush, which has waited for it, is asked for through the error stream.
///
/// A CQE is handed over only while a place for it is kept (cqe_kept_i, place_queue); without one
/// the context is given back as it is by then, and the walk goes on, with the context as it is
/// then, when there is a place. So nobody waits for the host to take our writes in order to get the
/// context of a QP (PCI Express base specification 2.4.1).
///
/// Credits that come with an acknowledgement set the limit up to which requests may take receive
/// WQEs of the peer (InfiniBand specification 9.7.7.2.5). A limit never goes back: what the peer
/// has promised it has posted.
///
/// A send queue that waits for what retires (send_ctx_t stalled), or for its end in SQD, is woken
/// by every command that finds the QP alive; no other is, so that its turns are for packets.
///
/// Whenever the oldest unacknowledged PSN moves, the retry counts start again, and so does the
/// timer (timer_valid_o, a pulse). Retry commands are passed on to recovery (recover_valid_o, a
/// pulse) once all that they acknowledge has retired; so is a refusal, and a fault of a WQE that
/// has retired, whose packets were sent again for nothing. hold_i keeps the next command back;
/// while idle_o and hold_i are high the entry of WQE peek_index_i of peek_qp_i can be read: it is
/// on peek_* a cycle after peek_en_i.
module retire (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  inflight_valid_i,
    input  wire rnic_pkg::inflight_t   inflight_data_i,
    input  wire logic                  cmd_valid_i,
    output logic                       cmd_ready_o,
    input  wire rnic_pkg::retire_cmd_t cmd_data_i,
    output logic                       acq_valid_o,
    input  wire logic                  acq_ready_i,
    output logic [7:0]                 acq_index_o,
    input  wire logic                  ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t   ctx_data_i,
    output logic                       rel_valid_o,
    input  wire logic                  rel_ready_i,
    output logic                       rel_write_o,
    output rnic_pkg::send_ctx_t        rel_data_o,
    input  wire logic                  cqe_kept_i,
    output logic                       cqe_valid_o,
    input  wire logic                  cqe_ready_i,
    output rnic_pkg::cqe_req_t         cqe_data_o,
    output logic                       error_valid_o,
    input  wire logic                  error_ready_i,
    output rnic_pkg::qp_error_t        error_data_o,
    output logic                       record_valid_o,
    input  wire logic                  record_ready_i,
    output rnic_pkg::dma_wr_t          record_data_o,
    output logic                       sq_wake_valid_o,
    output logic [7:0]                 sq_wake_qp_o,
    output logic                       timer_valid_o,
    output rnic_pkg::timer_event_t     timer_data_o,
    output logic                       recover_valid_o,
    output rnic_pkg::recover_cmd_t     recover_data_o,
    input  wire logic                  hold_i,
    output logic                       idle_o,
    input  wire logic                  peek_en_i,
    input  wire logic [7:0]            peek_qp_i,
    input  wire logic [15:0]           peek_index_i,
    output logic                       peek_is_read_o,
    output logic [23:0]                peek_first_o,
    output logic [23:0]                peek_last_o
);
  localparam int unsigned SlotBits = 8 + 1 + 24 + 24 + 32;
  localparam int unsigned SlotIndexBits = $clog2(rnic_pkg::SqWindow);
  localparam int unsigned Slots = 2 ** (rnic_pkg::QpIndexBits + SlotIndexBits);
  localparam logic [7:0] SilentLimit = 8'd16;

  // Idle     asks for the send context of the command, if there is one
  // Wait     for the context
  // Walk     the oldest WQE: finished, failed, or the end of the walk
  // Release  gives the context back
  // Pause    waits for a place for a CQE, then asks for the context again
  // Record   hands over the retired-index record
  // Error    hands over the error of the QP
  typedef enum logic [2:0] {
    StIdle,
    StWait,
    StWalk,
    StRelease,
    StPause,
    StRecord,
    StError
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::send_ctx_t ctx_q, loaded, restarted;
  logic live, psn_open, psn_open_q, changed_q, wanted, failed_q, progress, stale, retry_q;
  logic is_retry, is_refusal, owed, owed_q;
  logic in_table, finished, failed, silent, step, no_place, pause_q, again_q;
  logic [7:0] fail_status, fail_syndrome, slot_opcode;
  logic [23:0] slot_first, slot_last;
  logic [31:0] slot_length;
  logic [23:0] bound, named, ahead, window, ever, since_una, lsn_gain;
  logic slot_silent, slot_read, record_due;
  logic [15:0] slot_index, next_idx;
  logic [SlotBits-1:0] slot;

  // The next slot is read while the present one is judged.
  assign next_idx   = ctx_q.retire_idx + 1'b1;
  assign slot_index = (state_q == StWait) ? ctx_data_i.retire_idx : next_idx;
  assign slot_read  = (state_q == StWait) ? ctx_valid_i : step;

  ram_1r1w #(
      .Width(SlotBits),
      .Depth(Slots)
  ) u_inflight (
      .clk_i,
      .wr_en_i  (inflight_valid_i),
      .wr_addr_i({inflight_data_i.qp, inflight_data_i.wqe_idx[SlotIndexBits-1:0]}),
      .wr_data_i({inflight_data_i.opcode, inflight_data_i.silent, inflight_data_i.first_psn,
                  inflight_data_i.last_psn, inflight_data_i.length}),
      .rd_en_i  (slot_read || peek_en_i),
      .rd_addr_i(peek_en_i ? {peek_qp_i, peek_index_i[SlotIndexBits-1:0]} :
                             {cmd_data_i.qp, slot_index[SlotIndexBits-1:0]}),
      .rd_data_o(slot)
  );
  assign {slot_opcode, slot_silent, slot_first, slot_last, slot_length} = slot;
  assign peek_is_read_o = slot_opcode == rnic_pkg::CqeOpcodeRead ||
                          slot_opcode == rnic_pkg::CqeOpcodeCompareSwap ||
                          slot_opcode == rnic_pkg::CqeOpcodeFetchAdd;
  assign peek_first_o   = slot_first;
  assign peek_last_o    = slot_last;

  assign is_retry   = cmd_data_i.command == rnic_pkg::RetireCommandRetry;
  assign is_refusal = cmd_data_i.command == rnic_pkg::RetireCommandRefuse;

  // What the command itself says about the QP, as the context arrives.
  always_comb begin : p_load
    logic [15:0] command_age, recorded_age;
    lsn_gain  = cmd_data_i.lsn - ctx_data_i.lsn;
    live      = ctx_data_i.in_use && ctx_data_i.state != rnic_pkg::QpStateReset &&
                ctx_data_i.state != rnic_pkg::QpStateErr &&
                ctx_data_i.state != rnic_pkg::QpStateSqe;
    named     = cmd_data_i.psn + 24'd1;
    if (cmd_data_i.command == rnic_pkg::RetireCommandFail || is_retry) named = cmd_data_i.psn;
    // As many as 2^23 PSNs are out (9.7.2), so distances from the oldest of them are compared, not
    // signs. The queue may have gone back since the command was made: it counts up to next_psn.
    ahead     = named - ctx_data_i.una_psn;
    window    = ctx_data_i.next_psn - ctx_data_i.una_psn;
    ever      = ctx_data_i.max_psn - ctx_data_i.una_psn;
    bound     = (ahead > window) ? ctx_data_i.next_psn : named;
    progress  = 1'b0;
    stale     = 1'b0;
    since_una = cmd_data_i.psn - ctx_data_i.una_psn;
    psn_open  = since_una < window;
    loaded    = ctx_data_i;

    command_age  = cmd_data_i.wqe_idx - ctx_data_i.retire_idx;
    recorded_age = ctx_data_i.fault_idx - ctx_data_i.retire_idx;
    if (cmd_data_i.command == rnic_pkg::RetireCommandFailWqe) begin
      // The oldest failure is the one that ends the queue; one of a WQE that has retired is stale.
      if (!command_age[15] && (!ctx_data_i.fault || command_age <= recorded_age)) begin
        loaded.fault          = 1'b1;
        loaded.fault_idx      = cmd_data_i.wqe_idx;
        loaded.fault_status   = cmd_data_i.status;
        loaded.fault_syndrome = cmd_data_i.syndrome;
      end
      stale = command_age[15];
    end else if (ahead <= ever && !is_refusal) begin
      progress       = bound != ctx_data_i.una_psn;
      loaded.una_psn = bound;
      if (cmd_data_i.with_credits) begin
        loaded.credits = cmd_data_i.limited;
        if (!ctx_data_i.credits || !lsn_gain[23]) loaded.lsn = cmd_data_i.lsn;
      end
    end
    // A memory operation that was executed completes as such in the error state too; nothing else
    // does.
    owed = ctx_data_i.in_use && ctx_data_i.mem_done && (ctx_data_i.state == rnic_pkg::QpStateErr ||
                                                        ctx_data_i.state == rnic_pkg::QpStateSqe);
    if (progress) begin
      loaded.recovering = 1'b0;
      loaded.retry_left = ctx_data_i.retry_count;
      loaded.rnr_left   = ctx_data_i.rnr_retry;
    end
    if (cmd_data_i.command == rnic_pkg::RetireCommandReadDone && !again_q &&
        ctx_data_i.rd_outstanding != '0) begin
      loaded.rd_outstanding = ctx_data_i.rd_outstanding - 1'b1;
    end
    if (!live) loaded = ctx_data_i;
  end

  retire_step u_step (
      .cmd_i          (cmd_data_i),
      .ctx_i          (ctx_q),
      .opcode_i       (slot_opcode),
      .first_psn_i    (slot_first),
      .last_psn_i     (slot_last),
      .psn_open_i     (psn_open_q),
      .in_table_o     (in_table),
      .finished_o     (finished),
      .failed_o       (failed),
      .fail_status_o  (fail_status),
      .fail_syndrome_o(fail_syndrome)
  );

  sq_restart u_restart (
      .ctx_i  (ctx_q),
      .index_i(next_idx),
      .ctx_o  (restarted)
  );

  assign silent = finished && slot_silent;
  assign step   = state_q == StWalk && (finished || failed) &&
                  (silent || (cqe_kept_i && cqe_ready_i));
  assign no_place = (finished || failed) && !silent && !cqe_kept_i;

  // The opcode and length of a WQE that is not in the table are not known here.
  always_comb begin
    cqe_data_o               = '0;
    cqe_data_o.cqn           = ctx_q.cqn;
    cqe_data_o.status        = failed ? fail_status : rnic_pkg::CqeStatusSuccess;
    cqe_data_o.opcode        = in_table ? slot_opcode : rnic_pkg::CqeOpcodeFlush;
    cqe_data_o.wqe_index     = ctx_q.retire_idx;
    cqe_data_o.qpn           = ctx_q.qpn;
    cqe_data_o.byte_count    = in_table ? slot_length : '0;
    cqe_data_o.retired_index = next_idx;
    cqe_data_o.syndrome      = failed ? fail_syndrome : '0;
  end

  assign record_due = !failed_q && (ctx_q.silent_run >= SilentLimit ||
                                    (ctx_q.silent_run != '0 && ctx_q.retire_idx == ctx_q.pi));
  always_comb begin
    rel_data_o = ctx_q;
    if (record_due && !pause_q) rel_data_o.silent_run = '0;
    if (!pause_q) rel_data_o.stalled = 1'b0;
  end

  // The send queue waits for what this command may have brought; in SQD, to see that it is drained.
  assign wanted = changed_q && (ctx_q.stalled || ctx_q.state == rnic_pkg::QpStateSqd);

  // The record lies within one line: its address is 8-byte aligned.
  rnic_pkg::retired_record_t record;
  always_comb begin
    record               = '0;
    record.retired_index = ctx_q.retire_idx;
    record_data_o        = '0;
    record_data_o.addr   = ctx_q.retired_address;
    record_data_o.length = 13'd8;
    record_data_o.data   = {448'd0, record} << {ctx_q.retired_address[5:3], 6'd0};
    record_data_o.last   = 1'b1;
  end

  always_comb begin
    error_data_o           = '0;
    error_data_o.qp        = cmd_data_i.qp;
    error_data_o.status    = ctx_q.fault_status;
    error_data_o.told      = 1'b1;
    error_data_o.send_only = ctx_q.qp_type != rnic_pkg::QpTypeRc;
    // Nothing new: the flush that has waited for the memory operation.
    if (owed_q) begin
      error_data_o.told      = 1'b0;
      error_data_o.status    = rnic_pkg::CqeStatusWrFlushErr;
      error_data_o.send_only = 1'b1;
      error_data_o.quiet     = 1'b1;
    end
  end

  // Read data moves una_psn by itself, and the timer with it.
  assign timer_valid_o         = state_q == StWait && ctx_valid_i && live && progress;
  assign timer_data_o.qp       = cmd_data_i.qp;
  assign timer_data_o.exponent = ctx_data_i.ack_timeout;
  assign timer_data_o.psn      = loaded.una_psn;

  always_comb begin
    recover_data_o       = '0;
    recover_data_o.qp    = cmd_data_i.qp;
    recover_data_o.psn   = cmd_data_i.psn;
    recover_data_o.syndrome = cmd_data_i.syndrome;
    recover_data_o.status   = cmd_data_i.status;
    recover_data_o.cause = rnic_pkg::RecoverCauseNak;
    if (is_refusal) begin
      recover_data_o.cause = rnic_pkg::RecoverCauseRefused;
    end else if (cmd_data_i.command == rnic_pkg::RetireCommandFailWqe) begin
      recover_data_o.cause = rnic_pkg::RecoverCauseFault;
    end else if (cmd_data_i.syndrome[7:5] == rnic_pkg::AethSyndromeRnrNak[7:5]) begin
      recover_data_o.cause = rnic_pkg::RecoverCauseRnr;
    end
  end
  assign recover_valid_o = rel_valid_o && rel_ready_i && retry_q && !failed_q && !pause_q;
  assign idle_o          = state_q == StIdle;

  assign acq_valid_o    = (state_q == StIdle && cmd_valid_i && !hold_i) ||
                          (state_q == StPause && cqe_kept_i);
  assign acq_index_o    = cmd_data_i.qp;
  assign rel_valid_o    = state_q == StRelease;
  assign rel_write_o    = changed_q;
  assign cqe_valid_o    = state_q == StWalk && (finished || failed) && !silent && cqe_kept_i;
  assign record_valid_o = state_q == StRecord;
  assign error_valid_o  = state_q == StError;
  assign cmd_ready_o    = (state_q == StRelease && rel_ready_i && !record_due && !failed_q &&
                           !owed_q && !pause_q) ||
                          (state_q == StRecord && record_ready_i && !owed_q) ||
                          (state_q == StError && error_ready_i);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (acq_valid_o && acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = (live || owed) ? StWalk : StRelease;
      StWalk: begin
        if (!(finished || failed) || no_place || ((failed || owed_q) && step)) begin
          state_d = StRelease;
        end
      end
      StPause: if (acq_valid_o && acq_ready_i) state_d = StWait;
      StRelease:
      if (rel_ready_i) begin
        if (pause_q) state_d = StPause;
        else if (record_due) state_d = StRecord;
        else if (failed_q || owed_q) state_d = StError;
        else state_d = StIdle;
      end
      StRecord: if (record_ready_i) state_d = owed_q ? StError : StIdle;
      StError: if (error_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (ctx_valid_i) begin
      ctx_q      <= loaded;
      psn_open_q <= psn_open;
      changed_q  <= live || owed;
      owed_q     <= owed;
      retry_q    <= live && (is_retry || is_refusal || stale);
      failed_q   <= 1'b0;
    end
    if (state_q == StIdle) again_q <= 1'b0;
    if (state_q == StPause) again_q <= 1'b1;
    pause_q <= (state_q == StWalk) ? no_place : (pause_q && state_q == StRelease);
    if (step) begin
      if (failed && !in_table) ctx_q <= restarted;
      ctx_q.retire_idx <= next_idx;
      ctx_q.mem_done   <= 1'b0;
      ctx_q.silent_run <= silent ? ctx_q.silent_run + 1'b1 : '0;
      if (failed) begin
        failed_q           <= 1'b1;
        ctx_q.state        <= (ctx_q.qp_type == rnic_pkg::QpTypeRc) ? rnic_pkg::QpStateErr :
                                                                      rnic_pkg::QpStateSqe;
        ctx_q.fault_status <= fail_status;
      end
    end
    sq_wake_valid_o <= rel_valid_o && rel_ready_i && wanted && !pause_q;
    sq_wake_qp_o    <= cmd_data_i.qp;
    if (!rst_ni) begin
      state_q         <= StIdle;
      pause_q         <= 1'b0;
      sq_wake_valid_o <= 1'b0;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{inflight_data_i.wqe_idx, slot_index, lsn_gain[22:0], peek_index_i};

  `ASSERT_HOLD(CqeHold, cqe_valid_o, cqe_ready_i, cqe_data_o)
  `ASSERT_HOLD(ErrorHold, error_valid_o, error_ready_i, error_data_o)
  `ASSERT_HOLD(RecordHold, record_valid_o, record_ready_i, record_data_o)
endmodule

`default_nettype wire
