`default_nettype none
`include "assert.svh"

/// Stands between a client of mem_op and mem_op: an operation that was refused because something is
/// bound (BadState), while a QP that has failed may still have had its windows (unbinding_i), is
/// put again when that has ended. So a region can be deregistered and a window be bound elsewhere
/// as soon as the failure can be known (decisions 56), however long the search for the windows is.
/// QPs that fail one after the other may keep unbinding_i up for ever: those that had failed before
/// the operation was refused have been searched for when Searches more searches have ended
/// (unbound_i, pulses), and then the answer is that of one more try. Everything else passes; one
/// operation is under way. The answers' data goes to the client directly; rsp_status_i is its
/// status.
module mem_op_again #(
    /// QPs are searched for in the order in which they fail: all of them, and what is on its way.
    parameter int unsigned Searches = 2 ** rnic_pkg::QpIndexBits + 4
) (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    input  wire logic              unbinding_i,
    input  wire logic              unbound_i,
    input  wire logic              in_valid_i,
    output logic                   in_ready_o,
    input  wire rnic_pkg::mem_op_t in_data_i,
    output logic                   in_rsp_valid_o,
    input  wire logic              in_rsp_ready_i,
    output logic                   out_valid_o,
    input  wire logic              out_ready_i,
    output rnic_pkg::mem_op_t      out_data_o,
    input  wire logic              out_rsp_valid_i,
    output logic                   out_rsp_ready_o,
    input  wire logic [2:0]        rsp_status_i
);
  // Pass: takes an operation. Answer: its answer is awaited. Wait: for the end of unbinding_i.
  // Offer: the operation is put again.
  typedef enum logic [1:0] {
    StPass,
    StAnswer,
    StWait,
    StOffer
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::mem_op_t op_q;
  localparam int unsigned CountBits = $clog2(Searches + 1);
  logic seen_q, again, over;
  logic [CountBits-1:0] searches_q;

  // Of the whole time since it was taken.
  assign over  = searches_q == CountBits'(Searches);
  assign again = rsp_status_i == rnic_pkg::MemOpStatusBadState && (seen_q || unbinding_i) && !over;

  assign out_valid_o     = (state_q == StPass) ? in_valid_i : state_q == StOffer;
  assign out_data_o      = (state_q == StPass) ? in_data_i : op_q;
  assign in_ready_o      = state_q == StPass && out_ready_i;
  assign in_rsp_valid_o  = state_q == StAnswer && out_rsp_valid_i && !again;
  assign out_rsp_ready_o = state_q == StAnswer && (again || in_rsp_ready_i);

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StPass:   if (in_valid_i && out_ready_i) state_d = StAnswer;
      StAnswer: if (out_rsp_valid_i && out_rsp_ready_o) state_d = again ? StWait : StPass;
      StWait:   if (!unbinding_i || over) state_d = StOffer;
      StOffer:  if (out_ready_i) state_d = StAnswer;
      default:  state_d = StPass;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StPass) op_q <= in_data_i;
    if (state_q == StPass) searches_q <= '0;
    else if (unbound_i && !over) searches_q <= searches_q + 1'b1;
    seen_q <= unbinding_i || (state_q == StAnswer && seen_q);
    if (!rst_ni) state_q <= StPass;
  end

  `ASSERT(WaitEnds, state_q != StWait || !over || state_d == StOffer)
  `ASSERT_HOLD(OutHold, out_valid_o, out_ready_i, out_data_o)
  `ASSERT(AnswerExpected, !out_rsp_valid_i || state_q == StAnswer)
endmodule

`default_nettype wire
