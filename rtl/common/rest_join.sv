`default_nettype none

/// Two blocks rest when both do, until the earlier of their deadlines.
module rest_join (
    input  wire logic [63:0]     cycles_i,
    input  wire rnic_pkg::rest_t a_i,
    input  wire rnic_pkg::rest_t b_i,
    output rnic_pkg::rest_t      rest_o
);
  logic [42:0] left_a, left_b;
  logic take_a;
  // A deadline that has passed is the earlier one.
  assign left_a = a_i.deadline - cycles_i[42:0];
  assign left_b = b_i.deadline - cycles_i[42:0];
  assign take_a = a_i.timed && (!b_i.timed || $signed(left_a) < $signed(left_b));

  assign rest_o.busy     = a_i.busy || b_i.busy;
  assign rest_o.timed    = a_i.timed || b_i.timed;
  assign rest_o.deadline = take_a ? a_i.deadline : b_i.deadline;

  logic unused_bits;
  assign unused_bits = ^cycles_i[63:43];
endmodule

`default_nettype wire
