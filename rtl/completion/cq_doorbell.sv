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
  // Idle     ready for a doorbell, or an expiry
  // Acquire  asks for the context
  // Wait     for the context
  // Release  gives it back
  // Event    hands the event to the EQ engine
  typedef enum logic [2:0] {
    StIdle,
    StAcquire,
    StWait,
    StRelease,
    StEvent
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::cq_doorbell_t doorbell_q;
  rnic_pkg::cq_ctx_t ctx_q, moved;
  logic [6:0] uar_q;
  logic accept, fire, start, due, held, expired_q, take_expired, take_doorbell;
  logic [23:0] consumed, available;
  logic [1:0] arm;
  logic [13:0] unused_reserved;

  assign unused_reserved = {doorbell_q.reserved1, doorbell_q.reserved0};

  assign consumed  = doorbell_q.consumer_index - ctx_q.ci;
  assign available = ctx_q.pi - ctx_q.ci;
  assign accept    = ctx_q.in_use && (expired_q || (doorbell_q.cqn[23:8] == ctx_q.tag &&
                     ctx_q.uar == {1'b0, uar_q} && consumed <= available));
  assign arm       = (ctx_q.arm > doorbell_q.arm) ? ctx_q.arm : doorbell_q.arm;

  // The context with the doorbell in it.
  always_comb begin
    moved = ctx_q;
    if (expired_q) begin
      moved.timing = 1'b0;
    end else begin
      moved.ci = doorbell_q.consumer_index;
      if (!ctx_q.overrun) moved.arm = arm;
    end
  end
  cq_due u_due (
      .ctx_i (moved),
      .due_o (due),
      .held_o(held)
  );
  assign fire  = accept && due && (expired_q ? ctx_q.timing : !held);
  assign start = accept && held && !expired_q && ctx_q.moderate_period != '0 && !ctx_q.timing;

  always_comb begin
    rel_data_o = moved;
    if (start) rel_data_o.timing = 1'b1;
    if (fire) begin
      rel_data_o.arm          = rnic_pkg::CqArmNone;
      rel_data_o.notified_pi  = ctx_q.pi;
      rel_data_o.solicited_pi = ctx_q.pi;
      rel_data_o.timing       = 1'b0;
    end
  end
  assign timer_valid_o  = rel_valid_o && rel_ready_i && start;
  assign timer_cqn_o    = doorbell_q.cqn[7:0];
  assign timer_period_o = ctx_q.moderate_period;

  always_comb begin
    eqe_data_o            = '0;
    eqe_data_o.eqn        = ctx_q.eqn;
    eqe_data_o.event_type = rnic_pkg::EqeTypeCompletion;
    eqe_data_o.number     = {ctx_q.tag, doorbell_q.cqn[7:0]};
  end
  assign acq_valid_o      = state_q == StAcquire;
  assign acq_index_o      = doorbell_q.cqn[7:0];
  assign rel_valid_o      = state_q == StRelease;
  assign rel_write_o      = accept;
  assign eqe_valid_o      = state_q == StEvent;
  // Whoever had the last turn (expired_q) lets the other go first.
  assign take_expired     = state_q == StIdle && expired_valid_i &&
                            !(doorbell_valid_i && expired_q);
  assign take_doorbell    = doorbell_valid_i && doorbell_ready_o;
  assign expired_ready_o  = take_expired;
  assign doorbell_ready_o = state_q == StIdle && !take_expired;
  assign event_taken_o    = doorbell_valid_i && doorbell_ready_o;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept && !expired_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (take_doorbell || take_expired) state_d = StAcquire;
      StAcquire: if (acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = fire ? StEvent : StIdle;
      StEvent: if (eqe_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (take_doorbell) begin
      doorbell_q <= doorbell_data_i.value;
      uar_q      <= doorbell_data_i.uar;
      expired_q  <= 1'b0;
    end
    if (take_expired) begin
      doorbell_q <= {40'd0, 16'd0, expired_cqn_i};
      expired_q  <= 1'b1;
    end
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    if (!rst_ni) begin
      state_q   <= StIdle;
      expired_q <= 1'b0;
    end
  end

  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
endmodule

`default_nettype wire
