`default_nettype none
`include "assert.svh"

/// Writes CQEs in the order of its input, one at a time: borrow the CQ, write the entry, move the
/// producer index, give the CQ back, and then make the event that a pending arm asks for. An item
/// with is_event set asks only for an event of a QP (EqeType in the opcode), which goes to the EQ
/// of the CQ named. A CQ that is full when an entry comes has overrun: it takes no more entries,
/// its error event answers every arm, and every QP that reports to it from then on is named on
/// qp_dead.
///
/// A CQ is borrowed only while a place for its entry is kept (wr_kept_i, place_queue): nobody waits
/// for our writes to leave in order to ring the doorbell of a CQ (PCI Express base specification
/// 2.4.1).
///
/// An event may be held back by moderation (cq_due): then the CQ's timer is started, if it has one.
/// Slots and phase count from `origin`, so that a ring which ResizeCq gave begins at slot 0, phase
/// 1.
///
/// notified_pi trails pi by less than 2^23 entries and solicited_pi never trails notified_pi, so
/// that "newer than the last event" is inequality, however long nobody asks for events. Entries
/// older than that no longer count as new.
module cqe_writer (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic [63:0]         cycles_i,
    input  wire logic                item_valid_i,
    output logic                     item_ready_o,
    input  wire logic                item_is_event_i,
    input  wire rnic_pkg::cqe_req_t  item_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::cq_ctx_t   ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::cq_ctx_t        rel_data_o,
    input  wire logic                wr_kept_i,
    output logic                     wr_valid_o,
    input  wire logic                wr_ready_i,
    output rnic_pkg::dma_wr_t        wr_data_o,
    output logic                     eqe_valid_o,
    input  wire logic                eqe_ready_i,
    output rnic_pkg::eqe_req_t       eqe_data_o,
    // Starts the timer of the CQ; a pulse
    output logic                     timer_valid_o,
    output logic [7:0]               timer_cqn_o,
    output logic [15:0]              timer_period_o,
    output logic                     qp_dead_valid_o,
    output logic [7:0]               qp_dead_qp_o,
    output logic                     event_cqe_o,
    output logic                     event_flushed_o,
    output logic                     event_overrun_o
);
  // Acquire  asks for the CQ of the item, if there is one, and a place for its entry
  // Wait     for its context
  // Write    hands the entry to DMA, or finds that there is nothing to write
  // Release  gives the context back
  // Event    hands the event to the EQ engine
  typedef enum logic [2:0] {
    StAcquire,
    StWait,
    StWrite,
    StRelease,
    StEvent
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::cq_ctx_t ctx_q, grown;
  rnic_pkg::cqe_t cqe;
  logic [63:0] timestamp_q;
  logic [23:0] depth, next_pi, age;
  logic full, good, overruns, dead, solicits, due, held, fire, start, has_eqe;

  assign depth    = 24'd1 << ctx_q.log_depth;
  assign full     = (ctx_q.pi - ctx_q.ci) == depth;
  assign good     = ctx_q.in_use && !item_is_event_i && !ctx_q.overrun && !full;
  assign overruns = ctx_q.in_use && !item_is_event_i && !ctx_q.overrun && full;
  assign dead     = ctx_q.in_use && !item_is_event_i && (ctx_q.overrun || full);
  assign solicits = item_data_i.status != rnic_pkg::CqeStatusSuccess ||
                    (item_data_i.is_receive && item_data_i.solicited);
  cq_due u_due (
      .ctx_i (grown),
      .due_o (due),
      .held_o(held)
  );
  assign fire     = good && due && !held;
  assign start    = good && held && ctx_q.moderate_period != '0 && !ctx_q.timing;
  assign has_eqe  = fire || overruns || (item_is_event_i && ctx_q.in_use);
  assign next_pi  = ctx_q.pi + 1'b1;
  assign age      = next_pi - ctx_q.notified_pi;

  logic unused_age;
  assign unused_age = ^age[22:0];

  // The context with the entry in it.
  always_comb begin : p_grown
    logic too_old;
    too_old  = age[23];
    grown    = ctx_q;
    grown.pi = next_pi;
    if (too_old) grown.notified_pi = ctx_q.notified_pi + 1'b1;
    if (solicits) begin
      grown.solicited_pi = next_pi;
    end else if (too_old && ctx_q.solicited_pi == ctx_q.notified_pi) begin
      grown.solicited_pi = ctx_q.solicited_pi + 1'b1;
    end
  end

  always_comb begin
    rel_data_o = grown;
    if (start) rel_data_o.timing = 1'b1;
    if (overruns) rel_data_o = ctx_q;
    if (overruns) rel_data_o.overrun = 1'b1;
    if (fire || overruns) begin
      rel_data_o.arm          = rnic_pkg::CqArmNone;
      rel_data_o.notified_pi  = rel_data_o.pi;
      rel_data_o.solicited_pi = rel_data_o.pi;
      rel_data_o.timing       = 1'b0;
    end
  end
  assign timer_valid_o  = rel_valid_o && rel_ready_i && start;
  assign timer_cqn_o    = item_data_i.cqn;
  assign timer_period_o = ctx_q.moderate_period;

  always_comb begin : p_entry
    logic [23:0] place, slot;
    place             = ctx_q.pi - ctx_q.origin;
    slot              = place & (depth - 24'd1);
    cqe               = '0;
    cqe.status        = item_data_i.status;
    cqe.opcode        = item_data_i.opcode;
    cqe.wqe_index     = item_data_i.wqe_index;
    cqe.qpn           = item_data_i.qpn;
    cqe.is_receive    = item_data_i.is_receive;
    cqe.solicited     = item_data_i.solicited;
    cqe.byte_count    = item_data_i.byte_count;
    cqe.retired_index = item_data_i.retired_index;
    cqe.syndrome      = item_data_i.syndrome;
    cqe.with_imm        = item_data_i.with_imm;
    cqe.with_invalidate = item_data_i.with_invalidate;
    cqe.immediate       = item_data_i.immediate;
    cqe.grh             = item_data_i.grh;
    cqe.source_qpn      = item_data_i.source_qpn;
    cqe.vlan            = item_data_i.vlan;
    cqe.vlan_tci        = item_data_i.vlan_tci;
    cqe.l3_ok           = item_data_i.l3_ok;
    cqe.l4_ok           = item_data_i.l4_ok;
    cqe.timestamp     = timestamp_q;
    cqe.phase         = !place[ctx_q.log_depth];
    wr_data_o         = '0;
    wr_data_o.addr    = ctx_q.base + {34'd0, slot, 6'd0};
    wr_data_o.length  = 13'd64;
    wr_data_o.data    = cqe;
    wr_data_o.last    = 1'b1;
  end

  always_comb begin
    eqe_data_o     = '0;
    eqe_data_o.eqn = ctx_q.eqn;
    if (item_is_event_i) begin
      eqe_data_o.event_type = item_data_i.opcode;
      eqe_data_o.number     = item_data_i.qpn;
      eqe_data_o.detail     = {24'd0, item_data_i.status};
    end else begin
      eqe_data_o.event_type = overruns ? rnic_pkg::EqeTypeCqError : rnic_pkg::EqeTypeCompletion;
      eqe_data_o.number     = {ctx_q.tag, item_data_i.cqn};
    end
  end

  assign acq_valid_o     = state_q == StAcquire && item_valid_i && wr_kept_i;
  assign acq_index_o     = item_data_i.cqn;
  assign wr_valid_o      = state_q == StWrite && good;
  assign rel_valid_o     = state_q == StRelease;
  assign rel_write_o     = good || overruns;
  assign eqe_valid_o     = state_q == StEvent;
  assign item_ready_o    = (state_q == StRelease && rel_ready_i && !has_eqe) ||
                           (state_q == StEvent && eqe_ready_i);
  assign qp_dead_valid_o = state_q == StRelease && rel_ready_i && dead;
  assign qp_dead_qp_o    = item_data_i.qpn[7:0];
  assign event_cqe_o     = wr_valid_o && wr_ready_i;
  assign event_flushed_o = event_cqe_o && item_data_i.status == rnic_pkg::CqeStatusWrFlushErr;
  assign event_overrun_o = state_q == StRelease && rel_ready_i && overruns;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StAcquire: if (acq_valid_o && acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = StWrite;
      StWrite: if (!good || wr_ready_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = has_eqe ? StEvent : StAcquire;
      StEvent: if (eqe_ready_i) state_d = StAcquire;
      default: state_d = StAcquire;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (ctx_valid_i) begin
      ctx_q       <= ctx_data_i;
      timestamp_q <= cycles_i;
    end
    if (!rst_ni) state_q <= StAcquire;
  end

  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, wr_data_o)
  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
  `ASSERT(NotOverfull, state_q != StWrite || !ctx_q.in_use || (ctx_q.pi - ctx_q.ci) <= depth)
endmodule

`default_nettype wire
