`default_nettype none
`include "assert.svh"

/// Tags of the DMA read engine: free list, which are on their way, and time-outs.
///
/// A tag is {generation, slot}: 64 slots, so 64 reads at once, and 2 bits that tell a slot's old
/// reads from its present one.
/// A read that timed out or went wrong leaves its tag `dirty`: completions for it may still come.
/// Its slot goes on with the next generation, whose completions cannot be mistaken for those; if
/// that one is dirty too the slot is parked. The completion that ends a dirty read makes the tag
/// clean and takes a parked slot back into service. A slot that has been parked for Quarantine
/// time-outs goes on with its oldest tag: what has not come by then is taken to be lost.
///
/// Without extended tags (ext_tag_i 0; PCI Express base specification 2.2.6.2) a tag has five bits:
/// only the first 32 slots are used, in their first generation, and one whose tag is dirty is
/// parked. ext_tag_i changes only while no read is on its way (7.5.3.4).
///
/// dma_read_timeout says which read is overdue. While timeout_disable_i is 1 (Completion Timeout
/// Disable, 7.5.3.16) none is, and the clock of time-outs and quarantine stands still. While no
/// slot is parked nothing happens here by itself between the deadlines of rest_o.
module dma_read_tags #(
    parameter int unsigned Quarantine = 16
) (
    input  wire logic         clk_i,
    input  wire logic         rst_ni,
    input  wire logic [63:0]  cycles_i,
    input  wire logic [29:0]  timeout_i,        // In cycles; at most 2^30 - 1024, at least 1000
    input  wire logic         timeout_disable_i,
    input  wire logic         ext_tag_i,        // Extended Tag Field Enable
    output logic              tag_valid_o,
    input  wire logic         tag_ready_i,
    output logic [7:0]        tag_o,
    input  wire logic         sent_i,           // The read with this tag has left
    input  wire logic [5:0]   sent_slot_i,
    output logic [63:0]       outstanding_o,    // By slot
    input  wire logic         finish_i,         // The read of this tag has ended
    input  wire logic [7:0]   finish_tag_i,
    input  wire logic         finish_dirty_i,   // and more completions may come
    input  wire logic         late_i,           // A stray read ended; never with finish
    input  wire logic [7:0]   late_tag_i,
    output logic              expire_valid_o,   // The read of this slot is overdue
    input  wire logic         expire_ready_i,
    output logic [5:0]        expire_slot_o,
    output logic [6:0]        parked_o,
    output rnic_pkg::rest_t   rest_o
);
  localparam int unsigned Slots = 64;

  logic [Slots-1:0] outstanding_q, parked_q;
  logic [4*Slots-1:0] dirty_q;
  logic [6:0] fill_q, parked_count_q;
  logic filling, push, unpark, park, release_aged, next_dirty, take_upper, taken;
  logic [1:0] free_ready, free_valid, give;
  logic [7:0] push_tag, next_tag, aged_tag;
  logic [15:0] free_tag;
  logic [13:0] free_count;

  assign filling    = !fill_q[6];
  assign next_tag   = {finish_tag_i[7:6] + {1'b0, ext_tag_i}, finish_tag_i[5:0]};
  assign next_dirty = dirty_q[next_tag] || !ext_tag_i;
  assign park       = finish_i && finish_dirty_i && next_dirty;
  assign unpark     = late_i && dirty_q[late_tag_i] && parked_q[late_tag_i[5:0]];
  assign push       = filling || unpark || release_aged || (finish_i && !park);

  always_comb begin
    push_tag = {2'd0, fill_q[5:0]};
    if (finish_i) push_tag = finish_dirty_i ? next_tag : finish_tag_i;
    if (unpark) push_tag = late_tag_i;
    if (release_aged) push_tag = aged_tag;
  end

  // Free slots, the lower and the upper half apart; in turn, where both may be used.
  for (genvar g = 0; g < 2; g++) begin : gen_half
    stream_fifo #(
        .Width(8),
        .Depth(Slots / 2)
    ) u_free (
        .clk_i,
        .rst_ni,
        .in_valid_i (push && push_tag[5] == 1'(g)),
        .in_ready_o (free_ready[g]),
        .in_data_i  (push_tag),
        .out_valid_o(free_valid[g]),
        .out_ready_i(give[g] && taken),
        .out_data_o (free_tag[8*g+:8]),
        .count_o    (free_count[7*g+:7])
    );
  end
  rr_arbiter #(
      .N(2)
  ) u_half (
      .clk_i,
      .rst_ni,
      .request_i(free_valid & {ext_tag_i, 1'b1}),
      .advance_i(taken),
      .grant_o  (give)
  );
  assign take_upper  = give[1];
  assign taken       = tag_ready_i && !filling;
  assign tag_o       = take_upper ? free_tag[15:8] :
                                    {free_tag[7:6] & {2{ext_tag_i}}, free_tag[5:0]};
  assign tag_valid_o = give != '0 && !filling;
  assign outstanding_o = outstanding_q;
  assign parked_o      = parked_count_q;

  always_ff @(posedge clk_i) begin
    if (filling) fill_q <= fill_q + 7'd1;
    if (late_i) dirty_q[late_tag_i] <= 1'b0;
    if (release_aged) dirty_q[aged_tag] <= 1'b0;
    if (finish_i) begin
      outstanding_q[finish_tag_i[5:0]] <= 1'b0;
      if (finish_dirty_i) dirty_q[finish_tag_i] <= 1'b1;
    end
    if (sent_i) outstanding_q[sent_slot_i] <= 1'b1;
    if (park) parked_q[finish_tag_i[5:0]] <= 1'b1;
    if (unpark) parked_q[late_tag_i[5:0]] <= 1'b0;
    if (release_aged) parked_q[aged_tag[5:0]] <= 1'b0;
    parked_count_q <= parked_count_q + {6'd0, park} - {6'd0, unpark || release_aged};
    if (!rst_ni) begin
      fill_q         <= '0;
      outstanding_q  <= '0;
      parked_q       <= '0;
      dirty_q        <= '0;
      parked_count_q <= '0;
    end
  end

  // Time-outs, and the looks at the slots, which go on while one is parked.
  logic scan_valid, overdue, expire_q;
  logic [5:0] scan, look, expire_slot_q;
  rnic_pkg::rest_t timeout_rest;

  dma_read_timeout u_timeout (
      .clk_i,
      .rst_ni,
      .cycles_i,
      .timeout_i,
      .disable_i    (timeout_disable_i),
      .keep_i       (parked_count_q != '0),
      .outstanding_i(outstanding_q),
      .sent_i,
      .sent_slot_i,
      .scan_valid_o (scan_valid),
      .scan_o       (scan),
      .look_o       (look),
      .overdue_o    (overdue),
      .rest_o       (timeout_rest)
  );
  always_comb begin
    rest_o      = timeout_rest;
    rest_o.busy = timeout_rest.busy || filling || expire_q;
  end

  always_ff @(posedge clk_i) begin
    if (expire_q) begin
      expire_q <= !expire_ready_i;
    end else begin
      expire_q <= overdue;
      if (overdue) expire_slot_q <= look;
    end
    if (!rst_ni) expire_q <= 1'b0;
  end

  // Quarantine: counted in time-outs. The slot keeps when it was parked and its oldest generation.
  localparam int unsigned TickBits = $clog2(Quarantine) + 1;
  logic [29:0] divide_q;
  logic [TickBits-1:0] tick_q, parked_tick, parked_for;
  logic [1:0] parked_gen;
  logic was_parked_q;

  ram_1r1w #(
      .Width(2 + TickBits),
      .Depth(Slots)
  ) u_parked (
      .clk_i,
      .wr_en_i  (park),
      .wr_addr_i(finish_tag_i[5:0]),
      .wr_data_i({next_tag[7:6], tick_q}),
      .rd_en_i  (scan_valid),
      .rd_addr_i(scan),
      .rd_data_o({parked_gen, parked_tick})
  );

  assign parked_for   = tick_q - parked_tick;
  assign aged_tag     = {parked_gen, look};
  assign release_aged = was_parked_q && parked_q[look] && parked_for > TickBits'(Quarantine) &&
      !finish_i && !late_i && !filling;

  always_ff @(posedge clk_i) begin
    was_parked_q <= scan_valid && parked_q[scan];
    if (!timeout_disable_i && parked_count_q != '0) begin
      divide_q <= divide_q >= timeout_i ? '0 : divide_q + 1'b1;
      tick_q   <= tick_q + TickBits'(divide_q >= timeout_i);
    end
    if (!rst_ni) begin
      was_parked_q <= 1'b0;
      divide_q     <= '0;
      tick_q       <= '0;
    end
  end

  assign expire_valid_o = expire_q;
  assign expire_slot_o  = expire_slot_q;

  `ASSERT(SlotIsFreeOnce, free_count[6:0] <= 7'(Slots / 2) && free_count[13:7] <= 7'(Slots / 2))
  `ASSERT(FreeListHasRoom, !push || free_ready[push_tag[5]])
  `ASSERT(FiveBits, ext_tag_i || !tag_valid_o || tag_o[7:5] == '0)
  `ASSERT(OneAtATime, !(finish_i && late_i))
  `ASSERT(FinishWasOut, !finish_i || outstanding_q[finish_tag_i[5:0]])
  `ASSERT(SentOnce, !sent_i || !outstanding_q[sent_slot_i])
endmodule

`default_nettype wire
