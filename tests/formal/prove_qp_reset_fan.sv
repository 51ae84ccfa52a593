`default_nettype none

/// Each request reaches every block once, and is answered when all have answered.
module prove_qp_reset_fan (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       in_valid_i,
    input wire logic [2:0] out_ready_i
);
  logic in_ready, stalled_q;
  logic [2:0] out_valid, told_q;
  initial assume (!rst_ni);
  always_comb assume (!stalled_q || in_valid_i);

  qp_reset_fan #(
      .N(3)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o (in_ready),
      .out_valid_o(out_valid),
      .out_ready_i
  );

  always_ff @(posedge clk_i) begin
    stalled_q <= rst_ni && in_valid_i && !in_ready;
    told_q    <= in_ready ? '0 : told_q | (out_valid & out_ready_i);
    if (!rst_ni) told_q <= '0;
  end
  always_comb begin
    if (rst_ni) begin
      Once: assert ((out_valid & told_q) == '0);
      AllFirst: assert (!in_ready || told_q == '1);
      OnlyWhenAsked: assert (out_valid == '0 || in_valid_i);
      Soon: assert (!(in_valid_i && told_q == '1) || in_ready);
    end
  end
endmodule

`default_nettype wire
