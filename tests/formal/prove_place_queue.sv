`default_nettype none

/// Every word of a place queue once, in the order in which it was taken; and what is offered with a
/// place kept is taken within N cycles, whatever happens behind the queue. waits_q[i]: cycles for
/// which source i has offered.
module prove_place_queue (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic [1:0] in_valid_i,
    input wire logic [3:0] in_data_i,
    input wire logic       out_ready_i,
    input wire logic       watch_i
);
  logic [1:0] kept, in_ready, out_data, watched, pushed, late;
  logic out_valid, next;
  logic [3:0] inside;
  logic [1:0] waits_q[2];
  initial assume (!rst_ni);

  place_queue #(
      .N    (2),
      .Width(2),
      .Depth(4)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .kept_o     (kept),
      .in_valid_i,
      .in_ready_o (in_ready),
      .in_data_i,
      .out_valid_o(out_valid),
      .out_ready_i,
      .out_data_o (out_data)
  );

  wire logic push = (in_valid_i & in_ready) != '0;
  wire logic pop = out_valid && out_ready_i;
  assign pushed = in_ready[1] ? in_data_i[3:2] : in_data_i[1:0];
  watched_word #(
      .Width    (2),
      .CountBits(4)
  ) u_watched (
      .clk_i,
      .rst_ni,
      .watch_i,
      .push_i  (push),
      .data_i  (pushed),
      .pop_i   (pop),
      .inside_o(inside),
      .next_o  (next),
      .data_o  (watched)
  );

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 2; i++) begin
      if (!in_valid_i[i] || !kept[i] || in_ready[i]) waits_q[i] <= '0;
      else if (waits_q[i] != '1) waits_q[i] <= waits_q[i] + 1'b1;
      if (!rst_ni) waits_q[i] <= '0;
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < 2; i++) late[i] = waits_q[i] >= 2'd2;
    if (rst_ni) begin
      OneAtATime: assert (in_ready != 2'b11);
      OnlyKept: assert ((in_ready & ~kept) == '0);
      Soon: assert (late == '0);
      Inside: assert (!out_valid || inside != '0);
      Right: assert (!(next && out_valid) || out_data == watched);
    end
  end
endmodule

`default_nettype wire
