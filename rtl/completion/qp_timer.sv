`default_nettype none
`include "assert.svh"

/// One timer for each queue pair, in units of 1024 cycles (4.096 us at 250 MHz, the unit of the ACK
/// time-out of InfiniBand specification 9.7.6.1.3).
///
/// The ACK timer runs while an answer is awaited (9.7.6.1.3, C9-139): whenever a packet that asks
/// for one has left the port, and the newest PSN that its answer acknowledges is not acknowledged,
/// it runs or has expired. What still waits in the NIC starts it when it leaves. Everything that is
/// sent ends with a packet that asks, so none is lost without a timer that runs.
///
/// left_*: such a packet has left; psn: the newest PSN that its answer acknowledges. Starts a timer
/// that does not run. A packet that was acknowledged on its way out starts none, and neither does
/// one that was made before the queue went back (tries): all of it is sent again.
/// ack_valid_i, pulses, at most one every third cycle on port 0 and every fifth on port 1: psn is
/// the oldest PSN not acknowledged now; the timer starts again if an answer is still awaited, else
/// it stops. It expires after 2^exponent units, or never if that is 0. stop_valid_i, a pulse: the
/// queue has gone back, wait_tries_i is the count of it, and what has left awaits no answer.
/// wait_valid_i, a pulse: an RNR NAK; the timer expires after wait_units_i, and until then only
/// clear touches it.
///
/// A sweep looks at each timer once in a unit of cycles_i, and a deadline is one of these looks: a
/// timer expires at most one unit late, or one more for each time that the sweep finds an expiry of
/// another QP still waiting; never early. There is a sweep in the units from the earliest deadline
/// on alone: until that the clock may stand still (rest_o; maybe that of a timer that was stopped).
/// expired_* then has the QP, once. An expiry is out of date when the queue pair is acknowledged
/// something, goes back or has to wait: it is taken back if it has not been accepted; if it has,
/// stands_o goes low. That of a wait always stands. clear_valid_i stops the timer of clear_qp_i and
/// takes its expiry back; what left before does not count until begun_valid_i, a pulse, says that
/// the QP sends again.
module qp_timer #(
    parameter int unsigned Ports = 2
) (
    input  wire logic               clk_i,
    input  wire logic               rst_ni,
    input  wire logic [63:0]        cycles_i,
    output rnic_pkg::rest_t         rest_o,
    input  wire logic               begun_valid_i,
    input  wire logic [7:0]         begun_qp_i,
    input  wire logic               left_valid_i,
    output logic                    left_ready_o,
    input  wire rnic_pkg::timer_event_t left_data_i,
    input  wire logic [Ports-1:0]   ack_valid_i,
    input  wire logic [Ports*rnic_pkg::TimerEventBits-1:0] ack_data_i,
    input  wire logic               wait_valid_i,
    input  wire logic               stop_valid_i,
    input  wire logic [7:0]         wait_qp_i,
    input  wire logic [17:0]        wait_units_i,
    input  wire logic [3:0]         wait_tries_i,
    output logic                    expired_valid_o,
    input  wire logic               expired_ready_i,
    output logic [7:0]              expired_qp_o,
    // The expiry accepted last is not out of date
    output logic                    stands_o,
    input  wire logic               clear_valid_i,
    input  wire logic [7:0]         clear_qp_i
);
  localparam int unsigned UnitBits = 33;

  logic [9:0] cycle;
  logic [UnitBits-1:0] now;
  assign {now, cycle} = cycles_i[UnitBits+9:0];

  logic event_valid, events_wait, judged_touched;
  logic [1:0] event_kind;
  logic [7:0] judged_qp_q;
  rnic_pkg::timer_event_t event_data;
  qp_timer_events #(
      .Ports(Ports)
  ) u_events (
      .clk_i,
      .rst_ni,
      .cycle_i      (cycle[1:0]),
      .left_valid_i,
      .left_ready_o,
      .left_data_i,
      .ack_valid_i,
      .ack_data_i,
      .wait_valid_i,
      .stop_valid_i,
      .wait_qp_i,
      .event_valid_o(event_valid),
      .event_kind_o (event_kind),
      .event_data_o (event_data),
      .waits_o      (events_wait),
      .touched_qp_i (judged_qp_q),
      .touches_o    (judged_touched)
  );

  // ---- A cycle later: what has left last asks for, and what was acknowledged last ---------------
  logic valid_q, same_q, acked, acked_q, set, stop, known, reached, over, store, touch, this_try;
  logic from_recovery;
  logic [3:0] stored_tries;
  logic [1:0] kind_q;
  logic [17:0] units_q;
  logic [23:0] left_psn, stored_psn, stored_q, to_left, una_psn, stored_una, past;
  logic [UnitBits-1:0] set_deadline;
  logic [7:0] qp;
  rnic_pkg::timer_event_t data_q;
  logic [255:0] begun_q, running_q, waiting_q, known_q, una_known_q, turned_q;

  always_ff @(posedge clk_i) begin
    valid_q  <= event_valid;
    kind_q   <= event_kind;
    data_q   <= event_data;
    units_q  <= wait_units_i;
    same_q   <= store && event_data.qp == qp;
    acked_q  <= acked && event_data.qp == qp;
    stored_q <= data_q.psn;
    if (!rst_ni) valid_q <= 1'b0;
  end
  assign qp = data_q.qp;

  ram_1r1w #(
      .Width(24),
      .Depth(256)
  ) u_left (
      .clk_i,
      .wr_en_i  (store),
      .wr_addr_i(qp),
      .wr_data_i(data_q.psn),
      .rd_en_i  (event_valid),
      .rd_addr_i(event_data.qp),
      .rd_data_o(stored_psn)
  );
  ram_1r1w #(
      .Width(24),
      .Depth(256)
  ) u_una (
      .clk_i,
      .wr_en_i  (acked),
      .wr_addr_i(qp),
      .wr_data_i(data_q.psn),
      .rd_en_i  (event_valid),
      .rd_addr_i(event_data.qp),
      .rd_data_o(stored_una)
  );
  assign from_recovery = wait_valid_i || stop_valid_i;
  ram_1r1w #(
      .Width(4),
      .Depth(256)
  ) u_tries (
      .clk_i,
      .wr_en_i  (from_recovery),
      .wr_addr_i(wait_qp_i),
      .wr_data_i(wait_tries_i),
      .rd_en_i  (event_valid),
      .rd_addr_i(event_data.qp),
      .rd_data_o(stored_tries)
  );
  assign acked    = valid_q && kind_q == rnic_pkg::TimerKindAck;
  assign left_psn = same_q ? stored_q : stored_psn;
  assign una_psn  = acked_q ? stored_q : stored_una;
  assign known    = known_q[qp];
  // Bit 23 of a difference of PSNs: "before".
  assign to_left  = left_psn - data_q.psn;
  assign reached  = known && !to_left[23];
  assign past     = data_q.psn - una_psn;
  assign over     = una_known_q[qp] && past[23];
  assign this_try = data_q.tries == (turned_q[qp] ? stored_tries : 4'd0);

  always_comb begin
    {set, stop, store} = 3'b000;
    unique case (kind_q)
      rnic_pkg::TimerKindLeft: begin
        store = valid_q && begun_q[qp] && !waiting_q[qp] && !over && this_try;
        set   = store && data_q.exponent != '0 && !running_q[qp];
      end
      rnic_pkg::TimerKindAck: begin
        set  = valid_q && !waiting_q[qp] && reached && data_q.exponent != '0;
        stop = valid_q && !waiting_q[qp] && !set;
      end
      rnic_pkg::TimerKindStop: stop = valid_q && !waiting_q[qp];
      default:  set = valid_q;
    endcase
  end
  assign touch        = valid_q && kind_q != rnic_pkg::TimerKindLeft;
  // From the next look at the timer on, which may be to come in this unit: never early.
  assign set_deadline = now + UnitBits'(cycle[9:2] >= qp) +
                        ((kind_q == rnic_pkg::TimerKindWait) ? UnitBits'(units_q) :
                                                UnitBits'(1) << data_q.exponent);

  // ---- Sweep: four cycles a QP; a timer that is set meanwhile has not expired -------------------
  logic [7:0] sweep_qp;
  logic [1:0] phase;
  logic [UnitBits-1:0] deadline, age;
  logic sweeping, looked_q, due, touched_q, fire;
  assign sweep_qp = cycle[9:2];
  assign phase    = cycle[1:0];
  assign age      = now - deadline;
  assign due      = looked_q && running_q[sweep_qp] && !age[UnitBits-1];
  assign fire     = due && !touched_q && !(valid_q && qp == sweep_qp) && !expired_valid_o;

  ram_1r1w #(
      .Width(UnitBits),
      .Depth(256)
  ) u_deadlines (
      .clk_i,
      .wr_en_i  (set),
      .wr_addr_i(qp),
      .wr_data_i(set_deadline),
      .rd_en_i  (phase == 2'd0 && sweeping),
      .rd_addr_i(sweep_qp),
      .rd_data_o(deadline)
  );

  logic expired_wait_q, judged_wait_q, judged_good_q, taken_back, outdated;
  assign taken_back = touch && qp == expired_qp_o && !expired_wait_q;

  // ---- When the next sweep begins ---------------------------------------------------------------
  logic runs;
  logic [UnitBits-1:0] earliest;
  assign runs = running_q != '0;
  earliest_deadline #(
      .Bits(UnitBits)
  ) u_earliest (
      .clk_i,
      .rst_ni,
      .now_i          (now),
      .runs_i         (runs),
      .set_valid_i    (set),
      .set_deadline_i (set_deadline),
      .left_valid_i   (looked_q && running_q[sweep_qp] && !fire),
      .left_deadline_i(deadline),
      .first_i        (cycle == '0),
      .last_i         (cycle == '1),
      .sweeping_o     (sweeping),
      .earliest_o     (earliest)
  );
  always_ff @(posedge clk_i) begin
    looked_q <= phase == 2'd0 && sweeping;
    if (!rst_ni) looked_q <= 1'b0;
  end
  assign rest_o.busy     = sweeping || events_wait || valid_q || expired_valid_o;
  assign rest_o.timed    = runs;
  assign rest_o.deadline = {earliest, 10'd0};

  always_ff @(posedge clk_i) begin
    touched_q <= valid_q && qp == sweep_qp;
    if (begun_valid_i) begun_q[begun_qp_i] <= 1'b1;
    if (store) known_q[qp] <= 1'b1;
    if (acked) una_known_q[qp] <= 1'b1;
    if (stop || (set && kind_q == rnic_pkg::TimerKindWait)) known_q[qp] <= 1'b0;
    if (expired_ready_i || taken_back) expired_valid_o <= 1'b0;
    if (fire) begin
      expired_valid_o     <= 1'b1;
      expired_qp_o        <= sweep_qp;
      expired_wait_q      <= waiting_q[sweep_qp];
      running_q[sweep_qp] <= 1'b0;
      waiting_q[sweep_qp] <= 1'b0;
    end
    if (from_recovery) turned_q[wait_qp_i] <= 1'b1;
    if (set) running_q[qp] <= 1'b1;
    if (stop) running_q[qp] <= 1'b0;
    if (set && kind_q == rnic_pkg::TimerKindWait) waiting_q[qp] <= 1'b1;
    if (clear_valid_i) begin
      begun_q[clear_qp_i]     <= 1'b0;
      known_q[clear_qp_i]     <= 1'b0;
      una_known_q[clear_qp_i] <= 1'b0;
      turned_q[clear_qp_i]    <= 1'b0;
      running_q[clear_qp_i]   <= 1'b0;
      waiting_q[clear_qp_i]   <= 1'b0;
      if ((fire ? sweep_qp : expired_qp_o) == clear_qp_i) expired_valid_o <= 1'b0;
    end
    if (!rst_ni) begin
      begun_q         <= '0;
      known_q         <= '0;
      una_known_q     <= '0;
      turned_q        <= '0;
      running_q       <= '0;
      waiting_q       <= '0;
      expired_valid_o <= 1'b0;
    end
  end

  // ---- The expiry that is being judged; what is still on its way to this timer counts -----------
  assign outdated = (touch && qp == judged_qp_q) || judged_touched;
  assign stands_o = judged_good_q && (judged_wait_q || !outdated);
  always_ff @(posedge clk_i) begin
    judged_good_q <= stands_o;
    if (expired_valid_o && expired_ready_i) begin
      judged_qp_q   <= expired_qp_o;
      judged_wait_q <= expired_wait_q;
      judged_good_q <= !taken_back;
    end
    if (!rst_ni) judged_good_q <= 1'b0;
  end

  logic unused_bits;
  assign unused_bits = ^{to_left[22:0], past[22:0], cycles_i[63:UnitBits+10]};

  `ASSERT(AwaitedHasTimer, !(acked && !waiting_q[qp] && reached && data_q.exponent != '0) || set)
endmodule

`default_nettype wire
