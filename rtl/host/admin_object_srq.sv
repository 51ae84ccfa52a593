`default_nettype none

/// What the verbs of shared receive queues check, write and answer (admin_object). Combinational.
///
/// Of the command: known_o, it is one of create, destroy, query, modify; number_ok_o; fields_ok_o.
/// eqn_o is the EQ of the SRQ, which the command names or the context has. Right when the context
/// is there: refused_o, if not Success, is how the modify ends whose ring does not hold what is
/// posted: BadParameter; otherwise write_o says whether srq_ctx_o replaces it. result_o is the
/// answer of a command that succeeds.
module admin_object_srq (
    input  wire rnic_pkg::admin_command_t command_i,
    input  wire rnic_pkg::srq_ctx_t       view_srq_i,
    output logic                          known_o,
    output logic                          number_ok_o,
    output logic                          fields_ok_o,
    output logic [7:0]                    eqn_o,
    output logic [7:0]                    refused_o,
    output logic                          write_o,
    output rnic_pkg::srq_ctx_t            srq_ctx_o,
    output rnic_pkg::admin_srq_state_t    result_o
);
  localparam logic [7:0] MaxDepth = rnic_pkg::MaxLogQueueDepth[7:0];

  logic create, destroy, query, modify, uar_ok, stride_ok, depth_ok, ring_ok, fits;
  logic [15:0] posted;
  rnic_pkg::admin_create_srq_t create_body;
  rnic_pkg::admin_modify_srq_t modify_body;

  assign create_body = command_i.body;
  assign modify_body = command_i.body;
  assign create      = command_i.opcode == rnic_pkg::AdminOpcodeCreateSrq;
  assign destroy     = command_i.opcode == rnic_pkg::AdminOpcodeDestroySrq;
  assign query       = command_i.opcode == rnic_pkg::AdminOpcodeQuerySrq;
  assign modify      = command_i.opcode == rnic_pkg::AdminOpcodeModifySrq;
  assign known_o     = create || destroy || query || modify;

  // ---- The command ----------------------------------------------------------------------------
  assign number_ok_o = command_i.number[31:24] == '0;
  assign uar_ok      = create_body.uar != '0 && !create_body.uar[7];
  assign stride_ok   = create_body.log_stride >= rnic_pkg::MinLogReceiveStride[7:0] &&
      create_body.log_stride <= rnic_pkg::MaxLogStride[7:0];
  assign depth_ok    = create_body.log_depth <= MaxDepth;
  assign ring_ok     = modify_body.base[11:0] == '0 && modify_body.log_depth <= MaxDepth;
  assign eqn_o       = create ? create_body.eqn : {3'd0, view_srq_i.eqn};
  always_comb begin
    fields_ok_o = 1'b1;
    if (create) fields_ok_o = create_body.base[11:0] == '0 && uar_ok && stride_ok && depth_ok;
    if (modify && modify_body.set_ring) fields_ok_o = ring_ok;
  end

  // ---- The context ----------------------------------------------------------------------------
  assign posted    = view_srq_i.pi - view_srq_i.head;
  assign fits      = !modify_body.set_ring || posted <= (16'd1 << modify_body.log_depth[3:0]);
  assign refused_o = (modify && !fits) ? rnic_pkg::AdminStatusBadParameter :
      rnic_pkg::AdminStatusSuccess;
  assign write_o   = create || destroy || (modify && fits);

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

  // ---- The answer -----------------------------------------------------------------------------
  always_comb begin
    result_o = '0;
    if (query) begin
      result_o.producer_index = view_srq_i.pi;
      result_o.head           = view_srq_i.head;
      result_o.limit          = view_srq_i.limit;
      result_o.log_depth      = {4'd0, view_srq_i.log_depth};
      result_o.error          = view_srq_i.error;
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, create_body, modify_body, view_srq_i};
endmodule

`default_nettype wire
