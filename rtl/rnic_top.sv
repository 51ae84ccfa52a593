`default_nettype none
`include "assert.svh"

/// The NIC: PCIe TLP streams on one side, Ethernet frames on the other. docs/architecture.md shows
/// the way of a request.
///
/// Four rooms and what they share; this file only joins them, a stream a line. memory_side is the
/// way to host memory and its translation, send_side makes what leaves on the wire, receive_side
/// takes what comes, completion_side says what has ended. host_if has registers, doorbells and the
/// admin queue; qp_contexts keeps the state of queue pairs, qp_reset_order has one forgotten.
///
/// TLP streams are those of pcie_edge; cfg_* are what a PCIe hard block reports of the
/// configuration space, eth_link_up_i what the Ethernet MAC says of its link.
module rnic_top (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic [2:0]              cfg_max_payload_i,
    input  wire logic [2:0]              cfg_max_read_req_i,
    input  wire logic                    cfg_bus_master_i,
    input  wire logic                    cfg_ext_tag_i,
    input  wire logic                    cfg_msix_enable_i,
    input  wire logic                    cfg_msix_mask_i,
    input  wire logic                    host_req_valid_i,
    output logic                         host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t host_req_hdr_i,
    input  wire logic [511:0]            host_req_data_i,
    input  wire logic                    host_req_last_i,
    output logic                         host_cpl_valid_o,
    input  wire logic                    host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t      host_cpl_hdr_o,
    output logic [511:0]                 host_cpl_data_o,
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
  logic [29:0] completion_timeout;
  logic reg_req_valid, reg_req_ready, reg_rsp_valid, uar_req_valid, uar_req_ready, rx_rd_req_valid,
      rx_rd_req_ready, admin_rd_req_valid, admin_rd_req_ready, rx_rd_rsp_valid, rx_rd_rsp_ready,
      admin_rd_rsp_valid, admin_rd_rsp_ready, send_wr_valid, send_wr_ready, send_wr_done,
      msix_wr_valid, msix_wr_ready, msix_wr_done, admin_wr_valid, admin_wr_ready, admin_wr_done,
      rx_wr_valid, rx_wr_ready, rx_wr_done, rx_xlate_req_valid, rx_xlate_req_ready,
      rx_xlate_rsp_valid, rx_xlate_rsp_ready, rx_xlate_retire_valid, rx_xlate_retire_epoch,
      memory_ready, admin_mem_op_valid, admin_mem_op_ready, rx_mem_op_valid, rx_mem_op_ready,
      sq_mem_op_valid, sq_mem_op_ready, admin_mem_op_rsp_valid, rx_mem_op_rsp_valid,
      rx_mem_op_rsp_ready, sq_mem_op_rsp_valid, sq_mem_op_rsp_ready, mpt_req_valid, mpt_req_ready,
      mpt_req_write, mpt_rsp_valid, drain_valid, drain_ready, qp_contexts_ready, completion_ready,
      device_enable, sq_db_valid, sq_db_ready, rq_db_valid, rq_db_ready, cq_db_valid, cq_db_ready,
      eq_db_valid, eq_db_ready, srq_db_valid, srq_db_ready, wqe_push_valid, wqe_push_ready,
      msix_valid, msix_ready, admin_rel_write, host_wake_valid, host_revive, device_eqe_valid,
      device_eqe_ready, path_wr_valid, qp_reset_valid, qp_reset_ready, qp_flushing, qp_error_valid,
      qp_error_ready, cpl_reset_valid, rx_reset_valid, cpl_reset_ready, rx_reset_ready,
      rsp_acq_valid, rsp_acq_ready, rsp_ctx_valid, rsp_rel_valid, rsp_rel_ready, rsp_rel_write,
      tx_path_rd_en, rx_path_rd_en, inflight_valid, sq_retire_valid, sq_retire_ready,
      flush_req_valid, flush_req_ready, sq_wake_valid, drained_valid, begun_valid, read_slot_en,
      cpl_fault_valid, cpl_fault_ready, rsp_cmd_valid, rsp_cmd_ready, atomic_over, left_valid,
      left_ready, revive_valid, rsp_desc_sent, rx_srq_acq_valid, rx_srq_acq_ready, rx_srq_ctx_valid,
      rx_srq_rel_valid, rx_srq_rel_ready, rx_srq_rel_write, srq_limit_valid, rx_done_valid,
      rx_done_ready, established_valid, rx_timer_valid, place_fault;
  rnic_pkg::reg_req_t reg_req_data;
  logic [63:0] reg_rsp_data, cycles;
  rnic_pkg::uar_req_t uar_req_data;
  logic [2:0] send_rd_req_valid, send_rd_req_ready, send_rd_rsp_valid, send_rd_rsp_ready,
      send_reset_valid, send_reset_ready, cpl_recv_acq_valid, cpl_recv_acq_ready,
      cpl_recv_ctx_valid, cpl_recv_rel_valid, cpl_recv_rel_ready, cpl_recv_rel_write;
  logic [3*rnic_pkg::DmaRdReqBits-1:0] send_rd_req_data;
  rnic_pkg::dma_rd_req_t rx_rd_req_data, admin_rd_req_data;
  logic [3*rnic_pkg::DmaRdRspBits-1:0] send_rd_rsp_data;
  rnic_pkg::dma_rd_rsp_t rx_rd_rsp_data, admin_rd_rsp_data;
  rnic_pkg::dma_wr_t send_wr_data, msix_wr_data, admin_wr_data, rx_wr_data;
  logic [1:0] cpl_wr_valid, cpl_wr_ready, cpl_wr_done, send_xlate_req_valid, send_xlate_req_ready,
      send_xlate_rsp_valid, send_xlate_rsp_ready, send_xlate_retire_valid, send_xlate_retire_epoch,
      rx_send_acq_valid, rx_send_acq_ready, cpl_send_acq_valid, cpl_send_acq_ready,
      rx_send_ctx_valid, cpl_send_ctx_valid, rx_send_rel_valid, rx_send_rel_ready,
      rx_send_rel_write, cpl_send_rel_valid, cpl_send_rel_ready, cpl_send_rel_write,
      rx_recv_acq_valid, rx_recv_acq_ready, rx_recv_ctx_valid, rx_recv_rel_valid, rx_recv_rel_ready,
      rx_recv_rel_write, rx_send_contended, rx_recv_contended;
  logic [2*rnic_pkg::DmaWrBits-1:0] cpl_wr_data;
  logic [2*rnic_pkg::XlateReqBits-1:0] send_xlate_req_data;
  rnic_pkg::xlate_req_t rx_xlate_req_data;
  rnic_pkg::xlate_rsp_t rx_xlate_rsp_data, tx_xlate_rsp_data;
  rnic_pkg::mem_op_t admin_mem_op_data, rx_mem_op_data, sq_mem_op_data;
  rnic_pkg::mem_op_rsp_t mem_op_rsp_data;
  rnic_pkg::mpt_t mpt_req_data, mpt_rsp_data;
  logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index;
  logic [rnic_pkg::NumCounters-1:0] ev_memory, ev_host, ev_send, ev_rx, ev_cpl;
  logic [47:0] port_mac;
  rnic_pkg::doorbell_t sq_db_data, rq_db_data, cq_db_data, eq_db_data, srq_db_data;
  rnic_pkg::wqe_push_t wqe_push_data;
  logic [7:0] msix_vector, admin_acq_index, host_wake_qp, path_wr_qp, qp_reset_qp,
      rx_send_acq_index, rx_recv_acq_index, rsp_acq_index, tx_path_rd_qp, rx_path_rd_qp,
      flush_req_qp, sq_wake_qp, drained_qp, begun_qp, revive_qp, rx_srq_acq_index, srq_limit,
      established_qp, rx_qp_event_qp, place_fault_qp;
  logic [4:0] admin_acq_valid, admin_acq_ready, admin_ctx_valid, admin_rel_valid, admin_rel_ready;
  rnic_pkg::send_ctx_t send_ctx, admin_send_ctx, rx_send_rel_data;
  rnic_pkg::recv_ctx_t recv_ctx, admin_recv_ctx, rx_recv_rel_data, rsp_rel_data;
  rnic_pkg::cq_ctx_t cq_ctx, admin_cq_ctx;
  rnic_pkg::eq_ctx_t eq_ctx, admin_eq_ctx;
  rnic_pkg::srq_ctx_t srq_ctx, admin_srq_ctx, rx_srq_rel_data;
  rnic_pkg::eqe_req_t device_eqe_data;
  rnic_pkg::path_t path_wr_data, tx_path_data, rx_path_data;
  rnic_pkg::qp_error_t qp_error_data;
  logic [5*rnic_pkg::QpCounters-1:0] qp_event;
  logic [5*8-1:0] qp_event_qp;
  logic [2*8-1:0] cpl_send_acq_index;
  logic [4:0] sq_acq_valid, sq_acq_ready, sq_ctx_valid, sq_rel_valid, sq_rel_ready, sq_rel_write;
  logic [1:0] sq_contended;
  logic [5*8-1:0] sq_acq_index;
  logic [2*rnic_pkg::SendCtxBits-1:0] cpl_send_rel_data;
  logic [5*rnic_pkg::SendCtxBits-1:0] sq_rel_data;
  logic [3*8-1:0] cpl_recv_acq_index;
  logic [3*rnic_pkg::RecvCtxBits-1:0] cpl_recv_rel_data;
  rnic_pkg::inflight_t inflight_data;
  rnic_pkg::retire_cmd_t sq_retire_data;
  rnic_pkg::read_slot_t read_slot_data;
  logic [11:0] read_slot_addr;
  rnic_pkg::tx_fault_t cpl_fault_data;
  rnic_pkg::rsp_cmd_t rsp_cmd_data;
  rnic_pkg::tx_desc_t rsp_desc_data;
  rnic_pkg::timer_event_t left_data, rx_timer_data;
  logic [19:0] rx_entered, rx_left;
  rnic_pkg::rx_done_t rx_done_data;
  logic [rnic_pkg::QpCounters-1:0] rx_qp_event;

  memory_side u_memory_side (
      .clk_i, .rst_ni,
      .cfg_max_payload_i, .cfg_max_read_req_i, .cfg_bus_master_i, .cfg_ext_tag_i,
      .completion_timeout_i(completion_timeout),
      .host_req_valid_i, .host_req_ready_o, .host_req_hdr_i, .host_req_data_i, .host_req_last_i,
      .host_cpl_valid_o, .host_cpl_ready_i, .host_cpl_hdr_o, .host_cpl_data_o,
      .dma_req_valid_o, .dma_req_ready_i, .dma_req_hdr_o, .dma_req_data_o, .dma_req_last_o,
      .dma_cpl_valid_i, .dma_cpl_ready_o, .dma_cpl_hdr_i, .dma_cpl_data_i, .dma_cpl_last_i,
      .reg_req_valid_o(reg_req_valid), .reg_req_ready_i(reg_req_ready),
      .reg_req_data_o(reg_req_data),
      .reg_rsp_valid_i(reg_rsp_valid), .reg_rsp_data_i(reg_rsp_data),
      .uar_req_valid_o(uar_req_valid), .uar_req_ready_i(uar_req_ready),
      .uar_req_data_o(uar_req_data),
      .send_rd_req_valid_i(send_rd_req_valid), .send_rd_req_ready_o(send_rd_req_ready),
      .send_rd_req_data_i(send_rd_req_data),
      .rx_rd_req_valid_i(rx_rd_req_valid), .rx_rd_req_ready_o(rx_rd_req_ready),
      .rx_rd_req_data_i(rx_rd_req_data),
      .admin_rd_req_valid_i(admin_rd_req_valid), .admin_rd_req_ready_o(admin_rd_req_ready),
      .admin_rd_req_data_i(admin_rd_req_data),
      .send_rd_rsp_valid_o(send_rd_rsp_valid), .send_rd_rsp_ready_i(send_rd_rsp_ready),
      .send_rd_rsp_data_o(send_rd_rsp_data),
      .rx_rd_rsp_valid_o(rx_rd_rsp_valid), .rx_rd_rsp_ready_i(rx_rd_rsp_ready),
      .rx_rd_rsp_data_o(rx_rd_rsp_data),
      .admin_rd_rsp_valid_o(admin_rd_rsp_valid), .admin_rd_rsp_ready_i(admin_rd_rsp_ready),
      .admin_rd_rsp_data_o(admin_rd_rsp_data),
      .send_wr_valid_i(send_wr_valid), .send_wr_ready_o(send_wr_ready),
      .send_wr_data_i(send_wr_data), .send_wr_done_o(send_wr_done),
      .msix_wr_valid_i(msix_wr_valid), .msix_wr_ready_o(msix_wr_ready),
      .msix_wr_data_i(msix_wr_data), .msix_wr_done_o(msix_wr_done),
      .admin_wr_valid_i(admin_wr_valid), .admin_wr_ready_o(admin_wr_ready),
      .admin_wr_data_i(admin_wr_data), .admin_wr_done_o(admin_wr_done),
      .cpl_wr_valid_i(cpl_wr_valid), .cpl_wr_ready_o(cpl_wr_ready), .cpl_wr_data_i(cpl_wr_data),
      .cpl_wr_done_o(cpl_wr_done),
      .rx_wr_valid_i(rx_wr_valid), .rx_wr_ready_o(rx_wr_ready), .rx_wr_data_i(rx_wr_data),
      .rx_wr_done_o(rx_wr_done),
      .send_xlate_req_valid_i(send_xlate_req_valid), .send_xlate_req_ready_o(send_xlate_req_ready),
      .send_xlate_req_data_i(send_xlate_req_data),
      .rx_xlate_req_valid_i(rx_xlate_req_valid), .rx_xlate_req_ready_o(rx_xlate_req_ready),
      .rx_xlate_req_data_i(rx_xlate_req_data),
      .send_xlate_rsp_valid_o(send_xlate_rsp_valid), .send_xlate_rsp_ready_i(send_xlate_rsp_ready),
      .rx_xlate_rsp_valid_o(rx_xlate_rsp_valid), .rx_xlate_rsp_ready_i(rx_xlate_rsp_ready),
      .rx_xlate_rsp_data_o(rx_xlate_rsp_data),
      .send_xlate_retire_valid_i(send_xlate_retire_valid),
      .send_xlate_retire_epoch_i(send_xlate_retire_epoch),
      .rx_xlate_retire_valid_i(rx_xlate_retire_valid),
      .rx_xlate_retire_epoch_i(rx_xlate_retire_epoch),
      .memory_ready_o(memory_ready), .tx_xlate_rsp_data_o(tx_xlate_rsp_data),
      .admin_mem_op_valid_i(admin_mem_op_valid), .admin_mem_op_ready_o(admin_mem_op_ready),
      .admin_mem_op_data_i(admin_mem_op_data),
      .rx_mem_op_valid_i(rx_mem_op_valid), .rx_mem_op_ready_o(rx_mem_op_ready),
      .rx_mem_op_data_i(rx_mem_op_data),
      .sq_mem_op_valid_i(sq_mem_op_valid), .sq_mem_op_ready_o(sq_mem_op_ready),
      .sq_mem_op_data_i(sq_mem_op_data),
      .admin_mem_op_rsp_valid_o(admin_mem_op_rsp_valid),
      .rx_mem_op_rsp_valid_o(rx_mem_op_rsp_valid), .rx_mem_op_rsp_ready_i(rx_mem_op_rsp_ready),
      .sq_mem_op_rsp_valid_o(sq_mem_op_rsp_valid), .sq_mem_op_rsp_ready_i(sq_mem_op_rsp_ready),
      .mem_op_rsp_data_o(mem_op_rsp_data),
      .mpt_req_valid_i(mpt_req_valid), .mpt_req_ready_o(mpt_req_ready),
      .mpt_req_data_i(mpt_req_data), .mpt_req_index_i(mpt_req_index),
      .mpt_req_write_i(mpt_req_write),
      .mpt_rsp_valid_o(mpt_rsp_valid), .mpt_rsp_data_o(mpt_rsp_data),
      .drain_valid_i(drain_valid), .drain_ready_o(drain_ready),
      .ev_memory_o(ev_memory)
  );

  host_if u_host_if (
      .clk_i, .rst_ni,
      .contexts_ready_i(qp_contexts_ready && memory_ready && completion_ready),
      .reg_req_valid_i(reg_req_valid), .reg_req_ready_o(reg_req_ready),
      .reg_req_data_i(reg_req_data),
      .reg_rsp_valid_o(reg_rsp_valid), .reg_rsp_data_o(reg_rsp_data),
      .device_enable_o(device_enable), .completion_timeout_o(completion_timeout),
      .port_mac_o(port_mac), .cycles_o(cycles),
      .event_i(ev_host | ev_memory | ev_send | ev_rx | ev_cpl),
      .uar_req_valid_i(uar_req_valid), .uar_req_ready_o(uar_req_ready),
      .uar_req_data_i(uar_req_data),
      .sq_doorbell_valid_o(sq_db_valid), .sq_doorbell_ready_i(sq_db_ready),
      .sq_doorbell_data_o(sq_db_data),
      .rq_doorbell_valid_o(rq_db_valid), .rq_doorbell_ready_i(rq_db_ready),
      .rq_doorbell_data_o(rq_db_data),
      .cq_doorbell_valid_o(cq_db_valid), .cq_doorbell_ready_i(cq_db_ready),
      .cq_doorbell_data_o(cq_db_data),
      .eq_doorbell_valid_o(eq_db_valid), .eq_doorbell_ready_i(eq_db_ready),
      .eq_doorbell_data_o(eq_db_data),
      .srq_doorbell_valid_o(srq_db_valid), .srq_doorbell_ready_i(srq_db_ready),
      .srq_doorbell_data_o(srq_db_data),
      .wqe_push_valid_o(wqe_push_valid), .wqe_push_ready_i(wqe_push_ready),
      .wqe_push_data_o(wqe_push_data),
      .cfg_msix_enable_i, .cfg_msix_mask_i,
      .msix_valid_i(msix_valid), .msix_ready_o(msix_ready),
      .msix_vector_i(msix_vector),
      .rd_req_valid_o(admin_rd_req_valid), .rd_req_ready_i(admin_rd_req_ready),
      .rd_req_data_o(admin_rd_req_data),
      .rd_rsp_valid_i(admin_rd_rsp_valid), .rd_rsp_ready_o(admin_rd_rsp_ready),
      .rd_rsp_data_i(admin_rd_rsp_data),
      .admin_wr_valid_o(admin_wr_valid), .admin_wr_ready_i(admin_wr_ready),
      .admin_wr_data_o(admin_wr_data), .admin_wr_done_i(admin_wr_done),
      .msix_wr_valid_o(msix_wr_valid), .msix_wr_ready_i(msix_wr_ready),
      .msix_wr_data_o(msix_wr_data), .msix_wr_done_i(msix_wr_done),
      .acq_valid_o(admin_acq_valid), .acq_ready_i(admin_acq_ready), .acq_index_o(admin_acq_index),
      .ctx_valid_i(admin_ctx_valid),
      .send_ctx_i(send_ctx),
      .recv_ctx_i(recv_ctx),
      .cq_ctx_i(cq_ctx),
      .eq_ctx_i(eq_ctx),
      .srq_ctx_i(srq_ctx),
      .rel_valid_o(admin_rel_valid), .rel_ready_i(admin_rel_ready), .rel_write_o(admin_rel_write),
      .send_ctx_o(admin_send_ctx),
      .recv_ctx_o(admin_recv_ctx),
      .cq_ctx_o(admin_cq_ctx),
      .eq_ctx_o(admin_eq_ctx),
      .srq_ctx_o(admin_srq_ctx),
      .sq_wake_valid_o(host_wake_valid),
      .sq_revive_o(host_revive),
      .sq_wake_qp_o(host_wake_qp),
      .link_up_i(eth_link_up_i),
      .eqe_valid_o(device_eqe_valid), .eqe_ready_i(device_eqe_ready), .eqe_data_o(device_eqe_data),
      .path_wr_valid_o(path_wr_valid), .path_wr_qp_o(path_wr_qp), .path_wr_data_o(path_wr_data),
      .mpt_req_valid_o(mpt_req_valid), .mpt_req_ready_i(mpt_req_ready),
      .mpt_req_write_o(mpt_req_write), .mpt_req_index_o(mpt_req_index),
      .mpt_req_data_o(mpt_req_data),
      .mpt_rsp_valid_i(mpt_rsp_valid), .mpt_rsp_data_i(mpt_rsp_data),
      .mem_op_valid_o(admin_mem_op_valid), .mem_op_ready_i(admin_mem_op_ready),
      .mem_op_data_o(admin_mem_op_data),
      .mem_op_rsp_valid_i(admin_mem_op_rsp_valid), .mem_op_rsp_data_i(mem_op_rsp_data),
      .drain_valid_o(drain_valid), .drain_ready_i(drain_ready),
      .qp_reset_valid_o(qp_reset_valid), .qp_reset_ready_i(qp_reset_ready),
      .qp_reset_qp_o(qp_reset_qp),
      .flushing_i(qp_flushing),
      .qp_error_valid_o(qp_error_valid), .qp_error_ready_i(qp_error_ready),
      .qp_error_data_o(qp_error_data),
      .event_o(ev_host),
      .qp_event_i(qp_event), .qp_event_qp_i(qp_event_qp)
  );

  qp_reset_order u_qp_reset_order (
      .clk_i, .rst_ni,
      .in_valid_i(qp_reset_valid), .in_ready_o(qp_reset_ready),
      .queues_valid_o({cpl_reset_valid, rx_reset_valid, send_reset_valid[1:0]}),
      .queues_ready_i({cpl_reset_ready, rx_reset_ready, send_reset_ready[1:0]}),
      .path_valid_o(send_reset_valid[2]), .path_ready_i(send_reset_ready[2])
  );

  qp_contexts u_qp_contexts (
      .clk_i, .rst_ni,
      .rx_send_acq_valid_i(rx_send_acq_valid), .rx_send_acq_ready_o(rx_send_acq_ready),
      .rx_send_acq_index_i(rx_send_acq_index),
      .cpl_send_acq_valid_i(cpl_send_acq_valid), .cpl_send_acq_ready_o(cpl_send_acq_ready),
      .cpl_send_acq_index_i(cpl_send_acq_index),
      .sq_acq_valid_i(sq_acq_valid), .sq_acq_ready_o(sq_acq_ready), .sq_acq_index_i(sq_acq_index),
      .admin_acq_valid_i(admin_acq_valid[1:0]), .admin_acq_ready_o(admin_acq_ready[1:0]),
      .admin_acq_index_i(admin_acq_index),
      .rx_send_ctx_valid_o(rx_send_ctx_valid), .cpl_send_ctx_valid_o(cpl_send_ctx_valid),
      .sq_ctx_valid_o(sq_ctx_valid), .admin_ctx_valid_o(admin_ctx_valid[1:0]),
      .send_ctx_o(send_ctx),
      .rx_send_rel_valid_i(rx_send_rel_valid), .rx_send_rel_ready_o(rx_send_rel_ready),
      .rx_send_rel_data_i(rx_send_rel_data), .rx_send_rel_write_i(rx_send_rel_write),
      .cpl_send_rel_valid_i(cpl_send_rel_valid), .cpl_send_rel_ready_o(cpl_send_rel_ready),
      .cpl_send_rel_data_i(cpl_send_rel_data), .cpl_send_rel_write_i(cpl_send_rel_write),
      .sq_rel_valid_i(sq_rel_valid), .sq_rel_ready_o(sq_rel_ready), .sq_rel_data_i(sq_rel_data),
      .sq_rel_write_i(sq_rel_write),
      .admin_rel_valid_i(admin_rel_valid[1:0]), .admin_rel_ready_o(admin_rel_ready[1:0]),
      .admin_rel_write_i(admin_rel_write),
      .admin_send_ctx_i(admin_send_ctx),
      .rx_recv_acq_valid_i(rx_recv_acq_valid), .rx_recv_acq_ready_o(rx_recv_acq_ready),
      .rx_recv_acq_index_i(rx_recv_acq_index),
      .cpl_recv_acq_valid_i(cpl_recv_acq_valid), .cpl_recv_acq_ready_o(cpl_recv_acq_ready),
      .cpl_recv_acq_index_i(cpl_recv_acq_index),
      .rsp_acq_valid_i(rsp_acq_valid), .rsp_acq_ready_o(rsp_acq_ready),
      .rsp_acq_index_i(rsp_acq_index),
      .rx_recv_ctx_valid_o(rx_recv_ctx_valid), .cpl_recv_ctx_valid_o(cpl_recv_ctx_valid),
      .rsp_ctx_valid_o(rsp_ctx_valid), .recv_ctx_o(recv_ctx),
      .rx_recv_rel_valid_i(rx_recv_rel_valid), .rx_recv_rel_ready_o(rx_recv_rel_ready),
      .rx_recv_rel_data_i(rx_recv_rel_data), .rx_recv_rel_write_i(rx_recv_rel_write),
      .cpl_recv_rel_valid_i(cpl_recv_rel_valid), .cpl_recv_rel_ready_o(cpl_recv_rel_ready),
      .cpl_recv_rel_data_i(cpl_recv_rel_data), .cpl_recv_rel_write_i(cpl_recv_rel_write),
      .rsp_rel_valid_i(rsp_rel_valid), .rsp_rel_ready_o(rsp_rel_ready),
      .rsp_rel_data_i(rsp_rel_data), .rsp_rel_write_i(rsp_rel_write),
      .admin_recv_ctx_i(admin_recv_ctx),
      .path_wr_valid_i(path_wr_valid), .path_wr_data_i(path_wr_data), .path_wr_qp_i(path_wr_qp),
      .tx_path_rd_en_i(tx_path_rd_en), .tx_path_rd_qp_i(tx_path_rd_qp),
      .tx_path_data_o(tx_path_data),
      .rx_path_rd_en_i(rx_path_rd_en), .rx_path_rd_qp_i(rx_path_rd_qp),
      .rx_path_data_o(rx_path_data), .sq_contended_o(sq_contended),
      .rx_send_contended_o(rx_send_contended),
      .rx_recv_contended_o(rx_recv_contended), .qp_contexts_ready_o(qp_contexts_ready)
  );

  send_side u_send_side (
      .clk_i, .rst_ni,
      .sq_db_valid_i(sq_db_valid), .sq_db_ready_o(sq_db_ready), .sq_db_data_i(sq_db_data),
      .wqe_push_valid_i(wqe_push_valid), .wqe_push_ready_o(wqe_push_ready),
      .wqe_push_data_i(wqe_push_data),
      .sq_acq_valid_o(sq_acq_valid), .sq_acq_ready_i(sq_acq_ready), .sq_acq_index_o(sq_acq_index),
      .sq_ctx_valid_i(sq_ctx_valid), .sq_contended_i(sq_contended), .send_ctx_i(send_ctx),
      .sq_rel_valid_o(sq_rel_valid), .sq_rel_ready_i(sq_rel_ready), .sq_rel_data_o(sq_rel_data),
      .sq_rel_write_o(sq_rel_write),
      .sq_mem_op_valid_o(sq_mem_op_valid), .sq_mem_op_ready_i(sq_mem_op_ready),
      .sq_mem_op_data_o(sq_mem_op_data),
      .sq_mem_op_rsp_valid_i(sq_mem_op_rsp_valid), .sq_mem_op_rsp_ready_o(sq_mem_op_rsp_ready),
      .mem_op_rsp_data_i(mem_op_rsp_data),
      .send_rd_req_valid_o(send_rd_req_valid), .send_rd_req_ready_i(send_rd_req_ready),
      .send_rd_req_data_o(send_rd_req_data),
      .send_rd_rsp_valid_i(send_rd_rsp_valid), .send_rd_rsp_ready_o(send_rd_rsp_ready),
      .send_rd_rsp_data_i(send_rd_rsp_data),
      .inflight_valid_o(inflight_valid), .inflight_data_o(inflight_data),
      .sq_retire_valid_o(sq_retire_valid), .sq_retire_ready_i(sq_retire_ready),
      .sq_retire_data_o(sq_retire_data),
      .flush_req_valid_o(flush_req_valid), .flush_req_ready_i(flush_req_ready),
      .flush_req_qp_o(flush_req_qp),
      .sq_wake_valid_i(sq_wake_valid), .sq_wake_qp_i(sq_wake_qp),
      .host_wake_valid_i(host_wake_valid), .host_wake_qp_i(host_wake_qp),
      .drained_valid_o(drained_valid), .drained_qp_o(drained_qp),
      .begun_valid_o(begun_valid), .begun_qp_o(begun_qp),
      .read_slot_data_o(read_slot_data), .read_slot_en_i(read_slot_en),
      .read_slot_addr_i(read_slot_addr),
      .send_reset_valid_i(send_reset_valid), .send_reset_ready_o(send_reset_ready),
      .qp_reset_qp_i(qp_reset_qp),
      .cpl_fault_valid_o(cpl_fault_valid), .cpl_fault_ready_i(cpl_fault_ready),
      .cpl_fault_data_o(cpl_fault_data),
      .rsp_cmd_valid_i(rsp_cmd_valid), .rsp_cmd_ready_o(rsp_cmd_ready),
      .rsp_cmd_data_i(rsp_cmd_data),
      .rsp_acq_valid_o(rsp_acq_valid), .rsp_acq_ready_i(rsp_acq_ready),
      .rsp_acq_index_o(rsp_acq_index),
      .rsp_ctx_valid_i(rsp_ctx_valid), .recv_ctx_i(recv_ctx),
      .rsp_rel_valid_o(rsp_rel_valid), .rsp_rel_ready_i(rsp_rel_ready),
      .rsp_rel_data_o(rsp_rel_data), .rsp_rel_write_o(rsp_rel_write),
      .rsp_desc_data_o(rsp_desc_data),
      .send_xlate_req_valid_o(send_xlate_req_valid), .send_xlate_req_ready_i(send_xlate_req_ready),
      .send_xlate_req_data_o(send_xlate_req_data),
      .send_xlate_rsp_valid_i(send_xlate_rsp_valid), .send_xlate_rsp_ready_o(send_xlate_rsp_ready),
      .rx_xlate_rsp_data_i(rx_xlate_rsp_data),
      .send_xlate_retire_valid_o(send_xlate_retire_valid),
      .send_xlate_retire_epoch_o(send_xlate_retire_epoch),
      .send_wr_valid_o(send_wr_valid), .send_wr_ready_i(send_wr_ready),
      .send_wr_data_o(send_wr_data), .send_wr_done_i(send_wr_done),
      .atomic_over_o(atomic_over), .port_mac_i(port_mac), .tx_xlate_rsp_data_i(tx_xlate_rsp_data),
      .tx_path_rd_en_o(tx_path_rd_en), .tx_path_rd_qp_o(tx_path_rd_qp),
      .tx_path_data_i(tx_path_data),
      .eth_tx_valid_o, .eth_tx_ready_i, .eth_tx_data_o,
      .left_valid_o(left_valid), .left_ready_i(left_ready), .left_data_o(left_data),
      .revive_valid_i(revive_valid), .revive_qp_i(revive_qp),
      .host_revive_i(host_revive), .rsp_desc_sent_o(rsp_desc_sent), .ev_send_o(ev_send)
  );

  receive_side u_receive_side (
      .clk_i, .rst_ni,
      .port_mac_i(port_mac), .device_enable_i(device_enable),
      .eth_rx_valid_i, .eth_rx_data_i,
      .atomic_over_i(atomic_over),
      .rx_reset_valid_i(rx_reset_valid), .rx_reset_ready_o(rx_reset_ready),
      .qp_reset_qp_i(qp_reset_qp),
      .rx_send_acq_valid_o(rx_send_acq_valid), .rx_send_acq_ready_i(rx_send_acq_ready),
      .rx_send_acq_index_o(rx_send_acq_index),
      .rx_send_ctx_valid_i(rx_send_ctx_valid), .send_ctx_i(send_ctx),
      .rx_send_rel_valid_o(rx_send_rel_valid), .rx_send_rel_ready_i(rx_send_rel_ready),
      .rx_send_rel_data_o(rx_send_rel_data), .rx_send_rel_write_o(rx_send_rel_write),
      .rx_send_contended_i(rx_send_contended),
      .rx_recv_acq_valid_o(rx_recv_acq_valid), .rx_recv_acq_ready_i(rx_recv_acq_ready),
      .rx_recv_acq_index_o(rx_recv_acq_index),
      .rx_recv_ctx_valid_i(rx_recv_ctx_valid), .recv_ctx_i(recv_ctx),
      .rx_recv_rel_valid_o(rx_recv_rel_valid), .rx_recv_rel_ready_i(rx_recv_rel_ready),
      .rx_recv_rel_data_o(rx_recv_rel_data), .rx_recv_rel_write_o(rx_recv_rel_write),
      .rx_recv_contended_i(rx_recv_contended),
      .rx_srq_acq_valid_o(rx_srq_acq_valid), .rx_srq_acq_ready_i(rx_srq_acq_ready),
      .rx_srq_acq_index_o(rx_srq_acq_index),
      .rx_srq_ctx_valid_i(rx_srq_ctx_valid), .srq_ctx_i(srq_ctx),
      .rx_srq_rel_valid_o(rx_srq_rel_valid), .rx_srq_rel_ready_i(rx_srq_rel_ready),
      .rx_srq_rel_data_o(rx_srq_rel_data), .rx_srq_rel_write_o(rx_srq_rel_write),
      .srq_limit_o(srq_limit), .srq_limit_valid_o(srq_limit_valid),
      .rx_entered_o(rx_entered), .rx_left_o(rx_left),
      .read_slot_data_i(read_slot_data), .read_slot_en_o(read_slot_en),
      .read_slot_addr_o(read_slot_addr),
      .rx_path_rd_en_o(rx_path_rd_en), .rx_path_rd_qp_o(rx_path_rd_qp),
      .rx_path_data_i(rx_path_data),
      .rx_xlate_req_valid_o(rx_xlate_req_valid), .rx_xlate_req_ready_i(rx_xlate_req_ready),
      .rx_xlate_req_data_o(rx_xlate_req_data),
      .rx_xlate_rsp_valid_i(rx_xlate_rsp_valid), .rx_xlate_rsp_ready_o(rx_xlate_rsp_ready),
      .rx_xlate_rsp_data_i(rx_xlate_rsp_data),
      .rx_xlate_retire_valid_o(rx_xlate_retire_valid),
      .rx_xlate_retire_epoch_o(rx_xlate_retire_epoch),
      .rx_rd_req_valid_o(rx_rd_req_valid), .rx_rd_req_ready_i(rx_rd_req_ready),
      .rx_rd_req_data_o(rx_rd_req_data),
      .rx_rd_rsp_valid_i(rx_rd_rsp_valid), .rx_rd_rsp_ready_o(rx_rd_rsp_ready),
      .rx_rd_rsp_data_i(rx_rd_rsp_data),
      .rx_wr_valid_o(rx_wr_valid), .rx_wr_ready_i(rx_wr_ready), .rx_wr_data_o(rx_wr_data),
      .rx_wr_done_i(rx_wr_done),
      .rx_done_valid_o(rx_done_valid), .rx_done_ready_i(rx_done_ready),
      .rx_done_data_o(rx_done_data),
      .established_valid_o(established_valid), .established_qp_o(established_qp),
      .rx_timer_valid_o(rx_timer_valid), .rx_timer_data_o(rx_timer_data),
      .rx_qp_event_o(rx_qp_event), .rx_qp_event_qp_o(rx_qp_event_qp),
      .place_fault_o(place_fault), .place_fault_qp_o(place_fault_qp),
      .ev_rx_o(ev_rx)
  );

  completion_side u_completion_side (
      .clk_i, .rst_ni,
      .cycles_i(cycles),
      .rx_done_valid_i(rx_done_valid), .rx_done_ready_o(rx_done_ready),
      .rx_done_data_i(rx_done_data),
      .cpl_fault_valid_i(cpl_fault_valid), .cpl_fault_ready_o(cpl_fault_ready),
      .cpl_fault_data_i(cpl_fault_data),
      .sq_retire_valid_i(sq_retire_valid), .sq_retire_ready_o(sq_retire_ready),
      .sq_retire_data_i(sq_retire_data),
      .inflight_valid_i(inflight_valid), .inflight_data_i(inflight_data),
      .flush_req_valid_i(flush_req_valid), .flush_req_ready_o(flush_req_ready),
      .flush_req_qp_i(flush_req_qp),
      .qp_error_valid_i(qp_error_valid), .qp_error_ready_o(qp_error_ready),
      .qp_error_data_i(qp_error_data),
      .rx_entered_i(rx_entered), .rx_left_i(rx_left),
      .drained_valid_i(drained_valid), .drained_qp_i(drained_qp),
      .established_valid_i(established_valid), .established_qp_i(established_qp),
      .device_eqe_valid_i(device_eqe_valid), .device_eqe_ready_o(device_eqe_ready),
      .device_eqe_data_i(device_eqe_data),
      .rsp_cmd_valid_o(rsp_cmd_valid), .rsp_cmd_ready_i(rsp_cmd_ready),
      .rsp_cmd_data_o(rsp_cmd_data),
      .rx_mem_op_valid_o(rx_mem_op_valid), .rx_mem_op_ready_i(rx_mem_op_ready),
      .rx_mem_op_data_o(rx_mem_op_data),
      .rx_mem_op_rsp_valid_i(rx_mem_op_rsp_valid), .rx_mem_op_rsp_ready_o(rx_mem_op_rsp_ready),
      .mem_op_rsp_data_i(mem_op_rsp_data),
      .sq_wake_valid_o(sq_wake_valid), .sq_wake_qp_o(sq_wake_qp),
      .begun_valid_i(begun_valid), .begun_qp_i(begun_qp),
      .left_valid_i(left_valid), .left_ready_o(left_ready), .left_data_i(left_data),
      .rx_timer_valid_i(rx_timer_valid), .rx_timer_data_i(rx_timer_data),
      .revive_valid_o(revive_valid), .revive_qp_o(revive_qp),
      .rq_db_valid_i(rq_db_valid), .rq_db_ready_o(rq_db_ready), .rq_db_data_i(rq_db_data),
      .cq_db_valid_i(cq_db_valid), .cq_db_ready_o(cq_db_ready), .cq_db_data_i(cq_db_data),
      .eq_db_valid_i(eq_db_valid), .eq_db_ready_o(eq_db_ready), .eq_db_data_i(eq_db_data),
      .cpl_send_acq_valid_o(cpl_send_acq_valid), .cpl_send_acq_ready_i(cpl_send_acq_ready),
      .cpl_send_acq_index_o(cpl_send_acq_index),
      .cpl_send_ctx_valid_i(cpl_send_ctx_valid), .send_ctx_i(send_ctx),
      .cpl_send_rel_valid_o(cpl_send_rel_valid), .cpl_send_rel_ready_i(cpl_send_rel_ready),
      .cpl_send_rel_data_o(cpl_send_rel_data), .cpl_send_rel_write_o(cpl_send_rel_write),
      .cpl_recv_acq_valid_o(cpl_recv_acq_valid), .cpl_recv_acq_ready_i(cpl_recv_acq_ready),
      .cpl_recv_acq_index_o(cpl_recv_acq_index),
      .cpl_recv_ctx_valid_i(cpl_recv_ctx_valid), .recv_ctx_i(recv_ctx),
      .cpl_recv_rel_valid_o(cpl_recv_rel_valid), .cpl_recv_rel_ready_i(cpl_recv_rel_ready),
      .cpl_recv_rel_data_o(cpl_recv_rel_data), .cpl_recv_rel_write_o(cpl_recv_rel_write),
      .admin_acq_valid_i(admin_acq_valid[4:2]), .admin_acq_ready_o(admin_acq_ready[4:2]),
      .admin_acq_index_i(admin_acq_index),
      .admin_ctx_valid_o(admin_ctx_valid[4:2]), .cq_ctx_o(cq_ctx), .eq_ctx_o(eq_ctx),
      .admin_rel_valid_i(admin_rel_valid[4:2]), .admin_rel_ready_o(admin_rel_ready[4:2]),
      .admin_rel_write_i(admin_rel_write),
      .admin_cq_ctx_i(admin_cq_ctx), .admin_eq_ctx_i(admin_eq_ctx),
      .cpl_wr_valid_o(cpl_wr_valid), .cpl_wr_ready_i(cpl_wr_ready), .cpl_wr_data_o(cpl_wr_data),
      .cpl_wr_done_i(cpl_wr_done),
      .msix_valid_o(msix_valid), .msix_ready_i(msix_ready),
      .msix_vector_o(msix_vector),
      .cpl_reset_valid_i(cpl_reset_valid), .cpl_reset_ready_o(cpl_reset_ready),
      .qp_reset_qp_i(qp_reset_qp), .qp_flushing_o(qp_flushing), .ev_cpl_o(ev_cpl),
      .srq_db_valid_i(srq_db_valid), .srq_db_ready_o(srq_db_ready), .srq_db_data_i(srq_db_data),
      .rx_srq_acq_valid_i(rx_srq_acq_valid), .rx_srq_acq_ready_o(rx_srq_acq_ready),
      .rx_srq_acq_index_i(rx_srq_acq_index),
      .rx_srq_ctx_valid_o(rx_srq_ctx_valid), .srq_ctx_o(srq_ctx),
      .rx_srq_rel_valid_i(rx_srq_rel_valid), .rx_srq_rel_ready_o(rx_srq_rel_ready),
      .rx_srq_rel_data_i(rx_srq_rel_data), .rx_srq_rel_write_i(rx_srq_rel_write),
      .admin_srq_ctx_i(admin_srq_ctx),
      .srq_limit_i(srq_limit), .srq_limit_valid_i(srq_limit_valid),
      .rx_qp_event_i(rx_qp_event), .rx_qp_event_qp_i(rx_qp_event_qp),
      .place_fault_i(place_fault), .place_fault_qp_i(place_fault_qp),
      .rsp_desc_sent_i(rsp_desc_sent), .rsp_desc_data_i(rsp_desc_data),
      .qp_event_o(qp_event), .qp_event_qp_o(qp_event_qp),
      .completion_ready_o(completion_ready)
  );
  `ASSERT_HOLD(HostCplHold, host_cpl_valid_o, host_cpl_ready_i, {host_cpl_hdr_o, host_cpl_data_o})
  `ASSERT_HOLD(DmaReqHold, dma_req_valid_o, dma_req_ready_i, {dma_req_hdr_o, dma_req_data_o,
                                                              dma_req_last_o})
  `ASSERT_HOLD(EthTxHold, eth_tx_valid_o, eth_tx_ready_i, eth_tx_data_o)
endmodule

`default_nettype wire
