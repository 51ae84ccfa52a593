`default_nettype none
`include "assert.svh"

/// Second stage of the send engine: makes the packets of a turn and gives the context back.
///
/// A turn is worth 1 KiB (sq_next): packets of one message, then of the WQEs behind it as long as
/// they are in the buffer, so that QPs share the wire by bytes and a small MTU does not cost a turn
/// a packet. It ends when it is used up, when there is no room for another packet (more_i), when
/// somebody else wants the context (contended_i), behind a packet without payload, and when the WQE
/// has to step aside (sq_gate). That leaves the mark `stalled` in the context, with the same
/// release: whoever changes the context later sees it, and what changed before has been seen.
///
/// At the start of a message, and where recovery makes it go on in the middle, the whole WQE is
/// judged first, with all data segments: a malformed one sends nothing, and ends the turn with a
/// command that fails it. A memory operation sends nothing either: it is handed over (mem_valid_o)
/// and the QP steps aside. Pulses are about QP qp_o.
module sq_issue (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    // From sq_load
    input  wire logic                   in_valid_i,
    output logic                        in_ready_o,
    input  wire logic [7:0]             in_qp_i,
    input  wire logic                   in_client_i,
    input  wire rnic_pkg::send_ctx_t    in_ctx_i,
    input  wire logic [2:0]             in_first_line_i,
    input  wire logic [511:0]           in_line_i,
    input  wire logic                   in_runnable_i,
    input  wire logic                   in_drained_i,
    input  wire logic                   more_i,
    input  wire logic [1:0]             contended_i,
    output logic [1:0]                  rel_valid_o,
    input  wire logic [1:0]             rel_ready_i,
    output rnic_pkg::send_ctx_t         rel_data_o,
    output logic [7:0]                  qp_o,
    // The turn is over, the context given back; pulses
    output logic                        done_valid_o,
    output logic                        done_again_o,
    output logic                        drained_valid_o,
    // WQE buffer; buf_busy_o: it is read now, or what was read is used on
    output logic                        buf_busy_o,
    output logic                        buf_rd_en_o,
    output logic [10:0]                 buf_rd_addr_o,
    input  wire logic [511:0]           buf_rd_data_i,
    output logic                        fetch_valid_o,
    output rnic_pkg::wqe_fetch_req_t    fetch_data_o,
    output logic                        desc_valid_o,
    output rnic_pkg::tx_desc_t          desc_data_o,
    output logic                        piece_valid_o,
    output rnic_pkg::sg_piece_t         piece_data_o,
    output logic                        inflight_valid_o,
    output rnic_pkg::inflight_t         inflight_data_o,
    output logic                        read_slot_valid_o,
    output logic [11:0]                 read_slot_addr_o,
    output rnic_pkg::read_slot_t        read_slot_data_o,
    // A packet is made, and nothing else is unacknowledged
    output logic                        begun_valid_o,
    output logic                        mem_valid_o,
    output logic [23:0]                 mem_pd_o,
    output rnic_pkg::wqe_control_t      mem_control_o,
    output logic [255:0]                mem_segments_o,
    // WQE exec_idx of rel_data_o is malformed
    output logic                        fail_valid_o,
    input  wire logic                   fail_ready_i,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // StIdle     a turn comes, with context and first line
  // StHead     the first line of the next WQE of the turn is here
  // StSum      adding up the data segments, from the second line on
  // StPlan     judging the WQE; the descriptor leaves, or its place in the list is looked for
  // StSeek     looking for it
  // StWalk     the pieces leave; with the last one the context may go back at once
  // StRelease  giving the context back; a fetch may start
  // StFail     reporting a malformed WQE
  typedef enum logic [2:0] {
    StIdle,
    StHead,
    StSum,
    StPlan,
    StSeek,
    StWalk,
    StRelease,
    StFail
  } state_e;
  state_e state_q, state_d;

  rnic_pkg::send_ctx_t ctx_q, ctx_sent;
  logic [383:0] header;
  logic [2:0] first_line_q, next_line, sum_line, pieces_line, segments;
  logic [36:0] sum;
  logic client_q, drained_q, sent_q, partial_q, failed_q, found_q, again_q, enters, begins;
  logic sums, more_lines;

  // ---- The WQE arrives --------------------------------------------------------------------------
  assign enters = state_q == StIdle && in_valid_i;
  assign begins = enters || state_q == StHead;
  assign sums   = (state_q != StIdle || !in_ctx_i.msg_active || in_ctx_i.resume) && more_lines;
  sq_head u_head (
      .clk_i,
      .start_i          (begins),
      .run_i            (state_q == StSum),
      .is_ud_i          ((state_q == StIdle ? in_ctx_i.qp_type : ctx_q.qp_type) ==
                         rnic_pkg::QpTypeUd),
      .line_i           (state_q == StIdle ? in_line_i : buf_rd_data_i),
      .more_o           (more_lines),
      .next_line_o      (sum_line),
      .control_o        (mem_control_o),
      .header_o         (header),
      .header_segments_o(segments),
      .sum_o            (sum)
  );

  // ---- Plan -------------------------------------------------------------------------------------
  logic is_read, is_memory, step_aside, stalled, bad, seek, go, last;
  logic [7:0] bad_status;
  logic [rnic_pkg::NumCounters-1:0] plan_event;
  sq_plan u_plan (
      .qp_i             (qp_o),
      .ctx_i            (ctx_q),
      .control_i        (mem_control_o),
      .header_i         (header),
      .header_segments_i(segments),
      .sum_i            (sum),
      .step_aside_o     (step_aside),
      .bad_o            (bad),
      .bad_status_o     (bad_status),
      .stalled_o        (stalled),
      .is_read_o        (is_read),
      .is_memory_o      (is_memory),
      .last_o           (last),
      .desc_o           (desc_data_o),
      .inflight_o       (inflight_data_o),
      .read_slot_o      (read_slot_data_o),
      .ctx_o            (ctx_sent),
      .event_o          (plan_event)
  );
  assign seek = state_q == StPlan && !step_aside && ctx_q.resume && !is_read && !found_q;
  assign go   = state_q == StPlan && !step_aside && !seek && !is_memory;
  assign mem_valid_o       = state_q == StPlan && !step_aside && is_memory;
  assign mem_pd_o          = ctx_q.pd;
  assign mem_segments_o    = header[255:0];
  assign desc_valid_o      = go;
  assign inflight_valid_o  = (go && last) || mem_valid_o;
  assign read_slot_valid_o = go && is_read;
  assign read_slot_addr_o  = {qp_o, ctx_q.rd_tail[3:0]};
  assign begun_valid_o     = go && ctx_q.next_psn == ctx_q.una_psn;
  assign event_o           = (state_q == StPlan && !seek) ? plan_event : '0;

  // ---- Seek and walk ----------------------------------------------------------------------------
  logic seek_done, walk, walk_done, pieces_rd;
  logic [4:0] seek_sge, walk_sge;
  logic [31:0] seek_offset, walk_offset;
  assign walk = go && desc_data_o.payload_length != '0;
  sq_pieces u_pieces (
      .clk_i,
      .rst_ni,
      .header_segments_i(segments),
      .seek_i           (seek),
      .seek_offset_i    (ctx_q.msg_off),
      .seek_done_o      (seek_done),
      .seek_sge_o       (seek_sge),
      .seek_sge_offset_o(seek_offset),
      .walk_i           (walk),
      .carries_i        (sent_q && partial_q),
      .sge_index_i      (ctx_q.sge_idx),
      .sge_offset_i     (ctx_q.sge_off),
      .inline_i         (mem_control_o.inline_data),
      .payload_i        (desc_data_o.payload_length),
      .pd_i             (ctx_q.pd),
      .walk_done_o      (walk_done),
      .walk_sge_o       (walk_sge),
      .walk_sge_offset_o(walk_offset),
      .piece_valid_o,
      .piece_data_o,
      .rd_en_o          (pieces_rd),
      .rd_line_o        (pieces_line),
      .line_i           (buf_rd_data_i)
  );

  // ---- Another packet in this turn? -------------------------------------------------------------
  logic can_go_on, goes_on, next_wqe, fetch, release_now, released;
  sq_next u_next (
      .clk_i,
      .start_i  (enters),
      .packet_i (go),
      .payload_i(desc_data_o.payload_length),
      .ctx_i    (ctx_q),
      .goes_on_o(can_go_on),
      .line_o   (next_line)
  );
  assign goes_on  = state_q == StWalk && walk_done && can_go_on && more_i &&
                    !contended_i[client_q];
  assign next_wqe = goes_on && !partial_q;
  assign buf_busy_o = buf_rd_en_o || state_q == StSeek || (state_q == StWalk && !walk_done);
  always_comb begin
    buf_rd_en_o   = pieces_rd;
    buf_rd_addr_o = {qp_o, first_line_q + pieces_line};
    if (enters) begin
      buf_rd_en_o   = in_runnable_i && sums;
      buf_rd_addr_o = {in_qp_i, in_first_line_i + sum_line};
    end else if (state_q == StHead || state_q == StSum) begin
      buf_rd_en_o   = state_q == StHead ? sums : more_lines;
      buf_rd_addr_o = {qp_o, first_line_q + sum_line};
    end else if (next_wqe) begin
      buf_rd_en_o   = 1'b1;
      buf_rd_addr_o = {qp_o, next_line};
    end
  end

  // ---- Release ----------------------------------------------------------------------------------
  sq_release u_release (
      .qp_i        (qp_o),
      .ctx_i       (ctx_q),
      .sent_i      (sent_q),
      .partial_i   (partial_q),
      .sge_index_i (walk_sge),
      .sge_offset_i(walk_offset),
      .ctx_o       (rel_data_o),
      .fetch_o     (fetch),
      .fetch_data_o
  );
  // The place of the next packet of a message is known a cycle after the walk.
  assign release_now     = state_q == StRelease ||
                           (state_q == StWalk && walk_done && !partial_q && !goes_on);
  assign released        = release_now && rel_ready_i[client_q];
  assign rel_valid_o     = {release_now && client_q, release_now && !client_q};
  assign fetch_valid_o   = released && fetch;
  assign drained_valid_o = released && drained_q;
  assign done_valid_o    = (released && !failed_q) || (fail_valid_o && fail_ready_i);
  assign done_again_o    = again_q && ctx_q.buf_count != '0;
  assign in_ready_o      = state_q == StIdle;

  assign fail_valid_o    = state_q == StFail;

  // ---- Control ----------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (enters) state_d = !in_runnable_i ? StRelease : sums ? StSum : StPlan;
      StHead:    state_d = sums ? StSum : StPlan;
      StSum:     if (!more_lines) state_d = StPlan;
      StPlan:    state_d = seek ? StSeek : walk ? StWalk : StRelease;
      StSeek:    if (seek_done) state_d = StPlan;
      StWalk:
      if (goes_on) state_d = partial_q ? StPlan : StHead;
      else if (walk_done) state_d = released ? StIdle : StRelease;
      StRelease: if (released) state_d = failed_q ? StFail : StIdle;
      StFail:    if (fail_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (enters) begin
      qp_o         <= in_qp_i;
      client_q     <= in_client_i;
      ctx_q        <= in_ctx_i;
      first_line_q <= in_first_line_i;
      drained_q    <= in_drained_i;
      sent_q       <= 1'b0;
      again_q      <= 1'b0;
      failed_q     <= 1'b0;
    end
    if (begins) found_q <= 1'b0;
    if (next_wqe) begin
      first_line_q  <= next_line;
      ctx_q.sge_idx <= '0;
      ctx_q.sge_off <= '0;
    end
    if (go) begin
      ctx_q     <= ctx_sent;
      sent_q    <= 1'b1;
      partial_q <= !last;
    end
    if (state_q == StPlan && !seek) begin
      again_q <= go;
      if (stalled) ctx_q.stalled <= 1'b1;
      if (mem_valid_o) ctx_q.mem_busy <= 1'b1;
      if (bad) begin
        ctx_q.fault          <= 1'b1;
        ctx_q.fault_idx      <= ctx_q.exec_idx;
        ctx_q.fault_status   <= bad_status;
        ctx_q.fault_syndrome <= '0;
        failed_q             <= 1'b1;
      end
    end
    if (seek_done) begin
      ctx_q.sge_idx <= seek_sge;
      ctx_q.sge_off <= seek_offset;
      found_q       <= 1'b1;
    end
    if (!rst_ni) state_q <= StIdle;
  end

  `ASSERT(NoReadWhileActive, state_q != StPlan || !ctx_q.msg_active || !is_read)
  `ASSERT(NextInBuffer, state_q != StHead || ctx_q.buf_idx == ctx_q.exec_idx)
endmodule

`default_nettype wire
