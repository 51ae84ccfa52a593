`default_nettype none
`include "assert.svh"

/// Merges N sources into one queue of Depth words, in the order in which it takes them, and keeps a
/// place for each source.
///
/// kept_o[i]: a place is kept for source i. It stays so until i has used it, and what i then offers
/// is taken within N cycles, whatever happens behind the queue. So a source that sees kept_o may
/// borrow what others need (a context) before it offers; one that does not must not. The next place
/// is kept as soon as there is one, in the same cycle if there is room. Two cycles from input to
/// output when empty.
module place_queue #(
    parameter int unsigned N = 2,
    parameter int unsigned Width = 8,
    parameter int unsigned Depth = 16,
    localparam int unsigned CountBits = $clog2(Depth) + 1
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    output logic [N-1:0]            kept_o,
    input  wire logic [N-1:0]       in_valid_i,
    output logic [N-1:0]            in_ready_o,
    input  wire logic [N*Width-1:0] in_data_i,
    output logic                    out_valid_o,
    input  wire logic               out_ready_i,
    output logic [Width-1:0]        out_data_o
);
  if (Depth < N) begin : gen_bad_depth
    $fatal(1, "place_queue: a place for each source");
  end

  // free_q: places that are neither taken nor kept.
  logic [N-1:0] kept_q, push, need, keep;
  logic [CountBits-1:0] free_q;
  logic [CountBits:0] count;
  logic [Width-1:0] push_data;
  logic pushing, popping, keeping, queue_ready;

  rr_arbiter #(
      .N(N)
  ) u_push (
      .clk_i,
      .rst_ni,
      .request_i(in_valid_i & kept_q),
      .advance_i(1'b1),
      .grant_o  (push)
  );
  assign in_ready_o = push;
  assign kept_o     = kept_q;
  assign pushing    = push != '0;
  assign popping    = out_valid_o && out_ready_i;

  assign need = (~kept_q | push) & {N{free_q != '0}};
  rr_arbiter #(
      .N(N)
  ) u_keep (
      .clk_i,
      .rst_ni,
      .request_i(need),
      .advance_i(1'b1),
      .grant_o  (keep)
  );
  assign keeping = keep != '0;

  always_comb begin
    push_data = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (push[i]) push_data = push_data | in_data_i[i*Width+:Width];
    end
  end

  always_ff @(posedge clk_i) begin
    kept_q <= (kept_q & ~push) | keep;
    free_q <= free_q - CountBits'(keeping) + CountBits'(popping);
    if (!rst_ni) begin
      kept_q <= '0;
      free_q <= CountBits'(Depth);
    end
  end

  stream_fifo #(
      .Width(Width),
      .Depth(Depth)
  ) u_queue (
      .clk_i,
      .rst_ni,
      .in_valid_i (pushing),
      .in_ready_o (queue_ready),
      .in_data_i  (push_data),
      .out_valid_o,
      .out_ready_i,
      .out_data_o,
      .count_o    (count)
  );

  logic [CountBits:0] kept_count;
  always_comb begin
    kept_count = '0;
    for (int unsigned i = 0; i < N; i++) kept_count = kept_count + (CountBits + 1)'(kept_q[i]);
  end

  `ASSERT(RoomForKept, !pushing || queue_ready)
  `ASSERT(EveryPlaceCounted,
          count + kept_count + (CountBits + 1)'(free_q) == (CountBits + 1)'(Depth))

  `COVER_EACH(NoPlace, N, !kept_q[a] && free_q == '0)
endmodule

`default_nettype wire
