`default_nettype none
`include "assert.svh"

/// Receive engine: protocol checks, scatter lists, translation, payload writes; in wire order,
/// pipelined.
///
/// Check stage (rx_check): looks up the QP by the full QPN, peer address and P_Key, state; requests
/// go through the responder checks (PSN, opcode sequence, lengths, rights of the QP, Read limit,
/// receive WQE present), responses through the requester checks (PSN against the Read ring). Each
/// packet becomes an rx_plan_t; the first packet of a SEND or of a Read response also asks for the
/// WQE that holds its scatter list. Later packets are checked while earlier ones wait for memory.
///
/// Place stage: takes each plan in order, walks the scatter list from the packet's offset,
/// translates every run (at most a page; rx_place, rx_place_collect), and writes the payload
/// (rx_place_write, scatter_align). A refused run or a scatter list that is too short faults the
/// packet: nothing of it is written, and all later packets of that side of that QP are dropped
/// until qp_reset. Done stage (rx_done): rx_done_t in order, when the writes have been handed to
/// PCIe; packets that are dropped (action None) make none.
///
/// A request that must wait for another (judged_valid_o with held_o; rx_park) leaves nothing behind
/// and takes no payload.
///
/// Send context clients: Read responses and ACKs. Receive context clients: requests. Two of each,
/// which serve in turn. SRQ context client: requests that take a WQE of an SRQ. Read slot, path and
/// reach (what the QP of path_rd_qp_o has sent) are expected one cycle after their enables, and
/// hold until the next.
///
/// rx_entered_o, rx_left_o: packets, modulo 2^20, that the protocol checks have passed on, and that
/// have left the done stage. All packets of a QP that were inside at a time have left when
/// rx_left_o has reached what rx_entered_o was.
module rx_engine (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      desc_valid_i,
    output logic                           desc_ready_o,
    input  wire rnic_pkg::rx_desc_t        desc_data_i,
    input  wire logic                      payload_valid_i,
    output logic                           payload_ready_o,
    input  wire rnic_pkg::payload_beat_t   payload_data_i,
    // The next packet has been checked, a pulse; it must come again
    output logic                           judged_valid_o,
    output logic                           held_o,
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
    input  wire rnic_pkg::reach_t          reach_data_i,
    output logic                           xlate_req_valid_o,
    input  wire logic                      xlate_req_ready_i,
    output rnic_pkg::xlate_req_t           xlate_req_data_o,
    input  wire logic                      xlate_rsp_valid_i,
    output logic                           xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t      xlate_rsp_data_i,
    output logic                           xlate_retire_valid_o,
    output logic                           xlate_retire_epoch_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           wr_valid_o,
    input  wire logic                      wr_ready_i,
    output rnic_pkg::dma_wr_t              wr_data_o,
    input  wire logic                      wr_done_i,
    output logic                           done_valid_o,
    input  wire logic                      done_ready_i,
    output rnic_pkg::rx_done_t             done_data_o,
    // The first packet of the peer while the QP is in RTR; a pulse
    output logic                           established_valid_o,
    output logic [7:0]                     established_qp_o,
    // Read data has come: sets the timer of its QP; a pulse
    output logic                           timer_valid_o,
    output rnic_pkg::timer_event_t         timer_data_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [19:0]                    rx_entered_o,
    output logic [19:0]                    rx_left_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o,
    // For the counters of a QP: of the checks, and packets that had no place; pulses
    output logic [rnic_pkg::QpCounters-1:0] qp_event_o,
    output logic [7:0]                     qp_event_qp_o,
    output logic                           place_fault_o,
    output logic [7:0]                     place_fault_qp_o
);

  logic room, plan_in_valid, plan_in_ready, plan_valid, plan_ready, fetch_valid, fetch_ready;
  logic check_finish, left, clear_valid;
  logic [1:0] check_inside;
  rnic_pkg::rx_plan_t plan_in, plan;
  rnic_pkg::rx_sgl_fetch_t fetch_in, fetch;
  logic [rnic_pkg::NumCounters-1:0] check_event;

  rx_check u_check (
      .clk_i, .rst_ni,
      .desc_valid_i, .desc_ready_o, .desc_data_i,
      .send_acq_valid_o, .send_acq_ready_i, .send_acq_index_o,
      .send_ctx_valid_i, .send_ctx_data_i,
      .send_rel_valid_o, .send_rel_ready_i, .send_rel_write_o, .send_rel_data_o,
      .send_contended_i,
      .recv_acq_valid_o, .recv_acq_ready_i, .recv_acq_index_o,
      .recv_ctx_valid_i, .recv_ctx_data_i,
      .recv_rel_valid_o, .recv_rel_ready_i, .recv_rel_write_o, .recv_rel_data_o,
      .recv_contended_i,
      .srq_acq_valid_o, .srq_acq_ready_i, .srq_acq_index_o, .srq_ctx_valid_i, .srq_ctx_data_i,
      .srq_rel_valid_o, .srq_rel_ready_i, .srq_rel_write_o, .srq_rel_data_o,
      .limit_valid_o, .limit_srq_o,
      .read_slot_en_o, .read_slot_addr_o, .read_slot_data_i,
      .path_rd_en_o, .path_rd_qp_o, .path_rd_data_i, .reach_data_i,
      .room_i       (room),
      .plan_valid_o (plan_in_valid),
      .plan_data_o  (plan_in),
      .fetch_valid_o(fetch_valid),
      .fetch_data_o (fetch_in),
      .inside_o     (check_inside),
      .finish_o     (check_finish),
      .held_o,
      .established_valid_o,
      .established_qp_o,
      .timer_valid_o,
      .timer_data_o,
      .clear_valid_i(clear_valid),
      .clear_qp_i   (qp_reset_qp_i),
      .event_o      (check_event),
      .qp_event_o,
      .qp_event_qp_o
  );

  // Plans wait here for memory while their WQE reads are on the way: enough small packets for a
  // PCIe round trip. A packet is taken when there is room for three: two may be in the check stage.
  localparam int unsigned Plans = 32;
  localparam int unsigned Fetches = 16;
  logic [6:0] plan_count;
  logic [5:0] fetch_count;
  assign room = plan_count <= 7'(Plans - 3) && fetch_count <= 6'(Fetches - 3);
  stream_fifo #(
      .Width(rnic_pkg::RxPlanBits),
      .Depth(Plans)
  ) u_plans (
      .clk_i,
      .rst_ni,
      .in_valid_i (plan_in_valid),
      .in_ready_o (plan_in_ready),
      .in_data_i  (plan_in),
      .out_valid_o(plan_valid),
      .out_ready_i(plan_ready),
      .out_data_o (plan),
      .count_o    (plan_count)
  );
  stream_fifo #(
      .Width(rnic_pkg::RxSglFetchBits),
      .Depth(Fetches)
  ) u_fetches (
      .clk_i,
      .rst_ni,
      .in_valid_i (fetch_valid),
      .in_ready_o (fetch_ready),
      .in_data_i  (fetch_in),
      .out_valid_o(rd_req_valid_o),
      .out_ready_i(rd_req_ready_i),
      .out_data_o (fetch),
      .count_o    (fetch_count)
  );
  always_comb begin : read_request
    rd_req_data_o        = '0;
    rd_req_data_o.addr   = fetch.addr;
    rd_req_data_o.length = fetch.length;
  end

  rx_place u_place (
      .clk_i,
      .rst_ni,
      .plan_valid_i (plan_valid),
      .plan_ready_o (plan_ready),
      .plan_data_i  (plan),
      .payload_valid_i,
      .payload_ready_o,
      .payload_data_i,
      .xlate_req_valid_o,
      .xlate_req_ready_i,
      .xlate_req_data_o,
      .xlate_rsp_valid_i,
      .xlate_rsp_ready_o,
      .xlate_rsp_data_i,
      .xlate_retire_valid_o,
      .xlate_retire_epoch_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .wr_valid_o,
      .wr_ready_i,
      .wr_data_o,
      .wr_done_i,
      .done_valid_o,
      .done_ready_i,
      .done_data_o,
      .left_o       (left),
      .clear_valid_i(clear_valid),
      .clear_qp_i   (qp_reset_qp_i),
      .fault_event_o(place_fault_o),
      .fault_qp_o   (place_fault_qp_o)
  );

  rx_done_flush u_flush (
      .clk_i,
      .rst_ni,
      .qp_reset_valid_i,
      .qp_reset_ready_o,
      .checking_i   (check_inside),
      .checked_i    (check_finish),
      .entered_i    (plan_in_valid),
      .left_i       (left),
      .clear_valid_o(clear_valid)
  );

  always_ff @(posedge clk_i) begin
    if (plan_in_valid) rx_entered_o <= rx_entered_o + 20'd1;
    if (left) rx_left_o <= rx_left_o + 20'd1;
    if (!rst_ni) begin
      rx_entered_o <= '0;
      rx_left_o    <= '0;
    end
  end

  always_comb begin : events
    event_o = check_event;
    event_o[rnic_pkg::CounterRxPlaceFaults] = place_fault_o;
  end

  assign judged_valid_o = check_finish;
  logic unused_bits;
  assign unused_bits = &{1'b0, fetch.is_send_wqe};
  `ASSERT(PlanHasRoom, plan_in_ready)
  `ASSERT(FetchHasRoom, fetch_ready)
  `ASSERT_HOLD(DescHold, desc_valid_i, desc_ready_o, desc_data_i)
  `ASSERT_HOLD(PayloadHold, payload_valid_i, payload_ready_o, payload_data_i)
  `ASSERT_HOLD(XlateReqHold, xlate_req_valid_o, xlate_req_ready_i, xlate_req_data_o)
  `ASSERT_HOLD(RdReqHold, rd_req_valid_o, rd_req_ready_i, rd_req_data_o)
endmodule

`default_nettype wire
