`default_nettype none

/// The receive side: from frames on the wire to payload in memory and a record of each packet.
///
/// Inside: port_loop is where our own frames leave, and come back if they are for ourselves;
/// rx_entry lets good packets in, with a copy of datagrams to groups for each member, and Ethernet
/// frames; rx_park keeps packets that wait for an atomic before them, rx_engine judges each against
/// its queue pair and places its payload.
///
/// - eth_rx: frames, without back-pressure, from device_enable on. frame: those that we send;
///   eth_tx: what of them goes to the wire.
/// - multicast: an operation on the table of groups, held until its done, a pulse with a status.
/// - rx_done: what became of a packet that was not dropped, in wire order, when its payload has
///   been handed to PCIe. rx_entered, rx_left: packets, modulo 2^20, that the check stage has
///   passed on, and that have left: all packets of a QP that were inside at a time have left when
///   rx_left has reached what rx_entered was.
/// - rx_send, rx_recv: two clients each of the send and of the receive contexts. Both of a pair
///   share index and data; contended says that another block asks for the context that is kept.
///   rx_srq: client of the SRQ contexts, borrowed while a receive context is held. srq_limit: a
///   pulse, an SRQ has reached its limit.
/// - rx_rd, rx_wr, rx_xlate: clients of the memory side. rx_path_rd: port of the path table, the
///   data comes a cycle after en, and with it rx_reach, what the QP has sent. read_slot: the same,
///   of the Read ring of the send queue.
/// - established: a pulse, the first packet of a QP in RTR. rx_timer: a pulse, Read data has come,
///   for the timer of its QP.
/// - atomic_over, invalidation_over: a pulse, an atomic has been answered, a peer's invalidation is
///   done; what waits in the park is judged again.
/// - rx_qp_event, place_fault: pulses for the counters of a QP.
/// - rx_reset: forget a QP, also what is parked of it.
module receive_side (
    input  wire logic                                        clk_i,
    input  wire logic                                        rst_ni,
    input  wire logic                                        clk_open_i,
    input  wire logic                                        moved_i,
    output logic                                             awake_o,
    input  wire logic [47:0]                                 port_mac_i,
    input  wire rnic_pkg::ethernet_t                         ethernet_i,
    input  wire logic                                        device_enable_i,
    input  wire logic                                        frame_valid_i,
    output logic                                             frame_ready_o,
    input  wire rnic_pkg::frame_beat_t                       frame_data_i,
    output logic                                             eth_tx_valid_o,
    input  wire logic                                        eth_tx_ready_i,
    output rnic_pkg::frame_beat_t                            eth_tx_data_o,
    input  wire logic                                        eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t                       eth_rx_data_i,
    input  wire logic                                        multicast_valid_i,
    input  wire rnic_pkg::multicast_op_t                     multicast_data_i,
    output logic                                             multicast_done_o,
    output logic [1:0]                                       multicast_status_o,
    input  wire logic                                        atomic_over_i,
    input  wire logic                                        invalidation_over_i,
    input  wire logic                                        rx_reset_valid_i,
    output logic                                             rx_reset_ready_o,
    input  wire logic [7:0]                                  qp_reset_qp_i,
    output logic [1:0]                                       rx_send_acq_valid_o,
    input  wire logic [1:0]                                  rx_send_acq_ready_i,
    output logic [7:0]                                       rx_send_acq_index_o,
    input  wire logic [1:0]                                  rx_send_ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t                         send_ctx_i,
    output logic [1:0]                                       rx_send_rel_valid_o,
    input  wire logic [1:0]                                  rx_send_rel_ready_i,
    output rnic_pkg::send_ctx_t                              rx_send_rel_data_o,
    output logic [1:0]                                       rx_send_rel_write_o,
    input  wire logic [1:0]                                  rx_send_contended_i,
    output logic [1:0]                                       rx_recv_acq_valid_o,
    input  wire logic [1:0]                                  rx_recv_acq_ready_i,
    output logic [7:0]                                       rx_recv_acq_index_o,
    input  wire logic [1:0]                                  rx_recv_ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t                         recv_ctx_i,
    output logic [1:0]                                       rx_recv_rel_valid_o,
    input  wire logic [1:0]                                  rx_recv_rel_ready_i,
    output rnic_pkg::recv_ctx_t                              rx_recv_rel_data_o,
    output logic [1:0]                                       rx_recv_rel_write_o,
    input  wire logic [1:0]                                  rx_recv_contended_i,
    output logic                                             rx_srq_acq_valid_o,
    input  wire logic                                        rx_srq_acq_ready_i,
    output logic [7:0]                                       rx_srq_acq_index_o,
    input  wire logic                                        rx_srq_ctx_valid_i,
    input  wire rnic_pkg::srq_ctx_t                          srq_ctx_i,
    output logic                                             rx_srq_rel_valid_o,
    input  wire logic                                        rx_srq_rel_ready_i,
    output rnic_pkg::srq_ctx_t                               rx_srq_rel_data_o,
    output logic                                             rx_srq_rel_write_o,
    output logic [7:0]                                       srq_limit_o,
    output logic                                             srq_limit_valid_o,
    output logic [19:0]                                      rx_entered_o,
    output logic [19:0]                                      rx_left_o,
    input  wire rnic_pkg::read_slot_t                        read_slot_data_i,
    output logic                                             read_slot_en_o,
    output logic [11:0]                                      read_slot_addr_o,
    output logic                                             rx_path_rd_en_o,
    output logic [7:0]                                       rx_path_rd_qp_o,
    input  wire rnic_pkg::path_t                             rx_path_data_i,
    input  wire rnic_pkg::reach_t                            rx_reach_data_i,
    output logic                                             rx_xlate_req_valid_o,
    input  wire logic                                        rx_xlate_req_ready_i,
    output rnic_pkg::xlate_req_t                             rx_xlate_req_data_o,
    input  wire logic                                        rx_xlate_rsp_valid_i,
    output logic                                             rx_xlate_rsp_ready_o,
    input  wire rnic_pkg::xlate_rsp_t                        rx_xlate_rsp_data_i,
    output logic                                             rx_xlate_retire_valid_o,
    output logic                                             rx_xlate_retire_epoch_o,
    output logic                                             rx_rd_req_valid_o,
    input  wire logic                                        rx_rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t                            rx_rd_req_data_o,
    input  wire logic                                        rx_rd_rsp_valid_i,
    output logic                                             rx_rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t                       rx_rd_rsp_data_i,
    output logic                                             rx_wr_valid_o,
    input  wire logic                                        rx_wr_ready_i,
    output rnic_pkg::dma_wr_t                                rx_wr_data_o,
    input  wire logic                                        rx_wr_done_i,
    output logic                                             rx_done_valid_o,
    input  wire logic                                        rx_done_ready_i,
    output rnic_pkg::rx_done_t                               rx_done_data_o,
    output logic                                             established_valid_o,
    output logic [7:0]                                       established_qp_o,
    output logic                                             rx_timer_valid_o,
    output rnic_pkg::timer_event_t                           rx_timer_data_o,
    output logic [rnic_pkg::QpCounters-1:0]                  rx_qp_event_o,
    output logic [7:0]                                       rx_qp_event_qp_o,
    output logic                                             place_fault_o,
    output logic [7:0]                                       place_fault_qp_o,
    output logic [rnic_pkg::NumCounters-1:0]                 ev_rx_o
);
  logic in_valid, loop_lost, groups, entry_desc_valid, entry_desc_ready,
      entry_payload_valid, entry_payload_ready, rx_desc_valid, rx_desc_ready, rx_payload_valid,
      rx_payload_ready, rx_judged, rx_held;
  rnic_pkg::frame_beat_t in_data;
  rnic_pkg::rx_desc_t entry_desc_data, rx_desc_data;
  rnic_pkg::payload_beat_t entry_payload_data, rx_payload_data;
  logic [rnic_pkg::NumCounters-1:0] ev_entry, ev_engine;

  logic loop_awake, front_awake, park_awake, engine_awake, loop_busy, entry_busy, park_busy;
  assign awake_o = loop_awake || front_awake || park_awake || engine_awake;
  logic loop_clk;
  room_clock u_loop_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(loop_clk), .awake_o(loop_awake),
      .stir_i(|{loop_busy, frame_valid_i, eth_rx_valid_i})
  );

  logic front_clk;
  room_clock u_front_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(front_clk), .awake_o(front_awake),
      .stir_i(|{entry_busy, in_valid, multicast_valid_i, moved_i})
  );

  logic park_clk;
  room_clock u_park_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(park_clk), .awake_o(park_awake),
      .stir_i(|{park_busy, entry_desc_valid, entry_payload_valid, rx_desc_valid, rx_payload_valid,
          rx_judged, atomic_over_i, invalidation_over_i, rx_reset_ready_o})
  );

  logic engine_clk;
  room_clock u_engine_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(engine_clk), .awake_o(engine_awake),
      .stir_i(|{rx_desc_valid, rx_payload_valid, rx_judged, rx_send_acq_valid_o,
          rx_send_ctx_valid_i, rx_send_rel_valid_o, rx_send_contended_i, rx_recv_acq_valid_o,
          rx_recv_ctx_valid_i, rx_recv_rel_valid_o, rx_recv_contended_i, rx_srq_acq_valid_o,
          rx_srq_ctx_valid_i, rx_srq_rel_valid_o, srq_limit_valid_o, read_slot_en_o,
          rx_path_rd_en_o, rx_xlate_req_valid_o, rx_xlate_rsp_valid_i, rx_xlate_retire_valid_o,
          rx_rd_req_valid_o, rx_rd_rsp_valid_i, rx_wr_valid_o, rx_wr_done_i, rx_done_valid_o,
          established_valid_o, rx_timer_valid_o, rx_reset_valid_i})
  );

  port_loop u_port_loop (
      .clk_i(loop_clk), .rst_ni, .busy_o(loop_busy), .port_mac_i, .groups_i(groups),
      .tx_valid_i(frame_valid_i), .tx_ready_o(frame_ready_o), .tx_data_i(frame_data_i),
      .eth_tx_valid_o, .eth_tx_ready_i, .eth_tx_data_o,
      .eth_rx_valid_i, .eth_rx_data_i,
      .rx_valid_o(in_valid), .rx_data_o(in_data), .lost_o(loop_lost)
  );

  rx_entry u_rx_entry (
      .clk_i(front_clk), .rst_ni, .busy_o(entry_busy),
      .port_mac_i, .ethernet_i, .enable_i(device_enable_i),
      .eth_rx_valid_i(in_valid), .eth_rx_data_i(in_data),
      .op_valid_i(multicast_valid_i), .op_i(multicast_data_i),
      .op_done_o(multicast_done_o), .op_status_o(multicast_status_o), .groups_o(groups),
      .desc_valid_o(entry_desc_valid), .desc_ready_i(entry_desc_ready),
      .desc_data_o(entry_desc_data),
      .payload_valid_o(entry_payload_valid), .payload_ready_i(entry_payload_ready),
      .payload_data_o(entry_payload_data),
      .event_o(ev_entry)
  );

  rx_park u_rx_park (
      .clk_i(park_clk), .rst_ni, .busy_o(park_busy),
      .desc_valid_i(entry_desc_valid), .desc_ready_o(entry_desc_ready),
      .desc_data_i(entry_desc_data),
      .payload_valid_i(entry_payload_valid), .payload_ready_o(entry_payload_ready),
      .payload_data_i(entry_payload_data),
      .desc_valid_o(rx_desc_valid), .desc_ready_i(rx_desc_ready), .desc_data_o(rx_desc_data),
      .payload_valid_o(rx_payload_valid), .payload_ready_i(rx_payload_ready),
      .payload_data_o(rx_payload_data),
      .judged_valid_i(rx_judged), .held_i(rx_held),
      .retry_i(atomic_over_i || invalidation_over_i),
      .clear_valid_i(rx_reset_ready_o), .clear_qp_i(qp_reset_qp_i)
  );

  rx_engine u_rx_engine (
      .clk_i(engine_clk), .rst_ni,
      .desc_valid_i(rx_desc_valid), .desc_ready_o(rx_desc_ready), .desc_data_i(rx_desc_data),
      .payload_valid_i(rx_payload_valid), .payload_ready_o(rx_payload_ready),
      .payload_data_i(rx_payload_data),
      .judged_valid_o(rx_judged), .held_o(rx_held),
      .send_acq_valid_o(rx_send_acq_valid_o), .send_acq_ready_i(rx_send_acq_ready_i),
      .send_acq_index_o(rx_send_acq_index_o),
      .send_ctx_valid_i(rx_send_ctx_valid_i), .send_ctx_data_i(send_ctx_i),
      .send_rel_valid_o(rx_send_rel_valid_o), .send_rel_ready_i(rx_send_rel_ready_i),
      .send_rel_write_o(rx_send_rel_write_o), .send_rel_data_o(rx_send_rel_data_o),
      .send_contended_i(rx_send_contended_i),
      .recv_acq_valid_o(rx_recv_acq_valid_o), .recv_acq_ready_i(rx_recv_acq_ready_i),
      .recv_acq_index_o(rx_recv_acq_index_o),
      .recv_ctx_valid_i(rx_recv_ctx_valid_i), .recv_ctx_data_i(recv_ctx_i),
      .recv_rel_valid_o(rx_recv_rel_valid_o), .recv_rel_ready_i(rx_recv_rel_ready_i),
      .recv_rel_write_o(rx_recv_rel_write_o), .recv_rel_data_o(rx_recv_rel_data_o),
      .recv_contended_i(rx_recv_contended_i),
      .srq_acq_valid_o(rx_srq_acq_valid_o), .srq_acq_ready_i(rx_srq_acq_ready_i),
      .srq_acq_index_o(rx_srq_acq_index_o),
      .srq_ctx_valid_i(rx_srq_ctx_valid_i), .srq_ctx_data_i(srq_ctx_i),
      .srq_rel_valid_o(rx_srq_rel_valid_o), .srq_rel_ready_i(rx_srq_rel_ready_i),
      .srq_rel_write_o(rx_srq_rel_write_o), .srq_rel_data_o(rx_srq_rel_data_o),
      .limit_valid_o(srq_limit_valid_o), .limit_srq_o(srq_limit_o),
      .rx_entered_o, .rx_left_o,
      .read_slot_en_o, .read_slot_addr_o, .read_slot_data_i,
      .path_rd_en_o(rx_path_rd_en_o), .path_rd_qp_o(rx_path_rd_qp_o),
      .path_rd_data_i(rx_path_data_i), .reach_data_i(rx_reach_data_i),
      .xlate_req_valid_o(rx_xlate_req_valid_o), .xlate_req_ready_i(rx_xlate_req_ready_i),
      .xlate_req_data_o(rx_xlate_req_data_o),
      .xlate_rsp_valid_i(rx_xlate_rsp_valid_i), .xlate_rsp_ready_o(rx_xlate_rsp_ready_o),
      .xlate_rsp_data_i(rx_xlate_rsp_data_i),
      .xlate_retire_valid_o(rx_xlate_retire_valid_o),
      .xlate_retire_epoch_o(rx_xlate_retire_epoch_o),
      .rd_req_valid_o(rx_rd_req_valid_o), .rd_req_ready_i(rx_rd_req_ready_i),
      .rd_req_data_o(rx_rd_req_data_o),
      .rd_rsp_valid_i(rx_rd_rsp_valid_i), .rd_rsp_ready_o(rx_rd_rsp_ready_o),
      .rd_rsp_data_i(rx_rd_rsp_data_i),
      .wr_valid_o(rx_wr_valid_o), .wr_ready_i(rx_wr_ready_i), .wr_data_o(rx_wr_data_o),
      .wr_done_i(rx_wr_done_i),
      .done_valid_o(rx_done_valid_o), .done_ready_i(rx_done_ready_i), .done_data_o(rx_done_data_o),
      .established_valid_o, .established_qp_o,
      .timer_valid_o(rx_timer_valid_o), .timer_data_o(rx_timer_data_o),
      .qp_reset_valid_i(rx_reset_valid_i), .qp_reset_ready_o(rx_reset_ready_o), .qp_reset_qp_i,
      .event_o(ev_engine),
      .qp_event_o(rx_qp_event_o), .qp_event_qp_o(rx_qp_event_qp_o),
      .place_fault_o, .place_fault_qp_o
  );

  always_comb begin : events
    ev_rx_o = ev_entry | ev_engine;
    ev_rx_o[rnic_pkg::CounterLoopLost] = loop_lost;
  end
endmodule

`default_nettype wire
