`default_nettype none

/// Nobody waits for more than N - 1 others. waits_q[i]: grants to others since i began to ask.
module prove_rr_arbiter (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic [3:0] request_i,
    input wire logic       advance_i
);
  localparam int unsigned N = 4;
  logic [N-1:0] grant, unfair;
  logic [2:0] waits_q[N];
  initial assume (!rst_ni);

  rr_arbiter #(
      .N(N)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .request_i,
      .advance_i,
      .grant_o  (grant)
  );

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < N; i++) begin
      if (!request_i[i] || (grant[i] && advance_i)) waits_q[i] <= '0;
      else if (advance_i && waits_q[i] != '1) waits_q[i] <= waits_q[i] + 1'b1;
      if (!rst_ni) waits_q[i] <= '0;
    end
  end
  always_comb begin
    for (int unsigned i = 0; i < N; i++) unfair[i] = waits_q[i] > 3'(N - 1);
    if (rst_ni) Fair: assert (unfair == '0);
  end
endmodule

`default_nettype wire
