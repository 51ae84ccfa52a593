`default_nettype none

/// Makes a block of turns forget one queue pair: keeps the scheduler from starting a turn of it,
/// waits until the block has nothing of it under way (active_i), has its state cleared (clear_*),
/// and waits until the packets that were in the output queue at that time have left. Then answers.
module qp_reset_seq (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       qp_reset_valid_i,
    output logic            qp_reset_ready_o,
    input  wire logic [7:0] qp_reset_qp_i,
    output logic            forget_valid_o,
    output logic [7:0]      forget_qp_o,
    input  wire logic       active_i,
    output logic            clear_valid_o,
    input  wire logic       clear_ready_i,
    output logic            mark_o,
    input  wire logic       drained_i
);
  // StIdle   nothing to do
  // StQuiet  no new turn; waiting for what is under way
  // StClear  the state of the QP is being cleared
  // StDrain  waiting for the packets queued so far
  // StAnswer qp_reset_ready_o
  typedef enum logic [2:0] {
    StIdle,
    StQuiet,
    StClear,
    StDrain,
    StAnswer
  } state_e;
  state_e state_q, state_d;
  logic [7:0] qp_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:   if (qp_reset_valid_i) state_d = StQuiet;
      StQuiet:  if (!active_i) state_d = StClear;
      StClear:  if (clear_ready_i) state_d = StDrain;
      StDrain:  if (drained_i) state_d = StAnswer;
      StAnswer: state_d = StIdle;
      default:  state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StIdle && qp_reset_valid_i) qp_q <= qp_reset_qp_i;
    if (!rst_ni) state_q <= StIdle;
  end

  assign forget_valid_o   = state_q != StIdle;
  assign forget_qp_o      = qp_q;
  assign clear_valid_o    = state_q == StClear;
  assign mark_o           = state_q == StClear && clear_ready_i;
  assign qp_reset_ready_o = state_q == StAnswer;
endmodule

`default_nettype wire
