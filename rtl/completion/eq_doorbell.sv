`default_nettype none
`include "assert.svh"

/// EQ doorbells: consumer index of an event queue. Honoured from the kernel's UAR only, for an EQ
/// that exists, and within the entries written and not yet consumed.
module eq_doorbell (
    input  wire logic                clk_i,
    input  wire logic                rst_ni,
    input  wire logic                doorbell_valid_i,
    output logic                     doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t doorbell_data_i,
    output logic                     acq_valid_o,
    input  wire logic                acq_ready_i,
    output logic [4:0]               acq_index_o,
    input  wire logic                ctx_valid_i,
    input  wire rnic_pkg::eq_ctx_t   ctx_data_i,
    output logic                     rel_valid_o,
    input  wire logic                rel_ready_i,
    output logic                     rel_write_o,
    output rnic_pkg::eq_ctx_t        rel_data_o,
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

  rnic_pkg::eq_doorbell_t doorbell_q;
  rnic_pkg::eq_ctx_t ctx_q;
  logic [6:0] uar_q;
  logic accept;
  logic [23:0] consumed, available;
  logic [15:0] unused_reserved;

  assign unused_reserved = {doorbell_q.reserved1, doorbell_q.reserved0};

  assign consumed  = doorbell_q.consumer_index - ctx_q.ci;
  assign available = ctx_q.pi - ctx_q.ci;
  assign accept    = ctx_q.in_use && doorbell_q.eqn[23:5] == '0 &&
                     uar_q == rnic_pkg::KernelUar[6:0] && consumed <= available;

  always_comb begin
    rel_data_o    = ctx_q;
    rel_data_o.ci = doorbell_q.consumer_index;
  end
  assign acq_valid_o      = state_q == StAcquire;
  assign acq_index_o      = doorbell_q.eqn[4:0];
  assign rel_valid_o      = state_q == StRelease;
  assign rel_write_o      = accept;
  assign doorbell_ready_o = state_q == StIdle;
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
endmodule

`default_nettype wire
