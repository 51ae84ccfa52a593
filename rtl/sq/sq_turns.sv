`default_nettype none

/// Turns of the send queues: gives the QPs that were woken their turns, fetches WQEs into the WQE
/// buffer, and queues the packets that the engine makes, with the Read ring. Send context clients:
/// 0 WQE fetch, 1 and 2 engine. wake_*: one event a port, in any cycle. fail_*: commands that fail
/// a WQE, 0 of the fetch, 1 of the engine. forget_*: the QP gets no turn any more; forget_busy_o
/// as long as something of it is under way. busy_o: as in sq_engine.
module sq_turns #(
    parameter int unsigned Wakes = 4
) (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           busy_o,
    input  wire logic [Wakes-1:0]          wake_valid_i,
    input  wire logic [Wakes*8-1:0]        wake_qp_i,
    output logic [2:0]                     acq_valid_o,
    input  wire logic [2:0]                acq_ready_i,
    output logic [3*8-1:0]                 acq_index_o,
    input  wire logic [2:0]                ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       ctx_data_i,
    input  wire logic [1:0]                contended_i,
    output logic [2:0]                     rel_valid_o,
    input  wire logic [2:0]                rel_ready_i,
    output logic [2:0]                     rel_write_o,
    output logic [3*rnic_pkg::SendCtxBits-1:0] rel_data_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    // Lines of window WQEs
    input  wire logic                      window_valid_i,
    input  wire logic [10:0]               window_addr_i,
    input  wire logic [511:0]              window_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    output logic                           inflight_valid_o,
    output rnic_pkg::inflight_t            inflight_data_o,
    // A memory operation starts; a pulse
    output logic                           mem_valid_o,
    output logic [7:0]                     mem_qp_o,
    output logic [23:0]                    mem_pd_o,
    output rnic_pkg::wqe_control_t         mem_control_o,
    output logic [127:0]                   mem_second_o,
    output logic [127:0]                   mem_third_o,
    // As in sq_list
    input  wire logic                      list_run_i,
    input  wire logic [10:0]               list_addr_i,
    input  wire logic [3:0]                list_lines_i,
    output logic                           mem_list_valid_o,
    input  wire logic                      mem_list_ready_i,
    output rnic_pkg::mem_list_t            mem_list_data_o,
    output logic [1:0]                     fail_valid_o,
    input  wire logic [1:0]                fail_ready_i,
    output logic [2*rnic_pkg::RetireCmdBits-1:0] fail_data_o,
    output logic                           drained_valid_o,
    output logic [7:0]                     drained_qp_o,
    output logic                           begun_valid_o,
    output logic [7:0]                     begun_qp_o,
    input  wire logic                      read_slot_en_i,
    input  wire logic [11:0]               read_slot_addr_i,
    output rnic_pkg::read_slot_t           read_slot_data_o,
    input  wire logic                      forget_valid_i,
    input  wire logic [7:0]                forget_qp_i,
    output logic                           forget_busy_o,
    // The packets that were queued at mark_i have left
    input  wire logic                      mark_i,
    output logic                           drained_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned PieceDepth = 64;

  logic [rnic_pkg::NumCounters-1:0] ev_fetch, ev_engine;
  logic turn_busy, fetch_busy;
  rnic_pkg::send_ctx_t rel_fetch;
  rnic_pkg::retire_cmd_t fail_fetch, fail_engine;
  logic [2*rnic_pkg::SendCtxBits-1:0] rel_engine;
  logic [7:0] acq_fetch;
  logic [2*8-1:0] acq_engine;
  assign rel_data_o    = {rel_engine, rel_fetch};
  assign acq_index_o   = {acq_engine, acq_fetch};
  assign fail_data_o   = {fail_engine, fail_fetch};
  assign event_o       = ev_fetch | ev_engine;
  assign forget_busy_o = turn_busy || fetch_busy || fail_valid_o[1];

  logic run_valid, run_ready, done_valid, done_again, fetch_wake;
  logic [7:0] run_qp, done_qp, fetch_wake_qp;
  qp_scheduler #(
      .Wakes(Wakes + 1)
  ) u_scheduler (
      .clk_i,
      .rst_ni,
      .wake_valid_i  ({wake_valid_i, fetch_wake}),
      .wake_qp_i     ({wake_qp_i, fetch_wake_qp}),
      .run_valid_o   (run_valid),
      .run_ready_i   (run_ready),
      .run_qp_o      (run_qp),
      .done_valid_i  (done_valid),
      .done_qp_i     (done_qp),
      .done_again_i  (done_again),
      .forget_valid_i,
      .forget_qp_i,
      .forget_busy_o (turn_busy)
  );

  // ---- WQE fetch and buffer ---------------------------------------------------------------------
  logic fetch_valid, buf_rd_en;
  logic [10:0] buf_rd_addr;
  logic [511:0] buf_rd_data;
  rnic_pkg::wqe_fetch_req_t fetch_data;
  wqe_fetch u_fetch (
      .clk_i,
      .rst_ni,
      .req_valid_i       (fetch_valid),
      .req_data_i        (fetch_data),
      .busy_qp_i         (forget_qp_i),
      .busy_o            (fetch_busy),
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .window_valid_i,
      .window_addr_i,
      .window_data_i,
      .buf_rd_en_i       (buf_rd_en),
      .buf_rd_addr_i     (buf_rd_addr),
      .buf_rd_data_o     (buf_rd_data),
      .acq_valid_o       (acq_valid_o[0]),
      .acq_ready_i       (acq_ready_i[0]),
      .acq_index_o       (acq_fetch),
      .ctx_valid_i       (ctx_valid_i[0]),
      .ctx_data_i,
      .rel_valid_o       (rel_valid_o[0]),
      .rel_ready_i       (rel_ready_i[0]),
      .rel_write_o       (rel_write_o[0]),
      .rel_data_o        (rel_fetch),
      .wake_valid_o      (fetch_wake),
      .wake_qp_o         (fetch_wake_qp),
      .retire_cmd_valid_o(fail_valid_o[0]),
      .retire_cmd_ready_i(fail_ready_i[0]),
      .retire_cmd_data_o (fail_fetch),
      .event_o           (ev_fetch)
  );

  // ---- Engine -----------------------------------------------------------------------------------
  logic room, few, more, take, give, desc_valid, piece_valid, read_slot_valid;
  rnic_pkg::tx_desc_t desc_data;
  rnic_pkg::sg_piece_t piece_data;
  rnic_pkg::read_slot_t read_slot_data;
  logic [11:0] read_slot_addr;
  logic list_rd_valid, list_rd_ready;
  logic [10:0] list_rd_addr;
  sq_list u_list (
      .clk_i,
      .rst_ni,
      .run_i     (list_run_i),
      .addr_i    (list_addr_i),
      .lines_i   (list_lines_i),
      .rd_valid_o(list_rd_valid),
      .rd_ready_i(list_rd_ready),
      .rd_addr_o (list_rd_addr),
      .rd_data_i (buf_rd_data),
      .mem_list_valid_o,
      .mem_list_ready_i,
      .mem_list_data_o
  );
  sq_engine u_engine (
      .clk_i,
      .rst_ni,
      .busy_o,
      .run_valid_i       (run_valid),
      .run_ready_o       (run_ready),
      .run_qp_i          (run_qp),
      .done_valid_o      (done_valid),
      .done_qp_o         (done_qp),
      .done_again_o      (done_again),
      .room_i            (room && few),
      .more_i            (more),
      .take_o            (take),
      .give_o            (give),
      .acq_valid_o       (acq_valid_o[2:1]),
      .acq_ready_i       (acq_ready_i[2:1]),
      .acq_index_o       (acq_engine),
      .ctx_valid_i       (ctx_valid_i[2:1]),
      .ctx_data_i,
      .contended_i,
      .rel_valid_o       (rel_valid_o[2:1]),
      .rel_ready_i       (rel_ready_i[2:1]),
      .rel_write_o       (rel_write_o[2:1]),
      .rel_data_o        (rel_engine),
      .buf_rd_en_o       (buf_rd_en),
      .buf_rd_addr_o     (buf_rd_addr),
      .buf_rd_data_i     (buf_rd_data),
      .list_rd_valid_i   (list_rd_valid),
      .list_rd_ready_o   (list_rd_ready),
      .list_rd_addr_i    (list_rd_addr),
      .fetch_valid_o     (fetch_valid),
      .fetch_data_o      (fetch_data),
      .desc_valid_o      (desc_valid),
      .desc_data_o       (desc_data),
      .piece_valid_o     (piece_valid),
      .piece_data_o      (piece_data),
      .inflight_valid_o,
      .inflight_data_o,
      .read_slot_valid_o (read_slot_valid),
      .read_slot_addr_o  (read_slot_addr),
      .read_slot_data_o  (read_slot_data),
      .mem_valid_o,
      .mem_qp_o,
      .mem_pd_o,
      .mem_control_o,
      .mem_second_o,
      .mem_third_o,
      .retire_cmd_valid_o(fail_valid_o[1]),
      .retire_cmd_ready_i(fail_ready_i[1]),
      .retire_cmd_data_o (fail_engine),
      .begun_valid_o,
      .begun_qp_o,
      .drained_valid_o,
      .event_o           (ev_engine)
  );
  assign drained_qp_o = done_qp;
  ram_1r1w #(
      .Width(rnic_pkg::ReadSlotBits),
      .Depth(256 * rnic_pkg::MaxReadsOutstanding)
  ) u_read_ring (
      .clk_i,
      .wr_en_i  (read_slot_valid),
      .wr_addr_i(read_slot_addr),
      .wr_data_i(read_slot_data),
      .rd_en_i  (read_slot_en_i),
      .rd_addr_i(read_slot_addr_i),
      .rd_data_o(read_slot_data_o)
  );

  // ---- Packets ----------------------------------------------------------------------------------
  logic unused_room;
  sq_room #(
      .PieceDepth     (PieceDepth),
      .PiecesPerPacket(rnic_pkg::MaxSge)
  ) u_room (
      .clk_i,
      .rst_ni,
      .take_i     (take),
      .give_i     (give),
      .desc_in_i  (desc_valid),
      .desc_out_i (desc_valid_o && desc_ready_i),
      .piece_in_i (piece_valid),
      .piece_out_i(piece_valid_o && piece_ready_i),
      .room_o     (room),
      .more_o     (more)
  );
  packet_queue #(
      .PieceWidth     (rnic_pkg::SgPieceBits),
      .PieceDepth     (PieceDepth),
      .PiecesPerPacket(rnic_pkg::MaxSge)
  ) u_packets (
      .clk_i,
      .rst_ni,
      .room_o       (unused_room),
      .few_o        (few),
      .desc_valid_i (desc_valid),
      .desc_data_i  (desc_data),
      .piece_valid_i(piece_valid),
      .piece_data_i (piece_data),
      .desc_valid_o,
      .desc_ready_i,
      .desc_data_o,
      .piece_valid_o,
      .piece_ready_i,
      .piece_data_o,
      .mark_i,
      .drained_o
  );
endmodule

`default_nettype wire
