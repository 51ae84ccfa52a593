`default_nettype none
`include "assert.svh"

/// One turn with a context for each item: takes an item, borrows the context that it names, shows
/// both to the owner (item_o, ctx_o), who judges them while the context is given back, and takes
/// the next.
///
/// item_o stays from the cycle after the item was taken until the next is taken; the owner makes
/// the index of the context of it. ctx_o stays from the cycle after ctx_valid_i. Both are right
/// when rel_valid_o is there; the owner then says what is written, and with follow_i that
/// something follows: follow_valid_o is held until follow_ready_i, with the context given back,
/// and the turn ends there.
module ctx_turn #(
    parameter int unsigned ItemWidth = 8,
    parameter int unsigned CtxWidth = 8
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic                 item_valid_i,
    output logic                      item_ready_o,
    input  wire logic [ItemWidth-1:0] item_data_i,
    output logic [ItemWidth-1:0]      item_o,
    // Client of a ctx_manager, but for index and contents
    output logic                      acq_valid_o,
    input  wire logic                 acq_ready_i,
    input  wire logic                 ctx_valid_i,
    input  wire logic [CtxWidth-1:0]  ctx_data_i,
    output logic                      rel_valid_o,
    input  wire logic                 rel_ready_i,
    output logic [CtxWidth-1:0]       ctx_o,
    // What follows
    input  wire logic                 follow_i,
    output logic                      follow_valid_o,
    input  wire logic                 follow_ready_i
);
  // Idle     ready for an item
  // Acquire  asks for the context
  // Wait     for the context
  // Release  gives it back
  // Follow   hands on what follows
  typedef enum logic [2:0] {
    StIdle,
    StAcquire,
    StWait,
    StRelease,
    StFollow
  } state_e;
  state_e state_q, state_d;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (item_valid_i) state_d = StAcquire;
      StAcquire: if (acq_ready_i) state_d = StWait;
      StWait:    if (ctx_valid_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = follow_i ? StFollow : StIdle;
      StFollow:  if (follow_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (item_valid_i && item_ready_o) item_o <= item_data_i;
    if (ctx_valid_i) ctx_o <= ctx_data_i;
    if (!rst_ni) state_q <= StIdle;
  end

  assign item_ready_o   = state_q == StIdle;
  assign acq_valid_o    = state_q == StAcquire;
  assign rel_valid_o    = state_q == StRelease;
  assign follow_valid_o = state_q == StFollow;

  `ASSERT(ContextAskedFor, !ctx_valid_i || state_q == StWait)
endmodule

`default_nettype wire
