`default_nettype none
`include "assert.svh"

/// SRQ doorbells: moves the producer index of a shared receive queue. Refused when the SRQ does not
/// exist, is not the UAR's, or when the index would go back or make more WQEs wait than the ring
/// holds.
module srq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [7:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::srq_ctx_t  ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::srq_ctx_t       rel_data_o,
    output logic                     event_taken_o,
    output logic                     event_refused_o
);
  // Idle     ready for a doorbell
  // Acquire  asks for the context
  // Wait     for the context
  // Release  gives it back
  typedef enum logic [1:0] {
    StIdle,
    StAcquire,
    StWait,
    StRelease
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::srq_doorbell_t doorbell_q;
  rnic_pkg::srq_ctx_t ctx_q;
  logic [6:0] uar_q;
  logic accept;
  logic [15:0] posted, outstanding, depth;
  logic [23:0] unused_reserved;

  assign unused_reserved = {doorbell_q.reserved1, doorbell_q.reserved0};

  assign depth       = 16'd1 << ctx_q.log_depth;
  assign posted      = ctx_q.pi - ctx_q.head;
  assign outstanding = doorbell_q.producer_index - ctx_q.head;
  assign accept      = ctx_q.in_use && doorbell_q.srqn[23:8] == ctx_q.tag &&
                       ctx_q.uar == {1'b0, uar_q} && outstanding >= posted && outstanding <= depth;

  always_comb begin
    rel_data_o    = ctx_q;
    rel_data_o.pi = doorbell_q.producer_index;
  end
  assign acq_valid_o      = state_q == StAcquire;
  assign acq_index_o      = doorbell_q.srqn[7:0];
  assign rel_valid_o      = state_q == StRelease;
  assign rel_write_o      = accept;
  assign doorbell_ready_o = state_q == StIdle;
  assign event_taken_o    = doorbell_valid_i && doorbell_ready_o;
  assign event_refused_o  = rel_valid_o && rel_ready_i && !accept;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: if (doorbell_valid_i) state_d = StAcquire;
      StAcquire: if (acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = StIdle;
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

  `ASSERT_HOLD(DoorbellHold, doorbell_valid_i, doorbell_ready_o, doorbell_data_i)
endmodule

`default_nettype wire
