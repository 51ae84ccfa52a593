`default_nettype none

/// A context has one borrower at a time, who finds in it what the last one has written. Any context
/// is the watched one; contents_q is what must be in it, once it has been written.
module prove_ctx_manager (
    input wire logic       clk_i,
    input wire logic       rst_ni,
    input wire logic [2:0] acq_valid_i,
    input wire logic [5:0] acq_index_i,
    input wire logic [2:0] rel_valid_i,
    input wire logic [2:0] rel_write_i,
    input wire logic [5:0] rel_data_i
);
  logic ready;
  logic [1:0] ctx_data, contents_q;
  logic [2:0] acq_ready, ctx_valid, contended, rel_ready, take, give, has_q, has_ctx_q;
  logic [1:0] index_q[3];
  (* anyconst *) logic [1:0] watched;
  initial assume (!rst_ni);

  ctx_manager #(
      .Entries(4),
      .Width  (2),
      .Clients(3)
  ) u_dut (
      .clk_i,
      .rst_ni,
      .ready_o    (ready),
      .acq_valid_i,
      .acq_ready_o(acq_ready),
      .acq_index_i,
      .ctx_valid_o(ctx_valid),
      .ctx_data_o (ctx_data),
      .contended_o(contended),
      .rel_valid_i,
      .rel_ready_o(rel_ready),
      .rel_write_i,
      .rel_data_i
  );

  assign take = acq_valid_i & acq_ready;
  assign give = rel_valid_i & rel_ready;
  // A client asks for one context at a time, and gives it back once it has it.
  always_comb begin
    assume ((acq_valid_i & has_q) == '0);
    assume ((rel_valid_i & ~has_ctx_q) == '0);
  end

  logic [2:0] clash, wrong, holds;
  always_ff @(posedge clk_i) begin
    has_q     <= (has_q | take) & ~give;
    has_ctx_q <= (has_ctx_q | ctx_valid) & ~give;
    for (int unsigned i = 0; i < 3; i++) begin
      if (take[i]) index_q[i] <= acq_index_i[2*i+:2];
      if (give[i] && rel_write_i[i] && index_q[i] == watched) contents_q <= rel_data_i[2*i+:2];
    end
    if (!rst_ni) begin
      has_q      <= '0;
      has_ctx_q  <= '0;
      contents_q <= '0;  // all are cleared
    end
  end

  always_comb begin
    for (int unsigned i = 0; i < 3; i++) begin
      clash[i] = has_q[i] && has_q[(i+1)%3] && index_q[i] == index_q[(i+1)%3];
      holds[i] = has_q[i] && !has_ctx_q[i];
      wrong[i] = ctx_valid[i] && (!holds[i] || (index_q[i] == watched && ctx_data != contents_q));
    end
    if (rst_ni) begin
      OneBorrower: assert (clash == '0);
      WhatWasWritten: assert (wrong == '0);
      ReadyFirst: assert (ready || take == '0);
    end
  end
endmodule

`default_nettype wire
