`default_nettype none
`include "assert.svh"

/// Send queues: doorbells, WQE fetch, decode, fence, Read limit, segmentation into packets.
///
/// A doorbell (or a WQE from a UAR window) is checked against the QP's UAR, moves its producer
/// index and wakes the scheduler. A window WQE whose index is the next to execute, on a queue with
/// nothing buffered behind it, goes into the WQE buffer and needs no fetch; otherwise it counts as
/// a doorbell only. The scheduler picks one runnable QP after the other; each turn is worth 1 KiB
/// of payload (sq_issue), so QPs share the wire fairly. A QP that cannot go on (no WQE in the
/// buffer, fence, Read limit, SqWindow full, fault, not RTS) is put aside until an event wakes it:
/// fetch done, sq_wake_valid_i, host_wake_valid_i, a doorbell. In SQD a QP finishes what it has
/// started and starts nothing (InfiniBand specification 10.3.1); drained_valid_o then.
///
/// A packet is one tx_desc_t and, for payload_length > 0, its sg_piece_t run; a Read request has no
/// payload and reserves the PSNs of its response (at least one), with an entry in the Read ring of
/// its QP. The last packet of a WQE is preceded by its inflight_t. ack_req is set on the last
/// packet of every message, and on every 16th packet in between.
///
/// A malformed WQE (opcode, flags, size, length above MaxMessageBytes, segment lengths that do not
/// add up to it, wrong qpn or index; a Read with max_rd 0) sends nothing: the context gets `fault`
/// and a retire_cmd_t FailWqe (LocQpOpErr) goes out; so does one that cannot be read (FatalErr).
/// `fault` stops the queue. A memory operation (bind, LocalInvalidate, FastRegister) starts when
/// all in front of it has retired, and is executed by the translation block (mem_op_*) while the QP
/// is aside. A doorbell for a QP in the error state sends its QP index to flush_req; so does the
/// end of a memory operation that a flush waits for. Send context clients: 0 doorbells, 1 WQE
/// fetch, 2 and 3 engine, 4 memory operations.
module send_queue (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           busy_o,
    input  wire logic                      sq_doorbell_valid_i,
    output logic                           sq_doorbell_ready_o,
    input  wire rnic_pkg::doorbell_t       sq_doorbell_data_i,
    input  wire logic                      wqe_push_valid_i,
    output logic                           wqe_push_ready_o,
    input  wire rnic_pkg::wqe_push_t       wqe_push_data_i,
    output logic [4:0]                     acq_valid_o,
    input  wire logic [4:0]                acq_ready_i,
    output logic [5*8-1:0]                 acq_index_o,
    input  wire logic [4:0]                ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t       ctx_data_i,
    // Of clients 2 and 3
    input  wire logic [1:0]                contended_i,
    output logic [4:0]                     rel_valid_o,
    input  wire logic [4:0]                rel_ready_i,
    output logic [4:0]                     rel_write_o,
    output logic [5*rnic_pkg::SendCtxBits-1:0] rel_data_o,
    output logic                           mem_op_valid_o,
    input  wire logic                      mem_op_ready_i,
    output rnic_pkg::mem_op_t              mem_op_data_o,
    input  wire logic                      mem_op_rsp_valid_i,
    output logic                           mem_op_rsp_ready_o,
    input  wire rnic_pkg::mem_op_rsp_t     mem_op_rsp_data_i,
    // Lines of the WQE of an operation with an inline page list, until its answer
    output logic                           mem_list_valid_o,
    input  wire logic                      mem_list_ready_i,
    output rnic_pkg::mem_list_t            mem_list_data_o,
    output logic                           rd_req_valid_o,
    input  wire logic                      rd_req_ready_i,
    output rnic_pkg::dma_rd_req_t          rd_req_data_o,
    input  wire logic                      rd_rsp_valid_i,
    output logic                           rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t     rd_rsp_data_i,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    // Always taken; a cycle with valid is one entry
    output logic                           inflight_valid_o,
    output rnic_pkg::inflight_t            inflight_data_o,
    output logic                           retire_cmd_valid_o,
    input  wire logic                      retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t          retire_cmd_data_o,
    output logic                           flush_req_valid_o,
    input  wire logic                      flush_req_ready_i,
    output logic [7:0]                     flush_req_qp_o,
    // The QP may be able to go on (slots retired, a Read finished, state changed)
    input  wire logic                      sq_wake_valid_i,
    input  wire logic [7:0]                sq_wake_qp_i,
    // The host has changed the state of the QP; a pulse
    input  wire logic                      host_wake_valid_i,
    input  wire logic [7:0]                host_wake_qp_i,
    // The queue of a QP in SQD is drained, and the host wants to know; a pulse
    output logic                           drained_valid_o,
    output logic [7:0]                     drained_qp_o,
    // A QP begins to send: a packet is made, and nothing else is unacknowledged; a pulse
    output logic                           begun_valid_o,
    output logic [7:0]                     begun_qp_o,
    // Read ring, read port: slot {qp, slot} one cycle after read_slot_en_i
    input  wire logic                      read_slot_en_i,
    input  wire logic [11:0]               read_slot_addr_i,
    output rnic_pkg::read_slot_t           read_slot_data_o,
    // Forget everything about a QP; ready when done
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  localparam int unsigned Counters = rnic_pkg::NumCounters;

  rnic_pkg::send_ctx_t rel_doorbell, rel_memop;
  logic [3*rnic_pkg::SendCtxBits-1:0] rel_turns;
  logic [7:0] acq_doorbell, acq_memop;
  logic [3*8-1:0] acq_turns;
  logic [Counters-1:0] ev_doorbell, ev_turns, ev_memop;
  assign acq_index_o = {acq_memop, acq_turns, acq_doorbell};
  assign rel_data_o  = {rel_memop, rel_turns, rel_doorbell};
  assign event_o     = ev_doorbell | ev_turns | ev_memop;

  logic forget_valid, turn_busy, flush_busy, memop_busy, clear_valid, mark, drained;
  logic [7:0] forget_qp;
  qp_reset_seq u_reset (
      .clk_i,
      .rst_ni,
      .qp_reset_valid_i,
      .qp_reset_ready_o,
      .qp_reset_qp_i,
      .forget_valid_o(forget_valid),
      .forget_qp_o   (forget_qp),
      .active_i      (turn_busy || flush_busy || memop_busy),
      .clear_valid_o (clear_valid),
      .clear_ready_i (clear_valid),
      .mark_o        (mark),
      .drained_i     (drained)
  );

  // ---- Doorbells --------------------------------------------------------------------------------
  logic window_valid, db_wake, memop_flush, memop_wake;
  logic [7:0] memop_flush_qp, memop_wake_qp;
  logic [10:0] window_addr;
  logic [511:0] window_data;
  logic [7:0] db_qp;
  sq_doorbell u_doorbell (
      .clk_i,
      .rst_ni,
      .sq_doorbell_valid_i,
      .sq_doorbell_ready_o,
      .sq_doorbell_data_i,
      .wqe_push_valid_i,
      .wqe_push_ready_o,
      .wqe_push_data_i,
      .acq_valid_o   (acq_valid_o[0]),
      .acq_ready_i   (acq_ready_i[0]),
      .acq_index_o   (acq_doorbell),
      .ctx_valid_i   (ctx_valid_i[0]),
      .ctx_data_i,
      .rel_valid_o   (rel_valid_o[0]),
      .rel_ready_i   (rel_ready_i[0]),
      .rel_write_o   (rel_write_o[0]),
      .rel_data_o    (rel_doorbell),
      .window_valid_o(window_valid),
      .window_addr_o (window_addr),
      .window_data_o (window_data),
      .wake_valid_o  (db_wake),
      .wake_qp_o     (db_qp),
      .flush_valid_i (memop_flush),
      .flush_qp_i    (memop_flush_qp),
      .flush_req_valid_o,
      .flush_req_ready_i,
      .flush_req_qp_o,
      .forget_valid_i(forget_valid),
      .forget_qp_i   (forget_qp),
      .forget_busy_o (flush_busy),
      .event_o       (ev_doorbell)
  );

  // ---- Turns ------------------------------------------------------------------------------------
  logic [2:0] fail_valid, fail_ready;
  logic [2*rnic_pkg::RetireCmdBits-1:0] fail_turns;
  rnic_pkg::retire_cmd_t memop_cmd;
  logic mem_valid, list_run;
  logic [10:0] list_addr;
  logic [3:0] list_lines;
  logic [7:0] mem_qp;
  logic [23:0] mem_pd;
  rnic_pkg::wqe_control_t mem_control;
  logic [127:0] mem_second, mem_third;
  sq_turns #(
      .Wakes(4)
  ) u_turns (
      .clk_i,
      .rst_ni,
      .busy_o,
      .wake_valid_i  ({host_wake_valid_i, memop_wake, sq_wake_valid_i, db_wake}),
      .wake_qp_i     ({host_wake_qp_i, memop_wake_qp, sq_wake_qp_i, db_qp}),
      .acq_valid_o   (acq_valid_o[3:1]),
      .acq_ready_i   (acq_ready_i[3:1]),
      .acq_index_o   (acq_turns),
      .ctx_valid_i   (ctx_valid_i[3:1]),
      .ctx_data_i,
      .contended_i   (contended_i),
      .rel_valid_o   (rel_valid_o[3:1]),
      .rel_ready_i   (rel_ready_i[3:1]),
      .rel_write_o   (rel_write_o[3:1]),
      .rel_data_o    (rel_turns),
      .rd_req_valid_o,
      .rd_req_ready_i,
      .rd_req_data_o,
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .window_valid_i(window_valid),
      .window_addr_i (window_addr),
      .window_data_i (window_data),
      .desc_valid_o,
      .desc_ready_i,
      .desc_data_o,
      .piece_valid_o,
      .piece_ready_i,
      .piece_data_o,
      .inflight_valid_o,
      .inflight_data_o,
      .mem_valid_o   (mem_valid),
      .mem_qp_o      (mem_qp),
      .mem_pd_o      (mem_pd),
      .mem_control_o (mem_control),
      .mem_second_o  (mem_second),
      .mem_third_o   (mem_third),
      .list_run_i(list_run), .list_addr_i(list_addr), .list_lines_i(list_lines),
      .mem_list_valid_o, .mem_list_ready_i, .mem_list_data_o,
      .fail_valid_o  (fail_valid[1:0]),
      .fail_ready_i  (fail_ready[1:0]),
      .fail_data_o   (fail_turns),
      .drained_valid_o,
      .drained_qp_o,
      .begun_valid_o,
      .begun_qp_o,
      .read_slot_en_i,
      .read_slot_addr_i,
      .read_slot_data_o,
      .forget_valid_i(forget_valid),
      .forget_qp_i   (forget_qp),
      .forget_busy_o (turn_busy),
      .mark_i        (mark),
      .drained_o     (drained),
      .event_o       (ev_turns)
  );

  // ---- Memory operations ------------------------------------------------------------------------
  sq_memop u_memop (
      .clk_i,
      .rst_ni,
      .start_valid_i     (mem_valid),
      .start_qp_i        (mem_qp),
      .start_pd_i        (mem_pd),
      .start_control_i   (mem_control),
      .start_second_i    (mem_second),
      .start_third_i     (mem_third),
      .busy_qp_i         (forget_qp),
      .busy_o            (memop_busy),
      .acq_valid_o       (acq_valid_o[4]),
      .acq_ready_i       (acq_ready_i[4]),
      .acq_index_o       (acq_memop),
      .ctx_valid_i       (ctx_valid_i[4]),
      .ctx_data_i,
      .rel_valid_o       (rel_valid_o[4]),
      .rel_ready_i       (rel_ready_i[4]),
      .rel_write_o       (rel_write_o[4]),
      .rel_data_o        (rel_memop),
      .mem_op_valid_o,
      .mem_op_ready_i,
      .mem_op_data_o,
      .mem_op_rsp_valid_i,
      .mem_op_rsp_ready_o,
      .mem_op_rsp_data_i,
      .list_run_o(list_run), .list_addr_o(list_addr), .list_lines_o(list_lines),
      .retire_cmd_valid_o(fail_valid[2]),
      .retire_cmd_ready_i(fail_ready[2]),
      .retire_cmd_data_o (memop_cmd),
      .wake_valid_o      (memop_wake),
      .wake_qp_o         (memop_wake_qp),
      .flush_valid_o     (memop_flush),
      .flush_qp_o        (memop_flush_qp),
      .event_o           (ev_memop)
  );

  logic unused_last;
  logic [1:0] unused_source;
  stream_arbiter #(
      .N    (3),
      .Width(rnic_pkg::RetireCmdBits)
  ) u_fail (
      .clk_i,
      .rst_ni,
      .in_valid_i  (fail_valid),
      .in_ready_o  (fail_ready),
      .in_last_i   (3'b111),
      .in_data_i   ({memop_cmd, fail_turns}),
      .out_valid_o (retire_cmd_valid_o),
      .out_ready_i (retire_cmd_ready_i),
      .out_last_o  (unused_last),
      .out_data_o  (retire_cmd_data_o),
      .out_source_o(unused_source)
  );
endmodule

`default_nettype wire
