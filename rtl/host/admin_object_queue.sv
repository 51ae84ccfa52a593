`default_nettype none

/// What the verbs of event queues and completion queues check, write and answer (admin_object).
/// Combinational.
///
/// Of the command: known_o, it is one of create, destroy, query, of a CQ modify and resize;
/// number_ok_o; fields_ok_o. eqn_o is the EQ of a CQ, which the command names or the context has.
/// Right when the context is there: refused_o, if not Success, is how a resize ends: BadState after
/// an overrun, or TooSmall; otherwise write_o says whether cq_ctx_o or eq_ctx_o replaces it.
/// result_o is the answer of a command that succeeds.
module admin_object_queue (
    input  wire rnic_pkg::admin_command_t command_i,
    input  wire rnic_pkg::cq_ctx_t        view_cq_i,
    input  wire rnic_pkg::eq_ctx_t        view_eq_i,
    output logic                          known_o,
    output logic                          number_ok_o,
    output logic                          fields_ok_o,
    output logic [7:0]                    eqn_o,
    output logic [7:0]                    refused_o,
    output logic                          write_o,
    output rnic_pkg::cq_ctx_t             cq_ctx_o,
    output rnic_pkg::eq_ctx_t             eq_ctx_o,
    output rnic_pkg::admin_queue_state_t  result_o
);
  logic is_eq, create, destroy, query, modify, resize, resize_ok, uar_ok, fits;
  logic [23:0] fill;
  rnic_pkg::admin_create_eq_t eq_body;
  rnic_pkg::admin_create_cq_t cq_body;
  rnic_pkg::admin_modify_cq_t modify_body;
  rnic_pkg::admin_resize_cq_t resize_body;

  assign eq_body     = command_i.body;
  assign cq_body     = command_i.body;
  assign modify_body = command_i.body;
  assign resize_body = command_i.body;
  assign is_eq       = command_i.opcode[7:4] == rnic_pkg::AdminOpcodeCreateEq[7:4];
  assign create      = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeCreateEq[3:0];
  assign destroy     = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeDestroyEq[3:0];
  assign query       = command_i.opcode[3:0] == rnic_pkg::AdminOpcodeQueryEq[3:0];
  assign modify      = command_i.opcode == rnic_pkg::AdminOpcodeModifyCq;
  assign resize      = command_i.opcode == rnic_pkg::AdminOpcodeResizeCq;
  assign known_o     = create || destroy || query || modify || resize;

  // ---- The command ----------------------------------------------------------------------------
  assign uar_ok    = cq_body.uar != '0 && !cq_body.uar[7];
  assign resize_ok = resize_body.base[11:0] == '0 &&
      resize_body.log_depth <= rnic_pkg::MaxLogCqDepth[7:0];
  assign eqn_o     = create ? cq_body.eqn : {3'd0, view_cq_i.eqn};
  always_comb begin
    number_ok_o = command_i.number[31:24] == '0;
    if (is_eq) number_ok_o = command_i.number < (32'd1 << rnic_pkg::EqIndexBits);
    fields_ok_o = 1'b1;
    if (resize) fields_ok_o = resize_ok;
    if (create && is_eq) begin
      fields_ok_o = eq_body.base[11:0] == '0 && eq_body.log_depth <= rnic_pkg::MaxLogEqDepth[7:0] &&
          eq_body.msix_vector < rnic_pkg::MsixVectors[7:0];
    end
    if (create && !is_eq) begin
      fields_ok_o = cq_body.base[11:0] == '0 && uar_ok &&
          cq_body.log_depth <= rnic_pkg::MaxLogCqDepth[7:0];
    end
  end

  // ---- The context ----------------------------------------------------------------------------
  assign fill    = view_cq_i.pi - view_cq_i.ci;
  assign fits    = fill <= (24'd1 << resize_body.log_depth[4:0]);
  assign write_o = create || destroy || modify || (resize && fits && !view_cq_i.overrun);
  always_comb begin
    refused_o = rnic_pkg::AdminStatusSuccess;
    if (resize && !fits) refused_o = rnic_pkg::AdminStatusTooSmall;
    if (resize && view_cq_i.overrun) refused_o = rnic_pkg::AdminStatusBadState;
  end

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

  // ---- The answer -----------------------------------------------------------------------------
  always_comb begin
    result_o = '0;
    if (query || resize) begin
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
endmodule

`default_nettype wire
