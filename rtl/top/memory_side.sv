`default_nettype none
`include "stream.svh"

/// The memory side: the way to the host's memory and registers, and the translation of the
/// addresses by which processes and peers name that memory.
///
/// Inside: pcie_edge (TLPs of both directions), xlate (keys, page lists, memory operations), and
/// xlate_share, which lets atomics and the receive path use one port of it.
///
/// Towards the host: TLP streams of pcie_edge, with what its hard block reports (cfg_*).
///
/// Towards the NIC:
/// - reg_req, uar_req: what the host reads and writes, whether or not requests of the NIC can
///   leave (PCI Express 2.4.1). reg_rsp answers each read, in order.
/// - rd_req/rd_rsp: DMA reads. Lines come in the order of a client's requests, and clients do not
///   hold each other up. Clients: the admin queue; the receive side (scatter lists); of the send
///   side 0 WQEs, 1 atomics, 2 payload; page lists stay inside.
/// - wr: DMA writes; wr_done is a pulse when the last TLP of a write has been handed over. A read
///   asked for after it leaves behind that write. Clients: the admin queue; MSI-X; the receive
///   side (payload); the completion side, 0 CQEs and EQEs, 1 retired records; the send side
///   (atomics).
/// - xlate: a request is answered with a DMA address or a refusal, in order. What was answered is
///   in use until it is handed back (retire, with the epoch of the answer). Of the send side 0 is
///   the send path, 1 atomics. Atomics share a port with the receive side, so they take their
///   answers (of rx_xlate_rsp_data) at once.
/// - mem_op: changes of what is granted, one under way for each client: the send queue (sq, with
///   sq_mem_list: lines of its WQE, taken when a page list comes in it), what
///   peers invalidate (rx), the admin queue, the windows of queue pairs that have failed (unbind);
///   the last two always take their answer. While unbinding_i is high, such a queue pair may still
///   have some: what something bound refuses to sq and admin waits for its end (mem_op_again).
/// - mpt: reads entries of the protection table, and writes free ones, for the admin queue. drain:
///   held until answers to all that was asked before are handed back.
///
/// pending_o: a DMA read waits for its completions; memory_busy_o: or its tag is not free
/// yet, or an operation on the tables is under way.
/// device_enable_i 0: no TLP begins. dma_req_np_hold_i: no read begins, and writes go on.
///
/// memory_ready_o: the tables are cleared. Nothing may be asked before.
module memory_side (
    input  wire logic                                        clk_i,
    input  wire logic                                        rst_ni,
    input  wire logic                                        clk_open_i,
    input  wire logic                                        moved_i,
    output logic                                             awake_o,
    input  wire logic [63:0]                                 cycles_i,
    output rnic_pkg::rest_t                                  rest_o,
    input  wire logic [2:0]                                  cfg_max_payload_i,
    input  wire logic [2:0]                                  cfg_max_read_req_i,
    input  wire logic                                        cfg_bus_master_i,
    input  wire logic                                        cfg_ext_tag_i,
    input  wire logic                                        cfg_cpl_timeout_disable_i,
    input  wire logic                                        dma_req_np_hold_i,
    input  wire logic                                        device_enable_i,
    input  wire logic [29:0]                                 completion_timeout_i,
    input  wire logic                                        host_req_valid_i,
    output logic                                             host_req_ready_o,
    input  wire rnic_pkg::host_req_hdr_t                     host_req_hdr_i,
    input  wire logic [511:0]                                host_req_data_i,
    input  wire logic                                        host_req_last_i,
    output logic                                             host_cpl_valid_o,
    input  wire logic                                        host_cpl_ready_i,
    output rnic_pkg::host_cpl_hdr_t                          host_cpl_hdr_o,
    output logic [511:0]                                     host_cpl_data_o,
    output logic                                             host_cpl_last_o,
    output logic                                             dma_req_valid_o,
    input  wire logic                                        dma_req_ready_i,
    output rnic_pkg::dma_req_hdr_t                           dma_req_hdr_o,
    output logic [511:0]                                     dma_req_data_o,
    output logic                                             dma_req_last_o,
    input  wire logic                                        dma_cpl_valid_i,
    output logic                                             dma_cpl_ready_o,
    input  wire rnic_pkg::dma_cpl_hdr_t                      dma_cpl_hdr_i,
    input  wire logic [511:0]                                dma_cpl_data_i,
    input  wire logic                                        dma_cpl_last_i,
    output logic                                             reg_req_valid_o,
    input  wire logic                                        reg_req_ready_i,
    output rnic_pkg::reg_req_t                               reg_req_data_o,
    input  wire logic                                        reg_rsp_valid_i,
    input  wire logic [63:0]                                 reg_rsp_data_i,
    output logic                                             uar_req_valid_o,
    input  wire logic                                        uar_req_ready_i,
    output rnic_pkg::uar_req_t                               uar_req_data_o,
    input  wire logic [2:0]                                  send_rd_req_valid_i,
    output logic [2:0]                                       send_rd_req_ready_o,
    input  wire logic [3*rnic_pkg::DmaRdReqBits-1:0]         send_rd_req_data_i,
    input  wire logic                                        rx_rd_req_valid_i,
    output logic                                             rx_rd_req_ready_o,
    input  wire rnic_pkg::dma_rd_req_t                       rx_rd_req_data_i,
    input  wire logic                                        admin_rd_req_valid_i,
    output logic                                             admin_rd_req_ready_o,
    input  wire rnic_pkg::dma_rd_req_t                       admin_rd_req_data_i,
    output logic [2:0]                                       send_rd_rsp_valid_o,
    input  wire logic [2:0]                                  send_rd_rsp_ready_i,
    output logic [3*rnic_pkg::DmaRdRspBits-1:0]              send_rd_rsp_data_o,
    output logic                                             rx_rd_rsp_valid_o,
    input  wire logic                                        rx_rd_rsp_ready_i,
    output rnic_pkg::dma_rd_rsp_t                            rx_rd_rsp_data_o,
    output logic                                             admin_rd_rsp_valid_o,
    input  wire logic                                        admin_rd_rsp_ready_i,
    output rnic_pkg::dma_rd_rsp_t                            admin_rd_rsp_data_o,
    input  wire logic                                        send_wr_valid_i,
    output logic                                             send_wr_ready_o,
    input  wire rnic_pkg::dma_wr_t                           send_wr_data_i,
    output logic                                             send_wr_done_o,
    input  wire logic                                        msix_wr_valid_i,
    output logic                                             msix_wr_ready_o,
    input  wire rnic_pkg::dma_wr_t                           msix_wr_data_i,
    output logic                                             msix_wr_done_o,
    input  wire logic                                        admin_wr_valid_i,
    output logic                                             admin_wr_ready_o,
    input  wire rnic_pkg::dma_wr_t                           admin_wr_data_i,
    output logic                                             admin_wr_done_o,
    input  wire logic [1:0]                                  cpl_wr_valid_i,
    output logic [1:0]                                       cpl_wr_ready_o,
    input  wire logic [2*rnic_pkg::DmaWrBits-1:0]            cpl_wr_data_i,
    output logic [1:0]                                       cpl_wr_done_o,
    input  wire logic                                        rx_wr_valid_i,
    output logic                                             rx_wr_ready_o,
    input  wire rnic_pkg::dma_wr_t                           rx_wr_data_i,
    output logic                                             rx_wr_done_o,
    input  wire logic [1:0]                                  send_xlate_req_valid_i,
    output logic [1:0]                                       send_xlate_req_ready_o,
    input  wire logic [2*rnic_pkg::XlateReqBits-1:0]         send_xlate_req_data_i,
    input  wire logic                                        rx_xlate_req_valid_i,
    output logic                                             rx_xlate_req_ready_o,
    input  wire rnic_pkg::xlate_req_t                        rx_xlate_req_data_i,
    output logic [1:0]                                       send_xlate_rsp_valid_o,
    input  wire logic [1:0]                                  send_xlate_rsp_ready_i,
    output logic                                             rx_xlate_rsp_valid_o,
    input  wire logic                                        rx_xlate_rsp_ready_i,
    output rnic_pkg::xlate_rsp_t                             rx_xlate_rsp_data_o,
    input  wire logic [1:0]                                  send_xlate_retire_valid_i,
    input  wire logic [1:0]                                  send_xlate_retire_epoch_i,
    input  wire logic                                        rx_xlate_retire_valid_i,
    input  wire logic                                        rx_xlate_retire_epoch_i,
    output logic                                             memory_ready_o,
    output logic                                             pending_o,
    output rnic_pkg::xlate_rsp_t                             tx_xlate_rsp_data_o,
    input  wire logic                                        admin_mem_op_valid_i,
    output logic                                             admin_mem_op_ready_o,
    input  wire rnic_pkg::mem_op_t                           admin_mem_op_data_i,
    input  wire logic                                        rx_mem_op_valid_i,
    output logic                                             rx_mem_op_ready_o,
    input  wire rnic_pkg::mem_op_t                           rx_mem_op_data_i,
    input  wire logic                                        sq_mem_op_valid_i,
    output logic                                             sq_mem_op_ready_o,
    input  wire rnic_pkg::mem_op_t                           sq_mem_op_data_i,
    input  wire logic                                        unbind_mem_op_valid_i,
    output logic                                             unbind_mem_op_ready_o,
    input  wire rnic_pkg::mem_op_t                           unbind_mem_op_data_i,
    output logic                                             unbind_mem_op_rsp_valid_o,
    input  wire logic                                        unbinding_i,
    output logic                                             admin_mem_op_rsp_valid_o,
    output logic                                             rx_mem_op_rsp_valid_o,
    input  wire logic                                        rx_mem_op_rsp_ready_i,
    input  wire logic                                        sq_mem_list_valid_i,
    output logic                                             sq_mem_list_ready_o,
    input  wire rnic_pkg::mem_list_t                         sq_mem_list_data_i,
    output logic                                             sq_mem_op_rsp_valid_o,
    input  wire logic                                        sq_mem_op_rsp_ready_i,
    output rnic_pkg::mem_op_rsp_t                            mem_op_rsp_data_o,
    input  wire logic                                        mpt_req_valid_i,
    output logic                                             mpt_req_ready_o,
    input  wire rnic_pkg::mpt_t                              mpt_req_data_i,
    input  wire logic [rnic_pkg::MptIndexBits-1:0]           mpt_req_index_i,
    input  wire logic                                        mpt_req_write_i,
    output logic                                             mpt_rsp_valid_o,
    output rnic_pkg::mpt_t                                   mpt_rsp_data_o,
    input  wire logic                                        drain_valid_i,
    output logic                                             drain_ready_o,
    output logic [rnic_pkg::NumCounters-1:0]                 ev_memory_o
);
  localparam int unsigned RdClients = 6, WrClients = 6;
  logic pages_req_valid, pages_req_ready, pages_rsp_valid, pages_rsp_ready, port_req_valid,
      port_req_ready, port_rsp_valid, port_rsp_ready, port_retire_valid, port_retire_epoch;
  rnic_pkg::dma_rd_req_t pages_req;
  rnic_pkg::dma_rd_rsp_t pages_rsp;
  logic [rnic_pkg::NumCounters-1:0] ev_pcie, ev_xlate;
  logic xlate_busy;
  rnic_pkg::xlate_req_t port_req_data;

  `STREAM(rnic_pkg::mem_op_t, admin_op);
  `STREAM(rnic_pkg::mem_op_t, sq_op);
  logic admin_op_rsp_valid, admin_op_rsp_ready, sq_op_rsp_valid, sq_op_rsp_ready;

  logic edge_awake, xlate_awake;
  assign awake_o = edge_awake || xlate_awake;
  logic xlate_clk;
  room_clock u_xlate_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(xlate_clk), .awake_o(xlate_awake),
      .stir_i(|{!memory_ready_o, xlate_busy, port_req_valid, send_xlate_req_valid_i[0],
          port_rsp_valid, send_xlate_rsp_valid_o[0], port_retire_valid,
          send_xlate_retire_valid_i[0], unbind_mem_op_valid_i, admin_op_valid, rx_mem_op_valid_i,
          sq_op_valid, unbind_mem_op_rsp_valid_o, admin_op_rsp_valid, rx_mem_op_rsp_valid_o,
          sq_op_rsp_valid, mpt_req_valid_i, mpt_rsp_valid_o, drain_valid_i, pages_req_valid,
          pages_rsp_valid, sq_mem_list_valid_i})
  );

  pcie_edge #(.RdClients(RdClients), .WrClients(WrClients)) u_pcie_edge (
      .clk_i, .rst_ni, .clk_open_i, .moved_i, .awake_o(edge_awake), .cycles_i, .rest_o,
      .cfg_max_payload_i, .cfg_max_read_req_i, .cfg_bus_master_i, .cfg_ext_tag_i,
      .enable_i(device_enable_i), .completion_timeout_i, .cfg_cpl_timeout_disable_i,
      .dma_req_np_hold_i,
      .host_req_valid_i, .host_req_ready_o, .host_req_hdr_i, .host_req_data_i, .host_req_last_i,
      .host_cpl_valid_o, .host_cpl_ready_i, .host_cpl_hdr_o, .host_cpl_data_o,
      .host_cpl_last_o,
      .dma_req_valid_o, .dma_req_ready_i, .dma_req_hdr_o, .dma_req_data_o, .dma_req_last_o,
      .dma_cpl_valid_i, .dma_cpl_ready_o, .dma_cpl_hdr_i, .dma_cpl_data_i, .dma_cpl_last_i,
      .reg_req_valid_o, .reg_req_ready_i, .reg_req_data_o,
      .reg_rsp_valid_i, .reg_rsp_data_i,
      .uar_req_valid_o, .uar_req_ready_i, .uar_req_data_o,
      .rd_req_valid_i({send_rd_req_valid_i[2:1], pages_req_valid, rx_rd_req_valid_i,
          send_rd_req_valid_i[0], admin_rd_req_valid_i}),
      .rd_req_ready_o({send_rd_req_ready_o[2:1], pages_req_ready, rx_rd_req_ready_o,
          send_rd_req_ready_o[0], admin_rd_req_ready_o}),
      .rd_req_data_i({send_rd_req_data_i[rnic_pkg::DmaRdReqBits+:2*rnic_pkg::DmaRdReqBits],
          pages_req, rx_rd_req_data_i, send_rd_req_data_i[0+:rnic_pkg::DmaRdReqBits],
          admin_rd_req_data_i}),
      .rd_rsp_valid_o({send_rd_rsp_valid_o[2:1], pages_rsp_valid, rx_rd_rsp_valid_o,
          send_rd_rsp_valid_o[0], admin_rd_rsp_valid_o}),
      .rd_rsp_ready_i({send_rd_rsp_ready_i[2:1], pages_rsp_ready, rx_rd_rsp_ready_i,
          send_rd_rsp_ready_i[0], admin_rd_rsp_ready_i}),
      .rd_rsp_data_o({send_rd_rsp_data_o[rnic_pkg::DmaRdRspBits+:2*rnic_pkg::DmaRdRspBits],
          pages_rsp, rx_rd_rsp_data_o, send_rd_rsp_data_o[0+:rnic_pkg::DmaRdRspBits],
          admin_rd_rsp_data_o}),
      .wr_valid_i({send_wr_valid_i, msix_wr_valid_i, admin_wr_valid_i, cpl_wr_valid_i,
          rx_wr_valid_i}),
      .wr_ready_o({send_wr_ready_o, msix_wr_ready_o, admin_wr_ready_o, cpl_wr_ready_o,
          rx_wr_ready_o}),
      .wr_data_i({send_wr_data_i, msix_wr_data_i, admin_wr_data_i, cpl_wr_data_i, rx_wr_data_i}),
      .wr_done_o({send_wr_done_o, msix_wr_done_o, admin_wr_done_o, cpl_wr_done_o, rx_wr_done_o}),
      .pending_o, .event_o(ev_pcie)
  );

  assign ev_memory_o   = ev_pcie | ev_xlate;

  // Port 0 of the translation is the send path's, port 1 is shared.
  xlate_share u_xlate_share (
      .clk_i, .rst_ni,
      .req_valid_i({send_xlate_req_valid_i[1], rx_xlate_req_valid_i}),
      .req_ready_o({send_xlate_req_ready_o[1], rx_xlate_req_ready_o}),
      .req_data_i({send_xlate_req_data_i[rnic_pkg::XlateReqBits+:rnic_pkg::XlateReqBits],
          rx_xlate_req_data_i}),
      .rsp_valid_o({send_xlate_rsp_valid_o[1], rx_xlate_rsp_valid_o}),
      .rsp_ready_i({send_xlate_rsp_ready_i[1], rx_xlate_rsp_ready_i}),
      .retire_valid_i({send_xlate_retire_valid_i[1], rx_xlate_retire_valid_i}),
      .retire_epoch_i({send_xlate_retire_epoch_i[1], rx_xlate_retire_epoch_i}),
      .port_req_valid_o(port_req_valid), .port_req_ready_i(port_req_ready),
      .port_req_data_o(port_req_data),
      .port_rsp_valid_i(port_rsp_valid), .port_rsp_ready_o(port_rsp_ready),
      .port_retire_valid_o(port_retire_valid), .port_retire_epoch_o(port_retire_epoch)
  );

  // What something bound may refuse.
  mem_op_again u_admin_again (
      .clk_i, .rst_ni, .unbinding_i, .unbound_i(unbind_mem_op_rsp_valid_o),
      .in_valid_i(admin_mem_op_valid_i), .in_ready_o(admin_mem_op_ready_o),
      .in_data_i(admin_mem_op_data_i),
      .in_rsp_valid_o(admin_mem_op_rsp_valid_o), .in_rsp_ready_i(1'b1),
      `STREAM_OUT_AS(out, admin_op), `HANDSHAKE_IN_AS(out_rsp, admin_op_rsp),
      .rsp_status_i(mem_op_rsp_data_o.status)
  );
  mem_op_again u_sq_again (
      .clk_i, .rst_ni, .unbinding_i, .unbound_i(unbind_mem_op_rsp_valid_o),
      .in_valid_i(sq_mem_op_valid_i), .in_ready_o(sq_mem_op_ready_o), .in_data_i(sq_mem_op_data_i),
      .in_rsp_valid_o(sq_mem_op_rsp_valid_o), .in_rsp_ready_i(sq_mem_op_rsp_ready_i),
      `STREAM_OUT_AS(out, sq_op), `HANDSHAKE_IN_AS(out_rsp, sq_op_rsp),
      .rsp_status_i(mem_op_rsp_data_o.status)
  );

  xlate u_xlate (
      .clk_i(xlate_clk), .rst_ni,
      .ready_o(memory_ready_o), .busy_o(xlate_busy),
      .req_valid_i({port_req_valid, send_xlate_req_valid_i[0]}),
      .req_ready_o({port_req_ready, send_xlate_req_ready_o[0]}),
      .req_data_i({port_req_data, send_xlate_req_data_i[0+:rnic_pkg::XlateReqBits]}),
      .rsp_valid_o({port_rsp_valid, send_xlate_rsp_valid_o[0]}),
      .rsp_ready_i({port_rsp_ready, send_xlate_rsp_ready_i[0]}),
      .rsp_data_o({rx_xlate_rsp_data_o, tx_xlate_rsp_data_o}),
      .retire_valid_i({port_retire_valid, send_xlate_retire_valid_i[0]}),
      .retire_epoch_i({port_retire_epoch, send_xlate_retire_epoch_i[0]}),
      .mem_op_valid_i({unbind_mem_op_valid_i, admin_op_valid, rx_mem_op_valid_i, sq_op_valid}),
      .mem_op_ready_o({unbind_mem_op_ready_o, admin_op_ready, rx_mem_op_ready_o, sq_op_ready}),
      .mem_op_data_i({unbind_mem_op_data_i, admin_op_data, rx_mem_op_data_i, sq_op_data}),
      .mem_op_rsp_valid_o({unbind_mem_op_rsp_valid_o, admin_op_rsp_valid, rx_mem_op_rsp_valid_o,
          sq_op_rsp_valid}),
      .mem_op_rsp_ready_i({1'b1, admin_op_rsp_ready, rx_mem_op_rsp_ready_i, sq_op_rsp_ready}),
      .mem_op_rsp_data_o, .mem_list_valid_i(sq_mem_list_valid_i),
      .mem_list_ready_o(sq_mem_list_ready_o), .mem_list_data_i(sq_mem_list_data_i),
      .mpt_req_valid_i, .mpt_req_ready_o, .mpt_req_write_i, .mpt_req_index_i, .mpt_req_data_i,
      .mpt_rsp_valid_o, .mpt_rsp_data_o,
      .drain_valid_i, .drain_ready_o,
      .rd_req_valid_o(pages_req_valid), .rd_req_ready_i(pages_req_ready), .rd_req_data_o(pages_req),
      .rd_rsp_valid_i(pages_rsp_valid), .rd_rsp_ready_o(pages_rsp_ready), .rd_rsp_data_i(pages_rsp),
      .event_o(ev_xlate)
  );
endmodule

`default_nettype wire
