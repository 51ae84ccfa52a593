`default_nettype none
`include "assert.svh"

/// Timers of event moderation, one for each CQ, in microseconds of the nominal clock.
///
/// A start (a pulse; at most one port a cycle) sets the timer of a CQ, whatever it was. It is named
/// on expired_* once, no earlier than `period`, and about 2 us later at most when few expire
/// together (all are looked at once in 256 cycles, and one that finds expired_* taken waits for the
/// next round). A timer is not stopped: whoever takes an expiry knows whether it still waits for
/// one.
module cq_timer #(
    parameter int unsigned Ports               = 2,
    parameter int unsigned CyclesPerMicrosecond = 250
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic [Ports-1:0]     start_valid_i,
    input  wire logic [Ports*8-1:0]   start_cqn_i,
    input  wire logic [Ports*16-1:0]  start_period_i,
    output logic                      expired_valid_o,
    input  wire logic                 expired_ready_i,
    output logic [7:0]                expired_cqn_o
);
  localparam int unsigned Cqs = 2 ** rnic_pkg::CqIndexBits;
  localparam int unsigned TickBits = $clog2(CyclesPerMicrosecond);

  logic [TickBits-1:0] tick_q;
  logic [16:0] now_q, deadline, looked;
  logic [15:0] period;
  logic [Cqs-1:0] running_q;
  logic [7:0] scan_q, looking_q, cqn;
  logic start, look_valid_q, over;

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

  // The microsecond under way is not counted.
  assign deadline = now_q + {1'b0, period} + 17'd1;

  ram_1r1w #(
      .Width(17),
      .Depth(Cqs)
  ) u_deadlines (
      .clk_i,
      .wr_en_i  (start),
      .wr_addr_i(cqn),
      .wr_data_i(deadline),
      .rd_en_i  (1'b1),
      .rd_addr_i(scan_q),
      .rd_data_o(looked)
  );

  // A CQ a cycle; the deadline of one that is started in the meantime is looked at in the next
  // round. Differences modulo 2^17: bit 16 set is "not yet".
  logic [16:0] since;
  assign since = now_q - looked;
  assign over  = look_valid_q && running_q[looking_q] && !since[16] &&
                 !(start && cqn == looking_q) && !expired_valid_o;

  always_ff @(posedge clk_i) begin
    tick_q       <= (tick_q == TickBits'(CyclesPerMicrosecond - 1)) ? '0 : tick_q + 1'b1;
    if (tick_q == TickBits'(CyclesPerMicrosecond - 1)) now_q <= now_q + 1'b1;
    scan_q       <= scan_q + 1'b1;
    looking_q    <= scan_q;
    look_valid_q <= !(start && cqn == scan_q);
    if (expired_ready_i) expired_valid_o <= 1'b0;
    if (over) begin
      expired_valid_o      <= 1'b1;
      expired_cqn_o        <= looking_q;
      running_q[looking_q] <= 1'b0;
    end
    if (start) running_q[cqn] <= 1'b1;
    if (!rst_ni) begin
      tick_q          <= '0;
      now_q           <= '0;
      scan_q          <= '0;
      running_q       <= '0;
      look_valid_q    <= 1'b0;
      expired_valid_o <= 1'b0;
    end
  end

  logic unused_since;
  assign unused_since = ^since[15:0];

  `ASSERT(OneStart, $onehot0(start_valid_i))
  `ASSERT_HOLD(ExpiredHold, expired_valid_o, expired_ready_i, expired_cqn_o)
endmodule

`default_nettype wire
