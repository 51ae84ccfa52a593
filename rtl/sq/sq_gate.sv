`default_nettype none

/// May the queue pair send now? Combinational.
///
/// runnable_o: it has a WQE in the buffer and nothing stops it; in SQD it goes on only with what it
/// has started, sent again or not. WQEs before the one that failed here (fault_idx) still run:
/// recovery may go back to them. drained_o: in SQD, the event is to be made. judged_o: the whole
/// WQE is to be judged, because it starts or because recovery makes it go on in the middle.
/// step_aside_o: not this turn; for a malformed WQE, not at all. Only a start waits for the fence
/// (InfiniBand specification 10.8.3.3), the limit of outstanding Reads and atomics, and SqWindow. A
/// memory operation starts when everything in front of it has retired, so that nothing can be sent
/// again that needs what it takes away, and nothing in front can fail and have it flushed; while it
/// is under way (mem_busy) nothing starts.
///
/// A SEND or a WRITE with immediate data waits for a credit, if the peer counts its receive WQEs
/// (InfiniBand specification 9.7.7.2.5). One request beyond the limit may try: of a SEND the first
/// packet only, which asks for an ACK (probe_o), and its answer has news of credits. So may one
/// packet when nothing is unacknowledged, whatever the peer says: no answer could come otherwise.
module sq_gate (
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    input  wire rnic_pkg::wqe_control_t control_i,
    input  wire logic                   bad_i,
    input  wire logic                   psn_room_i,
    output logic                        runnable_o,
    output logic                        drained_o,
    output logic                        judged_o,
    output logic                        step_aside_o,
    output logic                        probe_o,
    // Why a start steps aside, as the events of the counters
    output logic                        window_stall_o,
    output logic                        fence_stall_o,
    output logic                        read_stall_o,
    output logic                        credit_stall_o
);
  logic is_read, is_memory, window_full, fenced, read_limit, psn_full, start, begun, state_ok;
  logic drained;
  logic [15:0] to_fault;
  logic is_send, is_write, immediate, over_limit, one_over, credit_full;
  logic [23:0] over;
  logic [2:0] unused_decode;

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

  assign start       = !ctx_i.msg_active;
  sq_decode u_decode (
      .opcode_i    (control_i.opcode),
      .known_o     (unused_decode[0]),
      .is_send_o   (is_send),
      .is_write_o  (is_write),
      .is_read_o   (is_read),
      .is_atomic_o (unused_decode[1]),
      .is_memory_o (is_memory),
      .immediate_o (immediate),
      .invalidate_o(unused_decode[2])
  );
  assign window_full = ctx_i.exec_idx - ctx_i.retire_idx >= rnic_pkg::SqWindow[15:0];
  assign fenced      = (control_i.fence && ctx_i.rd_outstanding != '0) ||
                       (is_memory && ctx_i.exec_idx != ctx_i.retire_idx);
  assign read_limit  = is_read && (ctx_i.rd_outstanding >= ctx_i.max_rd ||
                                   ctx_i.rd_outstanding >= rnic_pkg::MaxReadsOutstanding[4:0]);
  assign psn_full    = ctx_i.next_psn != ctx_i.una_psn && !psn_room_i;

  // SSNs compare as PSNs do: bit 23 of a difference says "before".
  assign over        = ctx_i.ssn + 24'd1 - ctx_i.lsn;
  assign over_limit  = ctx_i.credits && (is_send || (is_write && immediate)) && over != '0 &&
                       !over[23];
  assign one_over    = over == 24'd1;
  assign credit_full = over_limit && ctx_i.next_psn != ctx_i.una_psn && !(start && one_over) &&
                       !(is_write && !start);
  assign probe_o     = over_limit && is_send;

  assign judged_o     = start || ctx_i.resume;
  assign step_aside_o = psn_full || credit_full || (judged_o && bad_i) ||
                        (start && (window_full || fenced || read_limit));

  assign window_stall_o = start && !bad_i && window_full;
  assign fence_stall_o  = start && !bad_i && !window_full && fenced;
  assign read_stall_o   = start && !bad_i && !window_full && !fenced && read_limit;
  assign credit_stall_o = !(judged_o && bad_i) && !(start && (window_full || fenced)) &&
                          credit_full;

  logic unused_bits;
  assign unused_bits = ^{ctx_i, control_i, to_fault[14:0]};
endmodule

`default_nettype wire
