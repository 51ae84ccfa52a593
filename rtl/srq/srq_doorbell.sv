`default_nettype none
`include "assert.svh"

/// SRQ doorbells: moves the producer index of a shared receive queue. Refused when the SRQ does not
/// exist, is not the UAR's, or when the index would go back or make more WQEs wait than the ring
/// holds.
module srq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::srq_ctx_t  ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::srq_ctx_t       rel_data_o,
    output logic                     event_taken_o,
    output logic                     event_refused_o
);
  rnic_pkg::doorbell_t item;
  rnic_pkg::srq_doorbell_t doorbell;
  rnic_pkg::srq_ctx_t ctx;
  logic accept, unused_follow;
  logic [15:0] posted, outstanding, depth;
  logic [23:0] unused_reserved;

  assign doorbell        = item.value;
  assign unused_reserved = {doorbell.reserved1, doorbell.reserved0};

  assign depth       = 16'd1 << ctx.log_depth;
  assign posted      = ctx.pi - ctx.head;
  assign outstanding = doorbell.producer_index - ctx.head;
  assign accept      = ctx.in_use && doorbell.srqn[23:8] == ctx.tag &&
                       ctx.uar == {1'b0, item.uar} && outstanding >= posted && outstanding <= depth;

  always_comb begin
    rel_data_o    = ctx;
    rel_data_o.pi = doorbell.producer_index;
  end
  assign acq_index_o      = doorbell.srqn[7:0];
  assign rel_write_o      = accept;
  assign event_taken_o    = doorbell_valid_i && doorbell_ready_o;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept;

  ctx_turn #(
      .ItemWidth(rnic_pkg::DoorbellBits),
      .CtxWidth (rnic_pkg::SrqCtxBits)
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
      .follow_i      (1'b0),
      .follow_valid_o(unused_follow),
      .follow_ready_i(1'b0)
  );

  `ASSERT_HOLD(DoorbellHold, doorbell_valid_i, doorbell_ready_o, doorbell_data_i)
endmodule

`default_nettype wire
