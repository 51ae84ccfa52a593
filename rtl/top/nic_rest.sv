`default_nettype none
`include "assert.svh"

/// What a clock controller needs: the NIC is quiet, and until when.
///
/// quiet_o: no state of the NIC changes by itself. clk_i may stand still from there on until an
/// input other than time_i changes, or time_i has reached deadline_o (if timed_o); the NIC then
/// goes on as if it had been clocked all the time. levels_i: inputs that may change at any time.
/// stir_i: something moves between its blocks. Work inside a block shows in stir_i or in busy_i, or
/// moves something between blocks at least every Settle cycles: the NIC is quiet when nothing has
/// stirred for so long (the counters take longest, a round of their accumulators). rest_i: the
/// timers.
module nic_rest #(
    parameter int unsigned Settle = 512
) (
    input  wire logic            clk_i,
    input  wire logic            rst_ni,
    input  wire logic [63:0]     time_i,
    input  wire logic [63:0]     cycles_i,
    input  wire logic            stir_i,
    input  wire logic [11:0]     levels_i,
    input  wire logic            busy_i,
    input  wire rnic_pkg::rest_t rest_i,
    output logic                 quiet_o,
    output logic                 timed_o,
    output logic [63:0]          deadline_o
);
  localparam int unsigned SettleBits = $clog2(Settle);
  logic [SettleBits-1:0] still_q;
  logic moves;
  logic [11:0] levels_q;
  logic [42:0] left;
  assign moves = stir_i || busy_i || rest_i.busy || levels_i != levels_q;

  always_ff @(posedge clk_i) begin
    levels_q <= levels_i;
    if (moves) still_q <= '0;
    else if (still_q != '1) still_q <= still_q + 1'b1;
    if (!rst_ni) still_q <= '0;
  end

  assign quiet_o    = still_q == '1 && !moves;
  assign timed_o    = rest_i.timed;
  assign left       = rest_i.deadline - cycles_i[42:0];
  assign deadline_o = time_i + {{21{left[42]}}, left};

  logic unused_bits;
  assign unused_bits = ^cycles_i[63:43];
endmodule

`default_nettype wire
