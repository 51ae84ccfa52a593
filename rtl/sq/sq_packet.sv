`default_nettype none

/// The next packet of a WQE: from the context and the WQE's first four segments, its descriptor,
/// what it adds to the in-flight table and the Read ring, and the context after it (but for the
/// place in the scatter list). Combinational.
///
/// A Read that is sent again asks only for what has not arrived: its first msg_off bytes have. An
/// atomic is a Read of 8 bytes but for its opcode and its header. A memory operation takes no PSN:
/// the last PSN of its entry is the one before it. Of UC and UD nothing is acknowledged: the last
/// packet of a message tells when it leaves. A datagram is one packet; it goes where its WQE says.
/// A raw frame is one packet too.
module sq_packet (
    input  wire logic [7:0]             qp_i,
    input  wire rnic_pkg::send_ctx_t    ctx_i,
    input  wire rnic_pkg::wqe_control_t control_i,
    // What follows wqe_control
    input  wire logic [383:0]           header_i,
    output logic                        is_read_o,
    output logic                        is_memory_o,
    output logic                        last_o,
    output logic                        psn_room_o,
    output rnic_pkg::tx_desc_t          desc_o,
    output rnic_pkg::inflight_t         inflight_o,
    output rnic_pkg::read_slot_t        read_slot_o,
    output rnic_pkg::send_ctx_t         ctx_o
);
  rnic_pkg::wqe_remote_t remote;
  rnic_pkg::wqe_atomic_t atomic;
  rnic_pkg::wqe_address_t address;
  logic is_read, is_write, is_atomic, is_rc, is_ud, is_raw, immediate, invalidate, first,
      last;
  logic is_send, takes_receive, unused_known;
  logic [3:0] log_mtu;
  logic [12:0] mtu;
  logic [31:0] rest;
  logic [12:0] payload;
  logic [23:0] packet_number, psns, unacknowledged, sent, to_repeat;
  logic [7:0] position;

  sq_decode u_decode (
      .opcode_i    (control_i.opcode),
      .known_o     (unused_known),
      .is_send_o   (is_send),
      .is_write_o  (is_write),
      .is_read_o   (is_read),
      .is_atomic_o (is_atomic),
      .is_memory_o (is_memory_o),
      .immediate_o (immediate),
      .invalidate_o(invalidate)
  );
  assign is_read_o = is_read;
  // Of the peer's
  assign takes_receive = is_send || (is_write && immediate);
  assign is_rc     = ctx_i.qp_type == rnic_pkg::QpTypeRc;
  assign is_ud     = ctx_i.qp_type == rnic_pkg::QpTypeUd;
  assign is_raw    = ctx_i.qp_type == rnic_pkg::QpTypeRawPacket;
  assign remote    = header_i[127:0];
  assign atomic    = header_i[255:128];
  assign address   = header_i;

  // Path MTU 128 << ibv_mtu bytes. msg_off is a multiple of it.
  assign log_mtu       = is_raw ? 4'd12 : 4'd7 + 4'(ctx_i.mtu);
  assign mtu           = 13'd1 << log_mtu;
  assign rest          = control_i.length - ctx_i.msg_off;
  assign first         = ctx_i.msg_off == '0;
  assign last          = is_read || rest <= 32'(mtu);
  assign payload       = is_read ? '0 : last ? rest[12:0] : mtu;
  assign packet_number = 24'(ctx_i.msg_off >> log_mtu);

  // A Read takes a PSN for every response packet (InfiniBand specification 9.7.2): at least one.
  always_comb begin
    psns = 24'd1;
    if (is_memory_o) psns = '0;
    else if (is_read && rest != '0) psns = 24'((rest + 32'(mtu) - 32'd1) >> log_mtu);
  end
  // At most half of the PSNs may be outstanding, or acknowledgements become ambiguous (9.7.2).
  assign unacknowledged = ctx_i.next_psn - ctx_i.una_psn;
  assign psn_room_o     = {1'b0, unacknowledged} + {1'b0, psns} <= 25'h800000;
  assign sent           = ctx_i.next_psn + psns;
  // What is still to be sent again: up to 2^23, which the sign of a difference would not tell.
  assign to_repeat      = ctx_i.max_psn - ctx_i.next_psn;

  // First, Middle, Last, Only are at the same distances for SEND and RDMA WRITE (table 38), and so
  // are Last and Only with immediate data, one further on.
  always_comb begin
    position = rnic_pkg::RcOpcodeSendMiddle;
    if (first && last) position = rnic_pkg::RcOpcodeSendOnly;
    else if (first) position = rnic_pkg::RcOpcodeSendFirst;
    else if (last) position = rnic_pkg::RcOpcodeSendLast;
    if (last && immediate) position = position + 8'd1;
  end

  always_comb begin
    desc_o        = '0;
    desc_o.qp     = qp_i;
    desc_o.psn    = ctx_i.next_psn;
    desc_o.opcode = position;
    if (is_write) desc_o.opcode = position + rnic_pkg::RcOpcodeWriteFirst;
    if (last && invalidate) begin
      desc_o.opcode = first ? rnic_pkg::RcOpcodeSendOnlyInvalidate :
                              rnic_pkg::RcOpcodeSendLastInvalidate;
    end
    if (is_read) desc_o.opcode = rnic_pkg::RcOpcodeReadRequest;
    if (is_atomic) begin
      desc_o.opcode = (control_i.opcode == rnic_pkg::WqeOpcodeFetchAdd) ?
                      rnic_pkg::RcOpcodeFetchAdd : rnic_pkg::RcOpcodeCompareSwap;
    end
    // The transport service is in the upper bits of the opcode.
    desc_o.opcode         = desc_o.opcode | {1'b0, ctx_i.qp_type, 5'd0};
    desc_o.ack_req        = is_rc && (last || packet_number[3:0] == 4'd15);
    desc_o.tell           = !is_rc && last;
    desc_o.turned         = ctx_i.turned;
    desc_o.tries          = ctx_i.tries;
    desc_o.solicited      = last && control_i.solicited && takes_receive;
    desc_o.payload_length = payload;
    if (is_read || (is_write && first)) begin
      desc_o.va         = remote.va + (is_read ? 64'(ctx_i.msg_off) : 64'd0);
      desc_o.rkey       = remote.rkey;
      if (!is_atomic) desc_o.dma_length = rest;
    end
    if (is_atomic) {desc_o.compare, desc_o.swap_add} = {atomic.compare, atomic.swap_add};
    if (last && (immediate || invalidate)) desc_o.immediate = control_i.immediate;
    desc_o.wqe_idx     = ctx_i.exec_idx;
    desc_o.ack_timeout = ctx_i.ack_timeout;
    desc_o.last_psn    = sent - 24'd1;
    desc_o.ip_csum     = is_raw && control_i.ip_csum;
    if (is_ud) begin
      desc_o.address    = header_i;
      desc_o.source_qpn = ctx_i.qpn;
      desc_o.qkey       = address.qkey[31] ? ctx_i.qkey : address.qkey;
    end
  end

  always_comb begin
    inflight_o           = '0;
    inflight_o.qp        = qp_i;
    inflight_o.wqe_idx   = ctx_i.exec_idx;
    inflight_o.opcode    = {4'd0, control_i.opcode[3:0]};
    inflight_o.silent    = control_i.silent;
    inflight_o.first_psn = ctx_i.next_psn - packet_number;
    inflight_o.last_psn  = sent - 24'd1;
    inflight_o.length    = control_i.length;

    read_slot_o           = '0;
    read_slot_o.wqe_idx   = ctx_i.exec_idx;
    read_slot_o.first_psn = ctx_i.next_psn - packet_number;
    read_slot_o.length    = control_i.length;
    read_slot_o.atomic    = is_atomic;
    read_slot_o.replayed  = ctx_i.next_psn != ctx_i.max_psn;
  end

  always_comb begin
    ctx_o            = ctx_i;
    ctx_o.next_psn   = sent;
    if (psns >= to_repeat) begin
      ctx_o.max_psn = sent;
      if (last) ctx_o.sent_idx = ctx_i.exec_idx + 1'b1;
    end
    ctx_o.resume     = 1'b0;
    ctx_o.turned     = 1'b0;
    ctx_o.msg_active = !last;
    ctx_o.msg_off    = last ? '0 : ctx_i.msg_off + 32'(mtu);
    if (last) begin
      ctx_o.ssn       = ctx_i.ssn + 1'b1;
      ctx_o.exec_idx  = ctx_i.exec_idx + 1'b1;
      ctx_o.buf_idx   = ctx_i.buf_idx + 1'b1;
      ctx_o.buf_count = ctx_i.buf_count - 1'b1;
    end
    if (is_read) begin
      ctx_o.rd_tail        = ctx_i.rd_tail + 1'b1;
      ctx_o.rd_outstanding = ctx_i.rd_outstanding + 1'b1;
    end
  end
  assign last_o = last;

  logic unused_bits;
  assign unused_bits = ^{control_i, remote, address};
endmodule

`default_nettype wire
