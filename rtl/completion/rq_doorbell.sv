`default_nettype none
`include "assert.svh"

/// Receive doorbells: moves the producer index of a receive queue. Refused when the QP does not
/// exist, is on an SRQ, is not the UAR's, or when the index would go back or make more WQEs
/// outstanding than the queue holds. Receives are accepted in every state; those of a QP in the
/// error state are flushed (InfiniBand specification 10.3.1).
module rq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::recv_ctx_t      rel_data_o,
    output logic                     flush_valid_o,
    input  wire logic                flush_ready_i,
    output logic [7:0]               flush_qp_o,
    output logic                     event_taken_o,
    output logic                     event_refused_o
);
  // Idle     ready for a doorbell
  // Acquire  asks for the context
  // Wait     for the context
  // Release  gives it back
  // Flush    asks for a flush
  typedef enum logic [2:0] {
    StIdle,
    StAcquire,
    StWait,
    StRelease,
    StFlush
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::receive_doorbell_t doorbell_q;
  rnic_pkg::recv_ctx_t ctx_q;
  logic [6:0] uar_q;
  logic accept;
  logic [15:0] posted, outstanding, depth;
  logic [23:0] unused_reserved;

  assign unused_reserved = {doorbell_q.reserved1, doorbell_q.reserved0};

  assign depth       = 16'd1 << ctx_q.log_depth;
  assign posted      = ctx_q.rq_pi - ctx_q.rq_done;
  assign outstanding = doorbell_q.producer_index - ctx_q.rq_done;
  assign accept      = ctx_q.in_use && !ctx_q.srq && ctx_q.qpn == doorbell_q.qpn &&
                       ctx_q.uar == {1'b0, uar_q} &&
                       outstanding >= posted && outstanding <= depth;

  always_comb begin
    rel_data_o       = ctx_q;
    rel_data_o.rq_pi = doorbell_q.producer_index;
  end
  assign acq_valid_o      = state_q == StAcquire;
  assign acq_index_o      = doorbell_q.qpn[7:0];
  assign rel_valid_o      = state_q == StRelease;
  assign rel_write_o      = accept;
  assign doorbell_ready_o = state_q == StIdle;
  assign flush_valid_o    = state_q == StFlush;
  assign flush_qp_o       = doorbell_q.qpn[7:0];
  assign event_taken_o    = doorbell_valid_i && doorbell_ready_o;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (doorbell_valid_i) state_d = StAcquire;
      StAcquire: if (acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = StRelease;
      StRelease:
      if (rel_ready_i) begin
        state_d = (accept && ctx_q.state == rnic_pkg::QpStateErr) ? StFlush : StIdle;
      end
      StFlush: if (flush_ready_i) state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (doorbell_ready_o) begin
      doorbell_q <= doorbell_data_i.value;
      uar_q      <= doorbell_data_i.uar;
    end
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    if (!rst_ni) state_q <= StIdle;
  end

  `ASSERT_HOLD(FlushHold, flush_valid_o, flush_ready_i, flush_qp_o)
endmodule

`default_nettype wire
