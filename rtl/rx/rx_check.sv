`default_nettype none
`include "assert.svh"

/// Check stage: packets in wire order, each with the context of its side of the QP.
///
/// Three steps, each with a packet of its own: rx_check_fetch borrows the context of the next one,
/// the judge here compares and decides, and what it has decided leaves while the context is given
/// back. The judge needs 3 cycles for a response and 2 for a request; 4 more for a request that
/// takes a WQE of an SRQ, whose context it borrows after that of the QP. A packet that follows one
/// of the same side of the same QP gets the context from the judge's hands, as long as nobody else
/// asks for it (contended).
///
/// Packets are judged one after the other, so each sees what the one before it has changed: the
/// context, that of the SRQ, the failed QPs. Two contexts may be held, the second one by a packet
/// that waits for the judge alone; the judge waits for an SRQ's context and for nothing else. So a
/// packet is taken only when there is room for its plan (room_i), because room may come only after
/// the completion block has had the same context. plan_valid_o and fetch_valid_o are pulses, in
/// wire order, no later than the context can be seen by others. A packet that is dropped and has no
/// payload makes no plan, one that must wait (held_o) neither. limit_valid_o: the SRQ's limit was
/// hit. clear_valid_i: forget that the QP clear_qp_i has failed.
module rx_check (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      desc_valid_i,
    output logic                           desc_ready_o,
    input  wire rnic_pkg::rx_desc_t        desc_data_i,
    output logic [1:0]                     send_acq_valid_o,
    input  wire logic [1:0]                send_acq_ready_i,
    output logic [7:0]                     send_acq_index_o,
    input  wire logic [1:0]                send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_data_i,
    output logic [1:0]                     send_rel_valid_o,
    input  wire logic [1:0]                send_rel_ready_i,
    output logic [1:0]                     send_rel_write_o,
    output rnic_pkg::send_ctx_t            send_rel_data_o,
    input  wire logic [1:0]                send_contended_i,
    output logic [1:0]                     recv_acq_valid_o,
    input  wire logic [1:0]                recv_acq_ready_i,
    output logic [7:0]                     recv_acq_index_o,
    input  wire logic [1:0]                recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_data_i,
    output logic [1:0]                     recv_rel_valid_o,
    input  wire logic [1:0]                recv_rel_ready_i,
    output logic [1:0]                     recv_rel_write_o,
    output rnic_pkg::recv_ctx_t            recv_rel_data_o,
    input  wire logic [1:0]                recv_contended_i,
    output logic                           srq_acq_valid_o,
    input  wire logic                      srq_acq_ready_i,
    output logic [7:0]                     srq_acq_index_o,
    input  wire logic                      srq_ctx_valid_i,
    input  wire rnic_pkg::srq_ctx_t        srq_ctx_data_i,
    output logic                           srq_rel_valid_o,
    input  wire logic                      srq_rel_ready_i,
    output logic                           srq_rel_write_o,
    output rnic_pkg::srq_ctx_t             srq_rel_data_o,
    output logic                           limit_valid_o,
    output logic [7:0]                     limit_srq_o,
    output logic                           read_slot_en_o,
    output logic [11:0]                    read_slot_addr_o,
    input  wire rnic_pkg::read_slot_t      read_slot_data_i,
    output logic                           path_rd_en_o,
    output logic [7:0]                     path_rd_qp_o,
    input  wire rnic_pkg::path_t           path_rd_data_i,
    // What the QP of path_rd_qp_o has sent, with its path
    input  wire rnic_pkg::reach_t          reach_data_i,
    input  wire logic                      room_i,
    output logic                           plan_valid_o,
    output rnic_pkg::rx_plan_t             plan_data_o,
    output logic                           fetch_valid_o,
    output rnic_pkg::rx_sgl_fetch_t        fetch_data_o,
    // Packets taken and not finished; one finishes, a pulse: with its plan, or it comes again
    // (held)
    output logic [1:0]                     inside_o,
    output logic                           finish_o,
    output logic                           held_o,
    // The first packet of the peer while the QP is in RTR; a pulse
    output logic                           established_valid_o,
    output logic [7:0]                     established_qp_o,
    // Read data has come: the timer of its QP starts again; a pulse
    output logic                           timer_valid_o,
    output rnic_pkg::timer_event_t         timer_data_o,
    input  wire logic                      clear_valid_i,
    input  wire logic [7:0]                clear_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o,
    // What the counters of QP qp_event_qp_o are told; pulses
    output logic [rnic_pkg::QpCounters-1:0] qp_event_o,
    output logic [7:0]                     qp_event_qp_o
);
  // Empty    nothing to judge
  // Compare  the rules compare; reads the head of the Read ring; asks for the context of the SRQ
  // SrqWait  asks for it, and waits
  // Slot     responses: the rules compare with the slot
  // Decide   plan and new contexts are registered, when those of the packet before have left
  typedef enum logic [2:0] {Empty, Compare, SrqWait, Slot, Decide} state_e;
  state_e state_q, state_d;

  rnic_pkg::rx_desc_t desc_q, fetch_desc;
  rnic_pkg::send_ctx_t send_ctx_q, send_ctx_next;
  rnic_pkg::recv_ctx_t recv_ctx_q, recv_ctx_next;
  rnic_pkg::srq_ctx_t srq_ctx_q, srq_ctx_next;
  logic is_response_q, lane_q, with_srq_q, srq_asked_q, srq_asks, needs_srq, changed_q;
  logic follows, fetch_ready, fetch_lane, fetch_is_response, taken, take_fetched, take_follower;
  logic next_packet, decide, keep, releasing, contended, wants, killed;
  logic [7:0] qp, acq_index;
  logic [rnic_pkg::SendCtxBits-1:0] fetch_ctx;
  assign qp = desc_q.dest_qpn[7:0];

  // ---- Next packet ----
  rx_check_fetch u_fetch (
      .clk_i, .rst_ni,
      .desc_valid_i, .desc_ready_o, .desc_data_i,
      .room_i,
      .send_acq_valid_o, .send_acq_ready_i, .send_ctx_valid_i, .send_ctx_data_i,
      .recv_acq_valid_o, .recv_acq_ready_i, .recv_ctx_valid_i, .recv_ctx_data_i,
      .acq_index_o     (acq_index),
      .judge_busy_i    (state_q != Empty),
      .judge_response_i(is_response_q),
      .judge_qp_i      (qp),
      .judge_lane_i    (lane_q),
      .follows_o       (follows),
      .ready_o         (fetch_ready),
      .lane_o          (fetch_lane),
      .is_response_o   (fetch_is_response),
      .desc_o          (fetch_desc),
      .ctx_o           (fetch_ctx),
      .take_i          (next_packet),
      .taken_o         (taken)
  );
  assign {send_acq_index_o, recv_acq_index_o} = {2{acq_index}};

  // ---- Judge ----
  assign contended     = is_response_q ? send_contended_i[lane_q] : recv_contended_i[lane_q];
  assign decide        = state_q == Decide && !releasing;
  assign keep          = follows && !contended;
  assign take_follower = decide && keep;
  assign take_fetched  = fetch_ready && (state_q == Empty || decide);
  assign next_packet   = take_follower || take_fetched;
  assign needs_srq     = state_q == Compare && wants && recv_ctx_q.srq && !with_srq_q;
  assign srq_asks      = needs_srq || (state_q == SrqWait && !srq_asked_q);
  assign srq_acq_valid_o  = srq_asks;
  assign srq_acq_index_o  = recv_ctx_q.srqn;
  // With the context in hand: the path of its moment.
  assign path_rd_en_o     = next_packet;
  assign path_rd_qp_o     = fetch_desc.dest_qpn[7:0];
  assign read_slot_en_o   = state_q == Compare;
  assign read_slot_addr_o = {qp, send_ctx_q.rd_head[3:0]};

  always_comb begin : control
    state_d = state_q;
    unique case (state_q)
      Compare: state_d = needs_srq ? SrqWait : is_response_q ? Slot : Decide;
      SrqWait: if (srq_ctx_valid_i) state_d = Compare;
      Slot: state_d = Decide;
      Decide: if (decide) state_d = Empty;
      default: state_d = Empty;
    endcase
    if (next_packet) state_d = Compare;
  end

  // ---- Rules ----
  logic dropped, held, take, fetch, kill, read_response;
  rnic_pkg::rx_plan_t plan_d;
  rnic_pkg::rx_sgl_fetch_t fetch_data_d;
  logic [rnic_pkg::NumCounters-1:0] event_d;
  logic [rnic_pkg::QpCounters-1:0] qp_event_d;
  rx_rules u_rules (
      .clk_i,
      .desc_i         (desc_q),
      .is_response_i  (is_response_q),
      .path_i         (path_rd_data_i),
      .send_ctx_i     (send_ctx_q),
      .recv_ctx_i     (recv_ctx_q),
      .srq_ctx_i      (srq_ctx_q),
      .slot_i         (read_slot_data_i),
      .reach_i        (reach_data_i),
      .killed_i       (killed),
      .wants_o        (wants),
      .dropped_o      (dropped),
      .plan_o         (plan_d),
      .send_ctx_o     (send_ctx_next),
      .recv_ctx_o     (recv_ctx_next),
      .srq_ctx_o      (srq_ctx_next),
      .take_o         (take),
      .fetch_o        (fetch),
      .fetch_data_o   (fetch_data_d),
      .kill_o         (kill),
      .held_o         (held),
      .read_response_o(read_response),
      .event_o        (event_d),
      .qp_event_o     (qp_event_d)
  );

  rx_check_failed u_failed (
      .clk_i,
      .rst_ni,
      .is_response_i(is_response_q),
      .qp_i         (qp),
      .fail_i       (decide && kill),
      .failed_o     (killed),
      .clear_valid_i,
      .clear_qp_i
  );

  // ---- The contexts are given back; what has been decided leaves ----
  rnic_pkg::send_ctx_t send_ctx_new;
  rnic_pkg::recv_ctx_t recv_ctx_new;
  logic is_rtr;
  assign is_rtr = recv_ctx_q.state == rnic_pkg::QpStateRtr;
  always_comb begin : context_update
    send_ctx_new = dropped ? send_ctx_q : send_ctx_next;
    recv_ctx_new = dropped ? recv_ctx_q : recv_ctx_next;
    if (!dropped && is_rtr) recv_ctx_new.established = 1'b1;
  end

  rx_check_release u_release (
      .clk_i,
      .rst_ni,
      .decide_i     (decide),
      .keep_i       (keep),
      .is_response_i(is_response_q),
      .lane_i       (lane_q),
      .write_i      (changed_q || !dropped),
      .ctx_i        (is_response_q ? send_ctx_new : rnic_pkg::SendCtxBits'(recv_ctx_new)),
      .with_srq_i   (with_srq_q),
      .srq_write_i  (take),
      .srqn_i       (recv_ctx_q.srqn),
      .srq_ctx_i    (srq_ctx_next),
      .busy_o       (releasing),
      .send_rel_valid_o,
      .send_rel_ready_i,
      .send_rel_write_o,
      .send_rel_data_o,
      .recv_rel_valid_o,
      .recv_rel_ready_i,
      .recv_rel_write_o,
      .recv_rel_data_o,
      .srq_rel_valid_o,
      .srq_rel_ready_i,
      .srq_rel_write_o,
      .srq_rel_data_o,
      .limit_valid_o,
      .limit_srq_o
  );

  logic [7:0] finish_qp_q;
  always_ff @(posedge clk_i) begin
    state_q             <= state_d;
    finish_o            <= decide;
    plan_valid_o        <= decide && !held && (plan_d.action != rnic_pkg::RxActionNone ||
                                               plan_d.payload_length != 13'd0);
    fetch_valid_o       <= decide && fetch;
    event_o             <= decide ? event_d : '0;
    qp_event_o          <= decide ? qp_event_d : '0;
    timer_valid_o       <= decide && read_response;
    established_valid_o <= decide && !dropped && !is_response_q && !recv_ctx_q.established &&
                           is_rtr;
    inside_o            <= inside_o + 2'(taken) - 2'(finish_o);
    if (decide) begin
      plan_data_o           <= plan_d;
      held_o                <= held;
      fetch_data_o          <= fetch_data_d;
      finish_qp_q           <= qp;
      timer_data_o.qp       <= qp;
      timer_data_o.exponent <= send_ctx_q.ack_timeout;
      timer_data_o.psn      <= send_ctx_new.una_psn;
      timer_data_o.tries    <= '0;
      send_ctx_q            <= send_ctx_new;
      recv_ctx_q            <= recv_ctx_new;
      changed_q             <= changed_q || !dropped;
      with_srq_q            <= 1'b0;
    end
    if (next_packet) begin
      desc_q        <= fetch_desc;
      is_response_q <= fetch_is_response;
    end
    if (take_fetched) begin
      lane_q    <= fetch_lane;
      changed_q <= 1'b0;
      if (fetch_is_response) send_ctx_q <= fetch_ctx;
      else recv_ctx_q <= fetch_ctx[rnic_pkg::RecvCtxBits-1:0];
    end
    srq_asked_q <= srq_acq_ready_i || (state_q == SrqWait && srq_asked_q);
    if (srq_ctx_valid_i) srq_ctx_q <= srq_ctx_data_i;
    if (srq_ctx_valid_i) with_srq_q <= 1'b1;
    if (!rst_ni) begin
      state_q <= Empty;
      {finish_o, plan_valid_o, fetch_valid_o, timer_valid_o, established_valid_o} <= 5'd0;
      {event_o, qp_event_o} <= '0;
      {inside_o, with_srq_q, lane_q} <= 4'd0;
    end
  end
  assign qp_event_qp_o    = finish_qp_q;
  assign established_qp_o = finish_qp_q;
  `ASSERT(RoomForFetch, !(fetch_valid_o && !plan_valid_o))
endmodule

`default_nettype wire
