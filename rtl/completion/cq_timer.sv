`default_nettype none
`include "assert.svh"

/// Timers of event moderation, one for each CQ, in microseconds of the nominal clock.
///
/// A start (a pulse; at most one port a cycle) sets the timer of a CQ, whatever it was. It is named
/// on expired_* once, no earlier than `period`, and about 2 us later at most when few expire
/// together (all are looked at once in 256 cycles of cycles_i, and one that finds expired_* taken
/// waits for the next round). A timer is not stopped: whoever takes an expiry knows whether it
/// still waits for one.
///
/// There are rounds from the earliest deadline on alone: rest_o as of qp_timer.
module cq_timer #(
    parameter int unsigned Ports               = 2,
    parameter int unsigned CyclesPerMicrosecond = 250
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic [63:0]          cycles_i,
    output rnic_pkg::rest_t           rest_o,
    input  wire logic [Ports-1:0]     start_valid_i,
    input  wire logic [Ports*8-1:0]   start_cqn_i,
    input  wire logic [Ports*16-1:0]  start_period_i,
    output logic                      expired_valid_o,
    input  wire logic                 expired_ready_i,
    output logic [7:0]                expired_cqn_o
);
  localparam int unsigned Cqs = 2 ** rnic_pkg::CqIndexBits;
  /// Deadlines are in rounds of 256 cycles.
  localparam int unsigned RoundBits = 17;

  logic [RoundBits-1:0] now, now_looked_q, deadline, looked, since;
  logic [7:0] slot, looking_q, cqn;
  logic [15:0] period;
  logic [23:0] cycles;
  logic [Cqs-1:0] running_q;
  logic start, look_valid_q, over, runs, sweeping;
  assign {now, slot} = cycles_i[RoundBits+7:0];

  always_comb begin
    start  = 1'b0;
    cqn    = '0;
    period = '0;
    for (int unsigned i = 0; i < Ports; i++) begin
      if (start_valid_i[i]) begin
        start  = 1'b1;
        cqn    = start_cqn_i[i*8+:8];
        period = start_period_i[i*16+:16];
      end
    end
  end

  // Rounded up, from the next look at the CQ.
  assign cycles   = 24'(period) * 24'(CyclesPerMicrosecond) + 24'd255;
  assign deadline = now + RoundBits'(cycles[23:8]) + RoundBits'(slot >= cqn);

  ram_1r1w #(
      .Width(RoundBits),
      .Depth(Cqs)
  ) u_deadlines (
      .clk_i,
      .wr_en_i  (start),
      .wr_addr_i(cqn),
      .wr_data_i(deadline),
      .rd_en_i  (sweeping),
      .rd_addr_i(slot),
      .rd_data_o(looked)
  );

  // A CQ a cycle; the deadline of one that is started in the meantime is looked at in the next
  // round. Differences modulo 2^17: bit 16 set is "not yet".
  assign since = now_looked_q - looked;
  assign over  = look_valid_q && running_q[looking_q] && !since[RoundBits-1] &&
                 !(start && cqn == looking_q) && !expired_valid_o;

  // ---- When the next round begins; the last look of one falls into the next ---------------------
  logic [RoundBits-1:0] earliest, awaits;
  assign runs = running_q != '0;
  earliest_deadline #(
      .Bits(RoundBits)
  ) u_earliest (
      .clk_i,
      .rst_ni,
      .now_i          (now),
      .runs_i         (runs),
      .set_valid_i    (start),
      .set_deadline_i (deadline),
      .left_valid_i   (look_valid_q && running_q[looking_q] && !over),
      .left_deadline_i(looked),
      .first_i        (slot == '0),
      .last_i         (slot == '0),
      .sweeping_o     (sweeping),
      .earliest_o     (earliest)
  );
  assign awaits = now - earliest;

  always_ff @(posedge clk_i) begin
    if (sweeping) begin
      looking_q    <= slot;
      now_looked_q <= now;
    end
    // One that is started as it is read shows its old deadline.
    look_valid_q <= sweeping && !(start && cqn == slot);
    if (expired_ready_i) expired_valid_o <= 1'b0;
    if (over) begin
      expired_valid_o      <= 1'b1;
      expired_cqn_o        <= looking_q;
      running_q[looking_q] <= 1'b0;
    end
    if (start) running_q[cqn] <= 1'b1;
    if (!rst_ni) begin
      running_q       <= '0;
      look_valid_q    <= 1'b0;
      expired_valid_o <= 1'b0;
    end
  end
  assign rest_o.busy     = sweeping || look_valid_q || expired_valid_o;
  assign rest_o.timed    = runs;
  assign rest_o.deadline = {cycles_i[42:8] - {{18{awaits[RoundBits-1]}}, awaits}, 8'd0};

  logic unused_bits;
  assign unused_bits = ^{since[RoundBits-2:0], awaits[RoundBits-2:0], cycles[7:0],
                         cycles_i[63:RoundBits+8]};

  `ASSERT(OneStart, $onehot0(start_valid_i))
  `ASSERT_HOLD(ExpiredHold, expired_valid_o, expired_ready_i, expired_cqn_o)
endmodule

`default_nettype wire
