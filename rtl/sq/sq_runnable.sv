`default_nettype none

/// Is there anything to do for the queue pair? Combinational, from its context alone.
///
/// runnable_o: it has a WQE in the buffer and nothing stops it; in SQD it goes on only with what it
/// has started, sent again or not. WQEs before the one that failed here (fault_idx) still run:
/// recovery may go back to them. While a memory operation is under way (mem_busy) nothing runs.
/// drained_o: in SQD, the event is to be made.
module sq_runnable (
    input  wire rnic_pkg::send_ctx_t ctx_i,
    output logic                     runnable_o,
    output logic                     drained_o
);
  logic begun, state_ok, drained;
  logic [15:0] to_fault;

  sq_drained u_drained (
      .ctx_i,
      .drained_o(drained)
  );
  assign begun      = ctx_i.msg_active || ctx_i.next_psn != ctx_i.max_psn;
  assign state_ok   = ctx_i.state == rnic_pkg::QpStateRts ||
                      (ctx_i.state == rnic_pkg::QpStateSqd && begun);
  assign drained_o  = ctx_i.in_use && ctx_i.state == rnic_pkg::QpStateSqd && ctx_i.sqd_notify &&
                      drained;
  assign to_fault   = ctx_i.exec_idx - ctx_i.fault_idx;
  assign runnable_o = ctx_i.in_use && state_ok && (!ctx_i.fault || to_fault[15]) &&
                      !ctx_i.rnr_wait && !ctx_i.mem_busy && ctx_i.pi != ctx_i.exec_idx &&
                      ctx_i.buf_count != '0;

  logic unused_bits;
  assign unused_bits = ^{ctx_i, to_fault[14:0]};
endmodule

`default_nettype wire
