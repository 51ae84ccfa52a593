`default_nettype none
`include "assert.svh"

/// Place stage, second half: gathers the answers of each packet's runs, and then says whether the
/// packet may be written.
///
/// Every granted answer becomes a piece; the verdict of a packet follows when all its answers are
/// in, so that a refused run leaves no byte of its packet in memory. A packet has at most 33 pieces
/// (16 entries, each cut once at most, but for one of a datagram, of up to 4136 bytes). After a
/// fault, every packet of that side of the QP has action None, until clear_valid_i; or
/// ReceiveFlush, when it has taken a WQE of an SRQ, which nobody else could flush.
///
/// On UC and UD, what a peer does wrong drops its message and no more (InfiniBand specification
/// 9.9.3, class D): a key, a range, a message longer than its receive WQE. Receive WQEs have been
/// taken for it and, in the check stage, for what came behind it. They are given back (GiveBack),
/// and packets that were checked before that are dropped: those whose `take` is not the present
/// one. A WQE of an SRQ cannot be given back, because others have been taken behind it: a datagram
/// that is too long for it completes it in error, and the QP goes on (class E).
///
/// The NAK of a fault (InfiniBand specification 9.7.5.2): remote access error when the requester's
/// key or range is wrong; invalid request when its SEND is longer than the receive WQE; remote
/// operational error when what is wrong is our own (receive WQE, its keys, a page list).
module rx_place_collect (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    run_valid_i,
    output logic                         run_ready_o,
    input  wire logic                    run_end_i,
    input  wire logic                    run_overflow_i,
    input  wire logic                    run_bad_wqe_i,
    input  wire logic                    run_last_i,
    input  wire logic [12:0]             run_length_i,
    input  wire logic                    packet_valid_i,
    output logic                         packet_ready_o,
    input  wire rnic_pkg::rx_done_t      packet_data_i,
    input  wire logic                    packet_has_payload_i,
    input  wire logic                    xlate_rsp_valid_i,
    output logic                         xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t    xlate_rsp_data_i,
    output logic                         piece_valid_o,
    input  wire logic                    piece_ready_i,
    output rnic_pkg::scatter_piece_t     piece_data_o,
    output logic                         verdict_valid_o,
    input  wire logic                    verdict_ready_i,
    output rnic_pkg::rx_done_t           verdict_data_o,
    output logic                         verdict_has_payload_o,
    // The payload is to be written with the pieces; otherwise both are to be thrown away
    output logic                         verdict_write_o,
    output logic [5:0]                   verdict_pieces_o,
    input  wire logic                    clear_valid_i,
    input  wire logic [7:0]              clear_qp_i,
    // A fault, of QP fault_qp_o; a pulse
    output logic                         fault_event_o,
    output logic [7:0]                   fault_qp_o
);
  logic [511:0] dead_q;
  logic [3:0] status_q;
  logic [5:0] pieces_q;
  logic [255:0] take_q;
  logic granted, is_requester, is_dead, fault, too_long, give_back, goes_on;
  logic answer_taken, verdict_taken;
  logic [8:0] side;

  // ---- Answers ----
  assign granted           = xlate_rsp_data_i.status == rnic_pkg::XlateStatusOk;
  assign xlate_rsp_ready_o = run_valid_i && !run_end_i && (piece_ready_i || !granted);
  assign answer_taken      = xlate_rsp_valid_i && xlate_rsp_ready_o;
  assign piece_valid_o     = run_valid_i && !run_end_i && xlate_rsp_valid_i && granted;
  always_comb begin : piece
    piece_data_o        = '0;
    piece_data_o.addr   = xlate_rsp_data_i.addr;
    piece_data_o.length = run_length_i;
    piece_data_o.epoch  = xlate_rsp_data_i.epoch;
    piece_data_o.last   = run_last_i;
  end

  // ---- Verdict ----
  assign verdict_valid_o = run_valid_i && run_end_i && packet_valid_i;
  assign verdict_taken   = verdict_valid_o && verdict_ready_i;
  assign packet_ready_o  = run_valid_i && run_end_i && verdict_ready_i;
  assign run_ready_o     = run_end_i ? packet_valid_i && verdict_ready_i : answer_taken;

  // The actions of the requester come last in RxAction.
  assign is_requester = packet_data_i.action >= rnic_pkg::RxActionAck;
  assign side         = {is_requester, packet_data_i.qp};
  assign is_dead      = dead_q[side] ||
      (packet_data_i.unreliable && packet_data_i.take != take_q[packet_data_i.qp]);
  assign fault        = status_q != rnic_pkg::XlateStatusOk || run_overflow_i || run_bad_wqe_i;

  assign too_long     = run_overflow_i && status_q == rnic_pkg::XlateStatusOk;
  assign goes_on      = packet_data_i.unreliable &&
      (packet_data_i.target == rnic_pkg::PlaceTargetWrite || too_long);
  assign give_back    = fault && goes_on && !packet_data_i.srq;

  logic [7:0] nak;
  always_comb begin : choose_nak
    if (status_q != rnic_pkg::XlateStatusOk) begin
      nak = (packet_data_i.target == rnic_pkg::PlaceTargetReceive
             || status_q == rnic_pkg::XlateStatusPageListError)
          ? rnic_pkg::AethSyndromeNakRemoteOperational : rnic_pkg::AethSyndromeNakRemoteAccess;
    end else begin
      nak = run_overflow_i ? rnic_pkg::AethSyndromeNakInvalidRequest
          : rnic_pkg::AethSyndromeNakRemoteOperational;
    end
  end

  always_comb begin : verdict
    verdict_data_o            = packet_data_i;
    verdict_data_o.wqe_unread = 1'b0;
    if (is_dead) begin
      verdict_data_o.action = (packet_data_i.srq && packet_data_i.takes)
          ? rnic_pkg::RxActionReceiveFlush : rnic_pkg::RxActionNone;
    end else if (give_back) begin
      verdict_data_o.action = rnic_pkg::RxActionGiveBack;
    end else if (fault) begin
      verdict_data_o.fault    = 1'b1;
      verdict_data_o.status   = status_q;
      verdict_data_o.overflow = too_long;
      verdict_data_o.bad_wqe  = run_bad_wqe_i;
      verdict_data_o.wqe_unread = packet_data_i.wqe_unread;
      verdict_data_o.action   = is_requester ? rnic_pkg::RxActionBadResponse
          : rnic_pkg::RxActionNak;
      verdict_data_o.syndrome = is_requester ? 8'd0 : nak;
      verdict_data_o.msg_last = 1'b0;
    end
  end
  assign verdict_has_payload_o = packet_has_payload_i;
  assign verdict_write_o       = !is_dead && !fault && packet_has_payload_i
      && packet_data_i.target != rnic_pkg::PlaceTargetNone;
  assign verdict_pieces_o = pieces_q;
  assign fault_event_o    = verdict_taken && fault && !is_dead;
  assign fault_qp_o       = packet_data_i.qp;

  always_ff @(posedge clk_i) begin
    if (answer_taken && granted) pieces_q <= pieces_q + 6'd1;
    if (answer_taken && status_q == rnic_pkg::XlateStatusOk) status_q <= xlate_rsp_data_i.status;
    if (verdict_taken) begin
      pieces_q <= 6'd0;
      status_q <= rnic_pkg::XlateStatusOk;
      if (fault && !is_dead && !goes_on) dead_q[side] <= 1'b1;
      if (give_back && !is_dead) take_q[packet_data_i.qp] <= !packet_data_i.take;
    end
    if (clear_valid_i) begin
      dead_q[{1'b0, clear_qp_i}] <= 1'b0;
      dead_q[{1'b1, clear_qp_i}] <= 1'b0;
      take_q[clear_qp_i]         <= 1'b0;
    end
    if (!rst_ni) begin
      pieces_q <= 6'd0;
      status_q <= rnic_pkg::XlateStatusOk;
      dead_q   <= '0;
      take_q   <= '0;
    end
  end

  `ASSERT(AnswerCoversRun, !piece_valid_o || xlate_rsp_data_i.contiguous >= 32'(run_length_i))
  `ASSERT(PiecesFit, pieces_q <= 6'd33)
  logic unused_bits;
  assign unused_bits = &{1'b0, xlate_rsp_data_i.contiguous};
endmodule

`default_nettype wire
