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
    // Failing: an error is coming, its CQE may be on its way
    output logic                       failing_o,
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

  retire_load u_load (
      .cmd_i     (cmd_data_i),
      .ctx_i     (ctx_data_i),
      .again_i   (again_q),
      .live_o    (live),
      .owed_o    (owed),
      .progress_o(progress),
      .stale_o   (stale),
      .psn_open_o(psn_open),
      .ctx_o     (loaded)
  );

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

  assign record_due = !failed_q && (ctx_q.silent_run >= SilentLimit ||
                                    (ctx_q.silent_run != '0 && ctx_q.retire_idx == ctx_q.pi));
  always_comb begin
    rel_data_o = ctx_q;
    if (record_due && !pause_q) rel_data_o.silent_run = '0;
    if (!pause_q) rel_data_o.stalled = 1'b0;
  end

  // The send queue waits for what this command may have brought; in SQD, to see that it is drained.
  assign wanted = changed_q && (ctx_q.stalled || ctx_q.state == rnic_pkg::QpStateSqd);

  // Read data moves una_psn by itself, and the timer with it.
  assign timer_valid_o         = state_q == StWait && ctx_valid_i && live && progress;
  assign timer_data_o.qp       = cmd_data_i.qp;
  assign timer_data_o.exponent = ctx_data_i.ack_timeout;
  assign timer_data_o.psn      = loaded.una_psn;
  assign timer_data_o.tries    = '0;

  retire_told u_told (
      .cmd_i          (cmd_data_i),
      .ctx_i          (ctx_q),
      .in_table_i     (in_table),
      .opcode_i       (slot_opcode),
      .length_i       (slot_length),
      .failed_i       (failed),
      .fail_status_i  (fail_status),
      .fail_syndrome_i(fail_syndrome),
      .owed_i         (owed_q),
      .cqe_o          (cqe_data_o),
      .record_o       (record_data_o),
      .error_o        (error_data_o),
      .recover_o      (recover_data_o)
  );
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
  assign failing_o      = failed_q && (state_q == StRelease || state_q == StError);
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
  assign unused_bits = ^{inflight_data_i.wqe_idx, slot_index, peek_index_i};

  `ASSERT_HOLD(CqeHold, cqe_valid_o, cqe_ready_i, cqe_data_o)
  `ASSERT_HOLD(ErrorHold, error_valid_o, error_ready_i, error_data_o)
  `ASSERT_HOLD(RecordHold, record_valid_o, record_ready_i, record_data_o)
endmodule

`default_nettype wire
