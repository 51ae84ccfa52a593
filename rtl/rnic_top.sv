`default_nettype none
`include "assert.svh"

/// The NIC: PCIe TLP streams on one side, Ethernet frames on the other. docs/architecture.md shows
/// the way of a request.
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
  // Clients of the DMA engines and of the context managers.
  localparam int unsigned RdAdmin = 0, RdWqe = 1, RdScatterList = 2, RdPageList = 3, RdAtomic = 4,
      RdPayload = 5, RdClients = 6;
  localparam int unsigned WrPayload = 0, WrCqe = 1, WrRetired = 2, WrAdmin = 3, WrMsix = 4,
      WrAtomic = 5, WrClients = 6;
  localparam int unsigned SendClients = 10, RecvClients = 7;
  localparam int unsigned ResetBlocks = 5;
  localparam int unsigned Counters = rnic_pkg::NumCounters;

  // ---- PCIe edge --------------------------------------------------------------------------------
  logic reg_req_valid, reg_req_ready, reg_rsp_valid, uar_req_valid, uar_req_ready;
  rnic_pkg::reg_req_t reg_req_data;
  logic [63:0] reg_rsp_data;
  rnic_pkg::uar_req_t uar_req_data;
  logic [29:0] completion_timeout;
  logic [RdClients-1:0] rd_req_valid, rd_req_ready, rd_rsp_valid, rd_rsp_ready;
  rnic_pkg::dma_rd_req_t rd_req_admin, rd_req_wqe, rd_req_scatter, rd_req_pages, rd_req_atomic,
      rd_req_payload;
  rnic_pkg::dma_rd_rsp_t rd_rsp_admin, rd_rsp_wqe, rd_rsp_scatter, rd_rsp_pages, rd_rsp_atomic,
      rd_rsp_payload;
  logic [WrClients-1:0] wr_valid, wr_ready, wr_done;
  rnic_pkg::dma_wr_t wr_payload, wr_admin, wr_msix, wr_atomic;
  logic [2*rnic_pkg::DmaWrBits-1:0] wr_completion;
  logic [Counters-1:0] ev_pcie, ev_host, ev_xlate, ev_sq, ev_tx, ev_front, ev_engine, ev_cpl,
      ev_rsp;

  pcie_edge #(
      .RdClients(RdClients),
      .WrClients(WrClients)
  ) u_pcie_edge (
      .clk_i,
      .rst_ni,
      .cfg_max_payload_i,
      .cfg_max_read_req_i,
      .cfg_bus_master_i,
      .cfg_ext_tag_i,
      .completion_timeout_i(completion_timeout),
      .host_req_valid_i,
      .host_req_ready_o,
      .host_req_hdr_i,
      .host_req_data_i,
      .host_req_last_i,
      .host_cpl_valid_o,
      .host_cpl_ready_i,
      .host_cpl_hdr_o,
      .host_cpl_data_o,
      .dma_req_valid_o,
      .dma_req_ready_i,
      .dma_req_hdr_o,
      .dma_req_data_o,
      .dma_req_last_o,
      .dma_cpl_valid_i,
      .dma_cpl_ready_o,
      .dma_cpl_hdr_i,
      .dma_cpl_data_i,
      .dma_cpl_last_i,
      .reg_req_valid_o(reg_req_valid),
      .reg_req_ready_i(reg_req_ready),
      .reg_req_data_o (reg_req_data),
      .reg_rsp_valid_i(reg_rsp_valid),
      .reg_rsp_data_i (reg_rsp_data),
      .uar_req_valid_o(uar_req_valid),
      .uar_req_ready_i(uar_req_ready),
      .uar_req_data_o (uar_req_data),
      .rd_req_valid_i (rd_req_valid),
      .rd_req_ready_o (rd_req_ready),
      .rd_req_data_i  ({rd_req_payload, rd_req_atomic, rd_req_pages, rd_req_scatter, rd_req_wqe,
                        rd_req_admin}),
      .rd_rsp_valid_o (rd_rsp_valid),
      .rd_rsp_ready_i (rd_rsp_ready),
      .rd_rsp_data_o  ({rd_rsp_payload, rd_rsp_atomic, rd_rsp_pages, rd_rsp_scatter, rd_rsp_wqe,
                        rd_rsp_admin}),
      .wr_valid_i     (wr_valid),
      .wr_ready_o     (wr_ready),
      .wr_data_i      ({wr_atomic, wr_msix, wr_admin, wr_completion, wr_payload}),
      .wr_done_o      (wr_done),
      .event_o        (ev_pcie)
  );

  // ---- Host interface ---------------------------------------------------------------------------
  logic contexts_ready, send_ctx_ready, recv_ctx_ready, xlate_ready, completion_ready, srq_ready,
      device_enable;
  logic [47:0] port_mac;
  logic [63:0] cycles;
  logic sq_db_valid, sq_db_ready, rq_db_valid, rq_db_ready, cq_db_valid, cq_db_ready, eq_db_valid,
      eq_db_ready;
  rnic_pkg::doorbell_t sq_db_data, rq_db_data, cq_db_data, eq_db_data, srq_db_data;
  logic srq_db_valid, srq_db_ready;
  logic wqe_push_valid, wqe_push_ready;
  rnic_pkg::wqe_push_t wqe_push_data;
  logic msix_valid, msix_ready;
  logic [7:0] msix_vector;
  logic [4:0] admin_acq_valid, admin_acq_ready, admin_ctx_valid, admin_rel_valid, admin_rel_ready;
  logic [7:0] admin_acq_index;
  logic admin_rel_write;
  rnic_pkg::send_ctx_t send_ctx, admin_send_ctx;
  rnic_pkg::recv_ctx_t recv_ctx, admin_recv_ctx;
  rnic_pkg::cq_ctx_t cq_ctx, admin_cq_ctx;
  rnic_pkg::eq_ctx_t eq_ctx, admin_eq_ctx;
  rnic_pkg::srq_ctx_t srq_ctx, admin_srq_ctx;
  logic path_wr_valid;
  logic [7:0] path_wr_qp;
  rnic_pkg::path_t path_wr_data;
  logic mpt_req_valid, mpt_req_ready, mpt_req_write, mpt_rsp_valid;
  logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index;
  rnic_pkg::mpt_t mpt_req_data, mpt_rsp_data;
  logic mem_op_valid, mem_op_ready, mem_op_rsp_valid;
  rnic_pkg::mem_op_t mem_op_data;
  rnic_pkg::mem_op_rsp_t mem_op_rsp_data;
  logic drain_valid, drain_ready, qp_reset_valid, qp_reset_ready, qp_error_valid, qp_error_ready;
  logic qp_flushing, host_wake_valid, host_revive, device_eqe_valid, device_eqe_ready,
      drained_valid, established_valid;
  rnic_pkg::eqe_req_t device_eqe_data;
  logic [7:0] qp_reset_qp, host_wake_qp, drained_qp, established_qp;
  rnic_pkg::qp_error_t qp_error_data;
  logic [ResetBlocks-1:0] block_reset_valid, block_reset_ready;

  assign contexts_ready = send_ctx_ready && recv_ctx_ready && xlate_ready && completion_ready &&
                          srq_ready;

  // Events that count for one QP.
  logic [rnic_pkg::QpCounters-1:0] rx_qp_event;
  logic [7:0] rx_qp_event_qp, place_fault_qp;
  logic place_fault;
  logic [5*rnic_pkg::QpCounters-1:0] qp_event;
  logic [5*8-1:0] qp_event_qp;

  host_if u_host_if (
      .clk_i,
      .rst_ni,
      .contexts_ready_i   (contexts_ready),
      .reg_req_valid_i    (reg_req_valid),
      .reg_req_ready_o    (reg_req_ready),
      .reg_req_data_i     (reg_req_data),
      .reg_rsp_valid_o    (reg_rsp_valid),
      .reg_rsp_data_o     (reg_rsp_data),
      .device_enable_o    (device_enable),
      .completion_timeout_o(completion_timeout),
      .port_mac_o         (port_mac),
      .cycles_o           (cycles),
      .event_i            (ev_pcie | ev_host | ev_xlate | ev_sq | ev_tx | ev_front | ev_engine |
                           ev_cpl | ev_rsp),
      .uar_req_valid_i    (uar_req_valid),
      .uar_req_ready_o    (uar_req_ready),
      .uar_req_data_i     (uar_req_data),
      .sq_doorbell_valid_o(sq_db_valid),
      .sq_doorbell_ready_i(sq_db_ready),
      .sq_doorbell_data_o (sq_db_data),
      .rq_doorbell_valid_o(rq_db_valid),
      .rq_doorbell_ready_i(rq_db_ready),
      .rq_doorbell_data_o (rq_db_data),
      .cq_doorbell_valid_o(cq_db_valid),
      .cq_doorbell_ready_i(cq_db_ready),
      .cq_doorbell_data_o (cq_db_data),
      .eq_doorbell_valid_o(eq_db_valid),
      .eq_doorbell_ready_i(eq_db_ready),
      .eq_doorbell_data_o (eq_db_data),
      .srq_doorbell_valid_o(srq_db_valid),
      .srq_doorbell_ready_i(srq_db_ready),
      .srq_doorbell_data_o(srq_db_data),
      .wqe_push_valid_o   (wqe_push_valid),
      .wqe_push_ready_i   (wqe_push_ready),
      .wqe_push_data_o    (wqe_push_data),
      .cfg_msix_enable_i,
      .cfg_msix_mask_i,
      .msix_valid_i       (msix_valid),
      .msix_ready_o       (msix_ready),
      .msix_vector_i      (msix_vector),
      .rd_req_valid_o     (rd_req_valid[RdAdmin]),
      .rd_req_ready_i     (rd_req_ready[RdAdmin]),
      .rd_req_data_o      (rd_req_admin),
      .rd_rsp_valid_i     (rd_rsp_valid[RdAdmin]),
      .rd_rsp_ready_o     (rd_rsp_ready[RdAdmin]),
      .rd_rsp_data_i      (rd_rsp_admin),
      .admin_wr_valid_o   (wr_valid[WrAdmin]),
      .admin_wr_ready_i   (wr_ready[WrAdmin]),
      .admin_wr_data_o    (wr_admin),
      .admin_wr_done_i    (wr_done[WrAdmin]),
      .msix_wr_valid_o    (wr_valid[WrMsix]),
      .msix_wr_ready_i    (wr_ready[WrMsix]),
      .msix_wr_data_o     (wr_msix),
      .msix_wr_done_i     (wr_done[WrMsix]),
      .acq_valid_o        (admin_acq_valid),
      .acq_ready_i        (admin_acq_ready),
      .acq_index_o        (admin_acq_index),
      .ctx_valid_i        (admin_ctx_valid),
      .send_ctx_i         (send_ctx),
      .recv_ctx_i         (recv_ctx),
      .cq_ctx_i           (cq_ctx),
      .eq_ctx_i           (eq_ctx),
      .srq_ctx_i          (srq_ctx),
      .rel_valid_o        (admin_rel_valid),
      .rel_ready_i        (admin_rel_ready),
      .rel_write_o        (admin_rel_write),
      .send_ctx_o         (admin_send_ctx),
      .recv_ctx_o         (admin_recv_ctx),
      .cq_ctx_o           (admin_cq_ctx),
      .eq_ctx_o           (admin_eq_ctx),
      .srq_ctx_o          (admin_srq_ctx),
      .sq_wake_valid_o    (host_wake_valid),
      .sq_revive_o        (host_revive),
      .sq_wake_qp_o       (host_wake_qp),
      .link_up_i          (eth_link_up_i),
      .eqe_valid_o        (device_eqe_valid),
      .eqe_ready_i        (device_eqe_ready),
      .eqe_data_o         (device_eqe_data),
      .path_wr_valid_o    (path_wr_valid),
      .path_wr_qp_o       (path_wr_qp),
      .path_wr_data_o     (path_wr_data),
      .mpt_req_valid_o    (mpt_req_valid),
      .mpt_req_ready_i    (mpt_req_ready),
      .mpt_req_write_o    (mpt_req_write),
      .mpt_req_index_o    (mpt_req_index),
      .mpt_req_data_o     (mpt_req_data),
      .mpt_rsp_valid_i    (mpt_rsp_valid),
      .mpt_rsp_data_i     (mpt_rsp_data),
      .mem_op_valid_o     (mem_op_valid),
      .mem_op_ready_i     (mem_op_ready),
      .mem_op_data_o      (mem_op_data),
      .mem_op_rsp_valid_i (mem_op_rsp_valid),
      .mem_op_rsp_data_i  (mem_op_rsp_data),
      .drain_valid_o      (drain_valid),
      .drain_ready_i      (drain_ready),
      .qp_reset_valid_o   (qp_reset_valid),
      .qp_reset_ready_i   (qp_reset_ready),
      .qp_reset_qp_o      (qp_reset_qp),
      .flushing_i         (qp_flushing),
      .qp_error_valid_o   (qp_error_valid),
      .qp_error_ready_i   (qp_error_ready),
      .qp_error_data_o    (qp_error_data),
      .event_o            (ev_host),
      .qp_event_i         (qp_event),
      .qp_event_qp_i      (qp_event_qp)
  );

  // The send path forgets a QP last: packets that the queues had ready may still be on their way to
  // it.
  logic queues_reset_valid, queues_reset_ready, queues_reset_q;

  qp_reset_fan #(
      .N(ResetBlocks - 1)
  ) u_qp_reset_fan (
      .clk_i,
      .rst_ni,
      .in_valid_i (queues_reset_valid),
      .in_ready_o (queues_reset_ready),
      .out_valid_o({block_reset_valid[4:3], block_reset_valid[1:0]}),
      .out_ready_i({block_reset_ready[4:3], block_reset_ready[1:0]})
  );

  assign queues_reset_valid   = qp_reset_valid && !queues_reset_q;
  assign block_reset_valid[2] = qp_reset_valid && queues_reset_q;
  assign qp_reset_ready       = block_reset_valid[2] && block_reset_ready[2];

  always_ff @(posedge clk_i) begin
    if (queues_reset_valid && queues_reset_ready) queues_reset_q <= 1'b1;
    if (qp_reset_ready) queues_reset_q <= 1'b0;
    if (!rst_ni) queues_reset_q <= 1'b0;
  end

  // ---- Contexts ---------------------------------------------------------------------------------
  // Send context clients: 0 admin, 1-4 send queue, 5 and 8 receive engine, 6-7 completion.
  // Receive context clients: 0 admin, 1 responder output, 2 and 6 receive engine, 3-5 completion.
  logic [SendClients-1:0] send_acq_valid, send_acq_ready, send_ctx_valid, send_rel_valid,
      send_rel_ready, send_rel_write;
  logic [SendClients-1:0] send_contended;
  logic [RecvClients-1:0] recv_contended;
  // Only the receive engine keeps a context for its next packet.
  logic unused_contended;
  assign unused_contended = ^{send_contended, recv_contended};
  logic [RecvClients-1:0] recv_acq_valid, recv_acq_ready, recv_ctx_valid, recv_rel_valid,
      recv_rel_ready, recv_rel_write;
  logic [5*8-1:0] sq_acq_index;
  logic [3*8-1:0] cpl_recv_acq_index;
  logic [2*8-1:0] cpl_send_acq_index;
  logic [7:0] engine_send_index, engine_recv_index, rsp_acq_index;
  logic [5*rnic_pkg::SendCtxBits-1:0] sq_rel_data;
  logic [2*rnic_pkg::SendCtxBits-1:0] cpl_send_rel_data;
  logic [3*rnic_pkg::RecvCtxBits-1:0] cpl_recv_rel_data;
  rnic_pkg::send_ctx_t engine_send_rel_data;
  rnic_pkg::recv_ctx_t engine_recv_rel_data, rsp_rel_data;

  assign send_acq_valid[0] = admin_acq_valid[0];
  assign send_rel_valid[0] = admin_rel_valid[0];
  assign send_rel_write[0] = admin_rel_write;
  assign recv_acq_valid[0] = admin_acq_valid[1];
  assign recv_rel_valid[0] = admin_rel_valid[1];
  assign recv_rel_write[0] = admin_rel_write;
  assign {admin_acq_ready[1:0], admin_ctx_valid[1:0], admin_rel_ready[1:0]} = {
    recv_acq_ready[0], send_acq_ready[0], recv_ctx_valid[0], send_ctx_valid[0],
    recv_rel_ready[0], send_rel_ready[0]
  };

  ctx_manager #(
      .Width  (rnic_pkg::SendCtxBits),
      .Entries(256),
      .Clients(SendClients)
  ) u_send_ctx (
      .clk_i,
      .rst_ni,
      .ready_o    (send_ctx_ready),
      .acq_valid_i(send_acq_valid),
      .acq_ready_o(send_acq_ready),
      .acq_index_i({engine_send_index, cpl_send_acq_index, engine_send_index, sq_acq_index,
                    admin_acq_index}),
      .ctx_valid_o(send_ctx_valid),
      .ctx_data_o (send_ctx),
      .rel_valid_i(send_rel_valid),
      .rel_ready_o(send_rel_ready),
      .rel_write_i(send_rel_write),
      .rel_data_i ({engine_send_rel_data, cpl_send_rel_data, engine_send_rel_data, sq_rel_data,
                    admin_send_ctx}),
      .contended_o(send_contended)
  );

  ctx_manager #(
      .Width  (rnic_pkg::RecvCtxBits),
      .Entries(256),
      .Clients(RecvClients)
  ) u_recv_ctx (
      .clk_i,
      .rst_ni,
      .ready_o    (recv_ctx_ready),
      .acq_valid_i(recv_acq_valid),
      .acq_ready_o(recv_acq_ready),
      .acq_index_i({engine_recv_index, cpl_recv_acq_index, engine_recv_index, rsp_acq_index,
                    admin_acq_index}),
      .ctx_valid_o(recv_ctx_valid),
      .ctx_data_o (recv_ctx),
      .rel_valid_i(recv_rel_valid),
      .rel_ready_o(recv_rel_ready),
      .rel_write_i(recv_rel_write),
      .rel_data_i ({engine_recv_rel_data, cpl_recv_rel_data, engine_recv_rel_data, rsp_rel_data,
                    admin_recv_ctx}),
      .contended_o(recv_contended)
  );

  logic tx_path_rd_en, rx_path_rd_en;
  logic [7:0] tx_path_rd_qp, rx_path_rd_qp;
  rnic_pkg::path_t tx_path_data, rx_path_data;

  path_table u_path_table (
      .clk_i,
      .wr_valid_i  (path_wr_valid),
      .wr_qp_i     (path_wr_qp),
      .wr_data_i   (path_wr_data),
      .tx_rd_en_i  (tx_path_rd_en),
      .tx_rd_qp_i  (tx_path_rd_qp),
      .tx_rd_data_o(tx_path_data),
      .rx_rd_en_i  (rx_path_rd_en),
      .rx_rd_qp_i  (rx_path_rd_qp),
      .rx_rd_data_o(rx_path_data)
  );

  // ---- Translation (port 0: send path, 1: receive path) -----------------------------------------
  logic [1:0] xlate_req_valid, xlate_req_ready, xlate_rsp_valid, xlate_rsp_ready,
      xlate_retire_valid, xlate_retire_epoch;
  rnic_pkg::xlate_req_t tx_xlate_req, port_xlate_req, rx_xlate_req, atomic_xlate_req;
  rnic_pkg::xlate_rsp_t tx_xlate_rsp, rx_xlate_rsp;

  // Atomics share the port of the receive path.
  logic [1:0] rx_req_valid, rx_req_ready, rx_rsp_valid, rx_rsp_ready, rx_retire_valid,
      rx_retire_epoch;
  xlate_share u_xlate_share (
      .clk_i,
      .rst_ni,
      .req_valid_i        (rx_req_valid),
      .req_ready_o        (rx_req_ready),
      .req_data_i         ({atomic_xlate_req, rx_xlate_req}),
      .rsp_valid_o        (rx_rsp_valid),
      .rsp_ready_i        (rx_rsp_ready),
      .retire_valid_i     (rx_retire_valid),
      .retire_epoch_i     (rx_retire_epoch),
      .port_req_valid_o   (xlate_req_valid[1]),
      .port_req_ready_i   (xlate_req_ready[1]),
      .port_req_data_o    (port_xlate_req),
      .port_rsp_valid_i   (xlate_rsp_valid[1]),
      .port_rsp_ready_o   (xlate_rsp_ready[1]),
      .port_retire_valid_o(xlate_retire_valid[1]),
      .port_retire_epoch_o(xlate_retire_epoch[1])
  );
  // Memory operations: 0 send queue, 1 receive path, 2 admin queue.
  logic [1:0] work_op_valid, work_op_ready, work_op_rsp_valid, work_op_rsp_ready;
  rnic_pkg::mem_op_t sq_mem_op, rx_mem_op;

  xlate u_xlate (
      .clk_i,
      .rst_ni,
      .ready_o            (xlate_ready),
      .req_valid_i        (xlate_req_valid),
      .req_ready_o        (xlate_req_ready),
      .req_data_i         ({port_xlate_req, tx_xlate_req}),
      .rsp_valid_o        (xlate_rsp_valid),
      .rsp_ready_i        (xlate_rsp_ready),
      .rsp_data_o         ({rx_xlate_rsp, tx_xlate_rsp}),
      .retire_valid_i     (xlate_retire_valid),
      .retire_epoch_i     (xlate_retire_epoch),
      .mem_op_valid_i     ({mem_op_valid, work_op_valid}),
      .mem_op_ready_o     ({mem_op_ready, work_op_ready}),
      .mem_op_data_i      ({mem_op_data, rx_mem_op, sq_mem_op}),
      .mem_op_rsp_valid_o ({mem_op_rsp_valid, work_op_rsp_valid}),
      .mem_op_rsp_ready_i ({1'b1, work_op_rsp_ready}),
      .mem_op_rsp_data_o  (mem_op_rsp_data),
      .mpt_req_valid_i    (mpt_req_valid),
      .mpt_req_ready_o    (mpt_req_ready),
      .mpt_req_write_i    (mpt_req_write),
      .mpt_req_index_i    (mpt_req_index),
      .mpt_req_data_i     (mpt_req_data),
      .mpt_rsp_valid_o    (mpt_rsp_valid),
      .mpt_rsp_data_o     (mpt_rsp_data),
      .drain_valid_i      (drain_valid),
      .drain_ready_o      (drain_ready),
      .rd_req_valid_o     (rd_req_valid[RdPageList]),
      .rd_req_ready_i     (rd_req_ready[RdPageList]),
      .rd_req_data_o      (rd_req_pages),
      .rd_rsp_valid_i     (rd_rsp_valid[RdPageList]),
      .rd_rsp_ready_o     (rd_rsp_ready[RdPageList]),
      .rd_rsp_data_i      (rd_rsp_pages),
      .event_o            (ev_xlate)
  );

  // ---- Send queues ------------------------------------------------------------------------------
  logic [1:0] desc_valid, desc_ready, piece_valid, piece_ready;
  rnic_pkg::tx_desc_t sq_desc, rsp_desc;
  rnic_pkg::sg_piece_t sq_piece, rsp_piece;
  logic inflight_valid, sq_retire_valid, sq_retire_ready, flush_req_valid, flush_req_ready,
      sq_wake_valid, read_slot_en;
  rnic_pkg::inflight_t inflight_data;
  rnic_pkg::retire_cmd_t sq_retire_data;
  logic [7:0] flush_req_qp, sq_wake_qp, revive_qp;
  logic revive_valid, begun_valid, left_valid, left_ready, rx_timer_valid;
  logic [7:0] begun_qp;
  rnic_pkg::timer_event_t left_data, rx_timer_data;
  logic [11:0] read_slot_addr;
  rnic_pkg::read_slot_t read_slot_data;

  send_queue u_send_queue (
      .clk_i,
      .rst_ni,
      .sq_doorbell_valid_i(sq_db_valid),
      .sq_doorbell_ready_o(sq_db_ready),
      .sq_doorbell_data_i (sq_db_data),
      .wqe_push_valid_i   (wqe_push_valid),
      .wqe_push_ready_o   (wqe_push_ready),
      .wqe_push_data_i    (wqe_push_data),
      .acq_valid_o        (send_acq_valid[5:1]),
      .acq_ready_i        (send_acq_ready[5:1]),
      .acq_index_o        (sq_acq_index),
      .ctx_valid_i        (send_ctx_valid[5:1]),
      .ctx_data_i         (send_ctx),
      .contended_i        (send_contended[4:3]),
      .rel_valid_o        (send_rel_valid[5:1]),
      .rel_ready_i        (send_rel_ready[5:1]),
      .rel_write_o        (send_rel_write[5:1]),
      .rel_data_o         (sq_rel_data),
      .mem_op_valid_o     (work_op_valid[0]),
      .mem_op_ready_i     (work_op_ready[0]),
      .mem_op_data_o      (sq_mem_op),
      .mem_op_rsp_valid_i (work_op_rsp_valid[0]),
      .mem_op_rsp_ready_o (work_op_rsp_ready[0]),
      .mem_op_rsp_data_i  (mem_op_rsp_data),
      .rd_req_valid_o     (rd_req_valid[RdWqe]),
      .rd_req_ready_i     (rd_req_ready[RdWqe]),
      .rd_req_data_o      (rd_req_wqe),
      .rd_rsp_valid_i     (rd_rsp_valid[RdWqe]),
      .rd_rsp_ready_o     (rd_rsp_ready[RdWqe]),
      .rd_rsp_data_i      (rd_rsp_wqe),
      .desc_valid_o       (desc_valid[0]),
      .desc_ready_i       (desc_ready[0]),
      .desc_data_o        (sq_desc),
      .piece_valid_o      (piece_valid[0]),
      .piece_ready_i      (piece_ready[0]),
      .piece_data_o       (sq_piece),
      .inflight_valid_o   (inflight_valid),
      .inflight_data_o    (inflight_data),
      .retire_cmd_valid_o (sq_retire_valid),
      .retire_cmd_ready_i (sq_retire_ready),
      .retire_cmd_data_o  (sq_retire_data),
      .flush_req_valid_o  (flush_req_valid),
      .flush_req_ready_i  (flush_req_ready),
      .flush_req_qp_o     (flush_req_qp),
      .sq_wake_valid_i    (sq_wake_valid),
      .sq_wake_qp_i       (sq_wake_qp),
      .host_wake_valid_i  (host_wake_valid),
      .host_wake_qp_i     (host_wake_qp),
      .drained_valid_o    (drained_valid),
      .drained_qp_o       (drained_qp),
      .begun_valid_o      (begun_valid),
      .begun_qp_o         (begun_qp),
      .read_slot_en_i     (read_slot_en),
      .read_slot_addr_i   (read_slot_addr),
      .read_slot_data_o   (read_slot_data),
      .qp_reset_valid_i   (block_reset_valid[0]),
      .qp_reset_ready_o   (block_reset_ready[0]),
      .qp_reset_qp_i      (qp_reset_qp),
      .event_o            (ev_sq)
  );

  // ---- Responder output -------------------------------------------------------------------------
  // A fault of a responder's packet goes to the responder and to the completion block, one after
  // the other.
  logic rsp_cmd_valid, rsp_cmd_ready, tx_fault_valid, tx_fault_ready, cpl_fault_ready,
      rsp_fault_ready, rsp_told_q;
  rnic_pkg::rsp_cmd_t rsp_cmd_data;
  rnic_pkg::tx_fault_t tx_fault_data;
  logic rsp_fault_valid, cpl_fault_valid, unused_fault_last, unused_fault_source;
  logic [1:0] fault_valid, fault_ready;
  rnic_pkg::tx_fault_t path_fault, atomic_fault;
  stream_arbiter #(
      .N    (2),
      .Width(rnic_pkg::TxFaultBits)
  ) u_faults (
      .clk_i,
      .rst_ni,
      .in_valid_i  (fault_valid),
      .in_ready_o  (fault_ready),
      .in_last_i   (2'b11),
      .in_data_i   ({atomic_fault, path_fault}),
      .out_valid_o (tx_fault_valid),
      .out_ready_i (tx_fault_ready),
      .out_last_o  (unused_fault_last),
      .out_data_o  (tx_fault_data),
      .out_source_o(unused_fault_source)
  );

  assign rsp_fault_valid = tx_fault_valid && tx_fault_data.responder && !rsp_told_q;
  assign cpl_fault_valid = tx_fault_valid && (!tx_fault_data.responder || rsp_told_q);
  assign tx_fault_ready  = cpl_fault_valid && cpl_fault_ready;

  always_ff @(posedge clk_i) begin
    if (rsp_fault_valid && rsp_fault_ready) rsp_told_q <= 1'b1;
    if (tx_fault_ready) rsp_told_q <= 1'b0;
    if (!rst_ni) rsp_told_q <= 1'b0;
  end

  logic atomic_over;
  responder_output u_responder_output (
      .clk_i,
      .rst_ni,
      .cmd_valid_i     (rsp_cmd_valid),
      .cmd_ready_o     (rsp_cmd_ready),
      .cmd_data_i      (rsp_cmd_data),
      .tx_fault_valid_i(rsp_fault_valid),
      .tx_fault_ready_o(rsp_fault_ready),
      .tx_fault_data_i (tx_fault_data),
      .acq_valid_o     (recv_acq_valid[1]),
      .acq_ready_i     (recv_acq_ready[1]),
      .acq_index_o     (rsp_acq_index),
      .ctx_valid_i     (recv_ctx_valid[1]),
      .ctx_data_i      (recv_ctx),
      .rel_valid_o     (recv_rel_valid[1]),
      .rel_ready_i     (recv_rel_ready[1]),
      .rel_write_o     (recv_rel_write[1]),
      .rel_data_o      (rsp_rel_data),
      .desc_valid_o    (desc_valid[1]),
      .desc_ready_i    (desc_ready[1]),
      .desc_data_o     (rsp_desc),
      .piece_valid_o   (piece_valid[1]),
      .piece_ready_i   (piece_ready[1]),
      .piece_data_o    (rsp_piece),
      .atomic_fault_valid_o(fault_valid[1]),
      .atomic_fault_ready_i(fault_ready[1]),
      .atomic_fault_data_o (atomic_fault),
      .xlate_req_valid_o   (rx_req_valid[1]),
      .xlate_req_ready_i   (rx_req_ready[1]),
      .xlate_req_data_o    (atomic_xlate_req),
      .xlate_rsp_valid_i   (rx_rsp_valid[1]),
      .xlate_rsp_ready_o   (rx_rsp_ready[1]),
      .xlate_rsp_data_i    (rx_xlate_rsp),
      .xlate_retire_valid_o(rx_retire_valid[1]),
      .xlate_retire_epoch_o(rx_retire_epoch[1]),
      .rd_req_valid_o      (rd_req_valid[RdAtomic]),
      .rd_req_ready_i      (rd_req_ready[RdAtomic]),
      .rd_req_data_o       (rd_req_atomic),
      .rd_rsp_valid_i      (rd_rsp_valid[RdAtomic]),
      .rd_rsp_ready_o      (rd_rsp_ready[RdAtomic]),
      .rd_rsp_data_i       (rd_rsp_atomic),
      .wr_valid_o          (wr_valid[WrAtomic]),
      .wr_ready_i          (wr_ready[WrAtomic]),
      .wr_data_o           (wr_atomic),
      .wr_done_i           (wr_done[WrAtomic]),
      .atomic_over_o   (atomic_over),
      .qp_reset_valid_i(block_reset_valid[1]),
      .qp_reset_ready_o(block_reset_ready[1]),
      .qp_reset_qp_i   (qp_reset_qp),
      .event_o         (ev_rsp)
  );

  qp_event_taps u_qp_events (
      .rx_event_i     (rx_qp_event),
      .rx_qp_i        (rx_qp_event_qp),
      .place_fault_i  (place_fault),
      .place_qp_i     (place_fault_qp),
      .rsp_desc_i     (desc_valid[1] && desc_ready[1]),
      .rsp_desc_data_i(rsp_desc),
      .tx_fault_i     (tx_fault_ready),
      .tx_fault_data_i(tx_fault_data),
      .event_i        (ev_cpl),
      .recovery_qp_i  (revive_qp),
      .qp_event_o     (qp_event),
      .qp_event_qp_o  (qp_event_qp)
  );

  // ---- Send path --------------------------------------------------------------------------------
  // Recovery lets the send path send for a QP again, and so does the host's way out of SQE, which
  // waits for its turn.
  logic revive_due_q;
  logic [7:0] revive_due_qp_q;
  always_ff @(posedge clk_i) begin
    if (!revive_valid) revive_due_q <= 1'b0;
    if (host_wake_valid && host_revive) begin
      revive_due_q    <= 1'b1;
      revive_due_qp_q <= host_wake_qp;
    end
    if (!rst_ni) revive_due_q <= 1'b0;
  end

  tx_path u_tx_path (
      .clk_i,
      .rst_ni,
      .port_mac_i          (port_mac),
      .desc_valid_i        (desc_valid),
      .desc_ready_o        (desc_ready),
      .desc_data_i         ({rsp_desc, sq_desc}),
      .piece_valid_i       (piece_valid),
      .piece_ready_o       (piece_ready),
      .piece_data_i        ({rsp_piece, sq_piece}),
      .xlate_req_valid_o   (xlate_req_valid[0]),
      .xlate_req_ready_i   (xlate_req_ready[0]),
      .xlate_req_data_o    (tx_xlate_req),
      .xlate_rsp_valid_i   (xlate_rsp_valid[0]),
      .xlate_rsp_ready_o   (xlate_rsp_ready[0]),
      .xlate_rsp_data_i    (tx_xlate_rsp),
      .xlate_retire_valid_o(xlate_retire_valid[0]),
      .xlate_retire_epoch_o(xlate_retire_epoch[0]),
      .rd_req_valid_o      (rd_req_valid[RdPayload]),
      .rd_req_ready_i      (rd_req_ready[RdPayload]),
      .rd_req_data_o       (rd_req_payload),
      .rd_rsp_valid_i      (rd_rsp_valid[RdPayload]),
      .rd_rsp_ready_o      (rd_rsp_ready[RdPayload]),
      .rd_rsp_data_i       (rd_rsp_payload),
      .path_rd_en_o        (tx_path_rd_en),
      .path_rd_qp_o        (tx_path_rd_qp),
      .path_rd_data_i      (tx_path_data),
      .tx_fault_valid_o    (fault_valid[0]),
      .tx_fault_ready_i    (fault_ready[0]),
      .tx_fault_data_o     (path_fault),
      .eth_tx_valid_o,
      .eth_tx_ready_i,
      .eth_tx_data_o,
      .left_valid_o        (left_valid),
      .left_ready_i        (left_ready),
      .left_data_o         (left_data),
      .revive_valid_i      (revive_valid || revive_due_q),
      .revive_qp_i         (revive_valid ? revive_qp : revive_due_qp_q),
      .qp_reset_valid_i    (block_reset_valid[2]),
      .qp_reset_ready_o    (block_reset_ready[2]),
      .qp_reset_qp_i       (qp_reset_qp),
      .event_o             (ev_tx)
  );

  // ---- Receive path -----------------------------------------------------------------------------
  logic rx_desc_valid, rx_desc_ready, rx_payload_valid, rx_payload_ready, rx_done_valid,
      rx_done_ready;
  rnic_pkg::rx_desc_t rx_desc_data;
  rnic_pkg::payload_beat_t rx_payload_data;
  rnic_pkg::rx_done_t rx_done_data;
  logic front_desc_valid, front_desc_ready, front_payload_valid, front_payload_ready;
  logic rx_judged, rx_held;
  rnic_pkg::rx_desc_t front_desc_data;
  rnic_pkg::payload_beat_t front_payload_data;

  rx_front u_rx_front (
      .clk_i,
      .rst_ni,
      .port_mac_i     (port_mac),
      .enable_i       (device_enable),
      .eth_rx_valid_i,
      .eth_rx_data_i,
      .desc_valid_o   (front_desc_valid),
      .desc_ready_i   (front_desc_ready),
      .desc_data_o    (front_desc_data),
      .payload_valid_o(front_payload_valid),
      .payload_ready_i(front_payload_ready),
      .payload_data_o (front_payload_data),
      .event_o        (ev_front)
  );

  rx_park u_rx_park (
      .clk_i,
      .rst_ni,
      .desc_valid_i   (front_desc_valid),
      .desc_ready_o   (front_desc_ready),
      .desc_data_i    (front_desc_data),
      .payload_valid_i(front_payload_valid),
      .payload_ready_o(front_payload_ready),
      .payload_data_i (front_payload_data),
      .desc_valid_o   (rx_desc_valid),
      .desc_ready_i   (rx_desc_ready),
      .desc_data_o    (rx_desc_data),
      .payload_valid_o(rx_payload_valid),
      .payload_ready_i(rx_payload_ready),
      .payload_data_o (rx_payload_data),
      .judged_valid_i (rx_judged),
      .held_i         (rx_held),
      .retry_i        (atomic_over),
      .clear_valid_i  (block_reset_ready[3]),
      .clear_qp_i     (qp_reset_qp)
  );

  logic engine_srq_acq_valid, engine_srq_rel_valid, engine_srq_rel_write, srq_limit_valid;
  logic [1:0] srq_acq_ready, srq_ctx_valid, srq_rel_ready;
  logic [7:0] engine_srq_index, srq_limit;
  logic [19:0] rx_entered, rx_left;
  rnic_pkg::srq_ctx_t engine_srq_rel_data;

  rx_engine u_rx_engine (
      .clk_i,
      .rst_ni,
      .desc_valid_i        (rx_desc_valid),
      .desc_ready_o        (rx_desc_ready),
      .desc_data_i         (rx_desc_data),
      .payload_valid_i     (rx_payload_valid),
      .payload_ready_o     (rx_payload_ready),
      .payload_data_i      (rx_payload_data),
      .judged_valid_o      (rx_judged),
      .held_o              (rx_held),
      .send_acq_valid_o    ({send_acq_valid[9], send_acq_valid[6]}),
      .send_acq_ready_i    ({send_acq_ready[9], send_acq_ready[6]}),
      .send_acq_index_o    (engine_send_index),
      .send_ctx_valid_i    ({send_ctx_valid[9], send_ctx_valid[6]}),
      .send_ctx_data_i     (send_ctx),
      .send_rel_valid_o    ({send_rel_valid[9], send_rel_valid[6]}),
      .send_rel_ready_i    ({send_rel_ready[9], send_rel_ready[6]}),
      .send_rel_write_o    ({send_rel_write[9], send_rel_write[6]}),
      .send_rel_data_o     (engine_send_rel_data),
      .send_contended_i    ({send_contended[9], send_contended[6]}),
      .recv_acq_valid_o    ({recv_acq_valid[6], recv_acq_valid[2]}),
      .recv_acq_ready_i    ({recv_acq_ready[6], recv_acq_ready[2]}),
      .recv_acq_index_o    (engine_recv_index),
      .recv_ctx_valid_i    ({recv_ctx_valid[6], recv_ctx_valid[2]}),
      .recv_ctx_data_i     (recv_ctx),
      .recv_rel_valid_o    ({recv_rel_valid[6], recv_rel_valid[2]}),
      .recv_rel_ready_i    ({recv_rel_ready[6], recv_rel_ready[2]}),
      .recv_rel_write_o    ({recv_rel_write[6], recv_rel_write[2]}),
      .recv_rel_data_o     (engine_recv_rel_data),
      .recv_contended_i    ({recv_contended[6], recv_contended[2]}),
      .srq_acq_valid_o     (engine_srq_acq_valid),
      .srq_acq_ready_i     (srq_acq_ready[1]),
      .srq_acq_index_o     (engine_srq_index),
      .srq_ctx_valid_i     (srq_ctx_valid[1]),
      .srq_ctx_data_i      (srq_ctx),
      .srq_rel_valid_o     (engine_srq_rel_valid),
      .srq_rel_ready_i     (srq_rel_ready[1]),
      .srq_rel_write_o     (engine_srq_rel_write),
      .srq_rel_data_o      (engine_srq_rel_data),
      .limit_valid_o       (srq_limit_valid),
      .limit_srq_o         (srq_limit),
      .rx_entered_o        (rx_entered),
      .rx_left_o           (rx_left),
      .read_slot_en_o      (read_slot_en),
      .read_slot_addr_o    (read_slot_addr),
      .read_slot_data_i    (read_slot_data),
      .path_rd_en_o        (rx_path_rd_en),
      .path_rd_qp_o        (rx_path_rd_qp),
      .path_rd_data_i      (rx_path_data),
      .xlate_req_valid_o   (rx_req_valid[0]),
      .xlate_req_ready_i   (rx_req_ready[0]),
      .xlate_req_data_o    (rx_xlate_req),
      .xlate_rsp_valid_i   (rx_rsp_valid[0]),
      .xlate_rsp_ready_o   (rx_rsp_ready[0]),
      .xlate_rsp_data_i    (rx_xlate_rsp),
      .xlate_retire_valid_o(rx_retire_valid[0]),
      .xlate_retire_epoch_o(rx_retire_epoch[0]),
      .rd_req_valid_o      (rd_req_valid[RdScatterList]),
      .rd_req_ready_i      (rd_req_ready[RdScatterList]),
      .rd_req_data_o       (rd_req_scatter),
      .rd_rsp_valid_i      (rd_rsp_valid[RdScatterList]),
      .rd_rsp_ready_o      (rd_rsp_ready[RdScatterList]),
      .rd_rsp_data_i       (rd_rsp_scatter),
      .wr_valid_o          (wr_valid[WrPayload]),
      .wr_ready_i          (wr_ready[WrPayload]),
      .wr_data_o           (wr_payload),
      .wr_done_i           (wr_done[WrPayload]),
      .done_valid_o        (rx_done_valid),
      .done_ready_i        (rx_done_ready),
      .done_data_o         (rx_done_data),
      .established_valid_o (established_valid),
      .established_qp_o    (established_qp),
      .timer_valid_o       (rx_timer_valid),
      .timer_data_o        (rx_timer_data),
      .qp_reset_valid_i    (block_reset_valid[3]),
      .qp_reset_ready_o    (block_reset_ready[3]),
      .qp_reset_qp_i       (qp_reset_qp),
      .event_o             (ev_engine),
      .qp_event_o          (rx_qp_event),
      .qp_event_qp_o       (rx_qp_event_qp),
      .place_fault_o       (place_fault),
      .place_fault_qp_o    (place_fault_qp)
  );

  // ---- Shared receive queues --------------------------------------------------------------------
  logic srq_error_valid, srq_eqe_valid, srq_eqe_ready, srq_taken, srq_refused;
  logic [7:0] srq_error;
  rnic_pkg::eqe_req_t srq_eqe_data;

  srq_engine u_srq_engine (
      .clk_i,
      .rst_ni,
      .ready_o         (srq_ready),
      .doorbell_valid_i(srq_db_valid),
      .doorbell_ready_o(srq_db_ready),
      .doorbell_data_i (srq_db_data),
      .acq_valid_i     ({engine_srq_acq_valid, admin_acq_valid[4]}),
      .acq_ready_o     (srq_acq_ready),
      .acq_index_i     ({engine_srq_index, admin_acq_index}),
      .ctx_valid_o     (srq_ctx_valid),
      .ctx_data_o      (srq_ctx),
      .rel_valid_i     ({engine_srq_rel_valid, admin_rel_valid[4]}),
      .rel_ready_o     (srq_rel_ready),
      .rel_write_i     ({engine_srq_rel_write, admin_rel_write}),
      .rel_data_i      ({engine_srq_rel_data, admin_srq_ctx}),
      .limit_valid_i   (srq_limit_valid),
      .limit_srq_i     (srq_limit),
      .error_valid_i   (srq_error_valid),
      .error_srq_i     (srq_error),
      .eqe_valid_o     (srq_eqe_valid),
      .eqe_ready_i     (srq_eqe_ready),
      .eqe_data_o      (srq_eqe_data),
      .event_taken_o   (srq_taken),
      .event_refused_o (srq_refused)
  );
  assign {admin_acq_ready[4], admin_ctx_valid[4], admin_rel_ready[4]} =
      {srq_acq_ready[0], srq_ctx_valid[0], srq_rel_ready[0]};

  // ---- Completion -------------------------------------------------------------------------------
  completion u_completion (
      .clk_i,
      .rst_ni,
      .ready_o            (completion_ready),
      .cycles_i           (cycles),
      .done_valid_i       (rx_done_valid),
      .done_ready_o       (rx_done_ready),
      .done_data_i        (rx_done_data),
      .tx_fault_valid_i   (cpl_fault_valid),
      .tx_fault_ready_o   (cpl_fault_ready),
      .tx_fault_data_i    (tx_fault_data),
      .retire_cmd_valid_i (sq_retire_valid),
      .retire_cmd_ready_o (sq_retire_ready),
      .retire_cmd_data_i  (sq_retire_data),
      .inflight_valid_i   (inflight_valid),
      .inflight_data_i    (inflight_data),
      .flush_req_valid_i  (flush_req_valid),
      .flush_req_ready_o  (flush_req_ready),
      .flush_req_qp_i     (flush_req_qp),
      .qp_error_valid_i   (qp_error_valid),
      .qp_error_ready_o   (qp_error_ready),
      .qp_error_data_i    (qp_error_data),
      .rx_entered_i       (rx_entered),
      .rx_left_i          (rx_left),
      .srq_error_valid_o  (srq_error_valid),
      .srq_error_srq_o    (srq_error),
      .srq_eqe_valid_i    (srq_eqe_valid),
      .srq_eqe_ready_o    (srq_eqe_ready),
      .srq_eqe_data_i     (srq_eqe_data),
      .srq_taken_i        (srq_taken),
      .srq_refused_i      (srq_refused),
      .drained_valid_i    (drained_valid),
      .drained_qp_i       (drained_qp),
      .established_valid_i(established_valid),
      .established_qp_i   (established_qp),
      .device_eqe_valid_i (device_eqe_valid),
      .device_eqe_ready_o (device_eqe_ready),
      .device_eqe_data_i  (device_eqe_data),
      .rsp_cmd_valid_o    (rsp_cmd_valid),
      .rsp_cmd_ready_i    (rsp_cmd_ready),
      .rsp_cmd_data_o     (rsp_cmd_data),
      .mem_op_valid_o     (work_op_valid[1]),
      .mem_op_ready_i     (work_op_ready[1]),
      .mem_op_data_o      (rx_mem_op),
      .mem_op_rsp_valid_i (work_op_rsp_valid[1]),
      .mem_op_rsp_ready_o (work_op_rsp_ready[1]),
      .mem_op_rsp_data_i  (mem_op_rsp_data),
      .sq_wake_valid_o    (sq_wake_valid),
      .sq_wake_qp_o       (sq_wake_qp),
      .begun_valid_i      (begun_valid),
      .begun_qp_i         (begun_qp),
      .left_valid_i       (left_valid),
      .left_ready_o       (left_ready),
      .left_data_i        (left_data),
      .timer_valid_i      (rx_timer_valid),
      .timer_data_i       (rx_timer_data),
      .revive_valid_o     (revive_valid),
      .revive_qp_o        (revive_qp),
      .rq_doorbell_valid_i(rq_db_valid),
      .rq_doorbell_ready_o(rq_db_ready),
      .rq_doorbell_data_i (rq_db_data),
      .cq_doorbell_valid_i(cq_db_valid),
      .cq_doorbell_ready_o(cq_db_ready),
      .cq_doorbell_data_i (cq_db_data),
      .eq_doorbell_valid_i(eq_db_valid),
      .eq_doorbell_ready_o(eq_db_ready),
      .eq_doorbell_data_i (eq_db_data),
      .send_acq_valid_o   (send_acq_valid[8:7]),
      .send_acq_ready_i   (send_acq_ready[8:7]),
      .send_acq_index_o   (cpl_send_acq_index),
      .send_ctx_valid_i   (send_ctx_valid[8:7]),
      .send_ctx_data_i    (send_ctx),
      .send_rel_valid_o   (send_rel_valid[8:7]),
      .send_rel_ready_i   (send_rel_ready[8:7]),
      .send_rel_write_o   (send_rel_write[8:7]),
      .send_rel_data_o    (cpl_send_rel_data),
      .recv_acq_valid_o   (recv_acq_valid[5:3]),
      .recv_acq_ready_i   (recv_acq_ready[5:3]),
      .recv_acq_index_o   (cpl_recv_acq_index),
      .recv_ctx_valid_i   (recv_ctx_valid[5:3]),
      .recv_ctx_data_i    (recv_ctx),
      .recv_rel_valid_o   (recv_rel_valid[5:3]),
      .recv_rel_ready_i   (recv_rel_ready[5:3]),
      .recv_rel_write_o   (recv_rel_write[5:3]),
      .recv_rel_data_o    (cpl_recv_rel_data),
      .admin_acq_valid_i  (admin_acq_valid[3:2]),
      .admin_acq_ready_o  (admin_acq_ready[3:2]),
      .admin_acq_index_i  (admin_acq_index),
      .admin_ctx_valid_o  (admin_ctx_valid[3:2]),
      .admin_cq_ctx_o     (cq_ctx),
      .admin_eq_ctx_o     (eq_ctx),
      .admin_rel_valid_i  (admin_rel_valid[3:2]),
      .admin_rel_ready_o  (admin_rel_ready[3:2]),
      .admin_rel_write_i  (admin_rel_write),
      .admin_cq_ctx_i     (admin_cq_ctx),
      .admin_eq_ctx_i     (admin_eq_ctx),
      .wr_valid_o         (wr_valid[WrRetired:WrCqe]),
      .wr_ready_i         (wr_ready[WrRetired:WrCqe]),
      .wr_data_o          (wr_completion),
      .wr_done_i          (wr_done[WrRetired:WrCqe]),
      .msix_valid_o       (msix_valid),
      .msix_ready_i       (msix_ready),
      .msix_vector_o      (msix_vector),
      .qp_reset_valid_i   (block_reset_valid[4]),
      .qp_reset_ready_o   (block_reset_ready[4]),
      .qp_reset_qp_i      (qp_reset_qp),
      .flushing_o         (qp_flushing),
      .event_o            (ev_cpl)
  );

  `ASSERT_HOLD(HostCplHold, host_cpl_valid_o, host_cpl_ready_i, {host_cpl_hdr_o, host_cpl_data_o})
  `ASSERT_HOLD(DmaReqHold, dma_req_valid_o, dma_req_ready_i, {dma_req_hdr_o, dma_req_data_o,
                                                              dma_req_last_o})
  `ASSERT_HOLD(EthTxHold, eth_tx_valid_o, eth_tx_ready_i, eth_tx_data_o)
endmodule

`default_nettype wire
