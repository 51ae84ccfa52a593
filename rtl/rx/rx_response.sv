`default_nettype none

/// Requester checks of one response packet (InfiniBand specification 9.7.5, 9.7.6). slot_i is the
/// head of the Read ring; outputs are right one cycle after desc_i, ctx_i and slot_i are stable.
///
/// An ACK may name any PSN from the newest acknowledged one to the newest ever sent, a NAK any that
/// is sent and not acknowledged. A packet that has its PSN and has not left (reach_i) is not sent:
/// who answers it answers something else. While packets are sent again, an ACK of one that is still
/// to be sent again counts for those that have been: what it says of them is true. A NAK that ends
/// a request may name one that is still to be sent again, too, and so may an RNR NAK, which puts
/// that off (9.7.5.2.8). A Read response must be the next one of the oldest Read whose data is
/// awaited; at that PSN a wrong opcode or length, or an AETH that is no ACK, fails the QP. It
/// acknowledges itself and all before it (9.7.5.1.3). An atomic ACK is the Read response of an
/// atomic, with its AtomicAckETH for data. What is an ACK or a NAK has no payload: one that had
/// some has not come this far (decisions 48).
///
/// Responses come in the order of their PSNs. An ACK, a NAK or a Read response of a later PSN than
/// that of the awaited response therefore says that the latter is lost: an implied NAK (9.7.5.2.3),
/// gap_o, from which the requester sends again. Once it has gone back to that PSN (recovering),
/// such a response tells nothing new. A NAK that ends the awaited Read itself may name any PSN of
/// it; an RNR NAK of the awaited PSN asks for a wait (9.7.5.2.8), and is none of its loss.
///
/// An ACK has credits in its AETH, and so have Read responses but those in the middle: they reach
/// as far as MSN + credits, the LSN (9.7.7.2.5).
module rx_response (
    input  wire logic                  clk_i,
    input  wire rnic_pkg::rx_desc_t    desc_i,
    input  wire rnic_pkg::send_ctx_t   ctx_i,
    input  wire rnic_pkg::read_slot_t  slot_i,
    input  wire rnic_pkg::reach_t      reach_i,
    output rnic_pkg::rx_plan_t         plan_o,
    output rnic_pkg::send_ctx_t        ctx_o,
    output logic                       fetch_o,
    output rnic_pkg::rx_sgl_fetch_t    fetch_data_o,
    output logic                       kill_o,
    output logic                       ack_o,
    output logic                       nak_o,
    output logic                       read_response_o,
    output logic                       gap_o,
    output logic                       stray_o
);
  localparam logic [2:0] KindAck = 3'd0, KindRnr = 3'd1, KindNak = 3'd3;
  localparam logic [7:0] NakPsn = rnic_pkg::AethSyndromeNakPsn;

  logic is_ack, is_first, is_middle, is_last, is_only, is_atomic;
  assign is_atomic = desc_i.opcode == rnic_pkg::RcOpcodeAtomicAcknowledge;
  assign is_ack    = desc_i.opcode == rnic_pkg::RcOpcodeAcknowledge;
  assign is_first  = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseFirst;
  assign is_middle = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseMiddle;
  assign is_last   = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseLast;
  assign is_only   = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseOnly;

  // ---- Comparisons, registered ----
  logic awaited, at_start, is_full, is_final, is_psn_open, fatal, is_rnr, has_aeth, is_positive;
  logic [12:0] mtu;
  logic [3:0] mtu_shift;
  logic [31:0] left;
  logic [23:0] distance, repeated, reach, expected, beyond, later;
  logic [15:0] wqe_slot;
  assign awaited     = ctx_i.rd_tail != ctx_i.rd_head;
  assign mtu         = 13'd128 << ctx_i.mtu;
  assign mtu_shift   = 4'd7 + 4'(ctx_i.mtu);
  assign left        = slot_i.length - ctx_i.rd_off;
  assign at_start    = ctx_i.rd_off == 32'd0;
  assign is_final    = left <= 32'(mtu);
  assign is_full     = desc_i.payload_length == mtu;
  assign expected    = slot_i.first_psn + 24'(ctx_i.rd_off >> mtu_shift);
  assign distance    = desc_i.psn - ctx_i.una_psn;
  assign repeated    = ctx_i.next_psn - ctx_i.una_psn;
  assign reach       = reach_i.known ? reach_i.next_psn - ctx_i.una_psn : 24'd0;
  assign is_psn_open = distance < reach;
  assign beyond      = desc_i.psn - expected;
  // Responses that follow the awaited one
  assign later       = (left == 32'd0) ? 24'd0 : 24'((left - 32'd1) >> mtu_shift);
  assign wqe_slot    = slot_i.wqe_idx & ~(16'hffff << ctx_i.log_depth);
  assign fatal       = is_ack && desc_i.syndrome[7:5] == KindNak && desc_i.syndrome != NakPsn;
  assign is_rnr      = desc_i.syndrome[7:5] == KindRnr;
  assign is_positive = desc_i.syndrome[7:5] == KindAck;
  assign has_aeth    = is_ack || is_first || is_last || is_only || is_atomic;

  // An opcode at the start of a Read, in its middle; for one that is not, or is, its last response.
  logic legal_final, legal_other;
  assign legal_final = slot_i.atomic ? is_atomic :
                       slot_i.replayed ? is_only || is_last : at_start ? is_only : is_last;
  assign legal_other = slot_i.replayed ? is_first || is_middle : at_start ? is_first : is_middle;

  // ---- Credits ----
  logic positive, limited, credits_q, limited_q;
  logic [15:0] credits;
  logic [23:0] lsn_q;
  assign positive = has_aeth && is_positive;
  credit_decode u_credits (
      .code_i   (desc_i.syndrome[4:0]),
      .limited_o(limited),
      .wqes_o   (credits)
  );

  logic acks_q, naks_q, on_time_q, late_q, legal_q, at_start_q, resent_q;
  logic [23:0] ack_psn_q, expected_q;
  logic [63:0] wqe_addr_q;

  always_ff @(posedge clk_i) begin
    acks_q     <= is_positive && (distance + 24'd1) <= reach;
    naks_q     <= (desc_i.syndrome[7:5] == KindRnr || desc_i.syndrome[7:5] == KindNak) &&
        is_psn_open && (fatal || is_rnr || distance < repeated);
    on_time_q  <= !is_ack && awaited && beyond == 24'd0 && is_psn_open;
    late_q     <= awaited && is_psn_open && !beyond[23] &&
        (beyond != 24'd0 || (is_ack && !is_rnr)) && !(fatal && beyond <= later);
    legal_q    <= (is_positive || !has_aeth) &&
        (is_final ? legal_final && 32'(desc_i.payload_length) == left : legal_other && is_full);
    at_start_q <= at_start;
    resent_q   <= ctx_i.recovering && ctx_i.rec_psn == expected;
    ack_psn_q  <= (distance + 24'd1 <= repeated) ? desc_i.psn : ctx_i.next_psn - 24'd1;
    expected_q <= expected;
    credits_q  <= positive;
    limited_q  <= limited;
    lsn_q      <= desc_i.msn + 24'(credits);
    wqe_addr_q <= ctx_i.sq_base + (64'(wqe_slot) << ctx_i.log_stride);
  end

  // ---- Verdict ----
  logic known, bad, ends, has_payload;
  assign known           = is_ack || is_first || is_middle || is_last || is_only ||
      is_atomic;
  assign gap_o           = known && late_q;
  assign ack_o           = is_ack && acks_q && !gap_o;
  assign nak_o           = is_ack && naks_q && !gap_o;
  assign read_response_o = known && on_time_q && legal_q;
  assign bad             = known && on_time_q && !legal_q;
  assign stray_o         = !ack_o && !nak_o && !gap_o && !read_response_o && !bad;
  assign kill_o          = bad;
  assign ends            = is_last || is_only || is_atomic;
  assign has_payload     = desc_i.payload_length != 13'd0;

  always_comb begin : context_update
    ctx_o = ctx_i;
    if (read_response_o) begin
      ctx_o.rd_off     = ctx_i.rd_off + 32'(desc_i.payload_length);
      ctx_o.una_psn    = desc_i.psn + 24'd1;
      ctx_o.recovering = 1'b0;
      ctx_o.retry_left = ctx_i.retry_count;
      ctx_o.rnr_left   = ctx_i.rnr_retry;
      if (ends) begin
        ctx_o.rd_head = ctx_i.rd_head + 5'd1;
        ctx_o.rd_off  = 32'd0;
      end
    end
  end

  always_comb begin : plan
    plan_o                = '0;
    plan_o.qp             = desc_i.dest_qpn[7:0];
    plan_o.qpn            = desc_i.dest_qpn;
    plan_o.payload_length = desc_i.payload_length;
    plan_o.pd             = ctx_i.pd;
    plan_o.psn            = desc_i.psn;
    plan_o.syndrome       = desc_i.syndrome;
    plan_o.first_byte     = ctx_i.rd_off;
    plan_o.wqe_idx        = slot_i.wqe_idx;
    plan_o.byte_count     = slot_i.length;
    plan_o.sgl_fetch      = fetch_o;
    plan_o.atomic         = is_atomic;
    plan_o.with_imm       = credits_q;
    plan_o.immediate      = {7'd0, limited_q, lsn_q};
    if (ack_o) begin
      plan_o.action = rnic_pkg::RxActionAck;
      plan_o.psn    = ack_psn_q;
    end
    // What comes before the gap is acknowledged all the same.
    if (gap_o) begin
      plan_o.action = resent_q ? rnic_pkg::RxActionAck : rnic_pkg::RxActionGap;
      plan_o.psn    = resent_q ? expected_q - 24'd1 : expected_q;
    end
    if (nak_o) plan_o.action = rnic_pkg::RxActionNakReceived;
    if (bad) plan_o.action = rnic_pkg::RxActionBadResponse;
    if (read_response_o) begin
      plan_o.action = ends ? rnic_pkg::RxActionReadDone : rnic_pkg::RxActionReadData;
      plan_o.target = has_payload ? rnic_pkg::PlaceTargetResponse : rnic_pkg::PlaceTargetNone;
    end
  end

  assign fetch_o = read_response_o && at_start_q && has_payload;
  always_comb begin : fetch
    fetch_data_o             = '0;
    fetch_data_o.addr        = wqe_addr_q;
    fetch_data_o.length      = 13'd1 << ctx_i.log_stride;
    fetch_data_o.is_send_wqe = 1'b1;
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, desc_i.solicited, desc_i.ack_req, desc_i.pkey, desc_i.va,
      desc_i.rkey, desc_i.swap_add, desc_i.compare, desc_i.immediate, desc_i.dma_length,
      desc_i.qkey, desc_i.parked, desc_i.source_qpn, desc_i.ipv6, desc_i.source_ip, desc_i.dest_ip,
      desc_i.multicast, desc_i.vlan, desc_i.vlan_tci, desc_i.l3_ok, desc_i.l4_ok};
endmodule

`default_nettype wire
