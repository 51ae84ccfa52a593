`default_nettype none
`include "assert.svh"
`include "stream.svh"

/// The NIC: PCIe TLP streams on one side, Ethernet frames on the other. docs/architecture.md shows
/// the way of a request.
///
/// Four rooms and what they share; this file only joins them, a stream a word (stream.svh says
/// which wires and ports the word stands for). memory_side is the way to host memory and its
/// translation, send_side makes what leaves on the wire, receive_side takes what comes,
/// completion_side says what has ended. host_if has registers, doorbells and the admin queue;
/// qp_contexts keeps the state of queue pairs, qp_reset_order has one forgotten.
///
/// TLP streams are those of pcie_edge; cfg_* are what a PCIe hard block reports of the
/// configuration space, eth_link_up_i what the Ethernet MAC says of its link. time_i counts cycles,
/// those included in which clk_i stands still, as it may while quiet_o is 1 (nic_rest).
module rnic_top (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    clk_open_i,
    input  wire logic [63:0]             time_i,
    output logic                         quiet_o,
    output logic                         quiet_timed_o,
    output logic [63:0]                  quiet_until_o,
    input  wire logic [2:0]              cfg_max_payload_i,
    input  wire logic [2:0]              cfg_max_read_req_i,
    input  wire logic                    cfg_bus_master_i,
    input  wire logic                    cfg_ext_tag_i,
    input  wire logic                    cfg_cpl_timeout_disable_i,
    input  wire logic                    dma_req_np_hold_i,
    input  wire logic                    cfg_msix_enable_i,
    input  wire logic                    cfg_msix_mask_i,
    output logic                         transactions_pending_o,
    input  wire logic                    host_req_valid_i,
    output logic                         host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t host_req_hdr_i,
    input  wire logic [511:0]            host_req_data_i,
    input  wire logic                    host_req_last_i,
    output logic                         host_cpl_valid_o,
    input  wire logic                    host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t      host_cpl_hdr_o,
    output logic [511:0]                 host_cpl_data_o,
    output logic                         host_cpl_last_o,
    output logic                         dma_req_valid_o,
    input  wire logic                    dma_req_ready_i,
    output rnic_pkg::dma_req_hdr_t       dma_req_hdr_o,
    output logic [511:0]                 dma_req_data_o,
    output logic                         dma_req_last_o,
    input  wire logic                    dma_cpl_valid_i,
    output logic                         dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t  dma_cpl_hdr_i,
    input  wire logic [511:0]            dma_cpl_data_i,
    input  wire logic                    dma_cpl_last_i,
    output logic                         eth_tx_valid_o,
    input  wire logic                    eth_tx_ready_i,
    output rnic_pkg::frame_beat_t        eth_tx_data_o,
    input  wire logic                    eth_rx_valid_i,
    input  wire rnic_pkg::frame_beat_t   eth_rx_data_i,
    input  wire logic                    eth_link_up_i
);
  `STREAM(rnic_pkg::dma_rd_req_t, admin_rd_req); `STREAM(rnic_pkg::dma_rd_req_t, rx_rd_req);
  `STREAM(rnic_pkg::dma_rd_rsp_t, admin_rd_rsp); `STREAM(rnic_pkg::dma_rd_rsp_t, rx_rd_rsp);
  `STREAM(rnic_pkg::dma_wr_t, admin_wr); `STREAM(rnic_pkg::dma_wr_t, msix_wr);
  `STREAM(rnic_pkg::dma_wr_t, rx_wr); `STREAM(rnic_pkg::dma_wr_t, send_wr);
  `STREAM(rnic_pkg::doorbell_t, cq_db); `STREAM(rnic_pkg::doorbell_t, eq_db);
  `STREAM(rnic_pkg::doorbell_t, rq_db); `STREAM(rnic_pkg::doorbell_t, sq_db);
  `STREAM(rnic_pkg::doorbell_t, srq_db); `STREAM(rnic_pkg::eqe_req_t, device_eqe);
  `STREAM(rnic_pkg::mem_op_t, admin_mem_op); `STREAM(rnic_pkg::mem_op_t, rx_mem_op);
  `STREAM(rnic_pkg::mem_op_t, unbind_mem_op); `STREAM(rnic_pkg::mem_list_t, sq_mem_list);
  `STREAM(rnic_pkg::mem_op_t, sq_mem_op); `STREAM(rnic_pkg::mpt_t, mpt_req);
  `STREAM(rnic_pkg::qp_error_t, qp_error); `STREAM(rnic_pkg::recv_ctx_t, rsp_rel);
  `STREAM(rnic_pkg::reg_req_t, reg_req); `STREAM(rnic_pkg::retire_cmd_t, sq_retire);
  `STREAM(rnic_pkg::rsp_cmd_t, rsp_cmd); `STREAM(rnic_pkg::rx_done_t, rx_done);
  `STREAM(rnic_pkg::srq_ctx_t, rx_srq_rel); `STREAM(rnic_pkg::timer_event_t, left);
  `STREAM(rnic_pkg::tx_fault_t, cpl_fault); `STREAM(rnic_pkg::uar_req_t, uar_req);
  `STREAM(rnic_pkg::wqe_push_t, wqe_push); `STREAM(rnic_pkg::xlate_req_t, rx_xlate_req);
  `STREAM(rnic_pkg::xlate_rsp_t, rx_xlate_rsp); `STREAM(rnic_pkg::frame_beat_t, frame);
  logic [29:0] completion_timeout;
  logic reg_rsp_valid, send_wr_done, msix_wr_done, admin_wr_done, rx_wr_done, rx_xlate_retire_valid,
      rx_xlate_retire_epoch, memory_ready, admin_mem_op_rsp_valid, rx_mem_op_rsp_valid,
      unbind_mem_op_rsp_valid, unbinding, rx_mem_op_rsp_ready, sq_mem_op_rsp_valid,
      sq_mem_op_rsp_ready, mpt_req_write, mpt_rsp_valid,
      drain_valid, drain_ready, qp_contexts_ready, completion_ready, device_enable, msix_valid,
      msix_ready, admin_rel_write, host_wake_valid, path_wr_valid, qp_reset_valid,
      qp_reset_ready, qp_flushing, cpl_reset_valid, rx_reset_valid, cpl_reset_ready, rx_reset_ready,
      rsp_acq_valid, rsp_acq_ready, rsp_ctx_valid, rsp_rel_write, tx_path_rd_en, rx_path_rd_en,
      inflight_valid, flush_req_valid, flush_req_ready, sq_wake_valid, drained_valid, begun_valid,
      read_slot_en, atomic_over, invalidation_over, rsp_desc_sent, rx_srq_acq_valid,
      rx_srq_acq_ready, rx_srq_ctx_valid, rx_srq_rel_write, srq_limit_valid, established_valid,
      rx_timer_valid, place_fault, multicast_valid, multicast_done, moved, ready;
  logic [63:0] reg_rsp_data, cycles; rnic_pkg::rest_t cpl_rest, read_rest, rest; logic [5:0] awake;
  logic [2:0] send_rd_req_valid, send_rd_req_ready, send_rd_rsp_valid, send_rd_rsp_ready,
      send_reset_valid, send_reset_ready, cpl_recv_acq_valid, cpl_recv_acq_ready,
      cpl_recv_ctx_valid, cpl_recv_rel_valid, cpl_recv_rel_ready, cpl_recv_rel_write;
  logic [3*rnic_pkg::DmaRdReqBits-1:0] send_rd_req_data;
  logic [3*rnic_pkg::DmaRdRspBits-1:0] send_rd_rsp_data;
  logic [1:0] cpl_wr_valid, cpl_wr_ready, cpl_wr_done, send_xlate_req_valid, send_xlate_req_ready,
      send_xlate_rsp_valid, send_xlate_rsp_ready, send_xlate_retire_valid, send_xlate_retire_epoch,
      rx_send_acq_valid, rx_send_acq_ready, cpl_send_acq_valid, cpl_send_acq_ready,
      rx_send_ctx_valid, cpl_send_ctx_valid, rx_send_rel_valid, rx_send_rel_ready,
      rx_send_rel_write, cpl_send_rel_valid, cpl_send_rel_ready, cpl_send_rel_write,
      rx_recv_acq_valid, rx_recv_acq_ready, rx_recv_ctx_valid, rx_recv_rel_valid, rx_recv_rel_ready,
      rx_recv_rel_write, rx_send_contended, rx_recv_contended, sq_contended;
  logic [2*rnic_pkg::DmaWrBits-1:0] cpl_wr_data;
  logic [2*rnic_pkg::XlateReqBits-1:0] send_xlate_req_data; rnic_pkg::xlate_rsp_t tx_xlate_rsp_data;
  rnic_pkg::mem_op_rsp_t mem_op_rsp_data; rnic_pkg::mpt_t mpt_rsp_data;
  logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index; rnic_pkg::multicast_op_t multicast_data;
  logic [rnic_pkg::NumCounters-1:0] ev_memory, ev_host, ev_send, ev_rx, ev_cpl;
  logic [47:0] port_mac; rnic_pkg::ethernet_t ethernet;
  logic [7:0] msix_vector, admin_acq_index, host_wake_qp, path_wr_qp, qp_reset_qp,
      rx_send_acq_index, rx_recv_acq_index, rsp_acq_index, tx_path_rd_qp, rx_path_rd_qp,
      flush_req_qp, sq_wake_qp, drained_qp, begun_qp, rx_srq_acq_index, srq_limit,
      established_qp, rx_qp_event_qp, place_fault_qp;
  logic [4:0] admin_acq_valid, admin_acq_ready, admin_ctx_valid, admin_rel_valid, admin_rel_ready,
      sq_acq_valid, sq_acq_ready, sq_ctx_valid, sq_rel_valid, sq_rel_ready, sq_rel_write;
  rnic_pkg::send_ctx_t send_ctx, admin_send_ctx, rx_send_rel_data;
  rnic_pkg::recv_ctx_t recv_ctx, admin_recv_ctx, rx_recv_rel_data;
  rnic_pkg::cq_ctx_t cq_ctx, admin_cq_ctx; rnic_pkg::eq_ctx_t eq_ctx, admin_eq_ctx;
  rnic_pkg::srq_ctx_t srq_ctx, admin_srq_ctx;
  rnic_pkg::path_t path_wr_data, tx_path_data, rx_path_data;
  logic [5*rnic_pkg::QpCounters-1:0] qp_event; logic [5*8-1:0] qp_event_qp, sq_acq_index;
  logic [2*8-1:0] cpl_send_acq_index; logic [2*rnic_pkg::SendCtxBits-1:0] cpl_send_rel_data;
  logic [5*rnic_pkg::SendCtxBits-1:0] sq_rel_data; logic [3*8-1:0] cpl_recv_acq_index;
  logic [3*rnic_pkg::RecvCtxBits-1:0] cpl_recv_rel_data; rnic_pkg::inflight_t inflight_data;
  rnic_pkg::read_slot_t read_slot_data; rnic_pkg::reach_t rx_reach_data;
  logic [11:0] read_slot_addr; logic [1:0] multicast_status;
  rnic_pkg::tx_desc_t rsp_desc_data; rnic_pkg::timer_event_t rx_timer_data;
  logic [19:0] rx_entered, rx_left; logic [rnic_pkg::QpCounters-1:0] rx_qp_event;

  // ---- Rest ----
  rest_join u_rest_join (.cycles_i(cycles), .a_i(cpl_rest), .b_i(read_rest), .rest_o(rest));
  nic_rest #(.Rooms(6), .Levels(15)) u_rest (
      .clk_i, .time_i, .cycles_i(cycles), .awake_i(awake), .moved_o(moved), .rest_i(rest),
      .levels_i({cfg_max_payload_i, cfg_max_read_req_i, cfg_bus_master_i, cfg_ext_tag_i,
          cfg_cpl_timeout_disable_i, cfg_msix_enable_i, cfg_msix_mask_i, dma_req_np_hold_i,
          eth_link_up_i, device_enable, ready}),
      .quiet_o, .timed_o(quiet_timed_o), .deadline_o(quiet_until_o)
  );

  memory_side u_memory_side (
      .clk_i, .rst_ni, .clk_open_i, .moved_i(moved), .awake_o(awake[0]), .cycles_i(cycles),
      .rest_o(read_rest), .cfg_max_payload_i, .cfg_max_read_req_i, .cfg_bus_master_i,
      .cfg_ext_tag_i, .cfg_cpl_timeout_disable_i, .dma_req_np_hold_i,
      .device_enable_i(device_enable), .pending_o(transactions_pending_o),
      .completion_timeout_i(completion_timeout), .host_req_valid_i, .host_req_ready_o,
      .host_req_hdr_i, .host_req_data_i, .host_req_last_i, .host_cpl_valid_o, .host_cpl_ready_i,
      .host_cpl_hdr_o, .host_cpl_data_o, .host_cpl_last_o, .dma_req_valid_o, .dma_req_ready_i,
      .dma_req_hdr_o, .dma_req_data_o, .dma_req_last_o, .dma_cpl_valid_i, .dma_cpl_ready_o,
      .dma_cpl_hdr_i, .dma_cpl_data_i, .dma_cpl_last_i, `STREAM_OUT(reg_req), `NOTICE_IN(reg_rsp),
      `STREAM_OUT(uar_req), `STREAM_IN(send_rd_req), `STREAM_IN(rx_rd_req),
      `STREAM_IN(admin_rd_req), `STREAM_OUT(send_rd_rsp), `STREAM_OUT(rx_rd_rsp),
      `STREAM_OUT(admin_rd_rsp), `STREAM_IN(send_wr), .send_wr_done_o(send_wr_done),
      `STREAM_IN(msix_wr), .msix_wr_done_o(msix_wr_done), `STREAM_IN(admin_wr),
      .admin_wr_done_o(admin_wr_done), `STREAM_IN(cpl_wr), .cpl_wr_done_o(cpl_wr_done),
      `STREAM_IN(rx_wr), .rx_wr_done_o(rx_wr_done), `STREAM_IN(send_xlate_req),
      `STREAM_IN(rx_xlate_req), `HANDSHAKE_OUT(send_xlate_rsp), `STREAM_OUT(rx_xlate_rsp),
      .send_xlate_retire_valid_i(send_xlate_retire_valid),
      .send_xlate_retire_epoch_i(send_xlate_retire_epoch),
      .rx_xlate_retire_valid_i(rx_xlate_retire_valid),
      .rx_xlate_retire_epoch_i(rx_xlate_retire_epoch), .memory_ready_o(memory_ready),
      .tx_xlate_rsp_data_o(tx_xlate_rsp_data), `STREAM_IN(admin_mem_op), `STREAM_IN(rx_mem_op),
      `STREAM_IN(sq_mem_op), `STREAM_IN(sq_mem_list), `STREAM_IN(unbind_mem_op),
      .unbind_mem_op_rsp_valid_o(unbind_mem_op_rsp_valid), .unbinding_i(unbinding),
      .admin_mem_op_rsp_valid_o(admin_mem_op_rsp_valid), `HANDSHAKE_OUT(rx_mem_op_rsp),
      `HANDSHAKE_OUT(sq_mem_op_rsp), .mem_op_rsp_data_o(mem_op_rsp_data), `STREAM_IN(mpt_req),
      .mpt_req_index_i(mpt_req_index), .mpt_req_write_i(mpt_req_write), `NOTICE_OUT(mpt_rsp),
      `HANDSHAKE_IN(drain), .ev_memory_o(ev_memory)
  );

  host_if u_host_if (
      .clk_i, .rst_ni, .clk_open_i, .moved_i(moved), .awake_o(awake[1]),
      .contexts_ready_i(qp_contexts_ready && memory_ready && completion_ready), .ready_o(ready),
      `STREAM_IN(reg_req), `NOTICE_OUT(reg_rsp), .device_enable_o(device_enable), .time_i,
      .completion_timeout_o(completion_timeout), .port_mac_o(port_mac), .ethernet_o(ethernet),
      .cycles_o(cycles), .event_i(ev_host | ev_memory | ev_send | ev_rx | ev_cpl),
      `STREAM_IN(uar_req), `STREAM_OUT_AS(sq_doorbell, sq_db),
      `STREAM_OUT_AS(rq_doorbell, rq_db), `STREAM_OUT_AS(cq_doorbell, cq_db),
      `STREAM_OUT_AS(eq_doorbell, eq_db), `STREAM_OUT_AS(srq_doorbell, srq_db),
      `STREAM_OUT(wqe_push), .cfg_msix_enable_i, .cfg_msix_mask_i, `HANDSHAKE_IN(msix),
      .msix_vector_i(msix_vector), `STREAM_OUT_AS(rd_req, admin_rd_req), `STREAM_OUT(admin_wr),
      `STREAM_IN_AS(rd_rsp, admin_rd_rsp), .admin_wr_done_i(admin_wr_done), `STREAM_OUT(msix_wr),
      .msix_wr_done_i(msix_wr_done), `HANDSHAKE_OUT_AS(acq, admin_acq),
      .acq_index_o(admin_acq_index), .ctx_valid_i(admin_ctx_valid), .send_ctx_i(send_ctx),
      .recv_ctx_i(recv_ctx), .cq_ctx_i(cq_ctx), .eq_ctx_i(eq_ctx), .srq_ctx_i(srq_ctx),
      `HANDSHAKE_OUT_AS(rel, admin_rel), .rel_write_o(admin_rel_write), .send_ctx_o(admin_send_ctx),
      .recv_ctx_o(admin_recv_ctx), .cq_ctx_o(admin_cq_ctx), .eq_ctx_o(admin_eq_ctx),
      .srq_ctx_o(admin_srq_ctx), `NOTICE_QP_OUT_AS(sq_wake, host_wake),
      .link_up_i(eth_link_up_i),
      .quiet_i(!(dma_req_valid_o || transactions_pending_o || frame_valid)),
      `STREAM_OUT_AS(eqe, device_eqe), `NOTICE_OUT(path_wr), .path_wr_qp_o(path_wr_qp),
      `STREAM_OUT(mpt_req), .mpt_req_write_o(mpt_req_write), .mpt_req_index_o(mpt_req_index),
      `NOTICE_IN(mpt_rsp), `STREAM_OUT_AS(mem_op, admin_mem_op),
      .mem_op_rsp_valid_i(admin_mem_op_rsp_valid), .mem_op_rsp_data_i(mem_op_rsp_data),
      `NOTICE_OUT(multicast), .multicast_done_i(multicast_done),
      .multicast_status_i(multicast_status), `HANDSHAKE_OUT(drain), `STREAM_QP_OUT(qp_reset),
      .flushing_i(qp_flushing), `STREAM_OUT(qp_error), .event_o(ev_host), .qp_event_i(qp_event),
      .qp_event_qp_i(qp_event_qp)
  );

  qp_reset_order u_qp_reset_order (
      .clk_i, .rst_ni, `HANDSHAKE_IN_AS(in, qp_reset),
      .queues_valid_o({cpl_reset_valid, rx_reset_valid, send_reset_valid[1:0]}),
      .queues_ready_i({cpl_reset_ready, rx_reset_ready, send_reset_ready[1:0]}),
      .path_valid_o(send_reset_valid[2]), .path_ready_i(send_reset_ready[2])
  );

  qp_contexts u_qp_contexts (
      .clk_i, .rst_ni, .clk_open_i, .awake_o(awake[2]),
      `BORROW_IN(rx_send), `BORROW_IN(cpl_send), `BORROW_IN(sq),
      .admin_acq_valid_i(admin_acq_valid[1:0]), .admin_acq_ready_o(admin_acq_ready[1:0]),
      .admin_acq_index_i(admin_acq_index), .admin_ctx_valid_o(admin_ctx_valid[1:0]),
      .send_ctx_o(send_ctx), .admin_rel_valid_i(admin_rel_valid[1:0]),
      .admin_rel_ready_o(admin_rel_ready[1:0]), .admin_rel_write_i(admin_rel_write),
      .admin_send_ctx_i(admin_send_ctx), `BORROW_IN(rx_recv), `BORROW_IN(cpl_recv), `BORROW_IN(rsp),
      .recv_ctx_o(recv_ctx), .admin_recv_ctx_i(admin_recv_ctx), `NOTICE_IN(path_wr),
      .path_wr_qp_i(path_wr_qp), .tx_path_rd_en_i(tx_path_rd_en), .tx_path_rd_qp_i(tx_path_rd_qp),
      .tx_path_data_o(tx_path_data), .rx_path_rd_en_i(rx_path_rd_en),
      .rx_path_rd_qp_i(rx_path_rd_qp), .rx_path_data_o(rx_path_data), .sq_contended_o(sq_contended),
      .rx_send_contended_o(rx_send_contended), .rx_recv_contended_o(rx_recv_contended),
      .qp_contexts_ready_o(qp_contexts_ready)
  );

  send_side u_send_side (
      .clk_i, .rst_ni, .clk_open_i, .moved_i(moved), .awake_o(awake[3]), `STREAM_IN(sq_db),
      `STREAM_IN(wqe_push), `BORROW_OUT(sq), .sq_contended_i(sq_contended), .send_ctx_i(send_ctx),
      `STREAM_OUT(sq_mem_op), `HANDSHAKE_IN(sq_mem_op_rsp), .mem_op_rsp_data_i(mem_op_rsp_data),
      `STREAM_OUT(sq_mem_list), `STREAM_OUT(send_rd_req), `STREAM_IN(send_rd_rsp),
      `NOTICE_OUT(inflight), `STREAM_OUT(sq_retire), `STREAM_QP_OUT(flush_req),
      `NOTICE_QP_IN(sq_wake), `NOTICE_QP_IN(host_wake), `NOTICE_QP_OUT(drained),
      `NOTICE_QP_OUT(begun), .read_slot_data_o(read_slot_data), .read_slot_en_i(read_slot_en),
      .read_slot_addr_i(read_slot_addr), `HANDSHAKE_IN(send_reset), .qp_reset_qp_i(qp_reset_qp),
      `STREAM_OUT(cpl_fault), `STREAM_IN(rsp_cmd), `BORROW_OUT(rsp), .recv_ctx_i(recv_ctx),
      .rsp_desc_data_o(rsp_desc_data), `STREAM_OUT(send_xlate_req), `HANDSHAKE_IN(send_xlate_rsp),
      .rx_xlate_rsp_data_i(rx_xlate_rsp_data), .send_xlate_retire_valid_o(send_xlate_retire_valid),
      .send_xlate_retire_epoch_o(send_xlate_retire_epoch), `STREAM_OUT(send_wr),
      .send_wr_done_i(send_wr_done), .atomic_over_o(atomic_over), .port_mac_i(port_mac),
      .device_enable_i(device_enable), .tx_xlate_rsp_data_i(tx_xlate_rsp_data),
      .tx_path_rd_en_o(tx_path_rd_en), .tx_path_rd_qp_o(tx_path_rd_qp),
      .tx_path_data_i(tx_path_data), .rx_path_rd_en_i(rx_path_rd_en),
      .rx_path_rd_qp_i(rx_path_rd_qp), .rx_reach_data_o(rx_reach_data),
      `STREAM_OUT_AS(eth_tx, frame), `STREAM_OUT(left),
      .rsp_desc_sent_o(rsp_desc_sent), .ev_send_o(ev_send)
  );

  receive_side u_receive_side (
      .clk_i, .rst_ni, .clk_open_i, .moved_i(moved), .awake_o(awake[4]), .port_mac_i(port_mac),
      .ethernet_i(ethernet), .device_enable_i(device_enable), `STREAM_IN(frame), .eth_tx_valid_o,
      .eth_tx_ready_i, .eth_tx_data_o, .eth_rx_valid_i, .eth_rx_data_i, `NOTICE_IN(multicast),
      .multicast_done_o(multicast_done), .multicast_status_o(multicast_status),
      .atomic_over_i(atomic_over), .invalidation_over_i(invalidation_over), `HANDSHAKE_IN(rx_reset),
      .qp_reset_qp_i(qp_reset_qp), `BORROW_OUT(rx_send), .send_ctx_i(send_ctx),
      .rx_send_contended_i(rx_send_contended), `BORROW_OUT(rx_recv), .recv_ctx_i(recv_ctx),
      .rx_recv_contended_i(rx_recv_contended), `BORROW_OUT(rx_srq), .srq_ctx_i(srq_ctx),
      .srq_limit_o(srq_limit), .srq_limit_valid_o(srq_limit_valid),
      .rx_entered_o(rx_entered), .rx_left_o(rx_left), .read_slot_data_i(read_slot_data),
      .read_slot_en_o(read_slot_en), .read_slot_addr_o(read_slot_addr),
      .rx_path_rd_en_o(rx_path_rd_en), .rx_path_rd_qp_o(rx_path_rd_qp),
      .rx_path_data_i(rx_path_data), .rx_reach_data_i(rx_reach_data), `STREAM_OUT(rx_xlate_req),
      `STREAM_IN(rx_xlate_rsp), .rx_xlate_retire_valid_o(rx_xlate_retire_valid),
      .rx_xlate_retire_epoch_o(rx_xlate_retire_epoch), `STREAM_OUT(rx_rd_req),
      `STREAM_IN(rx_rd_rsp), `STREAM_OUT(rx_wr), .rx_wr_done_i(rx_wr_done), `STREAM_OUT(rx_done),
      `NOTICE_QP_OUT(established), `NOTICE_OUT(rx_timer), .rx_qp_event_o(rx_qp_event),
      .rx_qp_event_qp_o(rx_qp_event_qp), .place_fault_o(place_fault),
      .place_fault_qp_o(place_fault_qp), .ev_rx_o(ev_rx)
  );

  completion_side u_completion_side (
      .clk_i, .rst_ni, .clk_open_i, .awake_o(awake[5]),
      .cycles_i(cycles), .cpl_rest_o(cpl_rest), `STREAM_IN(rx_done),
      `STREAM_IN(cpl_fault), `STREAM_IN(sq_retire), `NOTICE_IN(inflight), `STREAM_QP_IN(flush_req),
      `STREAM_IN(qp_error), .rx_entered_i(rx_entered), .rx_left_i(rx_left), `NOTICE_QP_IN(drained),
      `NOTICE_QP_IN(established), `STREAM_IN(device_eqe), `STREAM_OUT(rsp_cmd),
      `STREAM_OUT(rx_mem_op), `STREAM_OUT(unbind_mem_op), .invalidation_over_o(invalidation_over),
      .unbind_mem_op_rsp_valid_i(unbind_mem_op_rsp_valid), .unbinding_o(unbinding),
      `HANDSHAKE_IN(rx_mem_op_rsp), .mem_op_rsp_data_i(mem_op_rsp_data), `NOTICE_QP_OUT(sq_wake),
      `NOTICE_QP_IN(begun), `STREAM_IN(left), `NOTICE_IN(rx_timer),
      `STREAM_IN(rq_db), `STREAM_IN(cq_db), `STREAM_IN(eq_db), `BORROW_OUT(cpl_send),
      .send_ctx_i(send_ctx), `BORROW_OUT(cpl_recv), .recv_ctx_i(recv_ctx),
      .admin_acq_valid_i(admin_acq_valid[4:2]), .admin_acq_ready_o(admin_acq_ready[4:2]),
      .admin_acq_index_i(admin_acq_index), .admin_ctx_valid_o(admin_ctx_valid[4:2]),
      .cq_ctx_o(cq_ctx), .eq_ctx_o(eq_ctx), .admin_rel_valid_i(admin_rel_valid[4:2]),
      .admin_rel_ready_o(admin_rel_ready[4:2]), .admin_rel_write_i(admin_rel_write),
      .admin_cq_ctx_i(admin_cq_ctx), .admin_eq_ctx_i(admin_eq_ctx), `STREAM_OUT(cpl_wr),
      .cpl_wr_done_i(cpl_wr_done), `HANDSHAKE_OUT(msix), .msix_vector_o(msix_vector),
      `HANDSHAKE_IN(cpl_reset), .qp_reset_qp_i(qp_reset_qp), .qp_flushing_o(qp_flushing),
      .ev_cpl_o(ev_cpl), `STREAM_IN(srq_db), `BORROW_IN(rx_srq), .srq_ctx_o(srq_ctx),
      .admin_srq_ctx_i(admin_srq_ctx), .srq_limit_i(srq_limit), .srq_limit_valid_i(srq_limit_valid),
      .rx_qp_event_i(rx_qp_event), .rx_qp_event_qp_i(rx_qp_event_qp), .place_fault_i(place_fault),
      .place_fault_qp_i(place_fault_qp), .rsp_desc_sent_i(rsp_desc_sent),
      .rsp_desc_data_i(rsp_desc_data), .qp_event_o(qp_event), .qp_event_qp_o(qp_event_qp),
      .completion_ready_o(completion_ready)
  );
  `ASSERT_HOLD(HostCplHold, host_cpl_valid_o, host_cpl_ready_i, {host_cpl_hdr_o, host_cpl_data_o,
                                                                host_cpl_last_o})
  `ASSERT_HOLD(DmaReqHold, dma_req_valid_o, dma_req_ready_i, {dma_req_hdr_o, dma_req_data_o,
                                                              dma_req_last_o})
  `ASSERT_HOLD(EthTxHold, eth_tx_valid_o, eth_tx_ready_i, eth_tx_data_o)
endmodule

`default_nettype wire
