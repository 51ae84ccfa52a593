`default_nettype none
`include "assert.svh"

/// EQ doorbells: consumer index of an event queue. Honoured from the kernel's UAR only, for an EQ
/// that exists, and within the entries written and not yet consumed.
module eq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [4:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::eq_ctx_t   ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::eq_ctx_t        rel_data_o,
    output logic                     event_refused_o
);
  rnic_pkg::doorbell_t item;
  rnic_pkg::eq_doorbell_t doorbell;
  rnic_pkg::eq_ctx_t ctx;
  logic accept, unused_follow;
  logic [23:0] consumed, available;
  logic [15:0] unused_reserved;

  assign doorbell        = item.value;
  assign unused_reserved = {doorbell.reserved1, doorbell.reserved0};

  assign consumed  = doorbell.consumer_index - ctx.ci;
  assign available = ctx.pi - ctx.ci;
  assign accept    = ctx.in_use && doorbell.eqn[23:5] == '0 &&
                     item.uar == rnic_pkg::KernelUar[6:0] && consumed <= available;

  always_comb begin
    rel_data_o    = ctx;
    rel_data_o.ci = doorbell.consumer_index;
  end
  assign acq_index_o      = doorbell.eqn[4:0];
  assign rel_write_o      = accept;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept;

  ctx_turn #(
      .ItemWidth(rnic_pkg::DoorbellBits),
      .CtxWidth (rnic_pkg::EqCtxBits)
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
endmodule

`default_nettype wire
