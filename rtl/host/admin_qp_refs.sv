`default_nettype none

/// The objects to which a QP refers, for the table of references: its CQs and its SRQ.
/// Combinational.
///
/// A create takes them from the command; others from the contexts, a destroy as they were just
/// before their end. ref_o is the operation on one of them: the SRQ (srq_i), the CQ of the send
/// queue (send_cq_i), or that of the receive queue; count_i: it is counted or discounted, not
/// looked for.
module admin_qp_refs (
    input  wire rnic_pkg::admin_command_t command_i,
    input  wire rnic_pkg::send_ctx_t      view_send_i,
    input  wire rnic_pkg::recv_ctx_t      view_recv_i,
    input  wire logic                     create_i,
    input  wire logic                     send_cq_i,
    input  wire logic                     srq_i,
    input  wire logic                     count_i,
    output logic                          use_srq_o,
    output rnic_pkg::admin_ref_t          ref_o
);
  rnic_pkg::admin_create_qp_t body;
  logic [23:0] object;

  assign body      = command_i.body;
  assign use_srq_o = create_i ? body.use_srq : view_recv_i.srq;
  always_comb begin
    if (create_i) object = send_cq_i ? body.send_cqn : body.receive_cqn;
    else object = {16'd0, send_cq_i ? view_send_i.cqn : view_recv_i.cqn};
    if (srq_i) object = create_i ? body.srqn : {16'd0, view_recv_i.srqn};
    ref_o.eq     = 1'b0;
    ref_o.srq    = srq_i;
    ref_o.number = object;
    ref_o.op     = rnic_pkg::RefOpLook;
    if (count_i) ref_o.op = create_i ? rnic_pkg::RefOpAdd : rnic_pkg::RefOpDrop;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, command_i, body, view_send_i, view_recv_i};
endmodule

`default_nettype wire
