`default_nettype none

/// The protocol checks of one packet: first those that every packet must pass (rx_check_peer), then
/// those of its kind: RC request, UC or UD packet, response. Combines them to a plan, the new
/// context of its side of the QP, and what is counted. Outputs are right one cycle after the inputs
/// are stable.
///
/// wants_o: a request needs a receive WQE, so that of an SRQ must be on srq_ctx_i; it says so
/// without a look at the contexts. take_o: srq_ctx_o has it no more. fetch_o: the WQE at
/// fetch_data_o is to be read. kill_o: nothing more of this side of the QP may run. A packet that
/// is dropped (dropped_o) changes nothing.
module rx_rules (
    input  wire logic                  clk_i,
    input  wire rnic_pkg::rx_desc_t    desc_i,
    input  wire logic                  is_response_i,
    input  wire rnic_pkg::path_t       path_i,
    input  wire rnic_pkg::send_ctx_t   send_ctx_i,
    input  wire rnic_pkg::recv_ctx_t   recv_ctx_i,
    input  wire rnic_pkg::srq_ctx_t    srq_ctx_i,
    input  wire rnic_pkg::read_slot_t  slot_i,
    input  wire rnic_pkg::reach_t      reach_i,
    // This side of the QP has failed already
    input  wire logic                  killed_i,
    output logic                       wants_o,
    output logic                       dropped_o,
    output rnic_pkg::rx_plan_t         plan_o,
    output rnic_pkg::send_ctx_t        send_ctx_o,
    output rnic_pkg::recv_ctx_t        recv_ctx_o,
    output rnic_pkg::srq_ctx_t         srq_ctx_o,
    output logic                       take_o,
    output logic                       fetch_o,
    output rnic_pkg::rx_sgl_fetch_t    fetch_data_o,
    output logic                       kill_o,
    // Must wait: no plan, and rx_park keeps it
    output logic                       held_o,
    // A Read response packet or atomic ACK is accepted
    output logic                       read_response_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o,
    output logic [rnic_pkg::QpCounters-1:0] qp_event_o
);
  logic no_qp, bad_peer, bad_qkey, bad_state, is_reliable;
  rx_check_peer u_peer (
      .clk_i,
      .desc_i       (desc_i),
      .path_i       (path_i),
      .is_response_i(is_response_i),
      .in_use_i     (is_response_i ? send_ctx_i.in_use : recv_ctx_i.in_use),
      .qpn_i        (is_response_i ? send_ctx_i.qpn : recv_ctx_i.qpn),
      .qp_type_i    (is_response_i ? send_ctx_i.qp_type : recv_ctx_i.qp_type),
      .qkey_i       (recv_ctx_i.qkey),
      .state_i      (is_response_i ? send_ctx_i.state : recv_ctx_i.state),
      .killed_i     (killed_i),
      .no_qp_o      (no_qp),
      .bad_peer_o   (bad_peer),
      .bad_qkey_o   (bad_qkey),
      .bad_state_o  (bad_state)
  );

  rnic_pkg::rx_plan_t request_plan, response_plan, unreliable_plan;
  rnic_pkg::rx_sgl_fetch_t response_fetch_data, receive_fetch_data;
  rnic_pkg::recv_ctx_t request_ctx, unreliable_ctx;
  logic request_fetch, request_kill, duplicate, psn_error, held, invalid, rnr;
  logic forbidden, no_room, srq_error;
  logic request_wants, request_take, unreliable_wants, unreliable_take, unreliable_kill;
  logic unreliable_fetch, broken, unreliable_invalid, no_wqe, wqe_empty, wqe_error;
  logic [15:0] wqe_index;
  logic [23:0] wqe_pd;
  logic response_fetch, response_kill, ack, nak, read_response, gap, stray;
  rx_source u_source (
      .clk_i,
      .ctx_i   (recv_ctx_i),
      .srq_i   (srq_ctx_i),
      .index_o (wqe_index),
      .pd_o    (wqe_pd),
      .length_o(receive_fetch_data.length),
      .addr_o  (receive_fetch_data.addr),
      .empty_o (wqe_empty),
      .error_o (wqe_error),
      .srq_o   (srq_ctx_o)
  );
  assign receive_fetch_data.is_send_wqe = 1'b0;
  rx_request u_request (
      .clk_i,
      .desc_i      (desc_i),
      .ctx_i       (recv_ctx_i),
      .wqe_index_i (wqe_index),
      .wqe_pd_i    (wqe_pd),
      .wqe_empty_i (wqe_empty),
      .wqe_error_i (wqe_error),
      .wants_o     (request_wants),
      .take_o      (request_take),
      .plan_o      (request_plan),
      .ctx_o       (request_ctx),
      .fetch_o     (request_fetch),
      .kill_o      (request_kill),
      .duplicate_o (duplicate),
      .psn_error_o (psn_error),
      .held_o      (held),
      .invalid_o   (invalid),
      .forbidden_o (forbidden),
      .no_room_o   (no_room),
      .srq_error_o (srq_error),
      .rnr_o       (rnr)
  );
  rx_unreliable u_unreliable (
      .clk_i,
      .desc_i      (desc_i),
      .ctx_i       (recv_ctx_i),
      .wqe_index_i (wqe_index),
      .wqe_pd_i    (wqe_pd),
      .wqe_empty_i (wqe_empty),
      .wqe_error_i (wqe_error),
      .wants_o     (unreliable_wants),
      .take_o      (unreliable_take),
      .plan_o      (unreliable_plan),
      .ctx_o       (unreliable_ctx),
      .fetch_o     (unreliable_fetch),
      .kill_o      (unreliable_kill),
      .broken_o    (broken),
      .invalid_o   (unreliable_invalid),
      .no_wqe_o    (no_wqe)
  );
  rx_response u_response (
      .clk_i,
      .desc_i         (desc_i),
      .ctx_i          (send_ctx_i),
      .slot_i         (slot_i),
      .reach_i        (reach_i),
      .plan_o         (response_plan),
      .ctx_o          (send_ctx_o),
      .fetch_o        (response_fetch),
      .fetch_data_o   (response_fetch_data),
      .kill_o         (response_kill),
      .ack_o          (ack),
      .nak_o          (nak),
      .read_response_o(read_response),
      .gap_o          (gap),
      .stray_o        (stray)
  );

  assign dropped_o   = no_qp || bad_peer || bad_qkey || bad_state;
  assign is_reliable = recv_ctx_i.qp_type == rnic_pkg::QpTypeRc;
  assign recv_ctx_o  = is_reliable ? request_ctx : unreliable_ctx;
  // The type of the QP is not known yet; of what it does not take, nothing is taken.
  assign wants_o     = !is_response_i && (request_wants || unreliable_wants);

  always_comb begin : choose_plan
    plan_o = is_response_i ? response_plan : is_reliable ? request_plan : unreliable_plan;
    if (dropped_o) begin
      plan_o        = '0;
      plan_o.qp     = desc_i.dest_qpn[7:0];
      plan_o.qpn    = desc_i.dest_qpn;
      plan_o.psn    = desc_i.psn;
    end
    plan_o.payload_length = desc_i.payload_length;
    plan_o.drop_payload   = desc_i.payload_length != 13'd0
        && plan_o.target == rnic_pkg::PlaceTargetNone;
  end

  // ---- What is counted: of the NIC, and of the QP that the packet names ----
  logic passed, responds, requests, datagrams;
  assign passed    = !dropped_o;
  assign responds  = passed && is_response_i;
  assign requests  = passed && !is_response_i && is_reliable;
  assign datagrams = passed && !is_response_i && !is_reliable;

  assign take_o          = (requests && request_take) || (datagrams && unreliable_take);
  assign fetch_o         = (responds && response_fetch) || (requests && request_fetch) ||
      (datagrams && unreliable_fetch);
  assign fetch_data_o    = is_response_i ? response_fetch_data : receive_fetch_data;
  assign kill_o          = (responds && response_kill) || (requests && request_kill) ||
      (datagrams && unreliable_kill);
  assign read_response_o = responds && read_response;

  logic is_rnr, first_held;
  assign held_o     = requests && held;
  assign first_held = held_o && !desc_i.parked && !no_room;
  assign is_rnr = desc_i.syndrome[7:5] == rnic_pkg::AethSyndromeRnrNak[7:5];
  always_comb begin : events
    event_o = '0;
    event_o[rnic_pkg::CounterRxNoQp]           = no_qp;
    event_o[rnic_pkg::CounterRxBadPeer]        = bad_peer;
    event_o[rnic_pkg::CounterRxBadQkey]        = bad_qkey;
    event_o[rnic_pkg::CounterRxBadState]       = bad_state;
    event_o[rnic_pkg::CounterRxAcks]           = responds && ack;
    event_o[rnic_pkg::CounterRxNaks]           = responds && nak;
    event_o[rnic_pkg::CounterRxReadResponses]  = read_response_o;
    event_o[rnic_pkg::CounterRxGaps]           = responds && gap;
    event_o[rnic_pkg::CounterRxStrayResponses] = responds && stray;
    event_o[rnic_pkg::CounterRxBadResponses]   = responds && response_kill;
    event_o[rnic_pkg::CounterRxBrokenMessages] = datagrams && broken;
    event_o[rnic_pkg::CounterRxDuplicate]      = requests && duplicate;
    event_o[rnic_pkg::CounterRxPsnError]       = requests && psn_error;
    event_o[rnic_pkg::CounterRxHeld]           = first_held;
    event_o[rnic_pkg::CounterRxForbidden]      = requests && forbidden;
    event_o[rnic_pkg::CounterRxNoRoom]         = requests && no_room;
    event_o[rnic_pkg::CounterRxInvalidRequest] = (requests && invalid) ||
        (datagrams && unreliable_invalid);
    event_o[rnic_pkg::CounterRxRnr]            = (requests && rnr) || (datagrams && no_wqe);
    event_o[rnic_pkg::CounterRxSrqErrors]      = (requests && srq_error) ||
        (datagrams && unreliable_kill);
  end
  always_comb begin : qp_events
    qp_event_o = '0;
    qp_event_o[rnic_pkg::QpCounterBadPeer]         = bad_peer;
    qp_event_o[rnic_pkg::QpCounterBadQkey]         = bad_qkey;
    qp_event_o[rnic_pkg::QpCounterBadState]        = bad_state;
    qp_event_o[rnic_pkg::QpCounterDuplicates]      = requests && duplicate;
    qp_event_o[rnic_pkg::QpCounterPsnErrors]       = requests && psn_error;
    qp_event_o[rnic_pkg::QpCounterHeld]            = first_held;
    qp_event_o[rnic_pkg::QpCounterForbidden]       = requests && forbidden;
    qp_event_o[rnic_pkg::QpCounterNoRoom]          = requests && no_room;
    qp_event_o[rnic_pkg::QpCounterInvalidRequests] = event_o[rnic_pkg::CounterRxInvalidRequest];
    qp_event_o[rnic_pkg::QpCounterNoReceive]       = event_o[rnic_pkg::CounterRxRnr];
    qp_event_o[rnic_pkg::QpCounterSrqErrors]       = event_o[rnic_pkg::CounterRxSrqErrors];
    qp_event_o[rnic_pkg::QpCounterBrokenMessages]  = datagrams && broken;
    qp_event_o[rnic_pkg::QpCounterNaksReceived]    = responds && nak && !is_rnr;
    qp_event_o[rnic_pkg::QpCounterRnrNaksReceived] = responds && nak && is_rnr;
    qp_event_o[rnic_pkg::QpCounterGaps]            = responds && gap;
    qp_event_o[rnic_pkg::QpCounterStrayResponses]  = responds && stray;
    qp_event_o[rnic_pkg::QpCounterBadResponses]    = responds && response_kill;
  end
endmodule

`default_nettype wire
