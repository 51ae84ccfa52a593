`default_nettype none
`include "assert.svh"

/// Place stage, first half: walks where the payload of each plan goes and asks for the translation
/// of every run.
///
/// A run never crosses 4096 bytes of virtual address. Pages are at least that large, so an answer
/// covers its whole run and runs can be asked for without waiting for answers; PCIe would cut the
/// write there anyway. Runs of a packet leave on run_* (one for each xlate_req_t, in order), then
/// an entry with `run_end`, together with the packet on packet_*. Scatter lists are kept per QP and
/// side, with a cursor, from the first packet of a message to its last. The list of the packet
/// before stays in hand as long as nothing else is walked: its next packet costs 2 cycles, like a
/// WRITE of one run; one of another list 5, the first of a message 2 and those that its WQE takes
/// to come in. A WQE of an SRQ is taken in even when nothing goes to its buffers, for its tag; tag
/// and protection domain stay with the cursor.
module rx_place_walk (
    input  wire logic                    clk_i,
    input  wire logic                    rst_ni,
    input  wire logic                    plan_valid_i,
    output logic                         plan_ready_o,
    input  wire rnic_pkg::rx_plan_t      plan_data_i,
    input  wire logic                    rd_rsp_valid_i,
    output logic                         rd_rsp_ready_o,
    input  wire rnic_pkg::dma_rd_rsp_t   rd_rsp_data_i,
    output logic                         xlate_valid_o,
    input  wire logic                    xlate_ready_i,
    output rnic_pkg::xlate_req_t         xlate_data_o,
    output logic                         run_valid_o,
    input  wire logic                    run_ready_i,
    output logic                         run_end_o,
    // With run_end_o: the scatter list was too short, or the WQE is bad
    output logic                         run_overflow_o,
    output logic                         run_bad_wqe_o,
    output logic                         run_last_o,
    output logic [12:0]                  run_length_o,
    output logic                         packet_valid_o,
    input  wire logic                    packet_ready_i,
    output rnic_pkg::rx_done_t           packet_data_o,
    output logic                         packet_has_payload_o
);
  // Idle    takes a plan; reads the cursor of its list
  // Load    takes the WQE of a new message into the list
  // Cursor  the cursor of a list in use arrives
  // Fetch   reads the scatter entry
  // Entry   the scatter entry arrives
  // Run     asks for the translation of the next run
  // End     the packet follows its runs; the cursor is kept; takes the next plan like Idle
  typedef enum logic [2:0] {Idle, Load, Cursor, Fetch, Entry, Run, End} state_e;
  state_e state_q, state_d;

  rnic_pkg::rx_plan_t plan_q;
  logic is_list, is_send_side, is_sink, load_done, load_bad, load_unread, load_lost;
  logic unread_q, lost_q;
  logic [8:0] list;
  logic [4:0] load_count;
  logic [15:0] load_tag;
  assign is_send_side = plan_q.target == rnic_pkg::PlaceTargetResponse;
  assign is_list      = is_send_side || plan_q.target == rnic_pkg::PlaceTargetReceive;
  assign list         = {is_send_side, plan_q.qp};
  assign is_sink      = is_send_side && !plan_q.atomic;  // decisions 57

  // ---- Scatter lists: {side, QP, entry}; cursors: protection domain, tag, entries, next entry,
  // bytes of it that are used ----
  logic sge_wr_en, plan_taken;
  logic [12:0] sge_wr_addr;
  logic [127:0] sge_wr_data, sge_rd_data;
  logic [81:0] cursor_rd_data;
  logic [4:0] count_q, entry_q;
  logic [31:0] entry_used_q, entry_left_q;
  rnic_pkg::wqe_data_t sge;
  logic [127:0] first_sge_q;
  logic first_sge_in;
  assign sge = (state_q != Load) ? sge_rd_data : first_sge_in ? sge_wr_data : first_sge_q;
  assign first_sge_in = sge_wr_en && sge_wr_addr[3:0] == 4'd0;
  assign plan_taken   = plan_valid_i && plan_ready_o;

  // The list in hand: its entry is where the packet before has ended (hand_*). What walks elsewhere
  // takes its place.
  logic hand_q, next_is_list, keeps, continues, list_ends;
  logic [8:0] hand_list_q, next_list;
  logic [23:0] hand_pd_q;
  logic [15:0] hand_tag_q;
  assign next_is_list = plan_data_i.target == rnic_pkg::PlaceTargetResponse ||
                        plan_data_i.target == rnic_pkg::PlaceTargetReceive;
  assign next_list    = {plan_data_i.target == rnic_pkg::PlaceTargetResponse, plan_data_i.qp};
  assign continues    = hand_q && next_is_list && !plan_data_i.sgl_fetch &&
                        next_list == hand_list_q;
  assign keeps        = plan_data_i.target == rnic_pkg::PlaceTargetNone && !plan_data_i.sgl_fetch;
  assign list_ends    = entry_left_q == 32'd0 && entry_q == count_q;

  rx_place_wqe u_wqe (
      .clk_i,
      .rst_ni,
      .start_i       (plan_taken && plan_data_i.sgl_fetch),
      .is_send_wqe_i (is_send_side),
      .qp_i          (plan_q.qp),
      .qpn_i         (plan_q.qpn),
      .wqe_idx_i     (plan_q.wqe_idx),
      .done_o        (load_done),
      .count_o       (load_count),
      .bad_o         (load_bad),
      .unread_o      (load_unread),
      .lost_o        (load_lost),
      .tag_o         (load_tag),
      .rd_rsp_valid_i,
      .rd_rsp_ready_o,
      .rd_rsp_data_i,
      .sge_wr_en_o   (sge_wr_en),
      .sge_wr_addr_o (sge_wr_addr),
      .sge_wr_data_o (sge_wr_data)
  );
  ram_1r1w #(
      .Width(128),
      .Depth(8192)
  ) u_lists (
      .clk_i,
      .wr_en_i  (sge_wr_en),
      .wr_addr_i(sge_wr_addr),
      .wr_data_i(sge_wr_data),
      .rd_en_i  (state_q == Fetch),
      .rd_addr_i({list, entry_q[3:0]}),
      .rd_data_o(sge_rd_data)
  );
  ram_1r1w #(
      .Width(82),
      .Depth(512)
  ) u_cursors (
      .clk_i,
      .wr_en_i  (state_q == End && is_list),
      .wr_addr_i(list),
      .wr_data_i({plan_q.pd, plan_q.wqe_idx, count_q, entry_q, entry_used_q}),
      .rd_en_i  (plan_taken),
      .rd_addr_i(next_list),
      .rd_data_o(cursor_rd_data)
  );

  // ---- Next run: at most what the packet needs, what the entry has left, and what is left of 4096
  // bytes of address ----
  logic [12:0] need_q, to_boundary, length_a, run_length;
  logic [63:0] va_q;
  logic [31:0] key_q;
  logic first_run_q, run_taken, entry_ends, packet_ends, overflow_q, bad_wqe_q, is_check_read;
  logic is_check_atomic;
  assign is_check_atomic = plan_q.target == rnic_pkg::PlaceTargetCheckAtomic;
  assign is_check_read = plan_q.target == rnic_pkg::PlaceTargetCheckRead || is_check_atomic;
  assign to_boundary = 13'd4096 - {1'b0, va_q[11:0]};
  assign length_a    = (need_q < to_boundary) ? need_q : to_boundary;
  assign run_length  = (is_list && entry_left_q < 32'(length_a)) ? entry_left_q[12:0] : length_a;
  assign packet_ends = run_length == need_q;
  assign entry_ends  = is_list && entry_left_q == 32'(run_length);
  // An entry of zero bytes is skipped and its key is not looked at.
  assign xlate_valid_o = state_q == Run && run_ready_i && (run_length != 13'd0 || is_check_read);
  assign run_taken     = xlate_valid_o && xlate_ready_i;

  always_comb begin : request
    xlate_data_o     = '0;
    xlate_data_o.key = key_q;
    xlate_data_o.va  = va_q;
    xlate_data_o.pd  = plan_q.pd;
    xlate_data_o.qp  = plan_q.qp;
    xlate_data_o.length = (!is_list && first_run_q) ? plan_q.check_length : 32'(run_length);
    xlate_data_o.access = is_sink ? rnic_pkg::AccessLocalSink
        : is_list ? rnic_pkg::AccessLocalWrite
        : is_check_atomic ? rnic_pkg::AccessRemoteAtomic
        : is_check_read ? rnic_pkg::AccessRemoteRead : rnic_pkg::AccessRemoteWrite;
  end

  assign run_valid_o    = run_taken || (state_q == End && packet_ready_i);
  assign run_end_o      = state_q == End;
  assign run_overflow_o = overflow_q;
  assign run_bad_wqe_o  = bad_wqe_q;
  assign run_last_o     = packet_ends;
  assign run_length_o   = run_length;
  assign packet_valid_o = state_q == End && run_ready_i;
  assign plan_ready_o   = state_q == Idle || (state_q == End && run_ready_i && packet_ready_i
                                              && !overflow_q && !bad_wqe_q);

  assign packet_has_payload_o = plan_q.payload_length != 13'd0;
  rx_place_packet u_packet (
      .plan_i(plan_q),
      .unread_i(unread_q),
      .lost_i(lost_q),
      .done_o(packet_data_o)
  );

  always_comb begin : control
    state_d = state_q;
    unique case (state_q)
      Idle: ;
      Load: begin
        if (load_done) begin
          state_d = Run;
          if (!is_list && plan_q.target == rnic_pkg::PlaceTargetNone) state_d = End;
          if (load_bad || (is_list && load_count == 5'd0)) state_d = End;
        end
      end
      Cursor: state_d = (cursor_rd_data[41:37] == cursor_rd_data[36:32]) ? End : Fetch;
      Fetch: state_d = Entry;
      Entry: state_d = Run;
      Run:
      if (run_taken || (run_length == 13'd0 && !is_check_read)) begin
        if (packet_ends) state_d = End;
        else if (entry_ends) state_d = (entry_q + 5'd1 == count_q) ? End : Fetch;
      end
      End: if (run_ready_i && packet_ready_i) state_d = Idle;
      default: state_d = Idle;
    endcase
    if (plan_taken) begin
      unique case (plan_data_i.target)
        rnic_pkg::PlaceTargetReceive, rnic_pkg::PlaceTargetResponse: state_d = Cursor;
        rnic_pkg::PlaceTargetWrite, rnic_pkg::PlaceTargetCheckRead,
        rnic_pkg::PlaceTargetCheckAtomic: state_d = Run;
        default: state_d = End;
      endcase
      if (plan_data_i.sgl_fetch) state_d = Load;
      if (continues) state_d = list_ends ? End : (entry_left_q == 32'd0) ? Fetch : Run;
    end
  end

  always_ff @(posedge clk_i) begin
    state_q <= state_d;
    unique case (state_q)
      Load:
      if (load_done) begin
        count_q    <= load_bad ? 5'd0 : load_count;
        bad_wqe_q  <= load_bad;
        unread_q   <= load_unread;
        lost_q     <= plan_q.srq && load_lost;
        overflow_q <= is_list && !load_bad && load_count == 5'd0;
        if (plan_q.srq) plan_q.wqe_idx <= load_tag;
        hand_pd_q    <= plan_q.pd;
        hand_tag_q   <= load_tag;
        va_q         <= is_list ? sge.va : plan_q.va;
        key_q        <= is_list ? sge.lkey : plan_q.key;
        entry_left_q <= sge.length;
      end
      Cursor: begin
        {count_q, entry_q, entry_used_q} <= cursor_rd_data[41:0];
        if (plan_q.srq) {plan_q.pd, plan_q.wqe_idx} <= cursor_rd_data[81:42];
        {hand_pd_q, hand_tag_q} <= cursor_rd_data[81:42];
        overflow_q <= cursor_rd_data[41:37] == cursor_rd_data[36:32];
      end
      Entry: begin
        va_q         <= sge.va + 64'(entry_used_q);
        key_q        <= sge.lkey;
        entry_left_q <= sge.length - entry_used_q;
      end
      Run:
      if (state_d != Run || run_taken) begin
        first_run_q  <= 1'b0;
        va_q         <= va_q + 64'(run_length);
        need_q       <= need_q - run_length;
        entry_left_q <= entry_left_q - 32'(run_length);
        entry_used_q <= entry_ends ? 32'd0 : entry_used_q + 32'(run_length);
        if (entry_ends) entry_q <= entry_q + 5'd1;
        // The list ends before the packet does.
        overflow_q <= is_list && !packet_ends && entry_ends && entry_q + 5'd1 == count_q;
      end
      End: if (overflow_q || bad_wqe_q) hand_q <= 1'b0;
      default: ;
    endcase
    if (first_sge_in) first_sge_q <= sge_wr_data;
    if (plan_taken) begin
      plan_q      <= plan_data_i;
      need_q      <= (plan_data_i.target == rnic_pkg::PlaceTargetCheckRead
          || plan_data_i.target == rnic_pkg::PlaceTargetCheckAtomic) ? 13'd0
          : plan_data_i.payload_length;
      first_run_q <= 1'b1;
      overflow_q  <= continues && list_ends;
      bad_wqe_q   <= 1'b0;
      unread_q    <= 1'b0;
      lost_q      <= 1'b0;
      if (continues && plan_data_i.srq) {plan_q.pd, plan_q.wqe_idx} <= {hand_pd_q, hand_tag_q};
      if (!continues && !keeps) begin
        va_q         <= plan_data_i.va;
        key_q        <= plan_data_i.key;
        entry_q      <= 5'd0;
        entry_used_q <= 32'd0;
        hand_q       <= next_is_list;
        hand_list_q  <= next_list;
      end
    end
    if (!rst_ni) begin
      state_q <= Idle;
      hand_q  <= 1'b0;
    end
  end

  logic unused_bits;
  assign unused_bits = &{1'b0, plan_q.drop_payload, plan_q.sgl_fetch, plan_q.first_byte};
  `ASSERT_HOLD(RunHold, run_valid_o, run_ready_i, {run_end_o, run_last_o, run_length_o})
  `ASSERT(ListBeginsWithMessage, state_q != Load || plan_q.first_byte == 32'd0)
  `ASSERT(DropsWhatHasNoTarget, state_q == Idle || plan_q.drop_payload
      == (plan_q.target == rnic_pkg::PlaceTargetNone && packet_has_payload_o))
  `ASSERT(PlacesSomething, state_q != Run || need_q != 13'd0 || is_check_read)
endmodule

`default_nettype wire
