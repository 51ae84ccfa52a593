`default_nettype none
`include "assert.svh"

/// Receive doorbells: moves the producer index of a receive queue. Refused when the QP does not
/// exist, is on an SRQ, is not the UAR's, or when the index would go back or make more WQEs
/// outstanding than the queue holds. Receives are accepted in every state; those of a QP in the
/// error state are flushed (InfiniBand specification 10.3.1).
module rq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::recv_ctx_t      rel_data_o,
    output logic                     flush_valid_o,
    input  wire logic                flush_ready_i,
    output logic [7:0]               flush_qp_o,
    output logic                     event_taken_o,
    output logic                     event_refused_o
);
  rnic_pkg::doorbell_t item;
  rnic_pkg::receive_doorbell_t doorbell;
  rnic_pkg::recv_ctx_t ctx;
  logic accept;
  logic [15:0] posted, outstanding, depth;
  logic [23:0] unused_reserved;

  assign doorbell        = item.value;
  assign unused_reserved = {doorbell.reserved1, doorbell.reserved0};

  assign depth       = 16'd1 << ctx.log_depth;
  assign posted      = ctx.rq_pi - ctx.rq_done;
  assign outstanding = doorbell.producer_index - ctx.rq_done;
  assign accept      = ctx.in_use && !ctx.srq && ctx.qpn == doorbell.qpn &&
                       ctx.uar == {1'b0, item.uar} &&
                       outstanding >= posted && outstanding <= depth;

  always_comb begin
    rel_data_o       = ctx;
    rel_data_o.rq_pi = doorbell.producer_index;
  end
  assign acq_index_o      = doorbell.qpn[7:0];
  assign rel_write_o      = accept;
  assign flush_qp_o       = doorbell.qpn[7:0];
  assign event_taken_o    = doorbell_valid_i && doorbell_ready_o;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept;

  ctx_turn #(
      .ItemWidth(rnic_pkg::DoorbellBits),
      .CtxWidth (rnic_pkg::RecvCtxBits)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .item_valid_i  (doorbell_valid_i),
      .item_ready_o  (doorbell_ready_o),
      .item_data_i   (doorbell_data_i),
      .item_o        (item),
      .acq_valid_o,
      .acq_ready_i,
      .ctx_valid_i,
      .ctx_data_i,
      .rel_valid_o,
      .rel_ready_i,
      .ctx_o         (ctx),
      .follow_i      (accept && ctx.state == rnic_pkg::QpStateErr),
      .follow_valid_o(flush_valid_o),
      .follow_ready_i(flush_ready_i)
  );

  `ASSERT_HOLD(FlushHold, flush_valid_o, flush_ready_i, flush_qp_o)
endmodule

`default_nettype wire
