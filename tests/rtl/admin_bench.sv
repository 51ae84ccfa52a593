`default_nettype none

/// The admin queue with real context managers. Client 0 of each is the admin queue, client 1 the
/// test, which plays the rest of the NIC.
module admin_bench (
    input  wire logic                         clk_i,
    input  wire logic                         rst_ni,
    output logic                              ready_o,
    input  wire logic                         enable_i,
    input  wire logic [63:0]                  command_base_i,
    input  wire logic [63:0]                  completion_base_i,
    input  wire rnic_pkg::reg_admin_config_t  config_i,
    input  wire logic                         restart_i,
    input  wire logic [15:0]                  producer_index_i,
    output logic                              fatal_o,
    output logic                              executed_o,
    output logic                              rd_req_valid_o,
    input  wire logic                         rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t             rd_req_data_o,
    input  wire logic                         rd_rsp_valid_i,
    output logic                              rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t        rd_rsp_data_i,
    output logic                              wr_valid_o,
    input  wire logic                         wr_ready_i,
    output rnic_pkg::dma_wr_t                 wr_data_o,
    input  wire logic                         wr_done_i,
    output logic                              irq_valid_o,
    input  wire logic                         irq_ready_i,
    output logic [7:0]                        irq_vector_o,
    output logic                              sq_wake_valid_o,
    output logic [7:0]                        sq_wake_qp_o,
    output logic                              path_wr_valid_o,
    output logic [7:0]                        path_wr_qp_o,
    output rnic_pkg::path_t                   path_wr_data_o,
    output logic                              mpt_req_valid_o,
    input  wire logic                         mpt_req_ready_i,
    output logic                              mpt_req_write_o,
    output logic [rnic_pkg::MptIndexBits-1:0] mpt_req_index_o,
    output rnic_pkg::mpt_t                    mpt_req_data_o,
    input  wire logic                         mpt_rsp_valid_i,
    input  wire rnic_pkg::mpt_t               mpt_rsp_data_i,
    output logic                              mem_op_valid_o,
    input  wire logic                         mem_op_ready_i,
    output rnic_pkg::mem_op_t                 mem_op_data_o,
    input  wire logic                         mem_op_rsp_valid_i,
    input  wire rnic_pkg::mem_op_rsp_t        mem_op_rsp_data_i,
    output logic                              drain_valid_o,
    input  wire logic                         drain_ready_i,
    output logic                              qp_reset_valid_o,
    input  wire logic                         qp_reset_ready_i,
    output logic [7:0]                        qp_reset_qp_o,
    input  wire logic                         flushing_i,
    output logic                              qp_error_valid_o,
    input  wire logic                         qp_error_ready_i,
    output rnic_pkg::qp_error_t               qp_error_data_o,
    output logic                              query_valid_o,
    output logic [7:0]                        query_qp_o,
    output logic                              query_upper_o,
    output logic                              query_clear_o,
    input  wire logic                         query_done_i,
    input  wire rnic_pkg::admin_qp_counters_t query_counts_i,
    // The test's client, bit i is CtxKind i
    input  wire logic [4:0]                   nic_acq_valid_i,
    output logic [4:0]                        nic_acq_ready_o,
    input  wire logic [7:0]                   nic_acq_index_i,
    output logic [4:0]                        nic_ctx_valid_o,
    output rnic_pkg::send_ctx_t               nic_send_o,
    output rnic_pkg::recv_ctx_t               nic_recv_o,
    output rnic_pkg::cq_ctx_t                 nic_cq_o,
    output rnic_pkg::eq_ctx_t                 nic_eq_o,
    output rnic_pkg::srq_ctx_t                nic_srq_o,
    input  wire logic [4:0]                   nic_rel_valid_i,
    output logic [4:0]                        nic_rel_ready_o,
    input  wire logic                         nic_rel_write_i,
    input  wire rnic_pkg::send_ctx_t          nic_send_i,
    input  wire rnic_pkg::recv_ctx_t          nic_recv_i,
    input  wire rnic_pkg::cq_ctx_t            nic_cq_i,
    input  wire rnic_pkg::eq_ctx_t            nic_eq_i,
    input  wire rnic_pkg::srq_ctx_t           nic_srq_i
);
  logic [4:0] acq_valid, acq_ready, ctx_valid, rel_valid, rel_ready, ctx_ready;
  logic [7:0] acq_index;
  logic rel_write, admin_ready;
  rnic_pkg::send_ctx_t send_ctx;
  rnic_pkg::recv_ctx_t recv_ctx;
  rnic_pkg::cq_ctx_t cq_ctx;
  rnic_pkg::eq_ctx_t eq_ctx;
  rnic_pkg::srq_ctx_t srq_ctx;

  assign ready_o = admin_ready && (&ctx_ready);

  logic multicast_valid, multicast_done, unused_found, unused_hit, unused_any, unused_busy;
  logic [1:0] multicast_status;
  logic [3:0] unused_group;
  logic [15:0] unused_words, unused_word, unused_tag;
  rnic_pkg::multicast_op_t multicast;
  multicast_groups u_groups (
      .clk_i, .rst_ni,
      .op_valid_i(multicast_valid), .op_i(multicast), .op_done_o(multicast_done),
      .op_status_o(multicast_status), .find_valid_i(1'b0), .find_mgid_i('0),
      .found_o(unused_found), .found_hit_o(unused_hit), .found_group_o(unused_group),
      .found_words_o(unused_words), .in_use_i(1'b0), .word_en_i(1'b0), .word_group_i('0),
      .word_index_i('0), .word_o(unused_word), .tag_en_i(1'b0), .tag_qp_i('0),
      .tag_o(unused_tag), .any_o(unused_any)
  );

  admin u_admin (
      .clk_i,
      .rst_ni,
      .busy_o     (unused_busy),
      .ready_o    (admin_ready),
      .enable_i   (enable_i && ready_o),
      .command_base_i,
      .completion_base_i,
      .config_i,
      .restart_i,
      .producer_index_i,
      .fatal_o,
      .executed_o,
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .wr_valid_o,
      .wr_ready_i,
      .wr_data_o,
      .wr_done_i,
      .irq_valid_o,
      .irq_ready_i,
      .irq_vector_o,
      .acq_valid_o(acq_valid),
      .acq_ready_i(acq_ready),
      .acq_index_o(acq_index),
      .ctx_valid_i(ctx_valid),
      .send_ctx_i (nic_send_o),
      .recv_ctx_i (nic_recv_o),
      .cq_ctx_i   (nic_cq_o),
      .eq_ctx_i   (nic_eq_o),
      .srq_ctx_i  (nic_srq_o),
      .rel_valid_o(rel_valid),
      .rel_ready_i(rel_ready),
      .rel_write_o(rel_write),
      .send_ctx_o (send_ctx),
      .recv_ctx_o (recv_ctx),
      .cq_ctx_o   (cq_ctx),
      .eq_ctx_o   (eq_ctx),
      .srq_ctx_o  (srq_ctx),
      .sq_wake_valid_o,
      .sq_wake_qp_o,
      .path_wr_valid_o,
      .path_wr_qp_o,
      .path_wr_data_o,
      .mpt_req_valid_o,
      .mpt_req_ready_i,
      .mpt_req_write_o,
      .mpt_req_index_o,
      .mpt_req_data_o,
      .mpt_rsp_valid_i,
      .mpt_rsp_data_i,
      .multicast_valid_o (multicast_valid),
      .multicast_data_o  (multicast),
      .multicast_done_i  (multicast_done),
      .multicast_status_i(multicast_status),
      .mem_op_valid_o,
      .mem_op_ready_i,
      .mem_op_data_o,
      .mem_op_rsp_valid_i,
      .mem_op_rsp_data_i,
      .drain_valid_o,
      .drain_ready_i,
      .qp_reset_valid_o,
      .qp_reset_ready_i,
      .qp_reset_qp_o,
      .flushing_i,
      .qp_error_valid_o,
      .qp_error_ready_i,
      .qp_error_data_o,
      .query_valid_o,
      .query_qp_o,
      .query_upper_o,
      .query_clear_o,
      .query_done_i,
      .query_counts_i
  );

  logic [1:0] unused_contended_send;
  ctx_manager #(
      .Width  (rnic_pkg::SendCtxBits),
      .Entries(256),
      .Clients(2)
  ) u_send (
      .clk_i,
      .rst_ni,
      .ready_o    (ctx_ready[0]),
      .acq_valid_i({nic_acq_valid_i[0], acq_valid[0]}),
      .acq_ready_o({nic_acq_ready_o[0], acq_ready[0]}),
      .acq_index_i({nic_acq_index_i, acq_index}),
      .ctx_valid_o({nic_ctx_valid_o[0], ctx_valid[0]}),
      .ctx_data_o (nic_send_o),
      .rel_valid_i({nic_rel_valid_i[0], rel_valid[0]}),
      .rel_ready_o({nic_rel_ready_o[0], rel_ready[0]}),
      .rel_write_i({nic_rel_write_i, rel_write}),
      .rel_data_i ({nic_send_i, send_ctx}),
      .contended_o(unused_contended_send)
  );

  logic [1:0] unused_contended_recv;
  ctx_manager #(
      .Width  (rnic_pkg::RecvCtxBits),
      .Entries(256),
      .Clients(2)
  ) u_recv (
      .clk_i,
      .rst_ni,
      .ready_o    (ctx_ready[1]),
      .acq_valid_i({nic_acq_valid_i[1], acq_valid[1]}),
      .acq_ready_o({nic_acq_ready_o[1], acq_ready[1]}),
      .acq_index_i({nic_acq_index_i, acq_index}),
      .ctx_valid_o({nic_ctx_valid_o[1], ctx_valid[1]}),
      .ctx_data_o (nic_recv_o),
      .rel_valid_i({nic_rel_valid_i[1], rel_valid[1]}),
      .rel_ready_o({nic_rel_ready_o[1], rel_ready[1]}),
      .rel_write_i({nic_rel_write_i, rel_write}),
      .rel_data_i ({nic_recv_i, recv_ctx}),
      .contended_o(unused_contended_recv)
  );

  logic [1:0] unused_contended_cq;
  ctx_manager #(
      .Width  (rnic_pkg::CqCtxBits),
      .Entries(256),
      .Clients(2)
  ) u_cq (
      .clk_i,
      .rst_ni,
      .ready_o    (ctx_ready[2]),
      .acq_valid_i({nic_acq_valid_i[2], acq_valid[2]}),
      .acq_ready_o({nic_acq_ready_o[2], acq_ready[2]}),
      .acq_index_i({nic_acq_index_i, acq_index}),
      .ctx_valid_o({nic_ctx_valid_o[2], ctx_valid[2]}),
      .ctx_data_o (nic_cq_o),
      .rel_valid_i({nic_rel_valid_i[2], rel_valid[2]}),
      .rel_ready_o({nic_rel_ready_o[2], rel_ready[2]}),
      .rel_write_i({nic_rel_write_i, rel_write}),
      .rel_data_i ({nic_cq_i, cq_ctx}),
      .contended_o(unused_contended_cq)
  );

  logic [1:0] unused_contended_eq;
  ctx_manager #(
      .Width  (rnic_pkg::EqCtxBits),
      .Entries(32),
      .Clients(2)
  ) u_eq (
      .clk_i,
      .rst_ni,
      .ready_o    (ctx_ready[3]),
      .acq_valid_i({nic_acq_valid_i[3], acq_valid[3]}),
      .acq_ready_o({nic_acq_ready_o[3], acq_ready[3]}),
      .acq_index_i({nic_acq_index_i[4:0], acq_index[4:0]}),
      .ctx_valid_o({nic_ctx_valid_o[3], ctx_valid[3]}),
      .ctx_data_o (nic_eq_o),
      .rel_valid_i({nic_rel_valid_i[3], rel_valid[3]}),
      .rel_ready_o({nic_rel_ready_o[3], rel_ready[3]}),
      .rel_write_i({nic_rel_write_i, rel_write}),
      .rel_data_i ({nic_eq_i, eq_ctx}),
      .contended_o(unused_contended_eq)
  );

  logic [1:0] unused_contended_srq;
  ctx_manager #(
      .Width  (rnic_pkg::SrqCtxBits),
      .Entries(256),
      .Clients(2)
  ) u_srq (
      .clk_i,
      .rst_ni,
      .ready_o    (ctx_ready[4]),
      .acq_valid_i({nic_acq_valid_i[4], acq_valid[4]}),
      .acq_ready_o({nic_acq_ready_o[4], acq_ready[4]}),
      .acq_index_i({nic_acq_index_i, acq_index}),
      .ctx_valid_o({nic_ctx_valid_o[4], ctx_valid[4]}),
      .ctx_data_o (nic_srq_o),
      .rel_valid_i({nic_rel_valid_i[4], rel_valid[4]}),
      .rel_ready_o({nic_rel_ready_o[4], rel_ready[4]}),
      .rel_write_i({nic_rel_write_i, rel_write}),
      .rel_data_i ({nic_srq_i, srq_ctx}),
      .contended_o(unused_contended_srq)
  );
endmodule

`default_nettype wire
