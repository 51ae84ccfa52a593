`default_nettype none
`include "assert.svh"

/// Writes completions of admin commands, one after the other, and asks for the interrupt behind
/// each that wants one, once it has left. Some may wait, so that the next commands are executed
/// meanwhile. empty_o: none is inside.
module admin_answer (
    input  wire logic                        clk_i,
    input  wire logic                        rst_ni,
    input  wire logic                        in_valid_i,
    output logic                             in_ready_o,
    input  wire logic [63:0]                 in_address_i,
    input  wire rnic_pkg::admin_completion_t in_completion_i,
    input  wire logic                        in_irq_i,
    input  wire logic [7:0]                  in_irq_vector_i,
    output logic                             empty_o,
    output logic                             wr_valid_o,
    input  wire logic                        wr_ready_i,
    output rnic_pkg::dma_wr_t                wr_data_o,
    input  wire logic                        wr_done_i,
    output logic                             irq_valid_o,
    input  wire logic                        irq_ready_i,
    output logic [7:0]                       irq_vector_o
);
  // Write: offers the oldest. Written: waits until it has left. Interrupt: asks for the message.
  typedef enum logic [1:0] {
    Write,
    Written,
    Interrupt
  } state_e;
  state_e state_q, state_d;

  logic valid, take, written_q, irq;
  logic [3:0] count;
  logic [63:0] address;
  rnic_pkg::admin_completion_t completion;

  stream_fifo #(
      .Width(64 + rnic_pkg::AdminCompletionBits + 1 + 8),
      .Depth(4)
  ) u_waiting (
      .clk_i,
      .rst_ni,
      .in_valid_i,
      .in_ready_o,
      .in_data_i  ({in_address_i, in_completion_i, in_irq_i, in_irq_vector_i}),
      .out_valid_o(valid),
      .out_ready_i(take),
      .out_data_o ({address, completion, irq, irq_vector_o}),
      .count_o    (count)
  );

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Write:     if (wr_valid_o && wr_ready_i) state_d = Written;
      Written:   if (wr_done_i || written_q) state_d = irq ? Interrupt : Write;
      Interrupt: if (irq_ready_i) state_d = Write;
      default:   state_d = Write;
    endcase
  end
  assign take = state_q != Write && state_d == Write;

  always_ff @(posedge clk_i) begin
    state_q   <= state_d;
    // The last TLP may be accepted in the cycle in which the beat is.
    written_q <= state_q == Write && wr_done_i;
    if (!rst_ni) begin
      state_q   <= Write;
      written_q <= 1'b0;
    end
  end

  assign empty_o     = count == '0;
  assign wr_valid_o  = valid && state_q == Write;
  assign irq_valid_o = state_q == Interrupt;
  always_comb begin
    wr_data_o.addr   = address;
    wr_data_o.length = 13'd64;
    wr_data_o.data   = completion;
    wr_data_o.last   = 1'b1;
  end

  `ASSERT_HOLD(WriteHold, wr_valid_o, wr_ready_i, wr_data_o)
  `ASSERT_HOLD(InterruptHold, irq_valid_o, irq_ready_i, irq_vector_o)
endmodule

`default_nettype wire
