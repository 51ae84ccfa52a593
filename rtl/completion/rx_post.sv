`default_nettype none
`include "assert.svh"

/// What follows a placed packet, one packet at a time in wire order: a receive CQE, a command to
/// the responder's output, a command to retire, an error of the QP.
///
/// A SEND or WRITE with immediate data that ends, or a SEND whose payload could not be placed, uses
/// up the oldest receive WQE: its CQE is handed over and rq_done moves while the receive context is
/// held, so that a flush comes wholly before or wholly after it; the context is borrowed only while
/// a place for the CQE is kept (cqe_kept_i, place_queue). A WQE that a flush has taken already gets
/// no second CQE, and its SEND no answer; nor does what the peer sent behind it, until
/// clear_valid_i, for an answer acknowledges all before (9.7.5.1.2). Receive WQEs of UC and UD that
/// were taken for dropped messages are given back: all that are not used up. A WQE of an SRQ is
/// known by its tag, and whoever has it must complete it: when the QP is in the error state by
/// then, with a flush; one that was taken by a message that has not ended is kept in srq_open, for
/// the flush of the QP to find. One whose tag could not be read is lost, and the SRQ with it
/// (srq_error_valid_o). The responder's command does not wait for the context to be given back, nor
/// the other way round: the responder's output needs that context too. The NAK of a fatal error is
/// handed over before the error.
///
/// A SEND with invalidate has its key invalidated (mem_op_*) before its CQE, so that no access
/// under the key can start once the CQE is there (o9-5.2; 10.6.5.1). Then what rx_park holds behind
/// it may go on (`invalidating`, invalidation_over_o). If it is refused, the Receive fails and the
/// peer gets a NAK; what the QP's peer sent behind it is dropped here, until clear_valid_i, but for
/// the WQEs of an SRQ that it took: they are flushed.
module rx_post (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  done_valid_i,
    output logic                       done_ready_o,
    input  wire rnic_pkg::rx_done_t    done_data_i,
    output logic                       acq_valid_o,
    input  wire logic                  acq_ready_i,
    output logic [7:0]                 acq_index_o,
    input  wire logic                  ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t   ctx_data_i,
    output logic                       rel_valid_o,
    input  wire logic                  rel_ready_i,
    output logic                       rel_write_o,
    output rnic_pkg::recv_ctx_t        rel_data_o,
    input  wire logic                  cqe_kept_i,
    output logic                       cqe_valid_o,
    input  wire logic                  cqe_ready_i,
    output rnic_pkg::cqe_req_t         cqe_data_o,
    output logic                       rsp_cmd_valid_o,
    input  wire logic                  rsp_cmd_ready_i,
    output rnic_pkg::rsp_cmd_t         rsp_cmd_data_o,
    output logic                       retire_valid_o,
    input  wire logic                  retire_ready_i,
    output rnic_pkg::retire_cmd_t      retire_data_o,
    // The flush of a QP asks for the WQE of an SRQ that it has left open; clear: takes it
    input  wire logic [7:0]            open_qp_i,
    output logic                       open_o,
    output logic [15:0]                open_tag_o,
    input  wire logic                  open_clear_i,
    output logic                       srq_error_valid_o,
    output logic [7:0]                 srq_error_srq_o,
    // Failing: an error is coming, its CQE may be on its way
    output logic                       failing_o,
    output logic                       error_valid_o,
    input  wire logic                  error_ready_i,
    output rnic_pkg::qp_error_t        error_data_o,
    // Memory operations: the client of the receive path
    output logic                       mem_op_valid_o,
    input  wire logic                  mem_op_ready_i,
    output rnic_pkg::mem_op_t          mem_op_data_o,
    input  wire logic                  mem_op_rsp_valid_i,
    output logic                       mem_op_rsp_ready_o,
    input  wire rnic_pkg::mem_op_rsp_t mem_op_rsp_data_i,
    // Requests of the QP may be worked on again
    input  wire logic                  clear_valid_i,
    input  wire logic [7:0]            clear_qp_i,
    output logic                       busy_o,
    output logic [7:0]                 busy_qp_o,
    // Pulses: an invalidation was done, or refused; what waits for one may go on
    output logic                       invalidated_o,
    output logic                       refused_o,
    output logic                       invalidation_over_o
);
  // Idle        ready for a packet
  // Invalidate  offers the invalidation
  // Answer      waits for its outcome
  // Start       asks for the receive context, or, when none is needed, sends the commands
  // Wait        for the context
  // Cqe         hands over the receive CQE
  // Emit        gives the context back and sends the commands
  typedef enum logic [2:0] {
    StIdle,
    StInvalidate,
    StAnswer,
    StStart,
    StWait,
    StCqe,
    StEmit
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::rx_done_t done_q;
  rnic_pkg::recv_ctx_t ctx_q;
  logic need_ctx, give_back, need_rsp, need_retire, need_error, live, emit, all_sent, executed;
  logic rel_due_q, rsp_due_q, retire_due_q, error_due_q, rel_left, rsp_left, retire_left;
  logic [7:0] receive_status;
  logic [255:0] dead_q;
  logic dead, request, invalidate, invalidate_q, refused_q, killed_q, error_left;
  logic [2:0] refusal_q;

  // After a refused invalidation, or a SEND that came to nothing, nothing of the QP's requests
  // counts. What is left are responses.
  assign dead       = dead_q[done_data_i.qp];
  assign request    = done_data_i.action == rnic_pkg::RxActionExecuted ||
                      done_data_i.action == rnic_pkg::RxActionReceiveDone ||
                      done_data_i.action == rnic_pkg::RxActionReadRequest ||
                      done_data_i.action == rnic_pkg::RxActionNak;
  assign invalidate = done_data_i.action == rnic_pkg::RxActionReceiveDone && !done_data_i.fault &&
                      done_data_i.with_invalidate;

  rx_verdict u_verdict (
      .done_i          (done_q),
      .refused_i       (refused_q),
      .need_ctx_o      (need_ctx),
      .receive_status_o(receive_status),
      .give_back_o     (give_back),
      .need_rsp_o      (need_rsp),
      .rsp_cmd_o       (rsp_cmd_data_o),
      .need_retire_o   (need_retire),
      .retire_o        (retire_data_o),
      .need_error_o    (need_error),
      .error_o         (error_data_o)
  );

  // What an SRQ's WQE is taken for is settled when the packet comes.
  logic done_taken, done_open, done_close, has_cqe, flushed, flushed_behind;
  assign done_taken = done_valid_i && done_ready_o && done_data_i.srq;
  assign done_close = done_taken && (done_data_i.fault ||
      done_data_i.action == rnic_pkg::RxActionReceiveDone);
  assign done_open  = done_taken && !done_data_i.fault && done_data_i.takes &&
      done_data_i.action == rnic_pkg::RxActionExecuted;
  srq_open u_open (
      .clk_i,
      .rst_ni,
      .open_i   (done_open),
      .close_i  (done_close),
      .set_qp_i (done_data_i.qp),
      .set_tag_i(done_data_i.wqe_idx),
      .rd_qp_i  (open_qp_i),
      .rd_open_o(open_o),
      .rd_tag_o (open_tag_o),
      .clear_i  (open_clear_i)
  );
  assign srq_error_valid_o = done_taken && done_data_i.wqe_lost;
  assign srq_error_srq_o   = done_data_i.srqn;

  assign live = ctx_q.in_use && ctx_q.state != rnic_pkg::QpStateReset &&
                ctx_q.state != rnic_pkg::QpStateErr && !killed_q;
  assign flushed = done_q.srq && ctx_q.in_use &&
                   (ctx_q.state == rnic_pkg::QpStateErr || killed_q);
  // An answer of what is behind would acknowledge this SEND as well.
  assign flushed_behind = state_q == StCqe && ctx_q.in_use && ctx_q.state == rnic_pkg::QpStateErr;
  assign has_cqe = done_q.srq ? (live || flushed) && !done_q.wqe_lost : live && !give_back;

  always_comb begin
    cqe_data_o            = '0;
    cqe_data_o.cqn        = ctx_q.cqn;
    cqe_data_o.status     = flushed ? rnic_pkg::CqeStatusWrFlushErr : receive_status;
    cqe_data_o.opcode     = rnic_pkg::CqeOpcodeReceive;
    if (done_q.write_imm) cqe_data_o.opcode = rnic_pkg::CqeOpcodeReceiveWrite;
    cqe_data_o.wqe_index  = done_q.srq ? done_q.wqe_idx : ctx_q.rq_done;
    cqe_data_o.qpn        = ctx_q.qpn;
    cqe_data_o.is_receive = 1'b1;
    if (cqe_data_o.status == rnic_pkg::CqeStatusSuccess) begin
      cqe_data_o.solicited  = done_q.solicited;
      cqe_data_o.byte_count = done_q.byte_count;
      cqe_data_o.with_imm        = done_q.with_imm;
      cqe_data_o.with_invalidate = done_q.with_invalidate;
      cqe_data_o.immediate       = done_q.immediate;
      cqe_data_o.grh             = done_q.grh;
      cqe_data_o.source_qpn      = done_q.source_qpn;
      cqe_data_o.vlan            = done_q.vlan;
      cqe_data_o.vlan_tci        = done_q.vlan_tci;
      cqe_data_o.l3_ok           = done_q.l3_ok;
      cqe_data_o.l4_ok           = done_q.l4_ok;
    end else begin
      cqe_data_o.syndrome = refused_q ? 8'(refusal_q) : {4'd0, done_q.status};
    end
    rel_data_o         = ctx_q;
    if (give_back) begin
      rel_data_o.rq_head = ctx_q.rq_done;
      // What is still to come of a message under way is dropped.
      if (ctx_q.msg != rnic_pkg::RecvMessageNone) rel_data_o.msg = rnic_pkg::RecvMessageDropped;
      rel_data_o.take    = !ctx_q.take;
    end else if (!done_q.srq) begin
      rel_data_o.rq_done = ctx_q.rq_done + 1'b1;
    end
    if (executed) rel_data_o.invalidating = 1'b0;
  end

  // Commands leave when their due bit is set and it is their turn.
  assign emit            = state_q == StEmit || (state_q == StStart && !need_ctx);
  assign rel_valid_o     = state_q == StEmit && rel_due_q;
  assign rel_write_o     = live && (!done_q.srq || executed);
  assign rsp_cmd_valid_o = emit && need_rsp && rsp_due_q;
  assign retire_valid_o  = emit && need_retire && retire_due_q;
  assign error_valid_o   = emit && need_error && error_due_q && !(need_rsp && rsp_due_q);
  assign failing_o       = busy_o && need_error && error_due_q;
  assign rel_left        = rel_valid_o && !rel_ready_i;
  assign rsp_left        = rsp_cmd_valid_o && !rsp_cmd_ready_i;
  assign retire_left     = retire_valid_o && !retire_ready_i;
  assign error_left      = emit && need_error && error_due_q && !(error_valid_o && error_ready_i);
  assign all_sent        = !(rel_left || rsp_left || retire_left || error_left);

  assign acq_valid_o  = state_q == StStart && need_ctx && cqe_kept_i;
  assign acq_index_o  = done_q.qp;
  assign cqe_valid_o  = state_q == StCqe && has_cqe;
  assign done_ready_o = state_q == StIdle;
  assign busy_o       = state_q != StIdle;
  assign busy_qp_o    = done_q.qp;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (done_valid_i && dead && request) state_d = done_close ? StStart : StIdle;
        else if (done_valid_i) state_d = invalidate ? StInvalidate : StStart;
      end
      StInvalidate: if (mem_op_ready_i) state_d = StAnswer;
      StAnswer: if (mem_op_rsp_valid_i) state_d = StStart;
      StStart: begin
        if (need_ctx) state_d = (acq_valid_o && acq_ready_i) ? StWait : StStart;
        else state_d = all_sent ? StIdle : StStart;
      end
      StWait: if (ctx_valid_i) state_d = StCqe;
      StCqe: if (!has_cqe || cqe_ready_i) state_d = StEmit;
      StEmit: if (all_sent) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (done_valid_i && done_ready_o) begin
      done_q       <= done_data_i;
      killed_q     <= dead && request;
      invalidate_q <= invalidate;
    end
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    if (state_q == StIdle) refused_q <= 1'b0;
    if (state_q == StAnswer && mem_op_rsp_valid_i) begin
      refused_q <= mem_op_rsp_data_i.status != rnic_pkg::MemOpStatusOk;
      refusal_q <= mem_op_rsp_data_i.status;
    end
    if (refused_o || flushed_behind) dead_q[done_q.qp] <= 1'b1;
    if (clear_valid_i) dead_q[clear_qp_i] <= 1'b0;
    if (state_q == StIdle) begin
      rel_due_q    <= 1'b1;
      rsp_due_q    <= 1'b1;
      retire_due_q <= 1'b1;
      error_due_q  <= 1'b1;
    end else begin
      if (rel_valid_o && rel_ready_i) rel_due_q <= 1'b0;
      if (rsp_cmd_valid_o && rsp_cmd_ready_i) rsp_due_q <= 1'b0;
      if (retire_valid_o && retire_ready_i) retire_due_q <= 1'b0;
      if (error_valid_o && error_ready_i) error_due_q <= 1'b0;
      // A WQE that is gone takes all that would follow with it.
      if (state_q == StCqe && !live) begin
        rsp_due_q   <= 1'b0;
        error_due_q <= 1'b0;
      end
    end
    if (!rst_ni) begin
      state_q <= StIdle;
      dead_q  <= '0;
    end
  end

  assign mem_op_valid_o     = state_q == StInvalidate;
  assign mem_op_rsp_ready_o = state_q == StAnswer;
  always_comb begin
    mem_op_data_o     = '0;
    mem_op_data_o.op  = rnic_pkg::MemOpCodeInvalidateRemote;
    mem_op_data_o.qp  = done_q.qp;
    mem_op_data_o.pd  = done_q.pd;
    mem_op_data_o.key = done_q.immediate;
  end
  assign invalidated_o = mem_op_rsp_ready_o && mem_op_rsp_valid_i &&
                         mem_op_rsp_data_i.status == rnic_pkg::MemOpStatusOk;
  assign refused_o     = mem_op_rsp_ready_o && mem_op_rsp_valid_i && !invalidated_o;
  assign executed      = invalidate_q && !refused_q;
  assign invalidation_over_o = rel_valid_o && rel_ready_i && rel_write_o && executed;

  `ASSERT_HOLD(CqeHold, cqe_valid_o, cqe_ready_i, cqe_data_o)
  `ASSERT_HOLD(RspHold, rsp_cmd_valid_o, rsp_cmd_ready_i, rsp_cmd_data_o)
  `ASSERT_HOLD(RetireHold, retire_valid_o, retire_ready_i, retire_data_o)
  `ASSERT_HOLD(ErrorHold, error_valid_o, error_ready_i, error_data_o)
  `ASSERT_HOLD(MemOpHold, mem_op_valid_o, mem_op_ready_i, mem_op_data_o)
  `ASSERT(WasInvalidating, !invalidation_over_o || ctx_q.invalidating)
  `ASSERT(OldestReceive, !cqe_valid_o || done_q.fault || done_q.srq
      || ctx_q.rq_done == done_q.wqe_idx)
endmodule

`default_nettype wire
