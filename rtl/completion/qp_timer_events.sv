`default_nettype none
`include "assert.svh"

/// Events of the timers of queue pairs, one a cycle: recovery first, then every fourth cycle what
/// has left, the ports in their order, and what has left when nothing else is there.
///
/// Streams and pulses are those of qp_timer. event_*: the event of this cycle; of one of recovery
/// only the QP says something. waits_o: one waits here. touches_o: one of recovery or of a port is
/// on its way for QP touched_qp_i.
module qp_timer_events #(
    parameter int unsigned Ports = 2
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic [1:0]       cycle_i,
    input  wire logic             left_valid_i,
    output logic                  left_ready_o,
    input  wire rnic_pkg::timer_event_t left_data_i,
    input  wire logic [Ports-1:0] ack_valid_i,
    input  wire logic [Ports*rnic_pkg::TimerEventBits-1:0] ack_data_i,
    input  wire logic             wait_valid_i,
    input  wire logic             stop_valid_i,
    input  wire logic [7:0]       wait_qp_i,
    output logic                  event_valid_o,
    output logic [1:0]            event_kind_o,
    output rnic_pkg::timer_event_t event_data_o,
    output logic                  waits_o,
    input  wire logic [7:0]       touched_qp_i,
    output logic                  touches_o
);
  localparam int unsigned EventBits = rnic_pkg::TimerEventBits;

  logic [Ports-1:0] held_q, take;
  logic [Ports*EventBits-1:0] held_data_q;
  logic from_recovery;
  assign from_recovery = wait_valid_i || stop_valid_i;
  assign waits_o       = held_q != '0;

  always_comb begin
    take          = '0;
    event_data_o  = left_data_i;
    event_kind_o  = rnic_pkg::TimerKindLeft;
    left_ready_o  = !from_recovery && (held_q == '0 || cycle_i == 2'd0);
    event_valid_o = left_valid_i && left_ready_o;
    for (int unsigned i = 0; i < Ports; i++) begin
      if (!event_valid_o && !from_recovery && held_q[i]) begin
        event_valid_o = 1'b1;
        event_kind_o  = rnic_pkg::TimerKindAck;
        take[i]       = 1'b1;
        event_data_o  = held_data_q[i*EventBits+:EventBits];
      end
    end
    if (from_recovery) begin
      event_valid_o   = 1'b1;
      event_kind_o    = wait_valid_i ? rnic_pkg::TimerKindWait : rnic_pkg::TimerKindStop;
      event_data_o    = '0;
      event_data_o.qp = wait_qp_i;
    end
  end

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Ports; i++) begin
      if (ack_valid_i[i]) held_data_q[i*EventBits+:EventBits] <= ack_data_i[i*EventBits+:EventBits];
      held_q[i] <= ack_valid_i[i] || (held_q[i] && !take[i]);
    end
    if (!rst_ni) held_q <= '0;
  end

  always_comb begin : touching
    touches_o = from_recovery && wait_qp_i == touched_qp_i;
    for (int unsigned i = 0; i < Ports; i++) begin
      if (held_q[i] && held_data_q[i*EventBits+:8] == touched_qp_i) touches_o = 1'b1;
      if (ack_valid_i[i] && ack_data_i[i*EventBits+:8] == touched_qp_i) touches_o = 1'b1;
    end
  end

  for (genvar i = 0; i < Ports; i++) begin : gen_port
    `ASSERT(OneAtATime, !(ack_valid_i[i] && held_q[i] && !take[i]))
  end
endmodule

`default_nettype wire
