`default_nettype none
`include "assert.svh"

/// Writes EQEs one at a time, each with the MSI-X vector that is to follow it. An event for an EQ
/// that does not exist is dropped; one for a full EQ is lost and counted. With the acceptance of an
/// event: whether it was written (eqe_written_o), and as which entry (eqe_index_o). An EQ is
/// borrowed only while a place for its entry is kept (wr_kept_i, place_queue), as a CQ in
/// cqe_writer.
module eqe_writer (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic [63:0]        cycles_i,
    input  wire logic               eqe_valid_i,
    output logic                    eqe_ready_o,
    input  wire rnic_pkg::eqe_req_t eqe_data_i,
    output logic                    eqe_written_o,
    output logic [23:0]             eqe_index_o,
    output logic                    acq_valid_o,
    input  wire logic               acq_ready_i,
    output logic [4:0]              acq_index_o,
    input  wire logic               ctx_valid_i,
    input  wire rnic_pkg::eq_ctx_t  ctx_data_i,
    output logic                    rel_valid_o,
    input  wire logic               rel_ready_i,
    output logic                    rel_write_o,
    output rnic_pkg::eq_ctx_t       rel_data_o,
    input  wire logic               wr_kept_i,
    output logic                    wr_valid_o,
    input  wire logic               wr_ready_i,
    output rnic_pkg::dma_wr_t       wr_data_o,
    output logic [7:0]              wr_vector_o,
    output logic                    event_eqe_o,
    output logic                    event_overrun_o
);
  // Acquire  asks for the EQ of the event, if there is one
  // Wait     for its context
  // Write    hands the entry to DMA, or finds that there is nothing to write
  // Release  gives the context back
  typedef enum logic [1:0] {
    StAcquire,
    StWait,
    StWrite,
    StRelease
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::eq_ctx_t ctx_q;
  rnic_pkg::eqe_t eqe;
  logic [63:0] timestamp_q;
  logic [23:0] depth;
  logic full, good;

  assign depth = 24'd1 << ctx_q.log_depth;
  assign full  = (ctx_q.pi - ctx_q.ci) == depth;
  assign good  = ctx_q.in_use && !full;

  always_comb begin : p_entry
    logic [23:0] slot;
    slot             = ctx_q.pi & (depth - 24'd1);
    eqe              = '0;
    eqe.event_type   = eqe_data_i.event_type;
    eqe.number       = eqe_data_i.number;
    eqe.detail       = eqe_data_i.detail;
    eqe.timestamp    = timestamp_q;
    eqe.phase        = !ctx_q.pi[{1'b0, ctx_q.log_depth}];
    wr_data_o        = '0;
    wr_data_o.addr   = ctx_q.base + {34'd0, slot, 6'd0};
    wr_data_o.length = 13'd64;
    wr_data_o.data   = eqe;
    wr_data_o.last   = 1'b1;
    rel_data_o       = ctx_q;
    rel_data_o.pi    = ctx_q.pi + 1'b1;
  end

  assign acq_valid_o     = state_q == StAcquire && eqe_valid_i && wr_kept_i;
  assign acq_index_o     = eqe_data_i.eqn;
  assign wr_valid_o      = state_q == StWrite && good;
  assign wr_vector_o     = ctx_q.msix_vector;
  assign rel_valid_o     = state_q == StRelease;
  assign rel_write_o     = good;
  assign eqe_ready_o     = state_q == StRelease && rel_ready_i;
  assign eqe_written_o   = good;
  assign eqe_index_o     = ctx_q.pi;
  assign event_eqe_o     = wr_valid_o && wr_ready_i;
  assign event_overrun_o = eqe_ready_o && ctx_q.in_use && full;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StAcquire: if (acq_valid_o && acq_ready_i) state_d = StWait;
      StWait: if (ctx_valid_i) state_d = StWrite;
      StWrite: if (!good || wr_ready_i) state_d = StRelease;
      StRelease: if (rel_ready_i) state_d = StAcquire;
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

  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, {wr_data_o, wr_vector_o})
endmodule

`default_nettype wire
