`default_nettype none

/// May the next WQE of a runnable queue pair (sq_runnable) start, or go on? Combinational.
///
/// judged_o: the whole WQE is to be judged, because it starts or because recovery makes it go on in
/// the middle. step_aside_o: not this turn; for a malformed WQE, not at all. stalled_o: it may go
/// on once something has retired. Only a start waits for the fence (InfiniBand specification
/// 10.8.3.3), the limit of outstanding Reads and atomics, and SqWindow. A memory operation starts
/// when everything in front of it has retired, so that nothing can be sent again that needs what it
/// takes away, and nothing in front can fail and have it flushed.
///
/// A SEND or a WRITE with immediate data waits for a credit, if the peer counts its receive WQEs
/// (InfiniBand specification 9.7.7.2.5). One request beyond the limit may try: of a SEND the first
/// packet only, which asks for an ACK (probe_o), and its answer has news of credits. So may one
/// packet whatever the peer says when nothing is unacknowledged, or the newest one did not ask (the
/// limit has become known in the middle of a SEND): no answer could come otherwise.
module sq_gate (
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    input  wire rnic_pkg::wqe_control_t control_i,
    input  wire logic                   bad_i,
    input  wire logic                   psn_room_i,
    output logic                        judged_o,
    output logic                        step_aside_o,
    output logic                        stalled_o,
    output logic                        probe_o,
    // Why a start steps aside, as the events of the counters
    output logic                        window_stall_o,
    output logic                        fence_stall_o,
    output logic                        read_stall_o,
    output logic                        credit_stall_o
);
  logic is_read, is_memory, window_full, fenced, read_limit, psn_full, start, bad;
  logic is_send, is_write, immediate, over_limit, one_over, credit_full;
  logic [23:0] over;
  logic [2:0] unused_decode;

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
                       !(!start && (is_write || !ctx_i.asked));
  assign probe_o     = over_limit && is_send;

  assign judged_o     = start || ctx_i.resume;
  assign bad          = judged_o && bad_i;
  assign stalled_o    = !bad && (psn_full || credit_full ||
                                 (start && (window_full || fenced || read_limit)));
  assign step_aside_o = bad || stalled_o;

  assign window_stall_o = start && !bad_i && window_full;
  assign fence_stall_o  = start && !bad_i && !window_full && fenced;
  assign read_stall_o   = start && !bad_i && !window_full && !fenced && read_limit;
  assign credit_stall_o = !bad && !(start && (window_full || fenced)) &&
                          credit_full;

  logic unused_bits;
  assign unused_bits = ^{ctx_i, control_i};
endmodule

`default_nettype wire
