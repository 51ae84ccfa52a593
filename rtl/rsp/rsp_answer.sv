`default_nettype none

/// What leaves in a turn of the responder: the descriptor of its packet, its piece, or an atomic.
/// Combinational.
///
/// read_i, atomic_i: the next response of the Read slot_*, of which sent_i bytes have been sent,
/// or the answer of an atomic (answer_i); rsp_packet makes it. Otherwise an ACK or, with nak_i,
/// the NAK that waits (queue_*). Every positive answer has the credits of the moment (InfiniBand
/// specification 9.7.7.2): the receive WQEs posted that no finished message has used up. fault_i:
/// the NAK of the packet that fault_data_i is about: a key or range that no longer grants access,
/// or memory that failed (9.7.4.1.4, 9.7.4.1.5). That of an atomic does not count it, nor what is
/// behind it: an atomic counts when it has been executed (9.7.7.1). stopped_i: another NAK has left
/// before it.
///
/// last_o, sent_o: of a Read, whether this packet is its last, and the bytes sent with it.
/// atomic_o: the slot as an atomic for rsp_atomic.
module rsp_answer (
    input  wire logic [7:0]           qp_i,
    input  wire rnic_pkg::recv_ctx_t  ctx_i,
    input  wire logic                 read_i,
    input  wire logic                 atomic_i,
    input  wire logic                 nak_i,
    input  wire logic                 fault_i,
    input  wire logic                 stopped_i,
    input  wire rnic_pkg::tx_fault_t  fault_data_i,
    input  wire logic [23:0]          queue_psn_i,
    input  wire logic [7:0]           queue_syndrome_i,
    input  wire logic [23:0]          queue_msn_i,
    input  wire logic [63:0]          slot_va_i,
    input  wire logic [31:0]          slot_key_i,
    input  wire logic [31:0]          slot_length_i,
    input  wire logic [23:0]          slot_psn_i,
    input  wire logic [23:0]          slot_msn_i,
    input  wire logic                 slot_atomic_i,
    input  wire logic                 slot_repeated_i,
    input  wire logic                 slot_fetch_add_i,
    input  wire logic [63:0]          slot_swap_add_i,
    input  wire logic [63:0]          slot_compare_i,
    input  wire logic [31:0]          sent_i,
    input  wire logic [63:0]          answer_i,
    output logic                      last_o,
    output logic [31:0]               sent_o,
    output rnic_pkg::tx_desc_t        desc_o,
    output rnic_pkg::sg_piece_t       piece_o,
    output rnic_pkg::atomic_op_t      atomic_o
);
  rnic_pkg::tx_desc_t read_desc;
  logic [7:0] ack_syndrome;

  assign ack_syndrome[7:5] = 3'd0;
  credit_encode u_credits (
      .counted_i(!ctx_i.srq),
      .wqes_i   (ctx_i.rq_pi - ctx_i.rq_done),
      .code_o   (ack_syndrome[4:0])
  );

  rsp_packet u_packet (
      .qp_i,
      .mtu_i     (ctx_i.mtu),
      .pd_i      (ctx_i.pd),
      .va_i      (slot_va_i),
      .key_i     (slot_key_i),
      .length_i  (slot_length_i),
      .psn_i     (slot_psn_i),
      .msn_i     (slot_msn_i),
      .syndrome_i(ack_syndrome),
      .sent_i,
      .atomic_i  (slot_atomic_i),
      .answer_i,
      .last_o,
      .sent_o,
      .desc_o    (read_desc),
      .piece_o
  );

  always_comb begin
    desc_o       = read_desc;
    desc_o.quiet = read_i && slot_repeated_i;
    if ((!read_i && !atomic_i) || fault_i) begin
      desc_o           = '0;
      desc_o.qp        = qp_i;
      desc_o.responder = 1'b1;
      desc_o.opcode    = rnic_pkg::RcOpcodeAcknowledge;
      desc_o.psn       = queue_psn_i;
      desc_o.syndrome  = nak_i ? queue_syndrome_i : ack_syndrome;
      desc_o.msn       = queue_msn_i;
    end
    if (fault_i) begin
      desc_o.psn      = fault_data_i.psn;
      desc_o.turned   = !fault_data_i.atomic;
      desc_o.quiet    = stopped_i;
      desc_o.syndrome = rnic_pkg::AethSyndromeNakRemoteAccess;
      // A Read counts since it was accepted.
      if (fault_data_i.atomic) desc_o.msn = slot_msn_i - 1'b1;
      if (fault_data_i.status == rnic_pkg::XlateStatusOk ||
          fault_data_i.status == rnic_pkg::XlateStatusPageListError) begin
        desc_o.syndrome = rnic_pkg::AethSyndromeNakRemoteOperational;
      end
    end
  end

  always_comb begin
    atomic_o.qp        = qp_i;
    atomic_o.psn       = slot_psn_i;
    atomic_o.pd        = ctx_i.pd;
    atomic_o.key       = slot_key_i;
    atomic_o.va        = slot_va_i;
    atomic_o.fetch_add = slot_fetch_add_i;
    atomic_o.swap_add  = slot_swap_add_i;
    atomic_o.compare   = slot_compare_i;
    atomic_o.repeated  = slot_repeated_i;
  end

  logic unused_bits;
  assign unused_bits = ^{ctx_i, fault_data_i};
endmodule

`default_nettype wire
