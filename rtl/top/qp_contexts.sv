`default_nettype none

/// What the NIC keeps of each queue pair: its send context, its receive context, its path.
///
/// The contexts are borrowed (ctx_manager): acq until taken, then one ctx_valid with the context,
/// then rel, with new contents or without. All clients of a kind see one data bus.
///
/// Send contexts, in the order of the clients' turns: 0 admin queue, 1-5 send queue (sq), 6 and 9
/// receive side (rx_send), 7-8 completion side (cpl_send). Receive contexts: 0 admin queue, 1
/// responder (rsp), 2 and 6 receive side (rx_recv), 3-5 completion side (cpl_recv). Bit 0 of
/// admin_* is the send context, bit 1 the receive context. The receive side keeps a context for
/// its next packet as long as nobody else asks for it (contended).
///
/// Paths are written by the admin queue, and read by the send path and the receive side: the data
/// comes a cycle after en.
///
/// qp_contexts_ready_o: all contexts are cleared.
module qp_contexts (
    input  wire logic                                        clk_i,
    input  wire logic                                        rst_ni,
    input  wire logic                                        clk_open_i,
    output logic                                             awake_o,
    input  wire logic [1:0]                                  rx_send_acq_valid_i,
    output logic [1:0]                                       rx_send_acq_ready_o,
    input  wire logic [7:0]                                  rx_send_acq_index_i,
    input  wire logic [1:0]                                  cpl_send_acq_valid_i,
    output logic [1:0]                                       cpl_send_acq_ready_o,
    input  wire logic [2*8-1:0]                              cpl_send_acq_index_i,
    input  wire logic [4:0]                                  sq_acq_valid_i,
    output logic [4:0]                                       sq_acq_ready_o,
    input  wire logic [5*8-1:0]                              sq_acq_index_i,
    input  wire logic [1:0]                                  admin_acq_valid_i,
    output logic [1:0]                                       admin_acq_ready_o,
    input  wire logic [7:0]                                  admin_acq_index_i,
    output logic [1:0]                                       rx_send_ctx_valid_o,
    output logic [1:0]                                       cpl_send_ctx_valid_o,
    output logic [4:0]                                       sq_ctx_valid_o,
    output logic [1:0]                                       admin_ctx_valid_o,
    output rnic_pkg::send_ctx_t                              send_ctx_o,
    input  wire logic [1:0]                                  rx_send_rel_valid_i,
    output logic [1:0]                                       rx_send_rel_ready_o,
    input  wire rnic_pkg::send_ctx_t                         rx_send_rel_data_i,
    input  wire logic [1:0]                                  rx_send_rel_write_i,
    input  wire logic [1:0]                                  cpl_send_rel_valid_i,
    output logic [1:0]                                       cpl_send_rel_ready_o,
    input  wire logic [2*rnic_pkg::SendCtxBits-1:0]          cpl_send_rel_data_i,
    input  wire logic [1:0]                                  cpl_send_rel_write_i,
    input  wire logic [4:0]                                  sq_rel_valid_i,
    output logic [4:0]                                       sq_rel_ready_o,
    input  wire logic [5*rnic_pkg::SendCtxBits-1:0]          sq_rel_data_i,
    input  wire logic [4:0]                                  sq_rel_write_i,
    input  wire logic [1:0]                                  admin_rel_valid_i,
    output logic [1:0]                                       admin_rel_ready_o,
    input  wire logic                                        admin_rel_write_i,
    input  wire rnic_pkg::send_ctx_t                         admin_send_ctx_i,
    input  wire logic [1:0]                                  rx_recv_acq_valid_i,
    output logic [1:0]                                       rx_recv_acq_ready_o,
    input  wire logic [7:0]                                  rx_recv_acq_index_i,
    input  wire logic [2:0]                                  cpl_recv_acq_valid_i,
    output logic [2:0]                                       cpl_recv_acq_ready_o,
    input  wire logic [3*8-1:0]                              cpl_recv_acq_index_i,
    input  wire logic                                        rsp_acq_valid_i,
    output logic                                             rsp_acq_ready_o,
    input  wire logic [7:0]                                  rsp_acq_index_i,
    output logic [1:0]                                       rx_recv_ctx_valid_o,
    output logic [2:0]                                       cpl_recv_ctx_valid_o,
    output logic                                             rsp_ctx_valid_o,
    output rnic_pkg::recv_ctx_t                              recv_ctx_o,
    input  wire logic [1:0]                                  rx_recv_rel_valid_i,
    output logic [1:0]                                       rx_recv_rel_ready_o,
    input  wire rnic_pkg::recv_ctx_t                         rx_recv_rel_data_i,
    input  wire logic [1:0]                                  rx_recv_rel_write_i,
    input  wire logic [2:0]                                  cpl_recv_rel_valid_i,
    output logic [2:0]                                       cpl_recv_rel_ready_o,
    input  wire logic [3*rnic_pkg::RecvCtxBits-1:0]          cpl_recv_rel_data_i,
    input  wire logic [2:0]                                  cpl_recv_rel_write_i,
    input  wire logic                                        rsp_rel_valid_i,
    output logic                                             rsp_rel_ready_o,
    input  wire rnic_pkg::recv_ctx_t                         rsp_rel_data_i,
    input  wire logic                                        rsp_rel_write_i,
    input  wire rnic_pkg::recv_ctx_t                         admin_recv_ctx_i,
    input  wire logic                                        path_wr_valid_i,
    input  wire rnic_pkg::path_t                             path_wr_data_i,
    input  wire logic [7:0]                                  path_wr_qp_i,
    input  wire logic                                        tx_path_rd_en_i,
    input  wire logic [7:0]                                  tx_path_rd_qp_i,
    output rnic_pkg::path_t                                  tx_path_data_o,
    input  wire logic                                        rx_path_rd_en_i,
    input  wire logic [7:0]                                  rx_path_rd_qp_i,
    output rnic_pkg::path_t                                  rx_path_data_o,
    output logic [1:0]                                       sq_contended_o,
    output logic [1:0]                                       rx_send_contended_o,
    output logic [1:0]                                       rx_recv_contended_o,
    output logic                                             qp_contexts_ready_o
);
  localparam int unsigned SendClients = 10, RecvClients = 7;
  logic send_ctx_ready, recv_ctx_ready, unused_contended;
  logic [SendClients-1:0] send_contended;
  logic [RecvClients-1:0] recv_contended;

  logic send_awake, recv_awake;
  assign awake_o = send_awake || recv_awake;
  logic send_clk;
  room_clock u_send_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(send_clk), .awake_o(send_awake),
      .stir_i(|{!send_ctx_ready, rx_send_acq_valid_i, cpl_send_acq_valid_i, sq_acq_valid_i,
          admin_acq_valid_i[0], rx_send_rel_valid_i, cpl_send_rel_valid_i, sq_rel_valid_i,
          admin_rel_valid_i[0]})
  );

  logic recv_clk;
  room_clock u_recv_clock (
      .clk_i, .rst_ni, .open_i(clk_open_i), .clk_o(recv_clk), .awake_o(recv_awake),
      .stir_i(|{!recv_ctx_ready, rx_recv_acq_valid_i, cpl_recv_acq_valid_i, rsp_acq_valid_i,
          admin_acq_valid_i[1], rx_recv_rel_valid_i, cpl_recv_rel_valid_i, rsp_rel_valid_i,
          admin_rel_valid_i[1]})
  );

  ctx_manager #(.Width (rnic_pkg::SendCtxBits), .Entries(256), .Clients(SendClients)) u_send_ctx (
      .clk_i(send_clk), .rst_ni,
      .ready_o(send_ctx_ready),
      .acq_valid_i({rx_send_acq_valid_i[1], cpl_send_acq_valid_i, rx_send_acq_valid_i[0],
          sq_acq_valid_i, admin_acq_valid_i[0]}),
      .acq_ready_o({rx_send_acq_ready_o[1], cpl_send_acq_ready_o, rx_send_acq_ready_o[0],
          sq_acq_ready_o, admin_acq_ready_o[0]}),
      .acq_index_i({rx_send_acq_index_i, cpl_send_acq_index_i, rx_send_acq_index_i,
          sq_acq_index_i, admin_acq_index_i}),
      .ctx_valid_o({rx_send_ctx_valid_o[1], cpl_send_ctx_valid_o, rx_send_ctx_valid_o[0],
          sq_ctx_valid_o, admin_ctx_valid_o[0]}), .ctx_data_o(send_ctx_o),
      .rel_valid_i({rx_send_rel_valid_i[1], cpl_send_rel_valid_i, rx_send_rel_valid_i[0],
          sq_rel_valid_i, admin_rel_valid_i[0]}),
      .rel_ready_o({rx_send_rel_ready_o[1], cpl_send_rel_ready_o, rx_send_rel_ready_o[0],
          sq_rel_ready_o, admin_rel_ready_o[0]}),
      .rel_write_i({rx_send_rel_write_i[1], cpl_send_rel_write_i, rx_send_rel_write_i[0],
          sq_rel_write_i, admin_rel_write_i}),
      .rel_data_i({rx_send_rel_data_i, cpl_send_rel_data_i, rx_send_rel_data_i, sq_rel_data_i,
          admin_send_ctx_i}),
      .contended_o(send_contended)
  );

  ctx_manager #(.Width (rnic_pkg::RecvCtxBits), .Entries(256), .Clients(RecvClients)) u_recv_ctx (
      .clk_i(recv_clk), .rst_ni,
      .ready_o(recv_ctx_ready),
      .acq_valid_i({rx_recv_acq_valid_i[1], cpl_recv_acq_valid_i, rx_recv_acq_valid_i[0],
          rsp_acq_valid_i, admin_acq_valid_i[1]}),
      .acq_ready_o({rx_recv_acq_ready_o[1], cpl_recv_acq_ready_o, rx_recv_acq_ready_o[0],
          rsp_acq_ready_o, admin_acq_ready_o[1]}),
      .acq_index_i({rx_recv_acq_index_i, cpl_recv_acq_index_i, rx_recv_acq_index_i,
          rsp_acq_index_i, admin_acq_index_i}),
      .ctx_valid_o({rx_recv_ctx_valid_o[1], cpl_recv_ctx_valid_o, rx_recv_ctx_valid_o[0],
          rsp_ctx_valid_o, admin_ctx_valid_o[1]}), .ctx_data_o(recv_ctx_o),
      .rel_valid_i({rx_recv_rel_valid_i[1], cpl_recv_rel_valid_i, rx_recv_rel_valid_i[0],
          rsp_rel_valid_i, admin_rel_valid_i[1]}),
      .rel_ready_o({rx_recv_rel_ready_o[1], cpl_recv_rel_ready_o, rx_recv_rel_ready_o[0],
          rsp_rel_ready_o, admin_rel_ready_o[1]}),
      .rel_write_i({rx_recv_rel_write_i[1], cpl_recv_rel_write_i, rx_recv_rel_write_i[0],
          rsp_rel_write_i, admin_rel_write_i}),
      .rel_data_i({rx_recv_rel_data_i, cpl_recv_rel_data_i, rx_recv_rel_data_i, rsp_rel_data_i,
          admin_recv_ctx_i}),
      .contended_o(recv_contended)
  );

  assign qp_contexts_ready_o = send_ctx_ready && recv_ctx_ready;
  assign sq_contended_o      = send_contended[4:3];
  assign rx_send_contended_o = {send_contended[9], send_contended[6]};
  assign rx_recv_contended_o = {recv_contended[6], recv_contended[2]};
  assign unused_contended  = ^{send_contended, recv_contended};

  path_table u_path_table (
      .clk_i,
      .wr_valid_i(path_wr_valid_i), .wr_qp_i(path_wr_qp_i), .wr_data_i(path_wr_data_i),
      .tx_rd_en_i(tx_path_rd_en_i), .tx_rd_qp_i(tx_path_rd_qp_i), .tx_rd_data_o(tx_path_data_o),
      .rx_rd_en_i(rx_path_rd_en_i), .rx_rd_qp_i(rx_path_rd_qp_i), .rx_rd_data_o(rx_path_data_o)
  );
endmodule

`default_nettype wire
