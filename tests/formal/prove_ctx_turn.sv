`default_nettype none

/// A turn borrows a context once for each item, gives it back once, and what follows begins after
/// that; the item stays as it was taken until the turn ends.
module prove_ctx_turn (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic       item_valid_i,
    input wire logic [2:0] item_data_i,
    input wire logic       acq_ready_i,
    input wire logic       ctx_valid_i,
    input wire logic [2:0] ctx_data_i,
    input wire logic       rel_ready_i,
    input wire logic       follow_i,
    input wire logic       follow_ready_i
);
  logic item_ready, acq_valid, rel_valid, follow_valid;
  logic [2:0] item, ctx, item_q, ctx_q;
  // Where the turn is, as its owner sees it.
  logic busy_q, asked_q, here_q, given_q, follows_q;
  initial assume (!rst_ni);
  // ctx_manager answers who has been granted, once.
  always_comb assume (!ctx_valid_i || (asked_q && !here_q && !given_q));

  ctx_turn #(
      .ItemWidth(3),
      .CtxWidth (3)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .item_valid_i,
      .item_ready_o  (item_ready),
      .item_data_i,
      .item_o        (item),
      .acq_valid_o   (acq_valid),
      .acq_ready_i,
      .ctx_valid_i,
      .ctx_data_i,
      .rel_valid_o   (rel_valid),
      .rel_ready_i,
      .ctx_o         (ctx),
      .follow_i,
      .follow_valid_o(follow_valid),
      .follow_ready_i
  );

  wire logic take = item_valid_i && item_ready;
  wire logic gives = rel_valid && rel_ready_i;
  wire logic ends = (gives && !follow_i) || (follow_valid && follow_ready_i);
  always_ff @(posedge clk_i) begin
    if (take) item_q <= item_data_i;
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    busy_q    <= (busy_q || take) && !ends;
    asked_q   <= (asked_q || (acq_valid && acq_ready_i)) && !ends;
    here_q    <= (here_q || ctx_valid_i) && !ends;
    given_q   <= (given_q || gives) && !ends;
    follows_q <= (follows_q || (gives && follow_i)) && !ends;
    if (!rst_ni) begin
      busy_q    <= 1'b0;
      asked_q   <= 1'b0;
      here_q    <= 1'b0;
      given_q   <= 1'b0;
      follows_q <= 1'b0;
    end
  end

  always_comb begin
    if (rst_ni) begin
      OneItem: assert (!(item_ready && busy_q));
      AsksOnce: assert (!acq_valid || (busy_q && !asked_q));
      GivesWhatItHas: assert (!rel_valid || (here_q && !given_q));
      FollowsAfter: assert (follow_valid == follows_q);
      ItemStays: assert (!busy_q || item == item_q);
      CtxStays: assert (!rel_valid || ctx == ctx_q);
      NeverStuck: assert (!busy_q || acq_valid || rel_valid || follow_valid ||
                          (asked_q && !here_q));
    end
  end
endmodule

`default_nettype wire
