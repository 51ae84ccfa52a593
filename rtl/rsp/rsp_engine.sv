`default_nettype none
`include "assert.svh"

/// Responder's engine: one packet a turn, four cycles.
///
/// A turn reads the queue word of its QP and how far it has come (this block's own memory), and
/// acquires the receive context. A failed packet (tx_fault) takes a turn of its own: the Reads left
/// are dropped and its NAK leaves, unless the QP is silent; in place of that of a later request,
/// which is behind it in the send path and dropped there.
///
/// An atomic takes two turns of its QP: one hands it to rsp_atomic, which wakes the QP when it is
/// done (atomic_done_*), and one sends the answer. `sent` is 1 between the two.
///
/// A Read that is repeated may find its memory gone, because the requester has had all of it
/// already and gone on; it does not know of the repetition. What cannot be read is not sent then
/// (`quiet`), and no NAK says so: a duplicate harms nobody (InfiniBand specification 9.7.5.1.3).
///
/// Answers that a repeated Read has ended (queue_ended_i) are passed over: a turn that meets some
/// sends nothing.
module rsp_engine (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   run_valid_i,
    output logic                        run_ready_o,
    input  wire logic [7:0]             run_qp_i,
    output logic                        done_valid_o,
    output logic [7:0]                  done_qp_o,
    output logic                        done_again_o,
    input  wire logic                   room_i,
    input  wire logic                   fault_valid_i,
    output logic                        fault_ready_o,
    input  wire rnic_pkg::tx_fault_t    fault_data_i,
    input  wire logic                   clear_valid_i,
    output logic                        clear_ready_o,
    input  wire logic [7:0]             clear_qp_i,
    // From the intake
    input  wire logic                   due_valid_i,
    input  wire logic [7:0]             due_qp_i,
    output logic                        due_waits_o,
    output logic                        queue_en_o,
    output logic [7:0]                  queue_qp_o,
    input  wire logic [5:0]             queue_tail_i,
    input  wire logic [31:0]            queue_ended_i,
    input  wire logic [31:0]            queue_repeated_i,
    input  wire logic                   queue_is_nak_i,
    input  wire logic                   queue_is_ack_i,
    input  wire logic [23:0]            queue_psn_i,
    input  wire logic [7:0]             queue_syndrome_i,
    input  wire logic [23:0]            queue_msn_i,
    output logic                        slot_en_o,
    output logic [12:0]                 slot_addr_o,
    input  wire logic [63:0]            slot_va_i,
    input  wire logic [31:0]            slot_key_i,
    input  wire logic [31:0]            slot_length_i,
    input  wire logic [23:0]            slot_psn_i,
    input  wire logic [23:0]            slot_msn_i,
    input  wire logic                   slot_atomic_i,
    input  wire logic                   slot_repeated_i,
    input  wire logic                   slot_fetch_add_i,
    input  wire logic [63:0]            slot_swap_add_i,
    input  wire logic [63:0]            slot_compare_i,
    // Atomics
    output logic                        atomic_valid_o,
    output rnic_pkg::atomic_op_t        atomic_data_o,
    input  wire logic                   atomic_done_valid_i,
    input  wire logic [7:0]             atomic_done_qp_i,
    // The answer of an atomic leaves, and its context is back: what waits behind it may go on
    output logic                        atomic_over_o,
    output logic                        answer_en_o,
    output logic [7:0]                  answer_qp_o,
    input  wire logic                   answer_found_i,
    input  wire logic [63:0]            answer_value_i,
    // Receive context
    output logic                        acq_valid_o,
    input  wire logic                   acq_ready_i,
    output logic [7:0]                  acq_index_o,
    input  wire logic                   ctx_valid_i,
    input  wire rnic_pkg::recv_ctx_t    ctx_data_i,
    output logic                        rel_valid_o,
    input  wire logic                   rel_ready_i,
    output logic                        rel_write_o,
    output rnic_pkg::recv_ctx_t         rel_data_o,
    // Packet
    output logic                        desc_valid_o,
    output rnic_pkg::tx_desc_t          desc_data_o,
    output logic                        piece_valid_o,
    output rnic_pkg::sg_piece_t         piece_data_o
);
  // StIdle     choosing: a cleared QP, a fault, a turn. Its words are being read, its context is
  //            asked for
  // StRead     words are here; the slot of the oldest Read is being read
  // StContext  waiting for the context
  // StSend     the packet leaves; giving the context back
  typedef enum logic [1:0] {
    StIdle,
    StRead,
    StContext,
    StSend
  } state_e;
  state_e state_q, state_d;

  logic [7:0] qp_q;
  logic is_fault_q, asking_q, due_q, answered_q;
  logic choose_run, choose_fault, fire, turn_atomic, send_atomic, skip;
  rnic_pkg::recv_ctx_t ctx_q;

  // ---- ACK or NAK due, atomic executed: a bit a QP, taken together with the queue word ----------
  logic due, answered, due_waits, due_back;
  rsp_due u_due (
      .clk_i,
      .rst_ni,
      .take_i      (choose_run),
      .turn_qp_i   (run_qp_i),
      .due_o       (due),
      .answered_o  (answered),
      .due_back_i  (due_back),
      .sent_i      (fire && send_atomic),
      .back_qp_i   (qp_q),
      .due_valid_i,
      .due_qp_i,
      .waits_o     (due_waits),
      .done_valid_i(atomic_done_valid_i),
      .done_qp_i   (atomic_done_qp_i),
      .clear_valid_i,
      .clear_qp_i
  );

  // It still waits, or the turn of its QP is under way.
  assign due_waits_o = due_waits ||
                       (state_q != StIdle && !is_fault_q && due_q && qp_q == due_qp_i);

  // ---- Progress of a QP: Reads answered, bytes of the oldest one sent, nothing more to send -----
  logic [5:0] head, new_head;
  logic [31:0] sent, new_sent, packet_sent;
  logic stopped, new_stopped, progress_wr;
  logic [7:0] progress_qp;
  ram_1r1w #(
      .Width(39),
      .Depth(256)
  ) u_progress (
      .clk_i,
      .wr_en_i  (progress_wr || (clear_valid_i && clear_ready_o)),
      .wr_addr_i(progress_wr ? qp_q : clear_qp_i),
      .wr_data_i(progress_wr ? {new_stopped, new_sent, new_head} : '0),
      .rd_en_i  (queue_en_o),
      .rd_addr_i(progress_qp),
      .rd_data_o({stopped, sent, head})
  );

  // ---- Choice -----------------------------------------------------------------------------------
  assign clear_ready_o = state_q == StIdle;
  assign choose_fault  = state_q == StIdle && !clear_valid_i && fault_valid_i && room_i;
  assign choose_run    = state_q == StIdle && !clear_valid_i && !fault_valid_i && run_valid_i &&
                         room_i;
  assign run_ready_o   = choose_run;
  assign queue_en_o    = choose_fault || choose_run;
  assign progress_qp   = choose_fault ? fault_data_i.qp : run_qp_i;
  assign queue_qp_o    = progress_qp;
  assign slot_en_o     = state_q == StRead;
  assign slot_addr_o   = {qp_q, head[4:0]};
  assign answer_en_o   = slot_en_o;
  assign answer_qp_o   = qp_q;
  assign acq_valid_o   = queue_en_o || asking_q;
  assign acq_index_o   = asking_q ? qp_q : progress_qp;

  // ---- Packet -----------------------------------------------------------------------------------
  logic last, send_read, send_nak, send_ack;
  logic [3:0] ended_reads, ended_repeats, skipped_q, skipped_repeats_q;
  rsp_answer u_answer (
      .qp_i            (qp_q),
      .ctx_i           (ctx_q),
      .read_i          (send_read),
      .atomic_i        (turn_atomic),
      .nak_i           (send_nak),
      .fault_i         (is_fault_q),
      .stopped_i       (stopped),
      .fault_data_i,
      .queue_psn_i,
      .queue_syndrome_i,
      .queue_msn_i,
      .slot_va_i,
      .slot_key_i,
      .slot_length_i,
      .slot_psn_i,
      .slot_msn_i,
      .slot_atomic_i,
      .slot_repeated_i,
      .slot_fetch_add_i,
      .slot_swap_add_i,
      .slot_compare_i,
      .sent_i          (sent),
      .answer_i        (answer_value_i),
      .last_o          (last),
      .sent_o          (packet_sent),
      .desc_o          (desc_data_o),
      .piece_o         (piece_data_o),
      .atomic_o        (atomic_data_o)
  );
  rsp_skip u_skip (
      .head_i    (head),
      .tail_i    (queue_tail_i),
      .ended_i   (queue_ended_i),
      .repeated_i(queue_repeated_i),
      .count_o   (ended_reads),
      .repeated_o(ended_repeats)
  );
  rsp_turn u_turn (
      .ctx_i            (ctx_q),
      .fault_i          (is_fault_q),
      .fault_atomic_i   (fault_data_i.atomic),
      .head_i           (head),
      .sent_i           (sent),
      .stopped_i        (stopped),
      .tail_i           (queue_tail_i),
      .skipped_i        (skipped_q),
      .skipped_repeats_i(skipped_repeats_q),
      .due_i            (due_q),
      .due_is_nak_i     (queue_is_nak_i),
      .due_is_ack_i     (queue_is_ack_i),
      .nak_syndrome_i   (queue_syndrome_i),
      .answered_i       (answered_q),
      .slot_atomic_i,
      .slot_repeated_i,
      .last_i           (last),
      .packet_sent_i    (packet_sent),
      .skip_o           (skip),
      .read_o           (send_read),
      .atomic_o         (turn_atomic),
      .answer_o         (send_atomic),
      .nak_o            (send_nak),
      .ack_o            (send_ack),
      .head_o           (new_head),
      .sent_o           (new_sent),
      .stopped_o        (new_stopped),
      .write_o          (rel_write_o),
      .ctx_o            (rel_data_o),
      .again_o          (done_again_o)
  );

  assign fire          = state_q == StSend && rel_ready_i;
  assign desc_valid_o  = fire && (send_read || send_nak || send_ack ||
                                  (send_atomic && answer_found_i));
  assign piece_valid_o = desc_valid_o && (send_atomic || send_read) &&
                         desc_data_o.payload_length != '0;

  assign atomic_valid_o = fire && turn_atomic && sent == '0;
  assign progress_wr    = fire;
  assign due_back       = fire && (send_read || turn_atomic || skip) && due_q;
  assign atomic_over_o  = fire && send_atomic;
  assign rel_valid_o    = state_q == StSend;

  // ---- Control ----------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (queue_en_o) state_d = StRead;
      StRead:    state_d = StContext;
      StContext: if (ctx_valid_i) state_d = StSend;
      StSend:    if (rel_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q  <= state_d;
    asking_q <= acq_valid_o && !acq_ready_i;
    if (queue_en_o) begin
      qp_q       <= progress_qp;
      is_fault_q <= choose_fault;
      due_q      <= due;
      answered_q <= answered;
    end
    if (state_q == StRead) begin
      skipped_q         <= ended_reads;
      skipped_repeats_q <= ended_repeats;
    end
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    if (!rst_ni) begin
      state_q  <= StIdle;
      asking_q <= 1'b0;
    end
  end

  assign fault_ready_o = fire && is_fault_q;
  assign done_valid_o  = fire && !is_fault_q;
  assign done_qp_o     = qp_q;

  logic unused_bits;
  assign unused_bits = ^{fault_data_i.sent, fault_data_i.responder, fault_data_i.wqe_idx};

  `ASSERT_HOLD(AcquireHold, acq_valid_o, acq_ready_i, acq_index_o)
  logic [5:0] waiting_reads;
  assign waiting_reads = queue_tail_i - head;
  `ASSERT(ReadsFit, state_q != StSend || 32'(waiting_reads) <= 2 * rnic_pkg::MaxReadsOutstanding)
endmodule

`default_nettype wire
