`default_nettype none
`include "assert.svh"

/// Gives queue pairs their turns, round robin, one at a time to one engine.
///
/// A QP is runnable once an event has woken it. It is offered on run_*, and from then on it is busy
/// until the engine reports done for it; `again` makes it runnable at once. An event that arrives
/// while the QP is busy is kept: the QP runs once more, so whatever changed after the engine looked
/// is seen. Events cost nothing and may come on all ports in every cycle. While forget_valid_i is
/// high, events of that QP are dropped; forget_busy_o says whether it still has a turn.
module qp_scheduler #(
    parameter int unsigned Wakes = 2,
    localparam int unsigned QpBits = 8,
    localparam int unsigned Qps = 1 << QpBits,
    localparam int unsigned Groups = 16
) (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic [Wakes-1:0]        wake_valid_i,
    input  wire logic [Wakes*QpBits-1:0] wake_qp_i,
    output logic                         run_valid_o,
    input  wire logic                    run_ready_i,
    output logic [QpBits-1:0]            run_qp_o,
    input  wire logic                    done_valid_i,
    input  wire logic [QpBits-1:0]       done_qp_i,
    input  wire logic                    done_again_i,
    input  wire logic                    forget_valid_i,
    input  wire logic [QpBits-1:0]       forget_qp_i,
    output logic                         forget_busy_o
);
  if (QpBits != 32'd8 || rnic_pkg::QpIndexBits != QpBits) begin : gen_bad_size
    $fatal(1, "qp_scheduler: the two-level choice is built for 256 queue pairs");
  end

  logic [Qps-1:0] want_q, busy_q, want_d, busy_d, candidates;
  logic run_valid_q, pick;
  logic [QpBits-1:0] run_qp_q, pick_qp;

  // Two levels of 16 keep the choice shallow: first what is left of the group of the last winner,
  // then the next groups.
  logic [Groups-1:0] group_any, later_groups, current, chosen;
  logic [3:0] group, member;
  logic stay;
  assign candidates = want_q & ~busy_q;
  always_comb begin
    for (int unsigned g = 0; g < Groups; g++) begin
      group_any[g]    = candidates[g*16+:16] != '0;
      later_groups[g] = group_any[g] && g > 32'(run_qp_q[7:4]);
    end
    current = candidates[{run_qp_q[7:4], 4'd0}+:16];
    for (int unsigned i = 0; i < 16; i++) begin
      if (i <= 32'(run_qp_q[3:0])) current[i] = 1'b0;
    end
    stay  = current != '0;
    group = run_qp_q[7:4];
    if (!stay) begin
      for (int g = Groups - 1; g >= 0; g--) begin
        if (group_any[g]) group = 4'(g);
      end
      for (int g = Groups - 1; g >= 0; g--) begin
        if (later_groups[g]) group = 4'(g);
      end
    end
    chosen = stay ? current : candidates[{group, 4'd0}+:16];
    member = '0;
    for (int i = 15; i >= 0; i--) begin
      if (chosen[i]) member = 4'(i);
    end
  end
  assign pick    = group_any != '0 && (!run_valid_q || run_ready_i);
  assign pick_qp = {group, member};

  // An event wins over the dispatch of the same cycle: the engine may not see what caused it.
  always_comb begin
    want_d = want_q;
    busy_d = busy_q;
    if (pick) begin
      want_d[pick_qp] = 1'b0;
      busy_d[pick_qp] = 1'b1;
    end
    if (done_valid_i) begin
      busy_d[done_qp_i] = 1'b0;
      if (done_again_i) want_d[done_qp_i] = 1'b1;
    end
    for (int unsigned i = 0; i < Wakes; i++) begin
      if (wake_valid_i[i]) want_d[wake_qp_i[i*QpBits+:QpBits]] = 1'b1;
    end
    if (forget_valid_i) want_d[forget_qp_i] = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    want_q <= want_d;
    busy_q <= busy_d;
    if (pick) run_qp_q <= pick_qp;
    run_valid_q <= pick || (run_valid_q && !run_ready_i);
    if (!rst_ni) begin
      want_q      <= '0;
      busy_q      <= '0;
      run_valid_q <= 1'b0;
      run_qp_q    <= '0;
    end
  end

  assign run_valid_o   = run_valid_q;
  assign run_qp_o      = run_qp_q;
  assign forget_busy_o = busy_q[forget_qp_i];

  `ASSERT_HOLD(RunHold, run_valid_o, run_ready_i, run_qp_o)
  `ASSERT(DoneOfBusy, !done_valid_i || busy_q[done_qp_i])

  // Events of a queue pair that has its turn, gets it, ends it, is forgotten; two at a time.
  `COVER_EACH(WokenWhileBusy, Wakes, wake_valid_i[a] && busy_q[wake_qp_i[a*QpBits+:QpBits]])
  `COVER_EACH(WokenWhenPicked, Wakes,
              wake_valid_i[a] && pick && wake_qp_i[a*QpBits+:QpBits] == pick_qp)
  `COVER_EACH(WokenWhenDone, Wakes,
              wake_valid_i[a] && done_valid_i && wake_qp_i[a*QpBits+:QpBits] == done_qp_i)
  `COVER_EACH(WokenWhenForgotten, Wakes,
              wake_valid_i[a] && forget_valid_i && wake_qp_i[a*QpBits+:QpBits] == forget_qp_i)
  `COVER_PAIRS(WokenTwice, Wakes, wake_valid_i[a] && wake_valid_i[b] &&
               wake_qp_i[a*QpBits+:QpBits] == wake_qp_i[b*QpBits+:QpBits])
endmodule

`default_nettype wire
