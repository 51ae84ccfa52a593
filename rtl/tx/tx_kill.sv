`default_nettype none
`include "assert.svh"

/// Which sides of which QPs have lost a packet: nothing more of them may be sent until
/// qp_reset, or until a packet comes that the fault does not bar (revive_i, a pulse with that
/// packet's index_i): the first of the requester's next try, the NAK that tells of the fault.
///
/// index_i is {responder, QP}; killed_o is combinational, kill_i and revive_i show from the next
/// cycle on. A qp_reset is answered, and the bits of the QP cleared, when all packets taken before
/// it (packet_in_i) are through (packet_out_i): a fault of the old life of a QP cannot hit the new
/// one.
module tx_kill (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       packet_in_i,
    input  wire logic       packet_out_i,
    input  wire logic [8:0] index_i,
    output logic            killed_o,
    input  wire logic       kill_i,
    input  wire logic       revive_i,
    input  wire logic       qp_reset_valid_i,
    output logic            qp_reset_ready_o,
    input  wire logic [7:0] qp_reset_qp_i
);
  // Idle: no request. Drain: the packets up to target_q are on their way. Done: answering.
  typedef enum logic [1:0] {
    Idle,
    Drain,
    Done
  } state_e;
  state_e state_q, state_d;

  logic [511:0] killed_q;
  logic [7:0] in_q, out_q, target_q, ahead;
  logic drained;

  assign killed_o         = killed_q[index_i];
  assign ahead            = target_q - out_q;
  assign drained          = ahead == '0 || ahead[7];
  assign qp_reset_ready_o = state_q == Done;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      Idle: if (qp_reset_valid_i) state_d = Drain;
      Drain: if (drained) state_d = Done;
      Done: state_d = Idle;
      default: state_d = Idle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    in_q    <= in_q + {7'd0, packet_in_i};
    out_q   <= out_q + {7'd0, packet_out_i};
    if (state_q == Idle) target_q <= in_q;
    if (revive_i) killed_q[index_i] <= 1'b0;
    if (kill_i) killed_q[index_i] <= 1'b1;
    if (state_q == Done) begin
      killed_q[{1'b0, qp_reset_qp_i}] <= 1'b0;
      killed_q[{1'b1, qp_reset_qp_i}] <= 1'b0;
    end
    if (!rst_ni) begin
      state_q  <= Idle;
      in_q     <= '0;
      out_q    <= '0;
      killed_q <= '0;
    end
  end

  `ASSERT(ReviveOrKill, !(revive_i && kill_i))
  `ASSERT(FewUnderWay, in_q - out_q < 8'd128)
  `ASSERT(ResetHeld, state_q == Idle || qp_reset_valid_i)
endmodule

`default_nettype wire
