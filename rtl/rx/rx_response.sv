`default_nettype none

/// Requester checks of one response packet (InfiniBand specification 9.7.5, 9.7.6). slot_i is the
/// head of the Read ring; outputs are right one cycle after desc_i, ctx_i and slot_i are stable.
///
/// An ACK may name any PSN from the newest acknowledged one to the newest sent, a NAK any that is
/// not acknowledged. A Read response must be the next one of the oldest Read whose data is awaited;
/// at that PSN a wrong opcode or length fails the QP.
///
/// Is a Read awaited? The ring indexes have 4 bits, so with 16 Reads outstanding equal indexes mean
/// either that all 16 are awaited or that all 16 have arrived and none is retired. What tells them
/// apart is kept in rd_off: when the last awaited Read has arrived, rd_off becomes {1, 7'b0, PSN of
/// its last response} (an offset never has bit 31, see MaxMessageBytes), and a slot that is newer
/// than that PSN is awaited, an older one is not. Indexes that differ always mean awaited Reads.
module rx_response (
    input  wire logic                  clk_i,
    input  wire rnic_pkg::rx_desc_t    desc_i,
    input  wire rnic_pkg::send_ctx_t   ctx_i,
    input  wire rnic_pkg::read_slot_t  slot_i,
    output rnic_pkg::rx_plan_t         plan_o,
    output rnic_pkg::send_ctx_t        ctx_o,
    output logic                       fetch_o,
    output rnic_pkg::rx_sgl_fetch_t    fetch_data_o,
    output logic                       kill_o,
    output logic                       ack_o,
    output logic                       nak_o,
    output logic                       read_response_o,
    output logic                       stray_o
);
  localparam logic [2:0] KindAck = 3'd0, KindRnr = 3'd1, KindNak = 3'd3;

  logic is_ack, is_first, is_middle, is_last, is_only;
  assign is_ack    = desc_i.opcode == rnic_pkg::RcOpcodeAcknowledge;
  assign is_first  = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseFirst;
  assign is_middle = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseMiddle;
  assign is_last   = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseLast;
  assign is_only   = desc_i.opcode == rnic_pkg::RcOpcodeReadResponseOnly;

  // ---- Comparisons, registered ----
  logic drained, awaited, at_start, is_full, is_final;
  logic [12:0] mtu;
  logic [3:0] mtu_shift, next_head;
  logic [31:0] offset, left;
  logic [23:0] ack_distance, window, slot_age, expected;
  logic [15:0] wqe_slot;
  assign drained      = ctx_i.rd_off[31];
  assign offset       = drained ? 32'd0 : ctx_i.rd_off;
  assign slot_age     = slot_i.first_psn - ctx_i.rd_off[23:0];
  assign awaited      = ctx_i.rd_tail != ctx_i.rd_head
      || (ctx_i.rd_outstanding[4] && (!drained || (slot_age != 24'd0 && !slot_age[23])));
  assign mtu          = 13'd128 << ctx_i.mtu;
  assign mtu_shift    = 4'd7 + 4'(ctx_i.mtu);
  assign left         = slot_i.length - offset;
  assign at_start     = offset == 32'd0;
  assign is_final     = left <= 32'(mtu);
  assign is_full      = desc_i.payload_length == mtu;
  assign expected     = slot_i.first_psn + 24'(offset >> mtu_shift);
  assign ack_distance = desc_i.psn - ctx_i.una_psn;
  assign window       = ctx_i.next_psn - ctx_i.una_psn;
  assign wqe_slot     = slot_i.wqe_idx & ~(16'hffff << ctx_i.log_depth);
  assign next_head    = ctx_i.rd_head + 4'd1;

  logic acks_q, naks_q, on_time_q, legal_q, at_start_q;
  logic [31:0] offset_q;
  logic [63:0] wqe_addr_q;

  always_ff @(posedge clk_i) begin
    acks_q     <= desc_i.syndrome[7:5] == KindAck && (ack_distance + 24'd1) <= window;
    naks_q     <= (desc_i.syndrome[7:5] == KindRnr || desc_i.syndrome[7:5] == KindNak)
        && ack_distance < window;
    on_time_q  <= !is_ack && awaited && desc_i.psn == expected;
    legal_q    <= is_final ? (at_start ? is_only : is_last) && 32'(desc_i.payload_length) == left
                           : (at_start ? is_first : is_middle) && is_full;
    at_start_q <= at_start;
    offset_q   <= offset;
    wqe_addr_q <= ctx_i.sq_base + (64'(wqe_slot) << ctx_i.log_stride);
  end

  // ---- Verdict ----
  logic known, bad, ends, has_payload;
  assign known           = is_ack || is_first || is_middle || is_last || is_only;
  assign ack_o           = is_ack && acks_q;
  assign nak_o           = is_ack && naks_q;
  assign read_response_o = known && on_time_q && legal_q;
  assign bad             = known && on_time_q && !legal_q;
  assign stray_o         = !ack_o && !nak_o && !read_response_o && !bad;
  assign kill_o          = bad;
  assign ends            = is_last || is_only;
  assign has_payload     = desc_i.payload_length != 13'd0;

  always_comb begin : context_update
    ctx_o = ctx_i;
    if (read_response_o) begin
      ctx_o.rd_off = offset_q + 32'(desc_i.payload_length);
      if (ends) begin
        ctx_o.rd_head = next_head;
        ctx_o.rd_off  = (next_head == ctx_i.rd_tail) ? {8'h80, desc_i.psn} : 32'd0;
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
    plan_o.first_byte     = offset_q;
    plan_o.wqe_idx        = slot_i.wqe_idx;
    plan_o.byte_count     = slot_i.length;
    plan_o.cqn            = ctx_i.cqn;
    plan_o.sgl_fetch      = fetch_o;
    if (ack_o) plan_o.action = rnic_pkg::RxActionAck;
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
      desc_i.rkey, slot_i.atomic, desc_i.swap_add, desc_i.compare, desc_i.immediate, desc_i.dma_length, desc_i.msn, desc_i.ipv6, desc_i.source_ip, desc_i.dest_ip};
endmodule

`default_nettype wire
