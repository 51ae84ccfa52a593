`default_nettype none
`include "assert.svh"

/// Admin verbs of shared receive queues: create, destroy, query, modify.
///
/// Checks, in this order: the number is in range (BadNumber); fields (BadParameter); the SRQ is
/// absent, or there (Exists, BadNumber); for a create, its EQ is there (BadNumber); for a destroy,
/// no QP uses it (InUse); for a new ring, that what is posted fits (BadParameter). exec_valid_i is
/// held with the command until exec_done_o.
module admin_srq (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    input  wire logic                         exec_valid_i,
    input  wire rnic_pkg::admin_command_t     command_i,
    output logic                              exec_done_o,
    output logic [7:0]                        status_o,
    output rnic_pkg::admin_srq_state_t        result_o,
    output logic                              access_valid_o,
    output rnic_pkg::admin_access_t           access_o,
    input  wire logic                         access_done_i,
    input  wire rnic_pkg::srq_ctx_t           view_srq_i,
    output rnic_pkg::srq_ctx_t                srq_ctx_o,
    output logic                              ref_valid_o,
    output rnic_pkg::admin_ref_t              ref_o,
    input  wire logic                         ref_done_i,
    input  wire logic                         ref_exists_i,
    input  wire logic                         ref_in_use_i
);
  localparam logic [7:0] MaxDepth = rnic_pkg::MaxLogQueueDepth[7:0];

  // Idle: check the command itself. LookSelf, LookEq: is the SRQ there, is its EQ. Access: write or
  // read its context. MarkSelf, MarkEq: enter it in the table of references, or strike it out.
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
  logic create, destroy, query, modify, known, number_ok, fields_ok, uar_ok, stride_ok, depth_ok;
  logic ring_ok, fits;
  logic [15:0] posted;
  rnic_pkg::admin_create_srq_t create_body;
  rnic_pkg::admin_modify_srq_t modify_body;

  assign create_body = command_i.body;
  assign modify_body = command_i.body;
  assign create      = command_i.opcode == rnic_pkg::AdminOpcodeCreateSrq;
  assign destroy     = command_i.opcode == rnic_pkg::AdminOpcodeDestroySrq;
  assign query       = command_i.opcode == rnic_pkg::AdminOpcodeQuerySrq;
  assign modify      = command_i.opcode == rnic_pkg::AdminOpcodeModifySrq;
  assign known       = create || destroy || query || modify;
  assign number_ok   = command_i.number[31:24] == '0;

  assign uar_ok    = create_body.uar != '0 && !create_body.uar[7];
  assign stride_ok = create_body.log_stride >= rnic_pkg::MinLogReceiveStride[7:0] &&
      create_body.log_stride <= rnic_pkg::MaxLogStride[7:0];
  assign depth_ok  = create_body.log_depth <= MaxDepth;
  assign ring_ok   = modify_body.base[11:0] == '0 && modify_body.log_depth <= MaxDepth;
  always_comb begin
    fields_ok = 1'b1;
    if (create) fields_ok = create_body.base[11:0] == '0 && uar_ok && stride_ok && depth_ok;
    if (modify && modify_body.set_ring) fields_ok = ring_ok;
  end
  // Looked at when the context is there.
  assign posted = view_srq_i.pi - view_srq_i.head;
  assign fits   = !modify_body.set_ring || posted <= (16'd1 << modify_body.log_depth[3:0]);

  always_comb begin
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (exec_valid_i) begin
        state_d  = LookSelf;
        status_d = rnic_pkg::AdminStatusSuccess;
        if (!number_ok) status_d = rnic_pkg::AdminStatusBadNumber;
        else if (!fields_ok) status_d = rnic_pkg::AdminStatusBadParameter;
        if (!known) status_d = rnic_pkg::AdminStatusBadOpcode;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      LookSelf:
      if (ref_done_i) begin
        state_d = create ? LookEq : Access;
        if (create && ref_exists_i) status_d = rnic_pkg::AdminStatusExists;
        if (!create && !ref_exists_i) status_d = rnic_pkg::AdminStatusBadNumber;
        if (destroy && ref_exists_i && ref_in_use_i) status_d = rnic_pkg::AdminStatusInUse;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      LookEq:
      if (ref_done_i) begin
        state_d = Access;
        if (!ref_exists_i || create_body.eqn[7:5] != '0) begin
          status_d = rnic_pkg::AdminStatusBadNumber;
          state_d  = Done;
        end
      end
      Access:
      if (access_done_i) begin
        state_d = (create || destroy) ? MarkSelf : Done;
        if (modify && !fits) status_d = rnic_pkg::AdminStatusBadParameter;
      end
      MarkSelf: if (ref_done_i) state_d = MarkEq;
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
    ref_o.srq    = self;
    ref_o.eq     = !self;
    ref_o.number = command_i.number[23:0];
    if (!self) ref_o.number = {19'd0, create ? create_body.eqn[4:0] : view_srq_i.eqn};
    ref_o.op     = (self && create) ? rnic_pkg::RefOpLookIndex : rnic_pkg::RefOpLook;
    if (state_q == MarkSelf) ref_o.op = create ? rnic_pkg::RefOpCreate : rnic_pkg::RefOpDestroy;
    if (state_q == MarkEq) ref_o.op = create ? rnic_pkg::RefOpAdd : rnic_pkg::RefOpDrop;
  end

  // ---- Context --------------------------------------------------------------------------------
  assign access_valid_o = state_q == Access;
  assign access_o.kind  = rnic_pkg::CtxKindSrq;
  assign access_o.index = command_i.number[7:0];
  assign access_o.write = !query && (!modify || fits);

  always_comb begin
    srq_ctx_o = '0;
    if (create) begin
      srq_ctx_o.in_use     = 1'b1;
      srq_ctx_o.eqn        = create_body.eqn[4:0];
      srq_ctx_o.uar        = create_body.uar;
      srq_ctx_o.pd         = create_body.pd;
      srq_ctx_o.base       = create_body.base;
      srq_ctx_o.log_depth  = create_body.log_depth[3:0];
      srq_ctx_o.log_stride = create_body.log_stride[3:0];
      srq_ctx_o.limit      = create_body.limit;
      srq_ctx_o.tag        = command_i.number[23:8];
    end
    if (modify) begin
      srq_ctx_o = view_srq_i;
      if (modify_body.set_limit) begin
        srq_ctx_o.limit     = modify_body.limit;
        srq_ctx_o.limit_hit = 1'b0;
      end
      if (modify_body.set_ring) begin
        srq_ctx_o.base      = modify_body.base;
        srq_ctx_o.log_depth = modify_body.log_depth[3:0];
      end
    end
  end

  // ---- Answer ---------------------------------------------------------------------------------
  assign exec_done_o = state_q == Done;
  assign status_o    = status_q;
  always_comb begin
    result_o = '0;
    if (query && status_q == rnic_pkg::AdminStatusSuccess) begin
      result_o.producer_index = view_srq_i.pi;
      result_o.head           = view_srq_i.head;
      result_o.limit          = view_srq_i.limit;
      result_o.log_depth      = {4'd0, view_srq_i.log_depth};
      result_o.error          = view_srq_i.error;
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, create_body, modify_body, view_srq_i};

  `ASSERT(CommandHeld, state_q == Idle || exec_valid_i)
endmodule

`default_nettype wire
