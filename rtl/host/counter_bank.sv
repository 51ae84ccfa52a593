`default_nettype none
`include "assert.svh"

/// Event counters: 64 bits each, of which only the accumulators are flip-flops.
///
/// Every event adds to its small accumulator. When one is half full a sweep goes round the counters
/// and moves the accumulators into a RAM. A read of a counter is such a move, out of turn, so that
/// it gives the exact count. Sweep and reads take turns of two cycles each: neither starves the
/// other, and a sweep takes at most 4 * NumCounters cycles, or 128 more after reset, while the RAM
/// is cleared. An event every cycle therefore fits W bits. rd_valid_i is held with its index until
/// rd_done_o, which comes with the count. busy_o: it works without events and reads.
module counter_bank (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    output logic             ready_o,
    output logic        busy_o,
    input  wire logic [rnic_pkg::NumCounters-1:0] event_i,
    input  wire logic        rd_valid_i,
    input  wire logic [6:0]  rd_index_i,
    output logic             rd_done_o,
    output logic [63:0]      rd_count_o
);
  localparam int unsigned N = rnic_pkg::NumCounters;
  localparam int unsigned W = 10;

  if (N > 128 || 4 * N + 4 >= (1 << (W - 1))) begin : gen_too_many
    $fatal(1, "counter_bank: the register page has room for 128 counters, a half of W for a sweep");
  end

  // Turn: 0 fetch of the sweep (count and accumulator), 1 its update; 2 and 3 the same of a read.
  logic [1:0] turn_q;
  logic [6:0] sweep_q, index;
  logic clearing_q, fetch, update, reading_q;
  logic [N*W-1:0] accumulator_q;
  logic [W-1:0] taken, taken_q;
  logic overflow_q, moves, half;
  logic [6:0] to_sweep_q;  // Accumulators that the sweep has before it
  logic [63:0] stored, sum;

  always_comb begin
    half = 1'b0;
    for (int unsigned i = 0; i < N; i++) half = half | accumulator_q[i*W+W-1];
  end
  assign busy_o  = moves || half;
  assign moves   = clearing_q || to_sweep_q != '0 || rd_valid_i || turn_q != '0;
  assign ready_o = !clearing_q;
  assign index   = turn_q[1] ? rd_index_i : sweep_q;
  assign fetch   = moves && !clearing_q && !turn_q[0] && (!turn_q[1] || rd_valid_i);
  assign update  = !clearing_q && turn_q[0] && (!turn_q[1] || reading_q);

  always_comb begin
    taken = '0;
    if (fetch) begin
      for (int unsigned i = 0; i < N; i++) begin
        if (index == 7'(i)) taken = taken | accumulator_q[i*W+:W];
      end
    end
  end

  // Only the low 16 bits are added; each group above goes up by one when all below it carry.
  logic [16:0] low;
  assign low        = {1'b0, stored[15:0]} + 17'(taken_q);
  assign sum[15:0]  = low[15:0];
  assign sum[31:16] = low[16] ? stored[31:16] + 16'd1 : stored[31:16];
  assign sum[47:32] = (low[16] && (&stored[31:16])) ? stored[47:32] + 16'd1 : stored[47:32];
  assign sum[63:48] = (low[16] && (&stored[47:16])) ? stored[63:48] + 16'd1 : stored[63:48];

  assign rd_done_o  = update && turn_q[1];
  assign rd_count_o = sum;

  ram_1r1w #(
      .Width(64),
      .Depth(128)
  ) u_counts (
      .clk_i,
      .wr_en_i  (clearing_q || update),
      .wr_addr_i(clearing_q ? sweep_q : index),
      .wr_data_i(clearing_q ? 64'd0 : sum),
      .rd_en_i  (fetch),
      .rd_addr_i(index),
      .rd_data_o(stored)
  );

  always_ff @(posedge clk_i) begin
    turn_q    <= moves ? turn_q + 1'b1 : 2'd0;
    if (half && to_sweep_q == '0) to_sweep_q <= 7'(N);
    else if (update && !turn_q[1] && to_sweep_q != '0) to_sweep_q <= to_sweep_q - 1'b1;
    reading_q <= fetch && turn_q[1];
    taken_q   <= taken;
    if (clearing_q) begin
      sweep_q    <= sweep_q + 1'b1;
      clearing_q <= sweep_q != 7'd127;
    end else if (update && !turn_q[1]) begin
      sweep_q <= (sweep_q == 7'(N - 1)) ? 7'd0 : sweep_q + 1'b1;
    end
    if (event_i != '0) begin
      for (int unsigned i = 0; i < N; i++) begin
        if (event_i[i]) begin
          accumulator_q[i*W+:W] <= accumulator_q[i*W+:W] + 1'b1;
          if (&accumulator_q[i*W+:W] && !(fetch && index == 7'(i))) overflow_q <= 1'b1;
        end
      end
    end
    if (fetch) begin
      for (int unsigned i = 0; i < N; i++) begin
        if (index == 7'(i)) accumulator_q[i*W+:W] <= W'(event_i[i]);
      end
    end
    if (!rst_ni) begin
      accumulator_q <= '0;
      overflow_q    <= 1'b0;
      turn_q        <= '0;
      to_sweep_q    <= '0;
      reading_q     <= 1'b0;
      sweep_q       <= '0;
      clearing_q    <= 1'b1;
    end
  end

  // For ReadInTime.
  logic [3:0] cycles_q;
  always_ff @(posedge clk_i) begin
    cycles_q <= (rd_valid_i && !rd_done_o && !clearing_q && rst_ni) ? cycles_q + 1'b1 : '0;
  end

  `ASSERT(NoOverflow, !overflow_q)
  `ASSERT(ReadInTime, cycles_q < 4'd8)
  `ASSERT(ReadHeld, !reading_q || rd_valid_i)

  `COVER_EACH(Counted, N, event_i[a])
endmodule

`default_nettype wire
