`default_nettype none

/// A request enters the translation pipeline only with room for its answer and for a line that it
/// may miss; neither port can take what the other needs, and who may enter does within two cycles.
module prove_xlate_admit (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       enable_i,
    input wire logic [1:0] req_valid_i,
    input wire logic [1:0] popped_i,
    input wire logic [1:0] settled_i,
    input wire logic [1:0] freed_i
);
  logic [1:0] ready, take, over, refused_q;
  logic [2:0] answers_q[2];
  logic [1:0] misses_q[2];
  initial assume (!rst_ni);

  xlate_admit #(
      .Depth (4),
      .Misses(2)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .enable_i,
      .req_valid_i,
      .req_ready_o(ready),
      .popped_i,
      .settled_i,
      .freed_i
  );

  // What leaves has entered; a request is settled or has a line of its own, which is given up once.
  always_comb begin
    assume (!popped_i[0] || answers_q[0] != '0);
    assume (!popped_i[1] || answers_q[1] != '0);
    assume ({1'b0, misses_q[0]} >= 3'(settled_i[0]) + 3'(freed_i[0]));
    assume ({1'b0, misses_q[1]} >= 3'(settled_i[1]) + 3'(freed_i[1]));
  end
  assign take = req_valid_i & ready;
  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < 2; i++) begin
      answers_q[i] <= answers_q[i] + 3'(take[i]) - 3'(popped_i[i]);
      misses_q[i]  <= misses_q[i] + 2'(take[i]) - 2'(settled_i[i]) - 2'(freed_i[i]);
      refused_q[i] <= enable_i && req_valid_i[i] && !ready[i] && answers_q[i] < 3'd4 &&
          misses_q[i] < 2'd2;
      if (!rst_ni) begin
        answers_q[i] <= '0;
        misses_q[i]  <= '0;
        refused_q[i] <= 1'b0;
      end
    end
  end
  always_comb begin
    for (int unsigned i = 0; i < 2; i++) over[i] = answers_q[i] > 3'd4 || misses_q[i] > 2'd2;
    if (rst_ni) begin
      Room: assert (over == '0);
      OneACycle: assert (ready != 2'b11);
      Soon: assert (!(enable_i && req_valid_i[0] && refused_q[0] && answers_q[0] < 3'd4 &&
                      misses_q[0] < 2'd2) || ready[0]);
      SoonToo: assert (!(enable_i && req_valid_i[1] && refused_q[1] && answers_q[1] < 3'd4 &&
                         misses_q[1] < 2'd2) || ready[1]);
    end
  end
endmodule

`default_nettype wire
