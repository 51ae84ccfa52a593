`default_nettype none
`include "assert.svh"

/// Takes the windows of QPs that have failed by themselves (decisions 56): each QP that is named
/// has its type 2B windows unbound by a memory operation, one QP after the other.
///
/// failed is a pulse and never waits: both contexts of the QP say ERR by then, so the send queue
/// undoes by itself what it binds later (sq_memop). query_busy_o: the windows of query_qp_i are
/// not all unbound; a QP must not be made again before, or the new one would lose its windows.
module qp_unbind (
    input  wire logic              clk_i,
    input  wire logic              rst_ni,
    input  wire logic              failed_valid_i,
    input  wire logic [7:0]        failed_qp_i,
    output logic                   mem_op_valid_o,
    input  wire logic              mem_op_ready_i,
    output rnic_pkg::mem_op_t      mem_op_data_o,
    input  wire logic              mem_op_rsp_valid_i,
    input  wire logic [7:0]        query_qp_i,
    output logic                   query_busy_o,
    output logic                   busy_o
);
  // Idle: takes the next QP. Offer: the operation is offered. Answer: its end is awaited.
  typedef enum logic [1:0] {
    StIdle,
    StOffer,
    StAnswer
  } state_e;
  state_e state_q;

  logic next_valid, take, member, joined_q;
  logic [7:0] next_qp, qp_q;

  qp_set u_waiting (
      .clk_i,
      .rst_ni,
      .join_valid_i  (failed_valid_i),
      .join_qp_i     (failed_qp_i),
      .out_valid_o   (next_valid),
      .out_ready_i   (take),
      .out_qp_o      (next_qp),
      .query_qp_i,
      .query_member_o(member)
  );
  assign take = state_q == StIdle && next_valid;

  always_ff @(posedge clk_i) begin
    unique case (state_q)
      StIdle:   if (take) state_q <= StOffer;
      StOffer:  if (mem_op_ready_i) state_q <= StAnswer;
      StAnswer: if (mem_op_rsp_valid_i) state_q <= StIdle;
      default:  state_q <= StIdle;
    endcase
    if (take) qp_q <= next_qp;
    joined_q <= failed_valid_i;
    if (!rst_ni) begin
      state_q  <= StIdle;
      joined_q <= 1'b0;
    end
  end

  assign mem_op_valid_o = state_q == StOffer;
  always_comb begin
    mem_op_data_o    = '0;
    mem_op_data_o.op = rnic_pkg::MemOpCodeUnbindQp;
    mem_op_data_o.qp = qp_q;
  end
  // A QP that has joined is handed out two cycles later.
  assign busy_o       = failed_valid_i || joined_q || next_valid || state_q != StIdle;
  assign query_busy_o = member || (failed_valid_i && failed_qp_i == query_qp_i) ||
                        (state_q != StIdle && qp_q == query_qp_i);

  `ASSERT_HOLD(MemOpHold, mem_op_valid_o, mem_op_ready_i, mem_op_data_o)
endmodule

`default_nettype wire
