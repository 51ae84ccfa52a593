`default_nettype none
`include "assert.svh"

/// Events of shared receive queues: SrqLimit and SrqError.
///
/// Whoever notices something joins a set, which always has room, so nobody waits for an event
/// queue.
/// Then the context says what is due. A limit: fewer WQEs are left than its limit says, or were
/// when one was taken (limit_hit); the event disarms it (InfiniBand specification 10.2.9.4,
/// 11.6.3.2). An error: the SRQ gives no more WQEs; told once. An SRQ that is gone has no events.
module srq_events (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    // Always taken; both at once: the second must stay until look_ready_o
    input  wire logic                limit_valid_i,
    input  wire logic [7:0]          limit_srq_i,
    input  wire logic                look_valid_i,
    output logic                     look_ready_o,
    input  wire logic [7:0]          look_srq_i,
    input  wire logic                error_valid_i,
    input  wire logic [7:0]          error_srq_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::srq_ctx_t  ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::srq_ctx_t       rel_data_o,
    output logic                     eqe_valid_o,
    input  wire logic                eqe_ready_i,
    output rnic_pkg::eqe_req_t       eqe_data_o
);
  // Idle     takes an SRQ out of a set, errors first
  // Acquire  asks for its context
  // Wait     for the context
  // Release  gives it back
  // Event    makes the event
  typedef enum logic [2:0] {
    StIdle,
    StAcquire,
    StWait,
    StRelease,
    StEvent
  } state_e;
  state_e state_q, state_d;

  logic limit_valid, limit_take, error_valid, error_take, is_error_q, due;
  logic [7:0] limit_srq, error_srq, srq_q;
  logic [1:0] unused_member;
  rnic_pkg::srq_ctx_t ctx_q;
  logic [15:0] left;

  assign look_ready_o = !limit_valid_i;
  assign error_take   = state_q == StIdle;
  assign limit_take   = state_q == StIdle && !error_valid;

  qp_set u_limits (
      .clk_i,
      .rst_ni,
      .join_valid_i  (limit_valid_i || look_valid_i),
      .join_qp_i     (limit_valid_i ? limit_srq_i : look_srq_i),
      .out_valid_o   (limit_valid),
      .out_ready_i   (limit_take),
      .out_qp_o      (limit_srq),
      .query_qp_i    (8'd0),
      .query_member_o(unused_member[0])
  );
  qp_set u_errors (
      .clk_i,
      .rst_ni,
      .join_valid_i  (error_valid_i),
      .join_qp_i     (error_srq_i),
      .out_valid_o   (error_valid),
      .out_ready_i   (error_take),
      .out_qp_o      (error_srq),
      .query_qp_i    (8'd0),
      .query_member_o(unused_member[1])
  );

  assign left = ctx_q.pi - ctx_q.head;
  always_comb begin
    due        = ctx_q.in_use && !ctx_q.error;
    rel_data_o = ctx_q;
    if (is_error_q) begin
      rel_data_o.error = 1'b1;
    end else begin
      due = due && ctx_q.limit != '0 && (ctx_q.limit_hit || left < ctx_q.limit);
      rel_data_o.limit     = '0;
      rel_data_o.limit_hit = 1'b0;
    end
  end

  assign acq_valid_o = state_q == StAcquire;
  assign acq_index_o = srq_q;
  assign rel_valid_o = state_q == StRelease;
  assign rel_write_o = due;
  assign eqe_valid_o = state_q == StEvent;
  always_comb begin
    eqe_data_o            = '0;
    eqe_data_o.eqn        = ctx_q.eqn;
    eqe_data_o.event_type = is_error_q ? rnic_pkg::EqeTypeSrqError : rnic_pkg::EqeTypeSrqLimit;
    eqe_data_o.number     = {ctx_q.tag, srq_q};
  end

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (error_valid || limit_valid) state_d = StAcquire;
      StAcquire: if (acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = due ? StEvent : StIdle;
      StEvent: if (eqe_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StIdle) begin
      is_error_q <= error_valid;
      srq_q      <= error_valid ? error_srq : limit_srq;
    end
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    if (!rst_ni) state_q <= StIdle;
  end

  `ASSERT_HOLD(EqeHold, eqe_valid_o, eqe_ready_i, eqe_data_o)
endmodule

`default_nettype wire
