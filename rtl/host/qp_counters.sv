`default_nettype none
`include "assert.svh"

/// Counters of each QP (QpCounter): 32 bits, which stay at their maximum, in one RAM.
///
/// Source s tells with event_i[s] which counters of QP event_qp_i[s] go up by one, in any cycle,
/// and never waits: its events queue here, and one counter is updated every cycle, or every other
/// cycle while a query reads. That is as much as lasts: a counter in two cycles, from a flood of
/// packets that rx_check drops (it takes two cycles for each packet of one QP, and for each copy of
/// a datagram to a group). The queues hold what comes faster in a burst. So an event may be in
/// here at any time, for as long as a stranger sends.
///
/// query_valid_i is held, with the QP and half of its counters that is asked for, until
/// query_done_o, which comes with the counts: counter query_upper_i * QueryCounters + i in bits 32
/// i upward. Every event that was told before the query is in the counts; it waits for those
/// events, and for at most as many of later ones (AnsweredInTime). Whether a later event is in the
/// counts is decided for each counter separately; with query_clear_i none is lost and none is
/// counted twice. Nothing is cleared by reset: the counters of a QP mean something once they have
/// been cleared.
module qp_counters #(
    parameter int unsigned Sources = 5,
    localparam int unsigned QueryCounters = rnic_pkg::QpCounters / 2
) (
    input  wire logic                        clk_i,
    input  wire logic                        rst_ni,
    input  wire logic [Sources*rnic_pkg::QpCounters-1:0] event_i,
    input  wire logic [Sources*8-1:0]        event_qp_i,
    input  wire logic                        query_valid_i,
    input  wire logic [7:0]                  query_qp_i,
    input  wire logic                        query_upper_i,
    input  wire logic                        query_clear_i,
    output logic                             query_done_o,
    output logic [QueryCounters*32-1:0]      query_counts_o
);
  localparam int unsigned N = rnic_pkg::QpCounters;
  localparam int unsigned Width = 9 + N;
  localparam int unsigned Depth = 16;
  // Events inside at most: of each source in its queue and on its output, in the arbiter.
  localparam int unsigned Inside = Sources * (Depth + 1) + 2;
  localparam int unsigned InsideBits = $clog2(Inside + 1);
  // All of them with all counters, and the query in every other cycle.
  localparam int unsigned Longest = Inside * N + 2 * QueryCounters + 6;
  localparam logic [4:0] LastCount = 5'(QueryCounters - 1);

  logic querying_q, reading_q, ended_q;

  // ---- Events wait ------------------------------------------------------------------------------
  // Each event has the parity of the number of queries that were asked before it.
  logic [Sources-1:0] told, room, queued, queue_ready;
  logic [Sources*Width-1:0] queue_data;
  logic entry_valid, entry_ready, unused_last, parity_q;
  logic [Width-1:0] entry;
  logic [$clog2(Sources)-1:0] unused_source;

  for (genvar s = 0; s < Sources; s++) begin : gen_source
    logic [$clog2(Depth)+1:0] unused_count;
    assign told[s] = event_i[s*N+:N] != '0;
    stream_fifo #(
        .Width(Width),
        .Depth(Depth)
    ) u_queue (
        .clk_i,
        .rst_ni,
        .in_valid_i (told[s]),
        .in_ready_o (room[s]),
        .in_data_i  ({parity_q, event_qp_i[s*8+:8], event_i[s*N+:N]}),
        .out_valid_o(queued[s]),
        .out_ready_i(queue_ready[s]),
        .out_data_o (queue_data[s*Width+:Width]),
        .count_o    (unused_count)
    );
  end

  stream_arbiter #(
      .N    (Sources),
      .Width(Width)
  ) u_arbiter (
      .clk_i,
      .rst_ni,
      .in_valid_i  (queued),
      .in_ready_o  (queue_ready),
      .in_last_i   ({Sources{1'b1}}),
      .in_data_i   (queue_data),
      .out_valid_o (entry_valid),
      .out_ready_i (entry_ready),
      .out_last_o  (unused_last),
      .out_data_o  (entry),
      .out_source_o(unused_source)
  );

  // ---- What was told before the query -----------------------------------------------------------
  // inside_q: events in here. before_q: those of them that were told before the query.
  logic asks, waiting_q, counted, start;
  logic [InsideBits-1:0] total, inside_q, before_q;
  assign asks    = query_valid_i && !(waiting_q || querying_q || reading_q || ended_q);
  assign counted = entry_valid && entry_ready;
  assign total   = inside_q + InsideBits'($countones(told)) - InsideBits'(counted);
  assign start   = waiting_q && before_q == '0;
  always_ff @(posedge clk_i) begin
    inside_q  <= total;
    waiting_q <= asks || (waiting_q && !start);
    if (asks) begin
      parity_q <= !parity_q;
      before_q <= total;
    end else if (counted && entry[Width-1] != parity_q) begin
      before_q <= before_q - 1'b1;
    end
    if (!rst_ni) begin
      inside_q  <= '0;
      waiting_q <= 1'b0;
      parity_q  <= 1'b0;
    end
  end

  // ---- One counter a cycle: of the entry in front, or of the query, in turns --------------------
  // done_q: counters of the entry that have gone up.
  logic [N-1:0] left, lowest, done_q;
  logic [4:0] lowest_index, count_q;
  logic read, step, last_left;
  assign left      = entry[N-1:0] & ~done_q;
  assign lowest    = left & (~left + 1'b1);
  assign last_left = left == lowest;
  always_comb begin
    lowest_index = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (lowest[i]) lowest_index = lowest_index | 5'(i);
    end
  end
  assign read        = querying_q && !(entry_valid && reading_q);
  assign step        = entry_valid && !read;
  assign entry_ready = !read && last_left;

  // ---- Fetch, then update -----------------------------------------------------------------------
  logic fetch, update_q, counting_q;
  logic [12:0] addr, addr_q, written_addr_q;
  logic [31:0] stored, value, next, written_q;
  logic written_valid_q;
  assign fetch = step || read;
  assign addr  = read ? {query_qp_i, query_upper_i ? count_q + 5'(QueryCounters) : count_q}
                      : {entry[N+:8], lowest_index};
  // What was written while this one was being read.
  assign value = (written_valid_q && written_addr_q == addr_q) ? written_q : stored;
  always_comb begin
    next = value;
    if (counting_q && value != '1) next = value + 1'b1;
    if (!counting_q) next = '0;
  end

  ram_1r1w #(
      .Width(32),
      .Depth(8192)
  ) u_counts (
      .clk_i,
      .wr_en_i  (update_q),
      .wr_addr_i(addr_q),
      .wr_data_i(next),
      .rd_en_i  (fetch),
      .rd_addr_i(addr),
      .rd_data_o(stored)
  );

  always_ff @(posedge clk_i) begin
    if (step) done_q <= last_left ? '0 : done_q | lowest;
    querying_q      <= start || (querying_q && !(read && count_q == LastCount));
    if (read || !querying_q) count_q <= read ? count_q + 1'b1 : '0;
    addr_q          <= addr;
    update_q        <= step || (read && query_clear_i);
    counting_q      <= step;
    reading_q       <= read;
    ended_q         <= reading_q && !querying_q;
    if (reading_q) query_counts_o <= {value, query_counts_o[QueryCounters*32-1:32]};
    written_valid_q <= update_q;
    written_addr_q  <= addr_q;
    written_q       <= next;
    if (!rst_ni) begin
      done_q          <= '0;
      querying_q      <= 1'b0;
      update_q        <= 1'b0;
      reading_q       <= 1'b0;
      ended_q         <= 1'b0;
      written_valid_q <= 1'b0;
    end
  end
  assign query_done_o = ended_q;

  // For AnsweredInTime.
  logic [$clog2(Longest+1)-1:0] cycles_q;
  always_ff @(posedge clk_i) cycles_q <= (query_valid_i && !ended_q) ? cycles_q + 1'b1 : '0;

  `ASSERT(RoomForEvent, (told & ~room) == '0)
  `ASSERT(QueryHeld, !(waiting_q || querying_q || reading_q || ended_q) || query_valid_i)
  `ASSERT(AllInside, inside_q <= InsideBits'(Inside))
  `ASSERT(AnsweredInTime, !query_valid_i || cycles_q < ($clog2(Longest + 1))'(Longest))
endmodule

`default_nettype wire
