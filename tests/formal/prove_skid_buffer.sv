`default_nettype none

/// A skid buffer keeps every word, once, in order, and the rule of streams at its output. Any word
/// is the watched one: the solver chooses which. second_q: another leaves before it.
module prove_skid_buffer (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       in_valid_i,
    input wire logic [7:0] in_data_i,
    input wire logic       out_ready_i,
    input wire logic       watch_i
);
  logic in_ready, out_valid, watched_q, second_q;
  logic [7:0] out_data, data_q;
  logic [1:0] inside_q;
  initial assume (!rst_ni);

  skid_buffer #(
      .Width(8)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o (in_ready),
      .in_data_i,
      .out_valid_o(out_valid),
      .out_ready_i,
      .out_data_o (out_data)
  );

  wire logic push = in_valid_i && in_ready;
  wire logic pop = out_valid && out_ready_i;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + 2'(push) - 2'(pop);
    if (pop) second_q <= 1'b0;
    if (pop && !second_q) watched_q <= 1'b0;
    if (!watched_q && watch_i && push) begin
      watched_q <= 1'b1;
      data_q    <= in_data_i;
      second_q  <= inside_q != 2'(pop);
    end
    if (!rst_ni) begin
      inside_q  <= '0;
      watched_q <= 1'b0;
    end
  end

  always_comb begin
    if (rst_ni) begin
      Inside: assert (!watched_q || (second_q ? inside_q == 2'd2 : inside_q != '0));
      if (watched_q && !second_q) Right: assert (out_data == data_q);
      NoLoss: assert (inside_q != 2'd3);
      Throughput: assert (inside_q == 2'd2 || in_ready);
    end
  end
endmodule

`default_nettype wire
