`default_nettype none
`include "assert.svh"

/// Two clients on one port of the translation block: requests in turn, answers to whoever asked, in
/// order. Adds no cycle. The port answers two cycles after a request at the earliest. A client that
/// does not take its answer holds up the other's: client 1 must take its answers at once. A
/// hand-back (retire_*) of client 1 waits for a cycle in which client 0 has none; it may come once
/// its last one has left.
module xlate_share (
    input  wire logic       clk_i,
    input  wire logic       rst_ni,
    input  wire logic [1:0] req_valid_i,
    output logic [1:0]      req_ready_o,
    input  wire logic [2*rnic_pkg::XlateReqBits-1:0] req_data_i,
    output logic [1:0]      rsp_valid_o,
    input  wire logic [1:0] rsp_ready_i,
    input  wire logic [1:0] retire_valid_i,
    input  wire logic [1:0] retire_epoch_i,
    // The port
    output logic                      port_req_valid_o,
    input  wire logic                 port_req_ready_i,
    output rnic_pkg::xlate_req_t      port_req_data_o,
    input  wire logic                 port_rsp_valid_i,
    output logic                      port_rsp_ready_o,
    output logic                      port_retire_valid_o,
    output logic                      port_retire_epoch_o
);
  // An offer that is not taken stays (locked_q). Of two offers, the one of who did not have the
  // last turn goes first.
  logic locked_q, source_q, source, offered, taken, order_ready, order_valid, order;
  logic [6:0] unused_count;
  assign source           = (locked_q || req_valid_i == 2'b00) ? source_q :
      (req_valid_i == 2'b11) ? !source_q : req_valid_i[1];
  assign offered          = req_valid_i[source];
  assign port_req_valid_o = offered && order_ready;
  assign taken            = port_req_valid_o && port_req_ready_i;
  assign port_req_data_o  = source ? req_data_i[rnic_pkg::XlateReqBits+:rnic_pkg::XlateReqBits] :
      req_data_i[0+:rnic_pkg::XlateReqBits];
  assign req_ready_o      = {taken && source, taken && !source};

  stream_fifo #(
      .Width(1),
      .Depth(32)
  ) u_order (
      .clk_i,
      .rst_ni,
      .in_valid_i (taken),
      .in_ready_o (order_ready),
      .in_data_i  (source),
      .out_valid_o(order_valid),
      .out_ready_i(port_rsp_valid_i && port_rsp_ready_o),
      .out_data_o (order),
      .count_o    (unused_count)
  );
  assign rsp_valid_o      = {port_rsp_valid_i && order_valid && order,
                             port_rsp_valid_i && order_valid && !order};
  assign port_rsp_ready_o = order_valid && rsp_ready_i[order];

  logic held_q, held_epoch_q;
  assign port_retire_valid_o = retire_valid_i[0] || held_q;
  assign port_retire_epoch_o = retire_valid_i[0] ? retire_epoch_i[0] : held_epoch_q;

  always_ff @(posedge clk_i) begin
    locked_q <= port_req_valid_o && !port_req_ready_i;
    if (port_req_valid_o) source_q <= source;
    if (retire_valid_i[1]) held_epoch_q <= retire_epoch_i[1];
    held_q <= retire_valid_i[1] || (held_q && retire_valid_i[0]);
    if (!rst_ni) begin
      locked_q <= 1'b0;
      source_q <= 1'b0;
      held_q   <= 1'b0;
    end
  end

  `ASSERT_HOLD(PortHold, port_req_valid_o, port_req_ready_i, port_req_data_o)
  `ASSERT(OneHandBack, !(retire_valid_i[1] && held_q && retire_valid_i[0]))
  `ASSERT(AnswerHasOwner, !port_rsp_valid_i || order_valid)
endmodule

`default_nettype wire
