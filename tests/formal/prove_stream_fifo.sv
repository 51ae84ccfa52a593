`default_nettype none

/// A FIFO keeps every word, once, in order, and the rule of streams at its output.
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
  logic in_ready, out_valid, next;
  logic [3:0] out_data, watched, inside, count;

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
  watched_word #(
      .Width    (4),
      .CountBits(4)
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
      Counted: assert (count == inside);
      Bounded: assert (inside <= 4'(Depth + 1));
      if (next && out_valid) Right: assert (out_data == watched);
    end
  end
endmodule

`default_nettype wire
