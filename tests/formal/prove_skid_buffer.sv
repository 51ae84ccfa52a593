`default_nettype none

/// A skid buffer keeps every word, once, in order, and the rule of streams at its output.
module prove_skid_buffer (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       in_valid_i,
    input wire logic [7:0] in_data_i,
    input wire logic       out_ready_i,
    input wire logic       watch_i
);
  logic in_ready, out_valid, next;
  logic [7:0] out_data, watched;
  logic [1:0] inside;
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
  watched_word #(
      .Width    (8),
      .CountBits(2)
  ) u_watched (
      .clk_i,
      .rst_ni,
      .watch_i,
      .push_i  (push),
      .data_i  (in_data_i),
      .pop_i   (pop),
      .inside_o(inside),
      .next_o  (next),
      .data_o  (watched)
  );

  always_comb begin
    if (rst_ni) begin
      if (next) Right: assert (out_valid && out_data == watched);
      NoLoss: assert (inside != 2'd3);
      Throughput: assert (inside == 2'd2 || in_ready);
    end
  end
endmodule

`default_nettype wire
