`default_nettype none

/// Out lane i is in lane (i + amount) mod 64, for every lane and amount.
module prove_byte_rotate (
    input wire logic         clk_i,
    input wire logic         rst_ni,
    input wire logic [511:0] data_i,
    input wire logic [5:0]   amount_i,
    input wire logic [5:0]   lane_i
);
  logic [511:0] data;
  byte_rotate u_dut (
      .data_i,
      .amount_i,
      .data_o(data)
  );
  wire logic [5:0] from = lane_i + amount_i;
  always_comb begin
    if (rst_ni) Rotated: assert (data[8*lane_i+:8] == data_i[8*from+:8]);
  end
endmodule

`default_nettype wire
