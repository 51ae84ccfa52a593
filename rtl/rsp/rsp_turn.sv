`default_nettype none

/// What one turn of a QP of the responder does. Combinational.
///
/// Of the QP: its context; how far it has come (head_i: Reads answered, sent_i: bytes of the
/// oldest, or 1 for an atomic that has been handed over; stopped_i: a fatal NAK has left); the
/// Reads in its ring (tail_i), of which the oldest skipped_i are ended (skipped_repeats_i of them
/// were repeated ones); what is due. Of the oldest Read: slot_*, and last_i, packet_sent_i if its
/// next packet leaves.
///
/// At most one is set: skip_o passes over Reads that are ended; read_o sends a packet of a Read;
/// atomic_o begins or ends an atomic (answer_o: its answer leaves); nak_o, ack_o. The others say
/// what is kept of the QP afterwards: progress, context (write_o: it has changed), and whether it
/// has more to do (again_o). fault_i: the turn is that of a failed packet, which ends all Reads, or
/// of a failed atomic (fault_atomic_i). What has left behind a failed packet is dropped by the send
/// path, a fatal NAK too, and the NAK of the packet takes its place.
///
/// A Read or an atomic that has been answered makes room for another in the context. A QP that a
/// request of its peer has put in the error state still answers what was executed before: the NAK
/// that tells the peer comes last. One that is there for another reason (silent) sends nothing
/// (InfiniBand specification 10.3.1.7).
module rsp_turn (
    input  wire rnic_pkg::recv_ctx_t ctx_i,
    input  wire logic                fault_i,
    input  wire logic                fault_atomic_i,
    input  wire logic [5:0]          head_i,
    input  wire logic [31:0]         sent_i,
    input  wire logic                stopped_i,
    input  wire logic [5:0]          tail_i,
    input  wire logic [3:0]          skipped_i,
    input  wire logic [3:0]          skipped_repeats_i,
    input  wire logic                due_i,
    input  wire logic                due_is_nak_i,
    input  wire logic                due_is_ack_i,
    input  wire logic [7:0]          nak_syndrome_i,
    input  wire logic                answered_i,
    input  wire logic                slot_atomic_i,
    input  wire logic                slot_repeated_i,
    input  wire logic                last_i,
    input  wire logic [31:0]         packet_sent_i,
    output logic                     skip_o,
    output logic                     read_o,
    output logic                     atomic_o,
    output logic                     answer_o,
    output logic                     nak_o,      // Also that of the failed packet
    output logic                     ack_o,
    output logic [5:0]               head_o,
    output logic [31:0]              sent_o,
    output logic                     stopped_o,
    output logic                     write_o,
    output rnic_pkg::recv_ctx_t      ctx_o,
    output logic                     again_o
);
  logic gone, runs, reads, failed, fatal;
  logic [3:0] skipped_first;

  assign gone  = !ctx_i.in_use || ctx_i.state == rnic_pkg::QpStateReset ||
                 ctx_i.state == rnic_pkg::QpStateInit ||
                 (ctx_i.state == rnic_pkg::QpStateErr && ctx_i.silent);
  assign runs  = !gone && !stopped_i && !fault_i;
  assign reads = tail_i != head_i && !skip_o;
  assign fatal = nak_syndrome_i >= rnic_pkg::AethSyndromeNakInvalidRequest &&
                 nak_syndrome_i <= rnic_pkg::AethSyndromeNakRemoteOperational;

  assign skip_o   = runs && skipped_i != '0;
  assign read_o   = runs && reads && !slot_atomic_i;
  assign atomic_o = runs && reads && slot_atomic_i;
  assign answer_o = atomic_o && sent_i != '0 && answered_i;
  assign failed   = fault_i && !gone && !(stopped_i && fault_atomic_i);
  assign nak_o    = failed || (runs && !reads && !skip_o && due_i && due_is_nak_i);
  assign ack_o    = runs && !reads && !skip_o && due_i && due_is_ack_i;

  always_comb begin
    head_o    = head_i;
    sent_o    = sent_i;
    stopped_o = stopped_i;
    if (fault_i || gone) begin
      head_o    = tail_i;
      sent_o    = '0;
      stopped_o = stopped_i || fault_i;
    end else if (skip_o) begin
      head_o = head_i + 6'(skipped_i);
      sent_o = '0;
    end else if (read_o) begin
      head_o = head_i + 6'(last_i);
      sent_o = packet_sent_i;
    end else if (atomic_o) begin
      head_o = head_i + 6'(answer_o);
      sent_o = answer_o ? '0 : 32'd1;
    end else if (nak_o && fatal) begin
      stopped_o = 1'b1;
    end
  end
  assign again_o = skip_o || (read_o && (!last_i || head_o != tail_i || due_i)) ||
                   (answer_o && (head_o != tail_i || due_i));

  assign skipped_first = skipped_i - skipped_repeats_i;
  assign write_o       = (read_o && last_i) || answer_o || skip_o;
  always_comb begin
    ctx_o = ctx_i;
    if (skip_o) begin
      ctx_o.rp_inflight = ctx_i.rp_inflight - 5'(skipped_repeats_i);
      ctx_o.rd_inflight = ctx_i.rd_inflight - 5'(skipped_first);
    end else if (slot_repeated_i) begin
      if (ctx_i.rp_inflight != '0) ctx_o.rp_inflight = ctx_i.rp_inflight - 1'b1;
    end else if (ctx_i.rd_inflight != '0) begin
      ctx_o.rd_inflight = ctx_i.rd_inflight - 1'b1;
      if (answer_o && ctx_i.atomics_due != '0) ctx_o.atomics_due = ctx_i.atomics_due - 1'b1;
    end
  end
endmodule

`default_nettype wire
