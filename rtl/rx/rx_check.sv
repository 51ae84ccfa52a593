`default_nettype none
`include "assert.svh"

/// Check stage: one packet after the other, each with the context of its side of the QP; 7 cycles a
/// response, 6 a request.
///
/// A packet is taken only when there is room for its plan, because room may come only after the
/// completion block has had the same context. plan_valid_o and fetch_valid_o are pulses. A packet
/// that is dropped and has no payload makes no plan. A packet that needs a WQE of an SRQ borrows the
/// SRQ's context too, after that of the QP; limit_valid_o: it hit the SRQ's limit. idle_o: no packet is being checked.
/// clear_valid_i: forget that the QP clear_qp_i has failed.
module rx_check (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      desc_valid_i,
    output logic                           desc_ready_o,
    input  wire rnic_pkg::rx_desc_t        desc_data_i,
    output logic                           send_acq_valid_o,
    input  wire logic                      send_acq_ready_i,
    output logic [7:0]                     send_acq_index_o,
    input  wire logic                      send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_data_i,
    output logic                           send_rel_valid_o,
    input  wire logic                      send_rel_ready_i,
    output logic                           send_rel_write_o,
    output rnic_pkg::send_ctx_t            send_rel_data_o,
    output logic                           recv_acq_valid_o,
    input  wire logic                      recv_acq_ready_i,
    output logic [7:0]                     recv_acq_index_o,
    input  wire logic                      recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_data_i,
    output logic                           recv_rel_valid_o,
    input  wire logic                      recv_rel_ready_i,
    output logic                           recv_rel_write_o,
    output rnic_pkg::recv_ctx_t            recv_rel_data_o,
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
    input  wire logic                      room_i,
    output logic                           plan_valid_o,
    output rnic_pkg::rx_plan_t             plan_data_o,
    output logic                           fetch_valid_o,
    output rnic_pkg::rx_sgl_fetch_t        fetch_data_o,
    output logic                           idle_o,
    // The first packet of the peer while the QP is in RTR; a pulse
    output logic                           established_valid_o,
    output logic [7:0]                     established_qp_o,
    // Read data has come: the timer of its QP starts again; a pulse
    output logic                           timer_valid_o,
    output rnic_pkg::timer_event_t         timer_data_o,
    input  wire logic                      clear_valid_i,
    input  wire logic [7:0]                clear_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // Idle        takes the next packet, asks for its context, reads the path
  // Acquire     asks for the context again; reads the path, which may have changed meanwhile
  // Wait        for the context
  // SrqAcquire  asks for the context of the SRQ
  // SrqWait     for it
  // Compare     the rules compare; reads the head of the Read ring
  // Slot        responses: the rules compare with the slot
  // Decide      plan and new contexts are registered
  // SrqRelease  gives the context of the SRQ back
  // Release     gives the context back; the plan leaves when that is done
  typedef enum logic [3:0] {
    Idle,
    Acquire,
    Wait,
    SrqAcquire,
    SrqWait,
    Compare,
    Slot,
    Decide,
    SrqRelease,
    Release
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::rx_desc_t desc_q;
  rnic_pkg::send_ctx_t send_ctx_q, send_ctx_next;
  rnic_pkg::recv_ctx_t recv_ctx_q, recv_ctx_next;
  rnic_pkg::srq_ctx_t srq_ctx_q, srq_ctx_next;
  logic with_srq_q, wants, take, take_q;
  logic is_response, is_response_q, killed, acquired, ctx_valid, finish, asking;
  logic [255:0] killed_request_q, killed_response_q;
  logic [7:0] qp, asked_qp;
  assign qp       = desc_q.dest_qpn[7:0];
  assign asked_qp = (state_q == Idle) ? desc_data_i.dest_qpn[7:0] : qp;
  // Read responses, ACKs, and the ACK of atomics.
  assign is_response = (state_q == Idle) ?
                       desc_data_i.opcode >= rnic_pkg::RcOpcodeReadResponseFirst &&
                       desc_data_i.opcode <= rnic_pkg::RcOpcodeAtomicAcknowledge : is_response_q;

  assign asking           = (state_q == Idle && desc_valid_i && room_i) || state_q == Acquire;
  assign send_acq_valid_o = asking && is_response;
  assign recv_acq_valid_o = asking && !is_response;

  always_comb begin : control
    state_d          = state_q;
    desc_ready_o     = 1'b0;
    send_rel_valid_o = 1'b0;
    recv_rel_valid_o = 1'b0;
    srq_acq_valid_o  = 1'b0;
    srq_rel_valid_o  = 1'b0;
    acquired         = is_response ? send_acq_ready_i : recv_acq_ready_i;
    ctx_valid        = is_response_q ? send_ctx_valid_i : recv_ctx_valid_i;
    finish           = 1'b0;
    unique case (state_q)
      Idle: begin
        desc_ready_o = room_i;
        if (asking) state_d = acquired ? Wait : Acquire;
      end
      Acquire: if (acquired) state_d = Wait;
      Wait: begin
        if (ctx_valid) begin
          state_d = (!is_response_q && wants && recv_ctx_data_i.srq) ? SrqAcquire : Compare;
        end
      end
      SrqAcquire: begin
        srq_acq_valid_o = 1'b1;
        if (srq_acq_ready_i) state_d = SrqWait;
      end
      SrqWait: if (srq_ctx_valid_i) state_d = Compare;
      Compare: state_d = is_response_q ? Slot : Decide;
      Slot: state_d = Decide;
      Decide: state_d = with_srq_q ? SrqRelease : Release;
      SrqRelease: begin
        srq_rel_valid_o = 1'b1;
        if (srq_rel_ready_i) state_d = Release;
      end
      Release: begin
        send_rel_valid_o = is_response_q;
        recv_rel_valid_o = !is_response_q;
        finish           = is_response_q ? send_rel_ready_i : recv_rel_ready_i;
        if (finish) state_d = Idle;
      end
      default: state_d = Idle;
    endcase
  end

  assign idle_o           = state_q == Idle;
  assign send_acq_index_o = asked_qp;
  assign recv_acq_index_o = asked_qp;
  assign srq_acq_index_o  = recv_ctx_q.srqn;
  assign path_rd_en_o     = asking;
  assign path_rd_qp_o     = asked_qp;
  assign read_slot_en_o   = state_q == Compare;
  assign read_slot_addr_o = {qp, send_ctx_q.rd_head[3:0]};
  assign killed           = is_response_q ? killed_response_q[qp] : killed_request_q[qp];

  // ---- Rules ----
  logic no_qp, bad_peer, bad_qkey, bad_state, dropped, is_reliable;
  rx_check_peer u_peer (
      .clk_i,
      .desc_i       (desc_q),
      .path_i       (path_rd_data_i),
      .is_response_i(is_response_q),
      .in_use_i     (is_response_q ? send_ctx_q.in_use : recv_ctx_q.in_use),
      .qpn_i        (is_response_q ? send_ctx_q.qpn : recv_ctx_q.qpn),
      .qp_type_i    (is_response_q ? send_ctx_q.qp_type : recv_ctx_q.qp_type),
      .qkey_i       (recv_ctx_q.qkey),
      .state_i      (is_response_q ? send_ctx_q.state : recv_ctx_q.state),
      .killed_i     (killed),
      .no_qp_o      (no_qp),
      .bad_peer_o   (bad_peer),
      .bad_qkey_o   (bad_qkey),
      .bad_state_o  (bad_state)
  );

  rnic_pkg::rx_plan_t request_plan, response_plan, unreliable_plan, plan_d;
  rnic_pkg::rx_sgl_fetch_t request_fetch_data, response_fetch_data, unreliable_fetch_data;
  rnic_pkg::recv_ctx_t request_ctx, unreliable_ctx;
  logic request_fetch, request_kill, duplicate, psn_error, behind_atomic, invalid, rnr;
  logic unreliable_fetch, broken, unreliable_invalid, no_wqe;
  logic response_fetch, response_kill, ack, nak, read_response, gap, stray;
  rx_request u_request (
      .clk_i,
      .desc_i      (desc_q),
      .ctx_i       (recv_ctx_q),
      .srq_i       (srq_ctx_q),
      .wants_o     (wants),
      .take_o      (take),
      .srq_o       (srq_ctx_next),
      .plan_o      (request_plan),
      .ctx_o       (request_ctx),
      .fetch_o     (request_fetch),
      .fetch_data_o(request_fetch_data),
      .kill_o      (request_kill),
      .duplicate_o (duplicate),
      .psn_error_o (psn_error),
      .behind_atomic_o(behind_atomic),
      .invalid_o   (invalid),
      .rnr_o       (rnr)
  );
  rx_unreliable u_unreliable (
      .clk_i,
      .desc_i      (desc_q),
      .ctx_i       (recv_ctx_q),
      .plan_o      (unreliable_plan),
      .ctx_o       (unreliable_ctx),
      .fetch_o     (unreliable_fetch),
      .fetch_data_o(unreliable_fetch_data),
      .broken_o    (broken),
      .invalid_o   (unreliable_invalid),
      .no_wqe_o    (no_wqe)
  );
  rx_response u_response (
      .clk_i,
      .desc_i         (desc_q),
      .ctx_i          (send_ctx_q),
      .slot_i         (read_slot_data_i),
      .plan_o         (response_plan),
      .ctx_o          (send_ctx_next),
      .fetch_o        (response_fetch),
      .fetch_data_o   (response_fetch_data),
      .kill_o         (response_kill),
      .ack_o          (ack),
      .nak_o          (nak),
      .read_response_o(read_response),
      .gap_o          (gap),
      .stray_o        (stray)
  );

  assign dropped       = no_qp || bad_peer || bad_qkey || bad_state;
  assign is_reliable   = recv_ctx_q.qp_type == rnic_pkg::QpTypeRc;
  assign recv_ctx_next = is_reliable ? request_ctx : unreliable_ctx;

  always_comb begin : choose_plan
    plan_d = is_response_q ? response_plan : is_reliable ? request_plan : unreliable_plan;
    if (dropped) begin
      plan_d        = '0;
      plan_d.qp     = qp;
      plan_d.qpn    = desc_q.dest_qpn;
      plan_d.psn    = desc_q.psn;
    end
    plan_d.payload_length = desc_q.payload_length;
    plan_d.drop_payload   = desc_q.payload_length != 13'd0
        && plan_d.target == rnic_pkg::PlaceTargetNone;
  end

  logic [rnic_pkg::NumCounters-1:0] event_d, event_q;
  always_comb begin : choose_events
    event_d = '0;
    event_d[rnic_pkg::CounterRxNoQp]     = no_qp;
    event_d[rnic_pkg::CounterRxBadPeer]  = bad_peer;
    event_d[rnic_pkg::CounterRxBadQkey]  = bad_qkey;
    event_d[rnic_pkg::CounterRxBadState] = bad_state;
    if (!dropped && is_response_q) begin
      event_d[rnic_pkg::CounterRxAcks]           = ack;
      event_d[rnic_pkg::CounterRxNaks]           = nak;
      event_d[rnic_pkg::CounterRxReadResponses]  = read_response;
      event_d[rnic_pkg::CounterRxGaps]           = gap;
      event_d[rnic_pkg::CounterRxStrayResponses] = stray;
    end
    if (!dropped && !is_response_q && !is_reliable) begin
      event_d[rnic_pkg::CounterRxBrokenMessages] = broken;
      event_d[rnic_pkg::CounterRxInvalidRequest] = unreliable_invalid;
      event_d[rnic_pkg::CounterRxRnr]            = no_wqe;
    end
    if (!dropped && !is_response_q && is_reliable) begin
      event_d[rnic_pkg::CounterRxDuplicate]      = duplicate;
      event_d[rnic_pkg::CounterRxPsnError]       = psn_error;
      event_d[rnic_pkg::CounterRxBehindAtomic]   = behind_atomic;
      event_d[rnic_pkg::CounterRxInvalidRequest] = invalid;
      event_d[rnic_pkg::CounterRxRnr]            = rnr;
    end
  end

  logic plan_valid_q, fetch_valid_q, write_q, progress_q, first_q;
  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == Idle) begin
      desc_q        <= desc_data_i;
      is_response_q <= is_response;
    end
    if (send_ctx_valid_i) send_ctx_q <= send_ctx_data_i;
    if (recv_ctx_valid_i) recv_ctx_q <= recv_ctx_data_i;
    if (srq_ctx_valid_i) srq_ctx_q <= srq_ctx_data_i;
    if (state_q == Wait) with_srq_q <= 1'b0;
    if (state_q == SrqWait) with_srq_q <= 1'b1;
    if (state_q == Decide) begin
      srq_ctx_q     <= srq_ctx_next;
      take_q        <= !dropped && take;
      send_ctx_q    <= send_ctx_next;
      recv_ctx_q    <= recv_ctx_next;
      recv_ctx_q.established <= recv_ctx_next.established ||
          recv_ctx_q.state == rnic_pkg::QpStateRtr;
      first_q       <= !dropped && !is_response_q && !recv_ctx_q.established &&
                       recv_ctx_q.state == rnic_pkg::QpStateRtr;
      plan_data_o   <= plan_d;
      fetch_data_o  <= is_response_q ? response_fetch_data :
          is_reliable ? request_fetch_data : unreliable_fetch_data;
      plan_valid_q  <= plan_d.action != rnic_pkg::RxActionNone || plan_d.payload_length != 13'd0;
      fetch_valid_q <= !dropped && (is_response_q ? response_fetch :
          is_reliable ? request_fetch : unreliable_fetch);
      write_q       <= !dropped;
      progress_q    <= !dropped && is_response_q && read_response;
      event_q       <= event_d;
    end
    if (state_q == Decide && !dropped) begin
      if (is_response_q && response_kill) killed_response_q[qp] <= 1'b1;
      if (!is_response_q && is_reliable && request_kill) killed_request_q[qp] <= 1'b1;
    end
    if (clear_valid_i) begin
      killed_request_q[clear_qp_i]  <= 1'b0;
      killed_response_q[clear_qp_i] <= 1'b0;
    end
    if (!rst_ni) begin
      state_q           <= Idle;
      killed_request_q  <= '0;
      killed_response_q <= '0;
    end
  end

  assign send_rel_write_o = write_q;
  assign recv_rel_write_o = write_q;
  assign srq_rel_write_o  = take_q;
  assign srq_rel_data_o   = srq_ctx_q;
  assign limit_valid_o    = srq_rel_valid_o && srq_rel_ready_i && take_q && srq_ctx_q.limit_hit;
  assign limit_srq_o      = recv_ctx_q.srqn;
  assign send_rel_data_o  = send_ctx_q;
  assign recv_rel_data_o  = recv_ctx_q;
  assign plan_valid_o     = finish && plan_valid_q;
  assign fetch_valid_o    = finish && fetch_valid_q;
  assign event_o          = finish ? event_q : '0;

  assign established_valid_o = finish && first_q;
  assign established_qp_o    = qp;

  assign timer_valid_o         = finish && progress_q;
  assign timer_data_o.qp       = qp;
  assign timer_data_o.exponent = send_ctx_q.ack_timeout;

  `ASSERT(RoomForFetch, !(fetch_valid_o && !plan_valid_o))
endmodule

`default_nettype wire
