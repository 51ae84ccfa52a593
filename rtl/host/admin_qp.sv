`default_nettype none
`include "assert.svh"

/// Admin verbs of queue pairs: create, modify, query, destroy, query of the counters.
///
/// Checks, in this order: the number is in range (BadNumber); for a create the fields
/// (BadParameter), the index is free (Exists), both CQs and the SRQ are there (BadNumber); for the
/// others the whole QPN is that of the context (BadNumber), then the transition (BadState) and its
/// fields (BadParameter).
/// The NIC itself may put the QP into the error state at any time. So every context that a
/// transition writes must still be in the state that was judged; otherwise it is left alone and the
/// command ends with BadState. exec_valid_i is held with the command until exec_done_o.
module admin_qp (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    input  wire logic                         exec_valid_i,
    input  wire rnic_pkg::admin_command_t     command_i,
    output logic                              exec_done_o,
    output logic [7:0]                        status_o,
    output rnic_pkg::admin_qp_state_t         result_o,
    output logic                              access_valid_o,
    output rnic_pkg::admin_access_t           access_o,
    input  wire logic                         access_done_i,
    input  wire rnic_pkg::send_ctx_t          view_send_i,
    input  wire rnic_pkg::recv_ctx_t          view_recv_i,
    output rnic_pkg::send_ctx_t               send_ctx_o,
    output rnic_pkg::recv_ctx_t               recv_ctx_o,
    output logic                              ref_valid_o,
    output rnic_pkg::admin_ref_t              ref_o,
    input  wire logic                         ref_done_i,
    input  wire logic                         ref_exists_i,
    output logic                              sq_wake_o,
    output logic                              path_wr_valid_o,
    output rnic_pkg::path_t                   path_wr_data_o,
    output logic                              drain_valid_o,
    input  wire logic                         drain_ready_i,
    output logic                              qp_reset_valid_o,
    input  wire logic                         qp_reset_ready_i,
    // Errors or WQEs to flush of the QP of the command are under way
    input  wire logic                         flushing_i,
    output logic                              qp_error_valid_o,
    input  wire logic                         qp_error_ready_i,
    output rnic_pkg::qp_error_t               qp_error_data_o,
    output logic                              mem_op_valid_o,
    input  wire logic                         mem_op_ready_i,
    output rnic_pkg::mem_op_t                 mem_op_data_o,
    input  wire logic                         mem_op_rsp_valid_i,
    // Counters: half of them is read, and with query_clear_o cleared; held until query_done_i.
    // result_is_counts_o: they are the answer
    output logic                              query_valid_o,
    output logic                              query_upper_o,
    output logic                              query_clear_o,
    input  wire logic                         query_done_i,
    output logic                              result_is_counts_o
);
  // Idle: check the command itself. Look: judge by the send context. LookRecv: query. LookSendCq,
  // LookRecvCq, LookSrq: are they there. Path: write the path. WriteRecv, WriteSend: the contexts.
  // CountSendCq, CountRecvCq, CountSrq: references to them. Forget: qp_reset after a create. Lower,
  // Upper: the halves of the counters; a create clears both. Teardown: admin_qp_teardown at work.
  // Done: exec_done_o.
  typedef enum logic [4:0] {
    Idle,
    Look,
    LookRecv,
    LookSendCq,
    LookRecvCq,
    LookSrq,
    Path,
    WriteRecv,
    WriteSend,
    CountSendCq,
    CountRecvCq,
    CountSrq,
    Forget,
    Lower,
    Upper,
    Teardown,
    Done
  } state_e;
  state_e state_q, state_d;

  logic [7:0] status_q, status_d, uar_q;
  logic [2:0] judged_q, step, tear_step;
  logic create, destroy, modify, query, counters, known, is_this, same_state, flushed;
  logic [7:0] create_status, modify_status;
  logic to_err, to_reset, takes_path, use_srq;
  logic tear_access, tear_done, tear_reset, tear_last;
  rnic_pkg::admin_access_t tear_access_data;
  rnic_pkg::admin_query_qp_counters_t counters_body;

  assign counters_body = command_i.body;
  assign create      = command_i.opcode == rnic_pkg::AdminOpcodeCreateQp;
  assign destroy     = command_i.opcode == rnic_pkg::AdminOpcodeDestroyQp;
  assign modify      = command_i.opcode == rnic_pkg::AdminOpcodeModifyQp;
  assign query       = command_i.opcode == rnic_pkg::AdminOpcodeQueryQp;
  assign counters    = command_i.opcode == rnic_pkg::AdminOpcodeQueryQpCounters;
  assign known       = create || destroy || modify || query || counters;
  assign is_this     = view_send_i.in_use && view_send_i.qpn == command_i.number[23:0];
  // All that was posted has been flushed, and its CQEs are in order before those to come. The host
  // may post at any time, so that this is looked at again when SQE is left.
  assign flushed     = view_send_i.retire_idx == view_send_i.pi && !flushing_i;
  // In SQE the receive side goes on as in RTS.
  always_comb begin
    same_state = view_send_i.state == judged_q &&
                 (judged_q != rnic_pkg::QpStateSqe || flushed);
    if (state_q == WriteRecv) begin
      same_state = view_recv_i.state == ((judged_q == rnic_pkg::QpStateSqe) ?
          rnic_pkg::QpStateRts : judged_q);
    end
  end

  admin_qp_check u_check (
      .command_i,
      .state_i        (view_send_i.state),
      .qp_type_i      (view_send_i.qp_type),
      .flushed_i      (flushed),
      .create_status_o(create_status),
      .modify_status_o(modify_status),
      .to_err_o       (to_err),
      .to_reset_o     (to_reset),
      .takes_path_o   (takes_path)
  );

  always_comb begin
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (exec_valid_i) begin
        state_d  = Look;
        status_d = create ? create_status : rnic_pkg::AdminStatusSuccess;
        if (command_i.number[31:24] != '0) status_d = rnic_pkg::AdminStatusBadNumber;
        if (!known) status_d = rnic_pkg::AdminStatusBadOpcode;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Look:
      if (access_done_i) begin
        if (create) begin
          state_d = LookSendCq;
          if (view_send_i.in_use) status_d = rnic_pkg::AdminStatusExists;
        end else begin
          state_d = Teardown;
          if (query) state_d = LookRecv;
          if (counters) state_d = counters_body.upper ? Upper : Lower;
          if (modify && !to_err && !to_reset) state_d = takes_path ? Path : WriteRecv;
          if (modify) status_d = modify_status;
          if (!is_this) status_d = rnic_pkg::AdminStatusBadNumber;
        end
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      LookRecv: if (access_done_i) state_d = Done;
      LookSendCq, LookRecvCq, LookSrq:
      if (ref_done_i) begin
        state_d = (state_q == LookSendCq) ? LookRecvCq : WriteRecv;
        if (state_q == LookRecvCq && use_srq) state_d = LookSrq;
        if (!ref_exists_i) begin
          status_d = rnic_pkg::AdminStatusBadNumber;
          state_d  = Done;
        end
      end
      Path: state_d = WriteRecv;
      WriteRecv, WriteSend:
      if (access_done_i) begin
        state_d = (state_q == WriteRecv) ? WriteSend : (create ? CountSendCq : Done);
        if (!create && !same_state) begin
          status_d = rnic_pkg::AdminStatusBadState;
          state_d  = Done;
        end
      end
      Teardown:    if (tear_done) state_d = destroy ? CountSendCq : Done;
      CountSendCq: if (ref_done_i) state_d = CountRecvCq;
      CountRecvCq: begin
        if (ref_done_i) state_d = use_srq ? CountSrq : (create ? Forget : Done);
      end
      CountSrq:    if (ref_done_i) state_d = create ? Forget : Done;
      Forget:      if (qp_reset_ready_i) state_d = Lower;
      Lower:       if (query_done_i) state_d = create ? Upper : Done;
      Upper:       if (query_done_i) state_d = Done;
      Done:        state_d = Idle;
      default:     state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    status_q <= status_d;
    if (state_q == Look) begin
      judged_q <= view_send_i.state;
      uar_q    <= view_send_i.uar;
    end
    if (!rst_ni) state_q <= Idle;
  end

  // ---- References to CQs and the SRQ ----------------------------------------------------------
  logic count;
  assign count       = state_q == CountSendCq || state_q == CountRecvCq || state_q == CountSrq;
  assign ref_valid_o = count || state_q == LookSendCq || state_q == LookRecvCq ||
      state_q == LookSrq;
  admin_qp_refs u_objects (
      .command_i,
      .view_send_i,
      .view_recv_i,
      .create_i (create),
      .send_cq_i(state_q == LookSendCq || state_q == CountSendCq),
      .srq_i    (state_q == LookSrq || state_q == CountSrq),
      .count_i  (count),
      .use_srq_o(use_srq),
      .ref_o
  );

  // ---- Contexts and path ----------------------------------------------------------------------
  admin_qp_teardown u_teardown (
      .clk_i,
      .rst_ni,
      .start_i         (state_q == Teardown),
      .error_only_i    (modify && to_err),
      .already_err_i   (judged_q == rnic_pkg::QpStateErr),
      .destroy_i       (destroy),
      .qp_i            (command_i.number[7:0]),
      .done_o          (tear_done),
      .access_valid_o  (tear_access),
      .access_o        (tear_access_data),
      .step_o          (tear_step),
      .last_o          (tear_last),
      .access_done_i,
      .view_send_i,
      .view_recv_i,
      .qp_error_valid_o,
      .qp_error_ready_i,
      .qp_error_data_o,
      .drain_valid_o,
      .drain_ready_i,
      .qp_reset_valid_o(tear_reset),
      .qp_reset_ready_i,
      .mem_op_valid_o,
      .mem_op_ready_i,
      .mem_op_data_o,
      .mem_op_rsp_valid_i
  );

  always_comb begin
    step = create ? rnic_pkg::QpStepCreate : rnic_pkg::QpStepModify;
    if (state_q == Teardown) step = tear_step;
  end

  admin_qp_next u_next (
      .command_i,
      .step_i(step),
      .uar_i (tear_last ? uar_q : 8'd0),
      .send_i(view_send_i),
      .recv_i(view_recv_i),
      .send_o(send_ctx_o),
      .recv_o(recv_ctx_o),
      .path_o(path_wr_data_o)
  );

  always_comb begin
    access_valid_o = tear_access;
    access_o       = tear_access_data;
    if (state_q != Teardown) begin
      access_valid_o = state_q == Look || state_q == LookRecv || state_q == WriteRecv ||
          state_q == WriteSend;
      access_o.kind  = rnic_pkg::CtxKindSend;
      access_o.write = (state_q == WriteRecv || state_q == WriteSend) && (create || same_state);
      if (state_q == LookRecv || state_q == WriteRecv) access_o.kind = rnic_pkg::CtxKindReceive;
    end
  end

  // The send queue may go on, or has to see whether it is drained; a pulse.
  assign sq_wake_o        = state_q == WriteSend && access_done_i && modify;
  assign qp_reset_valid_o = tear_reset || state_q == Forget;
  assign path_wr_valid_o  = state_q == Path;

  // ---- Answer ---------------------------------------------------------------------------------
  rnic_pkg::admin_qp_state_t answer;
  admin_qp_answer u_answer (
      .send_i  (view_send_i),
      .recv_i  (view_recv_i),
      .result_o(answer)
  );

  assign query_valid_o      = state_q == Lower || state_q == Upper;
  assign query_upper_o      = state_q == Upper;
  assign query_clear_o      = create || counters_body.clear;
  assign result_is_counts_o = counters && status_q == rnic_pkg::AdminStatusSuccess;

  assign exec_done_o = state_q == Done;
  assign status_o    = status_q;
  assign result_o    = (query && status_q == rnic_pkg::AdminStatusSuccess) ? answer : '0;

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, counters_body, view_send_i, view_recv_i};

  `ASSERT(CommandHeld, state_q == Idle || exec_valid_i)
endmodule

`default_nettype wire
