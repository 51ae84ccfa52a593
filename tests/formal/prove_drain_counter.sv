`default_nettype none

/// Drained means: all that was inside when it began has left. The watched thing was inside then.
module prove_drain_counter (
    input wire logic clk_i,
    input wire logic rst_ni,
    input wire logic enter_i,
    input wire logic leave_i,
    input wire logic start_i,
    input wire logic watch_i
);
  logic drained, watched_q, counts_q;
  logic [2:0] inside_q, ahead_q;
  initial assume (!rst_ni);
  // In and out in order, at most seven inside.
  always_comb begin
    assume (!leave_i || inside_q != '0);
    assume (!enter_i || inside_q != 3'd7 || leave_i);
  end

  drain_counter #(
      .Bits(3)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .enter_i,
      .leave_i,
      .start_i,
      .drained_o(drained)
  );

  wire logic enters = !watched_q && watch_i && enter_i;
  wire logic gone = watched_q && leave_i && ahead_q == '0;
  always_ff @(posedge clk_i) begin
    inside_q <= inside_q + 3'(enter_i) - 3'(leave_i);
    if (enters) ahead_q <= inside_q - 3'(leave_i);
    else if (watched_q && leave_i) ahead_q <= ahead_q - 1'b1;
    watched_q <= (watched_q || enters) && !gone;
    // It was there, or came with it, when the drain began.
    counts_q  <= ((watched_q && counts_q) || (start_i && (watched_q || enters))) && !gone;
    if (!rst_ni) begin
      inside_q  <= '0;
      watched_q <= 1'b0;
      counts_q  <= 1'b0;
    end
  end
  always_comb begin
    if (rst_ni) begin
      NotBefore: assert (!(watched_q && counts_q && drained));
      Empty: assert (inside_q != '0 || drained);
    end
  end
endmodule

`default_nettype wire
