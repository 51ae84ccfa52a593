`default_nettype none

/// Responder checks of one request packet (InfiniBand specification 9.7.4.1), in their order: PSN,
/// opcode sequence and support, lengths, rights of the QP, resources. Outputs are right one cycle
/// after desc_i and ctx_i are stable.
///
/// A duplicate SEND or WRITE is acknowledged again and not executed (9.7.5.1). The ACK names the
/// newest SEND or WRITE, never a READ or an atomic: their data alone answers them (C9-105), and
/// nobody may take an ACK for it. A duplicate READ, of a whole earlier Read or from any packet of
/// it on, is answered again (9.7.5.1.3), unless too many wait for their answer already, or its PSNs
/// are not all old: then it is dropped, and its requester will ask again. So is a duplicate atomic,
/// from its saved result. A PSN ahead is NAKed once, and then nothing is said until epsn arrives
/// (9.7.5.2); an RNR NAK counts as such a NAK. kill_o: after a fatal NAK nothing more of this side
/// of the QP may run.
///
/// SENDs, WRITEs and atomics are executed in the order in which they come (9.5, C9-28), and an
/// atomic only when its turn to answer comes. A SEND or WRITE that is here before that is held, and
/// so is all that is new behind it (`parked`, rx_park): it is judged when it comes again. So is one
/// behind a SEND with invalidate whose key has not been invalidated yet: if that is refused,
/// nothing behind it may be executed (9.9.3.1). READs and atomics need not wait for that: they are
/// executed behind the completion block, which drops them (rx_post). A READ or atomic that finds
/// the ring full of repeated ones is held too (no_room_o, the first time).
///
/// A WRITE with immediate data takes a receive WQE at its last packet, of which nothing is executed
/// before there is one (9.4.3). An atomic is a Read of another kind, at a multiple of 8 (9.4.5).
///
/// wants_o: this packet needs a receive WQE, wqe_* (rx_source). take_o: it takes that of a shared
/// receive queue. Nothing is taken for a packet that is not executed.
module rx_request (
    input  wire logic                  clk_i,
    input  wire rnic_pkg::rx_desc_t    desc_i,
    input  wire rnic_pkg::recv_ctx_t   ctx_i,
    input  wire logic [15:0]           wqe_index_i,
    input  wire logic [23:0]           wqe_pd_i,
    input  wire logic                  wqe_empty_i,
    input  wire logic                  wqe_error_i,
    output logic                       wants_o,
    output logic                       take_o,
    output rnic_pkg::rx_plan_t         plan_o,
    output rnic_pkg::recv_ctx_t        ctx_o,
    output logic                       fetch_o,
    output logic                       kill_o,
    output logic                       duplicate_o,
    output logic                       psn_error_o,
    output logic                       held_o,
    output logic                       invalid_o,
    output logic                       forbidden_o,
    output logic                       no_room_o,
    output logic                       srq_error_o,
    output logic                       rnr_o
);
  localparam int unsigned RingSize = 2 * rnic_pkg::MaxReadsOutstanding;  // Of the responder

  // ---- Opcode ----
  logic is_send, is_write, is_read, is_atomic, is_write_imm, immediate, invalidate;
  logic starts, ends, known;
  logic [1:0] message;
  rx_request_opcode u_opcode (
      .opcode_i    (desc_i.opcode),
      .is_send_o   (is_send),
      .is_write_o  (is_write),
      .is_read_o   (is_read),
      .is_atomic_o (is_atomic),
      .immediate_o (immediate),
      .invalidate_o(invalidate),
      .starts_o    (starts),
      .ends_o      (ends)
  );
  assign is_write_imm = is_write && immediate;
  assign known        = is_send || is_write || is_read;
  assign wants_o      = (is_send && starts) || is_write_imm;
  assign message      = is_send ? rnic_pkg::RecvMessageSend : rnic_pkg::RecvMessageWrite;

  // ---- Comparisons, registered ----
  logic [12:0] mtu;
  logic [31:0] payload, total, sum, remain, read_packets;
  logic [3:0] mtu_shift;
  logic [23:0] psn_ahead, read_psns, reads_since;
  logic [5:0] in_ring;
  logic too_long;
  assign mtu          = 13'd128 << ctx_i.mtu;
  assign mtu_shift    = 4'd7 + 4'(ctx_i.mtu);
  assign payload      = 32'(desc_i.payload_length);
  assign sum          = (starts ? 32'd0 : ctx_i.received) + payload;
  assign too_long     = desc_i.dma_length > rnic_pkg::MaxMessageBytes;
  assign total        = starts ? desc_i.dma_length : ctx_i.remain;
  assign remain       = total - payload;
  assign read_packets = (desc_i.dma_length + 32'(mtu) - 32'd1) >> mtu_shift;
  assign in_ring      = {1'b0, ctx_i.rd_inflight} + {1'b0, ctx_i.rp_inflight};
  assign psn_ahead    = desc_i.psn - ctx_i.epsn;
  // A Read takes the PSNs of all its responses, at least one (9.7.2).
  assign read_psns    = (read_packets != 32'd0) ? read_packets[23:0] : 24'd1;

  // PSNs of Reads and atomics behind the newest SEND or WRITE. Bit 23 stays: it is out of sight.
  assign reads_since  = (ctx_i.reads_since + read_psns)
      | {ctx_i.reads_since[23] || read_psns[23], 23'd0};

  logic ahead_q, behind_q, bad_sequence_q, bad_length_q, forbidden_q, read_full_q;
  logic must_wait_q, all_old_q, ring_full_q;
  logic bad_payload, bad_total;
  logic [31:0] sum_q, remain_q;
  logic [23:0] next_epsn_q, last_psn_q, newest_q, reads_since_q;
  logic [63:0] next_va_q;

  always_comb begin : lengths
    // First and Middle are full, Last has 1 to MTU bytes, Only 0 to MTU.
    bad_payload = ends ? desc_i.payload_length > mtu || (!starts && payload == 32'd0)
                       : desc_i.payload_length != mtu;
    if (is_read) bad_payload = payload != 32'd0;
    // The packets of a WRITE carry its length exactly; there is more unless this one ends it.
    // At most 2^31 bytes (9.7.4.1.6, 9.7.4.1.7).
    if (is_send) bad_total = sum > rnic_pkg::MaxMessageBytes;
    else if (is_atomic) bad_total = desc_i.va[2:0] != 3'd0;
    else if (is_read) bad_total = too_long;
    else bad_total = (starts && too_long)
        || (ends ? payload != total : payload >= total);
  end

  always_ff @(posedge clk_i) begin
    ahead_q        <= psn_ahead != 24'd0 && !psn_ahead[23];
    behind_q       <= psn_ahead[23];
    bad_sequence_q <= !known || (starts ? ctx_i.msg != rnic_pkg::RecvMessageNone
                                        : ctx_i.msg != message);
    bad_length_q   <= bad_payload || bad_total;
    forbidden_q    <= (is_write && !ctx_i.remote_write) ||
        (is_atomic ? !ctx_i.remote_atomic : is_read && !ctx_i.remote_read);
    read_full_q    <= is_read && ctx_i.rd_inflight >= ctx_i.max_dest_rd;
    ring_full_q    <= is_read && (32'(in_ring) >= RingSize || ctx_i.rp_inflight == '1);
    must_wait_q    <= (is_send || is_write) && (ctx_i.atomics_due != 5'd0 || ctx_i.invalidating);
    sum_q          <= sum;
    remain_q       <= remain;
    newest_q       <= ctx_i.epsn - 24'd1 - ctx_i.reads_since;
    reads_since_q  <= is_read ? reads_since : 24'd0;
    next_epsn_q    <= ctx_i.epsn + (is_read ? read_psns : 24'd1);
    last_psn_q     <= desc_i.psn + read_psns - 24'd1;
    all_old_q      <= read_psns <= ctx_i.epsn - desc_i.psn;
    next_va_q      <= (starts ? desc_i.va : ctx_i.va) + 64'(desc_i.payload_length);
  end

  // ---- Verdict ----
  logic execute, replay, has_payload;
  logic [7:0] nak;
  always_comb begin : verdict
    {duplicate_o, psn_error_o, held_o, invalid_o, rnr_o, kill_o, execute} = 7'b0000000;
    {forbidden_o, no_room_o, srq_error_o} = 3'b000;
    replay = behind_q && is_read && all_old_q && !bad_length_q && !forbidden_q && !ring_full_q;
    nak = 8'd0;
    if (behind_q) begin
      duplicate_o = 1'b1;
    end else if (!desc_i.parked && ctx_i.parked != 8'd0) begin
      held_o = 1'b1;
    end else if (ahead_q) begin
      psn_error_o = 1'b1;
      nak         = ctx_i.nak_sent ? 8'd0 : rnic_pkg::AethSyndromeNakPsn;
    end else if (bad_sequence_q || bad_length_q) begin
      invalid_o = 1'b1;
    end else if (forbidden_q) begin
      forbidden_o = 1'b1;
      kill_o      = 1'b1;
      nak         = rnic_pkg::AethSyndromeNakInvalidRequest;
    end else if (read_full_q) begin
      invalid_o = 1'b1;
    end else if (ring_full_q) begin
      // Full of repeated Reads: until one of them has been answered.
      no_room_o = !desc_i.parked;
      held_o    = 1'b1;
    end else if (must_wait_q) begin
      held_o = 1'b1;
    end else if (wants_o && wqe_error_i) begin
      srq_error_o = 1'b1;
      kill_o      = 1'b1;
      nak         = rnic_pkg::AethSyndromeNakRemoteOperational;
    end else if (wants_o && wqe_empty_i) begin
      rnr_o = 1'b1;
      nak   = rnic_pkg::AethSyndromeRnrNak | 8'(ctx_i.min_rnr_timer);
    end else begin
      execute = 1'b1;
    end
    if (invalid_o) begin
      kill_o = 1'b1;
      nak    = rnic_pkg::AethSyndromeNakInvalidRequest;
    end
  end

  always_comb begin : context_update
    ctx_o = ctx_i;
    if (nak != 8'd0) ctx_o.nak_sent = 1'b1;
    if (execute) begin
      ctx_o.nak_sent = 1'b0;
      ctx_o.epsn     = next_epsn_q;
      ctx_o.reads_since = reads_since_q;
      if (is_send) begin
        ctx_o.msg      = ends ? rnic_pkg::RecvMessageNone : message;
        ctx_o.received = ends ? 32'd0 : sum_q;
        if (ends && !ctx_i.srq) ctx_o.rq_head = ctx_i.rq_head + 16'd1;
      end
      if (is_write) begin
        ctx_o.msg    = ends ? rnic_pkg::RecvMessageNone : message;
        ctx_o.va     = next_va_q;
        ctx_o.remain = remain_q;
        ctx_o.received = ends ? 32'd0 : sum_q;
        if (is_write_imm && !ctx_i.srq) ctx_o.rq_head = ctx_i.rq_head + 16'd1;
        if (starts) ctx_o.rkey = desc_i.rkey;
      end
    end
    if (is_read && execute) ctx_o.rd_inflight = ctx_i.rd_inflight + 5'd1;
    if (is_atomic && execute) ctx_o.atomics_due = ctx_i.atomics_due + 5'd1;
    if (is_send && invalidate && execute) ctx_o.invalidating = 1'b1;
    if (replay) ctx_o.rp_inflight = ctx_i.rp_inflight + 5'd1;
    if (held_o && !desc_i.parked) ctx_o.parked = ctx_i.parked + 8'd1;
    if (desc_i.parked && !held_o && ctx_i.parked != 8'd0) ctx_o.parked = ctx_i.parked - 8'd1;
  end

  assign take_o      = execute && wants_o && ctx_i.srq;
  assign has_payload = desc_i.payload_length != 13'd0;
  always_comb begin : plan
    plan_o                = '0;
    plan_o.qp             = desc_i.dest_qpn[7:0];
    plan_o.qpn            = desc_i.dest_qpn;
    plan_o.payload_length = desc_i.payload_length;
    plan_o.pd             = ctx_i.pd;
    plan_o.psn            = ctx_i.epsn;
    plan_o.ack_req        = desc_i.ack_req;
    plan_o.wqe_idx        = wqe_index_i;
    plan_o.srq            = ctx_i.srq;
    plan_o.takes          = take_o;
    plan_o.srqn           = ctx_i.srqn;
    if (nak != 8'd0) begin
      plan_o.action   = rnic_pkg::RxActionNak;
      plan_o.syndrome = nak;
    end
    if (duplicate_o && (is_send || is_write) && !ctx_i.reads_since[23]) begin
      plan_o.action  = rnic_pkg::RxActionExecuted;
      plan_o.psn     = newest_q;
      plan_o.ack_req = 1'b1;
    end
    if (execute || replay) begin
      plan_o.action   = rnic_pkg::RxActionExecuted;
      plan_o.msg_last = ends && !replay;
      if (replay) plan_o.psn = desc_i.psn;
      plan_o.key      = starts ? desc_i.rkey : ctx_i.rkey;
      plan_o.va       = starts ? desc_i.va : ctx_i.va;
      // The whole range of a message is checked at its first packet, so that no part of a bad one
      // is written.
      plan_o.check_length = starts ? desc_i.dma_length : payload;
      if (is_send) begin
        plan_o.target     = has_payload ? rnic_pkg::PlaceTargetReceive : rnic_pkg::PlaceTargetNone;
        plan_o.first_byte = starts ? 32'd0 : ctx_i.received;
        plan_o.byte_count = sum_q;
        plan_o.solicited  = desc_i.solicited;
        // A scatter list is checked against the domain of its own queue.
        if (take_o) plan_o.pd = wqe_pd_i;
        if (ends) plan_o.action = rnic_pkg::RxActionReceiveDone;
      end
      plan_o.sgl_fetch       = fetch_o;
      plan_o.write_imm       = is_write_imm;
      plan_o.with_imm        = immediate;
      plan_o.with_invalidate = invalidate;
      plan_o.immediate       = desc_i.immediate;
      if (is_write && has_payload) plan_o.target = rnic_pkg::PlaceTargetWrite;
      if (is_write_imm) begin
        plan_o.action     = rnic_pkg::RxActionReceiveDone;
        plan_o.byte_count = sum_q;
        plan_o.solicited  = desc_i.solicited;
      end
      if (is_read) begin
        plan_o.action     = rnic_pkg::RxActionReadRequest;
        plan_o.byte_count = desc_i.dma_length;
        plan_o.immediate  = 32'(last_psn_q);
        // The key of a Read of zero bytes is not checked (9.7.4.1.5). That of a repeated one may be
        // gone by now: its packets are checked one by one as they leave, and none is missed.
        if (desc_i.dma_length != 32'd0 && !replay) plan_o.target = rnic_pkg::PlaceTargetCheckRead;
      end
      if (is_atomic) begin
        plan_o.atomic       = 1'b1;
        plan_o.fetch_add    = desc_i.opcode == rnic_pkg::RcOpcodeFetchAdd;
        plan_o.swap_add     = desc_i.swap_add;
        plan_o.compare      = desc_i.compare;
        plan_o.check_length = 32'd8;
        // A saved result is given without looking at memory.
        plan_o.target = replay ? rnic_pkg::PlaceTargetNone : rnic_pkg::PlaceTargetCheckAtomic;
      end
    end
  end

  // The tag of an SRQ's WQE is in it: it is read even when its buffers stay untouched.
  assign fetch_o = take_o || (execute && is_send && starts && has_payload);

  logic unused_bits;
  assign unused_bits = &{1'b0, desc_i.pkey, desc_i.syndrome, desc_i.msn, desc_i.qkey,
      desc_i.source_qpn, desc_i.ipv6, desc_i.multicast, desc_i.l3_ok, desc_i.l4_ok,
      desc_i.source_ip, desc_i.dest_ip, desc_i.vlan, desc_i.vlan_tci, read_packets[31:24]};
endmodule

`default_nettype wire
