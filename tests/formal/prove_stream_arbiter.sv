`default_nettype none

/// Streams that are merged come out a packet at a time, each word once and in the order of its
/// source. Any word of either source is the watched one. ahead_q: words of its source before it.
module prove_stream_arbiter (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic [1:0] in_valid_i,
    input wire logic [1:0] in_last_i,
    input wire logic [3:0] in_data_i,
    input wire logic       out_ready_i,
    input wire logic       watch_i
);
  logic [1:0] in_ready, out_data, data_q, push;
  logic out_valid, out_last, out_source, watched_q, watched_source_q, watched_last_q;
  logic within_q, source_q, source;
  logic [1:0] inside_q[2];
  logic [1:0] ahead_q;
  initial assume (!rst_ni);

  // The rule of streams for each source.
  logic [1:0] stalled_q, stalled_last_q;
  logic [3:0] stalled_data_q;
  always_ff @(posedge clk_i) begin
    stalled_q      <= in_valid_i & ~in_ready & {2{rst_ni}};
    stalled_last_q <= in_last_i;
    stalled_data_q <= in_data_i;
  end
  always_comb begin
    assume (!stalled_q[0] || (in_valid_i[0] && in_last_i[0] == stalled_last_q[0] &&
                              in_data_i[1:0] == stalled_data_q[1:0]));
    assume (!stalled_q[1] || (in_valid_i[1] && in_last_i[1] == stalled_last_q[1] &&
                              in_data_i[3:2] == stalled_data_q[3:2]));
  end

  stream_arbiter #(
      .N    (2),
      .Width(2)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o  (in_ready),
      .in_last_i,
      .in_data_i,
      .out_valid_o (out_valid),
      .out_ready_i,
      .out_last_o  (out_last),
      .out_data_o  (out_data),
      .out_source_o(out_source)
  );

  assign push   = in_valid_i & in_ready;
  assign source = push[1];
  wire logic pop = out_valid && out_ready_i;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 2; i++) begin
      inside_q[i] <= inside_q[i] + 2'(push[i]) - 2'(pop && out_source == 1'(i));
      if (!rst_ni) inside_q[i] <= '0;
    end
    if (pop) begin
      within_q <= !out_last;
      source_q <= out_source;
    end
    if (watched_q && pop && out_source == watched_source_q) begin
      ahead_q <= ahead_q - 1'b1;
      if (ahead_q == '0) watched_q <= 1'b0;
    end
    if (!watched_q && watch_i && push != '0) begin
      watched_q        <= 1'b1;
      watched_source_q <= source;
      watched_last_q   <= in_last_i[source];
      data_q           <= source ? in_data_i[3:2] : in_data_i[1:0];
      ahead_q          <= inside_q[source] - 2'(pop && out_source == source);
    end
    if (!rst_ni) begin
      within_q  <= 1'b0;
      watched_q <= 1'b0;
    end
  end

  always_comb begin
    if (rst_ni) begin
      OneAtATime: assert (push != 2'b11);
      WholePackets: assert (!(within_q && out_valid) || out_source == source_q);
      Inside: assert (!out_valid || inside_q[out_source] != '0);
      Right: assert (!(watched_q && ahead_q == '0 && out_valid && out_source == watched_source_q) ||
                     (out_data == data_q && out_last == watched_last_q));
    end
  end
endmodule

`default_nettype wire
