`default_nettype none
`include "assert.svh"

/// Check stage: one packet after the other, each with the context of its side of the QP; 7 cycles a
/// response, 6 a request.
///
/// A packet is taken only when there is room for its plan, because room may come only after the
/// completion block has had the same context. plan_valid_o and fetch_valid_o are pulses. A packet
/// that is dropped and has no payload makes no plan. A packet that needs a WQE of an SRQ borrows
/// the SRQ's context too, after that of the QP; limit_valid_o: it hit the SRQ's limit. idle_o: no
/// packet is being checked. judged_valid_o: the next packet has been checked, a pulse; held_o: it
/// must wait and comes again (rx_park), without a plan now. clear_valid_i: forget that the QP clear_qp_i has failed.
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
    output logic                           judged_valid_o,
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
  logic with_srq_q, wants, take_q;
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
          state_d = (wants && recv_ctx_data_i.srq) ? SrqAcquire : Compare;
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
  logic dropped, held, take, fetch, kill, read_response;
  rnic_pkg::rx_plan_t plan_d;
  rnic_pkg::rx_sgl_fetch_t fetch_data_d;
  logic [rnic_pkg::NumCounters-1:0] event_d, event_q;
  logic [rnic_pkg::QpCounters-1:0] qp_event_d, qp_event_q;
  rx_rules u_rules (
      .clk_i,
      .desc_i         (desc_q),
      .is_response_i  (is_response_q),
      .path_i         (path_rd_data_i),
      .send_ctx_i     (send_ctx_q),
      .recv_ctx_i     (recv_ctx_q),
      .srq_ctx_i      (srq_ctx_q),
      .slot_i         (read_slot_data_i),
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

  logic plan_valid_q, held_q, fetch_valid_q, write_q, progress_q, first_q;
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
      take_q        <= take;
      send_ctx_q    <= send_ctx_next;
      recv_ctx_q    <= recv_ctx_next;
      recv_ctx_q.established <= recv_ctx_next.established ||
          recv_ctx_q.state == rnic_pkg::QpStateRtr;
      first_q       <= !dropped && !is_response_q && !recv_ctx_q.established &&
                       recv_ctx_q.state == rnic_pkg::QpStateRtr;
      plan_data_o   <= plan_d;
      fetch_data_o  <= fetch_data_d;
      held_q        <= held;
      plan_valid_q  <= !held && (plan_d.action != rnic_pkg::RxActionNone ||
                                 plan_d.payload_length != 13'd0);
      fetch_valid_q <= fetch;
      write_q       <= !dropped;
      progress_q    <= read_response;
      event_q       <= event_d;
      qp_event_q    <= qp_event_d;
    end
    if (state_q == Decide && kill) begin
      if (is_response_q) killed_response_q[qp] <= 1'b1;
      else killed_request_q[qp] <= 1'b1;
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
  assign judged_valid_o   = finish;
  assign held_o           = held_q;
  assign event_o          = finish ? event_q : '0;
  assign qp_event_o       = finish ? qp_event_q : '0;
  assign qp_event_qp_o    = qp;

  assign established_valid_o = finish && first_q;
  assign established_qp_o    = qp;

  assign timer_valid_o         = finish && progress_q;
  assign timer_data_o.qp       = qp;
  assign timer_data_o.exponent = send_ctx_q.ack_timeout;
  assign timer_data_o.psn      = send_ctx_q.una_psn;

  `ASSERT(RoomForFetch, !(fetch_valid_o && !plan_valid_o))
endmodule

`default_nettype wire
