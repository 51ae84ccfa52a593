`default_nettype none
`include "assert.svh"

/// Memory operations of send queues: binds, local invalidations, fast registrations.
/// docs/architecture.md, "Memory operations".
///
/// The engine hands over the WQE of a QP that has nothing else outstanding, and sets mem_busy in
/// its context; nothing of the QP is sent, and nothing flushed, until this block takes it back.
/// There is a place for each QP, so the engine never waits; operations are executed one at a time,
/// in the order in which they came. The context is looked at before (a QP that has left its working
/// states executes nothing) and after the operation, never held meanwhile. Then the queue goes on
/// behind the WQE and retires it (an Ack of what is acknowledged already), or its fault is recorded
/// and reported (FailWqe). An operation that succeeded is marked (mem_done) until it has retired:
/// if the QP fails before, it still completes with success, because what is flushed has not been
/// executed. If the QP has failed meanwhile, that holds for what took access away, too: the failure
/// may come from a peer that no longer has it. What made a key valid is undone, unless somebody
/// else has, and flushed, like what was refused; the flush is asked for (flush_valid_o, a pulse).
/// While a FastRegister with an inline page list is with the translation block, list_run_o
/// says where its WQE lies in the WQE buffer: its list_lines_o lines, from list_addr_o on, may be
/// asked for until its answer.
module sq_memop (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    // From the engine: a pulse. The first three segments of the WQE
    input  wire logic                    start_valid_i,
    input  wire logic [7:0]              start_qp_i,
    input  wire logic [23:0]             start_pd_i,
    input  wire rnic_pkg::wqe_control_t  start_control_i,
    input  wire logic [127:0]            start_second_i,
    input  wire logic [127:0]            start_third_i,
    // Something of busy_qp_i is under way
    input  wire logic [7:0]              busy_qp_i,
    output logic                         busy_o,
    output logic                         acq_valid_o,
    input  wire logic                    acq_ready_i,
    output logic [7:0]                   acq_index_o,
    input  wire logic                    ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t     ctx_data_i,
    output logic                         rel_valid_o,
    input  wire logic                    rel_ready_i,
    output logic                         rel_write_o,
    output rnic_pkg::send_ctx_t          rel_data_o,
    output logic                         mem_op_valid_o,
    input  wire logic                    mem_op_ready_i,
    output rnic_pkg::mem_op_t            mem_op_data_o,
    input  wire logic                    mem_op_rsp_valid_i,
    output logic                         mem_op_rsp_ready_o,
    output logic                         list_run_o,
    output logic [10:0]                  list_addr_o,
    output logic [3:0]                   list_lines_o,
    input  wire rnic_pkg::mem_op_rsp_t   mem_op_rsp_data_i,
    output logic                         retire_cmd_valid_o,
    input  wire logic                    retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t        retire_cmd_data_o,
    // The queue can go on; it can be flushed
    output logic                         wake_valid_o,
    output logic [7:0]                   wake_qp_o,
    output logic                         flush_valid_o,
    output logic [7:0]                   flush_qp_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // Idle     takes the next operation, and asks for its context
  // Context  waits for it
  // Release  gives it back
  // Offer    the operation, or its undoing, is offered
  // Answer   its outcome is awaited
  // Acquire  asks for the context again
  // Report   the command to retire
  typedef enum logic [2:0] {
    StIdle,
    StContext,
    StRelease,
    StOffer,
    StAnswer,
    StAcquire,
    StReport
  } state_e;
  state_e state_q, state_d;

  // ---- Operations, a place for each QP ----------------------------------------------------------
  rnic_pkg::wqe_range_t range;
  rnic_pkg::wqe_bind_t bind_segment;
  rnic_pkg::wqe_fast_register_t fast;
  rnic_pkg::mem_op_t asked, op;
  logic is_fast, is_invalidate, queue_ready, queue_valid, queue_pop, add_valid_q;
  logic [rnic_pkg::MemOpBits-1:0] add_q;
  logic [9:0] unused_count;
  logic [255:0] pending_q;

  assign range         = start_second_i;
  assign bind_segment  = start_third_i;
  assign fast          = start_third_i;
  assign is_fast       = start_control_i.opcode == rnic_pkg::WqeOpcodeFastRegister;
  assign is_invalidate = start_control_i.opcode == rnic_pkg::WqeOpcodeLocalInvalidate;
  always_comb begin
    asked     = '0;
    asked.qp  = start_qp_i;
    asked.pd  = start_pd_i;
    asked.key = start_control_i.immediate;
    asked.op  = rnic_pkg::MemOpCodeInvalidate;
    if (!is_invalidate) {asked.va, asked.length} = {range.va, range.length};
    if (is_fast) begin
      asked.op            = rnic_pkg::MemOpCodeFastRegister;
      asked.page_list     = fast.page_list;
      asked.first_offset  = fast.first_offset;
      asked.page_count    = 32'(fast.page_count);
      asked.log_page      = fast.log_page;
      asked.inline_list   = start_control_i.inline_data;
      asked.local_write   = fast.local_write;
      asked.read_sink     = fast.read_sink;
      asked.remote_read   = fast.remote_read;
      asked.remote_write  = fast.remote_write;
      asked.remote_atomic = fast.remote_atomic;
    end else if (!is_invalidate) begin
      asked.op            = (start_control_i.opcode == rnic_pkg::WqeOpcodeBindWindow2) ?
                            rnic_pkg::MemOpCodeBindWindow2 : rnic_pkg::MemOpCodeBindWindow1;
      asked.mr_key        = bind_segment.mr_key;
      asked.remote_read   = bind_segment.remote_read;
      asked.remote_write  = bind_segment.remote_write;
      asked.remote_atomic = bind_segment.remote_atomic;
    end
  end

  always_ff @(posedge clk_i) begin
    add_valid_q <= start_valid_i;
    add_q       <= asked;
    if (start_valid_i) pending_q[start_qp_i] <= 1'b1;
    if (queue_pop) pending_q[op.qp] <= 1'b0;
    if (!rst_ni) begin
      add_valid_q <= 1'b0;
      pending_q   <= '0;
    end
  end
  assign busy_o = pending_q[busy_qp_i];

  stream_fifo #(
      .Width(rnic_pkg::MemOpBits),
      .Depth(256)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (add_valid_q),
      .in_ready_o (queue_ready),
      .in_data_i  (add_q),
      .out_valid_o(queue_valid),
      .out_ready_i(queue_pop),
      .out_data_o (op),
      .count_o    (unused_count)
  );

  // ---- Context ----------------------------------------------------------------------------------
  rnic_pkg::send_ctx_t ctx_q, ctx_d;
  logic [2:0] status_q;
  logic executed_q, undone_q, dead, gone, succeeded, takes_away, undo, undo_q, finish, finish_q;
  logic stands, flush_q, report_q, wake_q;

  // The states in which the queue goes on: what has begun is finished in SQD.
  assign gone = !ctx_data_i.in_use || ctx_data_i.state == rnic_pkg::QpStateReset;
  assign dead = gone || ctx_data_i.state == rnic_pkg::QpStateErr ||
                ctx_data_i.state == rnic_pkg::QpStateSqe;
  assign succeeded  = executed_q && status_q == rnic_pkg::MemOpStatusOk;
  assign takes_away = op.op == rnic_pkg::MemOpCodeInvalidate ||
                      (op.op == rnic_pkg::MemOpCodeBindWindow1 && op.length == '0);
  assign undo   = dead && succeeded && !takes_away && !undone_q;
  assign finish = (dead || executed_q) && !undo;
  assign stands = dead && !gone && succeeded && takes_away;

  always_comb begin
    ctx_d = ctx_data_i;
    if (finish) ctx_d.mem_busy = 1'b0;
    if (stands) ctx_d.mem_done = 1'b1;
    if (finish && !dead) begin
      ctx_d.exec_idx  = ctx_data_i.exec_idx + 1'b1;
      ctx_d.sent_idx  = ctx_data_i.exec_idx + 1'b1;
      ctx_d.buf_idx   = ctx_data_i.buf_idx + 1'b1;
      ctx_d.buf_count = ctx_data_i.buf_count - 1'b1;
      ctx_d.mem_done  = status_q == rnic_pkg::MemOpStatusOk;
      if (status_q != rnic_pkg::MemOpStatusOk) begin
        ctx_d.fault          = 1'b1;
        ctx_d.fault_idx      = ctx_data_i.exec_idx;
        ctx_d.fault_syndrome = 8'(status_q);
        ctx_d.fault_status   = (status_q == rnic_pkg::MemOpStatusBadState ||
                                status_q == rnic_pkg::MemOpStatusBadRequest) ?
                               rnic_pkg::CqeStatusLocQpOpErr : rnic_pkg::CqeStatusLocProtErr;
      end
    end
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (queue_valid && acq_ready_i) state_d = StContext;
      StContext: if (ctx_valid_i) state_d = StRelease;
      StRelease: begin
        if (rel_ready_i) state_d = !finish_q ? StOffer : report_q ? StReport : StIdle;
      end
      StOffer:   if (mem_op_ready_i) state_d = StAnswer;
      StAnswer:  if (mem_op_rsp_valid_i) state_d = StAcquire;
      StAcquire: if (acq_ready_i) state_d = StContext;
      StReport:  if (retire_cmd_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StIdle) {executed_q, undone_q} <= 2'b00;
    if (ctx_valid_i) begin
      ctx_q    <= ctx_d;
      undo_q   <= undo;
      finish_q <= finish;
      report_q <= !dead || stands;
      wake_q   <= !dead;
      flush_q  <= dead && !gone && !stands;
    end
    if (state_q == StAnswer && mem_op_rsp_valid_i) begin
      executed_q <= 1'b1;
      if (undo_q) undone_q <= 1'b1;
      else status_q <= mem_op_rsp_data_i.status;
    end
    if (!rst_ni) state_q <= StIdle;
  end

  assign queue_pop   = state_d == StIdle && state_q != StIdle;
  assign acq_valid_o = (state_q == StIdle && queue_valid) || state_q == StAcquire;
  assign acq_index_o = op.qp;
  assign rel_valid_o = state_q == StRelease;
  assign rel_write_o = finish_q;
  assign rel_data_o  = ctx_q;

  // To undo: a type 1 window is unbound by a bind of length 0, anything else is invalidated.
  assign mem_op_valid_o     = state_q == StOffer;
  assign mem_op_rsp_ready_o = state_q == StAnswer;
  always_comb begin
    mem_op_data_o = op;
    if (undo_q) begin
      mem_op_data_o.length = '0;
      if (op.op != rnic_pkg::MemOpCodeBindWindow1) begin
        mem_op_data_o.op = rnic_pkg::MemOpCodeInvalidate;
      end
    end
  end

  logic [2:0] first_line;
  wqe_line u_line (
      .index_i     (ctx_q.exec_idx[2:0]),
      .log_stride_i(ctx_q.log_stride),
      .line_o      (first_line)
  );
  assign list_run_o   = state_q == StAnswer && !undo_q &&
                        op.op == rnic_pkg::MemOpCodeFastRegister && op.inline_list;
  assign list_addr_o  = {op.qp, first_line};
  assign list_lines_o = 4'((op.page_count[6:0] + 7'd13) >> 3);

  assign wake_valid_o  = rel_valid_o && rel_ready_i && finish_q && wake_q;
  assign wake_qp_o     = op.qp;
  assign flush_valid_o = rel_valid_o && rel_ready_i && finish_q && flush_q;
  assign flush_qp_o    = op.qp;

  // All before the WQE has retired, so that una_psn is next_psn: an Ack of the PSN before it moves
  // nothing but the WQE.
  assign retire_cmd_valid_o = state_q == StReport;
  always_comb begin
    retire_cmd_data_o         = '0;
    retire_cmd_data_o.qp      = op.qp;
    retire_cmd_data_o.command = rnic_pkg::RetireCommandAck;
    retire_cmd_data_o.psn     = ctx_q.una_psn - 24'd1;
    if (status_q != rnic_pkg::MemOpStatusOk) begin
      retire_cmd_data_o.command  = rnic_pkg::RetireCommandFailWqe;
      retire_cmd_data_o.psn      = ctx_q.next_psn;
      retire_cmd_data_o.wqe_idx  = ctx_q.fault_idx;
      retire_cmd_data_o.status   = ctx_q.fault_status;
      retire_cmd_data_o.syndrome = ctx_q.fault_syndrome;
    end
  end

  always_comb begin
    event_o = '0;
    if (mem_op_rsp_ready_o && mem_op_rsp_valid_i && !undo_q) begin
      event_o[rnic_pkg::CounterMemoryOps] =
          mem_op_rsp_data_i.status == rnic_pkg::MemOpStatusOk;
      event_o[rnic_pkg::CounterMemoryOpsRefused] =
          mem_op_rsp_data_i.status != rnic_pkg::MemOpStatusOk;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{start_control_i, bind_segment, fast};

  `ASSERT(RoomForEveryQp, queue_ready)
  `ASSERT(OneOfEachQp, !start_valid_i || !pending_q[start_qp_i])
  `ASSERT(IsBusy, !ctx_valid_i || dead || ctx_data_i.mem_busy)
  `ASSERT(StandsInTable, !(ctx_valid_i && stands) || ctx_data_i.exec_idx != ctx_data_i.retire_idx)
  `ASSERT(IsOldest, !ctx_valid_i || dead || ctx_data_i.exec_idx == ctx_data_i.retire_idx)
  `ASSERT_HOLD(AcquireHold, acq_valid_o, acq_ready_i, acq_index_o)
  `ASSERT_HOLD(MemOpHold, mem_op_valid_o, mem_op_ready_i, mem_op_data_o)
  `ASSERT_HOLD(RetireHold, retire_cmd_valid_o, retire_cmd_ready_i, retire_cmd_data_o)
endmodule

`default_nettype wire
