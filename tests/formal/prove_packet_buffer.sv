`default_nettype none

/// What a packet buffer gives out are the words of the committed packets, each once, in order. Any
/// word is the watched one: the solver chooses which. ahead_q: words that leave before it.
module prove_packet_buffer (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       in_valid_i,
    input wire logic [1:0] in_data_i,
    input wire logic       commit_i,
    input wire logic       drop_i,
    input wire logic       out_ready_i,
    input wire logic       watch_i
);
  localparam int unsigned Depth = 4;
  logic in_ready, out_valid, watched_q, pending_q;
  logic [1:0] out_data, data_q;
  logic [2:0] room;
  // Words inside: of committed packets, of the one under way.
  logic [3:0] whole_q, open_q, ahead_q, open_now;
  initial assume (!rst_ni);

  packet_buffer #(
      .Width(2),
      .Depth(Depth)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o (in_ready),
      .in_data_i,
      .commit_i,
      .drop_i,
      .room_o     (room),
      .out_valid_o(out_valid),
      .out_ready_i,
      .out_data_o (out_data)
  );

  wire logic push = in_valid_i && in_ready;
  wire logic pop = out_valid && out_ready_i;
  assign open_now = open_q + 4'(push);
  always_ff @(posedge clk_i) begin
    open_q  <= (commit_i || drop_i) ? '0 : open_now;
    whole_q <= whole_q + (commit_i ? open_now : '0) - 4'(pop);
    if (watched_q && pop) ahead_q <= ahead_q - 1'b1;
    if (watched_q && pop && ahead_q == '0) watched_q <= 1'b0;
    if (commit_i) pending_q <= 1'b0;
    if (drop_i && watched_q && pending_q) watched_q <= 1'b0;
    if (!watched_q && watch_i && push && !drop_i) begin
      watched_q <= 1'b1;
      pending_q <= !commit_i;
      data_q    <= in_data_i;
      ahead_q   <= whole_q + open_q - 4'(pop);
    end
    if (!rst_ni) begin
      open_q    <= '0;
      whole_q   <= '0;
      watched_q <= 1'b0;
    end
  end

  always_comb begin
    if (rst_ni) begin
      OnlyWhole: assert (!out_valid || whole_q != '0);
      Right: assert (!(watched_q && ahead_q == '0 && out_valid) ||
                     (out_data == data_q && !pending_q));
      Room: assert (4'(room) + open_q + whole_q >= 4'(Depth) &&
                    4'(room) + open_q + whole_q <= 4'(Depth + 1));
    end
  end
endmodule

`default_nettype wire
