`default_nettype none
`include "assert.svh"

/// Admin verbs of multicast: attach and detach a QP; and the question whether a QP that is to be
/// destroyed is attached to a group.
///
/// Checks, in this order: the opcode, the number is in range (BadNumber), the address is that of a
/// group (BadParameter), the whole QPN is that of the context (BadNumber), the QP is of type Ud
/// (BadParameter); then the table answers (multicast_groups). exec_valid_i is held with the command
/// until exec_done_o.
///
/// destroy_i is held while a DestroyQp is executed. free_o: the QP is in no group, so that the
/// command may go on; otherwise exec_done_o ends it, with InUse.
module admin_multicast (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      exec_valid_i,
    input  wire logic                      destroy_i,
    input  wire rnic_pkg::admin_command_t  command_i,
    output logic                           free_o,
    output logic                           exec_done_o,
    output logic [7:0]                     status_o,
    output logic                           access_valid_o,
    output rnic_pkg::admin_access_t        access_o,
    input  wire logic                      access_done_i,
    input  wire rnic_pkg::send_ctx_t       view_send_i,
    output logic                           op_valid_o,
    output rnic_pkg::multicast_op_t        op_o,
    input  wire logic                      op_done_i,
    input  wire logic [1:0]                op_status_i
);
  // Idle: check the command itself. Look: judge by the send context. Ask: the table. Free: a
  // DestroyQp goes on. Done: exec_done_o.
  typedef enum logic [2:0] {Idle, Look, Ask, Free, Done} state_e;
  state_e state_q, state_d;

  // An IPv4 address is ::ffff:a.b.c.d, its first byte on the wire in the low byte.
  localparam logic [95:0] Ipv4Prefix = {16'hFFFF, 80'd0};

  logic [7:0] status_q, status_d, answer;
  logic attach, known, group, is_this;
  rnic_pkg::admin_multicast_t body;
  assign body    = command_i.body;
  assign attach  = command_i.opcode == rnic_pkg::AdminOpcodeAttachMulticast;
  assign known   = attach || command_i.opcode == rnic_pkg::AdminOpcodeDetachMulticast;
  assign group   = body.mgid[7:0] == 8'hFF ||
      (body.mgid[95:0] == Ipv4Prefix && body.mgid[103:100] == 4'hE);
  assign is_this = view_send_i.in_use && view_send_i.qpn == command_i.number[23:0];

  always_comb begin : answers
    unique case (op_status_i)
      rnic_pkg::MulticastStatusAttached: begin
        answer = destroy_i ? rnic_pkg::AdminStatusInUse : rnic_pkg::AdminStatusExists;
      end
      rnic_pkg::MulticastStatusNotAttached: answer = rnic_pkg::AdminStatusNotAttached;
      rnic_pkg::MulticastStatusNoGroup:     answer = rnic_pkg::AdminStatusNoGroup;
      default:                              answer = rnic_pkg::AdminStatusSuccess;
    endcase
  end

  always_comb begin : control
    state_d  = state_q;
    status_d = status_q;
    unique case (state_q)
      Idle:
      if (destroy_i) begin
        state_d = Ask;
      end else if (exec_valid_i) begin
        state_d  = Look;
        status_d = group ? rnic_pkg::AdminStatusSuccess : rnic_pkg::AdminStatusBadParameter;
        if (command_i.number[31:24] != '0) status_d = rnic_pkg::AdminStatusBadNumber;
        if (!known) status_d = rnic_pkg::AdminStatusBadOpcode;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Look:
      if (access_done_i) begin
        state_d = Ask;
        if (view_send_i.qp_type != rnic_pkg::QpTypeUd) begin
          status_d = rnic_pkg::AdminStatusBadParameter;
        end
        if (!is_this) status_d = rnic_pkg::AdminStatusBadNumber;
        if (status_d != rnic_pkg::AdminStatusSuccess) state_d = Done;
      end
      Ask:
      if (op_done_i) begin
        state_d  = Done;
        status_d = answer;
        if (destroy_i && answer == rnic_pkg::AdminStatusSuccess) state_d = Free;
      end
      Free:    if (!destroy_i) state_d = Idle;
      Done:    state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    status_q <= status_d;
    if (!rst_ni) state_q <= Idle;
  end

  assign free_o         = state_q == Free;
  assign exec_done_o    = state_q == Done;
  assign status_o       = status_q;
  assign access_valid_o = state_q == Look;
  always_comb begin : request
    access_o       = '0;
    access_o.kind  = rnic_pkg::CtxKindSend;
    access_o.index = command_i.number[7:0];
    op_o.op        = attach ? rnic_pkg::MulticastOpCodeAttach : rnic_pkg::MulticastOpCodeDetach;
    if (destroy_i) op_o.op = rnic_pkg::MulticastOpCodeLook;
    op_o.qpn       = command_i.number[23:0];
    op_o.mgid      = body.mgid;
  end
  assign op_valid_o = state_q == Ask;

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, body, view_send_i};

  `ASSERT(CommandHeld, state_q == Idle || state_q == Free || exec_valid_i || destroy_i)
endmodule

`default_nettype wire
