`default_nettype none
`include "assert.svh"

/// CQ doorbells: consumer index and arm. Refused when the CQ does not exist, is not the UAR's, or
/// when the index lies outside the entries written and not yet consumed. A pending arm is only ever
/// upgraded; an arm fires at once when entries newer than the last event are there and moderation
/// does not hold the event back. A CQ that overran takes consumer indexes and no arms: its error
/// event has answered them all. The expiry of a CQ's timer (expired_*) lets a held event go; one
/// that nobody waits for does nothing. Doorbells and expiries take turns when both wait.
module cq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    input  wire logic                expired_valid_i,
    output logic                     expired_ready_o,
    input  wire logic [7:0]          expired_cqn_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::cq_ctx_t   ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::cq_ctx_t        rel_data_o,
    output logic                     eqe_valid_o,
    input  wire logic                eqe_ready_i,
    output rnic_pkg::eqe_req_t       eqe_data_o,
    // Starts the timer of the CQ; a pulse
    output logic                     timer_valid_o,
    output logic [7:0]               timer_cqn_o,
    output logic [15:0]              timer_period_o,
    output logic                     event_taken_o,
    output logic                     event_refused_o
);
  rnic_pkg::doorbell_t item;
  rnic_pkg::cq_doorbell_t doorbell, expiry;
  rnic_pkg::cq_ctx_t ctx, moved;
  logic accept, fire, start, due, held, expired_q, take_expired, take, ready;
  logic [23:0] consumed, available;
  logic [1:0] arm;
  logic [13:0] unused_reserved;

  assign expiry          = {56'd0, expired_cqn_i};
  assign doorbell        = item.value;
  assign unused_reserved = {doorbell.reserved1, doorbell.reserved0};

  assign consumed  = doorbell.consumer_index - ctx.ci;
  assign available = ctx.pi - ctx.ci;
  assign accept    = ctx.in_use && (expired_q || (doorbell.cqn[23:8] == ctx.tag &&
                     ctx.uar == {1'b0, item.uar} && consumed <= available));
  assign arm       = (ctx.arm > doorbell.arm) ? ctx.arm : doorbell.arm;

  // The context with the doorbell in it.
  always_comb begin
    moved = ctx;
    if (expired_q) begin
      moved.timing = 1'b0;
    end else begin
      moved.ci = doorbell.consumer_index;
      if (!ctx.overrun) moved.arm = arm;
    end
  end
  cq_due u_due (
      .ctx_i (moved),
      .due_o (due),
      .held_o(held)
  );
  assign fire  = accept && due && (expired_q ? ctx.timing : !held);
  assign start = accept && held && !expired_q && ctx.moderate_period != '0 && !ctx.timing;

  always_comb begin
    rel_data_o = moved;
    if (start) rel_data_o.timing = 1'b1;
    if (fire) begin
      rel_data_o.arm          = rnic_pkg::CqArmNone;
      rel_data_o.notified_pi  = ctx.pi;
      rel_data_o.solicited_pi = ctx.pi;
      rel_data_o.timing       = 1'b0;
    end
  end
  assign timer_valid_o  = rel_valid_o && rel_ready_i && start;
  assign timer_cqn_o    = doorbell.cqn[7:0];
  assign timer_period_o = ctx.moderate_period;

  always_comb begin
    eqe_data_o            = '0;
    eqe_data_o.eqn        = ctx.eqn;
    eqe_data_o.event_type = rnic_pkg::EqeTypeCompletion;
    eqe_data_o.number     = {ctx.tag, doorbell.cqn[7:0]};
  end
  assign acq_index_o      = doorbell.cqn[7:0];
  assign rel_write_o      = accept;
  // Whoever had the last turn (expired_q) lets the other go first.
  assign take_expired     = ready && expired_valid_i && !(doorbell_valid_i && expired_q);
  assign take             = ready && (doorbell_valid_i || expired_valid_i);
  assign expired_ready_o  = take_expired;
  assign doorbell_ready_o = ready && !take_expired;
  assign event_taken_o    = doorbell_valid_i && doorbell_ready_o;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept && !expired_q;

  always_ff @(posedge clk_i) begin
    if (take) expired_q <= take_expired;
    if (!rst_ni) expired_q <= 1'b0;
  end

  // An expiry is like a doorbell that names its CQ.
  ctx_turn #(
      .ItemWidth(rnic_pkg::DoorbellBits),
      .CtxWidth (rnic_pkg::CqCtxBits)
  ) u_turn (
      .clk_i,
      .rst_ni,
      .item_valid_i  (doorbell_valid_i || expired_valid_i),
      .item_ready_o  (ready),
      .item_data_i   (take_expired ? {expiry, 7'd0} : doorbell_data_i),
      .item_o        (item),
      .acq_valid_o,
      .acq_ready_i,
      .ctx_valid_i,
      .ctx_data_i,
      .rel_valid_o,
      .rel_ready_i,
      .ctx_o         (ctx),
      .follow_i      (fire),
      .follow_valid_o(eqe_valid_o),
      .follow_ready_i(eqe_ready_i)
  );

  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
endmodule

`default_nettype wire
