`default_nettype none
`include "assert.svh"

/// Admin verbs of event queues and completion queues: create, destroy, query; modify, resize (CQ).
///
/// Checks, in this order: the number is in range (BadNumber); fields (BadParameter); the index is
/// free, or the object there (Exists, BadNumber); for a CQ, its EQ is there (BadNumber); for a
/// destroy, nothing refers to the object (InUse); for a resize, the CQ has not overrun (BadState)
/// and its entries fit (TooSmall): that is judged on the context, which otherwise stays.
/// exec_valid_i is held with the command until exec_done_o.
module admin_object (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    input  wire logic                         exec_valid_i,
    input  wire rnic_pkg::admin_command_t     command_i,
    output logic                              exec_done_o,
    output logic [7:0]                        status_o,
    output rnic_pkg::admin_queue_state_t      result_o,
    output logic                              access_valid_o,
    output rnic_pkg::admin_access_t           access_o,
    input  wire logic                         access_done_i,
    input  wire rnic_pkg::cq_ctx_t            view_cq_i,
    input  wire rnic_pkg::eq_ctx_t            view_eq_i,
    output rnic_pkg::cq_ctx_t                 cq_ctx_o,
    output rnic_pkg::eq_ctx_t                 eq_ctx_o,
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

  logic [7:0] status_q, status_d;
  logic is_eq, create, destroy, query, modify, resize, number_ok, fields_ok, resize_ok, uar_ok,
      fits;
  logic [23:0] fill;
  rnic_pkg::admin_create_eq_t eq_body;
  rnic_pkg::admin_create_cq_t cq_body;
  rnic_pkg::admin_modify_cq_t modify_body;
  rnic_pkg::admin_resize_cq_t resize_body;

  assign eq_body = command_i.body;
  assign cq_body = command_i.body;
  assign modify_body = command_i.body;
  assign resize_body = command_i.body;
  assign is_eq   = command_i.opcode[7:4] == rnic_pkg::AdminOpcodeCreateEq[7:4];
  assign create  = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeCreateEq[3:0];
  assign destroy = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeDestroyEq[3:0];
  assign query   = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeQueryEq[3:0];
  assign modify  = command_i.opcode == rnic_pkg::AdminOpcodeModifyCq;
  assign resize  = command_i.opcode == rnic_pkg::AdminOpcodeResizeCq;

  assign resize_ok = resize_body.base[11:0] == '0 &&
      resize_body.log_depth <= rnic_pkg::MaxLogCqDepth[7:0];
  assign fill      = view_cq_i.pi - view_cq_i.ci;
  assign fits      = fill <= (24'd1 << resize_body.log_depth[4:0]);

  assign uar_ok  = cq_body.uar != '0 && !cq_body.uar[7];
  always_comb begin
    if (is_eq) begin
      number_ok = command_i.number < (32'd1 << rnic_pkg::EqIndexBits);
      fields_ok = eq_body.base[11:0] == '0 && eq_body.log_depth <= rnic_pkg::MaxLogEqDepth[7:0] &&
          eq_body.msix_vector < rnic_pkg::MsixVectors[7:0];
    end else begin
      number_ok = command_i.number[31:24] == '0;
      fields_ok = cq_body.base[11:0] == '0 && uar_ok &&
          cq_body.log_depth <= rnic_pkg::MaxLogCqDepth[7:0];
    end
  end

  always_comb begin
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (exec_valid_i) begin
        state_d  = LookSelf;
        status_d = rnic_pkg::AdminStatusSuccess;
        if (!number_ok) status_d = rnic_pkg::AdminStatusBadNumber;
        else if (create && !fields_ok) status_d = rnic_pkg::AdminStatusBadParameter;
        else if (resize && !resize_ok) status_d = rnic_pkg::AdminStatusBadParameter;
        if (!create && !destroy && !query && !modify && !resize) begin
          status_d = rnic_pkg::AdminStatusBadOpcode;
        end
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
        if (!ref_exists_i || cq_body.eqn[7:5] != '0) begin
          status_d = rnic_pkg::AdminStatusBadNumber;
          state_d  = Done;
        end
      end
      Access:
      if (access_done_i) begin
        state_d = (create || destroy) ? MarkSelf : Done;
        if (resize && !fits) status_d = rnic_pkg::AdminStatusTooSmall;
        if (resize && view_cq_i.overrun) status_d = rnic_pkg::AdminStatusBadState;
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
  always_comb begin
    ref_valid_o  = state_q == LookSelf || state_q == LookEq || state_q == MarkSelf ||
        state_q == MarkEq;
    ref_o.srq    = 1'b0;
    ref_o.eq     = is_eq;
    ref_o.number = command_i.number[23:0];
    ref_o.op     = create ? rnic_pkg::RefOpLookIndex : rnic_pkg::RefOpLook;
    if (state_q == MarkSelf) ref_o.op = create ? rnic_pkg::RefOpCreate : rnic_pkg::RefOpDestroy;
    if (state_q == MarkEq) ref_o.op = create ? rnic_pkg::RefOpAdd : rnic_pkg::RefOpDrop;
    if (state_q == LookEq || state_q == MarkEq) begin
      ref_o.eq     = 1'b1;
      ref_o.number = {19'd0, create ? cq_body.eqn[4:0] : view_cq_i.eqn};
    end
  end

  // ---- Contexts -------------------------------------------------------------------------------
  assign access_valid_o = state_q == Access;
  assign access_o.kind  = is_eq ? rnic_pkg::CtxKindEq : rnic_pkg::CtxKindCq;
  assign access_o.index = command_i.number[7:0];
  assign access_o.write = create || destroy || modify || (resize && fits && !view_cq_i.overrun);

  always_comb begin
    eq_ctx_o = '0;
    cq_ctx_o = '0;
    if (create) begin
      eq_ctx_o.in_use      = 1'b1;
      eq_ctx_o.base        = eq_body.base;
      eq_ctx_o.log_depth   = eq_body.log_depth[3:0];
      eq_ctx_o.msix_vector = eq_body.msix_vector;
      cq_ctx_o.in_use      = 1'b1;
      cq_ctx_o.base        = cq_body.base;
      cq_ctx_o.log_depth   = cq_body.log_depth[4:0];
      cq_ctx_o.eqn         = cq_body.eqn[4:0];
      cq_ctx_o.uar         = cq_body.uar;
      cq_ctx_o.tag         = command_i.number[23:8];
    end
    if (modify) begin
      cq_ctx_o                 = view_cq_i;
      cq_ctx_o.moderate_count  = modify_body.count;
      cq_ctx_o.moderate_period = modify_body.period;
    end
    if (resize) begin
      cq_ctx_o           = view_cq_i;
      cq_ctx_o.base      = resize_body.base;
      cq_ctx_o.log_depth = resize_body.log_depth[4:0];
      cq_ctx_o.origin    = view_cq_i.pi;
    end
  end

  // ---- Answer ---------------------------------------------------------------------------------
  assign exec_done_o = state_q == Done;
  assign status_o    = status_q;
  always_comb begin
    result_o = '0;
    if ((query || resize) && status_q == rnic_pkg::AdminStatusSuccess) begin
      result_o.producer_index = is_eq ? view_eq_i.pi : view_cq_i.pi;
      result_o.consumer_index = is_eq ? view_eq_i.ci : view_cq_i.ci;
      result_o.log_depth      = is_eq ? {4'd0, view_eq_i.log_depth} : {3'd0, view_cq_i.log_depth};
      if (resize) result_o.log_depth = resize_body.log_depth;
      result_o.arm            = is_eq ? 2'd0 : view_cq_i.arm;
      result_o.overrun        = !is_eq && view_cq_i.overrun;
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, eq_body, cq_body, modify_body, resize_body, view_cq_i,
                         view_eq_i};

  `ASSERT(CommandHeld, state_q == Idle || exec_valid_i)
endmodule

`default_nettype wire
