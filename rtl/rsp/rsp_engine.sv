`default_nettype none
`include "assert.svh"

/// Responder's engine: one packet a turn, four cycles.
///
/// A turn reads the queue word of its QP and how far it has come (this block's own memory), and
/// acquires the receive context. A failed packet (tx_fault) takes a turn of its own: the Reads left
/// are dropped and its NAK leaves at once.
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
///
/// Every positive answer has the credits of the moment (InfiniBand specification 9.7.7.2): the
/// receive WQEs posted that no finished message has used up. They may be newer than the MSN beside
/// them, and then promise less than there is.
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
  // StFault    the NAK of a failed packet leaves
  typedef enum logic [2:0] {
    StIdle,
    StRead,
    StContext,
    StSend,
    StFault
  } state_e;
  state_e state_q, state_d;

  logic [7:0] qp_q;
  logic is_fault_q, asking_q, due_q, answered_q;
  logic choose_run, choose_fault, fire;
  rnic_pkg::recv_ctx_t ctx_q;

  // ---- ACK or NAK due, a bit a QP. Set by the intake; taken together with the queue word --------
  logic [255:0] due_bits_q, due_bits_d, answered_bits_q, answered_bits_d;
  logic due_back, send_atomic;
  always_comb begin
    due_bits_d = due_bits_q;
    if (choose_run) due_bits_d[run_qp_i] = 1'b0;
    if (due_back) due_bits_d[qp_q] = 1'b1;
    if (due_valid_i) due_bits_d[due_qp_i] = 1'b1;
    if (clear_valid_i) due_bits_d[clear_qp_i] = 1'b0;
    // The atomic of a QP has its answer.
    answered_bits_d = answered_bits_q;
    if (fire && send_atomic) answered_bits_d[qp_q] = 1'b0;
    if (atomic_done_valid_i) answered_bits_d[atomic_done_qp_i] = 1'b1;
    if (clear_valid_i) answered_bits_d[clear_qp_i] = 1'b0;
  end

  // It still waits, or the turn of its QP is under way.
  assign due_waits_o = due_bits_q[due_qp_i] ||
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
  assign acq_valid_o   = choose_run || asking_q;
  assign acq_index_o   = asking_q ? qp_q : run_qp_i;

  // ---- Packet -----------------------------------------------------------------------------------
  rnic_pkg::tx_desc_t read_desc;
  logic last, gone, reads, send_read, send_nak, send_ack, fatal;
  logic turn_atomic, skip;
  logic [3:0] ended_reads, ended_repeats, skipped_q, skipped_repeats_q;
  logic [7:0] ack_syndrome;
  assign ack_syndrome[7:5] = 3'd0;
  credit_encode u_credits (
      .counted_i(!ctx_q.srq),
      .wqes_i   (ctx_q.rq_pi - ctx_q.rq_done),
      .code_o   (ack_syndrome[4:0])
  );
  rsp_packet u_packet (
      .qp_i    (qp_q),
      .mtu_i   (ctx_q.mtu),
      .pd_i    (ctx_q.pd),
      .va_i    (slot_va_i),
      .key_i   (slot_key_i),
      .length_i(slot_length_i),
      .psn_i   (slot_psn_i),
      .msn_i   (slot_msn_i),
      .syndrome_i(ack_syndrome),
      .sent_i  (sent),
      .atomic_i(slot_atomic_i),
      .answer_i(answer_value_i),
      .last_o  (last),
      .sent_o  (packet_sent),
      .desc_o  (read_desc),
      .piece_o (piece_data_o)
  );
  // In the error state what was executed before is still answered: the NAK that tells the peer
  // comes last.
  assign gone  = !ctx_q.in_use || ctx_q.state == rnic_pkg::QpStateReset ||
                 ctx_q.state == rnic_pkg::QpStateInit;
  assign reads = queue_tail_i != head && !skip;
  rsp_skip u_skip (
      .head_i    (head),
      .tail_i    (queue_tail_i),
      .ended_i   (queue_ended_i),
      .repeated_i(queue_repeated_i),
      .count_o   (ended_reads),
      .repeated_o(ended_repeats)
  );
  assign skip = !gone && !stopped && skipped_q != '0;
  assign fatal = queue_syndrome_i >= rnic_pkg::AethSyndromeNakInvalidRequest &&
                 queue_syndrome_i <= rnic_pkg::AethSyndromeNakRemoteOperational;
  assign send_read    = !gone && !stopped && reads && !slot_atomic_i;
  assign turn_atomic  = !gone && !stopped && reads && slot_atomic_i;
  assign send_atomic  = turn_atomic && sent != '0 && answered_q;
  assign send_nak  = !gone && !stopped && !reads && !skip && due_q && queue_is_nak_i;
  assign send_ack  = !gone && !stopped && !reads && !skip && due_q && queue_is_ack_i;

  always_comb begin
    desc_data_o       = read_desc;
    desc_data_o.quiet = send_read && slot_repeated_i;
    if ((!send_read && !turn_atomic) || state_q == StFault) begin
      desc_data_o           = '0;
      desc_data_o.qp        = qp_q;
      desc_data_o.responder = 1'b1;
      desc_data_o.opcode    = rnic_pkg::RcOpcodeAcknowledge;
      desc_data_o.psn       = queue_psn_i;
      desc_data_o.syndrome  = send_nak ? queue_syndrome_i : ack_syndrome;
      desc_data_o.msn       = queue_msn_i;
    end
    // A key or range that no longer grants access, or memory that failed (InfiniBand specification
    // 9.7.4.1.4, 9.7.4.1.5).
    if (state_q == StFault) begin
      desc_data_o.psn      = fault_data_i.psn;
      desc_data_o.syndrome = rnic_pkg::AethSyndromeNakRemoteAccess;
      if (fault_data_i.status == rnic_pkg::XlateStatusOk ||
          fault_data_i.status == rnic_pkg::XlateStatusPageListError) begin
        desc_data_o.syndrome = rnic_pkg::AethSyndromeNakRemoteOperational;
      end
    end
  end

  assign fire          = state_q == StSend && rel_ready_i;
  assign desc_valid_o  = (fire && (send_read || send_nak || send_ack ||
                                   (send_atomic && answer_found_i))) ||
                         (state_q == StFault && !stopped);
  assign piece_valid_o = desc_valid_o && (send_atomic || send_read) && state_q != StFault &&
                         desc_data_o.payload_length != '0;

  assign atomic_valid_o = fire && turn_atomic && sent == '0;
  always_comb begin
    atomic_data_o.qp        = qp_q;
    atomic_data_o.psn       = slot_psn_i;
    atomic_data_o.pd        = ctx_q.pd;
    atomic_data_o.key       = slot_key_i;
    atomic_data_o.va        = slot_va_i;
    atomic_data_o.fetch_add = slot_fetch_add_i;
    atomic_data_o.swap_add  = slot_swap_add_i;
    atomic_data_o.compare   = slot_compare_i;
    atomic_data_o.repeated  = slot_repeated_i;
  end

  always_comb begin
    new_head    = head;
    new_sent    = sent;
    new_stopped = stopped;
    if (state_q == StFault || gone) begin
      new_head    = queue_tail_i;
      new_sent    = '0;
      new_stopped = stopped || state_q == StFault;
    end else if (skip) begin
      new_head = head + 6'(skipped_q);
      new_sent = '0;
    end else if (send_read) begin
      new_head = head + 6'(last);
      new_sent = packet_sent;
    end else if (turn_atomic) begin
      new_head = head + 6'(send_atomic);
      new_sent = send_atomic ? '0 : 32'd1;
    end else if (send_nak && fatal) begin
      new_stopped = 1'b1;
    end
  end
  assign progress_wr = fire || state_q == StFault;
  assign due_back    = fire && (send_read || turn_atomic || skip) && due_q;

  // ---- Context: a Read that has been answered makes room for another ----------------------------
  logic [3:0] skipped_first;
  assign skipped_first = skipped_q - skipped_repeats_q;
  always_comb begin
    rel_data_o = ctx_q;
    if (skip) begin
      rel_data_o.rp_inflight = ctx_q.rp_inflight - 5'(skipped_repeats_q);
      rel_data_o.rd_inflight = ctx_q.rd_inflight - 5'(skipped_first);
    end else if (slot_repeated_i) begin
      if (ctx_q.rp_inflight != '0) rel_data_o.rp_inflight = ctx_q.rp_inflight - 1'b1;
    end else if (ctx_q.rd_inflight != '0) begin
      rel_data_o.rd_inflight = ctx_q.rd_inflight - 1'b1;
      if (send_atomic && ctx_q.atomics_due != '0) begin
        rel_data_o.atomics_due = ctx_q.atomics_due - 1'b1;
      end
    end
  end
  assign atomic_over_o = fire && send_atomic;
  assign rel_valid_o = state_q == StSend;
  assign rel_write_o = (send_read && last) || send_atomic || skip;

  // ---- Control ----------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (queue_en_o) state_d = StRead;
      StRead:    state_d = is_fault_q ? StFault : StContext;
      StContext: if (ctx_valid_i) state_d = StSend;
      StSend:    if (rel_ready_i) state_d = StIdle;
      StFault:   state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q    <= state_d;
    due_bits_q <= due_bits_d;
    answered_bits_q <= answered_bits_d;
    asking_q   <= acq_valid_o && !acq_ready_i;
    if (queue_en_o) begin
      qp_q       <= progress_qp;
      is_fault_q <= choose_fault;
      due_q      <= due_bits_q[run_qp_i];
      answered_q <= answered_bits_q[run_qp_i];
    end
    if (state_q == StRead) begin
      skipped_q         <= ended_reads;
      skipped_repeats_q <= ended_repeats;
    end
    if (ctx_valid_i) ctx_q <= ctx_data_i;
    if (!rst_ni) begin
      state_q    <= StIdle;
      due_bits_q <= '0;
      answered_bits_q <= '0;
      asking_q   <= 1'b0;
    end
  end

  assign fault_ready_o = state_q == StFault;
  assign done_valid_o  = fire;
  assign done_qp_o     = qp_q;
  assign done_again_o  = skip || (send_read && (!last || new_head != queue_tail_i || due_q)) ||
                         (send_atomic && (new_head != queue_tail_i || due_q));

  logic unused_bits;
  assign unused_bits = ^{fault_data_i.sent, fault_data_i.responder, fault_data_i.wqe_idx};

  `ASSERT_HOLD(AcquireHold, acq_valid_o, acq_ready_i, acq_index_o)
  logic [5:0] waiting_reads;
  assign waiting_reads = queue_tail_i - head;
  `ASSERT(ReadsFit, state_q != StSend || 32'(waiting_reads) <= 2 * rnic_pkg::MaxReadsOutstanding)
endmodule

`default_nettype wire
