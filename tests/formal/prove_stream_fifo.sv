`default_nettype none

/// A FIFO keeps every word, once, in order, and the rule of streams at its output. Any word is the
/// watched one: the solver chooses which. ahead_q: words that leave before it.
module prove_stream_fifo (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       in_valid_i,
    input wire logic [3:0] in_data_i,
    input wire logic       out_ready_i,
    input wire logic       watch_i
);
  localparam int unsigned Depth = 4;
  initial assume (!rst_ni);
  logic in_ready, out_valid, watched_q;
  logic [3:0] out_data, data_q, ahead_q, count;


  stream_fifo #(
      .Width(4),
      .Depth(Depth)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o (in_ready),
      .in_data_i,
      .out_valid_o(out_valid),
      .out_ready_i,
      .out_data_o (out_data),
      .count_o    (count)
  );

  wire logic push = in_valid_i && in_ready;
  wire logic pop = out_valid && out_ready_i;
  logic [3:0] inside_q;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + 4'(push) - 4'(pop);
    if (watched_q && pop) ahead_q <= ahead_q - 1'b1;
    if (watched_q && pop && ahead_q == '0) watched_q <= 1'b0;
    if (!watched_q && watch_i && push) begin
      watched_q <= 1'b1;
      data_q    <= in_data_i;
      ahead_q   <= inside_q - 4'(pop);
    end
    if (!rst_ni) begin
      inside_q  <= '0;
      watched_q <= 1'b0;
    end
  end

  always_comb begin
    if (rst_ni) begin
      Counted: assert (count == inside_q);
      Bounded: assert (inside_q <= 4'(Depth + 1));
      Inside: assert (!watched_q || ahead_q < inside_q);
      if (watched_q && ahead_q == '0 && out_valid) Right: assert (out_data == data_q);
    end
  end
endmodule

`default_nettype wire
