`default_nettype none
`include "assert.svh"

/// qp_reset of the receive engine: waits until every packet that was inside when the request came
/// has left, then clears the QP.
///
/// The QP's contexts are reset before the request, so that later packets of it are dropped by the
/// check stage; those of other QPs pass all the while. checking_i: packets in the check stage;
/// checked_i: one of them leaves it, with its plan (entered_i) if it makes one.
module rx_done_flush (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        qp_reset_valid_i,
    output logic             qp_reset_ready_o,
    input  wire logic [1:0]  checking_i,
    input  wire logic        checked_i,
    input  wire logic        entered_i,
    input  wire logic        left_i,
    output logic             clear_valid_o
);
  // Idle   waits for a request
  // Check  waits until the packets that were in the check stage have left it
  // Drain  waits until the packets that were inside have left
  // Clear  the QP is forgotten
  typedef enum logic [1:0] {Idle, Check, Drain, Clear} state_e;
  state_e state_q, state_d;
  logic [8:0] inside_q, inside_d, ahead_q;
  logic [1:0] unchecked_q;

  assign inside_d = inside_q + 9'(entered_i) - 9'(left_i);

  always_comb begin : control
    state_d = state_q;
    unique case (state_q)
      Idle: if (qp_reset_valid_i) state_d = Check;
      Check: if (unchecked_q == 2'd0) state_d = Drain;
      Drain: if (ahead_q == 9'd0) state_d = Clear;
      Clear: state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    inside_q <= inside_d;
    if (state_q == Idle) unchecked_q <= checking_i - 2'(checked_i);
    else if (checked_i && unchecked_q != 2'd0) unchecked_q <= unchecked_q - 2'd1;
    if (state_q == Check) ahead_q <= inside_d;
    else if (left_i && ahead_q != 9'd0) ahead_q <= ahead_q - 9'd1;
    if (!rst_ni) begin
      state_q  <= Idle;
      inside_q <= 9'd0;
    end
  end

  assign qp_reset_ready_o = state_q == Clear;
  assign clear_valid_o    = state_q == Clear;

  `ASSERT(NoMoreLeaveThanEnter, inside_q != 9'd0 || !left_i)
  `ASSERT(ResetHold, state_q == Idle || qp_reset_valid_i)
endmodule

`default_nettype wire
