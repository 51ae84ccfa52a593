`default_nettype none
`include "assert.svh"

/// One timer for each queue pair, in units of 1024 cycles (4.096 us at 250 MHz, the unit of the ACK
/// time-out of InfiniBand specification 9.7.6.1.3).
///
/// ack_valid_i, pulses on any port in any cycle but at most one every fourth cycle on each: the QP
/// has begun to wait for an acknowledgement, or got one; its timer expires after 2^exponent units,
/// or never if the exponent is 0. wait_valid_i, a pulse: an RNR NAK; the timer expires after
/// wait_units_i, and until then the other ports do not touch it. A sweep looks at each timer once
/// in 1024 cycles: a timer expires at most two units late, or one more for each time that the sweep
/// finds an expiry of another QP still waiting; never early. expired_* then has the QP, once. clear_valid_i stops the timer of clear_qp_i, and takes an expiry back that has not been
/// accepted.
module qp_timer #(
    parameter int unsigned Ports = 3
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic [Ports-1:0]   ack_valid_i,
    input  wire logic [Ports*rnic_pkg::TimerEventBits-1:0] ack_data_i,
    input  wire logic               wait_valid_i,
    input  wire logic [7:0]         wait_qp_i,
    input  wire logic [17:0]        wait_units_i,
    output logic                    expired_valid_o,
    input  wire logic               expired_ready_i,
    output logic [7:0]              expired_qp_o,
    input  wire logic               clear_valid_i,
    input  wire logic [7:0]         clear_qp_i
);
  localparam int unsigned UnitBits = 33;

  logic [9:0] cycle_q;
  logic [UnitBits-1:0] now_q;
  always_ff @(posedge clk_i) begin
    cycle_q <= cycle_q + 1'b1;
    if (cycle_q == '1) now_q <= now_q + 1'b1;
    if (!rst_ni) begin
      cycle_q <= '0;
      now_q   <= '0;
    end
  end

  // ---- Events, one a cycle: the RNR wait first, then the ports in their order -------------------
  logic [Ports-1:0] held_q;
  logic [Ports*rnic_pkg::TimerEventBits-1:0] held_data_q;
  logic [Ports-1:0] take;
  rnic_pkg::timer_event_t event_data;
  logic event_valid, set, set_wait;
  logic [7:0] set_qp;
  logic [UnitBits-1:0] set_deadline;
  logic [255:0] running_q, waiting_q;

  always_comb begin
    take        = '0;
    event_data  = '0;
    event_valid = 1'b0;
    for (int unsigned i = 0; i < Ports; i++) begin
      if (!event_valid && !wait_valid_i && held_q[i]) begin
        event_valid = 1'b1;
        take[i]     = 1'b1;
        event_data  = held_data_q[i*rnic_pkg::TimerEventBits+:rnic_pkg::TimerEventBits];
      end
    end
  end
  // The present unit has begun: one more, so that no timer is early.
  assign set_wait     = wait_valid_i;
  assign set_qp       = wait_valid_i ? wait_qp_i : event_data.qp;
  assign set          = wait_valid_i ||
                        (event_valid && event_data.exponent != '0 && !waiting_q[event_data.qp]);
  assign set_deadline = now_q + UnitBits'(1) +
                        (wait_valid_i ? UnitBits'(wait_units_i) : UnitBits'(1) << event_data.exponent);

  always_ff @(posedge clk_i) begin
    for (int unsigned i = 0; i < Ports; i++) begin
      if (ack_valid_i[i]) begin
        held_data_q[i*rnic_pkg::TimerEventBits+:rnic_pkg::TimerEventBits] <=
            ack_data_i[i*rnic_pkg::TimerEventBits+:rnic_pkg::TimerEventBits];
      end
      held_q[i] <= ack_valid_i[i] || (held_q[i] && !take[i]);
    end
    if (!rst_ni) held_q <= '0;
  end

  // ---- Sweep: four cycles a QP; a timer that is set meanwhile has not expired --------------------
  logic [7:0] sweep_qp;
  logic [1:0] phase;
  logic [UnitBits-1:0] deadline, age;
  logic due, touched_q, fire;
  assign sweep_qp = cycle_q[9:2];
  assign phase    = cycle_q[1:0];
  assign age      = now_q - deadline;
  assign due      = phase == 2'd1 && running_q[sweep_qp] && !age[UnitBits-1];
  assign fire     = due && !touched_q && !(set && set_qp == sweep_qp) && !expired_valid_o;

  ram_1r1w #(
      .Width(UnitBits),
      .Depth(256)
  ) u_deadlines (
      .clk_i,
      .wr_en_i  (set),
      .wr_addr_i(set_qp),
      .wr_data_i(set_deadline),
      .rd_en_i  (phase == 2'd0),
      .rd_addr_i(sweep_qp),
      .rd_data_o(deadline)
  );

  always_ff @(posedge clk_i) begin
    touched_q <= set && set_qp == sweep_qp;
    if (expired_ready_i) expired_valid_o <= 1'b0;
    if (fire) begin
      expired_valid_o     <= 1'b1;
      expired_qp_o        <= sweep_qp;
      running_q[sweep_qp] <= 1'b0;
      waiting_q[sweep_qp] <= 1'b0;
    end
    if (set) begin
      running_q[set_qp] <= 1'b1;
      if (set_wait) waiting_q[set_qp] <= 1'b1;
    end
    if (clear_valid_i) begin
      running_q[clear_qp_i] <= 1'b0;
      waiting_q[clear_qp_i] <= 1'b0;
      if (expired_qp_o == clear_qp_i) expired_valid_o <= 1'b0;
    end
    if (!rst_ni) begin
      running_q       <= '0;
      waiting_q       <= '0;
      expired_valid_o <= 1'b0;
    end
  end

  for (genvar i = 0; i < Ports; i++) begin : gen_port
    `ASSERT(OneAtATime, !(ack_valid_i[i] && held_q[i] && !take[i]))
  end
endmodule

`default_nettype wire
