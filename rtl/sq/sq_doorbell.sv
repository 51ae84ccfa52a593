`default_nettype none
`include "assert.svh"

/// Send doorbells and WQEs from UAR windows.
///
/// Each moves the producer index of its QP, if the QP exists, is not in RESET, belongs to the UAR,
/// and its queue has that many slots; otherwise it is refused and counted. An index behind the
/// present one is stale (doorbells of two threads may pass each other) and moves nothing. The QP is
/// then woken, or in the error state, or SQE, handed to the flush. A window WQE goes into the WQE
/// buffer while the context is held, if it is whole and the next to execute and nothing is buffered
/// or being fetched: nobody else then touches the lines. Otherwise its bytes are dropped; the copy
/// in the ring is fetched.
module sq_doorbell (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   sq_doorbell_valid_i,
    output logic                        sq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t    sq_doorbell_data_i,
    input  wire logic                   wqe_push_valid_i,
    output logic                        wqe_push_ready_o,
    input  wire rnic_pkg::wqe_push_t    wqe_push_data_i,
    output logic                        acq_valid_o,
    input  wire logic                   acq_ready_i,
    output logic [7:0]                  acq_index_o,
    input  wire logic                   ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t    ctx_data_i,
    output logic                        rel_valid_o,
    input  wire logic                   rel_ready_i,
    output logic                        rel_write_o,
    output rnic_pkg::send_ctx_t         rel_data_o,
    output logic                        window_valid_o,
    output logic [10:0]                 window_addr_o,
    output logic [511:0]                window_data_o,
    output logic                        wake_valid_o,
    output logic [7:0]                  wake_qp_o,
    // A QP in the error state whose memory operation is over; a pulse
    input  wire logic                   flush_valid_i,
    input  wire logic [7:0]             flush_qp_i,
    // QPs in the error state, or SQE, with something to flush
    output logic                        flush_req_valid_o,
    input  wire logic                   flush_req_ready_i,
    output logic [7:0]                  flush_req_qp_o,
    input  wire logic                   forget_valid_i,
    input  wire logic [7:0]             forget_qp_i,
    output logic                        forget_busy_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // StIdle     taking the next doorbell or window WQE; its context is asked for at once
  // StAcquire  waiting for the grant
  // StContext  waiting for the context
  // StBeats    taking the bytes of a window WQE; with the last ones the context may go back at once
  // StRelease  giving the context back
  typedef enum logic [2:0] {
    StIdle,
    StAcquire,
    StContext,
    StBeats,
    StRelease
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::send_doorbell_t doorbell;
  rnic_pkg::wqe_control_t control;
  rnic_pkg::send_ctx_t ctx_q, ctx_d;
  logic push_turn_q, take, choose_push, is_push_q;
  logic [23:0] qpn, qpn_q;
  logic [6:0] uar_q;
  logic [15:0] index_q, target, posted, present, depth;
  logic refused_q, refused, use_q, use_window, flush_q, last_beat, released;
  logic [2:0] first_line, line_q;

  assign doorbell    = sq_doorbell_data_i.value;
  assign control     = wqe_push_data_i.data[127:0];
  assign choose_push = wqe_push_valid_i && (push_turn_q || !sq_doorbell_valid_i);
  assign take        = state_q == StIdle && (wqe_push_valid_i || sq_doorbell_valid_i);
  assign qpn         = choose_push ? control.qpn : doorbell.qpn;

  // The checks, on the context as it arrives. 16-bit indexes: distances from the oldest WQE not
  // retired.
  assign target  = is_push_q ? index_q + 16'd1 : index_q;
  assign posted  = target - ctx_data_i.retire_idx;
  assign present = ctx_data_i.pi - ctx_data_i.retire_idx;
  assign depth   = 16'd1 << ctx_data_i.log_depth;
  assign refused = !ctx_data_i.in_use || ctx_data_i.state == rnic_pkg::QpStateReset ||
                   ctx_data_i.qpn != qpn_q || ctx_data_i.uar != {1'b0, uar_q} || posted > depth;
  assign use_window = is_push_q && wqe_push_data_i.whole && !refused &&
                      ctx_data_i.state == rnic_pkg::QpStateRts && !ctx_data_i.fault &&
                      !ctx_data_i.msg_active && ctx_data_i.fetching == '0 &&
                      index_q == ctx_data_i.exec_idx && ctx_data_i.buf_count == '0;

  wqe_line u_line (
      .index_i     (index_q[2:0]),
      .log_stride_i(ctx_data_i.log_stride),
      .line_o      (first_line)
  );

  always_comb begin
    ctx_d = ctx_data_i;
    if (posted > present) ctx_d.pi = target;
    if (use_window) begin
      ctx_d.buf_idx   = index_q;
      ctx_d.buf_count = 4'd1;
    end
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (take) state_d = acq_ready_i ? StContext : StAcquire;
      StAcquire: if (acq_ready_i) state_d = StContext;
      StContext: if (ctx_valid_i) state_d = is_push_q ? StBeats : StRelease;
      StBeats:   if (last_beat) state_d = rel_ready_i ? StIdle : StRelease;
      StRelease: if (rel_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (take) begin
      push_turn_q <= !choose_push;
      is_push_q   <= choose_push;
      qpn_q       <= qpn;
      uar_q       <= choose_push ? wqe_push_data_i.uar : sq_doorbell_data_i.uar;
      index_q     <= choose_push ? control.wqe_index : doorbell.producer_index;
    end
    if (ctx_valid_i) begin
      ctx_q     <= ctx_d;
      refused_q <= refused;
      use_q     <= use_window;
      flush_q   <= !refused && (ctx_data_i.state == rnic_pkg::QpStateErr ||
                                ctx_data_i.state == rnic_pkg::QpStateSqe);
      line_q    <= first_line;
    end
    if (state_q == StBeats && wqe_push_valid_i) line_q <= line_q + 1'b1;
    if (!rst_ni) begin
      state_q     <= StIdle;
      push_turn_q <= 1'b0;
    end
  end

  assign sq_doorbell_ready_o = take && !choose_push;
  assign wqe_push_ready_o    = state_q == StBeats;
  assign acq_valid_o         = take || state_q == StAcquire;
  assign acq_index_o         = state_q == StAcquire ? qpn_q[7:0] : qpn[7:0];
  assign last_beat           = state_q == StBeats && wqe_push_valid_i && wqe_push_data_i.last;
  assign rel_valid_o         = last_beat || state_q == StRelease;
  assign released            = rel_valid_o && rel_ready_i;
  assign rel_write_o         = !refused_q;
  assign rel_data_o          = ctx_q;
  assign window_valid_o      = state_q == StBeats && wqe_push_valid_i && use_q;
  assign window_addr_o       = {qpn_q[7:0], line_q};
  assign window_data_o       = wqe_push_data_i.data;

  // The turn of a window WQE may be prepared while its bytes come, which are all here: the engine
  // waits for the context.
  assign wake_qp_o    = qpn_q[7:0];
  assign wake_valid_o = (ctx_valid_i && use_window) || (released && !refused_q && !use_q);

  // Flush requests wait per QP: a long flush of one never holds up the doorbells of others.
  qp_scheduler #(
      .Wakes(2)
  ) u_flush (
      .clk_i,
      .rst_ni,
      .wake_valid_i  ({flush_valid_i, flush_q && released}),
      .wake_qp_i     ({flush_qp_i, qpn_q[7:0]}),
      .run_valid_o   (flush_req_valid_o),
      .run_ready_i   (flush_req_ready_i),
      .run_qp_o      (flush_req_qp_o),
      .done_valid_i  (flush_req_valid_o && flush_req_ready_i),
      .done_qp_i     (flush_req_qp_o),
      .done_again_i  (1'b0),
      .forget_valid_i,
      .forget_qp_i,
      .forget_busy_o
  );

  always_comb begin
    event_o = '0;
    if (released) begin
      event_o[rnic_pkg::CounterSendDoorbells]    = 1'b1;
      event_o[rnic_pkg::CounterDoorbellsRefused] = refused_q;
      event_o[rnic_pkg::CounterWindowWqes]       = use_q;
      event_o[rnic_pkg::CounterWindowFallbacks]  = is_push_q && !refused_q && !use_q;
    end
  end

  logic unused_bits;
  assign unused_bits = ^{doorbell, control};

  `ASSERT_HOLD(AcquireHold, acq_valid_o, acq_ready_i, acq_index_o)
  `ASSERT(LockedWindow, !window_valid_o || (ctx_q.buf_count == 4'd1 && ctx_q.fetching == '0))
endmodule

`default_nettype wire
