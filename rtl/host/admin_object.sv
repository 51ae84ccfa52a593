`default_nettype none
`include "assert.svh"

/// Admin verbs of event queues, completion queues and shared receive queues: create, destroy,
/// query; modify (CQ, SRQ), resize (CQ). One walk for all; admin_object_queue and admin_object_srq
/// know the kinds.
///
/// Checks, in this order: the opcode (BadOpcode); the number is in range (BadNumber); fields
/// (BadParameter); the index is free, or the object there (Exists, BadNumber); for a new CQ or
/// SRQ, its EQ is there (BadNumber); for a destroy, nothing refers to the object (InUse); what
/// only its context shows (TooSmall, BadState, BadParameter), which then stays as it is.
/// exec_valid_i is held with the command until exec_done_o.
module admin_object (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    input  wire logic                         exec_valid_i,
    input  wire rnic_pkg::admin_command_t     command_i,
    output logic                              exec_done_o,
    output logic [7:0]                        status_o,
    output logic [383:0]                      result_o,
    output logic                              access_valid_o,
    output rnic_pkg::admin_access_t           access_o,
    input  wire logic                         access_done_i,
    input  wire rnic_pkg::cq_ctx_t            view_cq_i,
    input  wire rnic_pkg::eq_ctx_t            view_eq_i,
    input  wire rnic_pkg::srq_ctx_t           view_srq_i,
    output rnic_pkg::cq_ctx_t                 cq_ctx_o,
    output rnic_pkg::eq_ctx_t                 eq_ctx_o,
    output rnic_pkg::srq_ctx_t                srq_ctx_o,
    output logic                              ref_valid_o,
    output rnic_pkg::admin_ref_t              ref_o,
    input  wire logic                         ref_done_i,
    input  wire logic                         ref_exists_i,
    input  wire logic                         ref_in_use_i
);
  // Idle: check the command itself. LookSelf, LookEq: is the object there, is its EQ. Access: write
  // or read its context. MarkSelf, MarkEq: enter it in the table of references, or strike it out.
  // Done: exec_done_o.
  typedef enum logic [2:0] {
    Idle,
    LookSelf,
    LookEq,
    Access,
    MarkSelf,
    MarkEq,
    Done
  } state_e;
  state_e state_q, state_d;

  // Of the kinds: 0 EQ and CQ, 1 SRQ.
  logic [1:0] known, number_ok, fields_ok, write;
  logic [7:0] status_q, status_d, queue_eqn, srq_eqn, eqn, queue_refused, srq_refused, refused;
  logic is_eq, is_srq, create, destroy;
  rnic_pkg::admin_queue_state_t queue_result;
  rnic_pkg::admin_srq_state_t srq_result;

  // The verbs that all kinds have, have the same lower half of the opcode.
  assign is_eq   = command_i.opcode[7:4] == rnic_pkg::AdminOpcodeCreateEq[7:4];
  assign is_srq  = command_i.opcode[7:4] == rnic_pkg::AdminOpcodeCreateSrq[7:4];
  assign create  = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeCreateEq[3:0];
  assign destroy = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeDestroyEq[3:0];
  assign eqn     = is_srq ? srq_eqn : queue_eqn;
  assign refused = is_srq ? srq_refused : queue_refused;

  admin_object_queue u_queue (
      .command_i,
      .view_cq_i,
      .view_eq_i,
      .known_o    (known[0]),
      .number_ok_o(number_ok[0]),
      .fields_ok_o(fields_ok[0]),
      .eqn_o      (queue_eqn),
      .refused_o  (queue_refused),
      .write_o    (write[0]),
      .cq_ctx_o,
      .eq_ctx_o,
      .result_o   (queue_result)
  );

  admin_object_srq u_srq (
      .command_i,
      .view_srq_i,
      .known_o    (known[1]),
      .number_ok_o(number_ok[1]),
      .fields_ok_o(fields_ok[1]),
      .eqn_o      (srq_eqn),
      .refused_o  (srq_refused),
      .write_o    (write[1]),
      .srq_ctx_o,
      .result_o   (srq_result)
  );

  always_comb begin
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (exec_valid_i) begin
        state_d  = LookSelf;
        status_d = rnic_pkg::AdminStatusSuccess;
        if (!number_ok[is_srq]) status_d = rnic_pkg::AdminStatusBadNumber;
        else if (!fields_ok[is_srq]) status_d = rnic_pkg::AdminStatusBadParameter;
        if (!known[is_srq]) status_d = rnic_pkg::AdminStatusBadOpcode;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      LookSelf:
      if (ref_done_i) begin
        state_d = (create && !is_eq) ? LookEq : Access;
        if (create && ref_exists_i) status_d = rnic_pkg::AdminStatusExists;
        if (!create && !ref_exists_i) status_d = rnic_pkg::AdminStatusBadNumber;
        if (destroy && ref_exists_i && ref_in_use_i) status_d = rnic_pkg::AdminStatusInUse;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      LookEq:
      if (ref_done_i) begin
        state_d = Access;
        if (!ref_exists_i || eqn[7:5] != '0) begin
          status_d = rnic_pkg::AdminStatusBadNumber;
          state_d  = Done;
        end
      end
      Access:
      if (access_done_i) begin
        state_d  = (create || destroy) ? MarkSelf : Done;
        status_d = refused;
      end
      MarkSelf: if (ref_done_i) state_d = is_eq ? Done : MarkEq;
      MarkEq:   if (ref_done_i) state_d = Done;
      Done:     state_d = Idle;
      default:  state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    status_q <= status_d;
    if (!rst_ni) state_q <= Idle;
  end

  // ---- Table of references --------------------------------------------------------------------
  logic self;
  assign self = state_q == LookSelf || state_q == MarkSelf;
  always_comb begin
    ref_valid_o  = self || state_q == LookEq || state_q == MarkEq;
    ref_o.srq    = self && is_srq;
    ref_o.eq     = !self || is_eq;
    ref_o.number = self ? command_i.number[23:0] : {19'd0, eqn[4:0]};
    ref_o.op     = create ? rnic_pkg::RefOpLookIndex : rnic_pkg::RefOpLook;
    if (state_q == MarkSelf) ref_o.op = create ? rnic_pkg::RefOpCreate : rnic_pkg::RefOpDestroy;
    if (state_q == MarkEq) ref_o.op = create ? rnic_pkg::RefOpAdd : rnic_pkg::RefOpDrop;
  end

  // ---- Context --------------------------------------------------------------------------------
  assign access_valid_o = state_q == Access;
  assign access_o.index = command_i.number[7:0];
  assign access_o.write = write[is_srq];
  always_comb begin
    access_o.kind = is_eq ? rnic_pkg::CtxKindEq : rnic_pkg::CtxKindCq;
    if (is_srq) access_o.kind = rnic_pkg::CtxKindSrq;
  end

  // ---- Answer ---------------------------------------------------------------------------------
  assign exec_done_o = state_q == Done;
  assign status_o    = status_q;
  always_comb begin
    result_o = is_srq ? srq_result : queue_result;
    if (status_q != rnic_pkg::AdminStatusSuccess) result_o = '0;
  end

  `ASSERT(CommandHeld, state_q == Idle || exec_valid_i)
endmodule

`default_nettype wire
