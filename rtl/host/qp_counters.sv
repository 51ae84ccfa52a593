`default_nettype none
`include "assert.svh"

/// Counters of each QP (QpCounter): 32 bits, which stay at their maximum, in one RAM.
///
/// Source s tells with event_i[s] which counters of QP event_qp_i[s] go up by one, in any cycle,
/// and never waits: its events queue here, and one counter is updated every cycle. That is more
/// than all sources can tell together in the long run (two counters in the six cycles of a packet,
/// one more when its payload has no place, one for the NAK that answers it, one in the seven cycles
/// of a retry), so the queues hold a burst and are empty again and again.
///
/// query_valid_i is held, with the QP and half of its counters that is asked for, until
/// query_done_o, which comes with the counts: counter query_upper_i * QueryCounters + i in bits 32
/// i upward. It waits until no event waits, so that every event told before it is in the counts,
/// and with query_clear_i none is lost and none is counted twice. Nothing is cleared by reset: the
/// counters of a QP mean something once they have been cleared.
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
  localparam int unsigned Width = 8 + N;
  localparam int unsigned Depth = 16;
  localparam logic [4:0] LastCount = 5'(QueryCounters - 1);

  // ---- Events wait ------------------------------------------------------------------------------
  logic [Sources-1:0] told, room, waits, queued, queue_ready;
  logic [Sources*Width-1:0] queue_data;
  logic entry_valid, entry_ready, unused_last;
  logic [Width-1:0] entry;
  logic [$clog2(Sources)-1:0] unused_source;

  for (genvar s = 0; s < Sources; s++) begin : gen_source
    logic [$clog2(Depth)+1:0] count;
    assign told[s]  = event_i[s*N+:N] != '0;
    assign waits[s] = count != '0;
    stream_fifo #(
        .Width(Width),
        .Depth(Depth)
    ) u_queue (
        .clk_i,
        .rst_ni,
        .in_valid_i (told[s]),
        .in_ready_o (room[s]),
        .in_data_i  ({event_qp_i[s*8+:8], event_i[s*N+:N]}),
        .out_valid_o(queued[s]),
        .out_ready_i(queue_ready[s]),
        .out_data_o (queue_data[s*Width+:Width]),
        .count_o    (count)
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

  // ---- One counter a cycle: of the entry in front, or of the query ------------------------------
  // done_q: counters of the entry that have gone up.
  logic [N-1:0] left, lowest, done_q;
  logic [4:0] lowest_index, count_q;
  logic querying_q, reading_q, ended_q, start, step, last_left;
  assign left      = entry[N-1:0] & ~done_q;
  assign lowest    = left & (~left + 1'b1);
  assign last_left = left == lowest;
  always_comb begin
    lowest_index = '0;
    for (int unsigned i = 0; i < N; i++) begin
      if (lowest[i]) lowest_index = lowest_index | 5'(i);
    end
  end
  assign step        = entry_valid && !querying_q;
  assign entry_ready = !querying_q && last_left;
  assign start       = query_valid_i && !(querying_q || reading_q || ended_q) && told == '0 &&
                       waits == '0 && !entry_valid;

  // ---- Fetch, then update -----------------------------------------------------------------------
  logic fetch, update_q, counting_q;
  logic [12:0] addr, addr_q, written_addr_q;
  logic [31:0] stored, value, next, written_q;
  logic written_valid_q;
  assign fetch = step || querying_q;
  assign addr  = querying_q ? {query_qp_i, query_upper_i ? count_q + 5'(QueryCounters) : count_q}
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
    done_q          <= (step && !last_left) ? done_q | lowest : '0;
    querying_q      <= start || (querying_q && count_q != LastCount);
    count_q         <= querying_q ? count_q + 1'b1 : '0;
    addr_q          <= addr;
    update_q        <= step || (querying_q && query_clear_i);
    counting_q      <= step;
    reading_q       <= querying_q;
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

  `ASSERT(RoomForEvent, (told & ~room) == '0)
  `ASSERT(QueryHeld, !(querying_q || reading_q || ended_q) || query_valid_i)
endmodule

`default_nettype wire
