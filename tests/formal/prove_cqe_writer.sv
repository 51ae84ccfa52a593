`default_nettype none

/// The ring of a CQ: an entry goes into the slot behind the last one and only when it is free, with
/// the phase of its pass; one that finds the ring full overruns it, with one event, and none comes
/// after it.
module prove_cqe_writer (
    input wire logic               clk_i,
    input wire logic               rst_ni,
    input wire logic               item_valid_i,
    input wire logic               item_is_event_i,
    input wire rnic_pkg::cqe_req_t item_data_i,
    input wire logic               acq_ready_i,
    input wire logic               ctx_valid_i,
    input wire rnic_pkg::cq_ctx_t  ctx_data_i,
    input wire logic               rel_ready_i,
    input wire logic               wr_kept_i,
    input wire logic               wr_ready_i,
    input wire logic               eqe_ready_i
);
  logic item_ready, acq_valid, rel_valid, rel_write, wr_valid, eqe_valid, dead, overran;
  logic [7:0] acq_index;
  rnic_pkg::cq_ctx_t rel_data, ctx_q;
  rnic_pkg::dma_wr_t wr_data;
  rnic_pkg::cqe_t cqe;
  rnic_pkg::eqe_req_t eqe_data;
  logic [2:0] unused_pulses;
  logic [7:0] unused_cqn, unused_qp;
  logic [15:0] unused_period;
  initial assume (!rst_ni);

  cqe_writer u_dut (
      .clk_i,
      .rst_ni,
      .cycles_i       (64'd0),
      .item_valid_i,
      .item_ready_o   (item_ready),
      .item_is_event_i,
      .item_data_i,
      .acq_valid_o    (acq_valid),
      .acq_ready_i,
      .acq_index_o    (acq_index),
      .ctx_valid_i,
      .ctx_data_i,
      .rel_valid_o    (rel_valid),
      .rel_ready_i,
      .rel_write_o    (rel_write),
      .rel_data_o     (rel_data),
      .wr_kept_i,
      .wr_valid_o     (wr_valid),
      .wr_ready_i,
      .wr_data_o      (wr_data),
      .eqe_valid_o    (eqe_valid),
      .eqe_ready_i,
      .eqe_data_o     (eqe_data),
      .timer_valid_o  (unused_pulses[0]),
      .timer_cqn_o    (unused_cqn),
      .timer_period_o (unused_period),
      .qp_dead_valid_o(dead),
      .qp_dead_qp_o   (unused_qp),
      .event_cqe_o    (unused_pulses[1]),
      .event_flushed_o(unused_pulses[2]),
      .event_overrun_o(overran)
  );

  // The item stays until it is taken; the context comes once, after it has been granted; a ring has
  // 2 to 2^22 slots and no more in it than that.
  logic stalled_q, event_q, asked_q, here_q, wrote_q;
  rnic_pkg::cqe_req_t item_q;
  wire logic [23:0] depth_in = 24'd1 << ctx_data_i.log_depth;
  always_comb begin
    assume (!stalled_q || (item_valid_i && item_is_event_i == event_q && item_data_i == item_q));
    assume (!ctx_valid_i || (asked_q && !here_q));
    assume (ctx_data_i.log_depth >= 5'd1 && ctx_data_i.log_depth <= 5'd22);
    assume (ctx_data_i.pi - ctx_data_i.ci <= depth_in);
  end
  always_ff @(posedge clk_i) begin
    stalled_q <= rst_ni && item_valid_i && !item_ready;
    event_q   <= item_is_event_i;
    item_q    <= item_data_i;
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    asked_q <= (asked_q || (acq_valid && acq_ready_i)) && !(rel_valid && rel_ready_i);
    here_q  <= (here_q || ctx_valid_i) && !(rel_valid && rel_ready_i);
    wrote_q <= (wrote_q || (wr_valid && wr_ready_i)) && !(rel_valid && rel_ready_i);
    if (!rst_ni) begin
      asked_q <= 1'b0;
      here_q  <= 1'b0;
      wrote_q <= 1'b0;
    end
  end

  wire logic [23:0] depth = 24'd1 << ctx_q.log_depth;
  wire logic [23:0] number = ctx_q.pi - ctx_q.origin;
  wire logic full = ctx_q.pi - ctx_q.ci == depth;
  wire logic takes = ctx_q.in_use && !ctx_q.overrun && !full && !item_is_event_i;
  wire logic ends = rel_valid && rel_ready_i;
  assign cqe = wr_data.data;
  always_comb begin
    if (rst_ni) begin
      OnlyFree: assert (!wr_valid || (here_q && takes && !wrote_q));
      Slot: assert (!wr_valid ||
                    wr_data.addr == ctx_q.base + {34'd0, number & (depth - 24'd1), 6'd0});
      Whole: assert (!wr_valid || (wr_data.length == 13'd64 && wr_data.last));
      Phase: assert (!wr_valid || cqe.phase == (((number >> ctx_q.log_depth) & 24'd1) == '0));
      Written: assert (!ends || wrote_q == takes);
      Counted: assert (!(ends && takes) || (rel_write && rel_data.pi == ctx_q.pi + 24'd1));
      Nothing: assert (!(ends && !takes && rel_write) || rel_data.pi == ctx_q.pi);
      Overrun: assert (!ends || overran == (ctx_q.in_use && !ctx_q.overrun && full &&
                                            !item_is_event_i));
      Marked: assert (!(ends && overran) || (rel_write && rel_data.overrun));
      Consumer: assert (!(ends && rel_write) || rel_data.ci == ctx_q.ci);
    end
  end
endmodule

`default_nettype wire
