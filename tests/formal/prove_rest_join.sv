`default_nettype none

/// Two blocks rest only when both do, and never past a deadline of either, wherever the counter of
/// cycles stands. Deadlines are less than 2^41 cycles away, before or behind.
module prove_rest_join (
    input wire logic            clk_i,
    input wire logic            rst_ni,
    input wire logic [63:0]     cycles_i,
    input wire rnic_pkg::rest_t a_i,
    input wire rnic_pkg::rest_t b_i
);
  rnic_pkg::rest_t rest;
  rest_join u_dut (
      .cycles_i,
      .a_i,
      .b_i,
      .rest_o(rest)
  );

  wire logic signed [42:0] left_a = a_i.deadline - cycles_i[42:0];
  wire logic signed [42:0] left_b = b_i.deadline - cycles_i[42:0];
  wire logic signed [42:0] left = rest.deadline - cycles_i[42:0];
  always_comb begin
    assume (left_a[42:41] == 2'b00 || left_a[42:41] == 2'b11);
    assume (left_b[42:41] == 2'b00 || left_b[42:41] == 2'b11);
    if (rst_ni) begin
      Busy: assert (rest.busy == (a_i.busy || b_i.busy));
      Timed: assert (rest.timed == (a_i.timed || b_i.timed));
      NotPastA: assert (!a_i.timed || left <= left_a);
      NotPastB: assert (!b_i.timed || left <= left_b);
      OfOne: assert (!rest.timed || (a_i.timed && left == left_a) || (b_i.timed && left == left_b));
    end
  end
endmodule

`default_nettype wire
