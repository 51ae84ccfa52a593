`default_nettype none

/// Responder checks of one packet of UC, UD or RawPacket (InfiniBand specification 9.8.2.2,
/// 9.8.3.2). Outputs are right one cycle after desc_i and ctx_i are stable. Nothing is ever
/// answered.
///
/// UC: a message lives as long as its packets come in the order of their PSNs; any that does not
/// follow ends it, and what is left of it is dropped. A First or Only begins the next one, whatever
/// its PSN. A message that is too long or short, that the QP does not allow, or for which there is
/// no receive WQE is dropped as well, from the packet on that shows it. The receive WQE of a SEND
/// is used up by its last packet, so that of a broken one serves the next.
///
/// RawPacket: as UD, but that a frame has no GRH.
///
/// UD: every packet is a message; its PSN means nothing. Its payload starts with its GRH. It may be
/// on a shared receive queue, UC is not: wants_o, take_o and wqe_* are as in rx_request. An SRQ in
/// error is no fault of the peer: kill_o, the QP fails, as on RC.
module rx_unreliable (
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
    output logic                       broken_o,
    output logic                       invalid_o,
    output logic                       no_wqe_o
);
  // ---- Opcode: the low five bits, as of RC ----
  logic is_ud, is_raw, is_send, is_write, is_write_imm, immediate, starts, ends;
  logic [1:0] message;
  assign is_ud  = ctx_i.qp_type == rnic_pkg::QpTypeUd;
  assign is_raw = ctx_i.qp_type == rnic_pkg::QpTypeRawPacket;
  always_comb begin : decode
    {is_send, is_write, starts, ends, immediate} = 5'b00000;
    unique case ({3'd0, desc_i.opcode[4:0]})
      rnic_pkg::RcOpcodeSendFirst:          {is_send, starts} = 2'b11;
      rnic_pkg::RcOpcodeSendMiddle:         is_send = 1'b1;
      rnic_pkg::RcOpcodeSendLast:           {is_send, ends} = 2'b11;
      rnic_pkg::RcOpcodeSendLastImmediate:  {is_send, ends, immediate} = 3'b111;
      rnic_pkg::RcOpcodeSendOnly:           {is_send, starts, ends} = 3'b111;
      rnic_pkg::RcOpcodeSendOnlyImmediate:  {is_send, starts, ends, immediate} = 4'b1111;
      rnic_pkg::RcOpcodeWriteFirst:         {is_write, starts} = 2'b11;
      rnic_pkg::RcOpcodeWriteMiddle:        is_write = 1'b1;
      rnic_pkg::RcOpcodeWriteLast:          {is_write, ends} = 2'b11;
      rnic_pkg::RcOpcodeWriteLastImmediate: {is_write, ends, immediate} = 3'b111;
      rnic_pkg::RcOpcodeWriteOnly:          {is_write, starts, ends} = 3'b111;
      rnic_pkg::RcOpcodeWriteOnlyImmediate: {is_write, starts, ends, immediate} = 4'b1111;
      default: ;
    endcase
    is_write_imm = is_write && immediate;
  end
  assign wants_o = (is_send && starts) || is_write_imm;
  assign message = is_send ? rnic_pkg::RecvMessageSend : rnic_pkg::RecvMessageWrite;

  // ---- Comparisons, registered ----
  logic [12:0] mtu, limit;
  logic [31:0] payload, sum, total;
  logic bad_payload, bad_total;
  assign mtu     = 13'd128 << ctx_i.mtu;
  assign limit   = is_raw ? rnic_pkg::MaxFrameBytes[12:0] :
      mtu + (is_ud ? rnic_pkg::GrhBytes[12:0] : 13'd0);
  assign payload = 32'(desc_i.payload_length);
  assign sum     = (starts ? 32'd0 : ctx_i.received) + payload;
  assign total   = starts ? desc_i.dma_length : ctx_i.remain;

  logic known_q, follows_q, bad_length_q, forbidden_q;
  logic [31:0] sum_q, remain_q;
  logic [63:0] next_va_q;

  always_comb begin : lengths
    // First and Middle are full, Last has 1 to MTU bytes, Only 0 to MTU.
    bad_payload = ends ? desc_i.payload_length > limit || (!starts && payload == 32'd0)
                       : desc_i.payload_length != mtu;
    // The packets of a WRITE carry exactly its length.
    if (is_send) bad_total = sum > rnic_pkg::MaxMessageBytes;
    else bad_total = (starts && desc_i.dma_length > rnic_pkg::MaxMessageBytes)
        || (ends ? payload != total : payload >= total);
  end

  always_ff @(posedge clk_i) begin
    known_q      <= is_send || is_write;
    follows_q    <= ctx_i.msg == message && desc_i.psn == ctx_i.epsn;
    bad_length_q <= bad_payload || bad_total;
    forbidden_q  <= is_write && !ctx_i.remote_write;
    sum_q        <= sum;
    remain_q     <= total - payload;
    next_va_q    <= (starts ? desc_i.va : ctx_i.va) + 64'(desc_i.payload_length);
  end

  // ---- Verdict ----
  // under_way: a message is given up unless this packet follows.
  logic in_place, under_way, has_place, execute;
  assign in_place  = known_q && (starts || follows_q);
  assign under_way = ctx_i.msg == rnic_pkg::RecvMessageSend ||
      ctx_i.msg == rnic_pkg::RecvMessageWrite;
  assign invalid_o = in_place && (bad_length_q || forbidden_q);
  assign has_place = !wants_o || !(wqe_error_i || wqe_empty_i);
  assign kill_o    = in_place && !invalid_o && wants_o && wqe_error_i;
  assign no_wqe_o  = in_place && !invalid_o && wants_o && wqe_empty_i && !wqe_error_i;
  assign execute   = in_place && !invalid_o && has_place;
  assign take_o    = execute && wants_o && ctx_i.srq;
  // Once a message: where it is given up, or at the first packet of one whose beginning is missing.
  assign broken_o  = (under_way && (starts || !in_place)) ||
      (ctx_i.msg == rnic_pkg::RecvMessageNone && known_q && !in_place);

  always_comb begin : context_update
    ctx_o = ctx_i;
    if (!is_ud && !is_raw) begin
      ctx_o.epsn = desc_i.psn + 24'd1;
      ctx_o.msg  = ends ? rnic_pkg::RecvMessageNone : rnic_pkg::RecvMessageDropped;
    end
    if (execute) begin
      if (!ends) ctx_o.msg = message;
      ctx_o.received = ends ? 32'd0 : sum_q;
      if (is_write) begin
        ctx_o.va     = next_va_q;
        ctx_o.remain = remain_q;
        if (starts) ctx_o.rkey = desc_i.rkey;
      end
      if (((is_send && ends) || is_write_imm) && !ctx_i.srq) begin
        ctx_o.rq_head = ctx_i.rq_head + 16'd1;
      end
    end
  end

  logic has_payload;
  assign has_payload = desc_i.payload_length != 13'd0;

  always_comb begin : plan
    plan_o                = '0;
    plan_o.qp             = desc_i.dest_qpn[7:0];
    plan_o.qpn            = desc_i.dest_qpn;
    plan_o.payload_length = desc_i.payload_length;
    plan_o.pd             = ctx_i.pd;
    plan_o.psn            = desc_i.psn;
    plan_o.wqe_idx        = wqe_index_i;
    plan_o.srq            = ctx_i.srq;
    plan_o.takes          = take_o;
    plan_o.srqn           = ctx_i.srqn;
    plan_o.unreliable     = 1'b1;
    plan_o.take           = ctx_i.take;
    if (kill_o) begin
      plan_o.action   = rnic_pkg::RxActionNak;
      plan_o.syndrome = rnic_pkg::AethSyndromeNakRemoteOperational;
    end
    if (execute) begin
      plan_o.key          = starts ? desc_i.rkey : ctx_i.rkey;
      plan_o.va           = starts ? desc_i.va : ctx_i.va;
      // The whole range of a message is checked at its first packet, so that no part of a bad one
      // is written.
      plan_o.check_length = starts ? desc_i.dma_length : payload;
      plan_o.first_byte   = starts ? 32'd0 : ctx_i.received;
      plan_o.byte_count   = sum_q;
      plan_o.solicited    = desc_i.solicited;
      plan_o.msg_last     = ends;
      plan_o.write_imm    = is_write_imm;
      plan_o.with_imm     = immediate;
      plan_o.immediate    = desc_i.immediate;
      plan_o.grh          = is_ud;
      plan_o.source_qpn   = desc_i.source_qpn;
      plan_o.vlan         = is_ud && desc_i.vlan;
      plan_o.vlan_tci     = is_ud ? desc_i.vlan_tci : '0;
      plan_o.l3_ok        = desc_i.l3_ok;
      plan_o.l4_ok        = desc_i.l4_ok;
      plan_o.sgl_fetch    = fetch_o;
      // A scatter list is checked against the domain of its own queue.
      if (take_o) plan_o.pd = wqe_pd_i;
      if (has_payload) begin
        plan_o.target = is_send ? rnic_pkg::PlaceTargetReceive : rnic_pkg::PlaceTargetWrite;
      end
      if ((is_send && ends) || is_write_imm) plan_o.action = rnic_pkg::RxActionReceiveDone;
    end
  end

  // The tag of an SRQ's WQE is in it: it is read whatever goes to its buffers.
  assign fetch_o = take_o || (execute && is_send && starts && has_payload);

  logic unused_bits;
  assign unused_bits = &{1'b0, desc_i, ctx_i};
endmodule

`default_nettype wire
