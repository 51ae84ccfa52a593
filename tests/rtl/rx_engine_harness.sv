`default_nettype none

/// The receive engine with its three context managers, each with a second client for the test.
/// Path, Read ring and what has been sent are the test's.
module rx_engine_harness (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           contexts_ready_o,
    input  wire logic                      test_send_acq_valid_i,
    output logic                           test_send_acq_ready_o,
    input  wire logic [7:0]                test_send_acq_index_i,
    output logic                           test_send_ctx_valid_o,
    output rnic_pkg::send_ctx_t           test_send_ctx_data_o,
    input  wire logic                      test_send_rel_valid_i,
    output logic                           test_send_rel_ready_o,
    input  wire rnic_pkg::send_ctx_t       test_send_rel_data_i,
    input  wire logic                      test_recv_acq_valid_i,
    output logic                           test_recv_acq_ready_o,
    input  wire logic [7:0]                test_recv_acq_index_i,
    output logic                           test_recv_ctx_valid_o,
    output rnic_pkg::recv_ctx_t           test_recv_ctx_data_o,
    input  wire logic                      test_recv_rel_valid_i,
    output logic                           test_recv_rel_ready_o,
    input  wire rnic_pkg::recv_ctx_t       test_recv_rel_data_i,
    input  wire logic                      test_srq_acq_valid_i,
    output logic                           test_srq_acq_ready_o,
    input  wire logic [7:0]                test_srq_acq_index_i,
    output logic                           test_srq_ctx_valid_o,
    output rnic_pkg::srq_ctx_t             test_srq_ctx_data_o,
    input  wire logic                      test_srq_rel_valid_i,
    output logic                           test_srq_rel_ready_o,
    input  wire rnic_pkg::srq_ctx_t        test_srq_rel_data_i,
    output logic                           limit_valid_o,
    output logic [7:0]                     limit_srq_o,
    output logic [19:0]                    rx_entered_o,
    output logic [19:0]                    rx_left_o,
    input  wire logic                      desc_valid_i,
    output logic                           desc_ready_o,
    input  wire rnic_pkg::rx_desc_t        desc_data_i,
    input  wire logic                      payload_valid_i,
    output logic                           payload_ready_o,
    input  wire rnic_pkg::payload_beat_t   payload_data_i,
    output logic                           judged_valid_o,
    output logic                           held_o,
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
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic                           established_valid_o,
    output logic [7:0]                     established_qp_o,
    output logic                         timer_valid_o,
    output rnic_pkg::timer_event_t       timer_data_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o,
    output logic [rnic_pkg::QpCounters-1:0] qp_event_o,
    output logic [7:0]                   qp_event_qp_o,
    output logic                         place_fault_o,
    output logic [7:0]                   place_fault_qp_o
);
  logic [2:0] ready;
  assign contexts_ready_o = ready == 3'b111;

  // Clients 0 and 1 are the engine's.
  logic [2:0] send_acq_ready, send_ctx_valid, send_rel_ready, send_contended;
  logic [1:0] send_acq_valid, send_rel_valid, send_rel_write;
  logic [7:0] send_acq_index;
  rnic_pkg::send_ctx_t send_ctx, send_rel_data;
  ctx_manager #(
      .Width(rnic_pkg::SendCtxBits),
      .Entries(256),
      .Clients(3)
  ) u_send (
      .clk_i,
      .rst_ni,
      .ready_o    (ready[0]),
      .acq_valid_i({test_send_acq_valid_i, send_acq_valid}),
      .acq_ready_o(send_acq_ready),
      .acq_index_i({test_send_acq_index_i, send_acq_index, send_acq_index}),
      .ctx_valid_o(send_ctx_valid),
      .ctx_data_o (send_ctx),
      .rel_valid_i({test_send_rel_valid_i, send_rel_valid}),
      .rel_ready_o(send_rel_ready),
      .rel_write_i({1'b1, send_rel_write}),
      .rel_data_i ({test_send_rel_data_i, send_rel_data, send_rel_data}),
      .contended_o(send_contended)
  );
  assign test_send_acq_ready_o = send_acq_ready[2];
  assign test_send_ctx_valid_o = send_ctx_valid[2];
  assign test_send_ctx_data_o  = send_ctx;
  assign test_send_rel_ready_o = send_rel_ready[2];

  // Clients 0 and 1 are the engine's.
  logic [2:0] recv_acq_ready, recv_ctx_valid, recv_rel_ready, recv_contended;
  logic [1:0] recv_acq_valid, recv_rel_valid, recv_rel_write;
  logic [7:0] recv_acq_index;
  rnic_pkg::recv_ctx_t recv_ctx, recv_rel_data;
  ctx_manager #(
      .Width(rnic_pkg::RecvCtxBits),
      .Entries(256),
      .Clients(3)
  ) u_recv (
      .clk_i,
      .rst_ni,
      .ready_o    (ready[1]),
      .acq_valid_i({test_recv_acq_valid_i, recv_acq_valid}),
      .acq_ready_o(recv_acq_ready),
      .acq_index_i({test_recv_acq_index_i, recv_acq_index, recv_acq_index}),
      .ctx_valid_o(recv_ctx_valid),
      .ctx_data_o (recv_ctx),
      .rel_valid_i({test_recv_rel_valid_i, recv_rel_valid}),
      .rel_ready_o(recv_rel_ready),
      .rel_write_i({1'b1, recv_rel_write}),
      .rel_data_i ({test_recv_rel_data_i, recv_rel_data, recv_rel_data}),
      .contended_o(recv_contended)
  );
  assign test_recv_acq_ready_o = recv_acq_ready[2];
  assign test_recv_ctx_valid_o = recv_ctx_valid[2];
  assign test_recv_ctx_data_o  = recv_ctx;
  assign test_recv_rel_ready_o = recv_rel_ready[2];

  logic [1:0] srq_acq_ready, srq_ctx_valid, srq_rel_ready, srq_contended;
  logic srq_acq_valid, srq_rel_valid, srq_rel_write;
  logic [7:0] srq_acq_index;
  rnic_pkg::srq_ctx_t srq_ctx, srq_rel_data;
  ctx_manager #(
      .Width(rnic_pkg::SrqCtxBits),
      .Entries(256),
      .Clients(2)
  ) u_srq (
      .clk_i,
      .rst_ni,
      .ready_o    (ready[2]),
      .acq_valid_i({test_srq_acq_valid_i, srq_acq_valid}),
      .acq_ready_o(srq_acq_ready),
      .acq_index_i({test_srq_acq_index_i, srq_acq_index}),
      .ctx_valid_o(srq_ctx_valid),
      .ctx_data_o (srq_ctx),
      .rel_valid_i({test_srq_rel_valid_i, srq_rel_valid}),
      .rel_ready_o(srq_rel_ready),
      .rel_write_i({1'b1, srq_rel_write}),
      .rel_data_i ({test_srq_rel_data_i, srq_rel_data}),
      .contended_o(srq_contended)
  );
  assign test_srq_acq_ready_o = srq_acq_ready[1];
  assign test_srq_ctx_valid_o = srq_ctx_valid[1];
  assign test_srq_ctx_data_o  = srq_ctx;
  assign test_srq_rel_ready_o = srq_rel_ready[1];

  rx_engine u_engine (
      .clk_i,
      .rst_ni,
      .desc_valid_i,
      .desc_ready_o,
      .desc_data_i,
      .payload_valid_i,
      .payload_ready_o,
      .payload_data_i,
      .judged_valid_o,
      .held_o,
      .read_slot_en_o,
      .read_slot_addr_o,
      .read_slot_data_i,
      .path_rd_en_o,
      .path_rd_qp_o,
      .path_rd_data_i,
      .reach_data_i,
      .xlate_req_valid_o,
      .xlate_req_ready_i,
      .xlate_req_data_o,
      .xlate_rsp_valid_i,
      .xlate_rsp_ready_o,
      .xlate_rsp_data_i,
      .xlate_retire_valid_o,
      .xlate_retire_epoch_o,
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
      .done_valid_o,
      .done_ready_i,
      .done_data_o,
      .qp_reset_valid_i,
      .qp_reset_ready_o,
      .qp_reset_qp_i,
      .established_valid_o,
      .established_qp_o,
      .timer_valid_o,
      .timer_data_o,
      .event_o,
      .qp_event_o,
      .qp_event_qp_o,
      .place_fault_o,
      .place_fault_qp_o,
      .send_acq_valid_o(send_acq_valid),
      .send_acq_ready_i(send_acq_ready[1:0]),
      .send_acq_index_o(send_acq_index),
      .send_ctx_valid_i(send_ctx_valid[1:0]),
      .send_ctx_data_i(send_ctx),
      .send_rel_valid_o(send_rel_valid),
      .send_rel_ready_i(send_rel_ready[1:0]),
      .send_rel_write_o(send_rel_write),
      .send_rel_data_o(send_rel_data),
      .send_contended_i(send_contended[1:0]),
      .recv_acq_valid_o(recv_acq_valid),
      .recv_acq_ready_i(recv_acq_ready[1:0]),
      .recv_acq_index_o(recv_acq_index),
      .recv_ctx_valid_i(recv_ctx_valid[1:0]),
      .recv_ctx_data_i(recv_ctx),
      .recv_rel_valid_o(recv_rel_valid),
      .recv_rel_ready_i(recv_rel_ready[1:0]),
      .recv_rel_write_o(recv_rel_write),
      .recv_rel_data_o(recv_rel_data),
      .recv_contended_i(recv_contended[1:0]),
      .srq_acq_valid_o(srq_acq_valid),
      .srq_acq_ready_i(srq_acq_ready[0]),
      .srq_acq_index_o(srq_acq_index),
      .srq_ctx_valid_i(srq_ctx_valid[0]),
      .srq_ctx_data_i (srq_ctx),
      .srq_rel_valid_o(srq_rel_valid),
      .srq_rel_ready_i(srq_rel_ready[0]),
      .srq_rel_write_o(srq_rel_write),
      .srq_rel_data_o (srq_rel_data),
      .limit_valid_o,
      .limit_srq_o,
      .rx_entered_o,
      .rx_left_o
  );

  logic unused_bits;
  assign unused_bits = &{1'b0, send_contended[2], recv_contended[2], srq_contended};
endmodule

`default_nettype wire
