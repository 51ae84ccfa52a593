`default_nettype none
`include "assert.svh"

/// Responder's output: Read responses, ACKs, NAKs, in PSN order per QP, QPs in turn.
///
/// Per QP: a ring of 2 * MaxReadsOutstanding Reads to answer (a repeated one ends those in front of
/// it that have PSNs of it), the newest executed PSN, whether an ACK
/// is due, a NAK that waits, and the MSN. Each turn of a QP sends one packet: the next response
/// packet of its oldest Read, or, when no Read is left, the NAK, or one ACK for the newest executed
/// PSN (so ACKs coalesce while the QP waits for its turn). A Read response acknowledges what
/// precedes it. After a fatal NAK (0x61 to 0x63) nothing more is sent for the QP until qp_reset.
/// Read response First, Last and Only carry an AETH with the MSN of that Read.
///
/// Payload of responses: one sg_piece_t with access RemoteRead. tx_fault of a responder's packet:
/// the Reads left are dropped and a NAK for the faulted PSN leaves (in place of one that has left
/// behind it: the send path has dropped that), unless the QP is silent: remote access error, or
/// remote operational error if memory failed (XlateStatus Ok or PageListError). The receive
/// context is acquired for MTU, PD and state, and to count rd_inflight down when a Read has been
/// answered. A QP gets a qp_reset before its first use.
///
/// Atomics stand in the ring with the Reads. rsp_atomic executes them while other QPs go on; a QP's
/// next Read, ACK or NAK waits for its atomic. busy_o: as of rsp_atomic.
module responder_output (
    input  wire logic                      clk_i,
    input  wire logic                      rst_ni,
    output logic                           busy_o,
    input  wire logic                      cmd_valid_i,
    output logic                           cmd_ready_o,
    input  wire rnic_pkg::rsp_cmd_t        cmd_data_i,
    input  wire logic                      tx_fault_valid_i,
    output logic                           tx_fault_ready_o,
    input  wire rnic_pkg::tx_fault_t       tx_fault_data_i,
    output logic                           acq_valid_o,
    input  wire logic                      acq_ready_i,
    output logic [7:0]                     acq_index_o,
    input  wire logic                      ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t       ctx_data_i,
    output logic                           rel_valid_o,
    input  wire logic                      rel_ready_i,
    output logic                           rel_write_o,
    output rnic_pkg::recv_ctx_t            rel_data_o,
    output logic                           desc_valid_o,
    input  wire logic                      desc_ready_i,
    output rnic_pkg::tx_desc_t             desc_data_o,
    output logic                           piece_valid_o,
    input  wire logic                      piece_ready_i,
    output rnic_pkg::sg_piece_t            piece_data_o,
    // Atomics: memory, and their faults
    output logic                           atomic_fault_valid_o,
    input  wire logic                      atomic_fault_ready_i,
    output rnic_pkg::tx_fault_t            atomic_fault_data_o,
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
    // The answer of an atomic has been given; a pulse
    output logic                           atomic_over_o,
    input  wire logic                      qp_reset_valid_i,
    output logic                           qp_reset_ready_o,
    input  wire logic [7:0]                qp_reset_qp_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  logic clear_valid, clear_intake, clear_engine, mark, drained, forget_valid, turn_busy;
  logic clear_atomic, atomic_busy;
  logic [7:0] forget_qp;
  qp_reset_seq u_reset (
      .clk_i,
      .rst_ni,
      .qp_reset_valid_i,
      .qp_reset_ready_o,
      .qp_reset_qp_i,
      .forget_valid_o(forget_valid),
      .forget_qp_o   (forget_qp),
      .active_i      (turn_busy || atomic_busy),
      .clear_valid_o (clear_valid),
      .clear_ready_i (clear_intake && clear_engine && clear_atomic),
      .mark_o        (mark),
      .drained_i     (drained)
  );

  logic wake, due, due_waits, queue_en, slot_en, queue_is_nak, queue_is_ack;
  logic [7:0] wake_qp, queue_qp, queue_syndrome;
  logic [5:0] queue_tail;
  logic [31:0] queue_ended, queue_repeated;
  logic [23:0] queue_psn, queue_msn, slot_psn, slot_msn;
  logic [12:0] slot_addr;
  logic [63:0] slot_va;
  logic [31:0] slot_key, slot_length;
  logic slot_atomic, slot_repeated, slot_fetch_add;
  logic [63:0] slot_swap_add, slot_compare;
  rsp_intake u_intake (
      .clk_i,
      .rst_ni,
      .cmd_valid_i,
      .cmd_ready_o,
      .cmd_data_i,
      .clear_valid_i   (clear_valid),
      .clear_ready_o   (clear_intake),
      .clear_qp_i      (forget_qp),
      .wake_valid_o    (wake),
      .due_valid_o     (due),
      .wake_qp_o       (wake_qp),
      .due_waits_i     (due_waits),
      .queue_en_i      (queue_en),
      .queue_qp_i      (queue_qp),
      .queue_tail_o    (queue_tail),
      .queue_ended_o   (queue_ended),
      .queue_repeated_o(queue_repeated),
      .queue_is_nak_o  (queue_is_nak),
      .queue_is_ack_o  (queue_is_ack),
      .queue_psn_o     (queue_psn),
      .queue_syndrome_o(queue_syndrome),
      .queue_msn_o     (queue_msn),
      .slot_en_i       (slot_en),
      .slot_addr_i     (slot_addr),
      .slot_va_o       (slot_va),
      .slot_key_o      (slot_key),
      .slot_length_o   (slot_length),
      .slot_psn_o      (slot_psn),
      .slot_msn_o      (slot_msn),
      .slot_atomic_o   (slot_atomic),
      .slot_repeated_o (slot_repeated),
      .slot_fetch_add_o(slot_fetch_add),
      .slot_swap_add_o (slot_swap_add),
      .slot_compare_o  (slot_compare)
  );

  logic run_valid, run_ready, done_valid, done_again;
  logic [7:0] run_qp, done_qp, atomic_done_qp;
  logic atomic_done;
  qp_scheduler #(
      .Wakes(2)
  ) u_scheduler (
      .clk_i,
      .rst_ni,
      .wake_valid_i  ({atomic_done, wake}),
      .wake_qp_i     ({atomic_done_qp, wake_qp}),
      .run_valid_o   (run_valid),
      .run_ready_i   (run_ready),
      .run_qp_o      (run_qp),
      .done_valid_i  (done_valid),
      .done_qp_i     (done_qp),
      .done_again_i  (done_again),
      .forget_valid_i(forget_valid),
      .forget_qp_i   (forget_qp),
      .forget_busy_o (turn_busy)
  );

  // A fault of a request packet is not for this block.
  logic room, fault_ready, desc_valid, piece_valid;
  rnic_pkg::tx_desc_t desc_data;
  rnic_pkg::sg_piece_t piece_data;
  assign tx_fault_ready_o = fault_ready || !tx_fault_data_i.responder;
  logic atomic_valid, answer_en, answer_found;
  logic [7:0] answer_qp;
  logic [63:0] answer_value;
  rnic_pkg::atomic_op_t atomic_op;
  rsp_engine u_engine (
      .clk_i,
      .rst_ni,
      .run_valid_i     (run_valid),
      .run_ready_o     (run_ready),
      .run_qp_i        (run_qp),
      .done_valid_o    (done_valid),
      .done_qp_o       (done_qp),
      .done_again_o    (done_again),
      .room_i          (room),
      .fault_valid_i   (tx_fault_valid_i && tx_fault_data_i.responder),
      .fault_ready_o   (fault_ready),
      .fault_data_i    (tx_fault_data_i),
      .clear_valid_i   (clear_valid && clear_intake),
      .clear_ready_o   (clear_engine),
      .clear_qp_i      (forget_qp),
      .due_valid_i     (due),
      .due_qp_i        (wake_qp),
      .due_waits_o     (due_waits),
      .queue_en_o      (queue_en),
      .queue_qp_o      (queue_qp),
      .queue_tail_i    (queue_tail),
      .queue_ended_i   (queue_ended),
      .queue_repeated_i(queue_repeated),
      .queue_is_nak_i  (queue_is_nak),
      .queue_is_ack_i  (queue_is_ack),
      .queue_psn_i     (queue_psn),
      .queue_syndrome_i(queue_syndrome),
      .queue_msn_i     (queue_msn),
      .slot_en_o       (slot_en),
      .slot_addr_o     (slot_addr),
      .slot_va_i       (slot_va),
      .slot_key_i      (slot_key),
      .slot_length_i   (slot_length),
      .slot_psn_i      (slot_psn),
      .slot_msn_i      (slot_msn),
      .slot_atomic_i   (slot_atomic),
      .slot_repeated_i (slot_repeated),
      .slot_fetch_add_i(slot_fetch_add),
      .slot_swap_add_i (slot_swap_add),
      .slot_compare_i  (slot_compare),
      .atomic_valid_o  (atomic_valid),
      .atomic_data_o   (atomic_op),
      .atomic_done_valid_i(atomic_done),
      .atomic_done_qp_i(atomic_done_qp),
      .atomic_over_o,
      .answer_en_o     (answer_en),
      .answer_qp_o     (answer_qp),
      .answer_found_i  (answer_found),
      .answer_value_i  (answer_value),
      .acq_valid_o,
      .acq_ready_i,
      .acq_index_o,
      .ctx_valid_i,
      .ctx_data_i,
      .rel_valid_o,
      .rel_ready_i,
      .rel_write_o,
      .rel_data_o,
      .desc_valid_o    (desc_valid),
      .desc_data_o     (desc_data),
      .piece_valid_o   (piece_valid),
      .piece_data_o    (piece_data)
  );

  rsp_atomic u_atomic (
      .clk_i,
      .rst_ni,
      .op_valid_i      (atomic_valid),
      .op_data_i       (atomic_op),
      .busy_o,
      .done_valid_o    (atomic_done),
      .done_qp_o       (atomic_done_qp),
      .answer_en_i     (answer_en),
      .answer_qp_i     (answer_qp),
      .answer_found_o  (answer_found),
      .answer_value_o  (answer_value),
      .fault_valid_o   (atomic_fault_valid_o),
      .fault_ready_i   (atomic_fault_ready_i),
      .fault_data_o    (atomic_fault_data_o),
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
      .forget_valid_i  (forget_valid),
      .forget_qp_i     (forget_qp),
      .forget_busy_o   (atomic_busy),
      .clear_valid_i   (clear_valid && clear_intake && clear_engine),
      .clear_ready_o   (clear_atomic),
      .clear_qp_i      (forget_qp),
      .event_o
  );

  rsp_packets u_packets (
      .clk_i,
      .rst_ni,
      .room_o       (room),
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
      .mark_i       (mark),
      .drained_o    (drained)
  );
endmodule

`default_nettype wire
