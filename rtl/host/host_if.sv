`default_nettype none
`include "assert.svh"

/// Host interface: register page, UAR pages, MSI-X, counters, admin queue.
///
/// Doorbells and WQE windows pass on what was written with the UAR it came through; the owners of
/// the objects check it. Until device_enable_o, doorbells are dropped. The admin queue fetches
/// 128-byte commands one by one (RdClient), executes them through the context managers, and writes
/// 64-byte completions (WrClient); an optional MSI-X message follows. ready_o: tables are cleared.
///
/// Creating or resetting a QP: its contexts are written, then qp_reset_valid_o is held until
/// qp_reset_ready_i: every block drops what it keeps about that QP. DestroyQp and ModifyQp to RESET
/// first move the QP to the error state (qp_error_t, quiet), wait until its contexts show that it
/// is flushed and `drain` has passed once, and then clear it. What a block may still have done to
/// the cleared contexts before its qp_reset_ready_i is undone: they are written once more after it.
/// `drain`: drain_valid_o is held until drain_ready_i, which says that every DMA whose translation
/// or WQE was accepted before the request has been issued. What takes a key or a window away is a
/// memory operation, which drains by itself.
module host_if (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    input  wire logic                      clk_open_i,
    input  wire logic                      moved_i,
    output logic                           awake_o,
    input  wire logic                      contexts_ready_i,
    output logic                           ready_o,
    // Register page
    input  wire logic                      reg_req_valid_i,
    output logic                           reg_req_ready_o,
    input  wire rnic_pkg::reg_req_t        reg_req_data_i,
    output logic                           reg_rsp_valid_o,
    output logic [63:0]                    reg_rsp_data_o,
    output logic                           device_enable_o,
    output logic [29:0]                    completion_timeout_o,
    output logic [47:0]                    port_mac_o,
    output rnic_pkg::ethernet_t            ethernet_o,
    input  wire logic [63:0]               time_i,
    output logic [63:0]                    cycles_o,
    input  wire logic [rnic_pkg::NumCounters-1:0] event_i,
    // UAR
    input  wire logic                      uar_req_valid_i,
    output logic                           uar_req_ready_o,
    input  wire rnic_pkg::uar_req_t        uar_req_data_i,
    output logic                           sq_doorbell_valid_o,
    input  wire logic                      sq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            sq_doorbell_data_o,
    output logic                           rq_doorbell_valid_o,
    input  wire logic                      rq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            rq_doorbell_data_o,
    output logic                           cq_doorbell_valid_o,
    input  wire logic                      cq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            cq_doorbell_data_o,
    output logic                           eq_doorbell_valid_o,
    input  wire logic                      eq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            eq_doorbell_data_o,
    output logic                           srq_doorbell_valid_o,
    input  wire logic                      srq_doorbell_ready_i,
    output rnic_pkg::doorbell_t            srq_doorbell_data_o,
    output logic                           wqe_push_valid_o,
    input  wire logic                      wqe_push_ready_i,
    output rnic_pkg::wqe_push_t            wqe_push_data_o,
    // MSI-X: cfg from the root complex; one message request per accepted vector number
    input  wire logic                      cfg_msix_enable_i,
    input  wire logic                      cfg_msix_mask_i,
    input  wire logic                      msix_valid_i,
    output logic                           msix_ready_o,
    input  wire logic [7:0]                msix_vector_i,
    // DMA: one read client (commands), two write clients (completions, MSI-X)
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           admin_wr_valid_o,
    input  wire logic                      admin_wr_ready_i,
    output rnic_pkg::dma_wr_t              admin_wr_data_o,
    input  wire logic                      admin_wr_done_i,
    output logic                           msix_wr_valid_o,
    input  wire logic                      msix_wr_ready_i,
    output rnic_pkg::dma_wr_t              msix_wr_data_o,
    input  wire logic                      msix_wr_done_i,
    // Context managers: bit 0 send, 1 receive, 2 CQ, 3 EQ, 4 SRQ. One index bus for all; data buses
    // apart.
    output logic [4:0]                     acq_valid_o,
    input  wire logic [4:0]                acq_ready_i,
    output logic [7:0]                     acq_index_o,
    input  wire logic [4:0]                ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       send_ctx_i,
    input  wire rnic_pkg::recv_ctx_t       recv_ctx_i,
    input  wire rnic_pkg::cq_ctx_t         cq_ctx_i,
    input  wire rnic_pkg::eq_ctx_t         eq_ctx_i,
    input  wire rnic_pkg::srq_ctx_t        srq_ctx_i,
    output logic [4:0]                     rel_valid_o,
    input  wire logic [4:0]                rel_ready_i,
    output logic                           rel_write_o,
    output rnic_pkg::send_ctx_t            send_ctx_o,
    output rnic_pkg::recv_ctx_t            recv_ctx_o,
    output rnic_pkg::cq_ctx_t              cq_ctx_o,
    output rnic_pkg::eq_ctx_t              eq_ctx_o,
    output rnic_pkg::srq_ctx_t             srq_ctx_o,
    // The host has changed the state of a QP
    output logic                           sq_wake_valid_o,
    output logic [7:0]                     sq_wake_qp_o,
    // Link of the Ethernet port; events of the device and of the port
    input  wire logic                      link_up_i,
    input  wire logic                      quiet_i,  // Nothing of ours is on its way
    output logic                           eqe_valid_o,
    input  wire logic                      eqe_ready_i,
    output rnic_pkg::eqe_req_t             eqe_data_o,
    // Path table write
    output logic                           path_wr_valid_o,
    output logic [7:0]                     path_wr_qp_o,
    output rnic_pkg::path_t                path_wr_data_o,
    // MPT: read (mpt_rsp_valid_i later) or write one entry
    output logic                           mpt_req_valid_o,
    input  wire logic                      mpt_req_ready_i,
    output logic                           mpt_req_write_o,
    output logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index_o,
    output rnic_pkg::mpt_t                 mpt_req_data_o,
    input  wire logic                      mpt_rsp_valid_i,
    input  wire rnic_pkg::mpt_t            mpt_rsp_data_i,
    // Memory operations: their answers are always taken
    output logic                           mem_op_valid_o,
    input  wire logic                      mem_op_ready_i,
    output rnic_pkg::mem_op_t              mem_op_data_o,
    input  wire logic                      mem_op_rsp_valid_i,
    input  wire rnic_pkg::mem_op_rsp_t     mem_op_rsp_data_i,
    // Table of multicast groups: an operation is held until multicast_done_i
    output logic                           multicast_valid_o,
    output rnic_pkg::multicast_op_t        multicast_data_o,
    input  wire logic                      multicast_done_i,
    input  wire logic [1:0]                multicast_status_i,
    output logic                           drain_valid_o,
    input  wire logic                      drain_ready_i,
    output logic                           qp_reset_valid_o,
    input  wire logic                      qp_reset_ready_i,
    output logic [7:0]                     qp_reset_qp_o,
    input  wire logic                      flushing_i,
    output logic                           qp_error_valid_o,
    input  wire logic                      qp_error_ready_i,
    output rnic_pkg::qp_error_t            qp_error_data_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o,
    // Events of QPs: sources of qp_counters
    input  wire logic [5*rnic_pkg::QpCounters-1:0] qp_event_i,
    input  wire logic [5*8-1:0]            qp_event_qp_i
);
  logic counters_ready, admin_ready, fatal, executed, sent;
  logic [63:0] command_base, completion_base;
  rnic_pkg::reg_admin_config_t admin_config;
  logic restart, irq_valid, irq_ready;
  logic [15:0] producer_index;
  logic [7:0] irq_vector;

  assign ready_o = contexts_ready_i && counters_ready && admin_ready;

  logic query_valid, query_upper, query_clear, query_done;
  logic regs_awake, counts_awake, uar_awake, admin_awake, admin_busy;
  logic [15:0] producer_index_q;
  assign awake_o = regs_awake || counts_awake || uar_awake || admin_awake;
  always_ff @(posedge clk_i) producer_index_q <= producer_index;
  logic counts_clk;
  room_clock u_counts_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(counts_clk), .awake_o(counts_awake),
      .stir_i(|{qp_event_i, query_valid, query_done})
  );

  logic uar_clk;
  room_clock u_uar_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(uar_clk), .awake_o(uar_awake),
      .stir_i(|{uar_req_valid_i, sq_doorbell_valid_o, rq_doorbell_valid_o, cq_doorbell_valid_o,
          eq_doorbell_valid_o, srq_doorbell_valid_o, wqe_push_valid_o, moved_i})
  );

  logic admin_clk;
  room_clock u_admin_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(admin_clk), .awake_o(admin_awake),
      .stir_i(|{!ready_o, admin_busy, restart, producer_index != producer_index_q, executed,
          rd_req_valid_o, rd_rsp_valid_i, admin_wr_valid_o, admin_wr_done_i, irq_valid,
          acq_valid_o, ctx_valid_i, rel_valid_o, sq_wake_valid_o, path_wr_valid_o,
          mpt_req_valid_o, mpt_rsp_valid_i, mem_op_valid_o, mem_op_rsp_valid_i,
          multicast_valid_o, drain_valid_o, qp_reset_valid_o, flushing_i, qp_error_valid_o,
          query_valid, query_done, moved_i})
  );

  host_regs u_regs (
      .clk_i, .rst_ni, .clk_open_i, .moved_i, .awake_o(regs_awake),
      .ready_i(ready_o), .fatal_i(fatal), .link_up_i, .quiet_i,
      .reg_req_valid_i, .reg_req_ready_o, .reg_req_data_i,
      .reg_rsp_valid_o, .reg_rsp_data_o,
      .device_enable_o, .completion_timeout_o, .port_mac_o, .ethernet_o, .time_i, .cycles_o,
      .command_base_o(command_base), .completion_base_o(completion_base),
      .admin_config_o(admin_config), .restart_o(restart), .producer_index_o(producer_index),
      .counters_ready_o(counters_ready), .event_i, .cfg_msix_enable_i, .cfg_msix_mask_i,
      .msix_valid_i, .msix_ready_o, .irq_valid_i(irq_valid), .irq_ready_o(irq_ready),
      .msix_vector_i, .irq_vector_i(irq_vector),
      .msix_wr_valid_o, .msix_wr_ready_i, .msix_wr_data_o,
      .sent_o(sent)
  );

  logic [7:0] query_qp;
  rnic_pkg::admin_qp_counters_t query_counts;
  qp_counters #(
      .Sources(5)
  ) u_qp_counters (
      .clk_i(counts_clk),
      .rst_ni,
      .event_i       (qp_event_i),
      .event_qp_i    (qp_event_qp_i),
      .query_valid_i (query_valid),
      .query_qp_i    (query_qp),
      .query_upper_i (query_upper),
      .query_clear_i (query_clear),
      .query_done_o  (query_done),
      .query_counts_o(query_counts)
  );

  uar_pages u_uar_pages (
      .clk_i(uar_clk),
      .rst_ni,
      .enable_i        (device_enable_o),
      .uar_req_valid_i,
      .uar_req_ready_o,
      .uar_req_data_i,
      .doorbell_valid_o({srq_doorbell_valid_o, eq_doorbell_valid_o, cq_doorbell_valid_o,
                         rq_doorbell_valid_o, sq_doorbell_valid_o}),
      .doorbell_ready_i({srq_doorbell_ready_i, eq_doorbell_ready_i, cq_doorbell_ready_i,
                         rq_doorbell_ready_i, sq_doorbell_ready_i}),
      .doorbell_data_o ({srq_doorbell_data_o, eq_doorbell_data_o, cq_doorbell_data_o,
                         rq_doorbell_data_o, sq_doorbell_data_o}),
      .push_valid_o    (wqe_push_valid_o),
      .push_ready_i    (wqe_push_ready_i),
      .push_data_o     (wqe_push_data_o)
  );

  admin u_admin (
      .clk_i(admin_clk), .rst_ni, .busy_o(admin_busy), .ready_o(admin_ready),
      .enable_i(device_enable_o && ready_o), .command_base_i(command_base),
      .completion_base_i(completion_base), .config_i(admin_config), .restart_i(restart),
      .producer_index_i(producer_index), .fatal_o(fatal), .executed_o(executed), .rd_req_valid_o,
      .rd_req_ready_i, .rd_req_data_o, .rd_rsp_valid_i, .rd_rsp_ready_o, .rd_rsp_data_i,
      .wr_valid_o(admin_wr_valid_o), .wr_ready_i(admin_wr_ready_i), .wr_data_o(admin_wr_data_o),
      .wr_done_i(admin_wr_done_i), .irq_valid_o(irq_valid), .irq_ready_i(irq_ready),
      .irq_vector_o(irq_vector), .acq_valid_o, .acq_ready_i, .acq_index_o, .ctx_valid_i,
      .send_ctx_i, .recv_ctx_i, .cq_ctx_i, .eq_ctx_i, .srq_ctx_i, .rel_valid_o, .rel_ready_i,
      .rel_write_o, .send_ctx_o, .recv_ctx_o, .cq_ctx_o, .eq_ctx_o, .srq_ctx_o, .sq_wake_valid_o,
      .sq_wake_qp_o, .path_wr_valid_o, .path_wr_qp_o, .path_wr_data_o,
      .mpt_req_valid_o, .mpt_req_ready_i, .mpt_req_write_o, .mpt_req_index_o, .mpt_req_data_o,
      .mpt_rsp_valid_i, .mpt_rsp_data_i, .mem_op_valid_o, .mem_op_ready_i, .mem_op_data_o,
      .mem_op_rsp_valid_i, .mem_op_rsp_data_i, .multicast_valid_o, .multicast_data_o,
      .multicast_done_i, .multicast_status_i, .drain_valid_o, .drain_ready_i, .qp_reset_valid_o,
      .qp_reset_ready_i, .qp_reset_qp_o, .flushing_i, .qp_error_valid_o, .qp_error_ready_i,
      .qp_error_data_o, .query_valid_o(query_valid), .query_qp_o(query_qp),
      .query_upper_o(query_upper), .query_clear_o(query_clear), .query_done_i(query_done),
      .query_counts_i(query_counts)
  );

  device_events u_events (
      .clk_i,
      .rst_ni,
      .enable_i (device_enable_o),
      .fatal_i  (fatal),
      .link_up_i,
      .eqe_valid_o,
      .eqe_ready_i,
      .eqe_data_o
  );

  always_comb begin
    event_o = '0;
    event_o[rnic_pkg::CounterMsixMessages]  = sent;
    event_o[rnic_pkg::CounterAdminCommands] = executed;
  end

  // A message is on its way once it has been taken: nothing follows that would have to wait for it.
  logic unused_done;
  assign unused_done = msix_wr_done_i;
endmodule

`default_nettype wire
