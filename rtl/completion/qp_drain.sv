`default_nettype none
`include "assert.svh"

/// Answers qp_reset: ready once nothing of the QP is left in the completion block. The QP's
/// contexts no longer let work in, so it is enough to let what was inside pass, stage by stage in
/// the order in which work flows.
module qp_drain (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        qp_reset_valid_i,
    output logic             qp_reset_ready_o,
    // What enters and leaves the stages: 0 retire commands, 1 errors, 2 CQEs, 3 CQE and EQE writes,
    // 4 retired records
    input  wire logic [4:0]  enter_i,
    input  wire logic [4:0]  leave_i,
    // The QP is in rx_post; waits for an error or a flush, or is under way there
    input  wire logic        receive_busy_i,
    input  wire logic        error_busy_i
);
  // Idle     no reset asked for
  // Receive  until rx_post does not work on the QP
  // Retire   until the retire commands have passed
  // Error    until no error or flush of the QP waits or is under way
  // Cqe      until the CQEs have passed the CQ engine
  // Write    until their writes, and the retired records, are done
  // Done     the answer
  typedef enum logic [2:0] {
    StIdle,
    StReceive,
    StRetire,
    StError,
    StCqe,
    StWrite,
    StDone
  } state_e;
  state_e state_q, state_d;
  logic [4:0] start, drained;

  // No stage holds 255: the largest is the CQE queue with what waits around it.
  for (genvar i = 0; i < 5; i++) begin : gen_stage
    drain_counter #(
        .Bits(8)
    ) u_counter (
        .clk_i,
        .rst_ni,
        .enter_i  (enter_i[i]),
        .leave_i  (leave_i[i]),
        .start_i  (start[i]),
        .drained_o(drained[i])
    );
  end

  always_comb begin
    state_d = state_q;
    start = '0;
    unique case (state_q)
      StIdle: if (qp_reset_valid_i) state_d = StReceive;
      StReceive:
      if (!receive_busy_i) begin
        start[0] = 1'b1;
        state_d    = StRetire;
      end
      StRetire:
      if (drained[0]) begin
        start[1] = 1'b1;
        state_d    = StError;
      end
      StError:
      if (drained[1] && !error_busy_i) begin
        start[2] = 1'b1;
        state_d    = StCqe;
      end
      StCqe:
      if (drained[2]) begin
        start[4:3] = 2'b11;
        state_d      = StWrite;
      end
      StWrite: if (drained[4:3] == 2'b11) state_d = StDone;
      StDone: state_d = StIdle;
      default: state_d = StIdle;
    endcase
  end

  assign qp_reset_ready_o = state_q == StDone;

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (!rst_ni) state_q <= StIdle;
  end

  `ASSERT(RequestHeld, state_q == StIdle || qp_reset_valid_i)
endmodule

`default_nettype wire
