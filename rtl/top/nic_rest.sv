`default_nettype none

/// What a clock controller needs: the NIC is quiet, and until when.
///
/// quiet_o: no state of the NIC changes by itself. clk_i may stand still from there on until an
/// input other than time_i changes, or time_i has reached deadline_o (if timed_o); the NIC then
/// goes on as if it had been clocked all the time.
/// awake_i: rooms whose clock runs (room_clock). levels_i: inputs and settings that may change at
/// any time; moved_o, in the cycle in which one has, wakes the rooms that look at them. rest_i: the
/// timers.
module nic_rest #(
    parameter int unsigned Rooms = 1,
    parameter int unsigned Levels = 1
) (
    input  wire logic              clk_i,
    input  wire logic [63:0]       time_i,
    input  wire logic [63:0]       cycles_i,
    input  wire logic [Rooms-1:0]  awake_i,
    input  wire logic [Levels-1:0] levels_i,
    output logic                   moved_o,
    input  wire rnic_pkg::rest_t   rest_i,
    output logic                   quiet_o,
    output logic                   timed_o,
    output logic [63:0]            deadline_o
);
  logic [Levels-1:0] levels_q;
  logic [42:0] left;
  always_ff @(posedge clk_i) levels_q <= levels_i;

  assign moved_o    = levels_i != levels_q;
  assign quiet_o    = awake_i == '0 && !moved_o;
  assign timed_o    = rest_i.timed;
  assign left       = rest_i.deadline - cycles_i[42:0];
  assign deadline_o = time_i + {{21{left[42]}}, left};

  logic unused_bits;
  assign unused_bits = ^{cycles_i[63:43], rest_i.busy};
endmodule

`default_nettype wire
