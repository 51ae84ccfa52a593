`default_nettype none
`include "assert.svh"

/// Has a queue pair forgotten, in the order that the blocks need: first those with queues, all at
/// once (queues_*, a bit each), then the send path (path_*): packets that the queues had ready may
/// still be on their way to it.
///
/// in is held until everybody has forgotten the QP; so is each output until its block has.
module qp_reset_order (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic       in_valid_i,
    output logic            in_ready_o,
    output logic [3:0]      queues_valid_o,
    input  wire logic [3:0] queues_ready_i,
    output logic            path_valid_o,
    input  wire logic       path_ready_i
);
  logic fan_valid, fan_ready, queues_q;

  qp_reset_fan #(
      .N(4)
  ) u_fan (
      .clk_i,
      .rst_ni,
      .in_valid_i (fan_valid),
      .in_ready_o (fan_ready),
      .out_valid_o(queues_valid_o),
      .out_ready_i(queues_ready_i)
  );

  assign fan_valid    = in_valid_i && !queues_q;
  assign path_valid_o = in_valid_i && queues_q;
  assign in_ready_o   = path_valid_o && path_ready_i;

  always_ff @(posedge clk_i) begin
    if (fan_valid && fan_ready) queues_q <= 1'b1;
    if (in_ready_o) queues_q <= 1'b0;
    if (!rst_ni) queues_q <= 1'b0;
  end

  `ASSERT(PathAfterQueues, !(path_valid_o && queues_valid_o != '0))
endmodule

`default_nettype wire
