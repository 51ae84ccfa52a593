`default_nettype none
`include "assert.svh"

/// When timers have to be looked at: no deadline of those that run (runs_i: some do) is before
/// earliest_o, so that a sweep through all of them, a round, finds nothing before then. sweeping_o:
/// it is time. Time comes from outside (now_i); nothing changes here while no sweep goes on and no
/// timer is set.
///
/// set: a timer is set, from whose deadline on it may be found. left: a look of the sweep leaves a
/// timer running, with this deadline. first_i: the first cycle of a round; last_i: that of its last
/// look, at which a whole round has found what is left. A timer that is set in that cycle counts
/// for the next round, too: its look there may still have shown its old deadline. Both may be the
/// same cycle, where the last look falls into the next round. A deadline that has been taken back
/// since is found out by a round for nothing. Differences of times compare: the top bit says
/// "before".
module earliest_deadline #(
    parameter int unsigned Bits = 8
) (
    input  wire logic            clk_i,
    input  wire logic            rst_ni,
    input  wire logic [Bits-1:0] now_i,
    input  wire logic            runs_i,
    input  wire logic            set_valid_i,
    input  wire logic [Bits-1:0] set_deadline_i,
    input  wire logic            left_valid_i,
    input  wire logic [Bits-1:0] left_deadline_i,
    input  wire logic            first_i,
    input  wire logic            last_i,
    output logic                 sweeping_o,
    output logic [Bits-1:0]      earliest_o
);
  // What the round has found so far; whole_q: it has swept from its first cycle on.
  logic whole_q, found_valid_q, found_before, found_valid;
  logic [Bits-1:0] found_q, found, earliest;

  function automatic logic is_before(input logic [Bits-1:0] a, input logic [Bits-1:0] b);
    logic [Bits-1:0] difference;
    difference = a - b;
    is_before  = difference[Bits-1];
  endfunction

  assign sweeping_o = runs_i && !is_before(now_i, earliest_o);

  always_comb begin
    // What was set before a round that follows no other is found by its looks.
    found_before = found_valid_q && !(first_i && !whole_q);
    found_valid  = found_before || left_valid_i;
    found        = found_q;
    if (left_valid_i && (!found_before || is_before(left_deadline_i, found_q)))
      found = left_deadline_i;
    if (set_valid_i && (!found_valid || is_before(set_deadline_i, found))) found = set_deadline_i;
    earliest = (last_i && whole_q) ? found : earliest_o;
    if (set_valid_i && (!runs_i || is_before(set_deadline_i, earliest))) earliest = set_deadline_i;
  end

  always_ff @(posedge clk_i) begin
    if (first_i || !sweeping_o) whole_q <= first_i && sweeping_o;
    if (sweeping_o || left_valid_i || set_valid_i) begin
      found_q       <= last_i ? set_deadline_i : found;
      found_valid_q <= set_valid_i || (!last_i && found_valid);
    end
    earliest_o <= earliest;
    if (!rst_ni) begin
      whole_q       <= 1'b0;
      found_valid_q <= 1'b0;
    end
  end
endmodule

`default_nettype wire
