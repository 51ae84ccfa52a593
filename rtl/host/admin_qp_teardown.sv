`default_nettype none
`include "assert.svh"

/// Takes a QP out of service: to the error state only, back to RESET, or out of existence.
///
/// To the error state: completion does it (qp_error_t, quiet, because the host asked); when both
/// contexts say so, and no memory operation of the QP is under way, the windows bound on it are
/// unbound. To RESET or away: first the UAR is taken out of the contexts, so that no
/// doorbell can move a queue any more (a process that keeps ringing must not hold up the admin
/// queue); then the error state; then the contexts are polled until both queues are flushed;
/// `drain` passes; the contexts are cleared; every block forgets the QP; then nobody can bind a
/// window on it any more, and those that are bound are unbound. Only then do the contexts get their
/// last form: an error that was under way inside the NIC may have marked the cleared
/// contexts, and the UAR comes back when nothing is left to be confused.
/// start_i is held, with mode and QP, until done_o.
module admin_qp_teardown (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    start_i,
    input  wire logic                    error_only_i,
    input  wire logic                    already_err_i,
    input  wire logic                    destroy_i,
    input  wire logic [7:0]              qp_i,
    output logic                         done_o,
    output logic                         access_valid_o,
    output rnic_pkg::admin_access_t      access_o,
    output logic [2:0]                   step_o,
    output logic                         last_o,
    input  wire logic                    access_done_i,
    input  wire rnic_pkg::send_ctx_t     view_send_i,
    input  wire rnic_pkg::recv_ctx_t     view_recv_i,
    output logic                         qp_error_valid_o,
    input  wire logic                    qp_error_ready_i,
    output rnic_pkg::qp_error_t          qp_error_data_o,
    output logic                         drain_valid_o,
    input  wire logic                    drain_ready_i,
    output logic                         qp_reset_valid_o,
    input  wire logic                    qp_reset_ready_i,
    output logic                         mem_op_valid_o,
    input  wire logic                    mem_op_ready_i,
    output rnic_pkg::mem_op_t            mem_op_data_o,
    input  wire logic                    mem_op_rsp_valid_i
);
  // Cycles between two looks at the contexts.
  localparam logic [4:0] PollPause = 5'd31;

  // Idle: waits for start. QuietSend, QuietRecv: take the UAR out. Raise: ask for the error state.
  // PollSend, PollRecv: look; Pause: before the next look. Drain. ClearSend, ClearRecv: empty the
  // contexts. Forget: qp_reset. Unbind, Unbinding: the windows. LastSend, LastRecv: their last
  // form. Done: done_o.
  typedef enum logic [3:0] {
    Idle,
    QuietSend,
    QuietRecv,
    Raise,
    PollSend,
    PollRecv,
    Pause,
    Drain,
    ClearSend,
    ClearRecv,
    Forget,
    Unbind,
    Unbinding,
    LastSend,
    LastRecv,
    Done
  } state_e;
  state_e state_q, state_d;

  logic [4:0] pause_q;
  logic send_gone, recv_gone;

  assign send_gone = view_send_i.state == rnic_pkg::QpStateErr && !view_send_i.mem_busy &&
      (error_only_i || view_send_i.retire_idx == view_send_i.pi);
  // A QP on an SRQ is flushed when nothing of it is in the receive engine.
  assign recv_gone = view_recv_i.state == rnic_pkg::QpStateErr && (error_only_i ||
      (view_recv_i.srq ? view_recv_i.rx_gone : view_recv_i.rq_done == view_recv_i.rq_pi));

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle:
      if (start_i) begin
        state_d = QuietSend;
        if (error_only_i) state_d = already_err_i ? PollSend : Raise;
      end
      QuietSend: if (access_done_i) state_d = QuietRecv;
      QuietRecv: if (access_done_i) state_d = already_err_i ? PollSend : Raise;
      Raise:     if (qp_error_ready_i) state_d = PollSend;
      PollSend:  if (access_done_i) state_d = send_gone ? PollRecv : Pause;
      PollRecv: begin
        if (access_done_i) begin
          state_d = Pause;
          if (recv_gone) state_d = error_only_i ? Unbind : Drain;
        end
      end
      Pause:     if (pause_q == '0) state_d = PollSend;
      Drain:     if (drain_ready_i) state_d = ClearSend;
      ClearSend: if (access_done_i) state_d = ClearRecv;
      ClearRecv: if (access_done_i) state_d = Forget;
      Forget:    if (qp_reset_ready_i) state_d = Unbind;
      Unbind:    if (mem_op_ready_i) state_d = Unbinding;
      Unbinding: if (mem_op_rsp_valid_i) state_d = error_only_i ? Done : LastSend;
      LastSend:  if (access_done_i) state_d = LastRecv;
      LastRecv:  if (access_done_i) state_d = Done;
      Done:      state_d = Idle;
      default:   state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    pause_q <= (state_q == Pause) ? pause_q - 1'b1 : PollPause;
    if (!rst_ni) state_q <= Idle;
  end

  assign access_valid_o = access_o.write || state_q == PollSend || state_q == PollRecv;
  always_comb begin
    access_o.index = qp_i;
    access_o.kind  = rnic_pkg::CtxKindSend;
    access_o.write = 1'b1;
    step_o         = rnic_pkg::QpStepQuiet;
    unique case (state_q)
      QuietSend: ;
      QuietRecv: access_o.kind = rnic_pkg::CtxKindReceive;
      ClearSend, ClearRecv: begin
        if (state_q == ClearRecv) access_o.kind = rnic_pkg::CtxKindReceive;
        step_o = rnic_pkg::QpStepReset;
      end
      LastSend, LastRecv: begin
        if (state_q == LastRecv) access_o.kind = rnic_pkg::CtxKindReceive;
        step_o = destroy_i ? rnic_pkg::QpStepDestroy : rnic_pkg::QpStepReset;
      end
      default: begin
        if (state_q == PollRecv) access_o.kind = rnic_pkg::CtxKindReceive;
        access_o.write = 1'b0;
      end
    endcase
  end
  assign last_o = state_q == LastSend || state_q == LastRecv;

  assign qp_error_valid_o       = state_q == Raise;
  always_comb begin
    qp_error_data_o        = '0;
    qp_error_data_o.qp     = qp_i;
    qp_error_data_o.status = rnic_pkg::CqeStatusWrFlushErr;
    qp_error_data_o.quiet  = 1'b1;
  end
  assign drain_valid_o          = state_q == Drain;
  assign qp_reset_valid_o       = state_q == Forget;
  assign done_o                 = state_q == Done;

  assign mem_op_valid_o = state_q == Unbind;
  always_comb begin
    mem_op_data_o    = '0;
    mem_op_data_o.op = rnic_pkg::MemOpCodeUnbindQp;
    mem_op_data_o.qp = qp_i;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, view_send_i, view_recv_i};

  `ASSERT(StartHeld, state_q == Idle || start_i)
  `ASSERT_HOLD(MemOpHold, mem_op_valid_o, mem_op_ready_i, mem_op_data_o)
  `ASSERT_HOLD(ErrorHold, qp_error_valid_o, qp_error_ready_i, qp_error_data_o)
endmodule

`default_nettype wire
