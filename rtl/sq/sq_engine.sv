`default_nettype none
`include "assert.svh"

/// Send engine: one packet a turn.
///
/// A turn acquires the context, reads the WQE under way (or the next one) from the WQE buffer, and
/// either makes one packet or steps aside: no WQE in the buffer, SqWindow WQEs or half of the PSNs
/// unacknowledged, fence, Read limit, RNR wait, fault, not RTS, in SQD what is new. What retirement
/// may end (sq_gate) leaves the mark `stalled` in the context, with the same release: whoever
/// changes the context later sees it, and what changed before has been seen. At the start of a
/// message, and where recovery makes it go on in the middle, the whole WQE is judged first, lengths
/// of all data segments included, so that a malformed one sends nothing. A memory operation sends
/// nothing either: it is handed over (mem_valid_o, a pulse) and the QP steps aside. The packet
/// queue has room before the context is asked for (room_i), so it is never held for the wire.
module sq_engine (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    input  wire logic                   run_valid_i,
    output logic                        run_ready_o,
    input  wire logic [7:0]             run_qp_i,
    output logic                        done_valid_o,
    output logic [7:0]                  done_qp_o,
    output logic                        done_again_o,
    input  wire logic                   room_i,
    // Context
    output logic                        acq_valid_o,
    input  wire logic                   acq_ready_i,
    output logic [7:0]                  acq_index_o,
    input  wire logic                   ctx_valid_i,
    input  wire rnic_pkg::send_ctx_t    ctx_data_i,
    output logic                        rel_valid_o,
    input  wire logic                   rel_ready_i,
    output logic                        rel_write_o,
    output rnic_pkg::send_ctx_t         rel_data_o,
    // WQE buffer
    output logic                        buf_rd_en_o,
    output logic [10:0]                 buf_rd_addr_o,
    input  wire logic [511:0]           buf_rd_data_i,
    // WQE fetch
    output logic                        fetch_valid_o,
    output rnic_pkg::wqe_fetch_req_t    fetch_data_o,
    // Packet
    output logic                        desc_valid_o,
    output rnic_pkg::tx_desc_t          desc_data_o,
    output logic                        piece_valid_o,
    output rnic_pkg::sg_piece_t         piece_data_o,
    output logic                        inflight_valid_o,
    output rnic_pkg::inflight_t         inflight_data_o,
    output logic                        read_slot_valid_o,
    output logic [11:0]                 read_slot_addr_o,
    output rnic_pkg::read_slot_t        read_slot_data_o,
    output logic                        mem_valid_o,
    output logic [7:0]                  mem_qp_o,
    output logic [23:0]                 mem_pd_o,
    output rnic_pkg::wqe_control_t      mem_control_o,
    output logic [127:0]                mem_second_o,
    output logic [127:0]                mem_third_o,
    output logic                        retire_cmd_valid_o,
    input  wire logic                   retire_cmd_ready_i,
    output rnic_pkg::retire_cmd_t       retire_cmd_data_o,
    // A packet is made, and nothing else is unacknowledged
    output logic                        begun_valid_o,
    output logic [7:0]                  begun_qp_o,
    // The queue is drained (SQD), and the host wants to know; a pulse
    output logic                        drained_valid_o,
    output logic [rnic_pkg::NumCounters-1:0] event_o
);
  // StIdle     waiting for a turn and room for its packet
  // StContext  waiting for the context; its arrival reads the first line of the WQE
  // StHead     context and first line are here: anything to do?
  // StSum      start of a message: adding up the data segments, a line a cycle
  // StPlan     judging the WQE; the descriptor leaves, or its place in the list is looked for
  // StSeek     looking for it
  // StWalk     the pieces leave; with the last one of a message the context may go back at once
  // StRelease  giving the context back; a fetch may start
  // StFail     reporting a malformed WQE
  typedef enum logic [3:0] {
    StIdle,
    StContext,
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
  rnic_pkg::wqe_control_t control_q;
  logic [383:0] header_q;
  logic [7:0] qp_q;
  logic [2:0] first_line, first_line_q;
  logic sent_q, partial_q, failed_q, found_q;

  // ---- Head -------------------------------------------------------------------------------------
  wqe_line u_line (
      .index_i     (ctx_data_i.exec_idx[2:0]),
      .log_stride_i(ctx_data_i.log_stride),
      .line_o      (first_line)
  );

  logic [36:0] sum;
  logic [2:0] header_segments;
  logic [7:0] bad_status;
  logic [2:0] sum_line;
  logic more_lines, bad;
  sq_sum u_sum (
      .clk_i,
      .start_i          (state_q == StHead),
      .run_i            (state_q == StSum),
      .control_i        (control_q),
      .header_segments_i(header_segments),
      .line_i           (buf_rd_data_i),
      .more_o           (more_lines),
      .next_line_o      (sum_line),
      .sum_o            (sum)
  );

  // ---- Plan -------------------------------------------------------------------------------------
  logic is_read, is_memory, runnable, judged, step_aside, seek, go, psn_room, last;
  logic window_stall, fence_stall, read_stall, credit_stall, drained, drained_q, probe;
  sq_wqe_check u_check (
      .control_i        (control_q),
      .ctx_i            (ctx_q),
      .sum_i            (sum),
      .header_segments_o(header_segments),
      .bad_o            (bad),
      .bad_status_o     (bad_status)
  );
  rnic_pkg::tx_desc_t packet;
  sq_packet u_packet (
      .qp_i       (qp_q),
      .ctx_i      (ctx_q),
      .control_i  (control_q),
      .header_i   (header_q),
      .is_read_o  (is_read),
      .is_memory_o(is_memory),
      .last_o     (last),
      .psn_room_o (psn_room),
      .desc_o     (packet),
      .inflight_o (inflight_data_o),
      .read_slot_o(read_slot_data_o),
      .ctx_o      (ctx_sent)
  );
  sq_gate u_gate (
      .ctx_i         (ctx_q),
      .control_i     (control_q),
      .bad_i         (bad),
      .psn_room_i    (psn_room),
      .runnable_o    (runnable),
      .drained_o     (drained),
      .judged_o      (judged),
      .step_aside_o  (step_aside),
      .probe_o       (probe),
      .window_stall_o(window_stall),
      .fence_stall_o (fence_stall),
      .read_stall_o  (read_stall),
      .credit_stall_o(credit_stall)
  );
  assign seek        = state_q == StPlan && !step_aside && ctx_q.resume && !is_read && !found_q;
  assign go          = state_q == StPlan && !step_aside && !seek && !is_memory;

  assign mem_valid_o   = state_q == StPlan && !step_aside && is_memory;
  assign mem_qp_o      = qp_q;
  assign mem_pd_o      = ctx_q.pd;
  assign mem_control_o = control_q;
  assign mem_second_o  = header_q[127:0];
  assign mem_third_o   = header_q[255:128];

  assign desc_valid_o      = go;
  always_comb begin
    desc_data_o         = packet;
    desc_data_o.ack_req = packet.ack_req || probe;
  end
  assign inflight_valid_o  = (go && last) || mem_valid_o;
  assign read_slot_valid_o = go && is_read;
  assign read_slot_addr_o  = {qp_q, ctx_q.rd_tail[3:0]};

  assign begun_valid_o = go && ctx_q.next_psn == ctx_q.una_psn;
  assign begun_qp_o    = qp_q;

  // ---- Seek and walk ----------------------------------------------------------------------------
  logic seek_rd, seek_done;
  logic [2:0] seek_line;
  logic [4:0] seek_sge;
  logic [31:0] seek_offset;
  sge_seek u_seek (
      .clk_i,
      .rst_ni,
      .start_i          (seek),
      .header_segments_i(header_segments),
      .offset_i         (ctx_q.msg_off),
      .rd_en_o          (seek_rd),
      .rd_line_o        (seek_line),
      .line_i           (buf_rd_data_i),
      .done_o           (seek_done),
      .sge_index_o      (seek_sge),
      .sge_offset_o     (seek_offset)
  );
  logic walk_start, walk_rd, walk_done;
  logic [2:0] walk_line;
  logic [4:0] walk_sge;
  logic [31:0] walk_offset;
  assign walk_start = go && desc_data_o.payload_length != '0;
  sge_walk u_walk (
      .clk_i,
      .rst_ni,
      .start_i          (walk_start),
      .inline_i         (control_q.inline_data),
      .header_segments_i(header_segments),
      .sge_index_i      (ctx_q.sge_idx),
      .sge_offset_i     (ctx_q.sge_off),
      .payload_i        (desc_data_o.payload_length),
      .pd_i             (ctx_q.pd),
      .rd_en_o          (walk_rd),
      .rd_line_o        (walk_line),
      .line_i           (buf_rd_data_i),
      .piece_valid_o,
      .piece_data_o,
      .done_o           (walk_done),
      .sge_index_o      (walk_sge),
      .sge_offset_o     (walk_offset)
  );

  always_comb begin
    buf_rd_en_o   = walk_rd;
    buf_rd_addr_o = {qp_q, first_line_q + walk_line};
    if (state_q == StContext) begin
      buf_rd_en_o   = ctx_valid_i;
      buf_rd_addr_o = {qp_q, first_line};
    end else if (state_q == StSeek) begin
      buf_rd_en_o   = seek_rd;
      buf_rd_addr_o = {qp_q, first_line_q + seek_line};
    end else if (state_q == StSum) begin
      buf_rd_en_o   = more_lines;
      buf_rd_addr_o = {qp_q, first_line_q + sum_line};
    end
  end

  // ---- Release ----------------------------------------------------------------------------------
  logic fetch;
  sq_fetch_plan u_fetch_plan (
      .qp_i   (qp_q),
      .ctx_i  (ctx_q),
      .fetch_o(fetch),
      .req_o  (fetch_data_o)
  );
  always_comb begin
    rel_data_o = ctx_q;
    if (sent_q) begin
      rel_data_o.sge_idx = partial_q ? walk_sge : '0;
      rel_data_o.sge_off = partial_q ? walk_offset : '0;
    end
    if (fetch) begin
      rel_data_o.fetching  = 1'b1;
      rel_data_o.fetch_gen = fetch_data_o.gen;
    end
  end
  // Where the next packet of a message starts is known a cycle after the walk.
  assign rel_valid_o        = state_q == StRelease ||
                              (state_q == StWalk && walk_done && !partial_q);
  assign rel_write_o        = 1'b1;
  assign fetch_valid_o      = rel_valid_o && rel_ready_i && fetch;
  assign drained_valid_o    = rel_valid_o && rel_ready_i && drained_q;

  // ---- Control ----------------------------------------------------------------------------------
  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:    if (acq_valid_o && acq_ready_i) state_d = StContext;
      StContext: if (ctx_valid_i) state_d = StHead;
      StHead: begin
        state_d = StRelease;
        if (runnable) state_d = judged ? StSum : StPlan;
      end
      StSum:     if (!more_lines) state_d = StPlan;
      StPlan: begin
        state_d = StRelease;
        if (seek) state_d = StSeek;
        if (walk_start) state_d = StWalk;
      end
      StSeek:    if (seek_done) state_d = StPlan;
      StWalk:    if (walk_done) state_d = (rel_valid_o && rel_ready_i) ? StIdle : StRelease;
      StRelease: if (rel_ready_i) state_d = failed_q ? StFail : StIdle;
      StFail:    if (retire_cmd_ready_i) state_d = StIdle;
      default:   state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    if (state_q == StIdle) qp_q <= run_qp_i;
    if (state_q == StContext && ctx_valid_i) begin
      ctx_q        <= ctx_data_i;
      first_line_q <= first_line;
      sent_q       <= 1'b0;
      failed_q     <= 1'b0;
      found_q      <= 1'b0;
      drained_q    <= 1'b0;
    end
    if (state_q == StHead) ctx_q.stalled <= 1'b0;
    if (state_q == StPlan && step_aside && !(judged && bad)) ctx_q.stalled <= 1'b1;
    if (state_q == StHead && drained) begin
      ctx_q.sqd_notify <= 1'b0;
      drained_q        <= 1'b1;
    end
    if (state_q == StHead) begin
      control_q <= buf_rd_data_i[127:0];
      header_q  <= buf_rd_data_i[511:128];
    end
    if (go) begin
      ctx_q     <= ctx_sent;
      sent_q    <= 1'b1;
      partial_q <= !last;
    end
    if (mem_valid_o) ctx_q.mem_busy <= 1'b1;
    if (seek_done) begin
      ctx_q.sge_idx <= seek_sge;
      ctx_q.sge_off <= seek_offset;
      found_q       <= 1'b1;
    end
    if (state_q == StPlan && judged && bad) begin
      ctx_q.fault          <= 1'b1;
      ctx_q.fault_idx      <= ctx_q.exec_idx;
      ctx_q.fault_status   <= bad_status;
      ctx_q.fault_syndrome <= '0;
      failed_q             <= 1'b1;
    end
    if (!rst_ni) state_q <= StIdle;
  end

  assign acq_valid_o  = state_q == StIdle && run_valid_i && room_i;
  assign acq_index_o  = run_qp_i;
  assign run_ready_o  = acq_valid_o && acq_ready_i;
  assign done_valid_o = state_d == StIdle && (state_q == StWalk || state_q == StRelease ||
                                              state_q == StFail);
  assign done_qp_o    = qp_q;
  assign done_again_o = sent_q && ctx_q.buf_count != '0;

  assign retire_cmd_valid_o = state_q == StFail;
  always_comb begin
    retire_cmd_data_o         = '0;
    retire_cmd_data_o.qp      = qp_q;
    retire_cmd_data_o.command = rnic_pkg::RetireCommandFailWqe;
    retire_cmd_data_o.psn     = ctx_q.next_psn;
    retire_cmd_data_o.wqe_idx = ctx_q.exec_idx;
    retire_cmd_data_o.status  = ctx_q.fault_status;
  end

  always_comb begin
    event_o = '0;
    if (state_q == StPlan && !seek) begin
      event_o[rnic_pkg::CounterWqeErrors]       = judged && bad;
      event_o[rnic_pkg::CounterWindowStalls]    = window_stall;
      event_o[rnic_pkg::CounterFenceStalls]     = fence_stall;
      event_o[rnic_pkg::CounterReadLimitStalls] = read_stall;
      event_o[rnic_pkg::CounterCreditStalls]    = credit_stall;
    end
  end

  `ASSERT_HOLD(AcquireHold, acq_valid_o, acq_ready_i, acq_index_o)
  `ASSERT(BufferAtExec, state_q != StHead || !runnable || ctx_q.buf_idx == ctx_q.exec_idx)
  `ASSERT(NoReadWhileActive, state_q != StPlan || !ctx_q.msg_active || !is_read)
endmodule

`default_nettype wire
